/* Comparison with stored results: --golden. */
#include "cli/run/golden.h"

#include "cli/options/message.h"
#include "cli/run/compare.h"
#include "cli/run/npy.h"

#include <ref/ref.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Some partitions in a row, evaluated as one: the reference keeps what others read, and results. */
typedef struct segment {
    size_t end; /* partition behind the last one */
    size_t n_ops, *ops;
    size_t n_found; /* stored results for the outputs of the last one */
} segment;

/* The path DIR/out_<id>.<dtype>.npy of the tensor's stored result; false without such a file. */
static bool find_golden(
        const gb_workload *work, const gb_logical_tensor *tensor, char *path, size_t bytes)
{
    struct stat info;
    return gb_cli_npy_path(path, bytes, work->settings->golden_dir, "out", tensor) &&
           stat(path, &info) == 0;
}

/* Reads it as a dense tensor. */
static gb_status read_golden(
        const gb_logical_tensor *tensor, const char *path, gb_ref_tensor *golden)
{
    char message[512];
    gb_logical_tensor dense;
    LIB_TRY(gb_logical_tensor_init_with_dims(&dense, tensor->id, tensor->data_type, tensor->ndims,
            tensor->dims, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF));
    size_t bytes = gb_data_type_bytes(tensor->data_type, (size_t)gb_cli_count(tensor));
    void *data = calloc(bytes ? bytes : 1, 1);
    if (!data)
        return gb_cli_fail(GB_OUT_OF_MEMORY, "out of memory: %zu bytes", bytes);
    gb_status status = gb_cli_npy_load(path, &dense, data, message, sizeof message);
    if (status != GB_SUCCESS)
        gb_cli_fail(status, "%s", message);
    else if ((status = gb_ref_tensor_read(golden, &dense, data)) != GB_SUCCESS)
        gb_cli_fail_library(status);
    free(data);
    return status;
}

/* Both implementations may be off by their bound: ours from the stored result by twice the bound,
 * the reference's value by once the bound of the stored one. */
static gb_status compare_golden(const gb_workload *work, const gb_memory *memory, const char *path,
        const gb_ref_store *store, gb_verdict *verdict)
{
    gb_ref_tensor golden, got;
    const gb_ref_tensor *reference = gb_ref_store_get(store, memory->tensor.id);
    if (!reference)
        return gb_cli_fail(GB_RUNTIME_ERROR, "the reference made no tensor %zu", memory->tensor.id);
    CLI_TRY(read_golden(&memory->tensor, path, &golden));
    gb_status status = gb_cli_read(work, memory, &got);
    if (status == GB_SUCCESS) {
        gb_comparison comparison;
        gb_cli_compare(&golden, reference, 1, &comparison);
        gb_cli_judge(
                work, &memory->tensor, "stored result against the reference", &comparison, verdict);
        gb_ref_tensor expected = golden;
        expected.bound = reference->bound;
        expected.tensor.data_type = memory->tensor.data_type;
        gb_cli_compare(&got, &expected, 2, &comparison);
        gb_cli_judge(
                work, &memory->tensor, "output against the stored result", &comparison, verdict);
        gb_ref_tensor_free(&got);
    }
    gb_ref_tensor_free(&golden);
    return status;
}

static size_t count_golden(const gb_workload *work, const gb_work_part *part)
{
    char path[4096];
    size_t n = 0;
    for (size_t i = 0; i < part->n_outputs; i++)
        n += find_golden(work, &work->memories[part->outputs[i]].tensor, path, sizeof path);
    return n;
}

/* From the end of the one before to the next partition with a stored result; false without one. */
static bool next_segment(const gb_workload *work, segment *s)
{
    s->n_ops = s->n_found = 0;
    while (s->end < work->n_parts && s->n_found == 0) {
        const gb_work_part *part = &work->parts[s->end++];
        s->ops = gb_cli_realloc(s->ops, s->n_ops + part->n_ops, sizeof *s->ops);
        memcpy(s->ops + s->n_ops, part->ops, part->n_ops * sizeof *part->ops);
        s->n_ops += part->n_ops;
        s->n_found = count_golden(work, part);
    }
    return s->n_found > 0;
}

bool gb_cli_golden_holds(const gb_workload *work, size_t memory)
{
    char path[4096];
    return work->is_given[memory] ||
           find_golden(work, &work->memories[memory].tensor, path, sizeof path);
}

bool gb_cli_golden_fits(const gb_workload *work, double bytes)
{
    segment s = {0};
    bool fits = true;
    while (fits && next_segment(work, &s))
        fits = gb_cli_reference_fits(work, s.n_ops, s.ops, bytes);
    free(s.ops);
    return fits;
}

static bool is_read_from(const gb_workload *work, size_t memory, size_t first)
{
    for (size_t p = first; p < work->n_parts; p++)
        for (size_t i = 0; i < work->parts[p].n_inputs; i++)
            if (work->parts[p].inputs[i] == memory)
                return true;
    return false;
}

static gb_status compare_part(const gb_workload *work, const gb_work_part *part,
        const gb_ref_store *store, gb_verdict *verdict)
{
    char path[4096];
    for (size_t i = 0; i < part->n_outputs; i++) {
        const gb_memory *memory = &work->memories[part->outputs[i]];
        if (find_golden(work, &memory->tensor, path, sizeof path))
            CLI_TRY(compare_golden(work, memory, path, store, verdict));
    }
    return GB_SUCCESS;
}

static gb_status verify_segment(
        const gb_workload *work, const segment *s, gb_ref_store *store, gb_verdict *verdict)
{
    LIB_TRY(gb_ref_execute_within(work->graph, s->n_ops, s->ops, work->reference_bytes, store));
    CLI_TRY(compare_part(work, &work->parts[s->end - 1], store, verdict));
    for (size_t i = 0; i < work->n_memories; i++)
        if (!is_read_from(work, i, s->end))
            gb_ref_store_drop(store, work->memories[i].tensor.id);
    return GB_SUCCESS;
}

static gb_status verify_all(const gb_workload *work, gb_ref_store *store, gb_verdict *verdict)
{
    segment s = {0};
    gb_status status = GB_SUCCESS;
    size_t n_found = 0;
    for (size_t i = 0; i < work->n_memories; i++)
        if (work->is_given[i])
            CLI_TRY(gb_cli_reference_put(work, store, &work->memories[i]));
    while (status == GB_SUCCESS && next_segment(work, &s)) {
        n_found += s.n_found;
        status = verify_segment(work, &s, store, verdict);
    }
    free(s.ops);
    if (status == GB_SUCCESS && n_found == 0)
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "--golden=%s: no stored result (out_<id>.<dtype>.npy) for any output",
                work->settings->golden_dir);
    return status;
}

gb_status gb_cli_verify_golden(const gb_workload *work, gb_verdict *verdict)
{
    gb_ref_store *store;
    LIB_TRY(gb_ref_store_create(&store));
    gb_status status = verify_all(work, store, verdict);
    gb_ref_store_destroy(store);
    return status;
}
