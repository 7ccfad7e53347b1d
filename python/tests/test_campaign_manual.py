"""A campaign as the manual of blkreplay describes it runs unchanged."""

from __future__ import annotations

from pathlib import Path

from campaign_trees import Campaign, leaf_order

DEFAULT_MAIN = """#!/bin/bash
## replay_host_list
## Whitespace-separated list of hostnames where blkreplay is run in parallel.

replay_host_list="localhost"

## Asymmetric combinations: replay_host_list="host1:/dev/device1 host2:/dev/device2"

replay_device_list="{devices}"

input_file_list="${{base_dir}}/example-load/artificial/bursts-ultrafine.readwrite.1b.1.load.gz"

replay_max_parallelism=0          # means unlimited / only limited by replay_*_list

output_label="MYPROJECT"

output_add_path=1      # the relative path of the leaf directory is added
output_add_host=1      # add hostname where this blkreplay instance is running
output_add_device=1    # add devicename where this blkreplay instance is running
output_add_input=0     # add the input file name

replay_start=0

replay_duration=3600

replay_delta=0

threads=512

cmode=with-partial

vmode=no-overhead

verbose_script=0

verbose=0

## some advanced parameters (experts only)

#replay_out_start=""
#omit_tmp_cleanup=0
#enable_compress_ssh=2
#speedup=1.0   # leads to heavy distortions of NATURAL loads
fan_out=8
"""

USER_MODULE = """#!/bin/bash
function raidcheck_prepare
{
    (( enable_raidcheck )) || return 0
    check_installed "grep sed awk" || exit -1
    remote_all "$replay_hosts_unique" "test -d /proc" || return 1
    for i in $(eval echo {0..$replay_max}); do
        echo "$i ${replay_host[$i]} ${replay_device[$i]} ${input_file[$i]}" >> prepared
    done
    return 0
}

function raidcheck_cleanup
{
    (( enable_raidcheck )) || return 0
    remote_all_noreturn "$replay_hosts_unique" "false"
    ls .*.part *.replay.gz 2>/dev/null | wc -l > found
    source_config later || return $?
    echo "$later" >> prepared
}

prepare_list="$prepare_list raidcheck_prepare"
cleanup_list="raidcheck_cleanup $cleanup_list"
"""


def test_a_campaign_of_the_manual_runs_unchanged(tmp_path: Path) -> None:
    parent = tmp_path / "project"
    campaign = Campaign(parent / "benchmarks")
    devices = [campaign.device, campaign.make_device("dev1")]
    base = str(campaign.device).removesuffix("0")
    (campaign.top / "default-main.conf").unlink()
    # Confs may be in a parent directory.
    (parent / "default-main.conf").write_text(DEFAULT_MAIN.format(devices=base + "{0,1}"))
    (parent / "default-raidcheck.conf").write_text("enable_raidcheck=0\nstart_grace=0.6\n")
    (parent / "default-wipe.conf").write_text("enable_wipe=0\n")
    (parent / "user_modules.conf").write_text(f"user_module_dir={tmp_path}/mine\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/40_raidcheck.sh").write_text(USER_MODULE)
    (parent / "later.conf").write_text("later=sourced\n")
    confs = {
        "01_short": 'if [[ "$input_file_list" =~ bursts ]]; then\n  replay_duration=1\nfi\n(( replay_duration *= 2 ))',
        "09_long": "replay_duration=4",
        "threads_008": "threads=008; dry_run=1",
        "threads_016": "threads=016; bottleneck=$threads; dry_run=1; replay_max_parallelism=1",
        "checked": "enable_raidcheck=1",
    }
    for name, text in confs.items():
        (parent / f"{name}.conf").write_text(f"{text}\n")
    for path in ("01_short/threads_008/checked", "01_short/threads_016", "09_long/threads_008", "09_long/threads_016"):
        (campaign.top / path).mkdir(parents=True)
    for path in ("09_long/threads_008/try1.old", "ignore_this/x", "09_long/.snapshot"):
        (campaign.top / path).mkdir(parents=True)
    (campaign.top / "09_long/threads_016/skip").touch()
    (campaign.top / "09_long/threads_008/MYPROJECT.replay.gz").touch()

    done = campaign.run()
    assert leaf_order(done.stderr) == ["01_short/threads_008/checked", "01_short/threads_016"]
    parts = [str(device).strip("/").replace("/", ".") for device in devices]
    assert campaign.results("01_short/threads_008/checked") == [
        f"MYPROJECT.01_short.threads_008.checked.localhost.{part}.replay.gz" for part in parts
    ]
    assert campaign.results("01_short/threads_016") == [
        f"MYPROJECT.01_short.threads_016.localhost.{parts[0]}.replay.gz"
    ]
    checked, plain = campaign.state("01_short/threads_008/checked"), campaign.state("01_short/threads_016")
    assert (checked.variables["replay_duration"], checked.variables["threads"]) == ("2", "008")
    assert plain.variables["bottleneck"] == "016"
    assert "fan_out has no effect: there is one issuing loop" in plain.notes
    leaf = campaign.top / "01_short/threads_008/checked"
    prepared = (leaf / "prepared").read_text().splitlines()
    assert [line.split()[:3] for line in prepared[:2]] == [[str(n), "localhost", str(devices[n])] for n in range(2)]
    assert all(line.endswith("/bursts-ultrafine.readwrite.1b.1.load.gz") for line in prepared[:2])
    assert prepared[2:] == ["sourced"]
    assert (leaf / "found").read_text().strip() == "2"
    assert not (campaign.top / "01_short/threads_016/prepared").exists()
    assert campaign.left() == []
    assert leaf_order(campaign.run().stderr) == []
