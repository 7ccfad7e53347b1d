"""The options of a replay of calls on its page."""

from iosonar.report.calls_options import replay_options

DEFAULTS = {
    "cache": "keep",
    "cwd": None,
    "data": {"dedupe_pct": 0, "filler": "deadbeef", "kind": "random", "random_pct": 100},
    "end": None,
    "extra_delay": 0,
    "factor": 1.0,
    "fake_io": False,
    "instances": 1,
    "order": "conservative",
    "output": "r.calls-run.parquet",
    "root": "root",
    "threads": {"pool": 64},
    "timing": "exact",
    "verify_order": True,
    "wait": None,
}


def test_of_all_defaults_only_order_and_timing_are_shown() -> None:
    assert replay_options(DEFAULTS) == "--order conservative --timing exact"
    assert replay_options({}) == ""


def test_options_read_as_on_the_command_line() -> None:
    changed = {
        "order": "fs_dispatched",
        "factor": 0.5,
        "start": 60_000_000_000,
        "instances": 4,
        "threads": {"pool": 8},
        "cache": "none",
        "verify_order": False,
        "data": {"dedupe_pct": 10, "filler": "deadbeef", "kind": "random", "random_pct": 75, "block_bytes": 8192},
    }
    assert replay_options(DEFAULTS | changed) == (
        "--order fs-dispatched --timing exact --speedup 2 --start 60 --instances 4 --depth 8 --no-cache "
        "--no-verify-order --compressible 25 --dedupe 10 --data-block 8192"
    )
    assert "--threads trace" in replay_options(DEFAULTS | {"threads": "trace"})
    assert replay_options({"data": {"kind": "zero"}}) == "--data zero"


def test_options_of_pacing_are_shown_if_they_matter() -> None:
    changed = {
        "for": 90_000_000_000,
        "isolate": ["priority", "awake"],
        "perturb": "delay=1ms",
        "repeat": 3,
        "seed": 0,
        "start_at": 1_767_225_600_000_000_000,
    }
    assert replay_options(DEFAULTS | changed) == (
        "--order conservative --timing exact --for 90 --perturb delay=1ms --seed 0 --isolate=priority,awake"
    )
