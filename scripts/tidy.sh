#!/bin/sh
# clang-tidy (.clang-tidy) over the library, the bridge and the command line; build/release tells how each file is compiled. Usage: tidy.sh [FILE...].
# The compiler that judges warnings is gcc: those of clang are not errors, even where the build asks for that (GB_WERROR).
# The analyzer, which takes minutes of every core and sees ghosts in loops that the ops' rules bound, is left to: TIDY_CHECKS= tidy.sh.
set -eu
cd "$(dirname "$0")/.."
. scripts/packages.sh
tool=clang-tidy-14
if ! command -v $tool >/dev/null 2>&1; then
    if [ -z "${CI:-}" ]; then
        echo "skipped: $tool is missing"
        exit 0
    fi
    need_packages $tidy_packages
fi
[ -f build/release/compile_commands.json ] || build release --target graph-bench
mkdir -p build/tidy
sed 's/-mmem[a-z]*-strategy=[^ ]*//g' build/release/compile_commands.json >build/tidy/compile_commands.json # options of gcc alone
checks=${TIDY_CHECKS--clang-analyzer-*}
[ $# -gt 0 ] || set -- $(git ls-files 'lib/*.c' 'cli/*.c' 'bridge/*.c' | grep -v '\.isa\.c$')
# The launcher is compiled where there is MPI.
grep -q cli/mpi/ build/release/compile_commands.json || set -- $(echo "$@" | tr ' ' '\n' | grep -v '^cli/mpi/')
echo "$@" | tr ' ' '\n' | nice xargs -P "$(nproc)" -n 8 $tool --quiet -p build/tidy --checks="$checks" --extra-arg=-Wno-error --warnings-as-errors='*' 2>build/tidy.log || {
    grep -v 'warnings generated' build/tidy.log >&2
    exit 1
}
echo "$# files have no findings"
