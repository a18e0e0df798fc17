/* Gradients of attention. The weights are computed again from the scores, by post-ops that give P and dS from
 * S = Q K^T, G = dO V^T and D, the row sums of O dO. The first GB_ROW_ITEMS work-items of a task take rows and
 * walk the keys: dQ = dS K. The others take keys and walk the rows: dK = dS^T Q, dV = P^T dO. Either needs
 * nothing of the other. Behind attention_shared.cl; the writer defines, beside what stands there:
 *
 *   GB_ROW_ITEMS, GB_KEY_ITEMS   work-items that take rows, and keys
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
            gb_clear(other_f + count * GB_F, (GB_OTHERS - count) * GB_F);
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
        gb_clear(other_f + count * GB_F, (GB_OTHERS - count) * GB_F);
        gb_clear(other_c + count * GB_C, (GB_OTHERS - count) * GB_C);
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
