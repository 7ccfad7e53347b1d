"""The loads of a campaign: patterns of files and addresses."""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import html.parser
import http.client
import os
import re
import urllib.error
import urllib.parse
import urllib.request
import urllib.response
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import bracex

from iosonar.errors import UserError
from iosonar.text import plain

_ADDRESS = re.compile(r"(https?|ftp)://", re.IGNORECASE)
_WILDCARD = re.compile(r"[*?\[]")
_TIMEOUT_S = 60
_MAX_NAMES = 100_000


def words(text: str) -> list[str]:
    """The words of a list, with braces expanded as bash does. Nothing else is evaluated."""
    try:
        return [each for word in text.split() for each in bracex.expand(word, limit=_MAX_NAMES)]
    except bracex.ExpansionLimitException as error:
        raise UserError(f"{plain(text)} expands to more than {_MAX_NAMES} names") from error


def find(text: str, directories: Sequence[Path], *, fetch: bool = True) -> list[Path]:
    """The input files of `input_file_list`. Patterns are relative to the first of the directories that has a match.

    Without `fetch`, an address that was not fetched yet stands for its files: see `shown`.
    """
    found: list[Path] = []
    for word in words(text):
        files = (_fetched(word) if fetch else [_known(word)]) if _ADDRESS.match(word) else _local(word, directories)
        if not files:
            raise UserError(f"input_file_list: no file {plain(word)}")
        found += files
    return found


def shown(file: Path) -> str:
    """An input file, or an address that was not fetched, for people."""
    return re.sub(r"^(https?|ftp):/(?!/)", r"\1://", str(file), flags=re.IGNORECASE)


def _known(address: str) -> Path:
    """The file that was fetched from an address, or the address itself."""
    has_pattern = _WILDCARD.search(address.rpartition("/")[2])
    return Path(address) if has_pattern or not (file := _cached(address)).is_file() else file


def _local(pattern: str, directories: Iterable[Path]) -> list[Path]:
    for directory in directories:
        # The pattern may be absolute, and `..` keeps its place.
        if (directory / pattern).is_file():
            return [directory / pattern]
        found = [directory / name for name in sorted(glob.glob(pattern, root_dir=directory))]  # noqa: PTH207
        files = [path for path in found if path.is_file()]
        if files:
            return files
    return []


def _fetched(address: str) -> list[Path]:
    """The files behind an address, which may have wildcards in its last part; each is fetched once."""
    base, _, last = address.rpartition("/")
    if not _WILDCARD.search(last):
        return [_fetch(address)]
    names = fnmatch.filter(_listing(base + "/"), urllib.parse.unquote(last))
    return [_fetch(f"{base}/{urllib.parse.quote(name)}") for name in sorted(names)]


def _cached(address: str) -> Path:
    """Where the file of an address is kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "iosonar" / "loads"
    directory = cache / hashlib.sha256(address.encode()).hexdigest()[:16]
    try:
        name = urllib.parse.unquote(urllib.parse.urlsplit(address).path.rpartition("/")[2])
    except ValueError as error:
        raise UserError(f"cannot fetch {plain(address)}: {error}") from error
    return directory / (re.sub(r"[/\0]", "_", name).lstrip(".") or "load")


def _fetch(address: str) -> Path:
    target = _cached(address)
    if target.is_file():
        return target
    directory = target.parent
    directory.mkdir(parents=True, exist_ok=True)
    unfinished = directory / f".{os.getpid()}.unfinished"
    try:
        with _open(address) as source, unfinished.open("wb") as file:
            for piece in _pieces(source, address):
                file.write(piece)
            wanted = source.headers.get("Content-Length")
            if wanted is not None and wanted.isdigit() and int(wanted) != file.tell():
                raise UserError(f"cannot fetch {plain(address)}: the connection broke; try again")
        unfinished.replace(target)
    except OSError as error:
        raise UserError(f"cannot write {unfinished}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def _listing(address: str) -> list[str]:
    """The names in a directory of a server: the links of its page, or the lines of an FTP listing."""
    with _open(address) as source:
        text = b"".join(_pieces(source, address)).decode("utf-8", "replace")
    if address.lower().startswith("ftp:"):
        return [line.split()[-1] for line in text.splitlines() if line.split()]
    links = _Links()
    links.feed(text)
    names = [urllib.parse.unquote(name) for name in links.found if not name.startswith("?")]
    return [name for name in names if "/" not in name]


def _open(address: str) -> urllib.response.addinfourl:
    try:
        opened: urllib.response.addinfourl = urllib.request.urlopen(address, timeout=_TIMEOUT_S)
        return opened
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"cannot fetch {plain(address)}: {plain(str(reason))}") from error


def _pieces(source: urllib.response.addinfourl, address: str) -> Iterator[bytes]:
    while True:
        try:
            piece = source.read(1 << 20)
        except (http.client.HTTPException, OSError) as error:
            raise UserError(f"cannot fetch {plain(address)}: the connection broke; try again") from error
        if not piece:
            return
        yield piece


class _Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes where a link goes."""
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]
