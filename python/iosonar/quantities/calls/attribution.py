"""Which file's calls caused which requests of block devices.

A request belongs to the call that its process had in progress when the request was made. Of several calls (threads of
the process), one that moves data in the same direction comes first, then one that syncs, then the latest one. Requests
that no call of their process was making are not attributed: the kernel writes data back later, in threads of its own,
and memory accesses to mapped files are not calls. They are listed by the name of their process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir


WITHOUT_BLOCKS = ("/dev/", "/proc/", "/sys/")
"""Where files are without blocks on a device; left out unless they have requests."""


@dataclass(frozen=True)
class FileRequests:
    """A file, or a process whose requests no call caused: bytes by calls, and bytes and number of requests."""

    name: str
    is_file: bool
    called_read: int
    called_written: int
    requested_read: int
    requested_written: int
    requests: int

    @property
    def read_amplification(self) -> float | None:
        """Bytes of requests by bytes of calls; None without calls that read."""
        return self.requested_read / self.called_read if self.called_read else None

    @property
    def write_amplification(self) -> float | None:
        """The same of writes."""
        return self.requested_written / self.called_written if self.called_written else None

    @property
    def bytes(self) -> int:
        """The larger of the bytes of calls and of requests."""
        return max(self.called_read + self.called_written, self.requested_read + self.requested_written)


def attributed(calls: ir.Table, requests: ir.Table) -> ir.Table:
    """The requests with the `path` of the call that caused them, null if none did; an expression."""
    import ibis

    numbered = requests.mutate(request=ibis.row_number())
    on_files = calls.filter(calls.path.notnull() & calls.end_ns.notnull()).select(
        "path", "family", "begin_ns", "end_ns", caller="process"
    )
    pairs = numbered.join(
        on_files,
        [
            numbered.pid == on_files.caller,
            on_files.begin_ns <= numbered.at_ns,
            on_files.end_ns >= numbered.at_ns,
        ],
    )
    same = pairs.family == pairs["op"]
    syncs = (pairs.family == "sync") & (pairs["op"] == "write")
    rank = ibis.row_number().over(
        ibis.window(
            group_by=pairs.request, order_by=[ibis.cases((same, 0), (syncs, 1), else_=2), pairs.begin_ns.desc()]
        )
    )
    first = pairs.mutate(place=rank).filter(lambda each: each.place == 0).select(found="request", path="path")
    joined = numbered.left_join(first, numbered.request == first.found)
    return joined.select("op", "bytes", "process", "path")


def requests_of_files(calls: ir.Table, requests: ir.Table) -> list[FileRequests]:
    """Files with bytes of calls or requests, and processes with requests that no call caused, the most bytes first.

    `calls` needs the columns `process`, `family`, `path`, `bytes`, `begin_ns` and `end_ns`.
    """
    import ibis

    found = attributed(calls, requests)
    by_request = (
        found.mutate(
            is_file=found.path.notnull(),
            # kworker/u8:1-flush-259:0 and jdb2/sda1-8 are threads of one kind.
            name=ibis.coalesce(found.path, found.process.re_extract(r"^[^/:]*", 0), "unknown"),
        )
        .group_by("name", "is_file")
        .aggregate(
            lambda each: each.bytes.sum(where=each["op"] == "read").fill_null(0).name("requested_read"),
            lambda each: each.bytes.sum(where=each["op"] == "write").fill_null(0).name("requested_written"),
            lambda each: each.count().name("requests"),
        )
        .to_pyarrow()
        .to_pylist()
    )
    by_call = (
        calls.filter(calls.path.notnull() & calls.bytes.notnull() & calls.family.isin(["read", "write"]))
        .group_by("path")
        .aggregate(
            lambda each: each.bytes.sum(where=each.family == "read").fill_null(0).name("called_read"),
            lambda each: each.bytes.sum(where=each.family == "write").fill_null(0).name("called_written"),
        )
        .to_pyarrow()
        .to_pylist()
    )
    called = {row["path"]: (int(row["called_read"]), int(row["called_written"])) for row in by_call}
    rows = [
        FileRequests(
            row["name"],
            row["is_file"],
            *(called.pop(row["name"], (0, 0)) if row["is_file"] else (0, 0)),
            int(row["requested_read"]),
            int(row["requested_written"]),
            int(row["requests"]),
        )
        for row in by_request
    ]
    rows += [
        FileRequests(path, True, read, written, 0, 0, 0)
        for path, (read, written) in called.items()
        if not path.startswith(WITHOUT_BLOCKS)
    ]
    return sorted(rows, key=lambda each: (-each.bytes, each.name))
