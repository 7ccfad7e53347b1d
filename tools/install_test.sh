#!/usr/bin/env bash
# tools/install_test.sh: runs the README's block of commands that install, in new directories, then installs the packaged
# crates; runs what was installed, and removes it. It takes one build for release, and one of the packaged crates.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
say() { echo "== $*"; }
# A replay without a device, by the binary in a directory.
runs() {
    (cd "$place" && "$1/iosonar" --version && "$1/iosonar" generate poisson load.parquet --rate 1000 --duration 1s --span 64M &&
        "$1/iosonar" replay load.parquet --fake-io --output run.parquet | tail -n 1 && rm load.parquet run.parquet)
}
gone() { [ ! -e "$1" ] || { echo "$1 is left after removal" >&2; exit 1; }; }

mapfile -t commands < <(sed -n '/^## Install$/,/^## /s/^    \(.*[^ ]\) *#.*/\1/p' README.md)
say "README.md: ${#commands[@]} commands"
export CARGO_INSTALL_ROOT=$place/cargo
"$(tools/system.sh --python)" -m venv "$place/venv"
# shellcheck disable=SC1091
. "$place/venv/bin/activate"
for command in "${commands[@]}"; do
    say "$command"
    eval "${command/PREFIX=\/usr\/local/PREFIX=$place/local}"
    case $command in
    pip*) runs "$place/venv/bin"
        (cd "$place" && iosonar demo && ls -l demo/*.html)
        pip uninstall --quiet --yes iosonar
        gone "$place/venv/bin/iosonar" ;;
    cargo*) runs "$place/cargo/bin"
        cargo uninstall --quiet iosonar
        gone "$place/cargo/bin/iosonar" ;;
    make*) runs "$place/local/bin"
        MANPAGER=cat man --manpath="$place/local/share/man" iosonar-replay | sed -n 1,5p ;;
    *) echo "not known how to try: $command" >&2; exit 1 ;;
    esac
done

say "packaged crates"
cargo package --quiet --workspace --no-verify --allow-dirty --exclude-lockfile --target-dir "$place/target"
patches=()
for crate in "$place"/target/package/*.crate; do
    tar --extract --file "$crate" --directory "$place"
    unpacked=$(basename "$crate" .crate)
    name=${unpacked%-*}
    [ "$name" = iosonar ] && continue
    patches+=(--config "patch.crates-io.$name.path=\"$place/$unpacked\"")
done
cargo install --quiet --offline "${patches[@]}" --path "$place/iosonar-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)"
runs "$place/cargo/bin"
say "all were installed and run"
