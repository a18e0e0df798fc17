/* Partitions, compiles and allocates a case. */
#include "cli/run/workload.h"

#include "cli/case/rewrite.h"
#include "cli/options/message.h"
#include "cli/run/golden.h"
#include "cli/run/inplace.h"
#include "cli/run/measure.h"
#include "cli/run/memory_limit.h"
#include "cli/run/session.h"
#include "cli/run/stage.h"

#include <ref/naive.h>
#include <ref/ref.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Share of the memory that the process may have which a case may take. */
static const double memory_share = 0.75;

static const gb_op *op_of(const gb_workload *work, size_t id)
{
    const gb_op *op = NULL;
    gb_graph_find_op(work->graph, id, &op);
    return op;
}

static gb_op_kind kind_of(const gb_workload *work, size_t op_id)
{
    gb_op_kind kind = GB_OP_LAST;
    gb_op_get_kind(op_of(work, op_id), &kind);
    return kind;
}

static char *join_kinds(const gb_workload *work, const gb_work_part *part)
{
    gb_text text = {0};
    for (size_t i = 0; i < part->n_ops; i++)
        gb_cli_text_add(&text, "%s%s", i ? "+" : "", gb_op_kind_name(kind_of(work, part->ops[i])));
    return text.data;
}

static gb_status read_ops(gb_work_part *part)
{
    LIB_TRY(gb_partition_get_ops(part->partition, 0, NULL, &part->n_ops));
    part->ops = gb_cli_realloc(NULL, part->n_ops, sizeof *part->ops);
    LIB_TRY(gb_partition_get_ops(part->partition, part->n_ops, part->ops, NULL));
    return GB_SUCCESS;
}

/* Nothing runs for an End, and what a Wildcard would run nobody knows. */
static bool is_idle(const gb_workload *work, const gb_work_part *part)
{
    gb_op_kind kind = part->n_ops == 1 ? kind_of(work, part->ops[0]) : GB_OP_LAST;
    bool refused =
            work->settings->wildcard == WILDCARD_REFUSE && !(work->settings->mode & MODE_INIT);
    return kind == GB_OP_END || (kind == GB_OP_WILDCARD && !refused);
}

/* Keeps every partition that runs, or that the case fails for. */
static gb_status take_partitions(gb_workload *work, size_t n, gb_partition **partitions)
{
    work->parts = gb_cli_realloc(NULL, n, sizeof *work->parts);
    work->result->partitions = gb_cli_realloc(NULL, n, sizeof *work->result->partitions);
    memset(work->parts, 0, n * sizeof *work->parts);
    memset(work->result->partitions, 0, n * sizeof *work->result->partitions);
    for (size_t i = 0; i < n; i++) {
        gb_work_part part = {.partition = partitions[i]};
        gb_status status = read_ops(&part);
        if (status == GB_SUCCESS && is_idle(work, &part)) {
            gb_partition_destroy(part.partition);
            free(part.ops);
            continue;
        }
        part.result = &work->result->partitions[work->n_parts];
        work->parts[work->n_parts++] = part;
        work->result->n_partitions = work->n_parts;
        *part.result = (gb_partition_result){.id = work->n_parts - 1,
                .compile_ns = -1,
                .build_ns = -1,
                .first_ns = -1,
                .device_ns = -1,
                .times = gb_cli_no_times,
                .flops = -1,
                .executed_flops = -1,
                .margin = -1};
        if (status != GB_SUCCESS)
            return status;
        part.result->ops = join_kinds(work, &work->parts[work->n_parts - 1]);
        part.result->pattern = gb_cli_copy(gb_partition_get_pattern(part.partition));
    }
    return GB_SUCCESS;
}

/* The ops of all partitions, by id; owned by the caller. */
static gb_status list_partitioned(
        size_t n, gb_partition *const *partitions, size_t **ids, size_t *n_ids)
{
    for (size_t i = 0; i < n; i++) {
        size_t n_ops;
        LIB_TRY(gb_partition_get_ops(partitions[i], 0, NULL, &n_ops));
        *ids = gb_cli_realloc(*ids, *n_ids + n_ops, sizeof **ids);
        LIB_TRY(gb_partition_get_ops(partitions[i], n_ops, *ids + *n_ids, NULL));
        *n_ids += n_ops;
    }
    if (*n_ids > 0)
        qsort(*ids, *n_ids, sizeof **ids, gb_cli_compare_ids);
    return GB_SUCCESS;
}

/* Each op is in one partition: the reference computes what partitions hold, so that comparing would not
 * miss an op that the library left out. Sets the verdict and returns false when one is in none or two. */
static bool check_ops(gb_workload *work, const size_t *ids, size_t n_ids)
{
    size_t n_ops = gb_graph_get_op_num(work->graph), at = 0;
    size_t *all = gb_cli_realloc(NULL, n_ops, sizeof *all);
    for (size_t i = 0; i < n_ops; i++) {
        const gb_op *op;
        gb_graph_get_op(work->graph, i, &op);
        gb_op_get_id(op, &all[i]);
    }
    qsort(all, n_ops, sizeof *all, gb_cli_compare_ids);
    while (at < n_ops && at < n_ids && all[at] == ids[at])
        at++;
    bool right = at == n_ops && at == n_ids;
    if (!right) {
        bool missing = at == n_ids || (at < n_ops && all[at] < ids[at]);
        size_t id = missing ? all[at] : ids[at];
        gb_cli_result_set(work->result, CASE_FAILED, "op %zu %s is in %s", id,
                gb_op_kind_name(kind_of(work, id)), missing ? "no partition" : "two partitions");
    }
    free(all);
    return right;
}

/* Sets the verdict and returns false where only Wildcards kept the graph from having partitions. */
static bool check_wildcards(gb_workload *work)
{
    for (size_t i = 0; work->n_parts == 0 && i < gb_graph_get_op_num(work->graph); i++) {
        const gb_op *op;
        size_t id;
        gb_graph_get_op(work->graph, i, &op);
        gb_op_get_id(op, &id);
        if (kind_of(work, id) != GB_OP_WILDCARD)
            continue;
        gb_cli_result_set(work->result, CASE_UNIMPLEMENTED,
                "op %zu Wildcard: nothing else is there to run", id);
        return false;
    }
    return true;
}

/* Sets the verdict when a partition is unsupported or their number is not the expected one. */
static bool check_partitions(gb_workload *work)
{
    if (!check_wildcards(work))
        return false;
    for (size_t i = 0; i < work->n_parts; i++) {
        gb_work_part *part = &work->parts[i];
        const char *reason = gb_partition_get_unsupported_reason(part->partition);
        if (!*reason)
            continue;
        part->result->reason = gb_cli_copy(reason);
        gb_cli_result_set(work->result, CASE_UNIMPLEMENTED, "op %zu %s: %s", part->ops[0],
                part->result->ops, reason);
        return false;
    }
    int64_t expected = work->test->choice[AXIS_EXPECTED_N_PARTITIONS]->number;
    /* Counts are those of fusion. "debug" makes more, "max" as many or less. */
    if (work->settings->policy == GB_POLICY_DEBUG)
        expected = 0;
    bool at_most = work->settings->policy == GB_POLICY_MAX;
    size_t n = work->n_parts, most = expected > 0 ? (size_t)expected : n;
    if (n > 0 && (at_most ? n <= most : n == most))
        return true;
    if (n == 0)
        gb_cli_result_set(work->result, CASE_UNTESTED_FAILED, "no op of the graph is one to run");
    else
        gb_cli_result_set(work->result, CASE_UNTESTED_FAILED, "%zu partition%s, expected %s%zu", n,
                n == 1 ? "" : "s", at_most ? "at most " : "", most);
    return false;
}

gb_status gb_cli_workload_partition(gb_workload *work, bool *go_on)
{
    size_t n = 0;
    uint8_t finalized;
    gb_cli_stage_enter(PHASE_PARTITION, NULL);
    LIB_TRY(gb_graph_is_finalized(work->graph, &finalized));
    if (!finalized)
        LIB_TRY(gb_graph_set_engine_kind(work->graph, work->settings->engine_kind));
    LIB_TRY(gb_graph_finalize(work->graph));
    LIB_TRY(gb_graph_filter(work->graph, work->settings->policy));
    LIB_TRY(gb_graph_get_partitions(work->graph, 0, NULL, &n));
    gb_partition **partitions = gb_cli_realloc(NULL, n, sizeof(gb_partition *));
    gb_status status = gb_graph_get_partitions(work->graph, n, partitions, NULL);
    if (status != GB_SUCCESS) {
        free(partitions);
        return gb_cli_fail_library(status);
    }
    size_t *ids = NULL, n_ids = 0;
    status = list_partitioned(n, partitions, &ids, &n_ids);
    gb_status taken = take_partitions(work, n, partitions);
    status = status == GB_SUCCESS ? taken : status;
    free(partitions);
    *go_on = status == GB_SUCCESS && check_ops(work, ids, n_ids) && check_partitions(work);
    free(ids);
    return status;
}

size_t gb_cli_workload_find(const gb_workload *work, size_t tensor_id)
{
    size_t i = 0;
    while (i < work->n_memories && work->memories[i].tensor.id != tensor_id)
        i++;
    return i;
}

/* The same, made (without memory yet) when it is new. */
static size_t memory_of(gb_workload *work, const gb_logical_tensor *tensor)
{
    size_t i = gb_cli_workload_find(work, tensor->id);
    if (i < work->n_memories)
        return i;
    work->memories = gb_cli_realloc(work->memories, i + 1, sizeof *work->memories);
    work->is_given = gb_cli_realloc(work->is_given, i + 1, sizeof *work->is_given);
    work->memories[i] = (gb_memory){.tensor = *tensor};
    work->is_given[i] = false;
    gb_cli_is_given(work->graph, tensor->id, &work->is_given[i]);
    work->n_memories++;
    return i;
}

/* The memory of each port, those that are listed again left out; *n becomes their number. */
static size_t *port_memories(gb_workload *work, size_t *n, const gb_logical_tensor *ports)
{
    size_t *indices = gb_cli_realloc(NULL, *n, sizeof *indices), kept = 0;
    for (size_t i = 0; i < *n; i++) {
        size_t memory = memory_of(work, &ports[i]), known = 0;
        while (known < kept && indices[known] != memory)
            known++;
        if (known == kept)
            indices[kept++] = memory;
    }
    *n = kept;
    return indices;
}

static gb_status read_ports(gb_workload *work, gb_work_part *part)
{
    LIB_TRY(gb_partition_get_input_ports(part->partition, 0, NULL, &part->n_inputs));
    LIB_TRY(gb_partition_get_output_ports(part->partition, 0, NULL, &part->n_outputs));
    size_t n = part->n_inputs + part->n_outputs;
    gb_logical_tensor *ports = gb_cli_realloc(NULL, n, sizeof *ports);
    gb_status status = gb_partition_get_input_ports(part->partition, part->n_inputs, ports, NULL);
    if (status == GB_SUCCESS)
        status = gb_partition_get_output_ports(
                part->partition, part->n_outputs, ports + part->n_inputs, NULL);
    if (status == GB_SUCCESS) {
        const gb_logical_tensor *outputs = ports + part->n_inputs;
        part->inputs = port_memories(work, &part->n_inputs, ports);
        part->outputs = port_memories(work, &part->n_outputs, outputs);
    }
    free(ports);
    return status == GB_SUCCESS ? status : gb_cli_fail_library(status);
}

static void forget_dims(gb_logical_tensor *tensor)
{
    for (int d = 0; d < tensor->ndims; d++)
        tensor->dims[d] = tensor->strides[d] = GB_UNKNOWN_DIM;
}

/* Inputs that are not those of the graph: one more along axis 0 of the first input and of those as long as it, whose
 * dense strides are the same; or rows that lie further apart, whose dims are. */
typedef enum otherwise { MORE_ROWS, ROWS_APART } otherwise;

/* Has it made ready for such inputs, if they are legal: what is found for those of the graph must not be what was made
 * for these. */
static void specialize_otherwise(
        const gb_work_part *part, const gb_logical_tensor *const *tensors, otherwise how)
{
    size_t n = part->n_inputs + part->n_outputs;
    gb_logical_tensor *other = gb_cli_realloc(NULL, n, sizeof *other);
    const gb_logical_tensor **list = gb_cli_realloc(NULL, n, sizeof(gb_logical_tensor *));
    gb_logical_tensor **outputs =
            gb_cli_realloc(NULL, part->n_outputs, sizeof(gb_logical_tensor *));
    for (size_t i = 0; i < n; i++) {
        other[i] = *tensors[i];
        list[i] = &other[i];
        if (i >= part->n_inputs) {
            outputs[i - part->n_inputs] = &other[i];
            forget_dims(&other[i]);
        } else if (other[i].property != GB_PROPERTY_CONSTANT && other[i].ndims > 1) {
            other[i].dims[0] += how == MORE_ROWS && other[i].dims[0] == tensors[0]->dims[0];
            other[i].strides[0] += how == ROWS_APART && other[i].strides[0] < INT32_MAX;
        }
    }
    gb_compiled_partition *unused = NULL;
    gb_status status = gb_compiled_partition_infer_shape(
            part->dynamic, part->n_inputs, list, part->n_outputs, outputs);
    free(outputs);
    if (status == GB_SUCCESS &&
            gb_compiled_partition_specialize(part->dynamic, &unused, part->n_inputs, list,
                    part->n_outputs, list + part->n_inputs) == GB_SUCCESS)
        gb_compiled_partition_destroy(unused);
    free(other);
    free(list);
}

/* Are the shapes that the library infers for results those of the graph? Not all ops' inputs tell them: where axes are in
 * a tensor, or for the gradient of a source, it answers GB_INVALID_SHAPE. */
static gb_status check_inferred(const gb_work_part *part, const gb_logical_tensor *const *tensors)
{
    gb_logical_tensor *found = gb_cli_realloc(NULL, part->n_outputs, sizeof *found);
    gb_logical_tensor **list = gb_cli_realloc(NULL, part->n_outputs, sizeof(gb_logical_tensor *));
    for (size_t i = 0; i < part->n_outputs; i++) {
        found[i] = *tensors[part->n_inputs + i];
        list[i] = &found[i];
        forget_dims(&found[i]);
    }
    gb_status status = gb_compiled_partition_infer_shape(
            part->dynamic, part->n_inputs, tensors, part->n_outputs, list);
    const bool told = status == GB_SUCCESS;
    if (status == GB_INVALID_SHAPE)
        status = GB_SUCCESS;
    else if (!told)
        status = gb_cli_fail_library(status);
    for (size_t i = 0; i < part->n_outputs && told; i++) {
        const gb_logical_tensor *known = tensors[part->n_inputs + i];
        for (int d = 0; d < known->ndims && status == GB_SUCCESS; d++) {
            char size[32] = "unknown";
            if (found[i].dims[d] != GB_UNKNOWN_DIM)
                snprintf(size, sizeof size, "%lld", (long long)found[i].dims[d]);
            if (found[i].dims[d] != known->dims[d])
                status = gb_cli_fail(GB_RUNTIME_ERROR,
                        "tensor %zu: the size of axis %d is inferred as %s, the graph says %lld",
                        known->id, d, size, (long long)known->dims[d]);
        }
    }
    free(found);
    free(list);
    return status;
}

/* Compiles for any dims, then has it made ready for those of the graph. */
static gb_status compile_dynamic(
        const gb_workload *work, gb_work_part *part, const gb_logical_tensor *const *tensors)
{
    size_t n = part->n_inputs + part->n_outputs;
    gb_logical_tensor *open = gb_cli_realloc(NULL, n, sizeof *open);
    const gb_logical_tensor **list = gb_cli_realloc(NULL, n, sizeof(gb_logical_tensor *));
    bool any_open = false; /* what constants make has the dims that they give it */
    for (size_t i = 0; i < n; i++) {
        open[i] = *tensors[i];
        list[i] = &open[i];
        bool forgotten = i < part->n_inputs ? open[i].property != GB_PROPERTY_CONSTANT : any_open;
        if (forgotten)
            forget_dims(&open[i]);
        any_open |= forgotten && open[i].ndims != 0; /* a scalar has no dims to forget */
    }
    gb_status status = gb_partition_compile(part->partition, &part->dynamic, part->n_inputs, list,
            part->n_outputs, list + part->n_inputs, work->session->engine);
    if (status == GB_SUCCESS && work->settings->mode & MODE_CORRECTNESS) {
        specialize_otherwise(part, tensors, MORE_ROWS);
        specialize_otherwise(part, tensors, ROWS_APART);
        status = check_inferred(part, tensors);
    }
    if (status == GB_SUCCESS)
        status = gb_compiled_partition_specialize(part->dynamic, &part->compiled, part->n_inputs,
                tensors, part->n_outputs, tensors + part->n_inputs);
    free(open);
    free(list);
    return status;
}

static gb_status call_compile(gb_workload *work, gb_work_part *part)
{
    size_t n = part->n_inputs + part->n_outputs;
    const gb_logical_tensor **tensors = gb_cli_realloc(NULL, n, sizeof(gb_logical_tensor *));
    for (size_t i = 0; i < n; i++) {
        size_t memory = i < part->n_inputs ? part->inputs[i] : part->outputs[i - part->n_inputs];
        gb_logical_tensor *tensor = &work->memories[memory].tensor;
        bool open = tensor->layout_type == GB_LAYOUT_ANY && work->settings->dynamic;
        if (tensor->layout_type == GB_LAYOUT_UNDEF || open) /* with open dims, any means rows */
            tensor->layout_type = GB_LAYOUT_STRIDED;
        tensors[i] = tensor;
    }
    int64_t start = gb_cli_now_ns(), built = gb_cli_session_build_ns(work->session);
    gb_status status = work->settings->dynamic
                               ? compile_dynamic(work, part, tensors)
                               : gb_partition_compile(part->partition, &part->compiled,
                                         part->n_inputs, tensors, part->n_outputs,
                                         tensors + part->n_inputs, work->session->engine);
    part->result->compile_ns = gb_cli_now_ns() - start;
    if (built >= 0)
        part->result->build_ns = gb_cli_session_build_ns(work->session) - built;
    free(tensors);
    return status;
}

static bool has_op(const gb_workload *work, const gb_work_part *part, gb_op_kind kind)
{
    for (size_t i = 0; i < part->n_ops; i++)
        if (kind_of(work, part->ops[i]) == kind)
            return true;
    return false;
}

gb_status gb_cli_lies_between(const gb_workload *work, size_t tensor_id, bool *between)
{
    size_t count;
    LIB_TRY(gb_graph_get_consumers(work->graph, tensor_id, 0, NULL, &count));
    const gb_op **readers = gb_cli_realloc(NULL, count, sizeof(gb_op *));
    gb_status status = gb_graph_get_consumers(work->graph, tensor_id, count, readers, NULL);
    *between = count > 0;
    for (size_t i = 0; status == GB_SUCCESS && i < count; i++) {
        gb_op_kind kind;
        status = gb_op_get_kind(readers[i], &kind);
        *between = *between && kind != GB_OP_END;
    }
    free(readers);
    return status == GB_SUCCESS ? status : gb_cli_fail_library(status);
}

/* Leaves the layouts of results that only other partitions read to the library. Draws of Dropout
 * belong to places in memory: they would be others. */
static gb_status open_layouts(gb_workload *work, const gb_work_part *part)
{
    if (!work->any_layouts || has_op(work, part, GB_OP_DROPOUT))
        return GB_SUCCESS;
    for (size_t i = 0; i < part->n_outputs; i++) {
        gb_logical_tensor *tensor = &work->memories[part->outputs[i]].tensor;
        bool between = false, packed = gb_data_type_bytes(tensor->data_type, 2) < 2;
        CLI_TRY(gb_cli_lies_between(work, tensor->id, &between));
        if (!between || packed || tensor->layout_type == GB_LAYOUT_OPAQUE)
            continue;
        tensor->layout_type = GB_LAYOUT_ANY;
        for (int d = 0; d < GB_MAX_NDIMS; d++)
            tensor->strides[d] = GB_UNKNOWN_DIM;
    }
    return GB_SUCCESS;
}

static void describe_layout(const gb_logical_tensor *tensor, char text[64])
{
    int order[GB_MAX_NDIMS];
    if (tensor->layout_type == GB_LAYOUT_OPAQUE || !gb_cli_axis_order(tensor, order)) {
        snprintf(text, 64, "%s", gb_logical_tensor_get_layout(tensor));
        return;
    }
    for (int d = 0; d < tensor->ndims; d++)
        text[d] = (char)('a' + order[d]);
    text[tensor->ndims] = '\0';
}

static bool lies_as_given(const gb_logical_tensor *tensor, const gb_logical_tensor *given)
{
    bool same = tensor->layout_type == given->layout_type;
    for (int d = 0; same && tensor->layout_type == GB_LAYOUT_STRIDED && d < tensor->ndims; d++)
        same = tensor->dims[d] == 1 || tensor->strides[d] == given->strides[d];
    return same &&
           (tensor->layout_type != GB_LAYOUT_OPAQUE || tensor->layout_id == given->layout_id);
}

/* Lists the outputs that lie otherwise than the graph says. */
static gb_status list_chosen(gb_workload *work, const gb_work_part *part)
{
    gb_case_result *result = work->result;
    for (size_t i = 0; i < part->n_outputs && work->any_layouts; i++) {
        const gb_logical_tensor *tensor = &work->memories[part->outputs[i]].tensor;
        gb_logical_tensor given;
        LIB_TRY(gb_graph_find_tensor(work->graph, tensor->id, &given));
        if (lies_as_given(tensor, &given))
            continue;
        result->chosen =
                gb_cli_realloc(result->chosen, result->n_chosen + 1, sizeof *result->chosen);
        gb_chosen_layout *chosen = &result->chosen[result->n_chosen++];
        chosen->tensor_id = tensor->id;
        describe_layout(tensor, chosen->text);
    }
    return GB_SUCCESS;
}

static gb_status query_outputs(gb_workload *work, const gb_work_part *part)
{
    for (size_t i = 0; i < part->n_outputs; i++) {
        gb_logical_tensor *tensor = &work->memories[part->outputs[i]].tensor;
        LIB_TRY(gb_compiled_partition_query_logical_tensor(part->compiled, tensor->id, tensor));
    }
    return GB_SUCCESS;
}

static gb_case_status status_of(gb_status status)
{
    return status == GB_UNIMPLEMENTED       ? CASE_UNIMPLEMENTED
           : status == GB_INVALID_ARGUMENTS ? CASE_INVALID_ARGUMENTS
                                            : CASE_FAILED;
}

/* Data needs a shape. */
static bool can_fill_inputs(gb_workload *work, const gb_work_part *part)
{
    for (size_t i = 0; i < part->n_inputs; i++) {
        const gb_logical_tensor *tensor = &work->memories[part->inputs[i]].tensor;
        if (!work->is_given[part->inputs[i]] || gb_cli_has_known_dims(tensor))
            continue;
        gb_cli_result_set(work->result, CASE_UNIMPLEMENTED,
                "tensor %zu has no shape; --in-shapes=%zu:SHAPE gives it one", tensor->id,
                tensor->id);
        return false;
    }
    return true;
}

gb_status gb_cli_workload_compile(gb_workload *work, bool *go_on)
{
    for (size_t i = 0; i < work->n_parts; i++) {
        gb_work_part *part = &work->parts[i];
        CLI_TRY(read_ports(work, part));
        if (!(work->settings->mode & MODE_INIT) && !can_fill_inputs(work, part)) {
            *go_on = false;
            return GB_SUCCESS;
        }
        CLI_TRY(open_layouts(work, part));
        gb_cli_stage_enter(PHASE_COMPILE, part->result->ops);
        gb_status status = call_compile(work, part);
        if (status != GB_SUCCESS) {
            part->result->reason = gb_cli_copy(gb_last_error());
            gb_cli_result_set(work->result, status_of(status), "%s", gb_last_error());
            *go_on = false;
            return GB_SUCCESS;
        }
        part->result->kernels = gb_cli_copy(gb_compiled_partition_get_kernels(part->compiled));
        gb_compiled_partition_get_work(part->compiled, &part->result->flops, &part->result->bytes);
        gb_compiled_partition_get_executed_flops(part->compiled, &part->result->executed_flops);
        gb_compiled_partition_get_memory(part->compiled, &part->result->memory);
        CLI_TRY(query_outputs(work, part));
        CLI_TRY(list_chosen(work, part));
    }
    return GB_SUCCESS;
}

gb_status gb_cli_work_part_digest(
        const gb_workload *work, const gb_work_part *part, uint64_t *digest)
{
    *digest = 0;
    for (size_t i = 0; i < part->n_inputs + part->n_outputs; i++) {
        size_t memory = i < part->n_inputs ? part->inputs[i] : part->outputs[i - part->n_inputs];
        uint64_t own;
        LIB_TRY(gb_cli_memory_digest(&work->memories[memory], work->session->stream, &own));
        *digest = *digest * 31 + own;
    }
    return GB_SUCCESS;
}

/* Does the reference have the tensor in f64, value and bound? */
static bool reference_holds(const gb_workload *work, size_t memory)
{
    return work->settings->mode & MODE_CORRECTNESS ||
           (work->settings->golden_dir && gb_cli_golden_holds(work, memory));
}

static double tensor_bytes(const gb_workload *work)
{
    double bytes = 0;
    for (size_t i = 0; i < work->n_memories; i++) {
        size_t own = 0;
        gb_logical_tensor_get_mem_size(&work->memories[i].tensor, &own);
        bytes += (double)own;
        if (reference_holds(work, i))
            bytes += 16.0 * (double)gb_cli_count(&work->memories[i].tensor);
    }
    return bytes;
}

/* What the naive reference has of the largest partition: all tensors, values of the inputs and
 * bounds of the outputs. */
static double naive_bytes(const gb_workload *work)
{
    double most = 0;
    for (size_t p = 0; work->settings->naive && p < work->n_parts; p++) {
        const gb_work_part *part = &work->parts[p];
        double bytes = gb_naive_bytes(work->graph, part->n_ops, part->ops);
        for (size_t i = 0; i < part->n_inputs; i++)
            bytes += 8.0 * (double)gb_cli_count(&work->memories[part->inputs[i]].tensor);
        for (size_t i = 0; i < part->n_outputs; i++)
            bytes += 8.0 * (double)gb_cli_count(&work->memories[part->outputs[i]].tensor);
        most = bytes > most ? bytes : most;
    }
    return most;
}

bool gb_cli_reference_fits(const gb_workload *work, size_t n_ops, const size_t *ops, double bytes)
{
    double needed;
    if (gb_ref_get_memory(work->graph, n_ops, ops, &needed) != GB_SUCCESS || needed <= bytes)
        return true; /* an op without reference is found when it is evaluated */
    return gb_ref_get_least_memory(work->graph, n_ops, ops, &needed) == GB_SUCCESS &&
           needed <= bytes;
}

/* Are they enough for what the reference has between ops, at least in slices? */
static bool suffices(const gb_workload *work, double bytes)
{
    bool enough = bytes >= 0;
    for (size_t i = 0; work->settings->mode & MODE_CORRECTNESS && enough && i < work->n_parts; i++)
        enough = gb_cli_reference_fits(work, work->parts[i].n_ops, work->parts[i].ops, bytes);
    return enough && (!work->settings->golden_dir || gb_cli_golden_fits(work, bytes));
}

static gb_status allocate_scratchpad(gb_workload *work)
{
    gb_logical_tensor largest = {.dims = {0}};
    for (size_t i = 0; i < work->n_parts; i++) {
        gb_logical_tensor scratchpad;
        LIB_TRY(gb_compiled_partition_get_scratchpad(work->parts[i].compiled, &scratchpad));
        if (scratchpad.dims[0] > largest.dims[0])
            largest = scratchpad;
    }
    if (largest.dims[0] == 0)
        return GB_SUCCESS;
    LIB_TRY(gb_cli_memory_create(&work->scratchpad, &largest, work->session->engine));
    return GB_SUCCESS;
}

static void list_handles(gb_workload *work, gb_work_part *part)
{
    part->handles = gb_cli_realloc(NULL, part->n_inputs + part->n_outputs, sizeof(gb_tensor *));
    for (size_t i = 0; i < part->n_inputs; i++)
        part->handles[i] = work->memories[part->inputs[i]].handle;
    for (size_t i = 0; i < part->n_outputs; i++)
        part->handles[part->n_inputs + i] = work->memories[part->outputs[i]].handle;
}

gb_status gb_cli_workload_allocate(gb_workload *work, bool *go_on)
{
    work->reference_bytes =
            gb_cli_memory_limit() * memory_share - tensor_bytes(work) - naive_bytes(work);
    if (!suffices(work, work->reference_bytes)) {
        gb_cli_result_set(work->result, CASE_SKIPPED, "Not enough RAM");
        *go_on = false;
        return GB_SUCCESS;
    }
    for (size_t i = 0; i < work->n_memories; i++) {
        gb_logical_tensor tensor = work->memories[i].tensor;
        LIB_TRY(gb_cli_memory_create(&work->memories[i], &tensor, work->session->engine));
    }
    return allocate_scratchpad(work);
}

gb_status gb_cli_workload_bind(gb_workload *work)
{
    for (size_t i = 0; i < work->n_memories; i++) {
        if (work->memories[i].tensor.property == GB_PROPERTY_HOST_SCALAR)
            LIB_TRY(gb_cli_memory_attach(&work->memories[i], work->session->engine));
        else
            LIB_TRY(gb_cli_memory_upload(&work->memories[i], work->session->stream));
    }
    for (size_t i = 0; i < work->n_parts; i++) {
        list_handles(work, &work->parts[i]);
        CLI_TRY(gb_cli_inplace_list(work, &work->parts[i]));
    }
    return GB_SUCCESS;
}

gb_status gb_cli_work_part_submit(
        const gb_workload *work, const gb_work_part *part, gb_tensor *const *handles)
{
    return gb_compiled_partition_execute(part->dynamic ? part->dynamic : part->compiled,
            work->session->stream, part->n_inputs, (const gb_tensor *const *)handles,
            part->n_outputs, handles + part->n_inputs, work->scratchpad.handle);
}

gb_status gb_cli_work_part_execute(const gb_workload *work, const gb_work_part *part, bool shared)
{
    gb_status status =
            gb_cli_work_part_submit(work, part, shared ? part->shared_handles : part->handles);
    return status == GB_SUCCESS ? gb_stream_wait(work->session->stream) : status;
}

uint64_t gb_cli_work_part_hash(const gb_workload *work, const gb_work_part *part)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < part->n_outputs; i++)
        hash = hash * 31 + gb_cli_memory_hash(&work->memories[part->outputs[i]]);
    return hash;
}

gb_status gb_cli_work_part_download(const gb_workload *work, const gb_work_part *part)
{
    for (size_t i = 0; i < part->n_outputs; i++)
        LIB_TRY(gb_cli_memory_download(&work->memories[part->outputs[i]], work->session->stream));
    return GB_SUCCESS;
}

void gb_cli_workload_free(gb_workload *work)
{
    for (size_t i = 0; i < work->n_parts; i++) {
        gb_work_part *part = &work->parts[i];
        gb_compiled_partition_destroy(part->compiled);
        gb_compiled_partition_destroy(part->dynamic);
        gb_partition_destroy(part->partition);
        free(part->ops);
        free(part->inputs);
        free(part->outputs);
        gb_cli_inplace_free(part);
        free(part->handles);
    }
    for (size_t i = 0; i < work->n_memories; i++)
        gb_cli_memory_free(&work->memories[i]);
    gb_cli_memory_free(&work->scratchpad);
    free(work->parts);
    free(work->memories);
    free(work->is_given);
    free(work->checked);
    *work = (gb_workload){0};
}
