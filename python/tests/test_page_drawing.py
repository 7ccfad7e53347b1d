"""When the plots of a page are drawn, and what tools, wheel and printing do with them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import extremes
import pytest
from factory import write_run
from pages import Opened, page_of_a_run
from playwright.sync_api import Browser
from test_report import report


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run."""
    return page_of_a_run(tmp_path_factory.mktemp("page"))


@pytest.fixture
def opened(browser: Browser, written: Path) -> Iterator[Opened]:
    page = Opened(browser, written)
    yield page
    page.page.context.close()


def test_plots_are_drawn_as_they_come_near(browser: Browser, written: Path) -> None:
    opened = Opened(browser, written)
    drawn = "() => [...iosonar.plots.values()].map((plot) => !plot.stale)"
    before = opened.page.evaluate(drawn)
    assert not before[-1], "the last one is far below the window"
    opened.page.locator("section figure").last.scroll_into_view_if_needed()
    opened.page.wait_for_function(f"() => ({drawn})().at(-1)")
    opened.page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_print_has_all_plots_on_white(browser: Browser, written: Path, scheme: str) -> None:
    opened = Opened(browser, written, color_scheme=scheme)
    corners = """() => [...iosonar.plots.values()].map((plot) => {
        const { canvas: { width }, pen } = plot;
        return [plot.stale, width, pen.getImageData(0, 0, 1, 1).data[0]];
    })"""
    opened.page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert {tuple(each) for each in opened.page.evaluate(corners)} == {(False, 2 * 680, 255)}
    opened.page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    stale, width, corner = opened.page.evaluate(corners)[0]
    assert stale or (width > 1000 and corner == (255 if scheme == "light" else 15))
    pages = opened.page.pdf(width="210mm", height="297mm").count(b"/Type /Page\n")
    assert pages > 5
    opened.page.context.close()


def test_the_tools_pan_reset_and_save(opened: Opened) -> None:
    name = "latency.flying"
    tools = opened.page.locator(f"[id='figure-{name}'] .tools")
    opened.plot(name).scroll_into_view_if_needed()
    home = opened.x_range(name)
    opened.plot(name).focus()
    opened.page.keyboard.press("+")
    low, high = opened.x_range(name)
    left, top, width, height = opened.frame(name)
    tools.get_by_text("Pan").click()
    mouse = opened.page.mouse
    mouse.move(left + width / 2, top + height / 2)
    mouse.down()
    mouse.move(left + width / 4, top + height / 2, steps=4)
    mouse.up()
    moved = opened.x_range(name)
    assert moved[0] == pytest.approx(low + (high - low) / 4) and moved[1] - moved[0] == pytest.approx(high - low)
    tools.get_by_text("Reset").click()
    assert opened.x_range(name) == home
    with opened.page.expect_download():
        tools.get_by_text("Save PNG").click()
    opened.plot(name).focus()
    with opened.page.expect_download() as saved:
        opened.page.keyboard.press("s")
    assert saved.value.suggested_filename == f"{name}.png"
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")
    assert opened.errors == []


def test_the_wheel_zooms_around_the_pointer(opened: Opened) -> None:
    name = "latency.realtime"
    opened.plot(name).scroll_into_view_if_needed()
    left, top, width, height = opened.frame(name)
    low, high = opened.x_range(name)
    opened.page.mouse.move(left + width / 4, top + height / 2)
    scrolled = opened.page.evaluate("scrollY")
    opened.page.keyboard.down("Control")
    opened.page.mouse.wheel(0, -600)
    opened.page.keyboard.up("Control")
    opened.page.wait_for_function("([name, high]) => iosonar.plots.get(name).xRange.high < high", arg=[name, high])
    near = opened.x_range(name)
    pixel = (high - low) / width
    assert near[0] + (near[1] - near[0]) / 4 == pytest.approx(low + (high - low) / 4, abs=pixel)
    assert near[1] - near[0] == pytest.approx((high - low) / math.e)
    assert opened.page.evaluate("scrollY") == scrolled
    opened.plot(name).focus()
    for _ in range(5):
        opened.page.keyboard.press("-")
    assert opened.x_range(name) == (low, high), "not beyond the whole"


def test_dots_keep_their_places_while_the_reader_pans(opened: Opened) -> None:
    moved = """name => {
        const plot = iosonar.settled(name), { x, frame } = plot, [{ dot }] = plot.clouds, across = x.high - x.low;
        const column = () => {
            const { image: { pixels: { data, width, height } } } = plot.clouds[0];
            const pixel = (row, at) => data.slice(4 * (row * width + at), 4 * (row * width + at + 1)).join();
            return (at) => Array.from({ length: height }, (_, row) => pixel(row, at)).join();
        };
        const step = dot * across / 4 / frame.width;
        plot.choose({ x: { low: x.low + 100 * step, high: x.low + across / 4 + 100 * step } });
        plot.draw();
        const before = column();
        plot.choose({ x: { low: x.low + 110.5 * step, high: x.low + across / 4 + 110.5 * step } });
        plot.draw();
        const after = column();
        return Array.from({ length: 200 }, (_, at) => before(at + 10 * dot) === after(at));
    }"""
    assert opened.page.evaluate(moved, "position.realtime") == [True] * 200


@pytest.mark.parametrize(
    "name", ["one nanosecond", "bursts with years between", "the last sector", "latencies of years"]
)
def test_extreme_axes_are_drawn_at_any_zoom(browser: Browser, tmp_path: Path, name: str) -> None:
    assert report(write_run(tmp_path / "a.replay.parquet", extremes.RUNS[name]), "--out", tmp_path) == 0
    opened = Opened(browser, tmp_path / "a.report.html")
    odd = """() => [...iosonar.plots.values()].flatMap((plot) => [1, 1e-2, 1e-4, 1e-8, 1e-14].flatMap((factor) => {
        const part = (axis) => iosonar.zoom.moved({ low: axis.low, high: axis.high }, axis, factor, 0.37);
        plot.choose({ x: part(plot.x), y: part(plot.y) });
        plot.draw();
        const said = [...plot.xTicks.major, ...plot.yTicks.major].map(([, text]) => text);
        const few = factor < 1 || plot.xTicks.major.length && plot.yTicks.major.length;
        const wrong = !few || said.length > 60 || said.some((text) => !text || /NaN|undefined|Infinity/.test(text));
        return wrong ? [[plot.name, factor, said]] : [];
    }))"""
    assert opened.page.evaluate(odd) == []
    assert opened.errors == []
    opened.page.context.close()
