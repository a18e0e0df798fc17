/* Groups without anchor: a pointwise program over the whole space. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/lower.h"
#include "kernels/plan/space.h"

gb_status gb_cl_begin(gb_program *program, const char *kernel, gb_cl_writer *w)
{
    *w = (gb_cl_writer){.program = program};
    return gb_program_begin(program, kernel, &w->step);
}

static double bytes_of(const gb_pointwise_program *pointwise, double count)
{
    double bytes = 0;
    for (uint32_t i = 0; i < pointwise->n_operands; i++)
        if (!pointwise->operands[i].is_index)
            bytes += count * (double)gb_data_type_bytes(pointwise->operands[i].type, 1);
    return bytes;
}

static gb_status print(gb_cl_writer *w, const gb_pointwise_program *pointwise)
{
    gb_cl_space space = {pointwise->ndims, pointwise->dims};
    bool lanes = gb_cl_choose_lanes(w, 1, &space);
    gb_cl_print_arguments(w);
    GB_TRY(gb_cl_print_pointwise(
            w, pointwise, "gb_element", lanes ? pointwise->ndims - 1 : GB_CL_NO_LANES));
    gb_cl_print_space(w, pointwise->ndims, pointwise->dims, "gb_element", ", 0.0f");
    return GB_SUCCESS;
}

gb_status gb_cl_lower_pointwise(gb_program *program, const gb_group *group)
{
    const gb_logical_tensor *tensor = &gb_program_graph(program)->values[group->space].tensor;
    gb_pointwise_program pointwise = {0};
    gb_cl_writer w;
    int64_t count;
    if (!gb_dims_count(tensor->ndims, tensor->dims, &count))
        return gb_fail(GB_INVALID_SHAPE, "%s has too many elements", gb_tensor_label(tensor));
    if (count == 0)
        return GB_SUCCESS;
    GB_TRY(gb_cl_begin(program, "tile", &w));
    GB_TRY(gb_pointwise_build(program, group, GB_NONE, tensor, w.step, &pointwise));
    if (pointwise.n_instructions == 0)
        return GB_SUCCESS; /* nothing to run */
    gb_space space = {.ndims = pointwise.ndims};
    for (int d = 0; d < pointwise.ndims; d++)
        space.dims[d] = pointwise.dims[d];
    gb_space_add_pointwise(&space, &pointwise);
    gb_space_normalize(&space);
    gb_space_set_pointwise(&space, &pointwise);
    w.step->work = bytes_of(&pointwise, (double)count);
    return gb_cl_writer_add(&w, print(&w, &pointwise));
}
