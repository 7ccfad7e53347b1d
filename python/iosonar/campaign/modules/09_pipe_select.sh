# Keeps the requests of a window of time.

pipe_select_prepare() {
    ((enable_pipe_select)) || return 0
    pipe_edit select "from=${pipe_select_from:-0}" "to=${pipe_select_to:-300}"
}

prepare_list+=" pipe_select_prepare"
