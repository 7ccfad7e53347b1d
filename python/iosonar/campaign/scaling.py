"""`iosonar files scale --hosts`: how long instances of a replay take that are dealt to several hosts."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iosonar.campaign.hosts import Hosts
from iosonar.campaign.plan import Instance
from iosonar.campaign.replays import COLLECTED, Replays
from iosonar.campaign.state import InstanceState
from iosonar.campaign.undo import Undo
from iosonar.campaign.watch import Events, Watch
from iosonar.errors import UsageError, UserError
from iosonar.text import plain

GRACE_S = 2.0
"""From the last host being ready to the common start."""

# The name has the host, as hosts may share the file system of the root.
_MAKE = """
[ -d "$1" ] || { echo "no directory $1" >&2; exit 1; }
mkdir -- "$2" || { echo "remove what an earlier experiment left" >&2; exit 1; }
i=0
while [ "$i" -lt "$3" ]; do mkdir -- "$2/instance-$i" || exit; i=$((i + 1)); done
"""


@dataclass(frozen=True)
class Plan:
    """What is measured, as the binary gives it."""

    trace: Path
    root: str
    output: Path
    hosts: Sequence[str]
    instances: Sequence[int]
    options: Sequence[str]
    """Those of `iosonar files replay`."""
    json: bool = False


@dataclass(frozen=True)
class OfHost:
    """The instances of a host among all that ran at the same time."""

    host: str
    seconds: tuple[float, ...]
    received_bytes: int | None
    """By the whole host, while they ran."""
    sent_bytes: int | None
    mismatches: int


@dataclass(frozen=True)
class Point:
    """What was measured with a number of instances."""

    instances: int
    hosts: tuple[OfHost, ...]

    @property
    def seconds(self) -> tuple[float, ...]:
        """The times of all instances."""
        return tuple(each for host in self.hosts for each in host.seconds)

    def network(self, name: str) -> int | None:
        """`received_bytes` or `sent_bytes` of all hosts; None if one of them does not know it."""
        known = [getattr(each, name) for each in self.hosts]
        return None if None in known else sum(known)


@dataclass
class Measured:
    """What was measured so far."""

    points: list[Point] = field(default_factory=list)

    @property
    def mismatches(self) -> int:
        """Calls with other results than the original's."""
        return sum(host.mismatches for point in self.points for host in point.hosts)


def dealt(number: int, hosts: Sequence[str]) -> Mapping[str, int]:
    """How many instances each host gets; those at the front one more."""
    each, more = divmod(number, len(hosts))
    shares = {host: each + (place < more) for place, host in enumerate(hosts)}
    return {host: share for host, share in shares.items() if share}


def check(plan: Plan) -> None:
    """Refuses hosts that are named twice, and a trace that is not there."""
    if not plan.trace.is_file():
        raise UserError(f"cannot read {plain(str(plan.trace))}: no such file")
    twice = next((host for host in plan.hosts if list(plan.hosts).count(host) > 1), None)
    if twice is not None:
        raise UsageError(f"--hosts: {plain(twice)} is named twice")


def measure(
    plan: Plan, found: Measured, directory: Path, say: Callable[[str], None], show: Callable[[Point], None]
) -> None:
    """Measures all numbers of instances. `directory` is for results, which are not kept, and journals of what to undo.

    Raises UserError if a host cannot be used, or a replay fails.
    """
    check(plan)
    say = _once(say)
    undo = Undo(plan.output.with_name(f".{plan.output.name}.undo"))
    with _hosts(undo, say) as hosts:
        for name in plan.hosts[: max(plan.instances)]:
            # Before anything runs.
            hosts.get(name).program()
        for number in plan.instances:
            point = _measured(plan, number, hosts, undo, directory, say)
            found.points.append(point)
            show(point)


def _once(say: Callable[[str], None]) -> Callable[[str], None]:
    """Says each text once: the replays of all points have the same warnings."""
    said = set[str]()

    def once(text: str) -> None:
        if text not in said:
            said.add(text)
            say(text)

    return once


def _warnings(say: Callable[[str], None]) -> Callable[[str], None]:
    """Says the warnings in the output of replays. The reason of a failure is that of the experiment."""

    def log(text: str) -> None:
        for line in text.splitlines():
            if line.startswith("warning:") or "starting again" in line:
                say(line)

    return log


@contextmanager
def _hosts(undo: Undo, say: Callable[[str], None]) -> Iterator[Hosts]:
    """The hosts; what was done there is undone at the end, and first what a killed experiment left."""
    try:
        with Hosts(undo, note=say) as hosts:
            for failure in undo.run_all(hosts.undo, undo.entries()):
                say(f"not undone on {failure.entry.host}: {failure.entry.what}: {failure.reason}")
            yield hosts
    finally:
        # With entries, it stays for the next experiment.
        with suppress(OSError):
            undo.directory.rmdir()


def _measured(plan: Plan, number: int, hosts: Hosts, undo: Undo, directory: Path, say: Callable[[str], None]) -> Point:
    shares = dealt(number, plan.hosts)
    tops = {host: f"{plan.root.rstrip('/')}/iosonar-scale-{host.replace('/', '_')}" for host in shares}
    instances = [
        Instance(
            host,
            # A single instance uses the root itself.
            f"{tops[host]}/instance-0" if share == 1 else tops[host],
            tops[host],
            plan.trace,
            f"{number}.{place}",
            of_calls=True,
            options=("--instances", str(share)),
        )
        for place, (host, share) in enumerate(shares.items())
    ]
    entries = []
    try:
        for host, share in shares.items():
            what = f"remove the directory {tops[host]}"
            made = hosts.get(host).script(_MAKE, plan.root, tops[host], str(share))
            if made.code:
                raise UserError(f"{host}: cannot create {tops[host]}: {made.words}")
            entries.append(undo.add(host, what, f"rm -rf -- {shlex.quote(tops[host])}"))
        replays = Replays(directory, hosts, instances, plan.options, _warnings(say), prepare="add")
        replays.bring(lambda source: source)
        name = f"{number} instances" if number > 1 else "1 instance"
        with Watch(name, instances, Events(False), directory) as watch:
            replays.run(GRACE_S, watch)
        replays.remove()
        for result in directory.glob(f".*{COLLECTED}"):
            result.unlink()
    finally:
        mine = [entry for entry in undo.entries() if entry.id in entries]
        for failure in undo.run_all(hosts.undo, mine):
            say(f"not undone on {failure.entry.host}: {failure.entry.what}: {failure.reason}")
    return Point(
        number, tuple(_of_host(state, share) for state, share in zip(replays.states, shares.values(), strict=True))
    )


def _of_host(state: InstanceState, share: int) -> OfHost:
    summary = state.summary or {}
    if fake := summary.get("fake"):
        raise UserError(str(fake))
    each = summary.get("instances") or [{"job_s": summary.get("elapsed_s")}]
    seconds = tuple(float(known) for one in each if (known := one.get("job_s")) is not None)
    if len(seconds) != share:
        raise UserError(f"{state.host}: the replay of {share} instances reports {len(seconds)} times")
    usage = summary.get("usage") or {}
    return OfHost(
        state.host,
        seconds,
        usage.get("received_bytes"),
        usage.get("sent_bytes"),
        int(summary.get("mismatches") or 0),
    )


def as_json(found: Measured, *, complete: bool) -> dict[str, Any]:
    """What was measured, for programs."""
    return {
        "complete": complete,
        "mismatches": found.mismatches,
        "points": [
            {
                "instances": point.instances,
                "what": "replay",
                **_times(point.seconds),
                "received_bytes": point.network("received_bytes"),
                "sent_bytes": point.network("sent_bytes"),
                "hosts": [
                    {
                        "host": each.host,
                        "instances": len(each.seconds),
                        **_times(each.seconds),
                        "received_bytes": each.received_bytes,
                        "sent_bytes": each.sent_bytes,
                    }
                    for each in point.hosts
                ],
            }
            for point in found.points
        ],
    }


def _times(seconds: Sequence[float]) -> dict[str, float]:
    return {"average_s": sum(seconds) / len(seconds), "shortest_s": min(seconds), "longest_s": max(seconds)}


def write_table(plan: Plan, found: Measured, *, complete: bool) -> None:
    """Writes `NAME.scale.parquet`: a row for each instance, as docs/schema.md describes it."""
    import json

    import pyarrow as pa
    import pyarrow.parquet

    from iosonar import SCHEMA_VERSION

    rows = [
        (point.instances, host, seconds) for point in found.points for host in point.hosts for seconds in host.seconds
    ]
    numbers = [number for point in found.points for number in range(point.instances)]
    columns: dict[str, pa.Array[Any]] = {
        "instances": pa.array([instances for instances, _, _ in rows], pa.int32()),
        "what": pa.array(["replay"] * len(rows), pa.string()),
        "instance": pa.array(numbers, pa.int32()),
        "seconds": pa.array([seconds for _, _, seconds in rows], pa.float64()),
        "host": pa.array([host.host for _, host, _ in rows], pa.string()),
        "received_bytes": pa.array([host.received_bytes for _, host, _ in rows], pa.int64()),
        "sent_bytes": pa.array([host.sent_bytes for _, host, _ in rows], pa.int64()),
    }
    nullable = ("host", "received_bytes", "sent_bytes")
    schema = pa.schema([pa.field(name, each.type, name in nullable) for name, each in columns.items()])
    footer = {
        "schema_version": SCHEMA_VERSION,
        "kind": "scale",
        "source": {"format": "scale", "path": str(plan.trace)},
        "counts": {"calls": len(rows)},
        "complete": complete,
    }
    table = pa.table(columns, schema.with_metadata({"iosonar": json.dumps(footer)}))
    unfinished = plan.output.with_name(f".{plan.output.name}.unfinished")
    try:
        pyarrow.parquet.write_table(table, unfinished, compression="zstd")
        unfinished.replace(plan.output)
    except OSError as error:
        raise UserError(f"cannot write {plan.output}: {error.strerror or error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
