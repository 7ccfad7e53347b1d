"""The report of a campaign: which factor made a difference, by how much, and how sure that is."""

from __future__ import annotations

import json
import math
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from factory import US, run_row, write_run
from numpy.typing import NDArray

from iosonar.campaign import state
from iosonar.campaign.report import gate, run_report
from iosonar.campaign.report.analysis import Analysis, analyse_campaign
from iosonar.campaign.report.effects import MetricAnalysis, analyse, holm
from iosonar.campaign.report.factors import Factor, Place, factors_of
from iosonar.campaign.report.figures import MAX_NAME, short_path, value_axis
from iosonar.campaign.report.gate import LeafCondition, LeafOutcome
from iosonar.campaign.report.results import Fidelity, LeafResult, read_results
from iosonar.campaign.report.words import banners, headline
from iosonar.campaign.state import LeafState
from iosonar.errors import UsageError
from iosonar.figures.model import Scale, Severity, Unit

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/campaign-report.json").read_text())

CMODES = ("with-conflicts", "with-partial")
EFFECT = 0.3
"""The change by the second conflict mode: the only factor that matters."""

Array = NDArray[np.float64]


def places(loads: int = 2, threads: Sequence[int] = (16, 64, 256), repeats: int = 2) -> list[Place]:
    """A full factorial design."""
    return [
        Place(
            (f"load{load}", f"{each:03}-threads", cmode, f"repeat-{repeat}"),
            {"threads": str(each), "cmode": cmode, "strong": "1", "input_file_list": f"{load}.load.gz"},
        )
        for load in range(loads)
        for each in threads
        for cmode in CMODES
        for repeat in range(1, repeats + 1)
    ]


def metrics(
    of: Sequence[Place], random: np.random.Generator, effect: float = EFFECT, noise: float = 0.05
) -> dict[str, Array]:
    """Latencies with a known effect; the metrics of a leaf vary together in part, as percentiles do."""
    true = np.array([math.log(2e-3) + (place.path[2] == CMODES[1]) * math.log1p(effect) for place in of])
    shared = random.normal(0, noise, len(of))
    return {
        name: np.exp(true + offset + weight * shared + random.normal(0, noise / 2, len(of)))
        for name, offset, weight in (("p50", 0.0, 0.5), ("p95", 1.1, 0.8), ("p99", 1.8, 1.0))
    }


def coverage(of: Sequence[Place], effect: float, campaigns: int = 200) -> tuple[float, float]:
    """The share of intervals that contain the true effect, and the share of campaigns with a false claim."""
    random = np.random.default_rng(7)
    factors = factors_of(of).all
    covered = intervals = alarms = 0
    for _ in range(campaigns):
        alarm = False
        for each in analyse(metrics(of, random, effect), factors):
            for found in each.effects:
                true = effect if found.factor == "cmode" else 0.0
                covered += found.low <= true <= found.high
                intervals += 1
                alarm |= found.claimed and not true
        alarms += alarm
    return covered / intervals, alarms / campaigns


@pytest.mark.parametrize("effect", [0.0, EFFECT])
@pytest.mark.parametrize("repeats", [1, 2])
def test_intervals_contain_the_true_effect_in_95_percent(effect: float, repeats: int) -> None:
    covered, alarms = coverage(places(repeats=repeats), effect)
    # Three standard errors of 200 campaigns: the metrics of a campaign are not independent.
    assert 0.92 <= covered <= 0.98
    assert alarms <= 0.10


def test_unbalanced_designs_have_right_intervals() -> None:
    random = np.random.default_rng(3)
    kept = [place for place in places() if random.random() < 0.7]
    covered, alarms = coverage(kept, EFFECT)
    assert 0.92 <= covered <= 0.98
    assert alarms <= 0.10


def found(each: Sequence[MetricAnalysis], metric: str, factor: str) -> Any:
    return next(e for one in each if one.metric == metric for e in one.effects if e.factor == factor)


def test_shortened_names_of_leaves_remain_different() -> None:
    names = {"/".join(place.path) for place in places()}
    found = {short_path(name) for name in names}
    assert len(found) == len(names) and all(len(name) <= MAX_NAME for name in found), found
    assert short_path("a/b") == "a/b" and len(short_path("x" * 999)) <= MAX_NAME
    assert len(short_path("/".join(["abcdef"] * 99))) <= MAX_NAME


def test_an_outlier_does_not_flatten_the_axis_of_effects() -> None:
    def scale(*values: float) -> Scale:
        axis = value_axis("p99", Unit.SECONDS, np.array([*values, math.nan]), float(np.median(values)))
        assert axis.low <= min(values) and max(values) <= axis.high
        return axis.scale

    assert scale(1e-3, 1.1e-3, 1.2e-3, 9e-3) is Scale.LOG
    assert scale(1e-3, 1.1e-3, 1.2e-3, 3e-3) is Scale.LINEAR
    assert scale(0.0, 1e-3, 9e-3) is Scale.LINEAR


def test_the_factor_that_matters_is_claimed_with_its_size() -> None:
    of = places()
    each = analyse(metrics(of, np.random.default_rng(1)), factors_of(of).all)
    effect = found(each, "p99", "cmode")
    assert effect.claimed
    assert (effect.from_level, effect.to_level) == CMODES
    assert effect.low < EFFECT < effect.high
    assert effect.high - effect.low < 0.2
    for name in ("threads", "input_file_list"):
        assert not found(each, "p99", name).claimed
        assert found(each, "p99", name).at_most < 0.2


def test_without_residual_degrees_of_freedom_nothing_is_claimed() -> None:
    of = places(loads=1, threads=(16, 64), repeats=1)[:3]
    each = analyse(metrics(of, np.random.default_rng(1)), factors_of(of).all)
    assert all(one.freedom == 0 for one in each)
    assert not any(effect.claimed for one in each for effect in one.effects)


def test_a_large_interaction_is_named() -> None:
    of = places(repeats=3)
    random = np.random.default_rng(1)
    y = np.array([math.log(1e-3) + 0.6 * (p.path[2] == CMODES[1] and p.path[1] == "256-threads") for p in of])
    (each,) = analyse({"p99": np.exp(y + random.normal(0, 0.03, len(of)))}, factors_of(of).all)
    (interaction,) = each.interactions
    assert set(interaction.factors) == {"threads", "cmode"}
    assert max(map(abs, interaction.changes)) == pytest.approx(math.expm1(0.6), abs=0.1)


def test_effects_are_known_though_a_combination_is_missing() -> None:
    of = [place for place in places(repeats=3) if place.path[1:3] != ("064-threads", CMODES[0])]
    random = np.random.default_rng(1)
    y = np.array([math.log(1e-3) + 0.6 * (p.path[2] == CMODES[1] and p.path[1] == "256-threads") for p in of])
    (each,) = analyse({"p99": np.exp(y + random.normal(0, 0.03, len(of)))}, factors_of(of).all)
    assert each.interactions
    assert all(math.isfinite(effect.change) for effect in each.effects)


def test_random_noise_has_no_interaction_in_most_campaigns() -> None:
    of, random = places(), np.random.default_rng(5)
    factors = factors_of(of).all
    named = sum(any(each.interactions for each in analyse(metrics(of, random), factors)) for _ in range(100))
    assert named <= 12


def test_holm_corrects_as_in_the_textbook() -> None:
    assert holm([0.01, 0.04, math.nan, 0.03]) == pytest.approx([0.03, 0.06, math.nan, 0.06], nan_ok=True)


def test_a_drift_in_time_explains_more_than_a_factor() -> None:
    of, random = places(), np.random.default_rng(2)
    started: Array = np.arange(len(of), dtype=np.float64) * 60.0
    drift = np.exp(math.log(1e-3) + 0.5 * started / started[-1] + random.normal(0, 0.01, len(of)))
    (each,) = analyse({"p99": drift}, factors_of(of).all, started)
    # The first level of the tree changed only once, so it takes the drift as its own effect.
    assert found([each], "p99", "input_file_list").time_explains_more
    # The factors explain nearly all of the order, so the size of a trend is unknown.
    assert each.trend is None
    (each,) = analyse({"p99": random.permutation(drift)}, factors_of(of).all, started)
    assert each.trend is None
    order = random.permutation(len(of))
    (each,) = analyse({"p99": drift[order]}, factors_of(of).all, started[order])
    assert each.trend is not None
    assert each.trend.claimed
    assert each.trend.change == pytest.approx(math.expm1(0.5), abs=0.1)
    step = np.where(np.array([p.path[0] == "load1" for p in of]), 1.5, 1.0) * 1e-3
    (each,) = analyse({"p99": step * np.exp(random.normal(0, 0.01, len(of)))}, factors_of(of).all, started)
    assert not found([each], "p99", "input_file_list").time_explains_more


# Factors


def test_levels_are_named_by_the_variable_that_varies_with_them() -> None:
    names = [factor.name for factor in factors_of(places()).all]
    assert names == ["input_file_list", "threads", "cmode"]


def test_a_level_of_several_variables_is_named_by_its_number() -> None:
    of = [Place((a, b), {"x": a, "y": a}) for a in ("p", "q") for b in ("r", "s")]
    assert [factor.name for factor in factors_of(of).all] == ["level 1 (p, q)", "level 2 (r, s)"]


def test_of_several_variables_the_one_in_the_name_counts() -> None:
    of = [Place((f"{n:03}-threads",), {"threads": str(n), "bottleneck": str(n)}) for n in (4, 16)]
    assert [(factor.name, factor.levels) for factor in factors_of(of).all] == [("threads", ("4", "16"))]


def test_variables_that_follow_from_the_path_name_no_level() -> None:
    of = [Place((f"{n}",), {"threads": n, "sub_prefix": f".{n}", "output_label": n}) for n in ("4", "16")]
    assert [factor.name for factor in factors_of(of).all] == ["threads"]


def test_names_of_directories_replace_long_values() -> None:
    of = [Place((name,), {"input_file_list": f"/usr/share/iosonar/{name}.load.gz"}) for name in ("steady", "bursts")]
    assert [(factor.name, factor.levels) for factor in factors_of(of).all] == [
        ("input_file_list", ("bursts", "steady"))
    ]


def test_repeats_are_no_factor() -> None:
    of = [Place((f"{kind}-{n}",), {}) for kind in ("repeat", "run") for n in (1, 2)]
    assert factors_of(of).all == ()


def test_factors_that_vary_together_are_one() -> None:
    of = [Place((a, b), {}) for a, b in (("short", "016"), ("long", "032")) for _ in range(2)]
    (factor,) = factors_of(of).all
    assert factor.together_with == ("level 2 (016, 032)",)


def test_by_chooses_factors_and_the_others_are_adjusted_for() -> None:
    factors = factors_of(places(), ["cmode", "2"])
    assert [factor.name for factor in factors.reported] == ["cmode", "threads"]
    assert [factor.name for factor in factors.adjusted] == ["input_file_list"]
    with pytest.raises(UsageError, match="no level of the tree and no variable"):
        factors_of(places(), ["nothing"])
    with pytest.raises(UsageError, match="same value in all leaves"):
        factors_of(places(), ["strong"])


def test_levels_are_sorted_by_number() -> None:
    factor = next(factor for factor in factors_of(places()).all if factor.name == "threads")
    assert factor.levels == ("16", "64", "256")
    assert isinstance(factor, Factor)


# Leaves, page and gate


def leaf(top: Path, place: Place, latency_us: float, number: int, requests: int = 1100, **run: Any) -> None:
    """A leaf with a run on each of two hosts."""
    directory = top.joinpath(*place.path)
    directory.mkdir(parents=True)
    random = np.random.default_rng(number)
    for host in range(2):
        latency = random.lognormal(math.log(latency_us), 0.4, requests)
        rows = [
            run_row(n, scheduled=n * 1000 * US, latency=int(value * US), delay=US, sector=n * 8)
            for n, value in enumerate(latency)
        ]
        machine = {"hostname": f"host{host}"}
        write_run(directory / f"X.host{host}.replay.parquet", rows, run={"machine": machine, **run})
    variables = dict(place.variables)
    begin = 1.7e9 + number * 60
    state.write(
        directory,
        LeafState(
            "/".join(place.path), "done", started=begin, ended=begin + 30, path=[*place.path], variables=variables
        ),
    )


UNFAITHFUL: dict[str, Any] = {
    "statistics": {"within_pct": {"10": 10.0, "50": 40.0, "100": 60.0}, "delay_us": {"p99": 900.0, "max": 1e3}}
}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of 2 × 2 × 2 leaves; only the conflict mode matters. One leaf is unfaithful, one failed."""
    top = tmp_path_factory.mktemp("campaign") / "study"
    of = places(threads=(16, 64), repeats=1)
    random = np.random.default_rng(1)
    for number, place in enumerate(of):
        slower = 1 + EFFECT if place.path[2] == CMODES[1] else 1.0
        leaf(top, place, 1000 * slower * math.exp(random.normal(0, 0.01)), number)
    shutil.copytree(top.joinpath(*of[0].path), top.joinpath("load0", "016-threads", CMODES[0], "repeat-9"))
    unfaithful = Place(("load0", "016-threads", CMODES[0], "repeat-8"), of[0].variables)
    leaf(top, unfaithful, 9000, 99, **UNFAITHFUL)
    failed = top.joinpath("load0", "016-threads", CMODES[0], "repeat-7")
    failed.mkdir()
    state.write(failed, LeafState("x", "failed", "host1: No space left", variables=dict(of[0].variables)))
    return top


def analysed(top: Path) -> Analysis:
    return analyse_campaign(read_results(top))


def test_the_headline_names_the_factor_its_size_and_confidence(campaign: Path) -> None:
    text = headline(analysed(campaign))
    assert text.startswith("cmode (with-partial against with-conflicts) changes the p99 latency by +3")
    assert "95 % interval +" in text
    assert "input_file_list and threads show no difference larger than" in text


def test_unfaithful_and_failed_leaves_are_left_out_and_named(campaign: Path) -> None:
    analysis = analysed(campaign)
    assert [each.name.rsplit("/", 1)[-1] for each in analysis.left_out] == ["repeat-8"]
    texts = [f"{banner.head} {banner.text}" for banner in banners(analysis)]
    assert any(text.startswith("Left out: load0/016-threads/with-conflicts/repeat-8 (the replay") for text in texts)
    assert any("repeat-7 (failed: host1: No space left)" in text for text in texts)


def test_instances_of_a_leaf_are_pooled_and_shown_by_device(campaign: Path) -> None:
    each = next(leaf for leaf in read_results(campaign) if leaf.done)
    assert each.metrics["requests"] == 2200
    assert sorted(device.name for device in each.devices) == ["host0:/dev/loop9", "host1:/dev/loop9"]
    assert 1.0 <= each.spread < 1.5


def test_the_page_has_effects_and_links_to_leaves(
    campaign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert run_report(campaign, [], page, False, []) == 0
    out = capsys.readouterr().out
    assert out.startswith("Result: cmode (with-partial against with-conflicts)")
    assert out.rstrip().endswith("page.html")
    text = page.read_text()
    assert "P99 latency at each level" in text
    assert 'study/load0/016-threads/with-conflicts/repeat-1">load0/016-threads' in text


def test_json_has_the_same_and_no_nan(campaign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_report(campaign, ["cmode"], tmp_path / "p.html", True, ["p99 > 1h"]) == gate.UNDECIDED

    def refuse(text: str) -> None:
        raise AssertionError(text)

    report = json.loads(capsys.readouterr().out, parse_constant=refuse)
    jsonschema.validate(report, SCHEMA)
    assert [factor["name"] for factor in report["factors"]] == ["cmode"]
    assert report["metrics"][0]["effects"][0]["claimed"]
    assert sum(each["used"] for each in report["leaves"]) == 9


def test_a_second_report_reads_no_result_again(campaign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_results(campaign)
    monkeypatch.setattr("iosonar.campaign.report.results.open_requests", None)
    assert repr(read_results(campaign)) == repr(first)


@pytest.mark.parametrize("content", ["", "[]", '{"version": [1, 2], "leaves": {"a": 1}}'])
def test_a_damaged_cache_is_not_used(tmp_path: Path, content: str) -> None:
    leaf(tmp_path, Place(("a",), {}), 1000, 1)
    (tmp_path / ".campaign").mkdir()
    (tmp_path / ".campaign" / "measured.json").write_text(content)
    assert [each.done for each in read_results(tmp_path)] == [True]


def test_a_changed_result_is_measured_again(tmp_path: Path) -> None:
    leaf(tmp_path, Place(("a",), {}), 1000, 1)
    before = read_results(tmp_path)[0].metrics["p50"]
    shutil.rmtree(tmp_path / "a")
    leaf(tmp_path, Place(("a",), {}), 2000, 1)
    assert read_results(tmp_path)[0].metrics["p50"] == pytest.approx(2 * before, rel=0.01)


def test_if_every_result_is_fake_there_is_no_verdict(tmp_path: Path) -> None:
    for number, place in enumerate(places(loads=1, threads=(16, 64), repeats=1)):
        leaf(tmp_path, place, 1000, number, fake="FAKE RESULT: simulated")
    analysis = analysed(tmp_path)
    assert analysis.doubt == "every result is fake"
    assert next(banners(analysis)).head == "No verdict on the storage:"


def test_odd_names_of_directories_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = "a\x1b[31m<b>\n\udcff$(x)"
    for number, name in enumerate((odd, "plain")):
        for repeat in ("repeat-1", "repeat-2"):
            leaf(tmp_path, Place((name, repeat), {"threads": name}), 1000 * (1 + number), number)
    assert run_report(tmp_path, [], None, False, ["p99 > 1ns"]) == gate.HOLDS
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
    assert len(printed.err.splitlines()) == 4
    page = (tmp_path / "campaign.report.html").read_text()
    assert "\x1b" not in page
    assert "&lt;b&gt;" in page
    assert "a%1B%5B31m%3Cb%3E%0A%FF%24%28x%29/repeat-1" in page
    assert run_report(tmp_path, [], None, True, []) == 0
    assert json.loads(capsys.readouterr().out)["factors"][0]["name"] == "threads"


def test_leaves_left_out_are_to_be_run_again_not_repeated(tmp_path: Path) -> None:
    for number, place in enumerate(places(loads=1, threads=(16, 64), repeats=2)):
        leaf(tmp_path, place, 1000, number, **({} if number in (0, 4) else UNFAITHFUL))
    text = headline(analysed(tmp_path))
    assert text.startswith("Too few leaves to say which factor makes a difference: 2 of 8 allow a verdict")
    assert "replay_options=(--isolate=priority), delete their results, and run the campaign again" in text
    assert "repeat-1" not in text


def test_an_interval_wider_than_a_factor_of_ten_says_nothing(tmp_path: Path) -> None:
    for number, place in enumerate(places(loads=1, threads=(16, 64), repeats=1)):
        leaf(tmp_path, place, 1000 if number in (0, 3) else 10, number)
    found = analysed(tmp_path)
    assert headline(found).startswith("For threads and cmode nothing can be said: leaves with the same")
    assert next(banners(found)).severity is Severity.NEUTRAL


def test_too_few_requests_are_named(tmp_path: Path) -> None:
    for number, place in enumerate(places(loads=1, threads=(16, 64), repeats=1)):
        leaf(tmp_path, place, 1000, number, requests=5)
    assert headline(analysed(tmp_path)).startswith("Too few requests to say which factor makes a difference: 0 of 4")


def test_an_empty_campaign_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").mkdir()
    assert run_report(tmp_path, [], None, False, []) == 0
    assert "No leaf has a result yet" in capsys.readouterr().out


def result(**more: Any) -> LeafResult:
    known = {"p99": 0.02, "delay.p99": 1e-5, "throughput": 0.97, "errors": 0.0}
    return LeafResult("a/b", ("a", "b"), Path("a/b"), "done", metrics=known, fidelity=Fidelity.FAITHFUL, **more)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("p99 > 10ms", True),
        ("latency.p99 > 30ms", False),
        ("p99>=20ms", True),
        ("delay.p99 > 1ms", False),
        ("throughput < 98%", True),
        ("errors > 0", False),
        ("errors == 0", True),
        ("verdict = unfaithful", False),
        ("verdict != faithful", False),
        ("state != done", False),
        ("p50 > 1ms", None),
    ],
)
def test_conditions_hold_for_metrics_of_a_leaf(text: str, holds: bool | None) -> None:
    assert LeafCondition.parse(text).outcome(result())[0] is holds


@pytest.mark.parametrize(
    "text",
    [
        "p99",
        "p99 > 10",
        "p99 > 10%",
        "p99 > 10parsec",
        "throughput < 95",
        "errors > 1ms",
        "p98 > 1ms",
        "verdict = great",
    ],
)
def test_wrong_conditions_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid condition"):
        LeafCondition.parse(text)


def test_of_an_unfaithful_run_only_latencies_are_undecided() -> None:
    each = result(doubt="the replay was NOT faithful")
    assert LeafCondition.parse("p99 > 10ms").outcome(each)[0] is None
    assert LeafCondition.parse("delay.p99 > 1us").outcome(each)[0] is True


def test_the_gate_fails_decides_nothing_or_passes(campaign: Path) -> None:
    results = read_results(campaign)
    assert gate.judge(campaign, [], results).exit_code == 0
    assert gate.judge(campaign, gate.parse_conditions(["p99 > 1ms"]), results).exit_code == gate.HOLDS
    assert gate.judge(campaign, gate.parse_conditions(["p99 > 1h"]), results).exit_code == gate.UNDECIDED
    sure = [each for each in results if each.done and not each.doubt]
    assert gate.judge(campaign, gate.parse_conditions(["p99 > 1h"]), sure).exit_code == 0


def test_junit_has_a_case_for_each_leaf(campaign: Path, tmp_path: Path) -> None:
    results = read_results(campaign)
    judged = gate.judge(campaign, gate.parse_conditions(["p99 > 3ms"]), results)
    path = tmp_path / "junit.xml"
    gate.write_junit(judged, path)
    suite = ElementTree.parse(path).getroot()
    assert suite.get("tests") == str(len(results)) == str(len(suite.findall("testcase")))
    assert suite.get("failures") == str(judged.number(LeafOutcome.FAILED))
    assert len(suite.findall("testcase/error")) == 2
    case = suite.find("testcase/error/..")
    assert case is not None
    assert case.get("classname") == "campaign.load0.016-threads.with-conflicts"


def test_junit_escapes_what_xml_forbids(tmp_path: Path) -> None:
    judged = gate.Gate(("x",), (gate.LeafJudgement('a\x1b/b<&"', LeafOutcome.FAILED, ("\x00\ud800",), 1.0),))
    gate.write_junit(judged, tmp_path / "j.xml")
    assert ElementTree.parse(tmp_path / "j.xml").getroot().find("testcase/failure") is not None
