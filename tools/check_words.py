"""Checks that sources, docs and pages use one word for one thing: the list is tools/words.txt. Run by `make lint`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
SUFFIXES = {".rs", ".py", ".md", ".sh", ".conf", ".toml", ".c", ".h", ".js", ".css", ".bash"}
# Texts of others: recorded data, the words of the reference's confs.
LEFT_OUT = ("tools/words.txt", "fuzz/seeds/", "crates/trace/tests/data/", "crates/trace/tests/golden/")


def rules() -> Iterator[tuple[re.Pattern[str], str]]:
    """The pattern of each word to avoid, with the word to use."""
    for line in (TOP / "tools/words.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, _, better = line.partition("\t")
            yield re.compile(pattern, re.IGNORECASE if pattern.islower() else 0), better


def findings() -> Iterator[str]:
    """Each place with a word to avoid."""
    checks = list(rules())
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True, text=True).stdout
    for name in tracked.split("\0"):
        path = TOP / name
        if path.suffix not in SUFFIXES or name.startswith(LEFT_OUT) or not path.is_file():
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for pattern, better in checks:
                if found := pattern.search(line):
                    yield f"{name}:{number}: `{found[0]}`: {better}"


def main() -> None:
    found = list(findings())
    print("\n".join(found))
    sys.exit(f"{len(found)} words to replace: tools/words.txt" if found else 0)


if __name__ == "__main__":
    main()
