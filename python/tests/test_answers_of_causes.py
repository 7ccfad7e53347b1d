"""The first screen of runs with a known cause: no answer contradicts the cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conftest import OpenStudy
from factory import MS, STATISTICS, US, run_row
from findings_kit import STEADY, poisson, simulated

from iosonar.diagrams import Options
from iosonar.figures.model import Severity
from iosonar.report.answers import Asked, answers, from_which_rate, what_limits
from iosonar.report.page import Answer
from iosonar.study.requests import Study
from iosonar.table import open_requests


def of_run(run: Path) -> dict[str, Answer]:
    with open_requests([run]) as requests:
        return {each.question: each for each in answers(Study(requests, Options()))}


def rate_in(text: str) -> float:
    return float(text.split(" requests/s")[0].split()[-1].replace(",", ""))


def test_a_collapse_is_too_slow_from_the_rate_before_it(tmp_path: Path) -> None:
    device = 'servers = 8\n[service.exponential]\nmean = "4ms"\n[collapse]\nbeyond = 16\ngrowth = 0.02\n'
    load = ("ramp", "--growth", 70, "--duration", "60s", "--size", "4k", "--reads", 0.7, "--span", "4G")
    run = simulated(tmp_path, device, *load, options=("--depth", 256))
    found = of_run(run)
    rate = found["From which rate on is it too slow?"]
    # 8 servers of 4 ms complete 2,000 requests/s, and a sixth of that once they have collapsed.
    assert rate.number == "S05" and 1500 < rate_in(rate.text) < 2200
    assert "a longer queue then slows it down to" in rate.text
    assert found["What limits the storage?"].number == "S05"
    # Where no more is demanded than completed, it is no rate from which on the storage is too slow.
    with open_requests([run]) as requests:
        asked = Asked(Study(requests, Options()))
        alone = tuple(each for each in asked.diagnosis.findings if each.number == "S05")
        asked.__dict__["diagnosis"] = replace(asked.diagnosis, findings=alone)
        rate = from_which_rate(asked)
        assert rate.severity is Severity.NEUTRAL and rate.text.startswith("No such rate was found up to the highest")
        assert what_limits(asked).text.startswith("No lasting limit: it completed all that was demanded. With about ")


def test_a_limit_of_bytes_is_a_rate_in_bytes(tmp_path: Path) -> None:
    device = 'servers = 16\n[service.lognormal]\nmedian = "400us"\nsigma = 0.3\n[[limit]]\nbytes_per_second = "8M/s"\n'
    found = of_run(simulated(tmp_path, device, *poisson(400, "60s", "--size", "4k:50,64k:50")))
    assert found["What limits the storage?"].number == "S17"
    # Both findings know the rate; the one of requests is that of this mix of sizes.
    assert found["From which rate on is it too slow?"].text.startswith("From about ")


def test_the_cache_answers_the_question_about_the_cache(tmp_path: Path) -> None:
    device = 'servers = 4\n[service.exponential]\nmean = "5ms"\n[read_cache]\nsize = "64M"\ntime = "60us"\n'
    found = of_run(simulated(tmp_path, device, *poisson(600, "300s", "--span", "100M")))
    assert found["Is it the cache?"].text.startswith("Yes. Reads have 2 levels of latency")
    slow = found["What are the slow requests?"]
    assert slow.number == "S01" and slow.text.startswith("Reads that no cache answers: ")


def test_a_slow_member_leaves_the_rate_open(tmp_path: Path) -> None:
    device = f'{STEADY}[stripe]\nmembers = 4\nchunk = "64K"\nslow_member = 2\nfactor = 5\n'
    found = of_run(simulated(tmp_path, device, *poisson(2000, "30s")))
    # The question about the device has what was seen, and the others lead to it.
    assert found["Is one device slower?"].text.startswith("Yes. Of every 4 pieces of ")
    there = " See the answer to “Is one device slower?”."
    limit = "No lasting limit: it completed all that was demanded, but slowly."
    assert found["What limits the storage?"].text == limit + there
    assert found["What are the slow requests?"].text == f"Those of a slow device.{there}"
    rate = found["From which rate on is it too slow?"]
    assert rate.severity is Severity.NEUTRAL and rate.text.endswith("Requests are slow for another reason (S11).")


def test_a_busy_machine_is_named_before_the_storage(open_study: OpenStudy) -> None:
    names = ("at_s", "available_bytes", "received_bytes", "sent_bytes")
    usage: dict[str, object] = {"seconds": 30.0, "busy_pct": 99.5, "kernel_pct": 1.0, "available_bytes": 1 << 29}
    usage |= {"received_bytes": 0, "sent_bytes": 0}
    usage["samples"] = {name: [1] * 9 for name in names} | {"busy_pct": [99.5] * 9}
    footer = {"machine": {"memory_kib": 1 << 20}, "statistics": STATISTICS | {"usage": usage}}
    rows = [run_row(n, scheduled=n * MS, latency=100 * US) for n in range(2000)]
    with open_study(rows, run=footer) as study:
        found = {each.question: each for each in answers(study)}
    sure, step = found["How sure is this?"], found["What next?"]
    assert sure.severity is Severity.WARNING and "the processors were 99.5 % busy" in sure.text
    assert step.number == "S23" and step.text.startswith("Stop other programs during the replay")


def test_a_remedy_has_one_colon_and_no_price(open_study: OpenStudy) -> None:
    remedy = {"try": "stop other programs first: 19.6 of their threads were running", "costs": "nothing"}
    within = {"10": 1.0, "25": 20.0, "50": 42.0, "100": 50.0}
    own = {"requests": 2000, "delay_us": {"p50": 60.0, "p99": 900.0, "max": 1000.0}, "within_pct": within}
    verdict = {"faithful": False, "sentence": "NOT faithful", "own": own, "remedies": [remedy]}
    rows = [run_row(n, scheduled=n * MS, latency=100 * US) for n in range(2000)]
    with open_study(rows, run={"statistics": STATISTICS | {"within_pct": within, "verdict": verdict}}) as study:
        text = {each.question: each.text for each in answers(study)}["What next?"]
    assert text == "Make the replay faithful: stop other programs first; 19.6 of their threads were running."
