#!/bin/sh
# Runs the fuzz targets with libFuzzer, address and undefined-behaviour sanitizers. Usage: fuzz.sh [MINUTES [TARGET...]], by default 5 minutes of
# each target (tests/fuzz/fuzz_TARGET.c). New inputs are kept in build/fuzz-corpus/TARGET; what goes wrong is left in build/fuzz-found/TARGET-*.
# A finding that is mended goes, minimised, into tests/fuzz/corpus/TARGET, which all builds replay as a test:
#     build/fuzz/tests/fuzz/fuzz_TARGET -minimize_crash=1 -max_total_time=60 FILE
set -eu
cd "$(dirname "$0")/.."
. scripts/packages.sh
need_packages $build_packages $clang_packages
minutes=${1:-5}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- json text options load graph bridge
targets=
for target in "$@"; do
    [ -f "tests/fuzz/fuzz_$target.c" ] || { echo "error: there is no target $target" >&2; exit 2; }
    targets="$targets --target fuzz_$target"
done
build fuzz $targets
mkdir -p build/fuzz-found
status=0
for target in "$@"; do
    corpus=build/fuzz-corpus/$target
    log=build/fuzz-found/$target.log
    mkdir -p "$corpus"
    # One thread waits for the other without turning; a single input gets 25 seconds and 2 GB.
    OMP_WAIT_POLICY=passive nice build/fuzz/tests/fuzz/fuzz_"$target" "$corpus" "tests/fuzz/corpus/$target" \
        -max_total_time=$((minutes * 60)) -timeout=25 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \
        -artifact_prefix="build/fuzz-found/$target-" ${FUZZ_OPTIONS:-} >"$log" 2>&1 || status=1
    echo "$target: $(grep -oE 'stat::number_of_executed_units: *[0-9]+' "$log" | grep -oE '[0-9]+$' || echo '?') executions in" \
        "$minutes min, $(ls "$corpus" | wc -l) inputs kept; $(grep -m1 -E '^SUMMARY|^fuzz:' "$log" || echo 'nothing found')"
done
exit $status
