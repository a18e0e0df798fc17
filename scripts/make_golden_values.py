#!/usr/bin/env python3
"""Writes tests/golden_values.txt: small inputs and results of every op kind, computed here in plain Python.

Forward ops follow their definitions, element by element, in double precision. Gradients are no formulas: they are differences of the
forward op (weighted with the gradient of its result) around each element of the input. Inputs are odd multiples of 1/16, which
lie off the kinks of the functions and which every floating type holds.

A block is "op KIND", attributes as "NAME VALUES...", and tensors as "in|out TYPE SHAPE = VALUES..." ("-" is the shape of a scalar).
"""
import itertools
import math
import os
import struct

BLOCKS = []


class Tensor:
    def __init__(self, shape, values, dtype='f32'):
        self.shape, self.values, self.dtype = list(shape), list(values), dtype
        assert len(self.values) == math.prod(self.shape), (shape, len(self.values))

    def offset(self, index):
        at = 0
        for i, d in zip(index, self.shape):
            at = at * d + i
        return at

    def __getitem__(self, index):
        return self.values[self.offset(index)]

    def get(self, index):
        """0 outside."""
        inside = all(0 <= i < d for i, d in zip(index, self.shape))
        return self[index] if inside else 0.0


def indices(shape):
    return itertools.product(*(range(d) for d in shape))


def build(shape, function, dtype='f32'):
    return Tensor(shape, [function(i) for i in indices(shape)], dtype)


state = [1]


def data(*shape, low=-40, high=40, dtype='f32'):
    """Different odd multiples of 1/16 between low/16 and high/16, as far as there are enough."""
    odd = [k for k in range(low, high) if k % 2]
    out = []
    for _ in range(math.prod(shape)):
        if not odd:
            odd = [k for k in range(low, high) if k % 2]
        state[0] = (state[0] * 1103515245 + 12345) % 2 ** 31
        out.append(odd.pop((state[0] >> 8) % len(odd)) / 16)
    return Tensor(shape, out, dtype)


def integers(values, dtype='s32'):
    return Tensor([len(values)], values, dtype)


def write_value(x):
    return repr(x) if isinstance(x, int) else 'nan' if math.isnan(x) else f'{x:.17g}'


def block(kind, inputs, outputs, **attrs):
    lines = [f'op {kind}']
    for name, value in attrs.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        lines.append(' '.join([name] + [str(int(v)) if isinstance(v, bool) else str(v) for v in values]))
    for side, tensors in (('in', inputs), ('out', outputs)):
        for t in tensors:
            shape = 'x'.join(map(str, t.shape)) or '-'
            lines.append(f'{side} {t.dtype} {shape} = ' + ' '.join(map(write_value, t.values)))
    BLOCKS.append('\n'.join(lines))


def derivative(function, x):
    h = 2.0 ** -10
    return (8 * (function(x + h) - function(x - h)) - (function(x + 2 * h) - function(x - 2 * h))) / (12 * h)


def gradient(forward, tensor, diff_dst):
    """Of the sum of forward(tensor) diff_dst, by each element."""
    out = []
    for i, value in enumerate(tensor.values):
        def loss(x, i=i):
            moved = Tensor(tensor.shape, tensor.values)
            moved.values[i] = x
            return math.fsum(a * b for a, b in zip(forward(moved).values, diff_dst.values))
        out.append(derivative(loss, value))
    return Tensor(tensor.shape, out)


# ------------------------------------------------------------------------------------------------ element-wise

def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def softplus(x, beta=1.0):
    return math.log1p(math.exp(beta * x)) / beta


def clip(x, low, high):
    return min(max(x, low), high)


UNARY = {
    'Abs': (abs, {}),
    'Clamp': (lambda x: clip(x, -0.5, 0.75), dict(min=-0.5, max=0.75)),
    'Elu': (lambda x: x if x > 0 else 0.5 * math.expm1(x), dict(alpha=0.5)),
    'Exp': (math.exp, {}),
    'GELU': (lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))), dict(mode='gelu_erf')),
    'GELU/tanh': (lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
                  dict(mode='gelu_tanh')),
    'HardSigmoid': (lambda x: clip(0.75 * x + 0.25, 0, 1), dict(alpha=0.75, beta=0.25)),
    'HardSwish': (lambda x: x * clip(x + 3, 0, 6) / 6, {}),
    'LeakyReLU': (lambda x: x if x > 0 else 0.125 * x, dict(alpha=0.125)),
    'Log': (math.log, {}),
    'Mish': (lambda x: x * math.tanh(softplus(x)), {}),
    'Pow': (lambda x: x ** 3, dict(beta=3.0)),
    'Reciprocal': (lambda x: 1 / x, {}),
    'ReLU': (lambda x: max(x, 0.0), {}),
    'Round': (lambda x: float(round(x)), {}),
    'Sigmoid': (sigmoid, {}),
    'SoftPlus': (lambda x: softplus(x, 2.0), dict(beta=2.0)),
    'Sqrt': (math.sqrt, {}),
    'Square': (lambda x: x * x, {}),
    'Tanh': (math.tanh, {}),
}
# Gradients of these, and whether they may start from the result too.
DIFFERENTIABLE = {'Abs': False, 'Clamp': True, 'Elu': True, 'GELU': False, 'GELU/tanh': False, 'HardSigmoid': False,
                  'HardSwish': False, 'Mish': False, 'ReLU': True, 'Sigmoid': True, 'SoftPlus': False, 'Sqrt': True,
                  'Tanh': True}


def same(t, function):
    return Tensor(t.shape, map(function, t.values))


def unary():
    for name, (function, attrs) in UNARY.items():
        kind, positive = name.split('/')[0], name in ('Log', 'Sqrt')
        x = data(2, 9, low=1 if positive else -56, high=56)
        y = same(x, function)
        block(kind, [x], [y], **attrs)
        if name not in DIFFERENTIABLE:
            continue
        g = data(2, 9)
        dx = gradient(lambda t, f=function: same(t, f), x, g)
        uses_dst = DIFFERENTIABLE[name]
        block(kind + 'Backward', [x, g], [dx], **attrs, **(dict(use_dst=False) if uses_dst else {}))
        if uses_dst:
            y = Tensor(y.shape, map(as_f32, y.values))
            block(kind + 'Backward', [y, g], [dx], **attrs, use_dst=True)
    block('Round', [Tensor([5], [0.5, 1.5, 2.5, -0.5, -1.5])], [Tensor([5], [0.0, 2.0, 2.0, 0.0, -2.0])])


def broadcast(a, b):
    n = max(len(a), len(b))
    a, b = [1] * (n - len(a)) + list(a), [1] * (n - len(b)) + list(b)
    return [x if y == 1 else y for x, y in zip(a, b)]


def at(t, index):
    """Element of a tensor that is broadcast."""
    tail = index[len(index) - len(t.shape):]
    return t[[0 if d == 1 else i for i, d in zip(tail, t.shape)]]


BINARY = {
    'Add': lambda a, b: a + b, 'Divide': lambda a, b: a / b, 'Maximum': max, 'Minimum': min,
    'Multiply': lambda a, b: a * b, 'SquaredDifference': lambda a, b: (a - b) ** 2, 'Subtract': lambda a, b: a - b,
}


def prelu(x, slope, axis):
    return build(x.shape, lambda i: x[i] if x[i] > 0 else x[i] * slope.values[i[axis]])


def binary():
    for kind, function in BINARY.items():
        a, b = data(2, 1, 5), data(3, 1)
        block(kind, [a, b], [build(broadcast(a.shape, b.shape), lambda i: function(at(a, i), at(b, i)))])
    a, b = integers([1, 5, -7]), integers([3, 5, -9])
    block('Add', [a, b], [integers([4, 10, -16])])
    block('Subtract', [a, b], [integers([-2, 0, 2])])
    block('GreaterEqual', [a, b], [integers([0, 1, 1], 'boolean')])
    cond = Tensor([2, 1], [1, 0], 'boolean')
    a, b = data(2, 3), data(3)
    block('Select', [cond, a, b], [build([2, 3], lambda i: at(a, i) if at(cond, i) else at(b, i))])
    x, v, g = data(2, 3, 2, 2), data(3), data(2, 3, 2, 2)
    ncx = dict(data_format='NCX')
    block('BiasAdd', [x, v], [build(x.shape, lambda i: x[i] + v.values[i[1]])], **ncx)
    block('BiasAddBackward', [g], [gradient(lambda t: build(x.shape, lambda i: x[i] + t.values[i[1]]), v, g)], **ncx)
    block('PReLU', [x, v], [prelu(x, v, 1)], **ncx)
    block('PReLUBackward', [x, v, g],
          [gradient(lambda t: prelu(t, v, 1), x, g), gradient(lambda t: prelu(x, t, 1), v, g)], **ncx)


# --------------------------------------------------------------------------------------------- windows (N, C, H, W)

WINDOW = dict(strides=[2, 1], pads_begin=[1, 0], pads_end=[0, 1], dilations=[1, 2])


def positions(sizes, kernel, a):
    return [(n + b + e - (k - 1) * d - 1) // s + 1 for n, k, s, b, e, d in
            zip(sizes, kernel, a['strides'], a['pads_begin'], a['pads_end'], a['dilations'])]


def cell(o, k, a):
    return [i * s + j * d - b for i, j, s, d, b in zip(o, k, a['strides'], a['dilations'], a['pads_begin'])]


def conv(src, w, groups, a=WINDOW):
    """w: O, I / groups, H, W."""
    per = w.shape[0] // groups

    def one(i):
        n, c, o = i[0], i[1], i[2:]
        first = c // per * w.shape[1]
        return math.fsum(src.get([n, first + j[0]] + cell(o, j[1:], a)) * w[(c,) + j] for j in indices(w.shape[1:]))
    return build([src.shape[0], w.shape[0]] + positions(src.shape[2:], w.shape[2:], a), one)


def conv_transpose(src, w, groups, sizes, a=WINDOW):
    """w: I, O / groups, H, W."""
    per = w.shape[0] // groups
    dst = [0.0] * (src.shape[0] * w.shape[1] * groups * math.prod(sizes))
    out = Tensor([src.shape[0], w.shape[1] * groups] + sizes, dst)
    for i in indices(src.shape):
        for j in indices(w.shape[1:]):
            place = cell(i[2:], j[1:], a)
            if all(0 <= p < d for p, d in zip(place, sizes)):
                channel = i[1] // per * w.shape[1] + j[0]
                out.values[out.offset([i[0], channel] + place)] += src[i] * w[(i[1],) + j]
    return out


def convolutions():
    fmt = dict(data_format='NCX', weights_format='OIX', groups=2, **WINDOW)
    src, w, bias = data(2, 4, 5, 6), data(6, 2, 3, 2), data(6)
    dst = conv(src, w, 2)
    g = data(*dst.shape)
    block('Convolution', [src, w, bias], [build(dst.shape, lambda i: dst[i] + bias.values[i[1]])], **fmt)
    block('ConvolutionBackwardData', [g, w], [gradient(lambda t: conv(t, w, 2), src, g)], dst_shape=src.shape, **fmt)
    block('ConvolutionBackwardWeights', [src, g], [gradient(lambda t: conv(src, t, 2), w, g)], weights_shape=w.shape,
          **fmt)
    fmt['weights_format'] = 'IOX'
    src, w, bias, sizes = data(2, 4, 3, 3), data(4, 3, 3, 2), data(6), [6, 4]
    dst = conv_transpose(src, w, 2, sizes)
    g = data(*dst.shape)
    block('ConvTranspose', [src, w, bias], [build(dst.shape, lambda i: dst[i] + bias.values[i[1]])], **fmt)
    block('ConvTransposeBackwardData', [g, w], [gradient(lambda t: conv_transpose(t, w, 2, sizes), src, g)], **fmt)
    block('ConvTransposeBackwardWeights', [src, g], [gradient(lambda t: conv_transpose(src, t, 2, sizes), w, g)],
          weights_shape=w.shape, **fmt)
    # the size that output_padding gives: 3 becomes 2 (3 - 1) + 3 - 2 + output_padding
    src, w = data(1, 1, 3), Tensor([1, 1, 3], [1.0, 2.0, -1.0])
    for more in (0, 1):
        dst = [sum(src.values[i] * w.values[k] for i in range(3) for k in range(3) if 2 * i + k - 1 == j)
               for j in range(5 + more)]
        block('ConvTranspose', [src, w], [Tensor([1, 1, 5 + more], dst)], strides=[2], pads_begin=[1], pads_end=[1],
              dilations=[1], data_format='NCX', weights_format='IOX', output_padding=[more])


def pool(src, kernel, a, join):
    """join(values inside, number of cells)."""
    def one(i):
        cells = [cell(i[2:], k, a) for k in indices(kernel)]
        inside = [c for c in cells if all(0 <= p < d for p, d in zip(c, src.shape[2:]))]
        return join([src[list(i[:2]) + c] for c in inside], len(cells))
    return build(src.shape[:2] + positions(src.shape[2:], kernel, a), one)


def pools():
    src, kernel = data(1, 2, 4, 5), [3, 2]
    a = dict(strides=[2, 1], pads_begin=[1, 0], pads_end=[0, 1])
    plain, fmt = dict(a, dilations=[1, 1]), dict(a, kernel=kernel, data_format='NCX')
    for exclude in (True, False):
        def mean(t, exclude=exclude):
            return pool(t, kernel, plain, lambda inside, cells: sum(inside) / (len(inside) if exclude else cells))
        dst = mean(src)
        g = data(*dst.shape)
        block('AvgPool', [src], [dst], exclude_pad=exclude, **fmt)
        block('AvgPoolBackward', [g], [gradient(mean, src, g)], exclude_pad=exclude, src_shape=src.shape, **fmt)

    def largest(t):
        return pool(t, kernel, dict(a, dilations=[1, 2]), lambda inside, cells: max(inside))
    dst = largest(src)
    g = data(*dst.shape)
    block('MaxPool', [src], [dst], dilations=[1, 2], **fmt)
    block('MaxPoolBackward', [src, g], [gradient(largest, src, g)], dilations=[1, 2], **fmt)
    line = dict(strides=[2], kernel=[3], data_format='NCX')
    five, six = Tensor([1, 1, 5], [1.0, 2.0, 3.0, 4.0, 5.0]), Tensor([1, 1, 6], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    for exclude, expected in ((False, [1.0, 3.0, 3.0]), (True, [1.5, 3.0, 4.5])):
        block('AvgPool', [five], [Tensor([1, 1, 3], expected)], pads_begin=[1], pads_end=[1], exclude_pad=exclude,
              **line)
    block('AvgPool', [six], [Tensor([1, 1, 3], [2.0, 4.0, 5.5])], pads_begin=[0], pads_end=[0], exclude_pad=True,
          rounding_type='ceil', **line)


def interpolate(src, sizes, nearest, corners):
    def taps(o, size, out):
        if corners:
            s = 0.0 if out == 1 else o * (size - 1) / (out - 1)
        else:
            s = (o + 0.5) * size / out - 0.5
        if nearest:
            return [(int(clip(math.floor(abs(s) + 0.5) * (1 if s >= 0 else -1), 0, size - 1)), 1.0)]
        left, right = max(math.floor(s), 0), min(max(math.ceil(s), 0), size - 1)
        weight = abs(s - left)
        return [(left, 1 - weight), (right, weight)]

    def one(i):
        lists = [taps(o, size, out) for o, size, out in zip(i[2:], src.shape[2:], sizes)]
        return math.fsum(src[list(i[:2]) + [t[0] for t in c]] * math.prod(t[1] for t in c)
                         for c in itertools.product(*lists))
    return build(src.shape[:2] + sizes, one)


def resampling():
    src, sizes = data(1, 2, 3, 4), [5, 3]
    g = data(1, 2, *sizes)
    for mode, corners in (('nearest', False), ('linear', False), ('bilinear', True)):
        def forward(t, mode=mode, corners=corners):
            return interpolate(t, sizes, mode == 'nearest', corners)
        attrs = dict(mode=mode, sizes=sizes, data_format='NCX',
                     coordinate_transformation_mode='align_corners' if corners else 'half_pixel')
        block('Interpolate', [src], [forward(src)], **attrs)
        block('InterpolateBackward', [src, g], [gradient(forward, src, g)], **attrs)
    ramp = Tensor([1, 1, 4], [0.0, 1.0, 2.0, 3.0])
    for mode, corners, expected in (
            ('linear', 'half_pixel', [0, .25, .75, 1.25, 1.75, 2.25, 2.75, 3]), ('linear', 'half_pixel', [.5, 2.5]),
            ('nearest', 'half_pixel', [0, 2, 3]), ('nearest', 'half_pixel', [1, 3]),
            ('linear', 'align_corners', [0, .5, 1, 1.5, 2, 2.5, 3])):
        block('Interpolate', [ramp], [Tensor([1, 1, len(expected)], map(float, expected))], mode=mode,
              coordinate_transformation_mode=corners, sizes=[len(expected)], data_format='NCX')


# -------------------------------------------------------------------------------- normalisation, softmax, reductions

def moments(values):
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((v - mean) ** 2 for v in values) / len(values)


def normalize(x, key, epsilon, gamma=None, beta=None, place=None, stats=None):
    """Elements with the same key share statistics; place(index) tells the element of gamma and beta."""
    sets = {}
    for i in indices(x.shape):
        sets.setdefault(key(i), []).append(x[i])
    found = stats or {k: moments(v) for k, v in sets.items()}

    def one(i):
        mean, variance = found[key(i)]
        y = (x[i] - mean) / math.sqrt(variance + epsilon)
        return y * (gamma.values[place(i)] if gamma else 1) + (beta.values[place(i)] if beta else 0)
    return build(x.shape, one), found


def stats_tensors(found, shape):
    keys = sorted(found)
    return [Tensor(shape, [found[k][m] for k in keys]) for m in (0, 1)]


def rounded(tensors):
    return [Tensor(t.shape, map(as_f32, t.values)) for t in tensors]


def batch_norms():
    x, g, gamma, beta = data(2, 3, 2, 2), data(2, 3, 2, 2), data(3), data(3)
    mean, variance, epsilon = data(3), data(3, low=1), 0.0625

    def channel(i):
        return i[1]
    attrs = dict(epsilon=epsilon, data_format='NCX')
    given = {c: (mean.values[c], variance.values[c]) for c in range(3)}
    block('BatchNormInference', [x, gamma, beta, mean, variance],
          [normalize(x, channel, epsilon, gamma, beta, channel, given)[0]], **attrs)
    y, found = normalize(x, channel, epsilon, gamma, beta, channel)
    batch = stats_tensors(found, [3])
    running = [Tensor([3], [0.75 * a + 0.25 * b for a, b in zip(old.values, new.values)])
               for old, new in zip((mean, variance), batch)]
    block('BatchNormForwardTraining', [x, mean, variance, gamma, beta], [y] + running + batch, momentum=0.75, **attrs)
    diffs = [gradient(lambda t: normalize(t, channel, epsilon, gamma, beta, channel)[0], x, g),
             gradient(lambda t: normalize(x, channel, epsilon, t, beta, channel)[0], gamma, g),
             gradient(lambda t: normalize(x, channel, epsilon, gamma, t, channel)[0], beta, g)]
    block('BatchNormTrainingBackward', [x, g] + rounded(batch) + [gamma], diffs, **attrs)
    # one result: the statistics are constants, gamma is not used
    fixed = gradient(lambda t: normalize(t, channel, epsilon, None, None, channel, given)[0], x, g)
    block('BatchNormTrainingBackward', [x, g, mean, variance], [fixed], **attrs)


def norms():
    batch_norms()
    x, g, gamma, beta, epsilon = data(2, 3, 4), data(2, 3, 4), data(4), data(4), 0.0625

    def row(i):
        return i[:2]

    def column(i):
        return i[2]
    y, found = normalize(x, row, epsilon, gamma, beta, column)
    stats = stats_tensors(found, [2, 3])
    block('LayerNorm', [x, gamma, beta], [y] + stats, epsilon=epsilon)
    diffs = [gradient(lambda t: normalize(t, row, epsilon, gamma, beta, column)[0], x, g),
             gradient(lambda t: normalize(x, row, epsilon, t, beta, column)[0], gamma, g),
             gradient(lambda t: normalize(x, row, epsilon, gamma, t, column)[0], beta, g)]
    block('LayerNormBackward', [x, g] + rounded(stats) + [gamma, beta], diffs, epsilon=epsilon)
    x, gamma, beta = data(2, 4, 3), data(4), data(4)
    y, found = normalize(x, lambda i: (i[0], i[1] // 2), epsilon, gamma, beta, lambda i: i[1])
    block('GroupNorm', [x, gamma, beta], [y] + stats_tensors(found, [2, 2]), groups=2, epsilon=epsilon,
          data_format='NCX')
    x, gamma = data(3, 4), data(4)

    def root(i):
        return math.sqrt(math.fsum(x[i[0], j] ** 2 for j in range(4)) / 4 + epsilon)
    block('RMSNorm', [x, gamma], [build(x.shape, lambda i: x[i] / root(i) * gamma.values[i[1]])], epsilon=epsilon)
    x = Tensor([4], [1.0, 2.0, 3.0, 4.0])
    block('RMSNorm', [x], [same(x, lambda v: v / math.sqrt(7.5 + 1e-5))])


def softmax(x, axis, logarithm=False):
    def line(i):
        return [x[i[:axis] + (j,) + i[axis + 1:]] for j in range(x.shape[axis])]

    def total(i):
        return math.log(math.fsum(map(math.exp, line(i))))
    stats = list(x.shape)
    stats[axis] = 1
    return (build(x.shape, lambda i: x[i] - total(i) if logarithm else math.exp(x[i] - total(i))),
            build(stats, total))


def softmaxes():
    x, g = data(2, 3, 4), data(2, 3, 4)
    for kind, logarithm in (('SoftMax', False), ('LogSoftmax', True)):
        y, stats = softmax(x, 1, logarithm)
        block(kind, [x], [y] if logarithm else [y, stats], axis=1)
        block(kind + 'Backward', [g] + rounded([y]),
              [gradient(lambda t, how=logarithm: softmax(t, 1, how)[0], x, g)], axis=1)
    x = Tensor([3], [1.0, 2.0, 3.0])
    block('SoftMax', [x], list(softmax(x, 0)), axis=0)


REDUCTIONS = {
    'ReduceL1': lambda v: math.fsum(map(abs, v)), 'ReduceL2': lambda v: math.sqrt(math.fsum(x * x for x in v)),
    'ReduceMax': max, 'ReduceMin': min, 'ReduceMean': lambda v: math.fsum(v) / len(v), 'ReduceProd': math.prod,
    'ReduceSum': math.fsum,
}


def reductions():
    x = data(2, 3, 4)
    for kind, join in REDUCTIONS.items():
        dst = build([3], lambda i: join([x[a, i[0], b] for a in range(2) for b in range(4)]))
        block(kind, [x], [dst], axes=[-1, 0], keep_dims=False)
        block(kind, [x, integers([2, 0])], [dst], keep_dims=False)


def products():
    a, b, bias = data(2, 3, 4), data(2, 4, 5), data(5)
    block('MatMul', [a, b, bias], [build([2, 3, 5], lambda i: math.fsum(
        a[i[0], i[1], k] * b[i[0], k, i[2]] for k in range(4)) + bias.values[i[2]])])
    a, b = data(4, 3), data(5, 4)
    block('MatMul', [a, b], [build([3, 5], lambda i: math.fsum(a[k, i[0]] * b[i[1], k] for k in range(4)))],
          transpose_a=True, transpose_b=True)


# --------------------------------------------------------------------------------------------- movement, conversion

def as_f32(x):
    return struct.unpack('f', struct.pack('f', x))[0]


def as_bf16(x):
    bits = struct.unpack('I', struct.pack('f', x))[0]
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
    return struct.unpack('f', struct.pack('I', bits))[0]


def as_f16(x):
    return struct.unpack('e', struct.pack('e', x))[0]


def movement():
    a, b = data(2, 1, 3), data(2, 2, 3)
    block('Concat', [a, b], [build([2, 3, 3], lambda i: a[i[0], 0, i[2]] if i[1] < 1 else b[i[0], i[1] - 1, i[2]])],
          axis=1)
    x = data(2, 3, 4)
    block('StaticReshape', [x], [Tensor([2, 2, 6], x.values)], shape=[0, -1, 6], special_zero=True)
    block('StaticTranspose', [x], [build([4, 2, 3], lambda i: x[i[1], i[2], i[0]])], order=[2, 0, 1])
    block('Reorder', [x], [x])
    block('GenIndex', [x], [build(x.shape, lambda i: i[1], 's32')], axis=1)
    x = Tensor([6], map(as_f32, [1 / 3, -2.7182818, 65519.0, 1e-7, 3.0009766, 258.5]))
    for dtype, convert in (('bf16', as_bf16), ('f16', as_f16)):
        y = Tensor([6], [convert(v) for v in x.values], dtype)
        block('TypeCast', [x], [y])
        block('TypeCast', [y], [Tensor([6], y.values)])


def quantized(x, scale, zp, low, high):
    return int(clip(round(x / scale + zp), low, high))


def conversions():
    x = Tensor([2, 3], [0.5, 1.5, 2.5, -0.5, -2.5, 130.0])
    block('Quantize', [x], [Tensor([2, 3], [0, 2, 2, 0, -2, 127], 's8')], scales=[1.0], zps=[0])
    block('Quantize', [Tensor([1], [0.5])], [Tensor([1], [2], 's8')], scales=[1.0], zps=[1])
    block('Quantize', [Tensor([1], [-0.75])], [Tensor([1], [2], 's8')], scales=[0.5], zps=[3])
    block('Quantize', [Tensor([3], [-2.5, 130.0, 300.0])], [Tensor([3], [0, 130, 255], 'u8')], scales=[1.0], zps=[0])
    block('Quantize', [Tensor([4], [1.0, 2.0, 448.0, -0.3125])], [Tensor([4], [2.0, 4.0, 896.0, -0.625], 'f8_e5m2')],
          scales=[0.5])
    scales, zps, x = [0.25, 0.5, 0.125], [1, -2, 3], data(2, 3, 2, low=-500, high=500)
    y = build(x.shape, lambda i: quantized(x[i], scales[i[1]], zps[i[1]], -128, 127), 's8')
    channels = dict(qtype='per_channel', axis=1)
    back = build(x.shape, lambda i: (y[i] - zps[i[1]]) * scales[i[1]])
    block('Quantize', [x], [y], scales=scales, zps=zps, **channels)
    block('Dequantize', [y], [back], scales=scales, zps=zps, **channels)
    tensors = [Tensor([3], scales), integers(zps)]
    block('DynamicQuantize', [x] + tensors, [y], **channels)
    block('DynamicDequantize', [y] + tensors, [back], **channels)
    y = build([2, 4], lambda i: (5 * i[0] + 3 * i[1]) % 16, 'u4')
    scales, zps = Tensor([2, 2], [0.5, 0.25, 2.0, 1.0]), Tensor([2, 2], [1, 8, 15, 0], 'u4')
    block('DynamicDequantize', [y, scales, zps], [build(y.shape, lambda i: (
        y[i] - zps[i[0], i[1] // 2]) * scales[i[0], i[1] // 2])], qtype='per_group', group_shape=[1, 2])


def philox(i, seed, offset):
    """Philox4x32-10 as the op set uses it: one draw for element i."""
    mask = 2 ** 32 - 1
    first = i & ~3
    c = [offset & mask, offset >> 32, first & mask, first >> 32]
    k = [seed & mask, seed >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & mask, (p >> 32) ^ c[3] ^ k[1], p & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c[i & 3]


def dropout():
    assert [philox(i, 123456, 1) for i in range(8)] == [
        0x7a912bbe, 0x0c123e77, 0x805f2ad1, 0xed0e542c, 0xd22ec85f, 0x46881f82, 0xe6f34113, 0xe5c2209f]
    x, p, seed, offset = data(3, 7), 0.25, 123456, 1
    keep = Tensor(x.shape, [int(philox(i, seed, offset) > 4294967295.0 * p) for i in range(21)], 'u8')
    y = Tensor(x.shape, [v / (1 - p) if k else 0.0 for v, k in zip(x.values, keep.values)])
    block('Dropout', [x, integers([seed], 's64'), integers([offset], 's64'), Tensor([1], [p])], [y, keep])


def main():
    for family in (unary, binary, convolutions, pools, resampling, norms, softmaxes, reductions, products, movement,
                   conversions, dropout):
        family()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'golden_values.txt')
    with open(path, 'w') as f:
        f.write('# Results of every op kind. Written by scripts/make_golden_values.py; do not edit.\n\n')
        f.write('\n\n'.join(BLOCKS) + '\n')


if __name__ == '__main__':
    main()
