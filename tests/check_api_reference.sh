#!/bin/sh
# docs/api.md must be what its script writes from the public headers, and the C++ wrapper must use every function.
#
#   check_api_reference.sh PYTHON
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
made=$(mktemp)
trap 'rm -f "$made"' EXIT
PYTHONDONTWRITEBYTECODE=1 "$1" "$root/scripts/make_api_reference.py" "$root/include/graphbench" "$made"
diff "$root/docs/api.md" "$made" || { echo "docs/api.md is not current: run scripts/make_api_reference.py" >&2; exit 1; }
for name in $(cat "$root"/include/graphbench/*.h | sed -n '/^GB_API/,/;/p' | grep -oE 'gb_[a-z0-9_]+\(' | tr -d '(' | sort -u); do
    grep -q "<a id=\"$name\">" "$made" || { echo "$name is missing in docs/api.md" >&2; exit 1; }
done
for name in $(cat "$root"/include/graphbench/*.h | sed -n '/^GB_API/,/;/p' | grep -oE 'gb_[a-z0-9_]+\(' | tr -d '(' | sort -u); do
    grep -qw "$name" "$root"/include/graphbench/*.hpp || { echo "the C++ headers have no use of $name" >&2; exit 1; }
done
