# Multiplies the lengths of requests, and keeps them within bounds.

source "${base_dir}/modules/functions.sh"

pipe_resize_prepare() {
    ((enable_pipe_resize)) || return 0
    pipe_edit resize "factor=${pipe_resize_factor:-2.0}" "min=$(in_sectors "${pipe_resize_min:-0}")" \
        "max=$(in_sectors "${pipe_resize_max:-65536}")"
}

prepare_list+=" pipe_resize_prepare"
