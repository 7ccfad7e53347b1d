"""A server of S3 on loopback: objects in memory, read by HEAD, GET with Range, and ListObjectsV2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from iosonar.table.object_store import ENDPOINTS, REGIONS

KEYS_OF_A_PAGE = 3
"""So few that prefixes have several pages."""


@dataclass
class S3:
    """What is stored, what was read, and how the server fails."""

    objects: dict[str, bytes] = field(default_factory=dict)
    """By bucket and key."""
    buckets: set[str] = field(default_factory=lambda: {"bucket"})
    url: str = ""
    ranges: list[tuple[str, str]] = field(default_factory=list)
    """The keys that were read, each with the header `Range`."""
    denies: bool = False
    breaks: bool = False
    """Whether connections end one byte too early."""
    replaced: dict[str, bytes] = field(default_factory=dict)
    """What replaces objects once they are read."""
    reading: Event = field(default_factory=Event)
    """Set once an object is read."""
    may_go_on: Event = field(default_factory=Event)
    """Until it is set, no object is read."""

    def variables(self) -> dict[str, str]:
        """The environment of a program that uses the server."""
        return {
            ENDPOINTS[1]: self.url,
            REGIONS[0]: "us-east-1",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        }


@contextmanager
def s3_server() -> Iterator[S3]:
    """Serves until the end of the block."""
    store = S3()
    store.may_go_on.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            url = urlsplit(self.path)
            path = unquote(url.path).strip("/")
            bucket, _, key = path.partition("/")
            if store.denies:
                self._send(403)
            elif bucket not in store.buckets:
                self._send(404, _error("NoSuchBucket"))
            elif not key:
                self._send(200, _listed(store, bucket, parse_qs(url.query)))
            elif path in store.objects:
                self._object(path)
            else:
                self._send(404, _error("NoSuchKey"))

        def _object(self, path: str) -> None:
            content, asked = store.objects[path], self.headers.get("Range", "")
            if self.command == "HEAD":
                self._send(200, content)
                return
            store.reading.set()
            store.may_go_on.wait()
            store.ranges.append((path, asked))
            first, last = map(int, asked.removeprefix("bytes=").split("-"))
            self._send(206, content[first : last + 1])
            store.objects |= store.replaced

        def _send(self, status: int, body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", formatdate(10**9, usegmt=True))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[: len(body) - store.breaks])
                self.close_connection = store.breaks

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    store.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield store
    finally:
        store.may_go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()


def _listed(store: S3, bucket: str, asked: dict[str, list[str]]) -> bytes:
    """A page of ListObjectsV2; with a delimiter, keys up to it are common prefixes."""
    prefix, delimiter, after = (asked.get(name, [""])[0] for name in ("prefix", "delimiter", "continuation-token"))
    found: dict[str, bool] = {}
    for path in sorted(store.objects):
        if not path.startswith(f"{bucket}/{prefix}"):
            continue
        key = path.removeprefix(f"{bucket}/")
        head, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
        found[prefix + head + cut if cut else key] = bool(cut)
    rest = [name for name in found if name > after]
    shown = rest[: min(KEYS_OF_A_PAGE, int(asked.get("max-keys", ["1000"])[0]))]
    more = f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>" if len(rest) > len(shown) else ""
    entries = [
        f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
        if found[name]
        else f"<Contents><Key>{escape(name)}</Key><Size>{len(store.objects[f'{bucket}/{name}'])}</Size>"
        "<LastModified>2001-09-09T01:46:40.123Z</LastModified></Contents>"
        for name in shown
    ]
    return (
        f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(shown)}</KeyCount>"
        f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}{''.join(entries)}</ListBucketResult>"
    ).encode()
