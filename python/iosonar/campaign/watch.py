"""Shows the progress of a leaf's replays: a table on a terminal, JSON lines with --json, else a line each minute."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosonar import units
from iosonar.campaign.plan import Instance
from iosonar.text import lines

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from iosonar.campaign.hosts import RunStatus

QUIET_LINE_EVERY_S = 60.0
"""Without a terminal, a line about all instances is printed this often."""


PROGRESS = "progress"
"""The file in the campaign's own directory that has the leaf that runs now, and how far it is."""


class Events:
    """Prints what happens: `--json` as a JSON line on standard output, else as text on standard error."""

    def __init__(self, as_json: bool):
        self.as_json = as_json

    def say(self, text: str, **fields: Any) -> None:
        """An event with its text."""
        if self.as_json:
            self.emit("note", text=text, **fields)
        else:
            print(lines(text), file=sys.stderr, flush=True)

    def emit(self, event: str, **fields: Any) -> None:
        """An event for programs."""
        if self.as_json:
            print(json.dumps({"event": event, "at": round(time.time(), 3), **fields}), flush=True)


class Watch:
    """The progress of the instances of a leaf, from start to end of their replays."""

    def __init__(self, leaf: str, instances: Sequence[Instance], events: Events, directory: Path):
        self._leaf = leaf
        self._file = directory / PROGRESS
        self._instances = instances
        self._events = events
        self._rows = "calls" if any(each.of_calls for each in instances) else "requests"
        self._statuses: list[RunStatus | None] = [None] * len(instances)
        self._next_line = time.monotonic() + QUIET_LINE_EVERY_S
        self._live: Live | None = None

    def __enter__(self) -> Watch:
        if not self._events.as_json and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(self._table(), console=Console(stderr=True), transient=True, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.unlink(missing_ok=True)
        if self._live:
            self._live.stop()

    def show(self, index: int, status: RunStatus) -> None:
        """The state of an instance."""
        self._statuses[index] = status
        instance = self._instances[index]
        if self._events.as_json:
            self._events.emit(
                "progress",
                leaf=self._leaf,
                host=instance.host,
                device=instance.device,
                state=status.state,
                progress=status.progress,
            )
        if index < len(self._instances) - 1:
            return
        self._write()
        if self._live:
            self._live.update(self._table(), refresh=True)
        elif not self._events.as_json and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + QUIET_LINE_EVERY_S
            self._events.say(self._line())

    def _write(self) -> None:
        """For `iosonar campaign status`."""
        unfinished = self._file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps({"leaf": self._leaf, "progress": how_far(self._slowest() or {})}))
        unfinished.replace(self._file)

    def standing(self) -> str:
        """How far the replays are; empty if that is not known."""
        slowest = self._slowest()
        return f"the replay at {how_far(slowest)}" if slowest else ""

    def _slowest(self) -> dict[str, Any] | None:
        known = [status.progress for status in self._statuses if status and status.progress]
        return min(known, key=lambda each: each.get("time_s") or 0.0) if known else None

    def _line(self) -> str:
        known = [status.progress for status in self._statuses if status and status.progress]
        slowest = self._slowest()
        if not slowest:
            return f"{self._leaf}: {len(self._instances)} replays run"
        delay = max(each.get("delay_s") or 0.0 for each in known)
        rate = sum(each.get("rate_per_s") or 0.0 for each in known)
        return (
            f"{self._leaf}: {len(self._instances)} replays, at {how_far(slowest)}, {rate:,.0f} {self._rows}/s in all, "
            f"largest delay {units.seconds(delay)}"
        )

    def _table(self) -> Table:
        from rich import box
        from rich.table import Table

        table = Table(title=self._leaf, title_justify="left", box=box.SIMPLE_HEAD)
        for name in ("host", "device", "state"):
            table.add_column(name)
        for name in ("time", self._rows, f"{self._rows}/s", "delay"):
            table.add_column(name, justify="right")
        for instance, status in zip(self._instances, self._statuses, strict=True):
            progress = (status and status.progress) or {}
            state = status.state if status else "starting"
            table.add_row(
                instance.host,
                instance.device,
                str(progress.get("state") or state) if state == "running" else state,
                how_far(progress) if progress else "",
                f"{progress.get('completed') or 0:,}" if progress else "",
                f"{progress.get('rate_per_s') or 0:,.0f}" if progress else "",
                units.seconds(progress.get("delay_s") or 0.0) if progress else "",
            )
        return table


def how_far(progress: dict[str, Any]) -> str:
    """How far a replay is."""
    at, of = max(progress.get("time_s") or 0.0, 0.0), progress.get("of_s")
    return f"{at:.0f} s of {of:.0f} s" if of else f"{at:.0f} s"
