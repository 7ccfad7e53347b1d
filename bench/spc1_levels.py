#!/usr/bin/env python3
"""Latency of the ready program spc1 on a simulated device, at the levels of load of SPC-1, in virtual time.

Latency is from the scheduled time. Needs no device and no root. It also counts the requests of each
stream at the full load, and compares them with the program's table in bench/results/spc1-notes.md: shares of requests,
reads, sizes, and regions of the ASU.
"""

import json
import math
from pathlib import Path

from common import directory, keep, options, sh

LEVELS = (10, 50, 80, 90, 95, 100)

REQUESTS_PER_BSU = 50
MIXED = {8: 0.40, 16: 0.24, 32: 0.20, 64: 0.08, 128: 0.08}
"""Shares of the sizes of sequential requests, in sectors."""

ASU = {1: (0.0, 0.45), 2: (0.45, 0.90), 3: (0.90, 1.0)}
"""The shares of the target before and up to the end of each ASU."""

TARGET_SECTORS = (1 << 40) // 512
"""The size of the preset sata-ssd."""

STREAMS = {
    "asu1-1": (0.035, 0.5, None, (0.0, 1.0)),
    "asu1-2": (0.281, 0.5, None, (0.15, 0.20)),
    "asu1-3": (0.070, 1.0, MIXED, (0.20, 0.70)),
    "asu1-4": (0.210, 0.5, None, (0.70, 0.75)),
    "asu2-1": (0.018, 0.3, None, (0.0, 1.0)),
    "asu2-2": (0.070, 0.3, None, (0.47, 0.52)),
    "asu2-3": (0.035, 1.0, MIXED, (0.20, 0.70)),
    "asu3-1": (0.281, 0.0, MIXED, (0.0, 1.0)),
}
"""Share of all requests, share of reads, sizes (None: 4k), and region of the ASU."""


def level(args, place: Path, pct: int) -> tuple[dict, Path]:
    """A run at a level of the load, and its latencies from the scheduled time."""
    run = place / f"{pct}.replay.parquet"
    scale = round(args.bsu * pct / 100)
    how = ("--simulate", args.simulate, "--virtual-time", "--for", f"{args.seconds}s", "--output", run)
    sh(args.iosonar, "workload", "run", "spc1", "--scale", scale, *how)
    # As the phases of the specification, without the beginning.
    query = f"""SELECT count(*) AS requests, avg(t) AS mean_ms, quantile_disc(t, 0.5) AS p50_ms,
                       quantile_disc(t, 0.99) AS p99_ms, max(waiting) AS waiting,
                       count(*) / {args.seconds - args.warmup} AS per_second
                FROM (SELECT (completed_ns - scheduled_ns) / 1e6 AS t, waiting FROM requests
                      WHERE scheduled_ns >= {args.warmup} * 1e9)"""
    (row,) = json.loads(sh(args.iosonar, "sql", run, query, "--format", "json"))
    return {"level_pct": pct, "bsu": scale, "demanded_per_s": scale * REQUESTS_PER_BSU} | row, run


def check(args, run: Path) -> list[dict]:
    """What each stream asked for, beside what it should ask for."""
    query = """SELECT stream_name AS name, count(*) AS n, sum((op = 'read')::INT) AS reads,
                      min(sector) AS low, max(sector + sectors) AS high, max((op NOT IN ('read', 'write'))::INT) AS other,
                      map_entries(histogram(sectors)) AS sizes
               FROM requests GROUP BY 1 ORDER BY 1"""
    rows = json.loads(sh(args.iosonar, "sql", run, query, "--format", "json"))
    total = sum(row["n"] for row in rows)
    found = []
    for row in rows:
        share, reads, sizes, (low, high) = STREAMS[row["name"]]
        first, last = ASU[int(row["name"][3])]
        size = {each["key"]: each["value"] / row["n"] for each in row["sizes"]}
        expected_sizes = sizes or {8: 1.0}
        begin, end = (row[edge] / TARGET_SECTORS for edge in ("low", "high"))
        begin, end = ((at - first) / (last - first) for at in (begin, end))
        # Four standard deviations of a share of so many draws.
        tolerance = [4 * math.sqrt(p * (1 - p) / n) for p, n in ((share, total), (reads, row["n"]))]
        size_errors = {key: abs(size.get(key, 0) - p) for key, p in expected_sizes.items()}
        ok = (
            abs(row["n"] / total - share) <= tolerance[0]
            and abs(row["reads"] / row["n"] - reads) <= tolerance[1]
            and set(size) <= set(expected_sizes)
            and all(size_errors[key] <= 4 * math.sqrt(p * (1 - p) / row["n"]) for key, p in expected_sizes.items())
            and low - 1e-5 <= begin
            and end <= high + 1e-5
            and not row["other"]
        )
        found.append(
            {
                "stream": row["name"],
                "requests": row["n"],
                "share": row["n"] / total,
                "expected_share": share,
                "reads": row["reads"] / row["n"],
                "expected_reads": reads,
                "largest_difference_of_sizes": max(size_errors.values()),
                "region": (begin, end),
                "expected_region": (low, high),
                "ok": bool(ok),
            }
        )
    return found


def draw(levels: list[dict], simulate: str, path: Path) -> None:
    """The latencies over the level; needs the Python of the workbench."""
    import numpy as np

    from iosonar import units
    from iosonar.figures.drawing import draw as draw_figure
    from iosonar.figures.model import (
        Axis,
        Figure,
        Legend,
        LegendRow,
        Line,
        Note,
        NoteKind,
        Role,
        Severity,
        Stroke,
        Unit,
    )
    from iosonar.figures.palette import Theme
    from iosonar.figures.size import Size

    x = np.array([row["level_pct"] for row in levels], np.float64)
    lines, rows = [], []
    for key, label, role in (
        ("p99_ms", "p99", Role.ORDER_3),
        ("mean_ms", "mean", Role.ORDER_1),
        ("p50_ms", "p50", Role.ORDER_2),
    ):
        y = np.array([row[key] for row in levels]) / 1e3
        lines.append(Line(role, label, x, y, marks=True))
        rows.append(LegendRow(role, label, (units.span(float(y[0])), units.span(float(y[-1]))), Stroke.SOLID))
    most = max(float(line.y.max()) for line in lines)
    figure = Figure(
        "spc1.levels",
        "g01",
        "Latency of spc1 from the scheduled time, by level of load",
        f"{simulate} · 100 % are {levels[-1]['demanded_per_s']:,} IO/s",
        Axis("Level of load", Unit.PERCENT, 0.0, 106.0),
        Axis("Latency", Unit.SECONDS, 0.0, most * 1.06),
        tuple(lines),
        Legend((f"{levels[0]['level_pct']} %", f"{levels[-1]['level_pct']} %"), tuple(rows)),
        (
            Note(NoteKind.STAMP, "FAKE RESULT", Severity.BAD),
            Note(
                NoteKind.WARNING,
                f"Fake: no I/O was done, latencies are simulated in virtual time ({simulate})",
                Severity.BAD,
            ),
        ),
    )
    draw_figure(figure, path, Size(800, 480), Theme.LIGHT)


def main() -> None:
    p = options(__doc__)
    p.add_argument("--simulate", default="sata-ssd"), p.add_argument("--bsu", type=int, default=1040)
    p.add_argument("--seconds", type=int, default=6), p.add_argument("--warmup", type=int, default=1)
    p.add_argument("--keep", type=Path, help="keep the runs in this directory")
    p.add_argument("--picture", type=Path, help="draw the latencies into this file")
    args = p.parse_args()
    with directory() as temporary:
        place = args.keep or temporary
        levels = []
        print("level  BSU  demanded    arrived      mean       p50       p99")
        for pct in LEVELS:
            row, run = level(args, place, pct)
            levels.append(row)
            print(
                f"{pct:4} %  {row['bsu']:3}  {row['demanded_per_s']:8}  {row['per_second']:9.0f}"
                f"  {row['mean_ms']:5.2f} ms  {row['p50_ms']:5.2f} ms  {row['p99_ms']:5.1f} ms"
            )
        streams = check(args, run)
    print("stream  requests  share (expected)  reads (expected)  sizes differ by  region (expected)")
    for row in streams:
        begin, end = row["region"]
        low, high = row["expected_region"]
        print(
            f"{row['stream']}  {row['requests']:8}  {row['share']:6.4f} ({row['expected_share']:.3f})  "
            f"{row['reads']:6.4f} ({row['expected_reads']:.1f})  {row['largest_difference_of_sizes']:.4f}  "
            f"{begin:.3f} to {end:.3f} ({low:.2f} to {high:.2f})  {'as it should be' if row['ok'] else 'DIFFERS'}"
        )
    if args.picture:
        draw(levels, args.simulate, args.picture)
    keep(args, {"levels": levels, "streams": streams})


if __name__ == "__main__":
    main()
