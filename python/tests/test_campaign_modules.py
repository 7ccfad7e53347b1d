"""The modules of campaigns, on loop devices and with programs that only record how they are called."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from binary import iosonar, loop_device
from campaign_module_kit import DEFAULTS, SIZE, Campaign

from iosonar.campaign import confs

MODULES = {name: path for name, path in confs.modules_of(confs.MODULES) if name != "main"}


@pytest.fixture
def campaign(tmp_path: Path) -> Iterator[Campaign]:
    """A campaign on one device."""
    with loop_device(SIZE) as device:
        yield Campaign(tmp_path, [device])


def test_each_module_documents_its_switch_in_a_default_conf() -> None:
    for name in MODULES:
        text = (DEFAULTS / f"default-{name}.conf").read_text()
        on = name in ("graph", "scheduler", "check")
        assert re.search(rf"^enable_{name}={int(on)}$", text, re.MULTILINE), name
    assert {path.stem for path in DEFAULTS.glob("*.conf")} == {f"default-{name}" for name in [*MODULES, "main"]}


def test_each_variable_of_a_default_conf_is_read_by_its_module() -> None:
    for name, path in MODULES.items():
        code = "".join(each.read_text() for each in [path, *confs.MODULES.glob("*_functions.sh")])
        for variable in re.findall(r"^#?([a-z_]+)=", (DEFAULTS / f"default-{name}.conf").read_text(), re.MULTILINE):
            assert re.search(rf"\b{variable}\b", code), f"{name}: {variable}"


def test_each_module_sources_the_functions_that_it_calls() -> None:
    for library in ("functions", "iscsi_functions", "megaraid_functions"):
        names = re.findall(r"(?m)^([a-z_]+)\(\)", (confs.MODULES / f"{library}.sh").read_text())
        for module, path in confs.modules_of(confs.MODULES):
            text = re.sub(r"(?m)#.*$", "", path.read_text())
            called = [name for name in names if re.search(rf"(?<!\w){name}(?![\w(])", text)]
            assert not called or f"modules/{library}.sh" in text, (module, called)


def test_filters_are_in_the_order_of_their_numbers() -> None:
    filters = [name for name in MODULES if name.startswith("pipe_")]
    assert filters == [
        f"pipe_{each}" for each in ["reverse", "select", "repeat", "slip", "subst", "spread", "resize", "cmd"]
    ]


def test_a_leaf_wipes_reads_sets_the_scheduler_filters_and_draws(campaign: Campaign) -> None:
    before = campaign.scheduler()
    campaign.conf(
        """
        enable_wipe=1 enable_slurp=1 scheduler=deadline
        enable_graph=1 graph_output='page pictures' graph_options='--dynamic --only=latency.realtime'
        pictureoptions='size 400,300' turn_window=1
        enable_pipe_reverse=1 enable_input_reverse=1 enable_pipe_select=1 enable_pipe_repeat=1 enable_pipe_slip=1
        enable_pipe_subst=1 enable_pipe_spread=1 enable_pipe_resize=1 enable_pipe_cmd=1
        pipe_select_to=0.3 pipe_slip_every=008 pipe_slip_increase=8 pipe_spread_factor=0.5 pipe_resize_max=16
        pipe_cmd='cat | tee "$HOME/it'"'"'s \\$x" # comment'
        """.replace("$HOME", str(campaign.top))
    )
    ended = campaign.run()
    assert ended.code == 0, ended.output
    expected = campaign.top / "expected.load.parquet"
    pipeline = (
        "reverse | select from=0 to=0.3 | repeat | select to=1 | slip every=8 increase=8s | subst | "
        "spread factor=0.5 align=8s | resize factor=2 max=16s"
    )
    iosonar("edit", campaign.top / "a.load.gz", expected, pipeline)
    assert (campaign.top / "it's $x").stat().st_size > 0

    leaf = campaign.top / "leaf"
    (result,) = leaf.glob("*.replay.*")
    replayed = leaf / "replayed.load.parquet"
    iosonar("convert", result, replayed)
    columns = ["at_ns", "sector", "sectors"]
    rows = [
        sorted(zip(*(pq.read_table(path)[name].to_pylist() for name in columns), strict=True))
        for path in (expected, replayed)
    ]
    assert rows[0] == rows[1]
    assert list(leaf.glob("*.png")) and list(leaf.glob("*.report.html"))
    assert "scheduler of" in ended.output and campaign.scheduler() == before
    assert "errors    none" in ended.output and "33.6" not in ended.output
    notes = campaign.state()["notes"]
    assert isinstance(notes, list) and any("turn_window has no effect" in note for note in notes)
    # Random data, but for what the replay wrote.
    assert json.loads(iosonar("device", "slurp", campaign.devices[0], "--json"))["zero_share"] == 0


def test_what_is_replaced_is_restored_after_a_failed_run(campaign: Campaign) -> None:
    before = campaign.scheduler()
    campaign.conf("scheduler=mq-deadline; broken() { return 1; }; run_list='broken'")
    ended = campaign.run()
    assert ended.code == 1 and "mq-deadline instead of" in ended.output
    assert campaign.scheduler() == before


def test_a_killed_controller_restores_what_it_replaced(campaign: Campaign) -> None:
    before = campaign.scheduler()
    campaign.conf("scheduler=mq-deadline; crash() { kill -KILL $PPID; sleep 60; }; setup_list+=' crash'")
    assert campaign.run().code == -9
    assert campaign.scheduler() == "mq-deadline" and campaign.undo_entries()
    assert campaign.run("undo").code == 0
    assert campaign.scheduler() == before


def test_an_unknown_scheduler_fails_with_those_that_exist(campaign: Campaign) -> None:
    campaign.conf("scheduler=unknown")
    ended = campaign.run()
    assert ended.code == 1 and "cannot set the scheduler of" in ended.output and "mq-deadline" in ended.output


def test_the_name_of_a_scheduler_is_not_run(campaign: Campaign) -> None:
    campaign.conf("scheduler='none; touch x'")
    ended = campaign.run()
    assert ended.code == 1 and "is not a name of a scheduler" in ended.output
    assert not list(campaign.top.rglob("x"))


def test_wipe_refuses_content_unless_wipe_force_is_set(campaign: Campaign) -> None:
    subprocess.run(["mkfs.ext4", "-q", campaign.devices[0]], check=True)
    campaign.conf("enable_wipe=1 dry_run=1")
    ended = campaign.run()
    assert ended.code == 1 and f"localhost: wipe of {campaign.devices[0]} failed" in ended.output
    campaign.conf("enable_wipe=1 wipe_force=1 dry_run=1")
    assert campaign.run().code == 0


def test_repeat_without_a_duration_is_refused(campaign: Campaign) -> None:
    campaign.conf("enable_pipe_repeat=1 replay_duration=0")
    ended = campaign.run()
    assert ended.code == 1 and "pipe_repeat needs replay_duration" in ended.output


def test_create_lv_deletes_its_volumes_before_and_after(campaign: Campaign) -> None:
    campaign.program("volume")
    campaign.conf(
        f"""
        enable_create_lv=1 dry_run=1 volume_name="it's \\"\\$x\\""
        delete_lv() {{ remote localhost "volume delete $(quoted "$volume_name")"; replay_host_list=""; }}
        create_lv() {{ volume create "$volume_name"; replay_host_list="localhost:{campaign.devices[0]}"; }}
        """
    )
    ended = campaign.run()
    assert ended.code == 0, ended.output
    name = 'it\'s "$x"'
    assert campaign.called("volume") == [f"delete {name}", f"create {name}", f"delete {name}"]


def test_create_lv_deletes_after_the_controller_was_killed(campaign: Campaign) -> None:
    campaign.program("volume")
    campaign.conf(
        f"""
        enable_create_lv=1 dry_run=1 volume_name="it's \\"\\$x\\""
        helper() {{ volume "$1" "$volume_name"; }}
        delete_lv() {{ helper delete; }}
        create_lv() {{ helper create; replay_host_list="localhost:{campaign.devices[0]}"; kill -KILL $PPID; sleep 60; }}
        """
    )
    assert campaign.run().code == -9
    undone = campaign.run("undo")
    assert undone.code == 0, undone.output
    assert [call.split()[0] for call in campaign.called("volume")] == ["delete", "create", "delete"]


LVM = ("pvcreate", "vgcreate", "lvcreate", "vgremove", "pvremove")


def fake_lvm(campaign: Campaign) -> None:
    """LVM of a host without volume groups, whose volumes are the loop devices."""
    for name in LVM:
        campaign.program(name)
    campaign.program("vgs", "exit 5")
    campaign.program("pvs", "exit 5")


def test_recreate_lvm_stripes_over_all_devices(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(loop_device(SIZE))
        campaign = Campaign(tmp_path, [first])
        fake_lvm(campaign)
        campaign.conf(
            "enable_recreate_lvm=1 lv_count=002 lv_size=50%VG lvm_extra='more:1G' replay_max_parallelism=1\n"
            "stop() { echo \"devices ${replay_device[*]}\"; return 1; }; prepare_list+=' stop'"
        )
        ended = campaign.run()
    assert "devices /dev/vg-test/lv-data0\n" in ended.output
    assert campaign.called("pvcreate") == [f"--yes {first}"]
    assert campaign.called("vgcreate") == [f"--yes --addtag iosonar_campaign vg-test {first}"]
    assert [call.partition("--zero y ")[2] for call in campaign.called("lvcreate")] == [
        "--extents 50%VG --name lv-data0 vg-test",
        "--extents 50%VG --name lv-data1 vg-test",
        "--size 1G --name more vg-test",
    ]


def test_recreate_lvm_refuses_a_device_with_content(campaign: Campaign) -> None:
    fake_lvm(campaign)
    subprocess.run(["mkfs.ext4", "-q", "-L", "home", campaign.devices[0]], check=True)
    campaign.conf("enable_recreate_lvm=1")
    ended = campaign.run()
    assert ended.code == 1 and 'has content: [ "ext4' in ended.output
    assert campaign.called("pvcreate") == []


def test_recreate_lvm_refuses_a_group_that_no_campaign_made(campaign: Campaign) -> None:
    fake_lvm(campaign)
    campaign.program("vgs", "echo other_tag")
    campaign.conf("enable_recreate_lvm=1")
    ended = campaign.run()
    assert ended.code == 1 and "a volume group vg-test exists that no campaign made" in ended.output
    assert campaign.called("vgremove") == []


@pytest.mark.parametrize("name", ["a b", "$(touch x)", "x;touch x", "-x", ""])
def test_recreate_lvm_refuses_names_that_are_none(campaign: Campaign, name: str) -> None:
    fake_lvm(campaign)
    campaign.conf(f"enable_recreate_lvm=1 vg_name='{name}'")
    ended = campaign.run()
    assert ended.code == 1 and "is not a name of a volume group" in ended.output
    assert not list(campaign.top.rglob("x"))


POLICIES = """
case "$*" in
*-LDGetProp*)
    echo
    echo 'Adapter 0-VD 0(target id: 0): Cache Policy:WriteBack, ReadAheadNone, Direct, No Write Cache if bad BBU'
    echo 'Adapter 0-VD 1(target id: 1): Cache Policy:WriteThrough, ReadAheadNone, Direct, No Write Cache if bad BBU'
    ;;
*-LDInfo*) echo 'Is VD Cached: No' ;;
esac
"""

ROWS = """
case "$*" in
*show*)
    echo 'Controller = 0'
    echo 'DG/VD TYPE  State Access Consist Cache Cac sCC       Size Name'
    echo '0/0   RAID1 Optl  RW     Yes     RWBD  R   ON  446.102 GB'
    echo '1/1   RAID1 Optl  RW     Yes     RWTD  -   ON  446.102 GB'
    ;;
esac
"""


def test_bbu_megaraid_changes_other_drives_and_restores_them(campaign: Campaign) -> None:
    campaign.program("MegaCli64", POLICIES)
    campaign.conf("enable_bbu_megaraid=1 bbu_cache=0 dry_run=1")
    ended = campaign.run()
    assert ended.code == 0, ended.output
    assert campaign.called("MegaCli64") == [
        "-LDGetProp -Cache -LALL -aALL -NoLog",
        "-LDSetProp WT -Immediate -L0 -a0 -NoLog",
        "-LDSetProp WB -Immediate -L0 -a0 -NoLog",
    ]


def test_bbu_megaraid_uses_storcli_if_it_is_installed(campaign: Campaign) -> None:
    campaign.program("storcli64", ROWS)
    campaign.conf("enable_bbu_megaraid=1 bbu_cache=1 dry_run=1")
    ended = campaign.run()
    assert ended.code == 0, ended.output
    assert campaign.called("storcli64") == [
        "/call/vall show",
        "/c0/v1 set wrcache=wb",
        "/c0/v1 set wrcache=wt",
    ]


def test_cachecade_starts_cold_and_restores_the_old_state(campaign: Campaign) -> None:
    campaign.program("storcli64", ROWS)
    campaign.conf("enable_cachecade=2 cachecade_mode=2 dry_run=1")
    ended = campaign.run()
    assert ended.code == 0, ended.output
    assert [call for call in campaign.called("storcli64") if "show" not in call] == [
        "/c0/v0 set ssdcaching=off",
        "/c0/v1 set wrcache=wb",
        "/c0/v0 set ssdcaching=on",
        "/c0/v1 set wrcache=wt",
        "/c0/v0 set ssdcaching=on",
    ]


def test_cachecade_1_leaves_the_cache_warm(campaign: Campaign) -> None:
    campaign.program("MegaCli64", POLICIES)
    campaign.conf("enable_cachecade=1 cachecade_mode=1 dry_run=1")
    ended = campaign.run()
    assert ended.code == 0, ended.output
    assert campaign.called("MegaCli64")[-1] == "-Cachecade -assign -L0 -a0 -NoLog"


@pytest.mark.parametrize("module", ["bbu_megaraid", "cachecade"])
def test_a_controller_without_its_tool_fails_with_a_remedy(campaign: Campaign, module: str) -> None:
    campaign.conf(f"enable_{module}=1")
    ended = campaign.run()
    assert ended.code == 1 and "has neither MegaCli nor storcli: install one of them there" in ended.output
    campaign.program("MegaCli64")
    ended = campaign.run()
    assert ended.code == 1 and "shows no virtual drive: this module needs a MegaRAID controller" in ended.output


def test_smartctl_keeps_reports_and_erases(campaign: Campaign) -> None:
    campaign.program("smartctl", 'case "$*" in *json*) echo \'{"percentage_used": 7}\' ;; *) echo text ;; esac')
    campaign.program("hdparm", "echo 'Security:'; printf '\\tnot\\tfrozen\\n\\tnot\\tenabled\\n'")
    campaign.conf("enable_smartctl=1 enable_ssd_erase=1 dry_run=1")
    ended = campaign.run()
    assert ended.code == 0, ended.output
    device = campaign.devices[0]
    assert campaign.called("hdparm") == [
        f"-I {device}",
        f"--user-master u --security-set-pass iosonar {device}",
        f"--user-master u --security-erase iosonar {device}",
        f"-I {device}",
    ]
    names = {path.name for path in (campaign.top / "leaf").glob("*.smart-*")}
    stem = f"localhost.{device.name}.smart"
    assert names == {f"{stem}-{when}.{form}" for when in ("before", "after") for form in ("txt", "json")}
    notes = campaign.state()["notes"]
    assert isinstance(notes, list) and any(note.endswith(f"wear of {device} after the run: 7 %") for note in notes)


def test_smartctl_fails_on_a_device_without_smart(campaign: Campaign) -> None:
    campaign.program("smartctl", "echo 'Unable to detect device type'; exit 1")
    campaign.conf("enable_smartctl=1")
    ended = campaign.run()
    assert ended.code == 1 and "smartctl cannot read" in ended.output


@pytest.mark.parametrize("address", ["10.0.0.1;touch x", "$(touch x)", "-x", "a b"])
def test_an_address_of_a_target_that_is_none_is_refused(campaign: Campaign, address: str) -> None:
    campaign.program("iscsiadm")
    campaign.program("iscsid")
    campaign.program("pgrep")
    campaign.program("modprobe")
    campaign.conf(f"enable_iscsi_initiator=1 iscsi_ip='{address}' replay_host_list=localhost:iqn.2000-01.info.test:a")
    ended = campaign.run()
    assert ended.code == 1 and "is not an address" in ended.output
    assert not list(campaign.top.rglob("x"))


def test_devices_of_a_target_are_expanded_on_its_host(campaign: Campaign) -> None:
    device = str(campaign.devices[0])
    pattern = device[:-1] + f"[{device[-1]}]"
    show = "show() { echo \"devices ${replay_device[*]}\"; return 1; }; prepare_list='main_prepare show'"
    campaign.conf(
        f"enable_iscsi_target_iet=1 iscsi_target=localhost replay_host_list='a.invalid:{pattern} b.invalid:{pattern}'\n"
        + show
    )
    ended = campaign.run()
    assert f"devices {device} {device}\n" in ended.output


def test_a_wipe_that_outlived_its_connection_is_ended(tmp_path: Path) -> None:
    # A process with the words of a wipe: `device` is its script.
    (tmp_path / "device").write_text("import time; time.sleep(600)")
    words = ["/tmp/x/iosonar", "device", "wipe", "--force"]
    wipes = [
        subprocess.Popen([*words, device], executable=sys.executable, cwd=tmp_path) for device in ("/dev/a", "/dev/b")
    ]
    script = (
        f'base_dir={confs.BASE}; source "$base_dir/modules/functions.sh"; source "$base_dir/modules/device_jobs.sh"\n'
        'bash -c "$(undo_script "$campaign_device_job_end" wipe /dev/a)"'
    )
    try:
        for _ in range(2):
            subprocess.run(["bash", "-c", script], check=True)
        assert wipes[0].wait(timeout=10) != 0
        assert wipes[1].poll() is None
    finally:
        for wipe in wipes:
            wipe.kill()
            wipe.wait()
