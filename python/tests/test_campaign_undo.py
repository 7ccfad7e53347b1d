"""The undo journal of campaigns."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest

from iosonar.campaign.hosts import Completed
from iosonar.campaign.undo import Undo
from iosonar.errors import UserError


def run_here(_: str, command: str) -> Completed:
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    return Completed(done.returncode, done.stdout, done.stderr)


def test_an_entry_is_a_file_with_host_what_and_command(tmp_path: Path) -> None:
    undo = Undo(tmp_path / "undo")
    id_ = undo.add("a", "remove the volume\ngroup", "vgremove -f vg-test\necho done\n---\necho $(id)")
    assert (tmp_path / "undo" / id_).read_text() == (
        "host: a\nwhat: remove the volume group\n---\nvgremove -f vg-test\necho done\n---\necho $(id)\n"
    )
    (entry,) = undo.entries()
    assert (entry.id, entry.host, entry.what) == (id_, "a", "remove the volume group")
    assert entry.command == "vgremove -f vg-test\necho done\n---\necho $(id)"


def test_entries_are_undone_in_reverse_order_and_removed(tmp_path: Path) -> None:
    undo, log = Undo(tmp_path / "undo"), tmp_path / "log"
    for number in range(12):
        undo.add("a", "write", f"echo {number} >>{log}")
    assert undo.run_all(run_here) == []
    assert log.read_text().split() == [str(number) for number in reversed(range(12))]
    assert undo.entries() == []
    assert undo.run_all(run_here) == []


def test_an_entry_that_fails_stays_and_the_others_are_undone(tmp_path: Path) -> None:
    undo, log = Undo(tmp_path / "undo"), tmp_path / "log"

    def run(host: str, command: str) -> Completed:
        if host == "b":
            raise UserError("b: no route to host")
        return run_here(host, command)

    undo.add("a", "write", f"echo first >>{log}")
    undo.add("b", "unreachable", "true")
    undo.add("a", "fail", "echo the device is busy >&2; exit 3")
    failures = undo.run_all(run)
    assert [(each.entry.what, each.reason) for each in failures] == [
        ("fail", "the device is busy"),
        ("unreachable", "b: no route to host"),
    ]
    assert [entry.what for entry in undo.entries()] == ["unreachable", "fail"]
    assert log.read_text() == "first\n"


def test_numbers_are_unique_among_threads_and_processes(tmp_path: Path) -> None:
    first, second = Undo(tmp_path / "undo"), Undo(tmp_path / "undo")
    ids: list[str] = []

    def add(undo: Undo) -> None:
        ids.extend(undo.add("a", "nothing", "true") for _ in range(20))

    threads = [threading.Thread(target=add, args=(undo,)) for undo in (first, second, first)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 60 == len(first.entries())
    newest = max(ids)
    first.done(newest)
    first.done(newest)
    assert Undo(tmp_path / "undo").entries()[-1].id < newest
    if first.add("a", "nothing", "true") == newest:
        pytest.fail("a number was used again")


def test_a_damaged_entry_is_named(tmp_path: Path) -> None:
    undo = Undo(tmp_path / "undo")
    undo.add("a", "nothing", "true")
    (tmp_path / "undo/000002").write_text("host: a\nwhat: half")
    (tmp_path / "undo/000003.part").write_text("host: a\nwhat: half")
    with pytest.raises(UserError, match="000002 is not an entry of the undo journal"):
        undo.entries()
