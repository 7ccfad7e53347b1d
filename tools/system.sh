#!/usr/bin/env bash
# Sees to it that this machine has what the parts named need: tools/system.sh build python test
# What is missing and comes from the distribution is named and installed; a missing Rust toolchain is only named.
set -euo pipefail
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# One line for each thing needed: the part that needs it, a command or file that shows that it is there,
# and the package that brings it in Debian, Fedora, SUSE and Arch.
needs='
build   cc                    gcc            gcc             gcc            gcc
build   /usr/include/stdio.h  libc6-dev      glibc-devel     glibc-devel    glibc
python  a_python_for_venvs    python3-venv   python3         python311      python
test    losetup               mount          util-linux      util-linux     util-linux
test    mkfs.ext4             e2fsprogs      e2fsprogs       e2fsprogs      e2fsprogs
bench   fio                   fio            fio             fio            fio
spark   java                  openjdk-17-jre-headless java-17-openjdk-headless java-17-openjdk-headless jre17-openjdk-headless
bench   blkparse              blktrace       blktrace        blktrace       blktrace
bench   gawk                  gawk           gawk            gawk           gawk
record  clang                 clang          clang           clang          clang
test    chromium              chromium       chromium        chromium       chromium
test    firefox               firefox-esr    firefox         MozillaFirefox firefox
'

# A Python that is new enough and can make virtual environments; prints its name.
a_python_for_venvs() {
    local python
    for python in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    return 1
}

is_there() {
    case $1 in
    /*) [ -e "$1" ] ;;
    a_python_for_venvs) a_python_for_venvs >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

# The column of the distribution's packages in the list above, and how it installs them.
if command -v apt-get >/dev/null; then
    column=3 install='apt-get install -y --no-install-recommends' refresh='apt-get update -q'
elif command -v dnf >/dev/null; then
    column=4 install='dnf install -y' refresh=true
elif command -v zypper >/dev/null; then
    column=5 install='zypper --non-interactive install' refresh=true
elif command -v pacman >/dev/null; then
    column=6 install='pacman -S --noconfirm --needed' refresh='pacman -Sy'
else
    column=0 install='' refresh=true
fi

# Cargo, at least as new as Cargo.toml asks.
check_rust() {
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    found=$(cargo --version 2>/dev/null | awk '{print $2}') || true
    if [ -z "$found" ] || [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]; then
        cat >&2 <<EOF
iosonar needs a Rust toolchain, version $wanted or newer; this machine has ${found:-none}.
Get it for yourself, no root needed, from https://rustup.rs, or, where your distribution has it, with its package:
    apt-get install rustup && rustup default stable        (dnf, zypper and pacman call it rustup as well)
then run this again. It is not installed for you: which toolchain you use is your choice.
EOF
        return 1
    fi
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

install_missing() {
    if [ "$column" = 0 ]; then
        echo "iosonar needs $* (Debian's names); this distribution's package manager is not known here: install them, then run this again." >&2
        return 1
    fi
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        echo "iosonar needs packages that only root can install. As root, run: $install $*" >&2
        return 1
    fi
    echo "installing from the distribution: $*"
    # A machine that has never asked may have no list of packages; one that has does not need to ask again.
    # shellcheck disable=SC2086
    as_root $install "$@" </dev/null || { as_root $refresh </dev/null && as_root $install "$@" </dev/null; }
}

[ "${1-}" != --python ] || { a_python_for_venvs; exit; }

cd "$(dirname "$0")/.."
missing=()
for part; do
    [ "$part" != build ] || check_rust
    while read -r of probe packages; do
        [ "$of" = "$part" ] && ! is_there "$probe" || continue
        # The list names the packages from its third column on; without a known manager Debian's name stands in.
        read -r -a names <<<"$packages"
        missing+=("${names[$((column > 2 ? column - 3 : 0))]}")
    done <<<"$needs"
done
[ ${#missing[@]} = 0 ] || install_missing "${missing[@]}"
for part; do
    while read -r of probe _; do
        [ "$of" = "$part" ] && ! is_there "$probe" || continue
        echo "still missing after the installation: $probe" >&2
        exit 1
    done <<<"$needs"
done
