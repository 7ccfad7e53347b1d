#!/usr/bin/env python3
"""Converts the example jobs of fio to programs, and counts those that are converted or refused.

    bench/fio_examples.py [--directory DIR] [--iosonar PATH] [--json FILE]

DIR has fio's examples: by default /usr/share/doc/fio/examples, of the package fio or fio-examples. Each example must be
converted, or refused with a line that names an option or what is missing. Environment variables that an example needs
are set. Needs neither root nor fio.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

# Values for the environment variables of the examples.
VARIABLES = {"FIO_RW": "randread", "FIO_IODEPTH": "4", "FIO_BS": "4k"}


def convert(iosonar: str, example: Path) -> dict:
    text = example.read_text(errors="replace")
    names = set(re.findall(r"\$\{(\w+)\}", text))
    environment = os.environ | {name: VARIABLES.get(name, "/tmp/x") for name in names}
    words = [iosonar, "workload", "convert", str(example)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=60)
    said = done.stdout + done.stderr
    place = re.escape(str(example))
    reasons = re.findall(rf"{place}:\d+: (.*)", done.stderr)
    if done.returncode == 0:
        outcome = "converted" if "note: " not in said else "converted with notes"
    elif done.returncode == 2 and reasons:
        outcome = "refused"
    else:
        outcome = f"FAILED ({done.returncode}): {done.stderr.strip()}"
    # The option without its value, or with it if it is the reason.
    options = [re.split(r"[=:]", reason)[0] for reason in reasons]
    return {"example": example.name, "outcome": outcome, "options": sorted(set(options))}


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--directory", type=Path, default=Path("/usr/share/doc/fio/examples"))
    p.add_argument("--iosonar", default="iosonar")
    p.add_argument("--json", type=Path)
    args = p.parse_args()
    examples = sorted(args.directory.glob("*.fio"))
    if not examples:
        print(f"{args.directory} has no examples; install fio-examples, or name a directory", file=sys.stderr)
        return 1
    rows = [convert(args.iosonar, example) for example in examples]
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    print("| example | outcome | options |\n|---|---|---|")
    for row in rows:
        print(f"| {row['example']} | {row['outcome']} | {' '.join(row['options'])} |")
    print()
    for outcome, count in Counter(row["outcome"] for row in rows).most_common():
        print(f"{count} {outcome}")
    reasons = Counter(option for row in rows if row["outcome"] == "refused" for option in row["options"])
    print("refused for:", ", ".join(f"{option} {count}" for option, count in reasons.most_common()))
    return int(any(row["outcome"].startswith("FAILED") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
