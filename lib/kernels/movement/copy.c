/* Strided copies: long rows go through memcpy, transpositions through small blocks held in
 * registers. */
#include "kernels/movement/copy.h"

#include "base/machine.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/isa/costs.h"
#include "kernels/isa/gemm.h"
#include "kernels/isa/kernels.h"
#include "kernels/plan/space.h"

#include <string.h>

enum {
    ITEM_BYTES = 1 << 15, /* of a work item of rows */
    NARROW = 8,           /* fewer rows or columns are few */
    MOST_NEAR = 1 << 14,  /* bytes that are transposed on the stack */
    NEAR_ROWS = 16,       /* a multiple of so many */
    SMALL_BLOCK = 4096,   /* bytes of a transposition that is worth it, wherever lines start */
    AHEAD = 2048          /* bytes from what is read to what is asked for */
};

static inline void copy_lines(
        size_t bytes, const char *src, int64_t src_step, char *dst, int64_t dst_step, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(dst + r * dst_step, src + r * src_step, bytes);
}

/* Both sides contiguous along the columns. Short rows are copied without a call. */
static void copy_rows(
        const gb_copy_plan *plan, const char *src, char *dst, int64_t rows, int64_t cols)
{
    size_t bytes = (size_t)cols * plan->box->element;
    int64_t src_step = 0, dst_step = 0;
    if (plan->row_dim >= 0) {
        src_step = plan->box->src_strides[plan->row_dim] * (int64_t)plan->box->element;
        dst_step = plan->box->dst_strides[plan->row_dim] * (int64_t)plan->box->element;
    }
    bool lines = ((size_t)(uintptr_t)dst | (size_t)dst_step | bytes) % GB_CACHE_LINE == 0;
    if (plan->streamed && (lines || bytes >= GB_STREAM_RUN)) {
        for (int64_t r = 0; r < rows; r++)
            gb_kernels_get()->stream(src + r * src_step, dst + r * dst_step, bytes);
        return;
    }
    switch (bytes) {
    case 4:
        copy_lines(4, src, src_step, dst, dst_step, rows);
        break;
    case 8:
        copy_lines(8, src, src_step, dst, dst_step, rows);
        break;
    case 16:
        copy_lines(16, src, src_step, dst, dst_step, rows);
        break;
    case 32:
        copy_lines(32, src, src_step, dst, dst_step, rows);
        break;
    case 64:
        copy_lines(64, src, src_step, dst, dst_step, rows);
        break;
    case 128:
        copy_lines(128, src, src_step, dst, dst_step, rows);
        break;
    default:
        copy_lines(bytes, src, src_step, dst, dst_step, rows);
    }
}

static inline void copy_elements(size_t size, const char *src, int64_t src_row, int64_t src_col,
        char *dst, int64_t dst_row, int64_t dst_col, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const char *from = src + r * src_row;
        char *to = dst + r * dst_row;
        for (int64_t c = 0; c < cols; c++)
            memcpy(to + c * dst_col, from + c * src_col, size);
    }
}

/* Any strides. */
static void copy_strided(
        const gb_copy_plan *plan, const char *src, char *dst, int64_t rows, int64_t cols)
{
    int64_t size = (int64_t)plan->box->element, src_row = 0, dst_row = 0, src_col = 0, dst_col = 0;
    if (plan->row_dim >= 0) {
        src_row = plan->box->src_strides[plan->row_dim] * size;
        dst_row = plan->box->dst_strides[plan->row_dim] * size;
    }
    if (plan->col_dim >= 0) {
        src_col = plan->box->src_strides[plan->col_dim] * size;
        dst_col = plan->box->dst_strides[plan->col_dim] * size;
    }
    switch (size) {
    case 1:
        copy_elements(1, src, src_row, src_col, dst, dst_row, dst_col, rows, cols);
        break;
    case 2:
        copy_elements(2, src, src_row, src_col, dst, dst_row, dst_col, rows, cols);
        break;
    case 4:
        copy_elements(4, src, src_row, src_col, dst, dst_row, dst_col, rows, cols);
        break;
    default:
        copy_elements(8, src, src_row, src_col, dst, dst_row, dst_col, rows, cols);
    }
}

/* Whole lines of the destination, one behind the other: transposed near, then written past the caches. What
 * the next rows are made of is on its way. */
static void copy_near_transposed(
        const gb_copy_plan *plan, const char *src, char *dst, int64_t rows, int64_t cols)
{
    _Alignas(GB_CACHE_LINE) char near[MOST_NEAR];
    const int64_t size = (int64_t)plan->box->element, bytes = rows * size;
    const int64_t src_step = plan->box->src_strides[plan->col_dim] * size;
    const gb_kernels *kernels = gb_kernels_get();
    if (src_step == bytes)
        for (int64_t at = 0; at < bytes * cols; at += GB_CACHE_LINE)
            gb_prefetch(src + AHEAD + at);
    else
        for (int64_t c = 0; c < cols; c++)
            for (int64_t at = 0; at < bytes; at += GB_CACHE_LINE)
                gb_prefetch(src + c * src_step + bytes + at);
    kernels->transpose((size_t)size, src, src_step, near, cols * size, rows, cols);
    kernels->stream(near, dst, (size_t)(bytes * cols));
}

/* The source is contiguous along the rows, the destination along the columns. */
static void copy_transposed(
        const gb_copy_plan *plan, const char *src, char *dst, int64_t rows, int64_t cols)
{
    int64_t size = (int64_t)plan->box->element;
    const gb_kernels *kernels = gb_kernels_get();
    if (plan->near) {
        copy_near_transposed(plan, src, dst, rows, cols);
        return;
    }
    (plan->streamed ? kernels->transpose_streamed : kernels->transpose)(plan->box->element, src,
            plan->box->src_strides[plan->col_dim] * size, dst,
            plan->box->dst_strides[plan->row_dim] * size, rows, cols);
}

/* The dim other than col_dim along which the source moves least. */
static int source_inner_dim(const gb_copy_plan *plan)
{
    int inner = -1;
    for (int d = 0; d < plan->box->ndims; d++) {
        if (d == plan->col_dim)
            continue;
        if (inner < 0 || plan->box->src_strides[d] <= plan->box->src_strides[inner])
            inner = d;
    }
    return inner;
}

/* Rows x cols of a work item of rows: whole rows where they fit. */
static void choose_rows(gb_copy_plan *plan)
{
    int64_t item = ITEM_BYTES / (int64_t)plan->box->element;
    int64_t all_cols = plan->box->dims[plan->col_dim];
    plan->cols = gb_min_i64(all_cols, item);
    if (plan->row_dim < 0 || plan->cols < all_cols)
        return;
    int64_t rows = item / gb_max_i64(plan->cols, 1);
    plan->rows = gb_max_i64(1, gb_min_i64(plan->box->dims[plan->row_dim], rows));
}

/* Rows of a tile that is transposed near its destination. */
static int64_t near_rows(const gb_copy_plan *plan)
{
    int64_t line = plan->box->dims[plan->col_dim] * (int64_t)plan->box->element;
    return MOST_NEAR / gb_max_i64(line, 1) / NEAR_ROWS * NEAR_ROWS;
}

/* Are the lines of the destination one behind the other, and written past the caches, but start in the midst
 * of lines of the cache, or is the whole so small? */
static bool transposes_near(const gb_copy_plan *plan)
{
    const gb_copy_box *box = plan->box;
    int64_t rows = box->dims[plan->row_dim], cols = box->dims[plan->col_dim];
    int64_t line = cols * (int64_t)box->element;
    return plan->streamed && box->dst_strides[plan->row_dim] == cols && near_rows(plan) > 0 &&
           rows * line >= GB_STREAM_RUN &&
           (line % GB_CACHE_LINE != 0 || rows * line <= SMALL_BLOCK);
}

/* Rows x cols of a tile of a transposition: square, unless one side is short. Both sides of it stay
 * in L1. */
static void choose_tile(gb_copy_plan *plan)
{
    int64_t item = (int64_t)(gb_machine_get()->l1_bytes / 2 / plan->box->element), edge = 32;
    while (4 * edge * edge <= item)
        edge *= 2;
    int64_t all_rows = plan->box->dims[plan->row_dim], all_cols = plan->box->dims[plan->col_dim];
    int64_t rows = gb_max_i64(1, gb_min_i64(all_rows, edge));
    plan->cols = gb_min_i64(all_cols, item / rows);
    plan->rows = gb_min_i64(all_rows, item / gb_max_i64(plan->cols, 1));
    if (plan->copy == copy_transposed && transposes_near(plan)) {
        plan->near = true;
        plan->cols = all_cols;
        plan->rows = gb_min_i64(all_rows, near_rows(plan));
    }
}

/* Is the transposition of two dims worth it in registers? Few rows or columns are where they lie close. */
static bool is_wide(const gb_copy_box *box, int row_dim, int col_dim)
{
    int64_t rows = box->dims[row_dim], cols = box->dims[col_dim];
    if (rows >= NARROW && cols >= NARROW)
        return box->element <= 4;
    if (box->element != 4 || gb_max_i64(rows, cols) < NARROW)
        return false;
    return rows < cols ? rows <= GB_FEW_WORDS && box->src_strides[col_dim] == rows
                       : cols <= gb_costs_get()->few_columns && box->dst_strides[row_dim] == cols;
}

static void choose_kernel(gb_copy_plan *plan)
{
    int last = plan->box->ndims - 1, inner;
    plan->col_dim = last;
    plan->row_dim = last > 0 ? last - 1 : -1;
    plan->rows = plan->cols = 1;
    plan->copy = copy_strided;
    if (last < 0)
        return;
    if (plan->box->src_strides[last] == 1 && plan->box->dst_strides[last] == 1) {
        plan->copy = copy_rows;
    } else if ((inner = source_inner_dim(plan)) >= 0) {
        plan->row_dim = inner;
        if (plan->box->src_strides[inner] < plan->box->src_strides[last]) {
            bool crossed = plan->box->src_strides[inner] == 1 && plan->box->dst_strides[last] == 1;
            if (crossed && is_wide(plan->box, inner, last))
                plan->copy = copy_transposed;
            choose_tile(plan);
            return;
        }
    }
    choose_rows(plan);
}

static int64_t step_of(const gb_copy_plan *plan, int dim)
{
    return dim == plan->col_dim ? plan->cols : dim == plan->row_dim ? plan->rows : 1;
}

void gb_copy_plan_init(gb_copy_plan *plan, const gb_copy_box *box, bool streamed)
{
    *plan = (gb_copy_plan){.box = box, .items = 1, .streamed = streamed};
    choose_kernel(plan);
    for (int d = 0; d < box->ndims; d++) {
        int64_t step = step_of(plan, d);
        plan->items *= step ? gb_div_up(box->dims[d], step) : 0;
    }
}

/* The work item at `position` of the box. */
static void copy_item(const gb_copy_plan *plan, const char *src, char *dst, const int64_t *position)
{
    int64_t size = (int64_t)plan->box->element, rows = 1, cols = 1;
    src += gb_offset(plan->box->ndims, plan->box->src_strides, position) * size;
    dst += gb_offset(plan->box->ndims, plan->box->dst_strides, position) * size;
    if (plan->row_dim >= 0)
        rows = gb_min_i64(plan->rows, plan->box->dims[plan->row_dim] - position[plan->row_dim]);
    if (plan->col_dim >= 0)
        cols = gb_min_i64(plan->cols, plan->box->dims[plan->col_dim] - position[plan->col_dim]);
    plan->copy(plan, src, dst, rows, cols);
}

static void set_position(const gb_copy_plan *plan, int64_t item, int64_t *position)
{
    for (int d = plan->box->ndims; d-- > 0;) {
        int64_t step = step_of(plan, d), count = gb_div_up(plan->box->dims[d], step);
        position[d] = item % count * step;
        item /= count;
    }
}

static void next_position(const gb_copy_plan *plan, int64_t *position)
{
    for (int d = plan->box->ndims; d-- > 0;) {
        position[d] += step_of(plan, d);
        if (position[d] < plan->box->dims[d])
            return;
        position[d] = 0;
    }
}

void gb_copy_items(const gb_copy_plan *plan, const void *src, void *dst, int64_t begin, int64_t end)
{
    size_t bytes = (size_t)plan->box->ndims * sizeof *plan->box->src_strides;
    int64_t position[GB_AXES];
    if (begin >= end ||
            (src == dst && memcmp(plan->box->src_strides, plan->box->dst_strides, bytes) == 0))
        return; /* nothing, or in place */
    set_position(plan, begin, position);
    for (int64_t item = begin; item < end; item++) {
        copy_item(plan, src, dst, position);
        next_position(plan, position);
    }
}
