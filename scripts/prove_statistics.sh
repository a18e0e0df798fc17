#!/usr/bin/env bash
# How honest are compare and ab on this machine? Counts, over TRIALS trials:
#   A/A      the same cases measured twice: verdicts SLOWER and FASTER (false alarms) and UNSURE, the second half of the
#            trials with a neighbour that loads one processor now and then (the load average remembers it for minutes);
#            quiet are comparisons for which both reports found the machine in its fast state often enough
#   repeat   cases of the batch perf, measured twice, whose change by compare is within 3 % (of several partitions, end to end)
#   planted  3 % more work found by ab, 10 % by compare: sums of 1030 or 1100 terms in the place of 1000, in a product
# Nothing else should run on the machine. Usage: prove_statistics.sh [TRIALS [STEP...]]; 25 trials, steps: aa repeat ab compare.
# 25 trials take three quarters of an hour, or twice that where the machine is seldom fast. MS is the budget of a measurement
# in A/A and compare (20000): the patience with which a run waits for the fast state.
# The exit status is 1 when a count misses what the project promises: see the end.
set -euo pipefail
cd "$(dirname "$0")/.."
trials=${1:-25}
shift $(($# > 0))
steps=" ${*:-aa repeat ab compare} "
program=${GRAPH_BENCH:-build/release/graph-bench}
ms=${MS:-20000}
folder=$(mktemp -d)
neighbour=
trap '[ -z "$neighbour" ] || kill "$neighbour" 2>/dev/null; rm -rf "$folder"' EXIT
bad=0

cases=(--case=op/relu.json --case=op/matmul.json --case=pattern/conv_bias_relu.json --case=pattern/matmul_bias_relu.json
    --case=op/softmax.json --case=op/layernorm.json)
product=--case=op/matmul.json
terms() { echo "--in-shapes=0:480x$1+1:$1x256"; }
measure() { "$program" --mode=P --json="$1" --max-ms-per-prb="$ms" "${@:2}" >/dev/null; }

# Counts of the verdicts of a comparison: WORD=N... LOUD is the number of those that the machine forbade.
verdicts() {
    "$program" compare --format=json "$@" | python3 -c '
import json, sys
comparison = json.load(sys.stdin)
print(*(f"{word}={count}" for word, count in comparison["summary"].items()), end=" ")
print("LOUD=%d" % sum(row["why"] is not None for row in comparison["changes"]))' || true
}
promise() { # what, count, le or ge, wanted
    local word=kept
    [ "$2" "-$3" "$4" ] || word=MISSED bad=1
    printf '%-40s %5d  (promised: at %s %d) %s\n' "$1" "$2" "$([ "$3" = le ] && echo most || echo least)" "$4" "$word"
}

if [[ $steps == *" aa "* ]]; then
    false_alarms=0 unsure_quiet=0 quiet=0 rows=0 unsure=0 loud=0
    for ((trial = 0; trial < trials; trial++)); do
        busy=$((trial >= (trials + 1) / 2))
        if ((busy)); then # busy for a second, idle for one
            (while :; do timeout 1 sh -c 'while :; do :; done' || true; sleep 1; done) &
            neighbour=$!
        fi
        measure "$folder/a.json" "${cases[@]}"
        measure "$folder/b.json" "${cases[@]}"
        [ -z "$neighbour" ] || { kill "$neighbour"; wait "$neighbour" 2>/dev/null || true; neighbour=; }
        SLOWER=0 FASTER=0 SAME=0 UNSURE=0 LOUD=0
        eval "$(verdicts "$folder/a.json" "$folder/b.json")"
        false_alarms=$((false_alarms + SLOWER + FASTER)) unsure=$((unsure + UNSURE))
        all=$((SLOWER + FASTER + SAME + UNSURE)) rows=$((rows + all)) loud=$((loud + LOUD))
        ((busy)) || quiet=$((quiet + all - LOUD)) unsure_quiet=$((unsure_quiet + UNSURE - LOUD))
        echo "A/A $trial: slower $SLOWER faster $FASTER same $SAME unsure $UNSURE ($LOUD by the machine)$( ((busy)) && echo ', with a neighbour')"
    done
    echo "A/A: $rows comparisons in $trials trials, $unsure of them UNSURE, $loud because the machine was slow or its cores lay elsewhere"
    promise "A/A: SLOWER or FASTER" "$false_alarms" le 1
    promise "A/A, quiet: UNSURE, per cent" $((quiet ? 100 * unsure_quiet / quiet : 0)) le 9
fi

if [[ $steps == *" repeat "* ]]; then
    for half in a b; do "$program" --mode=P --json="$folder/$half.json" --batch=perf >/dev/null; done
    read -r near all <<<"$("$program" compare --format=json "$folder/a.json" "$folder/b.json" | python3 -c '
import json, sys
times = {}
for row in json.load(sys.stdin)["changes"]:  # of a case, what is end to end comes last
    times[row["repro"]] = row["change"]
print(sum(abs(change) <= 0.03 for change in times.values()), len(times))')"
    promise "repeat: perf cases of $all within 3 %" "$near" ge $((33 * all / 35))
fi

if [[ $steps == *" ab "* ]]; then
    found=0
    for ((trial = 0; trial < trials; trial++)); do
        # Its exit status is 1 when B is slower.
        text=$("$program" ab --seed=$((trial + 1)) "$(terms 1000)" -- "$(terms 1030)" -- $product || true)
        if grep -q '^SLOWER' <<<"$text"; then found=$((found + 1)); fi
        echo "ab $trial: $(grep -E '^(SLOWER|FASTER|SAME|UNSURE)' <<<"$text" || tail -n 1 <<<"$text")"
    done
    promise "ab: 3 % found in $trials" "$found" ge $(((22 * trials + 24) / 25))
fi

if [[ $steps == *" compare "* ]]; then
    found=0
    for ((trial = 0; trial < trials; trial++)); do
        measure "$folder/a.json" "$(terms 1000)" $product
        measure "$folder/b.json" "$(terms 1100)" $product
        # Cases are told apart by their reproducer lines.
        sed -i 's/480x1100+1:1100x256/480x1000+1:1000x256/' "$folder/b.json"
        text=$("$program" compare --all "$folder/a.json" "$folder/b.json" || true)
        if grep -q '^SLOWER' <<<"$text"; then found=$((found + 1)); fi
        echo "compare $trial: $(grep -E '^(SLOWER|FASTER|SAME|UNSURE)' <<<"$text" || tail -n 1 <<<"$text")"
    done
    promise "compare: 10 % found in $trials" "$found" ge $(((24 * trials + 24) / 25))
fi
exit $bad
