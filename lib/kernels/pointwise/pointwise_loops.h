/* The loops of pointwise programs: one per op code, for vec.h's vectors. */
#ifndef GB_KERNELS_POINTWISE_POINTWISE_LOOPS_H
#define GB_KERNELS_POINTWISE_POINTWISE_LOOPS_H

#include "kernels/isa/vec_math.h"
#include "kernels/pointwise/pointwise_load_store.h"

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

/* Where it converts 16-bit types itself, an instruction on them has a loop of its own, without registers in
 * memory. Its strides are in elements of the type. */
#if defined(GB_VEC_HAS_BF16)
#define UNARY_16(name, type)                                                                       \
    static void loop_##name##_##type(const tile_call *call)                                        \
    {                                                                                              \
        const tile_call t = *call; /* stores of vectors may alias *call */                         \
        vf alpha = vf_set1(t.alpha), beta = vf_set1(t.beta);                                       \
        for (int64_t r = 0; r < t.rows; r++) {                                                     \
            const uint16_t *a = (const uint16_t *)(const void *)t.a.data + r * t.a.row;            \
            uint16_t *dst = (uint16_t *)(void *)t.dst + r * t.dst_row;                             \
            bool streamed = t.streamed && (uintptr_t)dst % (VLEN * sizeof *dst) == 0;              \
            int64_t c = 0, rest;                                                                   \
            for (; c + VLEN <= t.cols; c += VLEN)                                                  \
                put_##type(dst + c, loop_##name##_of(vf_load_##type(a + c), alpha, beta, &t),      \
                        streamed);                                                                 \
            if ((rest = t.cols - c) == 0)                                                          \
                continue;                                                                          \
            vf x = vf_load_##type##_n(a + c, rest);                                                \
            vf_store_##type##_n(dst + c, loop_##name##_of(x, alpha, beta, &t), rest);              \
        }                                                                                          \
    }
#define BINARY_16(name, type)                                                                      \
    static void loop_##name##_##type(const tile_call *call)                                        \
    {                                                                                              \
        const tile_call t = *call; /* stores of vectors may alias *call */                         \
        vf alpha = vf_set1(t.alpha), beta = vf_set1(t.beta);                                       \
        const bool far = t.a.far && t.b.far;                                                       \
        for (int64_t r = 0; r < t.rows; r++) {                                                     \
            const uint16_t *a = (const uint16_t *)(const void *)t.a.data + r * t.a.row;            \
            const uint16_t *b = (const uint16_t *)(const void *)t.b.data + r * t.b.row;            \
            uint16_t *dst = (uint16_t *)(void *)t.dst + r * t.dst_row;                             \
            bool streamed = t.streamed && (uintptr_t)dst % (VLEN * sizeof *dst) == 0;              \
            int64_t c = 0, rest;                                                                   \
            for (; c + VLEN <= t.cols; c += VLEN) {                                                \
                if (far)                                                                           \
                    fetch_both(a + c, b + c);                                                      \
                vf x = vf_load_##type(a + c), y = vf_load_##type(b + c);                           \
                put_##type(dst + c, loop_##name##_of(x, y, alpha, beta), streamed);                \
            }                                                                                      \
            if ((rest = t.cols - c) == 0)                                                          \
                continue;                                                                          \
            vf x = vf_load_##type##_n(a + c, rest), y = vf_load_##type##_n(b + c, rest);           \
            vf_store_##type##_n(dst + c, loop_##name##_of(x, y, alpha, beta), rest);               \
        }                                                                                          \
    }
#define LOOPS_16(name)   .bf16 = loop_##name##_bf16, .f16 = loop_##name##_f16
#define loop_select_bf16 NULL /* the condition is of another type */
#define loop_select_f16  NULL
#else
#define UNARY_16(name, type)
#define BINARY_16(name, type)
#define LOOPS_16(name) .bf16 = NULL, .f16 = NULL
#endif

/* Loops are named as in kernels/plan/pointwise_opcodes.def. */
#define UNARY(name, expression)                                                                    \
    GB_INLINE vf loop_##name##_of(vf x, vf alpha, vf beta, const tile_call *call)                  \
    {                                                                                              \
        (void)alpha, (void)beta, (void)call;                                                       \
        return expression;                                                                         \
    }                                                                                              \
    static void loop_##name(const tile_call *call)                                                 \
    {                                                                                              \
        const tile_call t = *call; /* stores of vectors may alias *call */                         \
        vf alpha = vf_set1(t.alpha), beta = vf_set1(t.beta);                                       \
        for (int64_t r = 0; r < t.rows; r++) {                                                     \
            const float *a = t.a.data + r * t.a.row;                                               \
            float *dst = t.dst + r * t.dst_row;                                                    \
            bool streamed = streams_to(&t, dst);                                                   \
            int64_t c = 0, rest;                                                                   \
            for (; c + VLEN <= t.cols; c += VLEN)                                                  \
                put(dst + c, loop_##name##_of(vf_load(a + c), alpha, beta, &t), streamed);         \
            if ((rest = t.cols - c) == 0)                                                          \
                continue;                                                                          \
            vf_store_n(dst + c, loop_##name##_of(vf_load_n(a + c, rest), alpha, beta, &t), rest);  \
        }                                                                                          \
    }                                                                                              \
    UNARY_16(name, bf16)                                                                           \
    UNARY_16(name, f16)

#define BINARY(name, expression)                                                                   \
    GB_INLINE vf loop_##name##_of(vf x, vf y, vf alpha, vf beta)                                   \
    {                                                                                              \
        (void)alpha, (void)beta;                                                                   \
        return expression;                                                                         \
    }                                                                                              \
    static void loop_##name(const tile_call *call)                                                 \
    {                                                                                              \
        const tile_call t = *call; /* stores of vectors may alias *call */                         \
        vf alpha = vf_set1(t.alpha), beta = vf_set1(t.beta);                                       \
        int64_t a_col = t.a.col, b_col = t.b.col;                                                  \
        const bool far = t.a.far && t.b.far; /* one stream the processor follows by itself */      \
        for (int64_t r = 0; r < t.rows; r++) {                                                     \
            const float *a = t.a.data + r * t.a.row;                                               \
            const float *b = t.b.data + r * t.b.row;                                               \
            float *dst = t.dst + r * t.dst_row;                                                    \
            bool streamed = streams_to(&t, dst);                                                   \
            int64_t c = 0, rest;                                                                   \
            for (; c + VLEN <= t.cols; c += VLEN) {                                                \
                if (far)                                                                           \
                    fetch_both(a + c, b + c);                                                      \
                vf x = lanes(a, a_col, c), y = lanes(b, b_col, c);                                 \
                put(dst + c, loop_##name##_of(x, y, alpha, beta), streamed);                       \
            }                                                                                      \
            if ((rest = t.cols - c) == 0)                                                          \
                continue;                                                                          \
            vf x = lanes_n(a, a_col, c, rest), y = lanes_n(b, b_col, c, rest);                     \
            vf_store_n(dst + c, loop_##name##_of(x, y, alpha, beta), rest);                        \
        }                                                                                          \
    }                                                                                              \
    BINARY_16(name, bf16)                                                                          \
    BINARY_16(name, f16)

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
/* x / 6 + 1 / 2 */
GB_INLINE vf hard_swish_slope(vf x)
{
    return vf_div(vf_add(x, vf_set1(3.0F)), vf_set1(6.0F));
}
GB_INLINE vf unit_clamp(vf x)
{
    return vf_min(ONE, vf_max(ZERO, x));
}

UNARY(round, round_to(x, call->type))
UNARY(abs, vf_abs(x))
UNARY(clamp, vf_min(beta, vf_max(alpha, x)))
UNARY(elu, vf_select(POSITIVE(x), x, MUL(alpha, vf_expm1(x))))
UNARY(exp, vf_exp(x))
UNARY(gelu_erf, vf_gelu_erf(x))
UNARY(gelu_tanh, vf_gelu_tanh(x))
UNARY(hardsigmoid, unit_clamp(vf_fma(alpha, x, beta)))
UNARY(hardswish, MUL(x, unit_clamp(hard_swish_slope(x))))
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
    vf inner = MUL(g, vf_add(vf_div(x, vf_set1(3.0F)), vf_set1(0.5F)));
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

static void loop_select(const tile_call *call)
{
    const tile_call t = *call;
    for (int64_t r = 0; r < t.rows; r++) {
        const float *a = t.a.data + r * t.a.row, *b = t.b.data + r * t.b.row;
        const float *otherwise = t.c.data + r * t.c.row;
        float *dst = t.dst + r * t.dst_row;
        bool streamed = streams_to(&t, dst);
        int64_t c = 0, rest;
        for (; c + VLEN <= t.cols; c += VLEN) {
            vm chosen = vf_ne(lanes(a, t.a.col, c), ZERO);
            vf y = lanes(b, t.b.col, c), z = lanes(otherwise, t.c.col, c);
            put(dst + c, vf_select(chosen, y, z), streamed);
        }
        if ((rest = t.cols - c) == 0)
            continue;
        vm chosen = vf_ne(lanes_n(a, t.a.col, c, rest), ZERO);
        vf y = lanes_n(b, t.b.col, c, rest), z = lanes_n(otherwise, t.c.col, c, rest);
        vf_store_n(dst + c, vf_select(chosen, y, z), rest);
    }
}

typedef struct tile_op {
    tile_loop_fn *loop;
    int n_sources;
    tile_loop_fn *bf16, *f16; /* on these types in memory, or NULL */
} tile_op;

static const tile_op ops[GB_POINTWISE_OPCODES] = {
#define GB_POINTWISE_ARITHMETIC(enumerator, name, sources, parameters)                             \
    [GB_POINTWISE_##enumerator] = {loop_##name, sources, LOOPS_16(name)},
#include "kernels/plan/pointwise_opcodes.def"
};

#undef UNARY
#undef BINARY
#undef UNARY_16
#undef BINARY_16
#undef LOOPS_16
#undef loop_select_bf16
#undef loop_select_f16
#undef ZERO
#undef ONE
#undef MUL
#undef POSITIVE

#endif
