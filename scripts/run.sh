#!/bin/sh
# Installs what is missing, builds graph-bench and runs it. Arguments go to graph-bench; without any, the demo batch is
# checked and timed.
set -eu
here=$(pwd)
cd "$(dirname "$0")/.."
. scripts/packages.sh
need_packages $build_packages
build release --target graph-bench
binary=$(pwd)/build/release/graph-bench
if [ $# -eq 0 ]; then
    set -- --mode=CP --max-ms-per-prb=300 -v1 --batch=demo
else
    cd "$here"
fi
exec "$binary" "$@"
