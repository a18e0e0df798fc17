"""Chains of ops: how many groups they are, and that they are right."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from helpers import compiled, run_both

TYPES = [torch.float32, torch.bfloat16]


@pytest.fixture(params=TYPES, ids=["f32", "bf16"])
def dtype(request):
    return request.param


class Chain(nn.Module):
    """conv, a function, conv, the function again."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.first, self.second = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        return self.function(self.second(self.function(self.first(x))))


FUNCTIONS = {
    "relu": F.relu,
    "relu_": torch.relu_,
    "leaky_relu": F.leaky_relu,
    "leaky_relu_": F.leaky_relu_,
    "sigmoid": torch.sigmoid,
    "sigmoid_": torch.sigmoid_,
    "square": torch.square,
    "square_": torch.square_,
    "abs": torch.abs,
    "abs_": torch.abs_,
    "exp": torch.exp,
    "hardswish": F.hardswish,
    "tanh": torch.tanh,
    "tanh_": torch.tanh_,
    "hardtanh": F.hardtanh,
    "hardtanh_": F.hardtanh_,
    "silu": F.silu,
    "gelu": F.gelu,
    "relu6": F.relu6,
    "elu": F.elu,
}


def image(dtype=torch.float32, channels=8):
    return 0.5 * torch.randn(1, channels, 10, 10, dtype=dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_conv_and_element_wise(name, dtype):
    assert len(run_both(Chain(FUNCTIONS[name]).to(dtype), image(dtype))) == 2


def test_conv_and_clamps():
    class Clamps(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(5))

        def forward(self, x):
            inf = float("inf")
            bounds = [(-inf, 0.5), (-0.1, None), (None, 0.7), (-0.5, inf), (-2.0, 2.0)]
            for layer, (low, high) in zip(self.layers, bounds):
                x = torch.clamp(layer(x), low, high)
            return x

    assert len(run_both(Clamps(), image())) == 5


@pytest.mark.parametrize("relu", [False, True])
def test_conv_and_batch_norm(relu, dtype):
    layers = [nn.Conv2d(8, 16, 3, bias=False), nn.BatchNorm2d(16)] + ([nn.ReLU()] if relu else [])
    model = nn.Sequential(*layers).eval()
    model[1].running_mean.normal_()
    model[1].running_var.uniform_(0.5, 2)
    assert len(run_both(model.to(dtype), image(dtype))) == 1


def test_batch_norm_and_relu():
    assert len(run_both(nn.Sequential(nn.BatchNorm2d(8), nn.ReLU()).eval(), image())) == 1


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", ["relu", "gelu", "sigmoid", "hardtanh", "relu6", "elu"])
def test_linear_and_element_wise(name, bias, dtype):
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(24, 32, bias)

        def forward(self, x):
            return FUNCTIONS[name](self.linear(x))

    assert len(run_both(Layer().to(dtype), torch.randn(16, 24, dtype=dtype))) == 1


def test_residual_block():
    def layer(n, m):
        return nn.Sequential(nn.Conv2d(n, m, 3, padding=1, bias=False), nn.BatchNorm2d(m))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = layer(8, 8), layer(8, 8), layer(8, 8)

        def forward(self, x):
            return self.c(F.relu(self.a(x) + self.b(x)))

    assert len(run_both(Block().eval(), image())) == 3


def test_a_result_that_is_read_outside_too():
    class Escapes(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(8, 8, 3, padding=1)

        def forward(self, x):
            y = self.conv(x)
            return y, F.relu(y)

    run_both(Escapes(), image())


def test_channels_last_input_of_a_strided_model():
    model = Chain(F.relu)
    run_both(model, image().to(memory_format=torch.channels_last))


def test_wildcards_between_groups(dtype):
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)

        def forward(self, x):
            y = F.relu(self.first(x))
            y = torch.cumsum(y, 1).sort(1).values / 16
            return F.hardswish(self.second(y))

    found = run_both(Mixed().to(dtype), torch.rand(8, 16, dtype=dtype))
    assert len(found) == 2


@pytest.mark.parametrize("policy", ["fusion", "max"])
@pytest.mark.parametrize("opaque", [False, True])
def test_policies_and_layouts(policy, opaque):
    model = nn.Sequential(
        nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 8, 1)
    )
    found = run_both(model, image(), policy=policy, opaque=opaque)
    assert len(found) == (1 if policy == "max" else len(found))


def test_results_that_lie_as_the_library_likes():
    """A product that is the right operand of the next one lies in panels between the two groups."""

    def products(a, b, x):
        return x @ (a @ b)

    inputs = torch.randn(70, 40), torch.randn(40, 96), torch.randn(100, 70)
    ours, compiler = compiled(products, opaque=True, keep_single_ops=True)
    with torch.no_grad():
        torch.testing.assert_close(ours(*inputs), products(*inputs), rtol=1e-4, atol=1e-3)
    first, second = compiler.programs[0].calls
    assert [made.layout_id != 0 for made in first.kernel.outputs + second.kernel.outputs] == [True, False]


def test_memory_of_dead_values_is_reused():
    """The first norm writes where the product is, which nobody reads again; the second product leaves."""

    def rows(x, w):
        kept = F.layer_norm(x @ w, (48,)) @ w
        return F.layer_norm(kept, (48,)), kept

    x, w = torch.randn(20, 48), torch.randn(48, 48)
    ours, compiler = compiled(rows, opaque=False, keep_single_ops=True)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(ours(x, w), rows(x, w), rtol=1e-4, atol=1e-4)
    calls = compiler.programs[0].calls
    assert [call.group.info["ops"] for call in calls] == [["MatMul"], ["LayerNorm"], ["MatMul"], ["LayerNorm"]]
    assert [call.reused for call in calls] == [[], [0], [], []]
