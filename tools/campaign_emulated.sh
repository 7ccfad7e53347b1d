#!/usr/bin/env bash
# Runs a campaign with LVM, iSCSI, scheduler, wipe and graph on disks of the kernel, in an emulated machine, and checks that
# the results exist and that all is as before. tools/campaign_emulated.sh BIN [OUT]: BIN is the directory of the programs
# iosonar and vng; OUT, if given, gets the campaign. Takes ten minutes; needs neither root nor KVM.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

# ------------------------------------------------------------------------------------- in the emulated machine

# All that a campaign with these modules could leave behind.
state_of_machine() {
    lsblk --noheadings --raw --output NAME,TYPE,SIZE
    cat /sys/block/sd*/queue/scheduler
    vgs 2>&1
    pvs 2>&1
    iscsiadm --mode session 2>&1
    iscsiadm --mode node 2>&1
    find /sys/kernel/config -maxdepth 4 | sort
    lsmod | awk '{ print $1 }' | sort
    pgrep --list-name iscsid
    ls -A "$TMPDIR"
    true
}

write_confs() {
    local defaults=$1 disks=$2
    cp "$defaults"/default-{main,recreate_lvm,iscsi_target_iet,iscsi_initiator,scheduler,wipe,graph}.conf .
    cat >emulated.conf <<CONF
replay_host_list=localhost
replay_device_list="$disks"
output_label=EMULATED
replay_duration=3
start_grace=300
enable_recreate_lvm=1
lv_count=2
lv_size=24M
enable_iscsi_target_iet=1
enable_iscsi_initiator=1
iscsi_target=localhost
iscsi_ip=127.0.0.2
iscsi_wait=120
scheduler=mq-deadline
enable_wipe=1
graph_options="--dynamic --only=latency.realtime"
CONF
    echo 'threads=008' >008-threads.conf
    echo 'threads=064' >064-threads.conf
    mkdir -p emulated/008-threads emulated/064-threads
}

inside() {
    local bin=$1 out=$2 sources=$3 disks before after leaf failed=0
    export PATH="$bin:$PATH" HOME=/root MPLCONFIGDIR=/tmp/matplotlib LVM_SUPPRESS_FD_WARNINGS=1
    # The directories of this machine's /tmp are visible in the emulated one.
    export TMPDIR=/tmp/campaign-temporary
    mkdir "$TMPDIR"
    # The list of fonts takes a minute to make.
    cp -r "$HOME/.cache/matplotlib" "$MPLCONFIGDIR" 2>/dev/null || mkdir "$MPLCONFIGDIR"
    modprobe scsi_debug dev_size_mb=64 add_host=2 per_host_store=1
    modprobe --all dm_mod configfs
    mountpoint --quiet /sys/kernel/config || mount -t configfs none /sys/kernel/config
    ip address add 127.0.0.2/8 dev lo
    udevadm settle
    disks=$(lsblk --noheadings --raw --output PATH,MODEL | awk '/scsi_debug/ { printf "%s ", $1 }')
    echo "disks: $disks"

    mkdir /tmp/campaign && cd /tmp/campaign
    write_confs "$sources/python/iosonar/campaign/defaults" "$disks"
    before=$(state_of_machine)
    date
    iosonar campaign || failed=1
    date
    udevadm settle
    after=$(state_of_machine)
    if [[ $before != "$after" ]]; then
        echo "not all is as before:"
        diff <(echo "$before") <(echo "$after") || failed=1
    fi
    if [[ -n $(ls .campaign/undo) ]]; then
        echo "the undo journal has entries:" && cat .campaign/undo/* && failed=1
    fi
    for leaf in emulated/008-threads emulated/064-threads; do
        compgen -G "$leaf/*.replay.*" >/dev/null || { echo "no result in $leaf" && failed=1; }
        compgen -G "$leaf/*.png" >/dev/null || { echo "no picture in $leaf" && failed=1; }
        compgen -G "$leaf/*.report.html" >/dev/null || { echo "no page in $leaf" && failed=1; }
    done
    ls -l emulated/*
    [[ -z $out ]] || cp -r . "$out/"
    ((!failed)) && echo "campaign in the emulated machine: passed"
}

# ------------------------------------------------------------------------------------------------ on this machine

if [[ ${1-} == --inside ]]; then
    inside "${@:2}"
    exit
fi

bin=$(realpath "$1")
# vng calls the programs beside it.
PATH=$bin:$PATH
out=${2:+$(mkdir -p "$2" && realpath "$2")}
sources=$(realpath "$(dirname "$0")/..")
kernel=$("$sources/tools/system.sh" --kernel) || {
    echo "no kernel in /boot has the module iscsi_target_mod: run tools/system.sh emulated" >&2
    exit 1
}
command=$(printf '%q ' "$sources/tools/campaign_emulated.sh" --inside "$bin" "$out" "$sources")
echo "emulating a machine with $kernel; the first output comes after about half a minute"
output=$(mktemp)
trap 'rm -f "$output"' EXIT
# vng wants a terminal for its input; the exit code of the command does not come out of all its versions.
"$bin/vng" --disable-kvm --force-9p --run "$kernel" --cpus 2 --memory 2G ${out:+--rwdir="$out"} -- "$command" \
    </dev/null 2>&1 | tee "$output"
grep -q '^campaign in the emulated machine: passed' "$output"
