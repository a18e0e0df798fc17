/* Integer sums of a tile that become quantized values: the steps of gb_tile_codes in one loop. Who includes this defines
 * GB_CODES_ADD_TERMS: 1, or 0 where sums have the column terms of gb_dot_finish already. */
#ifndef GB_KERNELS_GEMM_FINISH_CODES_H
#define GB_KERNELS_GEMM_FINISH_CODES_H

#include "kernels/isa/dot.h"
#include "kernels/isa/vec.h"
#include "kernels/isa/vec_math.h"

#include <string.h>

/* What the loop needs, of two vectors of columns. */
typedef struct gb_codes_place {
    const int32_t *sums;           /* rows of 2 VLEN */
    const int32_t *terms;          /* of columns: GB_CODES_ADD_TERMS says whether they are added */
    const float *factors, *biases; /* of columns; biases: or NULL */
    float low, high;               /* limits of results */
    float scale, reciprocal; /* results are multiplied by `reciprocal`, or divided by `scale` */
    float zero;              /* is added to the quotients */
    const uint8_t *added;    /* or NULL */
    int64_t added_row;
    float added_zero, added_scale;
    char *dst;
    int64_t dst_row;
} gb_codes_place;

/* The result of one vector before it is rounded: the same operations in the same order as the steps'. `added` is the
 * type of added quantized values, GB_UNDEF: none. Without `limits` no limits and no zero point change a code. */
GB_INLINE vf gb_code_before_rounding(const gb_codes_place *place, int m, int v, vf factor, vf bias,
        const gb_data_type added, const bool divides, const bool limits)
{
    vi sum = vi_load(place->sums + (m * 2 + v) * VLEN);
    if (GB_CODES_ADD_TERMS)
        sum = vi_add(sum, vi_load(place->terms + v * VLEN));
    vf x = vf_add(vf_mul(vf_from_vi(sum), factor), bias);
    if (added != GB_UNDEF) {
        const uint8_t *codes = place->added + m * place->added_row + v * VLEN;
        vf number = added == GB_S8 ? vf_load_s8(codes) : vf_load_u8(codes);
        number = vf_mul(vf_sub(number, vf_set1(place->added_zero)), vf_set1(place->added_scale));
        x = vf_add(x, number);
    }
    if (limits)
        x = vf_min(vf_set1(place->high), vf_max(vf_set1(place->low), x));
    const vf reciprocal = vf_set1(place->reciprocal);
    x = divides ? vf_div_known(x, vf_set1(place->scale), reciprocal) : vf_mul(x, reciprocal);
    return limits ? vf_add(x, vf_set1(place->zero)) : x;
}

GB_INLINE void gb_codes_loop(const gb_codes_place *place, const int rows, const gb_data_type type,
        const gb_data_type added, const bool divides, const bool limits)
{
    vf factors[2], biases[2];
    for (int v = 0; v < 2; v++) {
        factors[v] = vf_load(place->factors + v * VLEN);
        biases[v] = place->biases ? vf_load(place->biases + v * VLEN) : vf_zero();
    }
    for (int m = 0; m < rows; m += 2) {
        vf x[4];
        char *dst = place->dst + m * place->dst_row;
        const int together = m + 1 < rows ? 2 : 1;
        for (int r = 0; r < together; r++)
            for (int v = 0; v < 2; v++)
                x[r * 2 + v] = gb_code_before_rounding(
                        place, m + r, v, factors[v], biases[v], added, divides, limits);
        if (together == 1 && type == GB_S8)
            vf_store_pair_s8(dst, x[0], x[1]);
        else if (together == 1)
            vf_store_pair_u8(dst, x[0], x[1]);
        else if (type == GB_S8)
            vf_store_pairs_s8(dst, dst + place->dst_row, x);
        else
            vf_store_pairs_u8(dst, dst + place->dst_row, x);
    }
}

/* One function for each kind of loop, and one table of them. */
#define GB_EACH_CODES_LOOP(X)                                                                      \
    X(plain, GB_UNDEF, false, false)                                                               \
    X(divided, GB_UNDEF, true, false)                                                              \
    X(limited, GB_UNDEF, false, true)                                                              \
    X(limited_divided, GB_UNDEF, true, true)                                                       \
    X(s8_plain, GB_S8, false, false)                                                               \
    X(s8_divided, GB_S8, true, false)                                                              \
    X(s8_limited, GB_S8, false, true)                                                              \
    X(s8_limited_divided, GB_S8, true, true)                                                       \
    X(u8_plain, GB_U8, false, false)                                                               \
    X(u8_divided, GB_U8, true, false)                                                              \
    X(u8_limited, GB_U8, false, true)                                                              \
    X(u8_limited_divided, GB_U8, true, true)
#define CODES_LOOP(name, added, divides, limits)                                                   \
    static void gb_codes_to_s8_##name(const gb_codes_place *place, int rows)                       \
    {                                                                                              \
        gb_codes_loop(place, rows, GB_S8, added, divides, limits);                                 \
    }                                                                                              \
    static void gb_codes_to_u8_##name(const gb_codes_place *place, int rows)                       \
    {                                                                                              \
        gb_codes_loop(place, rows, GB_U8, added, divides, limits);                                 \
    }
GB_EACH_CODES_LOOP(CODES_LOOP)
#undef CODES_LOOP

typedef void gb_codes_loop_fn(const gb_codes_place *place, int rows);
#define CODES_ROW(name, added, divides, limits) {gb_codes_to_s8_##name, gb_codes_to_u8_##name},
static gb_codes_loop_fn *const gb_codes_loops[][2] = {GB_EACH_CODES_LOOP(CODES_ROW)};
#undef CODES_ROW
#undef GB_EACH_CODES_LOOP

/* May gb_finish_codes() do it? */
GB_INLINE bool gb_become_codes(const gb_dot_tile *tile)
{
    return tile->cols == 2 * VLEN && tile->finish && tile->post_ops && tile->post_ops->codes.fits &&
           !tile->finish->row_terms && !tile->finish->row_scales;
}

/* `sums` as in gb_codes_place, of 2 VLEN columns from the first one of `finish` on; `row` and `col` are the first ones
 * in the block of the post-ops, whose steps are those of gb_tile_codes. */
static __attribute__((noinline)) void gb_finish_codes(const gb_tile_post_ops *post_ops,
        const gb_dot_finish *finish, const int32_t *sums, int64_t row, int64_t col, int rows)
{
    const gb_tile_codes *codes = &post_ops->codes;
    const gb_tile_step *steps = post_ops->steps, *factor = &steps[codes->factor];
    const gb_tile_step *added = codes->added < 0 ? NULL : &steps[codes->added];
    const bool divides = factor->opcode == GB_POINTWISE_DIV_KNOWN;
    gb_codes_place place = {.sums = sums,
            .terms = finish->column_terms,
            .factors = finish->column_scales,
            .low = codes->low,
            .high = codes->high,
            .scale = factor->beta,
            .reciprocal = factor->alpha,
            .dst = gb_tile_result(post_ops, row, col),
            .dst_row = post_ops->dst_row};
    if (codes->bias >= 0)
        place.biases = (const float *)(const void *)gb_tile_operand(&steps[codes->bias], row, col);
    if (!divides)
        memcpy(&place.reciprocal, factor->other, sizeof place.reciprocal);
    if (codes->zero >= 0)
        memcpy(&place.zero, steps[codes->zero].other, sizeof place.zero);
    if (added) {
        place.added = (const uint8_t *)(const void *)gb_tile_operand(added, row, col);
        place.added_row = added->other_row;
        place.added_zero = added->moved ? added->zero : 0;
        place.added_scale = added->moved ? added->scale : 1.0F;
    }
    /* What RELU takes away is 0 in u8, too. */
    const bool relu = place.low == 0 && place.high == INFINITY && post_ops->type == GB_U8 &&
                      (divides ? place.scale : place.reciprocal) > 0;
    const bool unlimited = place.low == -INFINITY && place.high == INFINITY;
    const bool limits = place.zero != 0 || !(relu || unlimited);
    const int kind = !added ? 0 : added->type == GB_S8 ? 4 : 8;
    gb_codes_loops[kind + 2 * limits + divides][post_ops->type == GB_U8](&place, rows);
}

#endif
