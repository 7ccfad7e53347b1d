"""Why one request was slow: what was in flight before and beside it, as one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iosonar import units
from iosonar.findings.course import Usual, stalls_of, timeline_of, usual_of
from iosonar.findings.needles import LARGE, LARGE_SECTORS
from iosonar.study.requests import Study

if TYPE_CHECKING:
    import ibis.expr.types as ir

SECTOR_BYTES = 512
SLOW = 3
"""A request is slow if it took so many times as long as half of all requests do."""

CROWDED = 4
"""So many times the usual number in flight is a queue."""

ALIKE = 0.5
"""From this share of slow requests beside it on, it was not slow alone."""

KINDS = {"flush": "a flush", "discard": "a discard", "write_zeroes": "a write of zeroes"}

DELAYS = {
    "depth": "as many as the depth allows were in flight",
    "order": "an earlier one to the same place was in flight",
    "perturbed": "the replay moved it in time (--perturb)",
    "input": "the replayer read the load too slowly",
    "completion_log": "the replayer wrote its record too slowly",
    "backlog": "the replayer had been late before",
}
"""Why a request was issued late, by `delay_reason`."""


@dataclass(frozen=True)
class Why:
    """The sentence about a request, and the numbers behind it: times in seconds."""

    request: int
    sentence: str
    values: dict[str, float | int | None] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For programs, as docs/schemas/diagnosis.json describes it."""
        return {"number": self.request, "sentence": self.sentence, "values": self.values}


def why_slow(study: Study, number: int) -> Why | None:
    """Of a request by its number, in several iterations or files the slowest; None if there is none."""
    import ibis

    table = study.requests.table
    own = table.filter(table.request == number)
    names = ("source", "place", "device", "op", "sector", "sectors", "issued_ns", "completed_ns", "latency_ns")
    chosen = own.select(*names, "delay_ns", "delay_reason", "outcome").order_by(ibis.desc("latency_ns")).limit(1)
    rows = chosen.to_pyarrow().to_pylist()
    if not rows:
        return None
    row = rows[0]
    what = f"Request {number}, a {row['op'].replace('_', ' ')} of {units.binary_bytes(row['sectors'] * SECTOR_BYTES)}"
    if row["issued_ns"] is None:
        return Why(number, f"{what}, was never issued: {row['outcome'] or 'its outcome is not known'}.")
    late = _late(row)
    if row["latency_ns"] is None:
        return Why(number, f"{what}, never completed{late}.")
    usual = usual_of(study)
    took = f"took {units.span(row['latency_ns'] / 1e9)}"
    if usual is None:
        return Why(number, f"{what}, {took}{late}; there are too few requests to compare it with.")
    factor = row["latency_ns"] / usual.p50
    values: dict[str, float | int | None] = {
        "latency_s": row["latency_ns"] / 1e9,
        "usual_s": usual.p50 / 1e9,
        "delay_s": None if row["delay_ns"] is None else row["delay_ns"] / 1e9,
    }
    if factor < SLOW:
        return Why(
            number, f"{what}, {took}, which is usual: half of all take {units.span(usual.p50 / 1e9)}{late}.", values
        )
    found, more = _reason(study, table, row, usual)
    head = f"{what}, {took} instead of the usual {units.span(usual.p50 / 1e9)}"
    return Why(number, f"{head}: {found}{late}.", values | more)


def _late(row: dict[str, Any]) -> str:
    """What delayed its issue, if that took longer than the request itself, or a millisecond."""
    delay = row["delay_ns"] or 0
    if delay < max(min(row["latency_ns"] or 0, 1_000_000), 50_000):
        return ""
    why = DELAYS.get(row["delay_reason"] or "")
    because = f", because {why}" if why else ""
    return f"; before, it had waited {units.span(delay / 1e9)} for its issue{because}"


def _reason(
    study: Study, table: ir.Table, row: dict[str, Any], usual: Usual
) -> tuple[str, dict[str, float | int | None]]:
    """The most telling thing that was on, as a clause, and its numbers."""
    own = (table.place == row["place"]) & (table.source == row["source"])
    beside = table.filter((table.source == row["source"]) & ~own & table.issued_ns.notnull())
    begin, end = row["issued_ns"], row["completed_ns"]
    open_ = beside.completed_ns.isnull() | (beside.completed_ns > begin)
    before = beside.filter((beside.issued_ns <= begin) & open_)
    counted = before.aggregate(
        n=before.count(), writes=(before["op"] == "write").sum(), sectors=before.sectors.cast("float64").sum()
    ).to_pyarrow()
    number, writes, sectors = (counted[name][0].as_py() or 0 for name in ("n", "writes", "sectors"))
    values: dict[str, float | int | None] = {"in_flight": number, "writes_in_flight": writes}
    for clause in (_special(before, row), _overlap(before, row), _stall(study, row)):
        if clause:
            return clause, values
    usually = _usually_in_flight(study)
    if number >= CROWDED * max(usually, 1):
        kinds = f"{writes:,} of them writes, " if writes else ""
        text = (
            f"it queued behind {units.requests(number)} ({kinds}{units.binary_bytes(sectors * SECTOR_BYTES)}); on "
            "average "
            f"{units.count(usually)} are in flight"
        )
        return text, values
    near = beside.filter((beside.issued_ns >= begin) & (beside.issued_ns < begin + (end - begin) // 2))
    slow = (near.latency_ns >= SLOW * int(usual.p50)).sum()
    fellows = near.aggregate(n=near.count(), slow=slow).to_pyarrow()
    many, alike = fellows["n"][0].as_py(), fellows["slow"][0].as_py() or 0
    flying = f"only {units.requests(number)} {'was' if number == 1 else 'were'} in flight before it"
    if many and alike >= ALIKE * many:
        text = (
            f"the storage paused, as {alike:,} of {units.requests(many)} issued meanwhile were slow, too, and {flying}"
        )
    elif many:
        text = (
            f"it was slow alone, as {many - alike:,} of {units.requests(many)} issued meanwhile were not, and {flying}"
        )
    else:
        text = f"nothing in this run explains it: {flying}, and none was issued meanwhile"
    return text, values | {"issued_meanwhile": many, "slow_meanwhile": alike}


def _special(before: ir.Table, row: dict[str, Any]) -> str:
    """A flush, a discard, or a much larger request that was in flight before it."""
    large = max(LARGE * row["sectors"], LARGE_SECTORS)
    chosen = before.filter(~before["op"].isin(("read", "write")) | (before.sectors >= large))
    rows = chosen.select("request", "sectors", "completed_ns", op=chosen["op"]).limit(200).to_pyarrow().to_pylist()
    # Those that took most of its time count.
    rows = [
        each
        for each in rows
        if each["completed_ns"] is None or each["completed_ns"] - row["issued_ns"] >= row["latency_ns"] / 2
    ]
    return next(_named(rows), "")


def _named(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    for each in sorted(rows, key=lambda one: (one["op"] in ("read", "write"), -one["sectors"])):
        kind = KINDS.get(each["op"], f"a {each['op']} of {units.binary_bytes(each['sectors'] * SECTOR_BYTES)}")
        yield f"it waited behind {kind} (request {each['request']}) that was in flight"


def _overlap(before: ir.Table, row: dict[str, Any]) -> str:
    """An earlier request to the same place."""
    if not row["sectors"]:
        return ""
    device = before.device.fill_null(0) == (row["device"] or 0)
    same = before.filter(
        device & (before.sector < row["sector"] + row["sectors"]) & (before.sector + before.sectors > row["sector"])
    )
    rows = same.filter(same.sectors > 0).select("request", op=same["op"]).limit(1).to_pyarrow().to_pylist()
    return f"it met a {rows[0]['op']} to the same place (request {rows[0]['request']}) in flight" if rows else ""


def _stall(study: Study, row: dict[str, Any]) -> str:
    """The stall of several that it fell into."""
    found = stalls_of(study)
    if found is None:
        return ""
    begin = row["issued_ns"] - study.origin_ns
    inside = (found.waits.begin_ns <= begin) & (begin < found.waits.end_ns)
    if not inside.any():
        return ""
    every = found.in_bytes if found.by_bytes else found.in_time
    if every is None:
        return ""
    how = (
        f"each {units.binary_bytes(every.period)} written (S09)"
        if found.by_bytes
        else f"every {units.span(every.period)} (S07)"
    )
    return f"the storage had stopped, as it does {how}"


def _usually_in_flight(study: Study) -> float:
    course = timeline_of(study)
    return float(course.in_flight.sum(axis=0).mean())
