/* Numbers known at compilation as buffers: a step that runs once writes them. */
#include "kernels/parameters.h"

#include "base/memory.h"

#include <string.h>

typedef struct parameter_list {
    size_t count;
    float values[];
} parameter_list;

static void write_parameters(const gb_step_call *call)
{
    const parameter_list *list = call->params;
    if (call->thread == 0)
        memcpy(call->buffers[0], list->values, list->count * sizeof(float));
}

gb_status gb_parameters_add(
        gb_program *program, const float *values, size_t count, uint32_t *buffer)
{
    size_t bytes = count * sizeof(float);
    parameter_list *list = gb_calloc(1, sizeof *list + bytes);
    if (!list)
        return GB_OUT_OF_MEMORY;
    list->count = count;
    memcpy(list->values, values, bytes);
    gb_step step = {
            .kernel = "parameters", .run = write_parameters, .params = list, .work = (double)bytes};
    uint32_t slot;
    gb_status status = gb_program_temporary(program, bytes, buffer);
    if (status == GB_SUCCESS)
        status = gb_step_use_buffer(&step, *buffer, true, &slot);
    if (status == GB_SUCCESS)
        return gb_program_add(program, &step);
    gb_step_clear(&step);
    return status;
}
