#include "graph.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const br_dtype dtypes[] = {
        {0, "that is not known", GB_UNDEF, 0, false},
        {1, "u8", GB_U8, 1, false},
        {2, "s8", GB_S8, 1, false},
        {3, "s16", GB_UNDEF, 2, false},
        {4, "s32", GB_S32, 4, false},
        {5, "s64", GB_S64, 8, false},
        {6, "f16", GB_F16, 2, true},
        {7, "f32", GB_F32, 4, true},
        {8, "f64", GB_UNDEF, 8, true},
        {9, "c32", GB_UNDEF, 4, false},
        {10, "c64", GB_UNDEF, 8, false},
        {11, "c128", GB_UNDEF, 16, false},
        {12, "boolean", GB_BOOLEAN, 1, false},
        {13, "bf16", GB_BF16, 2, true},
        {28, "u16", GB_UNDEF, 2, false},
        {29, "f8_e4m3", GB_F8_E4M3, 1, true},
        {30, "f8_e5m2", GB_F8_E5M2, 1, true},
        {31, "f8_e4m3fnuz", GB_UNDEF, 1, true},
        {32, "f8_e5m2fnuz", GB_UNDEF, 1, true},
        {33, "f8_e8m0fnu", GB_UNDEF, 1, true},
        {34, "u32", GB_UNDEF, 4, false},
        {35, "u64", GB_UNDEF, 8, false},
};

const br_dtype *br_dtype_of_code(int64_t code)
{
    for (size_t i = 0; i < BR_COUNT(dtypes); i++)
        if (dtypes[i].code == code)
            return &dtypes[i];
    return &dtypes[0];
}

gb_bridge_graph *br_graph_new(void)
{
    gb_bridge_graph *graph = calloc(1, sizeof *graph);
    if (graph)
        graph->references = 1;
    return graph;
}

/* Modules count themselves on a graph that is const to them otherwise. */
static _Atomic uint32_t *references(const gb_bridge_graph *graph)
{
    return (_Atomic uint32_t *)(uintptr_t)&graph->references;
}

void br_graph_retain(const gb_bridge_graph *graph)
{
    atomic_fetch_add(references(graph), 1);
}

bool br_graph_is_shared(const gb_bridge_graph *graph)
{
    return atomic_load(references(graph)) > 1;
}

void br_graph_release(const gb_bridge_graph *graph)
{
    if (!graph || atomic_fetch_sub(references(graph), 1) > 1)
        return;
    gb_bridge_graph *last = (gb_bridge_graph *)(uintptr_t)graph;
    br_release(&last->arena);
    free(last);
}

gb_status gb_bridge_graph_destroy(gb_bridge_graph *graph)
{
    br_graph_release(graph);
    return GB_SUCCESS;
}

gb_status gb_bridge_graph_create_from_json(gb_bridge_graph **graph, const char *text, size_t length)
{
    if (!graph || !text)
        return br_fail(GB_INVALID_ARGUMENTS, "graph or text is NULL");
    gb_bridge_graph *made = br_graph_new();
    if (!made)
        return br_out_of_memory();
    gb_status status = br_graph_read(made, text, length);
    if (status != GB_SUCCESS) {
        br_graph_release(made);
        return status;
    }
    *graph = made;
    return GB_SUCCESS;
}

const br_arg *br_find_arg(const br_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->n_args; i++)
        if (strcmp(node->args[i].name, name) == 0)
            return node->args[i].kind == BR_ARG_NONE ? NULL : &node->args[i];
    return NULL;
}

bool br_value_bytes(const br_value *value, size_t *bytes)
{
    if (value->ndims < 0 || !value->dtype)
        return false;
    int64_t last = 0;
    for (int d = 0; d < value->ndims; d++) {
        int64_t dim = value->dims[d].value, step;
        if (value->dims[d].unknown || value->strides[d].unknown || dim < 0)
            return false;
        if (dim == 0) {
            *bytes = 0;
            return true;
        }
        if (__builtin_mul_overflow(dim - 1, value->strides[d].value, &step) ||
                __builtin_add_overflow(last, step, &last))
            return false;
    }
    int64_t total;
    if (__builtin_add_overflow(last, 1, &last) ||
            __builtin_mul_overflow(last, (int64_t)value->dtype->bytes, &total))
        return false;
    *bytes = (size_t)total;
    return true;
}

gb_status gb_bridge_graph_get_constant(
        const gb_bridge_graph *graph, const char *name, gb_bridge_tensor *tensor)
{
    if (!graph || !name || !tensor)
        return br_fail(GB_INVALID_ARGUMENTS, "graph, name or tensor is NULL");
    uint32_t index = br_names_find(&graph->names, name);
    const br_value *value = index == BR_NONE ? NULL : &graph->values[index];
    if (!value || !value->data)
        return br_fail(GB_INVALID_ARGUMENTS, "no value \"%.64s\" with contents", name);
    gb_bridge_tensor made = {.data = (void *)(uintptr_t)value->data,
            .dtype = (int32_t)value->dtype->type,
            .ndims = value->ndims,
            .size = value->bytes};
    for (int d = 0; d < value->ndims; d++) {
        made.dims[d] = value->dims[d].value;
        made.strides[d] = value->strides[d].value;
    }
    *tensor = made;
    return GB_SUCCESS;
}
