/* What becomes of sums in registers: post-ops, and the way to memory. */
#ifndef GB_KERNELS_GEMM_REGISTER_SUMS_H
#define GB_KERNELS_GEMM_REGISTER_SUMS_H

#include "kernels/isa/dot.h"
#include "kernels/isa/tile_post_ops.h"
#include "kernels/isa/vec.h"
#include "kernels/isa/vec_math.h"

/* Vectors of a row of sums, and rows, at most. */
enum { MOST_VECTORS = VREGS == 16 ? 4 : 2, MOST_ROWS = VREGS == 16 ? 6 : 14 };

/* Where the sums belong: their first row and column in the block of the post-ops, the lanes of the
 * last vector that count, and where they are stored if there are no post-ops. */
typedef struct gb_register_sums {
    const gb_tile_post_ops *post_ops; /* or NULL */
    int64_t row, col;
    int last;
    float *dst;
    int64_t dst_row;
} gb_register_sums;

/* Integer sums of row m and the columns from n on, to which their column terms have been added, as results
 * (gb_dot_finish). */
GB_INLINE vf gb_finish_integers(const gb_dot_finish *finish, vi sum, int64_t m, int64_t n)
{
    vi ignored = vi_set1(0);
    if (finish->row_terms)
        sum = vi_add(sum, vi_mul(vi_set1(finish->row_terms[m]), vi_load(finish->column_factors + n),
                                  &ignored));
    vf result = vf_mul(vf_from_vi(sum), vf_load(finish->column_scales + n));
    return finish->row_scales ? vf_mul(result, vf_set1(finish->row_scales[m])) : result;
}

GB_INLINE void gb_store_sums(float *dst, int64_t dst_row, const int last, const int rows,
        const int vectors, vf sums[][MOST_VECTORS])
{
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++, dst += dst_row) {
#pragma GCC unroll 4
        for (int v = 0; v + 1 < vectors; v++)
            vf_store(dst + v * VLEN, sums[m][v]);
        if (last == VLEN)
            vf_store(dst + (vectors - 1) * VLEN, sums[m][vectors - 1]);
        else
            vf_store_n(dst + (vectors - 1) * VLEN, sums[m][vectors - 1], last);
    }
}

#define CONVERT(enumerator, name)                                                                  \
    case enumerator:                                                                               \
        for (int m = 0; m < rows; m++, dst += dst_row, results += row) {                           \
            int c = 0;                                                                             \
            for (; c + VLEN <= cols; c += VLEN)                                                    \
                vf_store_##name(dst + c * post_ops->bytes, vf_load(results + c));                  \
            if (c < cols)                                                                          \
                vf_store_##name##_n(dst + c * post_ops->bytes, vf_load(results + c), cols - c);    \
        }                                                                                          \
        break;

/* Results of 8 bits, whole vectors of them, to their place: two vectors are packed together. */
#define STORE_PAIRS(enumerator, name)                                                              \
    if (place->post_ops->type == (enumerator)) {                                                   \
        _Pragma("GCC unroll 14") for (int m = 0; m < rows; m++)                                    \
                _Pragma("GCC unroll 2") for (int v = 0; v < vectors; v += 2) vf_store_pair_##name( \
                        dst + m * dst_row + v * VLEN, sums[m][v], sums[m][v + 1]);                 \
        return true;                                                                               \
    }

/* False: they are none, and stay where they are. */
GB_INLINE bool gb_store_pairs(
        const gb_register_sums *place, const int rows, const int vectors, vf sums[][MOST_VECTORS])
{
    if (vectors % 2 != 0 || place->last != VLEN)
        return false;
    char *dst = gb_tile_result(place->post_ops, place->row, place->col);
    const int64_t dst_row = place->post_ops->dst_row;
    STORE_PAIRS(GB_S8, s8)
    STORE_PAIRS(GB_U8, u8)
    return false;
}

#undef STORE_PAIRS

/* Results of bf16 where the processor converts them. False: they are none, and stay where they are. */
GB_INLINE bool gb_store_converted(
        const gb_register_sums *place, const int rows, const int vectors, vf sums[][MOST_VECTORS])
{
#if defined(GB_VEC_HAS_BF16)
    if (place->post_ops->type != GB_BF16 || !gb_cpu_converts_bf16)
        return false;
    char *dst = gb_tile_result(place->post_ops, place->row, place->col);
    const int64_t dst_row = place->post_ops->dst_row * (int64_t)sizeof(uint16_t);
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++, dst += dst_row) {
        if (vectors > 1)
            gb_store_bf16(dst, sums[m][0]);
        char *end = dst + (vectors - 1) * VLEN * (int64_t)sizeof(uint16_t);
        if (place->last == VLEN)
            gb_store_bf16(end, sums[m][vectors - 1]);
        else
            gb_store_bf16_n(end, sums[m][vectors - 1], place->last);
    }
    return true;
#else
    (void)place, (void)rows, (void)vectors, (void)sums;
    return false;
#endif
}

/* Results of another type than f32, that lie in whole vectors, to their place. A function of its
 * own, for one in each tile would be much code. */
static __attribute__((noinline)) void gb_convert_results(
        const gb_register_sums *place, const float *results, int row, int rows, int cols)
{
    const gb_tile_post_ops *post_ops = place->post_ops;
    char *dst = gb_tile_result(post_ops, place->row, place->col);
    const int64_t dst_row = post_ops->dst_row * post_ops->bytes;
    switch (post_ops->type) {
        CONVERT(GB_BF16, bf16)
        CONVERT(GB_F16, f16)
        CONVERT(GB_S8, s8)
        CONVERT(GB_U8, u8)
    default:
        break;
    }
}

#undef CONVERT

#define LOAD(enumerator, name)                                                                     \
    case enumerator:                                                                               \
        for (int m = 0; m < rows; m++, src += src_row, values += row) {                            \
            int c = 0;                                                                             \
            for (; c + VLEN <= cols; c += VLEN)                                                    \
                vf_store(values + c, gb_move(vf_load_##name(src + c * step->bytes), step));        \
            if (c < cols)                                                                          \
                vf_store(values + c,                                                               \
                        gb_move(vf_load_##name##_n(src + c * step->bytes, cols - c), step));       \
        }                                                                                          \
        break;

GB_INLINE vf gb_move(vf x, const gb_tile_step *step)
{
    return step->moved ? vf_mul(vf_sub(x, vf_set1(step->zero)), vf_set1(step->scale)) : x;
}

/* An operand that is moved or of another type than f32 into whole vectors. */
static __attribute__((noinline)) void gb_convert_operand(const gb_register_sums *place,
        const gb_tile_step *step, float *values, int row, int rows, int cols)
{
    const char *src = gb_tile_operand(step, place->row, place->col);
    const int64_t src_row = step->other_row * step->bytes;
    switch (step->type) {
        LOAD(GB_BF16, bf16)
        LOAD(GB_F16, f16)
        LOAD(GB_S8, s8)
        LOAD(GB_U8, u8)
    default:
        LOAD(GB_F32, f32)
    }
}

#undef LOAD

#define EACH(expression)                                                                           \
    _Pragma("GCC unroll 14") for (int m = 0; m < rows; m++)                                        \
            _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) sums[m][v] = (expression);
#define EACH_WITH_OTHER(function)                                                                  \
    if (step->other_col && last == VLEN) {                                                         \
        EACH(function(sums[m][v], vf_load(other + m * other_row + v * VLEN)))                      \
    } else if (step->other_col) {                                                                  \
        EACH(function(sums[m][v],                                                                  \
                vf_load_n(other + m * other_row + v * VLEN, v + 1 < vectors ? VLEN : last)))       \
    } else {                                                                                       \
        EACH(function(sums[m][v], vf_set1(other[m * other_row])))                                  \
    }                                                                                              \
    break;

/* Adds bytes, as residual connections of quantized values are, in registers. False: the step is
 * another one, or vectors are not whole. */
GB_INLINE bool gb_add_bytes(const gb_register_sums *place, const gb_tile_step *step, const int rows,
        const int vectors, vf sums[][MOST_VECTORS])
{
    if (step->opcode != GB_POINTWISE_ADD || (step->type != GB_S8 && step->type != GB_U8) ||
            step->other_col != 1 || place->last != VLEN)
        return false;
    const uint8_t *src =
            (const uint8_t *)(const void *)gb_tile_operand(step, place->row, place->col);
    const vi sign = vi_set1(step->type == GB_S8 ? 0x80 : 0);
    const vf zero = vf_set1(step->moved ? step->zero : 0);
    const vf scale = vf_set1(step->moved ? step->scale : 1.0F);
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            vi codes = gb_load_u8(src + m * step->other_row + v * VLEN);
            vf number = vf_from_vi(vi_sub(vi_xor(codes, sign), sign));
            sums[m][v] = vf_add(sums[m][v], vf_mul(vf_sub(number, zero), scale));
        }
    return true;
}

/* Adds bf16 likewise, where vectors of results are long enough for it to be worth its code. */
GB_INLINE bool gb_add_bf16(const gb_register_sums *place, const gb_tile_step *step, const int rows,
        const int vectors, vf sums[][MOST_VECTORS])
{
    if (VLEN < 16 || step->opcode != GB_POINTWISE_ADD || step->type != GB_BF16 || step->moved ||
            step->other_col != 1 || place->last != VLEN)
        return false;
    const char *src = gb_tile_operand(step, place->row, place->col);
    const int64_t row = step->other_row * (int64_t)sizeof(uint16_t);
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sums[m][v] = vf_add(
                    sums[m][v], vf_load_bf16(src + m * row + v * VLEN * (int64_t)sizeof(uint16_t)));
    return true;
}

/* What pointwise programs do with the sums, the same bits. `memory`: room for the sums. */
GB_INLINE void gb_take_post_ops(const gb_register_sums *place, const int rows, const int vectors,
        vf sums[][MOST_VECTORS], float *memory)
{
    const gb_tile_step *step = place->post_ops->steps, *end = step + place->post_ops->n_steps;
    const int last = place->last;
    for (; step < end; step++) {
        const float *other =
                (const float *)(const void *)gb_tile_operand(step, place->row, place->col);
        int64_t other_row = step->other_row;
        if (gb_add_bytes(place, step, rows, vectors, sums) ||
                gb_add_bf16(place, step, rows, vectors, sums))
            continue;
        if (step->type != GB_F32 || step->moved) {
            gb_convert_operand(
                    place, step, memory, vectors * VLEN, rows, (vectors - 1) * VLEN + last);
            other = memory;
            other_row = vectors * VLEN;
        }
        switch (step->opcode) {
        case GB_POINTWISE_ADD:
            EACH_WITH_OTHER(vf_add)
        case GB_POINTWISE_SUB:
            EACH_WITH_OTHER(vf_sub)
        case GB_POINTWISE_MUL:
            EACH_WITH_OTHER(vf_mul)
        case GB_POINTWISE_DIV:
            EACH_WITH_OTHER(vf_div)
        case GB_POINTWISE_MAX:
            EACH_WITH_OTHER(vf_max)
        case GB_POINTWISE_MIN:
            EACH_WITH_OTHER(vf_min)
        case GB_POINTWISE_RELU:
            EACH(vf_max(vf_zero(), sums[m][v]))
            break;
        case GB_POINTWISE_LEAKY_RELU:
            EACH(vf_select(vf_gt(sums[m][v], vf_zero()), sums[m][v],
                    vf_mul(vf_set1(step->alpha), sums[m][v])))
            break;
        case GB_POINTWISE_CLAMP:
            EACH(vf_min(vf_set1(step->beta), vf_max(vf_set1(step->alpha), sums[m][v])))
            break;
        case GB_POINTWISE_DIV_KNOWN:
            EACH(vf_div_known(sums[m][v], vf_set1(step->beta), vf_set1(step->alpha)))
            break;
        default:
            gb_store_sums(memory, vectors * VLEN, VLEN, rows, vectors, sums);
            step->loop(step->opcode, step->alpha, step->beta, memory, rows * vectors * VLEN);
            EACH(vf_load(memory + (m * vectors + v) * VLEN))
            break;
        }
    }
}

#undef EACH
#undef EACH_WITH_OTHER

/* The lines of a tile of elements, each asked for once: rows are `row` bytes apart. */
#define FETCH(fetch, bytes, begin, row)                                                            \
    do {                                                                                           \
        const char *lines = begin;                                                                 \
        const int64_t line_row = row;                                                              \
        if (col * (bytes) % GB_CACHE_LINE == 0)                                                    \
            for (int m = 0; m < rows; m++)                                                         \
                for (int at = 0; at < vectors * VLEN * (bytes); at += GB_CACHE_LINE)               \
                    fetch(lines + m * line_row + at);                                              \
    } while (0)

/* What post-ops read and write in another place for each result, on its way while K runs by: terms
 * of K, of which few take less time than memory does, so that a later tile's are asked for. */
GB_INLINE void gb_fetch_post_ops(const gb_tile_post_ops *post_ops, int64_t row, int64_t col,
        int64_t terms, const int rows, const int vectors)
{
    enum { FEW_TERMS = 128, MOST_AT_ONCE = 16 };
    /* More lines at once keep those of the products waiting. */
    const bool many = rows * vectors * VLEN * (int)sizeof(float) > MOST_AT_ONCE * GB_CACHE_LINE;
    if (!post_ops->apart || (post_ops->plain && many))
        return;
    row += terms < FEW_TERMS ? post_ops->next_row : 0;
    col += terms < FEW_TERMS ? post_ops->next_col : 0;
    for (int i = 0; i < post_ops->n_steps; i++) {
        const gb_tile_step *step = &post_ops->steps[i];
        if (step->other_row && step->other_col)
            FETCH(gb_prefetch, step->bytes, gb_tile_operand(step, row, col),
                    step->other_row * step->bytes);
    }
    FETCH(gb_prefetch_to_write, post_ops->bytes, gb_tile_result(post_ops, row, col),
            post_ops->dst_row * post_ops->bytes);
}

#undef FETCH

/* Plain post-ops of whole vectors. */
GB_INLINE void gb_finish_plain(const gb_register_sums *place, const int rows, const int vectors,
        const bool adds, vf sums[][MOST_VECTORS])
{
    const gb_tile_post_ops *post_ops = place->post_ops;
    const gb_tile_step *steps = post_ops->steps;
    const bool limits = steps[post_ops->n_steps - 1].opcode == GB_POINTWISE_RELU;
    const vf least = vf_set1(limits ? 0 : -INFINITY);
    const float *row = (const float *)(const void *)gb_tile_operand(&steps[0], 0, place->col);
    const float *other = NULL;
    float *dst = (float *)(void *)gb_tile_result(post_ops, place->row, place->col);
    const int64_t dst_row = post_ops->dst_row, other_row = adds ? steps[1].other_row : 0;
    if (adds)
        other = (const float *)(const void *)gb_tile_operand(&steps[1], place->row, place->col);
    vf shared[MOST_VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        shared[v] = vf_load(row + v * VLEN);
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            vf sum = vf_add(sums[m][v], shared[v]);
            if (adds)
                sum = vf_add(sum, vf_load(other + m * other_row + v * VLEN));
            vf_store(dst + m * dst_row + v * VLEN, vf_max(least, sum));
        }
}

/* The last that is done with sums. */
GB_INLINE void gb_finish_sums(
        const gb_register_sums *place, const int rows, const int vectors, vf sums[][MOST_VECTORS])
{
    const gb_tile_post_ops *post_ops = place->post_ops;
    float *dst = place->dst;
    int64_t dst_row = place->dst_row;
    float memory[MOST_ROWS * MOST_VECTORS * VLEN];
    if (post_ops && post_ops->plain && place->last == VLEN) {
        const bool adds = post_ops->n_steps > 1 && post_ops->steps[1].opcode == GB_POINTWISE_ADD;
        if (adds)
            gb_finish_plain(place, rows, vectors, true, sums);
        else
            gb_finish_plain(place, rows, vectors, false, sums);
        return;
    }
    if (post_ops) {
        gb_take_post_ops(place, rows, vectors, sums, memory);
        dst = (float *)(void *)gb_tile_result(post_ops, place->row, place->col);
        dst_row = post_ops->dst_row;
    }
    if (!post_ops || post_ops->type == GB_F32) {
        gb_store_sums(dst, dst_row, place->last, rows, vectors, sums);
        return;
    }
    if (gb_store_pairs(place, rows, vectors, sums) ||
            gb_store_converted(place, rows, vectors, sums))
        return;
    gb_store_sums(memory, vectors * VLEN, VLEN, rows, vectors, sums);
    gb_convert_results(place, memory, vectors * VLEN, rows, (vectors - 1) * VLEN + place->last);
}

#endif
