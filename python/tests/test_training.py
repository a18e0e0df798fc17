"""Steps of training: losses and gradients as eager's, in f32 and with autocast."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import zoo
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


def test_dropout_draws_as_eager_does():
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4))
    x = torch.randn(8, 16)
    ours, _ = compiled(model)
    torch.manual_seed(3)
    expected = model(x)
    torch.manual_seed(3)
    torch.testing.assert_close(ours(x), expected)


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
