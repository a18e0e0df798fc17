/* Why ops are not fused: one small graph for each reason. */
#include "fusion_words.h"

TestSuite(explain, .init = open_case, .fini = close_case);

static bool refuses_bf16(const gb_op *op, const char **reason)
{
    bool runs = fusion_supports(op, reason);
    *reason = "data type";
    return runs && (op->kind != GB_OP_RELU || gb_op_input(op, 0)->data_type != GB_BF16);
}

static bool refuses_kind(const gb_op *op, const char **reason)
{
    bool runs = fusion_supports(op, reason);
    *reason = "rank above 5";
    return runs && op->kind != GB_OP_RELU;
}

/* All edges as "tensor:producer>consumer reason", apart by commas. */
static void expect_reasons(
        gb_policy policy, bool (*supports)(const gb_op *, const char **), const char *expected)
{
    gb_partitioning *partitioning;
    gb_capability capability = fusion_capability;
    char text[FUSION_CASE_TEXT] = "";
    size_t n = 0, again, length = 0;
    if (supports)
        capability.supports = supports;
    fusion_ok(gb_graph_finalize(c.graph));
    fusion_ok(gb_partition_graph(c.graph, policy, &capability, &partitioning));
    fusion_ok(gb_explain_edges(c.graph, partitioning, &capability, &n, NULL));
    gb_unfused_edge *edges = calloc(n + 1, sizeof *edges);
    fusion_ok(gb_explain_edges(c.graph, partitioning, &capability, &again, edges));
    cr_assert_eq(again, n);
    for (size_t i = 0; i < n; i++)
        length += (size_t)sprintf(text + length, "%s%zu:%zu>%zu %s", i ? ", " : "",
                edges[i].tensor_id, edges[i].producer_id, edges[i].consumer_id,
                gb_unfused_reason_name(edges[i].reason));
    cr_expect_str_eq(text, expected, "\n got      %s\n expected %s", text, expected);
    free(edges);
    gb_partitioning_free(partitioning);
}

Test(explain, nothing_between_fused_ops)
{
    OP(RELU, OP(MATMUL, IN(), IN()));
    expect_reasons(GB_POLICY_FUSION, NULL, "");
}

Test(explain, no_pattern)
{
    size_t x = IN(), rows = OP(SOFTMAX, x);
    OP(MATMUL, rows, IN());
    expect_reasons(GB_POLICY_FUSION, NULL, "1:0>1 no_pattern");
}

Test(explain, policy)
{
    OP(RELU, OP(MATMUL, IN(), IN()));
    expect_reasons(GB_POLICY_DEBUG, NULL, "2:0>1 policy");
}

Test(explain, wildcard)
{
    size_t x = OP(RELU, IN());
    OP(RELU, OP(WILDCARD, x));
    END(OP(MATMUL, IN(), IN()));
    expect_reasons(GB_POLICY_FUSION, NULL, "1:0>1 wildcard, 2:1>2 wildcard, 6:3>4 wildcard");
}

Test(explain, wildcard_comes_before_policy)
{
    OP(WILDCARD, OP(RELU, IN()));
    expect_reasons(GB_POLICY_DEBUG, NULL, "1:0>1 wildcard");
}

Test(explain, other_consumer)
{
    size_t product = OP(MATMUL, IN(), IN());
    OP(RELU, product);
    OP(SOFTMAX, product);
    expect_reasons(GB_POLICY_FUSION, NULL, "2:0>1 other_consumer, 2:0>2 no_pattern");
}

Test(explain, attribute)
{
    size_t product = OP(MATMUL, IN(), IN(), IN());
    OP(BIAS_ADD, product, IN()); /* the product has a bias of its own */
    expect_reasons(GB_POLICY_FUSION, NULL, "3:0>1 attribute");
}

Test(explain, data_type)
{
    OP_OF(BF16, RELU, OP_OF(BF16, MATMUL, IN_OF(BF16), IN_OF(BF16)));
    expect_reasons(GB_POLICY_FUSION, refuses_bf16, "2:0>1 data_type");
}

Test(explain, what_the_engine_refuses_for_another_reason)
{
    OP(RELU, OP(MATMUL, IN(), IN()));
    expect_reasons(GB_POLICY_FUSION, refuses_kind, "2:0>1 attribute");
}

Test(explain, other_partition)
{
    size_t a = OP(MATMUL, IN(), IN()), b = OP(MATMUL, IN(), IN());
    OP(ADD, a, b);
    expect_reasons(GB_POLICY_FUSION, NULL, "5:1>2 other_partition");
}

/* The mean goes out of the norm, through an op of its own, and back into the chain. */
Test(explain, cycle)
{
    size_t x = IN();
    size_t norm = fusion_op_outputs(
            &c, GB_OP_LAYER_NORM, 1, &x, 3, (const gb_data_type[]){GB_F32, GB_F32, GB_F32});
    size_t moved = OP(STATIC_TRANSPOSE, norm + 1);
    OP(ADD, norm, moved);
    expect_reasons(GB_POLICY_FUSION, NULL, "1:0>2 cycle, 2:0>1 no_pattern, 4:1>2 no_pattern");
}

/* A tensor read twice by an op, and by several ops. */
Test(explain, each_pair_of_ops_once)
{
    size_t x = OP(SOFTMAX, IN());
    OP(MATMUL, x, x);
    OP(CONCAT, x, x);
    expect_reasons(GB_POLICY_FUSION, NULL, "1:0>1 no_pattern, 1:0>2 no_pattern");
}

Test(explain, names)
{
    cr_expect_str_eq(gb_unfused_reason_name(GB_UNFUSED_OTHER_CONSUMER), "other_consumer");
    cr_expect_str_eq(gb_unfused_reason_name((gb_unfused_reason)99), "undef");
    for (int i = 0; i <= GB_UNFUSED_OTHER_PARTITION; i++)
        cr_expect_gt(strlen(gb_unfused_reason_describe((gb_unfused_reason)i)), 10);
}

Test(explain, arguments)
{
    size_t n = 7;
    OP(RELU, IN());
    fusion_ok(gb_graph_finalize(c.graph));
    cr_expect_eq(gb_graph_get_unfused_edges(NULL, 0, NULL, &n), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_get_unfused_edges(c.graph, 0, NULL, NULL), GB_INVALID_GRAPH);
    cr_expect_eq(gb_graph_get_unfused_edges(c.graph, 0, NULL, &n), GB_INVALID_GRAPH);
    cr_expect_eq(n, 7);
    fusion_ok(gb_graph_filter(c.graph, GB_POLICY_FUSION));
    fusion_ok(gb_graph_get_unfused_edges(c.graph, 0, NULL, &n));
    cr_expect_eq(n, 0);
}
