"""A page for browser tests, and what they do with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from factory import write_run
from made_run import made_run
from playwright.sync_api import Browser, Locator, Page
from test_report import report

STORY = ("latency.realtime", "position.realtime", "latency.flying", "overview.thrp", "delay.setpoint", "latency.bands")
"""The first diagrams of the page."""


def page_of_a_run(directory: Path) -> Path:
    """Writes the page of a synthetic run."""
    run = write_run(directory / "db.replay.parquet", made_run(3000, seconds=10))
    assert report(run, "--out", directory) == 0
    return directory / "db.report.html"


class Opened:
    """A page in the browser, with all its network requests and errors."""

    def __init__(self, browser: Browser, path: Path, **options: Any) -> None:
        self.page: Page = browser.new_context(viewport={"width": 1280, "height": 900}, **options).new_page()
        self.asked: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.goto(path.as_uri(), timeout=90_000)
        self.page.wait_for_selector("html[data-ready]", state="attached", timeout=90_000)

    def plot(self, name: str) -> Locator:
        return self.page.locator(f"[id='figure-{name}'] .plot")

    def frame(self, name: str) -> list[float]:
        """Left, top, width and height of the frame of a diagram, in the window."""
        found: list[float] = self.page.evaluate(
            """name => {
                const { host, frame } = iosonar.settled(name), edge = host.getBoundingClientRect();
                return [edge.left + frame.left, edge.top + frame.top, frame.width, frame.height];
            }""",
            name,
        )
        return found

    def x_range(self, name: str) -> tuple[float, float]:
        low, high = self.page.evaluate(
            "name => { const { low, high } = iosonar.plots.get(name).xRange; return [low, high]; }", name
        )
        return low, high

    def filled(self, name: str) -> int:
        """The number of painted dots in the cloud's image."""
        painted = """name => iosonar.settled(name).clouds[0].image.pixels.data
            .reduce((n, byte, at) => n + (at % 4 === 3 && byte ? 1 : 0), 0)"""
        return int(self.page.evaluate(painted, name))


def hover(page: Page, x: float, y: float) -> None:
    """Moves the pointer there until the tip stays visible: the late event of an earlier scroll hides it."""
    frames = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    shown = 0
    for step in range(300):
        page.mouse.move(x + step % 2 / 2, y)
        page.evaluate(frames)
        shown = shown + 1 if page.evaluate("() => !document.getElementById('tip').hidden") else 0
        if shown == 3:
            return
    raise AssertionError("the tip is not shown")
