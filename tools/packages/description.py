"""What is in a package: packages.toml."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
NEXT_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor + 1}"


@dataclass(frozen=True)
class Package:
    """One package; the deb and the rpm of it differ only in the names of what they need."""

    name: str
    version: str
    # As the kernel names it: x86_64, aarch64.
    architecture: str
    maintainer: str
    licence: str
    summary: str
    description: str
    deb: tuple[str, ...]
    rpm: tuple[str, ...]
    # Where files are, and from where in the source; DOC is not yet replaced.
    files: dict[str, str]

    @property
    def documentation(self) -> str:
        """The directory of the package's documentation, without a leading slash."""
        return f"usr/share/doc/{self.name}"

    @property
    def paragraphs(self) -> list[str]:
        """The description, its lines joined to paragraphs."""
        return [" ".join(paragraph.split()) for paragraph in self.description.strip().split("\n\n")]


def version() -> str:
    """The version of both halves."""
    content = tomllib.loads((ROOT / "Cargo.toml").read_text())
    return str(content["workspace"]["package"]["version"])


def packages(architecture: str, text: str | None = None) -> list[Package]:
    """All packages of packages.toml, or of a text in its place."""
    content = tomllib.loads(text if text is not None else Path(__file__).with_name("packages.toml").read_text())
    everywhere = content.pop("all")
    number = version()

    def needs(names: list[str]) -> tuple[str, ...]:
        words = {"VERSION": f"{number}-1", "PYTHON": PYTHON, "NEXT": NEXT_PYTHON}
        for word, value in words.items():
            names = [name.replace(word, value) for name in names]
        return tuple(names)

    return [
        Package(
            name,
            number,
            architecture,
            everywhere["maintainer"],
            everywhere["licence"],
            of["summary"],
            of["description"],
            needs(of["deb"]),
            needs(of["rpm"]),
            {**everywhere["files"], **of["files"]},
        )
        for name, of in content.items()
    ]
