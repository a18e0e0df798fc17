/* The order of the mapping: nodes one after the other, with what they do to memory.
 *
 * Values that may share memory have one storage. A node that writes in place is mapped as one that
 * makes a new tensor where nobody can tell: nothing that was there before is read later, and
 * nothing outside of the graph sees the memory. Otherwise it is the framework's, and order does the
 * rest: it comes after all that reads the old contents, and what it leaves in each value of the
 * storage are new wires. */
#include "module.h"

#include <string.h>

uint32_t br_find_storage(const br_builder *b, uint32_t storage)
{
    while (b->storage_parents[storage] != storage)
        storage = b->storage_parents[storage];
    return storage;
}

bool br_is_written(const br_builder *b, uint32_t input)
{
    return b->graph->values[input].is_written || b->storage_is_written[br_find_storage(b, input)];
}

static void join_storages(br_builder *b, uint32_t a, uint32_t c)
{
    a = br_find_storage(b, a);
    c = br_find_storage(b, c);
    b->storage_parents[c] = a;
    b->storage_is_input[a] = b->storage_is_input[a] || b->storage_is_input[c];
    b->storage_is_written[a] = b->storage_is_written[a] || b->storage_is_written[c];
}

static uint32_t storage_of(const br_builder *b, uint32_t value)
{
    uint32_t storage = b->bindings[value].storage;
    return storage == BR_NONE ? BR_NONE : br_find_storage(b, storage);
}

/* ---- what nodes do to memory ---- */

static const char *const statistics_writers[] = {"aten.native_batch_norm.default",
        "aten.batch_norm.default", "aten._native_batch_norm_legit.default",
        "aten._batch_norm_with_update.default", "aten.instance_norm.default"};
static const char *const effects[] = {"rand", "dropout", "bernoulli", "normal", "multinomial",
        "exponential", "uniform", "cauchy", "geometric", "rrelu", "_assert", "sym_constrain"};
/* Ops that write to other arguments than their names say, by the beginning of these; NULL: to all. */
static const struct {
    const char *op, *arg;
} writers[] = {
        {"aten.rrelu_with_noise.", "noise"},
        {"aten.rrelu_with_noise_.", "noise"},
        {"aten._fused_adam_.", NULL},
        {"aten._fused_adamw_.", NULL},
        {"aten._fused_adagrad_.", NULL},
        {"aten._fused_sgd_.", NULL},
        {"aten._amp_foreach_non_finite_check_and_unscale_.", NULL},
        {"aten._amp_update_scale_.", NULL},
};

static bool is_plain_namespace(const br_node *node)
{
    return strncmp(node->op, "aten.", 5) == 0 || strncmp(node->op, "prims.", 6) == 0 ||
           strncmp(node->target, "_operator.", 10) == 0 || strncmp(node->target, "math.", 5) == 0;
}

/* Anything but its outputs may depend on when it runs. */
bool br_node_has_effects(const br_node *node)
{
    if (!is_plain_namespace(node))
        return true;
    if (strstr(node->op, "layer_norm") || strstr(node->op, "batch_norm") ||
            strstr(node->op, "group_norm") || strstr(node->op, "backward"))
        return false;
    for (size_t i = 0; i < BR_COUNT(effects); i++)
        if (strstr(node->op, effects[i]))
            return true;
    return false;
}

static bool writes_statistics(const br_node *node)
{
    bool is_listed = false;
    for (size_t i = 0; i < BR_COUNT(statistics_writers); i++)
        is_listed = is_listed || strcmp(node->op, statistics_writers[i]) == 0;
    const br_arg *training = br_find_arg(node, "training");
    if (!training)
        training = br_find_arg(node, "use_input_stats");
    bool trains = !training || training->kind != BR_ARG_BOOL || training->sizes[0].value != 0;
    return is_listed && trains;
}

/* "out", "Tensor_out", "out_mode" and "output" are; "dtype_layout" is not. */
static bool is_out_overload(const char *overload)
{
    for (const char *at = overload; (at = strstr(at, "out")); at++)
        if (at == overload || at[-1] == '_')
            return true;
    return false;
}

/* Which of its arguments the node writes to. */
bool br_node_writes_arg(const br_node *node, uint32_t arg)
{
    if (!is_plain_namespace(node))
        return strncmp(node->op, "higher_order.", 13) != 0 ||
               strstr(node->op, "functional") == NULL;
    if (writes_statistics(node))
        return strcmp(node->args[arg].name, "running_mean") == 0 ||
               strcmp(node->args[arg].name, "running_var") == 0;
    const char *first = strchr(node->op, '.');
    const char *dot = first ? strchr(first + 1, '.') : NULL;
    if (dot && is_out_overload(dot + 1))
        return true;
    for (size_t i = 0; i < BR_COUNT(writers); i++)
        if (strncmp(node->op, writers[i].op, strlen(writers[i].op)) == 0 &&
                (!writers[i].arg || strcmp(node->args[arg].name, writers[i].arg) == 0))
            return true;
    return arg == 0 && dot && dot[-1] == '_' && dot[-2] != '_';
}

bool br_node_writes(const br_node *node)
{
    for (uint32_t i = 0; i < node->n_args; i++)
        if (node->args[i].values && node->args[i].count && br_node_writes_arg(node, i))
            return true;
    return false;
}

/* Nobody can tell a new tensor from one written in place. */
static bool may_make_new(const br_builder *b, const br_node *node)
{
    uint32_t self =
            node->n_args && node->args[0].kind == BR_ARG_TENSOR ? node->args[0].values[0] : BR_NONE;
    if (self == BR_NONE || storage_of(b, self) == BR_NONE ||
            b->storage_is_input[storage_of(b, self)])
        return false;
    for (uint32_t v = 0; v < b->graph->n_values; v++)
        if (b->bindings[v].wire != BR_NONE && storage_of(b, v) == storage_of(b, self) &&
                b->last_uses[v] != BR_NONE && b->last_uses[v] > b->node)
            return false;
    /* The result has the type and dims of what was written to. */
    const br_value *from = &b->graph->values[self], *to = br_output(b, node, 0);
    return to && to->dtype == from->dtype && to->ndims == from->ndims;
}

/* ---- nodes that stay outside ---- */

typedef struct list {
    uint32_t *entries;
    uint32_t count, capacity;
} list;

static void add_once(br_builder *b, list *l, uint32_t entry)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->entries[i] == entry)
            return;
    if (br_grow(b->arena, &l->entries, &l->capacity, l->count, sizeof *l->entries))
        l->entries[l->count++] = entry;
}

/* A wire for a value as the framework has it; of unusable values one that only keeps order. */
static uint32_t framework_wire(br_builder *b, uint32_t value)
{
    const br_value *v = &b->graph->values[value];
    const int64_t one = 1;
    bool is_known = v->kind == BR_TENSOR && v->ndims >= 0 && v->dtype->type != GB_UNDEF;
    int64_t dims[GB_MAX_NDIMS];
    for (int d = 0; is_known && d < v->ndims; d++) {
        dims[d] = br_size_value(b, &v->dims[d]);
        is_known = !v->dims[d].unknown;
    }
    uint32_t wire = is_known ? br_wire_new(b, v->dtype->type, v->ndims, dims)
                             : br_wire_new(b, GB_U8, 1, &one);
    if (!b->arena->failed)
        b->wires[wire].value = value;
    return wire;
}

static void bind_outputs(br_builder *b, const br_node *node, uint32_t shared, list *outputs)
{
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        uint32_t value = node->outputs[i];
        if (value == BR_NONE)
            continue;
        uint32_t wire = framework_wire(b, value);
        if (b->arena->failed)
            return;
        uint32_t storage = shared == BR_NONE ? value : shared;
        b->bindings[value] = (br_binding){.wire = wire, .storage = storage};
        b->wires[wire].storage = storage;
        add_once(b, outputs, wire);
    }
}

/* All that has read or viewed the storage so far comes before a write to it, and what the values
 * hold afterwards comes from it. */
static void write_storage(br_builder *b, uint32_t storage, list *inputs, list *outputs)
{
    uint32_t n_ops = b->n_ops;
    b->storage_is_written[storage] = true;
    for (uint32_t i = 0; i < n_ops; i++) {
        const br_op *op = &b->ops[i];
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t of = b->wires[op->inputs[k]].storage;
            if (of != BR_NONE && br_find_storage(b, of) == storage && op->n_outputs) {
                add_once(b, inputs, op->outputs[0]);
                break;
            }
        }
    }
    for (uint32_t v = 0; v < b->graph->n_values; v++) {
        if (b->bindings[v].wire == BR_NONE || storage_of(b, v) != storage)
            continue;
        uint32_t wire = framework_wire(b, v);
        if (b->arena->failed)
            return;
        b->bindings[v] = (br_binding){.wire = wire, .storage = b->bindings[v].storage};
        b->wires[wire].storage = storage;
        add_once(b, outputs, wire);
    }
}

static void leave_outside(br_builder *b, const br_node *node, bool is_known_fresh)
{
    list inputs = {0}, outputs = {0}, written = {0};
    uint32_t shared = BR_NONE;
    for (uint32_t i = 0; i < node->n_args; i++)
        for (uint32_t k = 0; node->args[i].values && k < node->args[i].count; k++) {
            uint32_t value = node->args[i].values[k];
            if (value == BR_NONE || b->bindings[value].wire == BR_NONE)
                continue;
            add_once(b, &inputs, b->bindings[value].wire);
            if (br_node_writes_arg(node, i))
                add_once(b, &written, storage_of(b, value));
            if (is_known_fresh && !br_node_writes_arg(node, i))
                continue;
            /* What an unknown op makes may be a view of anything that it reads. */
            if (shared != BR_NONE)
                join_storages(b, shared, b->bindings[value].storage);
            shared = storage_of(b, value);
        }
    for (uint32_t i = 0; i < written.count; i++)
        write_storage(b, br_find_storage(b, written.entries[i]), &inputs, &outputs);
    if (br_node_has_effects(node) && b->last_effect != BR_NONE)
        add_once(b, &inputs, b->last_effect);
    bind_outputs(b, node, shared, &outputs);
    if (outputs.count == 0 || br_node_has_effects(node)) {
        const int64_t one = 1;
        uint32_t token = br_wire_new(b, GB_U8, 1, &one);
        add_once(b, &outputs, token);
        if (br_node_has_effects(node))
            b->last_effect = token;
    }
    br_emit(b, GB_OP_WILDCARD, inputs.count, inputs.entries, outputs.count, outputs.entries);
}

/* ---- the library's word on each op ---- */

void br_take_strides(const br_value *value, gb_logical_tensor *tensor)
{
    int order[GB_MAX_NDIMS], n = tensor->ndims;
    for (int d = 0; d < n; d++) {
        int at = d;
        if (value->strides[d].unknown || value->strides[d].expr || value->dims[d].expr)
            return;
        for (; at > 0 && value->strides[order[at - 1]].value > value->strides[d].value; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    int64_t reach = 0;
    for (int i = 0; i < n; i++) {
        int d = order[i];
        if (tensor->dims[d] == 1)
            continue;
        if (value->strides[d].value <= reach)
            return;
        reach += (tensor->dims[d] - 1) * value->strides[d].value;
    }
    for (int d = 0; d < n; d++)
        tensor->strides[d] = value->strides[d].value;
}

gb_status br_describe_wire(const br_builder *b, uint32_t wire, gb_logical_tensor *tensor)
{
    const br_wire *w = &b->wires[wire];
    const br_value *value = w->value == BR_NONE ? NULL : &b->graph->values[w->value];
    bool is_constant = w->data || (value && value->producer == BR_NONE && value->data &&
                                          !br_is_written(b, w->value));
    gb_status status = gb_logical_tensor_init_with_dims(tensor, wire, w->type, w->ndims, w->dims,
            GB_LAYOUT_STRIDED, is_constant ? GB_PROPERTY_CONSTANT : GB_PROPERTY_VARIABLE);
    if (status != GB_SUCCESS)
        return br_fail_library(status, "description");
    /* What comes in lies as the framework has it, and so does what a node has written to since. */
    bool is_input = value && value->producer == BR_NONE && value->ndims == w->ndims;
    if (is_input && w->producer != BR_NONE) {
        br_take_strides(value, tensor);
        return GB_SUCCESS;
    }
    for (int d = 0; is_input && d < w->ndims; d++)
        is_input = !value->strides[d].unknown && !value->strides[d].expr;
    for (int d = 0; is_input && d < w->ndims; d++)
        tensor->strides[d] = value->strides[d].value;
    return GB_SUCCESS;
}

static gb_status set_attr(gb_op *op, const br_attr *attr)
{
    if (attr->type == GB_ATTR_TYPE_F32)
        return gb_op_set_attr_f32(op, attr->attr, 1, &attr->f32);
    if (attr->type == GB_ATTR_TYPE_STRING)
        return gb_op_set_attr_str(op, attr->attr, attr->text, strlen(attr->text));
    if (attr->type == GB_ATTR_TYPE_BOOL) {
        uint8_t truth = attr->s64[0] != 0;
        return gb_op_set_attr_bool(op, attr->attr, 1, &truth);
    }
    return gb_op_set_attr_s64(op, attr->attr, attr->count, attr->s64);
}

gb_status br_make_gb_op(const br_builder *b, uint32_t index, gb_op **made)
{
    const br_op *op = &b->ops[index];
    gb_op *result;
    gb_logical_tensor tensor;
    const char *name = op->node == BR_NONE ? "" : b->graph->nodes[op->node].name;
    if (gb_op_create(&result, index, op->kind, name) != GB_SUCCESS)
        return br_fail_library(GB_OUT_OF_MEMORY, "op");
    gb_status status = GB_SUCCESS;
    for (uint32_t i = 0; i < op->n_inputs && status == GB_SUCCESS; i++) {
        status = br_describe_wire(b, op->inputs[i], &tensor);
        if (status == GB_SUCCESS)
            status = gb_op_add_input(result, &tensor);
    }
    for (uint32_t i = 0; i < op->n_outputs && status == GB_SUCCESS; i++) {
        status = br_describe_wire(b, op->outputs[i], &tensor);
        if (status == GB_SUCCESS)
            status = gb_op_add_output(result, &tensor);
    }
    for (uint32_t i = 0; i < op->n_attrs && status == GB_SUCCESS; i++)
        status = set_attr(result, &op->attrs[i]);
    if (status != GB_SUCCESS) {
        gb_op_destroy(result);
        return br_fail_library(status, "op");
    }
    *made = result;
    return GB_SUCCESS;
}

/* Does the library take the op, run it, and make what the graph says? */
static bool check_op(br_builder *b, uint32_t index)
{
    gb_op *op = NULL;
    gb_partition *partition = NULL;
    gb_logical_tensor inputs[64], outputs[8];
    const gb_logical_tensor *input_list[64];
    gb_logical_tensor *output_list[8];
    const br_op *o = &b->ops[index];
    if (o->n_inputs > BR_COUNT(inputs) || o->n_outputs > BR_COUNT(outputs))
        return br_refuse(b, "too many tensors");
    gb_status status = br_make_gb_op(b, index, &op);
    if (status == GB_SUCCESS)
        status = gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU);
    for (uint32_t i = 0; i < o->n_inputs && status == GB_SUCCESS; i++) {
        status = br_describe_wire(b, o->inputs[i], &inputs[i]);
        input_list[i] = &inputs[i];
    }
    for (uint32_t i = 0; i < o->n_outputs && status == GB_SUCCESS; i++) {
        status = br_describe_wire(b, o->outputs[i], &outputs[i]);
        output_list[i] = &outputs[i];
    }
    if (status == GB_SUCCESS)
        status = gb_partition_infer_shape(
                partition, o->n_inputs, input_list, o->n_outputs, output_list);
    uint8_t supported = 0;
    if (status == GB_SUCCESS)
        status = gb_partition_is_supported(partition, &supported);
    if (status != GB_SUCCESS)
        br_refuse(b, br_format(b->arena, "not as the library has it: %s", gb_last_error()));
    else if (!supported)
        br_refuse(b, br_format(b->arena, "%s: %s", gb_op_kind_name(o->kind),
                             gb_partition_get_unsupported_reason(partition)));
    gb_partition_destroy(partition);
    gb_op_destroy(op);
    return !b->reason;
}

/* ---- the mapping ---- */

static void undo(br_builder *b, const br_node *node, uint32_t n_ops, uint32_t n_wires)
{
    b->n_ops = n_ops;
    b->n_wires = n_wires;
    b->is_view_node[b->node] = false;
    for (uint32_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] != BR_NONE)
            b->bindings[node->outputs[i]] = (br_binding){.wire = BR_NONE, .storage = BR_NONE};
}

static bool try_map(br_builder *b, const br_node *node, const br_row *row, bool is_in_place)
{
    if (b->forced[b->node])
        return br_refuse(b, b->forced[b->node]);
    if (!row)
        return br_refuse(b, "no op of the library");
    if (is_in_place && !may_make_new(b, node))
        return br_refuse(b, "writes to memory that is seen elsewhere");
    uint32_t first = b->n_ops;
    if (!row->map(b, node, row) || b->reason)
        return br_refuse(b, "not mapped");
    for (uint32_t i = first; i < b->n_ops && !b->arena->failed; i++)
        if (b->ops[i].kind != GB_OP_WILDCARD && !check_op(b, i))
            return false;
    for (uint32_t i = 0; i < node->n_outputs; i++)
        if (br_output_is_read(b, node, i) && b->bindings[node->outputs[i]].wire == BR_NONE)
            return br_refuse(b, "an output that the library's op does not have is read");
    b->is_in_place[b->node] = is_in_place;
    return !b->arena->failed;
}

static void map_node(br_builder *b, uint32_t index)
{
    const br_node *node = &b->graph->nodes[index];
    uint32_t n_ops = b->n_ops, n_wires = b->n_wires;
    bool is_in_place;
    const br_row *row = br_find_row(node, &is_in_place);
    b->node = index;
    b->reason = NULL;
    if (try_map(b, node, row, is_in_place)) {
        br_log(3, "map: %s (%s): %u ops%s", node->name, node->op, b->n_ops - n_ops,
                b->is_view_node[index] ? ", a view" : "");
        return;
    }
    undo(b, node, n_ops, n_wires);
    b->reasons[index] = b->reason ? b->reason : "out of memory";
    br_log(3, "map: %s (%s) stays outside: %s", node->name, node->op, b->reasons[index]);
    leave_outside(b, node, row && !row->is_view);
}

static bool prepare(br_builder *b)
{
    const gb_bridge_graph *g = b->graph;
    b->reasons = br_alloc(b->arena, g->n_nodes, sizeof *b->reasons);
    b->is_view_node = br_alloc(b->arena, g->n_nodes, sizeof *b->is_view_node);
    b->is_in_place = br_alloc(b->arena, g->n_nodes, sizeof *b->is_in_place);
    b->bindings = br_alloc(b->arena, g->n_values, sizeof *b->bindings);
    b->view_wires = br_alloc(b->arena, g->n_values, sizeof *b->view_wires);
    b->last_uses = br_alloc(b->arena, g->n_values, sizeof *b->last_uses);
    b->storage_parents = br_alloc(b->arena, g->n_values, sizeof *b->storage_parents);
    b->storage_is_input = br_alloc(b->arena, g->n_values, sizeof *b->storage_is_input);
    b->storage_is_written = br_alloc(b->arena, g->n_values, sizeof *b->storage_is_written);
    if (b->arena->failed)
        return false;
    b->last_effect = BR_NONE;
    for (uint32_t v = 0; v < g->n_values; v++) {
        b->bindings[v] = (br_binding){.wire = BR_NONE, .storage = BR_NONE};
        b->view_wires[v] = BR_NONE;
        b->last_uses[v] = g->values[v].is_output ? g->n_nodes : BR_NONE;
        b->storage_parents[v] = v;
    }
    for (uint32_t i = 0; i < g->n_nodes; i++)
        b->has_writes = b->has_writes || br_node_writes(&g->nodes[i]);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const br_node *node = &g->nodes[i];
        for (uint32_t a = 0; a < node->n_args; a++)
            for (uint32_t k = 0; node->args[a].values && k < node->args[a].count; k++) {
                uint32_t value = node->args[a].values[k];
                if (value != BR_NONE && b->last_uses[value] != g->n_nodes &&
                        (b->forced[i] || !br_reads_places_again(b, node, a)))
                    b->last_uses[value] = i;
            }
    }
    return true;
}

gb_status br_map_graph(br_builder *b)
{
    const gb_bridge_graph *g = b->graph;
    if (!prepare(b))
        return br_out_of_memory();
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        uint32_t value = g->inputs[i], wire = framework_wire(b, value);
        if (b->arena->failed)
            return br_out_of_memory();
        b->bindings[value] = (br_binding){.wire = wire, .storage = value};
        b->wires[wire].storage = value;
        b->storage_is_input[value] = true;
    }
    for (uint32_t i = 0; i < g->n_nodes && !b->arena->failed; i++)
        map_node(b, i);
    return b->arena->failed ? br_out_of_memory() : GB_SUCCESS;
}
