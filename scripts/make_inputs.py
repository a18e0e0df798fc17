#!/usr/bin/env python3
"""Writes the graphs of single ops, inputs/graph/op, from short descriptions: at least one for each op kind.

    make_inputs.py [GRAPH_BENCH]

GRAPH_BENCH (default build/release/graph-bench) fills in the shapes that follow from the inputs. Only needed when a graph is added or
changed: the JSON files are part of the project.
"""
import os
import sys

from graph_writer import CONV, INPUTS, POOL, ROOT, Graph, compact, completed, dense, write


def data(*shape, dtype='f32', strides=None):
    return lambda g: g.input(*shape, dtype=dtype, strides=strides)


def weights(*shape, dtype='f32'):
    return lambda g: g.weights(*shape, dtype=dtype)


def scalar(dtype):
    return lambda g: g.host_scalar(dtype)


def single(kind, *inputs, name=None, result=None, **more):
    """`result` is the shape of the output where only the values of an input tell."""
    g = Graph()
    out = g.op(kind, *[make(g) for make in inputs], **more)
    if result:
        out.update(shape=result, stride=dense(result))
    return name or kind, g


# ------------------------------------------------------------------------------------------------ element-wise

UNARY = {
    'Abs': {}, 'Clamp': dict(min=-1.0, max=2.0), 'Elu': dict(alpha=0.5), 'Exp': {}, 'GELU': {},
    'HardSigmoid': dict(alpha=0.2, beta=0.5), 'HardSwish': {}, 'LeakyReLU': dict(alpha=0.01), 'Log': {},
    'Mish': {}, 'Pow': dict(beta=1.5), 'Reciprocal': {}, 'ReLU': {}, 'Round': {}, 'Sigmoid': {},
    'SoftPlus': dict(beta=2.0), 'Sqrt': {}, 'Square': {}, 'Tanh': {},
}
UNARY_BACKWARD = {
    'AbsBackward': {}, 'ClampBackward': dict(min=-1.0, max=2.0, use_dst=False),
    'EluBackward': dict(alpha=0.5, use_dst=False), 'GELUBackward': {},
    'HardSigmoidBackward': dict(alpha=0.2, beta=0.5), 'HardSwishBackward': {}, 'MishBackward': {},
    'ReLUBackward': dict(use_dst=False), 'SigmoidBackward': dict(use_dst=False), 'SoftPlusBackward': dict(beta=2.0),
    'SqrtBackward': dict(use_dst=False), 'TanhBackward': dict(use_dst=False),
}
BINARY = ['Add', 'Divide', 'Maximum', 'Minimum', 'Multiply', 'SquaredDifference', 'Subtract']


def elementwise():
    image, channels = (2, 16, 19, 23), (16,)
    for kind, attrs in UNARY.items():
        yield single(kind, data(*image), **attrs)
    for kind, attrs in UNARY_BACKWARD.items():
        yield single(kind, data(*image), data(*image), **attrs)
    for kind in BINARY:
        yield single(kind, data(*image), data(1, 16, 1, 1), auto_broadcast='numpy')
    yield single('Select', data(3, 1, 23, dtype='boolean'), data(3, 17, 23), data(1), dtype='f32')
    yield single('GreaterEqual', data(7, 33), data(33), dtype='boolean', auto_broadcast='numpy')
    yield single('BiasAdd', data(*image), weights(*channels), data_format='NCX')
    yield single('BiasAddBackward', data(*image), data_format='NCX')
    yield single('PReLU', data(*image), weights(*channels), data_format='NCX', per_channel_broadcast=True)
    yield single('PReLUBackward', data(*image), weights(*channels), data(*image), n_outputs=2, data_format='NCX')


# ------------------------------------------------------------------------------------------- shapes in tensors

def shapes_in_tensors():
    shape = weights(4, dtype='s32')
    yield single('ConvolutionBackwardData', data(2, 40, 15, 17), weights(40, 24, 3, 3), shape,
                 name='ConvolutionBackwardData_shape', result=[2, 24, 15, 17], **CONV)
    yield single('ConvolutionBackwardWeights', data(2, 24, 15, 17), data(2, 40, 15, 17), shape,
                 name='ConvolutionBackwardWeights_shape', result=[40, 24, 3, 3], **CONV)
    yield single('ConvTransposeBackwardWeights', data(2, 40, 8, 9), data(2, 24, 15, 17), shape,
                 name='ConvTransposeBackwardWeights_shape', result=[40, 24, 3, 3],
                 **dict(CONV, weights_format='IOX', strides=[2, 2]))
    yield single('AvgPoolBackward', data(2, 19, 14, 16), shape, name='AvgPoolBackward_shape',
                 result=[2, 19, 28, 31], exclude_pad=True, **POOL)
    yield single('ReduceSum', data(4, 33, 17, 29), weights(2, dtype='s32'), name='ReduceSum_axes', axes=[],
                 result=[4, 33], keep_dims=False)
    yield single('ReduceMax', data(17, 33, 17), weights(1, dtype='s32'), name='ReduceMax_axes', axes=[],
                 result=[17, 33, 1], keep_dims=True)


# ---------------------------------------------------------------------------------- convolutions, pools, resampling

def convolutions():
    transposed = dict(CONV, weights_format='IOX', strides=[2, 2])
    yield single('Convolution', data(2, 24, 15, 17), weights(40, 24, 3, 3), **CONV)
    yield single('ConvolutionBackwardData', data(2, 40, 15, 17), weights(40, 24, 3, 3), dst_shape=[2, 24, 15, 17],
                 **CONV)
    yield single('ConvolutionBackwardWeights', data(2, 24, 15, 17), data(2, 40, 15, 17),
                 weights_shape=[40, 24, 3, 3], **CONV)
    yield single('ConvTranspose', data(2, 40, 8, 9), weights(40, 24, 3, 3), **transposed)
    yield single('ConvTransposeBackwardData', data(2, 24, 15, 17), weights(40, 24, 3, 3), **transposed)
    yield single('ConvTransposeBackwardWeights', data(2, 40, 8, 9), data(2, 24, 15, 17),
                 weights_shape=[40, 24, 3, 3], **transposed)


def windows():
    image, pooled = (2, 19, 28, 31), (2, 19, 14, 16)
    yield single('MaxPool', data(*image), rounding_type='floor', **POOL, dilations=[1, 1])
    yield single('AvgPool', data(*image), rounding_type='floor', **POOL, exclude_pad=True)
    yield single('MaxPoolBackward', data(*image), data(*pooled), dilations=[1, 1], **POOL)
    yield single('AvgPoolBackward', data(*pooled), exclude_pad=True, src_shape=list(image), **POOL)
    resample = dict(mode='linear', coordinate_transformation_mode='half_pixel', sizes=[23, 20], data_format='NCX')
    yield single('Interpolate', data(2, 9, 14, 31), **resample)
    yield single('InterpolateBackward', data(2, 9, 14, 31), data(2, 9, 23, 20), **resample)


# -------------------------------------------------------------------------------- normalisation, softmax, reductions

def norms():
    image, vectors = (2, 24, 9, 11), [weights(24)] * 4
    batch = dict(epsilon=1e-5, data_format='NCX')
    yield single('BatchNormInference', data(*image), *vectors, **batch)
    yield single('BatchNormForwardTraining', data(*image), *vectors, n_outputs=5, momentum=0.75, **batch)
    yield single('BatchNormTrainingBackward', data(*image), data(*image), *vectors[:3], n_outputs=3, **batch)
    yield single('GroupNorm', data(*image), *vectors[:2], groups=6, keep_stats=False, use_affine=True, **batch)
    rows, layer = (4, 31, 96), dict(begin_norm_axis=-1, epsilon=1e-5)
    yield single('LayerNorm', data(*rows), weights(96), weights(96), n_outputs=3, keep_stats=True, use_affine=True,
                 **layer)
    yield single('LayerNormBackward', data(*rows), data(*rows), data(4, 31), data(4, 31), weights(96), weights(96),
                 n_outputs=3, use_affine=True, **layer)
    yield single('RMSNorm', data(*rows), weights(96), **layer)


def rows():
    yield single('SoftMax', data(8, 31, 77), axis=-1)
    yield single('SoftMaxBackward', data(8, 31, 77), data(8, 31, 77), axis=-1)
    yield single('LogSoftmax', data(8, 31, 77), axis=1)
    yield single('LogSoftmaxBackward', data(8, 31, 77), data(8, 31, 77), axis=1)
    yield single('MatMul', data(4, 60, 96), weights(96, 75), transpose_a=False, transpose_b=False)
    for kind in ('L1', 'L2', 'Max', 'Mean', 'Min', 'Prod', 'Sum'):
        yield single('Reduce' + kind, data(4, 33, 17, 29), axes=[1, 3], keep_dims=True)


# --------------------------------------------------------------------------------------------- movement, conversion

def movement():
    yield single('Concat', data(2, 7, 9, 11), data(2, 12, 9, 11), data(2, 1, 9, 11), axis=1)
    yield single('StaticReshape', data(4, 6, 35), shape=[4, -1, 7], special_zero=False)
    yield single('StaticTranspose', data(3, 17, 5, 33), order=[0, 2, 3, 1])
    yield single('Reorder', data(2, 17, 9, 11, strides=[1683, 1, 187, 17]))
    yield single('TypeCast', data(5, 33, 17), dtype='bf16')
    yield single('GenIndex', data(3, 17, 29), dtype='s32', axis=2)
    yield single('Dropout', data(4, 31, 96), scalar('s64'), scalar('s64'), scalar('f32'), out_dtypes=['f32', 'u8'],
                 n_outputs=2)
    yield single('Dropout', data(4, 31, 96), data(1, dtype='s64'), data(1, dtype='s64'), data(1),
                 name='Dropout_tensors', out_dtypes=['f32', 'u8'], n_outputs=2)
    g = Graph()
    g.op('End', g.op('Abs', g.input(5, 33)), n_outputs=0)
    yield 'End', g


def conversions():
    scales, zps = [0.0625, 0.03125, 0.125, 0.0625], [0, 3, 7, 1]
    channels = dict(qtype='per_channel', axis=1, scales=scales)
    for kind, src, dst in (('Quantize', 'f32', 'u8'), ('Dequantize', 'u8', 'f32')):
        yield single(kind, data(5, 4, 33, dtype=src), dtype=dst, qtype='per_tensor', scales=[0.0625], zps=[5])
        yield single(kind, data(5, 4, 33, dtype=src), dtype=dst, name=kind + '_channels', zps=zps, **channels)
        yield single(kind, data(5, 4, 33, dtype='f8_e4m3' if src == 'u8' else src), name=kind + '_f8',
                     dtype='f8_e4m3' if dst == 'u8' else dst, **channels)
    yield single('DynamicQuantize', data(5, 4, 33), weights(4), weights(4, dtype='s32'), dtype='s8',
                 qtype='per_channel', axis=1)
    yield single('DynamicDequantize', data(5, 4, 33, dtype='s8'), weights(4), weights(4, dtype='s8'), dtype='f32',
                 qtype='per_channel', axis=1)
    yield single('DynamicDequantize', weights(96, 64, dtype='u4'), weights(96, 2, dtype='f16'),
                 weights(96, 2, dtype='u4'), dtype='f16', name='DynamicDequantize_groups', qtype='per_group',
                 group_shape=[1, 32])


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, 'build', 'release', 'graph-bench')
    for family in (elementwise, shapes_in_tensors, convolutions, windows, norms, rows, movement, conversions):
        for name, graph in family():
            path = os.path.join(INPUTS, 'op', name.lower() + '.json')
            write(path, compact(completed(graph.document(), binary)))


if __name__ == '__main__':
    main()
