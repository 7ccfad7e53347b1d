# Shifts positions slowly: by one more step after every so many requests.

source "${base_dir}/modules/functions.sh"

pipe_slip_prepare() {
    ((enable_pipe_slip)) || return 0
    pipe_edit slip "every=${pipe_slip_every:-32768}" "increase=$(in_sectors "${pipe_slip_increase:-256}")"
}

prepare_list+=" pipe_slip_prepare"
