#!/bin/sh
# Installs what is missing, builds everything and runs all tests. Presets to test may be named, and options of ctest behind "--":
# test.sh [release|asan-ubsan|...] [-- -L unit]; without any, release.
set -eu
cd "$(dirname "$0")/.."
. scripts/packages.sh
need_packages $build_packages $test_packages
presets=
while [ $# -gt 0 ]; do
    case $1 in
        --) shift; break ;;
        *) presets="$presets $1"; shift ;;
    esac
done
for preset in ${presets:-release}; do
    [ "$preset" != tsan ] || need_packages $clang_packages
    build "$preset"
    status=0
    ctest --preset "$preset" "$@" || status=$?
    # What a machine cannot run is told, not passed over.
    sed -n 's/^\[SKIP\] .*: //p' "build/$preset/Testing/Temporary/LastTest.log" | sort | uniq -c |
        sed 's/^ *\([0-9]*\)/skipped: \1 unit tests,/'
    [ "$status" -eq 0 ] || exit "$status"
done
