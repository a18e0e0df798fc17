/* What kernels of cl/gemm.cl share. */
#include "kernels/opencl/gemm.h"

#include "base/memory.h"

/* The batch position: the dims but rows and columns, the last one fastest. */
static int64_t print_batch(gb_cl_writer *w, const gb_cl_tile_space *space)
{
    gb_cl_text *t = &w->text;
    int64_t batch = 1;
    gb_cl_print(t, "#define GB_BATCH long rest = get_global_id(2);");
    for (int d = space->ndims; d-- > 0;) {
        if (d == space->row_dim || d == space->col_dim)
            continue;
        uint32_t dim = gb_cl_number(w, space->dims[d]);
        gb_cl_print(t, " long i%d = rest %% p[%u]; rest /= p[%u];", d, dim, dim);
        batch *= space->dims[d];
    }
    if (space->groups) {
        gb_cl_print(t, " long group = rest;");
        batch *= space->groups;
    }
    gb_cl_print(t, "\n");
    return batch;
}

/* "row", counted over all groups where they lie there. */
static void print_side(gb_cl_writer *w, const char *name, bool grouped, int64_t size)
{
    gb_cl_print(&w->text, ", %s", name);
    if (grouped)
        gb_cl_print(&w->text, " + group * p[%u]", gb_cl_number(w, size));
}

static void print_post(gb_cl_writer *w, const gb_cl_tile_space *space)
{
    gb_cl_text *t = &w->text;
    bool grouped = space->groups > 1, in_rows = space->groups_in_rows;
    gb_cl_print(t, "#define GB_POST(row, column, value) gb_post(GB_PASSED");
    for (int d = 0; d < space->ndims; d++) {
        if (d == space->row_dim)
            print_side(w, "row", grouped && in_rows, space->dims[d]);
        else if (d == space->col_dim)
            print_side(w, "column", grouped && !in_rows, space->dims[d]);
        else
            gb_cl_print(t, ", i%d", d);
    }
    gb_cl_print(t, ", value)\n");
}

/* Columns of a tile are no more than a narrow result has, so that few are computed in vain. */
static int tile_columns(const gb_cl_shape *shape, int64_t columns)
{
    int tile = shape->tile_columns;
    while (tile > 4 && columns <= tile / 2)
        tile /= 2;
    return tile;
}

static size_t tiles(int64_t count, int tile, size_t local)
{
    size_t n = (size_t)gb_div_up(count, tile);
    return (n + local - 1) / local * local;
}

void gb_cl_print_tile_space(gb_cl_writer *w, const gb_cl_tile_space *space)
{
    gb_cl_text *t = &w->text;
    gb_cl_shape shape = gb_cl_shape_of(w->program);
    int64_t rows = space->row_dim < 0 ? 1 : space->dims[space->row_dim];
    int64_t columns = space->col_dim < 0 ? 1 : space->dims[space->col_dim];
    int tile_rows = rows == 1 ? 1 : shape.tile_rows, tile_cols = tile_columns(&shape, columns);
    gb_cl_print(t, "#define GB_ROWS p[%u]\n#define GB_COLUMNS p[%u]\n#define GB_K p[%u]\n",
            gb_cl_number(w, rows), gb_cl_number(w, columns), gb_cl_number(w, space->k));
    gb_cl_print(t, "#define GB_TILE_ROWS %d\n#define GB_TILE_COLUMNS %d\n", tile_rows, tile_cols);
    int64_t batch = print_batch(w, space);
    print_post(w, space);
    size_t side = shape.local_size >= 256 ? 16 : 2;
    w->local[0] = w->local[1] = side;
    w->local[2] = 1;
    w->global[0] = tiles(columns, tile_cols, side);
    w->global[1] = tiles(rows, tile_rows, side);
    w->global[2] = (size_t)batch;
}
