# The shell of a leaf. It reads commands of the controller from one pipe, and answers on another. Arguments: the file
# descriptors of both pipes, and a lock file.
#
# A message is the number of its fields, then the fields, each ended by a NUL. The commands are handled at the top level
# of this file and not in a function, so that the variables that a conf declares are global.

campaign_in=$1 campaign_out=$2 campaign_lock=$3
shift 3

# Ctrl-C ends the conf or function that runs now; this shell lives for its cleanup functions: see campaign_ended.
campaign_busy=
# File descriptors of the lock, one for each request that this process waits for.
campaign_locks=()
trap 'case $campaign_busy in 1) exit 130 ;; esac' INT

# ---------------------------------------------------------------------------------------------- messages

campaign_send() {
    builtin printf '%s\0' "$#" "$@" >&"$campaign_out"
}

# Sets campaign_message.
campaign_receive() {
    local campaign_count campaign_i
    IFS= builtin read -r -d '' -u "$campaign_in" campaign_count || return 1
    campaign_message=()
    for ((campaign_i = 0; campaign_i < campaign_count; campaign_i++)); do
        IFS= builtin read -r -d '' -u "$campaign_in" "campaign_message[campaign_i]" || return 1
    done
}

# Reading and setting variables: the commands that are allowed at any time.
campaign_access() {
    local - campaign_name=${campaign_message[1]-}
    # Variables may be unset.
    set +eu
    case ${campaign_message[0]} in
        get)
            local -n campaign_ref=$campaign_name
            campaign_send values "${campaign_ref[@]}"
            ;;
        set)
            local -n campaign_ref=$campaign_name
            # An assignment to a readonly variable would end the command loop.
            if [[ ${campaign_ref@a} == *r* ]]; then
                campaign_send done 1
            else
                campaign_ref=("${campaign_message[@]:2}")
                campaign_send done 0
            fi
            ;;
        set_scalar)
            builtin printf -v "$campaign_name" %s "${campaign_message[2]}"
            campaign_send done "$?"
            ;;
        variables)
            local campaign_names
            mapfile -t campaign_names < <(compgen -A variable | grep -v -e '^campaign_' -e '^BASH')
            campaign_send values "${campaign_names[@]}"
            ;;
        *)
            return 1
            ;;
    esac
}

# Releases the lock of a request; processes that inherited the file descriptor do not keep it.
campaign_unlock() {
    local campaign_unlocked=$1
    flock --unlock "$campaign_unlocked"
    exec {campaign_unlocked}>&-
    unset "campaign_locks[-1]"
}

# campaign_request NAME ARGS...: asks the controller for something; sets REPLY to its answer and returns its status. One
# process at a time, as subshells share the pipes.
campaign_request() {
    # Options that a conf set, such as -e and -x, are for its own commands.
    { local - && set +eux; } 2>/dev/null
    local campaign_locked campaign_status
    exec {campaign_locked}>>"$campaign_lock"
    campaign_locks+=("$campaign_locked")
    flock "$campaign_locked"
    campaign_send request "$@"
    while campaign_receive; do
        case ${campaign_message[0]} in
            return)
                campaign_status=${campaign_message[1]}
                REPLY=${campaign_message[2]-}
                campaign_unlock "$campaign_locked"
                return "$campaign_status"
                ;;
            call)
                # The function may have requests of its own.
                flock --unlock "$campaign_locked"
                "${campaign_message[@]:1}"
                campaign_status=$?
                flock "$campaign_locked"
                campaign_send done "$campaign_status"
                ;;
            *)
                campaign_access
                ;;
        esac
    done
    exit 1
}

# ---------------------------------------------------------------------------- what confs and modules may use

# One word for another shell.
quoted() {
    printf %q "$1"
}

# Printed once: as the reason of the failure or, if the function goes on, at its end.
campaign_error() {
    campaign_request error "$*"
}

campaign_warn() {
    printf 'warning: %s\n' "$*" >&2
    campaign_request note "warning: $*"
}

campaign_note() {
    printf '%s\n' "$*" >&2
    campaign_request note "$*"
}

check_installed() {
    local program IFS=$' \t\n'
    for program in $1; do
        type -P -- "$program" >/dev/null || {
            campaign_error "the program $program is not installed here: install it"
            return 1
        }
    done
}

check_installed_on() {
    local host=$1 program status IFS=$' \t\n'
    for program in $2; do
        remote "$host" "PATH=\$PATH:/usr/sbin:/sbin command -v $(quoted "$program")" >/dev/null </dev/null
        status=$?
        ((status)) || continue
        # 255: the host was not reached.
        ((status == 255)) || campaign_error "the program $program is not installed on $host: install it there"
        return 1
    done
}

# source_config NAME: the file NAME.conf here or in one of 20 parents.
source_config() {
    local campaign_directory=$PWD campaign_i
    for ((campaign_i = 0; campaign_i <= 20; campaign_i++)); do
        if [[ -r $campaign_directory/$1.conf ]]; then
            source "$campaign_directory/$1.conf"
            return
        fi
        [[ $campaign_directory == / ]] && break
        campaign_directory=$(cd -- "$campaign_directory/.." && pwd)
    done
    campaign_error "no $1.conf in $PWD or its parents"
    return 1
}

# remote HOST COMMAND...: as ssh does, the words are joined by spaces, for the shell of the host.
remote() {
    local campaign_host=$1 campaign_words campaign_quote="'\\''" IFS=$' \t\n'
    shift
    # As ssh, if the host is not reached.
    campaign_request remote "$campaign_host" || return 255
    # The beginning of the command line for the host, then the words to which it is appended.
    mapfile -t campaign_words <<<"$REPLY"
    local campaign_command=$*
    "${campaign_words[@]:1}" "${campaign_words[0]}'${campaign_command//\'/$campaign_quote}'"
    local campaign_status=$?
    # ssh has this code for its own errors: then the leaf says that the host is unreachable.
    ((campaign_status != 255)) || campaign_request reachable "$campaign_host"
    return "$campaign_status"
}

remote_all() {
    local campaign_each campaign_hosts=$1 IFS=$' \t\n'
    shift
    for campaign_each in $campaign_hosts; do
        remote "$campaign_each" "$@" || return 1
    done
}

remote_all_noreturn() {
    local campaign_each campaign_hosts=$1 IFS=$' \t\n'
    shift
    for campaign_each in $campaign_hosts; do
        remote "$campaign_each" "$@"
    done
    return 0
}

# iosonar_on HOST ARGS...: the iosonar program on that host.
iosonar_on() {
    local campaign_host=$1
    shift
    campaign_request program "$campaign_host" || return 1
    remote "$campaign_host" "$(printf '%q ' "$REPLY" "$@")"
}

# undo_add HOST WHAT COMMAND: notes how to undo something, before it is done. Sets undo_id.
undo_add() {
    campaign_request undo_add "$@" || return 1
    undo_id=$REPLY
}

# undo_now ID: undoes it.
undo_now() {
    campaign_request undo_now "$1"
}

# undo_done ID: it has been undone.
undo_done() {
    campaign_request undo_done "$1"
}

# in_parallel FUNCTION: FUNCTION i for each instance i, at the same time.
in_parallel() {
    local campaign_i campaign_pids=() campaign_pid campaign_status=0
    for ((campaign_i = 0; campaign_i < replay_count; campaign_i++)); do
        "$1" "$campaign_i" </dev/null &
        campaign_pids+=($!)
    done
    for campaign_pid in "${campaign_pids[@]}"; do
        wait "$campaign_pid" || campaign_status=1
    done
    return $campaign_status
}

on_all_devices() {
    in_parallel "$@"
}

# pipe_edit TRANSFORM NAME=VALUE...: a transform of `iosonar edit` in the pipe that each load goes through.
pipe_edit() {
    local campaign_transform=$1 campaign_each
    shift
    for campaign_each; do
        if [[ ! $campaign_each =~ ^[a-z]+=[A-Za-z0-9.+-]+$ ]]; then
            campaign_error "$campaign_transform: $campaign_each: a number or a word is expected"
            return 1
        fi
        campaign_transform+=" $campaign_each"
    done
    input_pipe_list+=" | iosonar edit - - $(quoted "$campaign_transform") --to classic"
}

devices_prepare() {
    campaign_request devices_prepare
}

# campaign_filter SOURCE TARGET: sends a load through the filters, as blkreplay's text.
campaign_filter() {
    (
        # What `convert` says about the format is of interest only if it fails.
        eval "iosonar convert \"\$1\" - --to classic 2>\"\$2.said\" $input_pipe_list |
            iosonar convert - \"\$2\" 2>>\"\$2.said\"
            statuses=(\"\${PIPESTATUS[@]}\")"
        last=$((${#statuses[@]} - 1))
        for i in "${!statuses[@]}"; do
            # 141: the next filter needed no more of the load, as that of pipe_select.
            ((statuses[i] == 0 || statuses[i] == 141 && i < last)) && continue
            cat "$2.said" >&2
            exit 1
        done
    )
}

# campaign_result SOURCE TARGET: writes a result as blkreplay's text, through output_pipe_list.
campaign_result() {
    local campaign_said
    # What `convert` says about the format is of interest only if it fails.
    campaign_said=$(
        set -o pipefail
        eval "iosonar convert \"\$1\" - --to classic $output_pipe_list | gzip >|\"\$2\"" 2>&1
    ) || {
        printf '%s\n' "$campaign_said" >&2
        return 1
    }
}

# ---------------------------------------------------------------------------------------------- the loop

prepare_list="" setup_list="" run_list="" cleanup_list="" finish_list=""
input_pipe_list="" output_pipe_list=""
replay_host=() replay_device=() replay_device_orig=() input_file=() output_file=()
replay_count=0 replay_max=-1 replay_hosts_unique="" target_hosts_unique="" all_hosts_unique=""

campaign_directory=$PWD

# All commands but `source`.
campaign_handle() {
    case ${campaign_message[0]} in
        call)
            builtin cd -- "$campaign_directory"
            case $campaign_options in *x*) set -x ;; esac
            campaign_busy=1
            "${campaign_message[@]:1}"
            campaign_status=$?
            campaign_busy=
            campaign_quiet
            campaign_send done "$campaign_status"
            ;;
        protect)
            # Ctrl-C, which the terminal sends to all processes, must not cut cleanup short.
            trap '' INT
            campaign_send done 0
            ;;
        cd)
            builtin cd -- "${campaign_message[1]}"
            campaign_status=$?
            campaign_directory=$PWD
            campaign_send done "$campaign_status"
            ;;
        *)
            campaign_access
            ;;
    esac
}

# Keeps the options of the shell, and ends the trace that `set -x` began.
campaign_quiet() {
    { campaign_options=$- && set +x; } 2>/dev/null
}

# After `exit` in a conf or in a function of a module, or a failure after `set -e`: functions for cleanup can be called.
campaign_ended() {
    campaign_status=$?
    trap '' INT
    # The controller may have been killed.
    trap : PIPE
    set +eux
    campaign_options= campaign_busy=
    # An interrupt may have ended a request, whose lock the cleanup functions need.
    while ((${#campaign_locks[@]})); do
        campaign_unlock "${campaign_locks[-1]}"
    done
    campaign_send ended "$campaign_status"
    while campaign_receive; do
        campaign_handle
    done
    campaign_end_jobs
}

# Ends what a conf or a function left in the background.
campaign_end_jobs() {
    local campaign_jobs
    mapfile -t campaign_jobs < <(jobs -p)
    if ((${#campaign_jobs[@]})); then
        kill -TERM "${campaign_jobs[@]}" 2>/dev/null
    fi
}

trap campaign_ended EXIT
campaign_quiet
while campaign_receive; do
    if [[ ${campaign_message[0]} == source ]]; then
        builtin cd -- "$campaign_directory"
        # With the options of the shell as they are: a conf may change them.
        case $campaign_options in *x*) set -x ;; esac
        campaign_busy=1
        builtin source "${campaign_message[1]}"
        campaign_status=$?
        campaign_busy=
        campaign_quiet
        campaign_send done "$campaign_status"
    else
        campaign_handle
    fi
done
trap - EXIT
campaign_end_jobs
