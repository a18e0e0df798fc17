/* How problems with reduced dims become kernels of cl/rows.cl: one for all, or, where rows are few
 * and long, one that sums parts of rows, one that joins the parts, and one for the results. */
#ifndef GB_KERNELS_OPENCL_ROWS_H
#define GB_KERNELS_OPENCL_ROWS_H

#include "kernels/opencl/lower.h"
#include "kernels/plan/operand.h"
#include "kernels/plan/reduction_problem.h"

typedef enum gb_cl_stage {
    GB_CL_STAGE_ALL,
    GB_CL_STAGE_SUMS,
    GB_CL_STAGE_JOIN,
    GB_CL_STAGE_RESULTS
} gb_cl_stage;

typedef struct gb_cl_row_writer gb_cl_row_writer;

/* What a kind of problem writes into kernels: the macros that cl/rows.cl says. */
typedef struct gb_cl_rows_form {
    void (*prepare)(gb_cl_row_writer *rows); /* GB_PREPARE; NULL: nothing */
    void (*fold)(gb_cl_row_writer *rows);    /* how sums come about, from GB_START to GB_REBASE */
    void (*finish)(gb_cl_row_writer *rows);  /* GB_FINISH */
    void (*result)(
            gb_cl_row_writer *rows); /* GB_APPLY; NULL: rows have results, elements have none */
    int n_values;                    /* parameters, from k0 on, that results depend on */
    bool keeps; /* where rows are short, results are made of what GB_FOLD_AGAIN keeps */
} gb_cl_rows_form;

/* A problem while it is written. */
struct gb_cl_row_writer {
    gb_program *program;
    gb_step *described; /* with the uses that the operands' slots mean; begun by the caller */
    const gb_reduced_space *space;
    const gb_pointwise_program *pointwise; /* over the space, or NULL */
    const gb_cl_rows_form *form;
    const void *problem; /* the form's */
    bool uses_math;
    bool separate;            /* the described step is for something else */
    bool joins_later;         /* where rows are cut, the kernel of others joins the parts */
    gb_cl_row_writer *others; /* joins their parts, too; NULL: none are left to join */

    /* Set by gb_cl_rows_add(). */
    gb_cl_writer *w; /* of the stage */
    gb_cl_stage stage;
    int vectors;      /* lanes of columns that a work-item walks side by side; 0: not all whole */
    int along, lanes; /* lanes: or work-items of the group that shares a row */
    int lane_dim;     /* of the stage: the dim that runs in lanes */
    bool keeps;       /* the stage is the form's only one and rows are short, in lanes */
    int64_t rows, splits, part;
    uint32_t sums, values; /* buffers between the stages */
};

/* Adds the steps. The described step is the only one, or is left as it is. */
gb_status gb_cl_rows_add(gb_cl_row_writer *rows);

/* Rows from which on none is cut into parts to give the device more to do. */
int64_t gb_cl_row_items(const gb_cl_shape *shape);

/* lower_two_pass.c: how sums of elements, and of squares of their differences from the mean, come
 * about. */
void gb_cl_print_moments(gb_cl_row_writer *rows, const gb_operand *src);

/* "gb_load_f32(m0, 0 + i0 * p[2] + i1)": the element of an operand, at the position in the text. */
void gb_cl_rows_load(gb_cl_row_writer *rows, const gb_operand *operand);
/* " gb_store_f32(m1, 0 + i0, VALUE);" */
void gb_cl_rows_store(gb_cl_row_writer *rows, const gb_operand *operand, const char *value);
/* The argument of a slot of the described step. */
uint32_t gb_cl_rows_slot(gb_cl_row_writer *rows, uint32_t slot);
/* The same for a tensor whose elements are given by their numbers in row-major order, as strides over
 * the space. */
void gb_cl_rows_load_numbered(gb_cl_row_writer *rows, const gb_logical_tensor *tensor,
        uint32_t slot, const int64_t *strides);
void gb_cl_rows_store_numbered(gb_cl_row_writer *rows, const gb_logical_tensor *tensor,
        uint32_t slot, const int64_t *strides, const char *value);

/* lower_rows.c: an expression of a sum GB_A and an element x, and of two sums p and q. */
typedef struct gb_cl_reduce_text {
    const char *start, *fold, *join;
} gb_cl_reduce_text;
const gb_cl_reduce_text *gb_cl_reduce_text_of(gb_reduce_kind kind);
/* GB_FINISH: what becomes of a sum of `n` elements; hands it to GB_POST. */
void gb_cl_print_reduction_finish(gb_cl_writer *w, const gb_reduction_problem *problem, int64_t n);
/* Adds the steps of a reduction; the step has its uses. */
gb_status gb_cl_add_reduction(
        gb_program *program, gb_step *step, const gb_reduction_problem *problem);
/* lower_late.c: of a Reduce op whose axes are in a tensor. */
gb_status gb_cl_lower_late_reduction(gb_program *program, const gb_group *group);

#endif
