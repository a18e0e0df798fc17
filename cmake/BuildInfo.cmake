# Writes what the program was built from: cmake -DOUTPUT=FILE -DSOURCE=DIR -DCOMPILER=... -DFLAGS=... -DTYPE=... -P BuildInfo.cmake
# The commit ends in "-dirty" when files that git knows were changed; it is empty outside of a repository.
execute_process(
  COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --match=
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
string(CONCAT text
  "/* Made by cmake/BuildInfo.cmake: what the program was built from. */\n"
  "#define GB_BUILD_COMMIT \"${commit}\"\n"
  "#define GB_BUILD_COMPILER \"${COMPILER}\"\n"
  "#define GB_BUILD_FLAGS \"${FLAGS}\"\n"
  "#define GB_BUILD_TYPE \"${TYPE}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT text STREQUAL "${old}")
  file(WRITE ${OUTPUT} "${text}")
endif()
