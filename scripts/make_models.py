#!/usr/bin/env python3
"""Writes graphs of whole models from layer configurations.

    make_models.py [OUTPUT]                 the small and wide graphs and their batch files, below OUTPUT (default
                                            inputs/graph of the project) in the folder model
    make_models.py --full OUTPUT [MODEL]..  the models at their full depth and width, below OUTPUT

MODEL is one of resnet50, bert_base, llama_prefill, llama_decode, llama_decode_in_place, unet (default: all). Each is written
as f32, bf16 (with casts at the ends, scores of attention in f32) and int8 (Quantize and Dequantize around every convolution
and product, as a quantiser places them), Llama also as int4 (f16 with weights of 4 bits, scaled by groups). `small` graphs have few and narrow layers and are checked in seconds; `wide` ones
have few layers of full width, to be measured. The graphs are a pure function of the configurations below.
"""
import argparse
import math
import os

from graph_words import cast, causal_mask, channel_scales, compressed, move, reshape, window
from graph_writer import INPUTS, Graph, compact, write

PRECISIONS = ('f32', 'bf16', 'int8')
DECODER_PRECISIONS = PRECISIONS + ('int4',)
LARGEST_GROUP = 128  # of 4-bit weights with one scale
MOST_SCALES = 1024  # wider layers have one scale for all channels, which keeps the files small


class Net:
    """Layers in one of the precisions. Activations are f32 (bf16) tensors; in int8 each operand of a product or of a
    residual sum is quantised once, and dequantised for each reader."""

    def __init__(self, precision):
        self.type = {'bf16': 'bf16', 'int4': 'f16'}.get(precision, 'f32')
        self.int8, self.int4, self.stored = precision == 'int8', precision == 'int4', {}
        self.g = Graph(fpmath_mode='strict' if self.type == 'f32' else self.type, apply_to_int=self.int4)

    # ------------------------------------------------------------------------------------------------ values

    def input(self, *shape):
        x = self.g.input(*shape)
        return x if self.type == 'f32' else cast(self.g, x, self.type)

    def output(self, x):
        return x if x['dtype'] == 'f32' else cast(self.g, x, 'f32')

    def parameter(self, *shape):
        return self.g.weights(*shape, dtype=self.type)

    def operand(self, x, unit=1 / 16, unsigned=False):
        """The value as an operand: in int8, through integers of the given unit."""
        if not self.int8:
            return x
        if x['id'] not in self.stored:
            self.stored[x['id']] = unit, self.g.op('Quantize', x, dtype='u8' if unsigned else 's8',
                                                   qtype='per_tensor', axis=1, scales=[unit], zps=[0])
        unit, stored = self.stored[x['id']]
        return self.dequantize(stored, unit)

    def dequantize(self, stored, unit=1 / 16):
        return self.g.op('Dequantize', stored, dtype='f32', qtype='per_tensor', axis=1, scales=[unit], zps=[0])

    def weights(self, *shape, axis, terms):
        if not self.int8:
            return self.parameter(*shape)
        scales = channel_scales(shape[axis], terms)
        if len(scales) > MOST_SCALES:
            scales = scales[1:2]
        return self.g.op('Dequantize', self.g.weights(*shape, dtype='s8'), dtype='f32', axis=axis, scales=scales,
                         qtype='per_channel' if len(scales) > 1 else 'per_tensor', zps=[0] * len(scales))

    # ------------------------------------------------------------------------------------------------ layers

    def unary(self, kind, x, **attrs):
        return self.g.op(kind, x, **attrs)

    def swish(self, x):
        return self.g.op('Multiply', x, self.g.op('Sigmoid', x))

    def add(self, y, x, unsigned=False):
        """A residual sum: the product and what it is added to."""
        return self.g.op('Add', y, self.operand(x, unsigned=unsigned))

    def linear(self, x, width, bias=True, **operand):
        k = x['shape'][-1]
        if self.int4:
            group = math.gcd(k, LARGEST_GROUP)
            weights = compressed(self.g, k, width, groups=(group, 1), dtype='u4', out=self.type)
        else:
            weights = self.weights(k, width, axis=1, terms=k)
        return self.g.op('MatMul', self.operand(x, **operand), weights, *([self.parameter(width)] if bias else []))

    def conv(self, x, channels, size=3, stride=1, groups=1, bias=True, **operand):
        k = x['shape'][1] // groups
        weights = self.weights(channels, k, size, size, axis=0, terms=k * size * size)
        return self.g.op('Convolution', self.operand(x, **operand), weights,
                         *([self.parameter(channels)] if bias else []), **window(size, stride, groups))

    def conv_norm(self, x, channels, size, stride=1, **operand):
        """Convolution and batch norm; the norm is folded into weights and bias before they are quantised."""
        if self.int8:
            return self.conv(x, channels, size, stride, **operand)
        y = self.conv(x, channels, size, stride, bias=False)
        return self.g.op('BatchNormInference', y, *[self.g.weights(channels) for _ in range(4)], epsilon=1e-5,
                         data_format='NCX')

    def layer_norm(self, x):
        width = x['shape'][-1]
        return self.g.op('LayerNorm', x, self.g.weights(width), self.g.weights(width), keep_stats=False,
                         begin_norm_axis=-1, epsilon=1e-5, use_affine=True)

    def group_norm(self, x, groups):
        channels = x['shape'][1]
        return self.g.op('GroupNorm', x, self.g.weights(channels), self.g.weights(channels), groups=groups,
                         keep_stats=False, epsilon=1e-5, use_affine=True, data_format='NCX')

    def rms_norm(self, x):
        return self.g.op('RMSNorm', x, self.parameter(x['shape'][-1]), begin_norm_axis=-1, epsilon=1e-5)

    def heads(self, x, heads):
        """Rows of several heads as one matrix for each head."""
        batch, rows, width = x['shape']
        return self.g.op('StaticTranspose', reshape(self.g, x, batch, rows, heads, width // heads), order=[0, 2, 1, 3])

    def attention(self, query, key, value, mask=None, causal=False):
        """SoftMax(query key' / scale + mask) value; the scores are f32."""
        x = self.g.op('MatMul', self.operand(query), self.operand(key), dtype='f32', transpose_b=True)
        x = self.g.op('Divide', x, self.g.input(1))
        x = self.g.op('Add', x, mask) if mask else x
        x = self.g.op('SoftMax', causal_mask(self.g, x) if causal else x, axis=-1)
        x = cast(self.g, x, value['dtype']) if x['dtype'] != value['dtype'] else x
        return self.g.op('MatMul', self.operand(x, 1 / 256, True), self.operand(value))


# ---------------------------------------------------------------------------------------------------- ResNet-50

def resnet(net, image, stem, stages, classes, batch=1):
    """Stages are (blocks, width, channels)."""
    x = net.input(batch, 3, image, image)
    x = net.unary('ReLU', net.conv_norm(x, stem, 7, 2))
    x = net.unary('MaxPool', net.operand(x, unsigned=True), strides=[2, 2], kernel=[3, 3], pads_begin=[1, 1], pads_end=[1, 1],
                  data_format='NCX', rounding_type='floor')
    for number, (blocks, width, channels) in enumerate(stages):
        for block in range(blocks):
            stride = 2 if number and not block else 1
            y = net.unary('ReLU', net.conv_norm(x, width, 1, unsigned=True))
            y = net.unary('ReLU', net.conv_norm(y, width, 3, stride, unsigned=True))
            y = net.conv_norm(y, channels, 1, unsigned=True)
            if block:
                y = net.add(y, x, unsigned=True)
            else:
                y = net.add(y, net.conv_norm(x, channels, 1, stride, unsigned=True))
            x = net.unary('ReLU', y)
    x = net.g.op('ReduceMean', x, axes=[2, 3], keep_dims=False)
    net.output(net.linear(x, classes, unsigned=True))


# ---------------------------------------------------------------------------------------------------- BERT-base

def bert(net, layers, heads, width, inner, rows, batch=1):
    mask = net.g.input(batch, 1, 1, rows)
    x = net.layer_norm(net.input(batch, rows, width))
    for _ in range(layers):
        q, k, v = (net.heads(net.linear(x, width), heads) for _ in range(3))
        y = move(net.g, net.attention(q, k, v, mask), [0, 2, 1, 3], shape=[batch, rows, width])
        x = net.layer_norm(net.add(net.linear(y, width), x))
        y = net.linear(net.unary('GELU', net.linear(x, inner)), width)
        x = net.layer_norm(net.add(y, x))
    x = net.g.op('ReduceMean', x, axes=[1], keep_dims=False)
    net.output(net.unary('Tanh', net.linear(x, width)))


# --------------------------------------------------------------------------------------------------------- Llama

def rotate(net, x):
    """Rotary positions: x cos + (x R) sin, where R exchanges the halves of a head and turns the sign of one."""
    g, size, rows = net.g, x['shape'][-1], x['shape'][-2]
    turned = g.op('MatMul', x, net.parameter(size, size))
    cos, sin = (g.input(1, 1, 1, rows, size, dtype=x['dtype']) for _ in range(2))
    return g.op('Add', g.op('Multiply', x, cos), g.op('Multiply', turned, sin))


def split_heads(net, x, groups, size):
    """Rows of heads as a matrix for each key head and each query head of its group."""
    batch, rows, width = x['shape']
    x = reshape(net.g, x, batch, rows, groups, width // groups // size, size)
    return net.g.op('StaticTranspose', x, order=[0, 2, 3, 1, 4])


def cached(net, fresh, past, how):
    """Keys or values of all positions: the cache with the new row behind it, or written into it. A cache of integers is
    extended by integers."""
    g, (batch, heads, _, _, size) = net.g, fresh['shape']
    stored = g.input(batch, heads, 1, past, size, dtype='s8' if net.int8 else fresh['dtype'])
    cache = net.dequantize(stored) if net.int8 else stored
    if how == 'concat':
        return g.op('Concat', cache, net.operand(fresh), axis=3)
    here = g.input(1, 1, 1, past, 1, dtype='boolean')
    return g.op('Select', here, net.operand(fresh), cache, dtype=fresh['dtype'])


def llama(net, layers, heads, key_heads, size, inner, rows, past=0, cache=None, batch=1):
    """Decoder blocks. `past`: positions in the cache, 0 = prefill; `cache`: 'concat' or 'in_place'."""
    g, width = net.g, heads * size
    x = net.input(batch, rows, width)
    total = past + (cache == 'concat') if past else rows
    mask = g.input(batch, 1, 1, 1, total) if past else None
    for _ in range(layers):
        y = net.rms_norm(x)
        q, k, v = (split_heads(net, net.linear(y, n * size, False), key_heads, size)
                   for n in (heads, key_heads, key_heads))
        q, k = rotate(net, q), rotate(net, k)
        if past:
            k, v = (cached(net, fresh, past, cache) for fresh in (k, v))
        y = net.attention(q, k, v, mask, causal=not past)
        y = move(g, y, [0, 3, 1, 2, 4], shape=[batch, rows, width])
        x = net.add(net.linear(y, width, False), x)
        y = net.rms_norm(x)
        gate, up = net.swish(net.linear(y, inner, False)), net.linear(y, inner, False)
        x = net.add(net.linear(g.op('Multiply', gate, up), width, False), x)
    net.output(net.rms_norm(x))


# --------------------------------------------------------------------------------------------------------- U-Net

def unet_residual(net, x, time, channels, groups):
    y = net.conv(net.swish(net.group_norm(x, groups)), channels)
    shift = net.linear(net.swish(time), channels)
    y = net.g.op('Add', y, reshape(net.g, shift, shift['shape'][0], channels, 1, 1))
    y = net.conv(net.swish(net.group_norm(y, groups)), channels)
    return net.add(y, x if x['shape'][1] == channels else net.conv(x, channels, 1))


def unet_attention(net, x, heads, groups):
    batch, channels, high, wide = x['shape']
    y = reshape(net.g, net.group_norm(x, groups), batch, channels, high * wide)
    y = net.g.op('StaticTranspose', y, order=[0, 2, 1])
    q, k, v = (net.heads(net.linear(y, channels, False), heads) for _ in range(3))
    y = move(net.g, net.attention(q, k, v), [0, 2, 1, 3], shape=[batch, high * wide, channels])
    y = net.g.op('StaticTranspose', net.linear(y, channels), order=[0, 2, 1])
    return net.g.op('Add', reshape(net.g, y, batch, channels, high, wide), x)


def unet(net, image, channels, heads, groups, depth, batch=1):
    """Down by 2 at each level and up again, with skips; attention below the first level."""
    time = net.input(batch, 4 * channels[0])
    x = net.conv(net.input(batch, 4, image, image), channels[0])
    skips = []
    for level, width in enumerate(channels):
        for _ in range(depth):
            x = unet_residual(net, x, time, width, groups)
            x = unet_attention(net, x, heads, groups) if level else x
            skips.append(x)
        x = net.conv(x, width, 3, 2) if level + 1 < len(channels) else x
    for level in reversed(range(len(channels))):
        for _ in range(depth):
            x = net.g.op('Concat', x, skips.pop(), axis=1)
            x = unet_residual(net, x, time, channels[level], groups)
        if level:
            x = net.g.op('Interpolate', x, mode='nearest', sizes=[2 * d for d in x['shape'][2:]],
                         coordinate_transformation_mode='half_pixel', data_format='NCX')
            x = net.conv(x, channels[level - 1])
    net.output(net.conv(net.swish(net.group_norm(x, groups)), 4))


# ------------------------------------------------------------------------------------------------ configurations

MODELS = {
    'resnet50': (resnet, dict(
        small=dict(image=45, stem=16, stages=[(2, 8, 32), (2, 12, 48), (1, 20, 72)], classes=21),
        wide=dict(image=224, stem=64, stages=[(1, 64, 256), (1, 128, 512), (1, 256, 1024), (1, 512, 2048)],
                  classes=1000),
        full=dict(image=224, stem=64, stages=[(3, 64, 256), (4, 128, 512), (6, 256, 1024), (3, 512, 2048)],
                  classes=1000))),
    'bert_base': (bert, dict(
        small=dict(layers=2, heads=3, width=48, inner=144, rows=19, batch=2),
        wide=dict(layers=1, heads=12, width=768, inner=3072, rows=128),
        full=dict(layers=12, heads=12, width=768, inner=3072, rows=128))),
    'llama_prefill': (llama, dict(
        small=dict(layers=2, heads=6, key_heads=2, size=16, inner=136, rows=21),
        wide=dict(layers=1, heads=32, key_heads=8, size=128, inner=14336, rows=128),
        full=dict(layers=32, heads=32, key_heads=8, size=128, inner=14336, rows=128))),
    'llama_decode': (llama, dict(
        small=dict(layers=2, heads=6, key_heads=2, size=16, inner=136, rows=1, past=37, cache='concat', batch=2),
        wide=dict(layers=1, heads=32, key_heads=8, size=128, inner=14336, rows=1, past=1023, cache='concat'),
        full=dict(layers=32, heads=32, key_heads=8, size=128, inner=14336, rows=1, past=1023, cache='concat'))),
    'llama_decode_in_place': (llama, dict(
        small=dict(layers=2, heads=6, key_heads=2, size=16, inner=136, rows=1, past=37, cache='in_place', batch=2),
        wide=dict(layers=1, heads=32, key_heads=8, size=128, inner=14336, rows=1, past=1024, cache='in_place'),
        full=dict(layers=32, heads=32, key_heads=8, size=128, inner=14336, rows=1, past=1024, cache='in_place'))),
    'unet': (unet, dict(
        small=dict(image=12, channels=[16, 24], heads=2, groups=4, depth=1),
        wide=dict(image=32, channels=[320, 640], heads=8, groups=32, depth=1),
        full=dict(image=64, channels=[320, 640, 1280], heads=8, groups=32, depth=2))),
}


def precisions(name):
    return DECODER_PRECISIONS if MODELS[name][0] is llama else PRECISIONS


def build(name, size, precision):
    layers, sizes = MODELS[name]
    net = Net(precision)
    layers(net, **sizes[size])
    return net.g


def write_model(folder, name, size, precision):
    file = f'{name}_{size}_{precision}.json'
    graph = build(name, size, precision)
    write(os.path.join(folder, file), compact(graph.document()))
    return file, len(graph.ops)


def write_small_and_wide(output):
    folder = os.path.join(output, 'model')
    lines = {size: [] for size in ('small', 'wide')}
    for name in MODELS:
        for size, cases in lines.items():
            for precision in precisions(name):
                file, _ = write_model(folder, name, size, precision)
                cases.append(f'--reset --expected-n-partitions=0 --case=model/{file}\n')
    made = 'Written by scripts/make_models.py.\n'
    write(os.path.join(folder, 'ci'), f'# Whole models, few and narrow layers. {made}' + ''.join(lines['small']))
    write(os.path.join(folder, 'perf'),
          f'# Few layers of full width, to be measured. {made}' + ''.join(lines['wide']))
    write(os.path.join(folder, 'all'), f'# All models. {made}--batch=model/ci\n--batch=model/perf\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--full', action='store_true', help='the models at their full depth and width')
    parser.add_argument('output', metavar='OUTPUT', nargs='?', default=INPUTS, help='folder to write to')
    parser.add_argument('models', metavar='MODEL', nargs='*', help=', '.join(MODELS))
    arguments = parser.parse_args()
    unknown = [name for name in arguments.models if name not in MODELS]
    if unknown or (arguments.full and arguments.output == INPUTS) or (arguments.models and not arguments.full):
        parser.error(f'no model {unknown[0]}' if unknown else '--full needs an OUTPUT, and a MODEL needs --full')
    if not arguments.full:
        return write_small_and_wide(arguments.output)
    for name in arguments.models or MODELS:
        for precision in precisions(name):
            file, n_ops = write_model(arguments.output, name, 'full', precision)
            print(f'{file}: {n_ops} ops')
    return None


if __name__ == '__main__':
    main()
