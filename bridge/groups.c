/* From the mapped graph to groups: partitions of the library, each with whole nodes of the
 * framework. What does not come out so is left to the framework, and all is done again without. */
#include "module.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_ATTEMPTS = 64,
    MOST_OPS = 480,    /* of a group made of several partitions; the library has a limit near it */
    LEAST_PIECE = 128, /* a node has fewer ops than the difference */
};

/* One attempt. */
typedef struct attempt {
    gb_bridge_module *module;
    br_builder *b;
    gb_graph *graph;
    gb_partition **partitions; /* malloc'ed; NULL once a group has taken it */
    size_t n_partitions;
    uint32_t *part_of_op; /* partition */
    uint32_t *class_of;   /* partitions that share nodes are joined: parents */
    bool *is_compute;     /* partitions with ops that are no views */
    uint32_t *provider;   /* of values: the group that gives it; BR_NONE */
    bool is_stale;        /* something was forced outside that the mapping depends on */
} attempt;

static uint32_t find_class(const attempt *a, uint32_t part)
{
    while (a->class_of[part] != part)
        part = a->class_of[part];
    return part;
}

static void force(attempt *a, uint32_t node, const char *reason)
{
    if (node == BR_NONE || a->module->forced[node])
        return;
    a->module->forced[node] = reason;
    /* What was mapped as a new tensor writes in place now. */
    a->is_stale = a->is_stale || a->b->is_in_place[node];
}

static gb_status add_ops(const br_builder *b, gb_graph *graph, const uint32_t *ops, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        gb_op *op;
        BR_TRY(br_make_gb_op(b, ops ? ops[i] : i, &op));
        gb_status status = gb_graph_add_op(graph, op);
        gb_op_destroy(op);
        if (status != GB_SUCCESS)
            return br_fail_library(status, "mapped graph");
    }
    return GB_SUCCESS;
}

static gb_status finish_graph(
        gb_graph *graph, gb_policy policy, gb_partition ***partitions, size_t *count)
{
    gb_status status = gb_graph_finalize(graph);
    if (status == GB_SUCCESS)
        status = gb_graph_filter(graph, policy);
    if (status == GB_SUCCESS)
        status = gb_graph_get_partitions(graph, 0, NULL, count);
    if (status != GB_SUCCESS)
        return br_fail_library(status, "mapped graph");
    gb_partition **list = calloc(*count + 1, sizeof(gb_partition *));
    if (!list)
        return br_out_of_memory();
    status = gb_graph_get_partitions(graph, *count, list, NULL);
    if (status != GB_SUCCESS) {
        free((void *)list);
        return br_fail_library(status, "partitions");
    }
    *partitions = list;
    return GB_SUCCESS;
}

static gb_policy policy_of(const gb_bridge_module *module)
{
    return module->options.policy == GB_POLICY_MAX ? GB_POLICY_MAX : GB_POLICY_FUSION;
}

static gb_status make_partitions(attempt *a)
{
    const br_builder *b = a->b;
    gb_status status =
            gb_graph_create_with_fpmath_mode(&a->graph, GB_ENGINE_CPU, a->module->options.fpmath);
    if (status != GB_SUCCESS)
        return br_fail_library(status, "mapped graph");
    BR_TRY(add_ops(b, a->graph, NULL, b->n_ops));
    for (uint32_t i = 0; i < b->graph->n_outputs; i++) {
        uint32_t wire = b->bindings[b->graph->outputs[i]].wire;
        uint32_t producer = wire == BR_NONE ? BR_NONE : b->wires[wire].producer;
        /* What the framework makes leaves all groups as it is, and may be of any type. */
        if (producer == BR_NONE || b->ops[producer].kind == GB_OP_WILDCARD)
            continue;
        status = gb_graph_make_output(a->graph, wire);
        if (status == GB_OUT_OF_MEMORY)
            return br_fail_library(status, "output of the graph");
        if (status != GB_SUCCESS) {
            force(a, b->ops[producer].node, "a result of this type cannot leave");
            a->is_stale = true;
        }
    }
    if (a->is_stale)
        return GB_SUCCESS;
    return finish_graph(a->graph, policy_of(a->module), &a->partitions, &a->n_partitions);
}

/* Ids of a partition's ops, in the arena. */
static gb_status list_ops(
        attempt *a, const gb_partition *partition, uint32_t **ops, uint32_t *count)
{
    size_t n;
    if (gb_partition_get_ops(partition, 0, NULL, &n) != GB_SUCCESS)
        return br_fail_library(GB_RUNTIME_ERROR, "partition");
    size_t *ids = calloc(n + 1, sizeof *ids);
    *ops = br_alloc(&a->module->arena, n, sizeof **ops);
    if (!ids || !*ops || gb_partition_get_ops(partition, n, ids, NULL) != GB_SUCCESS) {
        free(ids);
        return br_out_of_memory();
    }
    *count = 0;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < a->b->n_ops) /* not an End */
            (*ops)[(*count)++] = (uint32_t)ids[i];
    free(ids);
    return GB_SUCCESS;
}

static gb_status classify(attempt *a)
{
    br_arena *arena = &a->module->arena;
    br_builder *b = a->b;
    uint32_t n = (uint32_t)a->n_partitions;
    a->part_of_op = br_alloc(arena, b->n_ops, sizeof *a->part_of_op);
    a->class_of = br_alloc(arena, n, sizeof *a->class_of);
    a->is_compute = br_alloc(arena, n, sizeof *a->is_compute);
    uint32_t *part_of_node = br_alloc(arena, b->graph->n_nodes, sizeof *part_of_node);
    if (arena->failed)
        return br_out_of_memory();
    for (uint32_t i = 0; i < b->n_ops; i++)
        a->part_of_op[i] = BR_NONE;
    for (uint32_t i = 0; i < b->graph->n_nodes; i++)
        part_of_node[i] = BR_NONE;
    for (uint32_t p = 0; p < n; p++) {
        uint32_t *ops, count;
        uint8_t supported = 0;
        a->class_of[p] = p;
        gb_partition_is_supported(a->partitions[p], &supported);
        BR_TRY(list_ops(a, a->partitions[p], &ops, &count));
        for (uint32_t i = 0; i < count; i++) {
            const br_op *op = &b->ops[ops[i]];
            a->part_of_op[ops[i]] = p;
            if (op->kind == GB_OP_WILDCARD || op->is_view)
                continue;
            if (!supported) {
                force(a, op->node, "the library does not run it here");
                continue;
            }
            a->is_compute[p] = true;
            if (part_of_node[op->node] != BR_NONE && !a->module->is_split[op->node])
                a->class_of[find_class(a, p)] = find_class(a, part_of_node[op->node]);
            part_of_node[op->node] = p;
        }
    }
    return GB_SUCCESS;
}

/* The partitions of a class as one: its ops alone, with policy max. */
static gb_status join_partitions(
        attempt *a, const uint32_t *ops, uint32_t n_ops, gb_partition **joined)
{
    gb_graph *graph;
    gb_partition **list = NULL;
    size_t count = 0;
    *joined = NULL;
    gb_status status =
            gb_graph_create_with_fpmath_mode(&graph, GB_ENGINE_CPU, a->module->options.fpmath);
    if (status != GB_SUCCESS)
        return br_fail_library(status, "joined graph");
    status = add_ops(a->b, graph, ops, n_ops);
    /* What others read leaves the group. */
    for (uint32_t i = 0; i < n_ops && status == GB_SUCCESS; i++)
        for (uint32_t k = 0; k < a->b->ops[ops[i]].n_outputs && status == GB_SUCCESS; k++) {
            size_t uses = 0, wire = a->b->ops[ops[i]].outputs[k], all = 0;
            gb_graph_get_uses(graph, wire, 0, NULL, &uses);
            gb_graph_get_uses(a->graph, wire, 0, NULL, &all);
            if (uses == 0 || all == uses || gb_graph_make_output(graph, wire) == GB_SUCCESS)
                continue;
            gb_graph_destroy(graph); /* a result of a type that cannot leave: not joined */
            return GB_SUCCESS;
        }
    if (status == GB_SUCCESS)
        status = finish_graph(graph, GB_POLICY_MAX, &list, &count);
    for (size_t i = 0; i < count && list; i++) {
        uint8_t supported = 0;
        size_t n = 0;
        gb_partition_is_supported(list[i], &supported);
        gb_partition_get_ops(list[i], 0, NULL, &n);
        if (supported && n == n_ops && !*joined)
            *joined = list[i];
        else
            gb_partition_destroy(list[i]);
    }
    free((void *)list);
    gb_graph_destroy(graph);
    return status;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The nodes of the group's ops. */
static gb_status list_nodes(attempt *a, br_group *group)
{
    group->nodes = br_alloc(&a->module->arena, group->n_ops, sizeof *group->nodes);
    group->n_nodes = 0;
    if (!group->nodes)
        return br_out_of_memory();
    for (uint32_t i = 0; i < group->n_ops; i++) {
        const br_op *op = &a->b->ops[group->ops[i]];
        if (!op->is_view)
            group->nodes[group->n_nodes++] = op->node;
    }
    qsort(group->nodes, group->n_nodes, sizeof *group->nodes, compare_u32);
    uint32_t n = 0;
    for (uint32_t i = 0; i < group->n_nodes; i++)
        if (i == 0 || group->nodes[i] != group->nodes[n - 1])
            group->nodes[n++] = group->nodes[i];
    group->n_nodes = n;
    return GB_SUCCESS;
}

static gb_status gather_ops(attempt *a, uint32_t class, br_group *group, uint32_t *n_parts)
{
    br_arena *arena = &a->module->arena;
    uint32_t capacity = 0;
    *n_parts = 0;
    for (uint32_t p = 0; p < a->n_partitions; p++) {
        uint32_t *ops, count;
        if (!a->is_compute[p] || find_class(a, p) != class)
            continue;
        ++*n_parts;
        BR_TRY(list_ops(a, a->partitions[p], &ops, &count));
        for (uint32_t i = 0; i < count; i++) {
            if (!br_grow(arena, &group->ops, &capacity, group->n_ops, sizeof *ops))
                return br_out_of_memory();
            group->ops[group->n_ops++] = ops[i];
        }
    }
    qsort(group->ops, group->n_ops, sizeof *group->ops, compare_u32);
    return list_nodes(a, group);
}

/* Why the op is not worth a call; NULL: it is, or for a node in several groups another op of it. */
static const char *judge_single_op(const attempt *a, const br_op *op)
{
    const char *reason = br_judge_single_op(a->b, op);
    for (uint32_t i = 0; reason && i < a->b->n_ops && a->module->is_split[op->node]; i++)
        if (a->b->ops[i].node == op->node && !a->b->ops[i].is_view)
            reason = br_judge_single_op(a->b, &a->b->ops[i]);
    return reason;
}

static bool has_forced_node(const attempt *a, const br_group *group)
{
    for (uint32_t i = 0; i < group->n_nodes; i++)
        if (a->module->forced[group->nodes[i]])
            return true;
    return false;
}

/* Why the group is not worth a call, or not whole; NULL: it is kept. */
static const char *judge(attempt *a, const br_group *group)
{
    const br_builder *b = a->b;
    uint32_t n = 0;
    const br_op *last = NULL;
    for (uint32_t i = 0; i < group->n_ops; i++)
        if (!b->ops[group->ops[i]].is_view) {
            n++;
            last = &b->ops[group->ops[i]];
        }
    if (has_forced_node(a, group))
        return "fused with what stays outside";
    return n == 1 && !a->module->options.keep_single_ops ? judge_single_op(a, last) : NULL;
}

/* Nodes of a group that cannot be one partition may come from several groups, as the gradients of a
 * convolution do. False: there are none. Where memory is written to, order must not be in doubt. */
static bool split_nodes(attempt *a, const br_group *group)
{
    const br_builder *b = a->b;
    bool is_any = false;
    for (uint32_t i = 0; i < group->n_nodes && !b->has_writes; i++) {
        uint32_t node = group->nodes[i], part = BR_NONE;
        for (uint32_t k = 0; k < group->n_ops; k++) {
            const br_op *op = &b->ops[group->ops[k]];
            if (op->is_view || op->node != node || a->module->is_split[node])
                continue;
            if (part != BR_NONE && a->part_of_op[group->ops[k]] != part)
                a->module->is_split[node] = is_any = a->is_stale = true;
            part = a->part_of_op[group->ops[k]];
        }
    }
    return is_any;
}

static gb_status list_ports(attempt *a, br_group *group, bool are_inputs)
{
    br_builder *b = a->b;
    size_t n = 0;
    if (are_inputs)
        gb_partition_get_input_ports(group->partition, 0, NULL, &n);
    else
        gb_partition_get_output_ports(group->partition, 0, NULL, &n);
    gb_logical_tensor *ports = calloc(n + 1, sizeof *ports);
    br_port *made = br_alloc(&a->module->arena, n, sizeof *made);
    gb_status status = ports && made ? GB_SUCCESS : br_out_of_memory();
    if (status == GB_SUCCESS)
        status = are_inputs ? gb_partition_get_input_ports(group->partition, n, ports, NULL)
                            : gb_partition_get_output_ports(group->partition, n, ports, NULL);
    uint32_t count = 0, named = 0;
    /* Those with values first. */
    for (int pass = 0; pass < 2 && status == GB_SUCCESS; pass++)
        for (size_t i = 0; i < n; i++) {
            uint32_t wire = (uint32_t)ports[i].id, value = b->wires[wire].value;
            bool seen = false;
            for (uint32_t k = 0; k < count; k++)
                seen = seen || made[k].wire == wire;
            if (value != BR_NONE && !are_inputs && b->last_uses[value] == BR_NONE)
                value = BR_NONE; /* nobody reads it */
            if (seen || (value != BR_NONE) != (pass == 0))
                continue;
            made[count++] = (br_port){.wire = wire, .value = value};
            named += pass == 0;
        }
    free(ports);
    if (are_inputs) {
        group->inputs = made;
        group->n_inputs = named;
        group->n_all_inputs = count;
    } else {
        group->outputs = made;
        group->n_outputs = named;
        group->n_all_outputs = count;
    }
    return status;
}

/* An input without a name that is no literal is an inner tensor of a node that lies elsewhere. */
static bool ports_are_whole(const attempt *a, const br_group *group)
{
    for (uint32_t i = group->n_inputs; i < group->n_all_inputs; i++)
        if (!a->b->wires[group->inputs[i].wire].data)
            return false;
    return true;
}

static bool is_constant(const attempt *a, uint32_t input)
{
    const br_value *value = &a->b->graph->values[input];
    bool is_model =
            value->role == BR_PARAMETER || value->role == BR_BUFFER || value->role == BR_CONSTANT;
    return value->producer == BR_NONE && is_model && !br_is_written(a->b, input) &&
           (value->data || a->module->options.constant_parameters);
}

/* Adds the group, whose partition is there, to the module; or leaves its nodes outside. */
static gb_status finish_group(attempt *a, br_group *group, const char *reason)
{
    gb_bridge_module *module = a->module;
    gb_status status = GB_SUCCESS;
    if (!reason) {
        status = list_ports(a, group, true);
        if (status == GB_SUCCESS)
            status = list_ports(a, group, false);
        if (status == GB_SUCCESS && !ports_are_whole(a, group))
            reason = "its ops are not fused as a whole";
    }
    if (status != GB_SUCCESS || reason) {
        gb_partition_destroy(group->partition);
        for (uint32_t i = 0; i < group->n_nodes && reason; i++)
            force(a, group->nodes[i], reason);
        return status;
    }
    for (uint32_t i = 0; i < group->n_inputs; i++)
        group->inputs[i].is_constant = is_constant(a, group->inputs[i].value);
    for (uint32_t i = 0; i < group->n_ops; i++) {
        gb_op *op;
        double flops = 0, bytes;
        if (a->b->ops[group->ops[i]].is_view ||
                br_make_gb_op(a->b, group->ops[i], &op) != GB_SUCCESS)
            continue;
        if (gb_op_get_work(op, &flops, &bytes) == GB_SUCCESS)
            group->flops += flops;
        gb_op_destroy(op);
    }
    pthread_mutex_init(&group->lock, NULL);
    module->groups[module->n_groups++] = *group;
    return GB_SUCCESS;
}

/* Where the piece of whole nodes that begins at an op ends, with as many ops as a group may have. The
 * views that a node reads stand before its ops. */
static uint32_t piece_end(const attempt *a, const br_group *group, uint32_t begin)
{
    uint32_t end = begin, node = BR_NONE, after = begin;
    if (group->n_ops - begin <= MOST_OPS)
        return group->n_ops;
    for (uint32_t i = begin; i < group->n_ops; i++) {
        const br_op *op = &a->b->ops[group->ops[i]];
        if (op->is_view)
            continue;
        if (op->node != node && after > begin) { /* a node has ended */
            if (end > begin && after - begin > MOST_OPS)
                return end;
            end = after;
        }
        node = op->node;
        after = i + 1;
    }
    return end > begin ? end : group->n_ops;
}

/* More ops than a partition may have, as those of a deep model in training: in pieces of whole nodes,
 * in the order of the graph. */
static gb_status make_pieces(attempt *a, const br_group *whole)
{
    for (uint32_t begin = 0, end; begin < whole->n_ops; begin = end) {
        end = piece_end(a, whole, begin);
        br_group piece = {.ops = whole->ops + begin, .n_ops = end - begin};
        BR_TRY(list_nodes(a, &piece));
        BR_TRY(join_partitions(a, piece.ops, piece.n_ops, &piece.partition));
        BR_TRY(finish_group(
                a, &piece, piece.partition ? NULL : "its ops are not fused as a whole"));
    }
    return GB_SUCCESS;
}

static gb_status make_group(attempt *a, uint32_t class)
{
    br_group group = {0};
    uint32_t n_parts;
    BR_TRY(gather_ops(a, class, &group, &n_parts));
    const char *reason = judge(a, &group);
    if (!reason && n_parts > 1) {
        BR_TRY(join_partitions(a, group.ops, group.n_ops, &group.partition));
        if (!group.partition && split_nodes(a, &group))
            return GB_SUCCESS;
        if (!group.partition && group.n_ops > MOST_OPS)
            return make_pieces(a, &group);
        if (!group.partition)
            reason = "its ops are not fused as a whole";
    } else if (!reason) {
        for (uint32_t p = 0; p < a->n_partitions && !group.partition; p++)
            if (a->is_compute[p] && find_class(a, p) == class) {
                group.partition = a->partitions[p];
                a->partitions[p] = NULL;
            }
    }
    return finish_group(a, &group, reason);
}

/* ---- what is needed outside ---- */

/* Marks the views that somebody outside or a group reads by name. */
static void need(attempt *a, uint32_t value, const char *reason)
{
    const gb_bridge_graph *graph = a->b->graph;
    while (value != BR_NONE && a->provider[value] == BR_NONE) {
        uint32_t node = graph->values[value].producer;
        if (node == BR_NONE || !a->b->is_view_node[node] || a->module->fates[node].reason)
            return;
        a->module->fates[node].reason = reason;
        value = graph->nodes[node].args[0].values[0];
    }
}

static void force_group(attempt *a, uint32_t group, const char *reason)
{
    const br_group *g = &a->module->groups[group];
    for (uint32_t i = 0; i < g->n_nodes; i++)
        force(a, g->nodes[i], reason);
    a->is_stale = true;
}

/* A value would have two makers: a view is to be the framework's, else all views, else all. */
static void leave_view(attempt *a, uint32_t value)
{
    gb_bridge_module *module = a->module;
    uint32_t node = a->b->graph->values[value].producer;
    br_log(2, "%s would have two makers", a->b->graph->values[value].name);
    a->is_stale = true;
    if (node != BR_NONE && a->b->is_view_node[node] && !module->views_outside)
        module->is_view_outside[value] = true;
    else if (!module->views_outside)
        module->views_outside = true;
    else
        for (uint32_t g = 0; g < module->n_groups; g++)
            force_group(a, g, "its results would have two makers");
}

/* A view that a group writes as a tensor of its own must be read by groups only. */
static bool providers_are_clear(attempt *a)
{
    const gb_bridge_graph *graph = a->b->graph;
    bool are_clear = true;
    for (uint32_t g = 0; g < a->module->n_groups; g++)
        for (uint32_t i = 0; i < a->module->groups[g].n_outputs; i++) {
            uint32_t value = a->module->groups[g].outputs[i].value;
            uint32_t node = graph->values[value].producer;
            bool is_view = node != BR_NONE && a->b->is_view_node[node];
            if (a->provider[value] != BR_NONE || (is_view && a->b->has_writes)) {
                leave_view(a, value);
                are_clear = false;
            }
            a->provider[value] = g;
        }
    return are_clear;
}

static bool node_is_outside(const attempt *a, uint32_t node)
{
    return a->b->reasons[node] || a->module->forced[node];
}

/* Does a group write a tensor of its own in the place of a view of an input? */
static bool is_input_view(const attempt *a, uint32_t value)
{
    uint32_t node = a->b->graph->values[value].producer, storage = a->b->bindings[value].storage;
    return a->provider[value] != BR_NONE && node != BR_NONE && a->b->is_view_node[node] &&
           storage != BR_NONE && a->b->storage_is_input[br_find_storage(a->b, storage)];
}

/* Sets fates. False: a view would have two makers, and all is to be done again without. */
static bool settle_fates(attempt *a)
{
    gb_bridge_module *module = a->module;
    const gb_bridge_graph *graph = a->b->graph;
    for (uint32_t v = 0; v < graph->n_values; v++)
        a->provider[v] = BR_NONE;
    if (!providers_are_clear(a))
        return false;
    for (uint32_t n = 0; n < graph->n_nodes; n++)
        module->fates[n] = (br_fate){.group = BR_NONE};
    for (uint32_t g = 0; g < module->n_groups; g++)
        for (uint32_t i = 0; i < module->groups[g].n_nodes; i++)
            module->fates[module->groups[g].nodes[i]].group = g;
    for (uint32_t n = 0; n < graph->n_nodes; n++)
        if (node_is_outside(a, n))
            module->fates[n].reason = module->forced[n] ? module->forced[n] : a->b->reasons[n];
    for (uint32_t n = 0; n < graph->n_nodes; n++) {
        if (!node_is_outside(a, n))
            continue;
        for (uint32_t i = 0; i < graph->nodes[n].n_args; i++)
            for (uint32_t k = 0;
                    graph->nodes[n].args[i].values && k < graph->nodes[n].args[i].count; k++) {
                uint32_t value = graph->nodes[n].args[i].values[k];
                need(a, value, "a view that a node outside reads");
            }
    }
    for (uint32_t i = 0; i < graph->n_outputs; i++) {
        if (is_input_view(a, graph->outputs[i])) {
            leave_view(a, graph->outputs[i]);
            return false;
        }
        need(a, graph->outputs[i], "a view that leaves the graph");
    }
    for (uint32_t g = 0; g < module->n_groups; g++)
        for (uint32_t i = 0; i < module->groups[g].n_inputs; i++)
            need(a, module->groups[g].inputs[i].value, "a view that a group reads, free as it is");
    for (uint32_t n = 0; n < graph->n_nodes; n++) {
        br_fate *fate = &module->fates[n];
        fate->is_absorbed = !fate->reason && fate->group == BR_NONE && a->b->is_view_node[n];
    }
    return true;
}

/* Values that groups and nodes outside read must be there: an input, an output of a group, or what
 * a node outside makes. A node that gives less than that is forced outside. */
static void check_reads(attempt *a)
{
    gb_bridge_module *module = a->module;
    const gb_bridge_graph *graph = a->b->graph;
    for (uint32_t v = 0; v < graph->n_values; v++) {
        uint32_t node = graph->values[v].producer;
        if (node == BR_NONE || module->fates[node].group == BR_NONE || a->provider[v] != BR_NONE)
            continue;
        bool is_read = graph->values[v].is_output;
        for (uint32_t n = 0; n < graph->n_nodes && !is_read; n++) {
            if (!module->fates[n].reason)
                continue;
            for (uint32_t i = 0; i < graph->nodes[n].n_args; i++)
                for (uint32_t k = 0;
                        graph->nodes[n].args[i].values && k < graph->nodes[n].args[i].count; k++)
                    is_read = is_read || graph->nodes[n].args[i].values[k] == v;
        }
        for (uint32_t g = 0; g < module->n_groups && !is_read; g++)
            for (uint32_t i = 0; i < module->groups[g].n_inputs; i++)
                is_read = is_read || module->groups[g].inputs[i].value == v;
        if (is_read) {
            force(a, node, "its result is not there where it is read");
            a->is_stale = true;
        }
    }
}

static void mark_inner(attempt *a)
{
    gb_bridge_module *module = a->module;
    const gb_bridge_graph *graph = a->b->graph;
    for (uint32_t g = 0; g < module->n_groups; g++)
        for (uint32_t i = 0; i < module->groups[g].n_outputs; i++) {
            uint32_t v = module->groups[g].outputs[i].value;
            bool is_seen = graph->values[v].is_output;
            for (uint32_t n = 0; n < graph->n_nodes && !is_seen; n++) {
                if (!module->fates[n].reason)
                    continue;
                for (uint32_t k = 0; k < graph->nodes[n].n_args; k++)
                    for (uint32_t e = 0;
                            graph->nodes[n].args[k].values && e < graph->nodes[n].args[k].count;
                            e++)
                        is_seen = is_seen || graph->nodes[n].args[k].values[e] == v;
            }
            module->groups[g].outputs[i].is_inner = !is_seen;
            module->groups[g].outputs[i].is_opaque = !is_seen && module->options.opaque_outputs;
        }
}

static void release_attempt(attempt *a)
{
    for (size_t p = 0; p < a->n_partitions && a->partitions; p++)
        gb_partition_destroy(a->partitions[p]);
    free((void *)a->partitions);
    gb_graph_destroy(a->graph);
}

void br_release_groups(gb_bridge_module *module)
{
    for (uint32_t g = 0; g < module->n_groups; g++) {
        br_group *group = &module->groups[g];
        for (uint32_t k = 0; k < group->n_kernels; k++)
            br_kernel_destroy(group->kernels[k]);
        gb_partition_destroy(group->partition);
        free((void *)group->kernels);
        pthread_mutex_destroy(&group->lock);
    }
    module->n_groups = 0;
}

static gb_status group_up(attempt *a)
{
    gb_bridge_module *module = a->module;
    uint32_t culprit = BR_NONE;
    BR_TRY(make_partitions(a));
    if (a->is_stale)
        return GB_SUCCESS;
    module->groups = br_alloc(&module->arena, a->n_partitions + a->b->n_ops / LEAST_PIECE + 1,
            sizeof *module->groups);
    a->provider = br_alloc(&module->arena, module->graph->n_values, sizeof *a->provider);
    if (module->arena.failed)
        return br_out_of_memory();
    BR_TRY(classify(a));
    for (uint32_t p = 0; p < a->n_partitions; p++)
        if (a->is_compute[p] && find_class(a, p) == p)
            BR_TRY(make_group(a, p));
    for (uint32_t g = 0; g < module->n_groups; g++)
        a->is_stale = a->is_stale || has_forced_node(a, &module->groups[g]);
    if (a->is_stale)
        return GB_SUCCESS;
    if (!settle_fates(a))
        return GB_SUCCESS;
    check_reads(a);
    if (a->is_stale)
        return GB_SUCCESS;
    BR_TRY(br_order_steps(module, &culprit));
    if (culprit != BR_NONE)
        force_group(a, culprit, "its group would have to wait for itself");
    else
        mark_inner(a);
    return GB_SUCCESS;
}

static void count_flops(gb_bridge_module *module)
{
    const br_builder *b = &module->builder;
    module->flops = module->group_flops = 0;
    for (uint32_t g = 0; g < module->n_groups; g++)
        module->group_flops += module->groups[g].flops;
    for (uint32_t i = 0; i < b->n_ops; i++) {
        gb_op *op;
        double flops = 0, bytes;
        if (b->ops[i].is_view || b->ops[i].kind == GB_OP_WILDCARD ||
                br_make_gb_op(b, i, &op) != GB_SUCCESS)
            continue;
        if (gb_op_get_work(op, &flops, &bytes) == GB_SUCCESS)
            module->flops += flops;
        gb_op_destroy(op);
    }
}

static bool is_in_list(const char *list, const char *op)
{
    size_t length = strlen(op);
    for (const char *at = list; at && *at;) {
        size_t n = strcspn(at, ",");
        if (n == length && strncmp(at, op, n) == 0)
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

gb_status br_make_groups(gb_bridge_module *module)
{
    const gb_bridge_graph *graph = module->graph;
    module->forced = br_alloc(&module->arena, graph->n_nodes, sizeof *module->forced);
    module->fates = br_alloc(&module->arena, graph->n_nodes, sizeof *module->fates);
    module->is_split = br_alloc(&module->arena, graph->n_nodes, sizeof *module->is_split);
    module->is_view_outside =
            br_alloc(&module->arena, graph->n_values, sizeof *module->is_view_outside);
    if (module->arena.failed)
        return br_out_of_memory();
    for (uint32_t n = 0; n < graph->n_nodes; n++)
        if (is_in_list(module->options.disabled_ops, graph->nodes[n].op))
            module->forced[n] = "disabled by the caller";
    for (int i = 0;; i++) {
        module->views_outside = module->views_outside || i >= MOST_ATTEMPTS / 2;
        module->builder = (br_builder){.graph = graph,
                .arena = &module->arena,
                .forced = module->forced,
                .is_view_outside = module->is_view_outside,
                .views_outside = module->views_outside};
        attempt a = {.module = module, .b = &module->builder};
        BR_TRY(br_map_graph(a.b));
        if (i == MOST_ATTEMPTS)
            for (uint32_t n = 0; n < graph->n_nodes; n++)
                if (!module->forced[n])
                    module->forced[n] = "no partition settled";
        if (i > MOST_ATTEMPTS)
            return br_fail(GB_RUNTIME_ERROR, "groups do not settle");
        gb_status status = group_up(&a);
        release_attempt(&a);
        br_log(2, "attempt %d: %u ops, %u groups%s", i, module->builder.n_ops, module->n_groups,
                a.is_stale ? ", done again" : "");
        if (status != GB_SUCCESS)
            return status;
        if (!a.is_stale)
            break;
        br_release_groups(module);
    }
    count_flops(module);
    return GB_SUCCESS;
}

/* Ends and contents of constants of a graph that is to be given away. */
static gb_status set_ends(
        const gb_bridge_module *module, const br_group *group, bool is_alone, gb_graph *graph)
{
    const br_builder *b = &module->builder;
    for (uint32_t i = 0; i < group->n_all_inputs; i++) {
        const br_port *port = &group->inputs[i];
        const void *data = port->value == BR_NONE ? b->wires[port->wire].data
                                                  : module->graph->values[port->value].data;
        gb_logical_tensor tensor;
        if (!data || gb_graph_find_tensor(graph, port->wire, &tensor) != GB_SUCCESS ||
                tensor.property != GB_PROPERTY_CONSTANT)
            continue;
        gb_status status = gb_graph_make_constant(graph, &tensor, data);
        if (status != GB_SUCCESS)
            return br_fail_library(status, "constant");
    }
    for (uint32_t i = 0; i < group->n_outputs; i++) {
        if (!is_alone && group->outputs[i].is_inner)
            continue;
        gb_status status = gb_graph_make_output(graph, group->outputs[i].wire);
        if (status != GB_SUCCESS)
            return br_fail_library(status, "output");
    }
    return GB_SUCCESS;
}

/* The ops of all groups, and the views between them, which the framework makes otherwise. */
static gb_status add_all_ops(const gb_bridge_module *module, gb_graph *graph)
{
    const br_builder *b = &module->builder;
    bool *is_wanted = calloc((size_t)b->n_ops + 1, sizeof *is_wanted);
    bool *is_read = calloc((size_t)b->n_wires + 1, sizeof *is_read);
    gb_status status = is_wanted && is_read ? GB_SUCCESS : br_out_of_memory();
    for (uint32_t g = 0; g < module->n_groups && status == GB_SUCCESS; g++)
        for (uint32_t i = 0; i < module->groups[g].n_ops; i++)
            is_wanted[module->groups[g].ops[i]] = true;
    for (uint32_t i = b->n_ops; i-- > 0 && status == GB_SUCCESS;) {
        const br_op *op = &b->ops[i];
        bool is_step = op->is_view && op->kind != GB_OP_WILDCARD;
        is_wanted[i] = is_wanted[i] || (is_step && is_read[op->outputs[0]]);
        for (uint32_t k = 0; k < op->n_inputs && is_wanted[i]; k++)
            is_read[op->inputs[k]] = true;
    }
    for (uint32_t i = 0; i < b->n_ops && status == GB_SUCCESS; i++)
        if (is_wanted[i])
            status = add_ops(b, graph, &i, 1);
    free(is_wanted);
    free(is_read);
    return status;
}

gb_status br_export_graph(const gb_bridge_module *module, size_t index, gb_graph **graph)
{
    gb_graph *made;
    gb_status status =
            gb_graph_create_with_fpmath_mode(&made, GB_ENGINE_CPU, module->options.fpmath);
    if (status != GB_SUCCESS)
        return br_fail_library(status, "graph");
    status = index == SIZE_MAX ? add_all_ops(module, made)
                               : add_ops(&module->builder, made, module->groups[index].ops,
                                         module->groups[index].n_ops);
    for (uint32_t g = 0; g < module->n_groups && status == GB_SUCCESS; g++)
        if (index == SIZE_MAX || g == index)
            status = set_ends(module, &module->groups[g], index != SIZE_MAX, made);
    if (status != GB_SUCCESS) {
        gb_graph_destroy(made);
        return status;
    }
    *graph = made;
    return GB_SUCCESS;
}
