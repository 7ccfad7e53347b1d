"""Writes pages: one self-contained HTML file with zoomable diagrams, for use offline."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosonar.figures.for_page import described
from iosonar.figures.model import (
    Cloud,
    Empty,
    Figure,
    LegendRow,
    Line,
    Note,
    NoteKind,
    Severity,
    Steps,
    Unit,
)
from iosonar.figures.palette import PALETTES, Palette, Theme
from iosonar.report.gate import Judged, Outcome
from iosonar.report.terms import Explained
from iosonar.units import UNITS

if TYPE_CHECKING:
    from markupsafe import Markup

CODE = re.compile("`([^`]+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
"""A command-line option, in which no line may break."""
UNIT = re.compile(rf"(?<=\d) (?={UNITS})")
"""The space between a number and its unit, at which no line may break."""

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = ("units.js", "ticks.js", "layers.js", "clouds.js", "legend.js", "plot.js", "zoom.js", "page.js")
"""Each uses those before it."""


MAX_BANNERS = 3
"""Banners above answers; if there are at least two more, they are folded into one line."""


@dataclass(frozen=True)
class Banner:
    """A highlighted sentence."""

    severity: Severity
    text: str
    head: str = ""
    steps: tuple[str, ...] = ()
    """A numbered list below it."""


@dataclass(frozen=True)
class Tile:
    """A key figure."""

    label: str
    value: str
    more: str = ""


@dataclass(frozen=True)
class Answer:
    """A question and its answer, with the diagram and the number of the finding that it comes from, if any."""

    question: str
    severity: Severity
    text: str
    diagram: str = ""
    number: str = ""


@dataclass(frozen=True)
class Table:
    """A table of texts; the first column names the row, and may have a link for each row, or an empty text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShownFinding:
    """A finding: what was seen, more about it under headings, and the part of a diagram that shows it.

    `figure` is the name of the diagram; empty if it is not on the page.
    """

    severity: Severity
    head: str
    text: str
    details: tuple[tuple[str, tuple[str, ...]], ...]
    figure: str = ""
    from_s: float | None = None
    to_s: float | None = None


@dataclass(frozen=True)
class Summary:
    """The top of the page."""

    title: str
    short: str
    lead: tuple[str, ...] = ()
    banners: tuple[Banner, ...] = ()
    answers: tuple[Answer, ...] = ()
    tiles: tuple[Tile, ...] = ()
    tables: tuple[Table, ...] = ()
    conditions: tuple[Banner, ...] = ()
    """The outcomes of conditions."""
    checks: tuple[Banner, ...] = ()
    inconclusive: tuple[Banner, ...] = ()
    """Checks that say nothing about the device if the replay was not faithful; `doubt` is the reason."""
    doubt: str = ""
    findings: tuple[ShownFinding, ...] = ()
    """What the rows say, the worst first."""
    about: str = "Files"
    """The heading of the facts."""
    facts: tuple[tuple[str, str], ...] = ()
    whole: str = ""
    """What the numbers of legends are of, whatever a zoom shows: whole run."""


@dataclass(frozen=True)
class Section:
    """A section of the page: related diagrams, and tables below them."""

    id: str
    title: str
    about: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Page:
    """The content of a page."""

    summary: Summary
    sections: tuple[Section, ...]
    empty: tuple[Empty, ...] = field(default=())
    packed: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """Figures that are described already, by their names: see `described`."""


@dataclass(frozen=True)
class Served:
    """What a page has beside its content if a program serves it: its policy is in the answer, not in the page."""

    nonce: str
    """Scripts without it do not run."""
    scripts: tuple[str, ...]
    """After those of the page."""
    style: str
    panel: str
    """HTML after the content."""


@dataclass(frozen=True)
class _Row:
    label: str
    role: str
    stroke: str
    cells: tuple[str, ...]
    toggled: bool


@dataclass(frozen=True)
class _FigureView:
    """A figure in the form that the template needs."""

    figure: Figure
    rows: tuple[_Row, ...]
    notes: tuple[Note, ...]
    stamps: tuple[Note, ...]
    timeline: bool
    lines: bool


OUTCOMES = {Outcome.HOLDS: Severity.BAD, Outcome.UNDECIDED: Severity.WARNING, Outcome.FAILS: Severity.GOOD}


def with_conditions(page: Page, judged: Sequence[Judged]) -> Page:
    """A page that shows the outcomes of conditions."""
    conditions = tuple(Banner(OUTCOMES[each.outcome], each.sentence) for each in judged)
    return replace(page, summary=replace(page.summary, conditions=conditions))


def write_page(page: Page, path: Path, theme: Theme | None) -> None:
    """Writes a page; without a theme it follows the reader's system."""
    path.write_text(render(page, theme), encoding="utf-8")


def render(page: Page, theme: Theme | None, served: Served | None = None) -> str:
    """Renders a page as HTML."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    figures = [
        page.packed.get(figure.name) or described(figure) for section in page.sections for figure in section.figures
    ]
    sections = [
        {
            "id": section.id,
            "title": section.title,
            "about": section.about,
            "figures": [_view(figure) for figure in section.figures],
            "tables": section.tables,
        }
        for section in page.sections
        if section.figures or section.tables
    ]
    about = {"figures": figures, "palettes": {theme.value: _palette(PALETTES[theme]) for theme in Theme}}
    environment = Environment(loader=FileSystemLoader(ASSETS), autoescape=True, undefined=StrictUndefined)
    environment.filters["prose"] = prose
    environment.filters["explained"] = partial(_explained, Explained())
    text: str = environment.get_template("page.html").render(
        summary=page.summary,
        max_banners=MAX_BANNERS,
        tile_columns=tile_columns(len(page.summary.tiles)),
        first_drawn=next((section["id"] for section in sections if section["figures"]), ""),
        sections=sections,
        drawn={figure.name for section in page.sections for figure in section.figures},
        empty=_by_reason(page.empty),
        theme=theme.value if theme else "",
        colours=_style(),
        asset=lambda name: (ASSETS / name).read_text(encoding="utf-8"),
        about=json.dumps(about, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
        scripts=SCRIPTS,
        has_figures=bool(figures),
        served=served,
    )
    return text


def _by_reason(empty: Sequence[Empty]) -> list[tuple[str, str]]:
    """The names of diagrams that are not drawn, and the reason, those of the same reason together."""
    found: dict[str, list[str]] = {}
    for each in empty:
        found.setdefault(each.reason, []).append(each.name)
    return [(", ".join(names), reason) for reason, names in found.items()]


def tile_columns(tiles: int) -> str:
    """The number of columns of the tiles where so many fit: rows of the same length, so that none has a single tile."""
    columns = {most: -(-tiles // max(-(-tiles // most), 1)) for most in (2, 3, 4, 6, 9)}
    return ";".join(f"--in-{most}:{max(found, 1)}" for most, found in columns.items())


def prose(text: str) -> Markup:
    """A sentence as HTML: text in backticks becomes code, and numbers stay with their units."""
    from markupsafe import Markup, escape

    html = CODE.sub(r"<code>\1</code>", OPTION.sub(r'<span class="option">\g<0></span>', str(escape(text))))
    return Markup(UNIT.sub("\u00a0", html))


def _explained(terms: Explained, text: str) -> Markup:
    """A sentence as HTML, with terms that the page explains."""
    from markupsafe import Markup

    return Markup(terms.html(prose(text)))


def _view(figure: Figure) -> _FigureView:
    labels = {part.label for layer in figure.layers if isinstance(layer, Cloud) for part in layer.parts}
    lines = {layer.label for layer in figure.layers if isinstance(layer, Line | Steps)}
    kinds = (NoteKind.VERDICT, NoteKind.INFO)
    return _FigureView(
        figure,
        tuple(_row(row, row.label in labels | lines) for row in figure.legend.rows),
        tuple(note for note in figure.notes if note.kind in kinds),
        tuple(note for note in figure.notes if note.kind is NoteKind.STAMP),
        figure.x.unit is Unit.TIMELINE,
        bool(lines),
    )


def _row(row: LegendRow, toggled: bool) -> _Row:
    stroke = row.stroke.value if row.stroke else "area"
    return _Row(row.label, row.role.replace(" ", "-"), stroke, row.cells, toggled)


def _palette(palette: Palette) -> dict[str, Any]:
    return {
        "paper": palette.paper,
        "plot": palette.plot,
        "ink": palette.ink,
        "soft_ink": palette.soft_ink,
        "grid": palette.grid,
        "roles": {role.value: colour for role, colour in palette.roles.items()},
    }


def _style() -> str:
    """The colours of both themes as variables of the style sheet."""
    light, dark = (_variables(PALETTES[theme], theme) for theme in (Theme.LIGHT, Theme.DARK))
    return (
        f":root {{{light}}}\n@media (prefers-color-scheme: dark) {{:root {{{dark}}}}}\n"
        f':root[data-theme="light"] {{{light}}}\n:root[data-theme="dark"] {{{dark}}}\n'
        f"@media print {{:root, :root[data-theme] {{{light}}}}}"
    )


def _variables(palette: Palette, theme: Theme) -> str:
    named = {
        "paper": palette.paper,
        "plot": palette.plot,
        "ink": palette.ink,
        "soft-ink": palette.soft_ink,
        "grid": palette.grid,
        **{f"role-{role.replace(' ', '-')}": colour for role, colour in palette.roles.items()},
        **{f"severity-{severity}": colour for severity, colour in palette.severities.items()},
    }
    return f"color-scheme: {theme.value};" + "".join(f"--{name}:{colour};" for name, colour in named.items())
