# find_package(graphbench): targets graphbench::graphbench (shared) and graphbench::graphbench_static.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(OpenMP COMPONENTS C)
find_dependency(PkgConfig)
if(NOT TARGET PkgConfig::JSON_C)
  pkg_check_modules(JSON_C REQUIRED IMPORTED_TARGET json-c)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/graphbench-targets.cmake)
