# What `cmake --install` puts in place: the program, both forms of the library, headers, the manual
# page, graphs, and what lets other builds find them.
include(CMakePackageConfigHelpers)

install(TARGETS graph-bench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(GB_HAS_MPI)
  install(TARGETS graph-bench-mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS graphbench graphbench_shared graphbench_bridge_shared EXPORT graphbench
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(left_out "")
if(NOT GB_HAS_OPENCL)
  set(left_out PATTERN "graphbench_ocl.h*" EXCLUDE)
endif()
install(DIRECTORY include/graphbench DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${left_out})
install(FILES bridge/graphbench_bridge.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/graphbench)
install(FILES docs/graph-bench.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(DIRECTORY inputs/graph DESTINATION ${CMAKE_INSTALL_DATADIR}/graph-bench/inputs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/graphbench)
install(EXPORT graphbench NAMESPACE graphbench:: FILE graphbench-targets.cmake
  DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/graphbench-config-version.cmake
  COMPATIBILITY SameMinorVersion)
configure_file(cmake/graphbench-config.cmake ${CMAKE_BINARY_DIR}/graphbench-config.cmake @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/graphbench-config.cmake ${CMAKE_BINARY_DIR}/graphbench-config-version.cmake
  DESTINATION ${package_dir})

set(pc_opencl "")
if(GB_HAS_OPENCL)
  set(pc_opencl " -lOpenCL")
endif()
# The prefix is where the file lies, so that an install tree can be moved.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/graphbench.pc.in ${CMAKE_BINARY_DIR}/graphbench.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/graphbench.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
