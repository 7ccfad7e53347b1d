from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pytest
from binary import iosonar

from iosonar import campaign

LOADS = sorted(Path(campaign.__file__).parent.glob("example-load/**/*.load.gz"))
DEFAULT = "bursts-ultrafine.readwrite.1b.1.load.gz"


def test_the_default_load_of_campaigns_exists() -> None:
    assert DEFAULT in [load.name for load in LOADS if load.parent.name == "artificial"]


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.name)
def test_the_command_in_an_example_load_makes_that_load(tmp_path: Path, load: Path) -> None:
    text = gzip.decompress(load.read_bytes())
    command = text.split(b"\n", 1)[0].decode().removeprefix("Artificial load: iosonar ")
    again = tmp_path / "again.load.gz"
    iosonar(*(str(again) if word == "OUT" else word for word in shlex.split(command)))
    assert gzip.decompress(again.read_bytes()) == text


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.name)
def test_an_example_load_is_small(load: Path) -> None:
    assert load.stat().st_size < 300_000
