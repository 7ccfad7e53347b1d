"""The percentiles that a user chose."""

from __future__ import annotations

from collections.abc import Iterable

from iosonar.errors import UsageError
from iosonar.quantities.difference import SHARES
from iosonar.quantities.percentiles import share_of
from iosonar.report.gate import Condition

MAX_PERCENTILES = 5
"""More lines of a diagram could not be distinguished."""


def parse_percentiles(text: str) -> tuple[float, ...]:
    """Parses percentiles, in ascending order and percent: 50,95,99.9 or p50,p95. None without a text.

    Raises UsageError if one is none, or if there are too many.
    """
    words = [word.strip().lower().removeprefix("p") for word in text.split(",") if text.strip()]
    wrong = next((word for word in words if share_of(f"p{word}") is None), None)
    if wrong is not None:
        raise UsageError(f"--percentiles: `{wrong}` is not a percentile above 0 and below 100; write 50,95,99.9")
    found = sorted({float(word) for word in words})
    if len(found) > MAX_PERCENTILES:
        raise UsageError(f"--percentiles: at most {MAX_PERCENTILES}, such as 50,95,99.9")
    return tuple(found)


def compared_percentiles(text: str, conditions: Iterable[Condition]) -> tuple[float, ...]:
    """The same for a comparison, with those whose change a condition is about; none for the usual ones."""
    named = {share for each in conditions if each.is_change and (share := share_of(each.metric))}
    chosen = {round(share / 100, 10) for share in parse_percentiles(text)}
    if not named - (chosen or set(SHARES)):
        return tuple(share * 100 for share in sorted(chosen))
    return tuple(share * 100 for share in sorted((chosen or set(SHARES)) | named))
