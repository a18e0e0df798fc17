/* Reduce ops whose axes are in a tensor: the kernel finds out which elements belong to a result. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/rows.h"

enum { SHORTEST_PART = 2048 }; /* elements that are worth a part of their own */

typedef struct late {
    const gb_late_reduction_problem *problem;
    int64_t rows, n, splits, part;
    uint32_t sums; /* buffer; where there are several parts */
} late;

static uint32_t write_list(gb_cl_writer *w, const gb_late_reduction_problem *problem)
{
    const gb_operand *src = &problem->reduction.src;
    uint32_t first = gb_cl_number(w, problem->src_ndims);
    gb_cl_number(w, problem->dst_ndims);
    gb_cl_number(w, problem->keep_dims);
    gb_cl_number(w, problem->n_axes);
    gb_cl_number(w, problem->axes_stride);
    for (int d = 0; d < problem->src_ndims; d++)
        gb_cl_number(w, problem->src_dims[d]);
    for (int d = 0; d < problem->src_ndims; d++)
        gb_cl_number(w, src->strides[d]);
    for (int d = 0; d < problem->dst_ndims; d++)
        gb_cl_number(w, problem->dst_dims[d]);
    return first;
}

/* The position in the result, and GB_POST there. */
static gb_status print_post(gb_cl_writer *w, const late *l)
{
    const gb_late_reduction_problem *problem = l->problem;
    gb_cl_text *t = &w->text;
    GB_TRY(gb_cl_print_pointwise(w, &problem->reduction.pointwise, "gb_post", GB_CL_NO_LANES));
    gb_cl_print(t, "#define GB_KEPT");
    for (int d = problem->dst_ndims; d-- > 0;) {
        uint32_t dim = gb_cl_number(w, problem->dst_dims[d]);
        gb_cl_print(t, " long i%d = rest %% p[%u]; rest /= p[%u];", d, dim, dim);
    }
    gb_cl_print(t, "\n#define GB_POST(value) gb_post(GB_PASSED");
    gb_cl_print_indices(w, problem->dst_ndims, false);
    gb_cl_print(t, ", value)\n");
    gb_cl_print_reduction_finish(w, &problem->reduction, l->n);
    return GB_SUCCESS;
}

static gb_status print_kernel(gb_cl_writer *w, const late *l, bool joins, bool finishes)
{
    const gb_late_reduction_problem *problem = l->problem;
    const gb_cl_reduce_text *text = gb_cl_reduce_text_of(problem->reduction.kind);
    gb_cl_text *t = &w->text;
    uint32_t sums = 0;
    if (l->splits > 1)
        GB_TRY(gb_step_use_buffer(w->step, l->sums, !joins, &sums));
    gb_cl_print_arguments(w);
    gb_cl_print(t, "#define GB_JOINS %d\n#define GB_FINISHES %d\n", joins, finishes);
    gb_cl_print(t, "#define GB_START %s\n#define GB_FOLD %s\n#define GB_JOIN(p, q) (%s)\n",
            text->start, text->fold, text->join);
    gb_cl_print(t,
            "#define GB_ROWS p[%u]\n#define GB_TOTAL p[%u]\n#define GB_SPLITS p[%u]\n"
            "#define GB_PART p[%u]\n#define GB_LIST (p + %u)\n",
            gb_cl_number(w, l->rows), gb_cl_number(w, l->n), gb_cl_number(w, l->splits),
            gb_cl_number(w, l->part), write_list(w, problem));
    gb_cl_print(t,
            "#define GB_AXES(i) ((__global const int *)m%u)[i]\n"
            "#define GB_LOAD(i) gb_load_%s(m%u, i)\n"
            "#define GB_SUM_A ((__global float *)m%u)[split * GB_ROWS + row]\n",
            problem->axes_slot, gb_cl_type_name(problem->reduction.src.type),
            problem->reduction.src.slot, sums);
    if (finishes)
        GB_TRY(print_post(w, l));
    gb_cl_set_flat(w, l->rows);
    w->global[1] = (size_t)(joins ? 1 : l->splits);
    w->family = gb_cl_late;
    return GB_SUCCESS;
}

/* Slots are those of a description: each kernel of several describes the problem for itself. */
static gb_status add_kernel(
        gb_program *program, const gb_group *group, late *l, bool joins, bool finishes)
{
    gb_late_reduction_problem problem = {0};
    gb_cl_writer w;
    GB_TRY(gb_cl_begin(program, "reduction", &w));
    GB_TRY(gb_late_reduction_describe(program, group, w.step, &problem));
    GB_TRY(gb_step_describe(program, w.step, gb_late_reduction_problem_print, &problem));
    w.step->work = 4 * (double)(joins ? l->splits : l->n) * (double)l->rows;
    l->problem = &problem;
    problem.reduction.divisor = (float)l->n;
    return gb_cl_writer_add(&w, print_kernel(&w, l, joins, finishes));
}

gb_status gb_cl_lower_late_reduction(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    late l = {.rows = gb_tensor_count(gb_op_output(op, 0))};
    gb_cl_shape shape = gb_cl_shape_of(program);
    int64_t wanted = gb_div_up(gb_cl_row_items(&shape), gb_max_i64(1, l.rows));
    if (l.rows == 0)
        return GB_SUCCESS;
    l.n = gb_tensor_count(gb_op_input(op, 0)) / l.rows;
    l.splits = gb_max_i64(1, gb_min_i64(wanted, l.n / SHORTEST_PART));
    l.part = gb_div_up(l.n, l.splits);
    if (l.splits == 1)
        return add_kernel(program, group, &l, false, true);
    GB_TRY(gb_program_temporary(program, sizeof(float) * (size_t)(l.splits * l.rows), &l.sums));
    GB_TRY(add_kernel(program, group, &l, false, false));
    return add_kernel(program, group, &l, true, true);
}
