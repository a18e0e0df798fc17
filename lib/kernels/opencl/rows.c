/* Stages of problems with reduced dims. */
#include "kernels/opencl/rows.h"

#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"

#include <stdlib.h>
#include <string.h>

/* As in cl/rows.cl. */
enum { ALONG_ROW, ALONG_COLUMNS, ALONG_GROUP };

enum {
    SHORTEST_PART = 2048,      /* elements that are worth a part of their own */
    SHORTEST_CPU_PART = 32768, /* a CPU walks them while it would start two more kernels */
    LONGEST_SUM = 65536,       /* so that it stays exact enough */
    CPU_LANES = 16,            /* elements of a row, or rows, that a work-item takes at a time */
    ITEMS_PER_UNIT = 4,        /* of a device, so that all of it has something to do */
    GROUP_ROW = 32,            /* elements of the inner dim from which on a group shares a row */
    ITEM_WORK = 4096,          /* elements that are worth a group of their own on a CPU */
    LAST_LANES = 3,            /* steps that they take longer */
    LEAST_KEPT = 256,
    MOST_KEPT = 4096, /* elements of a row that a work-item keeps */
    MOST_VECTORS = 4,
    SUMS = 2
};

/* Text ------------------------------------------------------------------------------------------ */

uint32_t gb_cl_rows_slot(gb_cl_row_writer *rows, uint32_t slot)
{
    const gb_step_use *use = &rows->described->uses[slot];
    uint32_t own = 0;
    if (rows->w->step == rows->described)
        return slot;
    gb_status status = (use->elementwise ? gb_step_use_elementwise : gb_step_use_buffer)(
            rows->w->step, use->buffer, use->written, &own);
    rows->w->failed = rows->w->failed || status != GB_SUCCESS;
    return own;
}

static uint32_t use_temporary(gb_cl_row_writer *rows, uint32_t buffer, bool written)
{
    uint32_t slot = 0;
    gb_status status = gb_step_use_buffer(rows->w->step, buffer, written, &slot);
    rows->w->failed = rows->w->failed || status != GB_SUCCESS;
    return slot;
}

void gb_cl_rows_load(gb_cl_row_writer *rows, const gb_operand *operand)
{
    gb_cl_print_read(rows->w, gb_cl_type_name(operand->type), gb_cl_rows_slot(rows, operand->slot),
            rows->space->ndims, operand->strides, rows->lane_dim);
}

void gb_cl_rows_store(gb_cl_row_writer *rows, const gb_operand *operand, const char *value)
{
    gb_cl_print(&rows->w->text, " ");
    gb_cl_print_write(rows->w, gb_cl_type_name(operand->type), gb_cl_rows_slot(rows, operand->slot),
            rows->space->ndims, operand->strides, rows->lane_dim);
    gb_cl_print(&rows->w->text, "%s);", value);
}

/* "gb_load_f32(m1, gb_offset(p + 7, 0 + i0)": an element of a list, or lanes of them. */
static void print_listed(gb_cl_row_writer *rows, const gb_logical_tensor *tensor, uint32_t slot,
        const int64_t *strides, const char *verb, const char *verb_in_lanes)
{
    gb_cl_writer *w = rows->w;
    gb_cl_text *t = &w->text;
    const char *name = gb_cl_type_name(tensor->data_type);
    int64_t stride = rows->lane_dim < 0 ? 0 : strides[rows->lane_dim];
    uint32_t own = gb_cl_rows_slot(rows, slot);
    uint32_t list = gb_cl_list(w, tensor->ndims, tensor->dims, tensor->strides);
    if (stride)
        gb_cl_print(t, "gb_%s_listed_%s(m%u, p + %u, ", verb_in_lanes, name, own, list);
    else
        gb_cl_print(t, "gb_%s_%s(m%u, gb_offset(p + %u, ", verb, name, own, list);
    gb_cl_print_offset(w, rows->space->ndims, strides);
    if (stride)
        gb_cl_print(t, ", p[%u], lanes", gb_cl_number(w, stride));
    else
        gb_cl_print(t, ")");
}

void gb_cl_rows_load_numbered(gb_cl_row_writer *rows, const gb_logical_tensor *tensor,
        uint32_t slot, const int64_t *strides)
{
    if (gb_is_dense(tensor)) {
        gb_cl_print_read(rows->w, gb_cl_type_name(tensor->data_type), gb_cl_rows_slot(rows, slot),
                rows->space->ndims, strides, rows->lane_dim);
        return;
    }
    print_listed(rows, tensor, slot, strides, "load", "read");
    gb_cl_print(&rows->w->text, ")");
}

void gb_cl_rows_store_numbered(gb_cl_row_writer *rows, const gb_logical_tensor *tensor,
        uint32_t slot, const int64_t *strides, const char *value)
{
    gb_cl_print(&rows->w->text, " ");
    if (gb_is_dense(tensor)) {
        gb_cl_print_write(rows->w, gb_cl_type_name(tensor->data_type), gb_cl_rows_slot(rows, slot),
                rows->space->ndims, strides, rows->lane_dim);
    } else {
        print_listed(rows, tensor, slot, strides, "store", "write");
        gb_cl_print(&rows->w->text, ", ");
    }
    gb_cl_print(&rows->w->text, "%s);", value);
}

/* Declares the listed dims but `except` from a number, the last one fastest. */
static void print_digits(
        gb_cl_row_writer *rows, const char *from, int n, const uint8_t *list, int except)
{
    gb_cl_writer *w = rows->w;
    int first = 0;
    while (first < n && list[first] == except)
        first++;
    for (int i = n; i-- > 0;) {
        if (list[i] == except)
            continue;
        if (i == first) {
            gb_cl_print(&w->text, " long i%d = %s;", list[i], from);
            continue;
        }
        uint32_t dim = gb_cl_number(w, rows->space->dims[list[i]]);
        gb_cl_print(
                &w->text, " long i%d = %s %% p[%u]; %s /= p[%u];", list[i], from, dim, from, dim);
    }
}

static bool walks(const gb_cl_row_writer *rows)
{
    return rows->stage == GB_CL_STAGE_ALL || rows->stage == GB_CL_STAGE_SUMS;
}

static void print_index(gb_cl_text *t, const char *macro, int dim)
{
    if (dim < 0)
        gb_cl_print(t, "#define %s gb_none\n", macro);
    else
        gb_cl_print(t, "#define %s i%d\n", macro, dim);
}

/* Room for the elements of a row; sizes are few, so that kernels are. */
static int keeps_of(int64_t n)
{
    int room = LEAST_KEPT;
    while (room < n)
        room *= 4;
    return room;
}

static void print_space(gb_cl_row_writer *rows)
{
    const gb_reduced_space *space = rows->space;
    gb_cl_writer *w = rows->w;
    gb_cl_text *t = &w->text;
    int inner = gb_last_reduced(space), column = gb_last_kept(space);
    int64_t columns = gb_max_i64(1, gb_reduced_space_size(space, column));
    int64_t size = gb_max_i64(1, gb_reduced_space_size(space, inner)), outer = space->n / size;
    int along = walks(rows) ? rows->along : ALONG_GROUP;
    gb_cl_print(t, "#define GB_STAGE %d\n#define GB_ALONG %d\n", rows->stage, along);
    if (rows->along == ALONG_GROUP)
        gb_cl_print(t, "#define GB_GROUP %d\n", rows->lanes);
    if (!w->lanes)
        gb_cl_print(t, "#define GB_LANES 1\n");
    if (walks(rows) && rows->vectors)
        gb_cl_print(t, "#define GB_VECTORS %d\n", rows->vectors);
    gb_cl_print(t,
            "#define GB_ROWS p[%u]\n#define GB_COLUMNS p[%u]\n#define GB_TOTAL p[%u]\n"
            "#define GB_INNER p[%u]\n#define GB_SPLITS p[%u]\n#define GB_PART p[%u]\n",
            gb_cl_number(w, rows->rows), gb_cl_number(w, columns), gb_cl_number(w, space->n),
            gb_cl_number(w, size), gb_cl_number(w, rows->splits), gb_cl_number(w, rows->part));
    if (rows->splits == 1)
        gb_cl_print(t, "#define GB_WHOLE_ROWS\n#define GB_OUTER p[%u]\n%s", gb_cl_number(w, outer),
                outer == 1 ? "#define GB_ONE_OUTER\n" : "");
    if (rows->keeps)
        gb_cl_print(t, "#define GB_KEPT_ROW %d\n", keeps_of(space->n));
    gb_cl_print(t, "#define GB_KEPT");
    print_digits(rows, "rest", space->n_kept, space->kept, along == ALONG_COLUMNS ? column : -1);
    gb_cl_print(t, "\n#define GB_OUTER_POSITION long from = outer;");
    print_digits(rows, "from", space->n_reduced, space->reduced, inner);
    gb_cl_print(t, "\n");
    print_index(t, "GB_INNER_INDEX", inner);
    print_index(t, "GB_COLUMN_INDEX", column);
}

/* The function gb_post, and GB_POST over the space; along reduced dims that rows have no position
 * in, at 0. */
static gb_status print_post(gb_cl_row_writer *rows)
{
    gb_pointwise_program own = *rows->pointwise;
    gb_cl_writer *w = rows->w;
    bool of_rows = !rows->form->result;
    bool reduced[GB_AXES] = {false};
    int lane_dim = rows->lane_dim;
    own.operands = gb_step_alloc(w->step, own.n_operands, sizeof *own.operands);
    if (!own.operands)
        return GB_OUT_OF_MEMORY;
    memcpy(own.operands, rows->pointwise->operands, own.n_operands * sizeof *own.operands);
    for (uint32_t i = 0; i < own.n_operands; i++)
        if (!own.operands[i].is_index)
            own.operands[i].slot = gb_cl_rows_slot(rows, own.operands[i].slot);
    for (int i = 0; i < rows->space->n_reduced; i++)
        reduced[rows->space->reduced[i]] = of_rows;
    if (lane_dim >= 0 && reduced[lane_dim])
        lane_dim = GB_CL_NO_LANES;
    GB_TRY(gb_cl_print_pointwise(w, &own, "gb_post", lane_dim));
    gb_cl_print(&w->text, "#define GB_POST(value) gb_post(GB_PASSED");
    for (int d = 0; d < rows->space->ndims; d++) {
        if (reduced[d])
            gb_cl_print(&w->text, ", 0");
        else
            gb_cl_print(&w->text, ", i%d", d);
    }
    gb_cl_print(&w->text, lane_dim < 0 ? ", value)\n" : ", lanes, value)\n");
    return GB_SUCCESS;
}

static void print_sums(gb_cl_row_writer *rows)
{
    gb_cl_text *t = &rows->w->text;
    uint32_t slot = use_temporary(rows, rows->sums, rows->stage == GB_CL_STAGE_SUMS);
    bool columns = rows->along == ALONG_COLUMNS && rows->lane_dim >= 0;
    const char *count = columns ? ", lanes" : "";
    if (rows->stage == GB_CL_STAGE_SUMS)
        gb_cl_print(t,
                "#define GB_KEEP_SUMS gb_%s_f32(m%u, split * GB_ROWS + row%s, a);"
                " gb_%s_f32(m%u, (GB_SPLITS + split) * GB_ROWS + row%s, b);\n",
                columns ? "write" : "store", slot, count, columns ? "write" : "store", slot, count);
    else
        gb_cl_print(t,
                "#define GB_SUM_A gb_load_f32(m%u, split * GB_ROWS + row)\n"
                "#define GB_SUM_B gb_load_f32(m%u, (GB_SPLITS + split) * GB_ROWS + row)\n",
                slot, slot);
}

static void print_values(gb_cl_row_writer *rows)
{
    gb_cl_text *t = &rows->w->text;
    bool keeps = rows->stage == GB_CL_STAGE_JOIN;
    gb_cl_print(t, keeps ? "#define GB_KEEP" : "#define GB_RECALL");
    if (rows->form->result) {
        uint32_t slot = use_temporary(rows, rows->values, keeps);
        for (int i = 0; i < rows->form->n_values && keeps; i++)
            gb_cl_print(t, " gb_store_f32(m%u, %d * GB_ROWS + row, k%d);", slot, i, i);
        for (int i = 0; i < rows->form->n_values && !keeps; i++)
            gb_cl_print(t, " k%d = gb_load_f32(m%u, %d * GB_ROWS + row);", i, slot, i);
    }
    gb_cl_print(t, "\n");
}

/* The position's row, and the kernel over all elements. */
static void print_results(gb_cl_row_writer *rows)
{
    const gb_reduced_space *space = rows->space;
    gb_cl_writer *w = rows->w;
    int64_t strides[GB_AXES] = {0}, next = 1;
    for (int i = space->n_kept; i-- > 0;) {
        strides[space->kept[i]] = next;
        next *= space->dims[space->kept[i]];
    }
    gb_cl_print(&w->text, "#define GB_ROW_NUMBER ");
    gb_cl_print_offset(w, space->ndims, strides);
    gb_cl_print(&w->text, "\n#define GB_INDICES");
    gb_cl_print_indices(w, space->ndims, true);
    gb_cl_print(&w->text, "\nstatic inline void gb_apply(GB_PARAMETERS GB_INDICES);\n");
    gb_cl_print_space(w, space->ndims, space->dims, "gb_apply", "");
}

/* The function gb_join_other: joins the parts of one of the rows of others, and writes its results. */
static void print_others(gb_cl_row_writer *rows)
{
    gb_cl_row_writer *others = rows->others;
    gb_cl_text *t = &rows->w->text;
    others->w = rows->w;
    others->stage = GB_CL_STAGE_JOIN;
    others->lane_dim = GB_CL_NO_LANES;
    uint32_t rows_number = gb_cl_number(rows->w, others->rows);
    uint32_t splits = gb_cl_number(rows->w, others->splits);
    uint32_t slot = use_temporary(others, others->sums, false);
    others->form->fold(others);
    gb_cl_print(t, "#define GB_ONCE\n");
    others->form->finish(others);
    gb_cl_print(t,
            "static inline void gb_join_other(GB_PARAMETERS, long row)\n{\n    long rest = row;");
    print_digits(others, "rest", others->space->n_kept, others->space->kept, -1);
    gb_cl_print(t,
            "\n    float a = GB_START, b = 0.0f;\n"
            "    for (long split = 0; split < p[%u]; split++) {\n"
            "        a = GB_JOIN(a, gb_load_f32(m%u, split * p[%u] + row));\n"
            "        b += gb_load_f32(m%u, (p[%u] + split) * p[%u] + row);\n    }\n"
            "    GB_FINISH\n}\n#undef GB_START\n#undef GB_JOIN\n#undef GB_ONCE\n#undef GB_FINISH\n"
            "#define GB_OTHER_ROWS p[%u]\n",
            splits, slot, rows_number, slot, splits, rows_number, rows_number);
}

static gb_status print_stage(gb_cl_row_writer *rows)
{
    const gb_cl_rows_form *form = rows->form;
    bool sums = rows->stage == GB_CL_STAGE_ALL || rows->stage == GB_CL_STAGE_SUMS;
    bool results = rows->stage == GB_CL_STAGE_ALL || rows->stage == GB_CL_STAGE_RESULTS;
    bool finishes = rows->stage == GB_CL_STAGE_ALL || rows->stage == GB_CL_STAGE_JOIN;
    if (rows->others)
        print_others(rows);
    print_space(rows);
    if (rows->pointwise && (form->result ? results : finishes))
        GB_TRY(print_post(rows));
    if (form->prepare)
        form->prepare(rows);
    else
        gb_cl_print(&rows->w->text, "#define GB_PREPARE\n");
    if (sums || finishes)
        form->fold(rows);
    if (finishes)
        form->finish(rows);
    if (results && form->result)
        form->result(rows);
    if (rows->stage == GB_CL_STAGE_SUMS || rows->stage == GB_CL_STAGE_JOIN)
        print_sums(rows);
    if (rows->stage == GB_CL_STAGE_JOIN || rows->stage == GB_CL_STAGE_RESULTS)
        print_values(rows);
    if (rows->stage == GB_CL_STAGE_RESULTS)
        print_results(rows);
    return GB_SUCCESS;
}

/* Planning -------------------------------------------------------------------------------------- */

/* Work-items, or groups of them, that walk rows. */
static int64_t count_items(const gb_cl_row_writer *rows)
{
    int64_t columns = gb_reduced_space_size(rows->space, gb_last_kept(rows->space));
    if (rows->along != ALONG_COLUMNS)
        return rows->rows;
    return rows->rows / columns *
           gb_div_up(columns, (int64_t)rows->lanes * gb_max_i64(1, rows->vectors));
}

/* Of a row, in steps: registers hold 8 numbers; the last lanes are read and written in parts. */
static int64_t cost_of_lanes(int64_t side, int lanes)
{
    int64_t parts = 0;
    for (int64_t rest = side % lanes; rest > 0; rest /= 2)
        parts += rest % 2;
    return side / lanes * gb_max_i64(1, lanes / 8) + (parts ? LAST_LANES + parts : 0);
}

static void choose_lanes(gb_cl_row_writer *rows, const gb_cl_shape *shape)
{
    const gb_reduced_space *space = rows->space;
    int64_t inner = gb_reduced_space_size(space, gb_last_reduced(space));
    int64_t side = inner;
    rows->along = gb_reduces_columns(space) ? ALONG_COLUMNS : ALONG_ROW;
    if (rows->along == ALONG_COLUMNS)
        side = gb_reduced_space_size(space, gb_last_kept(space));
    int most = shape->is_cpu ? CPU_LANES : 1;
    if (rows->along == ALONG_ROW && !shape->is_cpu && inner >= GROUP_ROW) {
        rows->along = ALONG_GROUP;
        most = (int)shape->local_size;
    }
    rows->lanes = 1;
    while (rows->lanes < most && rows->lanes < side)
        rows->lanes *= 2;
    if (rows->along == ALONG_GROUP)
        return;
    for (int lanes = rows->lanes / 2; lanes > 1; lanes /= 2)
        if (cost_of_lanes(side, lanes) < cost_of_lanes(side, rows->lanes))
            rows->lanes = lanes;
}

int64_t gb_cl_row_items(const gb_cl_shape *shape)
{
    return (int64_t)ITEMS_PER_UNIT * shape->units;
}

/* Can so many lanes of columns be walked side by side, all of them whole? The last ones may repeat columns
 * of those before. */
static bool fits_vectors(const gb_cl_row_writer *rows, int64_t columns, int vectors)
{
    int64_t width = (int64_t)vectors * rows->lanes;
    return columns % width == 0 || (columns > width && gb_cl_may_repeat(rows->described));
}

/* Lanes of columns that a work-item walks side by side: what lies in memory next to each other, and what is
 * the same for all columns, is then read once. */
static void choose_vectors(gb_cl_row_writer *rows, const gb_cl_shape *shape)
{
    int64_t columns = gb_reduced_space_size(rows->space, gb_last_kept(rows->space));
    rows->vectors = 0;
    if (rows->along != ALONG_COLUMNS || !shape->is_cpu || rows->lanes == 1 || rows->form->result ||
            rows->form->prepare || !fits_vectors(rows, columns, 1))
        return;
    int64_t blocks = gb_div_up(columns, rows->lanes);
    rows->vectors = 1;
    while (rows->vectors < MOST_VECTORS && fits_vectors(rows, columns, 2 * rows->vectors) &&
            blocks % (2 * rows->vectors) == 0 && count_items(rows) >= 2 * gb_cl_row_items(shape))
        rows->vectors *= 2;
}

static void choose_splits(gb_cl_row_writer *rows, const gb_cl_shape *shape)
{
    int64_t n = rows->space->n, items = count_items(rows);
    int64_t wanted = gb_div_up(gb_cl_row_items(shape), gb_max_i64(1, items));
    int64_t splits = gb_min_i64(wanted, n / (shape->is_cpu ? SHORTEST_CPU_PART : SHORTEST_PART));
    int64_t longest = LONGEST_SUM * (rows->along == ALONG_COLUMNS ? 1 : (int64_t)rows->lanes);
    splits = gb_max_i64(splits, gb_div_up(n, longest));
    rows->splits = gb_max_i64(1, splits);
    rows->part = gb_div_up(n, rows->splits);
    rows->splits = gb_max_i64(1, gb_div_up(n, gb_max_i64(1, rows->part)));
}

static size_t round_up(int64_t count, size_t group)
{
    return ((size_t)gb_max_i64(1, count) + group - 1) / group * group;
}

/* Groups of a CPU are one work-item, which takes as many rows as make it worth while. */
static void set_sizes(gb_cl_row_writer *rows, const gb_cl_shape *shape)
{
    gb_cl_writer *w = rows->w;
    int64_t items = count_items(rows), each = 1;
    if (rows->stage == GB_CL_STAGE_JOIN) {
        gb_cl_set_flat(w, rows->rows);
        return;
    }
    if (shape->is_cpu) {
        int64_t row = gb_max_i64(1, rows->part);
        if (rows->along == ALONG_COLUMNS)
            row *= rows->lanes * gb_max_i64(1, rows->vectors);
        each = gb_min_i64(gb_div_up(ITEM_WORK, row), gb_div_up(items, gb_cl_row_items(shape)));
        gb_cl_set_items(w, gb_div_up(items, each), rows->splits);
    } else {
        size_t local = (size_t)(rows->along == ALONG_GROUP ? rows->lanes : shape->local_size);
        w->local[0] = local;
        w->local[1] = w->local[2] = w->global[2] = 1;
        w->global[0] = rows->along == ALONG_GROUP ? (size_t)items * local : round_up(items, local);
        w->global[1] = (size_t)rows->splits;
        gb_cl_print(&w->text, "#define GB_ITEMS\n");
    }
    gb_cl_print(&w->text, "#define GB_COUNT p[%u]\n#define GB_EACH p[%u]\n", gb_cl_number(w, items),
            gb_cl_number(w, each));
}

/* The arguments are known when all of the text is: they are put in front of it. */
static gb_status add_stage(gb_cl_row_writer *rows, gb_cl_stage stage, double work)
{
    gb_cl_shape shape = gb_cl_shape_of(rows->program);
    gb_cl_writer w = {.program = rows->program, .step = rows->described};
    if (stage != GB_CL_STAGE_ALL || rows->separate)
        GB_TRY(gb_cl_begin(rows->program, rows->described->kernel, &w));
    w.step->work = work;
    w.uses_math = rows->uses_math;
    w.family = gb_cl_rows;
    rows->w = &w;
    rows->stage = stage;
    rows->lane_dim = GB_CL_NO_LANES;
    if (walks(rows) && rows->along != ALONG_GROUP && rows->lanes > 1) {
        w.lanes = rows->lanes;
        rows->lane_dim =
                rows->along == ALONG_ROW ? gb_last_reduced(rows->space) : gb_last_kept(rows->space);
    }
    rows->keeps = rows->form->keeps && stage == GB_CL_STAGE_ALL && w.lanes &&
                  rows->along == ALONG_ROW && rows->space->n <= MOST_KEPT;
    gb_status status = print_stage(rows);
    if (stage != GB_CL_STAGE_RESULTS)
        set_sizes(rows, &shape);
    gb_cl_text body = w.text;
    w.text = (gb_cl_text){0};
    gb_cl_print_arguments(&w);
    if (body.data)
        gb_cl_print(&w.text, "%s", body.data);
    w.failed = w.failed || body.failed;
    gb_cl_text_free(&body);
    return gb_cl_writer_add(&w, status);
}

static gb_status add_temporaries(gb_cl_row_writer *rows)
{
    size_t row = sizeof(float) * (size_t)rows->rows;
    GB_TRY(gb_program_temporary(rows->program, SUMS * (size_t)rows->splits * row, &rows->sums));
    if (!rows->form->result)
        return GB_SUCCESS;
    return gb_program_temporary(
            rows->program, (size_t)gb_max_i64(1, rows->form->n_values) * row, &rows->values);
}

static gb_status add_join(gb_cl_row_writer *rows)
{
    return add_stage(rows, GB_CL_STAGE_JOIN, (double)(rows->rows * rows->splits));
}

gb_status gb_cl_rows_add(gb_cl_row_writer *rows)
{
    gb_cl_shape shape = gb_cl_shape_of(rows->program);
    double work = rows->described->work;
    rows->rows = gb_product(rows->space->n_kept, rows->space->kept, rows->space->dims);
    if (rows->rows == 0)
        return GB_SUCCESS;
    choose_lanes(rows, &shape);
    choose_vectors(rows, &shape);
    choose_splits(rows, &shape);
    if (rows->splits == 1)
        return add_stage(rows, GB_CL_STAGE_ALL, work);
    if (rows->others)
        GB_TRY(add_join(rows->others));
    rows->others = NULL;
    GB_TRY(add_temporaries(rows));
    GB_TRY(add_stage(rows, GB_CL_STAGE_SUMS, work / 2));
    if (rows->joins_later)
        return GB_SUCCESS;
    GB_TRY(add_join(rows));
    return rows->form->result ? add_stage(rows, GB_CL_STAGE_RESULTS, work / 2) : GB_SUCCESS;
}
