/* Kernels of a program that is complete. */
#include "kernels/opencl/program.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static gb_status place_numbers(gb_cl_program *made, const gb_program *program, cl_context context)
{
    size_t n = 0;
    cl_int error;
    for (uint32_t i = 0; i < program->n_steps; i++) {
        const gb_cl_step *step = program->steps[i].params;
        made->number_offsets[i] = n;
        n += step->n_numbers;
    }
    int64_t *numbers = gb_calloc(n, sizeof *numbers);
    if (!numbers)
        return GB_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < program->n_steps; i++) {
        const gb_cl_step *step = program->steps[i].params;
        if (step->n_numbers)
            memcpy(numbers + made->number_offsets[i], step->numbers,
                    step->n_numbers * sizeof *numbers);
    }
    made->numbers = n == 0 ? NULL
                           : clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                     n * sizeof *numbers, numbers, &error);
    free(numbers);
    return made->numbers || n == 0 ? GB_SUCCESS : gb_cl_fail(error, "placing numbers");
}

static gb_status make_kernels(gb_cl_program *made, const gb_program *program, gb_cl_engine *e)
{
    for (; made->n_kernels < program->n_steps; made->n_kernels++) {
        const gb_step *step = &program->steps[made->n_kernels];
        const gb_cl_step *plan = step->params;
        cl_program built;
        cl_int error;
        if (plan->op)
            continue;
        /* Two arguments for each use, and the numbers. */
        if ((step->n_uses + 1) * 2 * sizeof(cl_ulong) > e->device.parameter_bytes)
            return gb_fail(GB_UNIMPLEMENTED,
                    "%s: kernel %s has %u buffers, too many for its arguments", e->device.name,
                    step->kernel, step->n_uses);
        GB_TRY(gb_cl_build(e, step->params, &built));
        made->kernels[made->n_kernels] = clCreateKernel(built, GB_CL_KERNEL, &error);
        clReleaseProgram(built);
        if (!made->kernels[made->n_kernels])
            return gb_cl_fail(error, "creating a kernel");
    }
    return GB_SUCCESS;
}

gb_status gb_cl_program_finish(gb_program *program, const gb_engine *engine)
{
    gb_cl_engine *e = gb_cl_engine_of(engine);
    gb_cl_program *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    pthread_mutex_init(&made->lock, NULL);
    program->state = made;
    made->kernels = gb_calloc(program->n_steps, sizeof *made->kernels);
    made->number_offsets = gb_calloc(program->n_steps, sizeof *made->number_offsets);
    if (!made->kernels || !made->number_offsets)
        return GB_OUT_OF_MEMORY;
    GB_TRY(place_numbers(made, program, e->context));
    return make_kernels(made, program, e);
}

void gb_cl_program_fini(gb_program *program)
{
    gb_cl_program *made = program->state;
    if (!made)
        return;
    for (uint32_t i = 0; i < made->n_kernels; i++)
        if (made->kernels[i])
            clReleaseKernel(made->kernels[i]);
    if (made->numbers)
        clReleaseMemObject(made->numbers);
    pthread_mutex_destroy(&made->lock);
    free(made->kernels);
    free(made->number_offsets);
    free(made);
    program->state = NULL;
}
