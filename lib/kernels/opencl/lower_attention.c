/* Attention and its gradients as one kernel each, cl/attention.cl and its kin. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "fusion/regions/regions.h"
#include "kernels/opencl/lower.h"
#include "kernels/plan/attention_problem.h"
#include "kernels/plan/attention_space.h"

#include <stdio.h>
#include <string.h>

enum {
    LANES = 16,             /* of a vector, GB_LANES */
    MOST_WIDTH = 512,       /* columns of Q, K and V */
    MOST_KEPT_KEYS = 32768, /* of rows that are kept whole */
    LEAST_SPLIT = 64,       /* keys of a part */
    PRIVATE_FLOATS = 24576, /* of a work-item's rows, and about as many of its keys */
    GRADIENT_WIDTH = 256,   /* the same of gradients */
    GRADIENT_ROWS = 64,     /* most of a work-item; at least LANES */
    GRADIENT_TILE = 4,      /* of them in registers */
    FEW_ROWS = 8            /* a work-item gets no fewer to have more work-items */
};

/* Rows and keys that a work-item holds. */
typedef struct blocks {
    int rows, tile_rows, keys;
} blocks;

static int64_t wide(int64_t n)
{
    return gb_div_up(n, LANES) * LANES;
}

static blocks choose_blocks(
        gb_cl_shape shape, const gb_attention_space *space, const gb_attention_problem *problem)
{
    int64_t width = wide(problem->features) + wide(problem->columns);
    blocks b = {.rows = shape.attention_rows,
            .tile_rows = shape.attention_tile,
            .keys = shape.attention_keys};
    while (b.keys / 2 >= LANES && (b.keys * width > PRIVATE_FLOATS || b.keys / 2 >= problem->keys))
        b.keys = b.keys / 2 / LANES * LANES;
    if (space->rows == 1)
        return (blocks){1, 1, b.keys};
    int64_t wanted = (int64_t)shape.items * shape.units;
    while (b.rows / 2 >= b.tile_rows &&
            (b.rows * (width + b.keys) > PRIVATE_FLOATS || b.rows / 2 >= space->rows ||
                    (b.rows > FEW_ROWS && space->tasks * gb_div_up(space->rows, b.rows) < wanted)))
        b.rows = b.rows / 2 / b.tile_rows * b.tile_rows;
    return b;
}

/* Positions ------------------------------------------------------------------------------------ */

static void print_digits(gb_cl_writer *w, const gb_attention_space *space, int n,
        const uint8_t *list, const char *from)
{
    for (int i = n; i-- > 0;) {
        uint32_t dim = gb_cl_number(w, space->dims[list[i]]);
        gb_cl_print(&w->text, " long i%d = rest_of_%s %% p[%u]; rest_of_%s /= p[%u];", list[i],
                from, dim, from, dim);
    }
}

/* GB_TASK and GB_ROW: all dims of the space; those of size 1 are part of the task. */
static void print_positions(gb_cl_writer *w, const gb_attention_space *space)
{
    gb_cl_text *t = &w->text;
    bool known[GB_AXES] = {false};
    for (int i = 0; i < space->n_task_dims; i++)
        known[space->task_dims[i]] = true;
    for (int i = 0; i < space->n_row_dims; i++)
        known[space->row_dims[i]] = true;
    gb_cl_print(t, "#define GB_TASK long rest_of_task = task;");
    print_digits(w, space, space->n_task_dims, space->task_dims, "task");
    for (int d = 0; d <= space->n_batch; d++)
        if (!known[d])
            gb_cl_print(t, " long i%d = 0;", d);
    gb_cl_print(t, "\n#define GB_ROW(row) long rest_of_row = (row);");
    print_digits(w, space, space->n_row_dims, space->row_dims, "row");
    gb_cl_print(t, "\n#define GB_QUERY i%d\n#define GB_ROWS p[%u]\n", space->n_batch,
            gb_cl_number(w, space->rows));
}

/* Operands ------------------------------------------------------------------------------------- */

/* What the strides over the batch dims add up to, and rows. */
static void print_row_offset(
        gb_cl_writer *w, int n_batch, const int64_t *strides, const char *row, int64_t row_stride)
{
    gb_cl_print_offset(w, n_batch, strides);
    gb_cl_print(&w->text, " + (%s) * p[%u]", row, gb_cl_number(w, row_stride));
}

/* Can 16 neighbours of a row be read at once? */
static bool has_lanes(const gb_cl_writer *w, const gb_attention_operand *operand)
{
    return !operand->source && operand->col_stride == 1 && (w->lanes || operand->type == GB_F32);
}

static gb_status print_in_memory(gb_cl_writer *w, int n_batch, const char *name, const char *row,
        const char *column, const gb_attention_operand *operand)
{
    gb_cl_text *t = &w->text;
    if (!gb_cl_type_name(operand->type))
        return gb_fail(GB_UNIMPLEMENTED, "OpenCL has no attention of %s",
                gb_data_type_name(operand->type));
    gb_cl_print(t, " gb_load_%s(m%u, ", gb_cl_type_name(operand->type), operand->slot);
    print_row_offset(w, n_batch, operand->strides, row, operand->row_stride);
    if (operand->col_stride == 1)
        gb_cl_print(t, " + (%s))\n", column);
    else
        gb_cl_print(t, " + (%s) * p[%u])\n", column, gb_cl_number(w, operand->col_stride));
    if (!has_lanes(w, operand))
        return GB_SUCCESS;
    if (strcmp(row, column) == 0)
        gb_cl_print(t, "#define %s_LANES(%s) ", name, row);
    else
        gb_cl_print(t, "#define %s_LANES(%s, %s) ", name, row, column);
    if (w->lanes)
        gb_cl_print(t, "gb_read_%s(m%u, ", gb_cl_type_name(operand->type), operand->slot);
    else
        gb_cl_print(t, "vload16(0, (__global const float *)m%u + ", operand->slot);
    print_row_offset(w, n_batch, operand->strides, row, operand->row_stride);
    gb_cl_print(t, w->lanes ? " + (%s), 16)\n" : " + (%s))\n", column);
    return GB_SUCCESS;
}

/* Sizes of groups are part of the text: they are divided by for each element. */
static void print_source_place(gb_cl_writer *w, const char *index, int64_t size)
{
    if (size > 1)
        gb_cl_print(&w->text, ", (%s) / %lld, (%s) %% %lld", index, (long long)size, index,
                (long long)size);
    else
        gb_cl_print(&w->text, ", %s", index);
}

static void print_from_source(gb_cl_writer *w, int n_batch, const char *function, const char *row,
        const char *column, const gb_attention_source *source)
{
    int last = source->ndims - 1, missing = n_batch - (source->ndims - 2);
    char index[16];
    gb_cl_print(&w->text, " %s_at(GB_PASSED", function);
    for (int d = 0; d < last - 1; d++) {
        snprintf(index, sizeof index, "i%d", d + missing);
        print_source_place(w, source->dims[d] == 1 ? "0" : index, source->sizes[d]);
    }
    print_source_place(w, source->along_rows ? column : row, source->sizes[last - 1]);
    print_source_place(w, source->along_rows ? row : column, source->sizes[last]);
    gb_cl_print(&w->text, ")\n");
}

/* NAME(row, column): an element of an operand at the position of the task, and of rows. */
static gb_status print_operand(gb_cl_writer *w, int n_batch, const char *name, const char *function,
        const char *row, const char *column, const gb_attention_operand *operand)
{
    gb_cl_text *t = &w->text;
    char program[32];
    if (operand->source) {
        const gb_pointwise_program *pointwise = &operand->source->pointwise;
        snprintf(program, sizeof program, "%s_source", function);
        GB_TRY(gb_cl_print_local_pointwise(w, pointwise, program, GB_CL_NO_LANES, true));
        gb_cl_print(t, "static inline float %s_at(GB_PARAMETERS", function);
        gb_cl_print_indices(w, pointwise->ndims, true);
        gb_cl_print(t, ")\n{\n    float t[1];\n    %s(GB_PASSED", program);
        gb_cl_print_indices(w, pointwise->ndims, false);
        gb_cl_print(t, ", 0.0f, t);\n    return t[0];\n}\n");
    }
    gb_cl_print(t, "#define %s", name);
    if (strcmp(row, column) != 0)
        gb_cl_print(t, "(%s, %s)", row, column);
    if (!operand->source)
        return print_in_memory(w, n_batch, name, row, column, operand);
    print_from_source(w, n_batch, function, row, column, operand->source);
    return GB_SUCCESS;
}

static gb_status print_operands(gb_cl_writer *w, const gb_attention_problem *problem)
{
    gb_cl_text *t = &w->text;
    char query[16];
    snprintf(query, sizeof query, "i%d", problem->n_batch);
    GB_TRY(print_operand(w, problem->n_batch, "GB_Q_AT", "gb_q", query, "f", &problem->q));
    GB_TRY(print_operand(w, problem->n_batch, "GB_K", "gb_k", "key", "f", &problem->k));
    GB_TRY(print_operand(w, problem->n_batch, "GB_V", "gb_v", "key", "c", &problem->v));
    gb_cl_print(t, "#define GB_Q(f) GB_Q_AT(%s, f)\n", query);
    if (problem->k.source || problem->k.row_stride != 1 || problem->k.col_stride == 1)
        return GB_SUCCESS;
    gb_cl_print(t, "#define GB_KEYS_ADJACENT\n");
    if (w->lanes) {
        gb_cl_print(t, "#define GB_K_ACROSS(key, f) gb_read_%s(m%u, ",
                gb_cl_type_name(problem->k.type), problem->k.slot);
        print_row_offset(w, problem->n_batch, problem->k.strides, "key", 1);
        gb_cl_print(t, " + (f) * p[%u], 16)\n", gb_cl_number(w, problem->k.col_stride));
    }
    return GB_SUCCESS;
}

/* Numbers and programs ------------------------------------------------------------------------- */

static void print_scalar(gb_cl_writer *w, const gb_attention_scalar *scalar, const char *none)
{
    if (scalar->is_set)
        gb_cl_print(&w->text, "gb_load_%s(m%u, 0)", gb_cl_type_name(scalar->type), scalar->slot);
    else
        gb_cl_print(&w->text, "%s", none);
}

static void print_shift(gb_cl_writer *w, const char *name, const gb_attention_scalar *shift)
{
    if (shift->is_set)
        gb_cl_print(&w->text, "#define %s gb_load_lane(m%u, 0)\n", name, shift->slot);
    else
        gb_cl_print(&w->text, "#define %s 0\n", name);
}

/* Indices are s32 and saturate: with many queries the mask is left to the post-ops. */
static void print_causal(gb_cl_writer *w, const gb_attention_causal *causal, int64_t queries)
{
    if (!causal->is_set || queries >= INT32_MAX / 4)
        return;
    print_shift(w, "GB_SHIFT_UP", &causal->shift_up);
    print_shift(w, "GB_SHIFT_DOWN", &causal->shift_down);
    gb_cl_print(&w->text, "#define GB_FILL ");
    print_scalar(w, &causal->fill, "0.0f");
    gb_cl_print(&w->text, "\n");
}

static void print_numbers(gb_cl_writer *w, const gb_attention_problem *problem)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "#define GB_SCALE %s", problem->divide_by_scale ? "gb_div(1.0f, " : "(");
    print_scalar(w, &problem->scale, "1.0f");
    gb_cl_print(t, ")\n#define GB_EMPTY %s\n", problem->inf_as_zero ? "0.0f" : "NAN");
    if (problem->exact)
        gb_cl_print(t, "#define GB_EXACT\n");
    print_causal(w, &problem->causal, problem->queries);
    if (problem->has_stats) {
        gb_cl_print(t, "#define GB_STATS(value) gb_store_f32(m%u, ", problem->stats_slot);
        gb_cl_print_offset(w, problem->n_batch + 1, problem->stats_strides);
        gb_cl_print(t, ", value)\n");
    }
}

/* MACRO(key, n, t) runs a program on scores of n keys. */
static gb_status print_scores(gb_cl_writer *w, const char *macro, const char *function,
        const gb_pointwise_program *pointwise, int n_batch, bool stores)
{
    int lane_dim = w->lanes ? n_batch + 1 : GB_CL_NO_LANES;
    GB_TRY(gb_cl_print_local_pointwise(w, pointwise, function, lane_dim, stores));
    gb_cl_print(&w->text, "#define %s(key, n, t) %s(GB_PASSED", macro, function);
    gb_cl_print_indices(w, n_batch + 1, false);
    gb_cl_print(&w->text, w->lanes ? ", key, n, 0.0f, t)\n" : ", key, 0.0f, t)\n");
    return GB_SUCCESS;
}

static gb_status print_program(gb_cl_writer *w, const gb_attention_problem *problem,
        const char *macro, const char *function, const gb_attention_program *program)
{
    if (program->is_empty || program->pointwise.n_instructions == 0)
        return GB_SUCCESS;
    return print_scores(w, macro, function, &program->pointwise, problem->n_batch, true);
}

static gb_status print_programs(gb_cl_writer *w, const gb_attention_problem *problem)
{
    GB_TRY(print_program(w, problem, "GB_BEFORE", "gb_before", &problem->before));
    GB_TRY(print_program(w, problem, "GB_VISIBLE", "gb_visible", &problem->before_unmasked));
    GB_TRY(print_program(w, problem, "GB_BETWEEN", "gb_between", &problem->between));
    return GB_SUCCESS;
}

static gb_status print_post(gb_cl_writer *w, const gb_attention_problem *problem)
{
    GB_TRY(gb_cl_print_pointwise(w, &problem->after.pointwise, "gb_post", GB_CL_NO_LANES));
    gb_cl_print(&w->text, "#define GB_POST(column, value) gb_post(GB_PASSED");
    gb_cl_print_indices(w, problem->n_batch + 1, false);
    gb_cl_print(&w->text, ", column, value)\n");
    return GB_SUCCESS;
}

/* What was defined is followed by what kernels share, and by the kernel. */
static void end_text(gb_cl_writer *w, const char *kernel)
{
    gb_cl_print(&w->text, "%s%s", gb_cl_tiles, gb_cl_attention_shared);
    w->uses_math = true;
    w->family = kernel;
}

static void print_sizes(gb_cl_writer *w, const gb_attention_problem *problem, const blocks *b)
{
    gb_cl_print(&w->text,
            "#define GB_FEATURES %lld\n#define GB_COLUMNS %lld\n#define GB_KEYS p[%u]\n"
            "#define GB_BLOCK_ROWS %d\n#define GB_TILE_ROWS %d\n#define GB_BLOCK_KEYS %d\n",
            (long long)problem->features, (long long)problem->columns,
            gb_cl_number(w, problem->keys), b->rows, b->tile_rows, b->keys);
}

static gb_status print(gb_cl_writer *w, const gb_attention_problem *problem)
{
    gb_cl_shape shape = gb_cl_shape_of(w->program);
    gb_attention_space space;
    gb_attention_space_init(
            &space, problem->n_batch, problem->batch_dims, problem->is_row, problem->queries);
    blocks b = choose_blocks(shape, &space, problem);
    w->lanes = shape.is_cpu ? LANES : 0;
    gb_cl_print_arguments(w);
    print_positions(w, &space);
    print_sizes(w, problem, &b);
    GB_TRY(print_operands(w, problem));
    print_numbers(w, problem);
    GB_TRY(print_programs(w, problem));
    GB_TRY(print_post(w, problem));
    end_text(w, gb_cl_attention);
    gb_cl_set_items(w, gb_div_up(space.rows, b.rows), space.tasks);
    return GB_SUCCESS;
}

/* Sums over the queries ------------------------------------------------------------------------ */

static blocks choose_blocks_over_queries(
        gb_cl_shape shape, const gb_attention_space *space, const gb_attention_problem *problem)
{
    int64_t keys = wide(problem->keys), width = wide(problem->features) + wide(problem->columns);
    int64_t rows = gb_min_i64(gb_min_i64(PRIVATE_FLOATS / (width + keys), shape.attention_rows),
            gb_div_up(space->rows, shape.attention_tile) * shape.attention_tile);
    rows = gb_max_i64(1, rows / shape.attention_tile) * shape.attention_tile;
    return (blocks){(int)rows, shape.attention_tile, (int)keys};
}

/* Tasks are cut where there are fewer than units: the parts compute the scores again. */
static int64_t choose_splits(gb_cl_shape shape, const gb_attention_space *space, const blocks *b)
{
    int64_t splits = gb_div_up(shape.units, gb_max_i64(1, space->tasks));
    return gb_max_i64(1, gb_min_i64(splits, b->keys / LEAST_SPLIT));
}

static gb_status print_post_over_queries(gb_cl_writer *w, const gb_attention_problem *problem)
{
    gb_cl_text *t = &w->text;
    int lane_dim = w->lanes ? problem->n_batch + 1 : GB_CL_NO_LANES;
    GB_TRY(gb_cl_print_pointwise(w, &problem->after.pointwise, "gb_post", lane_dim));
    gb_cl_print(t, "#define GB_POST_AT(row, column, n, value) gb_post(GB_PASSED");
    gb_cl_print_indices(w, problem->n_batch, false);
    gb_cl_print(t, w->lanes ? ", row, column, n, value)\n" : ", row, column, value)\n");
    return GB_SUCCESS;
}

static gb_status print_over_queries(gb_cl_writer *w, const gb_attention_problem *problem)
{
    gb_cl_shape shape = gb_cl_shape_of(w->program);
    gb_attention_space space;
    uint32_t buffer, slot = 0;
    gb_attention_space_init(
            &space, problem->n_batch, problem->batch_dims, problem->is_row, problem->queries);
    blocks b = choose_blocks_over_queries(shape, &space, problem);
    int64_t splits = choose_splits(shape, &space, &b);
    int64_t keys = gb_div_up(gb_div_up(problem->keys, splits), b.tile_rows) * b.tile_rows;
    int64_t sums = keys * wide(problem->columns);
    splits = gb_div_up(problem->keys, keys);
    w->lanes = shape.is_cpu ? LANES : 0;
    if (sums > PRIVATE_FLOATS) {
        GB_TRY(gb_program_temporary(
                w->program, (size_t)(sums * splits * space.tasks) * sizeof(float), &buffer));
        GB_TRY(gb_step_use_buffer(w->step, buffer, true, &slot));
    }
    gb_cl_print_arguments(w);
    print_positions(w, &space);
    print_sizes(w, problem, &b);
    gb_cl_print(&w->text, "#define GB_SPLITS p[%u]\n#define GB_SPLIT_KEYS %d\n%s",
            gb_cl_number(w, splits), (int)keys, problem->keys_last ? "#define GB_KEYS_LAST\n" : "");
    if (sums > PRIVATE_FLOATS)
        gb_cl_print(&w->text, "#define GB_SUMS ((__global float *)m%u)\n", slot);
    GB_TRY(print_operands(w, problem));
    print_numbers(w, problem);
    GB_TRY(print_programs(w, problem));
    GB_TRY(print_post_over_queries(w, problem));
    end_text(w, gb_cl_attention_over_queries);
    gb_cl_set_items(w, splits, space.tasks);
    return GB_SUCCESS;
}

/* A work-item sums over all queries of a task and keeps the scores of some rows whole. Only CPUs are
 * given that; others run the ops that it consists of. */
static bool accepts_over_queries(
        const gb_graph *graph, const gb_attention_parts *parts, bool on_cpu)
{
    const gb_logical_tensor *scores = gb_op_output(parts->scores, 0);
    return on_cpu && scores->dims[scores->ndims - 1] <= MOST_KEPT_KEYS &&
           parts->query_source.n + parts->key_source.n + parts->value_source.n == 0 &&
           gb_attention_keeps_scale(graph, &parts->between);
}

static bool attention_accepts(const gb_graph *graph, const void *found, bool on_cpu)
{
    const gb_attention_parts *parts = found;
    return gb_attention_features(parts) <= MOST_WIDTH &&
           gb_attention_columns(parts) <= MOST_WIDTH &&
           (!parts->by_rows || accepts_over_queries(graph, parts, on_cpu));
}

static double work_of(const gb_attention_problem *problem)
{
    double scores = (double)problem->queries * (double)problem->keys;
    for (int d = 0; d < problem->n_batch; d++)
        scores *= (double)problem->batch_dims[d];
    return 2 * scores * (double)(problem->features + problem->columns);
}

static gb_status lower_attention(gb_program *program, const gb_group *group)
{
    gb_cl_writer w;
    gb_attention_problem problem = {0};
    GB_TRY(gb_cl_begin(program, "attention", &w));
    GB_TRY(gb_attention_describe(program, group, w.step, &problem));
    w.step->work = work_of(&problem);
    return gb_cl_writer_add(
            &w, problem.over_queries ? print_over_queries(&w, &problem) : print(&w, &problem));
}

const gb_cl_region_lowering gb_cl_lowering_attention = {
        .region = &gb_region_attention, .accepts = attention_accepts, .lower = lower_attention};

/* Gradients ------------------------------------------------------------------------------------ */

static gb_status print_gradient_operands(
        gb_cl_writer *w, const gb_attention_gradient_problem *problem)
{
    int n = problem->n_batch;
    char query[16];
    snprintf(query, sizeof query, "i%d", n);
    GB_TRY(print_operand(w, n, "GB_Q_AT", "gb_q", query, "f", &problem->q));
    GB_TRY(print_operand(w, n, "GB_G_AT", "gb_g", query, "c", &problem->g));
    GB_TRY(print_operand(w, n, "GB_K", "gb_k", "key", "f", &problem->k));
    GB_TRY(print_operand(w, n, "GB_V", "gb_v", "key", "c", &problem->v));
    gb_cl_print(&w->text, "#define GB_Q(f) GB_Q_AT(%s, f)\n#define GB_G(c) GB_G_AT(%s, c)\n", query,
            query);
    if (has_lanes(w, &problem->q))
        gb_cl_print(&w->text, "#define GB_Q_LANES(f) GB_Q_AT_LANES(%s, f)\n", query);
    if (has_lanes(w, &problem->g))
        gb_cl_print(&w->text, "#define GB_G_LANES(c) GB_G_AT_LANES(%s, c)\n", query);
    if (!problem->has_outputs)
        return GB_SUCCESS;
    GB_TRY(print_operand(w, n, "GB_O_AT", "gb_o", query, "c", &problem->o));
    gb_cl_print(&w->text, "#define GB_O(c) GB_O_AT(%s, c)\n", query);
    return GB_SUCCESS;
}

/* Gradients of K and V lack the dims that they are summed over. */
static gb_status print_key_result(gb_cl_writer *w, const gb_attention_gradient_problem *problem,
        const char *macro, const char *function, const gb_pointwise_program *pointwise)
{
    GB_TRY(gb_cl_print_pointwise(w, pointwise, function, GB_CL_NO_LANES));
    gb_cl_print(&w->text, "#define %s(key, column, value) %s(GB_PASSED", macro, function);
    for (int d = 0; d < problem->n_batch; d++) {
        if (problem->is_row[d])
            gb_cl_print(&w->text, ", 0");
        else
            gb_cl_print(&w->text, ", i%d", d);
    }
    gb_cl_print(&w->text, ", key, column, value)\n");
    return GB_SUCCESS;
}

static gb_status print_gradient_programs(
        gb_cl_writer *w, const gb_attention_gradient_problem *problem)
{
    static const char *const names[] = {"GB_SCORES", "GB_SCORES_AGAIN"};
    static const char *const functions[] = {"gb_scores", "gb_scores_again"};
    gb_cl_text *t = &w->text;
    for (int i = 0; i < 2; i++)
        GB_TRY(print_scores(
                w, names[i], functions[i], &problem->score_ops, problem->n_batch, i == 0));
    GB_TRY(gb_cl_print_pointwise(w, &problem->dq, "gb_post_dq", GB_CL_NO_LANES));
    gb_cl_print(t, "#define GB_POST_DQ(column, value) gb_post_dq(GB_PASSED");
    gb_cl_print_indices(w, problem->n_batch + 1, false);
    gb_cl_print(t, ", column, value)\n");
    GB_TRY(print_key_result(w, problem, "GB_POST_DK", "gb_post_dk", &problem->dk));
    return print_key_result(w, problem, "GB_POST_DV", "gb_post_dv", &problem->dv);
}

static gb_status print_gradients(gb_cl_writer *w, const gb_attention_gradient_problem *problem)
{
    gb_cl_text *t = &w->text;
    gb_cl_shape shape = gb_cl_shape_of(w->program);
    gb_attention_space space;
    gb_attention_space_init(
            &space, problem->n_batch, problem->batch_dims, problem->is_row, problem->queries);
    int64_t width = wide(problem->features) + wide(problem->columns);
    int64_t longest = gb_max_i64(space.rows, problem->keys);
    int64_t wanted = (int64_t)shape.items * shape.units;
    int rows = shape.is_cpu ? GRADIENT_ROWS : LANES;
    while (rows > LANES &&
            (rows * 2 * width > PRIVATE_FLOATS || rows / 2 >= longest ||
                    space.tasks * (gb_div_up(space.rows, rows) + gb_div_up(problem->keys, rows)) <
                            wanted))
        rows /= 2;
    int others = shape.is_cpu && problem->features + problem->columns <= GRADIENT_WIDTH ? 2 * LANES
                                                                                        : LANES;
    int64_t row_items = gb_div_up(space.rows, rows), key_items = gb_div_up(problem->keys, rows);
    w->lanes = shape.is_cpu ? LANES : 0;
    gb_cl_print_arguments(w);
    print_positions(w, &space);
    gb_cl_print(t,
            "#define GB_FEATURES %lld\n#define GB_COLUMNS %lld\n"
            "#define GB_KEYS p[%u]\n#define GB_BLOCK_ROWS %d\n#define GB_TILE_ROWS %d\n"
            "#define GB_OTHERS %d\n#define GB_ROW_ITEMS p[%u]\n#define GB_KEY_ITEMS p[%u]\n%s",
            (long long)problem->features, (long long)problem->columns,
            gb_cl_number(w, problem->keys), rows, GRADIENT_TILE, others, gb_cl_number(w, row_items),
            gb_cl_number(w, key_items), problem->exposes ? "#define GB_EXPOSES\n" : "");
    GB_TRY(print_gradient_operands(w, problem));
    print_causal(w, &problem->causal, problem->queries);
    if (problem->causal.is_set) {
        gb_cl_print(t, "#define GB_STATS_HERE gb_load_f32(m%u, ", problem->stats_slot);
        gb_cl_print_offset(w, problem->n_batch + 1, problem->stats_strides);
        gb_cl_print(t, ")\n");
    }
    GB_TRY(print_gradient_programs(w, problem));
    end_text(w, gb_cl_attention_gradients);
    gb_cl_set_items(w, row_items + key_items, space.tasks);
    return GB_SUCCESS;
}

static bool gradients_accept(const gb_graph *graph, const void *found, bool on_cpu)
{
    const gb_attention_gradient_parts *parts = found;
    const gb_logical_tensor *dq = gb_op_output(parts->dq, 0), *dv = gb_op_output(parts->dv, 0);
    (void)graph, (void)on_cpu;
    return dq->dims[dq->ndims - 1] <= GRADIENT_WIDTH && dv->dims[dv->ndims - 1] <= GRADIENT_WIDTH;
}

static gb_status lower_gradients(gb_program *program, const gb_group *group)
{
    gb_cl_writer w;
    gb_attention_gradient_problem problem = {0};
    GB_TRY(gb_cl_begin(program, "attention_backward", &w));
    GB_TRY(gb_attention_gradient_describe(program, group, w.step, &problem));
    double scores = (double)problem.queries * (double)problem.keys;
    for (int d = 0; d < problem.n_batch; d++)
        scores *= (double)problem.batch_dims[d];
    /* The scores and their gradients are computed twice. */
    w.step->work = 2 * scores * (double)(4 * problem.features + 3 * problem.columns);
    return gb_cl_writer_add(&w, print_gradients(&w, &problem));
}

const gb_cl_region_lowering gb_cl_lowering_attention_gradients = {
        .region = &gb_region_attention_gradients,
        .accepts = gradients_accept,
        .lower = lower_gradients};
