"""Writes pages: one self-contained file of words, numbers and diagrams that can be zoomed into; it needs no network."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iosonar.figures.model import (
    Cloud,
    Empty,
    Figure,
    LegendRow,
    Line,
    Mood,
    Note,
    NoteKind,
    Steps,
    Unit,
)
from iosonar.figures.palette import PALETTES, Palette, Theme
from iosonar.figures.with_bokeh import Plots

ASSETS = Path(__file__).parent / "assets"


@dataclass(frozen=True)
class Band:
    """One sentence that must be seen."""

    mood: Mood
    text: str
    head: str = ""


@dataclass(frozen=True)
class Tile:
    """A key figure."""

    label: str
    value: str
    more: str = ""


@dataclass(frozen=True)
class Table:
    """A small table of texts; the first column names the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Front:
    """What the reader sees first."""

    title: str
    short: str
    lead: tuple[str, ...] = ()
    bands: tuple[Band, ...] = ()
    tiles: tuple[Tile, ...] = ()
    tables: tuple[Table, ...] = ()
    checks: tuple[Band, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Section:
    """A part of the page: diagrams that belong together."""

    id: str
    title: str
    about: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Page:
    """All of a page."""

    front: Front
    sections: tuple[Section, ...]
    empty: tuple[Empty, ...] = field(default=())


@dataclass(frozen=True)
class _Row:
    label: str
    role: str
    stroke: str
    cells: tuple[str, ...]
    toggled: bool


@dataclass(frozen=True)
class _Shown:
    """A figure as the template wants it."""

    figure: Figure
    div: str
    rows: tuple[_Row, ...]
    notes: tuple[Note, ...]
    stamps: tuple[Note, ...]
    timeline: bool
    lines: bool


def write_page(page: Page, path: Path, theme: Theme | None) -> None:
    """Writes it; without a theme the page has that of its reader's system."""
    path.write_text(render(page, theme), encoding="utf-8")


def render(page: Page, theme: Theme | None) -> str:
    """The whole page as HTML."""
    import bokeh
    from bokeh.embed import components
    from bokeh.resources import Resources
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    plots: dict[str, Any] = {}
    drawer, described = Plots(), []
    for section in page.sections:
        for figure in section.figures:
            plots[figure.name], what = drawer.draw(figure)
            described.append(what)
    script, divs = components(plots) if plots else ("", {})
    # Only the core of the library: neither widgets, nor tables, nor formulas.
    library = Resources(mode="inline", components=["bokeh"], minified=True).render_js() if plots else ""
    sections = [
        {
            "id": section.id,
            "title": section.title,
            "about": section.about,
            "figures": [_shown(figure, divs[figure.name]) for figure in section.figures],
        }
        for section in page.sections
        if section.figures
    ]
    about = {"figures": described, "palettes": {theme.value: _palette(PALETTES[theme]) for theme in Theme}}
    environment = Environment(loader=FileSystemLoader(ASSETS), autoescape=True, undefined=StrictUndefined)
    text: str = environment.get_template("page.html").render(
        front=page.front,
        sections=sections,
        empty=page.empty,
        theme=theme.value if theme else "",
        colours=_style(),
        asset=lambda name: (ASSETS / name).read_text(encoding="utf-8"),
        about=json.dumps(about, ensure_ascii=False).replace("<", "\\u003c"),
        library=library,
        script=script,
        bokeh_version=bokeh.__version__,
    )
    return text


def _shown(figure: Figure, div: str) -> _Shown:
    labels = {part.label for layer in figure.layers if isinstance(layer, Cloud) for part in layer.parts}
    lines = {layer.label for layer in figure.layers if isinstance(layer, Line | Steps)}
    own = (NoteKind.VERDICT, NoteKind.INFO)
    return _Shown(
        figure,
        div,
        tuple(_row(row, row.label in labels | lines) for row in figure.legend.rows),
        tuple(note for note in figure.notes if note.kind in own),
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
        f':root[data-theme="light"] {{{light}}}\n:root[data-theme="dark"] {{{dark}}}'
    )


def _variables(palette: Palette, theme: Theme) -> str:
    named = {
        "paper": palette.paper,
        "plot": palette.plot,
        "ink": palette.ink,
        "soft-ink": palette.soft_ink,
        "grid": palette.grid,
        **{f"role-{role.replace(' ', '-')}": colour for role, colour in palette.roles.items()},
        **{f"mood-{mood}": colour for mood, colour in palette.moods.items()},
    }
    return f"color-scheme: {theme.value};" + "".join(f"--{name}:{colour};" for name, colour in named.items())
