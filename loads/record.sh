#!/usr/bin/env bash
# Records the loads of this directory anew: sudo loads/record.sh [--seconds N] [NAME…]
#
# recipes/NAME.sh describes a load: `filesystem`, `size`, and the functions `note`, `prepare`, `run`. Each load has a fresh
# file system on a loop device of its own, with nothing of it in the page cache. `run` is recorded: the requests of the
# device into NAME.load.parquet and, where the recipe says `calls=yes`, the calls of the same run into
# NAME.calls.parquet, without those to sockets and to files of the system. Needs root, the programs that the recipe names,
# mkfs.ext4, mkfs.xfs, and iosonar: the program that IOSONAR names, or the one on the path.
set -euo pipefail

export seconds=600
if [ "${1:-}" = --seconds ]; then
    seconds=$2
    shift 2
fi
iosonar=$(realpath "$(command -v "${IOSONAR:-iosonar}")")
here=$(cd "$(dirname "$0")" && pwd)
# The loop device's file: on a disk, for latencies of a disk.
image=$(mktemp "${TMPDIR:-/var/tmp}/iosonar-load.XXXXXX")
# A directory of the recipe's own for sockets, settings and scripts.
top=$(mktemp -d)
export top mounted=$top/mounted
mkdir "$mounted"
cp -r "$here/recipes" "$top"
chmod 755 "$top"
cd "$top"
device=
# Calls that say nothing about the load.
SOCKETS=recvfrom,sendto,recvmsg,sendmsg,recvmmsg,sendmmsg
SYSTEM='/dev/null,/usr/**,/lib/**,/lib64/**,/etc/**,/proc/**,/sys/**,/root/**,/bin/**'

unmount() {
    if mountpoint -q "$mounted"; then umount "$mounted"; fi
}

clean_up() {
    unmount
    if [ -n "$device" ]; then losetup --detach "$device"; fi
    rm -rf "$top" "$image"
}
trap clean_up EXIT

# A fresh file system of that type and size on a loop device, mounted.
fresh() {
    if [ -n "$device" ]; then
        unmount
        losetup --detach "$device"
    fi
    rm "$image"
    truncate --size "$2" "$image"
    device=$(losetup --find --show --direct-io=on "$image")
    "mkfs.$1" -q "$device"
    mount "$device" "$mounted"
}

record() {
    local name=$1 calls=no filesystem size text command
    # shellcheck source=/dev/null
    . "$top/recipes/$name.sh"
    fresh "$filesystem" "$size"
    prepare
    text="$(note), on $filesystem; recorded by the iosonar project, CC0 1.0"
    # Nothing of the file system stays in memory.
    unmount
    mount "$device" "$mounted"
    rm -f "$here/$name".{load,calls,tree}.parquet
    # shellcheck disable=SC2016
    command=(bash -euo pipefail -c '. "$0"; run; sync -f "$mounted"' "$top/recipes/$name.sh")
    if [ "$calls" = yes ]; then
        command=("$iosonar" files record --with ebpf --buffer 64M --output "$top/$name.calls.parquet" --note "$text" -- "${command[@]}")
    fi
    "$iosonar" record --device "$device" --output "$here/$name.load.parquet" --note "$text" -- "${command[@]}"
    if [ "$calls" = yes ]; then
        mv "$top/$name.tree.parquet" "$here"
        "$iosonar" edit "$top/$name.calls.parquet" "$here/$name.calls.parquet" "drop $SOCKETS | drop path=$SYSTEM"
    fi
}

if [ $# = 0 ]; then
    for recipe in "$here"/recipes/*.sh; do set -- "$@" "$(basename "$recipe" .sh)"; done
fi
for name; do
    [ -e "$here/recipes/$name.sh" ] || { echo "no recipe $here/recipes/$name.sh" >&2; exit 2; }
done
for name; do
    record "$name"
done
ls -l "$here"/*.parquet
