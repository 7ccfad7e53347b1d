"""Prints what pyproject.toml says is needed to build and run both halves, and by the extras named: one a line."""

import sys
import tomllib
from pathlib import Path

content = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())
needed = content["build-system"]["requires"] + content["project"]["dependencies"]
for extra in sys.argv[1:]:
    needed += content["project"]["optional-dependencies"][extra]
print("\n".join(needed))
