"""Times partitions of a single op beside PyTorch: which of them are worth a call.

    python benchmarks/single_ops.py [--ops softmax,relu] [--dtype f32,bf16,f16] [--threads 1] [--rounds 15]
    python benchmarks/single_ops.py --save FILE ...      (adds what was measured to a file)
    python benchmarks/single_ops.py --table FILE...      (measures nothing)

Told for each node of PyTorch and each class of sizes: the time of the partition, of the node in PyTorch, and how
many times faster the partition is. --table writes the rows of bridge/single_ops.c, which decides by them: the
geometric means over all nodes of a kind, and over the files. "!" stands where the row that is there decides
otherwise.
"""

import argparse
import json
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
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
SIZES = 3  # classes, by the elements of the largest tensor: up to 2^16, 2^20, more
ENOUGH = 105  # hundredths, as in the table
TABLE = Path(__file__).resolve().parents[2] / "bridge" / "single_ops.c"


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


class Weighted(torch.nn.Module):
    """A function whose last input is a parameter, and so prepared once."""

    def __init__(self, function, weight):
        super().__init__()
        self.function, self.weight = function, torch.nn.Parameter(weight)

    def forward(self, *inputs):
        return self.function(*inputs, self.weight)


def truths(n):
    x, y = pairs(rows)(n)
    return x > 0, x, y


def pooled_and_source(n):
    [x] = images(n)
    return aten.max_pool2d(x, [2, 2], [2, 2]), x


def convolution(x, w):
    return aten.convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)


def convolution_backward(wanted):
    """The function that gives the one gradient which is wanted."""
    same = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    return lambda g, x, w: aten.convolution_backward(g, x, w, None, *same, wanted)[wanted.index(True)]


def max_pool_backward(g, x):
    """With the pool that finds the places, as in the graphs of gradients (graphbench._joint). The last argument,
    which changes nothing here, keeps tracing from leaving defaults out of one of the two."""
    windows = ([2, 2], [2, 2], [0, 0], [1, 1], True)
    places = aten.max_pool2d_with_indices(x, *windows)[1]
    return aten.max_pool2d_with_indices_backward(g, x, *windows, places)


def kernel(n):
    return torch.randn(32, 32, 3, 3)


def product(n):
    return torch.randn(n, 128 if n < 512 else 512), torch.randn(128 if n < 512 else 512, 128 if n < 512 else 512)


ROWS, IMAGES = (64, 512, 8192), (1, 8, 64)
# name: (kind in the library, function, makes the inputs of a number of rows or images, one for each class of sizes);
# where the last input is to be a parameter, "constant" follows.
OPS = {
    "abs": ("ABS", lambda x: aten.abs(x), rows, ROWS),
    "relu": ("RELU", lambda x: aten.relu(x), rows, ROWS),
    "gelu": ("GELU", lambda x: aten.gelu(x), rows, ROWS),
    "exp": ("EXP", lambda x: aten.exp(x), rows, ROWS),
    "tanh": ("TANH", lambda x: aten.tanh(x), rows, ROWS),
    "sigmoid": ("SIGMOID", lambda x: aten.sigmoid(x), rows, ROWS),
    "elu": ("ELU", lambda x: aten.elu(x), rows, ROWS),
    "hardswish": ("HARD_SWISH", lambda x: aten.hardswish(x), rows, ROWS),
    "mish": ("MISH", lambda x: aten.mish(x), rows, ROWS),
    "softplus": ("SOFTPLUS", lambda x: aten.softplus(x), rows, ROWS),
    "round": ("ROUND", lambda x: aten.round(x), rows, ROWS),
    "square": ("SQUARE", lambda x: aten.pow(x, 2), rows, ROWS),
    "leaky_relu": ("LEAKY_RELU", lambda x: aten.leaky_relu(x), rows, ROWS),
    "hardsigmoid": ("HARD_SIGMOID", lambda x: aten.hardsigmoid(x), rows, ROWS),
    "clamp": ("CLAMP", lambda x: aten.clamp(x, -1, 1), rows, ROWS),
    "log": ("LOG", lambda x: aten.log(x), positive, ROWS),
    "sqrt": ("SQRT", lambda x: aten.sqrt(x), positive, ROWS),
    "reciprocal": ("RECIPROCAL", lambda x: aten.reciprocal(x), positive, ROWS),
    "pow": ("POW", lambda x: aten.pow(x, 3.5), positive, ROWS),
    "rsqrt": ("POW", lambda x: aten.rsqrt(x), positive, ROWS),
    "add": ("ADD", lambda x, y: aten.add(x, y), pairs(rows), ROWS),
    "sub": ("SUBTRACT", lambda x, y: aten.sub(x, y), pairs(rows), ROWS),
    "mul": ("MULTIPLY", lambda x, y: aten.mul(x, y), pairs(rows), ROWS),
    "maximum": ("MAXIMUM", lambda x, y: aten.maximum(x, y), pairs(rows), ROWS),
    "minimum": ("MINIMUM", lambda x, y: aten.minimum(x, y), pairs(rows), ROWS),
    "mul_scalar": ("MULTIPLY", lambda x: aten.mul(x, 3), rows, ROWS),
    "div": ("DIVIDE", lambda x, y: aten.div(x, y), pairs(positive), ROWS),
    "where": ("SELECT", lambda c, x, y: aten.where(c, x, y), truths, ROWS),
    "threshold_backward": ("RELU_BACKWARD", lambda g, x: aten.threshold_backward(g, x, 0), pairs(rows), ROWS),
    "gelu_backward": ("GELU_BACKWARD", lambda g, x: aten.gelu_backward(g, x), pairs(rows), ROWS),
    "tanh_backward": ("TANH_BACKWARD", lambda g, y: aten.tanh_backward(g, y), pairs(rows), ROWS),
    "sigmoid_backward": ("SIGMOID_BACKWARD", lambda g, y: aten.sigmoid_backward(g, y), pairs(rows), ROWS),
    "hardtanh_backward": ("CLAMP_BACKWARD", lambda g, x: aten.hardtanh_backward(g, x, -1, 1), pairs(rows), ROWS),
    "softmax": ("SOFTMAX", lambda x: aten._softmax(x, -1, False), rows, ROWS),
    "softmax_dim0": ("SOFTMAX", lambda x: aten._softmax(x, 0, False), rows, ROWS),
    "log_softmax": ("LOG_SOFTMAX", lambda x: aten._log_softmax(x, -1, False), rows, ROWS),
    "softmax_backward": (
        "SOFTMAX_BACKWARD", lambda g, y: aten._softmax_backward_data(g, y, -1, g.dtype), pairs(rows), ROWS),
    "log_softmax_backward": (
        "LOG_SOFTMAX_BACKWARD", lambda g, y: aten._log_softmax_backward_data(g, y, -1, g.dtype), pairs(rows), ROWS),
    "sum_rows": ("REDUCE_SUM", lambda x: aten.sum(x, [-1]), rows, ROWS),
    "sum_columns": ("REDUCE_SUM", lambda x: aten.sum(x, [0]), rows, ROWS),
    "mean_images": ("REDUCE_MEAN", lambda x: aten.mean(x, [2, 3]), images, IMAGES),
    "amax": ("REDUCE_MAX", lambda x: aten.amax(x, [-1]), rows, ROWS),
    "amin": ("REDUCE_MIN", lambda x: aten.amin(x, [-1]), rows, ROWS),
    "layer_norm": (
        "LAYER_NORM", lambda x, w, b: aten.native_layer_norm(x, [512], w, b, 1e-5)[0], with_row_weights, ROWS),
    "layer_norm_backward": (
        "LAYER_NORM_BACKWARD",
        lambda g, x, m, r, w, b: aten.native_layer_norm_backward(g, x, [512], m, r, w, b, [True] * 3),
        norm_backward,
        ROWS,
    ),
    "rms_norm": ("RMS_NORM", lambda x, w: aten._fused_rms_norm(x, [512], w, 1e-5)[0],
                 lambda n: with_row_weights(n)[:2], ROWS),
    "group_norm": (
        "GROUP_NORM",
        lambda x, w, b, *_: aten.native_group_norm(x, w, b, x.shape[0], 32, 784, 8, 1e-5)[0], with_channels, IMAGES),
    "batch_norm": (
        "BATCH_NORM_INFERENCE",
        lambda x, w, b, m, v: aten._native_batch_norm_legit_no_training(x, w, b, m, v, 0.1, 1e-5)[0],
        with_channels,
        IMAGES,
    ),
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
    "max_pool": ("MAX_POOL", lambda x: aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])[0], images, IMAGES),
    "avg_pool": ("AVG_POOL", lambda x: aten.avg_pool2d(x, [2, 2], [2, 2]), images, IMAGES),
    "avg_pool_backward": (
        "AVG_POOL_BACKWARD",
        lambda g, x: aten.avg_pool2d_backward(g, x, [2, 2], [2, 2], [0, 0], False, True, None),
        lambda n: (images(n, side=14)[0], images(n)[0]),
        IMAGES,
    ),
    "max_pool_backward": ("MAX_POOL_BACKWARD", max_pool_backward, pooled_and_source, IMAGES),
    "nearest": (
        "INTERPOLATE",
        lambda x: aten.upsample_nearest2d(x, [28, 28], 2.0, 2.0),
        lambda n: images(n, side=14),
        IMAGES,
    ),
    "bilinear": (
        "INTERPOLATE",
        lambda x: aten.upsample_bilinear2d(x, [28, 28], False, 2.0, 2.0),
        lambda n: images(n, side=14),
        IMAGES,
    ),
    "cat": ("CONCAT", lambda x, y: aten.cat([x, y], 1), pairs(images), IMAGES),
    "cat_rows": ("CONCAT", lambda x, y: aten.cat([x, y], -1), pairs(rows), ROWS),
    "mm": ("MATMUL", lambda x, w: aten.mm(x, w), product, (64, 512, 4096)),
    "mm_constant": ("MATMUL", lambda x, w: aten.mm(x, w), product, (64, 512, 4096), "constant"),
    "bmm": (
        "MATMUL",
        lambda x, y: aten.bmm(x, y),
        lambda n: (torch.randn(n, 64, 64), torch.randn(n, 64, 64)),
        (8, 64, 512),
    ),
    "conv": ("CONVOLUTION", convolution, lambda n: (images(n)[0], kernel(n)), IMAGES),
    "conv_constant": ("CONVOLUTION", convolution, lambda n: (images(n)[0], kernel(n)), IMAGES, "constant"),
    "conv_1x1_constant": (
        "CONVOLUTION",
        lambda x, w: aten.convolution(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
        lambda n: (images(n)[0], torch.randn(32, 32, 1, 1)),
        IMAGES,
        "constant",
    ),
    "conv_depthwise_constant": (
        "CONVOLUTION",
        lambda x, w: aten.convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 32),
        lambda n: (images(n)[0], torch.randn(32, 1, 3, 3)),
        IMAGES,
        "constant",
    ),
    "conv_transpose": (
        "CONV_TRANSPOSE",
        lambda x, w: aten.convolution(x, w, None, [2, 2], [1, 1], [1, 1], True, [0, 0], 1),
        lambda n: (images(n, side=14)[0], torch.randn(32, 32, 4, 4)),
        IMAGES,
    ),
    "conv_backward_data": (
        "CONVOLUTION_BACKWARD_DATA",
        convolution_backward([True, False, False]),
        lambda n: (images(n)[0], images(n)[0], kernel(n)),
        IMAGES,
    ),
    "conv_backward_weights": (
        "CONVOLUTION_BACKWARD_WEIGHTS",
        convolution_backward([False, True, False]),
        lambda n: (images(n)[0], images(n)[0], kernel(n)),
        IMAGES,
    ),
}


def table():
    """The rows of the table: speeds by kind, as it stands there."""
    found = {}
    for kind, numbers in re.findall(r"{GB_OP_(\w+), {(.*?)}},", TABLE.read_text(), re.S):
        found[kind] = [int(n) for n in re.findall(r"\d+", numbers)]
    return found


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
    """(ours, PyTorch's) seconds of the node alone, or None when it is in no partition of one op."""
    torch._dynamo.reset()
    compiler, run = compile_and_run(function, inputs, False, Options(keep_single_ops=True, opaque=False))
    calls = [call for program in compiler.programs for call in program.calls]
    if len(calls) != 1:
        return None
    [(call, given)] = _observe(compiler.programs, run).items()
    theirs = _eager_inputs(call, given)
    with torch.no_grad():
        return best([lambda: call(*given), lambda: call.fallback.forward(*theirs)], rounds)


def make_call(name, dtype, index):
    """(kind, function, inputs) of a node for a class of sizes."""
    kind, function, make, sizes, *constant = OPS[name]
    inputs = [
        x if hasattr(x, "stays") or not x.is_floating_point() else x.to(DTYPES[dtype]) for x in make(sizes[index])
    ]
    return kind, Weighted(function, inputs.pop()) if constant else function, tuple(inputs)


def measure_all(settings):
    """Prints times; [kind, type, class of sizes, times faster] of each."""
    found = []
    for name in settings.ops.split(","):
        for dtype in settings.dtype.split(","):
            cells = []
            for index in range(SIZES):
                kind, call, inputs = make_call(name, dtype, index)
                times = measure(call, inputs, settings.rounds)
                if times is None:
                    cells.append("outside")
                    continue
                found.append([kind, dtype, index, times[1] / times[0]])
                cells.append(f"{times[0] * 1e6:.1f}/{times[1] * 1e6:.1f} us {times[1] / times[0]:.2f}x")
            print(f"{name:23s} {dtype:4s} " + "  ".join(cells), flush=True)
    return found


def rows_of_table(found):
    """Speeds in hundredths by kind, in the order of the table."""
    cells = {}
    for kind, dtype, index, speed in found:
        place = list(DTYPES).index(dtype) * SIZES + index
        cells.setdefault(kind, [[] for _ in range(SIZES * len(DTYPES))])[place].append(speed)
    return {kind: [min(9999, round(100 * mean(speeds))) for speeds in lists] for kind, lists in sorted(cells.items())}


def print_table(found):
    there = table()
    for kind, speeds in rows_of_table(found).items():
        groups = [", ".join(map(str, speeds[i : i + SIZES])) for i in range(0, len(speeds), SIZES)]
        differs = [a >= ENOUGH for a in there.get(kind, [0] * len(speeds))] != [a >= ENOUGH for a in speeds]
        print(f"        {{GB_OP_{kind}, {{{{{'}, {'.join(groups)}}}}}}},{'  !' if differs else ''}")


def mean(values):
    """Geometric; 0 where there are none."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", default=",".join(OPS))
    parser.add_argument("--dtype", default="f32,bf16,f16")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--save")
    parser.add_argument("--table", nargs="+")
    settings = parser.parse_args()
    if settings.table:
        print_table([row for path in settings.table for line in open(path) for row in json.loads(line)])
        return 0
    torch.set_num_threads(settings.threads)
    found = measure_all(settings)
    if settings.save:
        with open(settings.save, "a") as file:
            file.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
