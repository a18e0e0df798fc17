/* Reductions, softmax, norms, and the gradients of these: sums over some dims of a space, and what is
 * made of them. A row is what the reduced dims span at one position of the kept dims.
 *
 * A kernel is one of these stages (GB_STAGE): all of a problem, or, where rows are few and long, the
 * sums of parts of rows, what the sums of all parts of a row lead to, and the results. Sums are in
 * lanes (GB_ALONG):
 *   GB_ALONG_ROW      a work-item has one row, whose inner dim it walks GB_LANES elements at a time
 *   GB_ALONG_COLUMNS  a work-item has GB_LANES rows that lie next to each other
 *   GB_ALONG_GROUP    a group of GB_LANES work-items has one row
 *
 * The writer of the kernel defines, beside GB_ARGUMENTS and the like:
 *   GB_ROWS, GB_COLUMNS   rows, and those that are neighbours
 *   GB_OUTER, GB_INNER    elements of a row: the innermost reduced dim, and all others together
 *   GB_SPLITS, GB_PART    parts of a row, and the elements of one
 *   GB_KEPT, GB_OUTER_POSITION   declare positions from `rest`, and from `outer`
 *   GB_INNER_INDEX, GB_COLUMN_INDEX   the names of the innermost ones
 *   GB_PREPARE            sets parameters of the row, k0 and k1, before anything is summed
 *   GB_START, GB_FOLD     what the sum a begins with, and adds an element to a and b
 *   GB_JOIN(p, q)         of two sums a
 *   GB_PIVOT(a, n), GB_FOLD_AGAIN, GB_REBASE(a, b, n)   where b is summed once a is known, as the
 *                         pivot: adds an element to b; b of n elements, whose own a is given,
 *                         as if the pivot had been that of all
 *   GB_FINISH             parameters of the results, k0 .. k4, of the sums; writes what the row has
 *   GB_APPLY             writes what an element becomes
 *   GB_KEEP, GB_RECALL    write and read parameters between the stages
 *   GB_SUM_A, GB_SUM_B    where the sums of part `split` of row `row` are */
#define GB_STAGE_ALL     0
#define GB_STAGE_SUMS    1
#define GB_STAGE_JOIN    2
#define GB_STAGE_RESULTS 3
#define GB_ALONG_ROW     0
#define GB_ALONG_COLUMNS 1
#define GB_ALONG_GROUP   2

static inline float gb_square(float x)
{
    return x * x;
}
/* NaN stays. */
static inline float gb_larger(float a, float x)
{
    return x > a || x != x ? x : a;
}
static inline float gb_smaller(float a, float x)
{
    return x < a || x != x ? x : a;
}
static inline float gb_mean(float sum, float n)
{
    return n > 0.0f ? gb_div(sum, n) : 0.0f;
}
static inline float gb_inverse_root(float x)
{
    return gb_div(1.0f, gb_sqrt(x));
}

#if GB_ALONG == GB_ALONG_GROUP
#define GB_HELD 1
#define GB_AT   0
#else
#define GB_HELD GB_LANES
#define GB_AT   lane
#endif
#if GB_ALONG == GB_ALONG_COLUMNS
#define GB_HELD_ROWS GB_LANES
#define GB_OF_ROW    lane
#else
#define GB_HELD_ROWS 1
#define GB_OF_ROW    0
#endif

/* Loops over lanes become vectors. Unrolled, these loops and those that run once for each row would
 * only take long to compile. */
#define GB_NO_UNROLLING _Pragma("clang loop unroll(disable) interleave(disable)")
#define GB_AS_IT_IS     _Pragma("clang loop unroll(disable) vectorize(disable)")

/* The elements first .. end - 1 of the row. */
#define GB_WALK(what)                                                                              \
    GB_AS_IT_IS                                                                                    \
    for (long outer = first / GB_INNER; outer * GB_INNER < end; outer++) {                         \
        GB_OUTER_POSITION                                                                          \
        long low = max(first - outer * GB_INNER, 0L);                                              \
        long high = min(end - outer * GB_INNER, (long)GB_INNER);                                   \
        GB_WALK_INNER(what)                                                                        \
    }
#if GB_ALONG == GB_ALONG_ROW
#define GB_WALK_INNER(what)                                                                        \
    GB_AS_IT_IS                                                                                    \
    for (long at = low; at < high; at += GB_LANES) {                                               \
        int lanes = (int)min((long)GB_LANES, high - at);                                           \
        GB_NO_UNROLLING                                                                            \
        for (int lane = 0; lane < lanes; lane++) {                                                 \
            long GB_INNER_INDEX = at + lane;                                                       \
            what                                                                                   \
        }                                                                                          \
    }
#elif GB_ALONG == GB_ALONG_COLUMNS
#define GB_WALK_INNER(what)                                                                        \
    GB_AS_IT_IS                                                                                    \
    for (long at = low; at < high; at++) {                                                         \
        long GB_INNER_INDEX = at;                                                                  \
        GB_NO_UNROLLING                                                                            \
        for (int lane = 0; lane < lanes; lane++) {                                                 \
            long GB_COLUMN_INDEX = column + lane;                                                  \
            what                                                                                   \
        }                                                                                          \
    }
#else
#define GB_WALK_INNER(what)                                                                        \
    for (long at = low + lane; at < high; at += GB_LANES) {                                        \
        long GB_INNER_INDEX = at;                                                                  \
        what                                                                                       \
    }
#endif

#if GB_ALONG == GB_ALONG_COLUMNS
#define GB_EACH_ROW(what)                                                                          \
    GB_AS_IT_IS                                                                                    \
    for (int lane = 0; lane < lanes; lane++) {                                                     \
        long GB_COLUMN_INDEX = column + lane, row = first_row + lane;                              \
        what                                                                                       \
    }
#else
#define GB_EACH_ROW(what) {what}
#endif

#if GB_STAGE == GB_STAGE_ALL || GB_STAGE == GB_STAGE_SUMS
__kernel void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    long split = get_global_id(1), first = split * GB_PART, end = min(first + GB_PART, GB_TOTAL);
#if GB_ALONG == GB_ALONG_COLUMNS
    long blocks = (GB_COLUMNS + GB_LANES - 1) / GB_LANES, rest = get_global_id(0);
    if (rest >= GB_ROWS / GB_COLUMNS * blocks)
        return;
    long column = rest % blocks * GB_LANES, first_row = rest / blocks * GB_COLUMNS + column;
    int lanes = (int)min((long)GB_LANES, GB_COLUMNS - column);
    rest /= blocks;
#elif GB_ALONG == GB_ALONG_GROUP
    __local float room[GB_LANES];
    long row = get_group_id(0), rest = row;
    int lane = get_local_id(0);
#else
    long row = get_global_id(0), rest = row;
    if (row >= GB_ROWS)
        return;
#endif
    GB_KEPT
    float a[GB_HELD], b[GB_HELD], pivot[GB_HELD_ROWS];
    float k0[GB_HELD_ROWS], k1[GB_HELD_ROWS], k2[GB_HELD_ROWS], k3[GB_HELD_ROWS], k4[GB_HELD_ROWS];
    GB_EACH_ROW(GB_PREPARE)
    GB_AS_IT_IS
    for (int l = 0; l < GB_HELD; l++) {
        a[l] = GB_START;
        b[l] = 0.0f;
    }
    GB_WALK(GB_FOLD)
#if GB_ALONG == GB_ALONG_ROW
    for (int width = GB_LANES / 2; width > 0; width /= 2)
        GB_AS_IT_IS
        for (int l = 0; l < width; l++) {
            a[l] = GB_JOIN(a[l], a[l + width]);
#ifndef GB_FOLD_AGAIN
            b[l] += b[l + width];
#endif
        }
#elif GB_ALONG == GB_ALONG_GROUP
    room[lane] = a[0];
    for (int width = GB_LANES / 2; width > 0; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < width)
            room[lane] = GB_JOIN(room[lane], room[lane + width]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    a[0] = room[0];
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
#ifdef GB_FOLD_AGAIN
    GB_EACH_ROW(pivot[GB_OF_ROW] = GB_PIVOT(a[GB_OF_ROW], (float)(end - first));)
    GB_WALK(GB_FOLD_AGAIN)
#if GB_ALONG == GB_ALONG_ROW
    for (int width = GB_LANES / 2; width > 0; width /= 2)
        GB_AS_IT_IS
        for (int l = 0; l < width; l++)
            b[l] += b[l + width];
#endif
#endif
#if GB_ALONG == GB_ALONG_GROUP
    room[lane] = b[0];
    for (int width = GB_LANES / 2; width > 0; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < width)
            room[lane] += room[lane + width];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    b[0] = room[0];
#define GB_ONCE if (lane == 0)
#else
#define GB_ONCE
#endif
#if GB_STAGE == GB_STAGE_SUMS
    GB_EACH_ROW(GB_ONCE {
        GB_SUM_A = a[GB_OF_ROW];
        GB_SUM_B = b[GB_OF_ROW];
    })
#else
    GB_EACH_ROW(GB_FINISH)
#ifdef GB_APPLY
    GB_WALK(GB_APPLY)
#endif
#endif
}
#elif GB_STAGE == GB_STAGE_JOIN
#define GB_ONCE
__kernel void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    long row = get_global_id(0), rest = row;
    if (row >= GB_ROWS)
        return;
    GB_KEPT
    float a[1], b[1], pivot[1], k0[1], k1[1], k2[1], k3[1], k4[1];
    GB_PREPARE
    a[0] = GB_START;
    b[0] = 0.0f;
    for (long split = 0; split < GB_SPLITS; split++) {
        a[0] = GB_JOIN(a[0], GB_SUM_A);
#ifndef GB_FOLD_AGAIN
        b[0] += GB_SUM_B;
#endif
    }
#ifdef GB_FOLD_AGAIN
    pivot[0] = GB_PIVOT(a[0], (float)GB_TOTAL);
    for (long split = 0; split < GB_SPLITS; split++)
        b[0] += GB_REBASE(GB_SUM_A, GB_SUM_B, (float)(min(GB_PART, GB_TOTAL - split * GB_PART)));
#endif
    GB_FINISH
    GB_KEEP
}
#else
static inline void gb_apply(GB_PARAMETERS GB_INDICES)
{
    const long row = GB_ROW_NUMBER;
    float k0[1], k1[1], k2[1], k3[1], k4[1];
    GB_RECALL
    GB_APPLY
}
#endif
