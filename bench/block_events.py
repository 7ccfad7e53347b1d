"""When requests reached the block layer and when they completed there, by the kernel's clock, of any program."""

import re

import numpy as np
from tracefs import Recording

QUEUED, COMPLETED = "block_bio_queue", "block_rq_complete"
LINE = re.compile(rf"\s(\d+)\.(\d+): ({QUEUED}|{COMPLETED}): \d+,\d+ R\S* (?:\(\) )?(\d+) \+ \d+", re.ASCII)


class ReadEvents:
    """Records the reads of a device while it is entered: times in µs of CLOCK_MONOTONIC, and sectors."""

    def __init__(self, device: str) -> None:
        self.recording = Recording(device, QUEUED, COMPLETED)
        self.queued: tuple[np.ndarray, np.ndarray] = ()
        self.completed: tuple[np.ndarray, np.ndarray] = ()

    def __enter__(self) -> "ReadEvents":
        self.recording.__enter__()
        return self

    def __exit__(self, *failed: object) -> None:
        try:
            if not failed[0]:
                self.recording.stop()
                self._read()
        finally:
            self.recording.__exit__(*failed)

    def _read(self) -> None:
        found: dict[str, list[tuple[int, int]]] = {QUEUED: [], COMPLETED: []}
        for line in self.recording.lines():
            if m := LINE.search(line):
                found[m[3]].append((int(m[1]) * 1_000_000 + int(m[2]), int(m[4])))
        self.queued, self.completed = (
            np.array(found[event], np.int64).reshape(-1, 2).T for event in (QUEUED, COMPLETED)
        )


def times_of(events: tuple[np.ndarray, np.ndarray], sectors: np.ndarray) -> np.ndarray:
    """The time of each request, given the sectors in the order of the requests; NaN where the kernel saw none.

    Equal sectors are matched from the last one on, because a program may read the device before it begins.
    """
    times, seen = events
    found = np.full(len(sectors), np.nan)
    here, there = _keys(sectors), _keys(seen)
    _, a, b = np.intersect1d(here, there, assume_unique=True, return_indices=True)
    found[a] = times[b]
    return found


def _keys(sectors: np.ndarray) -> np.ndarray:
    """A number for each request: its sector, and how many requests to it follow."""
    order = np.argsort(sectors[::-1], kind="stable")
    ordered = sectors[::-1][order]
    first = np.searchsorted(ordered, ordered, "left")
    keys = np.empty(len(sectors), np.int64)
    keys[order] = ordered * 4096 + np.minimum(np.arange(len(sectors)) - first, 4095)
    return keys[::-1]
