#!/usr/bin/env bash
# make -j2: compiles and links generated C files, then again after a change of one of them.
set -euo pipefail
cd "$2"
export TMPDIR=$PWD/tmp LC_ALL=C

setup() {
    mkdir tmp
    local i
    for i in $(seq 6); do
        printf '#include <stdio.h>\nint f%d(int x) { printf("%%d\\n", x); return x * %d; }\n' "$i" "$i" >"f$i.c"
    done
    {
        seq -f 'int f%g(int);' 6
        printf 'int main(void) { int x = 1;\n'
        seq -f '  x = f%g(x);' 6
        printf '  return x == 0; }\n'
    } >main.c
    cat >Makefile <<'END'
program: main.o f1.o f2.o f3.o f4.o f5.o f6.o
	$(CC) -o $@ $^
%.o: %.c
	$(CC) -O1 -c -o $@ $<
END
}

run() {
    make --jobs=2 --silent
    ./program >output.txt
    printf '/* changed */\n' >>f3.c
    make --jobs=2 --silent
}

"$1"
