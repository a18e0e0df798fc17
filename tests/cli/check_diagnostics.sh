#!/bin/sh
# What the library tells when the environment asks: lines that scripts can take apart, and graphs that graph-bench runs.
#
#   check_diagnostics.sh GRAPH-BENCH INPUTS EXAMPLE...
set -eu
bench=$1
inputs=$2
graphs=$(cd "$(dirname "$0")/graphs" && pwd)
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "$*" >&2
    exit 1
}

# A line of each kind has its number of fields, the times are numbers; $1: the kinds that must be there.
check_lines() {
    awk -F, -v wanted="$1" '
        $1 != "graphbench" { print "not a line of the library: " $0; bad = 1; next }
        { kind = $2; sub(/:.*/, "", kind); seen[kind] = 1 }
        kind == "dispatch" && NF != 7 || kind != "dispatch" && NF != 11 { print "fields: " $0; bad = 1 }
        kind != "dispatch" && $NF !~ /^[0-9]+\.[0-9]+$/ { print "no time: " $0; bad = 1 }
        END {
            split(wanted, kinds, " ")
            for (i in kinds)
                if (!seen[kinds[i]]) { print "no line: " kinds[i]; bad = 1 }
            exit bad
        }' lines || fail "GB_VERBOSE=$2"
}

run() {
    "$bench" --mode=C --case="$1" >result 2>lines || { cat result lines >&2; fail "$1 fails"; }
}

for graph in pattern/conv_bias_relu complex_fusion/attention complex_fusion/gated_mlp; do
    GB_VERBOSE=all run "$inputs/$graph.json"
    check_lines "dispatch create exec" all
    GB_GRAPH_DUMP=graph,subgraph run "$inputs/$graph.json"
    [ -s lines ] && fail "GB_GRAPH_DUMP alone tells something: $(cat lines)"
done
for graph in any blocks; do
    GB_GRAPH_DUMP=subgraph "$bench" --expected-n-partitions=0 --mode=C --case="$graphs/$graph.gbt" >result || { cat result >&2; fail "$graph fails"; }
done
grep -q '"layout": "AB8b4a"' subgraph-*.json || fail "a graph of blocks is written without them"
# What was left to the library is written as it was chosen: no tensor of a written partition is any.
grep -l '"layout_type": "any"' subgraph-*.json && fail "written without the layout that was chosen"
run "$inputs/pattern/conv_bias_relu.json"
[ -s lines ] && fail "lines that nobody asked for"

for example in "$@"; do
    GB_VERBOSE=2 GB_GRAPH_DUMP=graph,subgraph "$example" >result 2>lines || fail "$example fails"
    check_lines "dispatch create exec" 2
done

n=0
for file in graph-*.json subgraph-*.json; do
    run "./$file"
    grep -q ':PASSED' result || { cat result >&2; fail "$file is not passed"; }
    n=$((n + 1))
done
[ "$n" -ge 6 ] || fail "only $n graphs were written"
echo "$n graphs written and read back"
