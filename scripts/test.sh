#!/bin/sh
# Installs what is missing, builds everything and runs all tests. Presets to test may be named: test.sh [release|asan-ubsan|...];
# without any, release.
set -eu
cd "$(dirname "$0")/.."
. scripts/packages.sh
need_packages $build_packages $test_packages
[ $# -gt 0 ] || set -- release
for preset in "$@"; do
    [ "$preset" != tsan ] || need_packages clang libomp-14-dev libclang-rt-14-dev
    build "$preset"
    ctest --preset "$preset"
done
