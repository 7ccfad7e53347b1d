#!/usr/bin/env bash
# tools/packages_test.sh [DIRECTORY]: installs the packages in dist/, or in that directory, in a new Debian without network,
# runs iosonar there, and removes them; as root.
# The rpm of the binary is installed in an empty directory: it needs nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(realpath "${1:-dist}")
base=target/packages/debian root=$PWD/target/packages/root
[ "$(id -u)" = 0 ] || { echo "packages-test needs root, for chroot" >&2; exit 1; }
[ -x "$base/usr/bin/dpkg" ] || debootstrap --variant=minbase --include=python3 "${DEBIAN:-bookworm}" "$base"

say() { echo "== $*"; }
inside() { unshare --net --mount --pid --fork bash -c 'mount -t proc proc "$0/proc" 2>/dev/null || true; exec chroot "$0" "$@"' "$root" "$@"; }
fresh() { rm -rf "$root"; mkdir -p "$root"; }
# Nothing of the packages is left, but empty directories of others, files of the test, and /run, which hosts empty.
gone() {
    local left
    left=$(find "$root" -path "$root/demo" -prune -o \( -name '*iosonar*' -o -name tree-replay \) -print | grep -Ev '/var/lib/|/run/iosonar$' || true)
    [ -z "$left" ] || { echo "left after removal: $left" >&2; exit 1; }
}

say lintian
lintian --fail-on error --suppress-tags bad-distribution-in-changes-file "$dist"/*.deb

say "rpm of the binary, in an empty directory"
fresh
rpm --root "$root" --dbpath /var/lib/rpm --initdb
rpm --root "$root" --dbpath /var/lib/rpm --install --ignorearch "$dist"/iosonar-[0-9]*.rpm
mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root/sys"
mknod -m 666 "$root/dev/null" c 1 3
inside /usr/bin/iosonar --version
inside /usr/bin/iosonar generate poisson /load.parquet --rate 1000 --duration 2s --span 64M
inside /usr/bin/iosonar replay /load.parquet --fake-io --output /run.parquet | tail -n 1
inside /usr/bin/iosonar info /run.parquet | sed -n 1,3p
rm -f "$root"/*.parquet
rpm --root "$root" --dbpath /var/lib/rpm --erase iosonar
gone

say "debs in Debian"
fresh
cp -a "$base/." "$root"
mkdir -p "$root/packages"
cp "$dist"/*.deb "$root/packages"
inside sh -c 'dpkg --install packages/iosonar_*.deb'
inside sh -c 'cd /tmp && iosonar generate poisson load.parquet --rate 1000 --duration 2s --span 64M &&
    truncate -s 64M target && iosonar device wipe target >/dev/null && iosonar replay load.parquet --target target --output run.parquet'
say "without the workbench, its commands name the package"
! inside iosonar report /tmp/run.parquet 2>"$root/tmp/message"
grep iosonar-workbench "$root/tmp/message"
inside sh -c 'dpkg --install packages/iosonar-workbench_*.deb'
time inside sh -c 'mkdir -p /demo && cd /demo && iosonar demo' >target/packages/demo.log || { cat target/packages/demo.log; exit 1; }
ls -l "$root"/demo/demo/*.html
inside dpkg --remove iosonar-workbench iosonar
rm -rf "$root/packages" "$root/demo" "$root/tmp/"*
gone

say "rpm of the workbench, in Debian"
rpm --root "$root" --dbpath /var/lib/rpm --initdb
rpm --root "$root" --dbpath /var/lib/rpm --install --nodeps "$dist"/iosonar-[0-9]*.rpm "$dist"/iosonar-workbench-*.rpm
inside sh -c 'mkdir -p /demo && cd /demo && iosonar demo' >target/packages/demo.log || { cat target/packages/demo.log; exit 1; }
ls -l "$root"/demo/demo/*.html
rpm --root "$root" --dbpath /var/lib/rpm --erase --nodeps iosonar-workbench iosonar
rm -rf "$root/demo"
gone
rm -rf "$root"
say "all packages were installed, run and removed"
