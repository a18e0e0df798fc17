/* Describes Reorder between any two layouts, as copies of boxes.
 *
 * An axis that either side keeps in blocks is seen as several digits, as many as there are sizes of
 * blocks: both sides have strides for each digit. Where an axis ends within a block, it is split
 * into full blocks and what is left, so that each box has all combinations of its digits. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/format.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/copy_problem.h"

#include <string.h>

enum { SRC, DST, MAX_DIGITS = 2 * (GB_FORMAT_BLOCKS + 1) };

/* Moving by `unit` positions of an axis, from a multiple of it up to the next larger unit. */
typedef struct digit {
    int64_t unit, strides[2];
} digit;

/* Positions first .. of an axis: all values of the digits below `digits`, `count` of the last. */
typedef struct piece {
    int64_t first, count;
    int digits;
} piece;

typedef struct axis {
    int n_digits, n_pieces;
    digit digits[MAX_DIGITS]; /* by growing units */
    piece pieces[MAX_DIGITS];
} axis;

typedef struct reorder {
    const gb_logical_tensor *tensors[2];
    axis axes[GB_AXES];
} reorder;

static void add_unit(axis *a, int64_t unit)
{
    int at = 0;
    while (at < a->n_digits && a->digits[at].unit < unit)
        at++;
    if (at < a->n_digits && a->digits[at].unit == unit)
        return;
    memmove(a->digits + at + 1, a->digits + at, sizeof *a->digits * (size_t)(a->n_digits - at));
    a->digits[at] = (digit){.unit = unit};
    a->n_digits++;
}

/* False when blocks of one side lie across those of the other. */
static bool find_digits(const reorder *r, int d, axis *a)
{
    gb_format_part parts[2][GB_FORMAT_BLOCKS + 1];
    int n[2];
    for (int side = SRC; side <= DST; side++) {
        n[side] = gb_tensor_parts(r->tensors[side], d, parts[side]);
        for (int i = 0; i < n[side]; i++)
            add_unit(a, parts[side][i].unit);
    }
    for (int i = 0; i < a->n_digits; i++) {
        digit *own = &a->digits[i];
        if (i && own->unit % own[-1].unit)
            return false;
        for (int side = SRC; side <= DST; side++) {
            int part = n[side] - 1;
            while (parts[side][part].unit > own->unit)
                part--;
            own->strides[side] = own->unit / parts[side][part].unit * parts[side][part].stride;
        }
    }
    return true;
}

static void find_pieces(int64_t size, axis *a)
{
    int64_t first = 0;
    for (int i = a->n_digits; i-- > 0;) {
        int64_t unit = a->digits[i].unit, count = (size - first) / unit;
        if (count == 0)
            continue;
        a->pieces[a->n_pieces++] = (piece){first, count, i + 1};
        first += count * unit;
    }
}

/* False when the sides have no digits in common, or more than a copy has dims. */
static bool find_boxes(reorder *r, size_t *n_boxes)
{
    int n = 0;
    *n_boxes = 1;
    for (int d = 0; d < r->tensors[DST]->ndims; d++) {
        axis *a = &r->axes[d];
        memset(a, 0, sizeof *a);
        if (!find_digits(r, d, a))
            return false;
        find_pieces(r->tensors[DST]->dims[d], a);
        *n_boxes *= (size_t)a->n_pieces;
        n += a->n_digits;
    }
    return n <= GB_AXES;
}

static void place_box(const reorder *r, size_t index, size_t element, gb_copy_move *move)
{
    int64_t dims[GB_AXES], strides[2][GB_AXES], offset[2] = {0};
    int n = 0;
    for (int d = 0; d < r->tensors[DST]->ndims; d++) {
        const axis *a = &r->axes[d];
        const piece *p = &a->pieces[index % (size_t)a->n_pieces];
        index /= (size_t)a->n_pieces;
        for (int i = a->n_digits; i-- > 0;) {
            const digit *own = &a->digits[i];
            int64_t value = p->first / own->unit;
            if (i + 1 < a->n_digits)
                value = p->first % own[1].unit / own->unit;
            offset[SRC] += value * own->strides[SRC];
            offset[DST] += value * own->strides[DST];
            if (i >= p->digits)
                continue;
            dims[n] = i + 1 == p->digits ? p->count : own[1].unit / own->unit;
            strides[SRC][n] = own->strides[SRC];
            strides[DST][n++] = own->strides[DST];
        }
    }
    gb_copy_box_init(&move->box, n, dims, strides[SRC], strides[DST], element);
    move->src_offset = offset[SRC] * (int64_t)element;
    move->dst_offset = offset[DST] * (int64_t)element;
}

/* The boxes of one stage, whose digits are found. */
static gb_status add_boxes(const reorder *r, size_t n_boxes, const uint32_t *slots, int phase,
        gb_step *step, gb_copy_problem *problem)
{
    size_t element = gb_data_type_bytes(r->tensors[DST]->data_type, 1);
    gb_copy_move *move = gb_copy_add_moves(step, problem, n_boxes);
    if (!move)
        return GB_OUT_OF_MEMORY;
    for (size_t box = 0; box < n_boxes; box++, move++) {
        place_box(r, box, element, move);
        move->src_slot = slots[SRC];
        move->dst_slot = slots[DST];
        move->phase = phase;
    }
    return GB_SUCCESS;
}

/* To dst and back: two stages with a dense copy in scratch between them. */
static gb_status describe_stages(
        const gb_op *op, const uint32_t *slots, reorder *r, gb_step *step, gb_copy_problem *problem)
{
    const gb_logical_tensor *src = gb_op_input(op, 0), *dst = gb_op_output(op, 0);
    gb_logical_tensor dense;
    size_t n_boxes;
    GB_TRY(gb_logical_tensor_init_with_dims(&dense, dst->id, dst->data_type, dst->ndims, dst->dims,
            GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF));
    GB_TRY(gb_logical_tensor_get_mem_size(&dense, &problem->scratch_bytes));
    problem->n_phases = 2;
    *r = (reorder){.tensors = {src, &dense}};
    find_boxes(r, &n_boxes);
    GB_TRY(add_boxes(
            r, n_boxes, (const uint32_t[]){slots[SRC], GB_COPY_SCRATCH}, 0, step, problem));
    *r = (reorder){.tensors = {&dense, dst}};
    find_boxes(r, &n_boxes);
    return add_boxes(r, n_boxes, (const uint32_t[]){GB_COPY_SCRATCH, slots[DST]}, 1, step, problem);
}

static bool has_padding(const gb_logical_tensor *tensor)
{
    return tensor->layout_type == GB_LAYOUT_OPAQUE &&
           !gb_format_divides(gb_format_find(tensor->layout_id), tensor->dims);
}

gb_status gb_reorder_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_copy_problem *problem)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    reorder r = {.tensors = {gb_op_input(op, 0), dst}};
    uint32_t slots[2];
    size_t n_boxes;
    GB_TRY(gb_program_use(program, step, op->inputs[0], false, &slots[SRC]));
    GB_TRY(gb_program_use(program, step, op->outputs[0], true, &slots[DST]));
    problem->n_phases = 1;
    if (has_padding(dst)) {
        problem->n_phases = 2;
        problem->cleared = slots[DST];
        GB_TRY(gb_logical_tensor_get_mem_size(dst, &problem->clear_bytes));
    }
    if (find_boxes(&r, &n_boxes))
        return add_boxes(&r, n_boxes, slots, problem->n_phases - 1, step, problem);
    return describe_stages(op, slots, &r, step, problem);
}

uint32_t gb_reorder_writes_formats(const gb_graph *graph, const gb_group *group, uint32_t value,
        gb_format_candidate *candidates)
{
    (void)group;
    candidates[0] = (gb_format_candidate){
            .format = gb_format_find(graph->values[value].preferred_layout), .gain = 0};
    return candidates[0].format != NULL;
}
