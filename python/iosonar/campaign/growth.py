"""Copies results while they grow: the journal of each replay, so that a leaf that fails keeps what was measured."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from iosonar.campaign.hosts import LOCALHOST, Hosts
from iosonar.campaign.program import own_program
from iosonar.errors import UserError

EVERY_S = 10.0
"""How often what has been added to a journal is copied from its host."""

JOURNAL = ".journal"

_WITH_ROWS = 1 << 14
"""A journal of fewer bytes may have no rows."""


def local_journal(leaf: Path, output: str) -> Path:
    """The copy of the journal of an instance with that output."""
    return leaf / f".{output}{JOURNAL}"


def in_parquet(output: str) -> str:
    """The name of the result of an instance with that output, before it is converted."""
    return f"{output.removesuffix('.gz').removesuffix('.parquet')}.parquet"


class Growth:
    """Copies journals while replays run; after an error, once more what the hosts have that still answer."""

    def __init__(self, hosts: Hosts, journals: Mapping[str, Mapping[str, Path]]) -> None:
        """`journals` has for each host the paths of its journals and of their copies."""
        self._hosts = hosts
        self._journals = journals
        self._ended = threading.Event()
        # If this machine is lost, so is a copy on it.
        others = [name for name in journals if name != LOCALHOST]
        self._threads = [threading.Thread(target=self._copy_often, args=(name,), daemon=True) for name in others]

    def __enter__(self) -> Growth:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        if not kind:
            self._join(self._threads)
            return
        # What cannot be reached now was waited for.
        with self._hosts.without_waiting():
            self._join(self._threads)
            last = [threading.Thread(target=self._copy, args=(name,), daemon=True) for name in self._journals]
            for thread in last:
                thread.start()
            self._join(last)

    @staticmethod
    def _join(threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join()

    def _copy_often(self, name: str) -> None:
        while not self._ended.wait(EVERY_S):
            self._copy(name)

    def _copy(self, name: str) -> None:
        for remote, target in self._journals[name].items():
            # The campaign itself reports lost hosts; the next copy goes on where this one ended.
            with contextlib.suppress(UserError, OSError, zlib.error):
                self._hosts.get(name).grow(remote, target)


def keep(leaf: Path, into: Path) -> list[Path]:
    """Makes incomplete results of the journals that were copied; returns them."""
    kept = []
    for journal in sorted(leaf.glob(f".*{JOURNAL}")):
        target = into / in_parquet(journal.name.removeprefix(".").removesuffix(JOURNAL))
        if journal.stat().st_size:
            into.mkdir(exist_ok=True)
            words = [str(each) for each in (own_program(), "recover", journal, "--output", target)]
            subprocess.run(words, capture_output=True, check=False)
        if target.exists():
            kept.append(target)
        elif journal.stat().st_size >= _WITH_ROWS:
            # `iosonar recover` may still make something of it.
            kept.append(journal.replace(target.with_name(f"{target.name}{JOURNAL}")))
        journal.unlink(missing_ok=True)
    return kept
