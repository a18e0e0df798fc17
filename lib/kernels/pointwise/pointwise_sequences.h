/* Loops that take a sequence of up to four steps of a chain at once, with nothing to look up between vectors. A chain
 * that looks up each step for every few vectors takes up to 1.7 times as long, from whichever cache its operands
 * come. pointwise_sequences.def lists those that have a loop; longer ones are taken in parts.
 */
#ifndef GB_KERNELS_POINTWISE_POINTWISE_SEQUENCES_H
#define GB_KERNELS_POINTWISE_POINTWISE_SEQUENCES_H

#include "kernels/pointwise/pointwise_expressions.h"

enum { SEQUENCE_STEPS = 4 };
/* Vectors that are in registers at once. */
enum { SEQUENCE_VECTORS = 4, SEQUENCE_LANES = SEQUENCE_VECTORS * VLEN };

typedef struct sequence_operand {
    const float *data;
    int64_t row;  /* stride */
    int64_t mask; /* 0: one element for all columns; -1 */
    float *equal; /* where it is one element: SEQUENCE_LANES of them, here made for each row if rows differ */
    bool far; /* from memory: fetched ahead */
} sequence_operand;

typedef struct sequence_call {
    int64_t rows, cols;
    const char *src;
    char *dst;
    int64_t src_row, dst_row; /* in bytes */
    bool far;                 /* src or some other operand is */
    bool src_far;
    bool streamed; /* each row of dst is aligned to a vector, and goes past the caches */
    float alpha[SEQUENCE_STEPS], beta[SEQUENCE_STEPS];
    sequence_operand others[SEQUENCE_STEPS]; /* the other source of each step */
} sequence_call;

typedef void sequence_loop_fn(const sequence_call *call);

#define UNARY_STEP(enumerator, name)                                                               \
    case GB_POINTWISE_##enumerator:                                                                \
        return loop_##name##_of(x, alpha, beta, NULL);
#define BINARY_STEP(enumerator, name)                                                              \
    case GB_POINTWISE_##enumerator:                                                                \
        return loop_##name##_of(x, y, alpha, beta);

enum { GB_POINTWISE_NONE = GB_POINTWISE_OPCODES };

/* `opcode` is known to the compiler; GB_POINTWISE_NONE leaves x as it is. */
GB_INLINE vf sequence_step(const int opcode, vf x, vf y, vf alpha, vf beta)
{
    switch (opcode) {
        UNARY_STEP(ABS, abs)
        UNARY_STEP(CLAMP, clamp)
        UNARY_STEP(DIV_KNOWN, div_known)
        UNARY_STEP(HARDSWISH, hardswish)
        UNARY_STEP(LEAKY_RELU, leaky_relu)
        UNARY_STEP(RELU, relu)
        UNARY_STEP(ROUND_EVEN, round_even)
        UNARY_STEP(SQUARE, square)
        BINARY_STEP(ADD, add)
        BINARY_STEP(SUB, sub)
        BINARY_STEP(MUL, mul)
        BINARY_STEP(DIV, div)
        BINARY_STEP(MAX, max)
        BINARY_STEP(MIN, min)
        BINARY_STEP(PRELU, prelu)
        BINARY_STEP(RELU_BACKWARD, relu_backward)
        BINARY_STEP(GREATER_EQUAL, greater_equal)
    default:
        return x;
    }
}
#undef UNARY_STEP
#undef BINARY_STEP

#define EACH_VECTOR _Pragma("GCC unroll 4") for (int v = 0; v < SEQUENCE_VECTORS; v++)
#define EACH_STEP   _Pragma("GCC unroll 4") for (int i = 0; i < SEQUENCE_STEPS; i++)

GB_INLINE void sequence_repeat(float *equal, float element)
{
    const vf all = vf_set1(element);
    EACH_VECTOR vf_store(equal + v * VLEN, all);
}

GB_INLINE void sequence_fetch(const void *data, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += GB_CACHE_LINE)
        gb_prefetch((const char *)data + FETCH_AHEAD + at);
}

#define LOAD_AS(enumerator, name)                                                                  \
    case enumerator:                                                                               \
        return n == VLEN ? vf_load_##name(p) : vf_load_##name##_n(p, n);
GB_INLINE vf sequence_load(const gb_data_type type, const char *p, int64_t n)
{
    switch (type) {
        LOAD_AS(GB_S8, s8)
        LOAD_AS(GB_U8, u8)
    default:
        LOAD_AS(GB_F32, f32)
    }
}
#undef LOAD_AS

#define STORE_AS(enumerator, name)                                                                 \
    case enumerator:                                                                               \
        if (n == VLEN)                                                                             \
            put_##name(p, x, streamed);                                                            \
        else                                                                                       \
            vf_store_##name##_n(p, x, n);                                                          \
        break;
GB_INLINE void sequence_store(const gb_data_type type, char *p, vf x, int64_t n, bool streamed)
{
    switch (type) {
        STORE_AS(GB_S8, s8)
        STORE_AS(GB_U8, u8)
        STORE_AS(GB_BOOLEAN, boolean)
    default:
        STORE_AS(GB_F32, f32)
    }
}
#undef STORE_AS

GB_INLINE void sequence_store_all(
        const gb_data_type type, char *p, int64_t bytes, const vf *x, bool streamed)
{
#if defined(GB_VEC_HAS_FOURS)
    if (type == GB_S8)
        vf_store_four_s8(p, x, streamed);
    else if (type == GB_U8 || type == GB_BOOLEAN) /* loops make no others than 0 and 1 of these */
        vf_store_four_u8(p, x, streamed);
    if (type != GB_F32)
        return;
#endif
    EACH_VECTOR sequence_store(type, p + v * VLEN * bytes, x[v], VLEN, streamed);
}

/* Fields are read one by one: a whole call that is copied right after it was written waits for its parts. */
GB_INLINE void sequence_loop(const sequence_call *call, const gb_data_type src_type,
        const gb_data_type dst_type, const int a, const int b, const int c, const int d)
{
    const int opcodes[] = {a, b, c, d};
    const int64_t src_bytes = src_type == GB_F32 ? 4 : 1, dst_bytes = dst_type == GB_F32 ? 4 : 1;
    vf alpha[SEQUENCE_STEPS], beta[SEQUENCE_STEPS];
    int64_t mask[SEQUENCE_STEPS];
    const int64_t cols = call->cols;
    const bool far = call->far, streamed = call->streamed;
    EACH_STEP alpha[i] = vf_set1(call->alpha[i]);
    EACH_STEP beta[i] = vf_set1(call->beta[i]);
    EACH_STEP mask[i] = call->others[i].mask;
#define STEPS_OF(x, load)                                                                          \
    EACH_STEP if (opcodes[i] != GB_POINTWISE_NONE)                                                 \
    {                                                                                              \
        const float *y = others[i] + (at & mask[i]);                                               \
        x = sequence_step(opcodes[i], x, load, alpha[i], beta[i]);                                 \
    }
    for (int64_t r = 0; r < call->rows; r++) {
        const char *src = call->src + r * call->src_row;
        const float *others[SEQUENCE_STEPS] = {NULL, NULL, NULL, NULL};
        char *dst = call->dst + r * call->dst_row;
        int64_t at = 0;
        EACH_STEP if (opcodes[i] != GB_POINTWISE_NONE)
        {
            const sequence_operand *other = &call->others[i];
            others[i] = mask[i] ? other->data + r * other->row : other->equal;
            if (!mask[i] && other->row)
                sequence_repeat(other->equal, other->data[r * other->row]);
        }
        for (; at + SEQUENCE_LANES <= cols; at += SEQUENCE_LANES) {
            if (far) {
                if (call->src_far)
                    sequence_fetch(src + at * src_bytes, SEQUENCE_LANES * src_bytes);
                EACH_STEP if (opcodes[i] != GB_POINTWISE_NONE && call->others[i].far)
                        sequence_fetch(others[i] + at, SEQUENCE_LANES * (int64_t)sizeof(float));
            }
            vf x[SEQUENCE_VECTORS];
            EACH_VECTOR x[v] = sequence_load(src_type, src + (at + v * VLEN) * src_bytes, VLEN);
            EACH_STEP if (opcodes[i] != GB_POINTWISE_NONE)
            {
                const float *y = others[i] + (at & mask[i]);
                EACH_VECTOR x[v] =
                        sequence_step(opcodes[i], x[v], vf_load(y + v * VLEN), alpha[i], beta[i]);
            }
            sequence_store_all(dst_type, dst + at * dst_bytes, dst_bytes, x, streamed);
        }
        for (; at + VLEN <= cols; at += VLEN) {
            vf x = sequence_load(src_type, src + at * src_bytes, VLEN);
            STEPS_OF(x, vf_load(y))
            sequence_store(dst_type, dst + at * dst_bytes, x, VLEN, streamed);
        }
        if (at < cols) {
            vf x = sequence_load(src_type, src + at * src_bytes, cols - at);
            STEPS_OF(x, vf_load_n(y, cols - at))
            sequence_store(dst_type, dst + at * dst_bytes, x, cols - at, false);
        }
    }
#undef STEPS_OF
}
#undef EACH_VECTOR
#undef EACH_STEP

#define GB_SEQUENCE(src, dst, a, b, c, d)                                                          \
    static void sequence_##src##_##dst##_##a##_##b##_##c##_##d(const sequence_call *call)          \
    {                                                                                              \
        sequence_loop(call, GB_##src, GB_##dst, GB_POINTWISE_##a, GB_POINTWISE_##b,                \
                GB_POINTWISE_##c, GB_POINTWISE_##d);                                               \
    }
#include "kernels/pointwise/pointwise_sequences.def"

#define SEQUENCE_KEY(src, dst, a, b, c, d)                                                         \
    ((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | (uint64_t)(d) << 24 |              \
            (uint64_t)(src) << 32 | (uint64_t)(dst) << 40)

_Static_assert(GB_POINTWISE_NONE < 256, "a key has a byte for each opcode");

/* The loop that takes n steps of these opcodes between these types, or NULL. */
static sequence_loop_fn *sequence_find(
        gb_data_type src, gb_data_type dst, const uint8_t *opcodes, int n)
{
    int all[SEQUENCE_STEPS] = {
            GB_POINTWISE_NONE, GB_POINTWISE_NONE, GB_POINTWISE_NONE, GB_POINTWISE_NONE};
    for (int i = 0; i < n; i++)
        all[i] = opcodes[i];
    switch (SEQUENCE_KEY(src, dst, all[0], all[1], all[2], all[3])) {
#define GB_SEQUENCE(src, dst, a, b, c, d)                                                          \
    case SEQUENCE_KEY(GB_##src, GB_##dst, GB_POINTWISE_##a, GB_POINTWISE_##b, GB_POINTWISE_##c,    \
            GB_POINTWISE_##d):                                                                     \
        return sequence_##src##_##dst##_##a##_##b##_##c##_##d;
#include "kernels/pointwise/pointwise_sequences.def"
    default:
        return NULL;
    }
}
#undef SEQUENCE_KEY

#endif
