"""The checks of a trace of calls or of a run of calls. What does not apply has no grade and no sentence."""

from __future__ import annotations

from iosonar import units
from iosonar.study.calls import CallSide, lost_changes
from iosonar.study.check import Check, Topic
from iosonar.study.grades import Grade
from iosonar.study.runs import FAITHFUL


def complete(side: CallSide) -> Check:
    """Whether the file was not cut short."""
    if side.calls.file.complete:
        return Check("complete", Grade.GOOD, {"complete": True})
    sentence = "the file was cut short."
    return Check("complete", Grade.WARNING, {"complete": False}, "cut short", sentence, "Incomplete:")


def real(side: CallSide) -> Check:
    """Whether a run is not fake. The page says so without this check."""
    fake = side.calls.file.fake
    if not side.is_run:
        return Check("real", None)
    return Check("real", Grade.BAD if fake else Grade.GOOD, {"real": not fake}, f"fake result: {fake}")


def lost_events(side: CallSide) -> Check:
    """Whether the recorder saw all calls."""
    lost = side.calls.file.footer.counts.lost_events
    reason = f"the recorder lost {lost:,} events"
    return _losses("lost_events", lost, reason)


def bad_lines(side: CallSide) -> Check:
    """Whether all lines of the source could be parsed."""
    bad = side.calls.file.footer.counts.bad_lines
    return _losses("bad_lines", bad, f"{units.counted(bad, 'line')} could not be understood")


def _losses(name: str, number: int, reason: str) -> Check:
    if not number:
        return Check(name, Grade.GOOD, {"number": 0})
    return Check(name, Grade.WARNING, {"number": number}, reason, f"{reason}.", "Losses:")


def mismatches(side: CallSide) -> Check:
    """Whether the calls of a run had the results of the original."""
    if not side.is_run:
        return Check("mismatches", None)
    number, calls = side.extent.mismatches, side.extent.calls
    if number:
        share = units.percent(number / max(calls, 1))
        reason = f"{units.counted(number, 'call')} ({share}) had another result than in the original"
        return Check("mismatches", Grade.WARNING, {"calls": number}, reason, f"{reason}.", "Mismatches:")
    is_whole = calls and not lost_changes(side.calls.file)
    sentence = "all calls had the results of the original." if is_whole else ""
    return Check("mismatches", Grade.GOOD, {"calls": 0}, "", sentence, "Results:")


def not_replayed(side: CallSide) -> Check:
    """Whether a run repeated all calls that change files."""
    lost = lost_changes(side.calls.file)
    if not lost:
        return Check("not_replayed", Grade.GOOD if side.is_run else None)
    number = sum(side.calls.file.run.statistics.changes_not_replayed.values())
    return Check("not_replayed", Grade.WARNING, {"calls": number}, lost, f"{lost}.", "Not replayed:")


def order(side: CallSide) -> Check:
    """Whether a run proved that it kept its order."""
    proof = side.calls.file.run.statistics.order
    if proof is None:
        return Check("order", None)
    wrong = proof.violations + proof.missing
    values = {"pairs": proof.pairs, "violations": wrong}
    if wrong:
        reason = f"{units.counted(wrong, 'call')} too early or missing: this is an error of the replayer"
        return Check("order", Grade.BAD, values, reason, f"{reason}.", "Order NOT kept:")
    share = units.percent(proof.reorderable_share)
    sentence = (
        f"proven for {units.counted(proof.pairs, 'pair')} of calls. {share} of the calls could be reordered with "
        "the call before them in the trace."
    )
    return Check("order", Grade.GOOD, values, "", sentence if proof.pairs else "", "Order kept:")


def fidelity(side: CallSide) -> Check:
    """Whether a run kept the times of the trace: its own verdict, else by its delays."""
    file = side.calls.file
    verdict = file.run.statistics.verdict
    # Of a window, what the run says of all its calls does not hold.
    if verdict and (verdict.faithful is None or not side.calls.is_part):
        if verdict.faithful is None:  # of a fake result
            return Check("fidelity", None, about=Topic.REPLAY)
        grade = Grade.GOOD if verdict.faithful else Grade.BAD
        return Check("fidelity", grade, {}, verdict.sentence, verdict.sentence, about=Topic.REPLAY)
    if not side.is_run or (file.option("timing") or "exact") != "exact" or not side.delays.not_held_back.count:
        return Check("fidelity", None, about=Topic.REPLAY)
    within = side.delays.within
    sentence = (
        f"of the calls that were not held back, {units.percent(within[25])} were issued within 25 µs of their time, "
        f"{units.percent(within[50])} within 50 µs."
    )
    values = {"within_25_us": within[25], "within_50_us": within[50]}
    is_faithful = within[50] >= FAITHFUL
    grade, head = (Grade.GOOD, "Faithful:") if is_faithful else (Grade.BAD, "NOT faithful:")
    return Check("fidelity", grade, values, sentence.rstrip("."), sentence, head, Topic.REPLAY)
