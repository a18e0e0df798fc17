/* The region of two products of one source, of which one passes through links (the gate and its
 * activation) and then meets the other: they run as one kernel, and only the links' result is
 * written. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"
#include "kernels/gemm/matmul.h"
#include "kernels/plan/expansion.h"

#include <string.h>

enum { MOST_EXPANDED = 4 };
enum { SRC = GB_MATMUL_SRC, WEIGHTS = GB_MATMUL_WEIGHTS };

typedef struct chain {
    uint32_t n, links[GB_GROUP_LINKS];
} chain;

typedef struct product {
    const gb_op *op;
    uint32_t n_expanded, expanded[MOST_EXPANDED]; /* ops that make its weights of codes */
} product;

typedef struct gated {
    product gate, up;
    chain before;          /* links behind the gate, the last op first */
    chain after;           /* from the link that both products reach on */
    uint32_t made, result; /* values that leave the two */
} gated;

typedef struct finder {
    const gb_graph *graph;
    const gb_pass_context *context; /* NULL: members decide */
    const gb_group *members;
    gated *found;
} finder;

/* Finding -------------------------------------------------------------------------------------- */

static bool stays_inside(const finder *f, const gb_value *value)
{
    return value->n_uses > 0 && !(f->context && gb_leaves_partition(f->context, value));
}

/* The only reader of the value, if it is read once and only here. */
static const gb_op *only_reader(const finder *f, uint32_t value)
{
    const gb_value *v = &f->graph->values[value];
    return stays_inside(f, v) && v->n_uses == 1 ? f->graph->ops[v->uses[0].op] : NULL;
}

static bool is_link(const finder *f, const gb_op *op)
{
    const char *reason;
    return gb_is_member(f->members, op) && !gb_lowering_get(op->kind) &&
           gb_tile_supports(op, &reason) && op->n_outputs == 1 &&
           !gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false) &&
           gb_dims_equal(gb_op_output(op, 0), gb_op_output(f->found->up.op, 0));
}

/* A product like that of `up`, up to the weights? */
static bool is_gate(const finder *f, const gb_op *op)
{
    const gb_op *up = f->found->up.op;
    return gb_is_member(f->members, op) && op->kind == GB_OP_MATMUL && op != up &&
           op->inputs[SRC] == up->inputs[SRC] &&
           gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_A, false) ==
                   gb_op_attr_bool(up, GB_ATTR_TRANSPOSE_A, false) &&
           gb_op_input(op, WEIGHTS)->ndims == gb_op_input(up, WEIGHTS)->ndims &&
           gb_dims_equal(gb_op_output(op, 0), gb_op_output(up, 0));
}

/* Do only `join` and links in front of it read the result? */
static bool feeds_join_only(const finder *f, const gb_op *op, const gb_op *join)
{
    const gb_value *value = &f->graph->values[op->outputs[0]];
    for (uint32_t i = 0; i < value->n_uses; i++)
        if (value->uses[i].op != join->index &&
                !gb_lists_op(f->found->before.n, f->found->before.links, value->uses[i].op))
            return false;
    return stays_inside(f, value);
}

/* Readers come first: ops are tried in reverse topological order. */
static bool find_gate(finder *f, const gb_op *join)
{
    gated *g = f->found;
    for (uint32_t i = join->index; i-- > 0;) {
        const gb_op *op = f->graph->ops[i];
        bool gate = !g->gate.op && is_gate(f, op);
        if ((!gate && !is_link(f, op)) || !feeds_join_only(f, op, join))
            continue;
        if (gate)
            g->gate.op = op;
        else if (g->before.n < GB_GROUP_LINKS)
            g->before.links[g->before.n++] = op->index;
        else
            return false;
    }
    return g->gate.op != NULL;
}

/* The one input of `join` that the links behind the gate make. */
static bool find_made(finder *f, const gb_op *join)
{
    gated *g = f->found;
    g->made = GB_NONE;
    for (uint32_t i = 0; i < join->n_inputs; i++) {
        uint32_t value = join->inputs[i], producer = f->graph->values[value].producer;
        bool here =
                producer != GB_NONE && (producer == g->gate.op->index ||
                                               gb_lists_op(g->before.n, g->before.links, producer));
        if (!here)
            continue;
        if (g->made != GB_NONE && g->made != value)
            return false;
        g->made = value;
    }
    return g->made != GB_NONE;
}

static void find_after(finder *f, const gb_op *join)
{
    gated *g = f->found;
    for (const gb_op *op = join; op && is_link(f, op) && g->after.n < GB_GROUP_LINKS;) {
        g->after.links[g->after.n++] = op->index;
        g->result = op->outputs[0];
        op = only_reader(f, g->result);
    }
}

/* The producers of the weights that a product takes over, if nobody else reads what they make. */
static void find_expanded(const finder *f, product *p)
{
    uint32_t value = p->op->inputs[WEIGHTS];
    while (p->n_expanded < MOST_EXPANDED && only_reader(f, value)) {
        uint32_t producer = f->graph->values[value].producer;
        const gb_op *op = producer == GB_NONE ? NULL : f->graph->ops[producer];
        if (!op || !gb_is_member(f->members, op) || !gb_expansion_takes(op))
            return;
        p->expanded[p->n_expanded++] = producer;
        value = op->inputs[0];
    }
}

/* Codes as source are better multiplied as integers, and a single column is no matrix. */
static bool is_worth_it(const gb_graph *graph, const gb_op *up)
{
    const gb_logical_tensor *result = gb_op_output(up, 0);
    uint32_t producer = graph->values[up->inputs[SRC]].producer;
    return gb_op_input(up, WEIGHTS)->ndims >= 2 && result->ndims >= 1 &&
           result->dims[result->ndims - 1] > 1 && gb_tensor_count(result) > 0 &&
           (producer == GB_NONE || !gb_expansion_takes(graph->ops[producer]));
}

static bool find(const gb_graph *graph, const gb_pass_context *context, const gb_group *members,
        const gb_op *up, gated *found)
{
    finder f = {graph, context, members, found};
    memset(found, 0, sizeof *found);
    found->up.op = up;
    if (!is_worth_it(graph, up))
        return false;
    const gb_op *join = only_reader(&f, up->outputs[0]);
    if (!join || !is_link(&f, join) || !find_gate(&f, join) || !find_made(&f, join))
        return false;
    find_after(&f, join);
    find_expanded(&f, &found->gate);
    find_expanded(&f, &found->up);
    return true;
}

static gb_status match(
        const gb_graph *graph, const gb_pass_context *context, const gb_op *root, gb_op_list *ops)
{
    gated g;
    if (!find(graph, context, NULL, root, &g))
        return GB_SUCCESS;
    const product *products[] = {&g.gate, &g.up};
    const chain *chains[] = {&g.before, &g.after};
    for (int i = 0; i < 2; i++) {
        GB_TRY(gb_op_list_add(ops, products[i]->op->index));
        GB_TRY(gb_op_list_add_all(ops, products[i]->n_expanded, products[i]->expanded));
        GB_TRY(gb_op_list_add_all(ops, chains[i]->n, chains[i]->links));
    }
    return GB_SUCCESS;
}

/* Lowering ------------------------------------------------------------------------------------- */

static gb_group group_of(product *p, chain *links, uint32_t *output)
{
    gb_sort_ops(links->links, links->n);
    return (gb_group){.anchor = p->op->index,
            .n_prologue = p->n_expanded,
            .prologue = p->expanded,
            .n_links = links->n,
            .links = links->links,
            .n_outputs = 1,
            .outputs = output};
}

static gb_status build(
        gb_program *program, gated *g, gb_step *step, gb_gemm_problem *gemm, gb_gemm_problem *gate)
{
    uint8_t roles[GB_AXES], gate_roles[GB_AXES];
    gb_group with_gate = group_of(&g->gate, &g->before, &g->made);
    gb_group with_up = group_of(&g->up, &g->after, &g->result);
    gb_tile_locals locals = {.n = 1, .values = {g->made}};
    GB_TRY(gb_matmul_describe(program, &with_gate, &locals, step, gate, gate_roles));
    GB_TRY(gb_matmul_describe(program, &with_up, &locals, step, gemm, roles));
    for (int d = 0; d < gemm->tile.ndims; d++)
        if (roles[d] != gate_roles[d])
            roles[d] = GB_GEMM_BATCH;
    gemm->gate = gate;
    gb_gemm_orient(gemm, roles);
    return GB_SUCCESS;
}

static gb_status lower(gb_program *program, const gb_group *group)
{
    const gb_graph *graph = gb_program_graph(program);
    gated g;
    bool found = false;
    for (uint32_t i = 0; i < group->n_links && !found; i++) {
        const gb_op *op = graph->ops[group->links[i]];
        found = op->kind == GB_OP_MATMUL && find(graph, NULL, group, op, &g);
    }
    if (!found)
        return gb_fail(GB_INVALID_GRAPH, "a gated product has lost its parts");
    gb_gemm_problem gemm = {0}, gate = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "gated gemm", &step));
    GB_TRY(build(program, &g, step, &gemm, &gate));
    return gb_gemm_add(program, step, &gemm);
}

const gb_region_lowering gb_region_gated_matmul = {
        .region = {.name = "gated matmul", .root = GB_OP_MATMUL, .match = match}, .lower = lower};
