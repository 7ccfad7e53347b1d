"""Accesses to sampled pages, which diagrams and findings share: one pass over all requests selects them."""

from __future__ import annotations

from iosonar.quantities.reuse import Accesses, accesses
from iosonar.study.base import cached
from iosonar.study.requests import Study


@cached
def accesses_of(study: Study) -> Accesses | None:
    """With the latency in ns of the request of each, −1 if it is not known, and 1 for reads."""
    table = study.table.mutate(known_ns=study.table.latency_ns.fill_null(-1), reads=study.table.is_read.cast("int8"))
    return accesses(table, ("known_ns", "reads"))
