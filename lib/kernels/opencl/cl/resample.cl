/* Interpolate and its gradient: a work-item adds up the few elements of the source that make one of
 * the result. Each axis has a table of taps: entry t * count + i, of tap t at position i of the
 * result, holds the source's position above the 32 bits of an f32, the weight; 0 is no tap. An
 * axis has numbers: taps, count, stride of the source; then the table. GB_LOAD(i) is an element. */
enum { GB_TAPS, GB_COUNT, GB_STRIDE, GB_TABLE };

#define GB_EACH_TAP(axis, i, entry)                                                                \
    _Pragma("clang loop unroll(disable) vectorize(disable)")                                       \
    for (long entry##_t = 0, entry; entry##_t < axis[GB_TAPS]; entry##_t++)                        \
        if ((entry = axis[GB_TABLE + entry##_t * axis[GB_COUNT] + i]) != 0)

static float gb_resample(GB_PARAMETERS, __global const long *a0, __global const long *a1,
        __global const long *a2, long first, long i0, long i1, long i2)
{
    float sum = 0.0f;
    GB_EACH_TAP(a0, i0, e0)
        GB_EACH_TAP(a1, i1, e1)
            GB_EACH_TAP(a2, i2, e2) {
                float weight = as_float((int)e0) * as_float((int)e1) * as_float((int)e2);
                sum += weight * GB_LOAD(first + (e0 >> 32) * a0[GB_STRIDE] +
                                        (e1 >> 32) * a1[GB_STRIDE] + (e2 >> 32) * a2[GB_STRIDE]);
            }
    return sum;
}
