# MegaRAID controllers, by MegaCli or storcli (perccli is storcli under Dell's name).

# Prints the program of the host for these controllers. The packages install it outside of the path.
campaign_megaraid_program='
for name in MegaCli64 MegaCli megacli storcli64 storcli perccli64; do
    for directory in "" /opt/MegaRAID/MegaCli/ /opt/MegaRAID/storcli/ /opt/MegaRAID/perccli/; do
        if program=$(command -v "$directory$name"); then
            echo "$program"
            exit
        fi
    done
done
exit 1'

# Arguments: program, adapter or all, drive or all. Prints ADAPTER DRIVE wb|wt|awb of each virtual drive.
campaign_megaraid_policies='
program=$1 adapter=$2 drive=$3
case ${program##*/} in
storcli* | perccli*)
    # Rows such as "0/1 RAID1 Optl RW Yes RWBD - ON 278.875 GB name": group/drive, and the policies of the cache.
    listing=$("$program" "/c$adapter/v$drive" show) || { echo "$listing" >&2; exit 1; }
    awk "
        /^Controller = / { adapter = \$3 }
        \$1 ~ /^[0-9-]+\/[0-9]+\$/ {
            split(\$1, number, \"/\")
            policy = \$6 ~ /AWB/ ? \"awb\" : \$6 ~ /WB/ ? \"wb\" : \$6 ~ /WT/ ? \"wt\" : \"\"
            if (policy != \"\") print adapter, number[2], policy
        }" <<<"$listing"
    ;;
*)
    # Lines such as "Adapter 0-VD 1(target id: 1): Cache Policy:WriteBack, ReadAheadNone, Direct, No Write Cache if bad BBU".
    listing=$("$program" -LDGetProp -Cache "-L${drive^^}" "-a${adapter^^}" -NoLog) || { echo "$listing" >&2; exit 1; }
    sed -n -E "
        s/^Adapter ([0-9]+)-VD ([0-9]+).*Cache Policy: ?WriteBack, .*/\1 \2 wb/p
        s/^Adapter ([0-9]+)-VD ([0-9]+).*Cache Policy: ?WriteThrough, .*/\1 \2 wt/p
        s/^Adapter ([0-9]+)-VD ([0-9]+).*Cache Policy: ?Write(Back)?Force[a-z]*, .*/\1 \2 awb/p" <<<"$listing"
    ;;
esac'

# Arguments: program, adapter, drive, wb|wt|awb. Sets the policy of writing.
campaign_megaraid_set='
program=$1 adapter=$2 drive=$3 policy=$4
case ${program##*/} in
storcli* | perccli*) "$program" "/c$adapter/v$drive" set "wrcache=$policy" ;;
*)
    case $policy in
    wb) policy=WB ;;
    wt) policy=WT ;;
    awb) policy=ForcedWB ;;
    esac
    "$program" -LDSetProp "$policy" -Immediate "-L$drive" "-a$adapter" -NoLog
    ;;
esac'

# megaraid_find HOST: sets campaign_megaraid_tool to the program of HOST.
megaraid_find() {
    if ! campaign_megaraid_tool=$(on_host "$1" <<<"$campaign_megaraid_program"); then
        campaign_error "$1 has neither MegaCli nor storcli: install one of them there, or disable the module"
        return 1
    fi
}

# megaraid_write_policy HOST ADAPTER DRIVE POLICY ARRAY: sets the policy of virtual drives that have another one (ADAPTER
# and DRIVE are numbers or all), and adds the entries that restore it to ARRAY. Fails without any drive.
megaraid_write_policy() {
    local host=$1 policy=$4 listed adapter drive found
    local -n changed=$5
    listed=$(on_host "$host" "$campaign_megaraid_tool" "$2" "$3" <<<"$campaign_megaraid_policies") || {
        campaign_error "$host: ${campaign_megaraid_tool##*/} cannot list the virtual drives: see its message above"
        return 1
    }
    if [[ -z $listed ]]; then
        campaign_error "$host: ${campaign_megaraid_tool##*/} shows no virtual drive: this module needs a MegaRAID controller"
        return 1
    fi
    while read -r adapter drive found; do
        [[ $found != "$policy" ]] || continue
        undo_add "$host" "set the write policy of drive $drive on adapter $adapter to $found again" \
            "$(undo_script "$campaign_megaraid_set" "$campaign_megaraid_tool" "$adapter" "$drive" "$found")" || return 1
        changed+=("$undo_id")
        on_host "$host" "$campaign_megaraid_tool" "$adapter" "$drive" "$policy" <<<"$campaign_megaraid_set" || {
            campaign_error "$host: cannot set the write policy of drive $drive on adapter $adapter to $policy"
            return 1
        }
        printf '%s: write policy of drive %s on adapter %s: %s instead of %s\n' \
            "$host" "$drive" "$adapter" "$policy" "$found"
    done <<<"$listed"
}
