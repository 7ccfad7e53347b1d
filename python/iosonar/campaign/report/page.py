"""The page of a campaign, its JSON, and the command `iosonar campaign report`."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from iosonar import units
from iosonar.campaign.report import gate as gates
from iosonar.campaign.report import starts
from iosonar.campaign.report.analysis import Analysis, analyse_campaign
from iosonar.campaign.report.answers import answers
from iosonar.campaign.report.effects import Effect
from iosonar.campaign.report.figures import effect_plots, finding, leaf_plot
from iosonar.campaign.report.findings import NAMES, about_dashes, banners, factor_names, headline, not_compared, short
from iosonar.campaign.report.leaf_findings import Findings
from iosonar.campaign.report.parallel_devices import at_once_plots
from iosonar.campaign.report.results import LeafResult, read_results
from iosonar.errors import UserError
from iosonar.figures.model import Figure, Note, NoteKind, Severity
from iosonar.report.gate import HOLDS, Fidelity, shown
from iosonar.report.gate_files import refuse_same_file, write_junit, write_markdown
from iosonar.report.output_options import OutputOptions
from iosonar.report.page import Banner, Page, Section, Summary, Table, Tile, write_page
from iosonar.report.provenance import refuse_other, write_claimed
from iosonar.text import lines, listed, plain
from iosonar.text import shown as path_shown

PAGE_NAME = "campaign.report.html"

ABOUT = (
    "The unit is the leaf. Means are geometric, with equal weights for the levels of all other factors; intervals are "
    "those of one factor and metric. A difference is claimed if it is significant at 5 %, corrected by Holm's method "
    "for all factors and metrics, and at least 1 %."
)

SHORT_DELAYS = "Delays below 1 µs count as 1 µs in means and changes: clocks are not more accurate."

STATES = {
    Fidelity.FAKE: "FAKE",
    Fidelity.UNFAITHFUL: "NOT faithful",
    Fidelity.UNFILLED: "target NOT filled",
    Fidelity.UNKNOWN: "verdict not known",
}
"""Verdicts in the table of the leaves, where the word itself is not clear enough."""

LEAVES = (
    "Instances of a leaf are pooled. Between devices: the p99 of the slowest device divided by that of the fastest "
    "(p50 with few requests)."
)


def run_report(
    top: Path,
    by: list[str],
    output: Path | None,
    json: bool,
    fail_if: list[str],
    junit: Path | None = None,
    markdown: Path | None = None,
    *,
    overwrite: bool = False,
) -> int:
    """Writes the page of a campaign, JUnit XML and Markdown; prints the findings, and returns the exit code.

    0: done; 3: a condition of `fail_if` holds; 4: none holds, but one is undecided.
    """
    path = output or top / PAGE_NAME
    refuse_same_file(path, junit, markdown)
    directory = path.resolve().parent
    options = OutputOptions(directory, inputs=(os.path.relpath(top.resolve(), directory),), overwrite=overwrite)
    if output:
        refuse_other(path, options, "--output")
    conditions = gates.parse_conditions(fail_if)
    leaves = read_results(top, conditions)
    if not conditions and junit is None and not any(leaf.done for leaf in leaves):
        raise UserError(_nothing(top, leaves))
    analysis = analyse_campaign(leaves, by)
    judged = gates.judge(top, conditions, leaves)
    page = campaign_page(analysis, judged, directory, top.resolve().name)
    write_claimed(path, options, lambda unfinished: write_page(page, unfinished, None))
    _write_gate_files(analysis, page.summary, judged, junit, markdown)
    if json:
        _print(as_json(analysis, judged))
    else:
        for banner in banners(analysis):
            _print(f"{banner.head} {banner.text}".strip())
        _print(path_shown(path))
    for line in judged.lines():
        print(lines(line), file=sys.stderr)
    return judged.exit_code


def _nothing(top: Path, leaves: Sequence[LeafResult]) -> str:
    """What to do if no leaf has a result."""
    failed = next((leaf for leaf in leaves if leaf.reason), None)
    why = f" ({failed.name} {failed.state}: {failed.reason})" if failed else ""
    return plain(f"no leaf of {path_shown(top)} has a result{why}: run `iosonar campaign` there first")


def write_gate_files(top: Path, judged: gates.Gate, junit: Path | None, markdown: Path | None) -> None:
    """Writes JUnit XML and Markdown without a page."""
    if markdown is None:
        if junit is not None:
            write_junit("campaign", judged.cases, junit)
        return
    analysis = analyse_campaign(read_results(top), [])
    summary = campaign_page(analysis, judged, top, top.resolve().name).summary
    _write_gate_files(analysis, summary, judged, junit, markdown)


def _write_gate_files(
    analysis: Analysis, summary: Summary, judged: gates.Gate, junit: Path | None, markdown: Path | None
) -> None:
    if junit is not None:
        write_junit("campaign", judged.cases, junit)
    if markdown is not None:
        write_markdown(summary, judged.cases, markdown, [_leaves(analysis, markdown.resolve().parent)])


def campaign_page(analysis: Analysis, judged: gates.Gate, directory: Path, name: str) -> Page:
    """The page; `directory` is where it will be, for the links to the leaves."""
    plots = tuple(_stamped(analysis, figure) for figure in effect_plots(analysis))
    figures = (*at_once_plots(analysis.leaves), leaf_plot(analysis))
    of_leaves = tuple(_stamped(analysis, figure) for figure in figures if figure)
    effects = tuple(table for table in (_effects(analysis),) if table.rows)
    missing = [text for each in analysis.metrics if (text := not_compared(analysis, each))]
    short_delays = [SHORT_DELAYS] if analysis.has_short_delays else []
    about = " ".join([ABOUT, *short_delays, *(f"{text}." for text in missing)])
    sections = (
        *((Section("effects", "Effects", about, plots, effects),) if plots or effects else ()),
        Section(
            "leaves",
            "Leaves",
            LEAVES + about_dashes(analysis.leaves),
            of_leaves,
            tuple(
                table
                for table in (_leaves(analysis, directory), _findings(analysis, directory), _starts(analysis))
                if table.rows
            ),
        ),
    )
    summary = Summary(
        title=plain(name),
        short="Campaign",
        lead=(_lead(analysis),),
        banners=(*banners(analysis), *_gate(judged)),
        answers=answers(analysis),
        tiles=tuple(_tiles(analysis)),
    )
    return Page(summary, sections)


def _name(level: str) -> str:
    """A level, whose words are names: the page explains no terms in them."""
    return f"`{plain(level)}`"


def _lead(analysis: Analysis) -> str:
    factors = [
        f"{short(name)} ({', '.join(map(_name, factor.levels[:6]))}{' …' if len(factor.levels) > 6 else ''})"
        for name, factor in zip(factor_names(analysis), analysis.factors.reported, strict=True)
    ]
    done = sum(leaf.done for leaf in analysis.leaves)
    where = f" in the {len(analysis.used)} valid ones" if analysis.left_out else ""
    varied = f" Varied{where}: {'; '.join(factors)}." if factors else ""
    return f"{done} of {len(analysis.leaves)} leaves have a result.{varied}"


def _tiles(analysis: Analysis) -> Iterator[Tile]:
    main = analysis.headline
    # A large number is believed: none stands above times that say nothing, or that nothing was repeated for.
    if main is None or analysis.doubt or not main.freedom:
        return
    for effect in main.effects[:6]:
        interval = f"{units.change(effect.low)} … {units.change(effect.high)}"
        if effect.mixed:
            interval = "no verdict: options differ"
        levels = plain(f"{effect.to_level} against {effect.from_level}")
        label = f"{plain(short(effect.factor))}: {NAMES[main.metric]}"
        yield Tile(label, units.change(effect.change), f"{levels}: {interval}")


def _gate(judged: gates.Gate) -> Iterator[Banner]:
    if not judged.conditions:
        return
    # Leaves with the same reason together.
    leaves: dict[str, list[str]] = {}
    for leaf in judged.leaves:
        for reason in leaf.reasons:
            leaves.setdefault(reason, []).append(leaf.leaf)
    found = [f"{reason} for {listed(names[:8])}{_and_more(names)}" for reason, names in leaves.items()]
    if not found:
        yield Banner(Severity.GOOD, f"no leaf meets {' or '.join(judged.conditions)}.", "Gate passed:")
        return
    failed = judged.exit_code == HOLDS
    text = "; ".join(found[:8]) + _and_more(found)
    head = "Gate failed:" if failed else "Gate undecided:"
    yield Banner(Severity.BAD if failed else Severity.WARNING, f"{text}.", head)


def _and_more(names: Sequence[str]) -> str:
    return f"; and {len(names) - 8} more" if len(names) > 8 else ""


def _effects(analysis: Analysis) -> Table:
    rows: list[tuple[str, ...]] = []
    for factor in analysis.factors.reported:
        rows += [
            (f"{plain(short(effect.factor))}: {NAMES[effect.metric]}", *_effect_cells(effect))
            for effect in analysis.effects_of(factor.title)
        ]
    return Table("All effects", ("", "from", "to", "change", "95 % interval", "p (Holm)", "finding"), tuple(rows))


def _effect_cells(effect: Effect) -> tuple[str, ...]:
    known = math.isfinite(effect.p)
    return (
        plain(effect.from_level),
        plain(effect.to_level),
        units.change(effect.change),
        f"{units.change(effect.low)} … {units.change(effect.high)}" if known else "–",
        ("<0.001" if effect.p_holm < 0.001 else f"{effect.p_holm:.3f}") if known else "–",
        finding(effect) if known or math.isnan(effect.change) else "too few leaves",
    )


def _leaves(analysis: Analysis, directory: Path) -> Table:
    columns = ("leaf", "p50", "p95", "p99", "delay p99", "throughput", "between devices", "replay", "findings")
    rows = tuple(
        (
            plain(leaf.name),
            *(_cell(leaf, metric) for metric in ("p50", "p95", "p99", "delay.p99", "throughput")),
            f"× {units.number(leaf.spread, 2)}" if math.isfinite(leaf.spread) else "–",
            _state(leaf),
            " ".join(sorted(each.number for each in leaf.findings)) or "–",
        )
        for leaf in analysis.leaves
    )
    links = tuple(_link(leaf, directory) for leaf in analysis.leaves)
    return Table("", columns, rows, links)


def _starts(analysis: Analysis) -> Table:
    """When each instance of leaves with several hosts began."""
    several = [leaf for leaf in analysis.leaves if len({each.host for each in leaf.starts}) > 1]
    found = tuple(row for leaf in several for row in starts.rows(plain(leaf.name), leaf.starts))
    columns = ("leaf", "host", "device", "start skew", "order", "clock drift", "state")
    title = "Starts by the controller's clock; hosts whose ranges overlap may have begun in any order"
    return Table(title, columns, found)


def _findings(analysis: Analysis, directory: Path) -> Table:
    """What the numbers of findings mean, and where each was made."""
    found = Findings(analysis).all
    rows = tuple(
        (f"{each.number}: {each.title}", str(each.worst.severity), f"in {each.where}", each.leaves[0][0].name)
        for each in found
    )
    links = tuple(
        f"{_link(leaf, directory)}#{each.number}" if leaf.page else ""
        for each in found
        for leaf in (each.leaves[0][0],)
    )
    return Table("Findings of the leaves", ("", "severity", "leaves", "worst in"), rows, links)


def _stamped(analysis: Analysis, figure: Figure) -> Figure:
    """A figure with the stamp of fake results, if a leaf has one."""
    if not any(leaf.fidelity is Fidelity.FAKE for leaf in analysis.leaves):
        return figure
    return replace(figure, notes=(*figure.notes, Note(NoteKind.STAMP, "FAKE RESULT", Severity.BAD)))


def _cell(leaf: LeafResult, metric: str) -> str:
    return shown(metric, leaf.metrics[metric]) if metric in leaf.metrics else "–"


def _state(leaf: LeafResult) -> str:
    if not leaf.done:
        return leaf.state
    state = STATES.get(leaf.fidelity, str(leaf.fidelity))
    return (
        f"{state}, {STATES[Fidelity.UNFILLED]}" if leaf.unfilled and leaf.fidelity is not Fidelity.UNFILLED else state
    )


def _link(leaf: LeafResult, directory: Path) -> str:
    """The address of a leaf's page, or of its directory, relative to the page of the campaign."""
    target = leaf.page or leaf.directory
    return quote(os.fsencode(os.path.relpath(target.resolve(), directory)), safe="/")


def as_json(analysis: Analysis, judged: gates.Gate) -> str:
    """The analysis for programs, as in docs/schemas/campaign-report.json."""
    found = {
        "schema_version": 1,
        "headline": headline(analysis),
        "findings": [f"{banner.head} {banner.text}".strip() for banner in banners(analysis)],
        "doubt": analysis.doubt,
        "factors": [{"name": factor.title, "levels": list(factor.levels)} for factor in analysis.factors.reported],
        "metrics": [
            {
                "metric": each.metric,
                "leaves": each.leaves,
                "residual_degrees_of_freedom": each.freedom,
                "residual": each.residual,
                "effects": [
                    {
                        "factor": effect.factor,
                        "from": effect.from_level,
                        "to": effect.to_level,
                        "change": effect.change,
                        "low": effect.low,
                        "high": effect.high,
                        "p": effect.p,
                        "p_holm": effect.p_holm,
                        "claimed": effect.claimed,
                        "time_explains_more": effect.time_explains_more,
                        "mixed": effect.mixed,
                    }
                    for effect in each.effects
                ],
                "interactions": [
                    {"factors": list(one.factors), "p_holm": one.p_holm, "at": list(one.levels), "changes": one.changes}
                    for one in each.interactions
                ],
                "trend": {"change": each.trend.change, "p_holm": each.trend.p_holm} if each.trend else None,
            }
            for each in analysis.metrics
        ],
        "different_options": [
            {"options": list(group.options), "leaves": [leaf.name for leaf in group.leaves]}
            for group in analysis.groups
        ],
        "leaves": [_leaf_json(leaf, analysis) for leaf in analysis.leaves],
        "gate": judged.as_json() if judged.conditions else None,
    }
    return json.dumps(_finite(found), indent=1)


def _leaf_json(leaf: LeafResult, analysis: Analysis) -> dict[str, Any]:
    return {
        "leaf": leaf.name,
        "state": leaf.state,
        "reason": leaf.reason,
        "fidelity": str(leaf.fidelity),
        "doubt": leaf.doubt,
        "unfilled": leaf.unfilled,
        "used": any(leaf is each for each in analysis.used),
        "metrics": dict(leaf.metrics),
        "devices": [vars(device) for device in leaf.devices],
        "slow_devices": list(leaf.slow),
        "diagnosis": [each.number for each in leaf.findings],
        "wrap_factor": leaf.wrap_factor,
        "starts": [vars(each) for each in leaf.starts],
    }


def _finite(value: Any) -> Any:
    """The same without NaN and infinities, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value


def _print(text: str) -> None:
    print(lines(text), flush=True)
