"""The findings of a campaign as sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from iosonar import units
from iosonar.campaign.report.analysis import Analysis
from iosonar.campaign.report.effects import Effect, Interaction, MetricAnalysis
from iosonar.campaign.report.factors import LEVEL
from iosonar.campaign.report.results import LeafResult
from iosonar.campaign.report.starts import sentences
from iosonar.figures.model import Severity
from iosonar.report.gate import Fidelity
from iosonar.report.page import Banner
from iosonar.text import plain
from iosonar.thresholds import MIN_BEYOND

NAMES = {
    "p50": "median latency",
    "p95": "p95 latency",
    "p99": "p99 latency",
    "delay.p99": "p99 delay",
    "throughput": "throughput",
}
"""Metrics in sentences."""

SHARE_OF = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "delay.p99": 0.99}
"""The percentiles among them."""

WIDE = 0.2
"""An interval that allows a larger change than this does not show that a factor makes no difference."""

NOTHING = 9.0
"""An interval that allows ten times the value, or a tenth of it, says nothing."""

MAX_LISTED = 8
"""Leaves that are listed in a sentence."""


def headline(analysis: Analysis) -> str:
    """Which factor made a difference, by how much, and how sure that is: one or two sentences in plain words."""
    if not analysis.used:
        return "No leaf has a result yet."
    if not analysis.factors.reported:
        return f"Nothing was varied: {units.counted(len(analysis.used), 'leaf', 'leaves')}, no factor."
    main = analysis.headline
    known = main.leaves if main else 0
    if known < len(analysis.used) and not (main and main.freedom):
        return (
            f"Too few requests to say which factor makes a difference: {known} of {len(analysis.used)} leaves have a "
            "median latency, which needs 20 requests. Let the replays last longer."
        )
    if main is None or not main.freedom:
        if analysis.left_out:
            done = len(analysis.used) + len(analysis.left_out)
            return (
                f"Too few leaves to say which factor makes a difference: {len(analysis.used)} of {done} allow a "
                f"verdict on the storage. {again(analysis.left_out)}"
            )
        return (
            f"Too few leaves to say which factor makes a difference: {len(analysis.used)} for "
            f"{_listed(factor_names(analysis))}. Repeat them: put directories repeat-1, repeat-2 into each leaf, "
            "and empty confs repeat-1.conf, repeat-2.conf into the top."
        )
    claimed = _claimed(analysis)
    parts = [_claim(analysis, factor) for factor in claimed]
    others = [effect for effect in main.effects if effect.factor not in claimed]
    parts += list(_unclaimed(others, main, any_claimed=bool(claimed)))
    text = "; ".join(parts)
    # A name keeps its spelling.
    return f"F{text[1:]}." if text.startswith("for ") else f"{text}."


def again(leaves: Sequence[LeafResult]) -> str:
    """What to do about leaves that allow no verdict on the storage."""
    how = []
    if any(leaf.fidelity is Fidelity.UNFAITHFUL for leaf in leaves):
        how.append("end other programs or set replay_options=(--isolate=priority)")
    if any(leaf.unfilled for leaf in leaves):
        how.append("set enable_wipe=1")
    if not how:
        return ""
    text = " and ".join(how)
    results = "all results" if "replay_options" in text else "their results"
    return f"{text[0].upper()}{text[1:]}, delete {results}, and run the campaign again."


def factor_names(analysis: Analysis) -> list[str]:
    """The names of the reported factors, for people."""
    return [plain(factor.title) for factor in analysis.factors.reported]


def _claimed(analysis: Analysis) -> list[str]:
    """The factors with a claimed difference, the largest in the headline's metric first."""
    main = analysis.headline
    assert main is not None

    def size(factor: str) -> float:
        found = [effect for effect in main.effects if effect.factor == factor and effect.claimed]
        return -abs(math.log1p(found[0].change)) if found else 0.0

    names = [factor.title for factor in analysis.factors.reported]
    return sorted((name for name in names if any(each.claimed for each in analysis.effects_of(name))), key=size)


def _claim(analysis: Analysis, factor: str) -> str:
    """A factor and its effects: the headline's metric with its interval, then the others."""
    effects = [effect for effect in analysis.effects_of(factor) if effect.claimed]
    main = analysis.headline
    effects.sort(key=lambda effect: (main is None or effect.metric != main.metric, effect.p))
    first = effects[0]
    text = (
        f"{plain(short(factor))} ({plain(first.to_level)} against {plain(first.from_level)}) changes the "
        f"{NAMES[first.metric]} by {change_of(first)}"
    )
    more = [
        f"the {NAMES[effect.metric]} by {units.change(_same_direction(effect, first))}"
        for effect in effects[1:]
        if {effect.from_level, effect.to_level} == {first.from_level, first.to_level}
    ]
    return text + (f", {_listed(more)}" if more else "")


def short(factor: str) -> str:
    """The name of a factor without its levels: directory level 1, not directory level 1 (bursts, oltp)."""
    return factor.partition(" (")[0] if factor.startswith(LEVEL) else factor


def _same_direction(effect: Effect, first: Effect) -> float:
    return effect.change if effect.from_level == first.from_level else 1 / (1 + effect.change) - 1


def change_of(effect: Effect) -> str:
    """A change with its interval: +38.0 % (95 % interval +31.0 % … +46.0 %)."""
    return f"{units.change(effect.change)} (95 % interval {units.change(effect.low)} … {units.change(effect.high)})"


def _unclaimed(effects: Sequence[Effect], main: MetricAnalysis, *, any_claimed: bool) -> Iterator[str]:
    """Factors without a claim: those that make no large difference, and those of which nothing can be said."""
    known = [effect for effect in effects if math.isfinite(effect.p) and not effect.mixed]
    mixed = [effect for effect in effects if math.isfinite(effect.p) and effect.mixed]
    none = [effect for effect in known if effect.at_most <= WIDE]
    wide = [effect for effect in known if effect.at_most > WIDE]
    unknown = [effect for effect in effects if not math.isfinite(effect.p)]
    metric = NAMES[main.metric]
    if none:
        verb = "shows" if len(none) == 1 else "show"
        bound = units.change(max(effect.at_most for effect in none)).lstrip("+")
        of = "" if any_claimed else f" in the {metric}"
        yield f"{_listed([plain(effect.factor) for effect in none])} {verb} no difference larger than {bound}{of}"
    nothing = [effect for effect in wide if effect.high > NOTHING or effect.low < -NOTHING / (1 + NOTHING)]
    if nothing:
        yield (
            f"for {_listed([plain(effect.factor) for effect in nothing])} nothing can be said: leaves with the same "
            f"confs differ too much in the {metric}"
        )
    for effect in wide:
        if effect in nothing:
            continue
        yield (
            f"for {plain(effect.factor)} no difference is shown, but the interval is wide: "
            f"{units.change(effect.low)} … {units.change(effect.high)} of the {metric}"
        )
    if mixed:
        names = _listed([plain(effect.factor) for effect in mixed])
        yield f"for {names} there is no verdict: the replays had different options"
    if unknown:
        yield f"{_listed([plain(effect.factor) for effect in unknown])} cannot be separated from the other factors"


def banners(analysis: Analysis) -> Iterator[Banner]:
    """The headline, and everything that qualifies it."""
    main = analysis.headline
    decided = main is not None and main.freedom > 0
    if analysis.doubt:
        text = f"{analysis.doubt}. {again(analysis.used)} {headline(analysis)}".replace("  ", " ")
        yield Banner(Severity.WARNING, text, "No verdict on the storage:")
    else:
        suspects = bool(doubtful(analysis))
        known = main.effects if main is not None and main.freedom > 0 else ()
        says = decided and bool(
            _claimed(analysis) or any(effect.at_most <= WIDE and not effect.mixed for effect in known)
        )
        severity = Severity.WARNING if suspects else Severity.GOOD if says else Severity.NEUTRAL
        head = "Measured, but perhaps drift:" if suspects else "Result:" if decided else ""
        yield Banner(severity, headline(analysis), head)
    if analysis.groups:
        yield Banner(Severity.WARNING, different_options(analysis), "Different options:")
    for text in interactions(analysis):
        yield Banner(Severity.NEUTRAL, text, "Interaction:")
    for text in drift(analysis):
        yield Banner(Severity.WARNING, text, "Order in time:")
    for factor in analysis.factors.all:
        if factor.together_with:
            text = f"{_listed([factor.name, *factor.together_with])} vary together: their effects cannot be separated."
            yield Banner(Severity.WARNING, plain(text), "Confounded:")
    if analysis.left_out:
        text = "; ".join(f"{plain(leaf.name)} ({leaf.doubt})" for leaf in analysis.left_out[:MAX_LISTED])
        yield Banner(Severity.WARNING, f"{text}{_more(analysis.left_out)}.", "Left out:")
    wrapped = [leaf for leaf in analysis.used if leaf.wrap_factor > 1]
    if wrapped:
        text = ", ".join(f"{leaf.name} (× {units.number(leaf.wrap_factor, 2)})" for leaf in wrapped[:MAX_LISTED])
        how = "the load reaches beyond the device: the same sectors are accessed more often, and caches look better"
        yield Banner(Severity.WARNING, f"{text}{_more(wrapped)}; {how}.", "Wrapped around:")
    if hosts := [text for leaf in analysis.leaves for text in sentences(plain(leaf.name), leaf.starts)]:
        more = f"; and {len(hosts) - MAX_LISTED} more" if len(hosts) > MAX_LISTED else ""
        yield Banner(Severity.WARNING, f"{'; '.join(hosts[:MAX_LISTED])}{more}.", "Hosts:")
    missing = [leaf for leaf in analysis.leaves if not leaf.done]
    if missing:
        text = "; ".join(
            plain(f"{leaf.name} ({leaf.state}{f': {leaf.reason}' if leaf.reason else ''})")
            for leaf in missing[:MAX_LISTED]
        )
        yield Banner(Severity.WARNING, f"{text}{_more(missing)}.", "Without a result:")
    slow = [(leaf, text) for leaf in analysis.used for text in leaf.slow]
    if slow:
        text = "; ".join(f"in {plain(leaf.name)}, {text}" for leaf, text in slow[:MAX_LISTED])
        more = f"; and {len(slow) - MAX_LISTED} more" if len(slow) > MAX_LISTED else ""
        yield Banner(Severity.WARNING, f"{text}{more}.", "Slow devices:")


def different_options(analysis: Analysis) -> str:
    """Which leaves had which options, and what to do."""
    parts = []
    for number, group in enumerate(analysis.groups):
        leaves = units.counted(len(group.leaves), "leaf", "leaves")
        listed = ", ".join(leaf.name for leaf in group.leaves[:MAX_LISTED]) + _more(group.leaves)
        names = f" ({listed})" if number else ""
        parts.append(f"{leaves}{names} with {' '.join(group.options) or 'none of these'}")
    factors = [plain(short(title)) for title in analysis.mixed]
    verdict = f" No verdict for {_listed(factors)}." if factors else ""
    return f"{'; '.join(parts)}.{verdict} Delete all results, and run the campaign again with the same options."


def not_compared(analysis: Analysis, each: MetricAnalysis) -> str:
    """Why a metric says nothing about some factors: the leaves that have it are of one level; empty if it does."""
    known = {effect.factor for effect in each.effects}
    missing = [plain(short(factor.title)) for factor in analysis.factors.reported if factor.title not in known]
    if not missing or each.leaves == len(analysis.used):
        return ""
    requests = f" ({needed(each.metric):,} requests)" if each.metric in SHARE_OF else ""
    return (
        f"No {NAMES[each.metric]} for {_listed(missing)}: the {each.leaves} of {len(analysis.used)} leaves that have "
        f"one{requests} are all of one level"
    )


def about_dashes(leaves: Sequence[LeafResult]) -> str:
    """Why a table of leaves has dashes; empty if it has none."""
    done = [leaf.metrics for leaf in leaves if leaf.done]
    few = [name for name in ("p50", "p95", "p99") if any(name not in metrics for metrics in done)]
    texts = [f"{name} needs {needed(name):,} requests" for name in few]
    untimed = any("throughput" not in metrics or ("p99" in metrics and "delay.p99" not in metrics) for metrics in done)
    return (f" A dash: too few requests; {_listed(texts)}." if few else "") + (
        " A replay without scheduled times has no delay, and no throughput as a share of the demand." if untimed else ""
    )


def needed(metric: str) -> int:
    """The requests that a percentile needs."""
    return round(MIN_BEYOND / (1 - SHARE_OF[metric]))


def interactions(analysis: Analysis) -> Iterator[str]:
    """The interactions that are significant, one sentence each; of several metrics the first."""
    seen: dict[tuple[str, str], Interaction] = {}
    for each in analysis.metrics:
        for interaction in each.interactions:
            seen.setdefault(interaction.factors, interaction)
    for (one, other), found in seen.items():
        yield plain(
            f"the effect of {one} depends on {other}: from {found.of[0]} to {found.of[1]} the {NAMES[found.metric]} "
            f"changes by {units.change(found.changes[0])} at {found.levels[0]}, by {units.change(found.changes[1])} at "
            f"{found.levels[1]}. The effects above are means over these levels."
        )


def doubtful(analysis: Analysis) -> dict[str, Effect]:
    """The claimed effects that the order in time explains better, one for each factor."""
    return {
        effect.factor: effect
        for each in reversed(analysis.metrics)
        for effect in each.effects
        if effect.claimed and effect.time_explains_more
    }


def drift(analysis: Analysis) -> Iterator[str]:
    """Whether the order in time explains more than a factor does, or a trend remains; one sentence each."""
    advice = "Run again with `--shuffle 1`, which puts the leaves in random order"
    suspects = doubtful(analysis)
    if suspects:
        metrics = list(dict.fromkeys(NAMES[effect.metric] for effect in suspects.values()))
        does = "does" if len(suspects) == 1 else "do"
        yield (
            f"the order in which the leaves ran explains the {_listed(metrics)} better than "
            f"{_listed([plain(short(factor)) for factor in suspects])} {does}: the difference may be drift. {advice}."
        )
    trends = [each.trend for each in analysis.metrics if each.trend and each.trend.claimed]
    if trends:
        found = [f"the {NAMES[trend.metric]} changed by {units.change(trend.change)}" for trend in trends]
        yield f"{_listed(found)} from the first leaf to the last, beyond what the factors explain. {advice}."
    claimed = {effect.factor for each in analysis.metrics for effect in each.effects if effect.claimed}
    blocked = [name for name in analysis.blocked if name in claimed and name not in suspects]
    if blocked:
        turns = "; ".join(_in_turn(analysis, name) for name in blocked)
        yield f"{turns}, so drift would look like {'this effect' if len(blocked) == 1 else 'these effects'}. {advice}."


def _in_turn(analysis: Analysis, title: str) -> str:
    """The levels of a factor in the order in which they ran."""
    factor = next(factor for factor in analysis.factors.reported if factor.title == title)
    starts = {of: leaf.started for of, leaf in zip(factor.of, analysis.used, strict=True)}
    levels = [plain(factor.levels[of]) for of in sorted(starts, key=lambda of: starts[of])]
    if len(levels) == 2:
        return f"all leaves of {levels[0]} ran before those of {levels[1]}"
    return f"the leaves of {_listed(levels)} ran one level after another"


def _more(leaves: Sequence[LeafResult]) -> str:
    return f"; and {len(leaves) - MAX_LISTED} more" if len(leaves) > MAX_LISTED else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
