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

# Instruction set levels that *.isa.c files are compiled for, and the flags of each.
set(GB_ISAS baseline)
set(GB_ISA_FLAGS_baseline "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND GB_ISAS avx2 avx512)
  set(GB_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
  set(GB_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c
    -mprefer-vector-width=512)
endif()

# gb_add_isa_library(name isa a.isa.c ...): object library gb_<name>_<isa> of sources in the words of kernels/vec.h.
function(gb_add_isa_library name isa)
  string(TOUPPER ${isa} level)
  add_library(gb_${name}_${isa} OBJECT ${ARGN})
  target_compile_definitions(gb_${name}_${isa} PRIVATE
    GB_ISA=${isa} GB_ISA_LEVEL=GB_ISA_${level} GB_VEC_HEADER="kernels/vec_${isa}.h")
  target_compile_options(gb_${name}_${isa} PRIVATE ${GB_ISA_FLAGS_${isa}})
  target_link_libraries(gb_${name}_${isa} PRIVATE gb_kernels_headers gb_options)
endfunction()
