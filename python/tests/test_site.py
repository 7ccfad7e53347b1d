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
from site_links import faults
from site_of_documents import PAGES, anchor, document, main, without_code, write_sources

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
        name = anchor(heading)
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
            file, _, within = link.partition("#")
            target = Path(os.path.normpath(page.parent / file)) if file else page
            # mdbook shows a page of the table of contents only, and copies other files.
            is_there = target in all_pages if target.suffix == ".md" else target.is_file()
            if not is_there or (within and within not in anchors(target)):
                dead.append(f"{page.relative_to(book)}: {link}")
    assert not dead and links > 300, (links, dead)


def test_the_search_index_is_on(book: Path) -> None:
    settings = tomllib.loads((book / "book.toml").read_text())
    assert settings["output"]["html"]["search"]["enable"] is True
    assert all((book / name).is_file() for name in settings["output"]["html"]["additional-css"])
    makefile = (TOP / "Makefile").read_text()
    assert re.search(r"--no-default-features \\\n\s*--features search mdbook@", makefile), "mdbook can search"


def test_the_sources_load_nothing_from_the_network(book: Path) -> None:
    settings = (book / "book.toml").read_text() + (book / "site.css").read_text()
    assert not re.search(r"https?:|mathjax|@import|url\(", settings), settings
    found = [str(page) for page in pages(book) if LOADED.search(without_code(page.read_text(encoding="utf-8")))]
    assert not found


def test_the_gallery_has_each_picture_with_caption_and_link(book: Path) -> None:
    gallery = (book / "src/gallery.md").read_text(encoding="utf-8")
    entries = re.findall(r"(?m)^!\[(.+)\]\(docs/pictures/(.+)\)\n\n\*(.+)\* \(\[.+\]\((.+)\)\)$", gallery)
    assert sorted(name for _, name, _, _ in entries) == sorted(path.name for path in TOP.glob("docs/pictures/*.png"))
    assert all(text == caption and link.split("#")[0].endswith(".md") for text, _, caption, link in entries)


GOOD = """<link rel="stylesheet" href="site.css"><h1 id="top">x</h1> <a href="#top">x</a>
<a href="docs/b.html#here">x</a>
<a href="docs/">x</a> <a href="https://example.org/">x</a> <img src="data:image/png;base64,AAAA">"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ('<a href="docs/README.html">x</a>', ["index.html has a dead link: docs/README.html"]),
        ('<a href="docs/b.html#gone">x</a>', ["index.html has a dead link: docs/b.html#gone"]),
        ('<img src="gone.png">', ["index.html has a dead link: gone.png"]),
        ('<a href="../outside.html">x</a>', ["index.html has a dead link: ../outside.html"]),
        ('<img src="https://example.org/a.png">', ["index.html loads https://example.org/a.png"]),
        ('<script src="//example.org/a.js"></script>', ["index.html loads //example.org/a.js"]),
        ("<style>@import 'https://example.org/a.css'</style>", ["index.html loads https://example.org/a.css"]),
    ],
)
def test_faults_of_a_built_site_are_found(tmp_path: Path, text: str, found: list[str]) -> None:
    site = tmp_path / "html"
    (site / "docs").mkdir(parents=True)
    (tmp_path / "outside.html").write_text("")
    (site / "index.html").write_text(GOOD + text)
    (site / "docs/index.html").write_text('<a href="../index.html#top">x</a>')
    (site / "docs/b.html").write_text('<h2 id="here">x</h2>')
    (site / "site.css").write_text("/* url(gone.png) */ p { color: red }")
    assert faults(site) == found


def test_a_style_sheet_is_checked_too(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text(
        "p { background: url(gone.png) } q { background: url('https://example.org/a.png') }"
    )
    assert faults(tmp_path) == ["a.css loads https://example.org/a.png", "a.css has a dead link: gone.png"]


def test_a_site_with_a_dead_link_is_not_built(tmp_path: Path) -> None:
    """With stand-ins for both programs."""
    (tmp_path / "iosonar").write_text("#!/bin/sh\nprintf 'Commands:\\n  info  x\\n'\n")
    (tmp_path / "mdbook").write_text("#!/bin/sh\nmkdir $4\necho '<a href=gone.html>x</a>' > $4/index.html\n")
    for name in ("iosonar", "mdbook"):
        (tmp_path / name).chmod(0o755)
    with pytest.raises(SystemExit, match=r"^index\.html has a dead link: gone\.html$"):
        main(str(tmp_path / "iosonar"), str(tmp_path / "mdbook"), tmp_path / "site")
