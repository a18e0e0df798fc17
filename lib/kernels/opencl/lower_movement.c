/* Concat, StaticReshape, StaticTranspose and Reorder: a kernel for all boxes of elements that do not
 * wait for others, a work-item for each element. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/format.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/lower.h"
#include "kernels/plan/copy_problem.h"

static const char *word_of(size_t bytes)
{
    return bytes == 1 ? "uchar" : bytes == 2 ? "ushort" : bytes == 4 ? "uint" : "ulong";
}

/* A problem on its way into kernels. */
typedef struct movement {
    gb_program *program;
    const gb_step *described; /* whose uses the slots mean */
    const gb_copy_problem *problem;
    uint32_t scratch; /* buffer */
} movement;

static gb_status use(const movement *m, gb_step *step, uint32_t slot, bool written, uint32_t *own)
{
    uint32_t buffer = slot == GB_COPY_SCRATCH ? m->scratch : m->described->uses[slot].buffer;
    return gb_step_use_buffer(step, buffer, written, own);
}

static int64_t count_of(const gb_copy_box *box)
{
    int64_t count = 1;
    for (int d = 0; d < box->ndims; d++)
        count *= box->dims[d];
    return count;
}

static gb_status use_both(
        const movement *m, gb_step *step, const gb_copy_move *move, uint32_t *src, uint32_t *dst)
{
    GB_TRY(use(m, step, move->src_slot, false, src));
    return use(m, step, move->dst_slot, true, dst);
}

/* A move as it is printed: its box, or one where the dim along which elements of the source are
 * neighbours runs in lanes, and the dim before it through the tiles of the one along which those of the
 * destination are. A tile is turned as it is copied. */
typedef struct printed_move {
    gb_copy_box box;
    int64_t columns; /* turned: elements along the destination; else 0 */
    int64_t to_step, from_step;
} printed_move;

enum { TILE = 16 }; /* as many as there are lanes */

static printed_move turn(const gb_copy_box *box)
{
    printed_move m = {.box = *box};
    int last = box->ndims - 1, lane = 0, n = 0;
    if (last < 1 || box->dst_strides[last] != 1 || box->src_strides[last] == 1)
        return m;
    while (lane < last && (box->src_strides[lane] != 1 || box->dims[lane] < TILE))
        lane++;
    if (lane == last)
        return m;
    for (int d = 0; d <= last; d++) {
        if (d == lane)
            continue;
        bool tiles = d == last;
        m.box.dims[n] = tiles ? gb_div_up(box->dims[d], TILE) : box->dims[d];
        m.box.src_strides[n] = box->src_strides[d] * (tiles ? TILE : 1);
        m.box.dst_strides[n++] = box->dst_strides[d] * (tiles ? TILE : 1);
    }
    m.box.dims[n] = box->dims[lane];
    m.box.src_strides[n] = 1;
    m.box.dst_strides[n] = box->dst_strides[lane];
    m.columns = box->dims[last];
    m.to_step = box->dst_strides[lane];
    m.from_step = box->src_strides[last];
    return m;
}

/* What copies lanes from `from` to `to`. */
static void print_lanes(gb_cl_writer *w, const printed_move *move, const char *word)
{
    const gb_copy_box *box = &move->box;
    gb_cl_text *t = &w->text;
    int last = box->ndims - 1;
    int64_t to_step = last < 0 ? 1 : box->dst_strides[last];
    int64_t from_step = last < 0 ? 1 : box->src_strides[last];
    if (move->columns)
        gb_cl_print(t,
                "    int columns = (int)min((long)GB_LANES, p[%u] - i%d * GB_LANES);\n"
                "    GB_COPY_TURNED(%s, to, p[%u], from, p[%u], lanes, columns)\n",
                gb_cl_number(w, move->columns), last - 1, word, gb_cl_number(w, move->to_step),
                gb_cl_number(w, move->from_step));
    else if (to_step == 1 && from_step == 1)
        gb_cl_print(t, "    GB_COPY_LANES(to, from, lanes)\n");
    else
        gb_cl_print(t, "    GB_COPY_STEPS(%s, to, p[%u], from, p[%u], lanes)\n", word,
                gb_cl_number(w, to_step), gb_cl_number(w, from_step));
}

/* gb_element(): copies an element of a move, one of `n`, or lanes of them. */
static gb_status print_move(gb_cl_writer *w, const movement *m, const gb_copy_move *move,
        const printed_move *printed, uint32_t i, uint32_t n)
{
    const gb_copy_box *box = &printed->box;
    const char *word = word_of(box->element);
    gb_cl_text *t = &w->text;
    uint32_t src, dst;
    GB_TRY(use_both(m, w->step, move, &src, &dst)); /* which it is known to use */
    gb_cl_print(t, "static inline void gb_element");
    if (n > 1)
        gb_cl_print(t, "%u", i);
    gb_cl_print(t, "(GB_PARAMETERS");
    gb_cl_print_indices(w, box->ndims, true);
    gb_cl_print(t, "%s)\n{\n    __global %s *to = (__global %s *)m%u + p[%u] + ",
            w->lanes ? ", int lanes" : "", word, word, dst,
            gb_cl_number(w, move->dst_offset / (int64_t)box->element));
    gb_cl_print_offset(w, box->ndims, box->dst_strides);
    gb_cl_print(t, ";\n    __global const %s *from = (__global const %s *)m%u + p[%u] + ", word,
            word, src, gb_cl_number(w, move->src_offset / (int64_t)box->element));
    gb_cl_print_offset(w, box->ndims, box->src_strides);
    gb_cl_print(t, ";\n");
    if (w->lanes)
        print_lanes(w, printed, word);
    else
        gb_cl_print(t, "    *to = *from;\n");
    gb_cl_print(t, "}\n");
    return GB_SUCCESS;
}

/* Moves in lanes, turned where that serves; or else all as they are. */
static void choose_boxes(gb_cl_writer *w, uint32_t n, const gb_copy_move *const *moves,
        printed_move *printed, gb_cl_space *spaces)
{
    for (int lanes = gb_cl_shape_of(w->program).is_cpu ? 1 : 0; lanes >= 0; lanes--) {
        for (uint32_t i = 0; i < n; i++) {
            printed[i] = lanes ? turn(&moves[i]->box) : (printed_move){.box = moves[i]->box};
            spaces[i] = (gb_cl_space){printed[i].box.ndims, printed[i].box.dims};
        }
        if (lanes && gb_cl_choose_lanes(w, n, spaces))
            return;
    }
}

static gb_status print_moves(
        gb_cl_writer *w, const movement *m, uint32_t n, const gb_copy_move *const *moves)
{
    printed_move printed[GB_CL_SPACES];
    gb_cl_space spaces[GB_CL_SPACES];
    uint32_t src, dst;
    for (uint32_t i = 0; i < n; i++)
        GB_TRY(use_both(m, w->step, moves[i], &src, &dst));
    choose_boxes(w, n, moves, printed, spaces);
    w->repeats = true;
    gb_cl_print_arguments(w);
    for (uint32_t i = 0; i < n; i++)
        GB_TRY(print_move(w, m, moves[i], &printed[i], i, n));
    gb_cl_print_spaces(w, n, spaces, "gb_element", "");
    return GB_SUCCESS;
}

/* One kernel for several moves that do not depend on each other. */
static gb_status add_moves(const movement *m, uint32_t n, const gb_copy_move *const *moves)
{
    gb_cl_writer w;
    GB_TRY(gb_cl_begin(m->program, m->described->kernel, &w));
    for (uint32_t i = 0; i < n; i++)
        w.step->work += gb_copy_box_bytes(&moves[i]->box);
    return gb_cl_writer_add(&w, print_moves(&w, m, n, moves));
}

static gb_status add_phase(const movement *m, int phase)
{
    const gb_copy_move *moves[GB_CL_SPACES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->problem->n_moves; i++) {
        const gb_copy_move *move = &m->problem->moves[i];
        if (move->phase != phase || count_of(&move->box) == 0)
            continue;
        moves[n++] = move;
        if (n == GB_CL_SPACES) {
            GB_TRY(add_moves(m, n, moves));
            n = 0;
        }
    }
    return n ? add_moves(m, n, moves) : GB_SUCCESS;
}

/* Zeros, in words where there are whole ones. */
static gb_status add_clearing(const movement *m)
{
    size_t bytes = m->problem->clear_bytes, word = bytes % 4 ? 1 : 4;
    gb_cl_writer w;
    uint32_t dst;
    GB_TRY(gb_cl_begin(m->program, m->described->kernel, &w));
    GB_TRY(use(m, w.step, m->problem->cleared, true, &dst));
    w.step->work = (double)bytes;
    gb_cl_print_arguments(&w);
    gb_cl_print(&w.text,
            "__kernel void " GB_CL_KERNEL "(GB_ARGUMENTS)\n{\n    GB_BEGIN\n"
            "    if (get_global_id(0) < p[%u])\n"
            "        ((__global %s *)m%u)[get_global_id(0)] = 0;\n}\n",
            gb_cl_number(&w, (int64_t)(bytes / word)), word_of(word), dst);
    gb_cl_set_flat(&w, (int64_t)(bytes / word));
    return gb_cl_writer_add(&w, GB_SUCCESS);
}

static gb_status add_problem(
        gb_program *program, const gb_step *described, const gb_copy_problem *problem)
{
    movement m = {.program = program, .described = described, .problem = problem};
    if (problem->scratch_bytes)
        GB_TRY(gb_program_temporary(program, problem->scratch_bytes, &m.scratch));
    if (problem->clear_bytes)
        GB_TRY(add_clearing(&m));
    for (int phase = 0; phase < problem->n_phases; phase++)
        GB_TRY(add_phase(&m, phase));
    return GB_SUCCESS;
}

gb_status gb_cl_add_dense_copy(gb_program *program, uint32_t value, uint32_t *buffer)
{
    const gb_logical_tensor *src = &gb_program_graph(program)->values[value].tensor;
    size_t element = gb_data_type_bytes(src->data_type, 1);
    gb_copy_problem problem = {.n_phases = 1};
    int64_t dense[GB_AXES];
    gb_step *step;
    GB_TRY(gb_program_begin(program, "pack", &step));
    GB_TRY(gb_program_temporary(program, element * (size_t)gb_tensor_count(src), buffer));
    gb_copy_move *move = gb_copy_add_moves(step, &problem, 1);
    if (!move)
        return GB_OUT_OF_MEMORY;
    GB_TRY(gb_program_use(program, step, value, false, &move->src_slot));
    GB_TRY(gb_step_use_buffer(step, *buffer, true, &move->dst_slot));
    gb_dense_strides(src->ndims, src->dims, dense);
    gb_copy_box_init(&move->box, src->ndims, src->dims, src->strides, dense, element);
    return add_problem(program, step, &problem);
}

typedef gb_status describe_fn(
        gb_program *program, const gb_group *group, gb_step *step, gb_copy_problem *problem);

/* The step described is left unfinished: what it uses is shared out to those that copy. */
static gb_status lower_copies(
        gb_program *program, const gb_group *group, const char *kernel, describe_fn *describe)
{
    gb_copy_problem problem = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, kernel, &step));
    GB_TRY(describe(program, group, step, &problem));
    return add_problem(program, step, &problem);
}

static gb_status lower_concat(gb_program *program, const gb_group *group)
{
    return lower_copies(program, group, "concat", gb_concat_describe);
}

static gb_status lower_movement(gb_program *program, const gb_group *group)
{
    bool transpose = gb_program_graph(program)->ops[group->anchor]->kind == GB_OP_STATIC_TRANSPOSE;
    return lower_copies(program, group, transpose ? "transpose" : "copy", gb_movement_describe);
}

static gb_status lower_reorder(gb_program *program, const gb_group *group)
{
    return lower_copies(program, group, "copy", gb_reorder_describe);
}

static bool has_bytes(const gb_op *op, const char **reason)
{
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    const gb_dtype_info *info = gb_dtype_get(dst->data_type);
    bool same = info && info->bits >= 8;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        same = same && gb_op_input(op, i)->data_type == dst->data_type;
    *reason = "data type";
    return same;
}

const gb_cl_lowering gb_cl_lowering_movement = {.supports = has_bytes, .lower = lower_movement};
const gb_cl_lowering gb_cl_lowering_concat = {.supports = has_bytes, .lower = lower_concat};
const gb_cl_lowering gb_cl_lowering_reorder = {
        .supports = has_bytes, .writes_formats = gb_reorder_writes_formats, .lower = lower_reorder};
