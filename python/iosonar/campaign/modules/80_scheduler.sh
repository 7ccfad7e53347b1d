# Sets the I/O scheduler of all disks below the devices, and restores it.

source "${base_dir}/modules/functions.sh"

# Arguments: devices. Prints NAME ACTIVE SEQUENCE AVAILABLE... of each disk below them: of members of LVM and RAID, and of
# the disk of a partition. The sequence number tells a disk from another one that gets its name later. BOOT is that of
# this boot.
campaign_scheduler_list='
shopt -s nullglob
declare -A seen
visit() {
    local name=$1 directory below
    directory=$(readlink -f "/sys/class/block/$name") || return
    [[ ! -e $directory/partition ]] || directory=${directory%/*}
    name=${directory##*/}
    [[ -z ${seen[$name]-} ]] || return
    seen[$name]=1
    for below in "$directory"/slaves/*; do
        visit "${below##*/}"
    done
    [[ -r $directory/queue/scheduler ]] || return
    local listed active
    listed=$(<"$directory/queue/scheduler")
    active=${listed#*\[}
    [[ $listed == *\[* ]] && active=${active%%\]*} || active=-
    echo "$name $active $(cat "$directory/diskseq" 2>/dev/null || echo -) ${listed//[\[\]]/}"
}
for device; do
    path=$(readlink -f -- "$device")
    # A file has the disks of its file system, which are not the matter of this module.
    [[ ! -b $path ]] || visit "${path##*/}"
done
echo "BOOT $(cat /proc/sys/kernel/random/boot_id)"'

# Arguments: name, scheduler, sequence number, boot.
campaign_scheduler_set='
name=$1 scheduler=$2 sequence=$3 boot=$4
[[ $(cat /proc/sys/kernel/random/boot_id) == "$boot" ]] || exit 0
directory=/sys/class/block/$name
[[ -e $directory/queue/scheduler ]] || exit 0
[[ $(cat "$directory/diskseq" 2>/dev/null || echo -) == "$sequence" ]] || exit 0
printf %s "$scheduler" >"$directory/queue/scheduler"'

# scheduler_name WANTED AVAILABLE...: prints what WANTED is called by a kernel with these schedulers.
scheduler_name() {
    local wanted=$1 name
    shift
    local names=("$wanted")
    case $wanted in
        noop | none) names=(none noop) ;;
        deadline | mq-deadline) names=(mq-deadline deadline) ;;
        anticipatory) names=(anticipatory mq-deadline deadline) ;;
        cfq) names=(cfq bfq) ;;
    esac
    for name in "${names[@]}"; do
        if [[ " $* " == *" $name "* ]]; then
            printf '%s\n' "$name"
            return
        fi
    done
    # The kernel may load it as a module when it is set. Names of kernels without blk-mq have gone.
    case $wanted in
        noop) printf 'none\n' ;;
        deadline | anticipatory) printf 'mq-deadline\n' ;;
        cfq) printf 'bfq\n' ;;
        *) printf '%s\n' "$wanted" ;;
    esac
}

# scheduler_on HOST DEVICE...: sets the scheduler of their disks.
scheduler_on() {
    local host=$1 listed name active sequence available boot="" wanted
    shift
    listed=$(on_host "$host" "$@" <<<"$campaign_scheduler_list") || {
        campaign_error "$host: cannot read the schedulers of $*: are they block devices?"
        return 1
    }
    boot=${listed##*BOOT }
    while read -r name active sequence available; do
        [[ $name != BOOT ]] || continue
        # shellcheck disable=SC2086 # Names of schedulers.
        wanted=$(scheduler_name "$scheduler" $available)
        [[ $wanted != "$active" ]] || continue
        if [[ $active == - ]]; then
            # Such as a logical volume or a disk in memory: "none" without a choice.
            [[ $wanted == none ]] || printf '%s: %s has no scheduler\n' "$host" "$name"
            continue
        fi
        undo_add "$host" "set the scheduler of $name to $active again" \
            "$(undo_script "$campaign_scheduler_set" "$name" "$active" "$sequence" "$boot")" || return 1
        campaign_scheduler_undo+=("$undo_id")
        on_host "$host" "$name" "$wanted" "$sequence" "$boot" <<<"$campaign_scheduler_set" || {
            campaign_error "$host: cannot set the scheduler of $name to $wanted: it has $available"
            return 1
        }
        printf '%s: scheduler of %s: %s instead of %s\n' "$host" "$name" "$wanted" "$active"
    done <<<"$listed"
}

scheduler_setup() {
    ((enable_scheduler)) || return 0
    local i host devices exported
    campaign_scheduler_undo=()
    scheduler=${scheduler:-noop}
    if [[ ! $scheduler =~ ^[a-z][a-z0-9_-]*$ ]]; then
        campaign_error "scheduler=\"$scheduler\" is not a name of a scheduler: use none, mq-deadline, kyber or bfq"
        return 1
    fi
    for host in $replay_hosts_unique; do
        devices=()
        for ((i = 0; i <= replay_max; i++)); do
            [[ ${replay_host[i]} != "$host" ]] || devices+=("${replay_device[i]}")
        done
        scheduler_on "$host" "${devices[@]}" || return 1
    done
    ((enable_iscsi_target_iet)) || return 0
    exported=()
    for ((i = 0; i <= replay_max; i++)); do
        exported+=("${replay_device_orig[i]}")
    done
    scheduler_on "$iscsi_target" "${exported[@]}"
}

scheduler_cleanup() {
    ((enable_scheduler)) || return 0
    undo_all campaign_scheduler_undo
}

setup_list+=" scheduler_setup"
cleanup_list="scheduler_cleanup $cleanup_list"
