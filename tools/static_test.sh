#!/usr/bin/env bash
# tools/static_test.sh BIN: tries the static binary in dist/ in the user lands of distributions, each a chroot of debootstrap
# without its network, on this kernel, then on an emulated machine with a kernel of Debian; as root.
# SUITES names other user lands, of Ubuntu, too, if debootstrap finds Ubuntu's keyring; BIN has the program vng.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin

# Runs in each user land, with a loop device: replays on a file, records requests and calls, and is an agent of a campaign.
tries() {
    cat <<'SH'
set -eu
device=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
fails() { echo "$1" >&2; exit 1; }
iosonar --version
iosonar generate poisson load.parquet --rate 500 --duration 2s --span 16M --overwrite
truncate -s 16M target
iosonar device wipe target >/dev/null
iosonar replay load.parquet --target target --output run.parquet --overwrite | tail -n 1
iosonar info run.parquet | grep -q ' requests' || fails "the result of the replay cannot be read"
iosonar record --device "$device" --output seen.parquet -- \
    dd if=/dev/zero of="$device" bs=4k count=100 oflag=direct status=none
iosonar info seen.parquet | grep '100 writes' || fails "the recording has not all 100 writes"
iosonar files record --output cp.calls.parquet -- cp load.parquet copy.parquet
iosonar info cp.calls.parquet | sed -n 1p
cmp load.parquet copy.parquet
echo | iosonar clock | grep -q '[0-9]' || fails "no answer about its clock"
echo passed
SH
}

if [[ ${1-} == --inside ]]; then
    # Directories in memory have no direct I/O in this kernel.
    modprobe brd rd_nr=2 rd_size=65536
    mkfs.ext4 -q /dev/ram1
    mkdir -p /tmp/bin /tmp/disk
    mount /dev/ram1 /tmp/disk
    mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
    cp "$2" /tmp/bin/iosonar
    uname -r
    PATH=/tmp/bin:$PATH TMPDIR=/tmp/disk sh -c "$(tries)" sh /dev/ram0
    exit
fi

[ $# = 1 ] || { echo "usage: tools/static_test.sh BIN" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "static-test needs root, for chroot" >&2; exit 1; }
binary=$(realpath "$(echo dist/iosonar-[0-9]*-x86_64-linux-musl)")
! ldd "$binary" 2>/dev/null | grep '=>' || { echo "$binary needs libraries" >&2; exit 1; }
file=$(mktemp /dev/shm/iosonar-static.XXXXXX)
truncate -s 16M "$file"
device=$(losetup --show --find "$file")
trap 'losetup --detach "$device"; rm -f "$file"' EXIT
for suite in ${SUITES:-bullseye bookworm trixie}; do
    root=$PWD/target/packages/$suite
    case $suite in
    focal | jammy | noble) mirror=http://archive.ubuntu.com/ubuntu keyring=ubuntu-archive ;;
    *) mirror=http://deb.debian.org/debian keyring=debian-archive ;;
    esac
    [ -x "$root/usr/bin/dpkg" ] ||
        debootstrap --variant=minbase --keyring="/usr/share/keyrings/$keyring-keyring.gpg" "$suite" "$root" "$mirror" >"$root.log"
    echo "== $suite: $(. "$root/etc/os-release" && echo "$PRETTY_NAME"), kernel $(uname -r)"
    cp "$binary" "$root/usr/bin/iosonar"
    unshare --net --mount --fork bash -c 'cd "$0"; mount -t proc proc proc; mount --rbind /sys sys; mount --rbind /dev dev
        exec chroot . sh -c "$1" sh "$2"' "$root" "$(tries)" "$device"
done

kernel=$(tools/system.sh --kernel) || { echo "no kernel to emulate: run tools/system.sh emulated" >&2; exit 1; }
echo "== emulated machine, $kernel"
log=target/packages/emulated.log
PATH=$1:$PATH
vng --disable-kvm --force-9p --run "$kernel" --cpus 2 --memory 2G -- "$(printf '%q ' "$PWD/tools/static_test.sh" --inside "$binary")" \
    </dev/null 2>&1 | tee "$log"
grep -q '^passed' "$log"
