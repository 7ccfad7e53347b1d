#!/usr/bin/env bash
# Runs a command that builds with cargo so that the binary needs no C library of its host: tools/static.sh x86_64 cargo build
# The bytes depend on the commit and on the compilers, not on the directory.
set -euo pipefail
cd "$(dirname "$0")/.."
processor=$1
shift
root=$PWD cargo_home=${CARGO_HOME:-$HOME/.cargo}
export CARGO_BUILD_TARGET=$processor-unknown-linux-musl

# rustup has the standard library of other targets; a toolchain of a distribution may have it as a package.
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$CARGO_BUILD_TARGET" ]; then
    command -v rustup >/dev/null || { echo "this Rust toolchain has no $CARGO_BUILD_TARGET: install it, or rustup" >&2; exit 1; }
    rustup target add "$CARGO_BUILD_TARGET"
fi

target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")

# Relocations are packed below: as a list, they take half a megabyte of the binary.
export RUSTFLAGS="--remap-path-prefix=$root=. --remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$target=./target"
# Libraries in C, such as zstd and Lua.
map="-ffile-prefix-map=$root=. -ffile-prefix-map=$cargo_home=/cargo -ffile-prefix-map=$target=./target"
IOSONAR_VERSION=$(tools/version.sh)
export IOSONAR_VERSION
# Build scripts of C libraries run again, and so all crates after them, if this changes; no code is made of it.
unset SOURCE_DATE_EPOCH
case $processor in
x86_64)
    RUSTFLAGS+=" -C link-arg=-Wl,-z,pack-relative-relocs"
    export CC_x86_64_unknown_linux_musl=musl-gcc CFLAGS_x86_64_unknown_linux_musl="$map"
    ;;
aarch64)
    # The linker is called without a compiler before it.
    RUSTFLAGS+=" -C link-arg=-zpack-relative-relocs"
    # Debian's compiler for another C library, whose headers declare what these libraries call in the same way: but for files
    # of 64 bits, which musl always has, they would call functions of other names.
    export CC_aarch64_unknown_linux_musl=aarch64-linux-gnu-gcc CFLAGS_aarch64_unknown_linux_musl="$map -D_FILE_OFFSET_BITS=32"
    export AR_aarch64_unknown_linux_musl=aarch64-linux-gnu-ar
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld
    ;;
*)
    echo "no static binary for $processor: x86_64, aarch64" >&2
    exit 2
    ;;
esac
exec "$@"
