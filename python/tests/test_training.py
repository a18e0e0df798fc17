"""Steps of training: losses and gradients as eager's, in f32 and with autocast."""

import copy

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

import zoo
from graphbench import Options
from graphbench._runtime import Program
from helpers import compiled, exact_copy, same_as_eager


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.GroupNorm(4, 16),
            nn.SiLU(),
            nn.AvgPool2d(2),
        )
        self.last = nn.Linear(16, 10)

    def forward(self, x):
        return self.last(self.features(x).mean((2, 3)))


class Block(nn.Module):
    """A transformer's block on sequences of vectors."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.last = nn.Linear(width, 10)

    def forward(self, x):
        n, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*qkv.unbind(0)).transpose(1, 2).reshape(n, length, width)
        x = x + self.out(y)
        x = x + self.down(F.gelu(self.up(self.norm2(x))))
        return self.last(x.mean(1))


CASES = {
    "cnn": (ConvNet, lambda: torch.randn(4, 3, 16, 16)),
    "transformer": (Block, lambda: torch.randn(4, 12, 32)),
}


def losses_and_gradients(model, step, x, target, steps=3):
    """Losses of some steps of gradient descent, and the gradients of the last one."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(step(x), target)
        loss.backward()
        losses.append(loss.detach())
        optimizer.step()
    return losses, {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("policy", ["fusion", "max"])
@pytest.mark.parametrize("name", CASES)
def test_steps(name, policy):
    make, make_input = CASES[name]
    model, x, target = make(), make_input(), torch.randint(0, 10, (4,))
    eager, (double, [exact_x]) = copy.deepcopy(model), exact_copy(model, [x])
    ours, compiler = compiled(model, policy=policy)
    actual = losses_and_gradients(model, ours, x, target)
    expected = losses_and_gradients(eager, eager, x, target)
    exact = losses_and_gradients(double, double, exact_x, target)
    assert same_as_eager(actual, expected, exact)
    for a, b in zip(model.buffers(), eager.buffers()):
        torch.testing.assert_close(a, b)
    kinds = [program.kind for program in compiler.programs]
    assert sorted(kinds) == ["backward", "forward"]
    assert all(program.calls for program in compiler.programs)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_the_input(name):
    make, make_input = CASES[name]
    model, x = make(), make_input()
    double, [exact_x] = exact_copy(model, [x])
    ours, _ = compiled(model)
    results = []
    for function, value in ((ours, x), (model, x), (double, exact_x)):
        value = value.clone().requires_grad_()
        function(value).square().sum().backward()
        results.append(value.grad)
    assert same_as_eager(*results)


@pytest.mark.parametrize("name", CASES)
def test_autocast(name):
    make, make_input = CASES[name]
    model, x, target = make(), make_input(), torch.randint(0, 10, (4,))
    eager, (double, [exact_x]) = copy.deepcopy(model), exact_copy(model, [x])
    ours, _ = compiled(model)
    with torch.autocast("cpu", torch.bfloat16):
        actual = losses_and_gradients(model, ours, x, target, steps=1)
        expected = losses_and_gradients(eager, eager, x, target, steps=1)
    exact = losses_and_gradients(double, double, exact_x, target, steps=1)
    assert same_as_eager(actual, expected, exact, torch.bfloat16)


def gradients(function, source, x):
    """What the function returns, and the gradients of x and the parameters."""
    x = x.clone().requires_grad_()
    source.zero_grad()
    result = function(x)
    result.float().square().sum().backward()
    return result.detach(), x.grad, [p.grad.clone() for p in source.parameters()]


def expect_same_gradients(model, x, dtype=torch.float32, **options):
    """As near to f64's as eager's are; returns the Compiler."""
    double, [exact_x] = exact_copy(model, [x])
    ours, compiler = compiled(model, **options)
    results = [gradients(ours, model, x), gradients(model, model, x), gradients(double, double, exact_x)]
    assert same_as_eager(*results, dtype)
    return compiler


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("policy", ["fusion", "max"])
def test_gradients_in_eval_mode(policy, affine, dtype):
    """A batch norm that uses running statistics gives no others, and the library runs all of it."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8, affine=affine),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1),
    )
    model[1].running_mean.normal_()
    model[1].running_var.uniform_(0.5, 2)
    compiler = expect_same_gradients(model.eval().to(dtype), torch.randn(2, 3, 9, 9, dtype=dtype), dtype, policy=policy)
    outside = {e["target"] for p in compiler.programs for e in p.bridge.description["outside"]}
    assert not any("convolution" in op for op in outside)
    assert policy == "fusion" or not any("batch_norm_backward" in op for op in outside)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("settings", [(2, 2, 0, 1, False), (3, 2, 1, 1, False), (3, 2, 0, 1, True), (2, 1, 0, 2, False)])
def test_max_pool(settings, dtype):
    """Places of maxima are not kept between the two passes; the first of equal ones gets the gradient."""
    kernel, stride, padding, dilation, ceil = settings
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.ReLU(),
        nn.MaxPool2d(kernel, stride, padding, dilation, ceil_mode=ceil),
        nn.Conv2d(4, 2, 1),
    ).to(dtype)
    x = torch.randn(2, 3, 11, 12).mul(2).round().to(dtype)
    with torch.no_grad():
        model[0].weight.mul_(4).round_()  # so that many are equal
    compiler = expect_same_gradients(model, x, dtype)
    outside = [e["target"] for p in compiler.programs for e in p.bridge.description["outside"]]
    assert not any("max_pool" in op for op in outside)


def test_places_of_maxima_that_leave():
    class Pool(nn.Module):
        def forward(self, x):
            y, places = F.max_pool2d(x.relu(), 2, return_indices=True)
            return F.max_unpool2d(y * 2, places, 2)

    model, x = Pool(), torch.randn(2, 3, 8, 8)
    expect_same_gradients(model, x)
    expect_same_gradients(
        nn.MaxPool2d(2), x, disabled_ops=("aten.max_pool2d_with_indices_backward.default",)
    )


@pytest.mark.parametrize("policy", ["fusion", "max"])
def test_a_group_of_a_shared_node_without_a_kernel(monkeypatch, policy):
    """The gradients of a convolution come from several groups; PyTorch takes over any of them."""
    from graphbench import _library

    prepare = _library.Module.prepare
    for refused in range(3):

        def refuse(self, group, inputs, n_outputs, refused=refused):
            if group == refused:
                raise _library.LibraryError(_library.UNIMPLEMENTED, "for this test")
            return prepare(self, group, inputs, n_outputs)

        monkeypatch.setattr(_library.Module, "prepare", refuse)
        expect_same_gradients(nn.Conv2d(3, 4, 3), torch.randn(2, 3, 8, 8), policy=policy, opaque=False)


def test_dropout_draws_as_eager_does():
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4))
    x = torch.randn(8, 16)
    ours, _ = compiled(model)
    torch.manual_seed(3)
    expected = model(x)
    torch.manual_seed(3)
    torch.testing.assert_close(ours(x), expected)


def test_dropout_says_why_it_stays():
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4))
    x = torch.randn(8, 16)
    ours, compiler = compiled(model)
    results = []
    for function in (ours, model):
        torch.manual_seed(3)
        results.append(gradients(function, model, x))
    torch.testing.assert_close(*results)
    reasons = {
        entry["target"]: entry["reason"] for p in compiler.programs for entry in p.bridge.description["outside"]
    }
    assert "random numbers" in reasons["torch.ops.aten.native_dropout.default"]
    assert "torch.ops.aten.native_dropout_backward.default" not in reasons


def targets_outside(compiler):
    return {entry["target"] for p in compiler.programs for entry in p.bridge.description["outside"]}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(2, 8, 6, 5), (3, 8), (2, 8, 7), (1, 8, 3, 4, 2)])
@pytest.mark.parametrize("groups, affine", [(4, True), (8, True), (1, True), (2, False)])
def test_group_norm(groups, affine, shape, dtype):
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.GroupNorm(groups, 8, affine=affine)
            for parameter in self.norm.parameters():
                nn.init.uniform_(parameter, 0.5, 2)

        def forward(self, x):
            return F.silu(self.norm(x + 3)) * 2

    compiler = expect_same_gradients(Norm().to(dtype), torch.randn(shape).to(dtype), dtype, policy="max")
    assert "torch.ops.aten.native_group_norm_backward.default" not in targets_outside(compiler)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm_with_autocast(affine, dynamic):
    """The norm's data are bf16, its parameters and statistics f32, or bf16 where it has no parameters."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8, affine=affine), nn.SiLU(), nn.Conv2d(8, 4, 3))
    double, [exact_x] = exact_copy(model, [x := torch.randn(2, 3, 9, 9)])
    _, compiler = compiled(model, policy="max")
    ours = torch.compile(model, backend=compiler, dynamic=dynamic)
    results = []
    for function, source, given in ((ours, model, x), (model, model, x), (double, double, exact_x)):
        source.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=source is model):
            result = function(given)
        result.to(given.dtype).square().sum().backward()
        results.append([p.grad.clone() for p in source.parameters()])
    assert same_as_eager(*results, torch.bfloat16)
    assert "torch.ops.aten.native_group_norm_backward.default" not in targets_outside(compiler)
    if affine and not dynamic:  # statistics that are not f32 would keep the norm outside
        entries = [e for p in compiler.programs for e in p.bridge.description["outside"]]
        assert not any("statistics" in e["reason"] for e in entries)


def test_inputs_of_a_backward_graph_of_another_type_than_meta_says():
    """They come from ops of PyTorch in the forward graph, whose meta may be wrong."""
    g, kept = torch.randn(4, 8).bfloat16(), torch.randn(8, 4).bfloat16()
    module = make_fx(lambda g, kept: (F.relu(g * kept.t()) + 1,), tracing_mode="fake")(g, kept)
    program = Program(module, [], Options(), "backward")
    assert program.calls
    for given in (kept, kept.float(), kept.t().contiguous().t()):
        torch.testing.assert_close(program([g, given])[0], F.relu(g * kept.t()) + 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size, settings, is_ours", [
    ((4, 5), {"scale_factor": 2.0}, True),
    ((4, 5), {"size": (12, 10)}, True),
    ((7,), {"scale_factor": 3.0}, True),
    ((3, 4, 2), {"scale_factor": 2.0}, True),
    ((4, 6), {"scale_factor": 1.5}, False),
    ((6, 6), {"size": (3, 9)}, False),
])
def test_nearest(size, settings, is_ours, dtype):
    class Larger(nn.Module):
        def forward(self, x):
            return F.interpolate(x.relu() * 3, **settings).square()

    compiler = expect_same_gradients(Larger(), torch.randn(2, 3, *size).to(dtype), dtype, policy="max")
    outside = any("_backward" in op and "nearest" in op for op in targets_outside(compiler))
    assert outside is not is_ours


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size, settings, is_ours", [
    ((4, 5), {"scale_factor": 2.0, "mode": "bilinear"}, True),
    ((4, 5), {"size": (7, 3), "mode": "bilinear"}, True),
    ((4, 5), {"size": (7, 9), "mode": "bilinear", "align_corners": True}, True),
    ((7,), {"scale_factor": 3.0, "mode": "linear"}, True),
    ((3, 4, 2), {"scale_factor": 2.0, "mode": "trilinear"}, True),
    ((4, 6), {"scale_factor": 1.3, "mode": "bilinear"}, False),
])
def test_linear_resizing(size, settings, is_ours, dtype):
    class Larger(nn.Module):
        def forward(self, x):
            return F.interpolate(x.relu() * 3, **settings).square()

    compiler = expect_same_gradients(Larger(), torch.randn(2, 3, *size).to(dtype), dtype, policy="max")
    outside = any("_backward" in op and "linear" in op for op in targets_outside(compiler))
    assert outside is not is_ours


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("op", ["hardswish", "hardsigmoid", "mish", "softplus", "elu"])
def test_activations(op, dtype):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(16, 16)

        def forward(self, x):
            return getattr(F, op)(self.linear(x) * 4)

    compiler = expect_same_gradients(Net().to(dtype), torch.randn(32, 16).to(dtype), dtype, policy="max")
    assert not any(f"{op}_backward" in target for target in targets_outside(compiler))


class Steps(nn.Module):
    """Many small steps, each with a batch norm."""

    def __init__(self, count=80, width=6):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(count))
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(count))

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = x + 0.1 * norm(conv(x)).relu()
        return x


def test_a_deep_model_in_training_mode():
    """More ops than one partition may have: several groups of whole nodes."""
    compiler = expect_same_gradients(Steps(), torch.randn(4, 6, 5, 5), policy="max")
    assert [program.kind for program in compiler.programs] == ["forward", "backward"]
    assert all(2 <= len(program.calls) <= 8 for program in compiler.programs)
    outside = targets_outside(compiler)
    assert not any("convolution" in op or "batch_norm" in op for op in outside), outside


@pytest.mark.parametrize("name", ["resnet18", "bert", "llama", "unet"])
def test_models(name):
    model, inputs = zoo.make(name, batch=2, small=True)
    double, exact_inputs = exact_copy(model, inputs)
    ours, _ = compiled(model, policy="max")
    results = []
    for function, source, given in (
        (ours, model, inputs),
        (model, model, inputs),
        (double, double, exact_inputs),
    ):
        source.zero_grad()
        result = function(*given)
        result.square().mean().backward()
        results.append([result.detach(), [p.grad.clone() for p in source.parameters()]])
    assert same_as_eager(*results)
