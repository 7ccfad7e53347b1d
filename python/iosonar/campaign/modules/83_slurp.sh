# Reads all of all devices before the run, at the same time: read caches below are then filled as after long use.
# slurp_speed is for the estimate of --dry-run only.

source "${base_dir}/modules/functions.sh"
source "${base_dir}/modules/device_jobs.sh"

slurp_device() {
    device_job "$1" slurp
}

slurp_setup() {
    ((enable_slurp)) || return 0
    campaign_slurp_undo=()
    device_jobs_note campaign_slurp_undo slurp || return 1
    in_parallel slurp_device
    local status=$?
    device_jobs_done campaign_slurp_undo "$status"
    return "$status"
}

slurp_cleanup() {
    ((enable_slurp)) || return 0
    undo_all campaign_slurp_undo
}

setup_list+=" slurp_setup"
cleanup_list="slurp_cleanup $cleanup_list"
