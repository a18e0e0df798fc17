/* What kernels of cl/gemm.cl share. */
#include "kernels/opencl/gemm.h"

#include "base/memory.h"
#include "base/status.h"

/* Tiles of columns of a work-item that reads B where it lies; rows and columns for which it pays to
 * pack the other operand if that takes more memory. */
enum { DIRECT_TILES = 32, MANY_ROWS = 32 };

/* The batch position: the dims but rows and columns, the last one fastest. */
static int64_t print_batch(gb_cl_writer *w, const gb_cl_tile_space *space)
{
    gb_cl_text *t = &w->text;
    int64_t batch = 1;
    gb_cl_print(t, "#define GB_BATCH long rest = get_global_id(2);");
    for (int d = space->pointwise->ndims; d-- > 0;) {
        if (d == space->row_dim || d == space->col_dim || space->is_merged[d])
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

static void print_position(gb_cl_writer *w, const gb_cl_tile_space *space)
{
    bool grouped = space->groups > 1, in_rows = space->groups_in_rows;
    for (int d = 0; d < space->pointwise->ndims; d++) {
        if (d == space->row_dim)
            print_side(w, "(row)", grouped && in_rows, space->rows);
        else if (d == space->col_dim)
            print_side(w, "(column)", grouped && !in_rows, space->columns);
        else if (space->is_merged[d])
            gb_cl_print(&w->text, ", 0");
        else
            gb_cl_print(&w->text, ", i%d", d);
    }
}

/* "gb_post(GB_PASSED, i0, (row), (column), lanes, value" */
static void print_call(
        gb_cl_writer *w, const gb_cl_tile_space *space, const char *name, const char *value)
{
    gb_cl_print(&w->text, "%s(GB_PASSED", name);
    print_position(w, space);
    gb_cl_print(&w->text, "%s, %s", w->lanes ? ", lanes" : "", value);
}

/* What the gate makes is t[0] of the other product. */
static void print_gated_post(gb_cl_writer *w, const gb_cl_tile_space *space)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "#define GB_GATED\n#define GB_POST(row, column, lanes, value) do { %s t[1]; ",
            w->lanes ? "GB_FLOATS" : "float");
    print_call(w, space, "gb_gate", "gate, t); ");
    print_call(w, space, "gb_post", "value, t); } while (0)\n");
}

static void print_post(gb_cl_writer *w, const gb_cl_tile_space *space)
{
    const gb_pointwise_program *pointwise = space->pointwise;
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "#define GB_POST(row, column, lanes, value) ");
    print_call(w, space, "gb_post", "value)\n");
    if (!gb_pointwise_is_plain_store(pointwise) || space->col_dim < 0)
        return;
    const gb_pointwise_operand *result = &pointwise->operands[pointwise->instructions[0].operand];
    if (result->strides[space->col_dim] != 1)
        return;
    gb_cl_print(t, "static inline __global float *gb_result(GB_PARAMETERS");
    gb_cl_print_indices(w, pointwise->ndims, true);
    gb_cl_print(t, ")\n{\n    return (__global float *)m%u + ", result->slot);
    gb_cl_print_offset(w, pointwise->ndims, result->strides);
    gb_cl_print(t, ";\n}\n#define GB_RESULT_AT(row, column) gb_result(GB_PASSED");
    print_position(w, space);
    gb_cl_print(t, ")\n");
}

static size_t tiles(int64_t count, int tile, size_t local)
{
    size_t n = (size_t)gb_div_up(count, tile);
    return (n + local - 1) / local * local;
}

/* No more than a narrow result has, so that few are computed in vain. */
static int lanes_of(const gb_cl_shape *shape, int64_t columns)
{
    int lanes = shape->lanes;
    while (lanes > 4 && columns <= lanes / 2)
        lanes /= 2;
    return lanes;
}

int gb_cl_choose_tile_lanes(gb_cl_writer *w, int col_dim, int64_t columns)
{
    gb_cl_shape shape = gb_cl_shape_of(w->program);
    if (col_dim < 0 || !shape.is_cpu)
        return GB_CL_NO_LANES;
    w->lanes = lanes_of(&shape, columns);
    return col_dim;
}

/* Tiles of as many rows as divide the result best. */
static int tile_rows_of(const gb_cl_shape *shape, int64_t rows)
{
    return (int)gb_div_up(rows, gb_div_up(rows, shape->tile_rows));
}

/* Blocks are no larger than what there is, and small enough that all compute units have some. */
static void print_blocks(gb_cl_writer *w, const gb_cl_tile_space *space, int64_t batch)
{
    gb_cl_shape shape = gb_cl_shape_of(w->program);
    int lanes = lanes_of(&shape, space->columns), step = tile_rows_of(&shape, space->rows);
    bool direct = space->b_direct && space->rows == step && !space->is_packed[GB_CL_A] &&
                  !space->is_packed[GB_CL_B];
    int rows = shape.row_tiles * step;
    int columns = (direct ? DIRECT_TILES : shape.column_tiles) * lanes;
    int64_t wanted = (int64_t)shape.items * shape.units;
    if (space->rows <= rows)
        rows = (int)gb_div_up(space->rows, step) * step;
    while (columns / 2 >= lanes && columns / 2 >= space->columns)
        columns = columns / 2 / lanes * lanes;
    while (columns / 2 >= lanes &&
            batch * gb_div_up(space->rows, rows) * gb_div_up(space->columns, columns) < wanted)
        columns = columns / 2 / lanes * lanes;
    while (rows > 2 * step &&
            batch * gb_div_up(space->rows, rows) * gb_div_up(space->columns, columns) < wanted)
        rows = rows / 2 / step * step;
    gb_cl_print(&w->text,
            "#define GB_BLOCK_ROWS %d\n#define GB_BLOCK_COLUMNS %d\n#define GB_DEPTH %d\n"
            "#define GB_TILE_ROWS %d\n#define GB_LANES %d\n%s",
            rows, columns, shape.depth, step, lanes,
            direct                                            ? "#define GB_B_DIRECT\n"
            : space->a_in_place && !space->is_packed[GB_CL_A] ? "#define GB_A_IN_PLACE\n"
                                                              : "");
    if (space->is_packed[GB_CL_A])
        gb_cl_print(&w->text, "#define GB_A_PACKED ((__global const float *)m%u)\n",
                space->packed_slots[GB_CL_A]);
    if (space->is_packed[GB_CL_B] && space->is_gated)
        gb_cl_print(&w->text,
                "#define GB_B_PACKED ((__global const float *)packed)\n"
                "#define GB_PRODUCT(product) __global uchar *packed = product ? m%u : m%u;\n",
                space->packed_slots[GB_CL_B], space->packed_slots[GB_CL_GATE_B]);
    else if (space->is_packed[GB_CL_B])
        gb_cl_print(&w->text, "#define GB_B_PACKED ((__global const float *)m%u)\n",
                space->packed_slots[GB_CL_B]);
    gb_cl_set_items(w, gb_div_up(space->columns, columns), gb_div_up(space->rows, rows));
    w->global[2] = (size_t)batch;
}

/* Steps stand in the order in which they run: what a step reads was judged before. */
bool gb_cl_is_constant(const gb_program *program, uint32_t buffer)
{
    enum { OPEN, CONSTANT, CHANGES };
    uint8_t *states = gb_calloc(program->n_buffers, sizeof *states);
    for (uint32_t b = 0; states && b < program->n_buffers; b++)
        states[b] = program->buffers[b].constant ? CONSTANT : OPEN;
    for (uint32_t s = 0; states && s < program->n_steps; s++) {
        const gb_step *step = &program->steps[s];
        uint8_t made = CONSTANT;
        for (uint32_t i = 0; i < step->n_uses; i++)
            if (!step->uses[i].written && states[step->uses[i].buffer] != CONSTANT)
                made = CHANGES;
        for (uint32_t i = 0; i < step->n_uses; i++) {
            uint8_t *state = &states[step->uses[i].buffer];
            bool given = program->buffers[step->uses[i].buffer].constant;
            if (step->uses[i].written && !given && *state != CHANGES)
                *state = made;
        }
    }
    bool is_constant = states && states[buffer] == CONSTANT;
    free(states);
    return is_constant;
}

bool gb_cl_packs(const gb_program *program, uint32_t buffer, int operand, int64_t rows,
        int64_t columns, bool is_f32)
{
    int64_t uses = operand == GB_CL_A ? columns : rows;
    return gb_cl_shape_of(program).is_cpu &&
           (uses >= MANY_ROWS || (is_f32 && operand != GB_CL_A)) &&
           gb_cl_is_constant(program, buffer);
}

gb_status gb_cl_begin_packing(gb_cl_writer *w, int operand, int64_t rows, int64_t columns,
        int64_t k, int64_t taps, gb_cl_packing *packing, uint32_t *slot)
{
    gb_cl_shape shape = gb_cl_shape_of(w->program);
    uint32_t buffer;
    *packing = (gb_cl_packing){.side = operand == GB_CL_A ? rows : columns, .k = k, .taps = taps};
    packing->width = operand == GB_CL_A ? tile_rows_of(&shape, rows) : lanes_of(&shape, columns);
    size_t count = (size_t)(gb_div_up(packing->side, packing->width) * packing->width * k * taps);
    GB_TRY(gb_program_temporary(w->program, count * sizeof(float), &buffer));
    GB_TRY(gb_step_use_buffer(w->step, buffer, false, slot));
    GB_TRY(gb_cl_begin(w->program, "pack", &packing->w));
    packing->w.step->work = (double)count;
    return gb_step_use_buffer(packing->w.step, buffer, true, &packing->slot);
}

void gb_cl_print_packing(gb_cl_packing *packing)
{
    gb_cl_writer *w = &packing->w;
    int64_t panels = gb_div_up(packing->side, packing->width);
    gb_cl_print_arguments(w);
    gb_cl_print(&w->text,
            "#define GB_SIDE p[%u]\n#define GB_K p[%u]\n#define GB_TAPS p[%u]\n"
            "#define GB_PANELS p[%u]\n#define GB_WIDTH %d\n"
            "#define GB_PACKED ((__global float *)m%u)\n",
            gb_cl_number(w, packing->side), gb_cl_number(w, packing->k),
            gb_cl_number(w, packing->taps), gb_cl_number(w, panels), packing->width, packing->slot);
    gb_cl_set_items(w, panels, packing->taps);
    w->family = gb_cl_pack;
}

static void print_tiles(gb_cl_writer *w, const gb_cl_tile_space *space, int64_t batch)
{
    gb_cl_shape shape = gb_cl_shape_of(w->program);
    int lanes = lanes_of(&shape, space->columns);
    int rows = space->rows == 1 ? 1 : shape.tile_rows;
    gb_cl_print(&w->text, "#define GB_TILE_ROWS %d\n#define GB_LANES %d\n", rows, lanes);
    if (shape.local_memory && rows > 1)
        gb_cl_print(&w->text,
                "#define GB_ROW_TILES %d\n#define GB_COLUMN_TILES %d\n#define GB_DEPTH %d\n",
                shape.row_tiles, shape.column_tiles, shape.depth);
    w->local[0] = (size_t)shape.column_tiles;
    w->local[1] = (size_t)shape.row_tiles;
    w->local[2] = 1;
    w->global[0] = tiles(space->columns, lanes, w->local[0]);
    w->global[1] = tiles(space->rows, rows, w->local[1]);
    w->global[2] = (size_t)batch;
}

void gb_cl_print_tile_space(gb_cl_writer *w, const gb_cl_tile_space *space)
{
    gb_cl_print(&w->text, "#define GB_ROWS p[%u]\n#define GB_COLUMNS p[%u]\n#define GB_K p[%u]\n",
            gb_cl_number(w, space->rows), gb_cl_number(w, space->columns),
            gb_cl_number(w, space->k));
    int64_t batch = print_batch(w, space);
    if (space->is_gated)
        print_gated_post(w, space);
    else
        print_post(w, space);
    if (gb_cl_shape_of(w->program).is_cpu)
        print_blocks(w, space, batch);
    else
        print_tiles(w, space, batch);
}
