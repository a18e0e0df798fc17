/* Attention with on-line softmax: a work-item takes GB_BLOCK_ROWS rows of a task and walks the
 * keys, GB_BLOCK_KEYS at a time. Scores of such a block are all that is ever kept of them. The
 * writer of the kernel defines, beside GB_ARGUMENTS and the like:
 *
 *   GB_ROWS, GB_KEYS        of a task
 *   GB_FEATURES, GB_COLUMNS of Q and K, of V
 *   GB_TASK                 declares the position in the dims of tasks from `task`
 *   GB_ROW(row)             declares that in the dims of rows
 *   GB_QUERY                the query there
 *   GB_Q(f), GB_K(key, f), GB_V(key, c)   elements
 *   GB_K_LANES(key, f), GB_V_LANES(key, c)   16 elements, may be there where they are neighbours
 *   GB_KEYS_ADJACENT        where those of K are neighbours along the keys; then GB_K_ACROSS(key, f)
 *                           may be there: 16 of them
 *   GB_SCALE                of Q
 *   GB_BEFORE(key, n, t), GB_VISIBLE(key, n, t), GB_BETWEEN(key, n, t)
 *                           from t[0] to t[1]: a score, one that no mask hides, a weight; absent
 *                           where nothing is to be done
 *   GB_SHIFT_UP, GB_SHIFT_DOWN, GB_FILL   of an implicit causal mask
 *   GB_EXACT                weights that sum to 1 are what GB_BETWEEN needs
 *   GB_EMPTY                the weights of a row without any
 *   GB_STATS(value)
 *   GB_POST(column, value)
 *
 * Rows of private memory are padded to whole vectors. Gradients follow below, with GB_GRADIENTS, and sums over
 * the queries, with GB_OVER_QUERIES. */
#define GB_WIDE(n) (((n) + GB_LANES - 1) / GB_LANES * GB_LANES)
#define GB_F       GB_WIDE(GB_FEATURES)
#define GB_C       GB_WIDE(GB_COLUMNS)
#define GB_PANELS  (GB_BLOCK_KEYS / GB_LANES)
/* What a mask hides weighs nothing in a row whose maximum is so much larger. */
#define GB_VANISHES 112.0f
#define GB_MOST_SHIFT (INT_MAX / 4)

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

#ifdef GB_GRADIENTS
/* The weights are computed again from the scores, by post-ops that give P and dS from S = Q K^T,
 * G = dO V^T and D, the row sums of O dO. The first GB_ROW_ITEMS work-items of a task take rows and
 * walk the keys: dQ = dS K. The others take keys and walk the rows: dK = dS^T Q, dV = P^T dO.
 * Either needs nothing of the other. Beside the above the writer defines
 *
 *   GB_KEY_ITEMS            work-items that take keys
 *   GB_OTHERS               keys, or rows, that a work-item walks by at a time
 *   GB_G(c), GB_O(c)        elements of dO and O at the position of a row
 *   GB_SCORES(key, n, t)    the post-ops: t[0] is S, t[1] G, t[4] D; they leave P in t[2] and dS
 *                           in t[3]
 *   GB_SCORES_AGAIN(key, n, t)   the same, but what they write to memory
 *   GB_EXPOSES              they write to memory
 *   GB_STATS_HERE           maximum and log of the sum of a row, where a causal mask is known
 *   GB_POST_DQ(c, value), GB_POST_DK(key, c, value), GB_POST_DV(key, c, value) */
/* `count` rows, turned for scores, and GB_OTHERS rows in panels of columns for sums. */
static inline void gb_turn_rows(const float *rows, int count, int width, float *turned)
{
    for (int panel = 0; panel < count; panel += GB_LANES)
        for (int f = 0; f < width; f += 4)
            for (int l = 0; l < GB_LANES; l += 4)
                gb_turn(rows + (panel + l) * width + f, width,
                        turned + panel * width + f * GB_LANES + l, GB_LANES);
}
static inline void gb_split_rows(const float *rows, int width, float *panels)
{
    for (int c = 0; c < width; c += GB_LANES)
        for (int l = 0; l < GB_OTHERS; l++)
            vstore16(vload16(0, rows + l * width + c), l, panels + c * GB_OTHERS);
}
/* scores[row][column] of `rows` rows and as many columns as were turned */
static inline void gb_multiply_rows(const float *rows, int count, int width, const float *turned,
        int columns, float *scores)
{
    for (int panel = 0; panel < columns; panel += GB_LANES)
        for (int r = 0; r < count; r += GB_TILE_ROWS)
            gb_multiply(rows + r * width, width, 1, turned + panel * width, width,
                    scores + r * columns + panel, columns, false);
}
/* sums += scores rows, or the same with the scores turned */
static inline void gb_add_up(const float *scores, int score_row, int score_k, const float *panels,
        int width, float *sums)
{
    for (int c = 0; c < width; c += GB_LANES)
        for (int r = 0; r < GB_BLOCK_ROWS; r += GB_TILE_ROWS)
            gb_multiply(scores + r * score_row, score_row, score_k, panels + c * GB_OTHERS,
                    GB_OTHERS, sums + r * width + c, width, true);
}
static inline void gb_clear(float *numbers, int n)
{
    for (int i = 0; i < n; i += GB_LANES)
        vstore16((float16)(0.0f), 0, numbers + i);
}

/* Rows of Q and dO at the position declared, and D. */
#ifdef GB_O
#define GB_ADD_TO_D(d, c, gradient) d += GB_O(c) * (gradient);
#else
#define GB_ADD_TO_D(d, c, gradient)
#endif
#define GB_COPY_ROW(lanes, n, to)                                                                   \
    for (int i = 0; i < n; i += GB_LANES)                                                          \
        vstore16(lanes, 0, (to) + i);
#if defined(GB_Q_LANES) && GB_FEATURES % 16 == 0
#define GB_LOAD_Q(to) GB_COPY_ROW(GB_Q_LANES(i), GB_FEATURES, to)
#else
#define GB_LOAD_Q(to)                                                                              \
    for (int f = 0; f < GB_FEATURES; f++)                                                          \
        (to)[f] = GB_Q(f);
#endif
#if defined(GB_G_LANES) && GB_COLUMNS % 16 == 0
#define GB_LOAD_G(to) GB_COPY_ROW(GB_G_LANES(i), GB_COLUMNS, to)
#else
#define GB_LOAD_G(to)                                                                              \
    for (int c = 0; c < GB_COLUMNS; c++)                                                           \
        (to)[c] = GB_G(c);
#endif
#if defined(GB_K_LANES) && GB_FEATURES % 16 == 0
#define GB_LOAD_K(key, to) GB_COPY_ROW(GB_K_LANES(key, i), GB_FEATURES, to)
#else
#define GB_LOAD_K(key, to)                                                                         \
    for (int f = 0; f < GB_FEATURES; f++)                                                          \
        (to)[f] = GB_K(key, f);
#endif
#if defined(GB_V_LANES) && GB_COLUMNS % 16 == 0
#define GB_LOAD_V(key, to) GB_COPY_ROW(GB_V_LANES(key, i), GB_COLUMNS, to)
#else
#define GB_LOAD_V(key, to)                                                                         \
    for (int c = 0; c < GB_COLUMNS; c++)                                                           \
        (to)[c] = GB_V(key, c);
#endif
#define GB_LOAD_QUERY(r, queries, gradients, d)                                                    \
    GB_LOAD_Q((queries) + (r) * GB_F)                                                              \
    GB_LOAD_G((gradients) + (r) * GB_C)                                                            \
    d = 0.0f;                                                                                      \
    for (int c = 0; c < GB_COLUMNS; c++) {                                                         \
        GB_ADD_TO_D(d, c, (gradients)[(r) * GB_C + c])                                             \
    }
#define GB_LOAD_KEY_ROW(r, key, keys, values)                                                      \
    GB_LOAD_K(key, (keys) + (r) * GB_F)                                                            \
    GB_LOAD_V(key, (values) + (r) * GB_C)

/* P and dS in place of S and G, of `count` keys; rows of both have whole vectors. */
#ifdef GB_IN_LANES
#define GB_RUN_SCORES(program, key, count, s, g, d)                                                \
    for (int l = 0; l < count; l += GB_LANES) {                                                    \
        GB_FLOATS t[5] = {vload16(0, (s) + l), vload16(0, (g) + l), 0.0f, 0.0f, d};                     \
        program(key + l, min(GB_LANES, count - l), t);                                             \
        vstore16(t[2], 0, (s) + l);                                                                \
        vstore16(t[3], 0, (g) + l);                                                                \
    }
#else
#define GB_RUN_SCORES(program, key, count, s, g, d)                                                \
    for (int l = 0; l < count; l++) {                                                              \
        float t[5] = {(s)[l], (g)[l], 0.0f, 0.0f, d};                                              \
        program(key + l, 1, t);                                                                    \
        (s)[l] = t[2];                                                                             \
        (g)[l] = t[3];                                                                             \
    }
#endif

#define GB_TURNED (GB_BLOCK_ROWS > GB_OTHERS ? GB_BLOCK_ROWS : GB_OTHERS)

__kernel GB_ITEMS void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    long item = get_global_id(0), task = get_global_id(1);
    if (item >= GB_ROW_ITEMS + GB_KEY_ITEMS)
        return;
    GB_TASK
    float own_f[GB_BLOCK_ROWS * GB_F], own_c[GB_BLOCK_ROWS * GB_C];
    float sums_f[GB_BLOCK_ROWS * GB_F], sums_c[GB_BLOCK_ROWS * GB_C];
    float other_f[GB_OTHERS * GB_F], other_c[GB_OTHERS * GB_C];
    float turned_f[GB_TURNED * GB_F], turned_c[GB_TURNED * GB_C];
    float panels_f[GB_OTHERS * GB_F], panels_c[GB_OTHERS * GB_C];
    float s[GB_BLOCK_ROWS * GB_OTHERS], g[GB_BLOCK_ROWS * GB_OTHERS], d[GB_BLOCK_ROWS];
    gb_clear(own_f, GB_BLOCK_ROWS * GB_F);
    gb_clear(own_c, GB_BLOCK_ROWS * GB_C);
    gb_clear(sums_f, GB_BLOCK_ROWS * GB_F);
    gb_clear(sums_c, GB_BLOCK_ROWS * GB_C);
    gb_clear(other_f, GB_OTHERS * GB_F);
    gb_clear(other_c, GB_OTHERS * GB_C);
#ifdef GB_FILL
    long up = GB_SHIFT_UP, down = GB_SHIFT_DOWN;
    bool known = up > -GB_MOST_SHIFT && up < GB_MOST_SHIFT && down > -GB_MOST_SHIFT &&
                 down < GB_MOST_SHIFT;
    float fill = GB_FILL;
#endif
    if (item < GB_ROW_ITEMS) {
        long first = item * GB_BLOCK_ROWS, end = 0;
        int n = (int)min((long)GB_BLOCK_ROWS, GB_ROWS - first);
        bool hides = false;
#ifdef GB_FILL
        hides = known;
#endif
        for (int r = 0; r < n; r++) {
            GB_ROW(first + r)
            GB_LOAD_QUERY(r, own_f, own_c, d[r])
#ifdef GB_FILL
            hides = hides && GB_STATS_HERE - fill > GB_VANISHES;
            end = max(end, GB_QUERY + up - down + 1);
#endif
        }
#ifdef GB_EXPOSES
        hides = false;
#endif
        for (long key = 0; key < GB_KEYS && !(hides && key >= end); key += GB_OTHERS) {
            int count = (int)min((long)GB_OTHERS, GB_KEYS - key);
            for (int l = 0; l < count; l++) {
                GB_LOAD_KEY_ROW(l, key + l, other_f, other_c)
            }
            gb_turn_rows(other_f, GB_OTHERS, GB_F, turned_f);
            gb_turn_rows(other_c, GB_OTHERS, GB_C, turned_c);
            gb_split_rows(other_f, GB_F, panels_f);
            gb_multiply_rows(own_f, GB_BLOCK_ROWS, GB_F, turned_f, GB_OTHERS, s);
            gb_multiply_rows(own_c, GB_BLOCK_ROWS, GB_C, turned_c, GB_OTHERS, g);
            for (int r = 0; r < n; r++) {
                GB_ROW(first + r)
                GB_RUN_SCORES(GB_SCORES, key, count, s + r * GB_OTHERS, g + r * GB_OTHERS, d[r])
                for (int l = count; l < GB_OTHERS; l++)
                    g[r * GB_OTHERS + l] = 0.0f;
            }
            gb_clear(g + n * GB_OTHERS, (GB_BLOCK_ROWS - n) * GB_OTHERS);
            gb_add_up(g, GB_OTHERS, 1, panels_f, GB_F, sums_f);
        }
        for (int r = 0; r < n; r++) {
            GB_ROW(first + r)
            for (int f = 0; f < GB_FEATURES; f++)
                GB_POST_DQ(f, sums_f[r * GB_F + f]);
        }
        return;
    }
    long first = (item - GB_ROW_ITEMS) * GB_BLOCK_ROWS;
    int n = (int)min((long)GB_BLOCK_ROWS, GB_KEYS - first);
    for (int r = 0; r < n; r++) {
        GB_LOAD_KEY_ROW(r, first + r, own_f, own_c)
    }
    gb_turn_rows(own_f, GB_BLOCK_ROWS, GB_F, turned_f);
    gb_turn_rows(own_c, GB_BLOCK_ROWS, GB_C, turned_c);
    for (long row = 0; row < GB_ROWS; row += GB_OTHERS) {
        int count = (int)min((long)GB_OTHERS, GB_ROWS - row);
        float sums_of_rows[GB_OTHERS];
#ifdef GB_FILL
        bool hidden = known;
        for (int l = 0; l < count && hidden; l++) {
            GB_ROW(row + l)
            hidden = GB_QUERY + up - down < first && GB_STATS_HERE - fill > GB_VANISHES;
        }
        if (hidden)
            continue;
#endif
        for (int l = 0; l < count; l++) {
            GB_ROW(row + l)
            GB_LOAD_QUERY(l, other_f, other_c, sums_of_rows[l])
        }
        gb_split_rows(other_f, GB_F, panels_f);
        gb_split_rows(other_c, GB_C, panels_c);
        gb_multiply_rows(other_f, GB_OTHERS, GB_F, turned_f, GB_BLOCK_ROWS, s);
        gb_multiply_rows(other_c, GB_OTHERS, GB_C, turned_c, GB_BLOCK_ROWS, g);
        for (int q = 0; q < count; q++) {
            float *s_row = s + q * GB_BLOCK_ROWS, *g_row = g + q * GB_BLOCK_ROWS;
            GB_ROW(row + q)
            GB_RUN_SCORES(GB_SCORES_AGAIN, first, n, s_row, g_row, sums_of_rows[q])
            for (int r = n; r < GB_BLOCK_ROWS; r++)
                s_row[r] = g_row[r] = 0.0f;
        }
        gb_clear(s + count * GB_BLOCK_ROWS, (GB_OTHERS - count) * GB_BLOCK_ROWS);
        gb_clear(g + count * GB_BLOCK_ROWS, (GB_OTHERS - count) * GB_BLOCK_ROWS);
        gb_add_up(s, 1, GB_BLOCK_ROWS, panels_c, GB_C, sums_c);
        gb_add_up(g, 1, GB_BLOCK_ROWS, panels_f, GB_F, sums_f);
    }
    for (int r = 0; r < n; r++) {
        for (int f = 0; f < GB_FEATURES; f++)
            GB_POST_DK(first + r, f, sums_f[r * GB_F + f]);
        for (int c = 0; c < GB_COLUMNS; c++)
            GB_POST_DV(first + r, c, sums_c[r * GB_C + c]);
    }
}
#else
/* GB_LANES keys of K as rows. */
#define GB_LOAD_KEYS(first, rows)                                                                  \
    for (int l = 0; l < GB_LANES; l++) {                                                           \
        long one = min((first) + l, GB_KEYS - 1);                                                  \
        GB_LOAD_KEY(one, rows + l * GB_F)                                                          \
    }
#if defined(GB_K_LANES) && GB_FEATURES % 16 == 0
#define GB_LOAD_KEY(key, row)                                                                      \
    for (int f = 0; f < GB_FEATURES; f += GB_LANES)                                                \
        vstore16(GB_K_LANES(key, f), 0, row + f);
#else
#define GB_LOAD_KEY(key, row)                                                                      \
    for (int f = 0; f < GB_FEATURES; f++)                                                          \
        (row)[f] = GB_K(key, f);
#endif
/* A row of V; there is one for each query in sums over these. */
#ifdef GB_OVER_QUERIES
#define GB_VALUE_ROWS GB_BLOCK_ROWS
#else
#define GB_VALUE_ROWS GB_BLOCK_KEYS
#endif
#if defined(GB_V_LANES) && GB_COLUMNS % 16 == 0
#define GB_LOAD_VALUE(key, row)                                                                    \
    for (int c = 0; c < GB_COLUMNS; c += GB_LANES)                                                 \
        vstore16(GB_V_LANES(key, c), 0, row + c * GB_VALUE_ROWS);
#else
#define GB_LOAD_VALUE(key, row)                                                                    \
    for (int c = 0; c < GB_COLUMNS; c++)                                                           \
        (row)[c / GB_LANES * GB_LANES * GB_VALUE_ROWS + c % GB_LANES] = GB_V(key, c);
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
    GB_PACK_WHOLE_KEYS(first)                                                                      \
    for (int f = 0; f < GB_FEATURES; f++)                                                          \
        for (int l = 0; l < GB_LANES; l++)                                                         \
            packed[f * GB_LANES + l] = GB_K(min((first) + l, GB_KEYS - 1), f);
#ifdef GB_K_ACROSS
#define GB_PACK_WHOLE_KEYS(first)                                                                  \
    if ((first) + GB_LANES <= GB_KEYS)                                                             \
        for (int f = 0; f < GB_FEATURES; f++)                                                      \
            vstore16(GB_K_ACROSS(first, f), f, packed);                                            \
    else
#else
#define GB_PACK_WHOLE_KEYS(first)
#endif
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
            gb_multiply(q + r * GB_F, GB_F, 1, packed, GB_F,                                       \
                    scores + r * GB_BLOCK_KEYS + panel * GB_LANES, GB_BLOCK_KEYS, false);          \
    }
#endif

/* Post-ops of the keys of a block in one row, which has whole vectors. */
#ifdef GB_IN_LANES
#define GB_RUN(row, count, program)                                                                \
    for (int l = 0; l < count; l += GB_LANES) {                                                    \
        GB_FLOATS t[2] = {vload16(0, (row) + l), 0.0f};                                            \
        program(key + l, min(GB_LANES, count - l), t);                                             \
        vstore16(t[1], 0, (row) + l);                                                              \
    }
#else
#define GB_RUN(row, count, program)                                                                \
    for (int l = 0; l < count; l++) {                                                              \
        float t[2] = {(row)[l], 0.0f};                                                             \
        program(key + l, 1, t);                                                                    \
        (row)[l] = t[1];                                                                           \
    }
#endif
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

#ifdef GB_OVER_QUERIES
/* The product with V sums over the queries: V has a row for each, results one for each key, or a column. A
 * work-item has some keys of a task, mostly all, and walks the rows, GB_BLOCK_ROWS at a time, of which it
 * computes the scores of all keys, GB_BLOCK_KEYS. The writer defines, beside the above:
 *
 *   GB_SPLITS, GB_SPLIT_KEYS work-items of a task, and keys of one: a multiple of GB_TILE_ROWS
 *   GB_SUMS                  global memory for the sums of all work-items; otherwise they are private
 *   GB_POST_AT(row, column, n, value)   takes results, in lanes n of them
 *   GB_KEYS_LAST             a result has a column for each key */
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
    for (int i = 0; i < GB_BLOCK_ROWS * GB_F; i += GB_LANES)
        vstore16((float16)(0.0f), 0, q + i);
    for (int i = 0; i < GB_BLOCK_ROWS * GB_C; i += GB_LANES)
        vstore16((float16)(0.0f), 0, values + i);
    for (int i = 0; i < GB_LANES * GB_F; i += GB_LANES) {
        vstore16((float16)(0.0f), 0, turned + i);
        vstore16((float16)(0.0f), 0, packed + i);
    }
    for (int i = 0; i < GB_BLOCK_ROWS * GB_BLOCK_KEYS + GB_LANES; i += GB_LANES)
        vstore16((float16)(0.0f), 0, scores + i);
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
#else
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
#endif
#endif
