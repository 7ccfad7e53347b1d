"""Variables that confs or `--override` set and nothing reads: most are mistyped."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from iosonar.text import plain

BASE = Path(__file__).parent

ASSIGNED = re.compile(r"(?m)^#?([A-Za-z_][A-Za-z0-9_]*)=")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
READ = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]*)(?![A-Za-z0-9_]|(?:\[[^]]*\])?\+?=(?!=))")
"""A name that is not assigned to."""

COMMENT = re.compile(r"(?m)(^|\s)#.*$")

OF_CAMPAIGN = (
    *("base_dir", "sub_prefix", "user_module_dir", "output_pipe_list", "input_pipe_list"),
    *("verbose_script", "fan_out", "no_dispatcher", "enable_compress_ssh", "omit_tmp_cleanup"),
)
"""Names that no default conf sets."""

ALIKE = 0.7
"""How alike names are of which one is suggested: see difflib."""


def warnings(names: Iterable[str], sources: Iterable[str]) -> Iterator[str]:
    """A sentence for each name that is neither documented nor read in the modules or in the texts of the confs."""
    documented = _documented()
    read = {name for source in sources for name in READ.findall(COMMENT.sub("", source))}
    for name in sorted(names):
        # Those of the environment, such as LC_ALL, are for programs.
        if name in documented or name in read or name in _in_modules() or name.isupper():
            continue
        near = difflib.get_close_matches(name, documented, 1, ALIKE)
        yield f"warning: nothing reads the variable {plain(name)}" + (f": did you mean {near[0]}?" if near else "")


@functools.cache
def _documented() -> frozenset[str]:
    confs = (path.read_text(encoding="utf-8") for path in (BASE / "defaults").glob("*.conf"))
    return frozenset(OF_CAMPAIGN).union(*(ASSIGNED.findall(text) for text in confs))


@functools.cache
def _in_modules() -> frozenset[str]:
    texts = (path.read_text(encoding="utf-8") for path in (*(BASE / "modules").glob("*.sh"), BASE / "session.sh"))
    return frozenset[str]().union(*(NAME.findall(COMMENT.sub("", text)) for text in texts))
