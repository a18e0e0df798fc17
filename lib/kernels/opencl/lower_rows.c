/* Reductions, SoftMax, LogSoftmax, LayerNorm, RMSNorm and GroupNorm: a work-item walks a row. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/lower.h"

#include <math.h>
#include <string.h>

/* The source's dims, some of them reduced; GroupNorm's channels count as two. */
typedef struct row_space {
    int ndims;
    int64_t dims[GB_AXES], strides[GB_AXES];
    bool reduced[GB_AXES];
    int split; /* the dim whose two parts, this one and the next, are one of the tensor; -1 */
} row_space;

static row_space space_of(const gb_logical_tensor *src)
{
    row_space s = {.ndims = src->ndims, .split = -1};
    memcpy(s.dims, src->dims, sizeof src->dims);
    memcpy(s.strides, src->strides, sizeof src->strides);
    return s;
}

/* Declares dims from a number, the last one fastest; returns their count. */
static int64_t print_digits(
        gb_cl_writer *w, const row_space *s, const char *from, bool reduced, int except)
{
    int64_t count = 1;
    for (int d = s->ndims; d-- > 0;) {
        if (s->reduced[d] != reduced || d == except)
            continue;
        uint32_t dim = gb_cl_number(w, s->dims[d]);
        gb_cl_print(&w->text, " long i%d = %s %% p[%u]; %s /= p[%u];", d, from, dim, from, dim);
        count *= s->dims[d];
    }
    return count;
}

static int last_reduced(const row_space *s)
{
    int last = -1;
    for (int d = 0; d < s->ndims; d++)
        if (s->reduced[d])
            last = d;
    return last;
}

/* The element of a tensor with the dims of the space. */
static void print_load(gb_cl_writer *w, const char *macro, const row_space *s,
        const int64_t *strides, gb_data_type type, uint32_t slot)
{
    gb_cl_print(&w->text, "#define %s gb_load_%s(m%u, ", macro, gb_cl_type_name(type), slot);
    gb_cl_print_offset(w, s->ndims, strides);
    gb_cl_print(&w->text, ")\n");
}

/* GB_COUNT, the positions and GB_LOAD. */
static void print_row_space(gb_cl_writer *w, const row_space *s, gb_data_type type, uint32_t slot)
{
    gb_cl_text *t = &w->text;
    int inner = last_reduced(s);
    gb_cl_print(t, "#define GB_POSITION");
    int64_t count = print_digits(w, s, "rest", false, -1);
    gb_cl_print(t, "\n#define GB_OUTER_POSITION long from = outer;");
    int64_t outer = print_digits(w, s, "from", true, inner);
    gb_cl_print(t, "\n#define GB_INNER_POSITION");
    if (inner >= 0)
        gb_cl_print(t, " long i%d = inner;", inner);
    gb_cl_print(t, "\n#define GB_COUNT p[%u]\n#define GB_OUTER p[%u]\n#define GB_INNER p[%u]\n",
            gb_cl_number(w, count), gb_cl_number(w, outer),
            gb_cl_number(w, inner < 0 ? 1 : s->dims[inner]));
    print_load(w, "GB_LOAD", s, s->strides, type, slot);
    gb_cl_set_flat(w, count);
}

/* GB_POST over the dims of the result, which lack those reduced, or have one element there. */
static void print_post(gb_cl_writer *w, const row_space *s, bool drops, bool ones)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "#define GB_POST(value) gb_post(GB_PASSED");
    for (int d = 0; d < s->ndims; d++) {
        if (s->reduced[d] && drops)
            continue;
        if (s->reduced[d] && ones)
            gb_cl_print(t, ", 0");
        else if (d == s->split) {
            gb_cl_print(t, ", i%d * p[%u] + i%d", d, gb_cl_number(w, s->dims[d + 1]), d + 1);
            d++;
        } else
            gb_cl_print(t, ", i%d", d);
    }
    gb_cl_print(t, ", value)\n");
}

/* Begins a step with the source and the pointwise program of the group. */
static gb_status begin(gb_program *program, const gb_group *group, const char *kernel,
        gb_cl_writer *w, uint32_t *src, gb_pointwise_program *pointwise)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    GB_TRY(gb_cl_begin(program, kernel, w));
    GB_TRY(gb_program_use(program, w->step, op->inputs[0], false, src));
    w->step->work = 8 * (double)gb_tensor_count(gb_op_input(op, 0));
    w->family = gb_cl_rows;
    return gb_pointwise_build(
            program, group, op->outputs[0], gb_op_output(op, 0), w->step, pointwise);
}

/* Reductions ----------------------------------------------------------------------------------- */

static const char *reduction_of(gb_op_kind kind)
{
    switch (kind) {
    case GB_OP_REDUCE_L1:
        return "(a) + fabs(x)";
    case GB_OP_REDUCE_L2:
        return "(a) + (x) * (x)";
    case GB_OP_REDUCE_PROD:
        return "(a) * (x)";
    case GB_OP_REDUCE_MAX:
        return "((x) > (a) || (x) != (x) ? (x) : (a))";
    case GB_OP_REDUCE_MIN:
        return "((x) < (a) || (x) != (x) ? (x) : (a))";
    default:
        return "(a) + (x)";
    }
}

static float start_of(const gb_op *op, bool empty)
{
    const gb_dtype_info *type = gb_dtype_get(gb_op_output(op, 0)->data_type);
    switch (op->kind) {
    case GB_OP_REDUCE_PROD:
        return 1;
    case GB_OP_REDUCE_MAX:
        return empty ? (float)type->lowest : -INFINITY;
    case GB_OP_REDUCE_MIN:
        return empty ? (float)type->max : INFINITY;
    default:
        return 0;
    }
}

/* All but the channels of a BiasAddBackward, and the axes of others; *n is their number. */
static gb_status read_axes(const gb_op *op, row_space *s, size_t *n)
{
    const int64_t *axes;
    if (op->kind == GB_OP_BIAS_ADD_BACKWARD) {
        for (int d = 0; d < s->ndims; d++)
            s->reduced[d] = d != gb_channel_axis(op, s->ndims);
        *n = (size_t)s->ndims;
        return GB_SUCCESS;
    }
    *n = gb_op_attr_s64s(op, GB_ATTR_AXES, &axes);
    for (size_t i = 0; i < *n; i++) {
        int axis = gb_normalize_axis(axes[i], s->ndims);
        if (axis < 0)
            return gb_fail(
                    GB_INVALID_SHAPE, "%s: attribute \"axes\" out of range", gb_op_label(op));
        s->reduced[axis] = true;
    }
    return GB_SUCCESS;
}

static gb_status lower_reduction(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    row_space s = space_of(gb_op_input(op, 0));
    gb_pointwise_program pointwise = {0};
    gb_cl_writer w;
    uint32_t src;
    size_t n;
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    GB_TRY(read_axes(op, &s, &n));
    GB_TRY(begin(program, group, "reduction", &w, &src, &pointwise));
    gb_cl_print_arguments(&w);
    gb_status status = gb_cl_print_pointwise(&w, &pointwise, "gb_post");
    print_row_space(&w, &s, gb_op_input(op, 0)->data_type, src);
    print_post(&w, &s, !gb_op_attr_bool(op, GB_ATTR_KEEP_DIMS, false), true);
    bool empty = gb_tensor_count(gb_op_input(op, 0)) == 0;
    /* Without axes every kind is the identity. */
    gb_cl_print(&w.text, "#define GB_REDUCE(a, x) (%s)\n", n ? reduction_of(op->kind) : "(x)");
    gb_cl_print(&w.text, "#define GB_START as_float((int)p[%u])\n",
            gb_cl_float(&w, start_of(op, empty)));
    const char *finish = "(a)";
    if (n && op->kind == GB_OP_REDUCE_MEAN)
        finish = "gb_div(a, (float)(GB_OUTER * GB_INNER))";
    else if (n && op->kind == GB_OP_REDUCE_L2)
        finish = "gb_sqrt(a)";
    gb_cl_print(&w.text, "#define GB_FINISH(a) %s\n", finish);
    return gb_cl_writer_add(&w, status);
}

static bool reduction_supports(const gb_op *op, const char **reason)
{
    *reason = "axes in a tensor";
    if (op->kind != GB_OP_BIAS_ADD_BACKWARD && op->n_inputs > 1)
        return false;
    *reason = "data type";
    return gb_dtype_is_f(gb_op_input(op, 0)->data_type) &&
           gb_dtype_is_f(gb_op_output(op, 0)->data_type);
}

/* Softmax -------------------------------------------------------------------------------------- */

static gb_status use_stats(gb_cl_writer *w, const gb_op *op, uint32_t output, uint32_t *slot)
{
    return gb_program_use(w->program, w->step, op->outputs[output], true, slot);
}

static gb_status lower_softmax(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    bool log = op->kind == GB_OP_LOG_SOFTMAX, has_stats = op->n_outputs > 1;
    bool as_zero = gb_op_attr_is(op, GB_ATTR_MODE, "inf_as_zero", false);
    row_space s = space_of(gb_op_input(op, 0));
    gb_pointwise_program pointwise = {0};
    gb_cl_writer w;
    uint32_t src, stats = 0;
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, log ? -1 : 1), s.ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axis\" out of range", gb_op_label(op));
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    s.reduced[axis] = true;
    GB_TRY(begin(program, group, "softmax", &w, &src, &pointwise));
    if (has_stats)
        GB_TRY(use_stats(&w, op, 1, &stats));
    w.uses_math = true;
    gb_cl_print_arguments(&w);
    gb_status status = gb_cl_print_pointwise(&w, &pointwise, "gb_post");
    print_row_space(&w, &s, gb_op_input(op, 0)->data_type, src);
    print_post(&w, &s, false, false);
    gb_cl_print(&w.text, "#define GB_INF_AS_ZERO %d\n#define GB_START as_float(0x%08xu)\n", as_zero,
            as_zero ? 0xFF7FFFFFu : 0xFF800000u);
    gb_cl_print(
            &w.text, "#define GB_SOFTMAX(x) %s\n", log ? "(x - log_sum)" : "(gb_exp(x) * factor)");
    if (has_stats) {
        int64_t strides[GB_AXES];
        memcpy(strides, gb_op_output(op, 1)->strides, sizeof strides);
        strides[axis] = 0;
        gb_cl_print(&w.text, "#define GB_STATS(value) gb_store_f32(m%u, ", stats);
        gb_cl_print_offset(&w, s.ndims, strides);
        gb_cl_print(&w.text, ", value)\n");
    }
    return gb_cl_writer_add(&w, status);
}

static gb_status lower_softmax_backward(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_logical_tensor *result = gb_op_input(op, 1);
    bool log = op->kind == GB_OP_LOG_SOFTMAX_BACKWARD;
    row_space s = space_of(gb_op_input(op, 0));
    gb_pointwise_program pointwise = {0};
    gb_cl_writer w;
    uint32_t src, second;
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, log ? -1 : 1), s.ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axis\" out of range", gb_op_label(op));
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    s.reduced[axis] = true;
    GB_TRY(begin(program, group, "softmax", &w, &src, &pointwise));
    GB_TRY(gb_program_use(program, w.step, op->inputs[1], false, &second));
    w.uses_math = true;
    gb_cl_print_arguments(&w);
    gb_status status = gb_cl_print_pointwise(&w, &pointwise, "gb_post");
    print_row_space(&w, &s, gb_op_input(op, 0)->data_type, src);
    print_load(&w, "GB_SECOND", &s, result->strides, result->data_type, second);
    print_post(&w, &s, false, false);
    gb_cl_print(&w.text, "#define GB_TERM(g, y) %s\n#define GB_SLOPE(g, y) %s\n",
            log ? "(g)" : "((g) * (y))", log ? "((g) - gb_exp(y) * sum)" : "(((g) - sum) * (y))");
    return gb_cl_writer_add(&w, status);
}

/* Norms ---------------------------------------------------------------------------------------- */

/* gb_offset() of an element number in row-major order of a tensor. */
static void print_numbered(
        gb_cl_writer *w, const char *macro, const gb_logical_tensor *tensor, uint32_t slot)
{
    uint32_t list = gb_cl_list(w, tensor->ndims, tensor->dims, tensor->strides);
    gb_cl_print(&w->text, "#define %s(i) gb_load_%s(m%u, gb_offset(p + p[%u], i))\n", macro,
            gb_cl_type_name(tensor->data_type), slot, gb_cl_number(w, list));
}

static void print_stats(gb_cl_writer *w, const gb_op *op, const uint32_t *slots)
{
    gb_cl_print(&w->text, "#define GB_STATS(mean, variance)");
    for (uint32_t i = 1; i <= 2; i++) {
        const gb_logical_tensor *tensor = gb_op_output(op, i);
        uint32_t list = gb_cl_list(w, tensor->ndims, tensor->dims, tensor->strides);
        gb_cl_print(&w->text, " gb_store_%s(m%u, gb_offset(p + p[%u], row), %s);",
                gb_cl_type_name(tensor->data_type), slots[i - 1], gb_cl_number(w, list),
                i == 1 ? "mean" : "variance");
    }
    gb_cl_print(&w->text, "\n");
}

/* The channels become groups x channels of a group; all but samples and groups is reduced. */
static gb_status split_channels(const gb_op *op, row_space *s, int64_t *affine)
{
    int axis = gb_channel_axis(op, s->ndims);
    int64_t groups = gb_op_attr_s64(op, GB_ATTR_GROUPS, 1), channels = s->dims[axis];
    if (groups < 1 || channels % groups)
        return gb_fail(GB_INVALID_SHAPE, "%s: %lld channels in %lld groups", gb_op_label(op),
                (long long)channels, (long long)groups);
    for (int d = s->ndims++; d > axis; d--) {
        s->dims[d] = s->dims[d - 1];
        s->strides[d] = s->strides[d - 1];
    }
    s->split = axis;
    s->dims[axis] = groups;
    s->dims[axis + 1] = channels / groups;
    s->strides[axis] *= channels / groups;
    for (int d = 1; d < s->ndims; d++)
        s->reduced[d] = d != axis;
    *affine = channels;
    return GB_SUCCESS;
}

static gb_status reduce_last(const gb_op *op, row_space *s, int64_t *affine)
{
    int begin_axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_BEGIN_NORM_AXIS, -1), s->ndims);
    if (begin_axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"begin_norm_axis\" out of range",
                gb_op_label(op));
    *affine = 1;
    for (int d = begin_axis; d < s->ndims; d++) {
        s->reduced[d] = true;
        *affine *= s->dims[d];
    }
    return GB_SUCCESS;
}

static gb_status use_affine(gb_cl_writer *w, const gb_op *op, int64_t count, uint32_t *slots)
{
    for (uint32_t i = 1; i < op->n_inputs && i < 3; i++) {
        if (gb_tensor_count(gb_op_input(op, i)) != count)
            return gb_fail(GB_INVALID_SHAPE, "%s: input %u is %s, expected %lld elements",
                    gb_op_label(op), i, gb_tensor_label(gb_op_input(op, i)), (long long)count);
        GB_TRY(gb_program_use(w->program, w->step, op->inputs[i], false, &slots[i - 1]));
    }
    return GB_SUCCESS;
}

static gb_status lower_norm(gb_program *program, const gb_group *group)
{
    static const char *const names[] = {"GB_GAMMA", "GB_BETA"};
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    bool grouped = op->kind == GB_OP_GROUP_NORM, rms = op->kind == GB_OP_RMS_NORM;
    bool affine = op->n_inputs > 1 && gb_op_attr_bool(op, GB_ATTR_USE_AFFINE, true);
    bool has_stats = !rms && op->n_outputs > 2;
    row_space s = space_of(gb_op_input(op, 0));
    gb_pointwise_program pointwise = {0};
    gb_cl_writer w;
    uint32_t src, parameters[2] = {0}, stats[2] = {0};
    int64_t count;
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    GB_TRY((grouped ? split_channels : reduce_last)(op, &s, &count));
    GB_TRY(begin(program, group, "norm", &w, &src, &pointwise));
    if (affine)
        GB_TRY(use_affine(&w, op, count, parameters));
    for (uint32_t i = 0; has_stats && i < 2; i++)
        GB_TRY(use_stats(&w, op, i + 1, &stats[i]));
    gb_cl_print_arguments(&w);
    gb_status status = gb_cl_print_pointwise(&w, &pointwise, "gb_post");
    print_row_space(&w, &s, gb_op_input(op, 0)->data_type, src);
    print_post(&w, &s, false, false);
    gb_cl_print(&w.text, "%s#define GB_EPSILON as_float((int)p[%u])\n",
            rms ? "" : "#define GB_CENTERED\n",
            gb_cl_float(&w, gb_op_attr_f32(op, GB_ATTR_EPSILON, 1e-5F)));
    if (grouped)
        gb_cl_print(&w.text, "#define GB_CHANNEL (i%d * p[%u] + i%d)\n", s.split,
                gb_cl_number(&w, s.dims[s.split + 1]), s.split + 1);
    else
        gb_cl_print(&w.text, "#define GB_CHANNEL (outer * GB_INNER + inner)\n");
    for (uint32_t i = 0; affine && i + 1 < op->n_inputs && i < 2; i++)
        print_numbered(&w, names[i], gb_op_input(op, i + 1), parameters[i]);
    if (has_stats)
        print_stats(&w, op, stats);
    return gb_cl_writer_add(&w, status);
}

const gb_cl_lowering gb_cl_lowering_reduction = {
        .supports = reduction_supports, .takes_epilogue = true, .lower = lower_reduction};
const gb_cl_lowering gb_cl_lowering_softmax = {
        .supports = gb_all_types_float, .takes_epilogue = true, .lower = lower_softmax};
const gb_cl_lowering gb_cl_lowering_norm = {
        .supports = gb_all_types_float, .takes_epilogue = true, .lower = lower_norm};
const gb_cl_lowering gb_cl_lowering_softmax_backward = {
        .supports = gb_all_types_float, .takes_epilogue = true, .lower = lower_softmax_backward};
