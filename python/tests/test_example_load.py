from __future__ import annotations

import gzip
import shlex
from pathlib import Path

from binary import iosonar

from iosonar import campaign

LOAD = Path(campaign.__file__).parent / "example-load/artificial/bursts-ultrafine.readwrite.1b.1.load.gz"


def test_the_example_load_is_what_the_command_in_its_first_line_makes(tmp_path: Path) -> None:
    text = gzip.decompress(LOAD.read_bytes())
    command = text.split(b"\n", 1)[0].decode().removeprefix("Artificial load: iosonar ")
    again = tmp_path / "again.load.gz"
    iosonar(*(str(again) if word == "OUT" else word for word in shlex.split(command)))
    assert gzip.decompress(again.read_bytes()) == text


def test_the_example_load_is_small() -> None:
    assert LOAD.stat().st_size < 300_000
