"""The page in Firefox: a short version of test_page.py, which uses Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from firefox import Firefox
from pages import STORY, page_of_a_run


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run."""
    return page_of_a_run(tmp_path_factory.mktemp("page"))


@pytest.fixture
def opened(tmp_path: Path, written: Path) -> Iterator[Firefox]:
    firefox = Firefox(tmp_path)
    try:
        firefox.open(written)
        yield firefox
    finally:
        firefox.close()


def x_range(firefox: Firefox, name: str) -> list[float]:
    plot = f"iosonar.plots.get('{name}').xRange"
    found: list[float] = firefox.evaluate(f"[{plot}.low, {plot}.high]")
    return found


def place(firefox: Firefox, name: str) -> tuple[float, float]:
    """Scrolls a diagram into view; returns the position of its upper left corner."""
    element = f"document.querySelector(\"[id='figure-{name}'] .plot\")"
    firefox.evaluate(f"{element}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    firefox.rest()
    x, y = firefox.evaluate(f"(box => [box.x, box.y])({element}.getBoundingClientRect())")
    return x, y


def test_the_page_opens_offline_zooms_shows_values_and_toggles(opened: Firefox) -> None:
    # Firefox does not count the file itself as a request.
    assert [url for url in opened.asked if not url.startswith(("data:", "blob:", "file:"))] == []
    assert opened.errors == []
    figures = opened.evaluate("[...document.querySelectorAll('section figure')].map(each => each.id)")
    assert figures[: len(STORY)] == [f"figure-{name}" for name in STORY]

    # Dragging in one zooms all diagrams over time.
    cloud = "latency.realtime"
    before = x_range(opened, cloud)
    x, y = place(opened, cloud)
    opened.drag((x + 300, y + 60), (x + 450, y + 150), (x + 600, y + 250))
    zoomed = x_range(opened, cloud)
    assert before[0] < zoomed[0] < zoomed[1] < before[1]
    assert [x_range(opened, other) for other in STORY[1:]] == [zoomed] * (len(STORY) - 1)
    # Keys zoom as well, and reset.
    opened.evaluate(f"document.querySelector(\"[id='figure-{cloud}'] .plot\").focus()")
    opened.press("0")
    assert x_range(opened, cloud) == before
    opened.press("+")
    near = x_range(opened, cloud)
    assert near[1] - near[0] == pytest.approx((before[1] - before[0]) / 2)

    # Values under the mouse.
    x, y = place(opened, "overview.thrp")
    tip = ""
    for _ in range(10):
        opened.drag((x + 480, y + 140), (x + 500, y + 150), pressed=False)
        tip = opened.evaluate("document.querySelector('#tip').innerText")
        if "Delivered" in tip:
            break
    assert "Delivered" in tip and "Demanded" in tip and "requests/s" in tip

    # Hide a series of the cloud.
    pixels = f"iosonar.settled('{cloud}').clouds[0].image.pixels.data"
    painted = f"{pixels}.reduce((n, byte, at) => n + (at % 4 === 3 && byte ? 1 : 0), 0)"
    both = opened.evaluate(painted)
    box = f"document.querySelector(\"[id='figure-{cloud}'] input[data-series=Writes]\")"
    opened.evaluate(f"{box}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    opened.rest()
    x, y = opened.evaluate(f"(box => [box.x + box.width / 2, box.y + box.height / 2])({box}.getBoundingClientRect())")
    opened.drag((x, y))
    assert opened.evaluate(f"{box}.checked") is False
    assert 0 < opened.evaluate(painted) < both
    assert opened.errors == []
    assert opened.evaluate("fetch('https://example.org/').then(() => 'asked', () => 'refused')") == "refused"
    assert not any(url.startswith("http") for url in opened.asked), "it was refused before it was asked"
