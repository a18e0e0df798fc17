#!/bin/sh
# Sets up two OpenCL devices that run on any x86-64 processor, in FOLDER (default: build/opencl): PoCL from the
# distribution's packages, and Intel's CPU runtime from its Python package. Prints how to choose one.
set -eu
folder=${1:-$(cd "$(dirname "$0")/.." && pwd)/build/opencl}
mkdir -p "$folder/intel"

if ls /etc/OpenCL/vendors/pocl*.icd >/dev/null 2>&1; then
    echo "PoCL: installed"
elif [ "$(id -u)" = 0 ]; then
    apt-get install -y --no-install-recommends pocl-opencl-icd ocl-icd-opencl-dev
else
    echo "PoCL: install it with: sudo apt-get install pocl-opencl-icd ocl-icd-opencl-dev" >&2
fi

[ -x "$folder/venv/bin/pip" ] || python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet intel-opencl-rt intel-cmplr-lib-rt
library=$(find "$folder/venv" -name libintelocl.so | head -n 1)
[ -n "$library" ] || { echo "Intel's runtime: no libintelocl.so in $folder/venv" >&2; exit 1; }
echo "$library" >"$folder/intel/intel.icd"

cat <<END
PoCL:            OCL_ICD_VENDORS=/etc/OpenCL/vendors graph-bench --list-devices
Intel's runtime: OCL_ICD_VENDORS=$folder/intel LD_LIBRARY_PATH=$(dirname "$library") graph-bench --list-devices
END
