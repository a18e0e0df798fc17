"""Programs of views and in-place ops, made by chance: results, mutated inputs and aliases as eager's."""

import copy
import random

import pytest
import torch
from torch.nn import functional as F

from helpers import close, compiled

WIDTH = 8


def view_steps(rng):
    dim, row = rng.randrange(2), rng.randrange(WIDTH)
    return rng.choice(
        [
            ("t", lambda x: x.t()),
            ("view", lambda x: x.reshape(-1).view(WIDTH, WIDTH)),
            ("transpose twice", lambda x: x.transpose(0, 1).transpose(0, 1)),
            ("flip halves", lambda x: torch.cat([x[WIDTH // 2 :], x[: WIDTH // 2]])),
            ("unsqueeze", lambda x: x.unsqueeze(dim).squeeze(dim)),
            ("row", lambda x: x[row].expand(WIDTH, WIDTH)),
            ("diagonal", lambda x: x.diagonal().unsqueeze(0) + x),
        ]
    )


def write_steps(rng):
    number, row = rng.uniform(-1, 1), rng.randrange(WIDTH)
    return rng.choice(
        [
            ("relu_", lambda x, y: x.relu_()),
            ("add_", lambda x, y: x.add_(y, alpha=number)),
            ("mul_", lambda x, y: x.mul_(0.5)),
            ("row add_", lambda x, y: x[row].add_(y[row])),
            ("column copy_", lambda x, y: x[:, row].copy_(y[:, row].clone())),
            ("tanh_ of t", lambda x, y: x.t().tanh_()),
            ("fill of a part", lambda x, y: x[: row + 1, row:].fill_(number)),
            ("clamp_", lambda x, y: x.clamp_(-1, 1)),
        ]
    )


def compute_steps(rng):
    return rng.choice(
        [
            ("mm", lambda x, y: torch.mm(x, y) / WIDTH),
            ("linear relu", lambda x, y: F.relu(F.linear(x, y)) / WIDTH),
            ("add", lambda x, y: x + y),
            ("gelu", lambda x, y: F.gelu(x)),
            ("softmax", lambda x, y: F.softmax(x - y, 1)),
            ("layer_norm", lambda x, y: F.layer_norm(x, (WIDTH,))),
        ]
    )


def program(seed):
    """(function, its text): takes and returns some square matrices, of which it may write to any."""
    rng = random.Random(seed)
    steps = []
    for _ in range(rng.randrange(4, 14)):
        kind = rng.choice(["view", "write", "compute", "compute"])
        a, b = rng.randrange(100), rng.randrange(100)
        name, function = {"view": view_steps, "write": write_steps, "compute": compute_steps}[kind](rng)
        steps.append((kind, name, function, a, b))
    kept = [rng.randrange(100) for _ in range(3)]

    def run(*inputs):
        values = list(inputs)
        for kind, _, function, a, b in steps:
            x, y = values[a % len(values)], values[b % len(values)]
            if kind == "view":
                values.append(function(x))
            elif kind == "compute":
                values.append(function(x, y))
            elif 0 not in x.stride():
                function(x, y)  # nothing may be written to what lies on itself
        return tuple(values[i % len(values)] for i in kept)

    return run, ", ".join(f"{name}({a}, {b})" for _, name, _, a, b in steps)


def aliases(values):
    """Which of the values share memory."""
    places = [value.untyped_storage().data_ptr() for value in values]
    return [places.index(place) for place in places]


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed):
    function, text = program(seed)
    inputs = [torch.randn(WIDTH, WIDTH) for _ in range(2)]
    for policy, single in (("fusion", True), ("max", False)):
        with torch.no_grad():
            theirs = copy.deepcopy(inputs)
            expected = function(*theirs)
            given = copy.deepcopy(inputs)
            ours, _ = compiled(function, policy=policy, keep_single_ops=single)
            actual = ours(*given)
        for a, b in zip([*actual, *given], [*expected, *theirs]):
            close(a, b)
        assert aliases([*actual, *given]) == aliases([*expected, *theirs]), text


def test_an_input_is_written_to_after_it_was_read():
    def function(x, w):
        y = F.relu(torch.mm(x, w))
        x.add_(1)
        return y, torch.mm(x, w)

    x, w = torch.randn(4, 4), torch.randn(4, 4)
    theirs, given = x.clone(), x.clone()
    with torch.no_grad():
        expected = function(theirs, w)
        ours, _ = compiled(function)
        actual = ours(given, w)
    for a, b in zip([*actual, given], [*expected, theirs]):
        close(a, b)


def test_a_result_is_an_input():
    def function(x, w):
        return x, x.t(), torch.mm(x, w)

    x, w = torch.randn(4, 4), torch.randn(4, 4)
    with torch.no_grad():
        ours, _ = compiled(function)
        same, turned, _ = ours(x, w)
    assert same.data_ptr() == x.data_ptr() == turned.data_ptr()
    assert turned.stride() == x.t().stride()
