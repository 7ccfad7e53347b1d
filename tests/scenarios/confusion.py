"""The confusion matrix: for each kind, what was planted, found, missed, and found where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scenario import CLEAN, Scenario


@dataclass(frozen=True)
class Row:
    """The counts of a kind, in scenarios."""

    kind: str
    title: str
    planted: int
    found: int
    false_on_planted: int
    false_on_clean: int

    @property
    def missed(self) -> int:
        """Planted, and not found."""
        return self.planted - self.found


@dataclass(frozen=True)
class Confusion:
    """The matrix, and the scenarios that were not diagnosed as expected."""

    rows: list[Row]
    clean: int
    missed: list[tuple[Scenario, str]]
    false: list[tuple[Scenario, str]]

    @property
    def sums(self) -> Row:
        """Of all kinds."""
        counts = ((row.planted, row.found, row.false_on_planted, row.false_on_clean) for row in self.rows)
        return Row("all", "", *(sum(each) for each in zip(*counts, strict=True)))


def confusion(found: Mapping[Scenario, Mapping[str, str]], titles: Mapping[str, str]) -> Confusion:
    """Of the findings of each scenario: their numbers with what was seen."""
    numbers = {number for each in found.values() for number in each}
    kinds = sorted({*titles, *numbers, *(s.kind for s in found if s.kind != CLEAN)})
    rows, missed, false = [], [], []
    for kind in kinds:
        planted = [(s, one) for s in found for one in s.must if kind in one and s.kind in (kind, CLEAN)]
        hits = [s for s, one in planted if one & found[s].keys()]
        missed += [(s, "|".join(sorted(one))) for s, one in planted if not one & found[s].keys()]
        wrong = [s for s in found if kind in found[s] and kind not in s.allowed]
        false += [(s, kind) for s in wrong]
        on_clean = sum(s.kind == CLEAN for s in wrong)
        title = titles.get(kind, "")
        rows.append(Row(kind, title, len(planted), len(hits), len(wrong) - on_clean, on_clean))
    return Confusion(rows, sum(s.kind == CLEAN for s in found), missed, false)


HEADS = ("kind", "title", "planted", "found", "missed", "false on others", "false on clean")


def cells(row: Row) -> list[str]:
    """The cells of a row, under `HEADS`."""
    counts = (row.planted, row.found, row.missed, row.false_on_planted, row.false_on_clean)
    return [row.kind, row.title, *map(str, counts)]


def as_markdown(found: Confusion) -> str:
    """The matrix as a table, for terminals and documents alike."""
    lines = [list(HEADS), *map(cells, found.rows), cells(found.sums)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    numbers = range(2, len(HEADS))

    def line(texts: Sequence[str]) -> str:
        padded = [
            t.rjust(w) if c in numbers else t.ljust(w) for c, (t, w) in enumerate(zip(texts, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = "|" + "|".join("-" * (w + 1) + (":" if c in numbers else "-") for c, w in enumerate(widths)) + "|"
    return "\n".join([line(lines[0]), rule, *map(line, lines[1:])])


def summary(found: Confusion) -> str:
    """The two goals, as a sentence each."""
    sums, clean = found.sums, max(found.clean, 1)
    share = 100 * sums.found / max(sums.planted, 1)
    return (
        f"Found {sums.found} of {sums.planted} planted causes ({share:.0f} %; the goal is 95 %).\n"
        f"{sums.false_on_clean} false findings in {found.clean} clean runs: {20 * sums.false_on_clean / clean:.1f} in "
        f"twenty (the goal is at most 1). {sums.false_on_planted} false findings in runs with another cause."
    )
