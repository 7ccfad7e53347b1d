# Reverses the order of the requests; the times stay.
# The module input_reverse is the same by another name: if both are enabled, it acts alone.

pipe_reverse_prepare() {
    ((enable_pipe_reverse && !enable_input_reverse)) || return 0
    pipe_edit reverse
}

prepare_list+=" pipe_reverse_prepare"
