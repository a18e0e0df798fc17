/* Pools: a work-item sums, or takes the largest of, the cells of one window. GB_MEAN says which.
 * Each axis has seven numbers: size of the source, kernel, stride, dilation, pads before and behind,
 * stride of the source. */
enum { GB_IN, GB_KERNEL, GB_STEP, GB_DILATION, GB_PAD, GB_PAD_END, GB_SOURCE, GB_AXIS = 7 };

/* Cells of a window that count: those inside, or inside the declared padding too. */
static inline long gb_cells(__global const long *axis, long position, bool exclude_pad)
{
    long start = position * axis[GB_STEP] - axis[GB_PAD];
    long before = exclude_pad ? 0 : -axis[GB_PAD];
    long end = min(start + axis[GB_KERNEL], axis[GB_IN] + (exclude_pad ? 0 : axis[GB_PAD_END]));
    return max(0L, end - max(start, before));
}

/* Of the window at positions o0 .. o2 of three axes, from element `first` of the source on. */
static float gb_window(GB_PARAMETERS, __global const long *axes, long first, long o0, long o1, long o2)
{
    __global const long *a0 = axes, *a1 = axes + GB_AXIS, *a2 = axes + 2 * GB_AXIS;
    float result = GB_START;
    for (long k0 = 0; k0 < a0[GB_KERNEL]; k0++) {
        long q0 = o0 * a0[GB_STEP] - a0[GB_PAD] + k0 * a0[GB_DILATION];
        if (q0 < 0 || q0 >= a0[GB_IN])
            continue;
        for (long k1 = 0; k1 < a1[GB_KERNEL]; k1++) {
            long q1 = o1 * a1[GB_STEP] - a1[GB_PAD] + k1 * a1[GB_DILATION];
            if (q1 < 0 || q1 >= a1[GB_IN])
                continue;
            for (long k2 = 0; k2 < a2[GB_KERNEL]; k2++) {
                long q2 = o2 * a2[GB_STEP] - a2[GB_PAD] + k2 * a2[GB_DILATION];
                if (q2 < 0 || q2 >= a2[GB_IN])
                    continue;
                float x = GB_LOAD(first + q0 * a0[GB_SOURCE] + q1 * a1[GB_SOURCE] +
                                  q2 * a2[GB_SOURCE]);
                result = GB_MEAN ? result + x : gb_max(result, x);
            }
        }
    }
    if (GB_MEAN)
        result = gb_div(result, (float)gb_cells(a0, o0, GB_EXCLUDE_PAD) *
                                        (float)gb_cells(a1, o1, GB_EXCLUDE_PAD) *
                                        (float)gb_cells(a2, o2, GB_EXCLUDE_PAD));
    return result;
}
