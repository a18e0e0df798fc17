/* Pools and their gradients. Each axis has numbers: size of the source, windows, kernel, stride,
 * dilation, pads before and behind, stride of the source. GB_MEAN: means, else maxima. */
enum {
    GB_IN,
    GB_OUT,
    GB_KERNEL,
    GB_STEP,
    GB_DILATION,
    GB_PAD,
    GB_PAD_END,
    GB_SOURCE,
    GB_AXIS
};

/* Cells of a window that count: those inside, or inside the declared padding too. */
static inline long gb_cells(__global const long *axis, long position)
{
    long start = position * axis[GB_STEP] - axis[GB_PAD];
    long before = GB_EXCLUDE_PAD ? 0 : -axis[GB_PAD];
    long end = min(start + axis[GB_KERNEL], axis[GB_IN] + (GB_EXCLUDE_PAD ? 0 : axis[GB_PAD_END]));
    return max(0L, end - max(start, before));
}
static inline float gb_divisor(__global const long *axes, long o0, long o1, long o2)
{
    return (float)gb_cells(axes, o0) * (float)gb_cells(axes + GB_AXIS, o1) *
           (float)gb_cells(axes + 2 * GB_AXIS, o2);
}

/* Where the cells of a window begin, and those of them that lie in the image. */
static inline long gb_start(__global const long *axis, long position)
{
    return position * axis[GB_STEP] - axis[GB_PAD];
}
static inline long gb_first_cell(__global const long *axis, long start)
{
    return start < 0 ? (axis[GB_DILATION] - 1 - start) / axis[GB_DILATION] : 0;
}
static inline long gb_end_cell(__global const long *axis, long start)
{
    long end = axis[GB_IN] - start + axis[GB_DILATION] - 1;
    return end < 0 ? 0 : min(axis[GB_KERNEL], end / axis[GB_DILATION]);
}
/* Unrolled they would only take long to compile. */
#define GB_AS_IT_IS _Pragma("clang loop unroll(disable) vectorize(disable)")
#define GB_EACH_CELL(a, k, q, start)                                                               \
    GB_AS_IT_IS                                                                                    \
    for (long k = gb_first_cell(a, start), k##_end = gb_end_cell(a, start), q = start + k * a[GB_DILATION]; \
            k < k##_end; k++, q += a[GB_DILATION])

#ifdef GB_LOAD
/* Of the window at positions o0 .. o2 of three axes, from element `first` of the source on. With
 * GB_WINNER the place of the first cell that is above all before it, and above the lowest; or -1. */
#ifdef GB_WINNER
static int gb_window(GB_PARAMETERS, __global const long *axes, long first, long o0, long o1, long o2)
#else
static float gb_window(GB_PARAMETERS, __global const long *axes, long first, long o0, long o1, long o2)
#endif
{
    __global const long *a0 = axes, *a1 = axes + GB_AXIS, *a2 = axes + 2 * GB_AXIS;
    long s0 = gb_start(a0, o0), s1 = gb_start(a1, o1), s2 = gb_start(a2, o2);
    float result = GB_START;
    int winner = -1;
    GB_EACH_CELL(a0, k0, q0, s0)
        GB_EACH_CELL(a1, k1, q1, s1)
            GB_EACH_CELL(a2, k2, q2, s2) {
                float x = GB_LOAD(
                        first + q0 * a0[GB_SOURCE] + q1 * a1[GB_SOURCE] + q2 * a2[GB_SOURCE]);
#ifdef GB_WINNER
                winner = x > result ? (int)((q0 * a1[GB_IN] + q1) * a2[GB_IN] + q2) : winner;
#endif
                result = GB_MEAN ? result + x : gb_max(result, x);
            }
#ifdef GB_WINNER
    return winner;
#else
    return GB_MEAN ? gb_div(result, gb_divisor(axes, o0, o1, o2)) : result;
#endif
}
#endif

#ifdef GB_GRADIENT
/* Windows that reach a position: from the first to the last. */
static inline long gb_first_window(__global const long *axis, long position)
{
    long before = position + axis[GB_PAD] - (axis[GB_KERNEL] - 1) * axis[GB_DILATION];
    return before > 0 ? (before + axis[GB_STEP] - 1) / axis[GB_STEP] : 0;
}
static inline long gb_last_window(__global const long *axis, long position)
{
    long last = position + axis[GB_PAD];
    return last < 0 ? -1 : min(axis[GB_OUT] - 1, last / axis[GB_STEP]);
}
static inline bool gb_has_cell(__global const long *axis, long window, long position)
{
    return (position - gb_start(axis, window)) % axis[GB_DILATION] == 0;
}
#define GB_EACH_WINDOW(a, o, q)                                                                    \
    GB_AS_IT_IS                                                                                    \
    for (long o = gb_first_window(a, q), o##_last = gb_last_window(a, q); o <= o##_last; o++)       \
        if (gb_has_cell(a, o, q))

/* The gradient of the element at q0 .. q2: what the windows give that reach it, or that it won. */
static float gb_gather(GB_PARAMETERS, __global const long *axes, long i0, long i1, long q0, long q1,
        long q2)
{
    __global const long *a0 = axes, *a1 = axes + GB_AXIS, *a2 = axes + 2 * GB_AXIS;
    float sum = 0.0f;
    int place = (int)((q0 * a1[GB_IN] + q1) * a2[GB_IN] + q2);
    GB_EACH_WINDOW(a0, o0, q0)
        GB_EACH_WINDOW(a1, o1, q1)
            GB_EACH_WINDOW(a2, o2, q2) {
                if (GB_MEAN)
                    sum += gb_div(GB_GRADIENT, gb_divisor(axes, o0, o1, o2));
                else if (GB_PLACE == place)
                    sum += GB_GRADIENT;
            }
    return sum;
}
#endif
