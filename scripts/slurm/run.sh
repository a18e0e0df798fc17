#!/usr/bin/env bash
# Runs cases as a Slurm job array, a shard each task, and joins the reports. Usage:
#   run.sh [--shards=N] [--retries=N] [--folder=DIR] [SBATCH OPTION]... -- ARGUMENTS OF GRAPH-BENCH
# What is no option of this script goes to sbatch: --time=30, --partition=NAME, --cpus-per-task=8. Shards whose report is missing or cut short (a
# node died, the time was up) are submitted again, up to N times (2), and go on where they were. The result is DIR/all.json, with a
# report of each shard in DIR/shards and what it printed in DIR/logs. Whatever happened, run.sh may be started again with the same
# folder: whole shards are kept. $GRAPH_BENCH names the program, which all nodes must see, and so must they the folder.
# Exit status: 0 when all shards ran and no case failed, 1 when a case failed or a shard is lost, 2 for wrong usage.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
shards=16 retries=2 folder=slurm-results options=()
fail() { echo "run.sh: $1" >&2; exit 2; }
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
        --shards=*) shards=${1#*=} ;;
        --retries=*) retries=${1#*=} ;;
        --folder=*) folder=${1#*=} ;;
        -*) options+=("$1") ;;
        *) fail "\"$1\": options are --NAME=VALUE, the arguments of graph-bench stand behind --" ;;
    esac
    shift
done
[ $# -gt 1 ] || fail "which cases? They stand behind --, as arguments of graph-bench"
shift
[[ $shards =~ ^[1-9][0-9]*$ && $retries =~ ^[0-9]+$ ]] || fail "--shards and --retries are numbers"
program=${GRAPH_BENCH:-$scripts/../build/release/graph-bench}
program=$(command -v "$program") || fail "there is no program $program (set GRAPH_BENCH)"
export GRAPH_BENCH=$program
mkdir -p "$folder/shards" "$folder/logs"
folder=$(cd "$folder" && pwd)

# One folder is of one run.
wanted=$(printf '%s\n' "$shards" "$PWD" "$@")
[ ! -e "$folder/run" ] || [ "$(cat "$folder/run")" = "$wanted" ] || fail "$folder holds another run: other arguments or shards"
printf '%s\n' "$wanted" >"$folder/run"
job() { cut -d';' -f1 "$folder/job" 2>/dev/null; } # of the tasks that were submitted last
if [ -s "$folder/job" ] && [ -n "$(squeue -h -j "$(job)" 2>/dev/null)" ]; then
    fail "job $(job) of this folder still runs"
fi

reports=()
find_lost() {
    mapfile -t reports < <(find "$folder/shards" -name '*.json' | sort -V)
    lost=$("$program" merge --lost="$shards" "${reports[@]}")
}
trap '[ ! -s "$folder/job" ] || scancel "$(job)"; exit 130' INT TERM HUP
find_lost
for ((round = 0; round <= retries; round++)); do
    [ -n "$lost" ] || break
    echo "round $round: shards $lost"
    : >"$folder/job"
    sbatch --wait --parsable --requeue --open-mode=append --job-name=graph-bench --array="$lost" --output="$folder/logs/%a.log" \
        "${options[@]}" "$scripts/slurm/task.sh" "$scripts" "$shards" "$folder/shards" "$@" >"$folder/job" &
    wait $! || true # of the tasks: a failed case is no lost shard
    [ -s "$folder/job" ] || fail "sbatch took no job"
    find_lost
done
rm -f "$folder/job"
[ -z "$lost" ] || echo "run.sh: lost after $((retries + 1)) tries: shards $lost of $shards; see $folder/logs" >&2
[ ${#reports[@]} -gt 0 ] || exit 1
"$program" merge --check "${reports[@]}" -o "$folder/all.json"
