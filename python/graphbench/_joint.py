"""What is changed in graphs of forward and backward before they are taken apart.

Whatever the backward part reads of the forward part is kept between the two. So what the library
does not need must not be read any more.
"""

import operator

import torch
from torch._functorch.partitioners import default_partition

_aten = torch.ops.aten
_POOLS = {
    _aten.max_pool2d_with_indices_backward.default: _aten.max_pool2d_with_indices.default,
    _aten.max_pool3d_with_indices_backward.default: _aten.max_pool3d_with_indices.default,
}
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def _set_value(node, value):
    """What a node's meta says that it makes. Metas are shared by nodes."""
    node.meta = {**node.meta, "val": value}
    node.meta.pop("tensor_meta", None)


def _find_places_again(graph, node, disabled):
    """A max pool's gradient gets the places of maxima from a pool of its own. The library finds them
    while it computes the gradient, so that pool runs only where PyTorch computes the gradient."""
    places = node.args[-1]
    pool = places.args[0] if places.target is operator.getitem else None
    if pool is None or pool.target is not _POOLS[node.target] or pool.args[0] is not node.args[1]:
        return
    if node.args[1].meta["val"].dtype not in _FLOATS or {str(node.target), str(pool.target)} & disabled:
        return
    with graph.inserting_before(node):
        again = graph.call_function(pool.target, tuple(node.args[1:-1]))
        again_places = graph.call_function(operator.getitem, (again, 1))
    for made, like in ((again, pool), (again_places, places)):
        made.meta = node.meta
        _set_value(made, like.meta["val"])
    node.replace_input_with(places, again_places)


def _forget_batch_statistics(node):
    """The gradient of a batch norm that used running statistics reads no others; those that the
    forward pass gives for it are empty."""
    if not node.args[7]:  # train
        node.args = node.args[:5] + (None, None) + node.args[7:]


def _tell_group_statistics(node):
    """The statistics of a group norm with parameters of f32 are f32; meta says that they are of the
    input's type."""
    weight = node.args[1]
    if weight is None or weight.meta["val"].dtype is not torch.float32:
        return
    result, *statistics = node.meta["val"]
    _set_value(node, (result, *(value.float() for value in statistics)))
    wrong = [user for user in node.users if user.target is operator.getitem and user.args[1] > 0]
    while wrong:
        made = wrong.pop()
        _set_value(made, made.meta["val"].float())
        wrong += [user for user in made.users if user.target is _aten.detach.default]


def simplify(graph, disabled):
    """disabled: names of ops that stay with PyTorch."""
    for node in list(graph.nodes):
        if node.target in _POOLS:
            _find_places_again(graph, node, set(disabled))
        elif node.target is _aten.native_batch_norm_backward.default:
            _forget_batch_statistics(node)
        elif node.target is _aten.native_group_norm.default:
            _tell_group_statistics(node)
    graph.eliminate_dead_code()


def partition(joint, inputs, *, disabled, **settings):
    """A partition_fn of AOTAutograd."""
    simplify(joint.graph, disabled)
    joint.recompile()
    return default_partition(joint, inputs, **settings)
