# Draws the page and the pictures of a leaf, on the controller, at low priority. Not at the lowest: the next leaf waits for
# it, and beside other programs the lowest makes seconds minutes.

# Draws with the given options of `iosonar report`, without the list of pictures. The result stays valid if that fails.
graph_draw() {
    local priority=(nice -n 5)
    ! type -P ionice >/dev/null || priority+=(ionice -c 2 -n 7)
    "${priority[@]}" iosonar report "$@" </dev/null >/dev/null && return
    campaign_warn "iosonar report failed: draw later in this directory by: iosonar report$(printf ' %q' "$@")"
}

# Prints a warning for each variable of blkreplay that has no effect here.
graph_remarks() {
    local name
    for name in turn_window smooth_latency_flying_window; do
        [[ -z ${!name-} ]] || campaign_note "$name has no effect: the diagrams choose it (see docs/reports.md)"
    done
    if [[ ${sequential_mode-1} != 1 ]]; then
        campaign_note "sequential_mode has no effect: the memory of iosonar report is limited (see --memory)"
    fi
    if ((${#color[@]})); then
        campaign_note "color has no effect: reads are blue and writes are red; --theme in graph_options sets the background"
    fi
}

# Draws runs of calls, each by itself: options about devices have no meaning for them.
graph_calls() {
    local output=${graph_output-page pictures} run
    for run; do
        [[ " $output " != *" page "* ]] || graph_draw "$run"
        [[ " $output " != *" pictures "* ]] || graph_draw "$run" "--format=$(graph_format)"
    done
}

graph_format() {
    [[ ${picturetype-png} == svg ]] && echo svg || echo png
}

graph_finish() {
    ((enable_graph)) || return 0
    local results=() runs_of_calls=() file options=() common=() word words windows="" format=png
    local output=${graph_output-page pictures}
    for file in ./*.calls-run.parquet; do
        [[ ! -f $file ]] || runs_of_calls+=("$file")
    done
    for file in ./*.replay.gz ./*.replay.parquet; do
        [[ ! -f $file ]] || results+=("$file")
    done
    if ((${#runs_of_calls[@]})); then
        graph_calls "${runs_of_calls[@]}"
        return
    fi
    # The run has failed: there is nothing to draw.
    ((${#results[@]})) || return 0
    graph_remarks

    # The text of blkreplay's manual has "--static_--dynamic", with an underscore for the space.
    words=${graph_options---static --dynamic}
    read -r -d '' -a words <<<"${words//_--/ --}"
    for word in "${words[@]}"; do
        case $word in
            --static | --dynamic | --verbose) options+=("$word") ;;
            --[a-z]*) common+=("$word") ;;
            *) campaign_note "graph_options: \"$word\" has no meaning here: see iosonar report --help" ;;
        esac
    done
    [[ -z ${bad_latency-} ]] || common+=("--bad-latency=$bad_latency")
    [[ -z ${bad_delay-} ]] || common+=("--bad-delay=$bad_delay")
    [[ -z ${thrp_window-} ]] || common+=("--window=$thrp_window")
    [[ ${bad_ignore-} =~ ^0*[01]?$ ]] || common+=("--bad-count=$bad_ignore")
    for word in ${ws_list-}; do
        # 000: everything so far.
        [[ $word =~ ^0+$ ]] && word=all
        windows+=${windows:+,}$word
    done
    [[ -z $windows ]] || common+=("--working-sets=$windows")
    case ${picturetype-png} in
        png | svg) format=${picturetype-png} ;;
        *) campaign_note "picturetype=$picturetype: pictures are png or svg; png is used" ;;
    esac
    for word in $output; do
        [[ $word == page || $word == pictures ]] ||
            campaign_note "graph_output: \"$word\" has no meaning here: use page, pictures, or both"
    done
    [[ " $output " != *" page "* ]] || graph_draw "${results[@]}" "${options[@]}" "${common[@]}"
    [[ " $output " == *" pictures "* ]] || return 0
    if [[ ${pictureoptions-} =~ ([0-9]+)[,x]([0-9]+) ]]; then
        common+=("--size=${BASH_REMATCH[1]}x${BASH_REMATCH[2]}")
    fi
    graph_draw "${results[@]}" "--format=$format" "${options[@]}" "${common[@]}"
}

finish_list+=" graph_finish"
