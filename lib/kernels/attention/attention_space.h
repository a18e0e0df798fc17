/* What the kernels of attention share: rows that run over several dims, pointwise programs over
 * them, and products with packed panels. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_SPACE_H
#define GB_KERNELS_ATTENTION_ATTENTION_SPACE_H

#include "kernels/cpu/scratch.h"
#include "kernels/isa/kernels.h"

/* Most columns of Q, K and V, and elements of K and of the results that a thread keeps where
 * products sum over rows. */
enum { GB_ATTENTION_WIDTH = 4096, GB_ATTENTION_KEPT = 1 << 20 };

/* A matrix per batch, seen through strides. */
typedef struct gb_attention_operand {
    gb_data_type type; /* f32, bf16 or f16 */
    uint32_t slot;
    int64_t strides[GB_AXES]; /* elements, per batch dim */
    int64_t row_stride, col_stride;
} gb_attention_operand;

/* Batch dims and one more, dim n_batch: each belongs to the tasks or to the rows of a task. The
 * last row dim runs fastest. */
typedef struct gb_attention_space {
    int n_batch, n_task_dims, n_row_dims;
    int64_t dims[GB_AXES];
    uint8_t task_dims[GB_AXES], row_dims[GB_AXES];
    int64_t tasks, rows, run; /* run: rows that differ in the last row dim only */
} gb_attention_space;

/* `size` is that of dim n_batch, which is a row dim. */
void gb_attention_space_init(gb_attention_space *space, int n_batch, const int64_t *batch_dims,
        const bool *is_row, int64_t size);

static inline int gb_attention_run_dim(const gb_attention_space *space)
{
    return space->row_dims[space->n_row_dims - 1];
}

/* Sets the row dims of the position to row `row` of a task; returns the rows from there on, at most
 * `rows`, that differ in the last row dim only. */
int64_t gb_attention_locate(
        const gb_attention_space *space, int64_t row, int64_t rows, int64_t *position);
/* The least and the largest index along dim n_batch of some rows of a task. */
void gb_attention_range(
        const gb_attention_space *space, int64_t row, int64_t rows, int64_t *least, int64_t *most);

/* Row `row` (along dim n_batch) of the operand's matrix at the position's batch dims. */
const char *gb_attention_element(const gb_attention_space *space,
        const gb_attention_operand *operand, void *const *buffers, const int64_t *position,
        int64_t row);
/* Rows of a task as dense f32. */
void gb_attention_load(const gb_kernels *kernels, const gb_attention_space *space,
        const gb_attention_operand *operand, void *const *buffers, int64_t *position, int64_t first,
        int64_t rows, int64_t cols, float *dst, int64_t dst_row);

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

/* Units in turn, back and forth: under a causal mask the work of a task's work items grows or
 * shrinks.
 */
static inline int64_t gb_attention_item_of(int64_t round, int thread, int n_threads)
{
    return round * n_threads + (round % 2 ? n_threads - 1 - thread : thread);
}

/* Floats between rows in scratch: those 4 KiB apart would evict one another from L1. */
int64_t gb_attention_row(int64_t cols);
/* Bytes of n floats, whole cache lines. */
size_t gb_attention_bytes(int64_t n);

#endif
