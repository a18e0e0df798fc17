/* Loops over f32 lanes that take a sequence of up to four steps of a chain at once, with nothing to look up between
 * vectors. A chain that looks up each step for every few vectors takes up to 1.7 times as long, from whichever cache
 * its operands come. pointwise_sequences.def lists those that have a loop; longer ones are taken in parts.
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
    const float *src;
    float *dst;
    int64_t src_row, dst_row;
    bool far; /* src or some other operand is */
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

GB_INLINE void sequence_fetch(const float *lanes)
{
    for (int64_t at = 0; at < SEQUENCE_LANES * (int64_t)sizeof(float); at += GB_CACHE_LINE)
        gb_prefetch((const char *)lanes + FETCH_AHEAD + at);
}

/* Fields are read one by one: a whole call that is copied right after it was written waits for its parts. */
GB_INLINE void sequence_loop(
        const sequence_call *call, const int a, const int b, const int c, const int d)
{
    const int opcodes[] = {a, b, c, d};
    vf alpha[SEQUENCE_STEPS], beta[SEQUENCE_STEPS];
    int64_t mask[SEQUENCE_STEPS];
    const int64_t cols = call->cols;
    const bool far = call->far, streamed = call->streamed;
    EACH_STEP alpha[i] = vf_set1(call->alpha[i]);
    EACH_STEP beta[i] = vf_set1(call->beta[i]);
    EACH_STEP mask[i] = call->others[i].mask;
#define STEPS_OF(x, load)                                                                          \
    EACH_STEP                                                                                      \
    {                                                                                              \
        const float *y = others[i] + (at & mask[i]);                                               \
        x = sequence_step(opcodes[i], x, load, alpha[i], beta[i]);                                 \
    }
    for (int64_t r = 0; r < call->rows; r++) {
        const float *src = call->src + r * call->src_row;
        const float *others[SEQUENCE_STEPS] = {src, src, src, src};
        float *dst = call->dst + r * call->dst_row;
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
                    sequence_fetch(src + at);
                EACH_STEP if (opcodes[i] != GB_POINTWISE_NONE && call->others[i].far)
                        sequence_fetch(others[i] + at);
            }
            vf x[SEQUENCE_VECTORS];
            EACH_VECTOR x[v] = vf_load(src + at + v * VLEN);
            EACH_STEP
            {
                const float *y = others[i] + (at & mask[i]);
                EACH_VECTOR x[v] =
                        sequence_step(opcodes[i], x[v], vf_load(y + v * VLEN), alpha[i], beta[i]);
            }
            EACH_VECTOR put(dst + at + v * VLEN, x[v], streamed);
        }
        for (; at + VLEN <= cols; at += VLEN) {
            vf x = vf_load(src + at);
            STEPS_OF(x, vf_load(y))
            put(dst + at, x, streamed);
        }
        if (at < cols) {
            vf x = vf_load_n(src + at, cols - at);
            STEPS_OF(x, vf_load_n(y, cols - at))
            vf_store_n(dst + at, x, cols - at);
        }
    }
#undef STEPS_OF
}
#undef EACH_VECTOR
#undef EACH_STEP

#define GB_SEQUENCE(a, b, c, d)                                                                    \
    static void sequence_##a##_##b##_##c##_##d(const sequence_call *call)                          \
    {                                                                                              \
        sequence_loop(                                                                             \
                call, GB_POINTWISE_##a, GB_POINTWISE_##b, GB_POINTWISE_##c, GB_POINTWISE_##d);     \
    }
#include "kernels/pointwise/pointwise_sequences.def"

#define SEQUENCE_KEY(a, b, c, d) ((a) + ((b) << 8) + ((c) << 16) + ((d) << 24))

/* The loop that takes n steps of these opcodes, or NULL. */
static sequence_loop_fn *sequence_find(const uint8_t *opcodes, int n)
{
    int all[SEQUENCE_STEPS] = {
            GB_POINTWISE_NONE, GB_POINTWISE_NONE, GB_POINTWISE_NONE, GB_POINTWISE_NONE};
    for (int i = 0; i < n; i++)
        all[i] = opcodes[i];
    switch (SEQUENCE_KEY(all[0], all[1], all[2], all[3])) {
#define GB_SEQUENCE(a, b, c, d)                                                                    \
    case SEQUENCE_KEY(GB_POINTWISE_##a, GB_POINTWISE_##b, GB_POINTWISE_##c, GB_POINTWISE_##d):     \
        return sequence_##a##_##b##_##c##_##d;
#include "kernels/pointwise/pointwise_sequences.def"
    default:
        return NULL;
    }
}
#undef SEQUENCE_KEY

#endif
