"""Whole campaigns on this host: results, phases, failures and what is kept of them."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from binary import TOP, iosonar
from campaign_trees import Campaign, events, leaf_order

PHASES = ("prepare", "setup", "run", "cleanup", "finish")

# A module that writes its calls to the file `calls` of the leaf.
CALLS = "\n".join(
    f'calls_{phase}() {{ echo "{phase} ${{PWD##*/}}" >>calls; eval "$on_{phase}"; }}; {phase}_list+=" calls_{phase}"'
    for phase in PHASES
)


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """A campaign with the module `calls`."""
    made = Campaign(tmp_path / "top")
    made.conf("user_modules", "user_module_dir=../modules")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/50_calls.sh").write_text(CALLS)
    return made


def calls(campaign: Campaign, leaf: str) -> list[str]:
    path = campaign.top / leaf / "calls"
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


def requests(path: Path) -> int:
    found: int = json.loads(iosonar("info", "--json", path))["counts"]["requests"]
    return found


def test_a_campaign_from_start_to_end(campaign: Campaign) -> None:
    other = campaign.make_device("dev1")
    campaign.leaf("short/parquet", "threads=008")
    # A module may change the devices; names are those of the conf. Its filters are applied.
    campaign.leaf(
        "short/text",
        f"output_format=replay.gz; on_prepare='replay_device[0]={other}'; input_pipe_list=' | grep -v W'",
    )
    before = other.read_bytes()
    done = subprocess.run(
        [sys.executable, TOP / "packaging/scripts/tree-replay"],
        cwd=campaign.top,
        env=campaign.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert leaf_order(done.stderr) == ["short/parquet", "short/text"]
    device = str(campaign.device).strip("/").replace("/", ".")
    assert campaign.results("short/parquet") == [f"T.short.parquet.localhost.{device}.replay.parquet"]
    assert campaign.results("short/text") == [f"T.short.text.localhost.{device}.replay.gz"]
    assert requests(campaign.top / "short/parquet" / campaign.results("short/parquet")[0]) == 8

    state = campaign.state("short/parquet")
    assert (state.state, state.reason, state.attempt, state.path) == ("done", "", 1, ["short", "parquet"])
    assert (state.variables["threads"], state.variables["cmode"]) == ("008", "with-partial")
    (instance,) = state.instances
    assert (instance.host, instance.device, instance.state, instance.exit_code) == (
        "localhost",
        str(campaign.device),
        "done",
        0,
    )
    assert instance.summary is not None and instance.summary["completed"] == 8
    assert state.hosts["localhost"]
    assert calls(campaign, "short/parquet") == list(PHASES)

    (changed,) = campaign.state("short/text").instances
    assert (changed.device, changed.device_original) == (str(other), str(campaign.device))
    assert 0 < requests(campaign.top / "short/text" / changed.output) < 8, "the filter removed the writes"
    assert other.read_bytes() == before

    log = (campaign.top / "short/parquet/campaign.log").read_text()
    assert "=== short/parquet, attempt 1" in log and "=== done" in log
    assert campaign.left() == []
    shown = json.loads(campaign.run("status", "--json").stdout)
    assert [(row["leaf"], row["state"], row["results"]) for row in shown] == [
        ("short/parquet", "done", 1),
        ("short/text", "done", 1),
    ]


def test_a_failed_leaf_leaves_no_result_and_the_campaign_goes_on(campaign: Campaign) -> None:
    campaign.leaf("a-bad", f"replay_device_list={campaign.top}/missing")
    campaign.leaf("b-conf", "echo 'the shelf is off' >&2; return 1")
    campaign.leaf("c-good", "dry_run=1")
    done = campaign.run("--json", status=1)
    ended = [(each["leaf"], each["state"]) for each in events(done.stdout, "leaf")]
    assert ended == [
        *(("a-bad", "running"), ("a-bad", "failed")),
        *(("b-conf", "running"), ("b-conf", "failed")),
        *(("c-good", "running"), ("c-good", "done")),
    ]
    (end,) = events(done.stdout, "end")
    assert (end["done"], [each["leaf"] for each in end["failed"]]) == (["c-good"], ["a-bad", "b-conf"])
    assert "missing: no such device or file" in end["failed"][0]["reason"]
    assert "the shelf is off" in end["failed"][1]["reason"]
    for leaf, reason in (("a-bad", "no such device or file"), ("b-conf", "the shelf is off")):
        assert campaign.results(leaf) == []
        assert campaign.state(leaf).state == "failed"
        assert reason in campaign.state(leaf).reason
        assert reason in campaign.run("status").stdout
    assert {each["leaf"] for each in events(done.stdout, "progress")} >= {"c-good"}
    assert campaign.left() == []
    # A leaf that failed is done again.
    again = campaign.run("--stop-on-failure", status=1)
    assert leaf_order(again.stderr) == ["a-bad"]
    assert "0 leaves done, 1 failed" in again.stderr
    assert campaign.state("a-bad").attempt == 2


def test_a_dry_run_lists_the_instances_and_runs_no_phase(campaign: Campaign) -> None:
    campaign.leaf("a", "touch sourced; replay_host_list='localhost never.example:/dev/x'")
    campaign.leaf("b", "threads=16")
    done = campaign.run("--test", "--override", "strong=2", status=1)
    assert "a: replay_host_list: localhost: either all are host:device pairs, or none" in done.stderr
    assert "b: iosonar replay --depth 16 " in done.stdout and "--strong 2" in done.stdout
    assert f"  localhost:{campaign.device} {campaign.top}/made.load.gz -> T.b.localhost." in done.stdout
    campaign.conf("a", "replay_host_list='never.example:/dev/x*'")
    lines = [json.loads(line) for line in campaign.run("--dry-run", "--json").stdout.splitlines()]
    assert lines.pop()["leaves"] == 2
    assert [line["leaf"] for line in lines] == ["a", "b"]
    assert lines[0]["instances"][0]["host"] == "never.example", "no host is asked"
    assert list(campaign.top.rglob("calls")) == []
    assert list(campaign.top.rglob("campaign.json")) == []
    assert campaign.left() == []


def test_a_dry_run_needs_no_hosts_and_leaves_nothing(campaign: Campaign) -> None:
    campaign.leaf("a", "input_file_list='http://never.example/x.load.gz ftp://never.example/y.*.load.gz'")
    campaign.conf("a", (campaign.top / "a.conf").read_text() + "; replay_host_list='never.example localhost'")
    before = sorted(campaign.top.rglob("*"))
    for word in ("--dry-run", "--dry-run=1", "--test=1"):
        done = campaign.run(word)
        assert f"  never.example:{campaign.device} http://never.example/x.load.gz -> " in done.stdout
        assert f"  localhost:{campaign.device} ftp://never.example/y.*.load.gz -> " in done.stdout
    assert sorted(campaign.top.rglob("*")) == before and list(campaign.tmp.iterdir()) == []


def test_directories_left_out_for_their_name_alone_are_named(campaign: Campaign) -> None:
    campaign.leaf("a", "dry_run=1")
    for name in ("old-model", "a/try1.old", "ignored"):
        (campaign.top / name).mkdir()
    for words in (("--dry-run",), ()):
        said = campaign.run(*words).stderr
        assert [line for line in said.splitlines() if "left out" in line] == [
            "old-model is left out: a name that begins with old does not count; rename it to run it"
        ]


@pytest.mark.parametrize("failing", ["prepare", "setup"])
def test_after_a_failure_only_cleanup_and_finish_run(campaign: Campaign, failing: str) -> None:
    campaign.leaf("a", f"on_{failing}='echo no disks; false'")
    done = campaign.run(status=1)
    assert f"leaf a: failed: calls_{failing} failed: no disks" in done.stderr
    reached = PHASES[: PHASES.index(failing) + 1]
    assert calls(campaign, "a") == [*reached, "cleanup", "finish"]
    assert (campaign.results("a"), campaign.left()) == ([], [])


def test_an_error_is_said_once(campaign: Campaign) -> None:
    campaign.leaf("a", "on_prepare='campaign_error no disks; false'; on_cleanup='campaign_error stuck'")
    said = campaign.run(status=1).stderr
    assert said.count("no disks") == said.count("stuck") == 1, said
    assert "leaf a: failed: no disks" in said and campaign.state("a").reason == "no disks"
    log = (campaign.top / "a/campaign.log").read_text()
    assert "no disks" in log and "stuck" in log


def test_all_cleanup_and_finish_functions_run_though_some_fail(campaign: Campaign) -> None:
    campaign.leaf("a", "on_setup='exit 5'; on_cleanup='echo jammed; false'; later() { echo later >>calls; }")
    with (campaign.top / "../modules/50_calls.sh").open("a") as file:
        file.write('\ncleanup_list+=" later"\n')
    done = campaign.run(status=1)
    assert "leaf a: failed: calls_setup ended the shell (exit code 5)" in done.stderr
    assert calls(campaign, "a") == ["prepare", "setup", "cleanup", "later", "finish"]
    assert "calls_cleanup failed: jammed" in campaign.state("a").notes


def test_a_failure_undoes_what_is_in_the_undo_journal(campaign: Campaign) -> None:
    made = [campaign.top / name for name in ("first", "second", "third")]
    order = campaign.top / "order"
    steps = "".join(
        f"undo_add localhost 'remove {path.name}' 'rm -f {path} && echo {path.name} >>{order}'; touch {path};\n"
        for path in made
    )
    campaign.leaf("a", f"on_prepare={shlex.quote(steps + 'undo_now $undo_id')}; on_setup=false")
    campaign.run(status=1)
    assert not any(path.exists() for path in made)
    assert order.read_text().split() == ["third", "second", "first"]
    assert campaign.left() == []


def test_what_cannot_be_undone_stays_in_the_journal_until_it_can(campaign: Campaign) -> None:
    switch = campaign.top / "switch"
    added = f"undo_add localhost 'turn it off' 'test -e {switch}'"
    campaign.leaf("a", f"on_prepare={shlex.quote(added)}; dry_run=1")
    done = campaign.run(status=1)
    assert "not undone: turn it off on localhost" in done.stderr
    assert campaign.state("a").state == "done", "the result is valid"
    assert len(campaign.left()) == 1
    assert "not undone: turn it off on localhost" in campaign.run("undo", status=1).stderr
    switch.touch()
    campaign.run("undo")
    assert campaign.left() == []


def test_a_leaf_without_its_own_phases_fails(campaign: Campaign) -> None:
    campaign.leaf("a", "setup_list=")
    campaign.leaf("b", "run_list=calls_run")
    done = campaign.run(status=1)
    assert "leaf a: failed: main_setup did not run: it is missing in setup_list" in done.stderr
    assert "leaf b: failed: main_run did not run: it is missing in run_list" in done.stderr


def test_a_leaf_that_was_finishing_is_only_finished(campaign: Campaign) -> None:
    campaign.leaf("a", "dry_run=1")
    campaign.run()
    (name,) = campaign.results("a")
    leaf = campaign.top / "a"
    (leaf / name).rename(leaf / f".{name}.part")
    record = json.loads((leaf / "campaign.json").read_text())
    (leaf / "campaign.json").write_text(json.dumps({**record, "state": "finishing"}))
    assert "leaf a: was replayed, and is finished now" in campaign.run().stderr
    assert campaign.results("a") == [name]
    assert (campaign.state("a").state, campaign.state("a").attempt) == ("done", 1)
    assert "nothing to do" in campaign.run().stderr


def test_two_campaigns_at_once_in_one_directory_are_refused(campaign: Campaign) -> None:
    campaign.leaf("a")
    (campaign.top / ".campaign").mkdir()
    with (campaign.top / ".campaign/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for words in ((), ("undo",)):
            done = campaign.run(*words, status=1)
            assert f"another campaign runs in {campaign.top}" in done.stderr
        campaign.run("--dry-run")
        campaign.run("status")
    assert not (campaign.top / "a/campaign.json").exists()


@pytest.mark.parametrize("other", ["..", "a/b"])
def test_campaigns_with_leaves_in_common_are_refused(campaign: Campaign, other: str) -> None:
    campaign.leaf("a/b")
    (campaign.top / other / ".campaign").mkdir()
    with (campaign.top / other / ".campaign/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "which has leaves in common with" in campaign.run(status=1).stderr
    assert not (campaign.top / "a/b/campaign.json").exists()


def test_wrong_command_lines_have_the_exit_code_2(campaign: Campaign) -> None:
    assert "invalid override 'x'" in campaign.run("--override", "x", status=2).stderr
    assert "no directory nowhere" in campaign.run("--work_dir", "nowhere", status=2).stderr
    campaign.run("--nonsense", status=2)
    os.remove(campaign.top / "default-main.conf")  # noqa: PTH107
    campaign.leaf("a")
    assert "no default-main.conf" in campaign.run(status=1).stderr


def test_a_directory_without_a_campaign_stays_as_it_is(campaign: Campaign) -> None:
    (campaign.top / "default-main.conf").unlink()
    before = sorted(campaign.top.rglob("*"))
    assert "creates a campaign to start from" in campaign.run(status=1).stderr
    assert "creates a campaign to start from" in campaign.run("--dry-run", status=1).stderr
    assert sorted(campaign.top.rglob("*")) == before


def test_undo_and_the_dry_run_say_that_there_is_nothing_to_do(campaign: Campaign) -> None:
    assert "nothing to undo" in campaign.run("undo").stderr
    campaign.leaf("a")
    (campaign.top / "a" / "T.replay.gz").touch()
    assert "nothing to do: all leaves are done or skipped" in campaign.run("--dry-run").stderr
