/* The search for a cut: from a large value and one of its axes on, every op that has a tensor that
 * is cut says where its other tensors are, until all agree. */
#include "ref/slices/cut.h"

#include "base/memory.h"
#include "base/status.h"
#include <math.h>
#include <stdlib.h>

gb_status gb_ref_cut_create(const gb_ref_list *list, gb_ref_cut *cut)
{
    *cut = (gb_ref_cut){.n_ops = list->n_ops, .op_ids = list->op_ids};
    GB_TRY(gb_graph_clone(list->graph, NULL, 0, &cut->graph));
    const gb_graph *graph = cut->graph;
    size_t ports = 0;
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        size_t count = (size_t)graph->ops[i]->n_inputs + graph->ops[i]->n_outputs;
        ports = count > ports ? count : ports;
    }
    cut->listed = gb_calloc(graph->n_ops, sizeof *cut->listed);
    cut->sliced = gb_calloc(graph->n_ops, sizeof *cut->sliced);
    cut->axes = gb_calloc(graph->n_values, sizeof *cut->axes);
    cut->extents = gb_calloc(graph->n_values, sizeof *cut->extents);
    cut->ports = gb_calloc(ports, sizeof *cut->ports);
    if (!cut->listed || !cut->sliced || !cut->axes || !cut->extents || !cut->ports)
        return GB_OUT_OF_MEMORY;
    for (uint32_t v = 0; v < graph->n_values; v++)
        cut->axes[v] = GB_REF_WHOLE;
    gb_ref_list all = gb_ref_cut_list(cut, false);
    return gb_ref_list_ops(&all, cut->listed);
}

void gb_ref_cut_destroy(gb_ref_cut *cut)
{
    gb_graph_destroy(cut->graph);
    free(cut->listed);
    free(cut->sliced);
    free(cut->axes);
    free(cut->extents);
    free(cut->ports);
    *cut = (gb_ref_cut){0};
}

gb_ref_list gb_ref_cut_list(const gb_ref_cut *cut, bool sliced)
{
    return (gb_ref_list){cut->graph, cut->n_ops, cut->op_ids, cut->sliced, sliced};
}

bool gb_ref_cut_reads(const gb_ref_cut *cut, uint32_t value)
{
    uint32_t producer = cut->graph->values[value].producer;
    return cut->axes[value] >= 0 && (producer == GB_NONE || !cut->listed[producer]);
}

bool gb_ref_cut_keeps(const gb_ref_cut *cut, uint32_t value)
{
    return cut->axes[value] >= 0 && !gb_ref_cut_reads(cut, value) &&
           gb_ref_count_uses(cut->graph, cut->listed, value) == GB_NONE;
}

void gb_ref_cut_resize(gb_ref_cut *cut, int64_t parts)
{
    for (uint32_t v = 0; v < cut->graph->n_values; v++)
        if (cut->axes[v] >= 0)
            cut->graph->values[v].tensor.dims[cut->axes[v]] = cut->extents[v] / cut->parts * parts;
}

static uint32_t value_at(const gb_op *op, uint32_t port)
{
    return port < op->n_inputs ? op->inputs[port] : op->outputs[port - op->n_inputs];
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Cuts the value along the axis; false when it is cut along another, or parts would not be equal.
 */
static bool cut_value(gb_ref_cut *cut, uint32_t value, int axis, bool *changed)
{
    if (cut->axes[value] >= 0)
        return cut->axes[value] == axis;
    cut->axes[value] = axis;
    cut->extents[value] = cut->graph->values[value].tensor.dims[axis];
    cut->parts = common_divisor(cut->parts, cut->extents[value]);
    *changed = true;
    return cut->parts > 1;
}

/* The axis of output 0 that goes with the axis of a port; leaves those of all ports. */
static bool find_axes(const gb_ref_cut *cut, const gb_op *op, uint32_t port)
{
    for (int axis = 0; axis < gb_op_output(op, 0)->ndims; axis++) {
        bool proper = gb_op_output(op, 0)->dims[axis] > 1;
        if (proper && gb_ref_slice_axes(op, axis, cut->ports) &&
                cut->ports[port] == cut->axes[value_at(op, port)])
            return true;
    }
    return false;
}

/* Takes the cut of one tensor of the op to the others. */
static bool pass_on(gb_ref_cut *cut, const gb_op *op, bool *changed)
{
    uint32_t n = op->n_inputs + op->n_outputs, port = 0;
    while (port < n && cut->axes[value_at(op, port)] < 0)
        port++;
    if (port == n || op->kind == GB_OP_END)
        return true;
    if (!find_axes(cut, op, port))
        return false;
    cut->sliced[op->index] = true;
    for (port = 0; port < n; port++) {
        uint32_t value = value_at(op, port);
        int axis = cut->ports[port];
        if (axis < 0 ? cut->axes[value] >= 0 : !cut_value(cut, value, axis, changed))
            return false;
    }
    return true;
}

static void cut_clear(gb_ref_cut *cut)
{
    for (uint32_t v = 0; v < cut->graph->n_values; v++)
        cut->axes[v] = GB_REF_WHOLE;
    for (uint32_t i = 0; i < cut->graph->n_ops; i++)
        cut->sliced[i] = false;
}

/* Cuts the list so that the value is cut along the axis; false when it cannot be. */
static bool cut_along(gb_ref_cut *cut, uint32_t value, int axis)
{
    bool changed;
    cut_clear(cut);
    cut->parts = cut->graph->values[value].tensor.dims[axis];
    if (!cut_value(cut, value, axis, &changed))
        return false;
    for (changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < cut->graph->n_ops; i++)
            if (cut->listed[i] && !pass_on(cut, cut->graph->ops[i], &changed))
                return false;
    }
    return true;
}

/* Bytes that slices of so many parts need. */
static gb_status cut_measure(gb_ref_cut *cut, int64_t parts, double *bytes)
{
    gb_ref_use once, each;
    gb_ref_list before = gb_ref_cut_list(cut, false), slice = gb_ref_cut_list(cut, true);
    gb_ref_cut_resize(cut, parts);
    gb_status status = gb_ref_list_measure(&before, &once);
    if (status == GB_SUCCESS)
        status = gb_ref_list_measure(&slice, &each);
    for (uint32_t v = 0; status == GB_SUCCESS && v < cut->graph->n_values; v++)
        if (gb_ref_cut_reads(cut, v) || gb_ref_cut_keeps(cut, v))
            each.most += gb_ref_bytes(&cut->graph->values[v].tensor);
    gb_ref_cut_resize(cut, cut->parts);
    if (status == GB_SUCCESS)
        *bytes = fmax(once.most, once.left + each.most);
    return status;
}

/* The most parts that fit, given that one does. */
static gb_status find_length(gb_ref_cut *cut, double bytes)
{
    int64_t fits = 1, beyond = cut->parts;
    while (beyond - fits > 1) {
        int64_t middle = fits + (beyond - fits) / 2;
        double needed;
        GB_TRY(cut_measure(cut, middle, &needed));
        if (needed <= bytes)
            fits = middle;
        else
            beyond = middle;
    }
    cut->length = fits;
    return GB_SUCCESS;
}

/* The largest value that comes and goes in the list and is smaller than `last`, or as large and
 * behind it; GB_NONE: no more. */
static uint32_t next_value(const gb_ref_cut *cut, uint32_t last)
{
    const gb_graph *graph = cut->graph;
    double limit = last == GB_NONE ? (double)INFINITY : gb_ref_bytes(&graph->values[last].tensor),
           most = 0;
    uint32_t next = GB_NONE;
    for (uint32_t v = 0; v < graph->n_values; v++) {
        double bytes = gb_ref_bytes(&graph->values[v].tensor);
        bool follows = bytes < limit || (bytes == limit && v > last);
        if (!follows || !(bytes > most) || gb_ref_count_uses(graph, cut->listed, v) == GB_NONE)
            continue;
        most = bytes;
        next = v;
    }
    return next;
}

gb_status gb_ref_cut_find(gb_ref_cut *cut, double bytes, double *least)
{
    *least = INFINITY;
    for (uint32_t v = next_value(cut, GB_NONE); v != GB_NONE; v = next_value(cut, v)) {
        for (int axis = 0; axis < cut->graph->values[v].tensor.ndims; axis++) {
            double needed;
            if (!cut_along(cut, v, axis))
                continue;
            GB_TRY(cut_measure(cut, 1, &needed));
            *least = fmin(*least, needed);
            if (needed <= bytes)
                return find_length(cut, bytes);
        }
    }
    return GB_SUCCESS;
}
