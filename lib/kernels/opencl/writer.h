/* Writing a kernel: its text, the numbers that it reads, and how its work-items cover a space. */
#ifndef GB_KERNELS_OPENCL_WRITER_H
#define GB_KERNELS_OPENCL_WRITER_H

#include "kernels/opencl/program.h"
#include "kernels/opencl/text.h"
#include "kernels/plan/pointwise.h"

/* What gb_backend.compile_key carries to where groups are lowered. */
gb_cl_shape gb_cl_shape_of(const gb_program *program);

/* No dim runs in lanes. */
enum { GB_CL_NO_LANES = -1 };

/* Numbers are p[index] in the text. Text and numbers are owned. */
typedef struct gb_cl_writer {
    gb_program *program;
    gb_step *step;
    gb_cl_text text;
    int64_t *numbers;
    uint32_t n_numbers, capacity;
    bool uses_math, failed;
    int lanes;    /* elements that vectors of the text hold; 0: it has none */
    bool repeats; /* elements may be computed twice: nothing is written over what is read */
    const char *family;
    const char *row; /* in lanes, of a space: what is done at the start of a row; or NULL */
    size_t global[3], local[3];
} gb_cl_writer;

/* Index of a further number. */
uint32_t gb_cl_number(gb_cl_writer *w, int64_t number);
/* The same for the bits of an f32. */
uint32_t gb_cl_float(gb_cl_writer *w, float number);
/* Numbers that are not told apart by the text: n, then n pairs of a dim and a stride, the last dim
 * first. Index of n. For gb_offset() in memory.cl. */
uint32_t gb_cl_list(gb_cl_writer *w, int n, const int64_t *dims, const int64_t *strides);

/* The macros GB_ARGUMENTS, GB_BEGIN, GB_PARAMETERS and GB_PASSED: what a kernel is given, brings to
 * where it begins, and hands on to functions. All uses of the step are known. */
void gb_cl_print_arguments(gb_cl_writer *w);
/* " + i0 * p[3] + i2" for strides over a space, at most two numbers in the text's eyes: 0 and 1. */
void gb_cl_print_offset(gb_cl_writer *w, int ndims, const int64_t *strides);
/* "gb_load_f32(m1, 0 + i0 * p[3])": the element of a slot at a position. Where `lane_dim` runs in
 * lanes, those from i2 on of which `lanes` are there. NAME is of gb_cl_type_name(), or "lane". */
void gb_cl_print_read(gb_cl_writer *w, const char *name, uint32_t slot, int ndims,
        const int64_t *strides, int lane_dim);
/* "gb_store_f32(m1, 0 + i0 * p[3], ": the same for writing; the value and ")" are to follow. */
void gb_cl_print_write(gb_cl_writer *w, const char *name, uint32_t slot, int ndims,
        const int64_t *strides, int lane_dim);
/* "long i0, long i1, " and "i0, i1, " */
void gb_cl_print_indices(gb_cl_writer *w, int ndims, bool declared);
/* static void NAME(GB_PARAMETERS, long i0, ..., float r0): runs a pointwise program on the element
 * at a position of its space, whose register 0 is r0. Where `lane_dim` runs in lanes,
 * NAME(GB_PARAMETERS, long i0, ..., int lanes, GB_FLOATS r0). GB_UNIMPLEMENTED for what cannot be printed. */
gb_status gb_cl_print_pointwise(
        gb_cl_writer *w, const gb_pointwise_program *pointwise, const char *name, int lane_dim);
/* static void NAME(GB_PARAMETERS, long i0, ..., float r0, float *t): the same for a program with
 * operands in scratch, which are t[0], t[1], ...; with or without what it writes to memory. */
gb_status gb_cl_print_local_pointwise(gb_cl_writer *w, const gb_pointwise_program *pointwise,
        const char *name, int lane_dim, bool stores);
/* The kernel: one work-item for each position of a space calls `name` with GB_PASSED, the position
 * and `rest` (", 0.0f"). */
void gb_cl_print_space(
        gb_cl_writer *w, int ndims, const int64_t *dims, const char *name, const char *rest);

/* The same for several spaces, which work-items cover side by side: the functions are NAME0, NAME1,
 * ...; only NAME where there is one. */
typedef struct gb_cl_space {
    int ndims;
    const int64_t *dims;
} gb_cl_space;
enum { GB_CL_SPACES = 16 }; /* at most */
/* May elements be computed twice? Not where one may be written over what it is computed from. All uses of
 * the step are known. */
bool gb_cl_may_repeat(const gb_step *step);
/* On a CPU, which runs groups one after the other, the last dim of spaces runs in lanes where it is
 * long enough in most: then true, and what follows is written for that. The functions are called with
 * the position of the first lane, and `lanes` in front of `rest`. */
bool gb_cl_choose_lanes(gb_cl_writer *w, uint32_t n, const gb_cl_space *spaces);
void gb_cl_print_spaces(
        gb_cl_writer *w, uint32_t n, const gb_cl_space *spaces, const char *name, const char *rest);

/* Sizes of a launch of so many work-items along one dim. */
void gb_cl_set_flat(gb_cl_writer *w, int64_t count);
/* The same for x times y work-items that do much each; with GB_ITEMS, an attribute of the kernel.
 * The kernel returns where get_global_id(0) is x or more. */
void gb_cl_set_items(gb_cl_writer *w, int64_t x, int64_t y);

/* gb_load_NAME, gb_store_NAME; NULL for types that have none. */
const char *gb_cl_type_name(gb_data_type type);

/* Adds the step with what was written. `status` is that of the writing: the writer is freed in any
 * case. */
gb_status gb_cl_writer_add(gb_cl_writer *w, gb_status status);

#endif
