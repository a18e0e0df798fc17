"""What the tests share: compiling, counting groups, comparing with eager."""

import copy

import torch
from torch._dynamo.utils import same

from graphbench._backend import Compiler, Options


def compiled(function, **options):
    """(compiled function, Compiler); one partition for each pattern, unless options say otherwise."""
    torch._dynamo.reset()
    compiler = Compiler(Options(**{"policy": "fusion", **options}))
    return torch.compile(function, backend=compiler), compiler


def groups(compiler):
    """The groups of all graphs: lists of the names of their ops in the library."""
    return [call.group.info["ops"] for program in compiler.programs for call in program.calls]


def tolerances(dtype):
    return {"rtol": 1.6e-2, "atol": 1e-2} if dtype is torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-4}


def close(actual, expected):
    """As torch.testing does, but that sums may be in another order."""
    dtype = expected.dtype
    torch.testing.assert_close(actual, expected, **tolerances(dtype), equal_nan=True)
    assert actual.stride() == expected.stride()


def run_both(function, *inputs, **options):
    """Results of eager and compiled function on copies of the inputs; returns the groups."""
    with torch.no_grad():
        expected = function(*copy.deepcopy(inputs))
        ours, compiler = compiled(function, **options)
        for _ in range(2):  # the second run has prepared constants
            actual = ours(*copy.deepcopy(inputs))
    torch.utils._pytree.tree_map(close, actual, expected)
    return groups(compiler)


def same_as_eager(actual, expected, exact, dtype=torch.float32):
    """Whether a model's results are as near to f64's as eager's are, by the rule of torch's own tests."""
    return same(expected, actual, exact, tol=1e-2 if dtype is torch.bfloat16 else 1e-4)


def exact_copy(model, inputs):
    """Model and inputs in f64."""
    double = copy.deepcopy(model).double()
    return double, [x.double() if x.is_floating_point() else x for x in inputs]
