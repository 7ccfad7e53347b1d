#!/usr/bin/env bash
# tools/release.sh VERSION: sets the version, closes the changelog's Unreleased, commits and tags that here. Nothing is pushed.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "release: $1" >&2; exit 1; }

version=${1-}
before=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
[[ $version =~ ^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$ ]] ||
    fail "name a version newer than $before: make release VERSION=X.Y.Z"
[ "$version" != "$before" ] && [ "$(printf '%s\n' "$before" "$version" | sort --version-sort | tail -n 1)" = "$version" ] ||
    fail "$version is not newer than $before: make release VERSION=X.Y.Z"
[ -z "$(git status --porcelain)" ] || fail "files were changed: commit or stash them first"
! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null || fail "the tag v$version exists"
changes=$(sed -n '/^## Unreleased$/,/^## [0-9]/p' CHANGELOG.md | grep -c '^- ' || true)
[ "$changes" -gt 0 ] || fail "CHANGELOG.md has no change under Unreleased"

sed -i "0,/^version = \"$before\"/s//version = \"$version\"/; s/{ version = \"$before\", path = /{ version = \"$version\", path = /" Cargo.toml
cargo update --quiet --offline --workspace
sed -i "s/^## Unreleased\$/## Unreleased\n\n## $version ($(date +%F))/" CHANGELOG.md
git commit --quiet --all --message "release $version"
git tag --annotate "v$version" --message "iosonar $version"
echo "iosonar $version: $changes changes since $before, committed and tagged v$version"
