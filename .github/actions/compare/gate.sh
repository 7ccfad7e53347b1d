#!/usr/bin/env bash
# Runs a load on base and branch in turns, compares them, and fails by a rule. From the environment:
#   BASE, BRANCH   `replay …`, `workload run …` or `files replay …`, without an output
#   FAIL_IF        a condition in each line, such as: p99 > +10%
#   ROUNDS         runs of each side [5]
#   BEFORE         a shell command before each run [none]
#   OUTPUT         the directory of the results: NAME.ab, where runs of an earlier job are removed; NAME.md and NAME.xml are
#                  beside it [gate.ab]
#   UNDECIDED      what to do if the runs cannot decide: pass, warn or fail [pass]
#   IOSONAR        the binary; the Python half is beside it or in PATH [iosonar]
# Exit code: 0 passed, 1 failed by the rule, or undecided with UNDECIDED=fail, 4 undecided with UNDECIDED=warn, 2 without a
# verdict, as the set-up is wrong, above 128 stopped by a signal.
set -euo pipefail
: "${BASE:?name the side to compare with: replay LOAD --target BASE_DEVICE}"
: "${BRANCH:?name the side to judge: replay LOAD --target BRANCH_DEVICE}"
: "${FAIL_IF:?name a condition: p99 > +10%}"
undecided=${UNDECIDED:-pass}
[[ $undecided =~ ^(pass|warn|fail)$ ]] || { echo "gate: UNDECIDED is $undecided: name pass, warn or fail" >&2; exit 2; }
output=${OUTPUT:-gate.ab}
[[ $output = *.ab ]] || { echo "gate: OUTPUT is $output: its name must end in .ab" >&2; exit 2; }
[[ $output = /* ]] || output=./$output
gate=${output%.ab}
words=(--a "$BASE" --b "$BRANCH" --rounds "${ROUNDS:-5}" --output "$output" --overwrite --junit "$gate.xml" --markdown "$gate.md")
[[ $undecided = fail ]] || words+=(--skip-undecided)
conditions=0
while IFS= read -r condition; do
    [[ $condition =~ ^[[:space:]]*$ ]] || { words+=(--fail-if "$condition"); conditions=$((conditions + 1)); }
done <<<"$FAIL_IF"
((conditions)) || { echo "gate: FAIL_IF has no condition: name one, such as p99 > +10%" >&2; exit 2; }
[ -z "${BEFORE:-}" ] || words+=(--before "$BEFORE")
for file in "$gate.xml" "$gate.md"; do
    # That of an earlier job.
    if [ -f "$file" ] && grep --quiet --extended-regexp '<testsuite name="iosonar |<!-- iosonar -->' "$file"; then rm "$file"; fi
done
code=0
stopped=
trap 'stopped=1; kill -TERM $! || true' TERM INT HUP
"${IOSONAR:-iosonar}" ab "${words[@]}" &
run=$!
wait "$run" || code=$?
# A signal ends the first wait, not the run.
[ -z "$stopped" ] || { code=0; wait "$run" || code=$?; }
if [[ $code =~ ^[034]$ ]] && [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$gate.md" ]; then
    cat "$gate.md" >>"$GITHUB_STEP_SUMMARY"
fi
case $code in
    0) echo "gate: passed" ;;
    3) echo "gate: failed: a condition holds"; exit 1 ;;
    4) echo "gate: undecided: make more rounds, or use a quieter machine"
       level=warning
       [ "$undecided" != fail ] || level=error
       [ -z "${GITHUB_ACTIONS:-}" ] || echo "::$level::the runs cannot decide whether a condition holds"
       case $undecided in warn) exit 4 ;; fail) exit 1 ;; esac ;;
    *) echo "gate: no verdict: iosonar ended with exit code $code" >&2
       ((code > 128)) && exit "$code" || exit 2 ;;
esac
