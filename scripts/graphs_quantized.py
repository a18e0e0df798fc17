"""Graphs of quantised products, pools, norms and movements, and of products with compressed weights."""
from graph_words import (batch_norm, bias_add, cast, chain, compressed, dequantize, graph, move, quantize, quantized_input,
                         quantized_weights, reshape, select_mask, window)
from graph_writer import POOL

PATTERN = 'pattern'
BF16 = 'bf16'


# ----------------------------------------------------------------------------------------------- convolution

def int8_conv(g, x, out, size=3, bias=False, groups=1, weights=None, **more):
    channels = x['shape'][1] // groups
    weights = weights or quantized_weights(g, out, channels, size, size, terms=channels * size * size)
    bias = [g.weights(out, dtype=x['dtype'])] if bias else []
    return g.op('Convolution', x, weights, *bias, **window(size, groups=groups, **more))


@graph(PATTERN, 'int8_conv_bias_relu', types=())
def _(g):
    y = int8_conv(g, quantized_input(g, 2, 24, 13, 12), 36, bias=True)
    quantize(g, chain(g, y, 'ReLU'), 'u8')


@graph(PATTERN, 'int8_conv_f32_result', types=())
def _(g):
    chain(g, int8_conv(g, quantized_input(g, 1, 19, 11, 9, dtype='s8'), 21), 'GELU')


@graph(PATTERN, 'int8_conv_biasadd_per_tensor', types=())
def _(g):
    x = quantized_input(g, 2, 20, 9, 10)
    w = quantized_weights(g, 28, 20, 1, 1, terms=20, per_channel=False)
    quantize(g, chain(g, bias_add(g, int8_conv(g, x, 28, 1, weights=w)), 'swish', ('Multiply', [1])), 's8')


@graph(PATTERN, 'int8_conv_weights_quantised_inside', types=())
def _(g):
    x = quantized_input(g, 1, 17, 12, 8)
    w = quantized_weights(g, 23, 17, 3, 3, terms=153, inside=True)
    quantize(g, chain(g, int8_conv(g, x, 23, weights=w, bias=True), 'HardSwish'), 'u8', zp=20)


@graph(PATTERN, 'int8_conv_groups_stride_2', types=())
def _(g):
    y = int8_conv(g, quantized_input(g, 1, 32, 11, 13, dtype='s8'), 40, groups=4, stride=2)
    quantize(g, chain(g, y, 'LeakyReLU'), 's8')


@graph(PATTERN, 'int8_conv_depthwise', types=())
def _(g):
    y = int8_conv(g, quantized_input(g, 1, 40, 12, 12), 40, groups=40, bias=True)
    quantize(g, g.op('Clamp', y, min=0.0, max=6.0), 'u8')


@graph(PATTERN, 'int8_conv_nxc_bias_relu', types=())
def _(g):
    x = quantized_input(g, 2, 10, 11, 24)
    w = quantized_weights(g, 3, 3, 24, 32, axis=3, terms=216)
    y = g.op('Convolution', x, w, g.weights(32), **window(3, data_format='NXC') | dict(weights_format='XIO'))
    quantize(g, chain(g, y, 'ReLU'), 'u8')


@graph(PATTERN, 'int8_conv_sum_relu', types=())
def _(g):
    y = int8_conv(g, quantized_input(g, 1, 24, 10, 11), 24, 1, bias=True)
    y = g.op('Add', y, quantized_input(g, 1, 24, 10, 11, scale=1 / 16, zp=30))
    quantize(g, chain(g, y, 'ReLU'), 'u8', zp=3)


@graph(PATTERN, 'int8_conv_biasadd_sum_chain', types=())
def _(g):
    y = bias_add(g, int8_conv(g, quantized_input(g, 2, 16, 9, 9, dtype='s8'), 30))
    y = g.op('Add', dequantize(g, g.input(2, 30, 9, 9, dtype='s8')), y)
    quantize(g, chain(g, y, 'Tanh', ('Multiply', [1, 30, 1, 1]), 'ReLU'), 's8', 1 / 64)


@graph(PATTERN, 'int8_conv_weights_reshaped', types=())
def _(g):
    """The weights of a depthwise convolution as frameworks quantise them: reshaped before and after."""
    x = quantized_input(g, 1, 24, 9, 9)
    w = g.op('StaticReshape', g.weights(24, 1, 3, 3), shape=[24, 9], special_zero=False)
    w = dequantize(g, quantize(g, w, 's8', 1 / 64), 1 / 64)
    w = reshape(g, w, 24, 1, 3, 3)
    quantize(g, chain(g, int8_conv(g, x, 24, groups=24, weights=w, bias=True), 'ReLU'), 'u8')


def mixed(g, x):
    """Behind TypeCast to bf16."""
    return cast(g, x, BF16)


@graph(PATTERN, 'int8_bf16_conv_bias_relu', types=())
def _(g):
    x = mixed(g, quantized_input(g, 2, 20, 9, 10))
    w = mixed(g, quantized_weights(g, 32, 20, 3, 3, terms=180))
    y = chain(g, int8_conv(g, x, 32, weights=w, bias=True), 'ReLU')
    quantize(g, cast(g, y, 'f32'), 'u8')


@graph(PATTERN, 'int8_bf16_conv_biasadd_cast_gelu', types=())
def _(g):
    x = mixed(g, quantized_input(g, 1, 22, 8, 9, dtype='s8'))
    w = mixed(g, quantized_weights(g, 26, 22, 1, 1, terms=22))
    y = int8_conv(g, x, 26, 1, weights=w)
    y = g.op('BiasAdd', y, cast(g, g.weights(26), BF16), data_format='NCX')
    chain(g, y, 'GELU')


@graph(PATTERN, 'int8_bf16_conv_sum_relu', types=())
def _(g):
    x = mixed(g, quantized_input(g, 1, 24, 9, 9))
    w = mixed(g, quantized_weights(g, 24, 24, 3, 3, terms=216))
    y = int8_conv(g, x, 24, weights=w, bias=True)
    y = g.op('Add', y, mixed(g, quantized_input(g, 1, 24, 9, 9)))
    quantize(g, cast(g, chain(g, y, 'ReLU'), 'f32'), 'u8')


# --------------------------------------------------------------------------------------- transposed convolution

def int8_conv_transpose(g, x, out, size=4, stride=2, pad=1, groups=1, bias=False):
    channels = x['shape'][1]
    w = quantized_weights(g, channels, out // groups, size, size, axis=1, terms=channels * 4 // groups,
                          per_channel=groups == 1)
    more = [g.weights(out)] if bias else []
    return g.op('ConvTranspose', x, w, *more, **dict(window(size, stride, groups, pad), weights_format='IOX'))


@graph(PATTERN, 'int8_conv_transpose_bias_relu', types=())
def _(g):
    y = int8_conv_transpose(g, quantized_input(g, 1, 20, 7, 8), 18, bias=True)
    quantize(g, chain(g, y, 'ReLU'), 'u8')


@graph(PATTERN, 'int8_conv_transpose_groups_f32_result', types=())
def _(g):
    y = int8_conv_transpose(g, quantized_input(g, 2, 16, 6, 5, dtype='s8'), 12, 3, 1, groups=2)
    chain(g, y, ('Multiply', [1, 12, 1, 1]), 'Sigmoid')


@graph(PATTERN, 'int8_conv_transpose_sum', types=())
def _(g):
    y = bias_add(g, int8_conv_transpose(g, quantized_input(g, 1, 14, 7, 7), 16))
    y = g.op('Add', y, quantized_input(g, 1, 16, 14, 14, dtype='s8', scale=1 / 16))
    quantize(g, chain(g, y, 'ReLU'), 'u8')


# ---------------------------------------------------------------------------------------------------- MatMul

def int8_matmul(g, x, n, bias=False, **more):
    k = x['shape'][-1]
    w = quantized_weights(g, k, n, axis=1, terms=k, **more)
    w = mixed(g, w) if x['dtype'] == BF16 else w
    return g.op('MatMul', x, w, *([g.weights(n, dtype=x['dtype'])] if bias else []))


@graph(PATTERN, 'int8_matmul_bias_relu', types=())
def _(g):
    x = quantized_input(g, 37, 80)
    quantize(g, chain(g, int8_matmul(g, x, 51, bias=True), 'ReLU'), 'u8')


@graph(PATTERN, 'int8_matmul_f32_result', types=())
def _(g):
    chain(g, bias_add(g, int8_matmul(g, quantized_input(g, 3, 21, 64, dtype='s8'), 40), 'NXC'), 'GELU')


@graph(PATTERN, 'int8_matmul_u8_weights', types=())
def _(g):
    x = quantized_input(g, 25, 48, dtype='s8')
    w = dequantize(g, g.weights(48, 33, dtype='u8'), 1 / 128, 32)
    quantize(g, chain(g, g.op('MatMul', x, w), ('Multiply', [1]), 'Tanh'), 's8', 1 / 64)


@graph(PATTERN, 'int8_matmul_activations', types=())
def _(g):
    """Both operands are activations, one transposed."""
    a, b = quantized_input(g, 2, 3, 19, 32), quantized_input(g, 2, 3, 23, 32, dtype='s8', scale=1 / 64)
    quantize(g, g.op('MatMul', a, b, transpose_b=True), 's8')


@graph(PATTERN, 'int8_matmul_weights_quantised_inside', types=())
def _(g):
    y = int8_matmul(g, quantized_input(g, 30, 56), 44, bias=True, inside=True)
    quantize(g, chain(g, y, 'Sigmoid', ('Multiply', [44])), 'u8', 1 / 128)


@graph(PATTERN, 'int8_matmul_sum', types=())
def _(g):
    y = int8_matmul(g, quantized_input(g, 28, 72), 36, bias=True)
    y = g.op('Add', y, quantized_input(g, 28, 36, scale=1 / 16, zp=28))
    quantize(g, chain(g, y, 'ReLU'), 'u8')


@graph(PATTERN, 'int8_matmul_biasadd_sum_chain', types=())
def _(g):
    y = bias_add(g, int8_matmul(g, quantized_input(g, 2, 15, 40, dtype='s8'), 34, per_channel=False), 'NXC')
    y = g.op('Add', y, quantized_input(g, 2, 15, 34, dtype='s8', scale=1 / 16))
    quantize(g, chain(g, y, 'GELU', ('Divide', [34])), 's8')


@graph(PATTERN, 'int8_matmul_select', types=())
def _(g):
    y = chain(g, int8_matmul(g, quantized_input(g, 2, 17, 32), 29), ('Divide', [1]))
    quantize(g, select_mask(g, y, [2, 17, 29]), 's8')


@graph(PATTERN, 'int8_matmul_heads', types=())
def _(g):
    y = reshape(g, int8_matmul(g, quantized_input(g, 2, 13, 40), 36, bias=True), 2, 13, 3, 12)
    quantize(g, g.op('StaticTranspose', y, order=[0, 2, 1, 3]), 's8')


@graph(PATTERN, 'int8_matmul_transpose_reorder', types=())
def _(g):
    a, b = quantized_input(g, 2, 3, 18, 24), quantized_input(g, 2, 3, 24, 20, dtype='s8', scale=1 / 64)
    quantize(g, move(g, g.op('MatMul', a, b), [0, 2, 1, 3]), 'u8', zp=30)


@graph(PATTERN, 'int8_matmul_19_links', types=())
def _(g):
    y = chain(g, int8_matmul(g, quantized_input(g, 23, 48), 31), 'Abs', 'Add', 'Tanh', 'Multiply', 'Clamp', 'Elu',
              'Subtract', 'GELU', 'HardSigmoid', ('Divide', [31]), 'LeakyReLU', 'Mish', 'Maximum', 'Sigmoid',
              'SoftPlus', 'Minimum', 'HardSwish', 'Square', 'ReLU')
    quantize(g, y, 'u8', 1 / 128)


@graph(PATTERN, 'int8_bf16_matmul_bias_gelu', types=())
def _(g):
    y = int8_matmul(g, mixed(g, quantized_input(g, 27, 64)), 42, bias=True)
    quantize(g, cast(g, chain(g, y, 'GELU'), 'f32'), 'u8', zp=8)


@graph(PATTERN, 'int8_bf16_matmul_bf16_result', types=())
def _(g):
    y = int8_matmul(g, mixed(g, quantized_input(g, 2, 11, 48, dtype='s8')), 40)
    chain(g, g.op('BiasAdd', y, cast(g, g.weights(40), BF16), data_format='NXC'), ('Multiply', [1]))


@graph(PATTERN, 'int8_bf16_matmul_sum', types=())
def _(g):
    y = int8_matmul(g, mixed(g, quantized_input(g, 21, 56)), 32, bias=True)
    y = g.op('Add', y, mixed(g, quantized_input(g, 21, 32, dtype='s8', scale=1 / 16)))
    quantize(g, cast(g, chain(g, y, 'ReLU'), 'f32'), 'u8')


for factor in ('Multiply', 'Divide'):
    @graph(PATTERN, f'int8_bf16_matmul_smooth_{factor.lower()}', types=())
    def _(g, factor=factor):
        """The channels of the result are scaled before they are quantised, as smooth quantisation does."""
        y = int8_matmul(g, mixed(g, quantized_input(g, 24, 64)), 48, bias=True)
        quantize(g, chain(g, cast(g, chain(g, y, 'GELU'), 'f32'), (factor, [48])), 'u8', zp=16)


@graph(PATTERN, 'int8_bf16_matmul_cast_sum', types=())
def _(g):
    """The sum is f32, behind the cast."""
    y = int8_matmul(g, mixed(g, quantized_input(g, 19, 40)), 26, bias=True)
    quantize(g, chain(g, cast(g, y, 'f32'), 'Add', ('Multiply', [26])), 's8')


@graph(PATTERN, 'int8_bf16_matmul_select', types=())
def _(g):
    y = int8_matmul(g, mixed(g, quantized_input(g, 2, 9, 32)), 21)
    quantize(g, cast(g, select_mask(g, y, [1, 9, 21]), 'f32'), 'u8', zp=30)


@graph(PATTERN, 'int8_bf16_matmul_transpose_reorder', types=())
def _(g):
    a = mixed(g, quantized_input(g, 2, 3, 14, 24))
    b = mixed(g, quantized_input(g, 2, 3, 24, 18, dtype='s8', scale=1 / 64))
    y = move(g, g.op('MatMul', a, b), [0, 2, 1, 3])
    quantize(g, cast(g, y, 'f32'), 's8')


@graph(PATTERN, 'int8_bf16_matmul_heads', types=())
def _(g):
    y = int8_matmul(g, mixed(g, quantized_input(g, 2, 13, 40)), 36, bias=True)
    y = g.op('StaticTranspose', reshape(g, y, 2, 13, 3, 12), order=[0, 2, 1, 3])
    quantize(g, cast(g, y, 'f32'), 's8')


for f8 in ('f8_e4m3', 'f8_e5m2'):
    @graph(PATTERN, f'{f8}_matmul_bias_relu', types=())
    def _(g, f8=f8):
        x = dequantize(g, g.input(22, 48, dtype=f8), 1.0)
        w = dequantize(g, g.weights(48, 30, dtype=f8), 1.0)
        quantize(g, chain(g, g.op('MatMul', x, w, g.weights(30)), 'ReLU'), f8, 0.5)

    @graph(PATTERN, f'{f8}_conv_bias_relu', types=())
    def _(g, f8=f8):
        x = dequantize(g, g.input(1, 16, 9, 8, dtype=f8), 1.0)
        w = dequantize(g, g.weights(20, 16, 3, 3, dtype=f8), 1.0)
        quantize(g, chain(g, int8_conv(g, x, 20, weights=w, bias=True), 'ReLU'), f8, 0.5)


# ------------------------------------------------------------------------------------------- residual stages

UNIT = 1 / 64


class Stage:
    """Blocks between integers, few because each quantisation lets bounds grow; each reader has its own Dequantize unless `shared`."""

    def __init__(self, g, shared=False, bias_add=False):
        self.g, self.shared, self.bias_add, self.made = g, shared, bias_add, {}

    def value(self, x):
        if self.shared and x['id'] in self.made:
            return self.made[x['id']]
        self.made[x['id']] = dequantize(self.g, x, UNIT)
        return self.made[x['id']]

    def conv(self, x, channels, size=1, stride=1, groups=1):
        y = int8_conv(self.g, self.value(x), channels, size, bias=not self.bias_add, groups=groups, stride=stride)
        return bias_add(self.g, y) if self.bias_add else y

    def block(self, x, widths, channels, stride=1, groups=1, project=False, last=True):
        """Convolutions of `widths` (3x3 the first of one, the second of two) and one of `channels`."""
        g, y = self.g, x
        for i, width in enumerate(widths):
            wide = i == len(widths) - 1
            y = self.conv(y, width, 3 if wide else 1, stride if wide else 1, groups if wide else 1)
            y = quantize(g, chain(g, y, 'ReLU'), 'u8', UNIT)
        y = self.conv(y, channels, 3 if len(widths) == 1 else 1)
        short = self.value(quantize(g, self.conv(x, channels, 1, stride), scale=UNIT)) if project else self.value(x)
        y = chain(g, g.op('Add', y, short), 'ReLU')
        return quantize(g, y, 'u8', UNIT) if last else y


@graph('complex_fusion', 'int8_residual_stage', types=())
def _(g):
    stage = Stage(g)
    x = stage.block(g.input(1, 20, 7, 9, dtype='u8'), [12, 12], 28, 2, project=True)
    stage.block(x, [12, 12], 28)


@graph('complex_fusion', 'int8_residual_stage_shared', types=())
def _(g):
    """One Dequantize for all readers, BiasAdd, and a result in f32."""
    stage = Stage(g, shared=True, bias_add=True)
    x = stage.block(g.input(2, 16, 8, 7, dtype='u8'), [10, 10], 24, project=True)
    stage.block(x, [10, 10], 24, last=False)


@graph('complex_fusion', 'int8_residual_stage_basic', types=())
def _(g):
    stage = Stage(g)
    x = stage.block(g.input(1, 14, 10, 10, dtype='u8'), [18], 18, 2, project=True)
    stage.block(x, [18], 18)


@graph('complex_fusion', 'int8_residual_stages_grouped', types=())
def _(g):
    """Two stages of one grouped block each."""
    stage, x = Stage(g), g.input(1, 16, 5, 6, dtype='u8')
    for width, channels, stride in ((16, 24, 1), (24, 32, 2)):
        x = stage.block(x, [width, width], channels, stride, 4, project=True)


# ----------------------------------------------------------------------------------------- pools and movement

AVERAGE = dict(exclude_pad=True, rounding_type='floor')


@graph(PATTERN, 'int8_maxpool', types=())
def _(g):
    x = quantized_input(g, 2, 18, 13, 12)
    quantize(g, g.op('MaxPool', x, **POOL), 'u8', 1 / 32, 32)


@graph(PATTERN, 'int8_avgpool_chain', types=())
def _(g):
    x = quantized_input(g, 1, 21, 12, 12, dtype='s8')
    quantize(g, chain(g, g.op('AvgPool', x, **POOL, **AVERAGE), ('Multiply', [1, 21, 1, 1]), 'Add'), 's8')


@graph(PATTERN, 'int8_avgpool_sum', types=())
def _(g):
    y = g.op('AvgPool', quantized_input(g, 1, 20, 12, 11), **POOL, **AVERAGE)
    y = g.op('Add', y, quantized_input(g, *y['shape'], dtype='s8', scale=1 / 16))
    quantize(g, y, 'u8', zp=40)


@graph(PATTERN, 'int8_avgpool_reshape', types=())
def _(g):
    y = g.op('AvgPool', quantized_input(g, 3, 26, 7, 7), strides=[1, 1], kernel=[7, 7], pads_begin=[0, 0],
             pads_end=[0, 0], data_format='NCX', **AVERAGE)
    quantize(g, reshape(g, y, 3, 26), 'u8', 1 / 64, 60)


@graph(PATTERN, 'int8_maxpool_transpose', types=())
def _(g):
    y = g.op('MaxPool', quantized_input(g, 2, 11, 9, 10, dtype='s8'), **POOL)
    quantize(g, g.op('StaticTranspose', y, order=[0, 2, 3, 1]), 's8')


@graph(PATTERN, 'int8_concat', types=())
def _(g):
    parts = [quantized_input(g, 2, n, 7, 9, scale=1 / 32, zp=32) for n in (5, 16, 3)]
    quantize(g, g.op('Concat', *parts, axis=1), 'u8', 1 / 32, 32)


@graph(PATTERN, 'int8_reorder', types=())
def _(g):
    x = g.input(2, 12, 9, 7, dtype='u8', strides=[756, 1, 84, 12])
    quantize(g, g.op('Reorder', dequantize(g, x, 1 / 32, 32)), 's8')


@graph(PATTERN, 'int8_reorder_sum', types=())
def _(g):
    x = g.input(2, 12, 9, 7, dtype='u8', strides=[756, 1, 84, 12])
    y = g.op('Reorder', dequantize(g, x, 1 / 32, 32))
    y = g.op('Add', y, quantized_input(g, 2, 12, 9, 7, dtype='s8'), auto_broadcast='none')
    quantize(g, y, 's8')


@graph(PATTERN, 'cast_quantize', types=())
def _(g):
    x = g.input(5, 33, 17, dtype=BF16)
    quantize(g, cast(g, x, 'f32'), 'u8', zp=64)


# ------------------------------------------------------------------------------------ weights alone compressed

for bits, size in (('s8', 24), ('u8', 12), ('s4', 8), ('u4', 24)):
    @graph(PATTERN, f'matmul_weights_{bits}_bias', types=(), fpmath_mode='f16', apply_to_int=True)
    def _(g, bits=bits, size=size):
        weights = compressed(g, 72, 38, groups=(size, 1), dtype=bits, out='f16')
        g.op('MatMul', g.input(9, 72, dtype='f16'), weights, g.weights(38, dtype='f16'))


@graph(PATTERN, 'matmul_weights_u4_one_row_swish', types=(), fpmath_mode='bf16', apply_to_int=True)
def _(g):
    weights = compressed(g, 96, 67, groups=(32, 1), dtype='u4', out=BF16)
    chain(g, g.op('MatMul', g.input(1, 96, dtype=BF16), weights), 'swish')


@graph(PATTERN, 'matmul_weights_s4_transposed_sum', types=(), fpmath_mode='any', apply_to_int=True)
def _(g):
    """Rows of the weights are columns of the product; no zero points."""
    weights = compressed(g, 34, 64, groups=(1, 16), dtype='s4', zp=False)
    chain(g, g.op('MatMul', g.input(2, 7, 64), weights, transpose_b=True), 'Add')


@graph(PATTERN, 'matmul_weights_s8_heads', types=(), fpmath_mode='f16', apply_to_int=True)
def _(g):
    weights = compressed(g, 40, 36, groups=(40, 1), dtype='s8', out='f16')
    x = g.op('MatMul', g.input(2, 11, 40, dtype='f16'), weights)
    g.op('StaticTranspose', reshape(g, x, 2, 11, 3, 12), order=[0, 2, 1, 3])


@graph(PATTERN, 'matmul_weights_dequantised', types=())
def _(g):
    """A float source and weights with a scale per channel."""
    w = quantized_weights(g, 56, 41, axis=1, terms=56)
    chain(g, g.op('MatMul', g.input(13, 56), w, g.weights(41)), 'ReLU')


# ------------------------------------------------------------------------- floating types with integer results

@graph(PATTERN, 'matmul_bias_gelu_quantize', types=())
def _(g):
    x = g.op('MatMul', g.input(29, 64), g.weights(64, 45), g.weights(45))
    quantize(g, chain(g, x, 'GELU'), 's8')


@graph(PATTERN, 'matmul_cast_quantize', types=())
def _(g):
    x = g.op('MatMul', g.input(2, 13, 40, dtype=BF16), g.weights(40, 33, dtype=BF16))
    quantize(g, cast(g, chain(g, x, ('Multiply', [33])), 'f32'), 'u8', zp=40)


@graph(PATTERN, 'conv_bias_relu_quantize', types=())
def _(g):
    x = g.op('Convolution', g.input(1, 14, 9, 12), g.weights(22, 14, 3, 3), g.weights(22), **window(3))
    quantize(g, chain(g, x, 'ReLU'), 'u8')


@graph(PATTERN, 'conv_transpose_quantize', types=())
def _(g):
    x = g.op('ConvTranspose', g.input(1, 10, 6, 7), g.weights(10, 12, 4, 4),
             **dict(window(4, 2, pad=1), weights_format='IOX'))
    quantize(g, x, 's8')


@graph(PATTERN, 'avgpool_quantize', types=())
def _(g):
    quantize(g, g.op('AvgPool', g.input(2, 9, 10, 11), **POOL, **AVERAGE), 's8')


@graph(PATTERN, 'reduce_mean_scale_quantize', types=())
def _(g):
    x = g.op('ReduceMean', g.input(3, 17, 6, 7), axes=[2, 3], keep_dims=False)
    quantize(g, chain(g, x, ('Multiply', [17])), 's8', 1 / 64)


@graph(PATTERN, 'interpolate_quantize', types=())
def _(g):
    x = g.op('Interpolate', g.input(1, 5, 6, 7), mode='bilinear', sizes=[9, 15],
             coordinate_transformation_mode='half_pixel', data_format='NCX')
    quantize(g, x, 'u8', zp=64)


@graph(PATTERN, 'swish_sum_quantize', types=())
def _(g):
    x = chain(g, chain(g, g.input(5, 9, 31), 'Tanh'), 'swish', 'Add')
    quantize(g, x, 's8')


@graph(PATTERN, 'int8_add_relu', types=())
def _(g):
    """A residual sum of integers with scales of their own."""
    x = g.op('Add', quantized_input(g, 2, 13, 9, 7), quantized_input(g, 2, 13, 9, 7, dtype='s8', scale=1 / 16))
    quantize(g, chain(g, x, 'ReLU'), 'u8')


@graph(PATTERN, 'int8_sigmoid_scale', types=())
def _(g):
    x = chain(g, quantized_input(g, 3, 21, 17), 'Sigmoid')
    quantize(g, g.op('Multiply', quantized_input(g, 3, 1, 17), x), 'u8', 1 / 64, 90)


@graph(PATTERN, 'int8_bf16_multiply', types=())
def _(g):
    x = g.op('Multiply', mixed(g, quantized_input(g, 4, 35)), mixed(g, quantized_input(g, 4, 35, dtype='s8')))
    quantize(g, cast(g, x, 'f32'), 's8', 1 / 32)


# --------------------------------------------------------------------------------------------- norms, SoftMax

@graph(PATTERN, 'int8_bn_relu', types=())
def _(g):
    quantize(g, chain(g, batch_norm(g, quantized_input(g, 2, 18, 9, 8, dtype='s8')), 'ReLU'), 's8')


@graph(PATTERN, 'layernorm_chain_quantize', types=())
def _(g):
    x = g.op('LayerNorm', g.input(3, 17, 48), g.weights(48), g.weights(48), keep_stats=False)
    quantize(g, chain(g, x, ('Multiply', [48]), 'ReLU'), 'u8')


@graph(PATTERN, 'layernorm_cast_quantize', types=())
def _(g):
    x = g.op('LayerNorm', g.input(5, 60, dtype=BF16), g.weights(60), g.weights(60), keep_stats=False)
    quantize(g, cast(g, x, 'f32'), 's8')


@graph(PATTERN, 'rmsnorm_quantize', types=())
def _(g):
    quantize(g, g.op('RMSNorm', g.input(3, 13, 56), g.weights(56)), 's8')


@graph(PATTERN, 'groupnorm_cast_quantize', types=())
def _(g):
    x = g.op('GroupNorm', g.input(1, 16, 7, 6, dtype=BF16), g.weights(16), g.weights(16), groups=4,
             keep_stats=False, data_format='NCX')
    quantize(g, cast(g, chain(g, x, 'HardSwish'), 'f32'), 's8')


@graph(PATTERN, 'groupnorm_swish_quantize', types=())
def _(g):
    x = g.op('GroupNorm', g.input(2, 24, 9, 7), g.weights(24), g.weights(24), groups=6, keep_stats=False,
             data_format='NCX')
    quantize(g, chain(g, x, 'swish'), 'u8', zp=20)


@graph(PATTERN, 'softmax_scale_quantize', types=())
def _(g):
    x = g.op('SoftMax', g.input(4, 13, 29), axis=-1)
    quantize(g, chain(g, x, ('Multiply', [1])), 'u8', 1 / 256)


@graph(PATTERN, 'softmax_bf16_quantize', types=())
def _(g):
    x = g.op('SoftMax', g.input(4, 13, 29, dtype=BF16), dtype='f32', axis=-1)
    quantize(g, x, 's8', 1 / 128)
