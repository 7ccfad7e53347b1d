"""Traces of calls: what programs do to files, with one habit that a finding should name, or with none.

Each pattern is a function of a generator of random numbers and of the arguments of the scenario. It returns the threads
of a program, whose calls `write` puts into one table.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, Any]
US = 1_000
ENOENT = 2

TYPES: dict[str, pa.DataType] = {
    "begin_ns": pa.int64(),
    "duration_ns": pa.int64(),
    "thread": pa.int32(),
    "process": pa.int32(),
    "call": pa.string(),
    "fd": pa.int32(),
    "path": pa.string(),
    "fd_path": pa.string(),
    "offset": pa.int64(),
    "length": pa.int64(),
    "flags": pa.int64(),
    "result": pa.int64(),
    "errno": pa.int32(),
    "file": pa.string(),
    "position": pa.int64(),
}
O_RDONLY, O_RDWR, O_CREAT, O_SYNC = 0, 2, 0o100, 0o4010000


class Thread:
    """A thread of a program, with a clock of its own."""

    def __init__(self, draw: np.random.Generator, number: int = 100, process: int | None = None) -> None:
        self.draw, self.number, self.process = draw, number, process or number
        self.at = 0
        self.rows: list[Row] = []
        self.next_fd = 3

    def think(self, mean_us: float) -> None:
        """Computes for a random time."""
        self.at += round(float(self.draw.exponential(mean_us * US)))

    def call(self, name: str, median_us: float, **more: Any) -> Row:
        """Makes a call that takes a log-normal time."""
        took = max(300, round(float(self.draw.lognormal(np.log(median_us * US), 0.5))))
        row = {"begin_ns": self.at, "duration_ns": took, "thread": self.number, "process": self.process, "call": name}
        row |= {"result": 0, "errno": 0} | more
        self.rows.append(row)
        self.at += took + round(float(self.draw.exponential(2 * US)))
        return row

    def open(self, file: str, flags: int = O_RDONLY, median_us: float = 6) -> int:
        """Opens a file."""
        fd = self.next_fd
        self.next_fd += 1
        self.call("openat", median_us, path=file, file=file, flags=flags, fd=-100, result=fd)
        return fd

    def close(self, fd: int, file: str) -> None:
        """Closes it."""
        self.call("close", 0.8, fd=fd, fd_path=file, file=file)
        self.next_fd = min(self.next_fd, fd)

    def stat(self, file: str, errno: int = 0, median_us: float = 2) -> None:
        """Asks for its properties."""
        found = {"result": -1, "errno": errno} if errno else {}
        self.call("newfstatat", median_us, path=file, file=file, fd=-100, **found)

    def move(self, name: str, fd: int, file: str, position: int, length: int, median_us: float | None = None) -> None:
        """Reads or writes: `pread64`, `pwrite64`, `read`, `write`."""
        about = median_us or (3 + length / 4000 if "read" in name else 4 + length / 2500)
        own = {"offset": position} if name.startswith("p") else {}
        self.call(name, about, fd=fd, fd_path=file, file=file, position=position, length=length, result=length, **own)

    def sync(self, fd: int, file: str, name: str = "fdatasync", median_us: float = 900) -> None:
        """Forces it to the storage."""
        self.call(name, median_us, fd=fd, fd_path=file, file=file)


Threads = list[Thread]


def small_synchronous_writes(draw: np.random.Generator, size: int, share: float, count: int) -> Threads:
    """F01: a journal opened with O_SYNC, in pieces; the rest are large writes of another thread."""
    journal, other = Thread(draw, 100), Thread(draw, 200)
    file, big = "/srv/app/journal.log", "/srv/app/export.bin"
    fd, fd2 = journal.open(file, O_RDWR | O_CREAT | O_SYNC), other.open(big, O_RDWR | O_CREAT)
    small = round(count * share)
    for number in range(small):
        journal.move("pwrite64", fd, file, number * size, size, median_us=850)
        journal.think(1500)
    for number in range(count - small):
        other.move("pwrite64", fd2, big, number << 20, 1 << 20)
        other.think(2400 * small / (count - small))
    return [journal, other]


def sync_after_each_write(draw: np.random.Generator, each: int, size: int, count: int) -> Threads:
    """F02: a sync after `each` writes; with many, a group commit as it should be."""
    thread = Thread(draw)
    file = "/srv/db/wal/000000010000000A"
    fd = thread.open(file, O_RDWR | O_CREAT)
    for number in range(count):
        thread.move("pwrite64", fd, file, number * size, size)
        if number % each == each - 1:
            thread.sync(fd, file)
        thread.think(1000)
    return [thread]


def metadata_storm(draw: np.random.Generator, files: int, read_share: float) -> Threads:
    """F03: a walk over many small files: listings, stats, renames; only a share is read."""
    threads = [Thread(draw, 100 + number, 100) for number in range(4)]
    for each in range(files):
        thread = threads[each % 4]
        directory = f"/home/u/project/part-{each % 4}/dir-{each // 120:04}"
        if each % 120 < 4:
            fd = thread.open(directory)
            thread.call("getdents64", 25, fd=fd, fd_path=directory, file=directory, length=32768, result=1100)
            thread.close(fd, directory)
        file = f"{directory}/file-{each // 4 % 30:02}.c"
        thread.stat(file, median_us=3)
        if draw.random() < 0.3:
            thread.call("rename", 14, path=f"{file}.new", file=f"{file}.new")
        if draw.random() < read_share:
            fd = thread.open(file)
            thread.move("read", fd, file, 0, int(draw.lognormal(8, 1)) + 1)
            thread.close(fd, file)
    return threads


def reads_of_just_written(draw: np.random.Generator, share: float, count: int, after: int) -> Threads:
    """F04: a share of what is written to a spool file is read again `after` writes later."""
    thread = Thread(draw)
    file, size = "/var/spool/job/stage.tmp", 65536
    fd = thread.open(file, O_RDWR | O_CREAT)
    for number in range(count):
        thread.move("pwrite64", fd, file, number * size, size)
        if number >= after and draw.random() < share:
            thread.move("pread64", fd, file, (number - after) * size, size)
        thread.think(2000)
    return [thread]


def random_reads_of_sequential_file(draw: np.random.Generator, jumps: float, count: int, size: int) -> Threads:
    """F05: a file is written from start to end; then it is read, by jumps to any place or in sequence."""
    thread = Thread(draw)
    file, piece = "/data/events/part-0001.bin", 1 << 20
    fd = thread.open(file, O_RDWR | O_CREAT)
    pieces = 400
    for number in range(pieces):
        thread.move("write", fd, file, number * piece, piece)
        thread.think(500)
    thread.sync(fd, file, "fsync", 30_000)
    thread.think(30e6)
    position = 0
    for _ in range(count):
        if draw.random() < jumps:
            position = int(draw.integers(0, pieces * piece // size - 1)) * size
        thread.move("pread64", fd, file, position, size, median_us=350 if jumps else 30)
        position = (position + size) % (pieces * piece - size)
        thread.think(300)
    thread.close(fd, file)
    return [thread]


def one_thread_serialises(draw: np.random.Generator, workers: int, hold_us: float, turns: int) -> Threads:
    """F06: workers hand each piece to one writer, one after the other: while it works, all others wait."""
    writer = Thread(draw, 100, 100)
    threads = [Thread(draw, 101 + number, 100) for number in range(workers)]
    out = "/srv/build/output.pack"
    fd = writer.open(out, O_RDWR | O_CREAT)
    position = 0
    for turn in range(turns):
        for thread in threads:
            thread.at = max(thread.at, writer.at)
            file = f"/srv/build/in-{thread.number}/piece-{turn:05}"
            own = thread.open(file)
            thread.move("read", own, file, 0, 32768)
            thread.close(own, file)
            thread.think(100)
        writer.at = max(thread.at for thread in threads)
        for _ in threads:
            writer.move("write", fd, out, position, 32768)
            position += 32768
            writer.sync(fd, out, median_us=hold_us / workers)
    return [writer, *threads]


def redundant_opens(draw: np.random.Generator, again: float, count: int) -> Threads:
    """F07: a share of the opens is of a file that was read moments before, and has not changed."""
    thread = Thread(draw)
    fresh = 0
    for _ in range(count):
        if draw.random() < again:
            file = f"/etc/app/settings-{int(draw.integers(0, 3))}.conf"
        else:
            file = f"/srv/app/data/object-{fresh:06}"
            fresh += 1
        fd = thread.open(file)
        thread.move("read", fd, file, 0, 8192)
        thread.close(fd, file)
        thread.think(3000)
    return [thread]


def redundant_stats(draw: np.random.Generator, again: float, count: int) -> Threads:
    """F08: a share of the stats asks the same few files again and again."""
    thread = Thread(draw)
    fresh = 0
    for _ in range(count):
        if draw.random() < again:
            thread.stat(f"/srv/www/site/{('index.php', 'config.php', '.htaccess')[int(draw.integers(0, 3))]}")
        else:
            file = f"/srv/www/media/picture-{fresh:06}.jpg"
            fresh += 1
            thread.stat(file)
            fd = thread.open(file)
            thread.move("read", fd, file, 0, 131072, median_us=400)
            thread.close(fd, file)
        thread.think(2500)
    return [thread]


def failing_lookups(draw: np.random.Generator, paths: int, count: int) -> Threads:
    """F09: each library is searched in `paths` directories that lack it before it is found."""
    thread = Thread(draw)
    for number in range(count):
        name = f"lib{number % 400:03}.so"
        for path in range(paths):
            file = f"/opt/app/lib-{path}/{name}"
            thread.call("openat", 3, path=file, file=file, fd=-100, flags=0, result=-1, errno=ENOENT)
        file = f"/usr/lib/{name}"
        fd = thread.open(file)
        thread.move("read", fd, file, 0, 65536)
        thread.move("pread64", fd, file, 65536, 65536)
        thread.close(fd, file)
        thread.think(4000)
    return [thread]


def small_sequential_io(draw: np.random.Generator, size: int, count: int, writes: bool) -> Threads:
    """F10: a file is read or written in sequence, in pieces far too small."""
    thread = Thread(draw)
    file = "/data/archive/log-2026.csv"
    fd = thread.open(file, O_RDWR | O_CREAT if writes else O_RDONLY)
    for number in range(count):
        thread.move("write" if writes else "read", fd, file, number * size, size, median_us=1.2)
        thread.think(12)
    thread.close(fd, file)
    return [thread]


def slow_by_file_system(draw: np.random.Generator, slower: float, share: float, count: int) -> Threads:
    """F11: a share of the files is in one directory, on a file system that takes `slower` times as long."""
    threads = [Thread(draw, 100 + number) for number in range(3)]
    for each in range(count):
        thread = threads[each % 3]
        remote = draw.random() < share
        directory, factor = ("/mnt/nfs/shared", slower) if remote else (f"/srv/local-{each % 5}", 1.0)
        file = f"{directory}/object-{each:06}"
        fd = thread.open(file, median_us=8 * factor)
        thread.move("pread64", fd, file, 0, 65536, median_us=70 * factor)
        thread.close(fd, file)
        thread.think(2500)
    return threads


def good_copy(draw: np.random.Generator, files: int, size: int) -> Threads:
    """No habit: files are read in large pieces, and written to others."""
    thread = Thread(draw)
    for each in range(files):
        source, target = f"/srv/in/film-{each:04}", f"/srv/out/film-{each:04}"
        one, two = thread.open(source), thread.open(target, O_RDWR | O_CREAT)
        for piece in range(24):
            thread.move("read", one, source, piece * size, size)
            thread.move("write", two, target, piece * size, size)
            thread.think(900)
        thread.close(two, target)
        thread.close(one, source)
    return [thread]


def good_server(draw: np.random.Generator, threads: int, count: int, size: int) -> Threads:
    """No habit: threads read pages of a few open tables at random, each on its own, and write some."""
    found = [Thread(draw, 100 + number, 100) for number in range(threads)]
    files = [f"/srv/db/base/table-{number}" for number in range(6)]
    opened = [{file: thread.open(file, O_RDWR) for file in files} for thread in found]
    for each in range(count):
        thread, fds = found[each % threads], opened[each % threads]
        file = files[int(draw.integers(0, len(files)))]
        page = int(draw.integers(0, 60_000))
        if draw.random() < 0.15:
            thread.move("pwrite64", fds[file], file, page * size, size)
        else:
            thread.move("pread64", fds[file], file, page * size, size, median_us=110)
        thread.think(3500)
    return found


def good_log(draw: np.random.Generator, group: int, count: int, size: int) -> Threads:
    """No habit: a log is appended in pieces of some size, and forced for a group of transactions."""
    return sync_after_each_write(draw, group, size, count)


def good_web(draw: np.random.Generator, threads: int, count: int) -> Threads:
    """No habit: each file is opened once, read to its end in large pieces, and closed."""
    found = [Thread(draw, 100 + number, 100) for number in range(threads)]
    for each in range(count):
        thread, file = found[each % threads], f"/srv/www/media/part-{each % 9}/object-{each:06}.bin"
        fd = thread.open(file)
        thread.call("fstat", 0.7, fd=fd, fd_path=file, file=file)
        size = max(131072, int(draw.lognormal(13, 0.6)))
        for position in range(0, size, 262144):
            thread.move("read", fd, file, position, min(262144, size - position), median_us=180)
        thread.close(fd, file)
        thread.think(6000)
    return found


PATTERNS: dict[str, Callable[..., Threads]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        small_synchronous_writes,
        sync_after_each_write,
        metadata_storm,
        reads_of_just_written,
        random_reads_of_sequential_file,
        one_thread_serialises,
        redundant_opens,
        redundant_stats,
        failing_lookups,
        small_sequential_io,
        slow_by_file_system,
        good_copy,
        good_server,
        good_log,
        good_web,
    )
}


def write(path: Path, seed: int, arguments: dict[str, Any]) -> None:
    """Writes the trace of a pattern; `arguments` has its name as `pattern`, and what it takes."""
    pattern = PATTERNS[arguments.pop("pattern")]
    threads = pattern(np.random.default_rng(seed), **arguments)
    rows = sorted((row for thread in threads for row in thread.rows), key=lambda row: row["begin_ns"])
    table = pa.Table.from_pylist(rows, pa.schema(TYPES))
    span = {"first_ns": rows[0]["begin_ns"], "last_ns": rows[-1]["begin_ns"]}
    footer = {
        "schema_version": 3,
        "kind": "calls",
        "source": {"path": "", "format": "scenario", "preamble": ""},
        "recorder": "ebpf",
        "counts": {"calls": len(rows), "unfinished": 0, "uring": 0, "bad_lines": 0, "lost_events": 0},
        "span": span | {"max_end_sector": 0, "max_sectors": 0},
        "complete": True,
    }
    with path.open("wb") as file:
        pq.write_table(table.replace_schema_metadata({"iosonar": json.dumps(footer)}), file, compression="zstd")
