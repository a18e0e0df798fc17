/* What the instructions of pointwise programs compute, for vec.h's vectors: one expression per opcode, loop_NAME_of().
 * loops.isa.c makes the loops of them. */
#ifndef GB_KERNELS_POINTWISE_POINTWISE_EXPRESSIONS_H
#define GB_KERNELS_POINTWISE_POINTWISE_EXPRESSIONS_H

#include "kernels/isa/vec_math.h"
#include "kernels/pointwise/pointwise_put.h"

/* Bytes: where memory sets the pace, what will be read is asked for so far ahead. */
enum { FETCH_AHEAD = 4096 };

typedef struct tile_register {
    float *data;
    int64_t row; /* strides; col is 0 or 1 */
    int32_t col;
    bool far; /* comes from memory */
} tile_register;

/* What one instruction works on. */
typedef struct tile_call {
    int64_t rows, cols;
    float *dst;
    int64_t dst_row;
    tile_register a, b, c;
    float alpha, beta;
    gb_data_type type;
    bool streamed; /* dst goes past the caches */
} tile_call;

typedef void tile_loop_fn(const tile_call *call);

/* VLEN (or n) lanes of a register's row from column c on. */
GB_INLINE vf lanes(const float *row, int64_t col, int64_t c)
{
    return col ? vf_load(row + c) : vf_set1(*row);
}
GB_INLINE vf lanes_n(const float *row, int64_t col, int64_t c, int64_t n)
{
    return col ? vf_load_n(row + c, n) : vf_set1(*row);
}

GB_INLINE bool streams_to(const tile_call *call, const float *dst)
{
    return call->streamed && (uintptr_t)dst % sizeof(vf) == 0;
}

GB_INLINE void put(float *dst, vf v, bool streamed)
{
    if (streamed)
        vf_stream(dst, v);
    else
        vf_store(dst, v);
}

GB_INLINE void fetch_both(const void *a, const void *b)
{
    gb_prefetch((const char *)a + FETCH_AHEAD);
    gb_prefetch((const char *)b + FETCH_AHEAD);
}

#if !defined(UNARY_LOOPS)
#define UNARY_LOOPS(name)
#define BINARY_LOOPS(name)
#endif

/* Named as in kernels/plan/pointwise_opcodes.def. */
#define UNARY(name, expression)                                                                    \
    GB_INLINE vf loop_##name##_of(vf x, vf alpha, vf beta, const tile_call *call)                  \
    {                                                                                              \
        (void)alpha, (void)beta, (void)call;                                                       \
        return expression;                                                                         \
    }                                                                                              \
    UNARY_LOOPS(name)

#define BINARY(name, expression)                                                                   \
    GB_INLINE vf loop_##name##_of(vf x, vf y, vf alpha, vf beta)                                   \
    {                                                                                              \
        (void)alpha, (void)beta;                                                                   \
        return expression;                                                                         \
    }                                                                                              \
    BINARY_LOOPS(name)

#define ZERO        vf_zero()
#define ONE         vf_set1(1.0F)
#define MUL(a, b)   vf_mul(a, b)
#define POSITIVE(x) vf_gt(x, ZERO)

GB_INLINE vf round_to(vf x, gb_data_type type)
{
    switch (type) {
    case GB_BF16:
        return gb_bf16_decode(gb_bf16_encode(x));
    case GB_F16:
        return gb_f16_decode(gb_f16_encode(x));
    case GB_F8_E5M2:
        return gb_f8_e5m2_decode(gb_f8_e5m2_encode(x));
    case GB_F8_E4M3:
        return gb_f8_e4m3_decode(gb_f8_e4m3_encode(x));
    case GB_S8:
        return gb_s8_decode(gb_s8_encode(x));
    case GB_U8:
        return gb_u8_decode(gb_u8_encode(x));
    default:
        return x;
    }
}
GB_INLINE vf unit_clamp(vf x)
{
    return vf_min(ONE, vf_max(ZERO, x));
}
/* x / 6 + 1 / 2, limited to 0 .. 1 */
GB_INLINE vf hard_swish_slope(vf x)
{
    return gb_div_finite(gb_clamp(vf_add(x, vf_set1(3.0F)), 0.0F, 6.0F), 6.0F);
}

UNARY(round, round_to(x, call->type))
UNARY(abs, vf_abs(x))
UNARY(clamp, vf_min(beta, vf_max(alpha, x)))
UNARY(div_known, vf_div_known(x, beta, alpha))
UNARY(elu, vf_select(POSITIVE(x), x, MUL(alpha, vf_expm1(x))))
UNARY(exp, vf_exp(x))
UNARY(gelu_erf, vf_gelu_erf(x))
UNARY(gelu_tanh, vf_gelu_tanh(x))
UNARY(hardsigmoid, unit_clamp(vf_fma(alpha, x, beta)))
UNARY(hardswish, MUL(x, hard_swish_slope(x)))
UNARY(leaky_relu, vf_select(POSITIVE(x), x, MUL(alpha, x)))
UNARY(log, vf_log(x))
UNARY(mish, vf_mish(x))
UNARY(pow, vf_pow(x, call->beta))
UNARY(reciprocal, vf_div(ONE, x))
UNARY(relu, vf_max(ZERO, x))
UNARY(round_even, vf_round(x))
UNARY(sigmoid, vf_sigmoid(x))
UNARY(softplus, call->beta == 1 ? vf_softplus(x) : vf_div(vf_softplus(MUL(beta, x)), beta))
UNARY(sqrt, vf_sqrt(x))
UNARY(square, MUL(x, x))
UNARY(swish, MUL(x, vf_sigmoid(x)))
UNARY(tanh, vf_tanh(x))
UNARY(from_s32, vf_from_vi(vf_bits(x)))
UNARY(to_s32, vi_as_vf(gb_s32_encode(x)))

GB_INLINE vf squared(vf x)
{
    return MUL(x, x);
}

BINARY(add, vf_add(x, y))
BINARY(sub, vf_sub(x, y))
BINARY(mul, MUL(x, y))
BINARY(div, vf_div(x, y))
BINARY(max, vf_max(x, y))
BINARY(min, vf_min(x, y))
BINARY(squared_difference, squared(vf_sub(x, y)))
BINARY(greater_equal, vf_select(vf_ge(x, y), ONE, ZERO))
BINARY(prelu, vf_select(POSITIVE(x), x, MUL(x, y)))

/* Sums that leave the range have the sign of x. */
GB_INLINE vf saturated(vi x, vi sum, vi overflow)
{
    vi limit = vi_xor(vi_shr(x, 31), vi_set1(INT32_MAX));
    return vi_as_vf(vi_select(vi_gt(vi_set1(0), overflow), limit, sum));
}
GB_INLINE vf add_saturated(vi x, vi y)
{
    vi sum = vi_add(x, y);
    return saturated(x, sum, vi_and(vi_xor(x, sum), vi_xor(y, sum)));
}
GB_INLINE vf sub_saturated(vi x, vi y)
{
    vi difference = vi_sub(x, y);
    return saturated(x, difference, vi_and(vi_xor(x, y), vi_xor(x, difference)));
}

BINARY(add_s32, add_saturated(vf_bits(x), vf_bits(y)))
BINARY(sub_s32, sub_saturated(vf_bits(x), vf_bits(y)))
BINARY(greater_equal_s32, vf_select(vi_gt(vf_bits(y), vf_bits(x)), ZERO, ONE))

/* Gradients: x = src or dst, y = diff_dst. */
GB_INLINE vm between(vf x, vf low, vf high)
{
    return vm_and(vf_gt(x, low), vf_lt(x, high));
}
GB_INLINE vf elu_slope(vf x, vf alpha)
{
    return vf_select(POSITIVE(x), ONE, MUL(alpha, vf_exp(x)));
}
GB_INLINE vf hardswish_backward_of_src(vf x, vf g)
{
    vf inner = MUL(g, vf_add(gb_div_finite(x, 3.0F), vf_set1(0.5F)));
    inner = vf_select(vf_le(x, vf_set1(-3.0F)), ZERO, inner);
    return vf_select(vf_ge(x, vf_set1(3.0F)), g, inner);
}
/* s (1 - s) with s = sigmoid(x) = 1 / (1 + e^-x), from e^-|x|: both factors without cancellation.
 */
GB_INLINE vf sigmoid_slope(vf x)
{
    vf e = vf_exp(vf_neg(vf_abs(x))), sum = vf_add(ONE, e);
    return vf_div(e, MUL(sum, sum));
}
/* 1 - tanh(x)^2 = 4 s (1 - s) with s = sigmoid(2 x). */
GB_INLINE vf tanh_slope(vf x)
{
    return MUL(vf_set1(4.0F), sigmoid_slope(vf_add(x, x)));
}

BINARY(abs_backward, vf_select(POSITIVE(x), y, vf_select(vf_lt(x, ZERO), vf_neg(y), ZERO)))
BINARY(clamp_backward, vf_select(between(x, alpha, beta), y, ZERO))
BINARY(elu_backward, MUL(y, elu_slope(x, alpha)))
BINARY(elu_backward_dst, MUL(y, vf_select(POSITIVE(x), ONE, vf_add(x, alpha))))
BINARY(gelu_erf_backward, MUL(y, vf_gelu_erf_slope(x)))
BINARY(gelu_tanh_backward, MUL(y, vf_gelu_tanh_slope(x)))
BINARY(hardsigmoid_backward,
        vf_select(between(vf_fma(alpha, x, beta), ZERO, ONE), MUL(y, alpha), ZERO))
BINARY(hardswish_backward, hardswish_backward_of_src(x, y))
BINARY(mish_backward, MUL(y, vf_mish_slope(x)))
BINARY(relu_backward, vf_select(POSITIVE(x), y, ZERO))
BINARY(sigmoid_backward, MUL(y, sigmoid_slope(x)))
BINARY(sigmoid_backward_dst, MUL(MUL(y, x), vf_sub(ONE, x)))
BINARY(softplus_backward, MUL(y, vf_sigmoid(MUL(beta, x))))
BINARY(sqrt_backward, vf_div(y, MUL(vf_set1(2.0F), vf_sqrt(x))))
BINARY(sqrt_backward_dst, vf_div(y, MUL(vf_set1(2.0F), x)))
BINARY(tanh_backward, MUL(y, tanh_slope(x)))
BINARY(tanh_backward_dst, MUL(MUL(y, vf_sub(ONE, x)), vf_add(ONE, x)))

typedef struct tile_op {
    tile_loop_fn *loop;
    int n_sources;
    tile_loop_fn *bf16, *f16; /* on these types in memory, or NULL */
} tile_op;

/* By opcode. */
extern const tile_op GB_ISA_NAME(tile_ops)[GB_POINTWISE_OPCODES];
#define TILE_OPS GB_ISA_NAME(tile_ops)

#undef UNARY
#undef BINARY
#undef UNARY_LOOPS
#undef BINARY_LOOPS
#undef ZERO
#undef ONE
#undef MUL
#undef POSITIVE

#endif
