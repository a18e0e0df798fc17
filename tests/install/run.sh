#!/bin/sh
# Installs a build into a fresh prefix and uses it from outside: find_package and pkg-config, shared and static; then holds
# the exported symbols against the headers.    run.sh BUILD_DIR
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >"$work/install.log"

cmake -S "$here" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
    cmake --build "$work/consumer" >>"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
for program in consumer_c consumer_static consumer_cpp; do
    "$work/consumer/$program"
    echo "find_package: $program ran"
done

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name graphbench.pc)")
export PKG_CONFIG_PATH
libs=$(dirname "$(find "$prefix" -name libgraphbench.so)")
# shellcheck disable=SC2046 # words are wanted
cc -std=c99 $(pkg-config --cflags graphbench) "$here/consumer.c" -o "$work/by_pkg_config" $(pkg-config --libs graphbench)
LD_LIBRARY_PATH=$libs "$work/by_pkg_config"
echo "pkg-config: ran"

# hold_exports LIBRARY HEADER...: what the library exports is what the headers declare.
hold_exports() {
    library=$1
    shift
    nm -D --defined-only "$libs/$library" | awk '{print $3}' | sort >"$work/exported"
    cat "$@" | sed -n '/^GB_API/,/;/p' | grep -oE 'gb_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$work/declared"
    diff "$work/declared" "$work/exported" || { echo "$library: exported symbols (>) differ from the headers (<)" >&2; exit 1; }
    echo "$library: $(wc -l <"$work/exported") functions, as declared"
}
bridge=$prefix/include/graphbench/graphbench_bridge.h
# shellcheck disable=SC2046 # words are wanted
hold_exports libgraphbench.so $(ls "$prefix"/include/graphbench/*.h | grep -v graphbench_bridge)
hold_exports libgraphbench_bridge.so "$bridge"

# The installed program finds the graphs that were installed with it, from any folder.
cd "$work"
"$prefix/bin/graph-bench" --mode=C --case=op/relu.json --batch=text/ci >"$work/tool.log" 2>&1 ||
    { cat "$work/tool.log" >&2; exit 1; }
echo "installed program: ran its graphs"
