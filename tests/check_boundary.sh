#!/bin/sh
# What all engines share must not know the host's threads and instruction sets: no file of the runtime
# or of the lowering that backends share includes a header of theirs.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
found=$(grep -rnE '#include [<"](omp\.h|[a-z]+intrin\.h|cpuid\.h|base/cpu\.h|base/parallel\.h|kernels/cpu)' "$root/lib/runtime" "$root/lib/kernels/plan" 2>/dev/null || true)
[ -z "$found" ] || { echo "$found" >&2; echo "lib/runtime and lib/kernels/plan serve every engine" >&2; exit 1; }
