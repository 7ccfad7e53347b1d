# Puts any shell command into the pipe that each load goes through.

pipe_cmd_prepare() {
    ((enable_pipe_cmd)) || return 0
    if [[ -z ${pipe_cmd-} ]]; then
        campaign_error "pipe_cmd is empty: set it to a shell command that reads and writes a load, such as cat"
        return 1
    fi
    # A shell of its own, so that a comment, a list or a missing quote in it does not change the rest of the pipe.
    input_pipe_list+=" | bash -c $(quoted "$pipe_cmd")"
}

prepare_list+=" pipe_cmd_prepare"
