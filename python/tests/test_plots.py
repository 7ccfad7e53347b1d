"""Plots of pages as passed to Bokeh; test_page.py tests them in a browser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bokeh.models.annotations import Label, Span

from iosonar.figures.model import (
    Axis,
    Direction,
    Figure,
    Layer,
    Role,
    Rule,
    RuleName,
    Scale,
    Steps,
    Unit,
    name_of_rule,
)
from iosonar.figures.with_bokeh import RULE_NAMES, Plots, areas, outline

NAN = float("nan")
COUNTS = Axis("Requests", Unit.REQUESTS, 0.7, 1000, Scale.LOG)


def drawn(*layers: Layer, x: Axis | None = None, y: Axis = COUNTS) -> Any:
    """The plot of a figure."""
    plot, _ = Plots().draw(Figure("a", "g", "", "", x or Axis("x", Unit.GIB, 0, 5), y, layers))
    return plot


def steps(*y: float, filled: bool = False) -> Steps:
    return Steps(Role.READ, "Reads", np.arange(len(y) + 1, dtype=float), np.array(y), filled=filled)


def test_an_isolated_bin_has_its_full_width() -> None:
    x, y = outline(np.arange(5.0), np.array([NAN, 7.0, NAN, 3.0]))
    pieces = [(low, high, value) for low, high, value, end in zip(x, x[1:], y, y[1:], strict=False) if value == end]
    assert pieces == [(1, 2, 7), (3, 4, 3)]


def test_an_outline_has_no_unnecessary_corners() -> None:
    x, y = outline(np.arange(8.0), np.array([0.0, 0, 0, 0, 5, 5, 5]))
    assert list(zip(x, y, strict=True)) == [(0, 0), (4, 0), (4, 5), (7, 5)]


def test_each_section_has_an_area_down_to_the_axis() -> None:
    xs, ys = areas(*outline(np.arange(5.0), np.array([2.0, NAN, 4.0, 8.0])), 0.7)
    assert [list(x) for x in xs] == [[0, 0, 1, 1], [2, 2, 3, 3, 4, 4]]
    assert [list(y) for y in ys] == [[0.7, 2, 2, 0.7], [0.7, 4, 4, 8, 8, 0.7]]


@pytest.mark.parametrize("filled", [False, True])
def test_on_a_log_axis_zeros_are_below_the_frame_and_gaps_remain(filled: bool) -> None:
    plot = drawn(steps(0, 5, NAN, 2, filled=filled))
    line = plot.select_one({"name": "a:0.0"}).data_source.data
    y = line["y"]
    assert min(y[~np.isnan(y)]) == pytest.approx(0.07)
    assert np.isnan(y).any()
    area = plot.select_one({"name": "a:0.0.area"})
    if not filled:
        assert area is None
        return
    assert len(area.data_source.data["xs"]) == 2
    assert all(np.isfinite(y).all() for y in area.data_source.data["ys"])


def test_the_name_of_a_vertical_rule_covers_no_data() -> None:
    plot = drawn(steps(1, 2), Rule(Role.GOOD, Direction.VERTICAL, 0.5, "the end"))
    (rule,) = plot.select({"type": Span})
    assert not plot.select({"type": Label}) and plot.min_border_top == RULE_NAMES, "the page writes it above the frame"
    assert rule.level == "underlay", "it does not hide what it points at"


def test_names_of_rules_do_not_cross_other_rules() -> None:
    def places(*at: float) -> list[RuleName]:
        rules = [Rule(Role.GOOD, Direction.VERTICAL, each, "the end") for each in at]
        whole = Figure("n", "g", "t", "o", Axis("x", Unit.REQUESTS, 0, 10), COUNTS, tuple(rules))
        return [name_of_rule(whole, rule) for rule in rules]

    assert places(5) == [RuleName(is_left=False, row=0)]
    assert places(5, 6) == [RuleName(is_left=True, row=0), RuleName(is_left=False, row=0)]
    assert places(8, 9) == [RuleName(is_left=True, row=0), RuleName(is_left=True, row=1)]


@pytest.mark.parametrize(("at", "align"), [(0.2, "right"), (4.5, "left")])
def test_the_name_of_a_limit_crosses_no_other_name(at: float, align: str) -> None:
    limit = Rule(Role.BAD, Direction.HORIZONTAL, 1.5, "limit")
    plot = drawn(steps(1, 2), limit, Rule(Role.BAD, Direction.VERTICAL, at, "first"))
    (label,) = (each for each in plot.select({"type": Label}) if each.text == "limit")
    assert (label.text_align, label.x.symbol) == (align, align)
