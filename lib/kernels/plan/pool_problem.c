/* Describes pools and their gradients. */
#include "kernels/plan/pool_problem.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/anchor.h"
#include "kernels/plan/dequantization.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The axes between an image and the windows' results, in dims of the tensors. */
static gb_status read_axes(const gb_op *op, const gb_logical_tensor *image,
        const gb_logical_tensor *windows, gb_pool_axis *axes)
{
    int order[GB_AXES], n_spatial = image->ndims - 2;
    int64_t in[GB_AXES];
    gb_window window;
    gb_data_axes(op, image->ndims, order);
    for (int i = 0; i < n_spatial; i++)
        in[i] = image->dims[order[i + 2]];
    GB_TRY(gb_window_get(op, n_spatial, in, NULL, false, &window));
    for (int a = 0; a < GB_POOL_AXES; a++) {
        int i = a - (GB_POOL_AXES - n_spatial);
        axes[a] = (gb_pool_axis){
                .dim = -1, .in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
        if (i < 0)
            continue;
        axes[a] = (gb_pool_axis){.dim = order[i + 2],
                .in = in[i],
                .out = windows->dims[order[i + 2]],
                .kernel = window.kernel[i],
                .stride = window.strides[i],
                .dilation = window.dilations[i],
                .pad_begin = window.pads_begin[i],
                .pad_end = window.pads_end[i]};
    }
    return GB_SUCCESS;
}

/* Forward --------------------------------------------------------------------------------------- */

/* Are sums of a window's codes exact in f32? Then the zero points may be taken off at the end. */
static bool sums_of_codes_are_exact(const gb_op *pool)
{
    const int64_t *kernel;
    size_t n = gb_op_attr_s64s(pool, GB_ATTR_KERNEL, &kernel);
    double sum = UINT8_MAX;
    for (size_t i = 0; i < n; i++)
        sum *= (double)kernel[i];
    return sum <= 1 << FLT_MANT_DIG;
}

/* Is none of the numbers that the codes stand for too large for f32? */
static bool numbers_fit(const gb_per_tensor_quantization *codes)
{
    double most = UINT8_MAX + fabs((double)codes->zero_point);
    return fabs((double)codes->scale) * most <= (double)FLT_MAX;
}

/* gb_pass_fold_qdq() makes maxima of codes. */
bool gb_pool_has_types(const gb_op *op, const char **reason)
{
    const gb_data_type type = gb_op_input(op, 0)->data_type;
    const bool codes = op->kind == GB_OP_MAX_POOL && (type == GB_S8 || type == GB_U8) &&
                       gb_op_output(op, 0)->data_type == type;
    return codes || gb_all_types_float(op, reason);
}

/* Windows of quantized values: a mean, or a maximum whose order the scale keeps. */
bool gb_pool_takes_prologue(const gb_op *anchor, uint32_t input, const gb_op *op)
{
    gb_per_tensor_quantization codes;
    if (input != 0 || !gb_per_tensor_quantization_read(op, &codes))
        return false;
    if (anchor->kind == GB_OP_AVG_POOL)
        return (codes.zero_point == 0 || sums_of_codes_are_exact(anchor)) && numbers_fit(&codes);
    return codes.scale > 0;
}

bool gb_pool_is_global(const gb_pool_problem *problem)
{
    for (int a = 0; a < GB_POOL_AXES; a++) {
        const gb_pool_axis *axis = &problem->axes[a];
        if (axis->out != 1 || axis->dilation != 1 || axis->in == 0)
            return false;
        if (axis->kernel - axis->pad_begin < axis->in)
            return false;
    }
    return true;
}

/* The post-ops work on what the quantized values stand for. Below the least of these is what a
 * window has that nothing raises: the lowest number, whatever the scale. */
static gb_status scale_codes(
        const gb_op *op, const gb_op *dequantize, gb_step *step, gb_pool_problem *problem)
{
    gb_per_tensor_quantization codes;
    if (!dequantize || !gb_per_tensor_quantization_read(dequantize, &codes))
        return GB_SUCCESS;
    if (problem->mean) {
        problem->zero_point = codes.zero_point;
        return gb_pointwise_scale_first(op, 0, codes.scale, step, &problem->pointwise);
    }
    GB_TRY(gb_pointwise_raise_first(op, problem->start, step, &problem->pointwise));
    problem->start = -INFINITY;
    return gb_pointwise_scale_first(op, codes.zero_point, codes.scale, step, &problem->pointwise);
}

gb_status gb_pool_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_pool_problem *problem)
{
    const gb_graph *graph = gb_program_graph(program);
    const gb_op *op = graph->ops[group->anchor];
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    gb_dequantization dequantization;
    gb_dequantization_read(graph, group, op->inputs[0], &dequantization);
    const gb_logical_tensor *src = &graph->values[dequantization.codes].tensor;
    int order[GB_AXES];
    gb_data_axes(op, src->ndims, order);
    problem->channel_dim = order[1];
    GB_TRY(read_axes(op, src, dst, problem->axes));
    problem->mean = op->kind == GB_OP_AVG_POOL;
    problem->exclude_pad = gb_op_attr_bool(op, GB_ATTR_EXCLUDE_PAD, false);
    problem->start = problem->mean ? 0 : (float)gb_dtype_get(gb_op_input(op, 0)->data_type)->lowest;
    GB_TRY(gb_operand_use(program, step, dequantization.codes, false, &problem->src));
    GB_TRY(gb_pointwise_build(program, group, op->outputs[0], dst, step, &problem->pointwise));
    return scale_codes(op, dequantization.op, step, problem);
}

gb_status gb_pool_as_reduction(
        const gb_pool_problem *problem, gb_step *step, gb_reduction_problem *reduction)
{
    const gb_pointwise_program *pointwise = &problem->pointwise;
    gb_pointwise_operand *operands = gb_step_alloc(step, pointwise->n_operands, sizeof *operands);
    if (!operands)
        return GB_OUT_OF_MEMORY;
    memcpy(operands, pointwise->operands, pointwise->n_operands * sizeof *operands);
    *reduction = (gb_reduction_problem){.kind = problem->mean ? GB_REDUCE_SUM : GB_REDUCE_MAX,
            .mean = problem->mean,
            .divisor = 1,
            .empty = problem->start,
            .at_least_empty = !problem->mean,
            .src = problem->src,
            .pointwise = *pointwise};
    reduction->pointwise.operands = operands;
    gb_space space = {.ndims = pointwise->ndims};
    memcpy(space.dims, pointwise->dims, sizeof pointwise->dims);
    reduction->zero_points = problem->zero_point;
    for (int a = 0; a < GB_POOL_AXES; a++) {
        const gb_pool_axis *axis = &problem->axes[a];
        if (axis->dim < 0)
            continue;
        space.roles[axis->dim] = GB_REDUCED;
        space.dims[axis->dim] = axis->in;
        reduction->divisor *= (float)gb_pool_cells(axis, 0, problem->exclude_pad);
        reduction->zero_points *= (float)gb_pool_cells(axis, 0, true);
    }
    gb_reduction_set_space(reduction, &space, true);
    return GB_SUCCESS;
}

/* Backward -------------------------------------------------------------------------------------- */

static gb_status use(gb_program *program, const gb_op *op, uint32_t value, bool written,
        gb_step *step, gb_operand *operand)
{
    const gb_logical_tensor *tensor = &gb_program_graph(program)->values[value].tensor;
    int order[GB_AXES], missing = GB_POOL_SPATIAL_DIM + GB_POOL_AXES - tensor->ndims;
    gb_data_axes(op, tensor->ndims, order);
    GB_TRY(gb_operand_use(program, step, value, written, operand));
    memset(operand->strides, 0, sizeof operand->strides);
    for (int i = 0; i < tensor->ndims; i++)
        operand->strides[i < GB_POOL_SPATIAL_DIM ? i : i + missing] = tensor->strides[order[i]];
    return GB_SUCCESS;
}

gb_status gb_pool_backward_describe(gb_program *program, const gb_group *group, gb_step *step,
        gb_pool_backward_problem *problem)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_logical_tensor *image = gb_op_output(op, 0);
    problem->mean = op->kind == GB_OP_AVG_POOL_BACKWARD;
    problem->exclude_pad = gb_op_attr_bool(op, GB_ATTR_EXCLUDE_PAD, false);
    problem->lowest = (float)gb_dtype_get(image->data_type)->lowest;
    uint32_t gradient = problem->mean ? 0 : 1;
    int order[GB_AXES];
    gb_data_axes(op, image->ndims, order);
    problem->batch = image->dims[order[0]];
    problem->channels = image->dims[order[1]];
    problem->first_axis = GB_POOL_AXES - (image->ndims - 2);
    GB_TRY(read_axes(op, image, gb_op_input(op, gradient), problem->axes));
    for (int a = problem->first_axis; a < GB_POOL_AXES; a++)
        problem->axes[a].dim = GB_POOL_SPATIAL_DIM + a;
    GB_TRY(use(program, op, op->outputs[0], true, step, &problem->diff_src));
    GB_TRY(use(program, op, op->inputs[gradient], false, step, &problem->diff_dst));
    if (problem->mean)
        return GB_SUCCESS;
    return use(program, op, op->inputs[0], false, step, &problem->src);
}

/* Text ------------------------------------------------------------------------------------------ */

static void print_axes(const gb_printer *printer, const gb_pool_axis *axes)
{
    FILE *out = printer->file;
    static const char *const names[] = {"depth", "height", "width"};
    for (int a = 0; a < GB_POOL_AXES; a++) {
        const gb_pool_axis *axis = &axes[a];
        if (axis->dim < 0)
            continue;
        fprintf(out, "  %s %" PRId64 " -> %" PRId64 ": window %" PRId64, names[a], axis->in,
                axis->out, axis->kernel);
        if (axis->stride != 1)
            fprintf(out, ", stride %" PRId64, axis->stride);
        if (axis->dilation != 1)
            fprintf(out, ", dilation %" PRId64, axis->dilation);
        if (axis->pad_begin != 0 || axis->pad_end != 0)
            fprintf(out, ", pads %" PRId64 " and %" PRId64, axis->pad_begin, axis->pad_end);
        fputs("\n", out);
    }
}

static const char *counted(bool mean, bool exclude_pad)
{
    return mean && exclude_pad ? ", padding not counted:\n" : ":\n";
}

void gb_pool_problem_print(const gb_printer *printer, const void *pool_problem)
{
    const gb_pool_problem *problem = pool_problem;
    const gb_pointwise_program *pointwise = &problem->pointwise;
    fputs(problem->mean ? "mean of windows over " : "maximum of windows over ", printer->file);
    gb_print_sizes(printer, pointwise->ndims, pointwise->dims);
    fprintf(printer->file, ", channels along dim %d", problem->channel_dim);
    if (problem->zero_point != 0)
        fprintf(printer->file, ", zero point %g", (double)problem->zero_point);
    fputs(counted(problem->mean, problem->exclude_pad), printer->file);
    gb_operand_print(printer, "src", &problem->src, pointwise->ndims);
    print_axes(printer, problem->axes);
    gb_pointwise_print(printer, pointwise);
}

void gb_pool_backward_problem_print(const gb_printer *printer, const void *pool_problem)
{
    const gb_pool_backward_problem *problem = pool_problem;
    int ndims = GB_POOL_SPATIAL_DIM + GB_POOL_AXES;
    int64_t image[GB_AXES] = {problem->batch, problem->channels};
    for (int a = 0; a < GB_POOL_AXES; a++)
        image[GB_POOL_SPATIAL_DIM + a] = problem->axes[a].in;
    fprintf(printer->file, "gradient of %s of windows over ", problem->mean ? "mean" : "maximum");
    gb_print_sizes(printer, ndims, image);
    fputs(counted(problem->mean, problem->exclude_pad), printer->file);
    gb_operand_print(printer, "src", &problem->src, ndims);
    gb_operand_print(printer, "diff_dst", &problem->diff_dst, ndims);
    gb_operand_print(printer, "diff_src", &problem->diff_src, ndims);
    print_axes(printer, problem->axes);
}
