#!/bin/sh
# The graphs of fusions and models must be what their scripts write.
#
#   check_inputs.sh PYTHON
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
"$1" "$root/scripts/make_fusions.py" "$made"
"$1" "$root/scripts/make_models.py" "$made"
for folder in pattern complex_fusion model; do
    diff -rq "$made/$folder" "$root/inputs/graph/$folder"
done
