"""Models with random weights: results near f64's as eager's are, one graph, most work in partitions."""

import pytest
import torch

import zoo
from graphbench import report
from helpers import compiled, exact_copy, same_as_eager


def check(name, dtype, **options):
    model, inputs = zoo.make(name, batch=1, small=True)
    double, exact_inputs = exact_copy(model, inputs)
    model = model.to(dtype)
    inputs = [x.to(dtype) if x.is_floating_point() else x for x in inputs]
    with torch.no_grad():
        expected, exact = model(*inputs), double(*exact_inputs)
        ours, compiler = compiled(model, **options)
        for _ in range(2):
            actual = ours(*inputs)
    assert same_as_eager(actual, expected, exact, dtype)
    assert len(compiler.programs) == 1  # no graph breaks
    return compiler


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("name", zoo.MODELS)
def test_inference(name, dtype):
    compiler = check(name, dtype, policy="max")
    assert compiler.programs[0].calls


@pytest.mark.parametrize("name", ["resnet18", "bert"])
def test_policy_fusion(name):
    check(name, torch.float32, policy="fusion")


@pytest.mark.parametrize("name", ["resnet18", "bert", "unet"])
def test_autocast(name):
    model, inputs = zoo.make(name, small=True)
    double, exact_inputs = exact_copy(model, inputs)
    with torch.no_grad():
        exact = double(*exact_inputs)
        ours, compiler = compiled(model, policy="max")
        with torch.autocast("cpu", torch.bfloat16):
            expected, actual = model(*inputs), ours(*inputs)
    assert actual.dtype == expected.dtype
    assert same_as_eager(actual, expected, exact, torch.bfloat16)
    assert len(compiler.programs) == 1


@pytest.mark.parametrize("name", zoo.MODELS)
def test_most_work_is_in_partitions(name):
    model, inputs = zoo.make(name, small=True)
    result = report(model, inputs, time_partitions=False)
    assert result.graphs == 1
    assert result.share >= 0.95, str(result)
