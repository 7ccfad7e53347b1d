"""What the page says of the original beside the replay."""

from __future__ import annotations

from collections.abc import Iterator

from iosonar import units
from iosonar.report.page import Table
from iosonar.study.original import distances
from iosonar.study.requests import Study


def distance_table(study: Study, first: str = "original", second: str = "replay", name: str = "") -> Iterator[Table]:
    """How far the run is from its original; nothing without one. `name` is that of the run, if it is one of several."""
    found = distances(study)
    rows = []
    for each in found:
        text = each.quantity.text
        rows += [
            (
                f"{each.quantity.name}, {one.metric}",
                text(one.a_ns),
                text(one.b_ns),
                units.change_or_factor(one.change),
                f"{units.change_or_factor(one.low)} … {units.change_or_factor(one.high)}",
            )
            for one in each.differences
        ]
        low, high = units.percent(each.gap.low), units.percent(each.gap.high)
        gap = (units.percent(each.gap.share), f"{low} … {high}")
        rows.append((f"{each.quantity.name}, largest gap", "", "", *gap))
    if rows:
        yield Table(
            f"Distance of {name or 'the replay'} from the original",
            ("", first, second, "", "95 % interval"),
            tuple(rows),
        )
