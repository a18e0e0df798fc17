#!/usr/bin/env bash
# Runs graph-bench on small cases and compares what it prints with what is expected.
#
#   run_cli_tests.sh GRAPH_BENCH [INPUTS_DIR]
#
# A test is a file cases/NAME.test:
#   args: --mode=L --case=add.json      shell words; the program runs in graphs/
#   needs: ulimit -v 2000000; "$bin" --version      left out: none; where this fails, the test is skipped aloud
#   exit: 0
#   stdout:                             expected lines, shell patterns; a line "..." stands for any number of lines
#   stderr:                             a section that is left out is not compared
# With INPUTS_DIR (our inputs/graph) its batch files must list without a failure too. Prints one line per failed test.
set -u
bin=$(realpath "$1")
inputs=${2:+$(realpath "$2")}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export inputs scratch
failed=0
count=0

fail() {
    echo "FAILED $1: $2"
    failed=$((failed + 1))
}

# matches ACTUAL_FILE EXPECTED_FILE: lines against patterns, "..." as a wildcard for lines. Names the first misfit.
matches() {
    local -a actual expected
    mapfile -t actual <"$1"
    mapfile -t expected <"$2"
    local a=0 e=0 resume_a=-1 resume_e=-1
    while ((a < ${#actual[@]})); do
        if ((e < ${#expected[@]})) && [[ ${expected[e]} == "..." ]]; then
            resume_e=$((++e))
            resume_a=$a
        elif ((e < ${#expected[@]})) && [[ ${actual[a]} == ${expected[e]} ]]; then
            a=$((a + 1))
            e=$((e + 1))
        elif ((resume_e >= 0)); then
            a=$((++resume_a))
            e=$resume_e
        else
            echo "line $((a + 1)) is \"${actual[a]}\", expected \"${expected[e]-the end}\""
            return 1
        fi
    done
    while ((e < ${#expected[@]})) && [[ ${expected[e]} == "..." ]]; do e=$((e + 1)); done
    ((e == ${#expected[@]})) && return 0
    echo "missing: \"${expected[e]}\""
    return 1
}

# section NAME FILE: the lines below "NAME:" up to the next section.
section() {
    awk -v name="$1:" '$0 == name { on = 1; next } /^(args|needs|exit|stdout|stderr):/ { on = 0 } on' "$2"
}

run_test() {
    local file=$1 name needs args expected_exit misfit stream
    name=$(basename "$file" .test)
    needs=$(sed -n 's/^needs: *//p' "$file")
    if [[ -n $needs ]] && ! (eval "$needs") >/dev/null 2>&1; then
        echo "skipped $name: this program does not do: $needs"
        return
    fi
    args=$(sed -n 's/^args: *//p' "$file")
    expected_exit=$(sed -n 's/^exit: *//p' "$file")
    (cd "$here/graphs" && eval "\"$bin\" $args") >"$scratch/stdout" 2>"$scratch/stderr"
    local status=$?
    [[ $status == "$expected_exit" ]] || fail "$name" "exit status is $status, expected $expected_exit"
    for stream in stdout stderr; do
        grep -q "^$stream:\$" "$file" || continue
        section $stream "$file" >"$scratch/expected"
        misfit=$(matches "$scratch/$stream" "$scratch/expected") || fail "$name" "$stream: $misfit"
    done
    count=$((count + 1))
}

# The reproducer line of a case must run the same case: same line, index 0.
check_round_trip() {
    local line repro again
    local lines=0
    while IFS= read -r line; do
        repro=${line#*__REPRO: }
        again=$(cd "$here/graphs" && eval "\"$bin\" $repro" 2>&1 | sed -n 's/^0:LISTED .*__REPRO: //p')
        [[ $again == "$repro" ]] || fail round_trip "\"$repro\" gives \"$again\""
        lines=$((lines + 1))
    done < <(cd "$here/graphs" && "$bin" --mode=L --batch=../batch/round_trip 2>&1 | grep __REPRO)
    ((lines == 16)) || fail round_trip "$lines cases instead of 16"
    count=$((count + 1))
}

check_inputs() {
    local batch
    for batch in "$inputs"/*; do
        [[ -f $batch ]] || continue
        "$bin" --mode=L --batch="$batch" >"$scratch/stdout" 2>&1 ||
            fail inputs "$(basename "$batch"): $(grep -m1 FAILED "$scratch/stdout")"
        count=$((count + 1))
    done
}

for file in "$here"/cases/*.test; do
    run_test "$file"
done
check_round_trip
[[ -n $inputs ]] && check_inputs
echo "$count command line tests, $failed failures"
[[ $failed == 0 ]]
