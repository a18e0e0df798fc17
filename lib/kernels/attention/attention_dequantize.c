/* Runs the programs that make f32 blocks of quantised operands. */
#include "kernels/attention/attention_dequantize.h"

#include "base/memory.h"

/* Puts an index of tensor dim d into a position of the program. */
static void attention_source_place(
        const gb_attention_source *source, int d, int64_t index, int64_t *position)
{
    int at = source->places[d];
    position[at] = index % source->sizes[d];
    if (source->sizes[d] > 1)
        position[at - 1] = index / source->sizes[d];
    else
        position[at] = index;
}

/* Elements from `index` to the end of its group, at most `n`. */
static int64_t within_group(const gb_attention_source *source, int d, int64_t index, int64_t n)
{
    int64_t size = source->sizes[d];
    return size > 1 ? gb_min_i64(n, size - index % size) : n;
}

static void dequantize_tile(const gb_kernels *kernels, const gb_attention_dequantization *e,
        const int64_t *position, float *dst, int64_t rows, int64_t cols)
{
    const gb_attention_source *source = e->source;
    int last = source->ndims - 1;
    gb_pointwise_view views[GB_POINTWISE_OPERANDS];
    gb_pointwise_views(&source->pointwise, e->buffers, position, source->places[last - 1],
            source->places[last], views);
    for (uint32_t i = 0; i < source->pointwise.n_operands; i++)
        if (!source->pointwise.operands[i].is_index &&
                source->pointwise.operands[i].slot >= GB_SCRATCH_OPERAND)
            views[i] = (gb_pointwise_view){
                    .data = (char *)dst, .row_stride = e->dst_row, .col_stride = 1};
    kernels->pointwise_run(&source->pointwise, views, rows, cols, e->registers);
}

void gb_attention_dequantize(const gb_kernels *kernels, const gb_attention_dequantization *e)
{
    const gb_attention_source *source = e->source;
    int last = source->ndims - 1, missing = e->n_batch - (source->ndims - 2);
    int64_t position[GB_AXES] = {0};
    for (int d = 0; d < last - 1; d++)
        attention_source_place(
                source, d, source->dims[d] == 1 ? 0 : e->position[d + missing], position);
    int64_t first_row = source->along_rows ? 0 : e->key, first_col = e->key - first_row;
    int64_t rows = source->along_rows ? source->dims[last - 1] : e->keys;
    int64_t cols = source->along_rows ? e->keys : source->dims[last];
    const int64_t most = (int64_t)GB_TILE_ELEMENTS * GB_TILES_TOGETHER;
    for (int64_t c = 0, wide; c < cols; c += wide) {
        wide = within_group(source, last, first_col + c, gb_min_i64(cols - c, most));
        attention_source_place(source, last, first_col + c, position);
        for (int64_t r = 0, high; r < rows; r += high) {
            high = gb_min_i64(rows - r, most / wide);
            high = within_group(source, last - 1, first_row + r, high);
            attention_source_place(source, last - 1, first_row + r, position);
            dequantize_tile(kernels, e, position, e->dst + r * e->dst_row + c, high, wide);
        }
    }
}
