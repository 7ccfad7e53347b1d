"""Designs of campaigns in which one factor matters."""

from __future__ import annotations

from collections.abc import Sequence

from iosonar.campaign.report.factors import Place

CMODES = ("with-conflicts", "with-partial")
EFFECT = 0.3
"""The change by the second conflict mode: the only factor that matters."""


def places(loads: int = 2, threads: Sequence[int] = (16, 64, 256), repeats: int = 2) -> list[Place]:
    """A full factorial design."""
    return [
        Place(
            (f"load{load}", f"{each:03}-threads", cmode, f"repeat-{repeat}"),
            {"threads": str(each), "cmode": cmode, "strong": "1", "input_file_list": f"{load}.load.gz"},
        )
        for load in range(loads)
        for each in threads
        for cmode in CMODES
        for repeat in range(1, repeats + 1)
    ]
