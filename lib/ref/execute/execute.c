/* Evaluating ops one after the other: outputs are allocated, the op's function fills them, the
 * store to the declared type widens their bounds. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "ref/bounds/bound.h"
#include "ref/bounds/walk.h"
#include "ref/ops/ref_functions.h"
#include "ref/slices/list.h"

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

static gb_ref_reader reader_of(const run *r, size_t tensor_id)
{
    uint32_t index = gb_graph_find_value(r->graph, tensor_id);
    gb_ref_reader reader = GB_REF_READ_BY_NONE;
    if (index == GB_NONE)
        return reader;
    const gb_value *value = &r->graph->values[index];
    for (uint32_t i = 0; i < value->n_uses; i++) {
        const gb_use *use = &value->uses[i];
        if (r->graph->ops[use->op]->kind == GB_OP_END)
            continue;
        if (r->listed[use->op])
            return GB_REF_READ_INSIDE;
        reader = GB_REF_READ_ELSEWHERE;
    }
    return reader;
}

typedef struct store_job {
    gb_ref_tensor *tensor;
    gb_ref_reader reader;
    double ratio; /* of the bounds before */
    int any_bound;
    bool any_lost;
    gb_ref_spread spread; /* of the tensor after the store */
} store_job;

/* May the element be 0 because a subnormal was flushed on the way? Such an error is as large as its
 * bound, whatever those of other elements are. */
static bool is_lost(double value, double bound)
{
    const double small = 0x1p-50; /* bounds of roundings are larger, unless all values are tiny */
    return value != 0 && bound < small && fabs(value) <= 4 * bound;
}

/* One piece of a row. Rounding errors are as large as what they add to the bound. */
static bool store_piece(
        store_job *job, int64_t first, int64_t count, gb_ref_spread *spread, bool *lost)
{
    double before[STORED_PIECE], *bound = job->tensor->bound + first;
    const double *value = job->tensor->value + first;
    memcpy(before, bound, (size_t)count * sizeof(double));
    bool any = gb_ref_store_row(
            job->tensor->tensor.data_type, job->reader, count, job->tensor->value + first, bound);
    for (int64_t i = 0; any && i < count; i++) {
        double inherited = job->ratio * before[i], added = bound[i] - before[i];
        gb_ref_spread_add(spread, inherited * inherited + added * added, bound[i]);
        *lost |= is_lost(value[i], bound[i]);
    }
    return any;
}

static void store_row(void *context, const gb_ref_row *row)
{
    store_job *job = context;
    gb_ref_spread spread = {0};
    bool any = false, lost = false;
    for (int64_t at = 0; at < row->count; at += STORED_PIECE)
        any |= store_piece(
                job, row->first + at, gb_min_i64(STORED_PIECE, row->count - at), &spread, &lost);
    if (!any)
        return;
#pragma omp critical(gb_ref_store_spread)
    {
        job->any_bound = 1;
        job->any_lost |= lost;
        gb_ref_spread_join(&job->spread, &spread);
    }
}

static void apply_store(const run *r, gb_ref_tensor *tensor, gb_ref_reader reader)
{
    store_job job = {.tensor = tensor, .reader = reader, .ratio = gb_ref_ratio(tensor)};
    gb_ref_walk_flat(tensor->count, store_row, &job);
    tensor->spread = job.spread;
    if (job.any_lost) {
        tensor->spread.deviations = job.spread.bounds;
        tensor->spread.quotients = job.spread.elements;
    }
    if (job.any_bound)
        return;
    give_spare(r, tensor->bound, tensor->count);
    tensor->bound = NULL;
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
        bool known = gb_ref_count(wanted, &count);
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
    if (!gb_ref_count(tensor, &output->count))
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

static void inherit_ratio(const gb_ref_call *call)
{
    double ratio = 0;
    for (uint32_t i = 0; i < call->n_inputs; i++)
        if (call->inputs[i]->bound)
            ratio = fmax(ratio, gb_ref_ratio(call->inputs[i]));
    if (ratio > 0)
        gb_ref_spread_add(&call->outputs[0].spread, ratio * ratio, 1);
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
    GB_TRY(gb_ref_function(op->kind)(&call));
    if (gb_op_has_flag(op->kind, GB_OP_FLAG_PASSES_ERRORS))
        inherit_ratio(&call);
    for (uint32_t i = 0; i < op->n_outputs; i++) {
        apply_store(r, &outputs[i], reader_of(r, outputs[i].tensor.id));
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

static gb_status evaluate_list(const run *r, const gb_ref_list *list)
{
    for (size_t i = 0; i < list->n_ops; i++) {
        const gb_op *op = gb_ref_list_op(list, i);
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
    run r = {.graph = list->graph, .store = store, .spares = spares};
    gb_status status = gb_ref_list_uses(list, &r.listed, &r.unread);
    if (status == GB_SUCCESS)
        status = evaluate_list(&r, list);
    for (int i = 0; i < SPARES; i++)
        free(spares[i].memory);
    free(r.listed);
    free(r.unread);
    return status;
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
