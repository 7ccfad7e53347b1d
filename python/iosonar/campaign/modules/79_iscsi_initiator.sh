# Logs in to the iSCSI targets, and replays on the disks that they give.

source "${base_dir}/modules/functions.sh"
source "${base_dir}/modules/iscsi_functions.sh"

# No arguments. Starts iscsid if it does not run, and says so: its end is an entry of the undo journal.
campaign_iscsi_initiator_begin='
systemctl start iscsid 2>/dev/null || iscsid || exit 1
for ((i = 0; i < 50; i++)); do
    pgrep -x iscsid >/dev/null && exit
    sleep 0.1
done
exit 1'

# Ends iscsid, unless sessions need it.
campaign_iscsi_initiator_end='
shopt -s nullglob
sessions=(/sys/class/iscsi_session/session*)
[[ ${#sessions[@]} == 0 ]] || exit 0
if systemctl --quiet is-active iscsid 2>/dev/null; then
    systemctl stop iscsid
else
    iscsiadm -k 0 >/dev/null 2>&1
fi
exit 0'

# Argument: modules of the kernel that were not loaded.
campaign_iscsi_initiator_unload='
for module in iscsi_tcp libiscsi_tcp libiscsi scsi_transport_iscsi; do
    case " $* " in
    *" $module "*) [[ ! -e /sys/module/$module ]] || modprobe --remove --quiet "$module" ;;
    esac
done
exit 0'

# Arguments: address:port, IQN. Prints the address:port,group at which the target offers the IQN.
campaign_iscsi_initiator_discover='
portal=$1 iqn=$2
offers=$(iscsiadm --mode discovery --type sendtargets --portal "$portal" --op nonpersistent) || {
    echo "no iSCSI target answers at $portal"
    exit 1
}
found=$(awk -v iqn="$iqn" "\$2 == iqn { print \$1 }" <<<"$offers")
if [[ -z $found ]]; then
    echo "the iSCSI target at $portal does not offer $iqn, but:" $(awk "{ print \$2 }" <<<"$offers" | sort -u)
    exit 1
fi
grep -m 1 -F -e "$portal," <<<"$found" || head -n 1 <<<"$found"'

# Arguments: IQN, address:port,group. Prints what is there already: nothing, record, or session.
campaign_iscsi_initiator_state='
iqn=$1 portal=$2
if iscsiadm --mode session 2>/dev/null | awk -v iqn="$iqn" -v portal="$portal" \
    "\$3 == portal && \$4 == iqn { found = 1 } END { exit !found }"; then
    echo session
elif iscsiadm --mode node 2>/dev/null | grep -q -x -F -e "$portal $iqn"; then
    echo record
fi
exit 0'

# Arguments: IQN, address:port,group, record or nothing.
campaign_iscsi_initiator_login='
iqn=$1 portal=$2 state=$3
if [[ $state != record ]]; then
    iscsiadm --mode node --op new --targetname "$iqn" --portal "$portal" >/dev/null || exit 1
fi
iscsiadm --mode node --targetname "$iqn" --portal "${portal%,*}" --login'

# Arguments as above. A session or record that is gone is a success.
campaign_iscsi_initiator_logout='
iqn=$1 portal=$2 state=$3
if iscsiadm --mode session 2>/dev/null | awk -v iqn="$iqn" -v portal="$portal" \
    "\$3 == portal && \$4 == iqn { found = 1 } END { exit !found }"; then
    iscsiadm --mode node --targetname "$iqn" --portal "${portal%,*}" --logout || exit 1
fi
if [[ $state != record ]] && iscsiadm --mode node 2>/dev/null | grep -q -x -F -e "$portal $iqn"; then
    iscsiadm --mode node --targetname "$iqn" --portal "${portal%,*}" --op delete || exit 1
fi
exit 0'

# Arguments: IQN, address:port, seconds. Prints the name of the disk.
campaign_iscsi_initiator_wait='
iqn=$1 portal=$2 limit=$3
shopt -s nullglob
end=$((SECONDS + limit))
while :; do
    name=/dev/disk/by-path/ip-$portal-iscsi-$iqn-lun
    if [[ -b $name-0 ]]; then
        echo "$name-0"
        exit
    fi
    disks=()
    for disk in "$name"-*; do
        [[ $disk == *-part* || ! -b $disk ]] || disks+=("$disk")
    done
    if ((${#disks[@]} == 1)); then
        echo "${disks[0]}"
        exit
    fi
    ((SECONDS < end)) || break
    sleep 0.2
done
if ((${#disks[@]})); then
    echo "$iqn has ${#disks[@]} disks and none is number 0: replay on one of ${disks[*]} without iscsi_initiator"
else
    echo "no disk $name-0 appeared within $limit s: see dmesg there; a longer limit is iscsi_wait"
fi
exit 1'

# iscsi_initiator_start HOST: the programs, modules and the daemon of HOST.
iscsi_initiator_start() {
    local host=$1 modules
    check_installed_on "$host" "iscsiadm iscsid" || return 1
    modules=$(on_host "$host" <<'SCRIPT'
for module in scsi_transport_iscsi libiscsi libiscsi_tcp iscsi_tcp; do
    [[ -e /sys/module/$module ]] || echo "$module"
done
SCRIPT
    )
    if [[ -n $modules ]]; then
        # shellcheck disable=SC2086 # Names of modules, from the list above.
        undo_add "$host" "unload the kernel module iscsi_tcp" \
            "$(undo_script "$campaign_iscsi_initiator_unload" $modules)" || return 1
        campaign_iscsi_initiator_undo+=("$undo_id")
        on_host "$host" <<<'modprobe iscsi_tcp' || {
            campaign_error "$host: cannot load the kernel module iscsi_tcp: use a kernel that has it"
            return 1
        }
    fi
    if ! on_host "$host" <<<'pgrep -x iscsid >/dev/null'; then
        undo_add "$host" "stop the daemon iscsid" "$(undo_script "$campaign_iscsi_initiator_end")" || return 1
        campaign_iscsi_initiator_undo+=("$undo_id")
        on_host "$host" <<<"$campaign_iscsi_initiator_begin" || {
            campaign_error "$host: cannot start the daemon iscsid: see its log there"
            return 1
        }
    fi
}

# iscsi_initiator_connect I: logs instance I in, and sets its device.
iscsi_initiator_connect() {
    local i=$1 host=${replay_host[$1]} iqn portal found state disk
    if ((enable_iscsi_target_iet)); then
        iqn=$(iscsi_iqn "${replay_device[i]}") || return 1
    else
        iqn=${replay_device[i]}
    fi
    portal=$(iscsi_address "$host" "$campaign_iscsi_initiator_ip") || return 1
    if ! found=$(on_host "$host" "$portal" "$iqn" <<<"$campaign_iscsi_initiator_discover"); then
        campaign_error "$host: ${found:-the discovery of iSCSI targets at $portal failed}: check iscsi_ip, iscsi_target and the device"
        return 1
    fi
    state=$(on_host "$host" "$iqn" "$found" <<<"$campaign_iscsi_initiator_state") || return 1
    if [[ $state == session ]]; then
        campaign_note "$host: a session with $iqn exists already; it is used and stays"
    else
        undo_add "$host" "log out from $iqn at ${found%,*}" \
            "$(undo_script "$campaign_iscsi_initiator_logout" "$iqn" "$found" "$state")" || return 1
        campaign_iscsi_initiator_undo+=("$undo_id")
        on_host "$host" "$iqn" "$found" "$state" <<<"$campaign_iscsi_initiator_login" || {
            campaign_error "$host: cannot log in to $iqn at ${found%,*}: see the message of iscsiadm above"
            return 1
        }
    fi
    if ! disk=$(on_host "$host" "$iqn" "${found%,*}" "$campaign_iscsi_initiator_limit" <<<"$campaign_iscsi_initiator_wait"); then
        campaign_error "$host: ${disk:-cannot wait for the disk of $iqn}"
        return 1
    fi
    printf '%s: %s is %s\n' "$host" "$iqn" "$disk"
    # For other modules.
    iscsi_targets[i]=$iqn
    replay_device[i]=$disk
}

iscsi_initiator_prepare() {
    ((enable_iscsi_initiator)) || return 0
    local i host
    campaign_iscsi_initiator_undo=() iscsi_targets=()
    campaign_iscsi_initiator_ip=${iscsi_ip:-${iscsi_target-}}
    if [[ -z $campaign_iscsi_initiator_ip ]]; then
        campaign_error "iscsi_initiator: neither iscsi_target nor iscsi_ip names the target: set one in a conf"
        return 1
    fi
    campaign_iscsi_initiator_limit=$(whole_number iscsi_wait "${iscsi_wait:-30}") || return 1
    for host in $replay_hosts_unique; do
        iscsi_initiator_start "$host" || return 1
    done
    for ((i = 0; i <= replay_max; i++)); do
        iscsi_initiator_connect "$i" || return 1
    done
}

iscsi_initiator_finish() {
    ((enable_iscsi_initiator)) || return 0
    undo_all campaign_iscsi_initiator_undo
}

prepare_list+=" iscsi_initiator_prepare"
finish_list="iscsi_initiator_finish $finish_list"
