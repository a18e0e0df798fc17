/* Lowers groups without anchor: a pointwise program over the whole space, split among threads by
 * tiles.
 */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/cpu/lower.h"
#include "kernels/cpu/scratch.h"
#include "kernels/isa/kernels.h"
#include "kernels/plan/space.h"

enum {
    TRANSPOSED_SIDE = 32, /* tiles are square where operands disagree on the contiguous dim */
    ITEMS_PER_THREAD = 4  /* the least, where there is work enough for several threads */
};

typedef struct pointwise_params {
    gb_pointwise_run_fn *run;
    int row_dim, col_dim;         /* of the tiles; -1: none */
    int64_t steps[GB_AXES];       /* extent of a tile per dim */
    int64_t tile_counts[GB_AXES]; /* tiles along each dim */
    int64_t n_tiles;
    gb_scratch registers;
    gb_pointwise_program pointwise;
} pointwise_params;

/* First element of tile `index`; the last dim runs fastest. */
static void set_position(const pointwise_params *p, int64_t index, int64_t *position)
{
    for (int d = p->pointwise.ndims; d-- > 0;) {
        position[d] = index % p->tile_counts[d] * p->steps[d];
        index /= p->tile_counts[d];
    }
}

static void next_position(const pointwise_params *p, int64_t *position)
{
    for (int d = p->pointwise.ndims; d-- > 0;) {
        position[d] += p->steps[d];
        if (position[d] < p->pointwise.dims[d])
            return;
        position[d] = 0;
    }
}

static int64_t pointwise_extent(const pointwise_params *p, int dim, const int64_t *position)
{
    return dim < 0 ? 1 : gb_min_i64(p->steps[dim], p->pointwise.dims[dim] - position[dim]);
}

static void pointwise_run(const gb_step_call *call)
{
    const pointwise_params *p = call->params;
    int64_t begin, end, position[GB_AXES];
    gb_pointwise_view views[GB_POINTWISE_OPERANDS];
    while (gb_take_items(call, p->n_tiles, &begin, &end)) {
        set_position(p, begin, position);
        for (int64_t i = begin; i < end; i++) {
            gb_pointwise_views(
                    &p->pointwise, call->buffers, position, p->row_dim, p->col_dim, views);
            int64_t rows = pointwise_extent(p, p->row_dim, position),
                    cols = pointwise_extent(p, p->col_dim, position);
            p->run(&p->pointwise, views, rows, cols, gb_scratch_get(call, p->registers));
            next_position(p, position);
        }
    }
}

/* A dim other than the columns that some operand is contiguous along, or -1. */
static int crossing_dim(const gb_pointwise_program *pointwise, int col_dim)
{
    for (uint32_t i = 0; i < pointwise->n_operands; i++)
        for (int d = 0; d < col_dim; d++)
            if (!pointwise->operands[i].is_index && pointwise->operands[i].strides[d] == 1 &&
                    pointwise->operands[i].strides[col_dim] != 0)
                return d;
    return -1;
}

/* Most elements of a work item, whole tiles. */
static int64_t item_elements(const gb_pointwise_program *pointwise, int threads, double work)
{
    const int64_t items = threads * (gb_threads_within(threads, work) > 1 ? ITEMS_PER_THREAD : 1);
    int64_t elements = 1;
    for (int d = 0; d < pointwise->ndims; d++)
        elements *= pointwise->dims[d];
    const int64_t tiles = elements / (GB_TILE_ELEMENTS * items);
    return GB_TILE_ELEMENTS * gb_max_i64(gb_min_i64(tiles, GB_TILES_TOGETHER), 1);
}

/* Does a chain convert, or compute, something that is the same for all rows? It has room for no longer rows than
 * those of a tile. */
static bool prepares_rows(const gb_pointwise_program *pointwise, int row_dim, int col_dim)
{
    const bool computes = pointwise->n_instructions > pointwise->n_operands + 1;
    for (uint32_t i = 0; row_dim >= 0 && i < pointwise->n_operands; i++) {
        const gb_pointwise_operand *operand = &pointwise->operands[i];
        bool row = operand->strides[row_dim] == 0 && operand->strides[col_dim] != 0;
        if (row && !operand->is_index && (computes || operand->type != GB_F32))
            return true;
    }
    return false;
}

static void plan_tiles(pointwise_params *p, int threads, double work)
{
    gb_pointwise_program *pointwise = &p->pointwise;
    gb_space space = {.ndims = pointwise->ndims};
    for (int d = 0; d < pointwise->ndims; d++)
        space.dims[d] = pointwise->dims[d];
    gb_space_add_pointwise(&space, pointwise);
    gb_space_normalize(&space);
    gb_space_set_pointwise(&space, pointwise);
    p->col_dim = pointwise->ndims - 1;
    p->row_dim = pointwise->ndims - 2 < 0 ? -1 : pointwise->ndims - 2;
    for (int d = 0; d < pointwise->ndims; d++)
        p->steps[d] = 1;
    if (p->col_dim >= 0) {
        int crossing = crossing_dim(pointwise, p->col_dim);
        if (crossing >= 0)
            p->row_dim = crossing;
        int64_t most = crossing >= 0 ? GB_TILE_ELEMENTS : item_elements(pointwise, threads, work);
        bool prepares = prepares_rows(pointwise, p->row_dim, p->col_dim);
        int64_t longest = crossing >= 0 ? TRANSPOSED_SIDE : prepares ? GB_TILE_ELEMENTS : most;
        int64_t cols = gb_min_i64(pointwise->dims[p->col_dim], longest);
        p->steps[p->col_dim] = cols;
        if (p->row_dim >= 0)
            p->steps[p->row_dim] = gb_min_i64(pointwise->dims[p->row_dim], most / cols);
    }
    p->n_tiles = 1;
    for (int d = 0; d < pointwise->ndims; d++) {
        p->tile_counts[d] = gb_div_up(pointwise->dims[d], p->steps[d]);
        p->n_tiles *= p->tile_counts[d];
    }
}

/* Operations that an instruction takes as long as. */
static double operations_of(uint8_t opcode)
{
    enum { FUNCTION = 16, DIVISION = 12 };
    switch (opcode) {
    case GB_POINTWISE_LOAD:
    case GB_POINTWISE_STORE:
    case GB_POINTWISE_CONSTANT:
        return 0;
    case GB_POINTWISE_DIV:
    case GB_POINTWISE_RECIPROCAL:
    case GB_POINTWISE_SQRT:
    case GB_POINTWISE_SQRT_BACKWARD:
    case GB_POINTWISE_SQRT_BACKWARD_DST:
        return DIVISION;
    default:
        return gb_pointwise_is_costly(opcode) ? FUNCTION : 1;
    }
}

/* Bytes moved, or operations, whichever is more. */
static void estimate(gb_step *step, const gb_pointwise_program *pointwise, double count)
{
    double bytes = 0, operations = 0;
    for (uint32_t i = 0; i < pointwise->n_operands; i++)
        if (!pointwise->operands[i].is_index)
            bytes += count * (double)gb_data_type_bytes(pointwise->operands[i].type, 1);
    for (uint32_t i = 0; i < pointwise->n_instructions; i++)
        operations += count * operations_of(pointwise->instructions[i].opcode);
    step->work = bytes > operations ? bytes : operations;
}

gb_status gb_lower_pointwise(gb_program *program, const gb_group *group)
{
    const gb_graph *graph = gb_program_graph(program);
    const gb_logical_tensor *space = &graph->values[group->space].tensor;
    gb_step *step;
    int64_t count;
    if (!gb_dims_count(space->ndims, space->dims, &count))
        return gb_fail(GB_INVALID_SHAPE, "%s has too many elements", gb_tensor_label(space));
    if (count == 0)
        return GB_SUCCESS;
    GB_TRY(gb_program_begin(program, "tile", &step));
    pointwise_params *p = gb_step_alloc(step, 1, sizeof *p);
    if (!p)
        return GB_OUT_OF_MEMORY;
    GB_TRY(gb_pointwise_build(program, group, GB_NONE, space, step, &p->pointwise));
    estimate(step, &p->pointwise, (double)count);
    if (p->pointwise.n_instructions == 0)
        return GB_SUCCESS; /* nothing to run */
    plan_tiles(p, gb_program_threads(program), step->work);
    GB_TRY(gb_step_describe(program, step, gb_pointwise_print, &p->pointwise));
    p->run = gb_kernels_get()->pointwise_run;
    p->registers = gb_scratch_add(step, gb_pointwise_scratch(&p->pointwise));
    step->run = pointwise_run;
    step->params = p;
    return gb_program_add(program, step);
}
