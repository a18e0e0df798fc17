"""The JSON that the bridge reads: node by node, argument by argument."""

import math

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from graphbench import _writer
from graphbench._rewrite import merge_getitems


def traced(function, *inputs, mode="fake"):
    module = make_fx(function, tracing_mode=mode, _allow_non_fake_inputs=True)(*inputs)
    merge_getitems(module.graph)
    return module


def written(function, *inputs, **options):
    return _writer.graph_to_dict(traced(function, *inputs), **options)["graph_module"]


def node_of(graph_module, target):
    found = [n for n in graph_module["graph"]["nodes"] if n["target"] == f"torch.ops.aten.{target}"]
    assert len(found) == 1, [n["target"] for n in graph_module["graph"]["nodes"]]
    return found[0]


def arguments(node):
    return {entry["name"]: entry["arg"] for entry in node["inputs"]}


def test_convolution_has_lists_numbers_and_none():
    module = written(
        lambda x, w: torch.ops.aten.convolution.default(
            x, w, None, [1, 1], [2, 2], [1, 1], False, [0, 0], 1
        ),
        torch.randn(1, 2, 8, 8),
        torch.randn(4, 2, 3, 3),
    )
    node = node_of(module, "convolution.default")
    names = [entry["name"] for entry in node["inputs"]]
    assert names[:4] == ["input", "weight", "bias", "stride"]
    values = arguments(node)
    assert values["bias"] == {"as_none": True}
    assert values["padding"] == {"as_ints": [2, 2]}
    assert values["transposed"] == {"as_bool": False}
    assert values["groups"] == {"as_int": 1}
    output = node["outputs"][0]["as_tensor"]["name"]
    meta = module["graph"]["tensor_values"][output]
    assert meta["dtype"] == 7
    assert meta["sizes"] == [{"as_int": n} for n in (1, 4, 10, 10)]
    assert meta["strides"] == [{"as_int": n} for n in (400, 100, 10, 1)]


@pytest.mark.parametrize(
    "dtype, code",
    [
        (torch.uint8, 1),
        (torch.int8, 2),
        (torch.int16, 3),
        (torch.int32, 4),
        (torch.int64, 5),
        (torch.float16, 6),
        (torch.float32, 7),
        (torch.float64, 8),
        (torch.bool, 12),
        (torch.bfloat16, 13),
        (torch.float8_e4m3fn, 29),
        (torch.float8_e5m2, 30),
    ],
)
def test_codes_of_data_types(dtype, code):
    module = written(lambda x: x.to(dtype), torch.zeros(3, dtype=torch.float64 if code == 7 else torch.float32))
    if dtype is not torch.float32:
        nodes = [n for n in module["graph"]["nodes"] if n["target"].endswith("_to_copy.default")]
        assert arguments(nodes[0])["dtype"] == {"as_scalar_type": code}
    assert module["graph"]["tensor_values"][module["graph"]["outputs"][0]["as_tensor"]["name"]]["dtype"] == code


def test_results_of_a_tuple_have_the_names_of_their_getitems():
    module = traced(
        lambda x, w, b: torch.ops.aten.native_layer_norm(x, [8], w, b, 1e-5)[0],
        torch.randn(4, 8),
        torch.randn(8),
        torch.randn(8),
    )
    # A second getitem of the same result is merged with the first.
    graph = module.graph
    norm = next(n for n in graph.nodes if "native_layer_norm" in str(n.target))
    first = next(iter(norm.users))
    with graph.inserting_after(first):
        second = graph.call_function(first.target, (norm, 0))
        second.meta["val"] = first.meta["val"]
    graph.output_node().args = ((first, second),)
    merge_getitems(graph)
    graph.eliminate_dead_code()
    result = _writer.graph_to_dict(module)["graph_module"]["graph"]
    node = next(n for n in result["nodes"] if "native_layer_norm" in n["target"])
    names = [output["as_tensor"]["name"] for output in node["outputs"]]
    assert names == [first.name, f"{norm.name}_unused_1", f"{norm.name}_unused_2"]
    assert all(name in result["tensor_values"] for name in names)
    assert [output["as_tensor"]["name"] for output in result["outputs"]] == [first.name] * 2
    assert not any("getitem" in n["target"] for n in result["nodes"])


def test_a_result_that_is_not_made_is_none():
    def backward(grad, x, w):
        return torch.ops.aten.convolution_backward(
            grad, x, w, [4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False]
        )[1]

    module = written(backward, torch.randn(1, 4, 8, 8), torch.randn(1, 2, 8, 8), torch.randn(4, 2, 3, 3))
    node = node_of(module, "convolution_backward.default")
    kinds = [next(iter(output)) for output in node["outputs"]]
    assert kinds == ["as_none", "as_tensor", "as_none"]
    assert arguments(node)["output_mask"] == {"as_bools": [False, True, False]}


def test_lists_of_tensors_and_of_optional_tensors():
    module = written(lambda x, y: torch.cat([x, y], 1), torch.randn(2, 3), torch.randn(2, 4))
    values = arguments(node_of(module, "cat.default"))
    assert [entry["name"] for entry in values["tensors"]["as_tensors"]] == ["x_1", "y_1"]
    assert values["dim"] == {"as_int": 1}
    module = written(lambda x, i: x[:, i], torch.randn(3, 4), torch.tensor([0, 2]))
    index = [n for n in module["graph"]["nodes"] if "index.Tensor" in n["target"]][0]
    entries = arguments(index)["indices"]["as_optional_tensors"]
    assert entries[0] == {"as_none": True} and "as_tensor" in entries[1]
    module = written(lambda x: torch.split(x, 2)[1], torch.randn(4, 3))
    split = [n for n in module["graph"]["nodes"] if "split" in n["target"]][0]
    assert len(split["outputs"][0]["as_tensors"]) == 2


def test_numbers():
    assert _writer.argument(math.inf) == {"as_float": "Infinity"}
    assert _writer.argument(-math.inf) == {"as_float": "-Infinity"}
    assert _writer.argument(math.nan) == {"as_float": "NaN"}
    assert _writer.argument(True) == {"as_bool": True}
    assert _writer.argument(3, "float") == {"as_float": 3.0}
    assert _writer.argument(3, "number") == {"as_int": 3}
    assert _writer.argument([], "List[int]") == {"as_ints": []}
    assert _writer.argument([], "List[Tensor]") == {"as_tensors": []}
    assert _writer.argument([1, 2.5]) == {"as_floats": [1.0, 2.5]}
    assert _writer.argument(torch.channels_last) == {"as_memory_format": 2}
    assert _writer.argument(torch.strided) == {"as_layout": 7}
    assert _writer.argument(torch.device("cpu")) == {"as_device": {"type": "cpu", "index": None}}


def test_constants_are_parameters_of_the_signature():
    module = written(
        lambda x, w: torch.mm(x, w), torch.randn(2, 3), torch.randn(3, 4), constants=["w_1"]
    )
    kinds = [next(iter(spec)) for spec in module["signature"]["input_specs"]]
    assert kinds == ["user_input", "parameter"]
    assert module["signature"]["input_specs"][1]["parameter"]["arg"] == {"name": "w_1"}
    held = torch.randn(3)
    module = written(lambda x: x + held, torch.randn(2, 3))
    kinds = [next(iter(spec)) for spec in module["signature"]["input_specs"]]
    assert sorted(kinds) == ["tensor_constant", "user_input"]


def test_symbolic_sizes_have_expressions_and_hints():
    module = traced(lambda x: x.reshape(x.shape[0] * 2, -1), torch.randn(5, 8), mode="symbolic")
    graph = _writer.graph_to_dict(module)["graph_module"]["graph"]
    sizes = graph["tensor_values"]["x_1"]["sizes"]
    assert sizes[0]["as_expr"]["hint"] == {"as_int": 5}
    assert isinstance(sizes[0]["as_expr"]["expr_str"], str)
    assert graph["sym_int_values"]


def test_strides_are_those_of_memory():
    module = written(lambda x: x.relu(), torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last))
    name = module["graph"]["inputs"][0]["as_tensor"]["name"]
    strides = [size["as_int"] for size in module["graph"]["tensor_values"][name]["strides"]]
    assert strides == [60, 1, 15, 3]
