"""The backend's name, its options, and what it does when shapes, weights, strides or threads change."""

import copy

import pytest
import torch
from torch import nn
from torch._higher_order_ops import while_loop
from torch.nn import functional as F
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.checkpoint import checkpoint

import graphbench
from helpers import close, compiled, groups


def model():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)).eval()


def test_by_name():
    net, x = model(), torch.randn(4, 16)
    with torch.no_grad():
        close(torch.compile(net, backend="graphbench")(x), net(x))
        close(torch.compile(net, backend="graphbench", options={"policy": "fusion"})(x), net(x))


def test_wrong_options_are_refused():
    with pytest.raises(Exception, match="no such option: wrong"):
        torch.compile(model(), backend="graphbench", options={"wrong": 1})(torch.randn(4, 16))
    with pytest.raises(ValueError, match="policy"):
        graphbench.Options(policy="best")


def test_no_graph_breaks():
    net, x = model(), torch.randn(4, 16)
    torch.compile(net, backend="graphbench", fullgraph=True)(x)


def test_changed_shapes():
    net = model()
    ours, compiler = compiled(net)
    with torch.no_grad():
        for rows in (4, 7, 9, 4, 1, 7):
            x = torch.randn(rows, 16)
            close(ours(x), net(x))
    assert groups(compiler)


def test_sizes_beyond_the_limit_run_in_pytorch(monkeypatch):
    monkeypatch.setattr("graphbench._runtime.MAX_SPECIALISATIONS", 2)
    net = model()
    torch._dynamo.reset()
    ours, compiler = compiled(net)
    ours = torch.compile(net, backend=compiler, dynamic=True)
    with torch.no_grad():
        for rows in range(2, 8):
            x = torch.randn(rows, 16)
            close(ours(x), net(x))
    assert len(compiler.programs) == 2


@pytest.mark.parametrize("train", [False, True])
def test_dynamic_shapes(train):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            y = F.gelu(self.linear(x)).reshape(x.shape[0] * x.shape[1], -1)
            return y * x.shape[0]

    net = Net()
    torch._dynamo.reset()
    _, compiler = compiled(net)
    ours = torch.compile(net, backend=compiler, dynamic=True)
    for shape in ((2, 3, 8), (4, 5, 8), (2, 3, 8), (3, 3, 8)):
        x = torch.randn(shape, requires_grad=train)
        with torch.set_grad_enabled(train):
            actual, expected = ours(x), net(x)
            close(actual, expected)
            if train:
                a, b = (torch.autograd.grad(y.sum(), [x, *net.parameters()]) for y in (actual, expected))
                for ours_grad, grad in zip(a, b):
                    torch.testing.assert_close(ours_grad, grad, rtol=1e-4, atol=1e-4)


class Layer(nn.Module):
    """Attention and a gated MLP over sequences, with a shape that is computed from symbols."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.gate, self.up, self.down = nn.Linear(width, 48), nn.Linear(width, 48), nn.Linear(48, width)

    def forward(self, x):
        n, length, width = x.shape
        qkv = self.qkv(self.norm(x)).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*qkv.unbind(0), is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
        return x + self.down(F.silu(self.gate(x)) * self.up(x)) / length


class Images(nn.Module):
    """Convolutions, pools and a classifier."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, stride=2)
        self.norm, self.last = nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x):
        x = F.max_pool2d(self.norm(self.first(x)).relu(), 2)
        return self.last(self.second(x).relu().mean((2, 3)))


@pytest.mark.parametrize("train", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("dynamic", [True, None], ids=["dynamic", "automatic"])
@pytest.mark.parametrize(
    "make, shapes",
    [
        (Layer, [(2, 6, 32), (2, 9, 32), (3, 9, 32), (5, 17, 32), (2, 6, 32)]),
        (Images, [(2, 3, 16, 18), (4, 3, 16, 18), (3, 3, 20, 24), (4, 3, 16, 18)]),
    ],
)
def test_one_graph_for_all_sizes(make, shapes, dynamic, train):
    """Batch sizes, lengths and images change; where sizes are symbols from the start, dynamo traces once."""
    net = make().eval()
    _, compiler = compiled(net)
    ours = torch.compile(net, backend=compiler, dynamic=dynamic, fullgraph=True)
    torch._dynamo.utils.counters.clear()
    for shape in shapes:
        x = torch.randn(shape)
        results = []
        for function in (ours, net):
            net.zero_grad()
            given = x.clone().requires_grad_(train)
            with torch.set_grad_enabled(train):
                result = function(given)
            if train:
                result.square().sum().backward()
            results.append([result.detach(), given.grad, *(p.grad for p in net.parameters() if train)])
        torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)
    # Each dim that is new to change is traced anew where dynamo is to find out by itself.
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] in ([1] if dynamic else [2, 3])
    kinds = {"forward", "backward"} if train else {"inference"}
    assert {p.kind for p in compiler.programs} == kinds
    if dynamic:  # one Program for each set of sizes, the first one when sizes come again
        assert len(compiler.programs) == len(kinds) * len(set(shapes))
    assert all(program.calls and not program.refused for program in compiler.programs)


def test_weights_that_change_are_prepared_again():
    net, x = model(), torch.randn(4, 16)
    ours, _ = compiled(net)
    with torch.no_grad():
        close(ours(x), net(x))
        net[0].weight.mul_(2)
        close(ours(x), net(x))
        net[2].bias.copy_(torch.randn(8))
        close(ours(x), net(x))
        net.load_state_dict(model().state_dict())
        close(ours(x), net(x))
        net[0].weight = nn.Parameter(torch.randn(32, 16))
        close(ours(x), net(x))


def renewals(compiler):
    """A list that gets an entry whenever the weights of the first program are prepared again."""
    bridge, noted = compiler.programs[0].bridge, []
    renew = bridge.renew_constants
    bridge.renew_constants = lambda: (noted.append(None), renew())
    return noted


def test_weights_that_do_not_change_are_prepared_once():
    net, x = model(), torch.randn(4, 16)
    ours, compiler = compiled(net)
    with torch.no_grad():
        ours(x)
        noted = renewals(compiler)
        for _ in range(3):
            ours(x)
        assert not noted
        net[0].weight.mul_(2)
        for _ in range(3):
            close(ours(x), net(x))
        assert len(noted) == 1


def test_a_parameter_that_takes_the_place_of_another():
    """At the same address, with the same version."""
    net, x = model(), torch.randn(4, 16)
    old = net[0].weight = nn.Parameter(torch.randn(32, 16))
    ours, compiler = compiled(net)
    with torch.no_grad():
        close(ours(x), net(x))
        old.data.mul_(2)
        new = net[0].weight = nn.Parameter(old.data)
        assert (new.data_ptr(), new._version) == (old.data_ptr(), old._version)
        close(ours(x), net(x))
    assert len(compiler.programs) == 1


def test_layers_that_take_the_place_of_each_other():
    def function(layer, x):
        return torch.relu(layer(x))

    memory, x = bytearray(4 * 16 * 16), torch.randn(4, 16)
    ours, _ = compiled(function)
    with torch.no_grad():
        for _ in range(4):
            layer = nn.Linear(16, 16, bias=False)
            weight = torch.frombuffer(memory, dtype=torch.float32).view(16, 16)
            weight.copy_(layer.weight)
            layer.weight = nn.Parameter(weight)
            close(ours(layer, x), function(layer, x))
            del layer, weight


def test_other_memory_at_the_same_address():
    """Setting .data, as Module.to() does, changes neither the tensor nor its version."""
    memory = bytearray(4 * 32 * 16)

    def lying_there(values):
        torch.frombuffer(memory, dtype=torch.float32).copy_(values.flatten())
        return torch.frombuffer(memory, dtype=torch.float32).view(32, 16)

    net, x = model(), torch.randn(4, 16)
    net[0].weight = nn.Parameter(lying_there(torch.randn(32, 16)))
    ours, _ = compiled(net)
    with torch.no_grad():
        close(ours(x), net(x))
        before = net[0].weight.data_ptr(), net[0].weight._version
        net[0].weight.data = lying_there(torch.randn(32, 16))
        assert before == (net[0].weight.data_ptr(), net[0].weight._version)
        close(ours(x), net(x))


def test_inference_mode():
    net, x = model(), torch.randn(4, 16)
    with torch.inference_mode():
        ours, _ = compiled(net)
        close(ours(x), net(x))
        close(ours(x), net(x))
    with torch.inference_mode():
        inner = model()
        ours, _ = compiled(inner)
        close(ours(x), inner(x))
        inner[0].weight.mul_(2)
        close(ours(x), inner(x))


def test_buffers_that_the_model_writes_to():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).train()
    twin = copy.deepcopy(net)
    ours, _ = compiled(net)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(2, 3, 8, 8)
            torch.testing.assert_close(ours(x), twin(x), rtol=1e-4, atol=1e-4)
    for a, b in zip(net.buffers(), twin.buffers()):
        torch.testing.assert_close(a, b)


def test_threads_are_those_of_pytorch(monkeypatch):
    from graphbench import _library

    asked, set_threads = [], _library.Module.set_threads

    def note(self, threads):
        asked.append(threads)
        set_threads(self, threads)

    monkeypatch.setattr(_library.Module, "set_threads", note)
    net, x = model(), torch.randn(4, 16)
    ours, _ = compiled(net)
    before = torch.get_num_threads()
    try:
        with torch.no_grad():
            for threads in (1, 2, 1):
                torch.set_num_threads(threads)
                close(ours(x), net(x))
    finally:
        torch.set_num_threads(before)
    assert asked == [1, 2]


def test_inputs_that_do_not_lie_densely():
    net = model()
    ours, _ = compiled(net)
    with torch.no_grad():
        for x in (torch.randn(16, 4).t(), torch.randn(8, 32)[::2, ::2], torch.randn(1, 16).expand(4, 16)):
            close(ours(x), net(x))


def test_results_are_memory_of_their_own():
    net, x = model(), torch.randn(4, 16)
    ours, _ = compiled(net)
    with torch.no_grad():
        first = ours(x)
        kept = first.clone()
        second = ours(x + 1)
    assert first.data_ptr() != second.data_ptr()
    assert torch.equal(first, kept)


def test_two_threads_at_once():
    from concurrent.futures import ThreadPoolExecutor

    net = model()
    ours, _ = compiled(net)
    inputs = [torch.randn(4, 16) for _ in range(64)]

    def run(x):
        with torch.no_grad():
            return ours(x)

    run(inputs[0])
    with ThreadPoolExecutor(2) as pool:
        for x, actual in zip(inputs, pool.map(run, inputs)):
            with torch.no_grad():
                close(actual, net(x))


def test_a_group_without_a_kernel_runs_in_pytorch(monkeypatch):
    from graphbench import _library

    def refuse(self, group, inputs, n_outputs):
        raise _library.LibraryError(_library.UNIMPLEMENTED, "for this test")

    net, x = model(), torch.randn(4, 16)
    monkeypatch.setattr(_library.Module, "prepare", refuse)
    ours, compiler = compiled(net)
    with torch.no_grad():
        close(ours(x), net(x))
    assert groups(compiler) == []
    assert compiler.programs[0].refused


def dropout_block(x, w):
    return F.dropout(F.gelu(x @ w), 0.5) @ w


def narrow(x, count):
    n = count.item()
    torch._check(n >= 0)
    torch._check(n <= 4)
    return F.relu(x.narrow(0, 0, n) * 2) + 1


def attention(q):
    return flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score * 2)


# Graphs with modules, nested tuples, results that are no tensors, and sizes that are not known:
# (function, makes its inputs, settings of dynamo)
UNUSUAL = {
    "checkpoint": (
        lambda x, w: checkpoint(dropout_block, x, w, use_reentrant=False),
        lambda: (torch.randn(8, 8, requires_grad=True), torch.randn(8, 8, requires_grad=True)),
        {},
    ),
    "cond": (
        lambda x: torch.cond(x.sum() > 0, lambda x: F.relu(x * 2), lambda x: F.gelu(x * 3), (x,)) + 1,
        lambda: (torch.randn(3, 8),),
        {},
    ),
    "while_loop": (
        lambda x: while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, F.relu(x * 2)), (x.new_zeros(()), x))[1],
        lambda: (torch.randn(3, 8),),
        {},
    ),
    "attention": (attention, lambda: (torch.randn(1, 2, 16, 16),), {}),
    "item": (narrow, lambda: (torch.randn(4, 8), torch.tensor(3)), {"capture_scalar_outputs": True}),
    "nonzero": (
        lambda x: F.relu(x[x > 0] * 2) + 1,
        lambda: (torch.randn(4, 8),),
        {"capture_dynamic_output_shape_ops": True},
    ),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_graphs(name, dynamic, caplog):
    function, make_inputs, settings = UNUSUAL[name]
    inputs = make_inputs()
    results = []
    with torch._dynamo.config.patch(**settings):
        _, compiler = compiled(function)
        for run in (torch.compile(function, backend=compiler, dynamic=dynamic), function):
            torch.manual_seed(3)
            result = run(*inputs)
            given = [x for x in inputs if x.requires_grad]
            results.append([result.detach(), *(torch.autograd.grad(result.sum(), given) if given else ())])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)
    if dynamic:  # with sizes that follow from contents PyTorch may run the graph
        caplog.clear()
    else:
        assert compiler.programs and not compiler.refused


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_graph_that_is_refused_runs_in_pytorch(monkeypatch, caplog, dynamic):
    def refuse(self, *_, **__):
        raise KeyError("for this test")

    monkeypatch.setattr("graphbench._library.Module.__init__", refuse)
    net = model()
    _, compiler = compiled(net)
    ours = torch.compile(net, backend=compiler, dynamic=dynamic)
    with torch.no_grad():
        for rows in (4, 5, 4) if dynamic else (4, 4):
            x = torch.randn(rows, 16)
            close(ours(x), net(x))
    assert not compiler.programs
    [refused] = compiler.refused
    assert refused.kind == "inference" and "for this test" in refused.reason
    [warning] = [r for r in caplog.records if r.name == "graphbench" and r.levelname == "WARNING"]
    assert "for this test" in warning.getMessage()
    caplog.clear()
