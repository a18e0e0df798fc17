/* Interpolate and InterpolateBackward: a work-item computes an element of the result. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/lower.h"
#include "kernels/plan/resample_problem.h"

#include <string.h>

/* The numbers of an axis. Index of the first. */
static uint32_t write_axis(
        gb_cl_writer *w, const gb_resample_problem *problem, const gb_resample_axis *axis)
{
    const gb_resample_taps *taps = &axis->taps;
    uint32_t first = gb_cl_number(w, taps->taps);
    gb_cl_number(w, taps->count);
    gb_cl_number(w, gb_operand_stride(&problem->src, axis->dim));
    for (int64_t t = 0; t < taps->taps; t++)
        for (int64_t i = 0; i < taps->count; i++) {
            int64_t at = t * taps->pitch + i;
            uint32_t bits;
            memcpy(&bits, &taps->weight[at], sizeof bits);
            if (taps->weight[at] == 0)
                gb_cl_number(w, 0);
            else
                gb_cl_number(w, ((int64_t)taps->index[at] << 32) | bits);
        }
    return first;
}

static gb_status print_resample(gb_cl_writer *w, const gb_resample_problem *problem)
{
    const gb_pointwise_program *pointwise = &problem->pointwise;
    gb_cl_text *t = &w->text;
    int64_t outer[GB_AXES];
    memcpy(outer, problem->src.strides, sizeof outer);
    gb_cl_print_arguments(w);
    GB_TRY(gb_cl_print_pointwise(w, pointwise, "gb_post", GB_CL_NO_LANES));
    gb_cl_print(t, "#define GB_LOAD(i) gb_load_%s(m%u, i)\n%s", gb_cl_type_name(problem->src.type),
            problem->src.slot, gb_cl_resample);
    gb_cl_print(t, "static inline void gb_element(GB_PARAMETERS");
    gb_cl_print_indices(w, pointwise->ndims, true);
    gb_cl_print(t, ")\n{\n    gb_post(GB_PASSED");
    gb_cl_print_indices(w, pointwise->ndims, false);
    gb_cl_print(t, ", gb_resample(GB_PASSED");
    for (int a = 0; a < GB_RESAMPLE_AXES; a++) {
        gb_cl_print(t, ", p + %u", write_axis(w, problem, &problem->axes[a]));
        if (problem->axes[a].dim >= 0)
            outer[problem->axes[a].dim] = 0;
    }
    gb_cl_print(t, ", ");
    gb_cl_print_offset(w, pointwise->ndims, outer);
    for (int a = 0; a < GB_RESAMPLE_AXES; a++) {
        if (problem->axes[a].dim < 0)
            gb_cl_print(t, ", 0");
        else
            gb_cl_print(t, ", i%d", problem->axes[a].dim);
    }
    gb_cl_print(t, "));\n}\n");
    gb_cl_print_space(w, pointwise->ndims, pointwise->dims, "gb_element", "");
    return GB_SUCCESS;
}

static gb_status lower_resample(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_resample_problem problem = {0};
    gb_cl_writer w;
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    GB_TRY(gb_cl_begin(program, "interpolate", &w));
    GB_TRY(gb_resample_describe(program, group, w.step, &problem));
    GB_TRY(gb_step_describe(program, w.step, gb_resample_problem_print, &problem));
    w.step->work = 16 * (double)gb_tensor_count(gb_op_output(op, 0));
    return gb_cl_writer_add(&w, print_resample(&w, &problem));
}

/* Sizes may be a tensor; types are those of the schema. */
static bool resample_supports(const gb_op *op, const char **reason)
{
    *reason = "data type";
    uint32_t input = op->kind == GB_OP_INTERPOLATE_BACKWARD ? 1 : 0;
    return gb_cl_type_name(gb_op_input(op, input)->data_type) != NULL;
}

const gb_cl_lowering gb_cl_lowering_resample = {
        .supports = resample_supports, .takes_epilogue = true, .lower = lower_resample};
