"""The plan of a sensitivity series, and its numbers: a load replayed exactly, and with degraded issue times.

After E. Anderson et al., "Buttress: A toolkit for flexible and high fidelity I/O benchmarking", FAST 2004, figure 9:
Q-X are times that are quantised to X, UD-X uniform delays with a mean of X. Here a delay is *up to* X, with mean X / 2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import fmean

from iosonar.errors import UsageError
from iosonar.pacing import Changes, options_that_change
from iosonar.series.plan import (
    Plan,
    Point,
    fingerprint_of_file,
    fingerprint_of_model,
    refuse_own_options,
    target_words,
)
from iosonar.series.result import Result
from iosonar.text import plain
from iosonar.units import TIME_UNITS

KIND = "sensitivity"
EXACT = "exact"

OWN = (
    *("--output", "-o", "--overwrite", "--json", "--progress", "--target", "-t", "--simulate", "--virtual-time"),
    *("--seed", "--start-file"),
    *(option.name for option in options_that_change(Changes.ISSUE_TIMES, Changes.NOTHING)),
)
"""Options of `replay` that the series itself gives, or that are for a single run."""

_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµμ]+)", re.IGNORECASE)


class Degradation(StrEnum):
    """How the times of issue are degraded."""

    QUANTIZE = "quantize"
    DELAY = "delay"


@dataclass(frozen=True)
class Sensitivity:
    """What the user asked for."""

    load: Path
    times: str
    repeats: int
    targets: Sequence[str]
    simulate: str | None
    virtual_time: bool
    options: Sequence[str]


@dataclass(frozen=True)
class Row:
    """The means of a point's repeats, and their ratios to the exact runs, which have no `how`, and a time of 0."""

    how: Degradation | None
    time_s: float
    runs: int
    response_mean_s: float
    response_p99_s: float
    in_flight: float
    ratio_mean: float
    ratio_p99: float
    ratio_in_flight: float
    faithful: bool | None
    """Whether the exact runs were faithful; the others cannot be, as their delays are on purpose."""
    failed: int
    unfilled: bool = False
    """Whether reads of one of its runs returned only zeros, from areas of the target that were never written."""

    @property
    def counts(self) -> bool:
        """Whether its times are those of the storage."""
        return self.faithful is not False and not self.unfilled

    @property
    def name(self) -> str:
        """The name of the point, without the number of the repeat."""
        return f"{self.how}-{text_of(self.time_s)}" if self.how else EXACT


def plan(wanted: Sensitivity) -> Plan:
    """The plan of a series. The repeats follow each other, so that drift does not look like an effect."""
    refuse_own_options(wanted.options, OWN)
    target = target_words(wanted.targets, wanted.simulate, wanted.virtual_time)
    settings = {
        "load": str(wanted.load),
        "content of the load": fingerprint_of_file(wanted.load),
        "device": list(target),
        "description of the device": fingerprint_of_model(wanted.simulate),
        "options": list(wanted.options),
    }
    times = parsed(wanted.times)
    points = tuple(point for repeat in range(1, wanted.repeats + 1) for point in _points(times, repeat))
    return Plan(KIND, settings, ("replay", str(wanted.load), *target, *wanted.options), points)


def parsed(text: str) -> list[float]:
    """Times in seconds, each once and in ascending order: 10us,1ms."""
    found = set()
    for word in text.split(","):
        match = _TIME.fullmatch(word.strip())
        seconds = float(match[1]) * TIME_UNITS.get(match[2].lower(), math.nan) if match else math.nan
        if not 1e-6 <= seconds <= 60:
            raise UsageError(f"--times: `{plain(word)}` is not a time from 1us to 1m, such as 10us or 100ms")
        found.add(round(seconds, 9))
    return sorted(found)


def text_of(seconds: float) -> str:
    """A time in the largest unit that is exact, as the binary reads it: 10us, 1500us."""
    ns = round(seconds * 1e9)
    size, unit = next(
        (size, unit) for size, unit in ((10**9, "s"), (10**6, "ms"), (1000, "us"), (1, "ns")) if not ns % size
    )
    return f"{ns // size}{unit}"


def _points(times: Sequence[float], repeat: int) -> list[Point]:
    """The exact run and all others of a repeat: they have the same seed."""
    seed = ("--seed", str(repeat))
    found = [Point(f"{EXACT}.{repeat}", 0.0, seed)]
    for how in Degradation:
        for seconds in times:
            # `--perturb delay` takes the mean, which is half of the greatest delay.
            by = seconds if how is Degradation.QUANTIZE else seconds / 2
            words = ("--perturb", f"{how}={text_of(by)}", *seed)
            found.append(Point(f"{how}-{text_of(seconds)}.{repeat}", seconds, words))
    return found


def rows(results: Sequence[Result]) -> list[Row]:
    """A row for the exact runs, then one for each point, by kind and time."""
    groups: dict[tuple[str, float], list[Result]] = {}
    for each in results:
        name = each.name.rsplit(".", 1)[0]
        groups.setdefault((name.split("-")[0], each.value), []).append(each)
    exact = groups.pop((EXACT, 0.0))
    order = sorted(groups, key=lambda key: (list(Degradation).index(Degradation(key[0])), key[1]))
    return [
        _row(None, 0.0, exact, exact),
        *(_row(Degradation(how), time, groups[how, time], _repeats(exact, groups[how, time])) for how, time in order),
    ]


def _repeats(exact: Sequence[Result], of: Sequence[Result]) -> Sequence[Result]:
    """The exact runs with the seeds of these runs, which may be fewer."""
    seeds = {_seed(each) for each in of}
    return [each for each in exact if _seed(each) in seeds] or exact


def _seed(result: Result) -> str:
    return result.name.rsplit(".", 1)[1]


def _row(how: Degradation | None, time_s: float, found: Sequence[Result], exact: Sequence[Result]) -> Row:
    response, p99, in_flight = _means(found)
    base_response, base_p99, base_in_flight = _means(exact)
    return Row(
        how=how,
        time_s=time_s,
        runs=len(found),
        response_mean_s=response,
        response_p99_s=p99,
        in_flight=in_flight,
        ratio_mean=_ratio(response, base_response),
        ratio_p99=_ratio(p99, base_p99),
        ratio_in_flight=_ratio(in_flight, base_in_flight),
        faithful=None if how else all(each.faithful for each in found),
        failed=sum(each.failed for each in found),
        unfilled=any(each.unfilled for each in found),
    )


def _means(found: Sequence[Result]) -> tuple[float, float, float]:
    return (
        fmean(each.latency_mean_s for each in found),
        fmean(each.latency_p99_s for each in found),
        fmean(each.mean_in_flight for each in found),
    )


def _ratio(value: float, base: float) -> float:
    return value / base if base > 0 else math.nan
