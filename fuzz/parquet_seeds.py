#!/usr/bin/env python3
"""Writes seed tables of another producer: the encodings, page versions and compressions that our own files do not have.

.venv/bin/python fuzz/parquet_seeds.py
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).parent / "seeds" / "parquet"
ROWS = 40

NUMBERS = ["at_ns", "sector", "sectors", "latency_ns"]
TEXTS = ["op", "process"]


def table() -> pa.Table:
    """A small load, with nulls where there may be some."""
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
    """Which encoding each column gets."""
    return dict.fromkeys(NUMBERS, numbers) | dict.fromkeys(TEXTS, texts)


def main() -> None:
    """Writes them all."""
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
            path = FOLDER / f"{name}-pages-{version}.parquet"
            pq.write_table(table(), path, **(plain | {"data_page_version": version} | options))


main()
