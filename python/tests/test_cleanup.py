"""Removal at exit: child processes before files, and the newest file first."""

from iosonar.cleanup import Cleanup


def test_processes_end_before_their_files_are_removed() -> None:
    cleanup, done = Cleanup(), list[str]()
    cleanup.add(lambda: done.append("directory"))
    cleanup.add(lambda: done.append("process"), process=True)
    cleanup.add(lambda: done.append("file in the directory"))
    cleanup.run_all_and_block()
    assert done == ["process", "file in the directory", "directory"]
