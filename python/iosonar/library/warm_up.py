"""The window of time without the warm-up of runs, whose end is that of `study/steady.py`, by MSER."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iosonar import units
from iosonar.study.steady import Timed, steadiness
from iosonar.table import Window


def after_warm_up(runs: Sequence[tuple[str, Timed | None]], window: Window | None, origin_ns: int, noun: str) -> Window:
    """The window from the end of the longest warm-up of these runs, each with its name and None without latencies.

    Their times count from `origin_ns`. It leaves nothing out if the end of any of these warm-ups is unknown.
    """
    given = replace(window or Window(), skips_warm_up=True)
    latest = None
    for name, run in runs:
        found = steadiness(run) if run else None
        if run is None or found is None or found.since_s is None:
            why = found.text if found else f"no {noun} completed"
            of = f" of {name}" if len(runs) > 1 else ""
            return replace(
                given, about=f"No warm-up{of} was left out, as its end is not known: {why[:1].lower()}{why[1:]}."
            )
        if found.since_s > run.first_s:
            latest = max(latest or found.since_s, found.since_s)
    if latest is None:
        return replace(given, about="There was no warm-up to leave out: latency was steady throughout.")
    start_ns = round(latest * 1e9) + origin_ns
    about = f"The warm-up is left out: latency was steady from {units.span(start_ns / 1e9)} on (MSER)."
    return replace(given, from_ns=start_ns, about=about)
