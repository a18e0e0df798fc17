/* Attention whose product with V sums over the queries: V has a row for each of them, results one for each key,
 * or a column. A work-item has some keys of a task, mostly all, and walks the rows, GB_BLOCK_ROWS at a time, of
 * which it computes the scores of all keys, GB_BLOCK_KEYS. Behind attention_shared.cl; the writer defines,
 * beside what stands there:
 *
 *   GB_SPLITS, GB_SPLIT_KEYS work-items of a task, and keys of one: a multiple of GB_TILE_ROWS
 *   GB_SUMS                  global memory for the sums of all work-items; otherwise they are private
 *   GB_POST_AT(row, column, n, value)   takes results, in lanes n of them
 *   GB_KEYS_LAST             a result has a column for each key */
#define GB_VALUE_ROWS GB_BLOCK_ROWS
#ifdef GB_SUMS
#define GB_SUMS_SPACE __global
#else
#define GB_SUMS_SPACE __private
#endif
GB_MULTIPLIER(gb_add_rows, __private, __private, GB_SUMS_SPACE)

#ifndef GB_IN_LANES
#define GB_RESULTS      1
#define GB_RESULTS_AT(from, step) (from)[0]
#elif defined(GB_KEYS_LAST)
#define GB_RESULTS      GB_LANES
static inline float16 gb_results(GB_SUMS_SPACE const float *from, int n)
{
    float part[GB_LANES];
    for (int l = 0; l < GB_LANES; l++)
        part[l] = l < n ? from[l * GB_C] : 0.0f;
    return vload16(0, part);
}
#define GB_RESULTS_AT(from, n) gb_results(from, n)
#else
#define GB_RESULTS      GB_LANES
#define GB_RESULTS_AT(from, n) vload16(0, from)
#endif
#ifdef GB_KEYS_LAST
#define GB_EACH_RESULT                                                                             \
    for (long row = 0; row < GB_COLUMNS; row++)                                                    \
        for (long column = low; column < high; column += GB_RESULTS)
#define GB_RESULTS_LEFT (high - column)
#define GB_SUM_OF(row, column) (((column) - low) * GB_C + (row))
#else
#define GB_EACH_RESULT                                                                             \
    for (long row = low; row < high; row++)                                                        \
        for (long column = 0; column < GB_COLUMNS; column += GB_RESULTS)
#define GB_RESULTS_LEFT (GB_COLUMNS - column)
#define GB_SUM_OF(row, column) (((row) - low) * GB_C + (column))
#endif

__kernel GB_ITEMS void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    long split = get_global_id(0), task = get_global_id(1);
    if (split >= GB_SPLITS)
        return;
    GB_TASK
    const long low = split * GB_SPLIT_KEYS, high = min(low + GB_SPLIT_KEYS, GB_KEYS);
    float q[GB_BLOCK_ROWS * GB_F], values[GB_BLOCK_ROWS * GB_C];
    float scores[GB_BLOCK_ROWS * GB_BLOCK_KEYS + GB_LANES];
    float turned[GB_LANES * GB_F], packed[GB_LANES * GB_F];
    float scale = GB_SCALE;
    const long key = 0;
    const int keys = (int)GB_KEYS, panels = (keys + GB_LANES - 1) / GB_LANES;
#ifdef GB_SUMS
    __global float *sums = GB_SUMS + (task * GB_SPLITS + split) * GB_SPLIT_KEYS * GB_C;
#else
    float sums[GB_SPLIT_KEYS * GB_C];
#endif
    gb_clear(q, GB_BLOCK_ROWS * GB_F);
    gb_clear(values, GB_BLOCK_ROWS * GB_C);
    gb_clear(turned, GB_LANES * GB_F);
    gb_clear(packed, GB_LANES * GB_F);
    gb_clear(scores, GB_BLOCK_ROWS * GB_BLOCK_KEYS + GB_LANES);
    for (int i = 0; i < GB_SPLIT_KEYS * GB_C; i += GB_LANES)
        vstore16((float16)(0.0f), 0, sums + i);
    for (long first = 0; first < GB_ROWS; first += GB_BLOCK_ROWS) {
        int n = (int)min((long)GB_BLOCK_ROWS, GB_ROWS - first);
        for (int r = 0; r < n; r++) {
            GB_ROW(first + r)
            for (int f = 0; f < GB_FEATURES; f++)
                q[r * GB_F + f] = GB_Q(f) * scale;
            GB_LOAD_VALUE(first + r, values + r * GB_LANES)
        }
        GB_MULTIPLY_KEYS
        for (int r = 0; r < n; r++) {
            float *row = scores + r * GB_BLOCK_KEYS;
            GB_ROW(first + r)
            GB_RUN_BEFORE(row, keys)
            for (int l = keys; l < GB_BLOCK_KEYS; l++)
                row[l] = -INFINITY;
            float16 most = vload16(0, row), all = (float16)(0.0f);
            for (int l = 1; l < panels; l++) {
                float16 other = vload16(l, row);
                most = other > most ? other : most;
            }
            float top = gb_max(gb_most_lane(most), -FLT_MAX);
            for (int l = 0; l < panels; l++) {
                float16 weights = gb_weights(vload16(l, row) - top);
                vstore16(weights, l, row);
                all += weights;
            }
            float total = gb_sum_lanes(all);
            float factor = total == 0.0f ? GB_EMPTY : gb_div(1.0f, total);
            for (int l = 0; l < panels; l++)
                vstore16(vload16(l, row) * factor, l, row);
#ifdef GB_STATS
            if (split == 0)
                GB_STATS(total == 0.0f ? GB_EMPTY : top + gb_log(total));
#endif
#ifdef GB_BETWEEN
            GB_RUN(row, keys, GB_BETWEEN)
#endif
        }
        for (int c = 0; c < GB_C; c += GB_LANES)
            for (long k = low; k < high; k += GB_TILE_ROWS)
                gb_add_rows(scores + k, 1, GB_BLOCK_KEYS, values + c * GB_BLOCK_ROWS, n,
                        sums + (k - low) * GB_C + c, GB_C, true);
    }
    GB_EACH_RESULT {
        int here = (int)min((long)GB_RESULTS, GB_RESULTS_LEFT);
        GB_POST_AT(row, column, here, GB_RESULTS_AT(sums + GB_SUM_OF(row, column), here));
    }
}
