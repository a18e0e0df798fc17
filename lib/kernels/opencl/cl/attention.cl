/* Attention with on-line softmax: a work-item takes GB_BLOCK_ROWS rows of a task and walks the keys,
 * GB_BLOCK_KEYS at a time. Scores of such a block are all that is ever kept of them. Behind
 * attention_shared.cl; the writer defines, beside what stands
 * there:
 *
 *   GB_EXACT                weights that sum to 1 are what GB_BETWEEN needs
 *   GB_POST(column, value)  takes results */
#define GB_VALUE_ROWS GB_BLOCK_KEYS

__kernel GB_ITEMS void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    long first = get_global_id(0) * GB_BLOCK_ROWS, task = get_global_id(1);
    if (first >= GB_ROWS)
        return;
    GB_TASK
    int n = (int)min((long)GB_BLOCK_ROWS, GB_ROWS - first);
    float q[GB_BLOCK_ROWS * GB_F], sums[GB_BLOCK_ROWS * GB_C];
    float scores[GB_BLOCK_ROWS * GB_BLOCK_KEYS], values[GB_BLOCK_KEYS * GB_C];
    float turned[GB_LANES * GB_F], packed[GB_LANES * GB_F];
    float top[GB_BLOCK_ROWS], total[GB_BLOCK_ROWS], factor[GB_BLOCK_ROWS];
    float scale = GB_SCALE;
    long end = 0; /* of the keys that a row sees */
#ifdef GB_FILL
    long up = GB_SHIFT_UP, down = GB_SHIFT_DOWN;
    bool hides = up > -GB_MOST_SHIFT && up < GB_MOST_SHIFT && down > -GB_MOST_SHIFT &&
                 down < GB_MOST_SHIFT;
    float fill = GB_FILL;
#endif
    gb_clear(q, GB_BLOCK_ROWS * GB_F);
    gb_clear(sums, GB_BLOCK_ROWS * GB_C);
    gb_clear(turned, GB_LANES * GB_F);
    gb_clear(packed, GB_LANES * GB_F);
    gb_clear(values, GB_BLOCK_KEYS * GB_C);
    for (int r = 0; r < n; r++) {
        GB_ROW(first + r)
        for (int f = 0; f < GB_FEATURES; f++)
            q[r * GB_F + f] = GB_Q(f) * scale;
        top[r] = -FLT_MAX;
        total[r] = 0.0f;
#ifdef GB_FILL
        end = max(end, GB_QUERY + up - down + 1);
#endif
    }
#ifdef GB_EXACT
    for (int pass = 0; pass < 2; pass++) {
#else
    enum { pass = 1 };
    {
#endif
        for (long key = 0; key < GB_KEYS; key += GB_BLOCK_KEYS) {
            int keys = (int)min((long)GB_BLOCK_KEYS, GB_KEYS - key);
            int panels = (keys + GB_LANES - 1) / GB_LANES;
#ifdef GB_FILL
            bool vanish = hides && key >= end;
            for (int r = 0; r < n; r++)
                vanish = vanish && top[r] - fill > GB_VANISHES;
            if (vanish)
                break;
#endif
            GB_MULTIPLY_KEYS
            for (int r = 0; r < n; r++) {
                float *row = scores + r * GB_BLOCK_KEYS;
                GB_ROW(first + r)
#ifdef GB_FILL
                if (hides && key + keys <= GB_QUERY + up - down + 1) {
                    GB_RUN_VISIBLE(row, keys)
                } else
#endif
                {
                    GB_RUN_BEFORE(row, keys)
                }
                for (int l = keys; l < panels * GB_LANES; l++)
                    row[l] = -INFINITY;
#ifdef GB_EXACT
                if (pass == 1) {
                    for (int l = 0; l < panels; l++)
                        vstore16(gb_weights(vload16(l, row) - top[r]) * factor[r], l, row);
                } else
#endif
                {
                    float16 most = vload16(0, row), sum = (float16)(0.0f);
                    for (int l = 1; l < panels; l++) {
                        float16 other = vload16(l, row);
                        most = other > most ? other : most;
                    }
                    float before = top[r], now = gb_max(gb_most_lane(most), before);
                    for (int l = 0; l < panels; l++) {
                        float16 weights = gb_weights(vload16(l, row) - now);
                        vstore16(weights, l, row);
                        sum += weights;
                    }
                    float fade = gb_exp(before - now);
                    total[r] = total[r] * fade + gb_sum_lanes(sum);
                    top[r] = now;
                    if (now > before && key > 0)
                        for (int c = 0; c < GB_C; c += GB_LANES)
                            vstore16(vload16(0, sums + r * GB_C + c) * fade, 0,
                                    sums + r * GB_C + c);
                }
#ifdef GB_BETWEEN
                if (pass == 1) {
                    GB_RUN(row, keys, GB_BETWEEN)
                }
#endif
            }
            if (pass == 0)
                continue;
            for (int l = 0; l < keys; l++) {
                GB_LOAD_VALUE(key + l, values + l * GB_LANES)
            }
            for (int c = 0; c < GB_C; c += GB_LANES)
                for (int r = 0; r < n; r += GB_TILE_ROWS)
                    gb_multiply(scores + r * GB_BLOCK_KEYS, GB_BLOCK_KEYS, 1,
                            values + c * GB_BLOCK_KEYS, keys, sums + r * GB_C + c, GB_C, true);
        }
        for (int r = 0; r < n; r++)
            factor[r] = total[r] == 0.0f ? GB_EMPTY : gb_div(1.0f, total[r]);
    }
    for (int r = 0; r < n; r++) {
        GB_ROW(first + r)
#ifdef GB_STATS
        GB_STATS(total[r] == 0.0f ? GB_EMPTY : top[r] + gb_log(total[r]));
#endif
#ifdef GB_EXACT
        float by = 1.0f;
#else
        float by = factor[r];
#endif
        for (int c = 0; c < GB_COLUMNS; c++)
            GB_POST(c, sums[r * GB_C + c] * by);
    }
}
