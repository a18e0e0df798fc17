#!/bin/sh
# Runs one shard of a run, and goes on where an earlier try of the same shard was cut short. Usage:
#   shard.sh NUMBER SHARDS FOLDER ARGUMENTS...
# The report is FOLDER/NUMBER.json; ARGUMENTS are those of graph-bench, which $GRAPH_BENCH names. For Slurm and GNU parallel (docs/scaling.md).
set -eu
number=$1 shards=$2 folder=$3
shift 3
program=${GRAPH_BENCH:-graph-bench}
report=$folder/$number.json
mkdir -p "$folder"
resume=
# A report that cannot be read, as after a disk was full, is begun anew.
if [ -s "$report" ] && "$program" report "$report" -o - >/dev/null; then
    resume=--resume=$report
fi
exec "$program" --shard="$number/$shards" --json="$report" ${resume:+"$resume"} "$@"
