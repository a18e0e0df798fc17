/* What becomes of sums in registers: post-ops, and the way to memory. */
#ifndef GB_KERNELS_GEMM_REGISTER_SUMS_H
#define GB_KERNELS_GEMM_REGISTER_SUMS_H

#include "kernels/isa/vec.h"

/* Vectors of a row of sums, at most. */
enum { MOST_VECTORS = VREGS == 16 ? 4 : 2 };

/* Where the sums belong: their first row and column in the block of the post-ops, the lanes of the
 * last vector that count, and where they are stored. */
typedef struct gb_register_sums {
    int64_t row, col;
    int last;
    float *dst;
    int64_t dst_row;
} gb_register_sums;

GB_INLINE void gb_store_sums(
        const gb_register_sums *place, const int rows, const int vectors, vf sums[][MOST_VECTORS])
{
    const int last = place->last;
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++) {
        float *c = place->dst + m * place->dst_row;
#pragma GCC unroll 4
        for (int v = 0; v + 1 < vectors; v++)
            vf_store(c + v * VLEN, sums[m][v]);
        if (last == VLEN)
            vf_store(c + (vectors - 1) * VLEN, sums[m][vectors - 1]);
        else
            vf_store_n(c + (vectors - 1) * VLEN, sums[m][vectors - 1], last);
    }
}

#define EACH(expression)                                                                           \
    _Pragma("GCC unroll 14") for (int m = 0; m < rows; m++)                                        \
            _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) sums[m][v] = (expression);
#define EACH_WITH_OTHER(function)                                                                  \
    if (step->other_col && last == VLEN) {                                                         \
        EACH(function(sums[m][v], vf_load(other + m * step->other_row + v * VLEN)))                \
    } else if (step->other_col) {                                                                  \
        EACH(function(sums[m][v],                                                                  \
                vf_load_n(other + m * step->other_row + v * VLEN, v + 1 < vectors ? VLEN : last))) \
    } else {                                                                                       \
        EACH(function(sums[m][v], vf_set1(other[m * step->other_row])))                            \
    }                                                                                              \
    break;

/* What pointwise programs do with the sums, the same bits. */
GB_INLINE void gb_take_post_ops(const gb_tile_post_ops *post_ops, const gb_register_sums *place,
        const int rows, const int vectors, vf sums[][MOST_VECTORS])
{
    const gb_tile_step *step = post_ops->steps, *end = step + post_ops->n_steps;
    const int last = place->last;
    for (; step < end; step++) {
        const float *other =
                step->other + place->row * step->other_row + place->col * step->other_col;
        switch (step->opcode) {
        case GB_POINTWISE_ADD:
            EACH_WITH_OTHER(vf_add)
        case GB_POINTWISE_SUB:
            EACH_WITH_OTHER(vf_sub)
        case GB_POINTWISE_MUL:
            EACH_WITH_OTHER(vf_mul)
        case GB_POINTWISE_MAX:
            EACH_WITH_OTHER(vf_max)
        case GB_POINTWISE_MIN:
            EACH_WITH_OTHER(vf_min)
        case GB_POINTWISE_RELU:
            EACH(vf_max(vf_zero(), sums[m][v]))
            break;
        case GB_POINTWISE_CLAMP:
            EACH(vf_min(vf_set1(step->beta), vf_max(vf_set1(step->alpha), sums[m][v])))
            break;
        default:
            break;
        }
    }
}

#undef EACH
#undef EACH_WITH_OTHER

#endif
