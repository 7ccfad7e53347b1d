"""The page of a view in Chromium and, in short, in Firefox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from factory import MS, US, load_row, write_load, write_run
from firefox import Firefox
from made_run import made_run
from pages import Opened, hover
from playwright.sync_api import Browser
from views import served, viewed

CLOUD = "latency.realtime"
PLOT = f"[id='figure-{CLOUD}'] .plot"
HOSTILE = '<img src=x onerror="window.hit=1"></script><script>window.hit=1</script>\u202e\'&amp;'


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the view of a run."""
    directory = tmp_path_factory.mktemp("view")
    run = write_run(directory / "db.replay.parquet", made_run(3000, seconds=10))
    with viewed(run, directory / "caches") as view, served(view) as server:
        yield server.url


class Viewed(Opened):
    """A view in the browser."""

    def drawn(self) -> None:
        self.page.evaluate("new Promise(requestAnimationFrame)")
        assert self.page.evaluate("iosonar.drawn()")

    def zoom(self, low: float, high: float) -> None:
        """Zooms to a time, and waits for its numbers."""
        choose = f"iosonar.plots.get('{CLOUD}').choose({{ x: {{ low: {low}, high: {high} }} }})"
        self.page.evaluate(choose)
        self.drawn()

    def cells(self) -> list[Any]:
        """The ends of the part that is drawn, and the number of its requests."""
        found: list[Any] = self.page.evaluate(
            f"""() => {{
                const [layer] = iosonar.settled('{CLOUD}').clouds;
                const of = ({{ levels }}) => levels.flatMap(({{ counts }}) => [...counts]);
                return [layer.own.x.low, layer.own.x.high, layer.parts.flatMap(of).reduce((a, b) => a + b, 0)];
            }}"""
        )
        return found

    def bar(self, number: int = 0) -> tuple[float, float]:
        """A place of a visible bar in the window."""
        found = self.page.evaluate(
            f"""() => {{
                const {{ host, frame: {{ left }}, bars, px, py }} = iosonar.settled('{CLOUD}');
                const edge = host.getBoundingClientRect();
                const seen = bars.row.map((_, i) => i).filter(i => bars.y[i] !== null && px(bars.begin[i]) > left);
                const i = seen[{number}];
                return [edge.left + px(bars.begin[i]) + 1, edge.top + py(bars.y[i])];
            }}"""
        )
        return found[0], found[1]


def opened(browser: Browser, address: str, **options: Any) -> Viewed:
    page = Viewed(browser, Address(address), **options)  # type: ignore[arg-type]
    page.drawn()
    return page


class Address:
    """A page's address, used like a path."""

    def __init__(self, address: str) -> None:
        self.address = address

    def as_uri(self) -> str:
        return self.address


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Viewed]:
    found = opened(browser, address)
    yield found
    assert found.errors == []
    found.page.context.close()


def test_a_zoom_asks_for_its_window_and_pans_within_it(page: Viewed, address: str) -> None:
    low, high, total = page.cells()
    assert low == 0 and high > 10 and total == 3000
    page.zoom(4, 5)
    low, high, part = page.cells()
    assert 3.5 < low < 4 < 5 < high < 5.5 and 0 < part < 1000
    painted = page.filled(CLOUD)
    page.plot(CLOUD).focus()
    page.page.keyboard.press("ArrowRight")
    page.drawn()
    assert page.cells()[0] > low and page.filled(CLOUD) > painted / 3
    page.page.keyboard.press("0")
    page.drawn()
    assert page.cells()[2] == 3000
    assert all(url.startswith((address, "data:", "blob:")) for url in page.asked)
    windows = [url for url in page.asked if f"figure={CLOUD}" in url]
    assert 4 <= len(windows) <= 8, "one for each change, at most"


def test_a_request_is_named_under_the_pointer_and_by_keys(page: Viewed) -> None:
    page.zoom(4, 4.05)
    tip = page.page.locator("#tip")
    columns = tip.get_by_text("delay reason")
    hover(page.page, *page.bar())
    columns.wait_for()
    said = tip.inner_text()
    for name in ("Request", "operation", "offset", "size", "due", "issued", "completed", "latency", "device"):
        assert name in said
    page.page.mouse.move(5, 5)
    page.plot(CLOUD).focus()
    heads = []
    for key in (".", ".", ","):
        page.page.keyboard.press(key)
        columns.wait_for()
        heads.append(tip.locator("b").inner_text())
    assert heads[0] == heads[2] != heads[1]


def test_a_box_shows_its_requests_and_exports_them(page: Viewed) -> None:
    page.plot(CLOUD).hover()
    page.page.locator(f"[id='figure-{CLOUD}'] [data-tool=select]").click()
    left, top, width, height = page.frame(CLOUD)
    mouse = page.page.mouse
    mouse.move(left + width * 0.3, top + 2)
    mouse.down()
    mouse.move(left + width * 0.6, top + height * 0.6, steps=4)
    mouse.up()
    panel = page.page.locator("#selection[data-ready]")
    panel.wait_for()
    said = panel.inner_text()
    for words in ("requests,", "of all", "Slowest", "In flight beside the slowest", "latency_ns >="):
        assert words in said
    with page.page.expect_download() as download:
        panel.get_by_text("Rows as CSV").click()
    rows = Path(download.value.path()).read_text().splitlines()
    found = next(line for line in said.split("\n") if "of all" in line)
    number = int(found.split(" ")[0].replace(",", ""))
    assert len(rows) == number + 1 > 10
    # To its slowest request, then back by keys.
    panel.get_by_role("button", name="Show").first.click()
    page.drawn()
    low, high = page.x_range(CLOUD)
    assert high - low < 9
    page.page.keyboard.press("Escape")
    assert page.page.locator("#selection").is_hidden()
    page.plot(CLOUD).focus()
    page.page.keyboard.press("b")
    panel.wait_for()
    assert page.page.evaluate("document.activeElement.closest('#selection') !== null")


def test_a_link_leads_to_a_place(browser: Browser, address: str) -> None:
    page = opened(browser, f"{address}#figure=position.realtime&x0=2&x1=3")
    assert page.x_range(CLOUD) == (2, 3)
    page.page.evaluate("location.hash = 'figure=none&x0=5&x1=6'")
    page.page.evaluate("location.hash = 'figure=position.realtime&x0=x&x1=6'")
    page.drawn()
    assert page.x_range(CLOUD) == (2, 3) and page.errors == []
    page.page.context.close()


def test_names_of_a_trace_are_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    types: dict[str, pa.DataType] = {
        "at_ns": pa.int64(),
        "sector": pa.int64(),
        "sectors": pa.int64(),
        "op": pa.string(),
    }
    types |= {"latency_ns": pa.int64(), "pid": pa.int64(), "process": pa.string(), HOSTILE: pa.string()}
    more = {"latency_ns": 300 * US, "pid": 1, "process": HOSTILE, HOSTILE: HOSTILE}
    rows = [load_row(at * MS, sector=8 * at) | more for at in range(20)]
    table = pa.Table.from_pylist(rows, schema=pa.schema(types))
    name = "<b>x<b>\"'&.load.parquet"
    load = write_load(tmp_path / name, table, devices=[{"name": HOSTILE}], warnings=[HOSTILE])
    with viewed(load, tmp_path / "caches") as view, served(view) as server:
        page = opened(browser, server.url)
        assert page.page.locator("h1").inner_text() == "<b>x<b>\"'&"
        page.zoom(0, 0.01)
        hover(page.page, *page.bar())
        page.page.locator("#tip").get_by_text("process").wait_for()
        said = page.page.locator("#tip").inner_text()
        assert said.count('onerror="window.hit=1"') == 3, "a column's name, and two values"
        assert page.page.locator("#tip img, #tip script").count() == 0
        page.plot(CLOUD).focus()
        page.page.keyboard.press("b")
        page.page.locator("#selection[data-ready]").wait_for()
        assert page.page.evaluate("window.hit") is None
        assert page.errors == []
        page.page.context.close()


def test_another_site_reaches_nothing(page: Viewed, browser: Browser, address: str, tmp_path: Path) -> None:
    # The page itself may ask only its own server.
    assert page.page.evaluate("fetch('https://example.org/').then(() => 'asked', () => 'refused')") == "refused"
    page.errors.clear()
    other = tmp_path / "other.html"
    other.write_text(f'<iframe src="{address}"></iframe><script src="{address}state"></script>')
    foreign = browser.new_context().new_page()
    answers: list[int] = []
    foreign.on("response", lambda answer: answers.append(answer.status) if answer.url.startswith(address) else None)
    foreign.goto(other.as_uri())
    foreign.wait_for_load_state("networkidle")
    assert foreign.evaluate(f"fetch('{address}state').then(() => 'read', () => 'refused')") == "refused"
    assert answers and set(answers) == {403}
    foreign.context.close()


def test_the_view_works_in_firefox(address: str, tmp_path: Path) -> None:
    firefox = Firefox(tmp_path)
    try:
        firefox.open(Address(address))  # type: ignore[arg-type]
        assert firefox.evaluate("iosonar.drawn()")
        firefox.evaluate(f"iosonar.plots.get('{CLOUD}').choose({{ x: {{ low: 4, high: 4.05 }} }})")
        assert firefox.evaluate("new Promise(requestAnimationFrame).then(() => iosonar.drawn())")
        ends = firefox.evaluate(f"(x => [x.low, x.high])(iosonar.settled('{CLOUD}').clouds[0].own.x)")
        assert 3.9 < ends[0] < 4 < 4.05 < ends[1] < 4.1
        painted = f"iosonar.settled('{CLOUD}').clouds[0].image.pixels.data.reduce((n, byte) => n + (byte ? 1 : 0), 0)"
        assert firefox.evaluate(painted) > 0
        firefox.evaluate(f'document.querySelector("{PLOT}").focus()')
        firefox.press(".")
        until = "new Promise(done => {{ const look = () => {0} ? done(1) : setTimeout(look, 20); look(); }})"
        assert firefox.evaluate(until.format("document.getElementById('tip').innerText.includes('delay reason')")) == 1
        firefox.press("b")
        panel = "document.querySelector('#selection[data-ready]')"
        assert firefox.evaluate(until.format(panel)) == 1
        assert "Slowest" in firefox.evaluate(f"{panel}.innerText")
        assert firefox.errors == []
        assert all(url.startswith((address, "data:", "blob:")) for url in firefox.asked)
    finally:
        firefox.close()
