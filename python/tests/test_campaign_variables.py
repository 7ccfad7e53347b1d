"""default-main.conf documents each variable that a campaign reads, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from iosonar import campaign
from iosonar.campaign.plan import WITHOUT_MEANING, options

FOLDER = Path(campaign.__file__).parent
CONF = (FOLDER / "defaults/default-main.conf").read_text()
DOCUMENTED = set(re.findall(r"(?m)^#?([a-z_]+)=", CONF))
WITHOUT_EFFECT = set(re.findall(r"[a-z_]+", CONF.partition("without effect:")[2].replace("#", "")))

# Set by iosonar, or set by user_modules.conf.
OTHERS = {
    "base_dir",
    "sub_prefix",
    "user_module_dir",
    *("replay_count", "replay_max", "replay_hosts_unique", "target_hosts_unique", "all_hosts_unique"),
}


def read() -> set[str]:
    """The names of scalar variables that the Python half reads."""
    found: set[str] = set()
    for path in FOLDER.glob("*.py"):
        text = path.read_text()
        found |= set(re.findall(r"(?:scalar|number|integer|_choice)\((?:(?:self\.)?_?shell, )?\"([a-z_]+)\"", text))
        found |= set(re.findall(r"\(\"(output_add_[a-z]+)\"", text))
    return found


def test_each_variable_that_is_read_is_documented() -> None:
    assert len(read()) > 20
    assert read() - OTHERS <= DOCUMENTED


def test_each_documented_variable_is_read() -> None:
    source = "".join(path.read_text() for path in FOLDER.glob("*.py"))
    assert {name for name in DOCUMENTED if f'"{name}"' not in source} == set()


def test_variables_without_effect_are_listed() -> None:
    assert set(WITHOUT_MEANING) <= WITHOUT_EFFECT


class Variables:
    """A shell that has nothing but variables."""

    def __init__(self, **values: str):
        self.values = values

    def scalar(self, name: str) -> str:
        return self.values.get(name, "")

    def get(self, name: str) -> list[str]:
        return [self.values[name]] if name in self.values else []


def test_requests_are_prepared_ahead_by_number_or_by_time() -> None:
    shell = Variables(cmode="with-partial", vmode="no-overhead", bottleneck="16", ahead_limit="0.5")
    found = options(shell, lambda _: None)  # type: ignore[arg-type]
    assert found[found.index("--ahead") + 1] == "16"
    assert found[found.index("--ahead-time") + 1] == "0.500000000"
