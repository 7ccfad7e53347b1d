# Keeps what the disks say about themselves (SMART) before and after the run, and erases SSDs before it.

source "${base_dir}/modules/functions.sh"

# Fills campaign_smartctl_host[] and campaign_smartctl_device[] with each disk once.
smartctl_disks() {
    local i host known=" "
    campaign_smartctl_host=() campaign_smartctl_device=()
    for ((i = 0; i <= replay_max; i++)); do
        host=$(storage_host "$i")
        [[ $known != *" $host:${replay_device[i]} "* ]] || continue
        known+="$host:${replay_device[i]} "
        campaign_smartctl_host+=("$host")
        campaign_smartctl_device+=("${replay_device[i]}")
    done
}

# smartctl_report WHEN: writes HOST.DEVICE.smart-WHEN.txt and .json to the directory of the leaf.
smartctl_report() {
    local when=$1 i host device stem status text json
    for i in "${!campaign_smartctl_device[@]}"; do
        host=${campaign_smartctl_host[i]} device=${campaign_smartctl_device[i]}
        stem=${device#/dev/}
        stem="$host.${stem//\//.}.smart-$when"
        text=$(on_host "$host" "$device" <<<'smartctl --xall -- "$1"')
        status=$?
        # Bits 0 to 2: wrong command line, the device cannot be opened, a command failed or a checksum is wrong.
        if ((status & 3)); then
            printf '%s\n' "$text" >&2
            campaign_error "$host: smartctl cannot read $device: see its message above; virtual devices have no SMART"
            return 1
        fi
        if ((status & 8)); then
            campaign_warn "$host: $device reports that it is failing: see $stem.txt"
        fi
        json=$(on_host "$host" "$device" <<<'smartctl --json --xall -- "$1"')
        printf '%s\n' "$text" >"$stem.txt"
        printf '%s\n' "$json" >"$stem.json"
        if [[ $json =~ \"percentage_used\":\ *([0-9]+) ]]; then
            campaign_note "$host: wear of $device $when the run: ${BASH_REMATCH[1]} %"
        fi
    done
}

# Argument: device. Ends the lock that an interrupted erase left: an ATA disk with the password of this module.
campaign_smartctl_unlock='
hdparm -I "$1" 2>/dev/null | grep -q -E "^[[:space:]]+enabled" || exit 0
hdparm --user-master u --security-disable iosonar "$1"'

# Argument: device.
campaign_smartctl_erase='
device=$1
case ${device##*/} in
nvme*)
    nvme format --ses=1 --force "$device"
    exit
    ;;
esac
state=$(hdparm -I "$device") || exit 1
case $state in
*"Security:"*) ;;
*) echo "$device has no secure erase" >&2; exit 1 ;;
esac
if ! grep -q -E "^[[:space:]]+not[[:space:]]+frozen" <<<"$state"; then
    echo "the firmware of the computer has frozen $device: suspend and resume, or plug the disk in again" >&2
    exit 1
fi
hdparm --user-master u --security-set-pass iosonar "$device" &&
    hdparm --user-master u --security-erase iosonar "$device"'

campaign_smartctl_trim='blkdiscard -- "$1"'

# smartctl_empty WHAT SCRIPT PROGRAM: erases or trims all disks, if nothing is on them.
smartctl_empty() {
    local what=$1 script=$2 i host device
    for i in "${!campaign_smartctl_device[@]}"; do
        host=${campaign_smartctl_host[i]} device=${campaign_smartctl_device[i]}
        refuse_content "$host" "$device" "$what" || return 1
        if [[ $what == enable_ssd_erase && $device != /dev/nvme* ]]; then
            check_installed_on "$host" hdparm || return 1
            undo_add "$host" "take the password of the erase off $device" \
                "$(undo_script "$campaign_smartctl_unlock" "$device")" || return 1
        elif [[ $what == enable_ssd_erase ]]; then
            check_installed_on "$host" nvme || return 1
            undo_id=""
        else
            check_installed_on "$host" blkdiscard || return 1
            undo_id=""
        fi
        local lock=$undo_id
        printf '%s: %s on %s\n' "$host" "$what" "$device"
        on_host "$host" "$device" <<<"$script" || {
            campaign_error "$host: $what failed on $device: see the message above"
            [[ -z $lock ]] || undo_now "$lock"
            return 1
        }
        [[ -z $lock ]] || undo_now "$lock" || return 1
    done
}

smartctl_prepare() {
    ((enable_smartctl)) || return 0
    local host wait
    campaign_smartctl_reported=0
    no_iqn_devices smartctl || return 1
    ((!enable_iscsi_target_iet)) || iscsi_target_valid || return 1
    wait=$(whole_number settle_wait "${settle_wait:-0}") || return 1
    smartctl_disks
    for host in $(printf '%s\n' "${campaign_smartctl_host[@]}" | sort -u); do
        check_installed_on "$host" smartctl || return 1
    done
    smartctl_report before || return 1
    campaign_smartctl_reported=1
    ((!enable_ssd_erase)) || smartctl_empty enable_ssd_erase "$campaign_smartctl_erase" || return 1
    ((!enable_ssd_trim)) || smartctl_empty enable_ssd_trim "$campaign_smartctl_trim" || return 1
    if ((wait && (enable_ssd_erase || enable_ssd_trim))); then
        printf 'waiting for %s s, as settle_wait says\n' "$wait"
        sleep "$wait"
    fi
}

smartctl_cleanup() {
    ((enable_smartctl && campaign_smartctl_reported)) || return 0
    smartctl_report after
}

prepare_list+=" smartctl_prepare"
cleanup_list+=" smartctl_cleanup"
