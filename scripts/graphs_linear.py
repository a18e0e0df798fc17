"""Graphs of convolutions, matrix products and gated MLPs with what is fused behind them."""
from graph_words import (batch_norm, bias_add, cast, chain, compressed, dropout, graph, move, reshape,
                         select_mask, sweep, window)
from graph_writer import conv

PATTERN, COMPLEX = 'pattern', 'complex_fusion'
BF16, F16 = 'bf16', 'f16'


# ----------------------------------------------------------------------------------------------- convolution

@graph(PATTERN, 'conv_bias_relu')
def _(g):
    x = g.input(2, 32, 28, 28)
    chain(g, conv(g, x, 48, bias=True), 'ReLU')
    sweep(g, '--in-shapes={x}:2x32x9x13*acdb', x=x)
    sweep(g, '--in-shapes={x}:1x32x1x3,{x}:5x32x7x7', x=x)
    sweep(g, '--op-attrs=0:strides:2x3*pads_begin:0x2*pads_end:1x0,0:auto_pad:SAME_UPPER')


@graph(PATTERN, 'conv_bias_sum_relu')
def _(g):
    x = g.input(2, 32, 14, 14)
    y = conv(g, x, 32, size=1, bias=True)
    other = g.input(2, 32, 14, 14)
    chain(g, g.op('Add', y, other), 'ReLU')
    sweep(g, '--in-shapes={other}:1x32x1x1,{other}:1,{other}:2x1x14x14,{other}:14x1', other=other)
    sweep(g, '--in-shapes={x}:2x32x14x14*acdb+{other}:2x32x14x14*acdb', x=x, other=other)


@graph(PATTERN, 'conv_bn_relu')
def _(g):
    chain(g, batch_norm(g, conv(g, g.input(2, 32, 14, 14), 32)), 'ReLU')


@graph(PATTERN, 'conv_biasadd_bn_sum_relu')
def _(g):
    x = batch_norm(g, bias_add(g, conv(g, g.input(2, 19, 13, 11), 27)))
    chain(g, x, 'Add', 'ReLU')


@graph(PATTERN, 'conv_nxc_biasadd_bn_hardswish')
def _(g):
    x = g.op('Convolution', g.input(2, 13, 11, 20), g.weights(3, 3, 20, 24),
             **window(3, stride=2, data_format='NXC') | dict(weights_format='XIO'))
    chain(g, batch_norm(g, bias_add(g, x, 'NXC'), 'NXC'), 'HardSwish')


@graph(PATTERN, 'conv_swish')
def _(g):
    chain(g, conv(g, g.input(2, 32, 14, 14), 32), 'swish')
    sweep(g, '--mb=1,3')


@graph(PATTERN, 'conv_biasadd_scale_swish_sum')
def _(g):
    x = chain(g, bias_add(g, conv(g, g.input(1, 21, 15, 9), 18, size=5)), ('Multiply', [1]), 'swish', 'Add')
    chain(g, x, ('Maximum', [1, 18, 1, 1]))


@graph(PATTERN, 'conv_groups_dilated_leakyrelu')
def _(g):
    x = g.op('Convolution', g.input(1, 24, 17, 17), g.weights(36, 8, 3, 3),
             **window(3, pad=2, groups=3, dilation=2))
    chain(g, x, 'LeakyReLU', ('Add', [1, 36, 1, 1]))


@graph(PATTERN, 'conv_depthwise_clamp')
def _(g):
    g.op('Clamp', conv(g, g.input(1, 48, 20, 20), 48, groups=48, bias=True), min=0.0, max=6.0)


@graph(PATTERN, 'conv_1d_gelu')
def _(g):
    x = g.op('Convolution', g.input(2, 20, 61), g.weights(28, 20, 5),
             **dict(window(5), strides=[2], pads_begin=[2], pads_end=[1], dilations=[1]))
    chain(g, x, 'GELU')


@graph(PATTERN, 'conv_3d_bias_elu')
def _(g):
    x = g.op('Convolution', g.input(1, 12, 7, 9, 8), g.weights(17, 12, 3, 3, 3), g.weights(17),
             **dict(window(3), strides=[1, 2, 1], pads_begin=[1] * 3, pads_end=[1] * 3, dilations=[1] * 3))
    chain(g, x, 'Elu')


@graph(PATTERN, 'conv_bias_gelu_cast', types=())
def _(g):
    x = conv(g, g.input(2, 24, 12, 13, dtype=BF16), 40, bias=True)
    cast(g, chain(g, x, 'GELU', ('Multiply', [1])), 'f32')


LONG_CHAIN = ('Abs', 'Add', 'Tanh', 'Multiply', 'Clamp', 'Elu', 'Subtract', 'GELU', 'HardSigmoid', 'Divide',
              'LeakyReLU', 'Mish', 'Maximum', 'Sigmoid', 'SoftPlus', 'Minimum', 'HardSwish', 'Square', 'ReLU')


@graph(PATTERN, 'conv_19_links')
def _(g):
    x = conv(g, g.input(1, 16, 9, 10), 12, size=1)
    chain(g, x, *[(kind, [1, 12, 1, 1]) if kind in ('Multiply', 'Divide') else kind for kind in LONG_CHAIN])


@graph(PATTERN, 'conv_depthwise_pair')
def _(g):
    x = chain(g, conv(g, g.input(1, 24, 14, 15), 36, size=1, bias=True), 'ReLU')
    chain(g, conv(g, x, 36, groups=36, bias=True), 'ReLU')


@graph(PATTERN, 'conv_depthwise_pair_stride_2')
def _(g):
    x = chain(g, bias_add(g, conv(g, g.input(2, 20, 13, 13), 44, size=1)), 'HardSwish')
    chain(g, bias_add(g, conv(g, x, 44, stride=2, groups=44)), 'HardSwish', ('Multiply', [1, 44, 1, 1]))


@graph(PATTERN, 'conv_pair_dense')
def _(g):
    """The second filter has 3x3 points, but reads all channels."""
    conv(g, chain(g, conv(g, g.input(1, 16, 9, 11), 24, size=1), 'ReLU'), 20)


def bottleneck(g, x, width, out, stride=1, project=False):
    """1x1, 3x3, 1x1 and the input, or its projection, added."""
    y = chain(g, conv(g, x, width, size=1, stride=stride, bias=True), 'ReLU')
    y = chain(g, conv(g, y, width, bias=True), 'ReLU')
    y = conv(g, y, out, size=1, bias=True)
    short = conv(g, x, out, size=1, stride=stride, bias=True) if project else x
    return g.op('ReLU', g.op('Add', y, short))


@graph(COMPLEX, 'residual_stage', types=('f32',))
def _(g):
    bottleneck(g, bottleneck(g, g.input(1, 24, 14, 14), 16, 40, stride=2, project=True), 16, 40)


@graph(COMPLEX, 'residual_stage_basic', partitions=5)
def _(g):
    x, stride = g.input(1, 16, 14, 14), 2
    for project in (True, False):
        y = chain(g, bias_add(g, conv(g, x, 24, stride=stride)), 'ReLU')
        y = bias_add(g, conv(g, y, 24))
        short = bias_add(g, conv(g, x, 24, size=1, stride=stride)) if project else x
        x, stride = g.op('ReLU', g.op('Add', y, short)), 1


# -------------------------------------------------------------------------------------- transposed convolution

def conv_transpose(g, x, out, size=4, stride=2, pad=1, groups=1, bias=False, **more):
    channels = x['shape'][1]
    weights = [g.weights(channels, out // groups, size, size)] + ([g.weights(out)] if bias else [])
    return g.op('ConvTranspose', x, *weights,
                **dict(window(size, stride, groups, pad), weights_format='IOX', **more))


@graph(PATTERN, 'conv_transpose_bias_relu')
def _(g):
    chain(g, conv_transpose(g, g.input(1, 24, 9, 11), 20, bias=True), 'ReLU')


@graph(PATTERN, 'conv_transpose_biasadd_sum_tanh')
def _(g):
    x = bias_add(g, conv_transpose(g, g.input(2, 14, 7, 6), 10, size=3, output_padding=[1, 0]))
    chain(g, x, 'Add', 'Tanh')


@graph(PATTERN, 'conv_transpose_groups_swish')
def _(g):
    chain(g, conv_transpose(g, g.input(1, 18, 8, 8), 12, size=3, stride=1, groups=3), 'swish', ('Multiply', [1]))


@graph(PATTERN, 'conv_transpose_nxc_leakyrelu')
def _(g):
    x = g.op('ConvTranspose', g.input(1, 6, 9, 16), g.weights(2, 2, 12, 16),
             **dict(window(2, 2, pad=0, data_format='NXC'), weights_format='XOI'))
    chain(g, x, 'LeakyReLU')


# ---------------------------------------------------------------------------------------------------- MatMul

@graph(PATTERN, 'matmul_bias_relu')
def _(g):
    x, weights, bias = g.input(64, 200), g.weights(200, 96), g.weights(96)
    chain(g, g.op('MatMul', x, weights, bias), 'ReLU')
    sweep(g, '--in-shapes={x}:1x200,{x}:64x200*ba,{x}:3x5x200,{x}:200,{x}:0x200', x=x)
    sweep(g, '--in-shapes={w}:200x1+{b}:1,{w}:200x7*ba+{b}:7,{w}:200x519+{b}:519', w=weights, b=bias)
    sweep(g, '--op-kind=1:Tanh,1:GELU,1:Exp,1:Abs,1:undef')


@graph(PATTERN, 'matmul_biasadd_gelu')
def _(g):
    chain(g, bias_add(g, g.op('MatMul', g.input(64, 200), g.weights(200, 96)), 'NXC'), 'GELU')


@graph(PATTERN, 'matmul_sum_scale_tanh')
def _(g):
    a, b = g.input(3, 64, 72), g.input(3, 72, 48)
    other = g.input(3, 64, 48)
    x = g.op('Add', g.op('MatMul', a, b), other)
    chain(g, x, ('Multiply', [3, 64, 1]), 'Tanh')
    sweep(g, '--in-shapes={b}:1x72x48,{b}:72x48,{a}:1x64x72', a=a, b=b)
    sweep(g, '--in-shapes={other}:1,{other}:48,{other}:64x1,{other}:3x1x1', other=other)
    sweep(g, '--op-kind=1:Maximum,1:Subtract,1:Divide')


@graph(PATTERN, 'matmul_swish')
def _(g):
    chain(g, g.op('MatMul', g.input(96, 128), g.weights(128, 64)), 'swish')


@graph(PATTERN, 'matmul_relu_cast_bf16', types=())
def _(g):
    x = g.op('MatMul', g.input(40, 64, dtype=BF16), g.weights(64, 72, dtype=BF16))
    cast(g, chain(g, x, 'ReLU'), 'f32')


@graph(PATTERN, 'matmul_19_links')
def _(g):
    x = g.op('MatMul', g.input(2, 27, 45), g.weights(45, 31))
    chain(g, x, *[(kind, [31]) if kind in ('Multiply', 'Divide') else kind for kind in LONG_CHAIN])


@graph(PATTERN, 'matmul_bias_sum_sum')
def _(g):
    x = g.op('MatMul', g.input(29, 70), g.weights(70, 51), g.weights(51))
    chain(g, x, 'Add', ('Add', [29, 1]), ('Subtract', [51]))


@graph(PATTERN, 'matmul_biasadd_select')
def _(g):
    x = bias_add(g, g.op('MatMul', g.input(3, 33, 40), g.weights(40, 37)), 'NXC')
    select_mask(g, chain(g, x, ('Divide', [1])), [3, 33, 1])


@graph(PATTERN, 'matmul_gelu_select_cast', types=())
def _(g):
    x = g.op('MatMul', g.input(2, 21, 48, dtype=F16), g.weights(48, 35, dtype=F16))
    cast(g, select_mask(g, chain(g, x, 'GELU'), [2, 21, 35]), 'f32')


@graph(PATTERN, 'matmul_vector_bias_relu')
def _(g):
    chain(g, g.op('MatMul', g.input(120), g.weights(120, 77), g.weights(77)), 'ReLU')


@graph(PATTERN, 'matmul_transposed_sigmoid_scale')
def _(g):
    x = g.op('MatMul', g.input(2, 40, 33), g.weights(50, 40), transpose_a=True, transpose_b=True)
    chain(g, x, 'Sigmoid', ('Multiply', [50]))


@graph(PATTERN, 'matmul_dropout')
def _(g):
    dropout(g, g.op('MatMul', g.input(31, 60), g.weights(60, 44)))


@graph(PATTERN, 'matmul_bias_heads')
def _(g):
    """A projection split into heads: reshape, transpose."""
    x = g.op('MatMul', g.input(2, 19, 48), g.weights(48, 36), g.weights(36))
    g.op('StaticTranspose', reshape(g, x, 2, 19, 3, 12), order=[0, 2, 1, 3])


@graph(PATTERN, 'matmul_heads_joined')
def _(g):
    x = g.op('MatMul', g.input(2, 3, 19, 21), g.input(2, 3, 21, 12))
    move(g, x, [0, 2, 1, 3], shape=[2, 19, 36])


@graph(PATTERN, 'matmul_biasadd_cast_heads', types=())
def _(g):
    x = g.op('MatMul', g.input(2, 17, 40, dtype=BF16), g.weights(40, 24, dtype=BF16))
    x = cast(g, bias_add(g, x, 'NXC'), 'f32')
    move(g, reshape(g, x, 2, 17, 4, 6), [0, 2, 1, 3], shape=[8, 17, 6])


@graph(PATTERN, 'matmul_transpose_reorder')
def _(g):
    move(g, g.op('MatMul', g.input(2, 3, 19, 21), g.input(2, 3, 21, 12)), [0, 2, 1, 3])


# ------------------------------------------------------------------------------------- binary, product, binary

@graph(COMPLEX, 'binary_matmul_binary')
def _(g):
    x = chain(g, g.input(2, 27, 40), 'Add', ('Multiply', [40]))
    chain(g, g.op('MatMul', x, g.weights(40, 33)), ('Multiply', [33]), 'Subtract', ('Add', [2, 1, 33]))


@graph(COMPLEX, 'binary_cast_matmul_cast', types=())
def _(g):
    for dtype in (BF16,):
        x = cast(g, chain(g, g.input(25, 48), ('Multiply', [25, 1])), dtype)
        x = g.op('MatMul', x, g.weights(48, 39, dtype=dtype))
        cast(g, chain(g, x, ('Divide', [1])), 'f32')


# ------------------------------------------------------------------------------------------------- gated MLP

def gated_mlp(g, act, dtype='f32', inner=None, rows=23, width=40, hidden=56, weights=None):
    """Down-projection of act(gate) times up. `inner`: type between the products; `weights`: makes them."""
    inner = inner or dtype
    weights = weights or (lambda *shape: g.weights(*shape, dtype=dtype))
    x = g.input(rows, width, dtype=dtype)
    gate = g.op('MatMul', x, weights(width, hidden), dtype=inner)
    up = g.op('MatMul', x, weights(width, hidden), dtype=inner)
    y = g.op('Multiply', chain(g, gate, *[act] if act else []), up)
    g.op('MatMul', y if inner == dtype else cast(g, y, dtype), weights(hidden, width), dtype=dtype)


@graph(COMPLEX, 'gated_mlp')
def _(g):
    gated_mlp(g, 'swish', rows=48, width=128, hidden=192)
    g.options += ['--in-shapes=0:1x128', '--in-shapes=0:2x7x128', '--in-shapes=1:128x33+3:128x33+8:33x128']


for activation in ('GELU', 'ReLU', 'Sigmoid', 'HardSwish', 'Mish', None):
    @graph(COMPLEX, f'gated_mlp_{(activation or "product").lower()}')
    def _(g, activation=activation):
        gated_mlp(g, activation)


@graph(COMPLEX, 'gated_mlp_gelu_tanh')
def _(g):
    x = g.input(2, 9, 44)
    gate = g.op('GELU', g.op('MatMul', x, g.weights(44, 52)), mode='gelu_tanh')
    g.op('MatMul', g.op('Multiply', g.op('MatMul', x, g.weights(44, 52)), gate), g.weights(52, 44))


for narrow in (BF16, F16):
    @graph(COMPLEX, f'gated_mlp_swish_{narrow}_f32', types=())
    def _(g, narrow=narrow):
        gated_mlp(g, 'swish', narrow, 'f32')

    @graph(COMPLEX, f'gated_mlp_gelu_{narrow}_f32', types=())
    def _(g, narrow=narrow):
        gated_mlp(g, 'GELU', narrow, 'f32')

for kind, activation, group in (('s8', 'swish', 20), ('u8', 'GELU', 40), ('s4', 'swish', 8), ('u4', 'GELU', 20)):
    @graph(COMPLEX, f'gated_mlp_compressed_{kind}', types=(), fpmath_mode='f16', apply_to_int=True)
    def _(g, kind=kind, activation=activation, group=group):
        gated_mlp(g, activation, F16, width=40, hidden=80,
                  weights=lambda rows, columns: compressed(g, rows, columns, groups=(group, 1), dtype=kind, out=F16))


@graph(COMPLEX, 'gated_mlp_compressed_symmetric', types=(), fpmath_mode='bf16', apply_to_int=True)
def _(g):
    gated_mlp(g, 'swish', BF16, 'f32', width=48, hidden=32,
              weights=lambda rows, columns: compressed(g, rows, columns, groups=(rows, 1), out=BF16, zp=False))
