# Long work on all devices by `iosonar device`, which must not go on when the campaign has ended.

# Arguments: what (wipe or slurp), device. Ends the process `iosonar device WHAT ... DEVICE`, which may have outlived its
# connection, and waits for its end.
campaign_device_job_end='
what=$1 device=$2
for file in /proc/[0-9]*/cmdline; do
    words=()
    { mapfile -d "" -t words <"$file"; } 2>/dev/null
    [[ ${words[0]-} == *iosonar* && ${words[1]-} == device && ${words[2]-} == "$what" && ${words[-1]} == "$device" ]] ||
        continue
    process=${file#/proc/} process=${process%/*}
    kill -INT "$process" 2>/dev/null
    for ((i = 0; i < 100; i++)); do
        kill -0 "$process" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$process" 2>/dev/null
done
exit 0'

# device_jobs_note ARRAY WHAT: notes for each instance how its work is ended, and adds the entries to ARRAY.
device_jobs_note() {
    local -n noted=$1
    local i
    for ((i = 0; i <= replay_max; i++)); do
        undo_add "${replay_host[i]}" "end the $2 of ${replay_device[i]}" \
            "$(undo_script "$campaign_device_job_end" "$2" "${replay_device[i]}")" || return 1
        noted+=("$undo_id")
    done
}

# device_jobs_done ARRAY STATUS: forgets the entries if all the work has ended well.
device_jobs_done() {
    (($2 == 0)) || return 0
    undo_forget "$1"
}

# device_job I WHAT OPTION...: does it.
device_job() {
    local i=$1 what=$2
    shift 2
    iosonar_on "${replay_host[i]}" device "$what" "$@" "${replay_device[i]}" </dev/null || {
        campaign_error "${replay_host[i]}: $what of ${replay_device[i]} failed: see its message above"
        return 1
    }
    printf '%s: %s of %s done\n' "${replay_host[i]}" "$what" "${replay_device[i]}"
}
