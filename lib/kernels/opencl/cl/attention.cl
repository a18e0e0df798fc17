/* Attention with on-line softmax: a work-item takes GB_BLOCK_ROWS rows of a task and walks the keys,
 * GB_BLOCK_KEYS at a time. Scores of such a block are all that is ever kept of them. The writer of
 * the kernel defines, beside GB_ARGUMENTS and the like:
 *
 *   GB_ROWS, GB_KEYS        of a task
 *   GB_FEATURES, GB_COLUMNS of Q and K, of V
 *   GB_TASK                 declares the position in the dims of tasks from `task`
 *   GB_ROW(row)             declares that in the dims of rows
 *   GB_QUERY                the query there
 *   GB_Q(f), GB_K(key, f), GB_V(key, c)   elements
 *   GB_K_ADDRESS(key), GB_V_ADDRESS(key)  rows of f32 elements, only where they are neighbours
 *   GB_KEYS_ADJACENT        where those of K are neighbours along the keys
 *   GB_SCALE                of Q
 *   GB_BEFORE(key, t), GB_VISIBLE(key, t), GB_BETWEEN(key, t)
 *                           from t[0] to t[1]: a score, one that no mask hides, a weight; absent
 *                           where nothing is to be done
 *   GB_SHIFT_UP, GB_SHIFT_DOWN, GB_FILL   of an implicit causal mask
 *   GB_EXACT                weights that sum to 1 are what GB_BETWEEN needs
 *   GB_EMPTY                the weights of a row without any
 *   GB_STATS(value)
 *   GB_POST(column, value)
 *
 * Rows of private memory are padded to whole vectors. */
#define GB_LANES  16
#define GB_WIDE(n) (((n) + GB_LANES - 1) / GB_LANES * GB_LANES)
#define GB_F       GB_WIDE(GB_FEATURES)
#define GB_C       GB_WIDE(GB_COLUMNS)
#define GB_PANELS  (GB_BLOCK_KEYS / GB_LANES)
/* What a mask hides weighs nothing in a row whose maximum is so much larger. */
#define GB_VANISHES 112.0f
#define GB_MOST_SHIFT (INT_MAX / 4)

#ifdef GB_FMA
#define GB_ADD_PRODUCT(a, b, c) fma(a, b, c)
#else
#define GB_ADD_PRODUCT(a, b, c) ((a) * (b) + (c))
#endif

/* e^x for x <= 0; 0 where that is no normal number */
static inline float16 gb_weights(float16 x)
{
    float16 t = x * GB_LOG2_E;
    t = t < -127.0f ? (float16)(-127.0f) : t;
    float16 n = (t + 0x1.8p23f) - 0x1.8p23f, r = t - n;
    float16 s = GB_ADD_PRODUCT((float16)(0.0013264742f), r, (float16)(0.0096715176f));
    s = GB_ADD_PRODUCT(s, r, (float16)(0.055507336f));
    s = GB_ADD_PRODUCT(s, r, (float16)(0.24022242f));
    s = GB_ADD_PRODUCT(s, r, (float16)(0.693147f));
    s = GB_ADD_PRODUCT(s, r, (float16)(1.0f));
    return s * as_float16((convert_int16(n) + 127) << 23);
}
static inline float gb_sum_lanes(float16 v)
{
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    float2 c = b.lo + b.hi;
    return c.x + c.y;
}
static inline float gb_most_lane(float16 v)
{
    float8 a = v.lo > v.hi ? v.lo : v.hi;
    float4 b = a.lo > a.hi ? a.lo : a.hi;
    return gb_max(gb_max(b.x, b.y), gb_max(b.z, b.w));
}

/* Row r of sums, one statement for each row of a tile. */
#if GB_TILE_ROWS == 1
#define GB_EACH_ROW(statement) statement(0)
#elif GB_TILE_ROWS == 4
#define GB_EACH_ROW(statement) statement(0) statement(1) statement(2) statement(3)
#else
#define GB_EACH_ROW(statement)                                                                     \
    statement(0) statement(1) statement(2) statement(3) statement(4) statement(5)
#endif

/* c (+)= a b: GB_TILE_ROWS rows of a, k rows of GB_LANES columns of b. */
static inline void gb_multiply(
        const float *a, int a_row, const float *b, int k, float *c, int c_row, bool adds)
{
#define GB_DECLARE(r) float16 c##r = adds ? vload16(0, c + (r) * c_row) : (float16)(0.0f);
#define GB_ADD(r)     c##r = GB_ADD_PRODUCT((float16)(a[(r) * a_row + i]), row, c##r);
#define GB_KEEP(r)    vstore16(c##r, 0, c + (r) * c_row);
    GB_EACH_ROW(GB_DECLARE)
    for (int i = 0; i < k; i++) {
        float16 row = vload16(i, b);
        GB_EACH_ROW(GB_ADD)
    }
    GB_EACH_ROW(GB_KEEP)
#undef GB_DECLARE
#undef GB_ADD
#undef GB_KEEP
}

/* 4 x 4 numbers, turned. */
static inline void gb_turn(const float *from, int from_row, float *to, int to_row)
{
    float4 a = vload4(0, from), b = vload4(0, from + from_row);
    float4 c = vload4(0, from + 2 * from_row), d = vload4(0, from + 3 * from_row);
    vstore4((float4)(a.x, b.x, c.x, d.x), 0, to);
    vstore4((float4)(a.y, b.y, c.y, d.y), 0, to + to_row);
    vstore4((float4)(a.z, b.z, c.z, d.z), 0, to + 2 * to_row);
    vstore4((float4)(a.w, b.w, c.w, d.w), 0, to + 3 * to_row);
}

/* GB_LANES keys of K as rows. */
#define GB_LOAD_KEYS(first, rows)                                                                  \
    for (int l = 0; l < GB_LANES; l++) {                                                           \
        long one = min((first) + l, GB_KEYS - 1);                                                  \
        GB_LOAD_KEY(one, rows + l * GB_F)                                                          \
    }
#if defined(GB_K_ADDRESS) && GB_FEATURES % 16 == 0
#define GB_LOAD_KEY(key, row)                                                                      \
    for (int f = 0; f < GB_FEATURES; f += GB_LANES)                                                \
        vstore16(vload16(0, GB_K_ADDRESS(key) + f), 0, row + f);
#else
#define GB_LOAD_KEY(key, row)                                                                      \
    for (int f = 0; f < GB_FEATURES; f++)                                                          \
        (row)[f] = GB_K(key, f);
#endif
#if defined(GB_V_ADDRESS) && GB_COLUMNS % 16 == 0
#define GB_LOAD_VALUE(key, row)                                                                    \
    for (int c = 0; c < GB_COLUMNS; c += GB_LANES)                                                 \
        vstore16(vload16(0, GB_V_ADDRESS(key) + c), 0, row + c * GB_BLOCK_KEYS);
#else
#define GB_LOAD_VALUE(key, row)                                                                    \
    for (int c = 0; c < GB_COLUMNS; c++)                                                           \
        (row)[c / GB_LANES * GB_LANES * GB_BLOCK_KEYS + c % GB_LANES] = GB_V(key, c);
#endif

/* Scores of a block, keys from `key` on: of each row r < n of the work-item, scores + r *
 * GB_BLOCK_KEYS. */
#if GB_BLOCK_ROWS == 1 && !defined(GB_KEYS_ADJACENT)
#define GB_MULTIPLY_KEYS                                                                           \
    for (int panel = 0; panel < panels; panel++) {                                                 \
        GB_LOAD_KEYS(key + panel * GB_LANES, turned)                                               \
        for (int l = 0; l < GB_LANES; l++) {                                                       \
            float16 sum = (float16)(0.0f);                                                         \
            for (int f = 0; f < GB_F; f += GB_LANES)                                               \
                sum = GB_ADD_PRODUCT(vload16(0, q + f), vload16(0, turned + l * GB_F + f), sum);   \
            scores[panel * GB_LANES + l] = gb_sum_lanes(sum);                                      \
        }                                                                                          \
    }
#else
#ifdef GB_KEYS_ADJACENT
#define GB_PACK_KEYS(first)                                                                        \
    for (int f = 0; f < GB_FEATURES; f++)                                                          \
        for (int l = 0; l < GB_LANES; l++)                                                         \
            packed[f * GB_LANES + l] = GB_K(min((first) + l, GB_KEYS - 1), f);
#else
#define GB_PACK_KEYS(first)                                                                        \
    GB_LOAD_KEYS(first, turned)                                                                    \
    for (int f = 0; f < GB_F; f += 4)                                                              \
        for (int l = 0; l < GB_LANES; l += 4)                                                      \
            gb_turn(turned + l * GB_F + f, GB_F, packed + f * GB_LANES + l, GB_LANES);
#endif
#define GB_MULTIPLY_KEYS                                                                           \
    for (int panel = 0; panel < panels; panel++) {                                                 \
        GB_PACK_KEYS(key + panel * GB_LANES)                                                       \
        for (int r = 0; r < n; r += GB_TILE_ROWS)                                                  \
            gb_multiply(q + r * GB_F, GB_F, packed, GB_F,                                          \
                    scores + r * GB_BLOCK_KEYS + panel * GB_LANES, GB_BLOCK_KEYS, false);          \
    }
#endif

/* Post-ops of the keys of a block in one row. */
#define GB_RUN(row, count, program)                                                                \
    for (int l = 0; l < count; l++) {                                                              \
        float t[2] = {(row)[l], 0.0f};                                                             \
        program(key + l, t);                                                                       \
        (row)[l] = t[1];                                                                           \
    }
#ifdef GB_BEFORE
#define GB_RUN_BEFORE(row, count) GB_RUN(row, count, GB_BEFORE)
#else
#define GB_RUN_BEFORE(row, count)
#endif
#ifdef GB_VISIBLE
#define GB_RUN_VISIBLE(row, count) GB_RUN(row, count, GB_VISIBLE)
#else
#define GB_RUN_VISIBLE(row, count)
#endif

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
    for (int i = 0; i < GB_BLOCK_ROWS * GB_F; i += GB_LANES)
        vstore16((float16)(0.0f), 0, q + i);
    for (int i = 0; i < GB_BLOCK_ROWS * GB_C; i += GB_LANES)
        vstore16((float16)(0.0f), 0, sums + i);
    for (int i = 0; i < GB_LANES * GB_F; i += GB_LANES) {
        vstore16((float16)(0.0f), 0, turned + i);
        vstore16((float16)(0.0f), 0, packed + i);
    }
    for (int i = 0; i < GB_BLOCK_KEYS * GB_C; i += GB_LANES)
        vstore16((float16)(0.0f), 0, values + i);
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
                    gb_multiply(scores + r * GB_BLOCK_KEYS, GB_BLOCK_KEYS,
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
