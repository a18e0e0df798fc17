#!/bin/sh
# Runs a batch file on the first OpenCL device. No case may fail; those without a kernel are counted aloud, and at
# least FEWEST must pass. Exit status 77, skipped: there is no device.
# check_opencl.sh GRAPH_BENCH BATCH SCRATCH FEWEST [OPTION...]
set -eu
tool=$1 batch=$2 scratch=$3 fewest=$4
shift 4
mkdir -p "$scratch"
export GB_OPENCL_CACHE="$scratch/programs" POCL_CACHE_DIR="$scratch/pocl"
"$tool" --list-devices | grep '^gpu:' || { echo "no OpenCL device: skipped"; exit 77; }
"$tool" --engine=gpu:0 --mode=C --summary=no-failures "$@" --batch="$batch" >"$scratch/log" 2>&1 || true
grep -E '^[0-9]+:(FAILED|MISTRUSTED|INVALID|UNTESTED)' "$scratch/log" && { echo "cases failed" >&2; exit 1; }
grep -oE '^[0-9]+:UNIMPLEMENTED \(.*\)' "$scratch/log" | sed 's/^[0-9]*://; s/op [0-9]* //; s/ ([0-9.]* ms.*//' | sort | uniq -c
counts=$(grep '^tests:' "$scratch/log") || { tail -n 5 "$scratch/log" >&2; exit 1; }
echo "$counts"
passed=$(echo "$counts" | sed 's/.*passed:\([0-9]*\).*/\1/')
[ "$passed" -ge "$fewest" ] || { echo "only $passed cases passed of $fewest" >&2; exit 1; }
