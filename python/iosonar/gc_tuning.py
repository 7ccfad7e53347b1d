"""Makes Python's cyclic garbage collector run rarely."""

from __future__ import annotations

import gc

OBJECTS = 100_000
"""Allocations between two collections, some 10 MB. The default of some hundreds costs 10 % of a page's CPU time."""


def collect_rarely() -> None:
    """Suits programs that allocate many small objects and exit soon."""
    gc.set_threshold(OBJECTS, 50, 100)
