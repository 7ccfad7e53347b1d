# Repeats the load, to the end of the replay.

source "${base_dir}/modules/functions.sh"

pipe_repeat_prepare() {
    ((enable_pipe_repeat)) || return 0
    local name end
    for name in replay_start replay_duration replay_delta; do
        valid_number "$name" "${!name:-0}" || return 1
    done
    end=$(LC_ALL=C awk -v start="${replay_start:-0}" -v duration="${replay_duration:-0}" -v delta="${replay_delta:-0}" \
        -v last="$replay_max" 'BEGIN { printf("%.6f", (duration > 0) ? start + duration + delta * last : 0) }')
    if [[ $end == 0.000000 ]]; then
        campaign_error "pipe_repeat needs replay_duration: without it, the load would never end"
        return 1
    fi
    valid_number repeat_offset "${repeat_offset:-0}" || return 1
    # Both in one command, so that the repetition knows its end.
    input_pipe_list+=" | iosonar edit - - $(quoted "repeat offset=$(in_sectors "${repeat_offset:-0}") | select to=$end") --to classic"
}

prepare_list+=" pipe_repeat_prepare"
