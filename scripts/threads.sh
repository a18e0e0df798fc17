#!/bin/sh
# Executes every case of a batch (or one case) with 1 thread and with N, and compares the bits of all outputs. Usage: threads.sh N
# --batch=FILE|--case=FILE [graph-bench options]. Nothing is checked against the reference here; any difference is an error.
set -eu
threads=$1
shift
case $threads in
    *[!0-9]* | 0 | 1) echo "error: threads.sh N with N > 1, then options of graph-bench" >&2; exit 2 ;;
esac
here=$(dirname "$0")
program=${GRAPH_BENCH:-$here/../build/release/graph-bench}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run THREADS OPTIONS...: one line per case in $work/THREADS, its reproducer and the digest; null when it was not executed.
run() {
    n=$1
    shift
    OMP_NUM_THREADS=$n "$program" --mode=R --json="$work/$n.json" "$@" >"$work/$n.log" 2>&1 || true
    [ -s "$work/$n.json" ] || { tail -n 5 "$work/$n.log" >&2; echo "error: no report with $n threads" >&2; exit 1; }
    sed -nE 's/^\{.*"repro": ("([^"\\]|\\.)*").*"digest": ("[^"]*"|null).*/\1 \3/p' "$work/$n.json" >"$work/$n"
}

run 1 "$@"
run "$threads" "$@"
if cmp -s "$work/1" "$work/$threads"; then
    executed=$(grep -vc ' null$' "$work/1" || true)
    echo "$executed of $(wc -l <"$work/1") cases executed, bits alike with 1 and $threads threads"
    if grep -hE '^[0-9]+:(CRASHED|TIMEOUT|OUT_OF_MEMORY)' "$work/1.log" "$work/$threads.log"; then
        echo "error: the cases above ended in the middle"
        exit 1
    fi
    [ "$executed" -gt 0 ] || { echo "error: no case was executed"; exit 1; }
    exit 0
fi
diff "$work/1" "$work/$threads" | grep '^>' | sed 's/^>/different:/'
exit 1
