#!/usr/bin/env python3
"""Draws docs/pictures/workload-NAME.png: what each ready program does to a simulated device, in virtual time.

Needs no device and no root. The runs depend on their seed alone, so the same versions of iosonar and of its libraries draw
the same pictures.
"""

import argparse
import shutil
from dataclasses import dataclass
from pathlib import Path

from common import directory, sh

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"


@dataclass(frozen=True)
class Picture:
    """A diagram of a run of a program."""

    diagram: str
    device: str
    seconds: int
    settings: tuple[str, ...] = ()
    report: tuple[str, ...] = ()


PROGRAMS = {
    "random-reads": Picture("latency.realtime", "sata-ssd", 2),
    "random-mix": Picture("latency.realtime", "hdd", 60, ("--set", "rate=55")),
    "sequential-writes": Picture("thrs.completed", "sata-ssd", 60, report=("--window", "0.1")),
    "tpcb": Picture("position.realtime", "sata-ssd", 60, ("--scale", "4")),
    "spc1": Picture("latency.realtime", "raid5-bbu", 60, ("--scale", "8")),
    "log-and-data": Picture("streams.latency", "sata-ssd", 30),
    "checkpoint": Picture("streams.rate", "sata-ssd", 180, report=("--window", "2")),
    "backup": Picture("position.realtime", "constant=500us servers=1", 60),
    "blender": Picture("position.realtime", "hdd", 30),
    "mail": Picture("streams.latency", "hdd", 60, ("--set", "deliveries=8", "--set", "reads=24")),
    "video": Picture("position.realtime", "raid5-bbu", 60),
    "btree": Picture("position.realtime", "sata-ssd", 10),
    "lsm": Picture("streams.rate", "sata-ssd", 60, report=("--window", "0.5")),
}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--iosonar", default="iosonar"), p.add_argument("--out", type=Path, default=PICTURES)
    p.add_argument("program", nargs="*", help="draw these only")
    args = p.parse_args()
    for name in args.program or PROGRAMS:
        picture = PROGRAMS[name]
        with directory() as place:
            run = place / f"{name}.replay.parquet"
            how = ("--simulate", picture.device, "--virtual-time", "--for", f"{picture.seconds}s", "--output", run)
            sh(args.iosonar, "workload", "run", name, *picture.settings, *how)
            size = ("--size", "800x480")
            words = ("--only", picture.diagram, "--format", "png", *size, "--out", place, *picture.report)
            sh(args.iosonar, "report", run, *words)
            (drawn,) = place.glob("*.png")
            found = args.out / f"workload-{name}.png"
            shutil.copyfile(drawn, found)
        print(f"{found}: {found.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
