#!/usr/bin/env bash
# Prints what `iosonar --version` says: the version, and the commit if this is a clone, with -dirty if files were changed.
# With --epoch, the time of the commit in seconds: the time of all files in packages (SOURCE_DATE_EPOCH, if it is set).
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1-}" = --epoch ]; then
    echo "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}"
    exit
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
commit=$(git describe --always --dirty --abbrev=12 --match= 2>/dev/null || true)
echo "$version${commit:+ ($commit)}"
