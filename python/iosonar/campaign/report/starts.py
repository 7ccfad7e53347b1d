"""How the hosts of a leaf began: the start skew with its uncertainty, and hosts that were late, lost or restarted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iosonar import units
from iosonar.campaign.hosts.clock import Bounds, order
from iosonar.campaign.state import InstanceState
from iosonar.text import listed, plain

LATE_S = 1e-3
"""An instance that began later than this for sure was late: much of a load comes in a millisecond."""

MAX_LISTED = 8


@dataclass(frozen=True)
class Start:
    """The start of an instance by the controller's clock, and how it ended."""

    host: str
    device: str
    state: str
    reason: str
    skew_s: float | None
    uncertainty_s: float | None
    drift_ppm: float | None
    boot_id: str

    @classmethod
    def of(cls, state: InstanceState) -> Start:
        """From the record of a leaf. Older records have no uncertainty: that of the clock was used."""
        uncertainty = state.start_skew_uncertainty_s
        return cls(
            plain(state.host),
            plain(state.device),
            plain(state.state),
            plain(state.reason),
            state.start_skew_s,
            state.clock_uncertainty_s if uncertainty is None else uncertainty,
            state.clock_drift_ppm,
            plain(state.boot_id),
        )

    @property
    def bounds(self) -> Bounds | None:
        """When it began, in seconds after the common start; None if unknown."""
        if self.skew_s is None or self.uncertainty_s is None:
            return None
        return Bounds(self.skew_s - self.uncertainty_s, self.skew_s + self.uncertainty_s)

    @property
    def is_late(self) -> bool:
        """Whether it began too late for sure."""
        return self.bounds is not None and self.bounds.low > LATE_S

    @property
    def words(self) -> str:
        """The skew with its uncertainty."""
        if self.skew_s is None or self.uncertainty_s is None:
            return "–"
        return f"{units.seconds(self.skew_s)} ± {units.seconds(self.uncertainty_s, 2)}"


def ranks(starts: Sequence[Start]) -> dict[int, str]:
    """The order in which instances began, as far as it is known: those whose order is unknown have the same rank."""
    known = [(number, bounds) for number, each in enumerate(starts) if (bounds := each.bounds)]
    found: dict[int, str] = {}
    before = 0
    for group in order([bounds for _, bounds in known]):
        last = before + len(group)
        rank = str(last) if len(group) == 1 else f"{before + 1}–{last}"
        found |= {known[each][0]: rank for each in group}
        before = last
    return found


def sentences(leaf: str, starts: Sequence[Start]) -> Iterator[str]:
    """Hosts of a leaf that were late, lost or restarted."""
    if late := [f"{each.host}:{each.device} by {each.words}" for each in starts if each.is_late]:
        yield f"in {leaf}, began late: {_some(late)}"
    restarted = [each for each in starts if "the host was restarted" in each.reason]
    if restarted:
        yield f"in {leaf}, restarted: {_some(_hosts(restarted))}"
    lost = [
        each
        for each in starts
        if each not in restarted
        and each.state == "failed"
        and any(words in each.reason for words in ("unreachable", "is gone", "were killed", "no connection"))
    ]
    if lost:
        yield f"in {leaf}, lost: {_some(_hosts(lost))}"


def _hosts(starts: Sequence[Start]) -> list[str]:
    return list(dict.fromkeys(each.host for each in starts))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"{', '.join(names[:MAX_LISTED])}{more}" if more else listed(list(names))


def rows(leaf: str, starts: Sequence[Start]) -> Iterator[tuple[str, ...]]:
    """A row for each instance: leaf, host, device, skew, order of start, drift."""
    order_of = ranks(starts)
    for number, each in enumerate(starts):
        drift = "–" if each.drift_ppm is None else f"{each.drift_ppm:+.2f} ppm"
        yield leaf, each.host, each.device, each.words, order_of.get(number, "–"), drift, each.state
