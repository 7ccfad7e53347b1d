"""campaign.json: written atomically, read with tolerance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iosonar.campaign import state
from iosonar.campaign.state import HostSample, InstanceState, LeafState
from iosonar.errors import UserError


def full() -> LeafState:
    instance = InstanceState(
        host="a",
        device="/dev/loop0",
        device_original="/dev/loop0",
        input="x.load.gz",
        input_sha256="ab",
        output="X.replay.gz",
        state="done",
        exit_code=0,
        boot_id="b-1",
        clock_offset_s=0.0,
        clock_uncertainty_s=0.0001,
        clock_drift_ppm=-3.5,
        clock_drift_uncertainty_ppm=0.5,
        clock_exchanges=80,
        start_skew_s=0.00001,
        start_skew_uncertainty_s=0.00004,
        summary={"requests": 5},
    )
    return LeafState(
        leaf="short/016-threads",
        state="done",
        attempt=2,
        started=1.5,
        ended=3.0,
        path=["short", "016-threads"],
        variables={"threads": "16"},
        instances=[instance],
        hosts={"a": [HostSample(1.0, 0.4, 123)]},
        notes=["a note with a byte \udcff that is not UTF-8"],
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    state.write(tmp_path, full())
    assert state.read(tmp_path) == full()
    assert [path.name for path in tmp_path.iterdir()] == ["campaign.json"]
    assert json.loads((tmp_path / "campaign.json").read_text())["version"] == 1


def test_a_leaf_that_was_never_started_has_no_state(tmp_path: Path) -> None:
    assert state.read(tmp_path) is None


def test_results_without_a_state_count_as_done(tmp_path: Path) -> None:
    for name in ("b.replay.gz", "a.replay.parquet", ".c.replay.gz", ".d.part", "e.load.gz"):
        (tmp_path / name).touch()
    (tmp_path / "f.replay.gz").mkdir()
    found = state.read(tmp_path)
    assert found is not None
    assert (found.state, found.recorded, found.variables) == ("done", False, {})
    assert [instance.output for instance in found.instances] == ["a.replay.parquet", "b.replay.gz"]


def test_unknown_and_missing_keys_are_tolerated(tmp_path: Path) -> None:
    content = {"state": "failed", "future": [1], "instances": [{"host": "a", "new": 1}], "hosts": {"a": [{"at": 1}]}}
    (tmp_path / "campaign.json").write_text(json.dumps(content))
    found = state.read(tmp_path)
    assert found is not None
    assert (found.state, found.instances, found.hosts["a"][0].at) == ("failed", [InstanceState(host="a")], 1.0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "it is no valid JSON"),
        ("[]", "not a JSON object"),
        ('{"version": 2}', "newer iosonar"),
        ('{"state": "fine"}', "not one of"),
        ('{"variables": {"a": 1}}', "variables: 1 is not a string"),
        ('{"instances": [{"exit_code": "x"}]}', "instances: exit_code: 'x' is not an integer"),
        ("[" * 100_000, ""),
    ],
)
def test_a_damaged_state_is_an_error_with_a_remedy(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "campaign.json").write_text(content)
    with pytest.raises(UserError, match="is damaged") as error:
        state.read(tmp_path)
    assert reason in str(error.value)
    assert "remove it" in str(error.value)
