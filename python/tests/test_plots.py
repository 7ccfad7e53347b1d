"""Figures as pages get them, and what the page's script draws of them; test_page.py tests what a reader does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import Opened
from playwright.sync_api import Browser

from iosonar.figures.for_page import described
from iosonar.figures.model import (
    Axis,
    Cloud,
    CloudPart,
    Direction,
    Figure,
    Layer,
    Line,
    Role,
    Rule,
    RuleName,
    Scale,
    Steps,
    Unit,
    name_of_rule,
)
from iosonar.report.page import Page, Section, Summary, render

NAN = float("nan")
COUNTS = Axis("Requests", Unit.REQUESTS, 0.7, 1000, Scale.LOG)
Ask = Callable[..., Any]


def figure(*layers: Layer, name: str = "a", y: Axis = COUNTS) -> Figure:
    return Figure(name, "g", "title", "", Axis("x", Unit.GIB, 0, 5), y, layers)


def steps(*y: float, filled: bool = False) -> Steps:
    return Steps(Role.READ, "Reads", np.arange(len(y) + 1, dtype=float), np.array(y), filled=filled)


@pytest.fixture
def ask(browser: Browser, tmp_path: Path) -> Ask:
    """Evaluates a function in the page of some figures."""
    path = tmp_path / "a.html"

    def asked(function: str, argument: Any = None, *figures: Figure) -> Any:
        shown = figures or (figure(steps(1, 2)),)
        path.write_text(render(Page(Summary("t", "t"), (Section("s", "s", "", shown),)), None), encoding="utf-8")
        opened = Opened(browser, path)
        assert opened.errors == []
        found = opened.page.evaluate(function, argument)
        opened.page.context.close()
        return found

    return asked


STAIRS = (
    """([edges, y]) => iosonar.layers.stairs(edges, y.map((each) => each ?? NaN), 0, y.length, (x) => x, (y) => y)"""
)


def test_an_isolated_bin_has_its_full_width(ask: Ask) -> None:
    assert ask(STAIRS, [[0, 1, 2, 3, 4], [None, 7, None, 3]]) == [[1, 7, 2, 7], [3, 3, 4, 3]]


def test_an_outline_has_no_unnecessary_corners(ask: Ask) -> None:
    assert ask(STAIRS, [list(range(8)), [0, 0, 0, 0, 5, 5, 5]]) == [[0, 0, 4, 0, 4, 5, 7, 5]]


def test_many_points_in_a_column_look_the_same(ask: Ask) -> None:
    points = np.column_stack([np.linspace(0, 100, 20_000), np.random.default_rng(1).normal(size=20_000)])
    thinned = np.array(ask("(all) => iosonar.layers.thin(all, 100)", points.ravel().tolist())).reshape(-1, 2)
    assert len(thinned) <= 4 * 101
    for column in range(101):
        each, kept = (some[np.floor(some[:, 0] + 0.5) == column] for some in (points, thinned))
        assert (kept[0] == each[0]).all() and (kept[-1] == each[-1]).all()
        assert (kept[:, 1].min(), kept[:, 1].max()) == (each[:, 1].min(), each[:, 1].max())


def test_a_line_keeps_its_slope_where_it_is_cut(ask: Ask) -> None:
    shape = "([k]) => iosonar.layers.joined([0, 1], [0, 1], 0, 2, (x) => 1 + (x - 0.5) * k, (y) => (y - 0.5) * 1e3)[0]"
    assert ask(shape, [1e9]) == pytest.approx([-1e6, -1, 1e6, 1], rel=1e-3)


def test_points_in_any_order_are_all_drawn(ask: Ask) -> None:
    bar = Line(Role.READ, "bar", np.array([1, 4, NAN, 4, 1, NAN, 2, 2.0]), np.array([5, 5, NAN, 9, 9, NAN, 4, 10.0]))
    shapes = """() => {
        const { frame, curves: [layer], xRange } = iosonar.settled("a"), as = (each) => each;
        return iosonar.layers.shapes(layer, xRange, as, as, frame.width)[0].sections;
    }"""
    assert ask(shapes, None, figure(bar)) == [[1, 5, 4, 5], [4, 9, 1, 9], [2, 4, 2, 10]]


@pytest.mark.parametrize("filled", [False, True])
def test_on_a_log_axis_zeros_are_below_the_frame_and_gaps_remain(ask: Ask, filled: bool) -> None:
    shapes = """() => {
        const { frame, curves: [layer], xRange, px, py } = iosonar.settled("a");
        const [{ sections }] = iosonar.layers.shapes(layer, xRange, px, py, frame.width);
        return [frame.top + frame.height, sections.map((all) => all.filter((_, i) => i % 2)), layer.fill ?? 0];
    }"""
    bottom, sections, fill = ask(shapes, None, figure(steps(0, 5, NAN, 2, filled=filled)))
    assert [max(each) > bottom for each in sections] == [True, False], "a zero, and a gap"
    assert all(np.isfinite(each).all() for each in sections)
    assert (fill > 0) is filled


def test_numbers_arrive_as_they_were(ask: Ask) -> None:
    random = np.random.default_rng(1)
    x, y = np.cumsum(random.random(500)), random.random(500).astype(np.float32)
    y[7] = NAN
    edges = np.linspace(0.1, 0.7, 301)
    places = random.choice(400, 300, replace=False)
    counts = random.integers(1, 2**31, 300)
    part = CloudPart(Role.READ, "Reads", (places % 20).astype(np.int32), (places // 20).astype(np.int32), counts)
    few, two = np.array([0.1, 0.2, 0.4]), np.array([NAN, 3])
    layers = (
        Line(Role.READ, "a", x, y.astype(float)),
        Steps(Role.WRITE, "b", edges, y[:300].astype(float)),
        Steps(Role.WRITE, "c", few, two),
        Cloud(20, 20, (part,)),
    )
    found = ask(
        """() => {
            const { curves: [a, b, c], clouds: [{ parts: [{ levels: [level] }] }] } = iosonar.settled("a");
            const { columns, rows, counts } = level;
            return [a.x, a.y, b.edges, b.y, c.edges, c.y, columns, rows, counts].map((each) => [...each]);
        }""",
        None,
        figure(*layers),
    )
    for got, sent in zip(found, (x, y, edges, y[:300], few, two), strict=False):
        np.testing.assert_allclose(got, np.asarray(sent), rtol=1e-15)
    cells = dict(zip(zip(found[6], found[7], strict=True), found[8], strict=True))
    assert cells == dict(zip(zip(part.columns, part.rows, strict=True), counts, strict=True))


def test_evenly_spaced_numbers_take_no_space() -> None:
    even = Steps(Role.READ, "a", np.linspace(0, 7, 10_001), np.zeros(10_000))
    (layer,) = described(figure(even))["layers"]
    assert layer["edges"] == {"n": 10_001, "from": 0.0, "to": 7.0}
    uneven = Steps(Role.READ, "a", np.geomspace(1, 7, 10_001), np.zeros(10_000))
    assert described(figure(uneven))["layers"][0]["edges"]["type"] == "f8"


def test_a_vertical_rule_is_below_the_data_and_its_name_above(ask: Ask) -> None:
    rule = Rule(Role.BAD, Direction.VERTICAL, 2.5, "the end")
    bars = Steps(Role.READ, "Reads", np.array([0.0, 5.0]), np.array([20.0]), filled=True, bars=True)
    seen = """() => {
        const { pen, host, frame, px, py } = iosonar.settled("a"), [name] = host.querySelectorAll(".rule-name");
        const reds = (from, to) => [...pen.getImageData(Math.round(px(2.5)), from, 1, to - from).data]
            .filter((_, i) => i % 4 === 0);
        const [bar, bottom] = [Math.round(py(20)), frame.top + frame.height];
        const { textContent, style } = name;
        const isAbove = parseFloat(style.top) + 12 < frame.top;
        return [reds(frame.top + 3, bar - 3), reds(bar + 3, bottom - 3), textContent, isAbove];
    }"""
    above, within, name, is_above = ask(seen, None, figure(bars, rule))
    # The rule is #8b2bbf, bars are #1f77e0 on nearly white.
    assert min(above) == 0x8B and 0x1F < min(within) < max(within) < 0x8B
    assert name == "the end" and is_above


def test_names_of_rules_do_not_cross_other_rules() -> None:
    def places(*at: float) -> list[RuleName]:
        rules = [Rule(Role.GOOD, Direction.VERTICAL, each, "the end") for each in at]
        whole = Figure("n", "g", "t", "o", Axis("x", Unit.REQUESTS, 0, 10), COUNTS, tuple(rules))
        return [name_of_rule(whole, rule) for rule in rules]

    assert places(5) == [RuleName(is_left=False, row=0)]
    assert places(5, 6) == [RuleName(is_left=True, row=0), RuleName(is_left=False, row=0)]
    assert places(8, 9) == [RuleName(is_left=True, row=0), RuleName(is_left=True, row=1)]


@pytest.mark.parametrize(("at", "is_left"), [(0.2, False), (4.5, True)])
def test_the_name_of_a_limit_crosses_no_other_name(at: float, is_left: bool) -> None:
    limit = Rule(Role.BAD, Direction.HORIZONTAL, 1.5, "limit")
    layers = described(figure(steps(1, 2), limit, Rule(Role.BAD, Direction.VERTICAL, at, "first")))["layers"]
    assert [layer["left"] for layer in layers if layer["label"] == "limit"] == [is_left]


@pytest.mark.parametrize(
    ("axis", "room", "expected"),
    [
        (Axis("x", Unit.REQUESTS, 1, 886, whole=True), 346, "200, 400, 600, 800"),
        (Axis("x", Unit.REQUESTS, 0, 2, whole=True), 900, "0, 1, 2"),
        (Axis("x", Unit.TIMELINE, 0, 30.02), 558, "0, 5, 10, 15, 20, 25, 30"),
        (Axis("x", Unit.TIMELINE, 0, 3 * 3600), 900, "0:00:00, 0:20:00, 0:40:00, 1:00:00, 1:20:00, 1:40:00, 2:00:00"),
        (Axis("x", Unit.GIB, 0.1, 0.5), 900, "0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5"),
        (Axis("x", Unit.RANK, 0, 9, named=((1, "a"), (7, "b"))), 900, "a, b"),
    ],
)
def test_ticks_of_linear_axes(ask: Ask, axis: Axis, room: int, expected: str) -> None:
    shown = Figure(
        "a", "g", "t", "", axis, COUNTS, (Steps(Role.READ, "r", np.array([axis.low, axis.high]), np.ones(1)),)
    )
    function = """(room) => {
        const { x } = iosonar.settled("a"), place = (at) => (at - x.low) / (x.high - x.low) * room;
        return iosonar.axisTicks(x, x, place, room).major.map(([, said]) => said).join(", ");
    }"""
    assert ask(function, room, shown).startswith(expected)
