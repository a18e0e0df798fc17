"""Graphs of attention: forward with every kind of scale, mask and tail, grouped queries, framework forms, training, quantised
and compressed operands."""
from graph_words import (cast, compressed, dequantize, dropout, graph, move, quantize, reshape,
                         scores, select_mask, softmax, sweep)

COMPLEX = 'complex_fusion'
NARROW = ('bf16', 'f16')
BATCH, HEADS, QUERIES, KEYS, SIZE = 2, 3, 33, 47, 24


def operands(g, dtype='f32', batch=BATCH, heads=HEADS, queries=QUERIES, keys=KEYS, size=SIZE):
    return (g.input(batch, heads, queries, size, dtype=dtype), g.input(batch, heads, keys, size, dtype=dtype),
            g.input(batch, heads, keys, size, dtype=dtype))


def attend(g, x, values, drop=False):
    """SoftMax of the scores, times the values; 16-bit values with f32 scores need a cast."""
    x = softmax(g, x)
    x = dropout(g, x) if drop else x
    x = cast(g, x, values['dtype']) if x['dtype'] != values['dtype'] else x
    return g.op('MatMul', x, values)


# -------------------------------------------------------------------------------------------- scale and masks

@graph(COMPLEX, 'attention')
def _(g):
    q, k, v = (g.input(2, 8, n, 32) for n in (48, 80, 80))
    attend(g, scores(g, q, k, mask='add', mask_shape=[2, 1, 1, 80]), v)


# Queries, keys (and values): one row, one head, long rows, other layouts.
SHAPES = (('1x4x1x32', '1x4x130x32'), ('1x1x70x64', '1x1x70x64'), ('3x2x5x129', '3x2x9x129'),
          ('2x3x33x24*acbd', '2x3x47x24*acbd'))

FORMS = {
    'plain': dict(),
    'no_scale': dict(scale=None),
    'mask': dict(scale='Multiply', mask='add'),
    'mask_per_key': dict(mask='add', mask_shape=[BATCH, 1, 1, KEYS]),
    'select': dict(mask='select', mask_shape=[1, 1, QUERIES, KEYS]),
    'mask_select': dict(mask='add select', mask_shape=[1, 1, QUERIES, KEYS]),
    'causal': dict(mask='causal'),
    'causal_at_end': dict(scale='Multiply', mask='causal_end'),
    'causal_mask': dict(mask='causal add', mask_shape=[BATCH, 1, QUERIES, KEYS]),
    'soft_cap': dict(soft_cap=True),
    'soft_cap_select': dict(soft_cap=True, mask='select'),
}
for form, words in FORMS.items():
    @graph(COMPLEX, f'attention_{form}')
    def _(g, words=words):
        q, k, v = operands(g)
        attend(g, scores(g, q, k, **words), v)
        if words.get('mask', 'causal').startswith('causal') and 'mask_shape' not in words and 'soft_cap' not in words:
            for queries, keys in SHAPES:
                sweep(g, f'--in-shapes={{q}}:{queries}+{{k}}:{keys}+{{v}}:{keys}', q=q, k=k, v=v)

    if form in ('plain', 'mask', 'causal', 'causal_at_end', 'soft_cap', 'select'):
        for narrow in NARROW:
            @graph(COMPLEX, f'attention_{form}_{narrow}_f32', types=())
            def _(g, words=words, narrow=narrow):
                q, k, v = operands(g, narrow)
                attend(g, scores(g, q, k, out='f32', **words), v)


@graph(COMPLEX, 'attention_key_columns')
def _(g):
    """The keys lie transposed in memory already."""
    q, _, v = operands(g, keys=40)
    attend(g, scores(g, q, g.input(BATCH, HEADS, SIZE, 40), transposed=False, mask='add'), v)


@graph(COMPLEX, 'attention_heads_inside')
def _(g):
    """Heads lie next to each other within a row, as projections write them."""
    def shaped(n):
        return g.input(2, 4, n, 16, strides=[n * 64, 16, 64, 1])
    q, k, v = shaped(21), shaped(30), shaped(30)
    move(g, attend(g, scores(g, q, k), v), [0, 2, 1, 3], shape=[2, 21, 64])


@graph(COMPLEX, 'attention_reordered')
def _(g):
    q, k, v = operands(g)
    move(g, attend(g, scores(g, q, k, mask='add'), v), [0, 2, 1, 3])


@graph(COMPLEX, 'attention_one_query', types=('f32',))
def _(g):
    """A step of decoding: one row against a long cache."""
    q, k, v = operands(g, batch=1, heads=4, queries=1, keys=203, size=32)
    attend(g, scores(g, q, k, mask='add', mask_shape=[1, 1, 1, 203]), v)


@graph(COMPLEX, 'attention_one_query_bf16_f32', types=())
def _(g):
    q, k, v = operands(g, 'bf16', batch=1, heads=5, queries=1, keys=77, size=40)
    attend(g, scores(g, q, k, out='f32', mask='add', mask_shape=[1, 1, 1, 77]), v)


@graph(COMPLEX, 'attention_dropout')
def _(g):
    q, k, v = operands(g)
    attend(g, scores(g, q, k, mask='add'), v, drop=True)


@graph(COMPLEX, 'attention_dropout_bf16_f32', types=())
def _(g):
    q, k, v = operands(g, 'bf16')
    attend(g, scores(g, q, k, out='f32', mask='causal'), v, drop=True)


for dtype in ('f32', 'bf16'):
    @graph(COMPLEX, f'attention_statistics_{dtype}', types=())
    def _(g, dtype=dtype):
        """Forward of training: the statistics of SoftMax are a result."""
        q, k, v = operands(g, dtype)
        x = scores(g, q, k, out='f32', mask='add', mask_shape=[1, 1, QUERIES, KEYS])
        x, _ = g.op('SoftMax', x, axis=-1, n_outputs=2, out_dtypes=['f32', 'f32'])
        g.op('MatMul', x if dtype == 'f32' else cast(g, x, dtype), v)


# ---------------------------------------------------------------------------------------------- framework forms

@graph(COMPLEX, 'attention_mask_before_scale')
def _(g):
    q, k, v = operands(g)
    x = select_mask(g, g.op('MatMul', q, k, transpose_b=True), [1, 1, QUERIES, KEYS])
    x = g.op('Add', g.op('Divide', x, g.input(1)), g.input(BATCH, 1, 1, KEYS))
    move(g, attend(g, x, v), [0, 2, 1, 3], shape=[BATCH, QUERIES, HEADS * SIZE])


@graph(COMPLEX, 'attention_probabilities_as_weights')
def _(g):
    """Values times transposed probabilities."""
    q, k, _ = operands(g)
    x = g.op('Add', g.op('Multiply', g.op('MatMul', q, k, transpose_b=True), g.input(1)), g.input(BATCH, 1, 1, KEYS))
    x = move(g, softmax(g, x), [0, 1, 3, 2])
    move(g, g.op('MatMul', g.input(BATCH, HEADS, SIZE, KEYS), x), [0, 3, 1, 2])


def one_key_head(g, mask, to_scores, to_columns):
    """All heads of the queries are columns of one product with the only head of the keys."""
    x = g.op('MatMul', g.input(2, 30, 16), g.input(2, 16, 4 * 21))
    x = g.op('StaticTranspose', reshape(g, x, 2, 30, 4, 21), order=to_scores)
    x = softmax(g, g.op('Add', x, g.input(*mask)))
    x = reshape(g, g.op('StaticTranspose', x, order=to_columns), 2, 30, 84)
    g.op('MatMul', g.input(2, 16, 30), x)


@graph(COMPLEX, 'attention_one_key_head')
def _(g):
    one_key_head(g, [2, 1, 21, 30], [0, 2, 3, 1], [0, 3, 1, 2])


@graph(COMPLEX, 'attention_one_key_head_by_query')
def _(g):
    """Weights sum to 1 over the queries of a head, for each key."""
    one_key_head(g, [2, 4, 30, 21], [0, 2, 1, 3], [0, 2, 1, 3])


@graph(COMPLEX, 'attention_over_queries')
def _(g):
    """Transposed weights times values: a sum over queries, whose weights sum to 1 over the keys."""
    q, k, _ = operands(g)
    x = softmax(g, g.op('Multiply', g.op('MatMul', q, k, transpose_b=True), g.input(1)))
    g.op('MatMul', x, g.input(BATCH, HEADS, QUERIES, SIZE), transpose_a=True)


# --------------------------------------------------------------------------------------------- grouped queries

@graph(COMPLEX, 'attention_grouped')
def _(g):
    q, k, v = g.input(2, 2, 3, 19, 16), g.input(2, 2, 1, 27, 16), g.input(2, 2, 1, 27, 16)
    attend(g, scores(g, q, k, mask='add', mask_shape=[2, 1, 1, 1, 27]), v)


@graph(COMPLEX, 'attention_grouped_causal')
def _(g):
    q, k, v = g.input(1, 2, 4, 22, 16), g.input(1, 2, 1, 22, 16), g.input(1, 2, 1, 22, 16)
    attend(g, scores(g, q, k, mask='causal'), v)


@graph(COMPLEX, 'attention_grouped_reshaped')
def _(g):
    q = reshape(g, g.input(2, 6, 19, 16), 2, 2, 3, 19, 16)
    k, v = (reshape(g, g.input(2, 2, 27, 16), 2, 2, 1, 27, 16) for _ in range(2))
    x = g.op('Divide', g.op('MatMul', q, k, transpose_b=True), g.input(1))
    x = g.op('Add', x, reshape(g, g.input(2, 1, 19, 27), 2, 1, 1, 19, 27))
    reshape(g, attend(g, x, v), 2, 6, 19, 16)


@graph(COMPLEX, 'attention_grouped_reshaped_select_dropout')
def _(g):
    q = reshape(g, g.input(1, 4, 13, 16), 1, 2, 2, 13, 16)
    k, v = (reshape(g, g.input(1, 2, 18, 16), 1, 2, 1, 18, 16) for _ in range(2))
    x = scores(g, q, k, 'Multiply', mask='select', mask_shape=[1, 1, 1, 13, 18])
    reshape(g, attend(g, x, v, drop=True), 1, 4, 13, 16)


@graph(COMPLEX, 'attention_grouped_reshaped_bf16', types=())
def _(g):
    q = reshape(g, g.input(1, 8, 15, 32, dtype='bf16'), 1, 2, 4, 15, 32)
    k, v = (reshape(g, g.input(1, 2, 31, 32, dtype='bf16'), 1, 2, 1, 31, 32) for _ in range(2))
    x = reshape(g, attend(g, scores(g, q, k, 'Multiply', out='f32'), v), 1, 8, 15, 32)
    move(g, x, [0, 2, 1, 3], shape=[1, 15, 256])


# ------------------------------------------------------------------------------------------------------ training

def backward(g, dtype='f32', words=None, drop=False, expose=False, grouped=False, divide=False):
    """The gradients of queries, keys and values from the stored statistics."""
    heads = [BATCH, 2, 3] if grouped else [BATCH, HEADS]
    kv_heads = [BATCH, 2, 1] if grouped else heads
    q, out, gradient = (g.input(*heads, QUERIES, SIZE, dtype=dtype) for _ in range(3))
    k, v = (g.input(*kv_heads, KEYS, SIZE, dtype=dtype) for _ in range(2))
    drops = (g.host_scalar('s64'), g.host_scalar('s64'), g.host_scalar()) if drop else None

    def narrow(x):
        return x if dtype == 'f32' else cast(g, x, dtype)

    def summed(x):
        return g.op('ReduceSum', x, axes=[2], keep_dims=True) if grouped else x

    x = scores(g, q, k, out='f32', **(words or {}))
    p = g.op('Exp', g.op('Subtract', x, g.input(*heads, QUERIES, 1)))
    dropped = g.op('Dropout', p, *drops) if drop else p
    summed(g.op('MatMul', narrow(dropped), gradient, transpose_a=True))
    dp = g.op('MatMul', gradient, v, dtype='f32', transpose_b=True)
    dp = g.op('Dropout', dp, *drops) if drop else dp
    product = g.op('Multiply', out, gradient, dtype='f32')
    ds = g.op('Multiply', p, g.op('Subtract', dp, g.op('ReduceSum', product, axes=[-1], keep_dims=True)))
    if expose:
        g.op('End', ds, n_outputs=0)
    ds = narrow(g.op('Divide' if divide else 'Multiply', ds, g.input(1)))
    g.op('MatMul', ds, k)
    summed(g.op('MatMul', ds, q, transpose_a=True))


BACKWARD = {
    'plain': dict(),
    'divided': dict(divide=True),
    'mask': dict(words=dict(mask='add', mask_shape=[BATCH, 1, 1, KEYS])),
    'causal': dict(words=dict(mask='causal')),
    'dropout': dict(drop=True),
    'mask_gradient': dict(words=dict(mask='add'), expose=True),
    'grouped': dict(grouped=True),
}
for form, words in BACKWARD.items():
    for dtype in ('f32', 'bf16', 'f16'):
        @graph(COMPLEX, f'attention_backward_{form}_{dtype}', types=(),  
               ci=dtype != 'f16')
        def _(g, words=words, dtype=dtype):
            backward(g, dtype, **words)


# ----------------------------------------------------------------------------------------------------- quantised

def quantized_attention(g, dtype, scale, words, tail=None, mixed=None, keys=KEYS):
    """Integer or f8 operands and probabilities; `mixed`: computed in this type."""
    def operand(*shape, scale=scale):
        x = dequantize(g, g.input(*shape, dtype=dtype), scale, 32 if dtype == 'u8' else 0)
        return cast(g, x, mixed) if mixed else x
    heads = BATCH, HEADS
    x = scores(g, operand(*heads, QUERIES, SIZE), operand(*heads, keys, SIZE), **words)
    x = softmax(g, x)
    x = cast(g, x, 'f32') if mixed else x
    unit = 1 / 16 if dtype.startswith('f8') else 1 / 256
    x = dequantize(g, quantize(g, x, dtype, unit), unit)
    x = cast(g, x, mixed) if mixed else x
    x = g.op('MatMul', x, operand(*heads, keys, SIZE))
    x = move(g, x, [0, 2, 1, 3], tail) if tail else x
    quantize(g, cast(g, x, 'f32') if mixed else x, dtype, scale, 32 if dtype == 'u8' else 0)


JOINED = [BATCH, QUERIES, HEADS * SIZE]
for dtype, scale in (('u8', 1 / 16), ('s8', 1 / 16), ('f8_e4m3', 1.0), ('f8_e5m2', 1.0)):
    @graph(COMPLEX, f'attention_{dtype}', types=())
    def _(g, dtype=dtype, scale=scale):
        quantized_attention(g, dtype, scale, dict(mask='add', mask_shape=[BATCH, 1, 1, KEYS]), JOINED)

    @graph(COMPLEX, f'attention_{dtype}_plain', types=())
    def _(g, dtype=dtype, scale=scale):
        quantized_attention(g, dtype, scale, dict(scale=None))


@graph(COMPLEX, 'attention_s8_select', types=())
def _(g):
    quantized_attention(g, 's8', 1 / 16, dict(mask='add select', mask_shape=[1, 1, QUERIES, KEYS]), JOINED)


@graph(COMPLEX, 'attention_s8_mask_before_scale', types=())
def _(g):
    heads = BATCH, HEADS
    q, k, v = (dequantize(g, g.input(*heads, n, SIZE, dtype='s8')) for n in (QUERIES, KEYS, KEYS))
    x = select_mask(g, g.op('MatMul', q, k, transpose_b=True), [1, 1, QUERIES, KEYS])
    x = softmax(g, g.op('Add', g.op('Divide', x, g.input(1)), g.input(BATCH, 1, 1, KEYS)))
    x = g.op('MatMul', dequantize(g, quantize(g, x, 'u8', 1 / 256), 1 / 256), v)
    quantize(g, move(g, x, [0, 2, 1, 3], JOINED), 's8')


@graph(COMPLEX, 'attention_u8_bf16', types=())
def _(g):
    quantized_attention(g, 'u8', 1 / 64, dict(mask='add'), JOINED, 'bf16', keys=9)


# ------------------------------------------------------------------------------------- compressed keys and values

def compressed_attention(g, keys, values, dtype='f16', zp=True, words=None, zp_dtype=None):
    """Keys and values of few bits with scales for groups along the head size; None = not compressed."""
    heads, size, length = (1, 4), 32, 45
    q = g.input(*heads, 7, size, dtype=dtype)

    def operand(kind):
        if not kind:
            return g.input(*heads, length, size, dtype=dtype)
        return compressed(g, *heads, length, size, groups=(1, 1, 1, 16), dtype=kind, out=dtype, zp=zp,
                          zp_dtype=zp_dtype)
    x = softmax(g, scores(g, q, operand(keys), out='f32' if dtype == 'bf16' else None, **(words or {})), dtype)
    g.op('MatMul', x, operand(values))


MASKED = dict(mask='add', mask_shape=[1, 1, 7, 45])
COMPRESSED = {
    'keys_s8': ('s8', None, dict(words=MASKED)),
    'values_s8': (None, 's8', dict(words=MASKED)),
    'both_s8': ('s8', 's8', dict(words=MASKED)),
    'both_u8': ('u8', 'u8', dict()),
    'both_s4': ('s4', 's4', dict(zp=False, words=MASKED)),
    'both_u4': ('u4', 'u4', dict(words=dict(mask='causal'))),
    'both_s8_s32_points': ('s8', 's8', dict(zp_dtype='s32')),
    'both_s8_bf16': ('s8', 's8', dict(dtype='bf16', words=MASKED)),
    'both_u8_f32': ('u8', 'u8', dict(dtype='f32', words=MASKED)),
}
for form, (keys, values, words) in COMPRESSED.items():
    @graph(COMPLEX, f'attention_compressed_{form}', types=(), apply_to_int=True,
           fpmath_mode='strict' if words.get('dtype') == 'f32' else words.get('dtype', 'f16'))
    def _(g, keys=keys, values=values, words=words):
        compressed_attention(g, keys, values, **words)
