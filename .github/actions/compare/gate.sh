#!/usr/bin/env bash
# Runs a load on base and branch in turns, compares them, and fails by a rule. From the environment:
#   BASE, BRANCH   `replay …`, `workload run …` or `files replay …`, without an output
#   FAIL_IF        a condition in each line, such as: p99 > +10%
#   ROUNDS         runs of each side [5]
#   BEFORE         a shell command before each run [none]
#   OUTPUT         the directory of the results; gate.md and gate.xml are beside it [gate.ab]
#   UNDECIDED      what to do if the runs cannot decide: pass or fail [pass]
#   IOSONAR        the binary; the Python half is beside it or in PATH [iosonar]
# Exit code: 0 passed, 1 failed by the rule, or undecided with UNDECIDED=fail; else that of iosonar.
set -euo pipefail
: "${BASE:?name the side to compare with: replay LOAD --target BASE_DEVICE}"
: "${BRANCH:?name the side to judge: replay LOAD --target BRANCH_DEVICE}"
: "${FAIL_IF:?name a condition: p99 > +10%}"
output=${OUTPUT:-gate.ab}
gate=$(dirname "$output")/gate
words=(--a "$BASE" --b "$BRANCH" --rounds "${ROUNDS:-5}" --output "$output" --junit "$gate.xml" --markdown "$gate.md")
while IFS= read -r condition; do
    [ -z "$condition" ] || words+=(--fail-if "$condition")
done <<<"$FAIL_IF"
[ -z "${BEFORE:-}" ] || words+=(--before "$BEFORE")
rm -f "$gate.xml" "$gate.md"
code=0
"${IOSONAR:-iosonar}" ab "${words[@]}" || code=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$gate.md" ]; then
    cat "$gate.md" >>"$GITHUB_STEP_SUMMARY"
fi
case $code in
    0) echo "gate: passed" ;;
    3) echo "gate: failed: a condition holds"; exit 1 ;;
    4) echo "gate: undecided: make more rounds, or use a quieter machine"
       [ "${UNDECIDED:-pass}" = pass ] || exit 1 ;;
    *) echo "gate: iosonar failed with exit code $code" >&2; exit "$code" ;;
esac
