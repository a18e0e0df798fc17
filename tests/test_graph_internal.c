/* What the passes build on: id maps, merging, cloning, taking and removing ops. */
#include "graph/ir/graph.h"

#include <criterion/criterion.h>
#include <string.h>

Test(id_map, finds_what_was_put_in)
{
    enum { COUNT = 5000 };
    gb_id_map map = {0};
    cr_expect_eq(gb_id_map_find(&map, 0), GB_NONE);
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert_eq(gb_id_map_reserve(&map, i + 1), GB_SUCCESS);
        gb_id_map_insert(&map, (size_t)i << 20, i);
    }
    gb_id_map_insert(&map, 0, 77);
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert_eq(gb_id_map_find(&map, (size_t)i << 20), i);
    cr_expect_eq(gb_id_map_find(&map, 1), GB_NONE);
    cr_expect_eq(gb_id_map_find(&map, SIZE_MAX), GB_NONE);
    gb_id_map_clear(&map);
    cr_expect_eq(gb_id_map_find(&map, 0), GB_NONE);
    gb_id_map_free(&map);
}

static gb_logical_tensor tensor_of(size_t id)
{
    gb_logical_tensor tensor;
    int64_t dims[] = {2, 3};
    gb_logical_tensor_init_with_dims(
            &tensor, id, GB_F32, 2, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF);
    return tensor;
}

static void take_add(gb_graph *graph, size_t id, size_t left, size_t right, size_t output)
{
    gb_op *op;
    size_t ids[] = {left, right, output};
    cr_assert_eq(gb_op_create(&op, id, GB_OP_ADD, ""), GB_SUCCESS);
    for (int i = 0; i < 3; i++) {
        gb_logical_tensor tensor = tensor_of(ids[i]);
        cr_assert_eq((i < 2 ? gb_op_add_input : gb_op_add_output)(op, &tensor), GB_SUCCESS);
    }
    cr_assert_eq(gb_graph_take_op(graph, op), GB_SUCCESS);
}

/* 0, 1 -> op 1 -> 2; 2, 1 -> op 2 -> 3; 3, 3 -> op 3 -> 4, taken in the order 3, 1, 2. */
static gb_graph *make_graph(void)
{
    gb_graph *graph;
    cr_assert_eq(gb_graph_create(&graph, GB_ENGINE_CPU), GB_SUCCESS);
    take_add(graph, 3, 3, 3, 4);
    take_add(graph, 1, 0, 1, 2);
    take_add(graph, 2, 2, 1, 3);
    return graph;
}

Test(graph_internal, connect_orders_and_wires)
{
    gb_graph *graph = make_graph();
    cr_assert_eq(gb_graph_check(graph), GB_SUCCESS);
    cr_expect_eq(graph->ops[0]->id, 3, "check leaves the order alone");
    cr_assert_eq(gb_graph_connect(graph), GB_SUCCESS);
    for (uint32_t i = 0; i < 3; i++) {
        cr_expect_eq(graph->ops[i]->id, i + 1);
        cr_expect_eq(graph->ops[i]->index, i);
        cr_expect_eq(gb_graph_find_op_index(graph, i + 1), i);
    }
    const gb_value *one = &graph->values[gb_graph_find_value(graph, 1)];
    cr_expect_eq(one->producer, GB_NONE);
    cr_assert_eq(one->n_uses, 2);
    cr_expect_eq(one->uses[0].op, 0);
    cr_expect_eq(one->uses[0].input, 1);
    cr_expect_eq(one->uses[1].op, 1);
    gb_graph_destroy(graph);
}

Test(graph_internal, clone_holds_the_listed_ops_only)
{
    gb_graph *graph = make_graph(), *clone;
    gb_graph_set_fpmath_mode(graph, GB_FPMATH_BF16, 1);
    cr_assert_eq(gb_graph_finalize(graph), GB_SUCCESS);
    uint32_t ops[] = {2, 1};
    cr_assert_eq(gb_graph_clone(graph, ops, 2, &clone), GB_SUCCESS);
    cr_expect_eq(clone->n_ops, 2);
    cr_expect_eq(clone->n_values, 4);
    cr_expect_eq(clone->ops[0]->id, 2);
    cr_expect_eq(clone->fpmath_mode, GB_FPMATH_BF16);
    cr_expect(clone->fpmath_apply_to_int);
    cr_expect_not(clone->finalized);
    cr_expect_eq(clone->values[gb_graph_find_value(clone, 2)].producer, GB_NONE);
    cr_expect_eq(gb_graph_find_value(clone, 0), GB_NONE);
    gb_graph_destroy(clone);
    cr_assert_eq(gb_graph_clone(graph, NULL, 0, &clone), GB_SUCCESS);
    cr_expect_eq(clone->n_ops, 3);
    gb_graph_destroy(clone);
    gb_graph_destroy(graph);
}

Test(graph_internal, removed_ops_leave_no_trace)
{
    gb_graph *graph = make_graph();
    cr_assert_eq(gb_graph_connect(graph), GB_SUCCESS);
    cr_assert_eq(gb_graph_drop_op(graph, 1), GB_SUCCESS);
    cr_expect_eq(graph->n_ops, 2);
    cr_expect_eq(gb_graph_find_op_index(graph, 2), GB_NONE);
    cr_expect_eq(gb_graph_find_op_index(graph, 3), 1);
    cr_expect_eq(graph->values[gb_graph_find_value(graph, 3)].producer, GB_NONE);
    cr_expect_eq(graph->values[gb_graph_find_value(graph, 2)].n_uses, 0);
    cr_assert_eq(gb_graph_connect(graph), GB_SUCCESS);
    gb_graph_destroy(graph);
}

Test(graph_internal, new_ids_are_new)
{
    gb_graph *graph = make_graph();
    for (int i = 0; i < 100; i++) {
        size_t id = gb_graph_new_id(graph);
        cr_assert_eq(gb_graph_find_value(graph, id), GB_NONE);
        cr_assert_eq(gb_graph_find_op_index(graph, id), GB_NONE);
        gb_logical_tensor tensor = tensor_of(id);
        uint32_t value;
        cr_assert_eq(gb_graph_add_value(graph, &tensor, &value), GB_SUCCESS);
        cr_assert_eq(value, (uint32_t)(5 + i));
    }
    gb_graph_destroy(graph);
}

Test(graph_internal, merge_takes_what_is_open)
{
    gb_logical_tensor known, other = tensor_of(1);
    gb_logical_tensor_init(
            &known, 1, GB_UNDEF, GB_UNKNOWN_NDIMS, GB_LAYOUT_UNDEF, GB_PROPERTY_UNDEF);
    cr_assert(gb_logical_tensor_merge(&known, &other));
    uint8_t equal;
    gb_logical_tensor_is_equal(&known, &other, &equal);
    cr_expect(equal);
    gb_logical_tensor before = known, rankless = {.id = 1,
                                              .data_type = GB_F32,
                                              .ndims = GB_UNKNOWN_NDIMS,
                                              .layout_type = GB_LAYOUT_STRIDED};
    known.layout_type = GB_LAYOUT_UNDEF;
    cr_assert(gb_logical_tensor_merge(&known, &rankless));
    cr_expect_eq(known.strides[0], GB_UNKNOWN_DIM, "without a rank strides mean nothing");
    known = before;
    other.strides[1] = 2;
    other.property = GB_PROPERTY_VARIABLE;
    cr_expect_not(gb_logical_tensor_merge(&known, &other));
    cr_expect_eq(memcmp(&before, &known, sizeof known), 0, "untouched when they contradict");
}

Test(graph_internal, labels)
{
    gb_graph *graph = make_graph();
    cr_expect_str_eq(gb_op_label(graph->ops[0]), "op 3 (Add)");
    gb_logical_tensor tensor = tensor_of(1);
    cr_expect_str_eq(gb_tensor_label(&tensor), "f32:2x3");
    tensor.dims[0] = GB_UNKNOWN_DIM;
    cr_expect_str_eq(gb_tensor_label(&tensor), "f32:?x3");
    tensor.ndims = 0;
    cr_expect_str_eq(gb_tensor_label(&tensor), "f32:scalar");
    tensor.ndims = GB_UNKNOWN_NDIMS;
    cr_expect_str_eq(gb_tensor_label(&tensor), "f32:?");
    tensor.ndims = GB_MAX_NDIMS;
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        tensor.dims[d] = INT64_MAX;
    cr_expect_lt(strlen(gb_tensor_label(&tensor)), 256);
    gb_graph_destroy(graph);
}
