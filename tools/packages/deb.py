"""Writes a package for Debian and its descendants, with dpkg-deb."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import textwrap
from datetime import UTC, datetime
from pathlib import Path

from packages.description import Package
from packages.staging import ENVIRONMENT, normalise

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# Python compiles the modules of the environment when they are installed, as only root may write there.
COMPILE = f"/{ENVIRONMENT}/bin/python -m compileall -q /{ENVIRONMENT}/lib || true"
FORGET = f"find /{ENVIRONMENT} -name __pycache__ -type d -prune -exec rm -rf {{}} +"
# Libraries in wheels bring others with them, and find them beside themselves.
OVERRIDES = (
    "embedded-library",
    "custom-library-search-path",
    "unstripped-binary-or-object",
    "shared-library-lacks-prerequisites",
    "library-not-linked-against-libc",
    "binary-from-other-architecture",
    "missing-dependency-on-numpy-abi",
    "bad-owner-for-doc-file",
)


def control(package: Package, kibibytes: int) -> str:
    """The file that describes the package to dpkg."""
    about = "\n .\n".join(
        textwrap.fill(each, 76, initial_indent=" ", subsequent_indent=" ") for each in package.paragraphs
    )
    fields = {
        "Package": package.name,
        "Version": f"{package.version}-1",
        "Architecture": ARCHITECTURES[package.architecture],
        "Maintainer": package.maintainer,
        "Installed-Size": str(kibibytes),
        "Depends": ", ".join(package.deb),
        "Section": "admin",
        "Priority": "optional",
        "Description": f"{package.summary}\n{about}",
    }
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


def copyright_text(package: Package, mit: str) -> str:
    """The file `copyright`, as Debian requires."""
    terms = "\n".join(f" {line}".rstrip() or " ." for line in mit.strip().splitlines())
    return (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: iosonar\n"
        "Comment: Licences of the libraries in this package are in the file THIRD-PARTY beside this one.\n\n"
        "Files: *\nCopyright: 2026 the iosonar authors\nLicense: Expat or Apache-2.0\n\n"
        f"License: Expat\n{terms}\n\n"
        "License: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n"
    )


def write(package: Package, root: Path, output: Path, mit: str) -> Path:
    """Adds what only Debian wants to the staged files, and packs them."""
    documentation = root / package.documentation
    (documentation / "LICENSE-MIT").unlink(missing_ok=True)
    (documentation / "copyright").write_text(copyright_text(package, mit))
    at = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    entry = (
        f"{package.name} ({package.version}-1) unstable; urgency=medium\n\n  * See CHANGELOG.md of the source.\n\n"
        f" -- {package.maintainer}  {at:%a, %d %b %Y %H:%M:%S +0000}\n"
    )
    (documentation / "changelog.Debian.gz").write_bytes(gzip.compress(entry.encode(), 9, mtime=0))
    environment = (root / ENVIRONMENT).is_dir()
    if environment:
        overrides = root / "usr/share/lintian/overrides" / package.name
        overrides.parent.mkdir(parents=True)
        overrides.write_text("".join(f"{package.name}: {tag}\n" for tag in OVERRIDES))
    normalise(root)
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    kibibytes = sum(-(-path.stat().st_size // 1024) for path in files)
    sums = "".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files)
    about = root / "DEBIAN"
    about.mkdir()
    (about / "control").write_text(control(package, kibibytes))
    (about / "md5sums").write_text(sums)
    if environment:
        (about / "postinst").write_text(f'#!/bin/sh\nset -e\nif [ "$1" = configure ]; then\n    {COMPILE}\nfi\n')
        (about / "prerm").write_text(f"#!/bin/sh\nset -e\n{FORGET}\n")
    normalise(root)
    for script in about.glob("p*"):
        script.chmod(0o755)
    output.mkdir(parents=True, exist_ok=True)
    made = output / f"{package.name}_{package.version}-1_{ARCHITECTURES[package.architecture]}.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zxz", "-z3", "--build", root, made], check=True, stdout=subprocess.DEVNULL
    )
    return made
