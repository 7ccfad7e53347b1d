"""Legends in a real browser: they follow the zoom."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from made_run import made_run
from pages import Opened, page_of_a_run
from playwright.sync_api import Browser

NARROWED = """([name, x, y]) => {
    iosonar.plots.get(name).choose({ x, y });
    const { box } = iosonar.settled(name);
    const cells = [...box.querySelectorAll(".legend .seen")].filter((cell) => !cell.hidden);
    return Object.fromEntries(cells.map((cell) => [cell.dataset.seen ?? "head", cell.textContent]));
}"""


def within(op: str, from_s: float, to_s: float, max_latency_s: float = np.inf) -> int:
    """How many requests of the page's run were issued in that time, and completed that fast."""
    rows = made_run(3000, seconds=10).to_pandas()
    issued, latency = rows["issued_ns"] / 1e9, (rows["completed_ns"] - rows["issued_ns"]) / 1e9
    return int(((rows["op"] == op) & (issued >= from_s) & (issued < to_s) & (latency < max_latency_s)).sum())


def counted(texts: dict[str, str], *labels: str) -> int:
    """The requests of these series together."""
    return sum(int(texts[label].removeprefix("≈ ").split()[0].replace(",", "")) for label in labels)


def test_legends_follow_the_zoom(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, page_of_a_run(tmp_path))

    def narrowed(name: str, x: tuple[float, float], y: tuple[float, float] | None = None) -> dict[str, str]:
        ends = [{"low": each[0], "high": each[1]} if each else None for each in (x, y)]
        found: dict[str, str] = opened.page.evaluate(NARROWED, [name, *ends])
        return found

    cloud, curves = "latency.realtime", "overview.thrp"
    whole = opened.x_range(cloud)
    assert narrowed(cloud, whole) == {}
    some = narrowed(cloud, (2.5, 5.0))
    assert some["head"] == "in view"
    # A cell at the edge counts with its visible share.
    assert abs(counted(some, "Reads", "Pushed-back reads") - within("read", 2.5, 5.0)) <= 3, some
    assert abs(counted(some, "Writes", "Pushed-back writes") - within("write", 2.5, 5.0)) <= 3, some
    fast = narrowed(cloud, (2.5, 5.0), (1e-5, 1e-3))
    assert abs(counted(fast, "Reads", "Pushed-back reads") - within("read", 2.5, 5.0, 1e-3)) <= 6, fast
    demand = narrowed(curves, (2.5, 5.0))
    assert demand["head"] == "in view" and " – " in demand["Demanded"], demand
    opened.plot(cloud).focus()
    opened.page.keyboard.press("0")
    assert narrowed(curves, whole) == {}
    assert opened.errors == []
