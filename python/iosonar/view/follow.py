"""A view of a replay that goes on: reads its journal each second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.errors import UserError
from iosonar.figures.palette import Theme
from iosonar.text import plain, shown
from iosonar.view.figures import Figures
from iosonar.view.growing import NEVER, Growing
from iosonar.view.journal import NEVER as NEVER_IN_JOURNAL
from iosonar.view.journal import OPS, OUTCOMES, REASONS, Journal
from iosonar.view.page import View
from iosonar.view.scales import Kind
from iosonar.view.server import Answer

ENDING = ".journal"
EACH_S = 1.0


class Following(View):
    """A view that grows with the journal of a replay."""

    follows = True

    def __init__(self, journal: Journal, theme: Theme | None) -> None:
        self.journal = journal
        run = journal.header.get("run") or {}
        targets = run.get("targets") or [run.get("target") or {}]
        top = max((int(each.get("sectors") or 0) for each in targets), default=1)
        self.growing = Growing(top)
        self.result = Path(str(journal.path).removesuffix(ENDING))
        self.ended, self.words, self.stop = False, "", Event()
        super().__init__(
            Figures(self.growing.index(), plain(self.result.name), grows=True), plain(self.result.name), None, theme
        )

    def update(self) -> None:
        """Reads what is new."""
        was_written = self.journal.is_written()
        while True:
            entries, places = self.journal.read()
            if not len(entries):
                break
            with self.lock:
                self._add(entries, places)
        if not was_written:
            if not self.journal.path.exists():
                self.words = f"The run has ended: iosonar view {shown(self.result)} shows its result."
            else:
                left = shown(self.journal.path)
                self.words = f"The run no longer writes its journal. If it was killed: iosonar recover {left}"
            # Last: a reader that sees it reads the words.
            self.ended = True

    def _add(self, entries: NDArray[np.void], places: NDArray[np.int64]) -> None:
        issued = entries["issued_ns"] != NEVER_IN_JOURNAL
        self.growing.not_issued += int(np.count_nonzero(~issued))
        self.growing.add(rows_of(entries[issued], places[issued]))
        self.figures.index = self.growing.index()

    def run(self) -> None:
        """Reads until the run ends."""
        while not self.ended and not self.stop.wait(EACH_S):
            self.update()

    def state(self, _: Mapping[str, str]) -> Answer:
        """How far the run is."""
        follows = not self.ended
        with self.lock:
            lead = self.lead()[0]
        left = self.growing.left_out
        more = f" The first {units.requests(left)} are left out here." if left else ""
        text = self.words or f"The run goes on.{more}"
        rows = len(self.growing) + left
        return {"follows": follows, "rows": rows, "text": text, "lead": lead}

    def request(self, query: Mapping[str, str]) -> Answer:
        """What the journal has of a request."""
        with self.lock:
            found = super().request(query)
        assert isinstance(found, dict)
        entry = self.journal.entry_at(found["place"])
        return found | {"columns": columns_of(entry)}


def rows_of(entries: NDArray[np.void], places: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Entries as rows of an index."""
    begin, end = entries["issued_ns"], entries["completed_ns"]
    kind = np.minimum(entries["op"], Kind.OTHER).astype(np.uint8)
    kind[entries["outcome"] > OUTCOMES.index("short")] = Kind.FAILED
    return {
        "begin": begin,
        "latency": np.where(end == NEVER_IN_JOURNAL, NEVER, np.maximum(end, begin) - begin),
        "delay": begin - entries["scheduled_ns"],
        "sector": entries["sector"].astype(np.int64),
        "sectors": entries["sectors"].astype(np.int64) | entries["sectors_high"].astype(np.int64) << 32,
        "kind": kind,
        "place": places,
    }


def columns_of(entry: Mapping[str, int]) -> list[tuple[str, str]]:
    """The columns of a request in its entry, as texts."""
    if not entry:
        return []
    named = {"op": OPS, "outcome": OUTCOMES, "delay_reason": REASONS}
    plain_ones = ("request", "iteration", "device", "op", "in_flight", "waiting", "outcome", "errno", "delay_reason")
    found = [(name, _named(named[name], entry[name]) if name in named else str(entry[name])) for name in plain_ones]
    if entry.get("stream", 0xFFFF) != 0xFFFF:
        found.append(("stream", str(entry["stream"])))
    return found


def _named(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) else str(number)


@contextmanager
def following(run: Path, theme: Theme | None) -> Iterator[Following]:
    """Follows a replay, by the name of its result or of its journal."""
    path = run if run.name.endswith(ENDING) else Path(f"{run}{ENDING}")
    if not path.exists():
        if run.exists():
            raise UserError(f"{shown(run)} is a result, whose run has ended: iosonar view {shown(run)}")
        raise UserError(f"{shown(path)}: no replay writes it; start the replay first")
    view = Following(Journal(path), theme)
    view.update()
    reader = Thread(target=view.run, daemon=True)
    reader.start()
    try:
        yield view
    finally:
        view.stop.set()
        reader.join()
        view.journal.close()
