# Sourced by the other scripts: installs missing Debian packages, or says exactly which ones to install.

build_packages="gcc cmake make pkg-config libjson-c-dev ocl-icd-opencl-dev libgsl-dev libsqlite3-dev libzip-dev"
test_packages="libcriterion-dev g++"
opencl_packages="pocl-opencl-icd"
# Runs over many machines (docs/scaling.md); their tests are skipped where these are missing.
machine_packages="munge slurmctld slurmd slurm-client openmpi-bin libopenmpi-dev parallel"
clang_packages="clang libomp-14-dev libclang-rt-14-dev"
format_packages="clang-format-14"
tidy_packages="clang-tidy-14"

# need_packages NAME...: makes sure that all are there.
need_packages() {
    missing=""
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "install ok installed" || missing="$missing $package"
    done
    [ -z "$missing" ] && return 0
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing:$missing" >&2
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } \
            >/dev/null || { echo "error: could not install:$missing" >&2; return 1; }
        return 0
    fi
    echo "error: these packages are missing; install them and run this command again:" >&2
    echo "    sudo apt-get install$missing" >&2
    return 1
}

# build PRESET [cmake build arguments]: configures and builds, quietly unless something fails. In CI (variable CI set), warnings are
# errors in every preset without sanitizers, whose instrumentation makes the compiler see ghosts.
build() {
    preset=$1
    shift
    mkdir -p build
    log="build/$preset.log"
    strict=
    case "${CI:+ci}-$preset" in ci-release | ci-no-opencl) strict=-DGB_WERROR=ON ;; esac
    if ! { cmake --preset "$preset" $strict && cmake --build --preset "$preset" -j "$(nproc)" "$@"; } >"$log" 2>&1; then
        cat "$log" >&2
        echo "error: the build failed; the output above is in $log" >&2
        return 1
    fi
}
