"""The table of the slowest requests, on the page and on terminals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iosonar import units
from iosonar.quantities.slowest import of_numbers, slowest
from iosonar.report.page import Table
from iosonar.study.original import original_beside
from iosonar.study.requests import Study
from iosonar.table import Stream, devices_of, streams_of
from iosonar.text import plain

SECTOR_BYTES = 512
DIGITS = 9
"""Digits of times, so that each request is found again."""

Row = dict[str, Any]


def slowest_table(study: Study, count: int) -> Table | None:
    """The slowest requests with their columns, as far as anything is known in them; None if there are none."""
    rows = slowest(study.requests.table, count) if count else []
    if not rows:
        return None
    before = _in_original(study, rows)
    cells: list[tuple[str, Callable[[Row], str]]] = [
        ("request", lambda row: f"{row['request']}"),
        ("time", lambda row: units.seconds((row["issued_ns"] - study.origin_ns) / 1e9, DIGITS)),
        ("operation", lambda row: str(row["op"])),
        ("size", lambda row: units.binary_bytes(row["sectors"] * SECTOR_BYTES)),
        ("sector", lambda row: f"{row['sector']}"),
        ("latency", lambda row: units.span(row["latency_ns"] / 1e9)),
        ("queued", lambda row: _span(row["queued_ns"])),
        ("delay", lambda row: _span(row["delay_ns"]) if study.requests.is_run and study.has_delays else ""),
        ("in the original", lambda row: _span(before.get(row["request"], {}).get("latency_ns"))),
        ("process", lambda row: _process(row) or _process(before.get(row["request"], {}))),
        ("device", lambda row: _device(study, row)),
        ("stream", lambda row: next((each.name for each in streams_of(study.files) if _is_in(row, each)), "")),
        ("outcome", lambda row: "" if row["outcome"] in (None, "ok") else str(row["outcome"])),
    ]
    columns = [(title, [text(row) for row in rows]) for title, text in cells]
    known = [(title, texts) for title, texts in columns if any(texts)]
    found = tuple(zip(*(texts for _, texts in known), strict=True))
    what = "The slowest request" if len(rows) == 1 else f"The {len(rows)} slowest requests"
    return Table(what, tuple(title for title, _ in known), found)


def _in_original(study: Study, rows: list[Row]) -> dict[int, Row]:
    """The same requests in the original, by their number."""
    original = original_beside(study)
    if original is None or not original.is_by_row:
        return {}
    return of_numbers(original.study.requests.table, [row["request"] for row in rows if row["stream"] is None])


def _span(value_ns: int | None) -> str:
    return "" if value_ns is None else units.span(value_ns / 1e9)


def _process(row: Row) -> str:
    """The name and the number of the process."""
    name, pid = plain(row.get("process") or ""), row.get("pid")
    return f"{name} ({pid})" if name and pid is not None else name or ("" if pid is None else f"{pid}")


def _device(study: Study, row: Row) -> str:
    """The device, if there are several: of a load its name, of a run the target."""
    index, file = row["device"] or 0, study.files[row["source"]]
    if study.requests.is_run:
        devices = devices_of(study.files)
        own = (each for each in devices if each.source == row["source"])
        found = next((each for each in own if each.of_load is None or index in each.of_load), devices[-1])
        return found.name if len(devices) > 1 else ""
    names = [device.name for device in file.footer.devices]
    several = len(names) > 1 or len(study.files) > 1
    return (names[index] if index < len(names) else f"device {index}") if several else ""


def _is_in(row: Row, stream: Stream) -> bool:
    return (row["source"], row["stream"]) in stream.members
