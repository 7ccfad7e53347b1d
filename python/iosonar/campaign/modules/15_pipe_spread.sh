# Spreads the positions over a larger region.

source "${base_dir}/modules/functions.sh"

pipe_spread_prepare() {
    ((enable_pipe_spread)) || return 0
    pipe_edit spread "factor=${pipe_spread_factor:-2.0}" "align=$(in_sectors "${pipe_spread_align:-8}")" \
        "offset=$(in_sectors "${pipe_spread_offset:-0}")"
}

prepare_list+=" pipe_spread_prepare"
