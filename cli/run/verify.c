/* Checking what a partition computed. */
#include "cli/run/verify.h"

#include "cli/options/message.h"
#include "cli/run/alone.h"
#include "cli/run/compare.h"
#include "cli/run/inplace.h"
#include "cli/run/npy.h"
#include "cli/run/stage.h"

#include <inttypes.h>
#include <math.h>
#include <ref/naive.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void trace_name(char *text, size_t bytes, const gb_logical_tensor *tensor)
{
    int n = snprintf(
            text, bytes, "tensor %zu %s:", tensor->id, gb_data_type_name(tensor->data_type));
    for (int d = 0; d < tensor->ndims; d++)
        n += snprintf(text + n, bytes - (size_t)n, "%s%" PRId64, d ? "x" : "", tensor->dims[d]);
}

/* What is wrong, and not with the elements. */
static void tell_fault(
        const gb_workload *work, const gb_memory *memory, const char *fault, gb_verdict *verdict)
{
    char name[256];
    trace_name(name, sizeof name, &memory->tensor);
    if (!work->quiet)
        gb_cli_print_error(work->test->file, "%s: %s", name, fault);
    verdict->failed = true;
}

void gb_cli_verify_guards(const gb_workload *work, const gb_work_part *part, gb_verdict *verdict)
{
    for (size_t i = 0; i < part->n_inputs + part->n_outputs; i++) {
        bool is_input = i < part->n_inputs;
        const gb_memory *memory =
                &work->memories[is_input ? part->inputs[i] : part->outputs[i - part->n_inputs]];
        const char *fault = gb_cli_memory_check(memory, work->session->stream);
        if (fault)
            tell_fault(work, memory, fault, verdict);
    }
}

uint64_t *gb_cli_hash_inputs(const gb_workload *work, const gb_work_part *part)
{
    uint64_t *hashes = gb_cli_realloc(NULL, part->n_inputs + 1, sizeof *hashes);
    for (size_t i = 0; i < part->n_inputs; i++) {
        const gb_memory *memory = &work->memories[part->inputs[i]];
        gb_status status = gb_cli_memory_download(memory, work->session->stream);
        if (status != GB_SUCCESS) {
            gb_cli_fail_library(status);
            free(hashes);
            return NULL;
        }
        hashes[i] = gb_cli_memory_hash(memory);
    }
    return hashes;
}

gb_status gb_cli_verify_inputs(const gb_workload *work, const gb_work_part *part,
        const uint64_t *hashes, gb_verdict *verdict)
{
    uint64_t *now = gb_cli_hash_inputs(work, part);
    for (size_t i = 0; now && i < part->n_inputs; i++)
        if (now[i] != hashes[i])
            tell_fault(work, &work->memories[part->inputs[i]], "an input was overwritten", verdict);
    free(now);
    return now ? GB_SUCCESS : GB_RUNTIME_ERROR;
}

static void tell_changed(const gb_workload *work, const gb_work_part *part, gb_verdict *verdict)
{
    if (!work->quiet)
        gb_cli_print_error(work->test->file, "partition %zu: outputs changed between executions%s",
                part->result->id, part->n_shared ? ", in-place pairs in one buffer" : "");
    verdict->failed = true;
}

void gb_cli_verify_unchanged(
        gb_workload *work, const gb_work_part *part, uint64_t hash, gb_verdict *verdict)
{
    if (gb_cli_work_part_hash(work, part) != hash)
        tell_changed(work, part, verdict);
}

gb_status gb_cli_verify_again(gb_workload *work, const gb_work_part *part, gb_verdict *verdict)
{
    uint64_t before, after;
    CLI_TRY(gb_cli_work_part_digest(work, part, &before));
    for (size_t i = 0; i < part->n_outputs; i++) {
        gb_memory *memory = &work->memories[part->outputs[i]];
        gb_cli_memory_poison(memory, GB_OTHER_POISON);
        LIB_TRY(gb_cli_memory_upload(memory, work->session->stream));
    }
    gb_cli_stage_enter(PHASE_EXECUTE, part->result->kernels);
    LIB_TRY(gb_cli_work_part_execute(work, part, false));
    CLI_TRY(gb_cli_work_part_download(work, part));
    CLI_TRY(gb_cli_work_part_digest(work, part, &after));
    if (after != before)
        tell_changed(work, part, verdict);
    return GB_SUCCESS;
}

gb_status gb_cli_verify_shared(
        gb_workload *work, const gb_work_part *part, uint64_t hash, gb_verdict *verdict)
{
    CLI_TRY(gb_cli_inplace_fill(work, part));
    gb_cli_stage_enter(PHASE_EXECUTE, part->result->kernels);
    LIB_TRY(gb_cli_work_part_execute(work, part, true));
    CLI_TRY(gb_cli_work_part_download(work, part));
    gb_cli_verify_unchanged(work, part, hash, verdict);
    return GB_SUCCESS;
}

static void print_index(const gb_logical_tensor *tensor, int64_t index)
{
    int64_t position[GB_MAX_NDIMS] = {0};
    for (int d = tensor->ndims - 1; d >= 0; d--) {
        position[d] = index % tensor->dims[d];
        index /= tensor->dims[d];
    }
    for (int d = 0; d < tensor->ndims; d++)
        printf("%s%" PRId64, d ? ":" : "", position[d]);
}

static void print_points(const gb_logical_tensor *tensor, const gb_comparison *c)
{
    char name[256];
    trace_name(name, sizeof name, tensor);
    for (int64_t i = 0; i < c->n_points; i++) {
        const gb_point *p = &c->points[i];
        printf("[%4" PRId64 "][%s][", p->index, name);
        print_index(tensor, p->index);
        printf("] exp:%14.8g got:%14.8g diff:%10.4g bound:%10.4g\n", p->expected, p->got,
                fabs(p->expected - p->got), p->bound);
    }
}

static void print_statistics(
        const gb_logical_tensor *tensor, const char *what, const gb_comparison *c)
{
    char name[256];
    trace_name(name, sizeof name, tensor);
    printf("[COMPARE_STATS][%s]: %s: errors:%" PRId64 " total:%" PRId64
           " margin:%.3g exact:%" PRId64 " unbounded:%" PRId64
           " zeros:%.0f%% bound:%.2g%% max_diff:%.4g l2_diff/l2_exp:%.4g\n",
            name, what, c->errors, c->total, c->margin, c->exact, c->unbounded, 100 * c->zeros,
            100 * c->typical_bound, c->max_difference,
            c->l2_expected > 0 ? c->l2_difference / c->l2_expected : c->l2_difference);
}

/* Unit roundoff of the coarsest floating type among the tensors of the case. */
static double coarsest_unit(const gb_workload *work)
{
    double coarsest = 0;
    for (size_t i = 0; i < work->n_memories; i++)
        coarsest = fmax(coarsest, gb_cli_unit_roundoff(work->memories[i].tensor.data_type));
    return coarsest;
}

static void keep_mismatches(gb_case_result *result, const gb_logical_tensor *tensor,
        const char *what, const gb_comparison *c)
{
    for (int64_t i = 0; i < c->n_points && result->n_mismatches < MISMATCH_LIMIT; i++) {
        const gb_point *p = &c->points[i];
        result->mismatches[result->n_mismatches++] =
                (gb_mismatch){what, tensor->id, p->index, p->expected, p->got, p->bound};
    }
}

void gb_cli_judge(const gb_workload *work, const gb_logical_tensor *tensor, const char *what,
        const gb_comparison *c, gb_verdict *verdict)
{
    enum { VERBOSE_STATISTICS = 6 };
    verdict->errors += c->errors;
    verdict->total += c->total;
    if (c->errors) {
        verdict->failed = true;
        if (!work->quiet)
            print_points(tensor, c);
        keep_mismatches(work->result, tensor, what, c);
    }
    if (!work->quiet && (c->errors || work->settings->verbose >= VERBOSE_STATISTICS))
        print_statistics(tensor, what, c);
    const char *mistrust = gb_cli_mistrust(c, coarsest_unit(work));
    gb_fill fill = work->settings->fill;
    /* What becomes of a NaN or an infinity is often left open, and beside rows of them little is left. */
    bool open = fill == FILL_NAN || fill == FILL_BITS || fill == FILL_EDGES;
    bool excused = strcmp(mistrust, "unbounded errors") == 0 ||
                   (fill == FILL_NAN && strcmp(mistrust, "bounds as large as the values") == 0);
    if (open && excused && 2 * c->unbounded < c->total)
        mistrust = "";
    if (!*mistrust || verdict->mistrust)
        return;
    gb_text text = {0};
    gb_cli_text_add(&text, "tensor %zu: %s", tensor->id, mistrust);
    verdict->mistrust = text.data;
}

gb_status gb_cli_read(const gb_workload *work, const gb_memory *memory, gb_ref_tensor *tensor)
{
    gb_memory copy;
    const gb_memory *plain;
    gb_status status = gb_cli_memory_plain(memory, work->session->stream, &copy, &plain);
    if (status == GB_SUCCESS)
        status = gb_ref_tensor_read(tensor, &plain->tensor, plain->data);
    gb_cli_memory_free(&copy);
    return status == GB_SUCCESS ? status : gb_cli_fail_library(status);
}

gb_status gb_cli_reference_put(
        const gb_workload *work, gb_ref_store *store, const gb_memory *memory)
{
    gb_ref_tensor tensor;
    CLI_TRY(gb_cli_read(work, memory, &tensor));
    LIB_TRY(gb_ref_store_put(store, &tensor));
    return GB_SUCCESS;
}

/* What two evaluations in f64 may differ by, relative: long sums in another order. */
static const double f64_difference = 1e-12;

/* --ref=naive: the naive value with the bound of the fast reference, which only that one knows; the
 * fast value must lie within the bound of it too. Without a bound the fast value is the number that
 * was stored, so the naive one is stored, too. `value` and `bound` are to be freed. */
static gb_status take_naive(const gb_workload *work, const gb_logical_tensor *tensor,
        const gb_ref_tensor *fast, const gb_naive_store *naive, gb_ref_tensor *expected,
        gb_verdict *verdict)
{
    const gb_naive_tensor *twin = gb_naive_store_get(naive, tensor->id);
    if (!twin || twin->count != fast->count)
        return gb_cli_fail(GB_RUNTIME_ERROR, "the naive reference made no tensor %zu", tensor->id);
    *expected = *fast;
    size_t bytes = (size_t)(fast->count ? fast->count : 1) * sizeof(double);
    expected->value = malloc(bytes);
    expected->bound = malloc(bytes);
    if (!expected->value || !expected->bound)
        return gb_cli_fail(GB_OUT_OF_MEMORY, "out of memory");
    gb_data_type type = tensor->data_type;
    bool is_narrow = type == GB_BF16 || type == GB_F16 || type == GB_F8_E4M3 || type == GB_F8_E5M2;
    for (int64_t i = 0; i < fast->count; i++) {
        double bound = fast->bound ? fast->bound[i] : 0, value = twin->value[i];
        if (bound == 0 && is_narrow)
            value = gb_naive_stored(type, value);
        bool differs = isfinite(value) && value != fast->value[i];
        expected->value[i] = value;
        expected->bound[i] = bound + (differs ? f64_difference * fabs(value) : 0);
    }
    gb_comparison comparison;
    gb_cli_compare(fast, expected, 1, &comparison);
    gb_cli_judge(work, tensor, "fast reference against the naive reference", &comparison, verdict);
    return GB_SUCCESS;
}

static gb_status compare_output(const gb_workload *work, const gb_work_part *part, size_t output,
        const gb_ref_store *store, const gb_naive_store *naive, gb_verdict *verdict)
{
    const gb_memory *memory = &work->memories[part->outputs[output]];
    const gb_ref_tensor *expected = gb_ref_store_get(store, memory->tensor.id);
    if (!expected)
        return gb_cli_fail(GB_RUNTIME_ERROR, "the reference made no tensor %zu", memory->tensor.id);
    gb_ref_tensor got, own = {.bound = NULL};
    bool asked = work->settings->naive;
    gb_status status = GB_SUCCESS;
    if (naive)
        status = take_naive(work, &memory->tensor, expected, naive, &own, verdict);
    if (naive && asked)
        expected = &own;
    if (status == GB_SUCCESS)
        status = gb_cli_read(work, memory, &got);
    if (status == GB_SUCCESS && !asked)
        gb_cli_tighten(work, part, store, memory->tensor.id);
    if (status == GB_SUCCESS) {
        gb_comparison comparison;
        gb_cli_compare(&got, expected, 1, &comparison);
        gb_ref_tensor_free(&got);
        if (comparison.margin > part->result->margin)
            part->result->margin = comparison.margin;
        gb_cli_judge(work, &memory->tensor,
                asked ? "output against the naive reference" : "reference", &comparison, verdict);
    }
    free(own.value);
    free(own.bound);
    return status;
}

static gb_status read_naive(
        const gb_workload *work, const gb_memory *memory, gb_naive_tensor *tensor)
{
    gb_memory copy;
    const gb_memory *plain;
    gb_status status = gb_cli_memory_plain(memory, work->session->stream, &copy, &plain);
    if (status == GB_SUCCESS)
        status = gb_naive_read(tensor, &plain->tensor, plain->data);
    gb_cli_memory_free(&copy);
    return status == GB_SUCCESS ? status : gb_cli_fail_library(status);
}

/* The partition's ops on its actual inputs in the naive reference. */
static gb_status execute_naive(
        const gb_workload *work, const gb_work_part *part, gb_naive_store *naive)
{
    for (size_t i = 0; i < part->n_inputs; i++) {
        const gb_memory *memory = &work->memories[part->inputs[i]];
        gb_naive_tensor tensor;
        CLI_TRY(read_naive(work, memory, &tensor));
        LIB_TRY(gb_naive_store_put(naive, memory->tensor.id, &tensor));
    }
    LIB_TRY(gb_naive_execute(work->graph, part->n_ops, part->ops, naive));
    return GB_SUCCESS;
}

static gb_status execute_reference(
        const gb_workload *work, const gb_work_part *part, gb_ref_store *store)
{
    LIB_TRY(gb_ref_execute_within(
            work->graph, part->n_ops, part->ops, work->reference_bytes, store));
    return GB_SUCCESS;
}

static gb_status verify_in(const gb_workload *work, const gb_work_part *part, gb_ref_store *store,
        gb_naive_store *naive, gb_verdict *verdict)
{
    for (size_t i = 0; i < part->n_inputs; i++)
        CLI_TRY(gb_cli_reference_put(work, store, &work->memories[part->inputs[i]]));
    CLI_TRY(execute_reference(work, part, store));
    if (naive)
        CLI_TRY(execute_naive(work, part, naive));
    for (size_t i = 0; i < part->n_outputs; i++)
        CLI_TRY(compare_output(work, part, i, store, naive, verdict));
    return GB_SUCCESS;
}

/* Small enough that the naive reference may have a look without being asked: a few milliseconds.
 * The library and the fast reference share rules of shapes, windows and defaults; this one has its
 * own. */
static bool naive_is_cheap(const gb_workload *work, const gb_work_part *part)
{
    const double most_operations = 4e5, most_bytes = 1 << 20;
    for (size_t i = 0; i < part->n_ops; i++) {
        const gb_op *op = NULL;
        gb_op_kind kind = GB_OP_LAST;
        if (gb_graph_find_op(work->graph, part->ops[i], &op) != GB_SUCCESS || !op ||
                gb_op_get_kind(op, &kind) != GB_SUCCESS || !gb_naive_supports(kind))
            return false;
    }
    return part->result->flops >= 0 && part->result->flops <= most_operations &&
           gb_naive_bytes(work->graph, part->n_ops, part->ops) <= most_bytes;
}

gb_status gb_cli_verify_part(const gb_workload *work, const gb_work_part *part, gb_verdict *verdict)
{
    bool twin = work->settings->naive || naive_is_cheap(work, part);
    gb_ref_store *store;
    gb_naive_store naive = {0};
    LIB_TRY(gb_ref_store_create(&store));
    gb_status status = verify_in(work, part, store, twin ? &naive : NULL, verdict);
    gb_naive_store_clear(&naive);
    gb_ref_store_destroy(store);
    return status;
}

/* The whole graph in the reference, from its inputs. */
static gb_status run_reference(const gb_workload *work, gb_ref_store *store)
{
    for (size_t i = 0; i < work->n_memories; i++)
        if (work->is_given[i])
            CLI_TRY(gb_cli_reference_put(work, store, &work->memories[i]));
    for (size_t i = 0; i < work->n_parts; i++)
        CLI_TRY(execute_reference(work, &work->parts[i], store));
    return GB_SUCCESS;
}

bool gb_cli_has_input_file(const gb_workload *work, const gb_memory *memory)
{
    char path[4096];
    return gb_cli_npy_path(
                   path, sizeof path, work->settings->load_tensors_dir, "in", &memory->tensor) &&
           access(path, F_OK) == 0;
}

gb_status gb_cli_load_input(const gb_workload *work, gb_memory *memory)
{
    char path[4096], message[512];
    if (!gb_cli_npy_path(
                path, sizeof path, work->settings->load_tensors_dir, "in", &memory->tensor))
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "--load-tensors: the path is too long");
    gb_status status =
            gb_cli_npy_load(path, &memory->tensor, memory->data, message, sizeof message);
    return status == GB_SUCCESS ? status : gb_cli_fail(status, "--load-tensors: %s", message);
}

static gb_status save(const gb_workload *work, const char *prefix, const gb_logical_tensor *tensor,
        const void *data)
{
    char path[4096];
    if (!gb_cli_npy_path(path, sizeof path, work->settings->save_tensors_dir, prefix, tensor) ||
            gb_cli_npy_save(path, tensor, data) != GB_SUCCESS)
        return gb_cli_fail(GB_RUNTIME_ERROR, "--save-tensors=%s: tensor %zu cannot be written",
                work->settings->save_tensors_dir, tensor->id);
    return GB_SUCCESS;
}

static gb_status save_memory(const gb_workload *work, const char *prefix, const gb_memory *memory)
{
    gb_memory copy;
    const gb_memory *plain;
    gb_status status = gb_cli_memory_plain(memory, work->session->stream, &copy, &plain);
    status = status == GB_SUCCESS ? save(work, prefix, &plain->tensor, plain->data)
                                  : gb_cli_fail_library(status);
    gb_cli_memory_free(&copy);
    return status;
}

/* The reference's values and bounds as f32 tensors ref_<id> and bound_<id>. */
static gb_status save_reference(const gb_workload *work, const gb_ref_tensor *reference)
{
    gb_logical_tensor dense;
    LIB_TRY(gb_logical_tensor_init_with_dims(&dense, reference->tensor.id, GB_F32,
            reference->tensor.ndims, reference->tensor.dims, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF));
    float *data = malloc((size_t)(reference->count ? reference->count : 1) * sizeof *data);
    if (!data)
        return gb_cli_fail(GB_OUT_OF_MEMORY, "out of memory");
    for (int64_t i = 0; i < reference->count; i++)
        data[i] = (float)reference->value[i];
    gb_status status = save(work, "ref", &dense, data);
    for (int64_t i = 0; i < reference->count; i++)
        data[i] = reference->bound ? (float)reference->bound[i] : 0;
    if (status == GB_SUCCESS)
        status = save(work, "bound", &dense, data);
    free(data);
    return status;
}

static gb_status save_references(const gb_workload *work)
{
    gb_ref_store *store;
    LIB_TRY(gb_ref_store_create(&store));
    gb_status status = run_reference(work, store);
    for (size_t i = 0; i < work->n_memories && status == GB_SUCCESS; i++) {
        const gb_ref_tensor *reference = gb_ref_store_get(store, work->memories[i].tensor.id);
        if (!work->is_given[i] && reference)
            status = save_reference(work, reference);
    }
    gb_ref_store_destroy(store);
    return status;
}

gb_status gb_cli_save_tensors(const gb_workload *work)
{
    if (mkdir(work->settings->save_tensors_dir, 0777) != 0) {
        struct stat info;
        if (stat(work->settings->save_tensors_dir, &info) != 0 || !S_ISDIR(info.st_mode))
            return gb_cli_fail(GB_RUNTIME_ERROR, "--save-tensors=%s: the folder cannot be made",
                    work->settings->save_tensors_dir);
    }
    for (size_t i = 0; i < work->n_memories; i++) {
        const gb_memory *memory = &work->memories[i];
        CLI_TRY(save_memory(work, work->is_given[i] ? "in" : "out", memory));
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/graph.json", work->settings->save_tensors_dir);
    LIB_TRY(gb_graph_save_json(work->graph, path));
    return work->settings->mode & MODE_CORRECTNESS ? save_references(work) : GB_SUCCESS;
}
