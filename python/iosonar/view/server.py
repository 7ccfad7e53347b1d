"""Serves a view on loopback: only to who knows its token, and to no other site."""

from __future__ import annotations

import hmac
import json
import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from iosonar.errors import UserError

ADDRESS = "127.0.0.1"
IDLE_S = 120
MAX_QUERY = 4096

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True)
class Html:
    """A page, whose scripts have the nonce."""

    text: str
    nonce: str


@dataclass(frozen=True)
class Download:
    """A file to save, which exists while it is sent."""

    name: str
    type: str
    file: AbstractContextManager[Path]


@dataclass(frozen=True)
class Packed:
    """JSON, and the bytes of the arrays that it describes."""

    found: dict[str, Any]
    content: bytes


Answer = Html | Download | Packed | dict[str, Any]
Route = Callable[[Mapping[str, str]], Answer]


class Server(ThreadingHTTPServer):
    """Answers requests to `/TOKEN/NAME` by the route of that name."""

    daemon_threads = True

    def __init__(self, routes: Mapping[str, Route], port: int = 0) -> None:
        self.routes = routes
        self.token = secrets.token_urlsafe(24)
        super().__init__((ADDRESS, port), _Handler)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which a browser may call it: any other leads here by a foreign name server."""
        return tuple(f"{name}:{self.server_port}" for name in (ADDRESS, "localhost"))

    @property
    def url(self) -> str:
        """The address to open."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a browser that goes away is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "iosonar", ""
    timeout = IDLE_S
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answers a request."""
        refused = self._refused()
        if refused:
            self._send_json({"error": refused.phrase}, refused)
            return
        parts = urlsplit(self.path)
        name = parts.path.removeprefix(f"/{self.server.token}/")
        route = self.server.routes.get(name)
        if route is None:
            self._send_json({"error": "there is no such page"}, HTTPStatus.NOT_FOUND)
            return
        try:
            self._send(route(dict(parse_qsl(parts.query))))
        except UserError as error:
            self._send_json({"error": str(error)}, HTTPStatus.BAD_REQUEST)
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _refused(self) -> HTTPStatus | None:
        """Why a request is refused."""
        own = self.headers.get("Host", "")
        origin = self.headers.get("Origin")
        if own not in self.server.hosts or (origin is not None and origin != f"http://{own}"):
            return HTTPStatus.FORBIDDEN
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return HTTPStatus.FORBIDDEN
        if len(self.path) > MAX_QUERY:
            return HTTPStatus.REQUEST_URI_TOO_LONG
        token = urlsplit(self.path).path.split("/")[1:2]
        if not token or not hmac.compare_digest(token[0].encode(), self.server.token.encode()):
            return HTTPStatus.NOT_FOUND
        return None

    def _send(self, answer: Answer) -> None:
        match answer:
            case Html():
                policy = {"Content-Security-Policy": POLICY.format(nonce=answer.nonce)}
                self._send_bytes(answer.text.encode("utf-8", "replace"), "text/html; charset=utf-8", more=policy)
            case Download():
                with answer.file as path, path.open("rb") as file:
                    name = f'attachment; filename="{answer.name}"'
                    self._begin(HTTPStatus.OK, answer.type, path.stat().st_size, {"Content-Disposition": name})
                    shutil.copyfileobj(file, self.wfile)
            case Packed():
                head = _json(answer.found)
                content = b"".join((len(head).to_bytes(4, "little"), head, answer.content))
                self._send_bytes(content, "application/octet-stream")
            case _:
                self._send_json(answer)

    def _send_json(self, found: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send_bytes(_json(found), "application/json", status)

    def _send_bytes(
        self, content: bytes, type_: str, status: HTTPStatus = HTTPStatus.OK, more: Mapping[str, str] | None = None
    ) -> None:
        self._begin(status, type_, len(content), more or {})
        with suppress(ConnectionError):
            self.wfile.write(content)

    def _begin(self, status: HTTPStatus, type_: str, length: int, more: Mapping[str, str]) -> None:
        self.send_response(status)
        nothing = {"Content-Security-Policy": "default-src 'none'; sandbox"}
        for name, value in (HEADERS | nothing | dict(more)).items():
            self.send_header(name, value)
        self.send_header("Content-Type", type_)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing: the address has the token."""


def _json(found: dict[str, Any]) -> bytes:
    return json.dumps(found, separators=(",", ":")).encode()
