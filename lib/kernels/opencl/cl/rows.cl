/* Reductions, softmax, norms, and the gradients of these: sums over some dims of a space, and what is
 * made of them. A row is what the reduced dims span at one position of the kept dims.
 *
 * A kernel is one of these stages (GB_STAGE): all of a problem, or, where rows are few and long, the
 * sums of parts of rows, what the sums of all parts of a row lead to, and the results. Sums are made
 * in one of these ways (GB_ALONG):
 *   GB_ALONG_ROW      a work-item has some rows, whose inner dim runs in lanes
 *   GB_ALONG_COLUMNS  rows that lie next to each other run in lanes; a work-item has some of these
 *   GB_ALONG_GROUP    a group of GB_GROUP work-items has one row
 *
 * The writer of the kernel defines, beside GB_ARGUMENTS and the like:
 *   GB_ROWS, GB_COLUMNS   rows, and those that are neighbours
 *   GB_VECTORS            along columns, where rows have no parameters and elements no results: lanes of
 *                         rows that a work-item walks side by side; the last ones may repeat others
 *   GB_COUNT, GB_EACH     rows, or lanes of rows, and how many a work-item has
 *   GB_OUTER, GB_INNER    elements of a row: the innermost reduced dim, and all others together
 *   GB_SPLITS, GB_PART    parts of a row, and the elements of one
 *   GB_WHOLE_ROWS         where rows are not cut; GB_ONE_OUTER: and GB_OUTER is 1
 *   GB_KEPT_ROW           where what a row's elements become on the way is kept: how many at most
 *   GB_KEPT, GB_OUTER_POSITION   declare positions from `rest`, and from `outer`
 *   GB_INNER_INDEX, GB_COLUMN_INDEX   the names of the innermost ones
 *   GB_PREPARE            sets parameters of the row, k0 and k1, before anything is summed
 *   GB_START, GB_FOLD     what the sum a begins with, and adds an element to GB_A and GB_B
 *   GB_JOIN(p, q)         of two sums a
 *   GB_PIVOT(a, n), GB_FOLD_AGAIN, GB_REBASE(a, b, n)   where b is summed once a is known, as the
 *                         pivot: adds an element to GB_B; b of n elements, whose own a is given,
 *                         as if the pivot had been that of all
 *   GB_FINISH             parameters of the results, k0 .. k4, of the sums; writes what the row has
 *   GB_APPLY             writes what an element becomes
 *   GB_KEEP, GB_RECALL    write and read parameters between the stages
 *   GB_KEEP_SUMS, GB_SUM_A, GB_SUM_B   write and read the sums of part `split` of row `row`
 *   GB_OTHER_ROWS, gb_join_other()     rows of an earlier kernel whose parts this one joins, too */
#define GB_STAGE_ALL     0
#define GB_STAGE_SUMS    1
#define GB_STAGE_JOIN    2
#define GB_STAGE_RESULTS 3
#define GB_ALONG_ROW     0
#define GB_ALONG_COLUMNS 1
#define GB_ALONG_GROUP   2

/* What belongs to a row: sums, the pivot, parameters. */
#if GB_ALONG == GB_ALONG_COLUMNS
#define GB_R GB_FLOATS
#else
#define GB_R float
#endif

/* Unrolled, loops that run once for each row would only take long to compile. */
#define GB_AS_IT_IS _Pragma("clang loop unroll(disable) vectorize(disable)")

/* The elements first .. end - 1 of the row; `inner` walks those along the inner dim. */
#ifdef GB_WHOLE_ROWS
#define GB_WALK(inner, what)                                                                       \
    {                                                                                              \
        GB_EACH_OUTER                                                                              \
        {                                                                                          \
            GB_OUTER_POSITION                                                                      \
            const long low = 0, high = GB_INNER;                                                   \
            inner(what)                                                                            \
        }                                                                                          \
    }
#else
#define GB_WALK(inner, what)                                                                       \
    GB_AS_IT_IS                                                                                    \
    for (long outer = first / GB_INNER; outer * GB_INNER < end; outer++) {                         \
        GB_OUTER_POSITION                                                                          \
        long low = max(first - outer * GB_INNER, 0L);                                              \
        long high = min(end - outer * GB_INNER, (long)GB_INNER);                                   \
        inner(what)                                                                                \
    }
#endif
/* Elements of the row that are kept between the sums and the results. */
#ifdef GB_KEPT_ROW
#define GB_KEEP_LANES(v) GB_STORE_WORDS(v, 0, kept + outer * GB_INNER + GB_INNER_INDEX);
#define GB_KEPT_LANES    GB_LOAD_WORDS(0, kept + outer * GB_INNER + GB_INNER_INDEX)
#endif
#ifdef GB_ONE_OUTER
#define GB_EACH_OUTER const long outer = 0;
#else
#define GB_EACH_OUTER                                                                              \
    GB_AS_IT_IS                                                                                    \
    for (long outer = 0; outer < GB_OUTER; outer++)
#endif
#if GB_ALONG == GB_ALONG_ROW
#define GB_A         lane_a
#define GB_B         lane_b
#define GB_WHOLE_LANES(what)                                                                       \
    long at = low;                                                                                 \
    for (; at + GB_LANES <= high; at += GB_LANES) {                                                \
        const int lanes = GB_LANES;                                                                \
        long GB_INNER_INDEX = at;                                                                  \
        what                                                                                       \
    }
#if GB_LANES > 1
/* The last lanes; and where these are to be summed up, as many as can be had, of which the sums take what
 * they lack. */
#define GB_APPLY_INNER(what)                                                                       \
    GB_WHOLE_LANES(what)                                                                           \
    if (at < high) {                                                                               \
        const int lanes = (int)(high - at);                                                        \
        long GB_INNER_INDEX = at;                                                                  \
        what                                                                                       \
    }
#define GB_FOLD_INNER(what)                                                                        \
    GB_WHOLE_LANES(what)                                                                           \
    if (at < high) {                                                                               \
        const int lanes = (int)min(high - low, (long)GB_LANES), taken = (int)(at - high) + lanes;  \
        GB_FLOATS a_before = lane_a, b_before = lane_b;                                            \
        long GB_INNER_INDEX = high - lanes;                                                        \
        what                                                                                       \
        GB_INTS counts = GB_LANE_NUMBERS >= taken && GB_LANE_NUMBERS < lanes;                      \
        lane_a = counts ? lane_a : a_before;                                                       \
        lane_b = counts ? lane_b : b_before;                                                       \
    }
#else
#define GB_APPLY_INNER(what) GB_WHOLE_LANES(what)
#define GB_FOLD_INNER(what)  GB_WHOLE_LANES(what)
#endif
#elif GB_ALONG == GB_ALONG_COLUMNS
#ifdef GB_VECTORS
#define GB_A sums_a[v]
#define GB_B sums_b[v]
#define GB_EACH_VECTOR                                                                             \
    _Pragma("unroll")                                                                              \
    for (int v = 0; v < GB_VECTORS; v++)
#define GB_FOLD_INNER(what)                                                                        \
    GB_AS_IT_IS                                                                                    \
    for (long at = low; at < high; at++) {                                                         \
        long GB_INNER_INDEX = at;                                                                  \
        GB_EACH_VECTOR {                                                                           \
            const int lanes = GB_LANES;                                                            \
            long GB_COLUMN_INDEX = first_column + v * GB_LANES;                                    \
            what                                                                                   \
        }                                                                                          \
    }
#else
#define GB_A a
#define GB_B b
#define GB_FOLD_INNER(what)                                                                        \
    GB_AS_IT_IS                                                                                    \
    for (long at = low; at < high; at++) {                                                         \
        long GB_INNER_INDEX = at;                                                                  \
        what                                                                                       \
    }
#define GB_APPLY_INNER(what) GB_FOLD_INNER(what)
#endif
#else
#define GB_A a
#define GB_B b
#define GB_APPLY_INNER(what) GB_FOLD_INNER(what)
#define GB_FOLD_INNER(what)                                                                        \
    for (long at = low + lane; at < high; at += GB_GROUP) {                                        \
        long GB_INNER_INDEX = at;                                                                  \
        what                                                                                       \
    }
#endif

/* Joins lanes, in halves: sets `sum` to what has become of v. */
#define GB_SUM_OF(p, q) (p + q)
#define GB_FOLD_LANES(v, order, join) v = join(v, (v).order);
#if GB_LANES == 16
#define GB_JOIN_LANES(sum, v, join)                                                                \
    GB_FOLD_LANES(v, s89abcdef01234567, join) GB_FOLD_LANES(v, s45670123cdef89ab, join)            \
    GB_FOLD_LANES(v, s23016745ab89efcd, join) GB_FOLD_LANES(v, s1032547698badcfe, join)            \
    sum = (v).s0;
#elif GB_LANES == 8
#define GB_JOIN_LANES(sum, v, join)                                                                \
    GB_FOLD_LANES(v, s45670123, join) GB_FOLD_LANES(v, s23016745, join)                            \
    GB_FOLD_LANES(v, s10325476, join)                                                              \
    sum = (v).s0;
#elif GB_LANES == 4
#define GB_JOIN_LANES(sum, v, join)                                                                \
    GB_FOLD_LANES(v, s2301, join) GB_FOLD_LANES(v, s1032, join)                                    \
    sum = (v).s0;
#elif GB_LANES == 2
#define GB_JOIN_LANES(sum, v, join) GB_FOLD_LANES(v, s10, join) sum = (v).s0;
#else
#define GB_JOIN_LANES(sum, v, join) sum = v;
#endif

#if GB_STAGE == GB_STAGE_ALL || GB_STAGE == GB_STAGE_SUMS
__kernel GB_ITEMS void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    long split = get_global_id(1), first = split * GB_PART, end = min(first + GB_PART, GB_TOTAL);
#if GB_ALONG == GB_ALONG_GROUP
    __local float room[GB_GROUP];
    long item = get_group_id(0);
    int lane = get_local_id(0);
    {
#else
    long last = min((long)(get_global_id(0) + 1) * GB_EACH, GB_COUNT);
    GB_AS_IT_IS
    for (long item = get_global_id(0) * GB_EACH; item < last; item++) {
#endif
#ifdef GB_VECTORS
#define GB_ONCE
        const long width = GB_VECTORS * GB_LANES;
        long blocks = (GB_COLUMNS + width - 1) / width, rest = item;
        long first_column = min(rest % blocks * width, GB_COLUMNS - width);
        long first_row = rest / blocks * GB_COLUMNS + first_column;
        rest /= blocks;
        GB_KEPT
        GB_FLOATS sums_a[GB_VECTORS], sums_b[GB_VECTORS];
        GB_EACH_VECTOR {
            sums_a[v] = GB_START;
            sums_b[v] = 0.0f;
        }
        GB_WALK(GB_FOLD_INNER, GB_FOLD)
        GB_EACH_VECTOR {
            const int lanes = GB_LANES;
            long row = first_row + v * GB_LANES, GB_COLUMN_INDEX = first_column + v * GB_LANES;
            GB_R a = sums_a[v], b = sums_b[v];
#else
#if GB_ALONG == GB_ALONG_COLUMNS
        long blocks = (GB_COLUMNS + GB_LANES - 1) / GB_LANES, rest = item;
        long column = rest % blocks * GB_LANES, row = rest / blocks * GB_COLUMNS + column;
        long GB_COLUMN_INDEX = column;
        const int lanes = (int)min((long)GB_LANES, GB_COLUMNS - column);
        rest /= blocks;
#else
        long row = item, rest = row;
#endif
        GB_KEPT
        GB_R a = GB_START, b = 0.0f, pivot = 0.0f;
        GB_R k0 = 0.0f, k1 = 0.0f, k2 = 0.0f, k3 = 0.0f, k4 = 0.0f;
        GB_PREPARE
#if GB_ALONG == GB_ALONG_ROW
        GB_FLOATS lane_a = GB_START, lane_b = 0.0f;
#endif
#ifdef GB_KEPT_ROW
        float kept[GB_KEPT_ROW + GB_LANES];
#endif
        GB_WALK(GB_FOLD_INNER, GB_FOLD)
#if GB_ALONG == GB_ALONG_ROW
        GB_JOIN_LANES(a, lane_a, GB_JOIN)
#ifndef GB_FOLD_AGAIN
        GB_JOIN_LANES(b, lane_b, GB_SUM_OF)
#endif
#elif GB_ALONG == GB_ALONG_GROUP
        room[lane] = a;
        for (int width = GB_GROUP / 2; width > 0; width /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane < width)
                room[lane] = GB_JOIN(room[lane], room[lane + width]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        a = room[0];
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
#ifdef GB_FOLD_AGAIN
        pivot = GB_PIVOT(a, (float)(end - first));
        GB_WALK(GB_FOLD_INNER, GB_FOLD_AGAIN)
#if GB_ALONG == GB_ALONG_ROW
        GB_JOIN_LANES(b, lane_b, GB_SUM_OF)
#endif
#endif
#if GB_ALONG == GB_ALONG_GROUP
        room[lane] = b;
        for (int width = GB_GROUP / 2; width > 0; width /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane < width)
                room[lane] += room[lane + width];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        b = room[0];
#define GB_ONCE if (lane == 0)
#else
#define GB_ONCE
#endif
#endif
#if GB_STAGE == GB_STAGE_SUMS
        GB_ONCE {
            GB_KEEP_SUMS
        }
#else
        GB_FINISH
#ifdef GB_APPLY
        GB_WALK(GB_APPLY_INNER, GB_APPLY)
#endif
#endif
#ifdef GB_VECTORS
        }
#endif
    }
#ifdef GB_OTHER_ROWS
    GB_AS_IT_IS
    for (long row = get_global_id(0); row < GB_OTHER_ROWS; row += get_global_size(0))
        gb_join_other(GB_PASSED, row);
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
    float a = GB_START, b = 0.0f, pivot, k0, k1, k2, k3, k4;
    GB_PREPARE
    for (long split = 0; split < GB_SPLITS; split++) {
        a = GB_JOIN(a, GB_SUM_A);
#ifndef GB_FOLD_AGAIN
        b += GB_SUM_B;
#endif
    }
#ifdef GB_FOLD_AGAIN
    pivot = GB_PIVOT(a, (float)GB_TOTAL);
    for (long split = 0; split < GB_SPLITS; split++)
        b += GB_REBASE(GB_SUM_A, GB_SUM_B, (float)(min(GB_PART, GB_TOTAL - split * GB_PART)));
#endif
    GB_FINISH
    GB_KEEP
}
#else
static inline void gb_apply(GB_PARAMETERS GB_INDICES)
{
    const long row = GB_ROW_NUMBER;
    float k0, k1, k2, k3, k4;
    GB_RECALL
    GB_APPLY
}
#endif
