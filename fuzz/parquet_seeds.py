#!/usr/bin/env python3
"""Writes seed tables with encodings, page versions and compressions that iosonar does not write.

.venv/bin/python fuzz/parquet_seeds.py
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

DIRECTORY = Path(__file__).parent / "seeds" / "parquet"
ROWS = 40

NUMBERS = ["at_ns", "sector", "sectors", "latency_ns"]
TEXTS = ["op", "process"]


def table() -> pa.Table:
    """A small load, with nulls in optional columns."""
    return pa.table(
        {
            "at_ns": [1000 * row for row in range(ROWS)],
            "device": pa.array([row % 2 for row in range(ROWS)], pa.int32()),
            "sector": [8 * (row * 7 % 13) for row in range(ROWS)],
            "sectors": [8] * ROWS,
            "op": ["read" if row % 3 else "write" for row in range(ROWS)],
            "flags": pa.array([0] * ROWS, pa.int32()),
            "latency_ns": [None if row % 5 == 0 else 70_000 + row for row in range(ROWS)],
            "process": [None if row % 4 == 0 else f"worker/{row % 6}" for row in range(ROWS)],
        }
    )


def encodings(numbers: str, texts: str) -> dict[str, str]:
    """The encoding of each column."""
    return dict.fromkeys(NUMBERS, numbers) | dict.fromkeys(TEXTS, texts)


def main() -> None:
    """Writes all seed tables."""
    plain = {"compression": "none", "store_schema": False}
    for version in ("1.0", "2.0"):
        for name, options in {
            "plain": {"use_dictionary": False},
            "dictionary": {"use_dictionary": True},
            "snappy": {"use_dictionary": True, "compression": "snappy", "row_group_size": 16},
            "delta-length": encodings("DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY"),
            "delta-text": encodings("DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY"),
            "split": encodings("BYTE_STREAM_SPLIT", "PLAIN"),
        }.items():
            if set(options) & set(NUMBERS):
                options = {"use_dictionary": False, "column_encoding": options}
            path = DIRECTORY / f"{name}-pages-{version}.parquet"
            pq.write_table(table(), path, **(plain | {"data_page_version": version} | options))


main()
