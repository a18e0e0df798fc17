"""FX graphs as JSON, in the schema of torch.export's model.json.

The bridge reads the same form whether a graph comes from a .pt2 archive or, as here, from a graph
that AOTAutograd has just traced.
"""

import json
import math
import operator

import torch
from torch.fx import GraphModule, Node

SCHEMA_VERSION = {"major": 8, "minor": 20}

# torch.export numbers these itself; a type without a number has no code in the schema.
DTYPES = {
    torch.uint8: 1,
    torch.int8: 2,
    torch.int16: 3,
    torch.int32: 4,
    torch.int64: 5,
    torch.float16: 6,
    torch.float32: 7,
    torch.float64: 8,
    torch.complex32: 9,
    torch.complex64: 10,
    torch.complex128: 11,
    torch.bool: 12,
    torch.bfloat16: 13,
    torch.uint16: 28,
    torch.float8_e4m3fn: 29,
    torch.float8_e5m2: 30,
    torch.uint32: 34,
    torch.uint64: 35,
}
LAYOUTS = {torch.strided: 7, torch.sparse_coo: 1, torch.sparse_csr: 2}
MEMORY_FORMATS = {
    torch.contiguous_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
    torch.preserve_format: 4,
}
UNKNOWN_CODE = 0

FLOAT_WORDS = {math.inf: "Infinity", -math.inf: "-Infinity"}


def _float(value):
    value = float(value)
    if math.isnan(value):
        return "NaN"
    return FLOAT_WORDS.get(value, value)


def _expression(value):
    """A symbolic size, with the value it had when the graph was traced."""
    hint = value.node.hint
    expression = {"expr_str": str(value.node.expr)}
    if hint is not None:
        expression["hint"] = {"as_int": int(hint)}
    return {"as_expr": expression}


def _size(value):
    return {"as_int": int(value)} if isinstance(value, int) else _expression(value)


def is_getitem(node):
    """Whether a node takes one result of a node that has several."""
    return (
        node.op == "call_function"
        and node.target is operator.getitem
        and isinstance(node.args[0], Node)
        and isinstance(node.args[0].meta.get("val"), (tuple, list))
    )


def tensor_of(node):
    """The (fake) tensor that a node makes, or None."""
    value = node.meta.get("val")
    return value if isinstance(value, torch.Tensor) else None


def describe_tensor(tensor):
    """TensorMeta of the schema: data type, sizes, strides in elements."""
    strided = tensor.layout is torch.strided
    return {
        "dtype": DTYPES.get(tensor.dtype, UNKNOWN_CODE),
        "sizes": [_size(size) for size in tensor.shape],
        "requires_grad": bool(tensor.requires_grad),
        "device": {"type": tensor.device.type, "index": tensor.device.index},
        "strides": [_size(stride) for stride in tensor.stride()] if strided else [],
        "storage_offset": _size(tensor.storage_offset()) if strided else {"as_int": 0},
        "layout": LAYOUTS.get(tensor.layout, UNKNOWN_CODE),
    }


def _node_argument(node):
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt):
        return {"as_sym_int": {"as_name": node.name}}
    if isinstance(value, torch.SymFloat):
        return {"as_sym_float": {"as_name": node.name}}
    if isinstance(value, torch.SymBool):
        return {"as_sym_bool": {"as_name": node.name}}
    if isinstance(value, torch.Tensor):
        return {"as_tensor": {"name": node.name}}
    if isinstance(value, (tuple, list)):
        return _references(node)
    return {"as_none": True}  # a module, a number or nothing


def _references(value):
    """What the bridge need not understand: the values that are read, for the order of execution."""
    nodes = []
    torch.fx.map_arg(value, nodes.append)
    several = [n for n in nodes if isinstance(n.meta.get("val"), (tuple, list))]
    single = [_node_argument(n) for n in nodes if n not in several]
    return {"as_other": single + [{"name": name} for n in several for name, _ in _results(n)]}


def _list_argument(values, type_text):
    """A list is one union of the schema; the type of the op's argument says which when it is empty."""
    if any(isinstance(value, Node) for value in values):
        if all(_is_int(value) for value in values):
            return {
                "as_sym_ints": [
                    {"as_name": value.name} if isinstance(value, Node) else {"as_int": int(value)}
                    for value in values
                ]
            }
        if not all(value is None or _is_tensor(value) for value in values):
            return _references(values)
        if any(value is None for value in values) or "Tensor?" in type_text:
            return {
                "as_optional_tensors": [
                    {"as_none": True} if value is None else {"as_tensor": {"name": value.name}}
                    for value in values
                ]
            }
        return {"as_tensors": [{"name": value.name} for value in values]}
    if values and all(value is None for value in values):
        return {"as_optional_tensors": [{"as_none": True} for _ in values]}
    if values and all(isinstance(value, bool) for value in values):
        return {"as_bools": list(values)}
    if values and all(isinstance(value, int) for value in values):
        if "float" in type_text:
            return {"as_floats": [_float(value) for value in values]}
        return {"as_ints": [int(value) for value in values]}
    if values and all(isinstance(value, (int, float)) for value in values):
        return {"as_floats": [_float(value) for value in values]}
    if values and all(isinstance(value, str) for value in values):
        return {"as_strings": list(values)}
    if not values:
        for word, key in (
            ("Tensor", "as_tensors"),
            ("float", "as_floats"),
            ("bool", "as_bools"),
            ("str", "as_strings"),
        ):
            if word in type_text:
                return {key: []}
        return {"as_ints": []}
    return _references(values)


def _is_int(value):
    return isinstance(value, int) or (
        isinstance(value, Node) and isinstance(value.meta.get("val"), torch.SymInt)
    )


def _is_tensor(value):
    return isinstance(value, Node) and tensor_of(value) is not None


def argument(value, type_text=""):
    """The one-key union that stands for an argument of an op.

    value: what FX has: a node, a list, a number, a dtype, None, ...
    type_text: the argument's type in the op's schema, for what the value does not tell.
    """
    if value is None:
        return {"as_none": True}
    if isinstance(value, Node):
        return _node_argument(value)
    if isinstance(value, (list, tuple)):
        return _list_argument(list(value), type_text)
    if isinstance(value, (dict, slice)):
        return _references(value)
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_float": _float(value)} if type_text.startswith("float") else {"as_int": value}
    if isinstance(value, float):
        return {"as_float": _float(value)}
    if isinstance(value, complex):
        return {"as_complex": {"real": _float(value.real), "imag": _float(value.imag)}}
    if isinstance(value, str):
        return {"as_string": value}
    if isinstance(value, torch.dtype):
        return {"as_scalar_type": DTYPES.get(value, UNKNOWN_CODE)}
    if isinstance(value, torch.memory_format):
        return {"as_memory_format": MEMORY_FORMATS.get(value, UNKNOWN_CODE)}
    if isinstance(value, torch.layout):
        return {"as_layout": LAYOUTS.get(value, UNKNOWN_CODE)}
    if isinstance(value, torch.device):
        return {"as_device": {"type": value.type, "index": value.index}}
    return {"as_string": str(value)}


def _named_arguments(node):
    """(name, type, value) of each argument that a node passes."""
    schema = getattr(node.target, "_schema", None)
    declared = schema.arguments if schema is not None else []
    for index, value in enumerate(node.args):
        if index < len(declared):
            yield declared[index].name, str(declared[index].type), value
        else:
            yield f"arg{index}", "", value
    types = {argument.name: str(argument.type) for argument in declared}
    for name, value in node.kwargs.items():
        yield name, types.get(name, ""), value


def target_name(node):
    """torch.ops.aten.conv2d.default for an op of PyTorch, else the module and name of the callable."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target}"
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"torch.ops.higher_order.{target}"
    if callable(target):
        return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', repr(target))}"
    return str(target)


def _results(node):
    """(name, value) of each result of a node that has several: the names are those of the getitem
    nodes that take them. A result may be a tuple itself."""
    taken = {}
    for user in node.users:
        if is_getitem(user):
            taken.setdefault(user.args[1], user)
    for i, value in enumerate(node.meta["val"]):
        if i in taken and isinstance(value, (tuple, list)):
            yield from _results(taken[i])
        else:
            yield (taken[i].name if i in taken else f"{node.name}_unused_{i}"), value


def _outputs(node):
    """Results of a node."""
    if not isinstance(node.meta.get("val"), (tuple, list)):
        return [_node_argument(node)]
    results = list(_results(node))
    schema = getattr(node.target, "_schema", None)
    if schema is not None and len(schema.returns) == 1:  # one list of tensors
        return [{"as_tensors": [{"name": name} for name, _ in results]}]
    return [
        {"as_tensor": {"name": name}}
        if isinstance(value, torch.Tensor)
        else {"as_sym_int": {"as_name": name}}
        if isinstance(value, torch.SymInt)
        else {"as_none": True}
        for name, value in results
    ]


def _describe_values(node, values):
    """values: the objects of the graph that say what values are, by their keys."""
    value = node.meta.get("val")
    several = isinstance(value, (tuple, list))
    for name, value in _results(node) if several else [(node.name, value)]:
        if isinstance(value, torch.Tensor):
            values["tensor_values"][name] = describe_tensor(value)
        elif isinstance(value, torch.SymInt):
            values["sym_int_values"][name] = _expression(value)
        elif isinstance(value, torch.SymBool):
            values["sym_bool_values"][name] = {"as_expr": {"expr_str": str(value.node.expr)}}
        elif isinstance(value, torch.SymFloat):
            values["sym_float_values"][name] = {"as_expr": {"expr_str": str(value.node.expr)}}


def _input_spec(node, constants):
    argument_of_node = _node_argument(node)
    if "as_tensor" not in argument_of_node:
        return {"user_input": {"arg": argument_of_node}}
    if node.op == "get_attr":
        return {"tensor_constant": {"arg": {"name": node.name}, "tensor_constant_name": node.target}}
    if node.name in constants:
        return {"parameter": {"arg": {"name": node.name}, "parameter_name": node.name}}
    return {"user_input": {"arg": argument_of_node}}


def graph_to_dict(module, constants=()):
    """The graph of an FX module, each node with its meta["val"], as the object of model.json.

    constants: names of placeholders whose contents do not change; they become parameters in the
    signature. Tensors that the module holds (get_attr) become constants.
    """
    constants = set(constants)
    kinds = ("tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values")
    values = {kind: {} for kind in kinds}
    inputs, nodes, outputs, specs, output_specs = [], [], [], [], []
    for node in module.graph.nodes:
        if node.op == "placeholder" or (node.op == "get_attr" and tensor_of(node) is not None):
            if "as_none" in _node_argument(node):
                continue  # None or a number, which nobody reads by name
            _describe_values(node, values)
            inputs.append(_node_argument(node))
            specs.append(_input_spec(node, constants))
        elif node.op == "call_function" and not is_getitem(node):
            _describe_values(node, values)
            nodes.append(
                {
                    "name": node.name,
                    "target": target_name(node),
                    "inputs": [
                        {"name": name, "arg": argument(value, type_text), "kind": 1}
                        for name, type_text, value in _named_arguments(node)
                    ],
                    "outputs": _outputs(node),
                    "metadata": {},
                }
            )
        elif node.op == "output":
            results = node.args[0]
            for result in results if isinstance(results, (tuple, list)) else [results]:
                if isinstance(result, Node):
                    outputs.append(_node_argument(result))
                    output_specs.append({"user_output": {"arg": _node_argument(result)}})
    return {
        "graph_module": {
            "graph": {
                "inputs": inputs,
                "outputs": outputs,
                "nodes": nodes,
                **values,
                "is_single_tensor_return": False,
            },
            "signature": {"input_specs": specs, "output_specs": output_specs},
            "module_call_graph": [],
        },
        "opset_version": {"aten": 10},
        "range_constraints": {},
        "schema_version": SCHEMA_VERSION,
        "torch_version": torch.__version__,
    }


def graph_to_json(module: GraphModule, constants=()) -> str:
    """graph_to_dict() as text."""
    return json.dumps(graph_to_dict(module, constants))
