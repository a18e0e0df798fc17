/* Builds and runs the programs that make f32 blocks of quantised keys and values. */
#include "kernels/attention/attention_source.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/plan/tile_builder.h"

#include <string.h>

gb_status gb_attention_source_init(gb_program *program, const gb_attention_chain *chain,
        uint32_t value, bool along_rows, gb_step *step, gb_attention_source *source)
{
    const gb_graph *graph = gb_program_graph(program);
    const gb_logical_tensor *tensor = &graph->values[value].tensor;
    uint32_t links[GB_ATTENTION_LINKS], output = value;
    memcpy(links, chain->links, sizeof links);
    gb_group group = {.anchor = GB_NONE,
            .links = links,
            .n_links = chain->n,
            .outputs = &output,
            .n_outputs = 1};
    gb_tile_locals locals = {.n = 1, .values = {value}};
    source->is_set = true;
    source->along_rows = along_rows;
    source->ndims = tensor->ndims;
    memcpy(source->dims, tensor->dims, sizeof tensor->dims);
    for (int d = 0; d < GB_AXES; d++)
        source->sizes[d] = 1;
    GB_TRY(gb_tile_split(graph->ops[links[0]], source->sizes));
    for (int d = 0, place = 0; d < tensor->ndims; d++, place++) {
        place += source->sizes[d] > 1;
        source->places[d] = (uint8_t)place;
    }
    return gb_tile_build_local(program, &group, GB_NONE, &locals, tensor, step, &source->tile);
}

/* Puts an index of tensor dim d into a position of the program. */
static void place(const gb_attention_source *source, int d, int64_t index, int64_t *position)
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

static void expand_tile(const gb_kernels *kernels, const gb_attention_expansion *e,
        const int64_t *position, float *dst, int64_t rows, int64_t cols)
{
    const gb_attention_source *source = e->source;
    int last = source->ndims - 1;
    gb_tile_view views[GB_TILE_OPERANDS];
    gb_tile_views(&source->tile, e->buffers, position, source->places[last - 1],
            source->places[last], views);
    for (uint32_t i = 0; i < source->tile.n_operands; i++)
        if (!source->tile.operands[i].is_index && source->tile.operands[i].slot >= GB_TILE_LOCAL)
            views[i] =
                    (gb_tile_view){.data = (char *)dst, .row_stride = e->dst_row, .col_stride = 1};
    kernels->tile_run(&source->tile, views, rows, cols, e->registers);
}

void gb_attention_expand(const gb_kernels *kernels, const gb_attention_expansion *e)
{
    const gb_attention_source *source = e->source;
    int last = source->ndims - 1, missing = e->n_batch - (source->ndims - 2);
    int64_t position[GB_AXES] = {0};
    for (int d = 0; d < last - 1; d++)
        place(source, d, source->dims[d] == 1 ? 0 : e->position[d + missing], position);
    int64_t first_row = source->along_rows ? 0 : e->key, first_col = e->key - first_row;
    int64_t rows = source->along_rows ? source->dims[last - 1] : e->keys;
    int64_t cols = source->along_rows ? e->keys : source->dims[last];
    for (int64_t c = 0, wide; c < cols; c += wide) {
        wide = within_group(source, last, first_col + c, gb_min_i64(cols - c, GB_TILE_ELEMENTS));
        place(source, last, first_col + c, position);
        for (int64_t r = 0, high; r < rows; r += high) {
            high = gb_min_i64(rows - r, GB_TILE_ELEMENTS / wide);
            high = within_group(source, last - 1, first_row + r, high);
            place(source, last - 1, first_row + r, position);
            expand_tile(kernels, e, position, e->dst + r * e->dst_row + c, high, wide);
        }
    }
}
