# Exports the devices from the host iscsi_target by iSCSI, with the target that this host has: LIO (in the kernel) or tgt.
# The name is that of the target software of 2012; confs use it.

source "${base_dir}/modules/functions.sh"
source "${base_dir}/modules/iscsi_functions.sh"

# Arguments: wanted software or nothing. Prints what is to be used, and what is not loaded or started yet.
campaign_iscsi_target_choose='
wanted=$1
case $wanted in
"" | lio)
    if modprobe --dry-run --all iscsi_target_mod target_core_iblock target_core_file 2>/dev/null; then
        # target_core_mod loads the others; target_core_user needs uio.
        for module in iscsi_target_mod target_core_iblock target_core_file target_core_pscsi target_core_user \
            target_core_mod uio; do
            [[ -e /sys/module/$module ]] || modules+=" $module"
        done
        echo "lio$modules"
        exit
    fi
    ;;&
"" | tgt)
    if command -v tgtadm tgtd >/dev/null; then
        if tgtadm --lld iscsi --mode system --op show >/dev/null 2>&1; then echo "tgt"; else echo "tgt tgtd"; fi
        exit
    fi
    ;;
esac
exit 1'

# Arguments: modules of the kernel that were not loaded, the users of others first. The targets that used them are gone; a
# module that something else uses stays.
campaign_iscsi_target_unload='
# Fails while there are targets.
case " $* " in
*" iscsi_target_mod "*) rmdir /sys/kernel/config/target/iscsi 2>/dev/null ;;
esac
for module; do
    [[ ! -e /sys/module/$module ]] || rmmod "$module" 2>/dev/null
done
exit 0'

campaign_iscsi_target_load='
modprobe --all iscsi_target_mod target_core_iblock target_core_file || exit 1
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config'

# Argument: IQN. Fails if there is such a target.
campaign_iscsi_lio_absent='[[ ! -e /sys/kernel/config/target/iscsi/$1 ]]'
campaign_iscsi_tgt_absent='! tgtadm --lld iscsi --mode target --op show | awk -v iqn="$1" "\$3 == iqn { found = 1 } END { exit !found }"'

# Arguments: IQN, device, portal, serial number of the disk.
campaign_iscsi_lio_start='
iqn=$1 device=$2 portal=$3 serial=$4
core=/sys/kernel/config/target/core
iscsi=/sys/kernel/config/target/iscsi
if [[ -b $device ]]; then
    kind=iblock control="udev_path=$(readlink -f -- "$device")"
elif [[ -f $device ]]; then
    kind=fileio control="fd_dev_name=$device,fd_dev_size=$(stat --format %s -- "$device")"
else
    echo "$device is neither a block device nor a file" >&2
    exit 1
fi
# The number of the adapter is free: mkdir fails if another process takes it.
number=1000
while [[ -e $core/${kind}_$number ]]; do
    number=$((number + 1))
done
disk=$core/${kind}_$number/iosonar-$serial
mkdir -p "$disk" || exit 1
printf %s "$control" >"$disk/control" || exit 1
printf %s "$device" >"$disk/udev_path"
printf %s "$serial" >"$disk/wwn/vpd_unit_serial"
echo 1 >"$disk/enable" || { echo "LIO cannot open $device: is it in use?" >&2; exit 1; }
mkdir -p "$iscsi" && mkdir "$iscsi/$iqn" && mkdir "$iscsi/$iqn/tpgt_1" || exit 1
group=$iscsi/$iqn/tpgt_1
mkdir "$group/lun/lun_0" && ln -s "$disk" "$group/lun/lun_0/disk" || exit 1
# An address that this host does not have itself, such as one behind a translation: all of them.
mkdir "$group/np/$portal" 2>/dev/null || mkdir "$group/np/0.0.0.0:${portal##*:}" || exit 1
# Any initiator may log in, and write.
echo 0 >"$group/attrib/authentication"
echo 1 >"$group/attrib/generate_node_acls"
echo 1 >"$group/attrib/cache_dynamic_acls"
echo 0 >"$group/attrib/demo_mode_write_protect"
echo 1 >"$group/enable"'

# Arguments: IQN, device, portal, serial number. Only removes a target whose disk campaign_iscsi_lio_start made, or none yet.
campaign_iscsi_lio_stop='
iqn=$1 serial=$4
core=/sys/kernel/config/target/core
target=/sys/kernel/config/target/iscsi/$iqn
group=$target/tpgt_1
shopt -s nullglob
if [[ -d $target ]]; then
    for link in "$group"/lun/lun_*/*; do
        [[ -L $link ]] || continue
        [[ $(readlink -f -- "$link") == */iosonar-"$serial" ]] || exit 0
    done
    [[ ! -e $group/enable ]] || echo 0 >"$group/enable"
    for link in "$group"/acls/*/lun_*/* "$group"/lun/lun_*/*; do
        [[ ! -L $link ]] || rm "$link" || exit 1
    done
    for directory in "$group"/acls/*/lun_* "$group"/acls/* "$group"/lun/lun_* "$group"/np/* "$group" "$target"; do
        [[ ! -d $directory ]] || rmdir "$directory" || exit 1
    done
fi
for disk in "$core"/iblock_*/iosonar-"$serial" "$core"/fileio_*/iosonar-"$serial"; do
    rmdir "$disk" || exit 1
    rmdir "${disk%/*}" || exit 1
done
exit 0'

# Arguments: IQN, device.
campaign_iscsi_tgt_start='
iqn=$1 device=$2
number=$(tgtadm --lld iscsi --mode target --op show | sed -n "s/^Target \([0-9]*\):.*/\1/p" | sort -n | tail -n 1)
number=$((${number:-0} + 1))
tgtadm --lld iscsi --mode target --op new --tid "$number" --targetname "$iqn" &&
    tgtadm --lld iscsi --mode logicalunit --op new --tid "$number" --lun 1 --backing-store "$device" --bsoflags direct &&
    tgtadm --lld iscsi --mode target --op bind --tid "$number" --initiator-address ALL'

# Arguments: IQN, device. Only removes a target with this device or none.
campaign_iscsi_tgt_stop='
iqn=$1 device=$2
listing=$(tgtadm --lld iscsi --mode target --op show 2>/dev/null) || exit 0
number=$(awk -v iqn="$iqn" "/^Target / && \$3 == iqn { sub(\":\", \"\", \$2); print \$2 }" <<<"$listing")
[[ -n $number ]] || exit 0
others=$(awk -v iqn="$iqn" -v device="$device" "
    /^Target / { inside = \$3 == iqn }
    inside && /Backing store path:/ && \$4 != \"None\" && \$4 != device { print \$4 }" <<<"$listing")
[[ -z $others ]] || exit 0
tgtadm --lld iscsi --mode target --op delete --force --tid "$number"'

# The daemon that this module started, unless someone else uses it by now.
campaign_iscsi_tgt_end='
listing=$(tgtadm --lld iscsi --mode target --op show 2>/dev/null) || exit 0
[[ -z $listing ]] || exit 0
if systemctl --quiet is-active tgt 2>/dev/null; then
    systemctl stop tgt
else
    tgtadm --mode system --op delete
fi
exit 0'

campaign_iscsi_tgt_begin='
systemctl start tgt 2>/dev/null || tgtd || exit 1
for ((i = 0; i < 50; i++)); do
    tgtadm --lld iscsi --mode system --op show >/dev/null 2>&1 && exit
    sleep 0.1
done
echo "the daemon tgtd does not answer: see its log" >&2
exit 1'

# Sets campaign_iscsi_target_software_found to lio or tgt, ready to use.
iscsi_target_software_prepare() {
    local found modules
    if ! found=$(on_host "$iscsi_target" "${iscsi_target_software-}" <<<"$campaign_iscsi_target_choose"); then
        campaign_error "$iscsi_target has no iSCSI target: install the kernel module iscsi_target_mod (LIO) or the package tgt"
        return 1
    fi
    read -r campaign_iscsi_target_software_found modules <<<"$found"
    [[ -n $modules ]] || return 0
    if [[ $campaign_iscsi_target_software_found == lio ]]; then
        # shellcheck disable=SC2086 # Names of modules, from the list in campaign_iscsi_target_choose.
        undo_add "$iscsi_target" "unload the kernel modules $modules" \
            "$(undo_script "$campaign_iscsi_target_unload" $modules)" || return 1
        campaign_iscsi_target_undo+=("$undo_id")
        on_host "$iscsi_target" <<<"$campaign_iscsi_target_load"
    else
        undo_add "$iscsi_target" "stop the daemon tgtd" "$(undo_script "$campaign_iscsi_tgt_end")" || return 1
        campaign_iscsi_target_undo+=("$undo_id")
        on_host "$iscsi_target" <<<"$campaign_iscsi_tgt_begin"
    fi || {
        campaign_error "$iscsi_target: cannot start the iSCSI target $campaign_iscsi_target_software_found: see the message above"
        return 1
    }
}

iscsi_target_iet_prepare() {
    ((enable_iscsi_target_iet)) || return 0
    local i device iqn portal serial start stop absent
    local -A exported=()
    campaign_iscsi_target_undo=()
    iscsi_target_valid || return 1
    portal=$(iscsi_address "$iscsi_target" "${iscsi_ip:-$iscsi_target}") || return 1
    iscsi_target_software_prepare || return 1
    start=campaign_iscsi_${campaign_iscsi_target_software_found}_start stop=campaign_iscsi_${campaign_iscsi_target_software_found}_stop
    absent=campaign_iscsi_${campaign_iscsi_target_software_found}_absent
    for ((i = 0; i <= replay_max; i++)); do
        device=${replay_device[i]}
        iqn=$(iscsi_iqn "$device") || return 1
        if [[ ${exported[$iqn]-} == "$device" ]]; then
            campaign_warn "several hosts replay on $device of $iscsi_target: use host:device pairs to give each its own"
            continue
        elif [[ -n ${exported[$iqn]-} ]]; then
            campaign_error "$device and ${exported[$iqn]} have the same iSCSI name, $iqn: use other names, such as by-path"
            return 1
        fi
        exported[$iqn]=$device
        refuse_users "$iscsi_target" "$device" iscsi_target_iet || return 1
        if ! on_host "$iscsi_target" "$iqn" <<<"${!absent}"; then
            campaign_error "$iscsi_target: the iSCSI target $iqn exists already: stop it, or set another iqn_base"
            return 1
        fi
        serial=$(sha256sum <<<"$iqn")
        serial=${serial:0:32}
        undo_add "$iscsi_target" "stop the iSCSI target $iqn" \
            "$(undo_script "${!stop}" "$iqn" "$device" "$portal" "$serial")" || return 1
        campaign_iscsi_target_undo+=("$undo_id")
        on_host "$iscsi_target" "$iqn" "$device" "$portal" "$serial" <<<"${!start}" || {
            campaign_error "$iscsi_target: cannot export $device as $iqn: see the message above"
            return 1
        }
        printf '%s: %s is the iSCSI target %s (%s)\n' "$iscsi_target" "$device" "$iqn" "$campaign_iscsi_target_software_found"
    done
    target_hosts_unique=$iscsi_target
    if [[ " $all_hosts_unique " != *" $iscsi_target "* ]]; then
        all_hosts_unique+=" $iscsi_target"
    fi
}

iscsi_target_iet_finish() {
    ((enable_iscsi_target_iet)) || return 0
    undo_all campaign_iscsi_target_undo
}

prepare_list+=" iscsi_target_iet_prepare"
finish_list="iscsi_target_iet_finish $finish_list"
