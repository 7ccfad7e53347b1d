"""The documentation as a site: tools/site_of_documents.py."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
from binary import TOP

sys.path.insert(0, str(TOP / "tools"))
from site_of_documents import PAGES, document, without_code, write_sources

IN_TEXT = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
# What a browser would load by itself from an address in a page.
LOADED = re.compile(r"!\[[^\]]*\]\(\w+:|<(?:script|img|link|iframe|video|audio|object|embed)\b|@import")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With two commands of a stand-in, as the help of all takes a minute."""
    top = tmp_path_factory.mktemp("site")
    program = top / "iosonar"
    program.write_text("#!/bin/sh\nprintf 'Commands:\\n  replay  x\\n  info  x\\n'\n")
    program.chmod(0o755)
    write_sources(str(program), top / "book")
    return top / "book"


def pages(book: Path) -> list[Path]:
    """The pages of the table of contents."""
    summary = (book / "src/SUMMARY.md").read_text(encoding="utf-8")
    return [book / "src" / link for link in IN_TEXT.findall(summary)]


def anchors(page: Path) -> set[str]:
    """Those that mdbook gives to the headings of a page."""
    found: dict[str, int] = {}
    for heading in re.findall(r"(?m)^#+ +(.+)$", without_code(page.read_text(encoding="utf-8"))):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text))
        found[name] = found.get(name, -1) + 1
        found.setdefault(f"{name}-{found[name]}", 0)
    return set(found)


def test_every_document_has_one_place_in_the_site() -> None:
    listed = [document(name) for names in PAGES.values() for name in names]
    assert sorted(listed) == sorted(path.relative_to(TOP).as_posix() for path in (TOP / "docs").rglob("*.md"))


def test_the_site_has_a_page_for_each_command(book: Path) -> None:
    assert {page.stem for page in pages(book) if page.parent.name == "commands"} == {"replay", "info"}


def test_no_link_of_the_site_is_dead(book: Path) -> None:
    all_pages = pages(book)
    assert len(all_pages) == len(set(all_pages)) > 60
    dead, links = [], 0
    for page in all_pages:
        for link in IN_TEXT.findall(without_code(page.read_text(encoding="utf-8"))):
            if re.match(r"\w+:", link):
                continue
            links += 1
            file, _, anchor = link.partition("#")
            target = Path(os.path.normpath(page.parent / file)) if file else page
            # mdbook shows a page of the table of contents only, and copies other files.
            is_there = target in all_pages if target.suffix == ".md" else target.is_file()
            if not is_there or (anchor and anchor not in anchors(target)):
                dead.append(f"{page.relative_to(book)}: {link}")
    assert not dead and links > 300, (links, dead)


def test_the_search_index_is_on(book: Path) -> None:
    settings = tomllib.loads((book / "book.toml").read_text())
    assert settings["output"]["html"]["search"]["enable"] is True
    makefile = (TOP / "Makefile").read_text()
    assert re.search(r"--no-default-features \\\n\s*--features search mdbook@", makefile), "mdbook can search"


def test_the_site_loads_nothing_from_the_network(book: Path) -> None:
    settings = (book / "book.toml").read_text()
    assert not re.search(r"https?:|mathjax|additional-", settings), settings
    found = [str(page) for page in pages(book) if LOADED.search(without_code(page.read_text(encoding="utf-8")))]
    assert not found
