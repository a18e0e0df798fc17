/* Reorder between any two layouts, as strided copies of boxes.
 *
 * An axis that either side keeps in blocks is seen as several digits, as many as there are sizes of
 * blocks: both sides have strides for each digit. Where an axis ends within a block, it is split
 * into full blocks and what is left, so that each box has all combinations of its digits. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/format.h"
#include "kernels/cpu/lower.h"
#include "kernels/movement/copy_step.h"

#include <stdlib.h>
#include <string.h>

enum { SRC, DST, MAX_DIGITS = 2 * (GB_FORMAT_BLOCKS + 1) };

/* Moving by `work item` positions of an axis, from a multiple of it up to the next larger work
 * item. */
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
    digit digits[MAX_DIGITS]; /* by growing work items */
    piece pieces[MAX_DIGITS];
} axis;

typedef struct reorder {
    const gb_logical_tensor *tensors[2];
    axis axes[GB_AXES];
} reorder;

static void add_item(axis *a, int64_t unit)
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
            add_item(a, parts[side][i].unit);
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
static bool reorder_plan(reorder *r, size_t *n_boxes)
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

static void place_box(const reorder *r, size_t index, size_t element, gb_copy_task *task)
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
    gb_copy_plan_init(&task->plan, n, dims, strides[SRC], strides[DST], element);
    task->src_offset = offset[SRC] * (int64_t)element;
    task->dst_offset = offset[DST] * (int64_t)element;
}

/* Copies from slot to slot, in one phase. */
typedef struct stage {
    reorder plan;
    size_t n_boxes;
    uint32_t slots[2];
} stage;

typedef struct stages {
    int n;
    gb_logical_tensor dense; /* between the stages */
    stage list[2];
} stages;

/* Directly, or through a dense copy in scratch. */
static gb_status plan_stages(const gb_op *op, gb_step *step, const uint32_t *slots, stages *s)
{
    const gb_logical_tensor *src = gb_op_input(op, 0), *dst = gb_op_output(op, 0);
    stage *first = &s->list[0], *second = &s->list[1];
    s->n = 1;
    *first = (stage){.plan.tensors = {src, dst}, .slots = {slots[SRC], slots[DST]}};
    if (reorder_plan(&first->plan, &first->n_boxes))
        return GB_SUCCESS;
    GB_TRY(gb_logical_tensor_init_with_dims(&s->dense, dst->id, dst->data_type, dst->ndims,
            dst->dims, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF));
    GB_TRY(gb_logical_tensor_get_mem_size(&s->dense, &step->shared_scratch));
    s->n = 2;
    *first = (stage){.plan.tensors = {src, &s->dense}, .slots = {slots[SRC], GB_COPY_SCRATCH}};
    *second = (stage){.plan.tensors = {&s->dense, dst}, .slots = {GB_COPY_SCRATCH, slots[DST]}};
    reorder_plan(&first->plan, &first->n_boxes);
    reorder_plan(&second->plan, &second->n_boxes);
    return GB_SUCCESS;
}

static bool has_padding(const gb_logical_tensor *tensor)
{
    return tensor->layout_type == GB_LAYOUT_OPAQUE &&
           !gb_format_divides(gb_format_find(tensor->layout_id), tensor->dims);
}

static gb_status make_copies(
        const gb_op *op, gb_step *step, const uint32_t *slots, gb_copy_step **copies)
{
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    stages s;
    GB_TRY(plan_stages(op, step, slots, &s));
    *copies = gb_copy_step_make(step, s.list[0].n_boxes + (s.n > 1 ? s.list[1].n_boxes : 0));
    if (!*copies)
        return GB_OUT_OF_MEMORY;
    step->n_phases = s.n;
    if (has_padding(dst)) {
        (*copies)->cleared = slots[DST];
        gb_logical_tensor_get_mem_size(dst, &(*copies)->clear_bytes);
        step->n_phases = 2;
    }
    gb_copy_task *task = (*copies)->tasks;
    for (int i = 0; i < s.n; i++)
        for (size_t box = 0; box < s.list[i].n_boxes; box++, task++) {
            place_box(&s.list[i].plan, box, gb_data_type_bytes(dst->data_type, 1), task);
            task->src_slot = s.list[i].slots[SRC];
            task->dst_slot = s.list[i].slots[DST];
            task->phase = i + 1 == s.n ? step->n_phases - 1 : 0;
        }
    return GB_SUCCESS;
}

static gb_status reorder_lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_step *step;
    gb_copy_step *copies = NULL;
    uint32_t slots[2];
    GB_TRY(gb_program_begin(program, "copy", &step));
    GB_TRY(gb_program_use(program, step, op->inputs[0], false, &slots[SRC]));
    GB_TRY(gb_program_use(program, step, op->outputs[0], true, &slots[DST]));
    GB_TRY(make_copies(op, step, slots, &copies));
    return gb_copy_step_add(program, step, copies);
}

/* Any that the readers of the result prefer. */
static uint32_t reorder_writes_formats(const gb_graph *graph, const gb_group *group, uint32_t value,
        gb_format_candidate *candidates)
{
    (void)group;
    candidates[0] = (gb_format_candidate){gb_format_find(graph->values[value].preferred_layout), 0};
    return candidates[0].format != NULL;
}

const gb_lowering gb_lowering_reorder = {.name = "copy",
        .supports = gb_has_bytes,
        .writes_formats = reorder_writes_formats,
        .lower = reorder_lower};
