#!/bin/sh
# --print=program: a few programs word by word, at every instruction set, and all of our graphs without an error.
#
#   check_programs.sh GRAPH-BENCH INPUTS
#
# programs/NAME.txt holds the arguments in its first line, behind "# ", and what is printed but for the lines on scratch, which
# depend on the plan. Phases and packed constants do, too, at levels with integer dot products: those are not held to the words. UPDATE=1 writes the files anew.
set -eu
bench=$(realpath "$1")
inputs=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$here/graphs"

fail() {
    echo "$*" >&2
    exit 1
}

for expected in "$here"/programs/*.txt; do
    arguments=$(sed -n '1s/^# //p' "$expected")
    for isa in avx2 baseline; do
        # shellcheck disable=SC2086 # words
        GB_MAX_ISA=$isa GB_CACHES=32768:1048576:33554432 OMP_NUM_THREADS=2 "$bench" --mode=I --print=program --input-dir="$inputs" $arguments \
            >"$work/result" 2>"$work/all" || fail "$expected, $isa: $(cat "$work/result" "$work/all")"
        { sed -n 1p "$expected"; grep -v '^    scratch ' "$work/all"; } >"$work/program"
        [ -z "${UPDATE:-}" ] || cp "$work/program" "$expected"
        diff "$expected" "$work/program" || fail "$expected at GB_MAX_ISA=$isa"
        steps=$(grep -c '^step ' "$work/all") scratch=$(grep -c '^    scratch [0-9]* bytes' "$work/all")
        [ "$steps" -gt 0 ] && [ "$steps" = "$scratch" ] || fail "$expected: $steps steps, $scratch lines on scratch"
    done
done

# Every graph, every step with a kernel, something read or written; the results are what they are without it.
"$bench" --mode=C --print=program --batch="$inputs/ci" >"$work/result" 2>"$work/all" || fail "mode C: $(tail -5 "$work/result")"
awk '/^# program:/ { n++ } /^step / && NF < 3 { print "no kernel: " $0; bad = 1 }
     /^    (reads|writes) [%@]/ && !/: (input|output|arena|constants|literals) [0-9]+, [0-9]+ bytes/ { print; bad = 1 }
     /^step/ { if (open) { print "no buffers: " last; bad = 1 } open = 1; last = $0 } /^    writes/ { open = 0 }
     END { exit bad || n < 100 }' "$work/all" || fail "mode C prints something else"
"$bench" --mode=F --print=program --case="$inputs/op/matmul.json" >"$work/result" 2>"$work/all" || fail "mode F"
grep -q '^    product over ' "$work/all" || fail "mode F prints no program"
"$bench" --mode=L --print=program --case="$inputs/op/matmul.json" >"$work/result" 2>"$work/all" || fail "mode L"
[ ! -s "$work/all" ] || fail "mode L compiles nothing, but prints $(cat "$work/all")"
