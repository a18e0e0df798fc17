/* Regions: several anchors that one kernel runs, and where they come in the order of groups. */
#include "fusion_case.h"

static fusion_case c;

static void open_case(void)
{
    fusion_open(&c);
}

static void close_case(void)
{
    gb_graph_destroy(c.graph);
}

TestSuite(regions, .init = open_case, .fini = close_case);

/* MatMul > SoftMax > MatMul. */
static gb_status match_sandwich(const gb_graph *graph, const gb_pass_context *context,
        const gb_op *root, gb_op_list *list, void *parts)
{
    (void)context;
    (void)parts;
    const gb_value *in = &graph->values[root->inputs[0]], *out = &graph->values[root->outputs[0]];
    if (in->producer == GB_NONE || out->n_uses == 0)
        return GB_SUCCESS;
    uint32_t ops[3];
    ops[0] = out->uses[0].op;
    ops[1] = root->index;
    ops[2] = in->producer;
    bool fits =
            graph->ops[ops[0]]->kind == GB_OP_MATMUL && graph->ops[ops[2]]->kind == GB_OP_MATMUL;
    return fits ? gb_op_list_add_all(list, 3, ops) : GB_SUCCESS;
}

static const gb_region sandwich = {
        .name = "sandwich", .root = GB_OP_SOFTMAX, .parts_bytes = 1, .match = match_sandwich};

static const gb_region *sandwich_only(uint32_t index)
{
    return index == 0 ? &sandwich : NULL;
}

static size_t op(gb_op_kind kind, size_t n_inputs, const size_t *inputs)
{
    return fusion_op_outputs(&c, kind, n_inputs, inputs, 1, (const gb_data_type[]){GB_F32});
}

#define OP(kind, ...)                                                                              \
    op(GB_OP_##kind, sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t),                             \
            (const size_t[]){__VA_ARGS__})

static size_t square(void)
{
    return fusion_tensor(&c, GB_F32, 2, (const int64_t[]){4, 4});
}

/* Groups as "anchor:post-ops>outputs" by ids; a region shows its name in front. */
static void expect_groups(size_t output, const char *expected)
{
    char text[FUSION_CASE_TEXT] = "";
    size_t length = 0;
    gb_capability capability = fusion_capability;
    capability.region = sandwich_only;
    capability.accepts_region = NULL;
    gb_pass_context context = {.capability = &capability, .output_ids = &output, .n_outputs = 1};
    fusion_ok(gb_graph_finalize(c.graph));
    fusion_ok(gb_graph_infer(c.graph));
    fusion_ok(gb_pass_group(c.graph, &context));
    fusion_ok(gb_check_graph(c.graph, &context, "group"));
    for (uint32_t g = 0; g < context.groups->n_groups; g++) {
        const gb_group *group = &context.groups->groups[g];
        length += (size_t)sprintf(
                text + length, "%s%s", g ? " " : "", group->region ? group->region->name : "");
        if (group->anchor != GB_NONE)
            length += (size_t)sprintf(text + length, "%zu", c.graph->ops[group->anchor]->id);
        for (uint32_t i = 0; i < group->n_ops; i++)
            length += (size_t)sprintf(
                    text + length, "%s%zu", i ? "," : ":", c.graph->ops[group->ops[i]]->id);
        for (uint32_t i = 0; i < group->n_outputs; i++)
            length += (size_t)sprintf(text + length, "%s%zu", i ? "," : ">",
                    c.graph->values[group->outputs[i]].tensor.id);
    }
    cr_expect_str_eq(text, expected, "\n got      %s\n expected %s", text, expected);
    gb_groups_free(context.groups);
}

Test(regions, a_region_is_one_group)
{
    size_t q = square(), k = square(), v = square();
    size_t x = OP(RELU, OP(MATMUL, OP(SOFTMAX, OP(MATMUL, q, k)), v));
    expect_groups(x, "sandwich:0,1,2>5 :3>6");
}

Test(regions, what_feeds_a_region_comes_before_it)
{
    size_t q = square(), k = square();
    size_t p = OP(SOFTMAX, OP(MATMUL, q, k)); /* ops 0, 1 */
    size_t v = OP(STATIC_TRANSPOSE, k);       /* op 2, ahead of op 3 */
    expect_groups(OP(MATMUL, p, v), "2>4 sandwich:0,1,3>5");
}

Test(regions, what_reads_the_middle_of_a_region_comes_behind_it)
{
    size_t q = square(), k = square(), v = square();
    size_t s = OP(MATMUL, q, k); /* op 0, tensor 3 */
    size_t p = OP(SOFTMAX, s);   /* op 1 */
    OP(STATIC_TRANSPOSE, s);     /* op 2 */
    expect_groups(OP(MATMUL, p, v), "sandwich:0,1,3>3,6 2");
}

Test(regions, a_region_that_waits_for_itself_is_dropped)
{
    size_t q = square(), k = square();
    size_t s = OP(MATMUL, q, k);
    size_t p = OP(SOFTMAX, s);
    size_t v = OP(STATIC_TRANSPOSE, s);
    expect_groups(OP(MATMUL, p, v), "0>2 1>3 2>4 3>5");
}

/* No graph that was finalized is like that. */
Test(regions, ops_that_wait_for_each_other_are_an_error)
{
    size_t first = OP(MATMUL, square(), square()), last = OP(SOFTMAX, OP(RELU, first));
    gb_capability capability = fusion_capability;
    gb_pass_context context = {.capability = &capability, .output_ids = &last, .n_outputs = 1};
    fusion_ok(gb_graph_finalize(c.graph));
    fusion_ok(gb_graph_infer(c.graph));
    c.graph->ops[0]->inputs[0] = c.graph->ops[2]->outputs[0];
    cr_expect_eq(gb_pass_group(c.graph, &context), GB_RUNTIME_ERROR);
    cr_expect_null(context.groups);
}
