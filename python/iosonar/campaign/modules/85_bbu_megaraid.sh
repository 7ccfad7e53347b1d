# Sets write-back or write-through on all virtual drives of MegaRAID controllers.

source "${base_dir}/modules/functions.sh"
source "${base_dir}/modules/megaraid_functions.sh"

bbu_megaraid_setup() {
    ((enable_bbu_megaraid)) || return 0
    local host policy
    campaign_bbu_megaraid_undo=()
    case ${bbu_cache:-1} in
        0) policy=wt ;;
        1) policy=wb ;;
        *)
            campaign_error "bbu_cache=\"$bbu_cache\" is neither 0 (write-through) nor 1 (write-back)"
            return 1
            ;;
    esac
    for host in ${target_hosts_unique:-$replay_hosts_unique}; do
        megaraid_find "$host" || return 1
        # campaign_megaraid_policies takes "all" from storcli and MegaCli alike.
        megaraid_write_policy "$host" all all "$policy" campaign_bbu_megaraid_undo || return 1
    done
}

bbu_megaraid_cleanup() {
    ((enable_bbu_megaraid)) || return 0
    undo_all campaign_bbu_megaraid_undo
}

setup_list+=" bbu_megaraid_setup"
cleanup_list="bbu_megaraid_cleanup $cleanup_list"
