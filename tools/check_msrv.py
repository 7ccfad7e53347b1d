"""Checks that no dependency needs a newer Rust than `rust-version` in Cargo.toml. Run by `make lint`.

clippy checks the same of the standard library (`incompatible_msrv`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def version(text: str) -> tuple[int, ...]:
    """1.89 as (1, 89, 0)."""
    parts = tuple(int(part) for part in text.split("."))
    return parts + (0,) * (3 - len(parts))


def main() -> None:
    """Prints each package that needs a newer Rust, and fails if there is one."""
    command = ["cargo", "metadata", "--locked", "--format-version=1"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    packages: list[dict[str, Any]] = metadata["packages"]
    [ours] = [package["rust_version"] for package in packages if package["name"] == "iosonar"]
    newer = [
        f"{package['name']} {package['version']} needs Rust {needed}, more than rust-version = {ours} in Cargo.toml"
        for package in packages
        if (needed := package.get("rust_version")) and version(needed) > version(ours)
    ]
    print("\n".join(newer))
    sys.exit(bool(newer))


if __name__ == "__main__":
    main()
