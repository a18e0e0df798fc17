/* Fusion: what each pattern takes and leaves, the ports of partitions, and groups of a partition.
 */
#include "fusion_words.h"

TestSuite(fusion, .init = open_case, .fini = close_case);
TestSuite(groups, .init = open_case, .fini = close_case);

/* Chains behind anchors ------------------------------------------------------------------------ */

Test(fusion, convolution_takes_bias_norm_chain_and_cast)
{
    size_t x = OP(CONVOLUTION, IN(), IN());
    x = OP(BIAS_ADD, x, IN());
    x = OP(BATCH_NORM_INFERENCE, x, IN(), IN(), IN(), IN());
    x = OP(RELU, x);
    x = OP(ADD, IN(), x);
    OP_OF(BF16, TYPE_CAST, x);
    expect("convolution_post_ops[0 1 2 3 4 5]");
}

Test(fusion, convolution_transpose_takes_bias_and_chain)
{
    size_t x = OP(CONV_TRANSPOSE, IN(), IN());
    x = OP(BIAS_ADD, x, IN());
    OP(MULTIPLY, OP(TANH, x), IN());
    expect("conv_transpose_post_ops[0 1 2 3]");
}

Test(fusion, matmul_takes_bias_chain_select_and_cast)
{
    size_t x = OP(MATMUL, IN(), IN());
    x = OP(BIAS_ADD, x, IN());
    x = OP(GELU, x);
    x = OP(SELECT, IN_OF(BOOLEAN), IN(), x);
    OP_OF(F16, TYPE_CAST, x);
    expect("matmul_post_ops[0 1 2 3 4]");
}

Test(fusion, bias_joins_only_an_anchor_without_bias)
{
    size_t x = OP(MATMUL, IN(), IN(), IN());
    OP(BIAS_ADD, x, IN());
    expect("single_op[0] single_op[1]");
}

Test(fusion, a_value_that_enters_as_bias_is_not_fused)
{
    size_t x = OP(MATMUL, IN(), IN());
    OP(BIAS_ADD, IN(), x);
    expect("single_op[0] single_op[1]");
}

Test(fusion, a_select_condition_is_no_branch)
{
    size_t mask = OP_OF(BOOLEAN, GREATER_EQUAL, OP(MATMUL, IN(), IN()), IN());
    OP(SELECT, mask, IN(), IN());
    expect("single_op[0] single_op[1] single_op[2]");
}

Test(fusion, dropout_follows_matmul)
{
    dropout(OP(MATMUL, IN(), IN()));
    expect("matmul_dropout[0 1]");
}

Test(fusion, dropout_follows_unary)
{
    dropout(OP(RELU, IN()));
    expect("unary_dropout[0 1]");
}

Test(fusion, pools_reductions_and_resampling_take_chains)
{
    OP(RELU, OP(AVG_POOL, IN()));
    OP(ADD, OP(MAX_POOL, IN()), IN());
    OP(SQRT, OP(REDUCE_MEAN, IN()));
    OP(DIVIDE, OP(REDUCE_L2, IN()), IN());
    OP(CLAMP, OP(INTERPOLATE, IN()));
    expect("pool_post_ops[0 1] pool_post_ops[2 3] reduction_post_ops[4 5] reduction_post_ops[6 7] "
           "interpolate_post_ops[8 9]");
}

Test(fusion, norms_and_softmax_take_their_chains)
{
    OP(RELU, OP(BATCH_NORM_INFERENCE, IN(), IN(), IN(), IN(), IN()));
    OP_OF(BF16, ELU, OP_OF(BF16, TYPE_CAST, OP(LAYER_NORM, IN())));
    OP_OF(BF16, ABS, OP_OF(BF16, TYPE_CAST, OP(ABS, OP(GROUP_NORM, IN()))));
    OP_OF(BF16, TYPE_CAST, OP(MULTIPLY, OP(SOFTMAX, IN()), IN()));
    expect("batch_norm_relu[0 1] layer_norm_post_ops[2 3 4] group_norm_post_ops[5 6 7 8] "
           "softmax_post_ops[9 10 11]");
}

Test(fusion, elementwise_chains)
{
    OP(RELU, OP(ADD, IN(), IN()));
    OP(MAXIMUM, OP(EXP, IN()), IN());
    expect("elementwise_post_ops[0 1] elementwise_post_ops[2 3]");
}

Test(fusion, a_chain_starts_at_its_first_op)
{
    size_t x = OP(ADD, OP(MULTIPLY, OP(EXP, IN()), IN()), IN());
    OP(MULTIPLY, x, OP(SIGMOID, x));
    expect("elementwise_post_ops[0 1 2 3 4]");
}

Test(fusion, norms_take_chains_before_elementwise_ops_do)
{
    OP(RELU, OP(ADD, OP(GELU, OP(LAYER_NORM, IN())), IN()));
    OP(ADD, OP(DIVIDE, OP(SOFTMAX, IN()), IN()), IN());
    OP(RELU, OP(MULTIPLY, OP(RMS_NORM, IN()), IN()));
    expect("layer_norm_post_ops[0 1 2 3] softmax_post_ops[4 5 6] layer_norm_post_ops[7 8 9]");
}

Test(fusion, reshape_transpose_reshape_is_a_shuffle)
{
    OP(STATIC_RESHAPE, OP(STATIC_TRANSPOSE, OP(STATIC_RESHAPE, IN())));
    expect("shuffle[0 1 2]");
}

Test(fusion, a_product_takes_the_move_of_its_axes)
{
    size_t x = OP(BIAS_ADD, OP(MATMUL, IN(), IN()), IN());
    x = OP_OF(BF16, STATIC_RESHAPE, OP_OF(BF16, TYPE_CAST, x));
    OP_OF(BF16, STATIC_TRANSPOSE, x);
    x = OP(STATIC_TRANSPOSE, OP(MATMUL, IN(), IN()));
    OP(REORDER, x);
    OP(STATIC_RESHAPE, OP(STATIC_TRANSPOSE, OP(MATMUL, IN(), IN())));
    expect("matmul_moved[0 1 2 3 4] matmul_moved[5 6 7] matmul_moved[8 9 10]");
}

Test(fusion, a_reshape_alone_is_no_move_of_axes)
{
    OP(STATIC_RESHAPE, OP(MATMUL, IN(), IN()));
    size_t x = OP(STATIC_TRANSPOSE, OP(MATMUL, IN(), IN()));
    OP(REORDER, x);
    OP(REORDER, x);
    expect("single_op[0] single_op[1] matmul_moved[2 3] single_op[4] single_op[5]");
}

Test(fusion, gradients_of_relu_and_norm_are_one)
{
    OP(BATCH_NORM_BACKWARD, IN(), OP(RELU_BACKWARD, IN(), IN()), IN(), IN());
    expect("batch_norm_backward[0 1]");
}

Test(fusion, a_relu_gradient_that_enters_as_source_is_in_the_partition)
{
    OP(BATCH_NORM_BACKWARD, OP(RELU_BACKWARD, IN(), IN()), IN(), IN(), IN());
    expect("batch_norm_backward[0 1]");
}

Test(fusion, a_relu_gradient_that_enters_as_statistics_is_alone)
{
    OP(BATCH_NORM_BACKWARD, IN(), IN(), OP(RELU_BACKWARD, IN(), IN()), IN());
    expect("single_op[0] single_op[1]");
}

Test(fusion, gradients_of_relu_and_of_a_norm_with_three_outputs_are_one)
{
    size_t x = OP(RELU_BACKWARD, IN(), IN());
    const gb_data_type types[] = {GB_F32, GB_F32, GB_F32};
    fusion_op_outputs(&c, GB_OP_BATCH_NORM_BACKWARD, 5, (const size_t[]){IN(), x, IN(), IN(), IN()},
            3, types);
    expect("batch_norm_backward[0 1]");
}

Test(fusion, a_reciprocal_factor_is_a_division)
{
    OP(RELU, OP(MULTIPLY, IN(), OP(RECIPROCAL, IN())));
    OP(ADD, IN(), OP(RECIPROCAL, IN()));
    expect("reciprocal_multiply[0 1 2] single_op[3] single_op[4]");
}

Test(fusion, a_reorder_takes_a_sum)
{
    OP(ADD, IN(), OP(REORDER, IN()));
    OP(MULTIPLY, OP(REORDER, IN()), IN());
    expect("reorder_add[0 1] single_op[2] single_op[3]");
}

static size_t filter(int64_t size)
{
    return fusion_tensor(&c, GB_F32, 4, (const int64_t[]){size, size, 8, 8}); /* XIO */
}

Test(fusion, pointwise_and_depthwise_convolution_are_one)
{
    size_t x = OP(RELU, OP(BIAS_ADD, OP(CONVOLUTION, IN(), filter(1)), IN()));
    OP(RELU, OP(BIAS_ADD, OP(CONVOLUTION, x, filter(3)), IN()));
    expect("conv_depthwise[0 1 2 3 4 5]");
}

Test(fusion, other_filters_are_two_convolutions)
{
    size_t x = OP(RELU, OP(CONVOLUTION, IN(), filter(3)));
    OP(RELU, OP(CONVOLUTION, x, filter(3)));
    expect("convolution_post_ops[0 1] convolution_post_ops[2 3]");
}

/* Limits and sharing --------------------------------------------------------------------------- */

Test(fusion, a_chain_has_at_most_19_ops)
{
    size_t x = OP(MATMUL, IN(), IN());
    for (int i = 0; i < 22; i++)
        x = OP(RELU, x);
    expect("matmul_post_ops[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19] "
           "elementwise_post_ops[20 21 22]");
}

Test(fusion, swish_is_a_post_op)
{
    size_t x = OP(CONVOLUTION, IN(), IN());
    OP(RELU, OP(MULTIPLY, x, OP(SIGMOID, x)));
    expect("convolution_post_ops[0 1 2 3]");
}

Test(fusion, a_convolution_takes_a_post_op_and_a_swish_before_a_whole_chain)
{
    size_t x = OP(TANH, OP(CONVOLUTION, IN(), IN()));
    x = OP(MULTIPLY, OP(SIGMOID, x), x);
    for (int i = 0; i < 19; i++)
        x = OP(RELU, x);
    expect_one("convolution_post_ops");
}

Test(fusion, swish_with_a_further_reader_is_none)
{
    size_t x = OP(MATMUL, IN(), IN());
    OP(MULTIPLY, OP(SIGMOID, x), x);
    OP(STATIC_TRANSPOSE, x);
    expect("single_op[0] elementwise_post_ops[1 2] single_op[3]");
}

Test(fusion, an_op_may_read_the_value_twice)
{
    size_t x = OP(MATMUL, IN(), IN());
    OP(MULTIPLY, x, x);
    expect("matmul_post_ops[0 1]");
}

Test(fusion, a_chain_stops_before_a_value_with_two_readers)
{
    size_t x = OP(RELU, OP(MATMUL, IN(), IN()));
    OP(EXP, x);
    OP(ABS, x);
    expect("matmul_post_ops[0 1] single_op[2] single_op[3]");
}

Test(fusion, no_op_outside_both_feeds_and_reads_a_partition)
{
    size_t x = OP(SOFTMAX, IN());
    size_t statistics = fusion_op_outputs(
            &c, GB_OP_SOFTMAX, 1, (const size_t[]){x}, 2, (const gb_data_type[]){GB_F32, GB_F32});
    size_t outside = OP(STATIC_TRANSPOSE, statistics + 1);
    OP(ADD, statistics, outside); /* with the second SoftMax it would wait for the transpose */
    expect("single_op[0] single_op[1] single_op[2] single_op[3]");
}

Test(fusion, no_two_partitions_wait_for_each_other)
{
    const gb_data_type types[] = {GB_F32, GB_F32};
    size_t one = fusion_op_outputs(&c, GB_OP_SOFTMAX, 1, (const size_t[]){IN()}, 2, types);
    size_t two = fusion_op_outputs(&c, GB_OP_SOFTMAX, 1, (const size_t[]){IN()}, 2, types);
    OP(ADD, one, two + 1);
    OP(ADD, two, one + 1);
    expect("single_op[1] softmax_post_ops[0 2] single_op[3]");
}

Test(fusion, a_partition_comes_before_the_readers_of_its_first_results)
{
    size_t x = fusion_op_outputs(&c, GB_OP_SOFTMAX, 1, (const size_t[]){IN()}, 2,
            (const gb_data_type[]){GB_F32, GB_F32});
    OP(STATIC_TRANSPOSE, x + 1);
    OP(ADD, x, IN());
    expect("softmax_post_ops[0 2] single_op[1]");
}

Test(fusion, end_is_never_fused_and_keeps_a_value_visible)
{
    size_t x = OP(MATMUL, IN(), IN());
    END(x);
    END(OP(RELU, x));
    expect("single_op[0] single_op![1] single_op[2] single_op![3]");
}

Test(fusion, wildcards_stay_alone)
{
    size_t x = OP(WILDCARD, OP(RELU, IN()));
    OP(ADD, x, IN());
    expect("single_op[0] single_op![1] single_op[2]");
}

Test(fusion, policy_debug_gives_single_ops)
{
    OP(ADD, OP(RELU, OP(MATMUL, IN(), IN())), IN());
    expect_policy(GB_POLICY_DEBUG, "single_op[0] single_op[1] single_op[2]");
}

Test(fusion, policy_max_joins_what_is_connected)
{
    size_t x = OP(SOFTMAX, OP(RELU, OP(MATMUL, IN(), IN())));
    END(x);
    OP(LOG_SOFTMAX, OP(STATIC_TRANSPOSE, x));
    OP(SOFTMAX, IN());
    expect_policy(GB_POLICY_FUSION, "matmul_post_ops[0 1] single_op[2] single_op![3] single_op[4] "
                                    "single_op[5] single_op[6]");
    expect_policy(GB_POLICY_MAX, "max[0 1 2 4 5] single_op![3] single_op[6]");
}

/* What lies before and behind an op that the engine does not run stays apart. */
Test(fusion, policy_max_makes_no_cycle)
{
    size_t x = OP(SOFTMAX, IN());                  /* 0 */
    size_t w = OP(WILDCARD, OP(MATMUL, x, IN()));  /* 1, 2 */
    size_t y = OP(ADD, OP(SOFTMAX, x), w);         /* 3, 4 */
    OP(MATMUL, OP(SOFTMAX, y), OP(SOFTMAX, IN())); /* 5, 6, 7 */
    expect_policy(GB_POLICY_MAX, "max[0 1] single_op![2] single_op[6] max[3 4 5 7]");
}

static void expect_within(uint32_t most, gb_policy policy, const char *expected)
{
    gb_partitioning *partitioning;
    char text[FUSION_CASE_TEXT];
    fusion_ok(gb_partition_graph_within(c.graph, policy, most, &fusion_capability, &partitioning));
    fusion_describe(&c, partitioning, text);
    cr_expect_str_eq(text, expected, "\n got      %s\n expected %s", text, expected);
    gb_partitioning_free(partitioning);
}

Test(fusion, partitions_have_a_limit_of_ops)
{
    size_t x = OP(RELU, OP(MATMUL, IN(), IN()));
    OP(SOFTMAX, OP(LOG_SOFTMAX, OP(SOFTMAX, x)));
    fusion_ok(gb_graph_finalize(c.graph));
    expect_within(5, GB_POLICY_MAX, "max[0 1 2 3 4]");
    expect_within(4, GB_POLICY_MAX, "max[0 1 2 3] single_op[4]");
    expect_within(3, GB_POLICY_MAX, "max[0 1 2] max[3 4]");
    expect_within(2, GB_POLICY_MAX, "matmul_post_ops[0 1] max[2 3] single_op[4]");
    expect_within(
            1, GB_POLICY_MAX, "single_op[0] single_op[1] single_op[2] single_op[3] single_op[4]");
    expect_within(1, GB_POLICY_FUSION,
            "single_op[0] single_op[1] single_op[2] single_op[3] single_op[4]");
}

static bool supports_no_relu(const gb_op *op, const char **reason)
{
    return op->kind != GB_OP_RELU && fusion_supports(op, reason);
}

Test(fusion, an_op_the_engine_cannot_run_ends_the_chain)
{
    gb_partitioning *partitioning;
    char text[FUSION_CASE_TEXT];
    gb_capability capability = fusion_capability;
    capability.supports = supports_no_relu;
    OP(ABS, OP(RELU, OP(EXP, OP(MATMUL, IN(), IN()))));
    fusion_ok(gb_graph_finalize(c.graph));
    fusion_ok(gb_partition_graph(c.graph, GB_POLICY_FUSION, &capability, &partitioning));
    fusion_describe(&c, partitioning, text);
    cr_expect_str_eq(text, "matmul_post_ops[0 1] single_op![2] single_op[3]");
    gb_partitioning_free(partitioning);
}

Test(fusion, patterns_have_names_of_their_own)
{
    for (const gb_pattern *pattern = gb_patterns; pattern->name; pattern++)
        for (const gb_pattern *other = gb_patterns; other < pattern; other++)
            cr_expect_str_neq(pattern->name, other->name);
}

/* No graph that was finalized is like that. */
Test(fusion, partitions_that_wait_for_each_other_are_an_error)
{
    gb_partitioning *partitioning = NULL;
    OP(SOFTMAX, OP(STATIC_TRANSPOSE, OP(SOFTMAX, IN())));
    fusion_ok(gb_graph_finalize(c.graph));
    c.graph->ops[0]->inputs[0] = c.graph->ops[2]->outputs[0];
    fusion_ok(gb_graph_wire(c.graph));
    for (int policy = GB_POLICY_FUSION; policy <= GB_POLICY_MAX; policy++)
        cr_expect_eq(
                gb_partition_graph(c.graph, (gb_policy)policy, &fusion_capability, &partitioning),
                GB_RUNTIME_ERROR);
    cr_expect_null(partitioning);
}

/* The ids of `count` tensors of the case, from tensor 0 on. */
static void name_tensors(size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        c.tensors[i].id = first + i;
}

/* Pairs of MatMul and ReLU in a chain: many matches, each behind all those before it. */
Test(fusion, a_long_chain_of_partitions)
{
    enum { PAIRS = 50000 };
    gb_partitioning *partitioning;
    IN(), IN(), IN(), IN();
    for (size_t i = 0; i < PAIRS; i++) {
        name_tensors(3 * i, 4); /* source, weights, product; result, which the next pair reads */
        c.tensors[1].id = 3 * PAIRS + 1;
        const gb_op_kind kinds[] = {GB_OP_MATMUL, GB_OP_RELU};
        for (size_t k = 0; k < 2; k++) {
            gb_op *op;
            fusion_ok(gb_op_create(&op, 2 * i + k, kinds[k], ""));
            fusion_ok(gb_op_add_input(op, &c.tensors[k ? 2 : 0]));
            if (k == 0)
                fusion_ok(gb_op_add_input(op, &c.tensors[1]));
            fusion_ok(gb_op_add_output(op, &c.tensors[k ? 3 : 2]));
            fusion_ok(gb_graph_add_op(c.graph, op));
            gb_op_destroy(op);
        }
    }
    fusion_ok(gb_graph_finalize(c.graph));
    fusion_ok(gb_partition_graph(c.graph, GB_POLICY_FUSION, &fusion_capability, &partitioning));
    cr_assert_eq(partitioning->n_parts, PAIRS);
    for (uint32_t i = 0; i < PAIRS; i++)
        cr_assert_eq(partitioning->parts[i].ops[0], 2 * i);
    gb_partitioning_free(partitioning);
    fusion_ok(gb_partition_graph(c.graph, GB_POLICY_MAX, &fusion_capability, &partitioning));
    cr_assert_eq(partitioning->n_parts, (2 * PAIRS + GB_MAX_POLICY_OPS - 1) / GB_MAX_POLICY_OPS);
    gb_partitioning_free(partitioning);
}

Test(fusion, an_empty_graph_has_no_partitions)
{
    expect("");
}

/* Ports ---------------------------------------------------------------------------------------- */

static void expect_ports(uint32_t n_ops, const uint32_t *ops, uint32_t n_inputs,
        const size_t *inputs, uint32_t n_outputs, const size_t *outputs)
{
    uint32_t *in, *out, n_in, n_out;
    fusion_ok(gb_part_ports(c.graph, ops, n_ops, &in, &n_in, &out, &n_out));
    cr_assert_eq(n_in, n_inputs);
    cr_assert_eq(n_out, n_outputs);
    for (uint32_t i = 0; i < n_in; i++)
        cr_expect_eq(c.graph->values[in[i]].tensor.id, inputs[i]);
    for (uint32_t i = 0; i < n_out; i++)
        cr_expect_eq(c.graph->values[out[i]].tensor.id, outputs[i]);
    free(in);
    free(out);
}

Test(fusion, ports_are_listed_once_in_order_of_mention)
{
    size_t a = IN(), b = IN();
    size_t x = OP(ADD, b, a), y = OP(ADD, x, a), z = OP(MULTIPLY, y, y);
    END(x);
    size_t w = OP(RELU, z);
    fusion_ok(gb_graph_finalize(c.graph));
    expect_ports(3, (uint32_t[]){0, 1, 2}, 2, (size_t[]){b, a}, 2, (size_t[]){x, z});
    expect_ports(1, (uint32_t[]){4}, 1, (size_t[]){z}, 1, (size_t[]){w});
    expect_ports(1, (uint32_t[]){3}, 1, (size_t[]){x}, 0, NULL);
    expect_ports(2, (uint32_t[]){2, 4}, 1, (size_t[]){y}, 1, (size_t[]){w});
}

/* Groups --------------------------------------------------------------------------------------- */

static size_t shaped(int64_t rows, int64_t columns)
{
    return fusion_tensor(&c, GB_F32, 2, (const int64_t[]){rows, columns});
}

/* Groups as "anchor:post-ops>outputs", ids of ops and tensors; "-" without anchor. */
static void expect_groups(size_t n_outputs, const size_t *outputs, const char *expected)
{
    char text[FUSION_CASE_TEXT] = "";
    size_t length = 0;
    gb_pass_context context = {
            .capability = &fusion_capability, .output_ids = outputs, .n_outputs = n_outputs};
    fusion_ok(gb_graph_finalize(c.graph));
    fusion_ok(gb_graph_infer(c.graph));
    fusion_ok(gb_pass_group(c.graph, &context));
    fusion_ok(gb_check_graph(c.graph, &context, "group"));
    for (uint32_t g = 0; g < context.groups->n_groups; g++) {
        const gb_group *group = &context.groups->groups[g];
        length += (size_t)sprintf(text + length, g ? " " : "");
        if (group->anchor == GB_NONE)
            length += (size_t)sprintf(text + length, "-:");
        else
            length += (size_t)sprintf(text + length, "%zu:", c.graph->ops[group->anchor]->id);
        for (uint32_t i = 0; i < group->n_ops; i++)
            length += (size_t)sprintf(
                    text + length, "%s%zu", i ? "," : "", c.graph->ops[group->ops[i]]->id);
        for (uint32_t i = 0; i < group->n_outputs; i++)
            length += (size_t)sprintf(text + length, "%s%zu", i ? "," : ">",
                    c.graph->values[group->outputs[i]].tensor.id);
    }
    cr_expect_str_eq(text, expected, "\n got      %s\n expected %s", text, expected);
    gb_groups_free(context.groups);
}

Test(groups, post_ops_follow_their_anchor)
{
    size_t a = shaped(4, 6), b = shaped(6, 8), side = shaped(1, 8);
    size_t x = OP(ADD, OP(RELU, OP(MATMUL, a, b)), side);
    cr_assert_eq(x, 5);
    expect_groups(1, &x, "0:1,2>5");
}

Test(groups, a_broadcast_to_a_larger_space_starts_a_group)
{
    size_t a = shaped(1, 6), b = shaped(6, 8), side = shaped(5, 8);
    size_t x = OP(ADD, OP(RELU, OP(MATMUL, a, b)), side);
    expect_groups(1, &x, "0:1>4 -:2>5");
}

Test(groups, an_anchor_without_epilogue_is_alone)
{
    size_t a = shaped(4, 6);
    size_t x = OP(ABS, OP(RELU, OP(STATIC_TRANSPOSE, a)));
    expect_groups(1, &x, "0:>1 -:1,2>3");
}

Test(groups, values_read_by_other_groups_are_outputs)
{
    size_t a = shaped(4, 4), b = shaped(4, 4);
    size_t x = OP(RELU, OP(MATMUL, a, b)); /* 2, 3 */
    size_t y = OP(MATMUL, x, b);           /* 4 */
    size_t z = OP(ADD, y, x);              /* 5 joins the second product */
    END(z);
    size_t outputs[] = {2, z};
    expect_groups(2, outputs, "0:1>2,3 2:3>5");
}

Test(groups, post_ops_on_further_outputs_are_apart)
{
    size_t source = shaped(4, 4);
    size_t x = fusion_op_outputs(
            &c, GB_OP_SOFTMAX, 1, &source, 2, (const gb_data_type[]){GB_F32, GB_F32}); /* 1, 2 */
    OP(LOG, x + 1);                                                                    /* 3 */
    OP(ABS, x);                                                                        /* 4 */
    size_t outputs[] = {3, 4};
    expect_groups(2, outputs, "0:2>2,4 -:1>3");
}

Test(groups, a_group_has_at_most_32_post_ops)
{
    size_t x = shaped(4, 4);
    for (int i = 0; i < 34; i++)
        x = OP(RELU, x);
    expect_groups(1, &x,
            "-:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,"
            "31>32 -:32,33>34");
}

Test(groups, shapes_that_do_not_fit_are_named)
{
    size_t a = shaped(4, 6), b = shaped(5, 8);
    gb_pass_context context = {.capability = &fusion_capability};
    OP(MATMUL, a, b);
    fusion_ok(gb_graph_finalize(c.graph));
    cr_expect_eq(gb_run_passes(c.graph, &context), GB_INVALID_SHAPE);
    cr_expect(strstr(gb_last_error(), "MatMul"), "%s", gb_last_error());
    cr_expect_null(context.groups);
}
