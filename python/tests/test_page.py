"""The page in a real browser: it opens offline, and its diagrams zoom, show values, toggle series and are linked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from factory import run_row, write_run
from made_run import made_run
from pages import STORY, Opened, hover, page_of_a_run
from playwright.sync_api import Browser, FloatRect, Locator
from test_report import report
from test_units import CASES

from iosonar import units


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run."""
    return page_of_a_run(tmp_path_factory.mktemp("page"))


@pytest.fixture
def opened(browser: Browser, written: Path) -> Iterator[Opened]:
    page = Opened(browser, written)
    yield page
    page.page.context.close()


def test_the_page_makes_no_network_requests(opened: Opened, written: Path) -> None:
    opened.page.wait_for_load_state("networkidle")
    assert [url for url in opened.asked if not url.startswith(("data:", "blob:"))] == [written.as_uri()]
    assert opened.errors == []
    # The content security policy forbids any other.
    assert opened.page.evaluate("fetch('https://example.org/').then(() => 'asked', () => 'refused')") == "refused"
    assert any("Content Security Policy" in error for error in opened.errors)


def test_the_first_drawing_is_complete_at_the_load_event(browser: Browser, written: Path) -> None:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.add_init_script(
        """addEventListener("load", () => { window.at_load = document.documentElement.dataset.ready; });"""
    )
    page.goto(written.as_uri(), timeout=90_000)
    assert page.evaluate("window.at_load") == "yes"
    page.context.close()


def test_the_summary_describes_the_run(opened: Opened) -> None:
    banners = opened.page.locator(".banner").all_inner_texts()
    assert "Replay" in banners[0], "the replay's own fidelity comes first"
    assert opened.page.locator("h1").inner_text() == "db"
    assert "3,000 requests" in opened.page.locator(".lead").first.inner_text()
    names = [each.get_attribute("id") for each in opened.page.locator("section figure").all()]
    assert names[: len(STORY)] == [f"figure-{name}" for name in STORY]


def at_rest(plot: Locator) -> FloatRect:
    """Where it is when drawing of others moves it no more."""
    found = plot.bounding_box()
    for _ in range(100):
        plot.page.wait_for_timeout(200)
        before, found = found, plot.bounding_box()
        if found and found == before:
            return found
    raise AssertionError("the page does not come to rest")


def test_diagrams_over_time_zoom_together(opened: Opened) -> None:
    name = "latency.realtime"
    before = opened.x_range(name)
    opened.plot(name).scroll_into_view_if_needed()
    box = at_rest(opened.plot(name))
    mouse = opened.page.mouse
    mouse.move(box["x"] + 300, box["y"] + 60)
    mouse.down()
    mouse.move(box["x"] + 600, box["y"] + 250, steps=5)
    mouse.up()
    opened.page.wait_for_function("([name, end]) => iosonar.plots.get(name).xRange.high < end", arg=[name, before[1]])
    zoomed = opened.x_range(name)
    assert before[0] < zoomed[0] < zoomed[1] < before[1]
    for other in STORY[1:]:
        assert opened.x_range(other) == zoomed
    mouse.dblclick(box["x"] + 450, box["y"] + 150)
    assert opened.x_range(name) == before
    how = opened.page.locator("section p.how")
    assert how.count() == 1 and "Double-click" in how.inner_text()


def test_zooming_one_fits_the_height_of_the_others(opened: Opened) -> None:
    heights = """name => { const { low, high } = iosonar.settled(name).yRange; return [low, high]; }"""
    seen = """name => {
        const { curves, xRange: { low, high } } = iosonar.plots.get(name), found = [];
        for (const { edges, y } of curves)
            for (let i = 0; i < y.length; i++)
                if (edges[i + 1] >= low && edges[i] <= high && isFinite(y[i])) found.push(y[i]);
        return Math.max(...found);
    }"""
    moved, chosen = "overview.thrp", "latency.flying"
    home, kept = opened.page.evaluate(heights, moved), opened.page.evaluate(heights, chosen)
    opened.plot(chosen).focus()
    opened.page.keyboard.press("]")
    opened.page.keyboard.press("[")
    opened.page.keyboard.press("[")
    kept = opened.page.evaluate(heights, chosen)
    opened.plot("latency.realtime").focus()
    for _ in range(4):
        opened.page.keyboard.press("+")
    opened.page.wait_for_function(f"([name, end]) => ({heights})(name)[1] !== end", arg=[moved, home[1]])
    most = opened.page.evaluate(seen, moved)
    assert most <= opened.page.evaluate(heights, moved)[1] <= most * 1.2
    assert opened.page.evaluate(heights, chosen) == kept, "a height that the reader chose stays"
    opened.page.keyboard.press("0")
    opened.page.wait_for_function(f"([name, end]) => ({heights})(name)[1] === end", arg=[moved, home[1]])


def test_the_tip_shows_the_values_under_the_pointer(opened: Opened) -> None:
    page, name = opened.page, "latency.realtime"
    # Scrolling hides the tip with an event of a later frame: wait until the plot stands still before the focus.
    plot = opened.plot(name)
    plot.evaluate("plot => plot.scrollIntoView({ block: 'center', behavior: 'instant' })")
    plot.focus()
    box = plot.bounding_box()
    assert box
    hover(page, box["x"] + 500, box["y"] + 150)
    before = page.locator("#tip b").inner_text()
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("before => document.querySelector('#tip b').textContent !== before", arg=before)
    page.mouse.wheel(0, 300)
    page.wait_for_function("() => document.getElementById('tip').hidden")


@pytest.mark.parametrize("presses", [0, 6, 12])
def test_a_dot_keeps_its_size(opened: Opened, presses: int) -> None:
    """At any zoom, a dot of the image is a dot of the screen, in both directions."""
    name = "latency.realtime"
    opened.plot(name).focus()
    for _ in range(presses):
        opened.page.keyboard.press("+")
    across, up, dot = opened.page.evaluate(
        """name => {
            const { px, py, clouds: [{ image: { pixels, x, y }, dot }] } = iosonar.settled(name);
            return [(px(x[1]) - px(x[0])) / pixels.width, (py(y[0]) - py(y[1])) / pixels.height, dot];
        }""",
        name,
    )
    assert dot == 4, "3,000 requests"
    assert across == pytest.approx(1, abs=0.01)
    assert up == pytest.approx(1, abs=0.02)


def test_zooming_paints_finer_dots(opened: Opened) -> None:
    name = "latency.realtime"
    image = "name => { const { x } = iosonar.settled(name).clouds[0].image; return x[1] - x[0]; }"
    width = opened.page.evaluate(image, name)
    opened.plot(name).focus()
    for _ in range(3):
        opened.page.keyboard.press("+")
    assert opened.page.evaluate(image, name) < width / 4
    assert opened.filled(name) > 0


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ("'bytes', true, 512, 65536", "512 B, 1 KiB, 2 KiB, 4 KiB, 8 KiB, 16 KiB, 32 KiB, 64 KiB"),
        ("'bytes', true, 1e6, 2.7e6", "1 MiB, 1.5 MiB, 2 MiB, 2.5 MiB"),
        ("'bytes', false, 0, 5e8", "0 B, 128 MiB, 256 MiB, 384 MiB"),
        ("'s', true, 0.012, 0.11", "20 ms, 50 ms, 100 ms"),
        ("'s', true, 1e-6, 0.9", "1 µs, 10 µs, 100 µs, 1 ms, 10 ms, 100 ms"),
        ("'s', true, 0.07, 0.09", "70 ms, 75 ms, 80 ms, 85 ms, 90 ms"),
    ],
)
def test_ticks_are_round_and_have_room(opened: Opened, axis: str, expected: str) -> None:
    unit = axis.split(",")[0]
    found = f"iosonar.ticks({axis}).major.map(at => iosonar.tick({unit}, at)).join(', ')"
    assert opened.page.evaluate(found) == expected


def test_the_page_writes_numbers_as_its_diagrams_do(opened: Opened) -> None:
    values = [0, 7, 12.345, 99.96, 1234, 2229.36, 80794, 1.5e6, 1e8, 0.00123, 5.4e-6, -3, 1e-9, 448.57e-3, 0.0009999]
    for name, python in (("count", units.count), ("along", units.tick)):
        shown = opened.page.evaluate("([name, values]) => values.map((v) => iosonar[name](v))", [name, values])
        assert shown == [python(value) for value in values]
    shown = opened.page.evaluate("(values) => values.map((v) => iosonar.text('s', v))", values)
    assert shown == [units.span(value) for value in values]
    shares = [value for value, _ in CASES["share"]]
    assert opened.page.evaluate("(values) => values.map(iosonar.percent)", shares) == [
        text for _, text in CASES["share"]
    ]
    for unit, name in (("s", "span"), ("bytes", "addressed"), ("requests", "rate")):
        found = opened.page.evaluate(
            "([unit, values]) => values.map((v) => iosonar.text(unit, v))", [unit, [value for value, _ in CASES[name]]]
        )
        assert found == [text for _, text in CASES[name]]


def test_keys_zoom_move_and_reset(opened: Opened) -> None:
    name = "latency.flying"
    low, high = opened.x_range(name)
    opened.plot(name).focus()
    opened.page.keyboard.press("+")
    near = opened.x_range(name)
    assert near[1] - near[0] == pytest.approx((high - low) / 2)
    opened.page.keyboard.press("ArrowRight")
    assert opened.x_range(name)[0] > near[0]
    opened.page.keyboard.press("0")
    assert opened.x_range(name) == (low, high)


def test_hovering_shows_values_in_all_linked_diagrams(opened: Opened) -> None:
    name = "overview.thrp"
    opened.plot(name).scroll_into_view_if_needed()
    box = opened.plot(name).bounding_box()
    assert box
    hover(opened.page, box["x"] + 500, box["y"] + 150)
    cell = opened.page.locator(f"[id='figure-{name}'] [data-here=Delivered]")
    # The tip and the legend follow the pointer with the next frames.
    opened.page.wait_for_function(
        """name => document.querySelector(`[id='figure-${name}'] [data-here=Delivered]`)
            .innerText.endsWith('requests/s')""",
        arg=name,
    )
    tip, here = opened.page.locator("#tip").inner_text(), cell.inner_text()
    assert "Delivered" in tip and "Demanded" in tip and "requests/s" in tip
    assert here.endswith("requests/s") and here in tip
    assert opened.page.locator(f"[id='figure-{name}'] .cursor").is_visible()
    shown = opened.page.evaluate(
        "() => [...document.querySelectorAll('.cursor')].filter((line) => !line.hidden).length"
    )
    assert shown >= 2, "the cursor stands in every diagram over time that is seen"


def test_hovering_over_a_cloud_counts_requests(opened: Opened) -> None:
    name = "latency.realtime"
    opened.plot(name).scroll_into_view_if_needed()
    found = opened.page.evaluate(
        """name => {
            const [{ across, up, parts }] = iosonar.settled(name).clouds;
            const { joined, columns, rows, counts } = parts[0].levels[0];
            const most = counts.indexOf(counts.reduce((a, b) => Math.max(a, b)));
            return [(columns[most] + 0.5) * joined[0] / across, (rows[most] + 0.5) * joined[1] / up];
        }""",
        name,
    )
    box = opened.frame(name)
    hover(opened.page, box[0] + found[0] * box[2], box[1] + (1 - found[1]) * box[3])
    assert "Reads" in opened.page.locator("#tip").inner_text()


def test_series_can_be_hidden(opened: Opened) -> None:
    name = "latency.realtime"
    before = opened.filled(name)
    box = opened.page.locator(f"[id='figure-{name}'] input[data-series=Writes]")
    box.focus()
    opened.page.keyboard.press("Space")
    assert 0 < opened.filled(name) < before
    box.check()
    assert opened.filled(name) == before
    for diagram, label in (("overview.thrp", "Demanded"), ("latency.flying", "Peak, all requests")):
        curves = "name => iosonar.settled(name).seen().map((layer) => layer.label)"
        assert label in opened.page.evaluate(curves, diagram)
        opened.page.locator(f"[id='figure-{diagram}'] input[data-series='{label}']").uncheck()
        assert label not in opened.page.evaluate(curves, diagram)


def test_a_page_follows_the_dark_or_light_theme(browser: Browser, written: Path) -> None:
    colour = "() => getComputedStyle(document.body).backgroundColor"
    opened = Opened(browser, written, color_scheme="dark")
    assert opened.page.evaluate(colour) == "rgb(15, 19, 24)"
    # The colours at the edge of the canvas and in its frame.
    plot = """() => {
        const { pen, frame } = iosonar.settled('latency.flying');
        const colour = (x, y) => [...pen.getImageData(x, y, 1, 1).data];
        return [colour(0, 0), colour(frame.left + frame.width - 5, frame.top + 5)];
    }"""
    assert opened.page.evaluate(plot) == [[15, 19, 24, 255], [21, 26, 33, 255]]
    opened.page.locator("#theme").click()
    assert opened.page.evaluate(colour) == "rgb(255, 255, 255)"
    assert opened.page.evaluate(plot) == [[255, 255, 255, 255], [251, 251, 252, 255]]
    opened.page.context.close()


def test_a_narrow_window_does_not_scroll_sideways(browser: Browser, written: Path) -> None:
    opened = Opened(browser, written)
    opened.page.set_viewport_size({"width": 480, "height": 800})
    opened.page.wait_for_timeout(300)
    assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= 480
    box = opened.page.locator("#theme").bounding_box()
    assert box and box["x"] + box["width"] <= 480, "the button is cut off"
    opened.page.context.close()


@pytest.mark.parametrize("width", [480, 700, 1000, 1280])
def test_no_link_in_the_bar_is_cut_off(browser: Browser, written: Path, width: int) -> None:
    opened = Opened(browser, written)
    opened.page.set_viewport_size({"width": width, "height": 800})
    opened.page.wait_for_timeout(300)
    links = opened.page.locator(".links").evaluate("all => [all.scrollWidth, all.clientWidth]")
    assert links[0] <= links[1], "a name does not fit"
    heads = opened.page.locator(".head").evaluate_all(
        """all => all.map(head => {
            const [title, legend] = [...head.children].map(each => each.getBoundingClientRect());
            return legend.top >= title.bottom;
        })"""
    )
    assert set(heads) <= ({True} if width <= 900 else {True, False}), "legends stand below titles where it is narrow"
    opened.page.evaluate("() => document.documentElement.style.scrollBehavior = 'auto'")
    opened.page.locator(".links a").last.click()
    bar = opened.page.locator(".bar").bounding_box()
    top = opened.page.locator("section").last.locator("h2").bounding_box()
    assert bar and top and bar["y"] + bar["height"] <= top["y"], "the bar hides what it leads to"
    opened.page.context.close()


@pytest.mark.parametrize("rows", [[], [run_row()], [run_row(issued_ns=None, completed_ns=None, outcome="dropped")]])
def test_pages_of_nearly_empty_runs_open(browser: Browser, tmp_path: Path, rows: list[dict[str, object]]) -> None:
    assert report(write_run(tmp_path / "a.replay.parquet", rows), "--out", tmp_path) == 0
    opened = Opened(browser, tmp_path / "a.report.html")
    assert opened.errors == []
    opened.page.context.close()


def test_a_delay_of_0_is_not_called_100_ns(browser: Browser, tmp_path: Path) -> None:
    rows = [run_row(number, scheduled=number * 1000, delay=900 * (number % 2)) for number in range(40)]
    path = write_run(tmp_path / "a.replay.parquet", rows)
    assert report(path, "--out", tmp_path, "--only", "delay.bins,delay.setpoint") == 0
    opened = Opened(browser, tmp_path / "a.report.html")
    for name, x, y in (("delay.bins", 0.01, 0.5), ("delay.setpoint", 0.5, 0.995)):
        opened.plot(name).scroll_into_view_if_needed()
        left, top, width, height = opened.frame(name)
        hover(opened.page, left + x * width, top + y * height)
        tip = opened.page.locator("#tip b").first.inner_text()
        assert "≤ 1" in tip, name
        figure = opened.page.locator(f"[id='figure-{name}']")
        assert "Delay: values below 100 ns, also 0, are drawn at 100 ns" in figure.inner_text().replace("\xa0", " ")
    opened.page.context.close()


def test_names_of_rules_are_above_the_frame_and_apart(browser: Browser, tmp_path: Path) -> None:
    rows = [run_row(number, scheduled=number * 1000, sector=8 * (number % 1000)) for number in range(1500)]
    assert report(write_run(tmp_path / "a.replay.parquet", rows), "--out", tmp_path, "--only", "freq.bins") == 0
    opened = Opened(browser, tmp_path / "a.report.html")
    for width in (1280, 700):
        opened.page.set_viewport_size({"width": width, "height": 900})
        opened.page.wait_for_timeout(500)
        places = opened.page.evaluate(
            """() => {
                const { host, frame: { top } } = iosonar.settled("freq.bins");
                const frame = host.getBoundingClientRect().top + top;
                const names = [...document.querySelectorAll(".rule-name:not([hidden])")];
                return names.map((name) => name.getBoundingClientRect())
                    .map((box) => [frame - box.bottom, box.left, box.right, box.top]);
            }"""
        )
        assert len(places) >= 4 and all(place[0] >= 0 for place in places)
        assert all(a[2] < b[1] or b[2] < a[1] or a[3] != b[3] for a in places for b in places if a is not b)
    opened.page.context.close()


def test_texts_of_a_run_are_escaped(browser: Browser, tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    run = {"warnings": [evil], "target": {"path": evil}, "statistics": {}}
    assert report(write_run(tmp_path / "a.replay.parquet", made_run(200, seconds=2), run=run), "--out", tmp_path) == 0
    opened = Opened(browser, tmp_path / "a.report.html")
    assert opened.page.locator("img").count() == 0
    assert evil in opened.page.locator("main").inner_text()
    opened.page.context.close()


def test_a_page_has_no_address_of_the_network(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    assert re.findall(r"\w+://\S+|(?:src|href)=[\"']?//\S+|url\(\S+", text) == []
    assert len(text.encode()) < 1_500_000
