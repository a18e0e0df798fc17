"""Graphs that are re-written, without the library: a group's call is its own sub-graph."""

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from graphbench._rewrite import Group, merge_getitems, replace_groups, specialise


def traced(function, *inputs, mode="fake"):
    module = make_fx(function, tracing_mode=mode)(*inputs)
    merge_getitems(module.graph)
    return module


def names(module, word):
    return [node.name for node in module.graph.nodes if word in str(node.target) and node.op == "call_function"]


def call_of(made):
    """make_call of replace_groups() that runs the group's own nodes, and notes the group."""

    def make_call(group, fallback):
        def call(*inputs):
            results = fallback(*inputs)
            return results[0] if len(group.outputs) == 1 else results

        made.append(group.id)
        call.__name__ = f"group_{group.id}"
        return call

    return make_call


def test_two_groups_and_what_is_between_them():
    def function(x, w):
        y = torch.relu(torch.mm(x, w))
        y = torch.cumsum(y, 1)
        return torch.sigmoid(torch.mm(y, w))

    x, w = torch.randn(4, 4), torch.randn(4, 4)
    module = traced(function, x, w)
    first, second = names(module, "mm")
    groups = [
        Group(0, [first, "relu"], ["x_1", "w_1"], ["relu"]),
        Group(1, [second, "sigmoid"], ["cumsum", "w_1"], ["sigmoid"]),
    ]
    made = []
    result = replace_groups(module, [groups[0], "cumsum", groups[1]], call_of(made))
    torch.testing.assert_close(result(x, w), function(x, w))
    assert made == [0, 1]
    assert names(result, "mm") == [] and names(result, "cumsum") == ["cumsum"]


def test_group_with_two_results_and_a_view_that_it_swallows():
    def function(x, w):
        y = torch.mm(x, w.t())
        return torch.ops.aten.native_layer_norm(y, [4], None, None, 1e-5)[:2], y

    x, w = torch.randn(3, 8), torch.randn(4, 8)
    module = traced(function, x, w)
    norm = names(module, "native_layer_norm")[0]
    results = [n.name for n in module.graph.nodes if "getitem" in str(n.target)]
    group = Group(0, ["mm", norm], ["x_1", "w_1"], ["mm", *results])
    result = replace_groups(module, [group], call_of([]))
    assert names(result, "aten") == []
    torch.testing.assert_close(result(x, w), function(x, w))


def test_a_view_that_the_order_leaves_out_is_made_where_it_is_read():
    def function(x, w):
        turned = w.t()
        return torch.mm(x, turned), turned

    x, w = torch.randn(3, 8), torch.randn(4, 8)
    module = traced(function, x, w)
    result = replace_groups(module, [Group(0, ["mm"], ["x_1", "w_1"], ["mm"])], call_of([]))
    torch.testing.assert_close(result(x, w), function(x, w))


def test_an_input_that_is_named_twice():
    module = traced(lambda x: torch.mm(x, x), torch.randn(4, 4))
    twice = []

    def make_call(group, fallback):
        def call(a, b):
            twice.append(a is b)
            return fallback(a)[0]

        call.__name__ = "group_0"
        return call

    result = replace_groups(module, [Group(0, ["mm"], ["x_1", "x_1"], ["mm"])], make_call)
    x = torch.randn(4, 4)
    torch.testing.assert_close(result(x), torch.mm(x, x))
    assert twice == [True]


def test_symbolic_sizes_become_numbers():
    def function(x, w):
        y = torch.mm(x, w).reshape(x.shape[0] * 2, -1)
        return y * x.shape[0], x.shape[0] + 1

    module = traced(function, torch.randn(6, 4), torch.randn(4, 8), mode="symbolic")
    x, w = torch.randn(10, 4), torch.randn(4, 8)
    special = specialise(module, [x, w])
    for node in special.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            assert all(type(size) is int for size in value.shape)
    assert names(special, "sym_size") == []
    actual, expected = special(x, w), function(x, w)
    torch.testing.assert_close(actual, expected)


def test_getitems_of_one_result_are_one():
    def function(x):
        parts = torch.split(x, 2)
        return parts[0] + parts[1]

    module = traced(function, torch.randn(4, 3))
    graph = module.graph
    items = [n for n in graph.nodes if "getitem" in str(n.target)]
    with graph.inserting_after(items[0]):
        twin = graph.call_function(items[0].target, items[0].args)
        twin.meta = dict(items[0].meta)
    add = next(n for n in graph.nodes if "add" in str(n.target))
    add.args = (twin, items[1])
    merge_getitems(graph)
    assert len([n for n in graph.nodes if "getitem" in str(n.target)]) == 2
    x = torch.randn(4, 3)
    torch.testing.assert_close(module(x), function(x))
