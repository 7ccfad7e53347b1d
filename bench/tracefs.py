"""Records events of the block layer for one device, by the kernel's clock, in a tracefs instance of its own."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

TRACEFS = Path("/sys/kernel/tracing")


class Recording:
    """Records events, such as `block_bio_queue`, while it is entered; `lines` are then those of the kernel's text."""

    def __init__(self, device: str, *events: str, buffer_kib: int = 200_000) -> None:
        if not (TRACEFS / "instances").is_dir():
            subprocess.run(["mount", "-t", "tracefs", "none", str(TRACEFS)], check=True)
        number = Path(device).stat().st_rdev
        if not number:
            raise SystemExit(f"{device} is no block device")
        self.filter = f"dev == {(os.major(number) << 20) | os.minor(number)}"
        self.events, self.buffer_kib = events, buffer_kib
        self.directory = TRACEFS / "instances" / f"iosonar_bench_{os.getpid()}"

    def _set(self, name: str, value: object) -> None:
        (self.directory / name).write_text(str(value))

    def __enter__(self) -> "Recording":
        self.directory.mkdir()
        self._set("tracing_on", 0), self._set("buffer_size_kb", self.buffer_kib), self._set("trace_clock", "mono")
        for event in self.events:
            self._set(f"events/block/{event}/filter", self.filter), self._set(f"events/block/{event}/enable", 1)
        self._set("tracing_on", 1)
        return self

    def stop(self) -> None:
        """Ends the recording; fails if events were lost."""
        self._set("tracing_on", 0)
        lost = re.compile(r"^(?:overrun|dropped events): ([1-9]\d*)", re.MULTILINE)
        if any(lost.search(each.read_text()) for each in self.directory.glob("per_cpu/cpu*/stats")):
            raise SystemExit("the kernel's buffer overran: measure for a shorter time")

    def lines(self) -> Iterator[str]:
        """What was recorded, in the order of time."""
        with (self.directory / "trace").open() as lines:
            yield from lines

    def __exit__(self, *failed: object) -> None:
        self._set("tracing_on", 0)
        for event in self.events:
            self._set(f"events/block/{event}/enable", 0)
        self.directory.rmdir()
