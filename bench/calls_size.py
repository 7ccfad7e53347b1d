"""How fast long traces of calls are read, written and ordered, and in how much memory.

Generates strace text with the given numbers of calls, and runs the commands on it.
"""

import argparse
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

THREADS = 4
EPOCH = 1_795_464_429


def lines(calls: int) -> Iterator[str]:
    """Four threads of one process open, read, write and close; a quarter of the reads and writes is unfinished."""
    numbers = random.Random(1)
    now = 0

    def line(thread: int, text: str, advance: int) -> str:
        nonlocal now
        now += advance
        return f"{100 + thread} {EPOCH + now // 10**9}.{now % 10**9:09} {text}\n"

    yield line(0, 'execve("/bin/x", ["x"], 0x7ffd) = 0 <0.000100000>', 0)
    flags = "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD"
    for thread in range(1, THREADS):
        yield line(0, f"clone(flags={flags}) = {100 + thread} <0.000010000>", 1_000_000)
    now += 1_000_000
    resumed = [""] * THREADS
    for number in range(calls):
        thread, step = number % THREADS, number // THREADS % 20
        fd = 3 + thread
        if resumed[thread]:
            yield line(thread, resumed[thread], 1000 + numbers.randrange(1000))
            resumed[thread] = ""
        gap = 1000 + numbers.randrange(1000)
        if step == 0:
            path = f"/data/d{numbers.randrange(100)}/file{numbers.randrange(10_000)}"
            call = f'openat(AT_FDCWD, "{path}", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = {fd} <0.000002000>'
            yield line(thread, call, gap)
            continue
        if step == 19:
            yield line(thread, f"close({fd}) = 0 <0.000000500>", gap)
            continue
        name, data = ("pwrite64", '""..., ') if step % 2 else ("pread64", "")
        begin, end = f"{name}({fd}, {data}", f"{'' if data else chr(34) * 2 + '..., '}4096, {step * 4096}) = 4096"
        if numbers.randrange(4) == 0:
            yield line(thread, f"{begin} <unfinished ...>", gap)
            resumed[thread] = f"<... {name} resumed>{end} <0.000002000>"
        else:
            yield line(thread, f"{begin}{end} <0.000002000>", gap)
    for thread in range(THREADS):
        if resumed[thread]:
            yield line(thread, resumed[thread], 1000)


def measure(command: list[str]) -> tuple[float, float, int]:
    """Seconds, seconds of processor time, and the most memory in bytes."""
    begin = time.monotonic()
    process = os.posix_spawnp(
        command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    )
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        raise SystemExit(f"{command} failed")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main() -> None:
    """Prints a row of a table for each command and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", default="5000000,50000000", help="numbers of calls")
    parser.add_argument("--iosonar", default="target/release/iosonar")
    parser.add_argument("--directory", default=None, help="for temporary files: 100 bytes for each call")
    arguments = parser.parse_args()
    program = str(Path(arguments.iosonar).absolute())
    print("| calls | command | seconds | processor seconds | text MB/s of processor time | memory MiB |")
    print("|---|---|---|---|---|---|")
    for calls in map(int, arguments.calls.split(",")):
        with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
            text, table, edited = (f"{directory}/{name}" for name in ("t.strace", "t.calls.parquet", "e.calls.parquet"))
            with Path(text).open("w") as file:
                file.writelines(lines(calls))
            size = Path(text).stat().st_size
            root = Path(directory, "root")
            root.mkdir()
            replay = ["files", "replay", table, "--root", str(root), "--output", f"{directory}/r.calls-run.parquet"]
            for name, words in {
                "info of text": ["info", text],
                "convert": ["convert", text, table],
                "info": ["info", table],
                "edit select": ["edit", table, edited, "select family=read"],
                "edit anonymise": ["edit", table, edited, "anonymise"],
                "files order": ["files", "order", table],
                "files order --order fs": ["files", "order", table, "--order", "fs"],
                "files replay --fake-io": [*replay, "--fake-io", "--timing", "asap"],
            }.items():
                Path(edited).unlink(missing_ok=True)
                seconds, processor, memory = measure([program, *words])
                rate = size / processor / 1e6
                print(f"| {calls:,} | {name} | {seconds:.1f} | {processor:.1f} | {rate:.0f} | {memory / 2**20:.0f} |")


if __name__ == "__main__":
    main()
