#!/bin/sh
# Executes every case of a batch (or one case) fused, and op by op (--policy=debug) on the same data, and holds the outputs of both to the
# bounds of the reference of the whole graph. Usage: policies.sh [--policy=fusion|max] --batch=FILE|--case=FILE [graph-bench options].
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "${GRAPH_BENCH:-$here/../build/release/graph-bench}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" --mode=L "$@" >"$work/list"
base=.
for option; do
    case $option in
        --batch=*) base=$(dirname "${option#--batch=}") ;; # names are searched for from here upwards
    esac
done
cd "$base"
agree=0 other=0 bad=0
sed -n 's/.*__REPRO: --mode=L //p' "$work/list" >"$work/cases"
while read -r case; do
    rm -rf "$work/data"
    single="--policy=debug $(printf '%s\n' "$case" | sed 's/--policy=[a-z]* *//g')"
    name=$(eval "set -- $case" && for argument; do :; done && printf %s "${argument#--case=}")
    for up in . .. ../.. ../../..; do
        [ ! -f "$up/$name" ] || break
    done
    (eval "cd $up && \"$program\" --mode=R --expected-n-partitions=0 --save-tensors=\"$work/data\" $case" >"$work/fused" 2>&1) || true
    (eval "cd $up && \"$program\" --mode=R --expected-n-partitions=0 --golden=\"$work/data\" $single" >"$work/debug" 2>&1) || true
    if grep -q '^0:EXECUTED' "$work/debug"; then
        agree=$((agree + 1))
    elif grep -qE '^0:(SKIPPED|UNIMPLEMENTED)' "$work/fused"; then
        other=$((other + 1))
        echo "not executed: $(grep -m1 '^0:' "$work/fused")"
    else
        bad=$((bad + 1))
        echo "different: $case"
        grep -hE '^0:|^error|COMPARE_STATS' "$work/fused" "$work/debug" | head -n 4 | cut -c1-240
    fi
done <"$work/cases"
echo "$agree of $(wc -l <"$work/cases") cases agree, fused and op by op; $other not executed, $bad differ"
[ "$agree" -gt 0 ] && [ "$bad" -eq 0 ]
