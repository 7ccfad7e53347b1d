#!/usr/bin/env bash
# Installs what the named parts need on this machine: tools/system.sh build python test
# A part with a question mark (record?) is wanted, not needed: if it cannot be installed, that is said.
# Missing packages of the distribution are named and installed; a missing Rust toolchain is only reported.
set -euo pipefail
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# One line for each requirement: the part that needs it, a command or file that shows that it is installed,
# and the package that provides it in Debian, Fedora, SUSE and Arch.
needs='
build   cc                    gcc            gcc             gcc            gcc
build   /usr/include/stdio.h  libc6-dev      glibc-devel     glibc-devel    glibc
python  a_python_for_venvs    python3-venv   python3         python311      python
test    losetup               mount          util-linux      util-linux     util-linux
test    sshd                  openssh-server openssh-server  openssh-server openssh
test    ssh                   openssh-client openssh-clients openssh-clients openssh
test    ip                    iproute2       iproute         iproute2       iproute2
test    nsenter               util-linux     util-linux      util-linux     util-linux
test    mkfs.ext4             e2fsprogs      e2fsprogs       e2fsprogs      e2fsprogs
test    mkfs.xfs              xfsprogs       xfsprogs        xfsprogs       xfsprogs
test    mkfs.btrfs            btrfs-progs    btrfs-progs     btrfsprogs     btrfs-progs
test    strace                strace         strace          strace         strace
test    sqlite3               sqlite3        sqlite          sqlite3        sqlite
test    git                   git            git             git            git
test    make                  make           make            make           make
test    pgbench               postgresql     postgresql-server postgresql-server postgresql
loads   /usr/lib/postgresql   postgresql     postgresql-server postgresql-server postgresql
loads   sqlite3               sqlite3        sqlite          sqlite3        sqlite
loads   git                   git            git             git            git
loads   mariadbd              mariadb-server mariadb-server  mariadb        mariadb
loads   /usr/lib/mysql/plugin/ha_rocksdb.so mariadb-plugin-rocksdb mariadb-rocksdb-engine mariadb mariadb
loads   sysbench              sysbench       sysbench        sysbench       sysbench
loads   /usr/lib/dovecot/dovecot-lda dovecot-core dovecot    dovecot        dovecot
loads   borg                  borgbackup     borgbackup      borgbackup     borg
loads   nginx                 nginx-light    nginx           nginx          nginx
loads   curl                  curl           curl            curl           curl
loads   mkfs.ext4             e2fsprogs      e2fsprogs       e2fsprogs      e2fsprogs
loads   mkfs.xfs              xfsprogs       xfsprogs        xfsprogs       xfsprogs
bench   fio                   fio            fio             fio            fio
bench   /usr/include/liburing.h liburing-dev liburing-devel  liburing-devel liburing
spark   java                  openjdk-17-jre-headless java-17-openjdk-headless java-17-openjdk-headless jre17-openjdk-headless
bench   blkparse              blktrace       blktrace        blktrace       blktrace
bench   gawk                  gawk           gawk            gawk           gawk
record  clang                 clang          clang           clang          clang
test    chromium              chromium       chromium        chromium       chromium
test    firefox               firefox-esr    firefox         MozillaFirefox firefox
test    shellcheck            shellcheck     ShellCheck      ShellCheck     shellcheck
acceptance prometheus         prometheus     golang-github-prometheus golang-github-prometheus-prometheus prometheus
static-x86_64 musl-gcc        musl-tools     musl-gcc        musl-tools     musl
static-aarch64 aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu gcc-aarch64-linux-gnu cross-aarch64-gcc13 aarch64-linux-gnu-gcc
static-aarch64 /usr/aarch64-linux-gnu/include/stdio.h libc6-dev-arm64-cross glibc-arm-linux-gnu-devel cross-aarch64-glibc-devel aarch64-linux-gnu-glibc
packages dpkg-deb             dpkg           dpkg            dpkg           dpkg
packages rpmbuild             rpm            rpm-build       rpm-build      rpm-tools
packages-test debootstrap     debootstrap    debootstrap     debootstrap    debootstrap
packages-test rpm             rpm            rpm             rpm            rpm-tools
packages-test lintian         lintian        lintian         lintian        lintian
static-test debootstrap        debootstrap    debootstrap     debootstrap    debootstrap
image-test debootstrap        debootstrap    debootstrap     debootstrap    debootstrap
image-test buildah            buildah        buildah         buildah        buildah
emulated qemu-system-x86_64   qemu-system-x86 qemu-system-x86-core qemu-x86 qemu-system-x86
emulated a_kernel_with_iscsi  linux-image-amd64 kernel-modules-extra kernel-default linux
emulated busybox              busybox-static busybox         busybox-static busybox
emulated lvm                  lvm2           lvm2            lvm2           lvm2
emulated iscsiadm             open-iscsi     iscsi-initiator-utils open-iscsi open-iscsi
emulated udevadm              udev           systemd-udev    udev           systemd
'

# Prints the name of a Python that is new enough and can create virtual environments.
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

# Prints the newest kernel in /boot that has the modules of an iSCSI target.
a_kernel_with_iscsi() {
    local kernel
    for kernel in $(printf '%s\n' /boot/vmlinuz-* | sort --version-sort --reverse); do
        if find "/lib/modules/${kernel#/boot/vmlinuz-}" -name 'iscsi_target_mod.ko*' 2>/dev/null | grep -q .; then
            echo "$kernel"
            return
        fi
    done
    return 1
}

is_installed() {
    case $1 in
    /*) [ -e "$1" ] ;;
    a_kernel_with_iscsi) a_kernel_with_iscsi >/dev/null ;;
    a_python_for_venvs) a_python_for_venvs >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

# The column of the distribution in the list above, and its command to install packages.
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

# Checks that Cargo has at least the version in Cargo.toml.
check_rust() {
    local required found
    required=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    found=$(cargo --version 2>/dev/null | awk '{print $2}') || true
    if [ -z "$found" ] || [ "$(printf '%s\n' "$required" "$found" | sort -V | head -n 1)" != "$required" ]; then
        cat >&2 <<EOF
iosonar needs a Rust toolchain, version $required or newer; this machine has ${found:-none}.
Install it from https://rustup.rs (no root needed), or, if your distribution has it, as its package:
    apt-get install rustup && rustup default stable        (dnf, zypper and pacman call it rustup as well)
then run this again. It is not installed automatically: which toolchain you use is your choice.
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
        echo "iosonar needs $* (Debian's names); the package manager of this distribution is unknown: install them, then run this again." >&2
        return 1
    fi
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        echo "iosonar needs packages that only root can install. As root, run: $install $*" >&2
        return 1
    fi
    echo "installing from the distribution: $*"
    case " $* " in
    *' openssh-server '*)
        echo "tests start sshd in network namespaces of their own; the package may also start one for this machine:" \
            "systemctl disable --now ssh"
        ;;
    esac
    # A new machine may have no package lists; refresh them only if the installation fails.
    # shellcheck disable=SC2086
    as_root $install "$@" </dev/null || { as_root $refresh </dev/null && as_root $install "$@" </dev/null; }
}

[ "${1-}" != --python ] || { a_python_for_venvs; exit; }
[ "${1-}" != --kernel ] || { a_kernel_with_iscsi; exit; }

cd "$(dirname "$0")/.."
missing=()
for part; do
    if [[ $part == *\? ]]; then
        "tools/system.sh" "${part%\?}" ||
            echo "without the part ${part%\?}: iosonar is built, but cannot record; install the package, then run this again" >&2
        continue
    fi
    [ "$part" != build ] || check_rust
    while read -r of probe packages; do
        [ "$of" = "$part" ] && ! is_installed "$probe" || continue
        # Package names begin in the third column of the list; an unknown manager gets Debian's names.
        read -r -a names <<<"$packages"
        missing+=("${names[$((column > 2 ? column - 3 : 0))]}")
    done <<<"$needs"
done
[ ${#missing[@]} = 0 ] || install_missing "${missing[@]}"
for part; do
    [[ $part != *\? ]] || continue
    while read -r of probe _; do
        [ "$of" = "$part" ] && ! is_installed "$probe" || continue
        echo "still missing after the installation: $probe" >&2
        exit 1
    done <<<"$needs"
done
