# Assigns the CacheCade drive (SSDs) of a MegaRAID controller to the data drive, or removes it from it.

source "${base_dir}/modules/functions.sh"
source "${base_dir}/modules/megaraid_functions.sh"

# Arguments: program, adapter, drive, 1 or 0.
campaign_cachecade_assign='
program=$1 adapter=$2 drive=$3 on=$4
case ${program##*/} in
storcli* | perccli*)
    [[ $on == 1 ]] && state=on || state=off
    "$program" "/c$adapter/v$drive" set "ssdcaching=$state"
    ;;
*)
    [[ $on == 1 ]] && what=-assign || what=-remove
    "$program" -Cachecade "$what" "-L$drive" "-a$adapter" -NoLog
    ;;
esac'

# Arguments: program, adapter, drive. Prints 1 if the drive is cached by SSDs, else 0.
campaign_cachecade_state='
program=$1 adapter=$2 drive=$3
case ${program##*/} in
storcli* | perccli*)
    # A property of "show all", or the column Cac of the row: R, W or RW if it is cached, - if not.
    listing=$("$program" "/c$adapter/v$drive" show) || { echo "$listing" >&2; exit 1; }
    awk -v drive="$drive" "
        \$1 ~ /^[0-9-]+\/[0-9]+\$/ {
            split(\$1, number, \"/\")
            if (number[2] == drive) { print \$7 != \"-\"; exit }
        }" <<<"$listing"
    ;;
*)
    listing=$("$program" -LDInfo "-L$drive" "-a$adapter" -NoLog) || { echo "$listing" >&2; exit 1; }
    awk "/^Is VD Cached: *Yes/ { cached = 1 } END { print cached + 0 }" <<<"$listing"
    ;;
esac'

cachecade_prepare() {
    ((enable_cachecade)) || return 0
    local host policy="" wanted=1 found adapter data cache
    campaign_cachecade_undo=()
    adapter=$(whole_number megaraid_adaptor "${megaraid_adaptor:-0}") || return 1
    data=$(whole_number megaraid_data_target "${megaraid_data_target:-0}") || return 1
    cache=$(whole_number cachecade_target "${cachecade_target:-1}") || return 1
    case ${cachecade_mode:-2} in
        0) wanted=0 ;;
        1) policy=wt ;;
        2) policy=wb ;;
        *)
            campaign_error "cachecade_mode=\"$cachecade_mode\" is none of 0 (off), 1 (write-through) and 2 (write-back)"
            return 1
            ;;
    esac
    ((!enable_iscsi_target_iet)) || iscsi_target_valid || return 1
    local hosts=${target_hosts_unique:-$replay_hosts_unique}
    ((!enable_iscsi_target_iet)) || hosts=$iscsi_target
    for host in $hosts; do
        megaraid_find "$host" || return 1
        found=$(on_host "$host" "$campaign_megaraid_tool" "$adapter" "$data" <<<"$campaign_cachecade_state") || {
            campaign_error "$host: ${campaign_megaraid_tool##*/} cannot show drive $data on adapter $adapter: see its message above"
            return 1
        }
        # Removing it first empties the cache, so that the run begins with a cold one.
        undo_add "$host" "$( ((found)) && echo assign || echo remove) CacheCade on drive $data of adapter $adapter again" \
            "$(undo_script "$campaign_cachecade_assign" "$campaign_megaraid_tool" "$adapter" "$data" "$found")" || return 1
        campaign_cachecade_undo+=("$undo_id")
        if ((found)); then
            on_host "$host" "$campaign_megaraid_tool" "$adapter" "$data" 0 <<<"$campaign_cachecade_assign" || {
                campaign_error "$host: cannot remove CacheCade from drive $data of adapter $adapter"
                return 1
            }
        fi
        ((wanted)) || continue
        megaraid_write_policy "$host" "$adapter" "$cache" "$policy" campaign_cachecade_undo || return 1
        on_host "$host" "$campaign_megaraid_tool" "$adapter" "$data" 1 <<<"$campaign_cachecade_assign" || {
            campaign_error "$host: cannot assign CacheCade to drive $data of adapter $adapter"
            return 1
        }
    done
}

cachecade_finish() {
    ((enable_cachecade)) || return 0
    # 1: the cache stays warm for the next run, which then has enable_cachecade=0.
    if ((enable_cachecade == 1)); then
        undo_forget campaign_cachecade_undo
    else
        undo_all campaign_cachecade_undo
    fi
}

prepare_list+=" cachecade_prepare"
finish_list="cachecade_finish $finish_list"
