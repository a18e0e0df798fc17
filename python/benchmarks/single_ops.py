"""Times partitions of a single op beside PyTorch: which of them are worth a call.

    python benchmarks/single_ops.py [--ops softmax,relu] [--dtype f32,bf16] [--threads 2] [--rounds 15]

For each op the times on a small, a middle and a large input; then, for each kind of op of the library, how
many times faster the partition is than the same node in PyTorch, the geometric mean over all inputs, in f32
and in bf16. The table of kinds that the bridge keeps alone is in bridge/groups.c (kept_alone): "!" stands
where a kind that it has is slower in one of the two types, or one that it has not is faster in both.
"""

import argparse
import math
import re
import sys
import time
from pathlib import Path

import torch

import graphbench  # noqa: F401: by its name, also where it is not installed
from graphbench._backend import Options
from graphbench._report import _eager_inputs, _observe, compile_and_run

aten = torch.ops.aten
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
ENOUGH = 1.05  # times faster, so that what a call costs elsewhere is paid for
TABLE = Path(__file__).resolve().parents[2] / "bridge" / "groups.c"


def rows(count, columns=512):
    return (torch.randn(count, columns),)


def positive(count):
    return (torch.rand(count, 512).add(0.1),)


def images(n, channels=32, side=28):
    return (torch.randn(n, channels, side, side),)


def pairs(make):
    return lambda n: (make(n)[0], make(n)[0])


def with_channels(n):
    [x] = images(n)
    return x, torch.rand(32), torch.rand(32), torch.rand(32), torch.rand(32).add(0.5)


def in_f32(*tensors):
    """Marks tensors that are f32 beside data of any type, as statistics are."""
    for tensor in tensors:
        tensor.stays = True
    return tensors


def with_statistics(n):
    x, *others = with_channels(n)
    return x, *in_f32(*others)


def batch_norm_backward(n):
    x, weight, _, mean, variance = with_channels(n)
    return torch.randn_like(x), x, *in_f32(weight, mean, variance.rsqrt())


def with_row_weights(n):
    [x] = rows(n)
    return x, torch.rand(512), torch.rand(512)


def norm_backward(n):
    x, weight, bias = with_row_weights(n)
    _, mean, inverse = aten.native_layer_norm(x, [512], weight, bias, 1e-5)
    return torch.randn_like(x), x, *in_f32(mean, inverse, weight, bias)


# name: (kind in the library, function, makes the inputs of a number of rows or images, sizes)
ROWS, IMAGES = (64, 512, 8192), (1, 8, 64)
OPS = {
    "relu": ("RELU", lambda x: aten.relu(x), rows, ROWS),
    "gelu": ("GELU", lambda x: aten.gelu(x), rows, ROWS),
    "exp": ("EXP", lambda x: aten.exp(x), rows, ROWS),
    "tanh": ("TANH", lambda x: aten.tanh(x), rows, ROWS),
    "sigmoid": ("SIGMOID", lambda x: aten.sigmoid(x), rows, ROWS),
    "add": ("ADD", lambda x, y: aten.add(x, y), pairs(rows), ROWS),
    "mul_scalar": ("MULTIPLY", lambda x: aten.mul(x, 3), rows, ROWS),
    "gelu_backward": ("GELU_BACKWARD", lambda g, x: aten.gelu_backward(g, x), pairs(rows), ROWS),
    "softmax": ("SOFTMAX", lambda x: aten._softmax(x, -1, False), rows, ROWS),
    "softmax_dim0": ("SOFTMAX", lambda x: aten._softmax(x, 0, False), rows, ROWS),
    "log_softmax": ("LOG_SOFTMAX", lambda x: aten._log_softmax(x, -1, False), rows, ROWS),
    "softmax_backward": (
        "SOFTMAX_BACKWARD", lambda g, y: aten._softmax_backward_data(g, y, -1, g.dtype), pairs(rows), ROWS),
    "sum_rows": ("REDUCE_SUM", lambda x: aten.sum(x, [-1]), rows, ROWS),
    "sum_columns": ("REDUCE_SUM", lambda x: aten.sum(x, [0]), rows, ROWS),
    "mean_images": ("REDUCE_MEAN", lambda x: aten.mean(x, [2, 3]), images, IMAGES),
    "amax": ("REDUCE_MAX", lambda x: aten.amax(x, [-1]), rows, ROWS),
    "layer_norm": (
        "LAYER_NORM", lambda x, w, b: aten.native_layer_norm(x, [512], w, b, 1e-5)[0], with_row_weights, ROWS),
    "layer_norm_backward": (
        "LAYER_NORM_BACKWARD",
        lambda g, x, m, r, w, b: aten.native_layer_norm_backward(g, x, [512], m, r, w, b, [True] * 3),
        norm_backward,
        ROWS,
    ),
    "group_norm": (
        "GROUP_NORM",
        lambda x, w, b, *_: aten.native_group_norm(x, w, b, x.shape[0], 32, 784, 8, 1e-5)[0], with_channels, IMAGES),
    "batch_norm": (
        "BATCH_NORM_INFERENCE",
        lambda x, w, b, m, v: aten._native_batch_norm_legit_no_training(x, w, b, m, v, 0.1, 1e-5)[0],
        with_channels,
        IMAGES,
    ),
    "max_pool": ("MAX_POOL", lambda x: aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])[0], images, IMAGES),
    "avg_pool": ("AVG_POOL", lambda x: aten.avg_pool2d(x, [2, 2], [2, 2]), images, IMAGES),
    "avg_pool_backward": (
        "AVG_POOL_BACKWARD",
        lambda g, x: aten.avg_pool2d_backward(g, x, [2, 2], [2, 2], [0, 0], False, True, None),
        lambda n: (images(n, side=14)[0], images(n)[0]),
        IMAGES,
    ),
    "nearest": ("INTERPOLATE", lambda x: aten.upsample_nearest2d(x, [56, 56], 2.0, 2.0), images, IMAGES),
    "cat": ("CONCAT", lambda x, y: aten.cat([x, y], 1), pairs(images), IMAGES),
    "cat_rows": ("CONCAT", lambda x, y: aten.cat([x, y], -1), pairs(rows), ROWS),
    "elu": ("ELU", lambda x: aten.elu(x), rows, ROWS),
    "hardswish": ("HARD_SWISH", lambda x: aten.hardswish(x), rows, ROWS),
    "log": ("LOG", lambda x: aten.log(x), positive, ROWS),
    "mish": ("MISH", lambda x: aten.mish(x), rows, ROWS),
    "softplus": ("SOFTPLUS", lambda x: aten.softplus(x), rows, ROWS),
    "pow": ("POW", lambda x: aten.pow(x, 3.5), positive, ROWS),
    "rms_norm": ("RMS_NORM", lambda x, w: aten._fused_rms_norm(x, [512], w, 1e-5)[0],
                 lambda n: with_row_weights(n)[:2], ROWS),
    "batch_norm_training": (
        "BATCH_NORM_FORWARD_TRAINING",
        lambda x, w, b, m, v: aten._native_batch_norm_legit_functional(x, w, b, m, v, True, 0.1, 1e-5)[0],
        with_statistics,
        IMAGES,
    ),
    "batch_norm_backward": (
        "BATCH_NORM_BACKWARD",
        lambda g, x, w, m, i: aten.native_batch_norm_backward(g, x, w, None, None, m, i, True, 1e-5, [True] * 3),
        batch_norm_backward,
        IMAGES,
    ),
    "conv_transpose": (
        "CONV_TRANSPOSE",
        lambda x, w: aten.convolution(x, w, None, [2, 2], [1, 1], [1, 1], True, [0, 0], 1),
        lambda n: (images(n)[0], torch.randn(32, 32, 4, 4)),
        IMAGES,
    ),
    "conv_backward_data": (
        "CONVOLUTION_BACKWARD_DATA",
        lambda g, x, w: aten.convolution_backward(
            g, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, False, False])[0],
        lambda n: (images(n)[0], images(n)[0], torch.randn(32, 32, 3, 3)),
        IMAGES,
    ),
    "conv_backward_weights": (
        "CONVOLUTION_BACKWARD_WEIGHTS",
        lambda g, x, w: aten.convolution_backward(
            g, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False])[1],
        lambda n: (images(n)[0], images(n)[0], torch.randn(32, 32, 3, 3)),
        IMAGES,
    ),
    "mm": ("MATMUL", lambda x, w: aten.mm(x, w), lambda n: (rows(n)[0], torch.randn(512, 512)), (1, 64, 512)),
    "bmm": ("MATMUL", lambda x, y: aten.bmm(x, y),
            lambda n: (torch.randn(n, 64, 64), torch.randn(n, 64, 64)), (1, 16, 256)),
    "conv": ("CONVOLUTION", lambda x, w: aten.convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
             lambda n: (images(n)[0], torch.randn(32, 32, 3, 3)), IMAGES),
}


def table():
    """The kinds that the bridge keeps alone."""
    text = TABLE.read_text().split("kept_alone[] = {")[1].split("};")[0]
    return set(re.findall(r"GB_OP_(\w+)", text))


def best(runs, rounds):
    """The best time of each of some functions, called in turns; small ones many times."""
    counts, times = [], [math.inf] * len(runs)
    for run in runs:
        run()
        begin = time.perf_counter()
        run()
        counts.append(max(1, int(2e-3 / (time.perf_counter() - begin + 1e-9))))
    for _ in range(rounds):
        for i, run in enumerate(runs):
            begin = time.perf_counter()
            for _ in range(counts[i]):
                run()
            times[i] = min(times[i], (time.perf_counter() - begin) / counts[i])
    return times


def measure(function, inputs, rounds):
    """(ours, PyTorch's) seconds of the node alone, or None when it is in no partition."""
    torch._dynamo.reset()
    programs, run = compile_and_run(function, inputs, False, Options(keep_single_ops=True, opaque=False))
    calls = [call for program in programs for call in program.calls]
    if len(calls) != 1:
        return None
    [(call, given)] = _observe(programs, run).items()
    theirs = _eager_inputs(call, given)
    with torch.no_grad():
        return best([lambda: call(*given), lambda: call.fallback.forward(*theirs)], rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", default=",".join(OPS))
    parser.add_argument("--dtype", default="f32,bf16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    settings = parser.parse_args()
    torch.set_num_threads(settings.threads)
    kept, ratios = table(), {}
    for name in settings.ops.split(","):
        kind, function, make, sizes = OPS[name]
        for dtype in settings.dtype.split(","):
            cells = []
            for size in sizes:
                inputs = [x if hasattr(x, "stays") else x.to(DTYPES[dtype]) for x in make(size)]
                times = measure(function, tuple(inputs), settings.rounds)
                if times is None:
                    cells.append("outside")
                    continue
                ratios.setdefault((kind, dtype), []).append(times[1] / times[0])
                cells.append(f"{times[0] * 1e6:.1f}/{times[1] * 1e6:.1f} us {times[1] / times[0]:.2f}x")
            print(f"{name:20s} {dtype:4s} " + "  ".join(cells), flush=True)
    print()
    for kind in sorted({kind for kind, _ in ratios}):
        means = [mean(ratios.get((kind, dtype))) for dtype in ("f32", "bf16")]
        faster = [value >= ENOUGH for value in means]
        differs = not all(faster) if kind in kept else all(faster)
        print(f"{kind:30s} f32 {means[0]:5.2f}x  bf16 {means[1]:5.2f}x{'  !' if differs else ''}")


def mean(values):
    """Geometric; 0 where there are none."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0


if __name__ == "__main__":
    sys.exit(main())
