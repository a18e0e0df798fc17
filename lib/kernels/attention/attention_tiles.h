/* What the kernels of attention share: rows in scratch, pointwise programs over them, and products
 * with packed panels. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_TILES_H
#define GB_KERNELS_ATTENTION_ATTENTION_TILES_H

#include "kernels/isa/kernels.h"
#include "kernels/plan/attention_problem.h"
#include "kernels/plan/attention_space.h"

/* Row `row` (along dim n_batch) of the operand's matrix at the position's batch dims, in memory. */
const char *gb_attention_element(const gb_attention_space *space,
        const gb_attention_operand *operand, void *const *buffers, const int64_t *position,
        int64_t row);
/* Rows of a task as dense f32, row r times factor[r] (NULL: 1). */
void gb_attention_load(const gb_kernels *kernels, const gb_attention_space *space,
        const gb_attention_operand *operand, void *const *buffers, int64_t *position, int64_t first,
        int64_t rows, int64_t cols, const float *factor, float *dst, int64_t dst_row);

/* A pointwise program over rows of a task and columns of the dim behind dim n_batch. */
typedef struct gb_attention_tiling {
    const gb_kernels *kernels;
    void *const *buffers;
    const gb_attention_space *space;
    const gb_pointwise_program *pointwise;
    int64_t *position; /* task dims are set */
    int64_t first_row, rows, first_col, cols;
    struct {
        float *data; /* of the first row and column */
        int64_t row_stride;
        bool is_column; /* the same for all columns */
    } scratch_operands[GB_SCRATCH_OPERANDS];
    /* Register 0 is row r of these times factor[r] (NULL: 1), unless source is NULL. */
    const float *source, *factor;
    int64_t source_row;
    float *registers;
} gb_attention_tiling;

void gb_attention_run_tiles(const gb_attention_tiling *tiling);

/* All tiles of a product with packed panels, `panel` floats apart; `tile` has offsets, A, C and K
 * of the first. */
void gb_attention_multiply(const gb_kernels *kernels, gb_gemm_tile tile, const float *panels,
        int64_t panel, int64_t rows, int64_t cols);

/* The same with VNNI groups, in tiles of their form; sums of integers are finished with what `tile` has
 * for its first row and column. */
void gb_attention_multiply_groups(const gb_kernels *kernels, const gb_dot_form *form,
        gb_dot_tile tile, const int32_t *panels, int64_t panel, int64_t rows, int64_t cols);

/* Threads take `rounds` numbers each, one share after the other; a number's item, if there is one: in
 * a round each thread has one, back and forth, for under a causal mask the work of a task's items
 * grows or shrinks. */
static inline int64_t gb_attention_item_of(int64_t number, int64_t rounds, int n_threads)
{
    int64_t round = number % rounds, share = number / rounds;
    return round * n_threads + (round % 2 ? n_threads - 1 - share : share);
}

/* Floats between rows in scratch: those 4 KiB apart would evict one another from L1. */
int64_t gb_attention_row(int64_t cols);
/* Bytes of n floats, whole cache lines. */
size_t gb_attention_bytes(int64_t n);

#endif
