"""No name or value of a campaign is run as a command: it fails, or it works as the name that it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign_shell import Said, shell_in
from campaign_trees import Campaign, events

from iosonar.campaign.confs import parse_override
from iosonar.errors import UsageError

COMMANDS = (
    ";touch${IFS}CANARY;",
    "$(touch${IFS}CANARY)",
    "`touch${IFS}CANARY`",
    "|touch${IFS}CANARY",
    "&touch${IFS}CANARY&",
    "a'$(touch${IFS}CANARY)'b",
    'a"$(touch${IFS}CANARY)"b',
    "'\"`touch${IFS}CANARY`",
    "-oProxyCommand=touch${IFS}CANARY",
    "--help",
    "../../CANARY",
    "a[$(touch${IFS}CANARY)]",
    "{a,$(touch${IFS}CANARY)}",
    "*$(touch${IFS}CANARY)",
    "\\$(touch${IFS}CANARY)\\",
    "$'\\x24(touch${IFS}CANARY)'",
)


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """A campaign without I/O, whose values are given as lines of files, which no shell parses."""
    made = Campaign(tmp_path / "top", dry_run=1)
    (made.top / "values").mkdir()
    (made.top / "values/skip").touch()
    return made


def add(campaign: Campaign, leaf: str, variable: str, value: str) -> None:
    """A leaf that sets a variable."""
    (campaign.top / "values" / leaf).write_text(value)
    campaign.leaf(leaf, f"IFS= read -r -d '' {variable} <../values/{leaf} || true")


def assert_no_canary(campaign: Campaign) -> None:
    for directory in (campaign.top.parent, Path.cwd(), Path("/tmp")):
        assert list(directory.glob("CANARY*")) == []
    assert list(campaign.top.rglob("CANARY*")) == []


def test_names_of_hosts_fail_before_anything_is_run(campaign: Campaign) -> None:
    for index, command in enumerate(COMMANDS):
        add(campaign, f"host{index:02}", "replay_host_list", command)
    for index, command in enumerate(COMMANDS[::3]):
        add(campaign, f"pair{index:02}", "replay_host_list", f"{command}:/dev/null")
    done = campaign.run("--json", status=1)
    (end,) = events(done.stdout, "end")
    assert end["done"] == []
    assert len(end["failed"]) == len(COMMANDS) + len(COMMANDS[::3])
    assert all("is not a host name" in each["reason"] or "host:device" in each["reason"] for each in end["failed"])
    assert_no_canary(campaign)


def test_a_command_as_a_device_fails_and_does_not_run(campaign: Campaign) -> None:
    commands = COMMANDS[::3]
    for index, command in enumerate(commands):
        add(campaign, f"device{index:02}", "replay_device_list", command)
    done = campaign.run("--json", status=1)
    (end,) = events(done.stdout, "end")
    assert end["done"] == []
    assert len(end["failed"]) == len(commands)
    assert_no_canary(campaign)


def test_a_command_as_a_value_fails_and_does_not_run(campaign: Campaign) -> None:
    variables = (
        *("input_file_list", "threads", "replay_duration", "replay_start", "replay_delta", "replay_max_parallelism"),
        *("cmode", "vmode", "strong", "output_format", "speedup", "simulate_io", "output_add_path"),
    )
    for variable in variables:
        for index, command in enumerate(COMMANDS[1:16:5]):
            add(campaign, f"{variable}-{index}", variable, command)
    done = campaign.run("--dry-run", status=1)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 3 * len(variables)
    assert_no_canary(campaign)


def test_the_value_of_start_grace_fails(campaign: Campaign) -> None:
    add(campaign, "a", "start_grace", COMMANDS[1])
    assert "leaf a: failed: start_grace=$(touch${IFS}CANARY): a number is expected" in campaign.run(status=1).stderr
    assert_no_canary(campaign)


def test_labels_and_names_of_loads_are_names_of_files(campaign: Campaign) -> None:
    odd = campaign.top / "'; touch CANARY; $(touch CANARY) `touch CANARY`.load.gz"
    (campaign.top / "made.load.gz").rename(odd)
    add(campaign, "label", "output_label", "L'; touch CANARY; $(touch CANARY) `touch CANARY`")
    for leaf, label in (("a-up", "../CANARY"), ("b-dash", "-rf"), ("c-line", "a\nCANARY")):
        add(campaign, leaf, "output_label", label)
    with (campaign.top / "default-main.conf").open("a") as file:
        file.write(
            "input_file_list='*.load.gz'; output_add_input=1; output_add_device=0\n"
            "input_pipe_list=' | cat'; output_format=replay.gz\n"
        )
    done = campaign.run("--json", status=1)
    (end,) = events(done.stdout, "end")
    assert end["done"] == ["label"], end
    assert all("invalid name of a result" in each["reason"] for each in end["failed"])
    (name,) = campaign.results("label")
    assert name.startswith("L'; touch CANARY; $(touch CANARY) `touch CANARY`.label.localhost.")
    assert name.endswith(".'; touch CANARY; $(touch CANARY) `touch CANARY`.replay.gz")
    assert_no_canary(campaign)


def test_overrides_are_values_and_never_commands(campaign: Campaign) -> None:
    campaign.leaf("a", 'printf %s "$output_label" >../seen')
    campaign.run("--override", "output_label=$(touch CANARY)`touch CANARY`';x", "--dry-run")
    assert (campaign.top / "seen").read_text() == "$(touch CANARY)`touch CANARY`';x"
    for text in ("x;touch CANARY=1", "$(touch CANARY)=1", "a[$(touch CANARY)]=1"):
        with pytest.raises(UsageError, match="invalid override"):
            parse_override(text)
    assert_no_canary(campaign)


def test_names_of_directories_are_names(campaign: Campaign) -> None:
    odd = "we ird/$(touch CANARY)/;touch CANARY;/`touch CANARY`/-x/quo\"te's"
    campaign.leaf(odd, 'printf %s "$sub_prefix" >seen')
    for leaf in ("*", "-e", "~", "new\nline", "b\udcff", "es\x1b[31mcape"):
        campaign.leaf(leaf)
    done = campaign.run("--json", status=1)
    (end,) = events(done.stdout, "end")
    assert end["done"] == ["*", "-e", odd, "~"]
    assert [each["leaf"] for each in end["failed"]] == ["b\udcff", "es\x1b[31mcape", "new\nline"]
    assert all("invalid name of a result" in each["reason"] for each in end["failed"])
    assert (campaign.top / odd / "seen").read_text() == "." + odd.replace("/", ".")
    assert len(campaign.results(odd)) == 1
    for words in (("status",), ("--dry-run",)):
        shown = campaign.run(*words, status=int(words != ("status",)))
        assert "\x1b" not in shown.stdout + shown.stderr
    assert_no_canary(campaign)


def test_names_in_the_lists_of_phases_are_not_parsed(tmp_path: Path) -> None:
    said = Said()
    with shell_in(tmp_path, said) as shell:
        for command in COMMANDS:
            assert shell.call(command) != 0
            assert shell.call("quoted", command) == 0
    assert not list(tmp_path.rglob("CANARY"))


def test_values_are_read_and_set_as_they_are(tmp_path: Path) -> None:
    with shell_in(tmp_path) as shell:
        for text in (*COMMANDS, "a\nb\n", " a  b ", "\t", "", "é\udcff", "*", "~", "\\", "%s%n", "-n"):
            shell.set_scalar("x", text)
            assert shell.get("x") == [text]
            shell.set("list", [text, text])
            assert shell.get("list") == [text, text]
    assert not list(tmp_path.rglob("CANARY"))
