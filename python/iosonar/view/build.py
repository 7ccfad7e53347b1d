"""Makes the index of a table: its requests sorted by time, and rasters of them, as files that are mapped into memory.

It reads the table twice, a million rows at a time, and sorts on disk, so that memory does not depend on the table.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from iosonar.errors import UserError
from iosonar.view import pyramid
from iosonar.view.buckets import Buckets, Histogram
from iosonar.view.requests import BLOCK, Requests, last_ends
from iosonar.view.scales import MEASURES, SECTOR

if TYPE_CHECKING:
    import duckdb

ABOUT = "about.json"
VERSION = 1
AT_ONCE = 1 << 20
LOWEST_NS = 100
"""Values below are at the lower end of an axis of times."""

Progress = Callable[[str, float], None]
"""Receives the step, and the share of it that is done."""

BY_ISSUE = ("begin", "latency", "delay", "sector", "sectors", "kind", "place")
BY_END = ("end", "latency_of_end", "kind_of_end")

RAW = """
    SELECT CASE WHEN is_load THEN scheduled_ns ELSE issued_ns END AS begin, completed_ns AS "end",
        CASE WHEN is_load THEN 0 ELSE issued_ns - scheduled_ns END AS delay, sector, sectors, place,
        CASE WHEN outcome NOT IN ('ok', 'short') THEN 3 WHEN op = 'read' THEN 0 WHEN op = 'write' THEN 1
            ELSE 2 END::UTINYINT AS kind
    FROM (SELECT *, {is_load} AS is_load FROM requests)"""


def build(connection: duckdb.DuckDBPyConnection, directory: Path, *, is_load: bool, progress: Progress) -> None:
    """Writes the index of the view `requests` to an empty directory."""
    raw = RAW.format(is_load="true" if is_load else "false")
    connection.execute(f"CREATE OR REPLACE TEMP VIEW to_index AS {raw}")
    about = _about(connection)
    if not about["rows"]:
        raise UserError("no request was issued: nothing to show")
    rows, maps = about["rows"], _Maps(directory)
    by_issue: dict[str, Any] = {name: maps.create(name, about["types"][name], rows) for name in BY_ISSUE}
    by_end: dict[str, Any] = {name: maps.create(name, about["types"][name], about["completed"]) for name in BY_END}
    _sort(connection, about, by_issue, by_end, maps, progress)
    requests = Requests(
        **by_issue,
        **by_end,
        last_end=np.empty(0, np.int64),
        low_ns=about["low_ns"],
        high_ns=about["high_ns"],
        top=about["top"],
    )
    last = []
    for first in range(0, rows, BLOCK * 1024):
        part = slice(first, first + BLOCK * 1024)
        last.append(last_ends(requests.begin[part], requests.latency[part]))
        maps.release()
    np.save(directory / "last_end.npy", np.concatenate(last))
    levels: dict[str, list[int]] = {}
    for number, measure in enumerate(MEASURES):
        progress("rasters", number / len(MEASURES))
        bins = pyramid.finest_bins(rows)
        finest = _released(pyramid.finest(requests, measure, bins), maps)
        levels[measure.name] = [bins]
        ends = (about["low_ns"], about["high_ns"])
        level = _write_level(directory, measure.name, bins, ends, finest)
        maps.release()
        while level.bins > pyramid.WANTED_BINS:
            fewer = level.bins // pyramid.STEP
            joined = _released(pyramid.coarser(level), level)
            level = _write_level(directory, measure.name, fewer, ends, joined)
            levels[measure.name].append(level.bins)
    np.save(directory / "depth.npy", _deepest(requests, pyramid.finest_bins(rows), maps))
    maps.release()
    (directory / ABOUT).write_text(json.dumps(about | {"levels": levels}), encoding="utf-8")
    progress("rasters", 1.0)


def _about(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """What is known of the table before it is sorted."""
    names = ("rows", "not_issued", "completed", "begin_low", "begin_high", "end_low", "end_high")
    query = """
        SELECT count(begin), count(*) - count(begin), count("end"), min(begin), max(begin), min("end"), max("end"),
            max("end" - begin), min("end" - begin) FILTER ("end" > begin), min(delay), max(delay),
            min(delay) FILTER (delay > 0), max(sector + sectors), max(sectors), max(place)
        FROM to_index WHERE begin IS NOT NULL OR "end" IS NULL"""
    [found] = connection.execute(query).fetchall()
    about: dict[str, Any] = dict(zip(names, found[: len(names)], strict=True))
    latency, least_latency, delay_low, delay_high, least_delay, top, sectors, place = (
        each or 0 for each in found[len(names) :]
    )
    low, high = about["begin_low"] or 0, max(about["begin_high"] or 0, about["end_high"] or 0) + 1
    return about | {
        "version": VERSION,
        # A run begins at 0; a part of one does not.
        "low_ns": 0 if 0 <= low <= 0.1 * high else low,
        "high_ns": high,
        "top": max(top, 1),
        "ranges": {
            "latency": (max(least_latency, LOWEST_NS), max(latency, 10 * LOWEST_NS)),
            "delay": (max(least_delay, LOWEST_NS), max(delay_high, 10 * LOWEST_NS)),
            "sector": (0, top * SECTOR),
        },
        "types": {
            "begin": "int64",
            "latency": _unsigned(latency + 1),
            "delay": "int32" if delay_low >= -(2**31) and delay_high < 2**31 else "int64",
            "sector": _unsigned(top),
            "sectors": _unsigned(sectors),
            "kind": "uint8",
            "place": _unsigned(place),
            "end": "int64",
            "latency_of_end": _unsigned(latency + 1),
            "kind_of_end": "uint8",
        },
    }


def _unsigned(most: int) -> str:
    """The narrow type for numbers up to this one."""
    return "uint32" if most < 2**32 else "int64"


def _batches(connection: duckdb.DuckDBPyConnection, columns: str) -> Iterator[dict[str, NDArray[Any]]]:
    """Rows of issued requests, as arrays; without completion, `end` is 0 and `has_end` false."""
    query = f'SELECT {columns}, "end" IS NOT NULL AS has_end FROM to_index WHERE begin IS NOT NULL'
    relation = connection.sql(query)
    reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    with reader(AT_ONCE) as found:
        for batch in found:
            yield {name: batch.column(name).to_numpy(zero_copy_only=False) for name in batch.schema.names}


def _sort(
    connection: duckdb.DuckDBPyConnection,
    about: dict[str, Any],
    by_issue: dict[str, NDArray[Any]],
    by_end: dict[str, NDArray[Any]],
    maps: _Maps,
    progress: Progress,
) -> None:
    """Fills the sorted columns."""
    rows, done = about["rows"], 0
    issues = Histogram(about["begin_low"], about["begin_high"])
    ends = Histogram(about["end_low"] or 0, about["end_high"] or 0)
    for batch in _batches(connection, 'begin, coalesce("end", 0) AS "end"'):
        issues.add(batch["begin"])
        ends.add(batch["end"][batch["has_end"]])
        done += len(batch["begin"])
        progress("times", done / rows)
    issued, completed, done = Buckets(by_issue, issues), Buckets(by_end, ends), 0
    for batch in _batches(connection, 'begin, coalesce("end", 0) AS "end", delay, sector, sectors, place, kind'):
        has_end, type_ = batch["has_end"], by_issue["latency"].dtype
        latency = np.maximum(batch["end"] - batch["begin"], 0)
        latency[~has_end] = np.iinfo(type_).max
        issued.add(batch | {"latency": latency.astype(type_)})
        of_end = {"end": batch["end"], "latency_of_end": latency, "kind_of_end": batch["kind"]}
        completed.add({name: values[has_end] for name, values in of_end.items()})
        done += len(has_end)
        progress("requests", done / rows)
        maps.release()
    for buckets, words in ((issued, "order of issue"), (completed, "order of completion")):
        length = max(len(next(iter(buckets.columns.values()))), 1)

        def sorted_to(place: int, words: str = words, length: int = length) -> None:
            progress(words, place / length)
            maps.release()

        buckets.sort(sorted_to)


def _write_level(
    directory: Path, name: str, bins: int, ends: tuple[int, int], parts: Iterator[tuple[NDArray[Any], NDArray[Any]]]
) -> pyramid.Level:
    """Writes the cells of a level as they come."""
    paths = [level_path(directory, name, bins, what) for what in ("cells", "counts")]
    with paths[0].open("wb") as cells, paths[1].open("wb") as counts:
        for part, number in parts:
            part.astype("<i4", copy=False).tofile(cells)
            number.astype("<u4", copy=False).tofile(counts)
    return read_level(directory, name, bins, ends)


def level_path(directory: Path, name: str, bins: int, what: str) -> Path:
    """The file of a level's cells or counts."""
    return directory / f"{name}.{bins}.{what}"


def read_level(directory: Path, name: str, bins: int, ends: tuple[int, int]) -> pyramid.Level:
    """A level, mapped."""
    cells, counts = (level_path(directory, name, bins, what) for what in ("cells", "counts"))
    if not cells.stat().st_size:
        return pyramid.Level(bins, *ends, np.empty(0, np.int32), np.empty(0, np.uint32))
    return pyramid.Level(bins, *ends, np.memmap(cells, "<i4", "r"), np.memmap(counts, "<u4", "r"))


def _released(
    parts: Iterator[tuple[NDArray[Any], NDArray[Any]]], source: _Maps | pyramid.Level
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The same parts; the pages that each has read are given back."""
    for part in parts:
        yield part
        release(source.maps if isinstance(source, _Maps) else [source.cells, source.counts])


def _deepest(requests: Requests, bins: int, maps: _Maps) -> NDArray[np.int32]:
    """The most requests in flight in each bin in which a request was issued."""
    found = np.zeros(bins, np.int32)
    for first in range(0, len(requests), AT_ONCE):
        times = np.asarray(requests.begin[first : first + AT_ONCE])
        depth = requests.in_flight(times)
        at = pyramid.bins_of(times, requests.low_ns, requests.high_ns, bins)
        starts = np.flatnonzero(np.diff(at, prepend=-1))
        np.maximum.at(found, at[starts], np.maximum.reduceat(depth, starts).astype(np.int32))
        maps.release()
    return found


class _Maps:
    """Arrays in files, whose pages are given back as soon as they are written."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.maps: list[np.memmap[Any, Any]] = []

    def create(self, name: str, type_: str, rows: int) -> NDArray[Any]:
        """A new array."""
        if not rows:
            np.save(self.directory / f"{name}.npy", np.empty(0, type_))
            return np.empty(0, type_)
        made: np.memmap[Any, Any] = open_memmap(self.directory / f"{name}.npy", mode="w+", dtype=type_, shape=(rows,))
        self.maps.append(made)
        return made

    def release(self) -> None:
        """Gives the pages back; they stay in the page cache."""
        release(self.maps)


def release(arrays: Sequence[Any]) -> None:
    """Unmaps the pages of mapped arrays: they no longer count as memory of this program."""
    for array in arrays:
        # A view of a map has it as its base.
        mapped = getattr(array, "_mmap", None)
        if mapped is not None:
            mapped.madvise(mmap.MADV_DONTNEED)
