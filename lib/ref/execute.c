/* Evaluating ops one after the other: outputs are allocated, the op's function fills them, the
 * store to the declared type widens their bounds. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/op_table.h"
#include "ref/bound.h"
#include "ref/list.h"
#include "ref/ref_functions.h"
#include "ref/walk.h"

#include <stdlib.h>
#include <string.h>

/* Arrays of a dead tensor, for a new one of the same size: fresh memory costs a page fault per
 * page.
 */
enum { SPARES = 2 };
/* Elements stored at a time. */
enum { STORED_PIECE = 512 };

typedef struct spare {
    double *memory;
    int64_t count;
} spare;

typedef struct run {
    const gb_graph *graph;
    gb_ref_store *store;
    bool *listed;     /* by op index: is the op one of the list? */
    uint32_t *unread; /* by value: uses to come of a value that nobody else reads; GB_NONE = keep */
    spare *spares;    /* SPARES of them; the oldest first */
} run;

static void give_spare(const run *r, double *memory, int64_t count)
{
    if (!memory)
        return;
    free(r->spares[0].memory);
    memmove(r->spares, r->spares + 1, (SPARES - 1) * sizeof *r->spares);
    r->spares[SPARES - 1] = (spare){memory, count};
}

static void clear_row(void *context, const gb_ref_row *row)
{
    memset((double *)context + row->first, 0, (size_t)row->count * sizeof(double));
}

/* Zeroed memory. */
static double *take_array(const run *r, int64_t count)
{
    for (int i = SPARES - 1; i >= 0; i--) {
        double *memory = r->spares[i].memory;
        if (!memory || r->spares[i].count != count)
            continue;
        r->spares[i] = (spare){NULL, 0};
        gb_ref_walk_flat(count, clear_row, memory);
        return memory;
    }
    return gb_calloc((size_t)count, sizeof(double));
}

/* Does an op of the run read the tensor? Then a fused implementation may keep it in f32. */
static bool is_read_inside(const run *r, size_t tensor_id)
{
    uint32_t index = gb_graph_find_value(r->graph, tensor_id);
    if (index == GB_NONE)
        return false;
    const gb_value *value = &r->graph->values[index];
    for (uint32_t i = 0; i < value->n_uses; i++) {
        const gb_use *use = &value->uses[i];
        if (r->listed[use->op] && r->graph->ops[use->op]->kind != GB_OP_END)
            return true;
    }
    return false;
}

typedef struct store_job {
    gb_ref_tensor *tensor;
    bool kept;
    double ratio; /* of the bounds before */
    int any_bound;
    double deviations, bounds; /* of the tensor after the store */
} store_job;

/* One piece of a row. Rounding errors are as large as what they add to the bound. */
static bool store_piece(store_job *job, int64_t first, int64_t count, double squares[2])
{
    double before[STORED_PIECE], *bound = job->tensor->bound + first;
    memcpy(before, bound, (size_t)count * sizeof(double));
    bool any = gb_ref_store_row(
            job->tensor->tensor.data_type, job->kept, count, job->tensor->value + first, bound);
    for (int64_t i = 0; any && i < count; i++) {
        double inherited = job->ratio * before[i], added = bound[i] - before[i];
        bool finite = isfinite(bound[i]) && isfinite(before[i]);
        squares[0] += finite ? inherited * inherited + added * added : 0;
        squares[1] += finite ? bound[i] * bound[i] : 0;
    }
    return any;
}

static void store_row(void *context, const gb_ref_row *row)
{
    store_job *job = context;
    double squares[2] = {0, 0};
    bool any = false;
    for (int64_t at = 0; at < row->count; at += STORED_PIECE)
        any |= store_piece(
                job, row->first + at, gb_min_i64(STORED_PIECE, row->count - at), squares);
    if (!any)
        return;
#pragma omp critical(gb_ref_store_squares)
    {
        job->any_bound = 1;
        job->deviations += squares[0];
        job->bounds += squares[1];
    }
}

static void apply_store(const run *r, gb_ref_tensor *tensor, bool kept)
{
    store_job job = {.tensor = tensor, .kept = kept, .ratio = gb_ref_ratio(tensor)};
    gb_ref_walk_flat(tensor->count, store_row, &job);
    tensor->deviations = job.deviations;
    tensor->bounds = job.bounds;
    if (job.any_bound)
        return;
    give_spare(r, tensor->bound, tensor->count);
    tensor->bound = NULL;
}

/* Counts the elements of a tensor whose dims are all known; false when they are not, or too many.
 */
static bool count_known(const gb_logical_tensor *tensor, int64_t *count)
{
    for (int d = 0; d < tensor->ndims; d++) {
        if (tensor->dims[d] < 0)
            return false;
    }
    return tensor->ndims >= 0 && gb_dims_count(tensor->ndims, tensor->dims, count);
}

static gb_status find_inputs(
        const gb_op *op, const gb_ref_store *store, const gb_ref_tensor **inputs)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const gb_logical_tensor *wanted = gb_op_input(op, i);
        inputs[i] = gb_ref_store_get(store, wanted->id);
        if (!inputs[i])
            return gb_fail(GB_INVALID_ARGUMENTS, "%s: no reference value for input %u (tensor %zu)",
                    gb_op_label(op), i, wanted->id);
        int64_t count;
        bool known = count_known(wanted, &count);
        const gb_logical_tensor *got = &inputs[i]->tensor;
        size_t bytes = known ? (size_t)wanted->ndims * sizeof wanted->dims[0] : 0;
        if (!known || got->ndims != wanted->ndims || memcmp(got->dims, wanted->dims, bytes) != 0)
            return gb_fail(GB_INVALID_SHAPE,
                    "%s: input %u (tensor %zu) is %s, its reference value %s", gb_op_label(op), i,
                    wanted->id, gb_tensor_label(wanted), gb_tensor_label(got));
    }
    return GB_SUCCESS;
}

static gb_status allocate_output(const run *r, const gb_op *op, uint32_t i, gb_ref_tensor *output)
{
    output->tensor = *gb_op_output(op, i);
    const gb_logical_tensor *tensor = &output->tensor;
    if (!count_known(tensor, &output->count))
        return gb_fail(GB_INVALID_SHAPE,
                "%s: output %u (tensor %zu) has unknown or impossible dims %s", gb_op_label(op), i,
                tensor->id, gb_tensor_label(tensor));
    output->value = take_array(r, output->count);
    output->bound = take_array(r, output->count);
    return output->value && output->bound ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

static int any_statistical(const gb_op *op, const gb_ref_tensor *const *inputs)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        if (inputs[i]->statistical)
            return 1;
    }
    return 0;
}

/* Ops that work element by element or only move elements: an error stays what it is, but for its
 * size. */
static bool passes_errors_on(gb_op_kind kind)
{
    static const gb_op_kind kinds[] = {GB_OP_ABS, GB_OP_ADD, GB_OP_BATCH_NORM_INFERENCE,
            GB_OP_BIAS_ADD, GB_OP_CLAMP, GB_OP_CONCAT, GB_OP_DEQUANTIZE, GB_OP_DIVIDE,
            GB_OP_DYNAMIC_DEQUANTIZE, GB_OP_ELU, GB_OP_EXP, GB_OP_GELU, GB_OP_HARD_SIGMOID,
            GB_OP_HARD_SWISH, GB_OP_LEAKY_RELU, GB_OP_MAXIMUM, GB_OP_MAX_POOL, GB_OP_MINIMUM,
            GB_OP_MISH, GB_OP_MULTIPLY, GB_OP_PRELU, GB_OP_RELU, GB_OP_REORDER, GB_OP_SELECT,
            GB_OP_SIGMOID, GB_OP_SOFTMAX, GB_OP_SOFTPLUS, GB_OP_STATIC_RESHAPE,
            GB_OP_STATIC_TRANSPOSE, GB_OP_SUBTRACT, GB_OP_TANH, GB_OP_TYPE_CAST};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i] == kind)
            return true;
    return false;
}

static void inherit_ratio(const gb_ref_call *call)
{
    double ratio = 0;
    for (uint32_t i = 0; i < call->n_inputs; i++)
        if (call->inputs[i]->bound)
            ratio = fmax(ratio, gb_ref_ratio(call->inputs[i]));
    call->outputs[0].deviations = ratio * ratio;
    call->outputs[0].bounds = ratio > 0;
}

static gb_status evaluate(
        const run *r, const gb_op *op, const gb_ref_tensor **inputs, gb_ref_tensor *outputs)
{
    GB_TRY(find_inputs(op, r->store, inputs));
    for (uint32_t i = 0; i < op->n_outputs; i++) {
        GB_TRY(allocate_output(r, op, i, &outputs[i]));
        outputs[i].statistical = any_statistical(op, inputs);
    }
    gb_ref_call call = {op, op->n_inputs, op->n_outputs, inputs, outputs};
    GB_TRY(gb_ref_table[op->kind](&call));
    if (passes_errors_on(op->kind))
        inherit_ratio(&call);
    for (uint32_t i = 0; i < op->n_outputs; i++) {
        apply_store(r, &outputs[i], is_read_inside(r, outputs[i].tensor.id));
        GB_TRY(gb_ref_store_put(r->store, &outputs[i]));
    }
    return GB_SUCCESS;
}

static gb_status evaluate_op(const run *r, const gb_op *op)
{
    if (!gb_ref_supports(op->kind))
        return gb_fail(GB_UNIMPLEMENTED, "%s has no reference", gb_op_label(op));
    const gb_ref_tensor **inputs = gb_calloc(op->n_inputs, sizeof *inputs);
    gb_ref_tensor *outputs = gb_calloc(op->n_outputs, sizeof *outputs);
    gb_status status = inputs && outputs ? evaluate(r, op, inputs, outputs) : GB_OUT_OF_MEMORY;
    for (uint32_t i = 0; outputs && i < op->n_outputs; i++)
        gb_ref_tensor_free(&outputs[i]);
    free(outputs);
    free(inputs);
    return status;
}

uint32_t gb_ref_count_uses(const gb_graph *graph, const bool *listed, uint32_t value)
{
    const gb_value *made = &graph->values[value];
    if (made->n_uses == 0 || made->producer == GB_NONE || !listed[made->producer])
        return GB_NONE;
    for (uint32_t i = 0; i < made->n_uses; i++) {
        uint32_t reader = made->uses[i].op;
        if (!listed[reader] || graph->ops[reader]->kind == GB_OP_END)
            return GB_NONE;
    }
    return made->n_uses;
}

/* Intermediate results are large: each goes when its last reader has run. */
static void drop_dead_inputs(const run *r, const gb_op *op)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        uint32_t value = op->inputs[i];
        if (r->unread[value] == GB_NONE || --r->unread[value] > 0)
            continue;
        gb_ref_tensor dead;
        if (!gb_ref_store_take(r->store, r->graph->values[value].tensor.id, &dead))
            continue;
        give_spare(r, dead.value, dead.count);
        give_spare(r, dead.bound, dead.count);
    }
}

gb_status gb_ref_list_ops(const gb_ref_list *list, bool *listed)
{
    for (size_t i = 0; i < list->n_ops; i++) {
        uint32_t index = gb_graph_find_op_index(list->graph, list->op_ids[i]);
        if (index == GB_NONE)
            return gb_fail(GB_INVALID_ARGUMENTS, "the graph has no op %zu", list->op_ids[i]);
        listed[index] = true;
    }
    return GB_SUCCESS;
}

/* Otherwise another run evaluates the op of the list. */
static bool is_evaluated(const gb_ref_list *list, uint32_t op)
{
    return !list->marks || list->marks[op] == list->marked;
}

/* The caller clears the run, also after a failure. */
static gb_status prepare(const gb_ref_list *list, run *r)
{
    const gb_graph *graph = list->graph;
    r->graph = graph;
    r->listed = gb_calloc(graph->n_ops, sizeof *r->listed);
    r->unread = gb_calloc(graph->n_values, sizeof *r->unread);
    if (!r->listed || !r->unread)
        return GB_OUT_OF_MEMORY;
    GB_TRY(gb_ref_list_ops(list, r->listed));
    for (uint32_t v = 0; v < graph->n_values; v++) {
        uint32_t maker = graph->values[v].producer;
        bool made = maker != GB_NONE && is_evaluated(list, maker);
        r->unread[v] = made ? gb_ref_count_uses(graph, r->listed, v) : GB_NONE;
    }
    return GB_SUCCESS;
}

static void clear(run *r)
{
    for (int i = 0; r->spares && i < SPARES; i++)
        free(r->spares[i].memory);
    free(r->listed);
    free(r->unread);
}

/* Op i of the list; NULL when it is not evaluated. */
static const gb_op *op_at(const gb_ref_list *list, size_t i)
{
    uint32_t index = gb_graph_find_op_index(list->graph, list->op_ids[i]);
    return is_evaluated(list, index) ? list->graph->ops[index] : NULL;
}

static gb_status evaluate_list(const run *r, const gb_ref_list *list)
{
    for (size_t i = 0; i < list->n_ops; i++) {
        const gb_op *op = op_at(list, i);
        if (!op)
            continue;
        GB_TRY(evaluate_op(r, op));
        drop_dead_inputs(r, op);
    }
    return GB_SUCCESS;
}

gb_status gb_ref_list_execute(const gb_ref_list *list, gb_ref_store *store)
{
    spare spares[SPARES] = {{NULL, 0}};
    run r = {.store = store, .spares = spares};
    gb_status status = prepare(list, &r);
    if (status == GB_SUCCESS)
        status = evaluate_list(&r, list);
    clear(&r);
    return status;
}

double gb_ref_bytes(const gb_logical_tensor *tensor)
{
    int64_t count;
    return count_known(tensor, &count) ? 2 * sizeof(double) * (double)count : 0;
}

/* Bytes of a tensor that comes and goes; 0 when it stays. */
static double passing_bytes(const run *r, uint32_t value)
{
    return r->unread[value] == GB_NONE ? 0 : gb_ref_bytes(&r->graph->values[value].tensor);
}

/* Products take a third array beside value and bound of each operand. */
static double operand_bytes(const gb_op *op)
{
    gb_op_class class = gb_op_schema_get(op->kind)->op_class;
    double bytes = 0;
    for (uint32_t k = 0; k < op->n_inputs; k++)
        bytes += gb_ref_bytes(gb_op_input(op, k)) / 2;
    return class == GB_CLASS_MATMUL || class == GB_CLASS_CONVOLUTION ? bytes : 0;
}

static void measure_list(const run *r, const gb_ref_list *list, gb_ref_use *use)
{
    double largest = 0;
    for (size_t i = 0; i < list->n_ops; i++) {
        const gb_op *op = op_at(list, i);
        if (!op)
            continue;
        for (uint32_t k = 0; k < op->n_outputs; k++) {
            double made = passing_bytes(r, op->outputs[k]);
            use->left += made;
            largest = fmax(largest, made);
        }
        /* `largest` for the spare arrays */
        use->most = fmax(use->most, use->left + largest + operand_bytes(op));
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t value = op->inputs[k];
            if (r->unread[value] != GB_NONE && --r->unread[value] == 0)
                use->left -= passing_bytes(r, value);
        }
    }
}

gb_status gb_ref_list_measure(const gb_ref_list *list, gb_ref_use *use)
{
    run r = {.graph = list->graph};
    *use = (gb_ref_use){0, 0};
    gb_status status = prepare(list, &r);
    if (status == GB_SUCCESS)
        measure_list(&r, list, use);
    clear(&r);
    return status;
}

gb_status gb_ref_get_memory(
        const gb_graph *graph, size_t n_ops, const size_t *op_ids, double *bytes)
{
    if (!graph || !bytes || (n_ops > 0 && !op_ids))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_ref_get_memory: NULL argument");
    gb_ref_use use;
    GB_TRY(gb_ref_list_measure(&(gb_ref_list){graph, n_ops, op_ids, NULL, false}, &use));
    *bytes = use.most;
    return GB_SUCCESS;
}

gb_status gb_ref_execute(
        const gb_graph *graph, size_t n_ops, const size_t *op_ids, gb_ref_store *store)
{
    if (!graph || !store || (n_ops > 0 && !op_ids))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_ref_execute: NULL argument");
    return gb_ref_list_execute(&(gb_ref_list){graph, n_ops, op_ids, NULL, false}, store);
}

gb_status gb_ref_end(const gb_ref_call *call)
{
    return call->n_outputs == 0
                   ? GB_SUCCESS
                   : gb_fail(GB_INVALID_GRAPH_OP, "%s has no outputs", gb_op_label(call->op));
}
