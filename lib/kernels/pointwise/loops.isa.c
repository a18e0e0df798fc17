/* Loops over tiles, one for each opcode of pointwise programs. */
#include "kernels/isa/vec.h"

#include "kernels/pointwise/pointwise_put.h"

/* Unary instructions take so many vectors at a time: each is a long chain of operations that wait for each other,
 * and the compiler lets several take turns (-fschedule-insns). */
enum { LOOP_VECTORS = VLEN >= 16 ? 8 : 4 };
#define LOOP_EACH _Pragma("GCC unroll 8") for (int k = 0; k < LOOP_VECTORS; k++)

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
            for (; c + LOOP_VECTORS * VLEN <= t.cols; c += LOOP_VECTORS * VLEN) {                  \
                vf x[LOOP_VECTORS];                                                                \
                LOOP_EACH                                                                          \
                x[k] = loop_##name##_of(vf_load_##type(a + c + k * VLEN), alpha, beta, &t);        \
                LOOP_EACH                                                                          \
                put_##type(dst + c + k * VLEN, x[k], streamed);                                    \
            }                                                                                      \
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

#define UNARY_LOOPS(name)                                                                          \
    static void loop_##name(const tile_call *call)                                                 \
    {                                                                                              \
        const tile_call t = *call; /* stores of vectors may alias *call */                         \
        vf alpha = vf_set1(t.alpha), beta = vf_set1(t.beta);                                       \
        for (int64_t r = 0; r < t.rows; r++) {                                                     \
            const float *a = t.a.data + r * t.a.row;                                               \
            float *dst = t.dst + r * t.dst_row;                                                    \
            bool streamed = streams_to(&t, dst);                                                   \
            int64_t c = 0, rest;                                                                   \
            for (; c + LOOP_VECTORS * VLEN <= t.cols; c += LOOP_VECTORS * VLEN) {                  \
                vf x[LOOP_VECTORS];                                                                \
                LOOP_EACH                                                                          \
                x[k] = loop_##name##_of(vf_load(a + c + k * VLEN), alpha, beta, &t);               \
                LOOP_EACH                                                                          \
                put(dst + c + k * VLEN, x[k], streamed);                                           \
            }                                                                                      \
            for (; c + VLEN <= t.cols; c += VLEN)                                                  \
                put(dst + c, loop_##name##_of(vf_load(a + c), alpha, beta, &t), streamed);         \
            if ((rest = t.cols - c) == 0)                                                          \
                continue;                                                                          \
            vf_store_n(dst + c, loop_##name##_of(vf_load_n(a + c, rest), alpha, beta, &t), rest);  \
        }                                                                                          \
    }                                                                                              \
    UNARY_16(name, bf16)                                                                           \
    UNARY_16(name, f16)
#define BINARY_LOOPS(name)                                                                         \
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

#include "kernels/pointwise/pointwise_expressions.h"

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
            vm chosen = vf_ne(lanes(a, t.a.col, c), vf_zero());
            vf y = lanes(b, t.b.col, c), z = lanes(otherwise, t.c.col, c);
            put(dst + c, vf_select(chosen, y, z), streamed);
        }
        if ((rest = t.cols - c) == 0)
            continue;
        vm chosen = vf_ne(lanes_n(a, t.a.col, c, rest), vf_zero());
        vf y = lanes_n(b, t.b.col, c, rest), z = lanes_n(otherwise, t.c.col, c, rest);
        vf_store_n(dst + c, vf_select(chosen, y, z), rest);
    }
}

const tile_op GB_ISA_NAME(tile_ops)[GB_POINTWISE_OPCODES] = {
#define GB_POINTWISE_ARITHMETIC(enumerator, name, sources, parameters)                             \
    [GB_POINTWISE_##enumerator] = {loop_##name, sources, LOOPS_16(name)},
#include "kernels/plan/pointwise_opcodes.def"
};
