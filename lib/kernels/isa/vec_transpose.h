/* Words that move lanes, for all levels. */
#ifndef GB_KERNELS_ISA_VEC_TRANSPOSE_H
#define GB_KERNELS_ISA_VEC_TRANSPOSE_H

typedef int32_t gb_lanes __attribute__((vector_size(4 * VLEN)));

/* Which lanes of a pair of vectors a shuffle takes, as tables: level 0, 1, 2, 3 moves blocks of 1,
 * 2, 4, 8 lanes. */
#define GB_LANE_FIRST(lane, step)  ((lane) & (step) ? VLEN + (lane) - (step) : (lane))
#define GB_LANE_SECOND(lane, step) ((lane) & (step) ? VLEN + (lane) : (lane) + (step))
#define GB_LANE_EVEN(lane, step)   (2 * (lane) * (step) % (2 * VLEN))
#define GB_LANES_4(lane, from, step)                                                               \
    lane(from, step), lane(from + 1, step), lane(from + 2, step), lane(from + 3, step)
#define GB_LANES_16(lane, step)                                                                    \
    {                                                                                              \
        GB_LANES_4(lane, 0, step), GB_LANES_4(lane, 4, step), GB_LANES_4(lane, 8, step),           \
                GB_LANES_4(lane, 12, step)                                                         \
    }
static const int32_t gb_lanes_first[4][16] = {GB_LANES_16(GB_LANE_FIRST, 1),
        GB_LANES_16(GB_LANE_FIRST, 2), GB_LANES_16(GB_LANE_FIRST, 4),
        GB_LANES_16(GB_LANE_FIRST, 8)};
static const int32_t gb_lanes_second[4][16] = {GB_LANES_16(GB_LANE_SECOND, 1),
        GB_LANES_16(GB_LANE_SECOND, 2), GB_LANES_16(GB_LANE_SECOND, 4),
        GB_LANES_16(GB_LANE_SECOND, 8)};
static const int32_t gb_lanes_even[16] = GB_LANES_16(GB_LANE_EVEN, 1);

/* Lane i of the result is lane lanes[i] of x followed by y. */
static inline __attribute__((always_inline)) vi gb_shuffle(gb_lanes x, gb_lanes y, gb_lanes lanes)
{
#if defined(__clang__)
    gb_lanes result;
    for (int i = 0; i < VLEN; i++)
        result[i] = lanes[i] < VLEN ? x[lanes[i]] : y[lanes[i] - VLEN];
    return (vi)result;
#else
    return (vi)__builtin_shuffle(x, y, lanes);
#endif
}

/* Lanes 0, 2, 4, ... of a followed by those of b. */
static inline vf vf_even(vf a, vf b)
{
    gb_lanes x = (gb_lanes)vf_bits(a), y = (gb_lanes)vf_bits(b);
    return vi_as_vf(gb_shuffle(x, y, (gb_lanes)vi_load(gb_lanes_even)));
}

/* Lane i is lane index[i] of v. */
static inline vi vi_pick(vi v, vi index)
{
#if defined(__clang__)
    gb_lanes from = (gb_lanes)v, lanes = (gb_lanes)index, result;
    for (int i = 0; i < VLEN; i++)
        result[i] = from[lanes[i] & (VLEN - 1)];
    return (vi)result;
#else
    return (vi)__builtin_shuffle((gb_lanes)v, (gb_lanes)index);
#endif
}

/* Off-diagonal blocks of 2^level lanes of `count` vectors change places. */
static inline __attribute__((always_inline)) void gb_exchange(vi *v, int level, int count)
{
    gb_lanes first = (gb_lanes)vi_load(gb_lanes_first[level]);
    gb_lanes second = (gb_lanes)vi_load(gb_lanes_second[level]);
#pragma GCC unroll 16
    for (int i = 0; i < count; i++) {
        if (i & (1 << level))
            continue;
        gb_lanes x = (gb_lanes)v[i], y = (gb_lanes)v[i + (1 << level)];
        v[i] = gb_shuffle(x, y, first);
        v[i + (1 << level)] = gb_shuffle(x, y, second);
    }
}

/* Lane j of v[i] becomes lane i of v[j]. */
static inline __attribute__((always_inline)) void vi_transpose(vi *v)
{
    gb_exchange(v, 0, VLEN);
    gb_exchange(v, 1, VLEN);
    if (VLEN > 4)
        gb_exchange(v, 2, VLEN);
    if (VLEN > 8)
        gb_exchange(v, 3, VLEN);
}

/* Four vectors: lane 4 j + i of v[k] becomes lane 4 j + k of v[i]. */
static inline __attribute__((always_inline)) void vi_interleave(vi *v)
{
    gb_exchange(v, 0, 4);
    gb_exchange(v, 1, 4);
}

#endif
