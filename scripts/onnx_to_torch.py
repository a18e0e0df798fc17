#!/usr/bin/env python3
"""A model of graph_to_onnx.py as a module of PyTorch, for torch.compile: module(path, inputs) takes tensors in the order of the model's
inputs and returns a tuple of its outputs. Initialisers are buffers, so that compilers may take them for constants. What is not in the
table is named (NotConverted). Needs the Python packages onnx, numpy and torch."""
import onnx
import torch
from onnx import helper, numpy_helper
from torch.nn import functional as F

from graph_to_onnx import NotConverted


def halves(pads):
    """ONNX has all beginnings, then all ends; a window of PyTorch the same number on both sides."""
    n = len(pads) // 2
    if pads[:n] != pads[n:]:
        raise NotConverted("windows with more padding on one side")
    return pads[:n]


def conv(a, x, weights, bias=None):
    run = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(a["kernel_shape"])]
    return run(x, weights, bias, a["strides"], halves(a["pads"]), a["dilations"], a["group"])


def max_pool(a, x):
    run = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[len(a["kernel_shape"])]
    return run(x, a["kernel_shape"], a["strides"], halves(a["pads"]), a["dilations"], bool(a["ceil_mode"]))


def resize(a, x, sizes):
    if a["mode"] != "nearest" or any(to % of for to, of in zip(sizes[2:], x.shape[2:])):
        raise NotConverted("Resize that is no repetition")
    return F.interpolate(x, size=sizes[2:], mode="nearest")


# By kind of node: attributes, then the inputs; those that say a shape or axes are lists of integers.
KINDS = {
    "Add": lambda a, x, y: x + y, "Sub": lambda a, x, y: x - y, "Mul": lambda a, x, y: x * y, "Div": lambda a, x, y: x / y,
    "Pow": lambda a, x, y: x ** y, "Max": lambda a, x, y: torch.maximum(x, y), "Min": lambda a, x, y: torch.minimum(x, y),
    "Sqrt": lambda a, x: torch.sqrt(x), "Exp": lambda a, x: torch.exp(x), "Tanh": lambda a, x: torch.tanh(x),
    "Relu": lambda a, x: F.relu(x), "Sigmoid": lambda a, x: torch.sigmoid(x), "Identity": lambda a, x: x,
    "Gelu": lambda a, x: F.gelu(x, approximate=a["approximate"]),
    "GreaterOrEqual": lambda a, x, y: x >= y, "Where": lambda a, c, x, y: torch.where(c, x, y),
    "MatMul": lambda a, x, y: x @ y, "Conv": conv, "MaxPool": max_pool, "Resize": resize,
    "Softmax": lambda a, x: F.softmax(x, a["axis"]),
    "LayerNormalization": lambda a, x, scale, shift=None: F.layer_norm(x, scale.shape, scale, shift, a["epsilon"]),
    "BatchNormalization": lambda a, x, scale, shift, mean, var: F.batch_norm(x, mean, var, scale, shift, eps=a["epsilon"]),
    "InstanceNormalization": lambda a, x, scale, shift: F.instance_norm(x, weight=scale, bias=shift, eps=a["epsilon"]),
    "ReduceMean": lambda a, x, axes: x.mean(axes, keepdim=bool(a["keepdims"])),
    "Reshape": lambda a, x, shape: x.reshape(shape), "Transpose": lambda a, x: x.permute(a["perm"]),
    "Concat": lambda a, *parts: torch.cat(parts, a["axis"]),
}
LISTS = {"Reshape": (1,), "ReduceMean": (1,), "Resize": (3,)}  # inputs that are lists


def attributes_of(node):
    values = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}


class Module(torch.nn.Module):
    def __init__(self, path):
        super().__init__()
        model = onnx.load(path).graph
        values = {one.name: numpy_helper.to_array(one) for one in model.initializer}
        unknown = {node.op_type for node in model.node} - KINDS.keys()
        if unknown:
            raise NotConverted(", ".join(sorted(unknown)))
        self.nodes, self.lists = [], {}
        for node in model.node:
            for at in LISTS.get(node.op_type, ()):
                self.lists[node.input[at]] = values[node.input[at]].tolist()
            self.nodes.append((KINDS[node.op_type], attributes_of(node), [name for name in node.input if name], node.output[0]))
        for name, value in values.items():
            if name not in self.lists:
                self.register_buffer(name, torch.from_numpy(value.copy()))
        self.names, self.results = [one.name for one in model.input], [one.name for one in model.output]

    def forward(self, *inputs):
        values = {**dict(self.named_buffers()), **self.lists, **dict(zip(self.names, inputs))}
        for run, attributes, names, result in self.nodes:
            values[result] = run(attributes, *[values[name] for name in names])
        return tuple(values[name] for name in self.results)
