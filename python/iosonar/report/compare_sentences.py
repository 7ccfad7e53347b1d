"""What a comparison found, as sentences: its window, doubts about the runs, and the differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iosonar import units
from iosonar.diagrams.comparison import Side
from iosonar.figures.model import Severity
from iosonar.quantities.difference import MIN_RUNS
from iosonar.report.compare_sides import OUTSIDE_STORAGE, SideComparison, failures, fake_runs, unfaithful_runs, unfilled
from iosonar.report.compared import change_text
from iosonar.report.page import Banner
from iosonar.report.settings import Setting
from iosonar.study.grades import Grade
from iosonar.study.original import original_beside
from iosonar.study.window import due_words, window_words
from iosonar.table import programs_of
from iosonar.text import listed


def describe_side(side: Side) -> str:
    """The name of a side, and its numbers of runs and requests."""
    if side.is_original:
        return f"{side.name}: the original, {units.requests(side.study.span.requests)}"
    programs = programs_of(side.study.requests.files)
    of = f" of {listed(programs)}" if programs else ""
    return f"{side.name}: {units.counted(side.runs, 'run')}{of}, {units.requests(side.study.span.requests)}"


def sentences(
    sides: Sequence[Side], against: Sequence[SideComparison], settings: Sequence[Setting]
) -> Iterator[Banner]:
    """The findings as sentences, after the window and doubts about the runs."""
    first = sides[0]
    if window := first.study.window:
        due = due_words(first.study.files)
        text = "" if window.is_all else f"only requests {due} {window_words(window)} are compared. "
        yield Banner(Severity.NEUTRAL, f"{text}{window.about}".strip(), "Window:" if text else "All requests:")
    for side in sides:
        names: dict[str, list[str]] = {}
        for name, why in fake_runs(side):
            names.setdefault(why, []).append(name)
        for why, of in names.items():
            yield Banner(
                Severity.BAD, f"{why}.", f"{listed(of)} {'are fake results' if len(of) > 1 else 'is a fake result'}:"
            )
    if zeros := [text for side in sides for text in unfilled(side)]:
        text = f"{'; '.join(zeros)}. Devices answer reads of unwritten blocks without reading their medium"
        yield Banner(Severity.BAD, f"{text}: fill the target before the replay.", "Target not filled:")
    if errors := [text for side in sides if (text := failures(side))]:
        yield Banner(Severity.BAD, f"{'; '.join(errors)}. Their latencies are those of errors.", "Failed requests:")
    yield from _fidelity(sides)
    yield from _settings(sides, settings)
    for each in against:
        programs = {programs_of(side.study.requests.files) for side in (first, each.side)}
        if len(programs) > 1 and not first.is_original:
            yield Banner(
                Severity.WARNING,
                f"{_programs(first)} in {first.letter}, {_programs(each.side)} in {each.side.letter}. "
                "The difference may come from the requests, not from the storage.",
                f"{each.side.letter} against {first.letter}, different programs:",
            )
        elif original_beside(each.side.study):
            yield from _original(each)
            continue
        elif not each.same_load:
            yield Banner(
                Severity.WARNING,
                f"{_unlike_loads(first, each.side)}. The difference may come from the load, not from the storage.",
                f"{each.side.letter} against {first.letter}, different loads:",
            )
        few = min(first.runs, each.side.runs)
        which = "per side" if first.runs == each.side.runs else "of one side"
        if few < MIN_RUNS:
            yield Banner(
                Severity.WARNING,
                f"{units.counted(few, 'run')} {which} cannot distinguish a storage difference from chance; use at "
                f"least {MIN_RUNS} runs per side. The numbers below describe these runs only.",
                f"{each.side.letter} against {first.letter}: no claim.",
            )
        else:
            yield each.claims()
        yield from _request_by_request(each)


def _original(each: SideComparison) -> Iterator[Banner]:
    """A run against the original: what differs, and what is known of runs alone."""
    original = original_beside(each.side.study)
    if original and original.notes:
        severity = Severity.NEUTRAL if original.keeps_times else Severity.WARNING
        yield Banner(severity, f"{'. '.join(original.notes)}.", f"{each.pair}:")
    yield Banner(
        Severity.NEUTRAL,
        "An original was recorded once, so a storage difference cannot be distinguished from chance. The numbers "
        "below describe the original and these runs only. It has no verdict and no delays: the times of its requests "
        "are its own.",
        f"{each.pair}, the original: no claim.",
    )
    yield from _request_by_request(each)


def _request_by_request(each: SideComparison) -> Iterator[Banner]:
    if each.pairs:
        change = change_text(each.pairs.median_ratio - 1)
        yield Banner(
            Severity.NEUTRAL,
            f"of the {each.pairs.requests:,} requests that completed on both sides, "
            f"{units.percent(each.pairs.slower_share)} took longer in {each.side.letter}; "
            f"the median change is {change}. That holds for these runs alone: runs of one side can differ as much.",
            "Request by request:",
        )


def _unlike_loads(a: Side, b: Side) -> str:
    """Why two sides did not replay the same load, as far as it is known."""
    widened = [{file.run.statistics.widened for file in side.study.requests.files} for side in (a, b)]
    if widened[0] == widened[1] and len(widened[0]) == 1:
        return "the runs did not all replay the same load in the same way, or their files do not tell"
    counts = [
        f"{' or '.join(units.count(number) for number in sorted(found))} in {side.letter}"
        for side, found in zip((a, b), widened, strict=True)
    ]
    return (
        f"requests were widened to the logical blocks of the target: {', '.join(counts)}. Replay on targets with the "
        "same logical block, such as a loop device on a file (`losetup --sector-size 512`)"
    )


def _programs(side: Side) -> str:
    """The programs of a side: tpcb and spc1."""
    return listed(programs_of(side.study.requests.files)) or "no program"


def _fidelity(sides: Sequence[Side]) -> Iterator[Banner]:
    """The runs that were not faithful, the worst grade first; one sentence for each grade."""
    by_words: dict[tuple[Severity, str], list[str]] = {}
    for side in sides:
        for name, run in unfaithful_runs(side):
            by_words.setdefault((Severity(run.grade or Grade.WARNING), run.words), []).append(name)
    for (severity, words), runs in sorted(by_words.items(), key=lambda each: each[0][0] is not Severity.BAD):
        text = f"{', '.join(runs)}. The difference may come from the replay, not from the storage."
        yield Banner(severity, text, f"Replay {words}:")


def _settings(sides: Sequence[Side], settings: Sequence[Setting]) -> Iterator[Banner]:
    """Settings that differ: within each side, then between the sides."""
    letters = [side.letter for side in sides if not side.is_original]
    for letter in letters:
        mixed = [setting for setting in settings if setting.differs(letter)]
        if mixed:
            text = f"{'; '.join(setting.text(letter) for setting in mixed)}."
            repeated = all(setting.is_repetition(letter) for setting in mixed)
            more = "" if repeated else " So its runs are not repetitions of each other."
            severity = Severity.NEUTRAL if repeated else Severity.WARNING
            yield Banner(severity, f"{text}{more}", f"The runs of {letter} differ in:")
    between = [
        setting
        for setting in settings
        if len({setting.values[letter] for letter in letters}) > 1 and not setting.is_repetition(*letters)
    ]
    if between:
        text = "; ".join(setting.text(*letters) for setting in between)
        hedge = any(setting.scope in OUTSIDE_STORAGE for setting in between)
        more = " The difference in latency may come from these, not from the storage." if hedge else ""
        severity = Severity.WARNING if hedge else Severity.NEUTRAL
        yield Banner(severity, f"{text}.{more}", f"{' and '.join(letters)} differ in:")
