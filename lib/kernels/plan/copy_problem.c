/* Describes Concat, StaticReshape and StaticTranspose. */
#include "kernels/plan/copy_problem.h"

#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/space.h"

#include <inttypes.h>
#include <string.h>

void gb_copy_box_init(gb_copy_box *box, int ndims, const int64_t *dims, const int64_t *src_strides,
        const int64_t *dst_strides, size_t element)
{
    *box = (gb_copy_box){.element = element};
    memcpy(box->src_strides, src_strides, (size_t)ndims * sizeof *src_strides);
    memcpy(box->dst_strides, dst_strides, (size_t)ndims * sizeof *dst_strides);
    gb_space space = {.ndims = ndims};
    memcpy(space.dims, dims, (size_t)ndims * sizeof *dims);
    gb_space_add(&space, box->dst_strides);
    gb_space_add(&space, box->src_strides);
    gb_space_normalize(&space);
    box->ndims = space.ndims;
    memcpy(box->dims, space.dims, sizeof box->dims);
}

double gb_copy_box_bytes(const gb_copy_box *box)
{
    double bytes = 2 * (double)box->element;
    for (int d = 0; d < box->ndims; d++)
        bytes *= (double)box->dims[d];
    return bytes;
}

gb_copy_move *gb_copy_add_moves(gb_step *step, gb_copy_problem *problem, size_t count)
{
    size_t before = problem->n_moves, bytes;
    if (count > UINT32_MAX - before || !gb_size_mul(before + count, sizeof(gb_copy_move), &bytes))
        return NULL;
    gb_copy_move *moves = gb_step_resize(step, problem->moves, before + count, sizeof *moves);
    if (!moves)
        return NULL;
    problem->moves = moves;
    problem->n_moves += (uint32_t)count;
    return moves + before;
}

bool gb_copy_moves_nothing(const gb_copy_problem *problem)
{
    bool still = problem->clear_bytes == 0;
    for (uint32_t i = 0; i < problem->n_moves && still; i++) {
        const gb_copy_move *move = &problem->moves[i];
        size_t bytes = (size_t)move->box.ndims * sizeof *move->box.src_strides;
        still = move->src_slot != GB_COPY_SCRATCH && move->dst_slot != GB_COPY_SCRATCH &&
                move->src_offset == move->dst_offset &&
                memcmp(move->box.src_strides, move->box.dst_strides, bytes) == 0;
    }
    return still;
}

static size_t element_bytes(const gb_logical_tensor *tensor)
{
    return gb_data_type_bytes(tensor->data_type, 1);
}

/* Concat --------------------------------------------------------------------------------------- */

gb_status gb_concat_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_copy_problem *problem)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, 0), dst->ndims);
    int64_t position = 0;
    size_t element = element_bytes(dst);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axis\" out of range", gb_op_label(op));
    gb_copy_move *move = gb_copy_add_moves(step, problem, op->n_inputs);
    if (!move)
        return GB_OUT_OF_MEMORY;
    problem->n_phases = 1;
    problem->side_by_side = true;
    for (uint32_t i = 0; i < op->n_inputs; i++, move++) {
        const gb_logical_tensor *src = gb_op_input(op, i);
        gb_copy_box_init(&move->box, src->ndims, src->dims, src->strides, dst->strides, element);
        GB_TRY(gb_program_use(program, step, op->inputs[i], false, &move->src_slot));
        GB_TRY(gb_program_use(program, step, op->outputs[0], true, &move->dst_slot));
        move->dst_offset = position * dst->strides[axis] * (int64_t)element;
        position += src->dims[axis];
    }
    return GB_SUCCESS;
}

/* StaticReshape, StaticTranspose --------------------------------------------------------------- */

/* One side of a reshape: dims that can be merged are. */
static int merge_dims(const gb_logical_tensor *tensor, int64_t *dims, int64_t *strides)
{
    int n = 0;
    for (int d = 0; d < tensor->ndims; d++) {
        if (tensor->dims[d] == 1)
            continue;
        if (n && strides[n - 1] == tensor->strides[d] * tensor->dims[d]) {
            dims[n - 1] *= tensor->dims[d];
        } else {
            dims[n++] = tensor->dims[d];
        }
        strides[n - 1] = tensor->strides[d];
    }
    return n;
}

typedef struct reshape_box {
    int ndims;
    int64_t dims[GB_AXES], src_strides[GB_AXES], dst_strides[GB_AXES];
} reshape_box;

/* Splits both shapes into the same dims; false when a dim of one straddles dims of the other. Dims
 * come innermost first, which the copy does not mind. */
static bool common_dims(
        const gb_logical_tensor *src, const gb_logical_tensor *dst, reshape_box *box)
{
    int64_t a_dims[GB_AXES], a_strides[GB_AXES];
    int64_t b_dims[GB_AXES], b_strides[GB_AXES];
    int a = merge_dims(src, a_dims, a_strides) - 1, b = merge_dims(dst, b_dims, b_strides) - 1;
    box->ndims = 0;
    while (a >= 0 && b >= 0) {
        int64_t size = gb_min_i64(a_dims[a], b_dims[b]);
        if (size == 0 || a_dims[a] % size || b_dims[b] % size)
            return false;
        if (box->ndims == GB_AXES)
            return false;
        box->dims[box->ndims] = size;
        box->src_strides[box->ndims] = a_strides[a];
        box->dst_strides[box->ndims++] = b_strides[b];
        a_dims[a] /= size, a_strides[a] *= size;
        b_dims[b] /= size, b_strides[b] *= size;
        if (a_dims[a] == 1)
            a--;
        if (b_dims[b] == 1)
            b--;
    }
    return true;
}

/* Through scratch, dense: first collects src there, second leads from there to dst. */
static gb_status describe_two(const gb_logical_tensor *src, const gb_logical_tensor *dst,
        gb_copy_move *first, gb_copy_move *second, gb_copy_problem *problem)
{
    size_t element = element_bytes(dst);
    int64_t strides[GB_AXES];
    if (!gb_size_mul((size_t)gb_tensor_count(src), element, &problem->scratch_bytes))
        return gb_fail(GB_INVALID_SHAPE, "%s: too large", gb_tensor_label(src));
    problem->n_phases = 2;
    second->phase = 1;
    second->dst_slot = first->dst_slot;
    second->src_slot = first->dst_slot = GB_COPY_SCRATCH;
    gb_dense_strides(src->ndims, src->dims, strides);
    gb_copy_box_init(&first->box, src->ndims, src->dims, src->strides, strides, element);
    gb_dense_strides(dst->ndims, dst->dims, strides);
    gb_copy_box_init(&second->box, dst->ndims, dst->dims, strides, dst->strides, element);
    return GB_SUCCESS;
}

static gb_status describe_reshape(const gb_logical_tensor *src, const gb_logical_tensor *dst,
        gb_step *step, gb_copy_problem *problem)
{
    size_t element = element_bytes(dst);
    gb_copy_move *move = problem->moves;
    reshape_box box;
    if (gb_tensor_count(dst) == 0) {
        gb_copy_box_init(&move->box, 1, &(int64_t){0}, &(int64_t){1}, &(int64_t){1}, element);
        return GB_SUCCESS;
    }
    if (common_dims(src, dst, &box)) {
        gb_copy_box_init(
                &move->box, box.ndims, box.dims, box.src_strides, box.dst_strides, element);
        return GB_SUCCESS;
    }
    gb_copy_move *second = gb_copy_add_moves(step, problem, 1);
    if (!second)
        return GB_OUT_OF_MEMORY;
    return describe_two(src, dst, &problem->moves[0], second, problem);
}

static gb_status describe_transpose(const gb_op *op, gb_copy_move *move)
{
    const gb_logical_tensor *src = gb_op_input(op, 0), *dst = gb_op_output(op, 0);
    const int64_t *order;
    size_t n = gb_op_attr_s64s(op, GB_ATTR_ORDER, &order);
    int64_t strides[GB_AXES] = {0};
    for (int d = 0; d < dst->ndims; d++) {
        int axis = src->ndims - 1 - d;
        if (n)
            axis = (size_t)d < n ? gb_normalize_axis(order[d], src->ndims) : -1;
        if (axis < 0)
            return gb_fail(
                    GB_INVALID_SHAPE, "%s: attribute \"order\" is no permutation", gb_op_label(op));
        strides[d] = src->strides[axis];
    }
    gb_copy_box_init(&move->box, dst->ndims, dst->dims, strides, dst->strides, element_bytes(dst));
    return GB_SUCCESS;
}

gb_status gb_movement_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_copy_problem *problem)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_copy_move *move = gb_copy_add_moves(step, problem, 1);
    if (!move)
        return GB_OUT_OF_MEMORY;
    problem->n_phases = 1;
    GB_TRY(gb_program_use(program, step, op->inputs[0], false, &move->src_slot));
    GB_TRY(gb_program_use(program, step, op->outputs[0], true, &move->dst_slot));
    if (op->kind == GB_OP_STATIC_RESHAPE)
        return describe_reshape(gb_op_input(op, 0), gb_op_output(op, 0), step, problem);
    return describe_transpose(op, move);
}

/* Text ------------------------------------------------------------------------------------------ */

static void print_side(const gb_printer *printer, const char *name, uint32_t slot, int64_t offset,
        int ndims, const int64_t *strides)
{
    fprintf(printer->file, "  %s: ", name);
    if (slot == GB_COPY_SCRATCH)
        fputs("scratch", printer->file);
    else
        gb_print_slot(printer, slot);
    fputs(" ", printer->file);
    gb_print_strides(printer, ndims, strides);
    if (offset)
        fprintf(printer->file, " from byte %" PRId64 " on", offset);
    fputs("\n", printer->file);
}

void gb_copy_problem_print(const gb_printer *printer, const void *copy_problem)
{
    enum { MOST = 8 };
    const gb_copy_problem *problem = copy_problem;
    if (problem->clear_bytes) {
        fprintf(printer->file, "%zu bytes of zeros in ", problem->clear_bytes);
        gb_print_slot(printer, problem->cleared);
        fputs("\n", printer->file);
    }
    for (uint32_t i = 0; i < problem->n_moves && i < MOST; i++) {
        const gb_copy_move *move = &problem->moves[i];
        const gb_copy_box *box = &move->box;
        fputs("copy over ", printer->file);
        gb_print_sizes(printer, box->ndims, box->dims);
        fprintf(printer->file, ", elements of %zu bytes:\n", box->element);
        print_side(printer, "src", move->src_slot, move->src_offset, box->ndims, box->src_strides);
        print_side(printer, "dst", move->dst_slot, move->dst_offset, box->ndims, box->dst_strides);
    }
    if (problem->n_moves > MOST)
        fprintf(printer->file, "%" PRIu32 " more copies\n", problem->n_moves - MOST);
}
