#!/usr/bin/env bash
# Builds both images of tools/packages/Containerfile from what is in dist/, runs them, and removes them; as root.
# Their base is a new Debian, not that of a registry, and libraries are those that pip downloads here: so no daemon is
# needed, and no network in the images.
set -euo pipefail
cd "$(dirname "$0")/.."
base=target/packages/python libraries=target/packages/libraries
store=$(mktemp -d /var/tmp/iosonar-images.XXXXXX)
trap 'rm -rf "$store"' EXIT
[ "$(id -u)" = 0 ] || { echo "image-test needs root, for chroot" >&2; exit 1; }
[ -x "$base/usr/bin/pip" ] || debootstrap --variant=minbase --include=python3,python3-pip "${DEBIAN:-bookworm}" "$base"
# pip may install for all users: the image is the environment.
rm -f "$base"/usr/lib/python3*/EXTERNALLY-MANAGED "$base"/var/cache/apt/archives/*.deb

version=$(chroot "$base" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
python=$(tools/system.sh --python)
"$python" -m pip download --quiet --disable-pip-version-check --only-binary :all: --python-version "$version" --dest "$libraries" \
    --constraint python/requirements.lock --requirement <("$python" tools/requirements.py)
printf '[global]\nno-index = true\nfind-links = /libraries\n' >"$libraries/pip.conf"

images() { buildah --root "$store/root" --runroot "$store/run" --storage-driver vfs "$@"; }
inside() { images run --isolation chroot "$container" -- "$@"; }
build() {
    images bud --quiet --isolation chroot --build-arg HOST_BASE=localhost/debian --build-arg WORKBENCH_BASE=localhost/debian \
        --volume "$PWD/$libraries:/libraries:ro" --volume "$PWD/$libraries/pip.conf:/etc/pip.conf:ro" \
        --file tools/packages/Containerfile --target "$1" --tag "$1" . >/dev/null
    container=$(images from "localhost/$1:latest")
    images images --format '{{.Name}} {{.Size}}' "localhost/$1:latest"
}

container=$(images from scratch)
images add --quiet "$container" "$base" / >/dev/null
images commit --quiet "$container" localhost/debian:latest >/dev/null

echo "== image of the binary"
build host
inside iosonar --version
inside iosonar generate poisson load.parquet --rate 1000 --duration 2s --span 64M
inside sh -c 'truncate -s 64M target && iosonar device wipe target >/dev/null && iosonar replay load.parquet --target target --output run.parquet' |
    tail -n 1

echo "== image of both halves"
build workbench
TIMEFORMAT='demo: %R s (%U s + %S s of processor time)'
time inside iosonar demo >target/packages/image-demo.log || { cat target/packages/image-demo.log; exit 1; }
inside sh -c 'ls -l demo/*.html'
