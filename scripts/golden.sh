#!/bin/sh
# Runs the graphs of a folder of stored results: FOLDER/FAMILY/CASE/{graph.json,in_*.npy,out_*.npy}. Every case must agree in our outputs and in
# our reference, or be UNIMPLEMENTED. Usage: golden.sh FOLDER [FAMILY...]
set -eu
folder=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
mkdir -p build
batch=build/golden-batch
log=build/golden.log
: >"$batch"
for family in ${*:-$(cd "$folder" && find . -mindepth 1 -maxdepth 1 -type d | sort)}; do
    for graph in "$folder/$family"/*/graph.json; do
        case=$(dirname "$graph")
        echo "--reset --expected-n-partitions=0 --load-tensors=$case --golden=$case --case=$graph" >>"$batch"
    done
done
status=0
${GRAPH_BENCH:-build/release/graph-bench} --mode=C --batch="$batch" >"$log" 2>&1 || status=$?
grep -E '^(tests:|total:)' "$log" || { tail -n 20 "$log"; echo "error: no summary (exit status $status)"; exit 1; }
bad=$(grep -E '^[0-9]+:(FAILED|UNTESTED_FAILED|INVALID_ARGUMENTS|CRASHED|TIMEOUT|OUT_OF_MEMORY)' "$log" || true)
for known in $(grep -v '^#' scripts/golden-known.txt); do
    bad=$(echo "$bad" | grep -v "/$known/graph.json" || true)
done
echo "not counted as failures (scripts/golden-known.txt): $(grep -vc '^#' scripts/golden-known.txt) cases"
if [ -n "$bad" ]; then
    echo "$bad"
    echo "error: the cases above went wrong; the log is $log"
    exit 1
fi
