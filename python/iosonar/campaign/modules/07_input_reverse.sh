# Reverses the order of the requests; the times stay.

input_reverse_prepare() {
    ((enable_input_reverse)) || return 0
    pipe_edit reverse
}

prepare_list+=" input_reverse_prepare"
