"""Words for describing graphs: chains of element-wise ops, quantisation, the three parts of attention. The lists of graphs
(graphs_*.py) register theirs with @graph."""
from graph_writer import CONV, Graph

FLOATS = ('f32', 'bf16', 'f16')
REGISTRY = []


def graph(folder, name, types=FLOATS, partitions=1, ci=True, **more):
    """Registers the function that builds the graph `name` of inputs/graph/`folder`.

    types:      for --dt, of the whole graph; () when the graph has casts and keeps its types
    partitions: how many the graph must form; 0 = any number
    ci:         also part of the fast batch
    """
    def register(build):
        REGISTRY.append(dict(folder=folder, name=name, types=types, partitions=partitions, ci=ci, more=more,
                             build=build))
        return build
    return register


def sweep(g, words, **tensors):
    """A further line of the batch `all`: {name} in `words` stands for the id of a tensor."""
    g.options.append(words.format(**{name: tensor['id'] for name, tensor in tensors.items()}))


def build(row):
    g = Graph(**row['more'])
    row['build'](g)
    return g


# ---------------------------------------------------------------------------------------------------- chains

ATTRS = {'Clamp': dict(min=-1.0, max=2.0), 'Elu': dict(alpha=0.5), 'HardSigmoid': dict(alpha=0.2, beta=0.5),
         'LeakyReLU': dict(alpha=0.01), 'SoftPlus': dict(beta=1.0)}
BINARIES = ('Add', 'Divide', 'Maximum', 'Minimum', 'Multiply', 'Subtract')


def chain(g, x, *links):
    """Appends ops by name: unary ones, binary ones with a new input of the same shape or, as (name, shape), of another;
    'swish' is x sigmoid(x)."""
    for link in links:
        kind, shape = link if isinstance(link, tuple) else (link, x['shape'])
        if kind == 'swish':
            x = g.op('Multiply', x, g.op('Sigmoid', x))
        elif kind in BINARIES:
            x = g.op(kind, x, g.input(*shape, dtype=x['dtype']))
        else:
            x = g.op(kind, x, **ATTRS.get(kind, {}))
    return x


def cast(g, x, dtype):
    return g.op('TypeCast', x, dtype=dtype)


def bias_add(g, x, data_format='NCX'):
    channels = x['shape'][1] if data_format == 'NCX' else x['shape'][-1]
    return g.op('BiasAdd', x, g.weights(channels, dtype=x['dtype']), data_format=data_format)


def batch_norm(g, x, data_format='NCX'):
    channels = x['shape'][1] if data_format == 'NCX' else x['shape'][-1]
    return g.op('BatchNormInference', x, *[g.weights(channels) for _ in range(4)], epsilon=1e-5,
                data_format=data_format)


def move(g, x, order, shape=None):
    """StaticTranspose, then Reorder or, to `shape`, StaticReshape."""
    x = g.op('StaticTranspose', x, order=order)
    return g.op('StaticReshape', x, shape=list(shape), special_zero=False) if shape else g.op('Reorder', x)


def reshape(g, x, *shape):
    return g.op('StaticReshape', x, shape=list(shape), special_zero=False)


def dropout(g, x):
    return g.op('Dropout', x, g.host_scalar('s64'), g.host_scalar('s64'), g.host_scalar())


def window(kernel, stride=1, groups=1, pad=None, dilation=1, data_format='NCX', **more):
    pad = kernel // 2 if pad is None else pad
    return dict(CONV, strides=[stride] * 2, pads_begin=[pad] * 2, pads_end=[pad] * 2, dilations=[dilation] * 2,
                groups=groups, data_format=data_format, **more)


# ---------------------------------------------------------------------------------------------- quantisation

def quantize(g, x, dtype='s8', scale=1 / 16, zp=0):
    return g.op('Quantize', x, dtype=dtype, qtype='per_tensor', axis=1, scales=[scale],
                **({} if dtype.startswith('f8') else dict(zps=[zp])))


def dequantize(g, x, scale=1 / 16, zp=0):
    return g.op('Dequantize', x, dtype='f32', qtype='per_tensor', axis=1, scales=[scale],
                **({} if x['dtype'].startswith('f8') else dict(zps=[zp])))


def channel_scales(count, terms):
    """Powers of two that differ from channel to channel; sums of `terms` products stay of size 1."""
    base = 2.0 ** -(4 + (max(terms, 1).bit_length() - 1) // 2)
    return [base * 2.0 ** (i % 3 - 1) for i in range(count)]


def quantized_weights(g, *shape, axis=0, terms=1, per_channel=True, inside=False, dtype='s8'):
    """Weights behind Dequantize; `inside` = f32 weights, quantised in the graph."""
    scales = channel_scales(shape[axis], terms) if per_channel else channel_scales(2, terms)[1:]
    attrs = dict(qtype='per_channel' if per_channel else 'per_tensor', axis=axis, scales=scales,
                 zps=[0] * len(scales))
    w = g.op('Quantize', g.weights(*shape), dtype=dtype, **attrs) if inside else g.weights(*shape, dtype=dtype)
    return g.op('Dequantize', w, dtype='f32', **attrs)


def quantized_input(g, *shape, dtype='u8', scale=1 / 32, zp=32):
    """An integer input behind Dequantize: values around 0."""
    return dequantize(g, g.input(*shape, dtype=dtype), scale, zp if dtype == 'u8' else 0)


def compressed(g, *shape, groups, dtype='s8', out='f32', zp=True, zp_dtype=None):
    """Weights or keys behind DynamicDequantize with one scale for each group of `groups` elements (one entry per dim)."""
    part = [d // s for d, s in zip(shape, groups)]
    more = [g.input(*part, dtype=out)] + ([g.input(*part, dtype=zp_dtype or dtype)] if zp else [])
    return g.op('DynamicDequantize', g.weights(*shape, dtype=dtype), *more, dtype=out, qtype='per_group', axis=1,
                group_shape=list(groups))


# ------------------------------------------------------------------------------------------------- attention

def causal_mask(g, x, shifted=False):
    """The scores where the row is not before the column, else a fill value; shifted = aligned at the end."""
    row = g.op('GenIndex', x, dtype='s32', axis=-2)
    if shifted:
        row = g.op('Add', row, g.host_scalar('s32'))
        row = g.op('Subtract', row, g.host_scalar('s32'))
    column = g.op('GenIndex', x, dtype='s32', axis=-1)
    visible = g.op('GreaterEqual', row, column, dtype='boolean')
    return g.op('Select', visible, x, g.input(1, dtype=x['dtype']), dtype=x['dtype'])


def select_mask(g, x, shape):
    return g.op('Select', g.input(*shape, dtype='boolean'), x, g.input(1, dtype=x['dtype']), dtype=x['dtype'])


def scores(g, query, key, scale='Divide', mask=None, mask_shape=None, out=None, transposed=True, soft_cap=False):
    """Query times key, scaled and masked. mask: None, 'add', 'select', 'causal', 'causal_end' or several."""
    x = g.op('MatMul', query, key, dtype=out, transpose_b=transposed)
    x = g.op(scale, x, g.input(1, dtype=x['dtype'])) if scale else x
    if soft_cap:
        x = g.op('Multiply', g.op('Tanh', x), g.input(1, dtype=x['dtype']))
    for kind in (mask or '').split():
        if kind == 'add':
            x = g.op('Add', x, g.input(*(mask_shape or x['shape']), dtype=x['dtype']))
        elif kind == 'select':
            x = select_mask(g, x, mask_shape or x['shape'])
        else:
            x = causal_mask(g, x, kind == 'causal_end')
    return x


def softmax(g, x, dtype=None):
    return g.op('SoftMax', x, dtype=dtype, axis=-1)
