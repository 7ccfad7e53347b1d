#!/usr/bin/env bash
# tar: an archive of a tree with directories, symbolic links, hard links, a sparse file and odd names; extracted again.
set -euo pipefail
cd "$2"

setup() {
    local d f
    for d in alpha beta/deep/deeper 'with space' $'new\nline' leér; do
        mkdir -p "tree/$d"
        for f in 1 2 3 4 5 6 7 8; do
            head -c $((f * f * 700)) /dev/zero | tr '\0' "$f" >"tree/$d/file$f"
        done
    done
    : >tree/empty
    ln -s ../alpha/file3 tree/beta/link
    ln -s nothing-here tree/dangling
    ln tree/alpha/file1 tree/beta/same
    truncate -s 3M tree/sparse
    printf end >>tree/sparse
    chmod 640 tree/alpha/file2
    chmod 700 tree/beta/deep
}

run() {
    tar --create --sparse --file tree.tar tree
    mkdir copy
    tar --extract --file tree.tar --directory copy
    tar --compare --file tree.tar
    gzip --keep tree.tar
    tar --list --gzip --file tree.tar.gz >list.txt
    rm tree.tar
    rm -r copy/tree/alpha
}

"$1"
