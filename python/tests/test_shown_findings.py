"""Findings in a real browser: on a page and in a view, each leads to the diagram and the time that show it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from factory import MS, run_row, write_run
from firefox import Firefox
from made_run import made_run
from pages import Opened
from playwright.sync_api import Browser
from test_view_page import HOSTILE, Address, opened
from views import served, viewed

from iosonar.diagrams import CATALOGUE, Options, Study
from iosonar.figures.model import Severity
from iosonar.findings.text import VIEWED, view_command
from iosonar.report.page import Banner, ShownFinding, write_page
from iosonar.report.run_page import run_page
from iosonar.report.selection import Selection
from iosonar.table import open_requests

EVIDENCE: dict[str, Any] = {"filter": "true", "diagram": "delay.realtime", "from_s": 4.0, "to_s": 5.0}


def wait_for(page: Opened, condition: str) -> None:
    """Until the condition holds: the page allows no evaluation of text, as `wait_for_function` needs it."""
    for _ in range(100):
        if page.page.evaluate(condition):
            return
        page.page.wait_for_timeout(100)
    raise AssertionError(condition)


def written(directory: Path, *findings: ShownFinding, banners: tuple[Banner, ...] = ()) -> Path:
    """The page of a run with these findings and banners."""
    run = write_run(directory / "db.replay.parquet", made_run(3000, seconds=10))
    with open_requests([run]) as requests:
        only = Selection(only=("latency", "delay"))
        page = run_page(Study(requests, Options()), only.choose(CATALOGUE, requests))
    path = directory / "page.html"
    summary = replace(page.summary, findings=findings, banners=banners or page.summary.banners)
    write_page(replace(page, summary=summary), path, None)
    return path


def test_a_finding_leads_to_its_diagram_and_time(browser: Browser, tmp_path: Path) -> None:
    details = (("Rows", (f"`{HOSTILE}`",)), ("Sure", ("high: 7 of 7",)))
    found = ShownFinding(Severity.BAD, f"S07 {HOSTILE}", f"seen {HOSTILE}", details, "delay.setpoint", 4.0, 5.0)
    page = Opened(browser, written(tmp_path, found))
    box = page.page.locator("details.finding")
    box.locator("a").click()
    assert page.x_range("delay.setpoint") == (4, 5)
    wait_for(page, "document.getElementById('figure-delay.setpoint').getBoundingClientRect().top < 900")
    box.locator("summary b").click()
    # What a file says is text.
    assert box.locator("summary b").inner_text() == f"S07 {HOSTILE}"
    assert HOSTILE in box.locator("dd").first.inner_text() and "high: 7 of 7" in box.inner_text()
    assert page.page.evaluate("window.hit") is None and not page.errors
    page.page.context.close()


def test_answers_are_on_the_first_screen_below_any_banners(browser: Browser, tmp_path: Path) -> None:
    banners = tuple(Banner(Severity.BAD, f"{number} {'not faithful, ' * 40}", "Bad:") for number in range(9))
    page = Opened(browser, written(tmp_path, banners=banners))
    page.page.set_viewport_size({"width": 1300, "height": 900})
    last = page.page.locator(".answers > div").last.bounding_box()
    assert last and last["y"] + last["height"] <= 900
    lines = page.page.locator("details.banner:visible")
    assert lines.count() == 3 and "6 more warnings" in page.page.locator("details.more > summary").inner_text()
    low = lines.first.bounding_box()
    lines.first.locator("summary").click()
    high = lines.first.bounding_box()
    assert low and high and low["height"] < 40 < high["height"]
    page.page.locator("details.more > summary").click()
    assert page.page.locator("details.banner:visible").count() == 9
    page.page.context.close()


@contextmanager
def view_with_findings(directory: Path) -> Iterator[str]:
    """The address of a view of a run with two findings."""
    run = write_run(directory / "db.replay.parquet", made_run(3000, seconds=10))
    one = {"number": "S07", "title": HOSTILE, "severity": "bad", "seen": HOSTILE, "evidence": EVIDENCE}
    other = one | {
        "number": "S03",
        "severity": "info",
        "evidence": EVIDENCE | {"diagram": "latency.bands", "to_s": 6.0},
    }
    diagnosis = json.dumps({"findings": [one, other]})
    with viewed(run, directory / "caches", diagnosis) as view, served(view) as server:
        yield server.url


def test_a_finding_of_the_view_leads_to_its_place(browser: Browser, tmp_path: Path) -> None:
    with view_with_findings(tmp_path) as address:
        page = opened(browser, address)
        rows = page.page.locator("#found .finding")
        rows.nth(1).wait_for()
        assert HOSTILE in rows.first.inner_text() and page.page.evaluate("window.hit") is None
        rows.first.locator("a").click()
        wait_for(page, "iosonar.plots.get('delay.realtime').xRange.low === 4")
        assert page.x_range("delay.realtime") == (4, 5)
        rows.nth(1).locator("a").click()
        wait_for(page, "iosonar.plots.get('latency.realtime').xRange.high === 6")
        page.page.context.close()


def test_findings_lead_to_their_places_in_firefox(tmp_path: Path) -> None:
    found = ShownFinding(Severity.BAD, f"S07 {HOSTILE}", HOSTILE, (), "delay.setpoint", 4.0, 5.0)
    until = "new Promise(done => {{ const look = () => {0} ? done(1) : setTimeout(look, 20); look(); }})"
    (tmp_path / "profile").mkdir()
    firefox = Firefox(tmp_path / "profile")
    try:
        firefox.open(written(tmp_path, found))
        firefox.evaluate("document.querySelector('details.finding a').click()")
        assert firefox.evaluate(until.format("iosonar.plots.get('delay.setpoint').xRange.low === 4")) == 1
        assert HOSTILE in firefox.evaluate("document.querySelector('details.finding summary b').textContent")
        with view_with_findings(tmp_path) as address:
            firefox.open(Address(address))  # type: ignore[arg-type]
            assert firefox.evaluate(until.format("document.querySelectorAll('#found .finding').length === 2")) == 1
            firefox.evaluate("document.querySelectorAll('#found .finding')[1].querySelector('a').click()")
            assert firefox.evaluate(until.format("iosonar.plots.get('latency.realtime').xRange.high === 6")) == 1
        assert firefox.errors == []
        assert firefox.evaluate("window.hit ?? 'no'") == "no"
    finally:
        firefox.close()


def test_the_command_of_a_finding_names_a_diagram_of_the_view(tmp_path: Path) -> None:
    from iosonar.findings.finding import Confidence, Evidence, Finding
    from iosonar.findings.finding import Severity as Weight

    evidence = Evidence("true", "latency.bands", 1.5, 2.25)
    finding = Finding("S07", "n", "t", Weight.BAD, "s", evidence, "m", (), (), Confidence.HIGH, "w")
    command = "iosonar view 'a b' --figure latency.realtime --from 1.5 --to 2.25"
    assert view_command(finding, "a b") == command
    run = write_run(tmp_path / "a.replay.parquet", [run_row(1), run_row(2, scheduled=MS)])
    with viewed(run, tmp_path / "caches") as view:
        assert view.figures.names == VIEWED
