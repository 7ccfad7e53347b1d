# Functions that several modules share. A module sources this file; it changes nothing by itself.

# on_host HOST [ARGUMENT...]: runs the bash script of the standard input on HOST, with these arguments. The shell that ssh
# starts there may be another one, so that only this line is written for it.
on_host() {
    local host=$1 arguments=""
    shift
    (($# == 0)) || printf -v arguments ' %q' "$@"
    remote "$host" "PATH=\$PATH:/usr/sbin:/sbin; export PATH; exec bash -c \"\$(cat)\" campaign$arguments"
}

# undo_script SCRIPT [ARGUMENT...]: prints SCRIPT with its arguments set, as the text of an entry of the undo journal.
undo_script() {
    local script=$1
    shift
    printf 'set --'
    (($# == 0)) || printf ' %q' "$@"
    printf '\nPATH=$PATH:/usr/sbin:/sbin\n%s\n' "$script"
}

# undo_all NAME: undoes the entries of the array NAME, last one first, and empties it. Goes on after a failure.
undo_all() {
    local -n undo_entries=$1
    local entry_number status=0
    for ((entry_number = ${#undo_entries[@]} - 1; entry_number >= 0; entry_number--)); do
        undo_now "${undo_entries[entry_number]}" || status=1
    done
    undo_entries=()
    return "$status"
}

# undo_forget NAME: removes the entries of the array NAME from the journal without undoing them, and empties it.
undo_forget() {
    local -n undo_entries=$1
    local entry
    for entry in "${undo_entries[@]}"; do
        undo_done "$entry"
    done
    undo_entries=()
}

# storage_host I: prints the host whose disks instance I uses: the iSCSI target's, or that of the replay.
storage_host() {
    if ((enable_iscsi_target_iet)); then
        printf '%s\n' "$iscsi_target"
    else
        printf '%s\n' "${replay_host[$1]}"
    fi
}

# iscsi_target_valid: fails unless iscsi_target is the name of one host.
iscsi_target_valid() {
    if [[ -z ${iscsi_target-} || $iscsi_target == *[[:space:]]* ]]; then
        campaign_error "iscsi_target=\"${iscsi_target-}\" is not the name of one host: set it in a conf"
        return 1
    fi
}

# no_iqn_devices MODULE: fails if the devices are IQNs, which become disks later than MODULE needs them.
no_iqn_devices() {
    ((enable_iscsi_initiator && !enable_iscsi_target_iet)) || return 0
    campaign_error "$1 needs block devices, but with iscsi_initiator alone the devices are IQNs: disable one of them"
    return 1
}

# refuse_users HOST DEVICE WHY: fails if the device is in use, as `iosonar device inspect` sees it. Sets campaign_inspected.
refuse_users() {
    local host=$1 device=$2 why=$3 users
    if ! campaign_inspected=$(iosonar_on "$host" device inspect --json --samples 0 "$device" </dev/null); then
        campaign_error "$host: cannot inspect $device: $why needs an accessible device"
        return 1
    fi
    # Strings of JSON have no line breaks, so that a list without elements is the only one on a single line.
    if [[ $campaign_inspected != *'"users": [],'* ]]; then
        users=${campaign_inspected#*'"users": ['} users=${users%%$'\n  ]'*}
        users=$(tr -s '[:space:]' ' ' <<<"$users")
        campaign_error "$host: $device is in use:${users% }: $why needs an unused device"
        return 1
    fi
}

# refuse_content HOST DEVICE WHY: fails if the device is in use or has a file system, LVM, RAID or partitions.
refuse_content() {
    local host=$1 device=$2 signatures
    refuse_users "$@" || return 1
    if [[ $campaign_inspected != *'"signatures": [],'* ]]; then
        signatures=${campaign_inspected#*'"signatures": '} signatures=${signatures%%'"signatures_unknown"'*}
        signatures=$(tr -s '[:space:]' ' ' <<<"${signatures%,*}")
        campaign_error "$host: $device has content: ${signatures% }: use another device, or erase it by wipefs --all"
        return 1
    fi
}

# valid_number NAME VALUE: fails unless VALUE is a decimal number that is not negative.
valid_number() {
    if [[ ! $2 =~ ^[0-9]+(\.[0-9]*)?$|^\.[0-9]+$ ]]; then
        campaign_error "$1=\"$2\" is not a number"
        return 1
    fi
}

# in_sectors VALUE: prints VALUE with the unit of sectors, in which variables of confs count, unless it has a unit.
in_sectors() {
    [[ $1 =~ ^[0-9]+$ ]] && echo "${1}s" || echo "$1"
}

# whole_number NAME VALUE: prints VALUE in decimal: 008 is 8, not octal.
whole_number() {
    if [[ ! $2 =~ ^[0-9]+$ ]]; then
        campaign_error "$1=\"$2\" is not a whole number"
        return 1
    fi
    printf '%s\n' "$((10#$2))"
}
