"""default-main.conf documents each variable that a campaign reads, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from binary import TOP

from iosonar import campaign
from iosonar.campaign.plan import WITHOUT_MEANING, options

DIRECTORY = Path(campaign.__file__).parent
REFERENCE = (TOP / "docs/campaign.md").read_text()
CONF = (DIRECTORY / "defaults/default-main.conf").read_text()
DOCUMENTED = set(re.findall(r"(?m)^#?([a-z_]+)=", CONF))
OF_MODULES = {
    name
    for conf in DIRECTORY.glob("defaults/default-*.conf")
    for name in re.findall(r"(?m)^#?([a-z_]+)=", conf.read_text())
    if conf.name != "default-main.conf"
}
WITHOUT_EFFECT = set(re.findall(r"[a-z_]+", CONF.partition("without effect:")[2].replace("#", "")))

# Set by iosonar, or set by user_modules.conf.
OTHERS = {
    "base_dir",
    "sub_prefix",
    "prepare_list",
    "user_module_dir",
    *("replay_count", "replay_max", "replay_hosts_unique", "target_hosts_unique", "all_hosts_unique"),
}


def read() -> set[str]:
    """The names of scalar variables that the Python half reads."""
    found: set[str] = set()
    for path in DIRECTORY.glob("*.py"):
        text = path.read_text()
        found |= set(re.findall(r"(?:scalar|number|integer|_choice)\((?:(?:self\.)?_?shell, )?\"([a-z_]+)\"", text))
        found |= set(re.findall(r"\(\"(output_add_[a-z]+)\"", text))
    return found


def test_each_variable_that_is_read_is_documented() -> None:
    assert len(read()) > 20
    assert read() - OTHERS - OF_MODULES <= DOCUMENTED


def test_each_documented_variable_is_read() -> None:
    source = "".join(path.read_text() for path in DIRECTORY.glob("*.py"))
    assert {name for name in DOCUMENTED if f'"{name}"' not in source} == set()


def test_variables_without_effect_are_listed() -> None:
    assert set(WITHOUT_MEANING) <= WITHOUT_EFFECT


def test_the_reference_has_each_variable() -> None:
    assert {name for name in DOCUMENTED | set(WITHOUT_MEANING) if f"`{name}`" not in REFERENCE} == set()


@pytest.mark.parametrize("conf", sorted(DIRECTORY.glob("defaults/default-*.conf")), ids=lambda conf: conf.stem)
def test_the_reference_has_each_module_and_its_variables(conf: Path) -> None:
    module = conf.stem.removeprefix("default-")
    if module == "main":
        return
    assert f"`{module}`" in REFERENCE
    for name, value in re.findall(r"(?m)^#?([a-z_]+)=(.*)$", conf.read_text()):
        if name == f"enable_{module}":
            continue
        default = re.sub(r"^\"\$\{\w+:-(\w+)\}\"$", r"\1", value)
        shown = name if default in ("", '""') else f"{name}={default}"
        assert f"`{shown}`" in REFERENCE or f"`{shown.replace(chr(34), '')}`" in REFERENCE, shown


def test_the_reference_has_each_function_that_modules_may_call() -> None:
    session = (
        (DIRECTORY / "session.sh").read_text().partition("what confs and modules may use")[2].partition("the loop")[0]
    )
    names = set(re.findall(r"(?m)^([a-z_]+)\(\) \{$", session)) - {
        "on_all_devices",
        "campaign_filter",
        "campaign_result",
    }
    assert len(names) > 12
    assert {name for name in names if not re.search(rf"\b{name}\b", REFERENCE)} == set()


class Variables:
    """A shell that has nothing but variables."""

    def __init__(self, **values: str):
        self.values = values

    def scalar(self, name: str) -> str:
        return self.values.get(name, "")

    def get(self, name: str) -> list[str]:
        return [self.values[name]] if name in self.values else []


def test_a_bottleneck_limits_only_the_requests_in_flight() -> None:
    shell = Variables(cmode="with-partial", vmode="no-overhead", bottleneck="16", ahead_limit="0.5")
    found = options(shell, lambda _: None)  # type: ignore[arg-type]
    assert found[found.index("--bottleneck") + 1] == "16" and "--ahead" not in found
    assert found[found.index("--ahead-time") + 1] == "0.5"
