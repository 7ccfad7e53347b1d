"""Samples of devices before a replay: whether each leaf found its devices in the same state."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from iosonar import units
from iosonar.campaign import advice, loads, state, tree
from iosonar.campaign.hosts import Host
from iosonar.campaign.plan import Instance
from iosonar.campaign.state import InstanceState, LeafState
from iosonar.errors import UserError

BLOCKS = 64
"""Blocks of 4 KiB, at equal distances over the device."""

CHANGE = 0.1
"""A change of the share of zero blocks by more than this is a warning."""

# Prints the hash of all blocks and the number of zero blocks. Direct reads, as the page cache must not be filled.
_SAMPLE = """
device=$1 blocks=$2
size=$(blockdev --getsize64 "$device" 2>/dev/null || stat -c %s -- "$device") || exit 1
step=$((size / 4096 / blocks))
[ "$step" -gt 0 ] || step=1
zero=$(head -c 4096 /dev/zero | sha256sum)
block=0 zeros=0 hashes=
while [ "$block" -lt "$blocks" ] && [ "$(((block * step + 1) * 4096))" -le "$size" ]; do
    hash=$(dd if="$device" bs=4096 skip="$((block * step))" count=1 iflag=direct status=none | sha256sum) || exit 1
    [ "$hash" != "$zero" ] || zeros=$((zeros + 1))
    hashes="$hashes$hash"
    block=$((block + 1))
done
printf '%s' "$hashes" | sha256sum | cut -c 1-64
echo "$block $zeros"
"""


def sample(host: Host, device: str) -> dict[str, Any]:
    """A sample of a device."""
    done = host.script(_SAMPLE, device, str(BLOCKS))
    words = done.text.split()
    if done.code or len(words) != 3:
        raise UserError(f"{host.name}: cannot sample {device}: {done.words}")
    return {"sha256": words[0], "blocks": int(words[1]), "zero_blocks": int(words[2])}


def changes(top: Path, leaf: str, instances: Sequence[InstanceState]) -> Iterator[str]:
    """A sentence for each device that is in another state than before the leaf that last used it."""
    earlier = sorted(others(top, leaf), key=lambda known: known.started or 0.0)
    for instance in instances:
        before = next(
            (
                (known.leaf, each.device_state)
                for known in reversed(earlier)
                for each in known.instances
                if (each.host, each.device_original) == (instance.host, instance.device_original) and each.device_state
            ),
            None,
        )
        if not before or not instance.device_state:
            continue
        shares = [found["zero_blocks"] / max(found["blocks"], 1) for found in (before[1], instance.device_state)]
        if abs(shares[1] - shares[0]) > CHANGE:
            yield (
                f"warning: {instance.host}:{instance.device} is not in the same state as before the leaf {before[0]}: "
                f"{units.percent(shares[1])} of a sample are zero blocks, {units.percent(shares[0])} then; "
                "recreate and refill devices before each leaf (modules create_lv or recreate_lvm, and wipe)"
            )


def others(top: Path, leaf: str) -> Iterator[LeafState]:
    """The states of all other leaves that were started."""
    for each in tree.leaves(top):
        if each.name == leaf:
            continue
        try:
            known = state.read(each.directory)
        except UserError:
            continue
        if known:
            yield known


def as_earlier(known: LeafState) -> advice.EarlierLeaf:
    """A leaf as `advice` wants it."""
    devices = tuple((each.host, each.device_original) for each in known.instances)
    replayed = any(each.began for each in known.instances)
    return advice.EarlierLeaf(known.leaf, tuple(known.path), known.variables, devices, replayed)


def as_planned(instances: Sequence[Instance]) -> tuple[advice.Instance, ...]:
    """The instances of a leaf as `advice` wants them."""
    found = [(each, loads.info(each.source)) for each in instances]
    return tuple(
        advice.Instance(each.host, each.original, os.fspath(each.source), each.start_s, known.last_s if known else None)
        for each, known in found
    )
