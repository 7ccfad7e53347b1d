"""The devices of a run: a target of a file, named by its host and path."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from iosonar.errors import UsageError
from iosonar.table.footer import Target
from iosonar.table.requests import Requests
from iosonar.table.source import SourceFile
from iosonar.text import plain

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Device:
    """A device in one of the files of a study.

    `of_load` are the devices of the load whose requests went to it; None for all. `targets` are its entries in the
    footer.
    """

    name: str
    source: int
    of_load: tuple[int, ...] | None
    targets: tuple[Target, ...]

    def rows(self, table: ir.Table) -> ir.BooleanValue:
        """Whether a request of the table went to this device."""
        found = table.source == self.source
        return found if self.of_load is None else found & table.device.fill_null(0).isin(self.of_load)


def devices_of(files: Sequence[SourceFile]) -> tuple[Device, ...]:
    """The devices of some runs, or of some loads, with different names."""
    found = [device for index, file in enumerate(files) for device in _devices(index, file)]
    # The file makes names unique; its path, if files in several directories have the same name.
    by_name = _unique(found, [f"{device.name} · {files[device.source].name}" for device in found])
    return tuple(_unique(by_name, [f"{device.name} · {files[device.source].path}" for device in found]))


def _unique(devices: Sequence[Device], longer: Sequence[str]) -> list[Device]:
    """Gives devices with the same name their longer one."""
    number = Counter(device.name for device in devices)
    return [
        replace(device, name=name) if number[device.name] > 1 else device
        for device, name in zip(devices, longer, strict=True)
    ]


def only_device(requests: Requests, name: str) -> Requests:
    """The requests of one device, in all files: its path, its last part, or with the host, as `host:sdb`.

    Raises UsageError if there is none.
    """
    devices = devices_of(requests.files)
    chosen = [device for device in devices if name in _names(device, requests.files[device.source])]
    if not chosen:
        names = list(dict.fromkeys(device.name for device in devices))
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"the devices are {', '.join(names[:20])}"
        raise UsageError(f"no device is called {plain(name)!r}; {hint}")
    import ibis

    table = requests.table
    kept = sorted({device.source for device in chosen})
    files = [requests.files[source] for source in kept]
    for device in chosen:
        if device.of_load is not None:
            index = kept.index(device.source)
            run = replace(files[index].run, targets=device.targets, target=device.targets[0])
            files[index] = replace(files[index], footer=replace(files[index].footer, run=run))
    rows = chosen[0].rows(table)
    for device in chosen[1:]:
        rows |= device.rows(table)
    # Sources are indices into the files.
    source = ibis.cases(*((table.source == old, new) for new, old in enumerate(kept))).cast("int32")
    return Requests(table.filter(rows).mutate(source=source), tuple(files), requests.engine)


def _devices(index: int, file: SourceFile) -> list[Device]:
    host = file.run.machine.hostname
    targets = [target for target in file.targets if target.path and target.is_real]
    if not targets:
        # A run without I/O, or a table of another program: the file is all that is known.
        return [Device(file.name, index, None, file.targets)]

    def named(target: Target) -> str:
        return f"{host}:{target.path}" if host else target.path

    if len(targets) == 1:
        return [Device(named(targets[0]), index, None, (targets[0],))]
    of_load = range(max(len(file.footer.devices), 1))
    mapped = {source for target in targets for source in target.sources}
    rest = tuple(source for source in of_load if source not in mapped)
    found = []
    for target in targets:
        own = target.sources
        own = (*own, *rest) if target.others or (not mapped and target is targets[0]) else own
        if own:
            found.append(Device(named(target), index, own, (target,)))
    return found


def _names(device: Device, file: SourceFile) -> set[str]:
    """The names by which a device can be chosen."""
    names, host = {device.name, file.name}, file.run.machine.hostname
    for target in device.targets:
        path = target.path
        last = path.rsplit("/", 1)[-1]
        names |= {path, last, f"{host}:{path}", f"{host}:{last}", path.removeprefix("/dev/")}
    return names - {""}
