"""Times models with eager PyTorch, its default compiler and graphbench, in turns.

    python benchmarks/models.py [--models resnet50,bert] [--dtype f32,bf16] [--threads 2] [--rounds 10]
                                [--train] [--cpu-time]

Each round runs each of the three once in a random order, after a run that warms caches up; told are
the best times and the median of the ratios of each round, so that what slows a round slows all three.
With --train a run is a forward and a backward pass of the model in training mode. --cpu-time is for
one thread on a busy machine: time in which others run does not count.
Exit status 1: a result is not as near to eager's as it should be.
"""

import argparse
import math
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import torch
from torch._dynamo.utils import same

import graphbench  # by its name, also where it is not installed
import zoo

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
SIDES = ("eager", "inductor", "graphbench")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(zoo.MODELS))
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="small models, to try the script out")
    parser.add_argument("--policy", default=None, help="option of graphbench")
    parser.add_argument("--train", action="store_true", help="forward and backward pass in training mode")
    parser.add_argument("--cpu-time", action="store_true", help="time of the processor, for one thread")
    return parser.parse_args()


def compiled(side, model, settings):
    torch._dynamo.reset()
    if side == "eager":
        return model
    options = {"policy": settings.policy} if side == "graphbench" and settings.policy else None
    return torch.compile(model, backend=side, options=options)


def training(function, model):
    """A forward and a backward pass; returns the result and the gradients, as they were computed."""

    def run(*inputs):
        for parameter in model.parameters():
            parameter.grad = None
        result = function(*inputs)
        result.float().square().mean().backward()
        return [result.detach(), *(parameter.grad for parameter in model.parameters())]

    return run


def seconds(run, inputs, clock):
    begin = clock()
    run(*inputs)
    return clock() - begin


def measure(name, dtype, settings, sides):
    """Times of all rounds by side, and whether the results are right."""
    model, inputs = zoo.make(name, settings.batch, settings.small)
    model = model.to(dtype).train(settings.train)
    inputs = [x.to(dtype) if x.is_floating_point() else x for x in inputs]
    runs = {side: compiled(side, model, settings) for side in sides}
    if settings.train:
        runs = {side: training(run, model) for side, run in runs.items()}
    times, results = {side: [] for side in sides}, {}
    for side, run in runs.items():
        begin = time.perf_counter()
        torch.manual_seed(1)  # for dropout
        results[side] = run(*inputs)
        print(f"  {name} {side}: first run {time.perf_counter() - begin:.1f} s", file=sys.stderr)
        run(*inputs)
    order, clock = list(sides), time.process_time if settings.cpu_time else time.perf_counter
    for _ in range(settings.rounds):
        random.shuffle(order)
        for side in order:
            times[side].append(seconds(runs[side], inputs, clock))
    tolerance = 1e-1 if dtype is torch.bfloat16 else 1e-3
    right = "eager" not in results or same(results["eager"], results[sides[-1]], tol=tolerance, cos_similarity=True)
    return times, right


def ratio(times, slow, fast):
    return statistics.median(a / b for a, b in zip(times[slow], times[fast]))


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    settings = arguments()
    torch.set_num_threads(settings.threads)
    sides = settings.sides.split(",")
    others, wrong = [side for side in sides if side != "graphbench"], []
    for dtype in settings.dtype.split(","):
        print(f"{dtype}, {settings.threads} threads, batch {settings.batch}; ms, and how many times faster graphbench is")
        ratios = {side: [] for side in others}
        for name in settings.models.split(","):
            with torch.set_grad_enabled(settings.train):
                times, right = measure(name, DTYPES[dtype], settings, sides)
            row = [f"{side} {min(times[side]) * 1e3:9.3f}" for side in sides]
            for side in others:
                ratios[side].append(ratio(times, side, "graphbench"))
                row.append(f"{side} x{ratios[side][-1]:.2f}")
            if not right:
                wrong.append(name)
                row.append("WRONG")
            print(f"{name:14s} " + "  ".join(row), flush=True)
        for side in others:
            print(f"geometric mean against {side}: {geometric_mean(ratios[side]):.2f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
