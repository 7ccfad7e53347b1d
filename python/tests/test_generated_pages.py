"""Pages of docs/generated that are made from the Python half: the variables of campaigns, and the library."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from binary import TOP
from test_library import public

from iosonar import campaign

DEFAULTS = Path(campaign.__file__).parent / "defaults"
MADE = "<!-- Generated from {} (UPDATE_DOCS=1 pytest python/tests/test_generated_pages.py). -->"
VARIABLE = re.compile(r"#?([a-z_]+)=(.*?)(?:  +# (.*))?$")


def confs() -> list[Path]:
    """The conf of the campaign itself, then those of modules."""
    found = sorted(DEFAULTS.glob("default-*.conf"))
    return sorted(found, key=lambda conf: conf.stem != "default-main")


def prose(lines: list[str]) -> str:
    """A comment of a conf as text; indented lines are a list."""
    text = ""
    for line in lines:
        words = line.removeprefix("#").removeprefix(" ")
        if choice := re.match(r"  (\S+)  +(\S.*)", words):
            text += f"\n- `{choice[1]}`: {choice[2]}"
        else:
            text += f" {words.strip()}" if words.strip() else "\n\n"
    # No address in a text is a link.
    return re.sub(r"[<>]", lambda found: f"\\{found[0]}", re.sub(r"\n +", "\n", text.strip()))


def of_conf(conf: Path) -> Iterator[str]:
    """The lines of a conf on the page: what it is for, then each variable."""
    yield f"\n## {conf.stem.removeprefix('default-')}\n"
    comment: list[str] = []
    is_head, after = True, ""
    for line in [*conf.read_text(encoding="utf-8").splitlines(), ""]:
        if found := VARIABLE.fullmatch(line):
            text = prose(comment) or found[3] or after
            shown = f"`{found[1]}`" + (f", default `{found[2]}`" if found[2] else ", no default")
            yield f"### {found[1]}\n\n{shown}\n\n{text}\n" if text else f"### {found[1]}\n\n{shown}\n"
            after, comment = text, []
        elif line.startswith("## "):
            comment, after = [], ""
        elif line.startswith("#"):
            comment.append(line)
        else:
            if is_head and comment:
                head = prose(comment).removeprefix(f"{conf.name}: ")
                yield f"{head[0].upper()}{head[1:]}\n"
                is_head = False
            elif comment:
                yield f"{prose(comment)}\n"
            if not line:
                after = ""
            comment = []
            if line:
                return  # Functions follow.


def variables() -> str:
    """The page of campaign variables."""
    lines = [
        "# Variables of campaigns",
        "",
        MADE.format("python/iosonar/campaign/defaults"),
        "",
        "Each heading is a conf, `default-NAME.conf`; below it are the variables that any conf of a",
        "[campaign](../campaign.md) may set. Times are in seconds.",
    ]
    return "\n".join([*lines, *(line for conf in confs() for line in of_conf(conf))])


def signature(each: Any) -> str:
    """The parameters of a function, as its source has them."""
    return f"({', '.join(inspect.signature(each).parameters)})" if inspect.isroutine(each) else ""


def library() -> str:
    """The page of all public names of the library."""
    lines = ["# Python library: all names", "", MADE.format("python/iosonar"), ""]
    lines += ["What `import iosonar` offers; [the library](../library.md) shows how they are used."]
    for name, each in public():
        level = "###" if "." in name else "##"
        lines += ["", f"{level} {name}", "", "```text", f"{name}{signature(each)}", ""]
        lines += [inspect.getdoc(each) or "", "```"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("name", "text"), [("campaign-variables", variables()), ("library", library())])
def test_a_generated_page_is_up_to_date(name: str, text: str) -> None:
    page = TOP / f"docs/generated/{name}.md"
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(text, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == text, "run this test with UPDATE_DOCS=1"


def test_the_page_has_each_variable_of_each_conf() -> None:
    for conf in confs():
        section = variables().split(f"\n## {conf.stem.removeprefix('default-')}\n")[1].split("\n## ")[0]
        names = re.findall(r"(?m)^#?([a-z_]+)=", conf.read_text(encoding="utf-8"))
        assert names and re.findall(r"(?m)^### (\w+)$", section) == names, conf
        assert re.findall(r"(?m)^`\w+`, (?:no default|default `.+`)\n\n\S", section), conf
