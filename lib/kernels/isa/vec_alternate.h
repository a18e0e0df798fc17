/* Words that take every other lane of two vectors. */
#ifndef GB_KERNELS_ISA_VEC_ALTERNATE_H
#define GB_KERNELS_ISA_VEC_ALTERNATE_H

#include "kernels/isa/vec_transpose.h"

/* Lanes of two vectors, as tables: of each 16 bytes the even or odd ones of the first vector, then those of the second;
 * and where these are in order. */
#define GB_LANE_NEAR(lane, odd) ((lane) / 4 * 4 + (lane) % 2 * 2 + (odd) + (lane) % 4 / 2 * VLEN)
#define GB_LANE_ORDER(lane, one)                                                                   \
    (2 * (lane) / VLEN * 2 * (one) + (lane) % (VLEN / 2) / 2 * 4 + (lane) % 2)
static const int32_t gb_lanes_near[2][16] = {
        GB_LANES_16(GB_LANE_NEAR, 0), GB_LANES_16(GB_LANE_NEAR, 1)};
static const int32_t gb_lanes_order[16] = GB_LANES_16(GB_LANE_ORDER, 1);

typedef float gb_float_lanes __attribute__((vector_size(4 * VLEN)));

/* As gb_shuffle(), of floats: compilers find the shuffles that processors have for these. */
static inline __attribute__((always_inline)) vf gb_shuffle_floats(vf a, vf b, gb_lanes lanes)
{
#if defined(__clang__)
    return vi_as_vf(gb_shuffle((gb_lanes)vf_bits(a), (gb_lanes)vf_bits(b), lanes));
#else
    return (vf)__builtin_shuffle((gb_float_lanes)a, (gb_float_lanes)b, lanes);
#endif
}

/* Lanes 0, 2, 4, ... or 1, 3, 5, ... of a and b in an order that no lane has to go far for: that of vf_order_near(). */
static inline vf vf_even_near(vf a, vf b)
{
    return gb_shuffle_floats(a, b, (gb_lanes)vi_load(gb_lanes_near[0]));
}
static inline vf vf_odd_near(vf a, vf b)
{
    return gb_shuffle_floats(a, b, (gb_lanes)vi_load(gb_lanes_near[1]));
}
/* Puts their lanes in order: those of a, those of b. */
static inline vf vf_order_near(vf v)
{
    return gb_shuffle_floats(v, v, (gb_lanes)vi_load(gb_lanes_order));
}

#endif
