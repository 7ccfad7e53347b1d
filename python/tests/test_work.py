from pathlib import Path

from factory import S, load_row, write_load

from iosonar.quantities.work import demand
from iosonar.table import open_requests


def test_data_beyond_64_bits_does_not_overflow(tmp_path: Path) -> None:
    rows = [load_row(number * S, sectors=(1 << 54) - 8) for number in range(8)]
    with open_requests([write_load(tmp_path / "a.load.parquet", rows)]) as requests:
        asked = demand(requests.table)
    assert (asked.requests, asked.seconds) == (8, 7.0)
    assert abs(asked.data / (8 * ((1 << 54) - 8) * 512) - 1) < 1e-12
