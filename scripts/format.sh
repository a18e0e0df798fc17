#!/bin/sh
# Holds all tracked C files to .clang-format, with the one version whose output they have (another lays out differently). Usage: format.sh
# [--fix]. Tables in .def files are laid out by hand.
set -eu
cd "$(dirname "$0")/.."
. scripts/packages.sh
tool=clang-format-14
if ! command -v $tool >/dev/null 2>&1; then
    if [ -z "${CI:-}" ]; then
        echo "skipped: $tool is missing"
        exit 0
    fi
    need_packages $format_packages
fi
files=$(git ls-files '*.c' '*.h')
if [ "${1:-}" = --fix ]; then
    echo "$files" | xargs $tool -i
    exit 0
fi
echo "$files" | xargs $tool --dry-run -Werror || { echo "error: scripts/format.sh --fix lays the files above out" >&2; exit 1; }
echo "$(echo "$files" | wc -l) files are laid out as .clang-format says"
