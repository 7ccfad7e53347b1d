#!/usr/bin/env python3
"""Asks the installed fio what its numbers and times mean, and prints the table that the converter is tested with.

    bench/fio_units.py > crates/jobfiles/src/fio/units.tsv

Each row has an option, a value, and what fio makes of it with kb_base=1024 and with kb_base=1000: bytes, a number, or
microseconds; `refused` if fio refuses it. fio only parses (`--parse-only`). Needs neither root nor iosonar.
"""

import re
import subprocess
import sys

# An option for each way in which fio reads numbers: bytes, whole numbers, times in seconds, times in microseconds.
BYTES = ("size", "bs", "io_size", "rate")
NUMBERS = ("number_ios", "iodepth", "rate_iops", "fsync")
TIMES = ("runtime", "startdelay", "ramp_time", "thinktime")
OTHER_NUMBERS = [
    "0",
    "07",
    "0x10",
    "0x10k",
    "64bk",
    "64x",
    "64kfoo",
    "64kix",
    "1i",
    "1.5k",
    "1e3",
    "4096k-1",
    "k",
    "(1+2)",
]
OTHER_TIMES = ["0x5s", "5sec", "5secs", "5min", "5hours", "5msec", "5usec", "5ns", "5k", "5w", "1.5s", "1m30s", "s"]


def suffixes() -> list[str]:
    of_bytes = [power + ending for power in "kmgtpe" for ending in ("", "b", "i", "ib")]
    return ["", "b", *of_bytes]


def spellings(suffix: str) -> list[str]:
    return sorted({suffix, suffix.upper(), suffix[:1].upper() + suffix[1:], suffix[:1] + suffix[1:].replace("b", "B")})


def meaning(option: str, value: str, kb_base: int, unit_base: int = 0) -> str:
    words = ["fio", "--debug=parse", "--parse-only", "--name=a", f"--kb_base={kb_base}", f"--unit_base={unit_base}"]
    done = subprocess.run([*words, f"--{option}={value}"], capture_output=True, text=True)
    said = (done.stdout + done.stderr).rpartition(f"__handle_option={option},")[2]
    found = re.search(r"ret=0, out=(\d+)", said)
    return found[1] if found and done.returncode == 0 else "refused"


def main() -> int:
    version = subprocess.run(["fio", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    numbers = [f"3{spelling}" for suffix in suffixes() for spelling in spellings(suffix)] + OTHER_NUMBERS
    times = [f"5{spelling}" for unit in ("", "d", "h", "m", "s", "ms", "us") for spelling in spellings(unit)]
    rows = [(option, value) for option in BYTES[:1] + NUMBERS[:1] for value in numbers]
    # Other options read them in the same way: a few values show it.
    rows += [(option, value) for option in BYTES[1:] + NUMBERS[1:] for value in ("3", "3k", "3Ki", "3KiB", "3m", "3x")]
    rows += [(option, value) for option in (TIMES[0], TIMES[-1]) for value in times + OTHER_TIMES]
    rows += [(option, value) for option in TIMES[1:-1] for value in ("5", "5s", "5m", "5ms", "5min")]
    print(
        f"# What {version} makes of values: option, value, with kb_base=1024, with kb_base=1000. By bench/fio_units.py."
    )
    # unit_base changes what fio prints, not what it reads.
    for value in ("3k", "3Ki", "3KiB"):
        if len({meaning("size", value, 1024, unit_base) for unit_base in (0, 1, 8)}) != 1:
            print(f"size={value} depends on unit_base", file=sys.stderr)
            return 1
    for option, value in rows:
        print(option, value, meaning(option, value, 1024), meaning(option, value, 1000), sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
