"""What a view answers: its page, windows of its diagrams, requests and selections."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock

from iosonar import units
from iosonar.diagrams.notes import stamps
from iosonar.errors import UserError
from iosonar.figures.for_page import in_two_parts
from iosonar.figures.model import Figure, NoteKind, Severity, emptied
from iosonar.figures.palette import Theme
from iosonar.report.page import Banner, Page, Section, Served, Summary, render
from iosonar.view.figures import Figures
from iosonar.view.findings import Findings
from iosonar.view.lattice import Window
from iosonar.view.selection import Box, request, selected
from iosonar.view.server import Answer, Download, Html, Packed, Route
from iosonar.view.table import Table

ASSETS = Path(__file__).parent / "assets"
MAX_ROWS = 5_000_000
"""So many rows, or fewer, are saved as CSV: they need room in a temporary directory."""

SCRIPTS = ("requests.js", "selection.js", "view.js", "findings.js")


class View:
    """A run or load, or one that grows."""

    follows = False

    def __init__(
        self,
        figures: Figures,
        title: str,
        table: Table | None = None,
        theme: Theme | None = None,
        findings: Findings | None = None,
    ) -> None:
        self.figures, self.title, self.table, self.theme = figures, title, table, theme
        self.findings = findings
        self.lock = Lock()
        """Held while numbers are read: memory is needed for one window at a time."""

    def routes(self) -> dict[str, Route]:
        """What it answers, by the name in the address."""
        found: dict[str, Route] = {
            "": self.page,
            "window": self.window,
            "request": self.request,
            "selection": self.selection,
            "state": self.state,
        }
        if self.findings:
            found["findings"] = self.findings.answer
        if self.table:
            found |= {"rows.csv": self.rows, "selected.load.parquet": self.load}
        return found

    def page(self, _: Mapping[str, str]) -> Html:
        """The page, whose diagrams ask for their windows."""
        nonce = secrets.token_urlsafe(16)
        with self.lock:
            figures = tuple(self._empty(name) for name in self.figures.names)
            lead = self.lead()
        about = "Zoom in to see single requests, from their issue to their completion. `Select` a box for its rows."
        page = Page(
            Summary(self.title, self.title, lead=lead, banners=self.banners(), whole="whole"),
            (Section("diagrams", "Requests over time", about, figures),),
        )
        style, panel = (self._asset(name) for name in ("view.css", "panel.html"))
        panel = panel.replace("FOLLOWS", "yes" if self.follows else "no")
        panel = panel.replace("FINDS", "yes" if self.findings else "no")
        served = Served(nonce, tuple(map(self._asset, SCRIPTS)), style, panel)
        return Html(render(page, self.theme, served), nonce)

    def lead(self) -> tuple[str, ...]:
        """What is shown, in a sentence."""
        requests = self.figures.index.requests
        not_issued = f"; {units.count(requests.not_issued)} more were never issued" if requests.not_issued else ""
        seconds = (requests.high_ns - requests.low_ns) / 1e9
        return (f"{units.requests(len(requests))} in {units.span(seconds)}{not_issued}",)

    def banners(self) -> tuple[Banner, ...]:
        """What makes the run fake, damaged or not faithful, as the page of a report says."""
        if self.table is None:
            return ()
        file = self.table.file
        found = [Banner(note.severity, f"{note.text}.") for note in stamps(file) if note.kind is NoteKind.WARNING]
        verdict = file.run.statistics.verdict
        if verdict and not verdict.faithful and not file.fake:
            found.append(Banner(Severity.BAD, verdict.sentence))
        return tuple(found)

    @staticmethod
    def _asset(name: str) -> str:
        return (ASSETS / name).read_text(encoding="utf-8")

    def _empty(self, name: str) -> Figure:
        """A diagram with its axes, its series and its legend, and no numbers."""
        (x, y), whole = self.figures.axes(name), self.figures.whole(name)
        self.figures.index.release()
        layers = tuple(emptied(layer) for layer in whole.layers)
        notes = tuple(note for note in stamps(self.table.file) if note.kind is NoteKind.STAMP) if self.table else ()
        return replace(whole, x=x, y=y, layers=layers, notes=notes)

    def window(self, query: Mapping[str, str]) -> Answer:
        """The numbers of a window of a diagram."""
        name, window = self._name(query), Window.of(query)
        with self.lock:
            figure = self.figures.window(name, window)
            bars = self.figures.bars(name, window)
            x, y = self.figures.axes(name)
            count = self.figures.count(name, window)
            dot = self.figures.dot(name, window)
            self.figures.index.release()
        found, content = in_two_parts(figure)
        for layer in found["layers"]:
            if layer["kind"] == "cloud":
                # That of the window alone.
                layer["dot"] = dot
        more = {
            "bars": bars.as_json() if bars else None,
            "count": count,
            "whole": {"x": [x.low, x.high], "y": [y.low, y.high]},
            "legend": {row.label: row.cells for row in figure.legend.rows if row.cells},
        }
        return Packed(found | more, content)

    def request(self, query: Mapping[str, str]) -> Answer:
        """All columns of a request, by its number in the index."""
        row = _number(query, "row", len(self.figures.index.requests))
        requests = self.figures.index.requests
        found = request(requests, row)
        columns = self.table.request(found["place"], int(requests.begin[row])) if self.table else []
        return found | {"columns": columns}

    def selection(self, query: Mapping[str, str]) -> Answer:
        """What is in a box."""
        box = self._box(query)
        with self.lock:
            found = selected(self.figures.index.requests, box)
            self.figures.index.release()
        return found | {"sql": box.sql(is_run=self.figures.is_run), "exports": self.table is not None}

    def rows(self, query: Mapping[str, str]) -> Answer:
        """The rows of a box as CSV."""
        assert self.table
        condition = self._box(query).sql(is_run=self.figures.is_run)
        if self.table.count(condition) > MAX_ROWS:
            raise UserError(f"these are more than {units.count(MAX_ROWS)} rows; `iosonar sql --format csv` writes them")
        return Download("rows.csv", "text/csv; charset=utf-8", self.table.rows(condition))

    def load(self, query: Mapping[str, str]) -> Answer:
        """The requests of a box as a load."""
        assert self.table
        condition = self._box(query).sql(is_run=self.figures.is_run)
        return Download("selected.load.parquet", "application/octet-stream", self.table.load(condition))

    def state(self, _: Mapping[str, str]) -> Answer:
        """Whether it grows, and how far it is."""
        return {"follows": False, "rows": len(self.figures.index.requests), "text": ""}

    def _box(self, query: Mapping[str, str]) -> Box:
        return Box.of(self.figures, self._name(query), Window.of(query))

    def _name(self, query: Mapping[str, str]) -> str:
        name = query.get("figure", "")
        if name not in self.figures.names:
            raise UserError("there is no such diagram")
        return name


def _number(query: Mapping[str, str], name: str, below: int) -> int:
    found = query.get(name, "")
    if not (found.isascii() and found.isdigit() and len(found) < 19 and int(found) < below):
        raise UserError(f"{name} is no number of a request")
    return int(found)
