"""Single ops: results, and which of them are groups of their own."""

import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from helpers import run_both

TYPES = [torch.float32, torch.bfloat16]


@pytest.fixture(params=TYPES, ids=["f32", "bf16"])
def dtype(request):
    return request.param


CONVOLUTIONS = [
    (7, 8, 16, 3, 0, 1, 1, 1, True),
    (8, 8, 16, 3, 2, 2, 1, 1, False),
    (8, 15, 7, 3, 2, 1, 2, 1, True),
    (7, 8, 16, 4, 2, 2, 1, 2, True),
    (8, 8, 16, 3, 2, 1, 2, 2, False),
    (7, 15, 16, 4, 0, 1, 1, 1, True),
]


@pytest.mark.parametrize("size, ic, oc, kernel, padding, stride, dilation, groups, bias", CONVOLUTIONS)
def test_conv2d(size, ic, oc, kernel, padding, stride, dilation, groups, bias, dtype):
    layer = nn.Conv2d(ic, oc, kernel, stride, padding, dilation, groups, bias).to(dtype)
    assert len(run_both(layer, torch.randn(2, ic, size, size, dtype=dtype))) == 1


def test_channels_last(dtype):
    layer = nn.Conv2d(8, 16, 3).to(dtype).to(memory_format=torch.channels_last)
    x = torch.randn(2, 8, 9, 9, dtype=dtype).to(memory_format=torch.channels_last)
    assert len(run_both(layer, x)) == 1


@pytest.mark.parametrize("op", [nn.BatchNorm2d(8), nn.ReLU(), nn.Hardswish(), nn.Tanh(), nn.LeakyReLU()])
def test_what_pytorch_does_as_well_stays_there(op):
    assert run_both(op.eval(), torch.randn(2, 8, 6, 6)) == []


def test_single_ops_are_groups_when_asked():
    assert run_both(nn.ReLU(), torch.randn(2, 8, 6, 6), keep_single_ops=True) == [["ReLU"]]


@pytest.mark.parametrize("kernel, padding, stride, ceil", [(4, 0, 1, False), (5, 2, 2, True), (4, 1, 2, False)])
@pytest.mark.parametrize("size", [15, 19])
def test_max_pool(size, kernel, padding, stride, ceil, dtype):
    pool = nn.MaxPool2d(kernel, stride, padding, ceil_mode=ceil)
    assert len(run_both(pool, torch.randn(1, 3, size, size, dtype=dtype))) == 1


@pytest.mark.parametrize("stride, count", itertools.product([1, 2, 4], [False, True]))
def test_avg_pool(stride, count):
    pool = nn.AvgPool2d(4, stride, 1, count_include_pad=count)
    assert len(run_both(pool, torch.randn(1, 3, 17, 17))) == 1


@pytest.mark.parametrize("dim", range(4))
def test_softmax(dim, dtype):
    x = torch.randn(8, 12, 12, 12, dtype=dtype)
    run_both(lambda x: F.softmax(x, dim), x, keep_single_ops=True)


@pytest.mark.parametrize("bias", [False, True])
def test_linear(bias, dtype):
    layer = nn.Linear(28, 64, bias).to(dtype)
    assert len(run_both(layer, torch.randn(32, 28, dtype=dtype), keep_single_ops=True)) == 1


def test_linear_of_three_dims(dtype):
    x = torch.randn(2, 5, 16, dtype=dtype)
    assert len(run_both(nn.Linear(16, 24).to(dtype), x, keep_single_ops=True)) == 1


@pytest.mark.parametrize("shape", [(1, 32, 28, 28), (1, 1, 28, 28), (28,), (1,)])
@pytest.mark.parametrize("swapped", [False, True])
def test_add_with_alpha(shape, swapped):
    x, y = torch.randn(1, 32, 28, 28), torch.randn(shape)
    if swapped:
        x, y = y, x
    assert len(run_both(lambda x, y: torch.add(x, y, alpha=2), x, y, keep_single_ops=True)) == 1


def test_numbers():
    x = torch.randn(4, 8)
    assert len(run_both(lambda x: 42 + x + 3.14, x, keep_single_ops=True)) == 1
    assert len(run_both(lambda x: x * 3, x, keep_single_ops=True)) == 1


@pytest.mark.parametrize("beta, alpha", [(1, 1), (0, 1), (0.5, 2)])
def test_addmm(beta, alpha, dtype):
    c, a, b = (torch.randn(n, m, dtype=dtype) for n, m in ((8, 12), (8, 16), (16, 12)))
    run_both(lambda c, a, b: torch.addmm(c, a, b, beta=beta, alpha=alpha), c, a, b)


def test_layer_norm(dtype):
    assert len(run_both(nn.LayerNorm(10).to(dtype), torch.randn(2, 5, 10, 10, dtype=dtype))) == 1


@pytest.mark.parametrize("dim", range(4))
def test_cat(dim):
    run_both(lambda x, y: torch.cat([x, y], dim), *(torch.randn(2, 3, 4, 5) for _ in "ab"))


def test_products(dtype):
    a, b = torch.randn(3, 8, 16, dtype=dtype), torch.randn(3, 16, 4, dtype=dtype)
    assert len(run_both(torch.bmm, a, b, keep_single_ops=True)) == 1
    assert len(run_both(torch.matmul, a[None], b, keep_single_ops=True)) == 1
    assert len(run_both(torch.mm, a[0], b[0], keep_single_ops=True)) == 1


def test_integers_stay_outside():
    x = torch.randint(0, 10, (8, 8), dtype=torch.int32)
    assert run_both(lambda x: torch.mm(x, x).relu(), x) == []


def test_doubles_stay_outside():
    assert run_both(nn.Linear(8, 8).double(), torch.randn(4, 8, dtype=torch.float64)) == []


def test_disabled_ops_stay_outside():
    layer = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
    x = torch.randn(1, 3, 8, 8)
    [ops] = run_both(layer, x)
    assert "ReLU" in ops
    [ops] = run_both(layer, x, disabled_ops=("aten.relu.default",))
    assert "ReLU" not in ops


def test_empty_tensors():
    run_both(nn.Linear(8, 4), torch.randn(0, 8))
    run_both(lambda x: torch.cat([x, x]).relu() + 1, torch.randn(0, 3))


def test_attention(dtype):
    q, k, v = (torch.randn(2, 4, 16, 32, dtype=dtype) for _ in range(3))
    run_both(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), q, k, v)
    run_both(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)
    mask = torch.randn(16, 16, dtype=dtype)
    run_both(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q, k, v, mask)


def test_attention_with_two_masks(dtype):
    """The function refuses this, the op does not."""
    op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    q, k, v = (torch.randn(2, 4, 16, 32, dtype=dtype) for _ in range(3))
    mask = torch.randn(16, 16, dtype=dtype)
    found = run_both(lambda q, k, v, m: op(q, k, v, is_causal=True, attn_mask=m)[0], q, k, v, mask)
    assert len(found) == 1


def test_integers_without_a_code_stay_outside():
    x, y = torch.randn(4, 4), torch.ones(4, 4, dtype=torch.uint16)
    assert run_both(lambda x, y: (torch.relu(x @ x), y.to(torch.int32) + 1, y.t()), x, y)


INTERPOLATIONS = [
    ({"scale_factor": 2.0}, 1),
    ({"scale_factor": 3.0}, 1),
    ({"scale_factor": 1.5}, 0),
    ({"size": (12, 5)}, None),
    ({"scale_factor": 2.0, "mode": "bilinear"}, 1),
    ({"scale_factor": 1.3, "mode": "bilinear"}, 0),
    ({"scale_factor": 1.3, "mode": "bilinear", "recompute_scale_factor": True}, 1),
    ({"scale_factor": 1.3, "mode": "bilinear", "align_corners": True}, 1),
    ({"size": (4, 11), "mode": "bilinear", "align_corners": True}, 1),
    ({"size": (4, 11), "mode": "bilinear"}, 1),
]


@pytest.mark.parametrize("options, count", INTERPOLATIONS)
def test_interpolate(options, count, dtype):
    x = torch.randn(2, 4, 6, 7, dtype=dtype)
    found = run_both(lambda x: F.interpolate(x, **options), x, keep_single_ops=True)
    if count is not None:
        assert found == [["Interpolate"]] * count


@pytest.mark.parametrize("size", range(1, 40))
def test_nearest_reads_what_pytorch_reads(size):
    """Elements are moved, not computed: any other place would be seen."""
    x = torch.randn(1, 1, 7)
    run_both(lambda x: F.interpolate(x, size=size), x, keep_single_ops=True)


def test_interpolate_of_other_ranks_and_layouts():
    run_both(lambda x: F.interpolate(x, scale_factor=2.0).relu(), torch.randn(2, 3, 5), keep_single_ops=True)
    x = torch.randn(1, 2, 3, 4, 5)
    run_both(lambda x: F.interpolate(x, scale_factor=2.0, mode="trilinear").relu(), x, keep_single_ops=True)
    x = torch.randn(1, 8, 6, 6).to(memory_format=torch.channels_last)
    run_both(lambda x: F.interpolate(x, scale_factor=2.0).relu(), x, keep_single_ops=True)


@pytest.mark.parametrize("policy", ["fusion", "max"])
def test_where(policy, dtype):
    x, y, c = torch.randn(4, 8, dtype=dtype), torch.randn(8, dtype=dtype), torch.randn(4, 8) > 0
    functions = (
        lambda x, y, c: torch.where(c, x, 0.3),
        lambda x, y, c: torch.where(c, -1e9, y) * 2,
        lambda x, y, c: torch.where(c, x, torch.full((), 0.1, dtype=torch.float32)) + y,
        lambda x, y, c: torch.where(c, x, torch.tensor(float("-inf"))).softmax(-1),
        lambda x, y, c: torch.where(c, x, torch.full((), 0.1, dtype=torch.bfloat16)).float() * 3,
    )
    for function in functions:
        run_both(function, x, y, c, keep_single_ops=True, policy=policy)


@pytest.mark.parametrize("policy", ["fusion", "max"])
@pytest.mark.parametrize("op", [torch.maximum, torch.minimum])
def test_extrema_of_two_tensors(op, policy, dtype):
    x, y = torch.randn(4, 8, dtype=dtype), torch.randn(8, dtype=dtype)
    x[0, 0] = y[1] = x[2, 2] = y[2] = math.nan
    x[3, 3], y[4] = math.inf, -math.inf
    options = {"keep_single_ops": True, "policy": policy}
    assert run_both(op, x, y, **options)
    assert run_both(op, y, x, **options)
    assert run_both(lambda x, y: op(x, y).relu() + y, x.nan_to_num(), y.nan_to_num(), **options)


@pytest.mark.parametrize("policy", ["fusion", "max"])
def test_comparisons(policy, dtype):
    x, y = torch.randn(4, 8, dtype=dtype), torch.randn(8, dtype=dtype)
    x[0, 0] = y[1] = x[2, 2] = y[2] = math.nan
    x[3, 3], y[4], x[1, 5] = math.inf, -math.inf, 0.1
    x[2, 6] = y[6]
    options = {"keep_single_ops": True, "policy": policy}
    for compare in (torch.ge, torch.le):
        assert run_both(lambda x, y: torch.where(compare(x, y), x, y * 2), x, y, **options)
        assert run_both(lambda x, y: torch.where(compare(x, 0.1), x, y * 2), x, y, **options)
        assert run_both(lambda x, y: torch.where(compare(x, 0), x, y * 2), x, y, **options)
    for compare in (torch.gt, torch.lt, torch.eq, torch.ne):
        run_both(lambda x, y: torch.where(compare(x, y), x, y * 2), x, y, **options)
    run_both(lambda x, y: (torch.ge(x, y), torch.le(x.double(), 0.1), torch.ge(x, y.float())), x, y, **options)


@pytest.mark.parametrize("dim", [(2, 3), 1, (0, 1, 2, 3)])
def test_mean_backward(dim, dtype):
    g = torch.randn(torch.zeros(2, 3, 5, 4).mean(dim, keepdim=True).shape, dtype=dtype)
    x = torch.randn(2, 3, 5, 4, dtype=dtype)
    assert run_both(lambda g, x: g.expand(2, 3, 5, 4) / 20 * x, g, x)
