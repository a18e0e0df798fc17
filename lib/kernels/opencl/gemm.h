/* What kernels of cl/gemm.cl share. */
#ifndef GB_KERNELS_OPENCL_GEMM_H
#define GB_KERNELS_OPENCL_GEMM_H

#include "kernels/opencl/lower.h"
#include "kernels/plan/gemm_problem.h"

/* Operands: which of them is meant. That of the gate is as B is. */
enum { GB_CL_A, GB_CL_B, GB_CL_GATE_B, GB_CL_OPERANDS };

/* The space of results: tiles of rows and columns, all other dims as batch. */
typedef struct gb_cl_tile_space {
    const gb_pointwise_program *pointwise; /* that takes the results */
    bool is_gated;                         /* gb_gate takes those of the gate */
    const int64_t *dims;
    int row_dim, col_dim;     /* -1: there is one row, or column */
    bool is_merged[GB_AXES];  /* dims that rows or columns run through, too: they count beyond
                                 row_dim or col_dim, and are 0 in the text */
    int64_t rows, columns, k; /* rows and columns of all merged dims */
    /* Of convolutions: rows or columns are the channels of one group, and the number of the group,
     * `group` in the text, is a batch dim. 0: there are none. */
    int64_t groups;
    bool groups_in_rows;
    bool a_in_place; /* A is read where it lies: GB_A_IN_PLACE */
    bool b_direct;   /* B may be read without a copy where rows are few: GB_B_DIRECT */
    /* Operands that a step packs: GB_A_PACKED, GB_B_PACKED, and their slots. */
    bool is_packed[GB_CL_OPERANDS];
    uint32_t packed_slots[GB_CL_OPERANDS];
} gb_cl_tile_space;

/* Is it worth a step, run once, to pack this operand of a product of so many rows and columns? On a
 * CPU, where the buffer is constant. `is_f32`: it takes no more memory then. */
bool gb_cl_packs(const gb_program *program, uint32_t buffer, int operand, int64_t rows,
        int64_t columns, bool is_f32);
/* Has the buffer the same content in every execution, also as what earlier steps make of such ones? */
bool gb_cl_is_constant(const gb_program *program, uint32_t buffer);
/* A step that packs (cl/pack.cl) in the making. */
typedef struct gb_cl_packing {
    gb_cl_writer w;
    int64_t side, k, taps; /* rows of A, or columns of B, and terms */
    int width;
    uint32_t slot; /* of what is written */
} gb_cl_packing;
/* Begins the step: its uses are to be added, then, after gb_cl_print_packing(), GB_BASES and
 * GB_ELEMENT. `w` is that of the product, which gets a use of what is packed. */
gb_status gb_cl_begin_packing(gb_cl_writer *w, int operand, int64_t rows, int64_t columns,
        int64_t k, int64_t taps, gb_cl_packing *packing, uint32_t *slot);
void gb_cl_print_packing(gb_cl_packing *packing);

/* On a CPU, where columns of results run in lanes: their dim, after which the kernel is in lanes. To be
 * called before anything is printed. GB_CL_NO_LANES: elsewhere, or where there is one column. */
int gb_cl_choose_tile_lanes(gb_cl_writer *w, int col_dim, int64_t columns);

/* GB_ROWS, GB_COLUMNS, GB_K, GB_BATCH, GB_POST (of a function gb_post over the space), GB_RESULT_AT and
 * the sizes of tiles; sets the sizes of the launch. */
void gb_cl_print_tile_space(gb_cl_writer *w, const gb_cl_tile_space *space);

/* Adds the step of a product, maybe gated, whose uses but those of its operands are known. */
gb_status gb_cl_add_product(gb_cl_writer *w, gb_gemm_problem *gemm);

#endif
