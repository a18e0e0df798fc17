"""FX graphs re-written so that each group of nodes is one call.

Nothing here knows the bridge: a group is a list of value names, with the values that it reads and
makes; what is called in its place is the caller's.
"""

import operator
from dataclasses import dataclass, field

import torch
from torch.fx import Graph, GraphModule

from ._writer import is_getitem


@dataclass
class Group:
    """Nodes that are replaced by one call. All lists are names of FX nodes."""

    id: int
    nodes: list
    inputs: list
    outputs: list
    info: dict = field(default_factory=dict)


def merge_getitems(graph):
    """Each result of a node is taken by one getitem, so that a value has one name."""
    first = {}
    for node in list(graph.nodes):
        if not is_getitem(node):
            continue
        key = (node.args[0], node.args[1])
        if key in first:
            node.replace_all_uses_with(first[key])
            graph.erase_node(node)
        else:
            first[key] = node


def sub_graph(module, inputs, outputs):
    """A GraphModule of its own that makes `outputs` of `inputs`, lists of nodes; returns a tuple.

    Holds all nodes between the two. An input that is named twice is taken once. Used to time what
    a group replaces.
    """
    given, needed, waiting = set(inputs), set(), list(outputs)
    while waiting:
        node = waiting.pop()
        if node not in needed and node not in given:
            needed.add(node)
            waiting.extend(node.all_input_nodes)
    graph, copies = Graph(), {}
    for node in dict.fromkeys(inputs):
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    for node in module.graph.nodes:
        if node in needed:
            copies[node] = graph.node_copy(node, lambda source: copies[source])
    graph.output(tuple(copies[node] for node in outputs))
    return GraphModule(module, graph)


def _copy_group(module, graph, copies, find, group, by_name, make_call):
    inputs = [by_name[name] for name in group.inputs]
    outputs = [by_name[name] for name in group.outputs]
    callee = make_call(group, sub_graph(module, inputs, outputs))
    call = graph.call_function(callee, tuple(find(node) for node in inputs))
    if len(outputs) == 1:
        copies[outputs[0]] = call
        call.meta["val"] = outputs[0].meta.get("val")
        return
    call.meta["val"] = tuple(node.meta.get("val") for node in outputs)
    for position, node in enumerate(outputs):
        copies[node] = graph.call_function(operator.getitem, (call, position))
        copies[node].meta["val"] = node.meta.get("val")


def replace_groups(module, order, make_call):
    """A new GraphModule in which each group is one call_function node.

    order: what is executed, one after the other: names of nodes outside of groups, and Groups.
    make_call(group, fallback): the callable; it takes the values group.inputs and returns the value
    of group.outputs, or a tuple of them when there are several. `fallback` is the group's sub-graph,
    which returns a tuple.
    """
    by_name = {node.name: node for node in module.graph.nodes}
    graph, copies = Graph(), {}

    def find(node):
        if node not in copies:  # computes nothing, and somebody outside of the groups reads it
            copy(node)
        return copies[node]

    def copy(node):
        copies[node] = graph.node_copy(node, find)

    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            copy(node)
    for entry in order:
        if isinstance(entry, Group):
            _copy_group(module, graph, copies, find, entry, by_name, make_call)
        else:
            find(by_name[entry])
    copy(module.graph.output_node())
    graph.lint()
    return GraphModule(module, graph)


def specialise(module, arguments):
    """A copy of a graph with symbolic sizes, for the sizes that `arguments` have.

    arguments: one value for each placeholder: tensors, and numbers for symbolic sizes. The copy
    takes the same arguments; numbers are ignored. Meta of all nodes is made anew.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    graph, copies, values = Graph(), {}, {}
    remaining = iter(arguments)

    def value_of(argument):
        return torch.fx.map_arg(argument, lambda node: values[node])

    with mode:
        for node in module.graph.nodes:
            if node.op == "output":
                results = torch.fx.map_arg(node.args[0], lambda source: _constant_or(source, values, copies))
                graph.output(results)
                break
            if node.op == "placeholder":
                value = next(remaining)
                fake = mode.from_tensor(value) if isinstance(value, torch.Tensor) else value
                copies[node] = graph.placeholder(node.target)
                copies[node].meta["val"] = fake
                values[node] = fake
                continue
            if node.op == "get_attr":
                value = getattr(module, node.target)
                values[node] = mode.from_tensor(value) if isinstance(value, torch.Tensor) else value
                copies[node] = graph.node_copy(node)
                copies[node].meta["val"] = values[node]
                continue
            value = node.target(*value_of(node.args), **value_of(node.kwargs))
            values[node] = value
            if isinstance(value, (int, float, bool)):
                continue
            copies[node] = graph.create_node(
                node.op,
                node.target,
                torch.fx.map_arg(node.args, lambda source: _constant_or(source, values, copies)),
                torch.fx.map_arg(node.kwargs, lambda source: _constant_or(source, values, copies)),
                node.name,
            )
            copies[node].meta["val"] = value
    return GraphModule(module, graph)


def _constant_or(node, values, copies):
    value = values[node]
    return value if isinstance(value, (int, float, bool)) else copies[node]
