/* What the kernels of attention share. A task is the attention of some rows, which differ in their queries, and
 * the keys that all of them see. The writer of a kernel defines, beside GB_ARGUMENTS and the like:
 *
 *   GB_ROWS, GB_KEYS        of a task
 *   GB_BLOCK_ROWS, GB_TILE_ROWS, GB_BLOCK_KEYS   of a work-item, of a product in registers, at a time
 *   GB_FEATURES, GB_COLUMNS of Q and K, of V
 *   GB_TASK                 declares the position in the dims of tasks from `task`
 *   GB_ROW(row)             declares that in the dims of rows
 *   GB_QUERY                the query there
 *   GB_Q(f), GB_K(key, f), GB_V(key, c)   elements
 *   GB_K_LANES(key, f), GB_V_LANES(key, c)   16 elements, may be there where they are neighbours
 *   GB_KEYS_ADJACENT        where those of K are neighbours along the keys; then GB_K_ACROSS(key, f)
 *                           may be there: 16 of them
 *   GB_SHIFT_UP, GB_SHIFT_DOWN, GB_FILL   of an implicit causal mask
 *
 * and but for gradients:
 *
 *   GB_SCALE                of Q
 *   GB_BEFORE(key, n, t), GB_VISIBLE(key, n, t), GB_BETWEEN(key, n, t)
 *                           from t[0] to t[1]: a score, one that no mask hides, a weight; absent
 *                           where nothing is to be done
 *   GB_EMPTY                the weights of a row without any
 *   GB_STATS(value)
 *
 * Rows of private memory are padded to whole vectors. */
#define GB_WIDE(n) (((n) + GB_LANES - 1) / GB_LANES * GB_LANES)
#define GB_F       GB_WIDE(GB_FEATURES)
#define GB_C       GB_WIDE(GB_COLUMNS)
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
static inline void gb_clear(float *numbers, int n)
{
    for (int i = 0; i < n; i += GB_LANES)
        vstore16((float16)(0.0f), 0, numbers + i);
}

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
/* A row of V, in panels of GB_VALUE_ROWS rows. */
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
