/* Reductions whose axes are in a tensor. A work-item walks a part of the elements of one result. The
 * writer of the kernel defines, beside GB_ARGUMENTS and the like:
 *   GB_LIST              numbers: dims of the source and of the result, whether the result has the
 *                        reduced ones, axes in the tensor and their distance; then the source's dims
 *                        and strides, and the result's dims
 *   GB_AXES(i)           element i of the tensor of axes
 *   GB_LOAD(i)           element of the source
 *   GB_START, GB_FOLD, GB_JOIN, GB_FINISH   as for cl/rows.cl
 *   GB_KEPT              declares the position in the result from `rest`
 *   GB_ROWS, GB_TOTAL, GB_SPLITS, GB_PART, GB_SUM_A */
enum { GB_SRC_DIMS, GB_DST_DIMS, GB_KEEPS, GB_N_AXES, GB_AXES_STRIDE, GB_SIZES };
#define GB_A a
#define GB_R float
#define GB_ONCE

/* One bit for each reduced dim; -1: these are no axes of the source, or do not lead to the result. */
static int gb_reduced_dims(GB_PARAMETERS)
{
    __global const long *list = GB_LIST, *dims = list + GB_SIZES;
    long n = list[GB_SRC_DIMS], result = 0;
    __global const long *result_dims = dims + 2 * n;
    int reduced = 0;
    for (long i = 0; i < list[GB_N_AXES]; i++) {
        long axis = GB_AXES(i * list[GB_AXES_STRIDE]);
        axis += axis < 0 ? n : 0;
        if (axis < 0 || axis >= n || (reduced >> axis & 1))
            return -1;
        reduced |= 1 << axis;
    }
    for (long d = 0; d < n; d++) {
        bool gone = reduced >> d & 1;
        if (gone && !list[GB_KEEPS])
            continue;
        if (result == list[GB_DST_DIMS] || result_dims[result] != (gone ? 1 : dims[d]))
            return -1;
        result++;
    }
    return result == list[GB_DST_DIMS] ? reduced : -1;
}

/* Where element `index` of the dims lies whose bit in `which` is set, in row-major order. */
static inline long gb_place(__global const long *list, int which, long index)
{
    __global const long *dims = list + GB_SIZES;
    long n = list[GB_SRC_DIMS], offset = 0;
    for (long d = n; d-- > 0;) {
        if (!(which >> d & 1))
            continue;
        offset += index % dims[d] * dims[n + d];
        index /= dims[d];
    }
    return offset;
}

__kernel void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    long row = get_global_id(0), rest = row;
    if (row >= GB_ROWS)
        return;
    int reduced = gb_reduced_dims(GB_PASSED);
    float a = GB_START;
#if GB_JOINS
    for (long split = 0; split < GB_SPLITS; split++)
        a = GB_JOIN(a, GB_SUM_A);
#else
    long split = get_global_id(1), end = min((split + 1) * GB_PART, GB_TOTAL);
    if (reduced >= 0) {
        long first = gb_place(GB_LIST, ~reduced, row);
        for (long i = split * GB_PART; i < end; i++) {
            float x = GB_LOAD(first + gb_place(GB_LIST, reduced, i));
            a = GB_FOLD;
        }
    }
#endif
#if GB_FINISHES
    GB_KEPT
    if (reduced < 0) {
        GB_POST(NAN);
        return;
    }
    GB_FINISH
#else
    GB_SUM_A = a;
#endif
}
