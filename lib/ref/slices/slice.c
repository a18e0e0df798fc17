/* Evaluating ops slice by slice, where memory does not suffice for their results as a whole. */
#include "ref/bounds/sum.h"
#include "ref/slices/cut.h"

#include "base/memory.h"
#include "base/status.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The part [begin, begin + length) of an axis of a dense tensor: `outer` runs of neighbours. */
typedef struct window {
    int64_t outer, inner, extent, begin, length;
} window;

static window slice_window_of(
        const gb_logical_tensor *whole, int axis, int64_t begin, int64_t length)
{
    window w = {1, 1, whole->dims[axis], begin, length};
    for (int d = 0; d < whole->ndims; d++) {
        if (d < axis)
            w.outer *= whole->dims[d];
        else if (d > axis)
            w.inner *= whole->dims[d];
    }
    return w;
}

static void slice_copy(
        const window *w, const double *from, int64_t from_run, double *to, int64_t to_run)
{
    for (int64_t i = 0; i < w->outer; i++)
        memcpy(to + i * to_run, from + i * from_run, (size_t)(w->length * w->inner) * sizeof *to);
}

static void take_part(const window *w, const double *whole, double *part)
{
    slice_copy(w, whole + w->begin * w->inner, w->extent * w->inner, part, w->length * w->inner);
}

static void put_part(const window *w, const double *part, double *whole)
{
    slice_copy(w, part, w->length * w->inner, whole + w->begin * w->inner, w->extent * w->inner);
}

typedef struct slices {
    gb_ref_cut cut;
    gb_ref_store *store;
    gb_ref_tensor *results; /* by value: the whole of those that are kept; owned */
} slices;

/* The window of a slice that starts with part `begin`; its length is that of the graph's dims. */
static window find_window(
        const slices *s, uint32_t value, const gb_logical_tensor *whole, int64_t begin)
{
    int axis = s->cut.axes[value];
    int64_t part = s->cut.extents[value] / s->cut.parts;
    return slice_window_of(
            whole, axis, begin * part, s->cut.graph->values[value].tensor.dims[axis]);
}

/* Its errors stay in the ratio to their bounds that they have in the whole tensor. */
static gb_status read_slice(const slices *s, uint32_t value, int64_t begin, gb_ref_tensor *slice)
{
    const gb_ref_tensor *whole = gb_ref_store_get(s->store, s->cut.graph->values[value].tensor.id);
    if (!whole || whole->tensor.ndims != s->cut.graph->values[value].tensor.ndims ||
            whole->tensor.dims[s->cut.axes[value]] != s->cut.extents[value])
        return GB_SUCCESS; /* the op that reads it will say so */
    window w = find_window(s, value, &whole->tensor, begin);
    *slice = *whole;
    slice->tensor.dims[s->cut.axes[value]] = w.length;
    slice->count = w.outer * w.length * w.inner;
    slice->value = gb_calloc((size_t)slice->count, sizeof(double));
    slice->bound = whole->bound ? gb_calloc((size_t)slice->count, sizeof(double)) : NULL;
    if (!slice->value || (whole->bound && !slice->bound))
        return GB_OUT_OF_MEMORY;
    take_part(&w, whole->value, slice->value);
    if (whole->bound)
        take_part(&w, whole->bound, slice->bound);
    return GB_SUCCESS;
}

static gb_status read_slices(const slices *s, int64_t begin, gb_ref_store *store)
{
    gb_status status = GB_SUCCESS;
    for (uint32_t v = 0; v < s->cut.graph->n_values && status == GB_SUCCESS; v++) {
        gb_ref_tensor slice = {.value = NULL};
        if (!gb_ref_cut_reads(&s->cut, v))
            continue;
        status = read_slice(s, v, begin, &slice);
        if (status == GB_SUCCESS && slice.value)
            status = gb_ref_store_put(store, &slice);
        gb_ref_tensor_free(&slice);
    }
    return status;
}

static gb_status create_result(const slices *s, uint32_t value, gb_ref_tensor *result)
{
    result->tensor = s->cut.graph->values[value].tensor;
    result->tensor.dims[s->cut.axes[value]] = s->cut.extents[value];
    result->count = gb_tensor_count(&result->tensor);
    result->value = gb_calloc((size_t)result->count, sizeof(double));
    return result->value ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

static gb_status add_slice(
        const slices *s, uint32_t value, int64_t begin, const gb_ref_tensor *slice)
{
    gb_ref_tensor *result = &s->results[value];
    if (!result->value)
        GB_TRY(create_result(s, value, result));
    window w = find_window(s, value, &result->tensor, begin);
    put_part(&w, slice->value, result->value);
    if (slice->bound && !result->bound) {
        result->bound = gb_calloc((size_t)result->count, sizeof(double));
        if (!result->bound)
            return GB_OUT_OF_MEMORY;
    }
    if (slice->bound)
        put_part(&w, slice->bound, result->bound);
    gb_ref_spread_join(&result->spread, &slice->spread);
    result->statistical |= slice->statistical;
    return GB_SUCCESS;
}

static gb_status evaluate_slice(const slices *s, int64_t begin, gb_ref_store *store)
{
    gb_ref_list list = gb_ref_cut_list(&s->cut, true);
    GB_TRY(read_slices(s, begin, store));
    GB_TRY(gb_ref_list_execute(&list, store));
    for (uint32_t v = 0; v < s->cut.graph->n_values; v++)
        if (gb_ref_cut_keeps(&s->cut, v))
            GB_TRY(add_slice(
                    s, v, begin, gb_ref_store_get(store, s->cut.graph->values[v].tensor.id)));
    return GB_SUCCESS;
}

/* In slices of one size, but for the last. */
static gb_status evaluate_slices(slices *s)
{
    gb_ref_cut *cut = &s->cut;
    int64_t count = gb_div_up(cut->parts, cut->length), length = gb_div_up(cut->parts, count);
    gb_status status = GB_SUCCESS;
    for (int64_t begin = 0; begin < cut->parts && status == GB_SUCCESS; begin += length) {
        gb_ref_store *store;
        gb_ref_cut_resize(cut, gb_min_i64(length, cut->parts - begin));
        GB_TRY(gb_ref_store_create_before(&store, s->store));
        status = evaluate_slice(s, begin, store);
        gb_ref_store_destroy(store);
    }
    return status;
}

/* What the slices read as a whole, and nobody after them. */
static void drop_passing(const slices *s)
{
    const gb_graph *graph = s->cut.graph;
    for (uint32_t v = 0; v < graph->n_values; v++)
        if (gb_ref_count_uses(graph, s->cut.listed, v) != GB_NONE)
            gb_ref_store_drop(s->store, graph->values[v].tensor.id);
}

static gb_status evaluate_all(slices *s)
{
    gb_ref_list before = gb_ref_cut_list(&s->cut, false);
    s->results = gb_calloc(s->cut.graph->n_values, sizeof *s->results);
    if (!s->results)
        return GB_OUT_OF_MEMORY;
    GB_TRY(gb_ref_list_execute(&before, s->store));
    GB_TRY(evaluate_slices(s));
    for (uint32_t v = 0; v < s->cut.graph->n_values; v++)
        if (s->results[v].value)
            GB_TRY(gb_ref_store_put(s->store, &s->results[v]));
    return GB_SUCCESS;
}

static gb_status evaluate_within(const gb_ref_list *list, double bytes, slices *s)
{
    double least;
    GB_TRY(gb_ref_cut_create(list, &s->cut));
    GB_TRY(gb_ref_cut_find(&s->cut, bytes, &least));
    if (isinf(least))
        return gb_fail(GB_OUT_OF_MEMORY,
                "the reference needs more than %.0f bytes, and there is no axis to cut", bytes);
    if (least > bytes)
        return gb_fail(GB_OUT_OF_MEMORY,
                "the reference needs %.0f bytes even in slices, more than %.0f", least, bytes);
    gb_status status = evaluate_all(s);
    for (uint32_t v = 0; s->results && v < s->cut.graph->n_values; v++)
        gb_ref_tensor_free(&s->results[v]);
    free(s->results);
    drop_passing(s);
    return status;
}

gb_status gb_ref_execute_within(const gb_graph *graph, size_t n_ops, const size_t *op_ids,
        double bytes, gb_ref_store *store)
{
    double needed;
    if (!store)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_ref_execute_within: NULL argument");
    GB_TRY(gb_ref_get_memory(graph, n_ops, op_ids, &needed));
    if (needed <= bytes)
        return gb_ref_execute(graph, n_ops, op_ids, store);
    slices s = {.store = store};
    gb_ref_list list = {graph, n_ops, op_ids, NULL, false};
    gb_status status = evaluate_within(&list, bytes, &s);
    gb_ref_cut_destroy(&s.cut);
    return status;
}

gb_status gb_ref_get_least_memory(
        const gb_graph *graph, size_t n_ops, const size_t *op_ids, double *bytes)
{
    gb_ref_cut cut;
    double whole, sliced;
    if (!bytes)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_ref_get_least_memory: NULL argument");
    GB_TRY(gb_ref_get_memory(graph, n_ops, op_ids, &whole));
    gb_ref_list list = {graph, n_ops, op_ids, NULL, false};
    gb_status status = gb_ref_cut_create(&list, &cut);
    if (status == GB_SUCCESS)
        status = gb_ref_cut_find(&cut, 0, &sliced);
    gb_ref_cut_destroy(&cut);
    if (status == GB_SUCCESS)
        *bytes = fmin(whole, sliced);
    return status;
}
