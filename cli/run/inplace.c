/* A partition's in-place pairs: inputs taken from the memory of outputs. */
#include "cli/run/inplace.h"

#include "cli/options/message.h"

#include <stdlib.h>
#include <string.h>

/* Does what lies between the elements of the output lie between those of the input, too? */
static bool has_same_gaps(const gb_logical_tensor *input, const gb_logical_tensor *output)
{
    bool same = input->ndims == output->ndims;
    if (output->layout_type == GB_LAYOUT_OPAQUE)
        return true; /* padding is written, too */
    if (input->layout_type == GB_LAYOUT_OPAQUE)
        return gb_cli_is_dense(output);
    for (int d = 0; d < output->ndims && same; d++)
        same = input->dims[d] == output->dims[d] && input->strides[d] == output->strides[d];
    return same || gb_cli_is_dense(output);
}

/* Whose memory must not be lent, or not to one more output? Running the pair would not show it, because
 * inputs are filled again before each execution. */
static gb_status check_pair(
        const gb_inplace_pair *pairs, size_t index, const gb_logical_tensor *input)
{
    const char *fault = NULL;
    if (input->property == GB_PROPERTY_CONSTANT)
        fault = "is a constant";
    else if (input->property == GB_PROPERTY_HOST_SCALAR)
        fault = "is a scalar of the host";
    for (size_t i = 0; i < index && !fault; i++)
        if (pairs[i].input_id == pairs[index].input_id)
            fault = "lends it to another output, too";
    if (!fault)
        return GB_SUCCESS;
    return gb_cli_fail(GB_RUNTIME_ERROR,
            "in-place pair of output %zu: input %zu, whose memory it takes, %s",
            pairs[index].output_id, pairs[index].input_id, fault);
}

gb_status gb_cli_inplace_list(gb_workload *work, gb_work_part *part)
{
    size_t n = 0;
    const gb_inplace_pair *pairs = NULL;
    LIB_TRY(gb_compiled_partition_get_inplace_ports(part->compiled, &n, &pairs));
    if (n == 0)
        return GB_SUCCESS;
    size_t bytes = (part->n_inputs + part->n_outputs) * sizeof *part->handles;
    part->shared = gb_cli_realloc(NULL, n, sizeof *part->shared);
    part->shared_handles = gb_cli_realloc(NULL, 1, bytes);
    memcpy(part->shared_handles, part->handles, bytes);
    for (size_t p = 0; p < n; p++) {
        gb_shared_memory shared = {gb_cli_workload_find(work, pairs[p].input_id),
                gb_cli_workload_find(work, pairs[p].output_id), NULL};
        const gb_logical_tensor *input = &work->memories[shared.input].tensor;
        const gb_memory *output = &work->memories[shared.output];
        CLI_TRY(check_pair(pairs, p, input));
        if (!has_same_gaps(input, &output->tensor))
            continue; /* copying the input there would touch the gaps */
        void *place = NULL;
        LIB_TRY(gb_tensor_get_data_handle(output->handle, &place));
        LIB_TRY(gb_tensor_create(&shared.handle, input, work->session->engine, place));
        part->shared[part->n_shared++] = shared;
        for (size_t i = 0; i < part->n_inputs; i++)
            if (part->inputs[i] == shared.input)
                part->shared_handles[i] = shared.handle;
    }
    part->result->n_inplace = part->n_shared;
    return GB_SUCCESS;
}

gb_status gb_cli_inplace_fill(const gb_workload *work, const gb_work_part *part)
{
    for (size_t i = 0; i < part->n_shared; i++) {
        const gb_memory *from = &work->memories[part->shared[i].input];
        const gb_memory *to = &work->memories[part->shared[i].output];
        memcpy(to->data, from->data, from->bytes); /* pairs are of one size */
        LIB_TRY(gb_cli_memory_upload(to, work->session->stream));
    }
    return GB_SUCCESS;
}

void gb_cli_inplace_free(gb_work_part *part)
{
    for (size_t i = 0; i < part->n_shared; i++)
        gb_tensor_destroy(part->shared[i].handle);
    free(part->shared);
    free(part->shared_handles);
}
