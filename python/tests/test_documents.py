"""The README and the tutorials work as printed: their blocks run in order, and the outputs that they show are today's.

A block `sh` is commands, as is an indented one. A block `text` is the output of the commands above it: exactly, but `…`
stands for any text in a line, and alone for any lines. Of a block `text example`, whose numbers differ from run to run,
only the beginnings of lines are compared.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from binary import TOP, loop_device
from PIL import Image

README = "README.md"
CHOOSE, STALL, CACHE, GATE, READ = (
    f"docs/tutorials/{name}.md"
    for name in ("choose-storage", "find-a-stall", "size-a-cache", "gate-in-ci", "read-diagrams")
)
DOCUMENTS = (README, CHOOSE, STALL, CACHE, GATE, READ)

NOT_RUN = {
    (README, "make demo "): "builds the program, and needs the network; continuous integration runs `make test`",
    (README, "pip install ."): "builds the program for release: `make install-test` runs it",
}
"""Blocks that do not run, by document and beginning, with the reason."""

INSTEAD = {
    (README, "seq 1500"): ("seq 300", "shorter"),
    (README, "fallocate -l 1G"): ("fallocate -l 16M", "smaller"),
    (README, "/dev/shm/"): ("../", "files of others may be there"),
    (README, "/var/tmp/"): ("../", "files of others may be there"),
    (README, "iosonar compare old.?.replay.parquet vs new.?.replay.parquet --fail-if"): (
        "decides iosonar compare old.?.replay.parquet vs new.?.replay.parquet --fail-if",
        "the exit codes 3 and 4 are answers",
    ),
    (CHOOSE, "/dev/sda --output /dev/shm/"): ('"$LOOP" --output ../', "a disk of the test"),
    (CHOOSE, "--duration 1h"): ("--duration 0.5", "shorter"),
    (CHOOSE, "iosonar compare storage.ab/a"): ("decides iosonar compare storage.ab/a", "3 and 4 are answers"),
    (STALL, "/dev/sda --output /dev/shm/"): ('"$LOOP" --output ../', "a disk of the test"),
    (STALL, "--duration 1h"): ("--duration 0.5", "shorter"),
    (CACHE, "/dev/sdb --output /srv/"): ('"$LOOP" --output ../', "a disk of the test"),
    (CACHE, "--duration 24h"): ("--duration 0.5", "shorter"),
    (GATE, "iosonar ab "): ("decides iosonar ab ", "3 and 4 are answers"),
    (GATE, "iosonar compare "): ("decides iosonar compare ", "3 and 4 are answers"),
}
"""What runs instead of the text that is printed, by document and text, with the reason."""

PREAMBLE = """set -euo pipefail
sudo() { "$@"; }
decides() { "$@" || [[ $? == [34] ]]; }
"""
"""Before the first block: the test runs as root, and some commands may end with 3 or 4."""

BLOCK = re.compile(r"(?m)^```(\w*)( example)?\n((?:.*\n)*?)```$|(?<=\n\n)((?: {4}.*\n|\n(?= {4}))+)")
"""A block of code: its language and text, or its indented text."""

MAX_DIFFERENT = 0.002
"""The share of the pixels of a picture that may differ, for another version of the library that draws texts."""


@dataclass(frozen=True)
class Block:
    """Commands, the patterns of the outputs that the document shows, and the line where the block begins."""

    line: int
    commands: str
    outputs: list[str]


def blocks_of(document: str) -> list[Block]:
    """The blocks of commands of a document in its order."""
    text = (TOP / document).read_text(encoding="utf-8")
    found: list[Block] = []
    for block in BLOCK.finditer(text):
        language, example, fenced, indented = block.groups()
        line = text.count("\n", 0, block.start()) + 1
        if indented is not None:
            found.append(Block(line, re.sub(r"(?m)^ {4}", "", indented), []))
        elif language == "sh":
            found.append(Block(line, fenced, []))
        elif language == "text":
            assert found, f"{document}:{line}: an output of no command"
            found[-1].outputs.append(pattern(fenced, is_example=example is not None))
        else:
            # Settings of CI: see test_the_settings_of_ci_exist.
            assert (document, language) == (GATE, "yaml"), f"{document}:{line}: a block of the language {language!r}"
    return found


def pattern(shown: str, is_example: bool) -> str:
    """What matches an output as a document shows it."""

    def of_line(line: str) -> str:
        if line == "…":
            return r"(?:.*\n)*?"
        if is_example:
            return re.escape(re.split(r" {2,}| is ", line)[0]) + r".*\n" if line[0] != " " else r" .*\n"
        return re.escape(line).replace("…", ".*") + r" *\n"

    return "(?m)^" + "".join(of_line(line) for line in shown.splitlines())


def is_run(document: str, block: Block) -> bool:
    return not any(document == of and block.commands.startswith(start) for of, start in NOT_RUN)


def as_run(document: str, commands: str) -> str:
    """The commands, with what runs instead of the text that is printed."""
    for (of, printed), (instead, _) in INSTEAD.items():
        commands = commands.replace(printed, instead) if of == document else commands
    return commands


@contextmanager
def disk(directory: Path) -> Iterator[tuple[Path, Path]]:
    """A loop device with a file system, and where it is mounted."""
    with loop_device(384 << 20) as device:
        subprocess.run(["mkfs.ext4", "-q", device], check=True)
        place = directory / "disk"
        place.mkdir()
        subprocess.run(["mount", device, place], check=True)
        try:
            yield device, place
        finally:
            subprocess.run(["umount", place], check=True)


def run(document: str, directory: Path, **variables: str) -> None:
    """Runs the blocks of a document in one shell, and compares the outputs with those shown."""
    outputs = directory.parent / "outputs"
    outputs.mkdir()
    blocks = [block for block in blocks_of(document) if is_run(document, block)]
    parts = [f"exec >'{outputs}/{block.line}' 2>&1\n{as_run(document, block.commands)}\n" for block in blocks]
    programs = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "IOSONAR_CONFIG": "",
        "COLUMNS": "100",
        **variables,
    }
    words = ["bash", "-c", PREAMBLE + "".join(parts)]
    done = subprocess.run(words, cwd=directory, env=environment, stdin=subprocess.DEVNULL, check=False)
    reached = [block for block in blocks if (outputs / str(block.line)).exists()]
    assert reached, f"{document}: bash ended with {done.returncode}"
    for block in reached:
        output = (outputs / str(block.line)).read_text(encoding="utf-8")
        is_failed = done.returncode != 0 and block is reached[-1]
        assert not is_failed, f"{document}:{block.line}: exit code {done.returncode}\n{block.commands}\n{output}"
        for shown in block.outputs:
            assert re.search(shown, output), f"{document}:{block.line}: no {shown!r} in\n{output}"
    assert reached == blocks


def test_every_document_is_run() -> None:
    tutorials = (path.relative_to(TOP).as_posix() for path in (TOP / "docs/tutorials").glob("*.md"))
    assert sorted(DOCUMENTS) == sorted([README, *tutorials])
    assert all(len(blocks_of(document)) >= 5 for document in DOCUMENTS)


def test_each_exception_is_in_its_document() -> None:
    for document, start in NOT_RUN:
        assert sum(block.commands.startswith(start) for block in blocks_of(document)) == 1, (document, start)
    for document, printed in INSTEAD:
        assert any(printed in block.commands for block in blocks_of(document) if is_run(document, block)), printed


def test_a_stale_output_does_not_match() -> None:
    exact = pattern("a  1\n…\nb … 3\n", is_example=False)
    assert re.search(exact, "x\na  1\nmore\nb 2 3\n")
    assert not re.search(exact, "a  2\nb 2 3\n")
    example = pattern("p99         1 ms   +1 %\n", is_example=True)
    assert re.search(example, "p99       17 ms   -3 %\n")
    assert not re.search(example, "p95       17 ms   -3 %\n")


def test_the_settings_of_ci_exist() -> None:
    text = (TOP / GATE).read_text(encoding="utf-8")
    github, gitlab = re.findall(r"(?ms)^```yaml\n(.*?)^```", text)
    action = TOP / ".github/actions/compare"
    inputs = (action / "action.yml").read_text().split("\nruns:")[0]
    settings = re.findall(r"(?m)^    ([a-z-]+):", github)
    assert len(settings) == 5
    assert all(f"\n  {name}:\n" in inputs for name in settings), settings
    variables = re.findall(r"(?m)^    ([A-Z_]+):", gitlab)
    assert len(variables) == 3
    assert all(f"${{{name}" in (action / "gate.sh").read_text() for name in variables if name != "FAIL_IF"), variables
    assert "\n.iosonar-compare:\n" in (action / "gitlab.yml").read_text()


@pytest.mark.slow
def test_the_first_session_works_as_printed(tmp_path: Path) -> None:
    with disk(tmp_path) as (_, directory):
        shutil.copytree(TOP / "docs", directory / "docs")
        run(README, directory)
        # The last block removes all files of the session.
        assert {path.name for path in directory.iterdir()} == {"docs", "lost+found"}
        assert {path.name for path in tmp_path.iterdir()} == {"disk", "outputs"}


@pytest.mark.slow
@pytest.mark.parametrize("document", [CHOOSE, STALL, CACHE])
def test_a_tutorial_with_a_recording_works_as_printed(tmp_path: Path, document: str) -> None:
    with disk(tmp_path) as (device, directory):
        run(document, directory, LOOP=str(device))


@pytest.mark.slow
def test_the_tutorial_on_ci_works_as_printed(tmp_path: Path) -> None:
    directory = tmp_path / "work"
    directory.mkdir()
    run(GATE, directory)


@pytest.mark.slow
def test_the_pictures_of_the_tutorial_are_what_it_draws(tmp_path: Path) -> None:
    directory = tmp_path / "work"
    directory.mkdir()
    run(READ, directory)
    names = re.findall(r"\(\.\./pictures/tutorial-(\w+)\.png\)", (TOP / READ).read_text(encoding="utf-8"))
    shown = [np.asarray(Image.open(TOP / f"docs/pictures/tutorial-{name}.png").convert("RGB")) for name in names]
    drawn = [
        np.asarray(Image.open(directory / f"pictures/{name}.g01.latency.realtime.png").convert("RGB")) for name in names
    ]

    def is_same(one: np.ndarray, other: np.ndarray) -> bool:
        return one.shape == other.shape and float((one != other).any(axis=2).mean()) <= MAX_DIFFERENT

    assert [name for name, old, new in zip(names, shown, drawn, strict=True) if not is_same(old, new)] == []
    assert len(names) == 5
    assert not any(is_same(shown[0], other) for other in shown[1:])
