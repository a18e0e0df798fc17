#!/bin/sh
# Tests of the Python package, against the libraries of a build: test_python.sh [arguments of pytest]. The Python is GB_PYTHON, else
# python3; where it has no torch the tests are skipped, aloud. With GB_CI_TORCH=1 torch is installed first, into build/python (5.7 GB), and
# the package as users install it: by pip alone, which builds the libraries once more.
set -eu
cd "$(dirname "$0")/.."
python=${GB_PYTHON:-python3}
if [ "${GB_CI_TORCH:-0}" = 1 ]; then
    [ -x build/python/bin/python ] || "$python" -m venv build/python
    python=$PWD/build/python/bin/python
    "$python" -m pip install -q torch torchvision transformers pytest numpy
fi
if ! "$python" -c 'import torch, torchvision, transformers, pytest' 2>/dev/null; then
    echo "skipped: tests of the Python package, $python has no torch, torchvision, transformers or pytest" \
        "(GB_PYTHON names another one; GB_CI_TORCH=1 installs them, 5.7 GB)"
    exit 0
fi
. scripts/packages.sh
need_packages $build_packages
build release --target graphbench_bridge_shared graph-bench
rm -rf build/python-package
if [ "${GB_CI_TORCH:-0}" = 1 ]; then
    "$python" -m pip install -q --target build/python-package --no-deps ./python
else # as users have it, with the libraries just built
    GRAPHBENCH_LIB_DIR=$PWD/build/release "$python" -m pip install -q --no-deps --no-build-isolation --target build/python-package ./python
fi
PYTHONPATH=$PWD/build/python-package GRAPH_BENCH=$PWD/build/release/graph-bench OMP_WAIT_POLICY=passive \
    "$python" -m pytest -q -p no:cacheprovider "$@" python/tests
