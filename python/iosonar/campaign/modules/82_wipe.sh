# Fills all devices with random data before the run, at the same time; over iSCSI if that is used.
# wipe_speed is for the estimate of --dry-run only.

source "${base_dir}/modules/functions.sh"
source "${base_dir}/modules/device_jobs.sh"

wipe_device() {
    local force=()
    ((!wipe_force)) || force=(--force)
    device_job "$1" wipe "${force[@]}"
}

wipe_setup() {
    ((enable_wipe)) || return 0
    campaign_wipe_undo=()
    device_jobs_note campaign_wipe_undo wipe || return 1
    in_parallel wipe_device
    local status=$?
    device_jobs_done campaign_wipe_undo "$status"
    return "$status"
}

wipe_cleanup() {
    ((enable_wipe)) || return 0
    undo_all campaign_wipe_undo
}

setup_list+=" wipe_setup"
cleanup_list="wipe_cleanup $cleanup_list"
