"""Suits Python, NumPy and the C library to programs that allocate much and exit soon."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

OBJECTS = 100_000
"""Allocations between two garbage collections, some 10 MB.

The default of some hundreds costs 10 % of a page's CPU time.
"""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""

KEPT_BYTES = 256 << 20
"""Free memory that is kept for the next array: the kernel clears each page that it allocates."""

MAPPED_BYTES = 64 << 20
"""Larger arrays are returned to the kernel at once."""


def tune() -> None:
    """Call it once, at the start of a program."""
    gc.set_threshold(OBJECTS, 50, 100)
    # Of the GNU C library.
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
