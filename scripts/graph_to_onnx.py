#!/usr/bin/env python3
"""A graph as an ONNX model, for other runtimes: graph_to_onnx.py GRAPH.json TENSORS MODEL.onnx. The graph has all shapes, as
`graph-bench --save-graph` writes it; TENSORS is a folder of `--save-tensors`: constants become initialisers, the weights lie in
MODEL.onnx.data. Needs the Python packages onnx and numpy. What cannot be converted is named, and nothing is written then."""
import json
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
TYPES = {"f32": (TensorProto.FLOAT, np.float32), "f16": (TensorProto.FLOAT16, np.float16), "s32": (TensorProto.INT32, np.int32),
         "s64": (TensorProto.INT64, np.int64), "s8": (TensorProto.INT8, np.int8), "u8": (TensorProto.UINT8, np.uint8),
         "boolean": (TensorProto.BOOL, np.bool_)}
SAME = {"Abs": "Abs", "Add": "Add", "Divide": "Div", "Exp": "Exp", "GreaterEqual": "GreaterOrEqual", "HardSwish": "HardSwish", "Log": "Log",
        "Maximum": "Max", "Minimum": "Min", "Mish": "Mish", "Multiply": "Mul", "Reciprocal": "Reciprocal", "ReLU": "Relu",
        "Reorder": "Identity", "Round": "Round", "Select": "Where", "Sigmoid": "Sigmoid", "Sqrt": "Sqrt", "Subtract": "Sub", "Tanh": "Tanh"}


class NotConverted(Exception):
    """An op, form or type that has no counterpart here."""


def file_of(folder, tensor, role="in"):
    """Where --save-tensors put it."""
    return os.path.join(folder, f"{role}_{tensor['id']}.{tensor['dtype']}.npy")


def load(folder, tensor, role="in"):
    """What --save-tensors wrote, in the type and shape of the tensor."""
    values = np.load(file_of(folder, tensor, role)).astype(TYPES[tensor["dtype"]][1], copy=False)
    return np.asarray(values.reshape(tensor["shape"]), order="C")


class Converter:
    def __init__(self, graph):
        self.nodes = graph["graph"]
        self.made, self.initialisers, self.names = [], [], 0
        outputs = {t["id"]: t for node in self.nodes for t in node["outputs"]}
        self.inputs = {t["id"]: t for node in self.nodes for t in node["inputs"] if t["id"] not in outputs}
        read = {t["id"] for node in self.nodes if node["kind"] != "End" for t in node["inputs"]}
        marked = {t["id"] for node in self.nodes if node["kind"] == "End" for t in node["inputs"]}
        self.results = [t for t in outputs.values() if t["id"] not in read or t["id"] in marked]
        for tensor in [*self.inputs.values(), *outputs.values()]:
            if tensor["dtype"] not in TYPES:
                raise NotConverted(f"type {tensor['dtype']}")

    def name(self):
        self.names += 1
        return f"n{self.names}"

    def constant(self, values, dtype):
        name = self.name()
        self.initialisers.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def put(self, kind, inputs, output=None, **attributes):
        output = output or self.name()
        self.made.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def add(self, node):
        kind, self.attributes = node["kind"], {name: attr["value"] for name, attr in node["attrs"].items()}
        self.node = node
        x, y = [f"t{t['id']}" for t in node["inputs"]], f"t{node['outputs'][0]['id']}" if node["outputs"] else None
        if kind == "End":
            return
        convert = getattr(self, "op_" + kind, None)
        if len(node["outputs"]) != 1 or (not convert and kind not in SAME):
            raise NotConverted(f"{kind} with {len(node['outputs'])} outputs" if convert or kind in SAME else kind)
        if convert:
            convert(x, y)
        else:
            self.put(SAME[kind], x, y)

    def type(self, port=0):
        return TYPES[self.node["inputs"][port]["dtype"]][1]

    def shape(self, port=0):
        return self.node["inputs"][port]["shape"]

    def rank(self):
        return len(self.shape())

    def get(self, name, default=None):
        return self.attributes.get(name, default)

    def axis(self, name, default):
        axis = self.get(name, default)
        return axis + self.rank() if axis < 0 else axis

    # Between channels last and channels first, as ONNX has them.
    def first(self, x, moved):
        rank = self.rank()
        return self.put("Transpose", [x], perm=[0, rank - 1, *range(1, rank - 1)]) if moved else x

    def last(self, kind, inputs, y, moved, **attributes):
        if not moved:
            return self.put(kind, inputs, y, **attributes)
        rank = self.rank()
        return self.put("Transpose", [self.put(kind, inputs, **attributes)], y, perm=[0, *range(2, rank), 1])

    def is_last(self):
        return self.get("data_format", "NXC") == "NXC" and self.rank() > 2

    # ---- products ----

    def transposed(self, x, port):
        rank = len(self.shape(port))
        return x if rank < 2 else self.put("Transpose", [x], perm=[*range(rank - 2), rank - 1, rank - 2])

    def op_MatMul(self, x, y):
        operands = [self.transposed(x[i], i) if self.get("transpose_" + "ab"[i]) else x[i] for i in range(2)]
        if len(x) > 2:
            self.put("Add", [self.put("MatMul", operands), x[2]], y)
        else:
            self.put("MatMul", operands, y)

    def windows(self, kernel):
        auto = self.get("auto_pad", "None")
        attributes = {"strides": self.get("strides"), "kernel_shape": kernel}
        attributes["dilations"] = [*(self.get("dilations") or []), *[1] * len(kernel)][:len(kernel)]
        if auto.upper() in ("NONE", ""):
            attributes["pads"] = [*self.get("pads_begin"), *self.get("pads_end")]
        else:
            attributes["auto_pad"] = auto.upper()
        return attributes

    def op_Convolution(self, x, y):
        moved, weights, rank = self.is_last(), x[1], self.rank()
        shape = self.shape(1)
        if self.get("weights_format", "XIO") == "XIO":
            weights = self.put("Transpose", [weights], perm=[rank - 1, rank - 2, *range(rank - 2)])
            shape = shape[:-2]
        else:
            shape = shape[2:]
        self.last("Conv", [self.first(x[0], moved), weights, *x[2:]], y, moved, group=self.get("groups", 1), **self.windows(shape))

    # ---- norms ----

    def op_BatchNormInference(self, x, y):
        moved = self.is_last()
        self.last("BatchNormalization", [self.first(x[0], moved), *x[1:]], y, moved, epsilon=self.get("epsilon"))

    def op_LayerNorm(self, x, y):
        axis, eps = self.axis("begin_norm_axis", -1), self.get("epsilon", 1e-5)
        if not self.get("use_affine", 1):
            x = [x[0], self.constant(np.ones(self.shape()[axis:]), self.type())]
        self.put("LayerNormalization", x, y, axis=axis, epsilon=eps)

    def op_RMSNorm(self, x, y):
        axes = self.constant(range(self.axis("begin_norm_axis", -1), self.rank()), np.int64)
        squares = self.put("Pow", [x[0], self.constant(2, self.type())])
        mean = self.put("ReduceMean", [squares, axes], keepdims=1)
        root = self.put("Sqrt", [self.put("Add", [mean, self.constant(self.get("epsilon", 1e-5), self.type())])])
        if len(x) > 1:
            self.put("Mul", [self.put("Div", [x[0], root]), x[1]], y)
        else:
            self.put("Div", [x[0], root], y)

    def op_GroupNorm(self, x, y):
        """As exporters write it: instances of groups, then the channels' scale and shift."""
        moved, groups, shape = self.is_last(), self.get("groups"), self.shape()
        channels = shape[-1] if moved else shape[1]
        own = self.put("Reshape", [self.first(x[0], moved), self.constant([shape[0], groups, -1], np.int64)])
        one, none = self.constant(np.ones(groups), self.type()), self.constant(np.zeros(groups), self.type())
        own = self.put("InstanceNormalization", [own, one, none], epsilon=self.get("epsilon", 1e-5))
        spatial = shape[1:-1] if moved else shape[2:]
        own = self.put("Reshape", [own, self.constant([shape[0], channels, *spatial], np.int64)],
                       None if moved or self.get("use_affine", 1) else y)
        if self.get("use_affine", 1):
            form = self.constant([channels] + [1] * len(spatial), np.int64)
            own = self.put("Mul", [own, self.put("Reshape", [x[1], form])])
            self.last("Add", [own, self.put("Reshape", [x[2], form])], y, moved)
        elif moved:
            self.last("Identity", [own], y, moved)

    def op_SoftMax(self, x, y):
        self.put("Softmax", x, y, axis=self.get("axis", 1))

    def op_LogSoftmax(self, x, y):
        self.put("LogSoftmax", x, y, axis=self.get("axis", -1))

    # ---- windows ----

    def pool(self, kind, x, y, **more):
        moved = self.is_last()
        more["ceil_mode"] = int(self.get("rounding_type", "floor") == "ceil")
        self.last(kind, [self.first(x[0], moved)], y, moved, **self.windows(self.get("kernel")), **more)

    def op_MaxPool(self, x, y):
        self.pool("MaxPool", x, y)

    def op_AvgPool(self, x, y):
        self.pool("AveragePool", x, y, count_include_pad=int(not self.get("exclude_pad")))

    def op_Interpolate(self, x, y):
        moved, shape = self.is_last(), self.node["outputs"][0]["shape"]
        if len(x) > 1:
            raise NotConverted("Interpolate with sizes as an input")
        sizes = self.constant([shape[0], shape[-1], *shape[1:-1]] if moved else shape, np.int64)
        mode = "nearest" if self.get("mode") == "nearest" else "linear"
        more = {"nearest_mode": "round_prefer_ceil"} if mode == "nearest" else {}
        self.last("Resize", [self.first(x[0], moved), "", "", sizes], y, moved, mode=mode,
                  coordinate_transformation_mode=self.get("coordinate_transformation_mode", "half_pixel"), **more)

    # ---- movement ----

    def op_Concat(self, x, y):
        self.put("Concat", x, y, axis=self.get("axis"))

    def op_StaticReshape(self, x, y):
        self.put("Reshape", [x[0], self.constant(self.node["outputs"][0]["shape"], np.int64)], y, allowzero=1)

    def op_StaticTranspose(self, x, y):
        self.put("Transpose", x, y, perm=[axis % self.rank() for axis in self.get("order")])

    def op_TypeCast(self, x, y):
        self.put("Cast", x, y, to=TYPES[self.node["outputs"][0]["dtype"]][0])

    def op_GenIndex(self, x, y):
        """Known with the shape: every runtime folds it."""
        shape = self.node["outputs"][0]["shape"]
        self.put("Identity", [self.constant(np.indices(shape)[self.axis("axis", 0)], np.int32)], y)

    # ---- element-wise ----

    def op_BiasAdd(self, x, y):
        if not self.is_last() and self.rank() > 2:
            x = [x[0], self.put("Reshape", [x[1], self.constant([-1] + [1] * (self.rank() - 2), np.int64)])]
        self.put("Add", x, y)

    def op_GELU(self, x, y):
        self.put("Gelu", x, y, approximate="tanh" if self.get("mode") == "gelu_tanh" else "none")

    def op_Clamp(self, x, y):
        self.put("Clip", [x[0], self.constant(self.get("min"), self.type()), self.constant(self.get("max"), self.type())], y)

    def op_Elu(self, x, y):
        self.put("Elu", x, y, alpha=float(self.get("alpha")))

    def op_LeakyReLU(self, x, y):
        self.put("LeakyRelu", x, y, alpha=float(self.get("alpha")))

    def op_HardSigmoid(self, x, y):
        self.put("HardSigmoid", x, y, alpha=float(self.get("alpha")), beta=float(self.get("beta")))

    def op_SoftPlus(self, x, y):
        beta = self.get("beta", 1)
        if beta == 1:
            self.put("Softplus", x, y)
            return
        factor = self.constant(beta, self.type())
        self.put("Div", [self.put("Softplus", [self.put("Mul", [x[0], factor])]), factor], y)

    def op_Pow(self, x, y):
        self.put("Pow", [x[0], self.constant(self.get("beta"), self.type())], y)

    def op_Square(self, x, y):
        self.put("Mul", [x[0], x[0]], y)

    def op_SquaredDifference(self, x, y):
        difference = self.put("Sub", x)
        self.put("Mul", [difference, difference], y)

    def reduce(self, kind, x, y):
        axes = [x[1]] if len(x) > 1 else [self.constant(self.get("axes"), np.int64)] if self.get("axes") else []
        if len(x) > 1 and self.node["inputs"][1]["dtype"] != "s64":
            axes = [self.put("Cast", axes, to=TensorProto.INT64)]
        self.put(kind, [x[0], *axes], y, keepdims=int(bool(self.get("keep_dims"))))

    # ---- quantisation ----

    def quantized(self, x, y, kind, port):
        if self.get("qtype", "per_tensor") == "per_group":
            raise NotConverted(f"{self.node['kind']} per group")
        dtype = TYPES[port["dtype"]][1]
        single = self.get("qtype", "per_tensor") == "per_tensor"
        scales, zeros = self.get("scales"), self.get("zps") or [0] * len(self.get("scales"))
        scale = self.constant(scales[0] if single else scales, np.float32)
        zero = self.constant(zeros[0] if single else zeros, dtype)
        self.put(kind, [x[0], scale, zero], y, **({} if single else {"axis": self.axis("axis", 1)}))

    def op_Quantize(self, x, y):
        self.quantized(x, y, "QuantizeLinear", self.node["outputs"][0])

    def op_Dequantize(self, x, y):
        self.quantized(x, y, "DequantizeLinear", self.node["inputs"][0])


for reduction in ("L1", "L2", "Max", "Mean", "Min", "Prod", "Sum"):
    setattr(Converter, "op_Reduce" + reduction, lambda self, x, y, kind="Reduce" + reduction: self.reduce(kind, x, y))


def described(tensor):
    return helper.make_tensor_value_info(f"t{tensor['id']}", TYPES[tensor["dtype"]][0], tensor["shape"])


def convert(graph, folder):
    """(model, inputs, results): tensors of the graph, which the model calls t<id>. NotConverted names all that stands in the way."""
    converter, unknown = Converter(graph), []
    for node in graph["graph"]:
        try:
            converter.add(node)
        except NotConverted as error:
            unknown.append(str(error))
    if unknown:
        raise NotConverted(", ".join(sorted(set(unknown))))
    fixed = [t for t in converter.inputs.values() if t["property_type"] == "constant"]
    given = [t for t in converter.inputs.values() if t["property_type"] != "constant"]
    for tensor in fixed:
        converter.initialisers.append(numpy_helper.from_array(load(folder, tensor), f"t{tensor['id']}"))
    made = helper.make_graph(converter.made, "graph", [described(t) for t in given], [described(t) for t in converter.results],
                             converter.initialisers)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    return model, given, converter.results


def write(graph_path, folder, path):
    with open(graph_path, encoding="utf-8") as file:
        graph = json.load(file)
    model, given, results = convert(graph, folder)
    onnx.save_model(model, path, save_as_external_data=True, all_tensors_to_one_file=True, location=os.path.basename(path) + ".data")
    return given, results


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    try:
        write(*sys.argv[1:])
    except NotConverted as why:
        sys.exit(f"not converted: {why}")
