# Runs on a host of a campaign: sh DIRECTORY/host.sh VERB ARGUMENT..., where DIRECTORY is the campaign's temporary directory there.
# Needs a POSIX shell, /proc, and the coreutils. DIRECTORY has
#     files/NAME               copies of the controller's files
#     runs/NAME/               a detached command: pid, started, out, err, code
#     calls/MARK/              a command that runs now: pid
#     closing                  nothing starts any more
# A file `pid` holds the session of a command, the start time of the session's first process and the id of the host's boot.

base=${0%/*}
read -r boot </proc/sys/kernel/random/boot_id

# Sets `started` to the start time of process $1, in clock ticks since the boot; fails if it has ended.
start_of() {
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    # The second field is the name in brackets; it may contain blanks.
    # shellcheck disable=SC2086
    set -- ${line##*) }
    session=$4 started=${20}
    [ "$1" != Z ]
}

# Writes a file at once: $1 is its path, the rest its line.
write() {
    path=$1
    shift
    printf '%s\n' "$*" >"$path.part" && mv -f "$path.part" "$path"
}

# Keeps the session of this shell in the directory $1, if this shell or its parent leads it.
record() {
    start_of "$$" || return 1
    leader=$session
    case $leader in
    "$$" | "$PPID") start_of "$leader" && write "$1/pid" "$leader" "$started" "$boot" ;;
    esac
}

# Prints the processes of session $1.
members() {
    for stat in /proc/[0-9]*/stat; do
        { read -r line <"$stat"; } 2>/dev/null || continue
        # shellcheck disable=SC2086
        set -- "$1" ${line##*) }
        if [ "${5-}" = "$1" ] && [ "$2" != Z ]; then
            stat=${stat#/proc/}
            echo "${stat%/stat}"
        fi
    done
}

# Sets `leader` to the session of the command in the directory $1; fails if that session cannot be the command's.
session_of() {
    { read -r leader begun boot_then <"$1/pid"; } 2>/dev/null || return 1
    [ "$boot_then" = "$boot" ] || return 1
    # The number of a session is not used again while it has processes, so a new process with it began a new session.
    if start_of "$leader"; then [ "$started" = "$begun" ]; fi
}

# Whether process $1 is the first one of its session.
is_leader() {
    start_of "$1" && [ "$session" = "$1" ]
}

# Prints the processes of the commands in the directories that are given.
processes() {
    for each; do
        if session_of "$each"; then members "$leader"; fi
    done
}

# Ends the commands in the directories after $1: TERM, and KILL after $1 seconds.
end_all() {
    grace=$1
    shift
    [ -n "$(processes "$@")" ] || return 0
    until=$(($(date +%s) + grace)) signalled=' '
    while pids=$(processes "$@") && [ -n "$pids" ]; do
        # Each process once: a second TERM would end a replay before it has undone what it did. The first process of a
        # session waits for the others, and bash can lose an exit code if a signal ends `wait`: so it comes last.
        followers=$(for pid in $pids; do is_leader "$pid" || echo "$pid"; done)
        for pid in ${followers:-$pids}; do
            case $signalled in
            *" $pid "*) ;;
            *) kill -TERM "$pid" 2>/dev/null && signalled="$signalled$pid " ;;
            esac
        done
        if [ "$(date +%s)" -ge "$until" ]; then
            # shellcheck disable=SC2086
            kill -KILL $pids 2>/dev/null
            until=$((until + 20))
            killed=$((${killed:-0} + 1))
            if [ "$killed" -gt 2 ]; then
                # shellcheck disable=SC2086
                echo "processes do not end after KILL:" $pids >&2
                return 1
            fi
        fi
        sleep 0.1
    done
    return 0
}

# Sets `state` and `detail` of the run in the directory $1.
state_of() {
    state=ended detail=-
    if { read -r detail <"$1/code"; } 2>/dev/null; then return; fi
    state=lost detail=directory
    if ! { read -r leader begun boot_then <"$1/pid"; } 2>/dev/null; then return; fi
    if [ "$boot_then" != "$boot" ]; then
        detail=restart
    elif start_of "$leader" && [ "$started" = "$begun" ]; then
        state=running detail=-
    elif { read -r detail <"$1/code"; } 2>/dev/null; then
        # It ended since the first look.
        state=ended
    else
        detail=killed
    fi
}

# run WORD...: runs a command, and keeps its session so that it can be ended.
verb_run() {
    call=$base/calls/${mark:-$$}
    # `end` makes the directory of a command that has not begun yet, so that it never begins.
    mkdir "$call" 2>/dev/null || { [ "$verb" = shell ] && [ -d "$call" ]; } || return 69
    record "$call"
    # `end` makes `closing` before it reads the records, so one of the two sees the other.
    if [ -e "$base/closing" ]; then
        rm -rf "$call"
        return 69
    fi
    "$@"
    set -- "$?"
    rm -rf "$call"
    return "$1"
}

# script TEXT WORD...: runs a script with arguments.
verb_script() {
    verb_run sh -c "$@"
}

# shell COMMAND: runs a command line by the user's shell, as ssh does.
verb_shell() {
    verb_run "${SHELL:-sh}" -c "$1"
}

# put NAME SHA256: standard input becomes a file.
verb_put() {
    part=$base/files/.$$.part
    cat >"$part" || { rm -f "$part"; return 1; }
    sum=$(sha256sum <"$part")
    if [ "${sum%% *}" != "$2" ]; then
        rm -f "$part"
        return 65
    fi
    mv -f "$part" "$base/files/$1"
}

# link OLD NEW: another name for a file that is here already.
verb_link() {
    [ "$1" = "$2" ] || ln -f "$base/files/$1" "$base/files/$2"
}

# get PATH: prints a line with the sum and the coding, then the content.
verb_get() {
    sum=$(sha256sum <"$1") || return 1
    # The first bytes of gzip, Parquet, zstd, xz, bzip2 and lz4.
    case $(head -c 4 "$1" | od -An -tx1 | tr -d ' \n') in
    1f8b* | 50415231 | 28b52ffd | fd377a58 | 425a68* | 04224d18) coding=plain ;;
    *) coding=gzip ;;
    esac
    printf '%s %s\n' "${sum%% *}" "$coding"
    case $coding in
    plain) cat "$1" ;;
    gzip) gzip -1 -c <"$1" ;;
    esac
}

# growth PATH FROM: prints what follows that many bytes, compressed; nothing if there is no file. A replay runs beside it.
verb_growth() {
    if [ -f "$1" ]; then nice -n 19 tail -c "+$(($2 + 1))" "$1" | nice -n 19 gzip -1 -c; fi
}

# expand PATTERN: prints the paths that match, each with a NUL.
verb_expand() {
    IFS=
    # shellcheck disable=SC2086
    set -- $1
    for path; do
        if [ -e "$path" ] || [ -L "$path" ]; then printf '%s\0' "$path"; fi
    done
    return 0
}

# clock PROGRAM: prints the id of the boot, then answers each line with the clocks.
verb_clock() {
    echo "$boot"
    "$1" clock
}

# watch: prints the load and the free bytes of the temporary directory.
verb_watch() {
    read -r load line </proc/loadavg
    echo "$load $(df -Pk "$base" | tail -n 1 | { read -r _ _ _ free line; echo "$free"; })"
}

# program: prints what is needed to choose a program.
verb_program() {
    uname -m
    if path=$(command -v iosonar) && sum=$(sha256sum <"$path"); then
        printf '%s\n%s\n' "${sum%% *}" "$path"
    fi
}

# start NAME WORD...: starts a command that outlives this connection. Starting it again does nothing.
verb_start() {
    directory=$base/runs/$1
    shift
    if mkdir "$directory" 2>/dev/null; then
        # A number of the connection does not belong to the command's environment.
        unset SSH_CLIENT SSH_CONNECTION
        setsid sh "$0" detached "$directory" "$@" </dev/null >"$directory/out" 2>"$directory/err" &
    fi
    tries=0
    until [ -f "$directory/started" ]; do
        if [ ! -d "$directory" ] || [ -e "$base/closing" ]; then return 69; fi
        tries=$((tries + 1))
        if [ "$tries" -gt 200 ]; then
            cat "$directory/err" >&2
            return 1
        fi
        sleep 0.05
    done
}

# detached DIRECTORY WORD...: the first process of a run's session. It stays until the command has ended, to keep its code.
verb_detached() {
    directory=$1
    shift
    cd "$directory" && record "$directory" || return 1
    [ ! -e "$base/closing" ] || return 1
    # The command starts before the trap is set: a new process that still has the trap would ignore a signal.
    "$@" &
    command=$!
    trap 'interrupted=1' HUP INT TERM
    write "$directory/started" "$command"
    interrupted=
    wait "$command"
    code=$?
    # A signal ends `wait`, with a code of its own, before the command has ended, or after it: then some shells have
    # forgotten the command (127), and the first code was right.
    while [ -n "$interrupted" ]; do
        interrupted=
        wait "$command"
        again=$?
        [ "$again" -eq 127 ] || code=$again
    done
    write "$directory/code" "$code"
}

# poll NAME...: for each run a line with state, detail and length, then as many bytes from the end of its standard error.
verb_poll() {
    for name; do
        directory=$base/runs/$name
        state_of "$directory"
        # What is left of a lost run is ended.
        if [ "$state" = lost ] && pids=$(processes "$directory") && [ -n "$pids" ]; then
            # shellcheck disable=SC2086
            kill -TERM $pids 2>/dev/null
        fi
        size=0
        if [ -f "$directory/err" ]; then size=$(($(wc -c <"$directory/err"))); fi
        from=$((size > 8192 ? size - 8192 : 0))
        printf '%s %s %s\n' "$state" "$detail" "$((size - from))"
        if [ "$size" -gt 0 ]; then tail -c "+$((from + 1))" "$directory/err" | head -c "$((size - from))"; fi
    done
}

# end GRACE [DIRECTORY...]: ends commands, by runs/NAME or calls/MARK; without one, everything that was started from here.
verb_end() {
    grace=$1
    shift
    if [ "$#" = 0 ]; then
        : >"$base/closing"
        end_all "$grace" "$base"/runs/*/ "$base"/calls/*/
        return
    fi
    for each; do
        shift
        case $each in calls/*) mkdir "$base/$each" 2>/dev/null ;; esac
        set -- "$@" "$base/$each"
    done
    end_all "$grace" "$@"
}

verb=$1
shift
case $verb in
detached | shell | end)
    "verb_$verb" "$@"
    ;;
*)
    # The marks tell the words of the command from those of the connection, and an exit code from a broken connection.
    mark=$1
    shift
    printf '%s begins\n' "$mark"
    printf '%s begins\n' "$mark" >&2
    "verb_$verb" "$@"
    code=$?
    printf '\n%s ends %s\n' "$mark" "$code" >&2
    exit "$code"
    ;;
esac
