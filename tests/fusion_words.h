/* Words for the tests of fusion: a graph at hand, ops that give their first output, and what its
 * partitions should be. */
#ifndef GB_TESTS_FUSION_WORDS_H
#define GB_TESTS_FUSION_WORDS_H

#include "fusion_case.h"

static fusion_case c;

#define IN_OF(type) fusion_input(&c, GB_##type)
#define IN()        IN_OF(F32)
#define OP_OF(type, kind, ...)                                                                     \
    fusion_op_outputs(&c, GB_OP_##kind, sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t),          \
            (const size_t[]){__VA_ARGS__}, 1, (const gb_data_type[]){GB_##type})
#define OP(kind, ...) OP_OF(F32, kind, __VA_ARGS__)
#define END(value)    fusion_op_outputs(&c, GB_OP_END, 1, (const size_t[]){value}, 0, NULL)

static void open_case(void)
{
    fusion_open(&c);
}

static void close_case(void)
{
    gb_graph_destroy(c.graph);
}

static inline void expect_policy(gb_policy policy, const char *expected)
{
    if (!c.graph->finalized)
        fusion_ok(gb_graph_finalize(c.graph));
    gb_partitioning *partitioning;
    char text[FUSION_CASE_TEXT] = "";
    fusion_ok(gb_partition_graph(c.graph, policy, &fusion_capability, &partitioning));
    fusion_describe(&c, partitioning, text);
    cr_expect_str_eq(text, expected, "\n got      %s\n expected %s", text, expected);
    gb_partitioning_free(partitioning);
}

static inline void expect(const char *expected)
{
    expect_policy(GB_POLICY_FUSION, expected);
}

/* One partition of the whole graph. */
static inline void expect_one(const char *pattern)
{
    char text[FUSION_CASE_TEXT];
    size_t length = (size_t)snprintf(text, sizeof text, "%s[0", pattern);
    for (size_t i = 1; i < c.n_ops; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, " %zu", i);
    snprintf(text + length, sizeof text - length, "]");
    expect(text);
}

static inline size_t dropout(size_t x)
{
    return OP(DROPOUT, x, IN_OF(S64), IN_OF(S64), IN());
}

#endif
