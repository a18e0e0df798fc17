"""Puts the shared libraries into the wheel: those that GRAPHBENCH_LIB_DIR holds, else built with CMake."""

import os
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
NAMES = ("libgraphbench.so.0", "libgraphbench_bridge.so.0")


def built_libraries():
    """A folder that has the libraries, in itself or below; builds them where nobody names one."""
    given = os.environ.get("GRAPHBENCH_LIB_DIR")
    if given:
        return Path(given)
    folder = HERE / "build" / "cmake"
    configure = ["cmake", "-S", str(HERE.parent), "-B", str(folder)]
    options = {"CMAKE_BUILD_TYPE": "Release", "CMAKE_SKIP_RPATH": "ON"}
    options |= dict.fromkeys(("GB_TESTS", "GB_EXAMPLES", "GB_STATISTICS", "GB_OPENCL"), "OFF")
    subprocess.check_call(configure + [f"-D{name}={value}" for name, value in options.items()])
    subprocess.check_call(
        ["cmake", "--build", str(folder), "-j", str(os.cpu_count()), "--target"]
        + ["graphbench_shared", "graphbench_bridge_shared"]
    )
    return folder


class BuildWithLibraries(build_py):
    def run(self):
        super().run()
        source, target = built_libraries(), Path(self.build_lib) / "graphbench" / "lib"
        target.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            found = sorted(source.rglob(name))
            if not found:
                raise FileNotFoundError(f"{name} is not in {source}")
            shutil.copyfile(found[0], target / name)


class PlatformWheel(bdist_wheel):
    """One wheel for all versions of Python: the libraries are C, loaded by ctypes."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return True


setup(
    cmdclass={"build_py": BuildWithLibraries, "bdist_wheel": PlatformWheel},
    distclass=BinaryDistribution,
)
