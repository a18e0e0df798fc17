# Compiler settings shared by all targets, and gb_add_room(): a folder that may see only the rooms it names.

add_library(gb_plain_options INTERFACE)
target_compile_options(gb_plain_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wundef -Wformat=2 -Wcast-qual -Wstrict-prototypes
  -Wmissing-prototypes -Wdouble-promotion)
# Arithmetic must be the one written: no contraction of a*b+c unless the source says fma.
target_compile_options(gb_plain_options INTERFACE -ffp-contract=off -fno-math-errno)
if(GB_WERROR)
  target_compile_options(gb_plain_options INTERFACE -Werror)
endif()
# GCC clears and copies structures by rep stos and rep movs: tens of cycles to begin, and what they write is not
# forwarded to loads, which wait until all stores before it are in the cache. A store after the other is faster.
include(CheckCCompilerFlag)
set(plain_strings -mmemset-strategy=vector_loop:1024:noalign,libcall:-1:noalign
  -mmemcpy-strategy=unrolled_loop:1024:noalign,libcall:-1:noalign)
string(REPLACE ";" " " plain_strings_flags "${plain_strings}")
check_c_compiler_flag("${plain_strings_flags}" GB_HAS_PLAIN_STRINGS)
if(GB_HAS_PLAIN_STRINGS)
  target_compile_options(gb_plain_options INTERFACE ${plain_strings})
endif()
add_library(gb_options INTERFACE)
target_link_libraries(gb_options INTERFACE gb_plain_options)
if(GB_SANITIZE)
  # Lines are all that reports name; to follow variables through sanitized kernels takes GCC minutes for a file.
  target_compile_options(gb_options INTERFACE -fsanitize=${GB_SANITIZE} -fno-omit-frame-pointer -g1
    $<$<C_COMPILER_ID:GNU>:-fno-var-tracking-assignments>)
  target_link_options(gb_options INTERFACE -fsanitize=${GB_SANITIZE})
  if(GB_SANITIZE MATCHES "undefined")
    target_compile_options(gb_options INTERFACE -fno-sanitize-recover=undefined)
  endif()
endif()

# Instruction set levels that *.isa.c files are compiled for, and the flags of each.
set(GB_ISAS baseline)
set(GB_ISA_FLAGS_baseline "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND GB_ISAS avx2 avx512)
  set(GB_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
  set(GB_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c
    -mprefer-vector-width=512)
  # Kernels of AMX, which writes its instructions as text, and takes all others from avx512.
  set(GB_ISA_FLAGS_amx ${GB_ISA_FLAGS_avx512})
endif()

# Options of kernels of a level. Sanitizers are for what runs: with them GCC takes minutes for a file, so that levels that this
# machine lacks go without; with -O1 it takes a fifth of the time that it takes with -O3.
set(GB_ISA_NEEDS_avx2 avx2)
set(GB_ISA_NEEDS_avx512 avx512bw)
set(GB_ISA_NEEDS_amx amx_tile)
function(gb_isa_options isa options)
  set(${options} gb_options PARENT_SCOPE)
  if(GB_SANITIZE AND GB_ISA_NEEDS_${isa} AND EXISTS /proc/cpuinfo)
    file(READ /proc/cpuinfo processors)
    if(NOT processors MATCHES " ${GB_ISA_NEEDS_${isa}}[ \n]")
      set(${options} gb_plain_options PARENT_SCOPE)
    endif()
  endif()
endfunction()

# gb_add_isa_library(name isa a.isa.c ...): object library gb_<name>_<isa> of sources in the words of kernels/isa/vec.h.
function(gb_add_isa_library name isa)
  string(TOUPPER ${isa} level)
  add_library(gb_${name}_${isa} OBJECT ${ARGN})
  target_compile_definitions(gb_${name}_${isa} PRIVATE
    GB_ISA=${isa} GB_ISA_LEVEL=GB_ISA_${level} GB_VEC_HEADER="kernels/isa/vec_${isa}.h")
  target_compile_options(gb_${name}_${isa} PRIVATE ${GB_ISA_FLAGS_${isa}})
  gb_isa_options(${isa} options)
  target_link_libraries(gb_${name}_${isa} PRIVATE gb_kernels_isa_headers ${options})
endfunction()

# gb_add_room(kernels/gemm [OPENMP] SOURCES a.c b.c ISA c.isa.c AMX d.c SEES base kernels/plan)
# A folder and what it may see. Its headers are included as "kernels/gemm/file.h"; only those of the rooms it SEES, and of
# the rooms that these see, are on its include path. ISA sources are built once per instruction set, AMX sources for that
# one alone. gb_objects() collects the objects of a top room (the part before the first slash).
function(gb_add_room room)
  cmake_parse_arguments(ARG "OPENMP" "" "SOURCES;ISA;AMX;SEES" ${ARGN})
  string(REPLACE / _ name ${room})
  string(REGEX REPLACE /.* "" top ${room})
  add_library(gb_${name}_headers INTERFACE)
  set(shown ${CMAKE_BINARY_DIR}/rooms/${name})
  file(REMOVE_RECURSE ${shown})
  file(MAKE_DIRECTORY ${shown}/${room})
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h ${CMAKE_CURRENT_SOURCE_DIR}/*.def)
  foreach(header IN LISTS headers)
    get_filename_component(file ${header} NAME)
    file(CREATE_LINK ${header} ${shown}/${room}/${file} SYMBOLIC)
  endforeach()
  target_include_directories(gb_${name}_headers INTERFACE ${CMAKE_SOURCE_DIR}/include ${shown})
  foreach(seen IN LISTS ARG_SEES)
    string(REPLACE / _ seen ${seen})
    target_link_libraries(gb_${name}_headers INTERFACE gb_${seen}_headers)
  endforeach()
  set_property(GLOBAL APPEND PROPERTY gb_rooms gb_${name}_headers)
  if(ARG_SOURCES)
    add_library(gb_${name} OBJECT ${ARG_SOURCES})
    target_link_libraries(gb_${name} PUBLIC gb_${name}_headers PRIVATE gb_options)
    if(ARG_OPENMP)
      target_link_libraries(gb_${name} PRIVATE OpenMP::OpenMP_C)
    endif()
    set_property(GLOBAL APPEND PROPERTY gb_objects_${top} $<TARGET_OBJECTS:gb_${name}>)
  endif()
  if(ARG_ISA)
    if(GB_SANITIZE MATCHES "fuzzer")
      # Clang takes ten times as long for a kernel with all checks; the preset asan-ubsan has them.
      set_source_files_properties(${ARG_ISA} PROPERTIES COMPILE_OPTIONS -fno-sanitize=undefined)
    elseif(GB_SANITIZE MATCHES "address" AND GB_SANITIZE MATCHES "undefined")
      # These check each pointer before its use, where the address sanitizer looks again, and take GCC as long as all others.
      set_source_files_properties(${ARG_ISA} ${ARG_AMX} PROPERTIES
        COMPILE_OPTIONS -fno-sanitize=null,object-size,pointer-overflow)
    endif()
    foreach(isa IN LISTS GB_ISAS ITEMS amx)
      set(sources ${ARG_ISA})
      if(isa STREQUAL "amx")
        set(sources ${ARG_AMX})
      endif()
      if(NOT sources OR NOT DEFINED GB_ISA_FLAGS_${isa})
        continue()
      endif()
      gb_add_isa_library(${name} ${isa} ${sources})
      target_link_libraries(gb_${name}_${isa} PRIVATE gb_${name}_headers)
      gb_isa_options(${isa} options)
      if(GB_SANITIZE AND options STREQUAL "gb_options")
        target_compile_options(gb_${name}_${isa} PRIVATE -O1)
      else()
        target_compile_options(gb_${name}_${isa} PRIVATE -O3)
      endif()
      set_property(GLOBAL APPEND PROPERTY gb_objects_${top} $<TARGET_OBJECTS:gb_${name}_${isa}>)
    endforeach()
  endif()
endfunction()

# gb_objects(list top ...): the objects of all rooms below the top rooms named.
function(gb_objects list)
  foreach(top IN LISTS ARGN)
    get_property(objects GLOBAL PROPERTY gb_objects_${top})
    list(APPEND all ${objects})
  endforeach()
  set(${list} ${all} PARENT_SCOPE)
endfunction()
