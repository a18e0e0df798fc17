/* Words that move lanes, for all levels. */
#ifndef GB_KERNELS_VEC_TRANSPOSE_H
#define GB_KERNELS_VEC_TRANSPOSE_H

typedef int32_t gb_lanes __attribute__((vector_size(4 * VLEN)));

/* Lanes 0, 2, 4, ... of a followed by those of b. */
static inline vf vf_even(vf a, vf b)
{
    gb_lanes even, x = (gb_lanes)vf_bits(a), y = (gb_lanes)vf_bits(b);
    for (int lane = 0; lane < VLEN; lane++)
        even[lane] = 2 * lane;
    return vi_as_vf((vi)__builtin_shuffle(x, y, even));
}

/* Lanes of a and b such that off-diagonal blocks of `step` lanes change places. */
static inline void gb_exchange(vi *a, vi *b, int step)
{
    gb_lanes first, second, x = (gb_lanes)*a, y = (gb_lanes)*b;
    for (int lane = 0; lane < VLEN; lane++) {
        first[lane] = lane & step ? VLEN + lane - step : lane;
        second[lane] = lane & step ? VLEN + lane : lane + step;
    }
    *a = (vi)__builtin_shuffle(x, y, first);
    *b = (vi)__builtin_shuffle(x, y, second);
}

/* Lane j of v[i] becomes lane i of v[j]. */
static inline void vi_transpose(vi *v)
{
#pragma GCC unroll 4
    for (int step = 1; step < VLEN; step *= 2)
#pragma GCC unroll 16
        for (int i = 0; i < VLEN; i++)
            if (!(i & step))
                gb_exchange(&v[i], &v[i + step], step);
}

#endif
