"""What is wrong with the links of a site on disk: dead ones, and files that a browser would load from a network."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

REMOTE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//|[a-z][a-z0-9+.-]*:", re.IGNORECASE)
"""The beginning of an address that is no file of the site."""

IN_STYLE = re.compile(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)")
"""What a style sheet loads."""


class Page(HTMLParser):
    """The anchors of a page, and its addresses: those of links, and those that a browser loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self._is_style = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects anchors and addresses of a tag."""
        self._is_style = tag == "style"
        for name, value in attrs:
            value = value or ""
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name == "href" and tag in ("a", "area"):
                self.links.append(value)
            elif name in ("src", "href", "poster", "data") and tag != "base":
                self.loaded.append(value)
            elif name == "srcset":
                self.loaded += [each.split()[0] for each in value.split(",") if each.strip()]
            elif name == "style":
                self.loaded += _in_style(value)

    def handle_data(self, data: str) -> None:
        """Collects the addresses of a style."""
        if self._is_style:
            self.loaded += _in_style(data)

    def handle_endtag(self, tag: str) -> None:
        """What follows is no style."""
        self._is_style = False


def _in_style(text: str) -> list[str]:
    return [one or other for one, other in IN_STYLE.findall(text)]


def faults(site: Path) -> list[str]:
    """A line for each fault of a page or of a style sheet of the site."""
    page = cache(lambda file: Page(file.read_text(encoding="utf-8")))

    def is_there(file: Path, address: str) -> bool:
        path, _, anchor = unquote(address).partition("#")
        path = path.partition("?")[0]
        target = Path(os.path.normpath(file.parent / path)) if path else file
        target = target / "index.html" if target.is_dir() else target
        is_inside = target.is_relative_to(site) and target.is_file()
        return is_inside and (not anchor or target.suffix != ".html" or anchor in page(target).anchors)

    def of(file: Path, links: list[str], loaded: list[str]) -> Iterator[str]:
        name = file.relative_to(site)
        yield from (f"{name} loads {each}" for each in loaded if REMOTE.match(each) and not each.startswith("data:"))
        here = (each for each in [*links, *loaded] if not REMOTE.match(each))
        yield from (f"{name} has a dead link: {each}" for each in here if not is_there(file, each))

    found: list[str] = []
    for file in sorted(site.rglob("*.html")):
        found += of(file, page(file).links, page(file).loaded)
    for file in sorted(site.rglob("*.css")):
        text = re.sub(r"(?s)/\*.*?\*/", "", file.read_text(encoding="utf-8"))
        found += of(file, [], _in_style(text))
    return list(dict.fromkeys(found))
