"""A wheel with a static binary: without symbols, and named after all systems on which it runs."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
import zipfile
from pathlib import Path

from packages.description import ROOT

# pip of a system with glibc takes only the former two, of one with musl only the latter; the binary needs neither.
TAGS = ("manylinux_2_17_{0}", "manylinux2014_{0}", "musllinux_1_1_{0}")


def finish(wheel: Path, architecture: str, binary: Path, output: Path) -> Path:
    """Writes a copy with this binary and the tags of all these systems into the directory `output`."""
    tags = [tag.format(architecture) for tag in TAGS]
    name, version = wheel.name.split("-")[:2]
    about, record = f"{name}-{version}.dist-info/WHEEL", f"{name}-{version}.dist-info/RECORD"
    output.mkdir(parents=True, exist_ok=True)
    copy = output / f"{name}-{version}-py3-none-{'.'.join(tags)}.whl"
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as new:
        kept = [line for line in old.read(about).decode().splitlines() if line and not line.startswith("Tag: ")]
        changed = {
            about: "".join(f"{line}\n" for line in [*kept, *(f"Tag: py3-none-{tag}" for tag in tags)]).encode(),
            f"{name}-{version}.data/scripts/iosonar": binary.read_bytes(),
        }
        lists = [each for each in old.namelist() if each.startswith(f"{name}-{version}.dist-info/sboms/")]
        changed |= {each: _normal_list(old.read(each)) for each in lists}
        lines = []
        for line in old.read(record).decode().splitlines():
            file = line.rsplit(",", 2)[0]
            lines.append(_recorded(file, changed[file]) if file in changed else line)
        changed[record] = "".join(f"{line}\n" for line in lines).encode()
        for info in sorted(old.infolist(), key=lambda each: (".dist-info/" in each.filename, each.filename)):
            new.writestr(_normal(info), changed.get(info.filename) or old.read(info), zipfile.ZIP_DEFLATED)
    return copy


def _normal(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """The entry with the time of the source, and a mode that does not depend on the builder's."""
    at = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))
    entry = zipfile.ZipInfo(info.filename, at[:6])
    entry.create_system = 3
    runs = info.external_attr >> 16 & 0o100
    entry.external_attr = (0o100755 if runs else 0o100644) << 16
    return entry


def _normal_list(content: bytes) -> bytes:
    """The list of crates (CycloneDX) of maturin, with the time of the source, no number of its own and no directory."""
    crates = json.loads(content.decode().replace(ROOT.as_uri(), "file://."))
    crates.pop("serialNumber", None)
    at = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))
    crates["metadata"]["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", at)
    return (json.dumps(crates, indent=1) + "\n").encode()


def _recorded(file: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{file},sha256={digest},{len(content)}"
