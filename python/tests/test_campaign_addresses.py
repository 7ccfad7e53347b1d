"""Loads from servers: fetched once, complete or not at all."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign_trees import NO_PROXY

from iosonar.campaign import inputs
from iosonar.errors import UserError

INDEX = """<html><a href="../">up</a> <a href="?C=N">sort</a> <a href="b%20c.load.gz">x</a> <A HREF='a.load.gz'>x</A>
<a href="other.txt">x</a> <a href="..%2Fevil.load.gz">x</a> <a>no address</a></html>"""


class Server(http.server.ThreadingHTTPServer):
    """Serves some addresses and remembers which were asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with the path, with too little, or with an error."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.close_connection = True
        if self.path.startswith("/missing"):
            self.send_error(404, "Not Found")
            return
        body = INDEX.encode() if self.path == "/loads/" else f"content of {self.path}".encode()
        self.send_response(200)
        if self.path == "/chunks.gz":
            self.send_header("Transfer-Encoding", "chunked")
            body = b"ff\r\nbroken"
        else:
            self.send_header("Content-Length", str(len(body) + 100 * self.path.startswith("/short")))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Prints nothing."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server; fetched files are kept below tmp_path/cache."""
    for name in NO_PROXY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with Server() as made:
        threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
        yield made
        made.shutdown()


def kept(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())


def test_a_load_is_fetched_once(server: Server, tmp_path: Path) -> None:
    (first,) = inputs.find(f"{server.address}/x.load.gz", [tmp_path])
    assert first.name == "x.load.gz"
    assert first.read_text() == "content of /x.load.gz"
    assert inputs.find(f"{server.address}/x.load.gz", []) == [first]
    assert server.asked == ["/x.load.gz"]


def test_loads_of_one_name_from_two_addresses_are_different(server: Server) -> None:
    first, second = inputs.find(f"{server.address}/{{a,b}}/x.load.gz", [])
    assert first != second
    assert (first.read_text(), second.read_text()) == ("content of /a/x.load.gz", "content of /b/x.load.gz")


def test_wildcards_of_an_address_match_links_of_its_directory(server: Server) -> None:
    found = inputs.find(f"{server.address}/loads/*.load.gz", [])
    assert [path.name for path in found] == ["a.load.gz", "b c.load.gz"]
    assert server.asked == ["/loads/", "/loads/a.load.gz", "/loads/b%20c.load.gz"]
    with pytest.raises(UserError, match=r"no file http.*/loads/\*\.zip"):
        inputs.find(f"{server.address}/loads/*.zip", [])


@pytest.mark.parametrize("name", ["short.gz", "chunks.gz"])
def test_a_transfer_that_breaks_is_an_error_and_keeps_nothing(server: Server, tmp_path: Path, name: str) -> None:
    for _ in range(2):
        with pytest.raises(UserError, match=f"cannot fetch http.*/{name}: the connection broke; try again"):
            inputs.find(f"{server.address}/{name}", [])
    assert kept(tmp_path) == []


def test_an_address_that_does_not_exist_is_an_error(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot fetch http.*/missing\.gz: .*Not Found"):
        inputs.find(f"{server.address}/missing.gz", [])
    with pytest.raises(UserError, match=r"cannot fetch http.*/missing/"):
        inputs.find(f"{server.address}/missing/*.gz", [])
    for address in ("http://127.0.0.1:1/x.gz", "http://[bad/x.gz", "https://", "http://127.0.0.1:port/x"):
        with pytest.raises(UserError, match="cannot fetch http"):
            inputs.find(address, [])
    assert kept(tmp_path) == []


@pytest.mark.parametrize("name", ["%2e%2e", "..%2f..%2fevil", "$(touch%20CANARY);`id`", "%00", "-x"])
def test_an_odd_name_stays_in_its_directory(server: Server, tmp_path: Path, name: str) -> None:
    (found,) = inputs.find(f"{server.address}/{name}", [])
    assert found.parent.parent == tmp_path / "cache/iosonar/loads"
    assert found.read_text().startswith("content of ")
