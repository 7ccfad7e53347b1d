# Replaces reads with writes, or the other way round.

pipe_subst_prepare() {
    ((enable_pipe_subst)) || return 0
    pipe_edit subst "from=${pipe_subst_from:-R}" "to=${pipe_subst_to:-W}"
}

prepare_list+=" pipe_subst_prepare"
