#!/bin/sh
# graph-bench as a step of continuous integration: verdicts, then times against those of the last good run. Copy it and change what is
# different at your place. Usage: ci.sh BATCH...
#   GRAPH_BENCH       the program [graph-bench]
#   RESULTS           folder of the reports of this run [graph-bench-results]
#   KEPT              folder that the CI service keeps from run to run: baseline.json, history.db [graph-bench-kept]
#   EXPECTED          file of known failures, as of --expect; none without it
#   MS, BUDGET, FLOOR of the measurements: milliseconds for each case [600], time for all [15m], smallest change told [5%]
#   RESUME            1: go on with the verdicts of a run that was cut short, by the time limit of a job for example
#   UPDATE            1: a good run becomes the baseline (on the main branch)
# Exit status: 0 good; 1 a case failed, or something became slower; 2 and more: it did not run as it should.
set -u
program=${GRAPH_BENCH:-graph-bench} results=${RESULTS:-graph-bench-results} kept=${KEPT:-graph-bench-kept}
[ $# -gt 0 ] || { echo "which batch files?" >&2; exit 2; }
mkdir -p "$results" "$kept"
status=0
worse() { [ "$1" -le "$status" ] || status=$1; }

# Nothing of an earlier run may be taken for results of this one.
resume=
if [ "${RESUME:-0}" = 1 ] && [ -s "$results/verdicts.json" ]; then
    resume=--resume=$results/verdicts.json
else
    rm -f "$results/verdicts.json"
fi
rm -f "$results/junit.xml" "$results/times.json" "$results/changes.md" "$results"/*.html

n=$#
for batch in "$@"; do set -- "$@" "--batch=$batch"; done
shift "$n"
"$program" --mode=C --strict ${EXPECTED:+--expect="$EXPECTED"} ${resume:+"$resume"} --json="$results/verdicts.json" \
    --junit="$results/junit.xml" "$@" || worse $?
"$program" report "$results/verdicts.json" -o "$results/verdicts.html" || worse $?

# Times of what is wrong mean nothing.
if [ "$status" -eq 0 ]; then
    "$program" env >"$results/machine.txt" || worse $?
    "$program" --mode=P ${EXPECTED:+--expect="$EXPECTED"} --max-ms-per-prb="${MS:-600}" --budget="${BUDGET:-15m}" \
        --json="$results/times.json" "$@" || worse $?
    "$program" history add "$kept/history.db" "$results/times.json" || worse $?
    if [ -s "$kept/baseline.json" ]; then
        "$program" compare --format=markdown --floor="${FLOOR:-5%}" --history="$kept/history.db" -o "$results/changes.md" \
            "$kept/baseline.json" "$results/times.json"
        compared=$?
        if [ "$compared" -eq 3 ]; then
            echo "another machine than that of the baseline: times are not compared"
        else
            worse "$compared"
        fi
        [ ! -s "$results/changes.md" ] || cat "$results/changes.md"
    fi
    "$program" report "$results/times.json" --history="$kept/history.db" -o "$results/times.html" || worse $?
    # A run that the budget cut short would leave cases without a baseline.
    if [ "$status" -eq 0 ] && grep -q '"ended": *"complete"' "$results/times.json" &&
        { [ "${UPDATE:-0}" = 1 ] || [ ! -s "$kept/baseline.json" ]; }; then
        cp "$results/times.json" "$kept/baseline.json"
    fi
fi
exit "$status"
