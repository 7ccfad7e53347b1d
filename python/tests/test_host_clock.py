"""The estimator of hosts' clocks: the truth lies within its bounds, whatever the delays are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from iosonar.campaign.hosts.clock import MAX_LINES, Bounds, ClockError, Exchange, HostClock, order

TRIALS = 1000


class MadeHost:
    """A host with a known clock, behind a line with a random delay in each direction."""

    def __init__(self, chance: np.random.Generator) -> None:
        self.chance = chance
        self.offset_ns = int(chance.integers(-(10**16), 10**16))
        self.drift_ppm = float(chance.uniform(-100, 100))
        # One direction may take a hundred times as long as the other.
        self.least_ns = chance.uniform(5e3, 5e6), chance.uniform(5e3, 5e6)
        self.jitter_ns = chance.uniform(1e3, 1e7), chance.uniform(1e3, 1e7)
        self.zero_ns = int(chance.integers(0, 10**15))

    def offset_at(self, controller_ns: int) -> float:
        return self.offset_ns + self.drift_ppm * (controller_ns - self.zero_ns) / 1e6

    def asked(self, sent_ns: int) -> Exchange:
        there, back = (
            least + self.chance.exponential(jitter) for least, jitter in zip(self.least_ns, self.jitter_ns, strict=True)
        )
        read = sent_ns + int(there)
        return Exchange(sent_ns, read + round(self.offset_at(read)), read + int(back) + 1)

    def bursts(self, count: int, each: int, every_s: float) -> list[Exchange]:
        found = []
        for number in range(count):
            sent = self.zero_ns + round(number * every_s * 1e9)
            for _ in range(each):
                found.append(self.asked(sent))
                sent = found[-1].received_ns + 1000
        return found


def test_the_truth_is_within_the_bounds_of_1000_trials() -> None:
    missed, gained = 0, []
    for seed in range(TRIALS):
        host = MadeHost(np.random.default_rng(seed))
        exchanges = host.bursts(3, 12, 20.0)
        clock = HostClock.of(exchanges)
        at = host.zero_ns + int(host.chance.integers(0, 40 * 10**9))
        bounds = clock.offset_at(at)
        # Nanoseconds of rounding: floats have 53 bits.
        missed += not bounds.low - 2 <= host.offset_at(at) <= bounds.high + 2
        drift = clock.drift_ppm
        missed += not drift.low <= host.drift_ppm <= drift.high
        gained.append(bounds.uncertainty / (clock.fastest.round_trip_ns / 2))
    assert missed <= TRIALS // 100
    # The bounds are no wider than those of one exchange, but for what a clock may drift since it.
    assert np.median(gained) < 1.3


def test_a_short_measurement_suffices_for_disciplined_clocks() -> None:
    likely, middle = [], []
    for seed in range(200):
        host = MadeHost(np.random.default_rng(seed))
        host.drift_ppm, host.least_ns, host.jitter_ns = float(host.chance.normal(0, 1)), (1e5, 1e5), (1e5, 1e5)
        exchanges = host.bursts(2, 20, 0.5)
        clock = HostClock.of(exchanges)
        at = exchanges[-1].received_ns + 2 * 10**9
        bounds = clock.offset_at(at)
        likely.append(abs(clock.likely_offset_at(at) - host.offset_at(at)))
        middle.append(abs(bounds.middle - host.offset_at(at)))
        assert bounds.low - 2 <= clock.likely_offset_at(at) <= bounds.high + 2
    # NTP keeps rates within one ppm; the exchanges bound them to hundreds, so the middle of the bounds is
    # further away in two seconds.
    assert np.median(likely) < np.median(middle) / 2


def test_a_drift_that_the_exchanges_prove_counts() -> None:
    for drift in (-90.0, 90.0):
        host = MadeHost(np.random.default_rng(11))
        host.drift_ppm = drift
        clock = HostClock.of(host.bursts(3, 12, 600.0))
        at = host.zero_ns + 1800 * 10**9
        bounds = clock.offset_at(at)
        assert bounds.low - 2 <= clock.likely_offset_at(at) <= bounds.high + 2
        assert abs(clock.likely_offset_at(at) - host.offset_at(at)) < abs(drift) * 600e3
    assert HostClock.own().likely_offset_at(5) == 0.0


def test_a_time_of_the_host_is_found_on_the_controllers_clock() -> None:
    for seed in range(200):
        host = MadeHost(np.random.default_rng(seed))
        clock = HostClock.of(host.bursts(3, 12, 20.0))
        at = host.zero_ns + 13 * 10**9
        found = clock.controller_time(at + round(host.offset_at(at)))
        assert found.low - 3 <= at <= found.high + 3


def test_more_exchanges_never_widen_the_bounds_but_by_wander() -> None:
    host = MadeHost(np.random.default_rng(7))
    exchanges = host.bursts(10, 10, 1.0)
    at = host.zero_ns + 5 * 10**9
    few, many = HostClock.of(exchanges[::3]).offset_at(at), HostClock.of(exchanges).offset_at(at)
    assert few.low - 500 <= many.low <= many.high <= few.high + 500


def test_of_many_exchanges_the_fastest_are_kept() -> None:
    host = MadeHost(np.random.default_rng(8))
    exchanges = host.bursts(100, 40, 10.0)
    clock = HostClock.of(exchanges)
    assert len(clock.exchanges) <= MAX_LINES
    assert clock.fastest == min(exchanges, key=lambda each: each.round_trip_ns)
    assert abs(clock.offset_at(host.zero_ns).middle - host.offset_ns) <= clock.offset_at(host.zero_ns).uncertainty + 2


def test_a_clock_that_jumps_is_an_error_and_no_number() -> None:
    host = MadeHost(np.random.default_rng(9))
    before = host.bursts(1, 10, 1.0)
    host.offset_ns += 10**9
    after = [host.asked(each.received_ns + 10**9) for each in before]
    with pytest.raises(ClockError, match="no line fits"):
        HostClock.of(before + after).offset_at(host.zero_ns)
    with pytest.raises(ClockError, match="no exchange"):
        HostClock.of([])


def test_events_with_overlapping_bounds_have_no_order() -> None:
    times = [Bounds(10, 12), Bounds(0, 3), Bounds(2, 5), Bounds(11, 15), Bounds(5.5, 9)]
    assert order(times) == [[1, 2], [4], [0, 3]]
    assert order([]) == []
    assert not times[0].overlaps(times[4]) and times[0].overlaps(times[3])


def test_order_of_groups_holds_for_all_their_events() -> None:
    chance = np.random.default_rng(1)
    for _ in range(200):
        times = [Bounds(low, low + wide) for low, wide in chance.exponential(1, (20, 2))]
        groups = order(times)
        assert sorted(each for group in groups for each in group) == list(range(20))
        for before, after in pairwise(groups):
            assert max(times[each].high for each in before) < min(times[each].low for each in after)
