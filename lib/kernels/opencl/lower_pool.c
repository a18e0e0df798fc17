/* AvgPool and MaxPool: a work-item computes one window. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/lower.h"

#include <stdio.h>
#include <string.h>

enum { POOL_AXES = 3, AXIS_NUMBERS = 7 };

/* The numbers of the axes, of which those that the source lacks come first. Index of the first. */
static uint32_t write_axes(gb_cl_writer *w, const gb_window *window, const gb_logical_tensor *src,
        const int *order, int n_spatial)
{
    uint32_t first = w->n_numbers;
    for (int a = 0; a < POOL_AXES; a++) {
        int i = a - (POOL_AXES - n_spatial);
        const int64_t numbers[AXIS_NUMBERS] = {i < 0 ? 1 : src->dims[order[i + 2]],
                i < 0 ? 1 : window->kernel[i], i < 0 ? 1 : window->strides[i],
                i < 0 ? 1 : window->dilations[i], i < 0 ? 0 : window->pads_begin[i],
                i < 0 ? 0 : window->pads_end[i], i < 0 ? 0 : src->strides[order[i + 2]]};
        for (int k = 0; k < AXIS_NUMBERS; k++)
            gb_cl_number(w, numbers[k]);
    }
    return first;
}

static void print_element(gb_cl_writer *w, const gb_logical_tensor *src,
        const gb_pointwise_program *pointwise, const int *order, int n_spatial, uint32_t axes)
{
    gb_cl_text *t = &w->text;
    int64_t strides[GB_AXES] = {0};
    strides[order[0]] = src->strides[order[0]];
    strides[order[1]] = src->strides[order[1]];
    gb_cl_print(t, "static inline void gb_element(GB_PARAMETERS");
    gb_cl_print_indices(w, pointwise->ndims, true);
    gb_cl_print(t, ")\n{\n    gb_post(GB_PASSED");
    gb_cl_print_indices(w, pointwise->ndims, false);
    gb_cl_print(t, ", gb_window(GB_PASSED, p + p[%u], ", gb_cl_number(w, axes));
    gb_cl_print_offset(w, src->ndims, strides);
    for (int a = 0; a < POOL_AXES; a++) {
        int i = a - (POOL_AXES - n_spatial);
        if (i < 0)
            gb_cl_print(t, ", 0");
        else
            gb_cl_print(t, ", i%d", order[i + 2]);
    }
    gb_cl_print(t, "));\n}\n");
}

static gb_status print_pool(gb_cl_writer *w, const gb_op *op, const gb_window *window,
        uint32_t slot, const gb_pointwise_program *pointwise)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    int order[GB_AXES], n_spatial = src->ndims - 2;
    bool mean = op->kind == GB_OP_AVG_POOL;
    gb_data_axes(op, src->ndims, order);
    gb_cl_print_arguments(w);
    GB_TRY(gb_cl_print_pointwise(w, pointwise, "gb_post"));
    uint32_t axes = write_axes(w, window, src, order, n_spatial);
    gb_cl_print(&w->text, "#define GB_MEAN %d\n#define GB_EXCLUDE_PAD %d\n", mean,
            gb_op_attr_bool(op, GB_ATTR_EXCLUDE_PAD, false));
    gb_cl_print(&w->text, "#define GB_START as_float((int)p[%u])\n",
            gb_cl_float(w, mean ? 0 : (float)gb_dtype_get(src->data_type)->lowest));
    gb_cl_print(&w->text, "#define GB_LOAD(i) gb_load_%s(m%u, i)\n",
            gb_cl_type_name(src->data_type), slot);
    gb_cl_print(&w->text, "%s", gb_cl_pool);
    print_element(w, src, pointwise, order, n_spatial, axes);
    gb_cl_print_space(w, pointwise->ndims, pointwise->dims, "gb_element", "");
    return GB_SUCCESS;
}

static gb_status lower_pool(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_logical_tensor *src = gb_op_input(op, 0);
    gb_pointwise_program pointwise = {0};
    gb_cl_writer w;
    gb_window window;
    int order[GB_AXES];
    int64_t in[GB_AXES];
    uint32_t slot;
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    gb_data_axes(op, src->ndims, order);
    for (int i = 2; i < src->ndims; i++)
        in[i - 2] = src->dims[order[i]];
    GB_TRY(gb_window_get(op, src->ndims - 2, in, NULL, false, &window));
    GB_TRY(gb_cl_begin(program, "pool", &w));
    GB_TRY(gb_program_use(program, w.step, op->inputs[0], false, &slot));
    GB_TRY(gb_pointwise_build(
            program, group, op->outputs[0], gb_op_output(op, 0), w.step, &pointwise));
    w.step->work = (double)gb_tensor_count(gb_op_output(op, 0));
    for (int i = 0; i < window.n_spatial; i++)
        w.step->work *= (double)window.kernel[i];
    return gb_cl_writer_add(&w, print_pool(&w, op, &window, slot, &pointwise));
}

static bool pool_supports(const gb_op *op, const char **reason)
{
    *reason = "rank above 5";
    return gb_op_input(op, 0)->ndims <= POOL_AXES + 2 && gb_all_types_float(op, reason);
}

const gb_cl_lowering gb_cl_lowering_pool = {
        .supports = pool_supports, .takes_epilogue = true, .lower = lower_pool};
