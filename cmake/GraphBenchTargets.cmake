# Compiler settings shared by all targets, and gb_add_layer(): one library folder that may see only the layers named.

add_library(gb_options INTERFACE)
target_compile_options(gb_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wundef -Wformat=2 -Wcast-qual -Wstrict-prototypes
  -Wmissing-prototypes -Wdouble-promotion)
# Arithmetic must be the one written: no contraction of a*b+c unless the source says fma.
target_compile_options(gb_options INTERFACE -ffp-contract=off -fno-math-errno)
if(GB_WERROR)
  target_compile_options(gb_options INTERFACE -Werror)
endif()
if(GB_SANITIZE)
  target_compile_options(gb_options INTERFACE -fsanitize=${GB_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(gb_options INTERFACE -fsanitize=${GB_SANITIZE})
  if(GB_SANITIZE MATCHES "undefined")
    target_compile_options(gb_options INTERFACE -fno-sanitize-recover=undefined)
  endif()
endif()

# gb_add_layer(name SOURCES a.c b.c SEES base graph)
# Headers of a layer are included as "layer/file.h"; only the layers it SEES are on its include path.
function(gb_add_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;SEES" ${ARGN})
  add_library(gb_${name} OBJECT ${ARG_SOURCES})
  add_library(gb_${name}_headers INTERFACE)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/layers/${name})
  if(NOT EXISTS ${CMAKE_BINARY_DIR}/layers/${name}/${name})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_BINARY_DIR}/layers/${name}/${name} SYMBOLIC)
  endif()
  target_include_directories(gb_${name}_headers INTERFACE
    ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/layers/${name})
  foreach(seen IN LISTS ARG_SEES)
    target_link_libraries(gb_${name}_headers INTERFACE gb_${seen}_headers)
  endforeach()
  target_link_libraries(gb_${name} PUBLIC gb_${name}_headers PRIVATE gb_options)
endfunction()
