"""Graphs of pools, norms, SoftMax, reductions, resampling, movements and element-wise chains."""
from graph_words import batch_norm, cast, chain, dropout, graph, move, reshape, sweep
from graph_writer import POOL

PATTERN = 'pattern'
NCX = dict(data_format='NCX')


# ----------------------------------------------------------------------------------------------------- pools

@graph(PATTERN, 'maxpool_add')
def _(g):
    chain(g, g.op('MaxPool', g.input(2, 16, 20, 20), **POOL), ('Add', [1, 16, 1, 1]))


@graph(PATTERN, 'maxpool_ceil_relu_sum')
def _(g):
    x = g.op('MaxPool', g.input(1, 19, 12, 13), **POOL | dict(kernel=[2, 3], pads_begin=[0, 1], pads_end=[0, 1]),
             rounding_type='ceil')
    chain(g, x, 'ReLU', 'Add')


@graph(PATTERN, 'avgpool_scale_tanh')
def _(g):
    x = g.op('AvgPool', g.input(2, 13, 11, 12), **POOL, exclude_pad=False, rounding_type='floor')
    chain(g, x, ('Multiply', [1, 13, 1, 1]), 'Tanh', ('Maximum', [1]))


@graph(PATTERN, 'avgpool_3d_sigmoid')
def _(g):
    x = g.op('AvgPool', g.input(1, 7, 9, 6, 8), strides=[2, 1, 2], kernel=[3, 2, 3], pads_begin=[1, 0, 1],
             pads_end=[1, 1, 1], exclude_pad=True, rounding_type='floor', data_format='NCX')
    chain(g, x, 'Sigmoid')


# ----------------------------------------------------------------------------------------------------- norms

@graph(PATTERN, 'bn_relu')
def _(g):
    x = g.input(2, 24, 9, 11)
    chain(g, batch_norm(g, x), 'ReLU')
    sweep(g, '--in-shapes={x}:2x24x9x11*acdb,{x}:5x24,{x}:1x24x17,{x}:1x24x3x5x4', x=x)


@graph(PATTERN, 'bn_training_relu')
def _(g):
    x = g.input(4, 12, 7, 9)
    y = g.op('BatchNormForwardTraining', x, g.weights(12), g.weights(12), g.weights(12), g.weights(12), n_outputs=5,
             out_dtypes=['f32'] * 5, epsilon=1e-5, momentum=0.1, **NCX)
    y[0]['shape'], y[0]['stride'] = x['shape'], x['stride']
    for statistic in y[1:]:
        statistic['shape'], statistic['stride'] = [12], [1]
    chain(g, y[0], 'ReLU')


@graph(PATTERN, 'relu_backward_bn_backward')
def _(g):
    x, gradient = g.input(4, 12, 7, 9), g.input(4, 12, 7, 9)
    y = g.op('ReLUBackward', g.input(4, 12, 7, 9), gradient, use_dst=True)
    y['shape'], y['stride'] = x['shape'], x['stride']
    out = g.op('BatchNormTrainingBackward', x, y, g.weights(12), g.weights(12), g.weights(12), n_outputs=3,
               out_dtypes=['f32'] * 3, epsilon=1e-5, **NCX)
    out[0]['shape'], out[0]['stride'] = x['shape'], x['stride']
    for statistic in out[1:]:
        statistic['shape'], statistic['stride'] = [12], [1]


@graph(PATTERN, 'relu_backward_bn_backward_src')
def _(g):
    x = g.op('ReLUBackward', g.input(4, 12, 7, 9), g.input(4, 12, 7, 9), use_dst=True)
    gradient = g.input(4, 12, 7, 9)
    x['shape'], x['stride'] = gradient['shape'], gradient['stride']
    out = g.op('BatchNormTrainingBackward', x, gradient, g.weights(12), g.weights(12), g.weights(12), n_outputs=3,
               out_dtypes=['f32'] * 3, epsilon=1e-5, **NCX)
    out[0]['shape'], out[0]['stride'] = gradient['shape'], gradient['stride']
    for statistic in out[1:]:
        statistic['shape'], statistic['stride'] = [12], [1]


@graph(PATTERN, 'layernorm_gelu_sum')
def _(g):
    x = g.op('LayerNorm', g.input(3, 17, 53), g.weights(53), g.weights(53), keep_stats=False)
    chain(g, x, 'GELU', 'Add', ('Multiply', [53]))


@graph(PATTERN, 'layernorm_statistics_sum', types=('f32', 'f16'))
def _(g):
    x = g.op('LayerNorm', g.input(3, 9, 36), g.weights(36), g.weights(36), keep_stats=True, n_outputs=3,
             out_dtypes=['f32'] * 3)
    chain(g, x[0], 'Add')


@graph(PATTERN, 'rmsnorm_scale_gelu')
def _(g):
    chain(g, g.op('RMSNorm', g.input(2, 11, 45), g.weights(45)), ('Multiply', [2, 11, 1]), 'GELU')


@graph(PATTERN, 'layernorm_plain_clamp')
def _(g):
    chain(g, g.op('LayerNorm', g.input(2, 5, 7, 40), keep_stats=False, use_affine=False), 'Clamp')


@graph(PATTERN, 'layernorm_cast_relu', types=())
def _(g):
    x = g.op('LayerNorm', g.input(11, 64, dtype='bf16'), g.weights(64), g.weights(64), keep_stats=False)
    chain(g, cast(g, x, 'f32'), 'ReLU', ('Add', [64]))


@graph(PATTERN, 'groupnorm_swish')
def _(g):
    x = g.op('GroupNorm', g.input(2, 24, 9, 11), g.weights(24), g.weights(24), groups=6, keep_stats=False, **NCX)
    chain(g, x, 'swish')


@graph(PATTERN, 'groupnorm_chain_cast_chain', types=())
def _(g):
    x = g.op('GroupNorm', g.input(1, 20, 8, 7, dtype='f16'), g.weights(20), g.weights(20), groups=5,
             keep_stats=False, **NCX)
    x = chain(g, x, 'HardSwish', ('Multiply', [1, 20, 1, 1]))
    chain(g, cast(g, x, 'f32'), 'Tanh', 'Add')


@graph(PATTERN, 'groupnorm_nxc_sum_relu')
def _(g):
    x = g.op('GroupNorm', g.input(2, 6, 9, 18), g.weights(18), g.weights(18), groups=3, keep_stats=False,
             data_format='NXC')
    chain(g, x, 'Add', 'ReLU')


# --------------------------------------------------------------------------------------------------- SoftMax

@graph(PATTERN, 'softmax_scale')
def _(g):
    x = g.input(8, 12, 50)
    chain(g, g.op('SoftMax', x, axis=-1), ('Multiply', [1]))
    sweep(g, '--in-shapes={x}:8x12x2,{x}:3x5x1031,{x}:8x12x50*acb', x=x)
    sweep(g, '--op-attrs=0:axis:0,0:axis:1')


@graph(PATTERN, 'softmax_axis_1_chain')
def _(g):
    chain(g, g.op('SoftMax', g.input(3, 29, 9, 5), axis=1), ('Divide', [3, 1, 9, 5]), 'Sqrt', 'Add')


@graph(PATTERN, 'softmax_inf_as_zero_cast', types=())
def _(g):
    cast(g, g.op('SoftMax', g.input(5, 7, 37), axis=-1, mode='inf_as_zero'), 'bf16')


@graph(PATTERN, 'softmax_statistics_scale', types=('f32',))
def _(g):
    x, _ = g.op('SoftMax', g.input(6, 11, 31), axis=-1, n_outputs=2, out_dtypes=['f32', 'f32'])
    chain(g, x, ('Multiply', [6, 11, 1]))


# ---------------------------------------------------------------------------------- reductions and resampling

for name, axes, keep, links in (('Sum', [2], True, [('Multiply', [1]), 'ReLU']), ('Mean', [1, 3], False, ['Sqrt']),
                                ('Max', [0], True, ['Add', 'Tanh']), ('Min', [-1], False, ['GELU']),
                                ('L1', [1], True, [('Divide', [1])]), ('L2', [2, 3], False, ['Sigmoid', 'Multiply']),
                                ('Prod', [3], True, ['Add', 'Abs'])):
    @graph(PATTERN, f'reduce_{name.lower()}_chain')
    def _(g, name=name, axes=axes, keep=keep, links=links):
        chain(g, g.op(f'Reduce{name}', g.input(3, 14, 9, 11), axes=axes, keep_dims=keep), *links)


@graph(PATTERN, 'root_mean_square', partitions=2)
def _(g):
    """Two unary ops in a row, then a reduction with its tail."""
    chain(g, g.op('ReduceMean', g.op('Square', g.input(8, 64, 33)), axes=[2], keep_dims=True), 'Sqrt')


@graph(PATTERN, 'interpolate_nearest_sum')
def _(g):
    x = g.op('Interpolate', g.input(1, 11, 7, 9), mode='nearest', sizes=[15, 17],
             coordinate_transformation_mode='half_pixel', **NCX)
    chain(g, x, 'Add')


@graph(PATTERN, 'interpolate_bilinear_relu_scale')
def _(g):
    x = g.op('Interpolate', g.input(2, 6, 8, 13), mode='bilinear', sizes=[13, 9],
             coordinate_transformation_mode='half_pixel', data_format='NXC')
    chain(g, x, 'ReLU', ('Multiply', [13]))


# -------------------------------------------------------------------------------------------- element-wise ops

@graph(PATTERN, 'binary_chain')
def _(g):
    a, b = g.input(8, 64, 33), g.input(64, 1)
    chain(g, g.op('Add', a, b), 'Exp', ('Multiply', [33]), ('Maximum', [1]))
    sweep(g, '--in-shapes={a}:8x64x33*cba,{a}:64x33+{b}:8x1x1,{a}:33,{a}:0x64x33', a=a, b=b)
    sweep(g, '--op-kind=0:Multiply+1:Tanh,0:Minimum+1:Square,0:Subtract+3:Subtract')


@graph(PATTERN, 'gelu_add')
def _(g):
    chain(g, g.op('GELU', g.input(8, 64, 33)), ('Add', [8, 1, 33]))


@graph(PATTERN, 'binary_19_links')
def _(g):
    x = chain(g, g.input(3, 19, 21), 'Add', 'Abs', ('Multiply', [21]), 'Tanh', 'Add', 'Clamp', 'Elu', 'Subtract',
              'GELU', 'HardSigmoid', ('Divide', [3, 1, 1]), 'LeakyReLU', 'Mish', 'Maximum', 'Sigmoid', 'SoftPlus',
              'Minimum', 'HardSwish', 'Square', 'ReLU')
    return x


@graph(PATTERN, 'unary_binaries')
def _(g):
    chain(g, g.input(5, 17, 31), 'Mish', ('Multiply', [17, 1]), ('Subtract', [5, 1, 31]), ('Minimum', [1]))


@graph(PATTERN, 'unary_swish_product')
def _(g):
    chain(g, g.op('Clamp', g.input(4, 33, 7), min=-3.0, max=3.0), ('Add', [7]), 'swish')


@graph(PATTERN, 'reciprocal_multiply')
def _(g):
    g.op('Multiply', g.input(7, 45), g.op('Reciprocal', g.input(7, 1)))


@graph(PATTERN, 'sum_of_five')
def _(g):
    x = g.input(2, 13, 19)
    for _ in range(4):
        x = g.op('Add', x, g.input(2, 13, 19), auto_broadcast='none')


@graph(PATTERN, 'unary_dropout')
def _(g):
    dropout(g, g.op('ReLU', g.input(6, 23, 17)))


# --------------------------------------------------------------------------------------------------- movement

@graph(PATTERN, 'channel_shuffle')
def _(g):
    x = reshape(g, g.input(2, 24, 9, 7), 2, 4, 6, 9, 7)
    reshape(g, g.op('StaticTranspose', x, order=[0, 2, 1, 3, 4]), 2, 24, 9, 7)


@graph(PATTERN, 'shuffle_nxc')
def _(g):
    move(g, reshape(g, g.input(2, 5, 7, 18), 2, 5, 7, 3, 6), [0, 1, 2, 4, 3], shape=[2, 5, 7, 18])


@graph(PATTERN, 'reorder_add')
def _(g):
    x = g.op('Reorder', g.input(2, 14, 9, 5, strides=[630, 1, 70, 14]))
    g.op('Add', x, g.input(2, 14, 9, 5), auto_broadcast='none')
