"""How the CLOCK_MONOTONIC of a host relates to the controller's: offset and drift, with bounds that are proven.

An exchange sends a line, which the host answers with its clock. The host read it somewhere between the controller's
two times, however long each direction took; so the true line of the host's time over the controller's time passes
between two points for each exchange. The lines that do so for all exchanges are the solutions of a linear program, and
its extremes at a time bound the offset then. No direction is assumed to take half of a round trip.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

MAX_DRIFT_PPM = 600.0
"""No two clocks differ more: NTP slews by 500 ppm, crystals differ by up to 100 ppm."""

WANDER_PPM = 0.05
"""How much the rate of a crystal changes by its temperature while it is watched; each bound is widened by this."""

MAX_LINES = 400
"""The exchanges that are kept of a long run: the fastest."""


@dataclass(frozen=True)
class Exchange:
    """One question to a host, in nanoseconds."""

    sent_ns: int
    """The controller's CLOCK_MONOTONIC before the question."""
    host_ns: int
    """The host's CLOCK_MONOTONIC."""
    received_ns: int
    """The controller's CLOCK_MONOTONIC after the answer."""
    host_wall_ns: int = 0
    """The host's CLOCK_REALTIME, read at the same moment."""

    @property
    def round_trip_ns(self) -> int:
        """How long it took."""
        return self.received_ns - self.sent_ns


@dataclass(frozen=True)
class Bounds:
    """A value that lies for sure between two limits."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Halfway between the bounds."""
        return (self.low + self.high) / 2

    @property
    def uncertainty(self) -> float:
        """The value differs from the middle by at most this."""
        return (self.high - self.low) / 2

    def overlaps(self, other: Bounds) -> bool:
        """Whether either may be the smaller one."""
        return self.low <= other.high and other.low <= self.high


class ClockError(ValueError):
    """The exchanges contradict each other: a clock was set, or the host was restarted."""


@dataclass(frozen=True)
class HostClock:
    """A host's clock over the controller's, of all exchanges with the host."""

    exchanges: tuple[Exchange, ...]

    @classmethod
    def of(cls, exchanges: Iterable[Exchange]) -> HostClock:
        """From exchanges in any order; of many, the fastest at each time are kept."""
        known = sorted(exchanges, key=lambda each: each.sent_ns)
        if not known:
            raise ClockError("no exchange with the host")
        return cls(tuple(_fastest(known)))

    @classmethod
    def own(cls) -> HostClock:
        """The controller's clock over itself."""
        return cls(())

    def offset_at(self, controller_ns: int) -> Bounds:
        """The host's time minus the controller's, in nanoseconds, at a time of the controller."""
        if not self.exchanges:
            return Bounds(0.0, 0.0)
        at = (controller_ns - self._zero_ns) / 1e3
        low, high = self._extremes(1.0, at)
        return Bounds(self._base_ns + low * 1e3, self._base_ns + high * 1e3)

    def likely_offset_at(self, controller_ns: int) -> float:
        """The most likely offset at a time that no exchange is near to, such as a start in some seconds.

        A short measurement bounds the drift loosely, and the middle of what it allows in a second is far from the
        truth. NTP and PTP keep the rates of clocks within one ppm: of the drifts that the exchanges allow, this takes
        the one nearest to zero. A crystal without them is off by some 20 µs for each second and 20 ppm.
        """
        if not self.exchanges:
            return 0.0
        drift = min(max(0.0, self.drift_ppm.low), self.drift_ppm.high)
        at = (controller_ns - self._zero_ns) / 1e9
        coefficients, limits = self._inequalities
        # The first of each pair of inequalities bounds the offset from above, the second from below.
        left = [limit - row[1] * drift for row, limit in zip(coefficients, limits, strict=True)]
        offset = (min(left[::2]) - min(left[1::2])) / 2
        return self._base_ns + (offset + drift * at) * 1e3

    def controller_time(self, host_ns: int) -> Bounds:
        """When the controller's clock showed what the host's clock shows at `host_ns`."""
        if not self.exchanges:
            return Bounds(host_ns, host_ns)
        about = host_ns - self._base_ns
        offset = self.offset_at(about)
        # The offset changes by less than a nanosecond over what is not known of the time.
        offset = self.offset_at(round(host_ns - offset.middle))
        return Bounds(host_ns - offset.high, host_ns - offset.low)

    @cached_property
    def drift_ppm(self) -> Bounds:
        """How much faster the host's clock runs."""
        if not self.exchanges:
            return Bounds(0.0, 0.0)
        return Bounds(*(1e6 * each for each in self._extremes(0.0, 1.0)))

    @property
    def fastest(self) -> Exchange:
        """The exchange with the shortest round trip."""
        return min(self.exchanges, key=lambda each: each.round_trip_ns)

    @property
    def _zero_ns(self) -> int:
        """The controller's time to which the program refers; the middle makes its numbers small."""
        return (self.exchanges[0].sent_ns + self.exchanges[-1].received_ns) // 2

    @cached_property
    def _base_ns(self) -> int:
        """An offset near to the true one, so that the rest has few digits."""
        return self.fastest.host_ns - (self.fastest.sent_ns + self.fastest.received_ns) // 2

    def _extremes(self, of_offset: float, of_drift: float) -> tuple[float, float]:
        """The least and the greatest value of a combination of offset (in µs) and drift (µs for each µs)."""
        from scipy.optimize import linprog

        # In µs and ppm both unknowns are near to one, as the solver's tolerance needs it.
        unit = 1e-6
        coefficients, limits = self._inequalities
        found = []
        for sign in (1.0, -1.0):
            solved = linprog(
                [sign * of_offset, sign * of_drift * unit],
                A_ub=coefficients,
                b_ub=limits,
                bounds=[(None, None), (-MAX_DRIFT_PPM, MAX_DRIFT_PPM)],
                method="highs",
            )
            if solved.status != 0:
                raise ClockError("no line fits all exchanges: a clock was set or slewed, or the host was restarted")
            found.append(sign * float(solved.fun))
        return found[0], found[1]

    @cached_property
    def _inequalities(self) -> tuple[list[list[float]], list[float]]:
        wander = WANDER_PPM * (self.exchanges[-1].received_ns - self.exchanges[0].sent_ns) / 1e9
        rows, limits = [], []
        for each in self.exchanges:
            sent, received = each.sent_ns - self._zero_ns, each.received_ns - self._zero_ns
            host = each.host_ns - self._zero_ns - self._base_ns
            # The line is not above the host's time when the line was sent, and not below it at the answer.
            rows += [[1.0, sent / 1e9], [-1.0, -received / 1e9]]
            limits += [(host - sent) / 1e3 + wander, (received - host) / 1e3 + wander]
        return rows, limits


def _fastest(known: Sequence[Exchange]) -> list[Exchange]:
    """The fastest exchanges of each part of the time, in order of time."""
    if len(known) <= MAX_LINES:
        return list(known)
    parts = MAX_LINES // 8
    begin, span = known[0].sent_ns, known[-1].sent_ns - known[0].sent_ns + 1
    kept: list[Exchange] = []
    for number in range(parts):
        part = [each for each in known if (each.sent_ns - begin) * parts // span == number]
        kept += sorted(part, key=lambda each: each.round_trip_ns)[:8]
    return sorted(kept, key=lambda each: each.sent_ns)


def order(times: Sequence[Bounds]) -> list[list[int]]:
    """The numbers of events in order of time; those whose order is unknown are in one group.

    Two events whose bounds overlap are in the same group, and with them all that overlap one of a group.
    """
    groups: list[list[int]] = []
    end = float("-inf")
    for number in sorted(range(len(times)), key=lambda each: times[each].low):
        if not groups or times[number].low > end:
            groups.append([])
        groups[-1].append(number)
        end = max(end, times[number].high)
    return groups
