"""Prints the requirements in pyproject.toml of both halves and of the named extras, one per line."""

import sys
import tomllib
from pathlib import Path

content = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())
needed = content["build-system"]["requires"] + content["project"]["dependencies"]
for extra in sys.argv[1:]:
    needed += content["project"]["optional-dependencies"][extra]
print("\n".join(needed))
