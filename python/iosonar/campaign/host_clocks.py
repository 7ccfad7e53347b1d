"""The clocks of a leaf's hosts: measured before, during and after its replays, for a common start and its skew."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosonar.campaign.hosts.clock import ClockError, Exchange, HostClock
from iosonar.errors import UserError

if TYPE_CHECKING:
    from iosonar.campaign.hosts import Hosts
    from iosonar.campaign.state import InstanceState

WHILE_RUNNING = 12
"""Exchanges at a time during a run: few, as they take the host's processors for some milliseconds."""


NEAR_NS = 3_000_000
"""Below this round trip, the controller's own processors are what delays exchanges with many hosts at a time."""

REFINING_S = 1.0
"""How long hosts are measured again, one after the other."""


class HostClocks:
    """All exchanges with the hosts of a leaf. Every method may be called by several threads at a time."""

    def __init__(self, hosts: Hosts, log: Callable[[str], None]) -> None:
        self._hosts = hosts
        self._log = log
        self._exchanges: dict[str, list[Exchange]] = {}
        self._boots: dict[str, str] = {}
        self._lock = threading.Lock()

    def measure(self, name: str, exchanges: int | None = None) -> None:
        """Asks a host for its clocks. Raises UserError if it was restarted since it was first asked."""
        host = self._hosts.get(name)
        found = host.clock() if exchanges is None else host.clock(exchanges)
        with self._lock:
            if self._boots.setdefault(name, found.boot_id) != found.boot_id:
                raise UserError(f"{name}: the host was restarted during the leaf")
            self._exchanges.setdefault(name, []).extend(found.exchanges)

    def refine(self, names: Iterable[str]) -> None:
        """Measures near hosts again, one after the other, those with the slowest exchanges first."""
        with self._lock:
            fastest = {
                name: min(each.round_trip_ns for each in known)
                for name in names
                if (known := self._exchanges.get(name))
            }
        until = time.monotonic() + REFINING_S
        for name in sorted(fastest, key=lambda name: -fastest[name]):
            if fastest[name] > NEAR_NS:
                continue
            if time.monotonic() > until:
                return
            self.measure(name)

    def forget(self) -> None:
        """Forgets what was measured before an attempt that did not start."""
        with self._lock:
            self._exchanges.clear()

    def restarted(self, name: str) -> bool:
        """Whether a host was restarted since it was first asked; False if that is not known."""
        try:
            found = self._hosts.get(name).clock(1)
        except UserError:
            return False
        return self._boots.get(name, found.boot_id) != found.boot_id

    def clock_of(self, name: str) -> HostClock:
        """A host's clock, of all exchanges so far."""
        with self._lock:
            known = list(self._exchanges.get(name, ()))
        return HostClock.of(known) if known else HostClock.own()

    def solved(self, name: str) -> HostClock:
        """A host's clock with its drift known: what takes time, with many hosts, before a start can be chosen."""
        clock = self.clock_of(name)
        _ = clock.drift_ppm
        return clock

    @staticmethod
    def wall_time(clock: HostClock, controller_ns: int, own_wall_ns: int) -> str:
        """A time of the controller's CLOCK_MONOTONIC as `--start-file` needs it: by CLOCK_REALTIME of the host.

        `own_wall_ns` is what the controller's CLOCK_REALTIME is ahead of its CLOCK_MONOTONIC.
        """
        ahead = own_wall_ns
        if clock.exchanges:
            last = clock.exchanges[-1]
            ahead = last.host_wall_ns - last.host_ns
        wall = controller_ns + round(clock.likely_offset_at(controller_ns)) + ahead
        return f"{wall // 10**9}.{wall % 10**9:09}"

    def note(self, state: InstanceState, result: Path, start_ns: int) -> None:
        """Notes the offset, the drift and the start skew of an instance, each with its uncertainty."""
        try:
            clock = self.clock_of(state.host)
            offset = clock.offset_at(start_ns)
            drift = clock.drift_ppm
            state.clock_offset_s, state.clock_uncertainty_s = offset.middle / 1e9, offset.uncertainty / 1e9
            state.clock_drift_ppm, state.clock_drift_uncertainty_ppm = drift.middle, drift.uncertainty
            state.clock_exchanges = len(clock.exchanges)
            state.boot_id = self._boots.get(state.host, "")
            began = _started(result)
            if began is not None:
                at = clock.controller_time(began)
                state.start_skew_s = (at.middle - start_ns) / 1e9
                state.start_skew_uncertainty_s = at.uncertainty / 1e9
        except ClockError as error:
            self._log(f"{state.host}: start skew unknown: {error}\n")


def _started(result: Path) -> int | None:
    """When the run started, in nanoseconds of its host's CLOCK_MONOTONIC; None if the file does not say it."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        metadata = pyarrow.parquet.read_metadata(result).metadata or {}
        footer: dict[str, Any] = json.loads(metadata.get(b"iosonar", b"{}"))
    except (pa.ArrowException, OSError, ValueError, RecursionError):
        # The report says what is wrong with the file.
        return None
    run = footer.get("run")
    nanoseconds = run.get("started_monotonic_ns") if isinstance(run, dict) else None
    return nanoseconds if isinstance(nanoseconds, int) else None
