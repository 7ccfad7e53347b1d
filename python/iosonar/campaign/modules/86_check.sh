# Checks drives, RAID arrays and free space before anything is changed, and again before the replay. The controller does
# it, with the limits that it gets here.

check_all() {
    ((enable_check)) || return 0
    campaign_request check "${check_temperature:-70}" "${check_wait:-600}" "${check_raid:-1}" "${check_free:-0.25}"
}

check_setup() {
    check_all
}

# Filling the devices has heated them.
check_run() {
    check_all
}

setup_list="check_setup $setup_list"
run_list="check_run $run_list"
