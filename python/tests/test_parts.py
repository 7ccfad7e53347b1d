"""Code shared by several diagrams."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iosonar.diagrams.parts import log_axis
from iosonar.figures.model import Unit


@pytest.mark.parametrize("least", [0.9999999986030161, 1.0000000014, 9.999999999999e-10, 999.9999999999, 4.99999999])
def test_an_axis_begins_at_or_below_a_value_next_to_a_round_one(least: float) -> None:
    axis = log_axis("Spread", Unit.TIMES, least, 2 * least)
    assert axis.low <= least * (1 + 1e-8)
    assert axis.high >= 2 * least


@given(least=st.floats(1e-12, 1e18), factor=st.floats(1, 1e12))
def test_an_axis_holds_all_of_its_values(least: float, factor: float) -> None:
    axis = log_axis("Latency", Unit.SECONDS, least, least * factor)
    assert axis.low <= least * (1 + 1e-8)
    assert axis.high >= least * factor * (1 - 1e-8)
