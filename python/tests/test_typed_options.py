"""The page shows options as typed, even of runs of earlier versions."""

from iosonar.report.typed_options import command_line, typed_options
from iosonar.table.footer import RunInfo


def test_typed_options_of_the_footer() -> None:
    run = RunInfo(
        typed={"target": ["/dev/sdb"], "start": "10m", "asap": True, "isolate": ["workers", "awake"]},
        options={"asap": True, "ahead_time": 1_000_000_000, "start": 600_000_000_000, "end": None},
    )
    assert command_line(run) == "--start 10m --asap --isolate workers,awake"


def test_a_run_of_an_earlier_version_shows_no_internals() -> None:
    options = {
        "load": "a.load.gz",
        "targets": ["/dev/sdb"],
        "window": {"start": 600_000_000_000, "end": 9_223_372_036_854_775_807},
        "speedup": 1.0,
        "ahead": 1_000_000_000,
        "ahead_requests": 100,
        "grace": 500_000_000,
        "buffers": 64 << 20,
        "data": {"kind": "random", "random_pct": 100, "filler": "deadbeef", "dedupe_pct": 0},
        "verify": "off",
        "no_sample": True,
        "edit": None,
    }
    expected = {"start": "600s", "ahead": "100", "grace": "0.5s", "buffers": "64", "no-sample": ""}
    assert typed_options(RunInfo(options=options)) == expected


def test_options_of_a_classic_result_stay_as_they_are() -> None:
    assert typed_options(RunInfo(options={"threads": "128", "speedup": "2"})) == {"threads": "128", "speedup": "2"}
    assert command_line(RunInfo()) == ""
