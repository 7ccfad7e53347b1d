"""Limits of what the results of a run say, in one place for runs and campaigns."""

MIN_BEYOND = 10
"""The fewest requests beyond a percentile: with fewer, chance would determine it."""

UNFILLED = 0.1
"""From this share of reads that return only zeros on, the target counts as not filled: devices answer reads of areas
that were never written without reading their medium."""


def is_unfilled(zeros: int, reads: int) -> bool:
    """Whether so many reads returned only zeros that the target was not filled."""
    return zeros > 0 and zeros >= UNFILLED * reads
