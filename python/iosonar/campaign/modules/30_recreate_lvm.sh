# Makes a volume group of the given devices on each host, with fresh logical volumes, and replays on these.

source "${base_dir}/modules/functions.sh"

# A volume group with this tag was made by this module. Others are never touched.
campaign_recreate_lvm_tag=iosonar_campaign

# Arguments: group, tag, devices. Removes the group and the physical volumes; succeeds if there are none.
campaign_recreate_lvm_remove='
group=$1 tag=$2
shift 2
export LVM_SUPPRESS_FD_WARNINGS=1
if tags=$(vgs --noheadings -o vg_tags "$group" 2>/dev/null); then
    case ",${tags//[[:space:]]/}," in
    *",$tag,"*) vgremove --force --yes "$group" || exit 1 ;;
    *) exit 0 ;;
    esac
fi
for device; do
    found=$(pvs --noheadings -o vg_name "$device" 2>/dev/null) || continue
    [[ -n ${found//[[:space:]]/} ]] || pvremove --yes "$device" || exit 1
done
exit 0'

# Arguments: group, tag, devices. Fails if a group of this name exists that the module may not replace.
campaign_recreate_lvm_check='
group=$1 tag=$2
shift 2
export LVM_SUPPRESS_FD_WARNINGS=1
tags=$(vgs --noheadings -o vg_tags "$group" 2>/dev/null) || exit 0
case ",${tags//[[:space:]]/}," in
*",$tag,"*) ;;
*)
    echo "a volume group $group exists that no campaign made: set vg_name to another name, or give it up to the" \
        "module by: vgchange --addtag $tag $group"
    exit 1
    ;;
esac
for device; do
    given+=" $(readlink -f -- "$device") "
done
for member in $(vgs --noheadings -o pv_name "$group"); do
    case "$given" in
    *" $(readlink -f -- "$member") "*) ;;
    *)
        echo "the volume group $group is also on $member, which is not in the list of devices: add it, or remove the" \
            "group by: vgremove $group"
        exit 1
        ;;
    esac
done'

# Arguments: group, tag, stripes or 0, stripe size in KiB, number of name:size, these, devices.
campaign_recreate_lvm_create='
group=$1 tag=$2 stripes=$3 stripe_size=$4 count=$5
shift 5
export LVM_SUPPRESS_FD_WARNINGS=1
volumes=("${@:1:count}")
shift "$count"
for device; do
    pvcreate --yes "$device" || exit 1
done
vgcreate --yes --addtag "$tag" "$group" "$@" || exit 1
striping=()
[[ $stripes == 0 ]] || striping=(--stripes "$stripes" --stripesize "$stripe_size")
for volume in "${volumes[@]}"; do
    case ${volume#*:} in
    *%*) size=(--extents "${volume#*:}") ;;
    *) size=(--size "${volume#*:}") ;;
    esac
    lvcreate --yes --wipesignatures y --zero y "${size[@]}" "${striping[@]}" --name "${volume%%:*}" "$group" || exit 1
done'

# recreate_lvm_on HOST DEVICE...: replaces the group on HOST.
recreate_lvm_on() {
    local host=$1 volumes=() stripes=0 i pair problem device
    shift
    check_installed_on "$host" "pvcreate vgcreate lvcreate vgremove pvremove" || return 1
    if ! problem=$(on_host "$host" "$vg_name" "$campaign_recreate_lvm_tag" "$@" <<<"$campaign_recreate_lvm_check"); then
        campaign_error "$host: ${problem:-cannot list the volume group $vg_name}"
        return 1
    fi
    on_host "$host" "$vg_name" "$campaign_recreate_lvm_tag" "$@" <<<"$campaign_recreate_lvm_remove" || {
        campaign_error "$host: cannot remove the volume group $vg_name of an earlier run: end what uses its volumes"
        return 1
    }
    for device; do
        refuse_content "$host" "$device" recreate_lvm || return 1
    done
    for ((i = 0; i < campaign_recreate_lvm_count; i++)); do
        volumes+=("lv-data$i:$lv_size")
        [[ -z ${lvm_drbd_meta_size-} ]] || volumes+=("lv-meta$i:$lvm_drbd_meta_size")
    done
    for pair in ${lvm_extra-}; do
        if [[ $pair != ?*:?* ]]; then
            campaign_error "lvm_extra: \"$pair\" is not NAME:SIZE"
            return 1
        fi
        volumes+=("$pair")
    done
    ((!lvm_striping || $# < 2)) || stripes=$#
    undo_add "$host" "remove the volume group $vg_name" \
        "$(undo_script "$campaign_recreate_lvm_remove" "$vg_name" "$campaign_recreate_lvm_tag" "$@")" || return 1
    campaign_recreate_lvm_undo+=("$undo_id")
    on_host "$host" "$vg_name" "$campaign_recreate_lvm_tag" "$stripes" "$campaign_recreate_lvm_stripesize" "${#volumes[@]}" \
        "${volumes[@]}" "$@" <<<"$campaign_recreate_lvm_create" || {
        campaign_error "$host: cannot create the volumes of $vg_name: see the message of LVM above"
        return 1
    }
}

recreate_lvm_prepare() {
    ((enable_recreate_lvm)) || return 0
    local i host hosts=() devices=() parallelism=${replay_max_parallelism-0} known
    campaign_recreate_lvm_undo=()
    no_iqn_devices recreate_lvm || return 1
    ((!enable_iscsi_target_iet)) || iscsi_target_valid || return 1
    campaign_recreate_lvm_count=$(whole_number lv_count "${lv_count-1}") || return 1
    campaign_recreate_lvm_stripesize=$(whole_number lvm_stripesize "${lvm_stripesize-64}") || return 1
    if ((campaign_recreate_lvm_count == 0)) || [[ -z ${lv_size-} ]]; then
        campaign_error "recreate_lvm: lv_count and lv_size must not be 0 or empty"
        return 1
    fi
    if [[ ! ${vg_name-} =~ ^[A-Za-z0-9_+.][A-Za-z0-9_+.-]*$ ]]; then
        campaign_error "vg_name=\"${vg_name-}\" is not a name of a volume group: use letters, digits and . _ + -"
        return 1
    fi
    if [[ ! ${lv_size} =~ ^[A-Za-z0-9.%]+$ ]]; then
        campaign_error "lv_size=\"$lv_size\" is not a size: write it as for lvcreate, such as 100G or 50%VG"
        return 1
    fi

    # The group is made of all devices of the list; the limit on parallel runs counts volumes.
    replay_max_parallelism=0
    devices_prepare || return 1
    for ((i = 0; i <= replay_max; i++)); do
        host=$(storage_host "$i")
        known=" ${hosts[*]} "
        [[ $known == *" $host "* ]] || hosts+=("$host")
    done
    for host in "${hosts[@]}"; do
        devices=() known=" "
        for ((i = 0; i <= replay_max; i++)); do
            [[ $(storage_host "$i") == "$host" && $known != *" ${replay_device[i]} "* ]] || continue
            devices+=("${replay_device[i]}")
            known+="${replay_device[i]} "
        done
        printf '%s: volume group %s on %s\n' "$host" "$vg_name" "${devices[*]}"
        recreate_lvm_on "$host" "${devices[@]}" || return 1
    done

    replay_host_list=$replay_hosts_unique
    replay_device_list=""
    for ((i = 0; i < campaign_recreate_lvm_count; i++)); do
        replay_device_list+=" /dev/$vg_name/lv-data$i"
    done
    # shellcheck disable=SC2034 # For other modules: the volumes, whatever iSCSI makes of the list.
    lvm_device_list=$replay_device_list
    # shellcheck disable=SC2034 # Read by devices_prepare.
    replay_max_parallelism=$parallelism
    devices_prepare
}

recreate_lvm_finish() {
    ((enable_recreate_lvm)) || return 0
    if ((lvm_leave_intact)); then
        undo_forget campaign_recreate_lvm_undo
    else
        undo_all campaign_recreate_lvm_undo
    fi
}

prepare_list+=" recreate_lvm_prepare"
finish_list="recreate_lvm_finish $finish_list"
