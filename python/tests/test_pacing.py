"""What the options of both replays change decides how runs are compared."""

from iosonar.pacing import PACING_OPTIONS, Changes, options_that_change
from iosonar.report.compare_sides import LOAD_OPTIONS


def test_every_option_has_its_key_once() -> None:
    keys = [option.key for option in PACING_OPTIONS]
    assert len(set(keys)) == len(keys) and {"speedup", "perturb", "start_at"} <= set(keys)


def test_runs_with_other_scheduled_times_are_other_loads() -> None:
    keys = {option.key for option in options_that_change(Changes.LOAD)}
    assert {"speedup", "asap"} <= keys <= set(LOAD_OPTIONS)
    assert not keys & {option.key for option in options_that_change(Changes.ISSUE_TIMES)}


def test_a_default_is_not_shown_and_a_time_has_seconds() -> None:
    by_key = {option.key: option for option in PACING_OPTIONS}
    assert [by_key["speedup"].words(value) for value in (1, 1.0, 2.5, None)] == ["", "", "--speedup 2.5", ""]
    assert by_key["for"].words(1_500_000_000) == "--for 1.5"
    assert by_key["asap"].words(True) == "--asap"
