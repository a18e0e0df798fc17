#!/bin/sh
# A task of the job array that run.sh submits. Slurm runs a copy of this file, so that run.sh names the folder of shard.sh.
# Usage: task.sh SCRIPTS SHARDS FOLDER ARGUMENTS...
scripts=$1 shards=$2 folder=$3
shift 3
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-${SLURM_CPUS_PER_TASK:-1}}"
exec "$scripts/shard.sh" "$SLURM_ARRAY_TASK_ID" "$shards" "$folder" --jobs="${SLURM_CPUS_PER_TASK:-1}" "$@"
