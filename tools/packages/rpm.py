"""Writes a package for Fedora, SUSE and their relatives, with rpmbuild."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from packages.deb import COMPILE, FORGET
from packages.description import Package
from packages.staging import ENVIRONMENT

# rpmbuild adds nothing of its machine, and changes no file.
SETTINGS = """\
%define _buildhost iosonar
%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1
%define __os_install_post %{nil}
%define debug_package %{nil}
%define _build_id_links none
%define _binary_payload w3.zstdio
"""


def spec(package: Package, root: Path) -> str:
    """The file that describes the package to rpmbuild; `root` has its files."""
    fields = {
        "Name": package.name,
        "Version": package.version,
        "Release": "1",
        "Summary": package.summary[0].upper() + package.summary[1:],
        "License": package.licence,
        "Packager": package.maintainer,
        "AutoReqProv": "no",
    }
    lines = [SETTINGS, *(f"{name}: {value}" for name, value in fields.items())]
    lines += [f"Requires: {need}" for need in package.rpm]
    lines += ["", "%description", "\n\n".join(package.paragraphs), "", "%install", f"cp -a '{root}/.' %{{buildroot}}/"]
    if (root / ENVIRONMENT).is_dir():
        lines += ["", "%post", COMPILE, "", "%preun", FORGET]
    lines += ["", "%files", "%defattr(-,root,root,-)", *files(root)]
    return "\n".join(lines) + "\n"


def files(root: Path) -> list[str]:
    """Lines of %files: each file, and the directories that no other package has."""
    own = (f"/{ENVIRONMENT}", "/usr/share/doc/iosonar", "/usr/share/iosonar")
    lines = []
    for path in sorted(root.rglob("*")):
        place = f"/{path.relative_to(root)}"
        if not path.is_dir() or path.is_symlink():
            lines.append(f'"{place}"')
        elif place.startswith(own):
            lines.append(f'%dir "{place}"')
    return lines


def write(package: Package, root: Path, output: Path) -> Path:
    """Packs the staged files."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as top:
        described = Path(top) / f"{package.name}.spec"
        described.write_text(spec(package, root.resolve()))
        settings = ["--quiet", "--target", f"{package.architecture}-linux", "--define", f"_topdir {top}"]
        subprocess.run(["rpmbuild", "-bb", *settings, described], check=True)
        [made] = Path(top).glob("RPMS/*/*.rpm")
        return Path(shutil.copy(made, output))
