"""Checks that one thing has one word (tools/words.txt), and that names of tests are short. Run by `make lint`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
SUFFIXES = {".rs", ".py", ".md", ".sh", ".conf", ".toml", ".c", ".h", ".js", ".css", ".bash"}
# The list itself, texts of others, names of their files, records of experiments, the old names of columns and keys.
LEFT_OUT = (
    "tools/words.txt",
    "fuzz/seeds/",
    "bench/results/",
    "crates/trace/tests/data/",
    "crates/trace/tests/golden/",
    "crates/trace/src/formats/parquet/table.rs",
    "crates/trace/src/model/versions.rs",
    "crates/files/src/table/",
    "docs/schema.md",
    "python/iosonar/table/kinds/calls.py",
    "python/iosonar/table/kinds/requests.py",
    "python/iosonar/table/versions.py",
    "python/tests/factory.py",
    "python/tests/test_versions.py",
    "tools/packages/inventory.py",
)

# A name of a test states its rule; a longer one wraps in the output of tests.
NAME_CHARACTERS = 60
# The attribute `test`, other attributes and comments, and the name of the function.
RUST_TEST = r"#\[(?:\w+::)*test\b[^\]]*\]\s*(?:(?:#\[[^\n]*\]|//[^\n]*)\s*)*(?:pub )?(?:async )?fn (\w+)"
TEST_NAMES = {".rs": re.compile(RUST_TEST), ".py": re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)}


def rules() -> Iterator[tuple[re.Pattern[str], str]]:
    """The pattern of each word to avoid, with the word to use."""
    for line in (TOP / "tools/words.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, _, better = line.partition("\t")
            yield re.compile(pattern, re.IGNORECASE if pattern.islower() else 0), better


def long_names(suffix: str, text: str) -> Iterator[tuple[int, str]]:
    """The line and the name of each test with a long name."""
    for found in TEST_NAMES[suffix].finditer(text) if suffix in TEST_NAMES else ():
        if len(found[1]) > NAME_CHARACTERS:
            yield text.count("\n", 0, found.start(1)) + 1, found[1]


def findings() -> Iterator[str]:
    """Each place with a word to avoid, or a long name of a test."""
    checks = list(rules())
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True, text=True).stdout
    for name in tracked.split("\0"):
        path = TOP / name
        if path.suffix not in SUFFIXES or name.startswith(LEFT_OUT) or not path.is_file():
            continue
        text = path.read_text()
        for number, name_of_test in long_names(path.suffix, text):
            yield f"{name}:{number}: `{name_of_test}`: at most {NAME_CHARACTERS} characters, not {len(name_of_test)}"
        for number, line in enumerate(text.splitlines(), 1):
            for pattern, better in checks:
                if found := pattern.search(line):
                    yield f"{name}:{number}: `{found[0]}`: {better}"


def main() -> None:
    """Prints what it finds, and fails if that is anything."""
    found = list(findings())
    print("\n".join(found))
    sys.exit(f"{len(found)} words or names of tests to replace: tools/words.txt" if found else 0)


if __name__ == "__main__":
    main()
