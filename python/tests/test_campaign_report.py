"""The report of a campaign: which factor made a difference, by how much, and how sure that is."""

from __future__ import annotations

import json
import math
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from campaign_designs import CMODES, EFFECT, places
from factory import US, run_row, write_run

from iosonar.campaign import outcome, state
from iosonar.campaign.report import gate, run_report
from iosonar.campaign.report.analysis import Analysis, analyse_campaign
from iosonar.campaign.report.factors import Place
from iosonar.campaign.report.figures import effect_plots
from iosonar.campaign.report.findings import banners, drift, headline
from iosonar.campaign.report.page import campaign_page
from iosonar.campaign.report.results import read_results
from iosonar.campaign.state import LeafState
from iosonar.errors import UsageError, UserError
from iosonar.figures.model import Severity
from iosonar.report.gate import HOLDS, UNDECIDED
from iosonar.report.gate_files import Case, CaseOutcome, write_junit

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/campaign-report.json").read_text())


def leaf(
    top: Path,
    place: Place,
    latency_us: float,
    number: int,
    requests: int = 1100,
    common: list[str] | None = None,
    own: list[str] | None = None,
    delay_ns: int = US,
    hosts: int = 2,
    **run: Any,
) -> None:
    """A leaf with a run on each host."""
    directory = top.joinpath(*place.path)
    directory.mkdir(parents=True)
    random = np.random.default_rng(number)
    for host in range(hosts):
        latency = random.lognormal(math.log(latency_us), 0.4, requests)
        rows = [
            run_row(n, scheduled=n * 1000 * US, latency=int(value * US), delay=delay_ns, sector=n * 8)
            for n, value in enumerate(latency)
        ]
        machine = {"hostname": f"host{host}"}
        write_run(directory / f"X.host{host}.replay.parquet", rows, run={"machine": machine, **run})
    variables = dict(place.variables)
    begin = 1.7e9 + number * 60
    state.write(
        directory,
        LeafState(
            "/".join(place.path),
            "done",
            started=begin,
            ended=begin + 30,
            path=[*place.path],
            variables=variables,
            options=own or common,
            common_options=common,
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


def test_a_page_replaces_only_one_of_the_same_campaign(campaign: Path, tmp_path: Path) -> None:
    page, other = tmp_path / "page.html", tmp_path / "other.html"
    for _ in range(2):
        assert run_report(campaign, [], page, False, []) == 0
    other.write_text("precious")
    with pytest.raises(UserError, match=r"other\.html exists, and is not known to be of this input: name another file"):
        run_report(campaign, [], other, False, [])
    assert other.read_text() == "precious"
    assert run_report(campaign, [], other, False, [], overwrite=True) == 0
    assert "precious" not in other.read_text()


def test_outputs_of_a_campaign_report_are_different_files(campaign: Path, tmp_path: Path) -> None:
    page, link = tmp_path / "page.html", tmp_path / "link"
    link.symlink_to(page)
    default = campaign / "campaign.report.html"
    for output, *files in ((page, link, None), (page, None, link), (page, *[tmp_path / "x"] * 2), (None, default)):
        with pytest.raises(UsageError, match="are one file"):
            run_report(campaign, [], output, False, [], *files)
    assert not page.exists()


def test_json_has_the_same_and_no_nan(campaign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_report(campaign, ["cmode"], tmp_path / "p.html", True, ["p99 > 1h"]) == UNDECIDED

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
    page = campaign_page(analysis, gate.judge(tmp_path, [], read_results(tmp_path)), tmp_path, "c")
    figures = [f for each in page.sections for f in each.figures]
    assert figures and all("FAKE RESULT" in [note.text for note in figure.notes] for figure in figures)
    assert next(banners(analysis)).head == "No verdict on the storage:"


def test_odd_names_of_directories_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = "a\x1b[31m<b>\n\udcff$(x)"
    for number, name in enumerate((odd, "plain")):
        for repeat in ("repeat-1", "repeat-2"):
            leaf(tmp_path, Place((name, repeat), {"threads": name}), 1000 * (1 + number), number)
    assert run_report(tmp_path, [], None, False, ["p99 > 1ns"]) == HOLDS
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
    assert "replay_options=(--isolate=priority), delete all results, and run the campaign again" in text
    assert "repeat-1" not in text


ISOLATED = ["--depth", "16", "--isolate=priority"]


def test_effects_that_mix_replay_options_have_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, place in enumerate(places(threads=(16, 64), repeats=3)):
        again = place.path[:3] == ("load0", "016-threads", CMODES[0])
        common = ISOLATED if again else ISOLATED[:2]
        leaf(tmp_path, place, 1000 * (1 if again else 2) * (1 + number % 3 / 100), number, common=common, hosts=1)
    analysis = analysed(tmp_path)
    assert analysis.mixed == ("input_file_list", "threads", "cmode")
    assert not any(effect.claimed for each in analysis.metrics for effect in each.effects)
    assert headline(analysis).endswith("cmode there is no verdict: the replays had different options.")
    text = next(banner.text for banner in banners(analysis) if banner.head == "Different options:")
    assert text.startswith("21 leaves with none of these; 3 leaves (load0/016-threads/with-conflicts/repeat-1, ")
    assert text.endswith(
        "with --isolate=priority. No verdict for input_file_list, threads and cmode. Delete all results, and run the "
        "campaign again with the same options."
    )
    assert run_report(tmp_path, [], None, True, []) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    assert [len(group["leaves"]) for group in found["different_options"]] == [21, 3]
    assert found["different_options"][1]["options"] == ["--isolate=priority"]
    assert all(effect["mixed"] for metric in found["metrics"] for effect in metric["effects"])
    page = (tmp_path / "campaign.report.html").read_text()
    assert "no verdict: options differ" in page and "Different options:" in page


def test_options_in_the_confs_of_a_path_are_a_factor(tmp_path: Path) -> None:
    for number, place in enumerate(places(threads=(16, 64), repeats=2)):
        own = ["--depth", place.variables["threads"], "--seed", str(number)]
        leaf(tmp_path, place, 1000 * (1 + (place.path[2] == CMODES[1])), number, common=ISOLATED, own=own, hosts=1)
    analysis = analysed(tmp_path)
    assert (analysis.groups, analysis.mixed) == ((), ())
    assert headline(analysis).startswith("cmode (")


def test_repetitions_of_a_leaf_with_different_options_are_named(tmp_path: Path) -> None:
    for number, place in enumerate(places(loads=1, threads=(16, 64), repeats=2)):
        own = ["--depth", "7"] if place.path[1:] == ("016-threads", CMODES[0], "repeat-2") else ISOLATED
        leaf(tmp_path, place, 1000 + number, number, common=ISOLATED, own=own)
    groups = analysed(tmp_path).groups
    assert [(len(group.leaves), group.options) for group in groups if "--depth 7" in group.options] == [
        (1, ("--depth 7",))
    ]


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


def test_the_page_says_why_a_metric_lacks_leaves_and_levels(tmp_path: Path) -> None:
    for number, place in enumerate(places(threads=(16, 64), repeats=1)):
        leaf(tmp_path, place, 1000 + 10 * number, number, requests=300 if place.path[0] == "load0" else 1100)
    analysis = analysed(tmp_path)
    text = "No p99 latency for input_file_list: the 4 of 8 leaves that have one (1,000 requests) are all of one level"
    notes = {plot.name: [note.text for note in plot.notes] for plot in effect_plots(analysis)}
    assert text in notes["effects.p99"] and not notes.get("effects.p50")
    page = campaign_page(analysis, gate.judge(tmp_path, [], list(analysis.leaves)), tmp_path, "study")
    effects, leaves = page.sections
    assert text in effects.about
    assert "A dash: too few requests; p99 needs 1,000 requests." in leaves.about


def test_drift_that_looks_like_an_effect_names_the_order(tmp_path: Path) -> None:
    for number, place in enumerate(places(threads=(16, 64), repeats=2)):
        leaf(tmp_path, place, 1000 if place.path[0] == "load0" else 3000, number, hosts=1)
    text = next(drift(analysed(tmp_path)))
    assert text.startswith("all leaves of 0.load.gz ran before those of 1.load.gz, so drift would look like this"), text


def test_an_empty_campaign_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(UserError, match=r"no leaf of .* has a result: run `iosonar campaign` there first"):
        run_report(tmp_path, [], None, False, [])
    assert run_report(tmp_path, [], None, False, ["p99 > 1ms"]) == UNDECIDED
    assert "No leaf has a result yet" in capsys.readouterr().out


def test_a_load_larger_than_its_device_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leaf(tmp_path, Place(("a",), {}), 1000, 0)
    found = state.read(tmp_path / "a")
    assert found
    found.instances = [state.InstanceState("h", "/dev/x", summary={"wrap_factor": factor}) for factor in (0.9, 2.5)]
    assert [text.partition(": the same")[0] for text in outcome.wrapped(found.instances, [])] == [
        "warning: h:/dev/x: the load is 2.5 times as large as the device and wrapped around"
    ]
    assert not list(outcome.wrapped(found.instances, ["--fit", "scale"]))
    state.write(tmp_path / "a", found)
    assert run_report(tmp_path, [], None, False, []) == 0
    assert "Wrapped around: a (× 2.5); the load reaches beyond the device" in capsys.readouterr().out


def test_the_gate_fails_decides_nothing_or_passes(campaign: Path) -> None:
    results = read_results(campaign)
    assert gate.judge(campaign, [], results).exit_code == 0
    assert gate.judge(campaign, gate.parse_conditions(["p99 > 1ms"]), results).exit_code == HOLDS
    assert gate.judge(campaign, gate.parse_conditions(["p99 > 1h"]), results).exit_code == UNDECIDED
    sure = [each for each in results if each.done and not each.doubt]
    assert gate.judge(campaign, gate.parse_conditions(["p99 > 1h"]), sure).exit_code == 0


def test_junit_has_a_case_for_each_leaf(campaign: Path, tmp_path: Path) -> None:
    results = read_results(campaign)
    judged = gate.judge(campaign, gate.parse_conditions(["p99 > 3ms"]), results)
    path = tmp_path / "junit.xml"
    write_junit("campaign", judged.cases, path)
    suite = ElementTree.parse(path).getroot()
    assert suite.get("tests") == str(len(results)) == str(len(suite.findall("testcase")))
    assert suite.get("failures") == str(judged.number(CaseOutcome.FAILED))
    assert len(suite.findall("testcase/error")) == 2
    case = suite.find("testcase/error/..")
    assert case is not None
    assert case.get("classname") == "campaign.load0.016-threads.with-conflicts"


def test_the_summary_in_markdown_has_leaves_and_conditions(campaign: Path, tmp_path: Path) -> None:
    junit, markdown = tmp_path / "junit.xml", tmp_path / "s.md"
    assert run_report(campaign, [], tmp_path / "p.html", False, ["p99 > 1ms"], junit, markdown) == HOLDS
    text = markdown.read_text()
    assert text.startswith(f"## {campaign.name}") and "### Conditions" in text and "| leaf | p50 |" in text
    assert "| load0/016-threads/with-conflicts/repeat-1 | failed | p99" in text
    failures = ElementTree.parse(junit).getroot().attrib["failures"]
    assert failures == str(text.count("| failed | p99")) != "0"


def test_junit_escapes_what_xml_forbids(tmp_path: Path) -> None:
    case = Case("a\x1b", 'b<&"', CaseOutcome.FAILED, "\x00\ud800", 1.0)
    write_junit("campaign", [case], tmp_path / "j.xml")
    assert ElementTree.parse(tmp_path / "j.xml").getroot().find("testcase/failure") is not None
