#!/bin/sh
# Runs a batch of a corpus folder in mode C and holds the verdicts to what the project promises: nothing crashes, every case loads, nothing
# fails; what is not built yet is UNIMPLEMENTED, what proves little MISTRUSTED. Options go to graph-bench.
# Usage: corpus.sh FOLDER [BATCH [OPTION]...]
set -eu
folder=$1
batch=${2:-test_graph_ci}
shift $(($# < 2 ? $# : 2))
cd "$(dirname "$0")/.."
log=build/corpus-$(echo "$batch$*" | tr -c 'A-Za-z0-9_\n' -).log
status=0
${GRAPH_BENCH:-build/release/graph-bench} --mode=C "$@" --batch="$folder/$batch" >"$log" 2>&1 || status=$?
grep -E '^(tests:|total:)' "$log" || { tail -n 20 "$log"; echo "error: no summary (exit status $status)"; exit 1; }
bad=$(grep -E '^[0-9]+:(FAILED|UNTESTED_FAILED|INVALID_ARGUMENTS|CRASHED|TIMEOUT|OUT_OF_MEMORY)' "$log" || true)
if [ -n "$bad" ]; then
    echo "$bad"
    echo "error: the cases above went wrong; the log is $log"
    exit 1
fi
echo "right but proving little, and not built yet, by reason:"
grep -oE '(MISTRUSTED|UNIMPLEMENTED|SKIPPED) \([^)]*\)' "$log" | sed -E 's/(op|tensor) [0-9]+:? //' | sort | uniq -c | sort -rn || true
