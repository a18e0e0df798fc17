#!/usr/bin/env python3
"""Writes the graphs of single ops, inputs/graph/op, from short descriptions.

    make_inputs.py [GRAPH_BENCH]

GRAPH_BENCH (default build/release/graph-bench) fills in the shapes that follow from the inputs. Only needed when a graph is added or
changed: the JSON files are part of the project.
"""
import os
import sys

from graph_writer import CONV, INPUTS, POOL, ROOT, Graph, compact, completed, conv, write


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


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, 'build', 'release', 'graph-bench')
    for name, graph in single_ops():
        write(os.path.join(INPUTS, 'op', name.lower() + '.json'), compact(completed(graph.document(), binary)))


if __name__ == '__main__':
    main()
