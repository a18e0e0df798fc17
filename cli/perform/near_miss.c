/* Near-misses: one change to a graph that the library has a pattern for. */
#include "cli/perform/near_miss.h"

#include "cli/case/batch.h"
#include "cli/options/message.h"
#include "cli/options/text.h"

#include <graphbench/graphbench_tools.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ATTRS = 32, MOST_LIST = 64, TRIES = 6, MOST_ELEMENTS = 1 << 16 };

/* ------------------------------------------------------------ files */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length > tail && strcmp(name + length - tail, end) == 0;
}

/* The graphs beside a batch file. */
static void add_folder(const gb_settings *settings, const char *batch, gb_near_misses *misses)
{
    gb_search search = {.count = 0};
    char *path = gb_cli_search(&search, settings, batch);
    char *slash = strrchr(path, '/');
    *(slash ? slash : path) = '\0';
    DIR *folder = opendir(path);
    size_t first = misses->n;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!ends_with(entry->d_name, ".json") && !ends_with(entry->d_name, ".gbt"))
            continue;
        gb_text file = {0};
        gb_cli_text_add(&file, "%s/%s", path, entry->d_name);
        misses->files = gb_cli_realloc(misses->files, misses->n + 1, sizeof *misses->files);
        misses->files[misses->n++] = file.data;
    }
    if (folder)
        closedir(folder);
    qsort(misses->files + first, misses->n - first, sizeof *misses->files, by_name);
    free(path);
    gb_cli_search_free(&search);
}

void gb_cli_near_misses_find(const gb_settings *settings, gb_near_misses *misses)
{
    static const char *const batches[] = {
            "pattern/ci", "complex_fusion/ci", "text/ci", "excite/ci"};
    *misses = (gb_near_misses){0};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        add_folder(settings, batches[i], misses);
}

void gb_cli_near_misses_free(gb_near_misses *misses)
{
    for (size_t i = 0; i < misses->n; i++)
        free(misses->files[i]);
    free(misses->files);
    *misses = (gb_near_misses){0};
}

/* ------------------------------------------------------------ changes */

static uint32_t below(gb_chance *chance, size_t n)
{
    return gb_cli_chance_below(chance, (uint32_t)n);
}

static gb_status pick_op(gb_chance *chance, gb_graph *graph, gb_op **op)
{
    const gb_op *found;
    size_t id;
    LIB_TRY(gb_graph_get_op(graph, below(chance, gb_graph_get_op_num(graph)), &found));
    LIB_TRY(gb_op_get_id(found, &id));
    LIB_TRY(gb_graph_edit_op(graph, id, op));
    return GB_SUCCESS;
}

/* One of the words that the kind knows. */
static gb_status change_word(gb_chance *chance, gb_op *op, gb_op_attr attr)
{
    gb_op_kind kind;
    size_t n = 0;
    LIB_TRY(gb_op_get_kind(op, &kind));
    const char *const *words = gb_op_kind_get_attr_words(kind, attr);
    while (words && words[n])
        n++;
    if (n == 0)
        return GB_UNIMPLEMENTED;
    const char *word = words[below(chance, n)];
    LIB_TRY(gb_op_set_attr_str(op, attr, word, strlen(word)));
    return GB_SUCCESS;
}

/* One value of a list, or the only one. */
static gb_status change_numbers(gb_chance *chance, gb_op *op, gb_op_attr attr, bool real)
{
    static const int64_t steps[] = {-2, -1, 1, 2};
    static const float factors[] = {-1, 0.5f, 2, 1.25f};
    float reals[MOST_LIST];
    int64_t whole[MOST_LIST];
    size_t count;
    const void *values;
    LIB_TRY(gb_op_get_attr(op, attr, &count, &values));
    if (count == 0 || count > MOST_LIST)
        return GB_UNIMPLEMENTED;
    uint32_t at = below(chance, count), how = below(chance, 4);
    if (real) {
        memcpy(reals, values, count * sizeof *reals);
        reals[at] *= factors[how];
        LIB_TRY(gb_op_set_attr_f32(op, attr, count, reals));
    } else {
        memcpy(whole, values, count * sizeof *whole);
        whole[at] += steps[how];
        LIB_TRY(gb_op_set_attr_s64(op, attr, count, whole));
    }
    return GB_SUCCESS;
}

static gb_status change_attribute(gb_chance *chance, gb_graph *graph)
{
    gb_op *op;
    gb_op_attr attrs[MOST_ATTRS];
    size_t n, count;
    const void *value;
    CLI_TRY(pick_op(chance, graph, &op));
    LIB_TRY(gb_op_get_attrs(op, MOST_ATTRS, attrs, &n));
    if (n == 0 || n > MOST_ATTRS)
        return GB_UNIMPLEMENTED;
    gb_op_attr attr = attrs[below(chance, n)];
    switch (gb_op_attr_type(attr)) {
    case GB_ATTR_TYPE_BOOL: {
        LIB_TRY(gb_op_get_attr(op, attr, &count, &value));
        uint8_t other = count == 1 && !*(const uint8_t *)value;
        LIB_TRY(gb_op_set_attr_bool(op, attr, 1, &other));
        return GB_SUCCESS;
    }
    case GB_ATTR_TYPE_F32:
    case GB_ATTR_TYPE_F32S:
        return change_numbers(chance, op, attr, true);
    case GB_ATTR_TYPE_S64:
    case GB_ATTR_TYPE_S64S:
        return change_numbers(chance, op, attr, false);
    case GB_ATTR_TYPE_STRING:
        return change_word(chance, op, attr);
    default:
        return GB_UNIMPLEMENTED;
    }
}

static gb_status pick_tensor(gb_chance *chance, const gb_graph *graph, gb_logical_tensor *tensor)
{
    LIB_TRY(gb_graph_get_tensor(graph, below(chance, gb_graph_get_tensor_num(graph)), tensor));
    return GB_SUCCESS;
}

/* A second reader of a tensor: what was inside of a partition leaves it, or another op joins in. */
static gb_status add_reader(gb_chance *chance, gb_graph *graph)
{
    static const char *const kinds[] = {"ReLU", "Square", "TypeCast", "Exp"};
    gb_logical_tensor tensor;
    gb_op *op;
    CLI_TRY(pick_tensor(chance, graph, &tensor));
    const char *kind = kinds[below(chance, 4)];
    gb_data_type type = strcmp(kind, "TypeCast") != 0 ? tensor.data_type
                        : tensor.data_type == GB_F32  ? GB_BF16
                                                      : GB_F32;
    LIB_TRY(gb_graph_make_op(&op, graph, kind, 1, &tensor.id, 1, &type));
    gb_status status = gb_graph_add_op(graph, op);
    gb_op_destroy(op);
    return status;
}

/* An op between a tensor and one of its readers. */
static gb_status insert_op(gb_chance *chance, gb_graph *graph)
{
    static const char *const kinds[] = {"ReLU", "Abs", "Sigmoid", "Square"};
    gb_logical_tensor tensor;
    gb_tensor_use uses[8];
    size_t n;
    gb_op *op;
    CLI_TRY(pick_tensor(chance, graph, &tensor));
    LIB_TRY(gb_graph_get_uses(graph, tensor.id, 8, uses, &n));
    if (n == 0 || n > 8)
        return GB_UNIMPLEMENTED;
    LIB_TRY(gb_graph_make_op(&op, graph, kinds[below(chance, 4)], 1, &tensor.id, 1, NULL));
    gb_status status = gb_graph_insert_op(graph, tensor.id, uses[below(chance, n)].op_id, op);
    gb_op_destroy(op);
    return status;
}

static gb_status bypass_op(gb_chance *chance, gb_graph *graph)
{
    gb_op *op;
    size_t id;
    CLI_TRY(pick_op(chance, graph, &op));
    if (gb_op_get_output_num(op) != 1 || gb_op_get_input_num(op) == 0)
        return GB_UNIMPLEMENTED;
    LIB_TRY(gb_op_get_id(op, &id));
    return gb_graph_bypass_op(graph, id, 0);
}

/* The same op with its first two inputs exchanged. */
static gb_status exchange_inputs(gb_chance *chance, gb_graph *graph)
{
    gb_op *op, *other;
    gb_op_kind kind;
    size_t id;
    CLI_TRY(pick_op(chance, graph, &op));
    size_t n = gb_op_get_input_num(op);
    if (n < 2)
        return GB_UNIMPLEMENTED;
    LIB_TRY(gb_op_get_id(op, &id));
    LIB_TRY(gb_op_get_kind(op, &kind));
    LIB_TRY(gb_op_create(&other, id, kind, gb_op_get_name(op)));
    gb_status status = gb_cli_copy_attrs(op, other);
    for (size_t i = 0; i < n && status == GB_SUCCESS; i++) {
        gb_logical_tensor tensor;
        gb_op_get_input(op, i < 2 ? 1 - i : i, &tensor);
        status = gb_op_add_input(other, &tensor);
    }
    for (size_t i = 0; i < gb_op_get_output_num(op) && status == GB_SUCCESS; i++) {
        gb_logical_tensor tensor;
        gb_op_get_output(op, i, &tensor);
        status = gb_op_add_output(other, &tensor);
    }
    if (status == GB_SUCCESS)
        status = gb_graph_replace_op(graph, id, other);
    gb_op_destroy(other);
    return status;
}

static gb_status pick_input(gb_chance *chance, const gb_graph *graph, gb_logical_tensor *tensor)
{
    enum { MOST_INPUTS = 32 };
    gb_logical_tensor inputs[MOST_INPUTS];
    size_t n;
    LIB_TRY(gb_graph_get_inputs(graph, MOST_INPUTS, inputs, &n));
    if (n == 0)
        return GB_UNIMPLEMENTED;
    *tensor = inputs[below(chance, n < MOST_INPUTS ? n : MOST_INPUTS)];
    return GB_SUCCESS;
}

/* One dim of an input: 1, which is broadcast where it may be, or one more. */
static gb_status change_dim(gb_chance *chance, gb_graph *graph)
{
    gb_logical_tensor tensor, other;
    CLI_TRY(pick_input(chance, graph, &tensor));
    if (tensor.ndims < 1)
        return GB_UNIMPLEMENTED;
    int64_t *dim = &tensor.dims[below(chance, (size_t)tensor.ndims)];
    *dim = below(chance, 3) ? 1 : *dim + 1;
    LIB_TRY(gb_logical_tensor_init_with_dims(&other, tensor.id, tensor.data_type, tensor.ndims,
            tensor.dims, GB_LAYOUT_STRIDED, tensor.property));
    return gb_graph_set_tensor(graph, &other);
}

/* Axes of an input in the reverse order in memory, with a gap. */
static gb_status change_strides(gb_chance *chance, gb_graph *graph)
{
    gb_logical_tensor tensor, other;
    int64_t strides[GB_MAX_NDIMS], stride = 1 + below(chance, 2);
    CLI_TRY(pick_input(chance, graph, &tensor));
    if (tensor.ndims < 2 || tensor.property == GB_PROPERTY_HOST_SCALAR)
        return GB_UNIMPLEMENTED;
    for (int d = 0; d < tensor.ndims; d++) {
        strides[d] = stride;
        stride *= tensor.dims[d] > 1 ? tensor.dims[d] : 1;
    }
    LIB_TRY(gb_logical_tensor_init_with_strides(&other, tensor.id, tensor.data_type, tensor.ndims,
            tensor.dims, strides, tensor.property));
    return gb_graph_set_tensor(graph, &other);
}

static gb_status change_property(gb_chance *chance, gb_graph *graph)
{
    gb_logical_tensor tensor;
    CLI_TRY(pick_input(chance, graph, &tensor));
    tensor.property =
            tensor.property == GB_PROPERTY_CONSTANT ? GB_PROPERTY_VARIABLE : GB_PROPERTY_CONSTANT;
    return gb_graph_set_tensor(graph, &tensor);
}

/* Signed 8-bit values for unsigned ones and the like, wherever the tensor occurs. */
static gb_status change_type(gb_chance *chance, gb_graph *graph)
{
    static const gb_data_type pairs[][2] = {{GB_U8, GB_S8}, {GB_S8, GB_U8}, {GB_BF16, GB_F16},
            {GB_F16, GB_BF16}, {GB_S4, GB_U4}, {GB_U4, GB_S4}, {GB_F8_E4M3, GB_F8_E5M2}};
    gb_logical_tensor tensor;
    CLI_TRY(pick_tensor(chance, graph, &tensor));
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i][0] == tensor.data_type) {
            tensor.data_type = pairs[i][1];
            return gb_graph_set_tensor(graph, &tensor);
        }
    return GB_UNIMPLEMENTED;
}

/* No change: the pattern itself, in the ways that the fuzzer runs graphs. */
static gb_status keep(gb_chance *chance, gb_graph *graph)
{
    (void)chance;
    (void)graph;
    return GB_SUCCESS;
}

typedef gb_status change_fn(gb_chance *chance, gb_graph *graph);
/* Attributes are what most conditions ask for. */
static change_fn *const changes[] = {change_attribute, change_attribute, change_attribute,
        change_attribute, add_reader, add_reader, insert_op, bypass_op, exchange_inputs, change_dim,
        change_dim, change_strides, change_property, change_type, keep};

/* ------------------------------------------------------------ a graph */

/* All shapes follow from the inputs anew, and are known. */
static bool is_legal(gb_graph *graph)
{
    int64_t elements = 0;
    for (size_t i = 0; i < gb_graph_get_tensor_num(graph); i++) {
        gb_logical_tensor tensor, open;
        const gb_op *producer;
        if (gb_graph_get_tensor(graph, i, &tensor) != GB_SUCCESS ||
                gb_graph_get_producer(graph, tensor.id, &producer) != GB_SUCCESS)
            return false;
        if (producer &&
                (gb_logical_tensor_init(&open, tensor.id, tensor.data_type, GB_UNKNOWN_NDIMS,
                         GB_LAYOUT_STRIDED, tensor.property) != GB_SUCCESS ||
                        gb_graph_set_tensor(graph, &open) != GB_SUCCESS))
            return false;
    }
    if (gb_graph_verify(graph) != GB_SUCCESS || gb_graph_infer_shapes(graph) != GB_SUCCESS)
        return false;
    for (size_t i = 0; i < gb_graph_get_tensor_num(graph); i++) {
        gb_logical_tensor tensor;
        int64_t count = 1;
        if (gb_graph_get_tensor(graph, i, &tensor) != GB_SUCCESS || tensor.ndims < 0)
            return false;
        for (int d = 0; d < tensor.ndims; d++)
            count *= tensor.dims[d] > 0 ? tensor.dims[d] : 1;
        elements += count;
        if (elements > MOST_ELEMENTS)
            return false;
    }
    return true;
}

gb_status gb_cli_near_miss(const gb_near_misses *misses, gb_chance *chance, gb_graph **graph)
{
    *graph = NULL;
    for (int tries = 0; tries < TRIES && misses->n > 0; tries++) {
        const char *file = misses->files[below(chance, misses->n)];
        LIB_TRY(gb_graph_load(graph, file, NULL, NULL));
        change_fn *change = changes[below(chance, sizeof changes / sizeof *changes)];
        if (change(chance, *graph) == GB_SUCCESS && is_legal(*graph))
            return GB_SUCCESS;
        gb_graph_destroy(*graph);
        *graph = NULL;
    }
    return GB_SUCCESS;
}
