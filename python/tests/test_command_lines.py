"""The documents name only commands and options that exist, in each `iosonar …` of their blocks and sentences."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from binary import TOP

sys.path.insert(0, str(TOP / "tools"))
from site_of_documents import commands, help_of

DOCUMENTS = ["README.md", *sorted(path.relative_to(TOP).as_posix() for path in (TOP / "docs").rglob("*.md"))]
IOSONAR = str(Path(sys.executable).with_name("iosonar"))
PYTHON_HALF = json.loads((TOP / "crates/iosonar/src/python_half.json").read_text())
"""What the programs of the Python half define; a test keeps it up to date."""

OF_ALL = {"-h", "--help"}
CODE = re.compile(r"(?m)^```.*\n((?:.*\n)*?)```$|^ {4,}(.*)$|(?<!`)`([^`]+)`")
"""A block, an indented line, or words in a sentence."""
ENDS = re.compile(r"[|&;<>()#]+|--")
"""A word that ends a command."""


@cache
def defined(words: tuple[str, ...]) -> tuple[list[str], set[str]]:
    """The commands below a command, and its options."""
    below: list[dict[str, Any]] = PYTHON_HALF
    command: dict[str, Any] | None = None
    for word in words:
        command = next((each for each in below if each["name"] == word), None)
        below = command["commands"] if command else []
    if command:
        options = {f"--{option['long']}" for option in command["options"]}
        shorts = {f"-{option['short']}" for option in command["options"] if option["short"]}
        return [each["name"] for each in below], options | shorts | OF_ALL
    text = help_of(IOSONAR, list(words))
    has_commands = re.search(r"(?m)^Usage: .*[<\[](?:COMMAND|KIND)[>\]]$", text)
    options = {name for line in re.findall(r"(?m)^ +(-.*)$", text) for name in re.findall(r"^-\w|--[a-z][\w-]*", line)}
    return commands(text) if has_commands else [], options | OF_ALL


def words_of(line: str) -> list[str]:
    """A line as a shell splits it; text that is no command line has no words."""
    try:
        lexer = shlex.shlex(line.replace('"$(command -v iosonar)"', "iosonar"), posix=True, punctuation_chars=True)
        lexer.wordchars += "…×*?[]{}$%@+,:"
        return list(lexer)
    except ValueError:
        return []


def command_lines(text: str) -> Iterator[list[str]]:
    """The words after each `iosonar` in the code of a document."""
    for found in CODE.finditer(text):
        block, indented, span = found.groups()
        code = (block or indented or "").replace("\\\n", " ") or span.replace("\n", " ")
        for line in code.splitlines():
            words = words_of(line)
            for at, word in enumerate(words):
                if word == "iosonar" or word.endswith("/iosonar"):
                    after = words[at + 1 :]
                    yield after[: next((end for end, each in enumerate(after) if ENDS.fullmatch(each)), None)]


def wrong(words: list[str]) -> str | None:
    """What does not exist in a command line, if anything."""
    names: tuple[str, ...] = ()
    rest = list(words)
    while rest and (below := defined(names)[0]):
        if not re.fullmatch(r"[a-z][a-z-]*", rest[0]) or rest[0] == "help":
            break
        if rest[0] not in below:
            return None if names == ("campaign",) else f"no command {rest[0]}"
        names = (*names, rest.pop(0))
    known = defined(names)[1]
    for word in rest:
        option = word.split("=")[0]
        if re.fullmatch(r"-[a-z]|--[a-z][\w-]*", option) and option not in known:
            return f"`iosonar {' '.join(names)}` has no option {option}"
        # The commands that `ab` and others run.
        inner = words_of(word) if re.match(r"(?:iosonar )?(?:replay|files replay|workload run) ", word) else []
        if found := inner and wrong(inner[1:] if inner[0] == "iosonar" else inner):
            return found
    return None


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_and_options_of_a_document_exist(document: str) -> None:
    lines = command_lines((TOP / document).read_text(encoding="utf-8"))
    assert [(" ".join(words), why) for words in lines if (why := wrong(words))] == []


def test_command_lines_are_found_in_the_documents() -> None:
    found = [words for name in DOCUMENTS for words in command_lines((TOP / name).read_text(encoding="utf-8"))]
    assert len(found) > 250, len(found)
    assert {words[0] for words in found if words} >= {"record", "replay", "files", "report", "campaign", "ab"}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("replay x --depht 3", "`iosonar replay` has no option --depht"),
        ("files replya x", "no command replya"),
        ("ab --a 'replay x --targt y'", "`iosonar replay` has no option --targt"),
        ("report x --fail-iff y", "`iosonar report` has no option --fail-iff"),
        ("replay x --depth=3 -o y", None),
    ],
)
def test_a_wrong_command_line_is_found(line: str, why: str | None) -> None:
    [words] = command_lines(f"```\niosonar {line}  # see --below\n```\n")
    assert wrong(words) == why
