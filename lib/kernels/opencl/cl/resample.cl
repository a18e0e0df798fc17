/* Interpolate and its gradient: a result adds up the few elements of the source that make it. Each axis
 * has a table of taps: entry t * count + i, of tap t at position i of the result, holds the source's
 * position above the 32 bits of an f32, the weight; 0 is no tap. An axis has numbers: taps, count, stride
 * of the source; then the table.
 *
 * Without lanes a work-item computes one result; in lanes neighbouring ones, along the last axis, the line
 * (GB_ALONG_LINE), or channels. What the other axes say holds for a whole row: it is listed once. The
 * writer of the kernel defines
 *   GB_AXIS_0 .. GB_AXIS_2   the numbers of the axes; of the line those of one tap
 *   GB_LINE                  the numbers of the line
 *   GB_MOST_TAPS             in lanes, of a row
 *   GB_LOAD(i), GB_READ(i)   an element of the source, and lanes of them */
enum { GB_TAPS, GB_COUNT, GB_STRIDE, GB_TABLE };
#define GB_AS_IT_IS _Pragma("clang loop unroll(disable) vectorize(disable)")

#define GB_EACH_TAP(axis, i, entry)                                                                \
    GB_AS_IT_IS                                                                                    \
    for (long entry##_t = 0, entry; entry##_t < axis[GB_TAPS]; entry##_t++)                        \
        if ((entry = axis[GB_TABLE + entry##_t * axis[GB_COUNT] + i]) != 0)
#define GB_EACH_OF_ALL_TAPS(i0, i1, i2)                                                            \
    GB_EACH_TAP(a0, i0, e0)                                                                        \
        GB_EACH_TAP(a1, i1, e1)                                                                    \
            GB_EACH_TAP(a2, i2, e2)
#define GB_WEIGHT (as_float((int)e0) * as_float((int)e1) * as_float((int)e2))
#define GB_PLACE                                                                                   \
    ((e0 >> 32) * a0[GB_STRIDE] + (e1 >> 32) * a1[GB_STRIDE] + (e2 >> 32) * a2[GB_STRIDE])

#ifndef GB_IN_LANES
static float gb_resample(GB_PARAMETERS, long first, long i0, long i1, long i2)
{
    __global const long *a0 = GB_AXIS_0, *a1 = GB_AXIS_1, *a2 = GB_AXIS_2;
    float sum = 0.0f;
    GB_EACH_OF_ALL_TAPS(i0, i1, i2)
        sum += GB_WEIGHT * GB_LOAD(first + GB_PLACE);
    return sum;
}
#else
typedef struct gb_tap {
    long at;
    float weight;
} gb_tap;
typedef struct gb_taps {
    int n;
    gb_tap list[GB_MOST_TAPS];
} gb_taps;

static void gb_list_taps(GB_PARAMETERS, gb_taps *taps, long i0, long i1, long i2)
{
    __global const long *a0 = GB_AXIS_0, *a1 = GB_AXIS_1, *a2 = GB_AXIS_2;
    int n = 0;
    GB_EACH_OF_ALL_TAPS(i0, i1, i2) {
        taps->list[n].at = GB_PLACE;
        taps->list[n++].weight = GB_WEIGHT;
    }
    taps->n = n;
}
#define GB_EACH_LISTED                                                                             \
    GB_AS_IT_IS                                                                                    \
    for (int t = 0; t < taps->n; t++)

#ifdef GB_ALONG_LINE
static inline GB_FLOATS gb_resample(
        GB_PARAMETERS, const gb_taps *taps, long first, long position, int lanes)
{
    __global const long *line = GB_LINE;
    GB_FLOATS sum = 0.0f;
    GB_AS_IT_IS
    for (long k = 0; k < line[GB_TAPS]; k++) {
        __global const long *table = line + GB_TABLE + k * line[GB_COUNT] + position;
        int at[GB_LANES], weights[GB_LANES];
        for (int l = 0; l < GB_LANES; l++) {
            long entry = l < lanes ? table[l] : 0;
            at[l] = (int)((entry >> 32) * line[GB_STRIDE]);
            weights[l] = (int)entry;
        }
        GB_FLOATS weight = GB_AS_F(GB_LOAD_WORDS(0, weights)), part = 0.0f;
        GB_EACH_LISTED {
            long from = first + taps->list[t].at;
            float x[GB_LANES];
            for (int l = 0; l < GB_LANES; l++)
                x[l] = GB_LOAD(from + at[l]);
            part += taps->list[t].weight * GB_LOAD_WORDS(0, x);
        }
        sum = weight != 0.0f ? sum + weight * part : sum;
    }
    return sum;
}
#else
static inline GB_FLOATS gb_resample(GB_PARAMETERS, const gb_taps *taps, long first, int lanes)
{
    GB_FLOATS sum = 0.0f;
    GB_EACH_LISTED
        sum += taps->list[t].weight * GB_READ(first + taps->list[t].at);
    return sum;
}
#endif
#endif
