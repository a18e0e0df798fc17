#!/bin/sh
# Mutation score of the tool's own batches: plants the faults of tests/mutants/faults.tsv one at a time, builds, runs, and says which were
# found. mutants.sh --help tells the options; nightly: mutants.sh --steps=ci,all --coverage; CI takes a sample.
set -eu
cd "$(dirname "$0")/.."
. scripts/packages.sh
need_packages $build_packages
need_packages ninja-build ccache
exec python3 scripts/mutants.py "$@"
