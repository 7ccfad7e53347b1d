"""The reads of four jobs at CERN (ioreplay's slides), scaled down; sizes in the ratios of the originals."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from call_factory import read

MB = 1_000_000
FILES, SIZE = 9, 1000 * MB


def atlas_old(piece: int = 500_000, seed: int = 1) -> Iterator[dict[str, Any]]:
    """9 × 250 MB of files of 1 GB, unordered, with seeks of some MB."""
    draw = random.Random(seed)
    for number in range(FILES):
        progress = 0.0
        for step in range(250 * MB // piece):
            progress += SIZE / (250 * MB // piece)
            at = min(max(progress + draw.uniform(-4, 4) * MB, 0), SIZE - piece)
            yield read(1000 * number + step, f"/data/old{number}.root", int(at), piece)


def atlas_new(piece: int = 500_000) -> Iterator[dict[str, Any]]:
    """9 × 250 MB of files of 1 GB, strictly sequential."""
    for number in range(FILES):
        for step in range(250 * MB // piece):
            yield read(1000 * number + step, f"/data/new{number}.root", step * piece, piece)


def cms_analysis(piece: int = 500_000, seed: int = 2) -> Iterator[dict[str, Any]]:
    """1984 MB of a file of 4 GB, sequential with small gaps."""
    draw = random.Random(seed)
    at = 0
    for step in range(1984 * MB // piece):
        yield read(step, "/data/cms.root", at, piece)
        at += piece + draw.choice([0, 0, 1, 2, 3]) * 400_000


def cms_reconstruction(piece: int = 500_000, is_resumed: bool = False) -> Iterator[dict[str, Any]]:
    """424 MB from the start of a file of 4 GB, back by 30 MB every 30 MB; `is_resumed`: for one read at a time."""
    at, since, step = 0, 0, 0
    for step in range(424 * MB // piece):
        yield read(2 * step, "/data/reco.root", at, piece)
        at, since = at + piece, since + piece
        if since >= 60 * MB and not is_resumed:
            at, since = at - 30 * MB, 0
        elif since >= 30 * MB and is_resumed:
            yield read(2 * step + 1, "/data/reco.root", at - 30 * MB, piece)
            since = 0
