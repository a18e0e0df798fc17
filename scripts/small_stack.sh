#!/bin/sh
# Runs graph-bench with small stacks: KIB for the main thread and for every other. What a program embeds may be called on such a stack.
# Usage: small_stack.sh KIB graph-bench options
set -eu
kib=$1
shift
case $kib in
    *[!0-9]* | '') echo "error: small_stack.sh KIB, then options of graph-bench" >&2; exit 2 ;;
esac
program=${GRAPH_BENCH:-$(dirname "$0")/../build/release/graph-bench}
export OMP_STACKSIZE="${kib}K"
ulimit -S -s "$kib"
exec "$program" "$@"
