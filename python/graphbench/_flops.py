"""Floating-point operations of a node, as torch.utils.flop_counter counts them."""

from torch.fx import map_arg
from torch.utils.flop_counter import flop_registry


def flops_of(node):
    """Of products, convolutions and attention; 0 for all else, which is small beside them."""
    packet = getattr(node.target, "overloadpacket", None)
    count = flop_registry.get(packet)
    if node.op != "call_function" or count is None:
        return 0
    args = map_arg(node.args, lambda source: source.meta["val"])
    kwargs = map_arg(node.kwargs, lambda source: source.meta["val"])
    try:
        return int(count(*args, **kwargs, out_val=node.meta["val"]))
    except (TypeError, ValueError, RuntimeError):  # sizes that are not known, too
        return 0
