"""Graphs built op by op and written in the oneDNN Graph dump format. Used by the make_*.py scripts beside this file."""
import json
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
INPUTS = os.path.join(ROOT, 'inputs', 'graph')
UNKNOWN = -2 ** 63

CONV = dict(strides=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilations=[1, 1], groups=1,
            data_format='NCX', weights_format='OIX')
POOL = dict(strides=[2, 2], kernel=[3, 3], pads_begin=[1, 1], pads_end=[1, 1], data_format='NCX')


class Graph:
    """Collects ops; tensors are numbered in the order of their first mention.

    `options` are words for the lines of batch files that name the graph, one line for each entry.
    """

    def __init__(self, fpmath_mode='strict', apply_to_int=False):
        self.ops, self.n, self.options = [], 0, []
        self.fpmath_mode, self.apply_to_int = fpmath_mode, apply_to_int

    def tensor(self, shape, dtype='f32', prop='undef', strides=None):
        known = shape is not None
        if known and strides is None:
            strides = dense(shape)
        lt = {'id': self.n, 'dtype': dtype, 'shape': shape if known else [UNKNOWN],
              'stride': strides if known else [UNKNOWN],
              'layout_type': 'strided', 'property_type': prop}
        self.n += 1
        return lt

    def input(self, *shape, dtype='f32', strides=None):
        return self.tensor(list(shape), dtype, 'variable', strides)

    def weights(self, *shape, dtype='f32'):
        return self.tensor(list(shape), dtype, 'constant')

    def host_scalar(self, dtype='f32'):
        return self.tensor([], dtype, 'host_scalar')

    def op(self, kind, *inputs, n_outputs=1, dtype=None, out_dtypes=None, name=None, **attrs):
        """Adds an op; `dtype` is that of its outputs (default: of its first input). Returns its output or outputs."""
        types = out_dtypes or [dtype or inputs[0]['dtype']] * n_outputs
        shapes = (SHAPES[kind](inputs, attrs) if kind in SHAPES else []) + [None] * n_outputs
        outs = [self.tensor(shapes[i], types[i]) for i in range(n_outputs)]
        self.ops.append({'id': len(self.ops), 'name': name or f'{kind.lower()}_{len(self.ops)}', 'kind': kind,
                         'attrs': {k: attr(v) for k, v in attrs.items()},
                         'inputs': list(inputs), 'outputs': outs})
        return outs[0] if n_outputs == 1 else outs

    def document(self):
        return {'version': '3.14.0', 'engine_kind': 'cpu', 'fpmath_mode': self.fpmath_mode,
                'fpmath_mode_apply_to_int': str(self.apply_to_int).lower(), 'graph': self.ops}


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


# ---------------------------------------------------------------------------------------------------- shapes

def dense(shape):
    strides, step = [], 1
    for dim in reversed(shape):
        strides.insert(0, step)
        step *= max(dim, 1)
    return strides


def same_shape(inputs, attrs):
    del attrs
    return [list(inputs[0]['shape'])]


def broadcast(*shapes):
    rank = max(len(s) for s in shapes)
    padded = [[1] * (rank - len(s)) + list(s) for s in shapes]
    return [next((d for d in dims if d != 1), 1) for dims in zip(*padded)]


def binary_shape(inputs, attrs):
    del attrs
    return [broadcast(inputs[0]['shape'], inputs[1]['shape'])]


def select_shape(inputs, attrs):
    del attrs
    return [broadcast(*(t['shape'] for t in inputs))]


def matmul_shape(inputs, attrs):
    a, b = (list(t['shape']) for t in inputs[:2])
    vectors = len(a) == 1, len(b) == 1
    a, b = [1] + a if vectors[0] else a, b + [1] if vectors[1] else b
    rows = a[-1] if attrs.get('transpose_a') and not vectors[0] else a[-2]
    columns = b[-2] if attrs.get('transpose_b') and not vectors[1] else b[-1]
    return [broadcast(a[:-2], b[:-2]) + [rows] * (not vectors[0]) + [columns] * (not vectors[1])]


def spatial(shape, data_format):
    return shape[2:] if data_format == 'NCX' else shape[1:-1]


def with_spatial(batch, channels, sizes, data_format):
    return [batch, channels] + sizes if data_format == 'NCX' else [batch] + sizes + [channels]


def conv_shape(inputs, attrs):
    src, weights = inputs[0]['shape'], inputs[1]['shape']
    oix = attrs.get('weights_format', 'XIO') == 'OIX'
    channels, kernel = (weights[0], weights[2:]) if oix else (weights[-1], weights[:-2])
    data_format = attrs.get('data_format', 'NXC')
    sizes = [(d + b + e - (k - 1) * l - 1) // s + 1 for d, b, e, k, l, s in
             zip(spatial(src, data_format), attrs['pads_begin'], attrs['pads_end'], kernel, attrs['dilations'],
                 attrs['strides'])]
    return [with_spatial(src[0], channels, sizes, data_format)]


def conv_transpose_shape(inputs, attrs):
    src, weights = inputs[0]['shape'], inputs[1]['shape']
    iox = attrs.get('weights_format', 'XOI') == 'IOX'
    channels, kernel = (weights[1], weights[2:]) if iox else (weights[-2], weights[:-2])
    data_format = attrs.get('data_format', 'NXC')
    more = attrs.get('output_padding', [0] * len(kernel))
    sizes = [(d - 1) * s - b - e + (k - 1) * l + 1 + m for d, b, e, k, l, s, m in
             zip(spatial(src, data_format), attrs['pads_begin'], attrs['pads_end'], kernel, attrs['dilations'],
                 attrs['strides'], more)]
    return [with_spatial(src[0], channels * attrs.get('groups', 1), sizes, data_format)]


def pool_shape(inputs, attrs):
    src, data_format = inputs[0]['shape'], attrs.get('data_format', 'NXC')
    up = attrs.get('rounding_type', 'floor') == 'ceil'
    sizes = [(math.ceil if up else math.floor)((d + b + e - k) / s) + 1 for d, b, e, k, s in
             zip(spatial(src, data_format), attrs['pads_begin'], attrs['pads_end'], attrs['kernel'],
                 attrs['strides'])]
    channels = src[1] if data_format == 'NCX' else src[-1]
    return [with_spatial(src[0], channels, sizes, data_format)]


def reduce_shape(inputs, attrs):
    shape = list(inputs[0]['shape'])
    axes = {a % len(shape) for a in attrs['axes']}
    keep = attrs.get('keep_dims', False)
    return [[1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes]]


def reshape_shape(inputs, attrs):
    shape = list(attrs['shape'])
    if attrs.get('special_zero'):
        shape = [inputs[0]['shape'][i] if d == 0 else d for i, d in enumerate(shape)]
    if -1 in shape:
        rest = math.prod(d for d in shape if d != -1)
        shape[shape.index(-1)] = math.prod(inputs[0]['shape']) // rest
    return [shape]


def transpose_shape(inputs, attrs):
    return [[inputs[0]['shape'][a] for a in attrs['order']]]


def concat_shape(inputs, attrs):
    shape = list(inputs[0]['shape'])
    shape[attrs['axis']] = sum(t['shape'][attrs['axis']] for t in inputs)
    return [shape]


def softmax_shape(inputs, attrs):
    shape = list(inputs[0]['shape'])
    statistics = list(shape)
    statistics[attrs.get('axis', 1)] = 1
    return [shape, statistics]


def layer_norm_shape(inputs, attrs):
    shape = list(inputs[0]['shape'])
    statistics = shape[:attrs.get('begin_norm_axis', -1)]
    return [shape, statistics, statistics]


def interpolate_shape(inputs, attrs):
    src, data_format = inputs[0]['shape'], attrs.get('data_format', 'NXC')
    sizes = attrs.get('sizes') or [int(d * s) for d, s in zip(spatial(src, data_format), attrs['scales'])]
    channels = src[1] if data_format == 'NCX' else src[-1]
    return [with_spatial(src[0], channels, list(sizes), data_format)]


# Ops that are not listed have results of unknown shape, for graph-bench to fill in.
SHAPES = {
    **dict.fromkeys((
        'Abs', 'BatchNormInference', 'BiasAdd', 'Clamp', 'Dequantize', 'Dropout', 'DynamicDequantize',
        'DynamicQuantize', 'Elu', 'Exp', 'GELU', 'GenIndex', 'GroupNorm', 'HardSigmoid', 'HardSwish', 'LeakyReLU',
        'Log', 'LogSoftmax', 'Mish', 'Pow', 'PReLU', 'Quantize', 'Reciprocal', 'ReLU', 'Reorder',
        'RMSNorm', 'Round', 'Sigmoid', 'SoftPlus', 'Sqrt', 'Square', 'Tanh', 'TypeCast'), same_shape),
    'MatMul': matmul_shape, 'Convolution': conv_shape, 'ConvTranspose': conv_transpose_shape,
    'AvgPool': pool_shape, 'MaxPool': pool_shape, 'StaticReshape': reshape_shape,
    'StaticTranspose': transpose_shape, 'Concat': concat_shape, 'SoftMax': softmax_shape,
    'Interpolate': interpolate_shape, 'LayerNorm': layer_norm_shape, 'Select': select_shape,
    **dict.fromkeys(('Add', 'Divide', 'GreaterEqual', 'Maximum', 'Minimum', 'Multiply', 'SquaredDifference',
                     'Subtract'), binary_shape),
    **dict.fromkeys([f'Reduce{kind}' for kind in ('L1', 'L2', 'Max', 'Mean', 'Min', 'Prod', 'Sum')],
                    reduce_shape),
}


# ---------------------------------------------------------------------------------------------------- layers

def conv(g, x, out, size=3, stride=1, groups=1, bias=False):
    channels, pad = x['shape'][1], size // 2
    more = [g.weights(out, channels // groups, size, size, dtype=x['dtype'])]
    more += [g.weights(out, dtype=x['dtype'])] if bias else []
    return g.op('Convolution', x, *more,
                **dict(CONV, strides=[stride] * 2, pads_begin=[pad] * 2, pads_end=[pad] * 2, groups=groups))


# ------------------------------------------------------------------------------------------------------ files

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


def write(path, text):
    """Writes only what changes, so that time stamps tell."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path) as f:
            if f.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, 'w') as f:
        f.write(text)


def completed(document, binary):
    """The document with all shapes and default attributes, as graph-bench saves it."""
    with tempfile.TemporaryDirectory() as scratch:
        raw, done = os.path.join(scratch, 'raw.json'), os.path.join(scratch, 'done.json')
        with open(raw, 'w') as f:
            json.dump(document, f)
        result = subprocess.run([binary, '--mode=L', f'--save-graph={done}', f'--case={raw}'],
                                capture_output=True, text=True)
        if result.returncode:
            sys.exit(result.stderr or result.stdout)
        with open(done) as f:
            return json.load(f)
