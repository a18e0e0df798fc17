/* Layouts of values between kernels: dense, unless all kernels that touch a value take another
 * format and gain by it. */
#include "fusion/passes/passes.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct candidates {
    uint32_t n;
    gb_format_candidate list[GB_FORMAT_CANDIDATES];
} candidates;

static candidates ask_reader(const gb_capability *capability, const gb_op *op, uint32_t input)
{
    candidates o = {0};
    if (capability->reads_formats)
        o.n = capability->reads_formats(op, input, o.list);
    return o;
}

/* Keeps what is in both lists; the gains add up. */
static void intersect(candidates *own, const candidates *other)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < own->n; i++)
        for (uint32_t k = 0; k < other->n; k++)
            if (own->list[i].format == other->list[k].format) {
                own->list[kept] = own->list[i];
                own->list[kept++].gain += other->list[k].gain;
            }
    own->n = kept;
}

/* The candidate that gains most; NULL when none does. */
static const gb_format *best_of(const candidates *o)
{
    const gb_format_candidate *best = NULL;
    for (uint32_t i = 0; i < o->n; i++)
        if (o->list[i].gain > 0 && (!best || o->list[i].gain > best->gain))
            best = &o->list[i];
    return best ? best->format : NULL;
}

static bool has_format(const candidates *o, size_t id)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (o->list[i].format->id == id)
            return true;
    return false;
}

/* Ops that treat all elements alike leave the order of axes to what reads their result, but not
 * blocks. */

enum {
    MOST_POST_OPS = 4, /* such ops one after another */
    MOST_VALUES = 64   /* whose readers are asked on behalf of one value */
};

/* Steps over such an op to its only reader. */
static bool next_op(
        const gb_graph *graph, const gb_pass_context *context, const gb_op **op, gb_use *use)
{
    if (!gb_is_uniform(context, *op) || graph->values[(*op)->outputs[0]].n_uses != 1)
        return false;
    *use = graph->values[(*op)->outputs[0]].uses[0];
    *op = graph->ops[use->op];
    return true;
}

static void drop_blocks(candidates *o)
{
    for (uint32_t i = o->n; i-- > 0;)
        if (o->list[i].format->n_blocks)
            o->list[i] = o->list[--o->n];
}

/* Preferred layouts of other partitions -------------------------------------------------------- */

typedef struct preference {
    const gb_graph *graph;
    const gb_partitioning *partitioning;
    const gb_pass_context context; /* capability only */
    int *values;                   /* that were asked for */
} preference;

static const gb_part *layouts_part_of(const preference *w, uint32_t op)
{
    return &w->partitioning->parts[w->partitioning->part_of[op]];
}

/* Does the kernel of the part's anchor run as if it was alone? Partitions of several anchors may
 * have kernels of their own. */
static bool has_one_anchor(const preference *w, const gb_part *part)
{
    uint32_t anchors = 0;
    for (uint32_t i = 0; i < part->n_ops; i++)
        anchors += !w->context.capability->is_pointwise(w->graph->ops[part->ops[i]]);
    return anchors == 1 && !part->unsupported;
}

static candidates preferred_by_readers(const preference *w, uint32_t value);

/* What the readers of the part's result prefer, seen from an op that is its anchor or behind it:
 * from there on ops are element-wise, and each has one reader until the part is left. */
static candidates preferred_by_result(const preference *w, const gb_part *part, const gb_op *op)
{
    uint32_t result = op->outputs[0];
    while (op->n_outputs == 1 && w->graph->values[result].n_uses == 1) {
        const gb_op *next = w->graph->ops[w->graph->values[result].uses[0].op];
        if (layouts_part_of(w, next->index) != part)
            break;
        if (!w->context.capability->is_pointwise(next))
            return (candidates){0};
        op = next;
        result = op->outputs[0];
    }
    const gb_value *v = &w->graph->values[result];
    for (uint32_t i = 0; i < v->n_uses; i++)
        if (layouts_part_of(w, v->uses[i].op) == part)
            return (candidates){0};
    return op->n_outputs == 1 ? preferred_by_readers(w, result) : (candidates){0};
}

/* A post-op that reads an image as large as the result, which it lies beside, prefers what suits the
 * result. */
static candidates preferred_beside_result(
        const preference *w, const gb_part *part, const gb_op *op, uint32_t input)
{
    if (op->n_inputs < 2 || !gb_follows_elements(&w->context, op) ||
            !gb_dims_equal(gb_op_input(op, input), gb_op_output(op, 0)))
        return (candidates){0};
    return preferred_by_result(w, part, op);
}

/* What the use of a value in a part with one anchor prefers: the anchor's kernel or such a post-op,
 * perhaps behind element-wise ops; kernels that keep formats gain what the readers of their result
 * do. */
static candidates preferred_by_anchor(const preference *w, const gb_part *part, gb_use use)
{
    const gb_capability *capability = w->context.capability;
    const gb_op *op = w->graph->ops[use.op];
    candidates o = ask_reader(capability, op, use.input);
    if (o.n > 0 && capability->keeps_formats && capability->keeps_formats(op)) {
        candidates handed = o, behind = preferred_by_result(w, part, op);
        intersect(&handed, &behind);
        return handed.n > 0 ? handed : o;
    }
    if (o.n > 0)
        return o;
    o = preferred_beside_result(w, part, op, use.input);
    for (int i = 0; i < MOST_POST_OPS && o.n == 0; i++) {
        if (!next_op(w->graph, &w->context, &op, &use) || layouts_part_of(w, op->index) != part)
            return (candidates){0};
        o = ask_reader(capability, op, use.input);
        if (o.n == 0)
            o = preferred_beside_result(w, part, op, use.input);
    }
    drop_blocks(&o);
    return o;
}

/* Can the part run on the value in any format? Its other operands are small: not whole, at least.
 */
static bool follows_value(const preference *w, const gb_part *part, uint32_t value)
{
    const gb_graph *graph = w->graph;
    const gb_logical_tensor *space = &graph->values[value].tensor;
    bool follows = !part->unsupported;
    for (uint32_t i = 0; i < part->n_ops && follows; i++) {
        const gb_op *op = graph->ops[part->ops[i]];
        follows = gb_follows_elements(&w->context, op) && gb_dims_equal(gb_op_output(op, 0), space);
        for (uint32_t k = 0; k < op->n_inputs && follows; k++) {
            uint32_t in = op->inputs[k], producer = graph->values[in].producer;
            bool inside = producer != GB_NONE && layouts_part_of(w, producer) == part;
            follows = in == value || inside || !gb_dims_equal(gb_op_input(op, k), space);
        }
    }
    return follows;
}

/* What several preferred layouts have in common; nothing is left once they differ. */
typedef struct agreement {
    bool begun;
    candidates common;
} agreement;

static void agree(agreement *a, const candidates *own)
{
    if (a->begun)
        intersect(&a->common, own);
    else
        a->common = *own;
    a->begun = true;
}

static bool can_agree(const agreement *a)
{
    return !a->begun || a->common.n > 0;
}

/* Element-wise ops hand the layout on: the part prefers what its results' readers do. */
static candidates preferred_by_post_ops(const preference *w, const gb_part *part, uint32_t value)
{
    agreement a = {0};
    if (!follows_value(w, part, value))
        return a.common;
    for (uint32_t i = 0; i < part->n_ops && can_agree(&a); i++) {
        uint32_t result = w->graph->ops[part->ops[i]]->outputs[0], outside = 0;
        const gb_value *v = &w->graph->values[result];
        for (uint32_t k = 0; k < v->n_uses; k++)
            outside += layouts_part_of(w, v->uses[k].op) != part;
        if (v->n_uses > 0 && outside == 0)
            continue;
        candidates own = preferred_by_readers(w, result);
        agree(&a, &own);
    }
    return a.common;
}

/* What all parts that read a value, other than the one that makes it, prefer. */
static candidates preferred_by_readers(const preference *w, uint32_t value)
{
    const gb_value *v = &w->graph->values[value];
    agreement a = {0};
    if (++*w->values > MOST_VALUES)
        return a.common;
    for (uint32_t i = 0; i < v->n_uses && can_agree(&a); i++) {
        const gb_part *part = layouts_part_of(w, v->uses[i].op);
        if (v->producer != GB_NONE && part == layouts_part_of(w, v->producer))
            continue;
        candidates own = has_one_anchor(w, part) ? preferred_by_anchor(w, part, v->uses[i])
                                                 : preferred_by_post_ops(w, part, value);
        agree(&a, &own);
    }
    return a.common;
}

size_t gb_preferred_layout(const gb_graph *graph, const gb_partitioning *partitioning,
        const gb_capability *capability, uint32_t value)
{
    int values = 0;
    const preference w = {graph, partitioning, {.capability = capability}, &values};
    candidates common = preferred_by_readers(&w, value);
    const gb_format *best = best_of(&common);
    /* Readers that do not care leave an order of axes to the writer. */
    if (!best && common.n > 0 && !common.list[0].format->n_blocks)
        best = common.list[0].format;
    return best ? best->id : 0;
}

/* What the readers of a value that enters the graph prefer, which is one part. */
static gb_status preferred_inside(
        const gb_graph *graph, const gb_capability *capability, uint32_t value, candidates *common)
{
    uint32_t *zeros = gb_calloc(graph->n_ops, sizeof *zeros);
    uint32_t *ops = gb_calloc(graph->n_ops, sizeof *ops);
    gb_part whole = {.n_ops = graph->n_ops, .ops = ops};
    const gb_partitioning one = {.n_parts = 1, .parts = &whole, .part_of = zeros};
    for (uint32_t i = 0; ops && i < graph->n_ops; i++)
        ops[i] = i;
    int values = 0;
    const preference w = {graph, &one, {.capability = capability}, &values};
    if (ops && zeros)
        *common = preferred_by_readers(&w, value);
    gb_status status = ops && zeros ? GB_SUCCESS : GB_OUT_OF_MEMORY;
    free(zeros);
    free(ops);
    return status;
}

gb_status gb_preferred_input_layout(
        const gb_graph *graph, const gb_capability *capability, uint32_t value, size_t *layout)
{
    candidates common;
    GB_TRY(preferred_inside(graph, capability, value, &common));
    const gb_format *best = best_of(&common);
    *layout = best ? best->id : 0;
    return GB_SUCCESS;
}

gb_status gb_input_formats(const gb_graph *graph, const gb_capability *capability, uint32_t value,
        uint32_t *n, gb_format_candidate *formats)
{
    candidates common;
    GB_TRY(preferred_inside(graph, capability, value, &common));
    *n = common.n;
    for (uint32_t i = 0; i < common.n; i++)
        formats[i] = common.list[i];
    return GB_SUCCESS;
}

/* Inside of a partition ------------------------------------------------------------------------ */

typedef struct choice {
    gb_graph *graph;
    const gb_pass_context *context;
} choice;

/* The group that the op is the anchor of, NULL when it is none. */
static const gb_group *group_of_anchor(const choice *c, uint32_t op)
{
    const gb_groups *groups = c->context->groups;
    for (uint32_t g = 0; g < groups->n_groups; g++)
        if (groups->groups[g].anchor == op)
            return &groups->groups[g];
    return NULL;
}

/* The group that writes the value as it is, NULL when there is none. */
static const gb_group *group_of_writer(const choice *c, uint32_t value)
{
    const gb_groups *groups = c->context->groups;
    for (uint32_t g = 0; g < groups->n_groups; g++)
        for (uint32_t i = 0; i < groups->groups[g].n_outputs; i++)
            if (groups->groups[g].outputs[i] == value)
                return &groups->groups[g];
    return NULL;
}

/* Is the op taken over by the kernel of an anchor, or one of several that a region runs? */
static bool is_taken_over(const choice *c, uint32_t op)
{
    const gb_groups *groups = c->context->groups;
    bool taken = false;
    for (uint32_t g = 0; g < groups->n_groups && !taken; g++) {
        const gb_group *group = &groups->groups[g];
        taken = gb_list_has(group->n_prologue, group->prologue, op) ||
                (group->region && gb_list_has(group->n_ops, group->ops, op));
    }
    return taken;
}

/* Must a result of the group lie dense? */
static bool has_dense_result(const choice *c, const gb_group *group)
{
    bool dense = false;
    for (uint32_t i = 0; i < group->n_outputs; i++) {
        const gb_value *result = &c->graph->values[group->outputs[i]];
        dense = dense || (gb_leaves_partition(c->context, result) && !result->preferred_layout);
    }
    return dense;
}

static void drop_kept(candidates *o)
{
    for (uint32_t i = o->n; i-- > 0;)
        if (o->list[i].kept)
            o->list[i] = o->list[--o->n];
}

/* What the kernel takes that makes use of a value, perhaps behind ops that it took over. */
static candidates ask_use(const choice *c, gb_use use)
{
    const gb_op *op = c->graph->ops[use.op];
    bool direct = group_of_anchor(c, op->index) != NULL;
    candidates o = {0};
    for (int i = 0; i <= MOST_POST_OPS; i++) {
        bool taken = is_taken_over(c, op->index);
        if (!taken && !group_of_anchor(c, op->index))
            return (candidates){0};
        o = ask_reader(c->context->capability, op, use.input);
        if (o.n > 0 || !taken || !next_op(c->graph, c->context, &op, &use))
            break;
    }
    if (!direct)
        drop_blocks(&o);
    const gb_group *group = group_of_anchor(c, op->index);
    if (group && has_dense_result(c, group))
        drop_kept(&o);
    return o;
}

static bool is_shared_memory(const choice *c, uint32_t value)
{
    bool shared = c->graph->values[value].view_of != GB_NONE;
    for (uint32_t v = 0; v < c->graph->n_values && !shared; v++)
        shared = c->graph->values[v].view_of == value;
    return shared;
}

/* What all groups that read the value take; `common` holds what others do. */
static void ask_readers(const choice *c, uint32_t value, candidates *common)
{
    const gb_value *v = &c->graph->values[value];
    for (uint32_t i = 0; i < v->n_uses && common->n; i++) {
        candidates own = ask_use(c, v->uses[i]);
        intersect(common, &own);
    }
}

/* Do all operands of the size of the result lie in the format? */
static bool operands_lie_in(const choice *c, const gb_group *group, const gb_format *format)
{
    bool good = true, any = false;
    for (uint32_t i = 0; i < group->n_ops && good; i++) {
        const gb_op *op = c->graph->ops[group->ops[i]];
        for (uint32_t k = 0; k < op->n_inputs && good; k++) {
            const gb_value *value = &c->graph->values[op->inputs[k]];
            if (!gb_dims_equal(&value->tensor, gb_op_output(op, 0)) ||
                    (value->producer != GB_NONE &&
                            gb_list_has(group->n_ops, group->ops, value->producer)))
                continue;
            good = any = gb_tensor_lies_in(&value->tensor, format);
        }
    }
    return good && any;
}

/* Post-ops hand an order of axes on that all their operands have. */
static candidates ask_post_ops(const choice *c, const gb_group *group, uint32_t value)
{
    const gb_format *format = gb_format_find(c->graph->values[value].preferred_layout);
    candidates o = {0};
    if (format && !format->n_blocks && operands_lie_in(c, group, format))
        o.list[o.n++] = (gb_format_candidate){.format = format, .gain = 0};
    return o;
}

static candidates ask_writer(const choice *c, uint32_t value)
{
    const gb_group *group = group_of_writer(c, value);
    candidates o = {0};
    if (group && group->anchor == GB_NONE && !group->region)
        return ask_post_ops(c, group, value);
    if (group && c->context->capability->writes_formats)
        o.n = c->context->capability->writes_formats(c->graph, group, value, o.list);
    return o;
}

static void drop_group(gb_groups *groups, const gb_group *group)
{
    uint32_t at = (uint32_t)(group - groups->groups);
    gb_group_clear(&groups->groups[at]);
    groups->n_groups--;
    memmove(groups->groups + at, groups->groups + at + 1,
            (groups->n_groups - at) * sizeof *groups->groups);
}

/* The strided side of a Reorder becomes the other one under a second name. */
static void merge_sides(choice *c, const gb_op *op, uint32_t strided, uint32_t opaque)
{
    gb_value *value = &c->graph->values[strided];
    value->tensor.layout_type = GB_LAYOUT_OPAQUE;
    value->tensor.layout_id = c->graph->values[opaque].tensor.layout_id;
    value->view_of = opaque;
    drop_group(c->context->groups, group_of_anchor(c, op->index));
}

/* Do the kernels on the strided side take the format of the other? */
static void try_without_reorder(choice *c, const gb_op *op)
{
    uint32_t in = op->inputs[0], out = op->outputs[0];
    gb_layout_type from = c->graph->values[in].tensor.layout_type;
    gb_layout_type to = c->graph->values[out].tensor.layout_type;
    bool reads = from == GB_LAYOUT_OPAQUE && to == GB_LAYOUT_STRIDED;
    bool writes = from == GB_LAYOUT_STRIDED && to == GB_LAYOUT_OPAQUE;
    uint32_t strided = reads ? out : in, opaque = reads ? in : out;
    const gb_value *value = &c->graph->values[strided];
    if ((!reads && !writes) || gb_graph_strides_count(c->graph, strided) ||
            is_shared_memory(c, strided) || is_shared_memory(c, opaque) ||
            gb_leaves_partition(c->context, value))
        return;
    size_t id = c->graph->values[opaque].tensor.layout_id;
    candidates common = {0};
    if (reads) {
        common.list[common.n++] = (gb_format_candidate){.format = gb_format_find(id), .gain = 0};
        ask_readers(c, strided, &common);
    } else if (value->n_uses == 1) {
        common = ask_writer(c, strided);
    }
    if (has_format(&common, id) && (writes || value->n_uses > 0))
        merge_sides(c, op, strided, opaque);
}

/* A value between groups, or a result whose layout is left to the library. */
static void choose_format(choice *c, uint32_t value)
{
    gb_value *v = &c->graph->values[value];
    bool leaves = gb_leaves_partition(c->context, v);
    if (!gb_is_dense(&v->tensor) || gb_graph_strides_count(c->graph, value) ||
            is_shared_memory(c, value) || (leaves && !v->preferred_layout))
        return;
    if (!leaves && v->n_uses == 0)
        return;
    candidates common = ask_writer(c, value);
    ask_readers(c, value, &common);
    bool wished = leaves && v->preferred_layout != GB_LAYOUT_OF_WRITER;
    const gb_format *format = wished ? gb_format_find(v->preferred_layout) : best_of(&common);
    if (format && has_format(&common, format->id))
        gb_format_apply(format, &v->tensor);
}

gb_status gb_pass_layouts(gb_graph *graph, gb_pass_context *context)
{
    choice c = {graph, context};
    for (uint32_t i = 0; i < graph->n_ops; i++)
        if (graph->ops[i]->kind == GB_OP_REORDER && group_of_anchor(&c, i))
            try_without_reorder(&c, graph->ops[i]);
    for (uint32_t i = 0; i < context->groups->n_groups; i++) {
        const gb_group *group = &context->groups->groups[i];
        for (uint32_t k = 0; k < group->n_outputs; k++)
            choose_format(&c, group->outputs[k]);
    }
    return GB_SUCCESS;
}
