#!/usr/bin/env python3
"""Writes the graphs below inputs/graph/ from short descriptions.

    make_inputs.py [GRAPH_BENCH]

GRAPH_BENCH (default build/release/graph-bench) fills in the shapes that follow from the inputs. Only needed when a graph is added or
changed: the JSON files are part of the project.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
UNKNOWN = -2 ** 63


class Graph:
    """Collects ops; tensors are numbered in the order of their first mention."""

    def __init__(self):
        self.ops, self.inputs, self.n = [], [], 0

    def tensor(self, shape, dtype='f32', prop='undef', strides=None):
        known = shape is not None
        if known and strides is None:
            strides, step = [], 1
            for dim in reversed(shape):
                strides.insert(0, step)
                step *= max(dim, 1)
        lt = {'id': self.n, 'dtype': dtype, 'shape': shape if known else [UNKNOWN],
              'stride': strides if known else [UNKNOWN],
              'layout_type': 'strided', 'property_type': prop}
        self.n += 1
        return lt

    def input(self, *shape, dtype='f32', strides=None):
        return self.tensor(list(shape), dtype, 'variable', strides)

    def weights(self, *shape, dtype='f32'):
        return self.tensor(list(shape), dtype, 'constant')

    def op(self, kind, *inputs, n_outputs=1, dtype=None, out_dtypes=None, **attrs):
        outs = []
        for i in range(n_outputs):
            kinds = out_dtypes or [dtype or inputs[0]['dtype']] * n_outputs
            outs.append(self.tensor(None, kinds[i]))
        self.ops.append({'id': len(self.ops), 'name': f'{kind.lower()}_{len(self.ops)}', 'kind': kind,
                         'attrs': {k: attr(v) for k, v in attrs.items()},
                         'inputs': list(inputs), 'outputs': outs})
        return outs[0] if n_outputs == 1 else outs

    def document(self):
        return {'version': '3.14.0', 'engine_kind': 'cpu', 'fpmath_mode': 'strict',
                'fpmath_mode_apply_to_int': 'false', 'graph': self.ops}


def attr(value):
    if isinstance(value, bool):
        return {'type': 'bool', 'value': int(value)}
    if isinstance(value, str):
        return {'type': 'string', 'value': value}
    if isinstance(value, int):
        return {'type': 's64', 'value': value}
    if isinstance(value, float):
        return {'type': 'f32', 'value': value}
    floats = any(isinstance(v, float) for v in value)
    return {'type': 'f32[]' if floats else 's64[]', 'value': list(value)}


CONV = dict(strides=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilations=[1, 1], groups=1,
            data_format='NCX', weights_format='OIX')
POOL = dict(strides=[2, 2], kernel=[3, 3], pads_begin=[1, 1], pads_end=[1, 1], data_format='NCX')


def conv(g, x, out, size=3, stride=1, groups=1, bias=False):
    channels, pad = x['shape'][1], size // 2
    more = [g.weights(out, channels // groups, size, size)] + ([g.weights(out)] if bias else [])
    y = g.op('Convolution', x, *more,
             **dict(CONV, strides=[stride] * 2, pads_begin=[pad] * 2, pads_end=[pad] * 2, groups=groups))
    spatial = [(d + 2 * pad - size) // stride + 1 for d in x['shape'][2:]]
    y['shape'] = [x['shape'][0], out] + spatial
    y['stride'] = [out * spatial[0] * spatial[1], spatial[0] * spatial[1], spatial[1], 1]
    return y


# ------------------------------------------------------------------------------------------------ single ops

UNARY = {
    'Abs': {}, 'Clamp': dict(min=-1.0, max=2.0), 'Elu': dict(alpha=0.5), 'Exp': {}, 'GELU': {},
    'HardSigmoid': dict(alpha=0.2, beta=0.5), 'HardSwish': {}, 'LeakyReLU': dict(alpha=0.01), 'Log': {},
    'Mish': {}, 'Pow': dict(beta=1.5), 'Reciprocal': {}, 'ReLU': {}, 'Round': {}, 'Sigmoid': {},
    'SoftPlus': dict(beta=2.0), 'Sqrt': {}, 'Square': {}, 'Tanh': {},
}
BINARY = ['Add', 'Divide', 'Maximum', 'Minimum', 'Multiply', 'SquaredDifference', 'Subtract']
REDUCTIONS = ['ReduceL1', 'ReduceL2', 'ReduceMax', 'ReduceMean', 'ReduceMin', 'ReduceProd', 'ReduceSum']


def single_ops():
    for kind, attrs in UNARY.items():
        g = Graph()
        g.op(kind, g.input(2, 16, 19, 23), **attrs)
        yield kind, g
    for kind in BINARY:
        g = Graph()
        g.op(kind, g.input(2, 16, 19, 23), g.input(1, 16, 1, 1), auto_broadcast='numpy')
        yield kind, g
    for kind in REDUCTIONS:
        g = Graph()
        g.op(kind, g.input(4, 33, 17, 29), axes=[1, 3], keep_dims=True)
        yield kind, g
    for kind in ('MaxPool', 'AvgPool'):
        g = Graph()
        more = dict(exclude_pad=True) if kind == 'AvgPool' else dict(dilations=[1, 1])
        g.op(kind, g.input(2, 19, 28, 31), rounding_type='floor', **POOL, **more)
        yield kind, g
    yield from other_ops()


def other_ops():
    g = Graph()
    g.op('MatMul', g.input(4, 60, 96), g.weights(96, 75), transpose_a=False, transpose_b=False)
    yield 'MatMul', g
    g = Graph()
    conv(g, g.input(2, 24, 15, 17), 40)
    yield 'Convolution', g
    g = Graph()
    g.op('BiasAdd', g.input(2, 16, 19, 23), g.weights(16), data_format='NCX')
    yield 'BiasAdd', g
    g = Graph()
    g.op('Select', g.input(3, 1, 23, dtype='boolean'), g.input(3, 17, 23), g.input(1), dtype='f32')
    yield 'Select', g
    g = Graph()
    g.op('GreaterEqual', g.input(7, 33), g.input(33), dtype='boolean', auto_broadcast='numpy')
    yield 'GreaterEqual', g
    g = Graph()
    g.op('PReLU', g.input(2, 16, 19, 23), g.weights(16), data_format='NCX', per_channel_broadcast=True)
    yield 'PReLU', g
    g = Graph()
    g.op('SoftMax', g.input(8, 31, 77), axis=-1)
    yield 'SoftMax', g
    g = Graph()
    g.op('LogSoftmax', g.input(8, 31, 77), axis=1)
    yield 'LogSoftmax', g
    g = Graph()
    x = g.input(4, 31, 96)
    g.op('LayerNorm', x, g.weights(96), g.weights(96), n_outputs=3, keep_stats=True, use_affine=True,
         begin_norm_axis=-1, epsilon=1e-5)
    yield 'LayerNorm', g
    g = Graph()
    g.op('RMSNorm', g.input(4, 31, 96), g.weights(96), begin_norm_axis=-1, epsilon=1e-5)
    yield 'RMSNorm', g
    g = Graph()
    g.op('GroupNorm', g.input(2, 24, 9, 11), g.weights(24), g.weights(24), groups=6, keep_stats=False,
         use_affine=True, epsilon=1e-5, data_format='NCX')
    yield 'GroupNorm', g
    g = Graph()
    g.op('BatchNormInference', g.input(2, 24, 9, 11), *[g.weights(24) for _ in range(4)], epsilon=1e-5,
         data_format='NCX')
    yield 'BatchNormInference', g
    g = Graph()
    g.op('Concat', g.input(2, 7, 9, 11), g.input(2, 12, 9, 11), g.input(2, 1, 9, 11), axis=1)
    yield 'Concat', g
    g = Graph()
    g.op('StaticReshape', g.input(4, 6, 35), shape=[4, -1, 7], special_zero=False)
    yield 'StaticReshape', g
    g = Graph()
    g.op('StaticTranspose', g.input(3, 17, 5, 33), order=[0, 2, 3, 1])
    yield 'StaticTranspose', g
    g = Graph()
    x = g.input(2, 17, 9, 11, strides=[1683, 1, 187, 17])
    g.op('Reorder', x)
    yield 'Reorder', g
    g = Graph()
    g.op('TypeCast', g.input(5, 33, 17), dtype='bf16')
    yield 'TypeCast', g


# --------------------------------------------------------------------------------------------- fused families

def patterns():
    g = Graph()
    x = g.op('MatMul', g.input(64, 200), g.weights(200, 96), g.weights(96))
    g.op('ReLU', x)
    yield 'matmul_bias_relu', g
    g = Graph()
    x = g.op('MatMul', g.input(64, 200), g.weights(200, 96))
    x = g.op('BiasAdd', x, g.weights(96), data_format='NXC')
    g.op('GELU', x)
    yield 'matmul_biasadd_gelu', g
    g = Graph()
    x = g.op('MatMul', g.input(3, 64, 72), g.input(3, 72, 48))
    x = g.op('Add', x, g.input(3, 64, 48))
    x = g.op('Multiply', x, g.input(3, 64, 1))
    g.op('Tanh', x)
    yield 'matmul_sum_scale_tanh', g
    g = Graph()
    x = g.op('MatMul', g.input(96, 128), g.weights(128, 64))
    g.op('Multiply', x, g.op('Sigmoid', x))
    yield 'matmul_swish', g
    g = Graph()
    x = g.op('MatMul', g.input(40, 64, dtype='bf16'), g.weights(64, 72, dtype='bf16'))
    g.op('TypeCast', g.op('ReLU', x), dtype='f32')
    yield 'matmul_relu_cast_bf16', g
    g = Graph()
    g.op('ReLU', conv(g, g.input(2, 32, 28, 28), 48, bias=True))
    yield 'conv_bias_relu', g
    g = Graph()
    x = conv(g, g.input(2, 32, 14, 14), 32)
    x = g.op('BatchNormInference', x, *[g.weights(32) for _ in range(4)], epsilon=1e-5, data_format='NCX')
    g.op('ReLU', x)
    yield 'conv_bn_relu', g
    g = Graph()
    x = conv(g, g.input(2, 32, 14, 14), 32, size=1, bias=True)
    x = g.op('Add', x, g.input(2, 32, 14, 14))
    g.op('ReLU', x)
    yield 'conv_bias_sum_relu', g
    g = Graph()
    x = conv(g, g.input(2, 32, 14, 14), 32)
    g.op('Multiply', x, g.op('Sigmoid', x))
    yield 'conv_swish', g
    g = Graph()
    g.op('Clamp', conv(g, g.input(1, 48, 20, 20), 48, groups=48, bias=True), min=0.0, max=6.0)
    yield 'conv_depthwise_clamp', g
    g = Graph()
    x = g.op('Add', g.input(8, 64, 33), g.input(64, 1))
    x = g.op('Multiply', g.op('Exp', x), g.input(33))
    g.op('Maximum', x, g.input(1))
    yield 'binary_chain', g
    g = Graph()
    g.op('Add', g.op('GELU', g.input(8, 64, 33)), g.input(8, 1, 33))
    yield 'gelu_add', g
    g = Graph()
    g.op('Sqrt', g.op('ReduceMean', g.op('Square', g.input(8, 64, 33)), axes=[2], keep_dims=True))
    yield 'root_mean_square', g
    g = Graph()
    g.op('Multiply', g.op('SoftMax', g.input(8, 12, 50), axis=-1), g.input(1))
    yield 'softmax_scale', g
    g = Graph()
    g.op('Add', g.op('MaxPool', g.input(2, 16, 20, 20), **POOL), g.input(1, 16, 1, 1))
    yield 'maxpool_add', g
    g = Graph()
    g.op('ReLU', g.op('BatchNormInference', g.input(2, 24, 9, 11), *[g.weights(24) for _ in range(4)],
                      epsilon=1e-5, data_format='NCX'))
    yield 'bn_relu', g


def complex_fusions():
    g = Graph()
    q, k, v = (g.input(2, 8, n, 32) for n in (48, 80, 80))
    s = g.op('Divide', g.op('MatMul', q, k, transpose_b=True), g.input(1))
    s = g.op('Add', s, g.input(2, 1, 1, 80))
    g.op('MatMul', g.op('SoftMax', s, axis=-1), v)
    yield 'attention', g
    g = Graph()
    x = g.input(48, 128)
    gate, up = (g.op('MatMul', x, g.weights(128, 192)) for _ in range(2))
    gate = g.op('Multiply', gate, g.op('Sigmoid', gate))
    g.op('MatMul', g.op('Multiply', gate, up), g.weights(192, 128))
    yield 'gated_mlp', g


def models():
    g = Graph()
    x = g.input(2, 64, 14, 14)
    y = g.op('ReLU', conv_norm(g, x, 32, 1))
    y['shape'], y['stride'] = [2, 32, 14, 14], [6272, 196, 14, 1]
    y = g.op('ReLU', conv_norm(g, y, 32, 3))
    y['shape'], y['stride'] = [2, 32, 14, 14], [6272, 196, 14, 1]
    g.op('ReLU', g.op('Add', conv_norm(g, y, 64, 1), x))
    yield 'residual_block', g
    g = Graph()
    x = g.input(2, 49, 64)
    flat = g.op('LayerNorm', x, g.weights(64), g.weights(64), keep_stats=False, use_affine=True)
    heads = []
    for _ in range(3):
        y = g.op('MatMul', flat, g.weights(64, 64), g.weights(64))
        y = g.op('StaticReshape', y, shape=[2, 49, 4, 16], special_zero=False)
        heads.append(g.op('StaticTranspose', y, order=[0, 2, 1, 3]))
    q, k, v = heads
    s = g.op('Multiply', g.op('MatMul', q, k, transpose_b=True), g.input(1))
    o = g.op('MatMul', g.op('SoftMax', s, axis=-1), v)
    o = g.op('StaticReshape', g.op('StaticTranspose', o, order=[0, 2, 1, 3]), shape=[2, 49, 64], special_zero=False)
    x = g.op('Add', g.op('MatMul', o, g.weights(64, 64), g.weights(64)), x)
    y = g.op('LayerNorm', x, g.weights(64), g.weights(64), keep_stats=False, use_affine=True)
    y = g.op('GELU', g.op('MatMul', y, g.weights(64, 256), g.weights(256)))
    g.op('Add', g.op('MatMul', y, g.weights(256, 64), g.weights(64)), x)
    yield 'transformer_block', g
    g = Graph()
    x = g.input(32, 100)
    for width in (256, 128, 10):
        x = g.op('MatMul', x, g.weights(100 if width == 256 else 256 if width == 128 else 128, width), g.weights(width))
        x = g.op('ReLU', x) if width != 10 else g.op('SoftMax', x, axis=-1)
    yield 'mlp', g


def conv_norm(g, x, out, size):
    y = conv(g, x, out, size)
    shape, stride = y['shape'], y['stride']
    y = g.op('BatchNormInference', y, *[g.weights(out) for _ in range(4)], epsilon=1e-5, data_format='NCX')
    y['shape'], y['stride'] = shape, stride
    return y


def compact(document):
    """One line per op and tensor."""
    lines = []
    for op in document['graph']:
        tensors = {key: ',\n      '.join(json.dumps(t) for t in op[key]) for key in ('inputs', 'outputs')}
        head = json.dumps({k: op[k] for k in ('id', 'name', 'kind', 'attrs')})[:-1]
        lines.append(f'    {head},\n     "inputs": [\n      {tensors["inputs"]}],\n'
                     f'     "outputs": [\n      {tensors["outputs"]}]}}')
    head = json.dumps({k: v for k, v in document.items() if k != 'graph'})[:-1]
    return f'{head},\n  "graph": [\n' + ',\n'.join(lines) + '\n  ]}\n'


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, 'build', 'release', 'graph-bench')
    folders = {'op': single_ops, 'pattern': patterns, 'complex_fusion': complex_fusions, 'model': models}
    for folder, graphs in folders.items():
        for name, graph in graphs():
            path = os.path.join(ROOT, 'inputs', 'graph', folder, name.lower() + '.json')
            with tempfile.TemporaryDirectory() as scratch:
                raw, done = os.path.join(scratch, 'raw.json'), os.path.join(scratch, 'done.json')
                with open(raw, 'w') as f:
                    json.dump(graph.document(), f)
                result = subprocess.run([binary, '--mode=L', f'--save-graph={done}', f'--case={raw}'],
                                        capture_output=True, text=True)
                if result.returncode:
                    sys.exit(f'{folder}/{name}: {result.stderr}')
                with open(done) as f:
                    document = json.load(f)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w') as f:
                f.write(compact(document))


if __name__ == '__main__':
    main()
