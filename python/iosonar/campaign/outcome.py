"""What a leaf found, in a line: the latencies of its instances, verdict, and whether its reads found data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from iosonar import units
from iosonar.campaign.state import InstanceState
from iosonar.text import plain
from iosonar.thresholds import MIN_BEYOND, is_unfilled


def line(instances: Sequence[InstanceState]) -> str:
    """The latencies of a leaf, from the least to the greatest of its instances, and the verdict of the worst."""
    known = [each.summary for each in instances if each.summary]
    if not known:
        return units.counted(len(instances), "result")
    parts = [units.counted(len(instances), "result"), *_latency(known), *_verdict(known), *_requests(known)]
    return ", ".join(parts)


def unfilled(instances: Sequence[InstanceState], *, writes_zeros: bool = False) -> Iterator[str]:
    """A sentence for each instance whose target was not filled, as its reads show."""
    for each in instances:
        summary = each.summary or {}
        zeros, reads = int(summary.get("zero_reads") or 0), int(summary.get("reads") or 0)
        if is_unfilled(zeros, reads):
            why = (
                "the run itself writes zeros, which the storage may not hold; set fill_random=100"
                if writes_zeros
                else "the target was not filled there; set enable_wipe=1"
            )
            yield (
                f"warning: {each.host}:{each.device}: {zeros:,} of {units.counted(reads, 'read')} returned only zeros, "
                f"and their times say nothing about the storage: {why}, and run the leaf again"
            )


def wrapped(instances: Sequence[InstanceState], options: Sequence[str]) -> Iterator[str]:
    """A sentence for each instance whose load is larger than its device, and wrapped around."""
    for each in instances:
        if (factor := wrap_factor(each, options)) > 1:
            yield (
                f"warning: {each.host}:{each.device}: the load is {units.number(factor, 2)} times as large as the "
                "device and wrapped around: the same sectors are accessed more often, and caches look better; use a "
                "larger device, or replay_options=(--edit dense)"
            )


def wrap_factor(instance: InstanceState, options: Sequence[str]) -> float:
    """How often the part of the load was as large as the device; 0 if that is not known, or with another --fit."""
    if any(word.split("=")[0] == "--fit" for word in options):
        return 0.0
    found = (instance.summary or {}).get("wrap_factor")
    return float(found) if isinstance(found, int | float) else 0.0


def is_unfaithful(instances: Sequence[InstanceState]) -> bool:
    """Whether the verdict on an instance is that it was not faithful."""
    verdicts = [(each.summary or {}).get("verdict") for each in instances]
    return any(verdict and not verdict.get("faithful") for verdict in verdicts)


def _latency(known: Sequence[dict[str, Any]]) -> Iterator[str]:
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        found = [
            each["latency_us"][name] / 1e6
            for each in known
            if each.get("latency_us")
            and int(each.get("completed") or each.get("issued") or 0) * (1 - share) >= MIN_BEYOND - 1e-6
        ]
        if found:
            yield f"{name} {' … '.join(dict.fromkeys(units.seconds(value) for value in (min(found), max(found))))}"


def _verdict(known: Sequence[dict[str, Any]]) -> Iterator[str]:
    if any(each.get("fake") for each in known):
        yield "FAKE"
        return
    verdicts = [each["verdict"] for each in known if each.get("verdict")]
    if verdicts:
        yield "faithful" if all(each.get("faithful") for each in verdicts) else "NOT faithful"


def _requests(known: Sequence[dict[str, Any]]) -> Iterator[str]:
    def total(*names: str) -> int:
        return sum(int(each.get(name) or 0) for each in known for name in names)

    if failed := total("errors", "short", "unfinished"):
        yield f"{units.counted(failed, 'request')} failed"
    if differ := total("mismatches"):
        yield f"{units.counted(differ, 'call')} with other results"
    if dropped := total("dropped"):
        yield f"{units.counted(dropped, 'request')} dropped"
    zeros, reads = total("zero_reads"), total("reads")
    if is_unfilled(zeros, reads):
        yield plain(f"{zeros:,} of {units.counted(reads, 'read')} returned only zeros: fill the target (enable_wipe=1)")
