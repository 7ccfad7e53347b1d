# The scripts of blkreplay's manual that stand beside campaigns, by the commands of iosonar. Each is a file of this directory
# that calls run_script with its own name. They take the arguments and the environment variables that they always took,
# and make files of the names that they always had. Like their predecessors they replace existing outputs.

set -u -o pipefail
shopt -s nullglob

run_script() {
    name=${1%.sh} name=${name%.pl}
    shift
    find_iosonar
    case $name in
        conv_blktrace_to_load) conv_blktrace "" "$@" ;;
        conv_blktrace_to_load_with_guessed_timing) conv_blktrace guessed "$@" ;;
        conv_blktrace_to_load_with_kernel_support) conv_blktrace kernel-supported "$@" ;;
        conv_windows_diskmon_to_load) conv_windows_diskmon "$@" ;;
        conv_load_to_ramped) conv_load_to_ramped "$@" ;;
        create_derived_load) create_derived_load "$@" ;;
        create_adjacent_load) create_adjacent_load "$@" ;;
        check_replay_against_blktrace) check_replay "$@" ;;
        determine-ramped-overload-iops) determine_overload "$@" ;;
        graph) graph "$@" ;;
        tree-graph) tree_graph "$@" ;;
        tree-replay) tree_replay "$@" ;;
        *) fail "there is no script of this name" ;;
    esac
}

fail() {
    printf '%s: %s\n' "$name" "$1" >&2
    exit "${2-1}"
}

usage() {
    printf 'usage: %s %s\n' "$name" "$1" >&2
    exit 2
}

# Sets `iosonar`: of the installation that this directory belongs to, else of PATH.
find_iosonar() {
    iosonar=$compat/../../../bin/iosonar
    [[ -x $iosonar ]] || iosonar=$(type -P iosonar) || fail "iosonar is not in PATH: activate its virtual environment"
}

must_read() {
    local file
    for file; do
        [[ -r $file ]] || fail "cannot read $file: no such file, or no permission"
    done
}

# A directory for temporary files, removed at the end.
make_temporary() {
    temporary=$(mktemp -d "${TMPDIR:-/tmp}/iosonar-compat.XXXXXXXX") || exit 1
    trap 'rm -rf -- "$temporary"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# The name of a file as the value of a setting in a pipeline.
setting() {
    case $1 in
        *,*) fail "$1: a name with a comma cannot be joined to others; rename it" ;;
        *\"*\'* | *\'*\"*) fail "$1: a name with both kinds of quotes cannot be joined to others; rename it" ;;
        *\"*) printf "'%s'" "$1" ;;
        *) printf '"%s"' "$1" ;;
    esac
}

# with=A,B,… of all names.
settings() {
    local each joined=""
    for each; do
        each=$(setting "$each") || exit 1
        joined+=${joined:+,}$each
    done
    printf 'with=%s' "$joined"
}

# ---------------------------------------------------------------------------------------------- conversions

# conv_blktrace KIND NAME [OUTPUT]: the files NAME.blktrace.* as a load. action_char: the event that gives the times.
# Latencies need no guess, and no patched kernel: events are matched by position, length and direction. They are the last
# column, after the time between the event and the issue to the device.
conv_blktrace() {
    local kind=$1 trace=${2-} output files action=()
    (($# == 2 || $# == 3)) || usage "NAME [OUTPUT]   (the files NAME.blktrace.*; OUTPUT - is standard output)"
    trace=${trace%.blktrace.[0-9]*}
    find_blktrace "$trace"
    case $kind in
        "") output=${3-$trace.load.gz} ;;
        *) output=${3-${trace##*/}.$kind.load.gz} ;;
    esac
    # The guess took the events C and one other, as in action_char=CQ.
    local event=${action_char-}
    [[ $kind == guessed ]] && event=${event//C/}
    case $event in
        "") ;;
        [QGID]) action=(--action "$event") ;;
        *) fail "action_char=$event: use Q, G, I or D, or leave it unset for the most frequent of them" 2 ;;
    esac
    "$iosonar" convert "${files[@]}" "$output" --to "$(form "$output")" --overwrite "${action[@]}"
}

# Sets `files`: those of all CPUs of a trace.
find_blktrace() {
    local cpu
    [[ -f $1.blktrace.0 || -f $1.blktrace.0.gz ]] ||
        fail "cannot find $1.blktrace.0: give the name of the trace without .blktrace.0"
    files=()
    for cpu in "$1".blktrace.*; do
        [[ ${cpu#"$1".blktrace.} =~ ^[0-9]+(\.gz)?$ ]] || continue
        [[ $cpu == *.gz && -f ${cpu%.gz} ]] || files+=("$cpu")
    done
}

# The format of an output: blkreplay's text, unless its name says otherwise.
form() {
    case $1 in
        *.parquet) echo parquet ;;
        *) echo classic ;;
    esac
}

conv_windows_diskmon() {
    (($# == 1)) || usage "LOG"
    must_read "$1"
    local base disk disks
    base=$(sed 's/\.log\|\.gz//gi' <<<"${1##*/}")
    disks=$("$iosonar" info --json "$1" |
        awk '/^  "devices": \[/ { on = 1 } /^  \]/ { on = 0 } on && $1 == "\"name\":" { gsub(/[",]/, "", $2); print $2 }') ||
        exit 1
    [[ -n $disks ]] || fail "$1 has no requests"
    # They are part of a pipeline and of names.
    [[ $disks =~ ^[[:alnum:]_.:[:space:]-]+$ ]] || fail "$1: the disks have no numbers: is it a log of DiskMon?"
    for disk in $disks; do
        "$iosonar" edit "$1" "./$base.disk$disk.load.gz" "remap map=$disk others=drop" --to classic --overwrite || exit 1
    done
}

conv_load_to_ramped() {
    (($# == 1 || $# == 2)) || usage "LOAD [SLOPE]   (SLOPE: requests per second, each second; 10)"
    must_read "$1"
    local slope=${2:-10} base=${1##*/} output
    [[ $slope =~ ^[0-9.]+$ ]] || fail "$slope is not a slope: use a number, such as 10" 2
    output=$(sed -E "s/\.load(\$|\..*)/.ramped-$slope.load.gz/" <<<"$base")
    [[ $output != "$base" ]] || fail "$1: the name of a load contains .load"
    "$iosonar" edit "$1" "./$output" "ramped slope=$slope" --to classic --overwrite
}

# ---------------------------------------------------------------------------------------------- derived loads

# window: the length of a snippet in seconds. split_list: the numbers of outputs.
create_derived_load() {
    (($# > 0)) || usage "LOAD..."
    must_read "$@"
    local window=${window:-300} split_list=${split_list:-001 002 004 008 016 032 064 128}
    [[ $window =~ ^[0-9]+(\.[0-9]+)?$ ]] || fail "window=$window: a number of seconds is expected" 2
    local base split count outputs snippets all=$1 names
    base=$(sed 's/\.\(load\|gz\|[0-9]\+\)//g' <<<"${1##*/}")
    for split in $split_list; do
        [[ $split =~ ^0*[1-9][0-9]*$ ]] || fail "split_list: $split is not a number of outputs" 2
    done
    make_temporary
    if (($# > 1)); then
        names=$(settings "${@:2}") || exit 1
        all=$temporary/all.load.parquet
        "$iosonar" edit "$1" "$all" "append $names" || exit 1
    fi
    # The warning has the number of snippets and the rate of each.
    "$iosonar" edit "$all" "$temporary/sorted.load.parquet" "derived snippet=$window" 2>"$temporary/messages" || {
        cat "$temporary/messages" >&2
        exit 1
    }
    grep '^note: derived:' "$temporary/messages" >&2
    snippets=$(sed -n 's/^note: derived: \([0-9,]*\) snippets\? of .*/\1/p' "$temporary/messages" | tr -d ,)
    [[ $snippets =~ ^[0-9]+$ ]] || fail "cannot find the number of snippets in the warning of the derived load"
    for split in $split_list; do
        outputs=$((10#$split))
        count=$((snippets < outputs ? snippets : outputs))
        mkdir -p "./$base.derived.split.$split" || exit 1
        deal "$all" "$base" "$split" "$outputs" "$count" || exit 1
        printf '%s.derived.split.%s: %d of %d outputs have snippets\n' "$base" "$split" "$count" "$outputs" >&2
    done
}

# deal LOAD BASE SPLIT OUTPUTS COUNT: the first COUNT of OUTPUTS outputs, as many at a time as there are processors.
deal() {
    local i most status=0
    most=$(nproc) most=$((most < 8 ? most : 8))
    for ((i = 0; i < $5; i++)); do
        if ((i >= most)); then
            wait -n || status=1
        fi
        "$iosonar" edit "$1" "$(printf './%s.derived.split.%s/%s.derived.%03d.of.%d.load.gz' "$2" "$3" "$2" "$i" "$4")" \
            "derived snippet=$window outputs=$4 output=$((i + 1))" --to classic --overwrite 2>"$temporary/messages.$i" || {
            cat "$temporary/messages.$i" >&2
            false
        } &
    done
    # Those that have not been waited for.
    for ((i = i < most ? i : most; i > 0; i--)); do
        wait -n || status=1
    done
    return $status
}

# To standard output.
create_adjacent_load() {
    (($# > 0)) || usage "LOAD... > OUTPUT"
    must_read "$@"
    local names=""
    if (($# > 1)); then
        names=$(settings "${@:2}") || exit 1
    fi
    "$iosonar" edit "$1" - "adjacent $names" --to classic
}

# ---------------------------------------------------------------------------------------------- results

# Prints nothing if no request is missing. As in the manual, only reads and writes are compared, not their times: the clocks of
# the hosts may differ. The comments of iosonar have the time of the run.
check_replay() {
    (($# == 2)) || usage "RESULT.replay.gz TRACE   (the files TRACE.blktrace.*)"
    must_read "$1"
    local files trace=${2%.blktrace.[0-9]*} found status
    find_blktrace "$trace"
    make_temporary
    "$iosonar" convert "${files[@]}" "$temporary/trace.load.parquet" ${action_char:+--action "$action_char"} || exit 1
    # As of blkreplay: without the start of the run, which is another one than that of the trace.
    "$iosonar" convert "$1" - --to classic 2>"$temporary/messages" |
        sed '/^# iosonar-run /d; s/^iosonar on /blkreplay on /' | cut -d ';' -f 1-6 >"$temporary/rows.replay" || {
        cat "$temporary/messages" >&2
        exit 1
    }
    found=$("$iosonar" check "$temporary/rows.replay" "$temporary/trace.load.parquet")
    status=$?
    ((status == 0)) || printf '%s\n' "$found"
    exit "$status"
}

# From the first request that was delayed by more than a second: the requests per second that the storage completed.
determine_overload() {
    (($# > 0)) || usage "RESULT.replay.gz..."
    must_read "$@"
    local run
    printf 'Overload IOPS for %s\n' "$*"
    for run; do
        "$iosonar" convert "$run" - --to classic 2>/dev/null | awk -F';' '
            /^ *[0-9]/ && NF >= 6 {
                if ($5 > 1.0) late = 1
                if (late) {
                    end = $1 + $5 + $6
                    if (!count || end < first) first = end
                    if (!count || end > last) last = end
                    count++
                }
            }
            END {
                printf "OPS=%d FROM=%f TO=%f\n", count, first, last
                printf("IOPS=%f\n", last > first ? count / (last - first) : 0)
            }' || fail "cannot read $run"
        "$iosonar" limit "$run" >&2 || exit 1
    done
}

# ---------------------------------------------------------------------------------------------- pictures

# Pictures of all files together, in the current directory. bad_latency, bad_delay, thrp_window, ws_list: in seconds;
# bad_ignore: how many requests beyond a limit are too many; picturetype: png or svg; pictureoptions: has "size
# WIDTH,HEIGHT".
graph() {
    local word static=0 dynamic=0 verbose=0 runs=() options=()
    for word; do
        [[ $word == *.load* ]] && static=1
        [[ $word == *.replay* ]] && dynamic=1
    done
    for word; do
        case $word in
            --static | --dynamic | --verbose) declare "${word#--}=1" ;;
            --no-static | --no-dynamic | --no-verbose) declare "${word#--no-}=0" ;;
            -*) fail "there is no option $word" 2 ;;
            *) runs+=("$word") ;;
        esac
    done
    ((${#runs[@]})) || usage "[--static] [--dynamic] [--verbose] FILE..."
    must_read "${runs[@]}"
    for word in static dynamic verbose; do
        ((word)) && options+=("--$word")
    done
    local type=${picturetype:-png} size=${pictureoptions-}
    case $type in
        png | svg) ;;
        *) fail "picturetype=$type: use png or svg" 2 ;;
    esac
    if [[ $size =~ size\ +([0-9]+),([0-9]+) ]]; then
        options+=(--size "${BASH_REMATCH[1]}x${BASH_REMATCH[2]}")
    fi
    [[ -z ${thrp_window-} ]] || options+=(--window "$thrp_window")
    [[ ${bad_ignore-} =~ ^0*[01]?$ ]] || options+=(--bad-count "$bad_ignore")
    [[ -z ${ws_list-} ]] || options+=(--working-sets "$(working_sets)")
    make_temporary
    "$iosonar" report "${runs[@]/#-/./-}" --format "$type" --out "$temporary" --bad-latency "${bad_latency:-5.0}" \
        --bad-delay "${bad_delay:-10.0}" "${options[@]}" >/dev/null || exit
    place_pictures "${runs[@]}"
}

# The windows of ws_list, in seconds; 000 is everything so far.
working_sets() {
    local window list=""
    for window in $ws_list; do
        [[ $window =~ ^0+$ ]] && window=all
        list+=${list:+,}$window
    done
    printf '%s' "$list"
}

# Moves the pictures here. Those of several files begin with the parts of the names that all have in common.
place_pictures() {
    local common picture rest
    common=$(printf '%s\n' "${@##*/}" | sed -E 's/\.gz$//; s/\.parquet$//; s/\.(load|replay|log)$//' | awk -F. '
        NR == 1 { most = split($0, parts, ".") }
        { for (i = 1; i <= most; i++) if (parts[i] != $i) differs[i] = 1 }
        END { for (i = 1; i <= most; i++) if (!differs[i]) { printf "%s%s", dot, parts[i]; dot = "." } }')
    [[ -n $common ]] || fail "the names of the files have no part in common; give other or fewer files" 2
    for picture in "$temporary"/*; do
        case $picture in
            *.verdict.json) rest=.verdict.json ;;
            *) rest=${picture#"${picture%.g[0-9]*}"} ;;
        esac
        mv -f -- "$picture" "./$common$rest" || exit 1
        printf '%s\n' "$common$rest"
    done
}

# Pictures for each leaf below the current directory that has results and no pictures, with the confs of the campaign.
tree_graph() {
    (($# == 0)) || usage "   (in the directory where the campaign was started)"
    local leaf status=0
    while IFS= read -r -d '' leaf; do
        (graph_of_leaf "$leaf") || {
            printf '%s: failed\n' "$leaf" >&2
            status=1
        }
    done < <(find . -name '.?*' -prune -o -type d ! -path '*[/.]old*' ! -path '*ignore*' -print0 | LC_ALL=C sort -z)
    exit $status
}

graph_of_leaf() {
    local runs=("$1"/*.replay.gz "$1"/*.replay.parquet) pictures=("$1"/*.png "$1"/*.svg) part above
    ((${#runs[@]} && !${#pictures[@]})) || return 0
    above=$1
    while [[ $above == */* ]]; do
        [[ ! -e $above/skip ]] || return 0
        above=${above%/*}
    done
    printf '%s\n' "$1" >&2
    local parts=()
    IFS=/ read -r -a parts <<<"${1#.}"
    graph_options="--static --dynamic"
    # Confs may use unset variables.
    set +u
    for part in default-main default-graph; do
        source_conf "$part" "$1" || return 1
    done
    cd -- "$1" || return 1
    for part in "${parts[@]}"; do
        [[ -z $part ]] || source_conf "$part" . "$1" || return 1
    done
    set -u
    export picturetype pictureoptions bad_latency bad_delay bad_ignore ws_list thrp_window
    # The text of the manual has "--static_--dynamic", with an underscore for the space.
    # shellcheck disable=SC2086
    nice "$compat/graph" ${graph_options//_--/ --} "${runs[@]##*/}"
}

# source_conf NAME LEAF [SHOWN]: NAME.conf, looked up from the leaf upwards; that of a module may be missing.
source_conf() {
    local directory i
    directory=$(cd -- "$2" && pwd) || return 1
    for ((i = 0; i <= 20; i++)); do
        if [[ -r $directory/$1.conf ]]; then
            # shellcheck disable=SC1090
            source "$directory/$1.conf"
            return
        fi
        [[ $directory == / || -z $directory ]] && break
        directory=${directory%/*}
    done
    [[ $1 == default-* ]] || {
        printf '%s: no %s.conf in %s or its parents\n' "$name" "$1" "${3-$2}" >&2
        return 1
    }
}

# ---------------------------------------------------------------------------------------------- campaigns

# The old program wrote --test=1, and --override as a word of its own.
tree_replay() {
    local words=() word
    for word; do
        case $word in
            --test=0 | --dry-run=0) ;;
            --test | --test=* | --dry-run=*) words+=(--dry-run) ;;
            --work_dir=*) words+=(--work-dir "${word#*=}") ;;
            --work_dir) words+=(--work-dir) ;;
            *) words+=("$word") ;;
        esac
    done
    exec "$iosonar" campaign "${words[@]}"
}
