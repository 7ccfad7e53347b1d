"""How large the load is beside its target."""

from __future__ import annotations

from iosonar import units
from iosonar.study.check import Check
from iosonar.study.grades import Grade
from iosonar.study.requests import Study
from iosonar.study.runs import is_extreme, wrap_factor


def wrap_around(study: Study) -> Check:
    """The load's extent divided by the target's: the first extreme one of all files."""
    factors = [factor for file in study.requests.files if (factor := wrap_factor(file)) is not None]
    extreme = [factor for factor in factors if is_extreme(factor)]
    factor = next(iter((*extreme, *factors)), None)
    if factor is None:
        return Check("wrap_around", Grade.GOOD, {"factor": None})
    reason = f"the load spans {units.number(factor)} times the target's size: use one of about the original's size"
    sentence = (
        f"The load spans {units.percent(factor)} of the target"
        if factor <= 1
        else f"The load spans {units.number(factor)} times the target's size and wraps around"
    )
    return Check("wrap_around", Grade.WARNING if extreme else Grade.GOOD, {"factor": factor}, reason, sentence)
