/* A constant operand of a product as cl/gemm.cl reads it: f32 in panels of GB_WIDTH rows of A or columns
 * of B, the terms of a panel one after the other. What is missing in the last panel repeats the last
 * row or column. The writer defines, beside GB_ARGUMENTS and the like:
 *
 *   GB_SIDE, GB_K, GB_TAPS     sizes
 *   GB_PANELS
 *   GB_BASES                   declares where the operand begins
 *   GB_ELEMENT(own, tap, k)    of row, or column, `own`
 *   GB_PACKED                  address of the panels
 *
 * A work-item lays out one tap of a panel. */
__kernel GB_ITEMS void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    long panel = get_global_id(0), tap = get_global_id(1);
    if (panel >= GB_PANELS)
        return;
    GB_BASES
    __global float *to = GB_PACKED + (panel * GB_TAPS + tap) * GB_K * GB_WIDTH;
    for (long k = 0; k < GB_K; k++)
        for (int l = 0; l < GB_WIDTH; l++) {
            long own = min(panel * GB_WIDTH + l, GB_SIDE - 1);
            to[k * GB_WIDTH + l] = GB_ELEMENT(own, tap, k);
        }
}
