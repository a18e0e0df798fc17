/* Products and convolutions. A sum runs over taps (the places of a convolution's kernel; one for a
 * product) and over k. The writer of the kernel defines, beside GB_ARGUMENTS and the like:
 *
 *   GB_ROWS, GB_COLUMNS, GB_K, GB_TAPS   sizes
 *   GB_BATCH           declares the position in the batch dims from get_global_id(2)
 *   GB_BASES           declares where operands begin there
 *   GB_A_PLACES(n), GB_A_PLACE(r, row)   declares what A keeps of n rows, and sets that of a row
 *   GB_A_AT(r, tap)    where A's row begins for the tap, or -1: zeros
 *   GB_B_PLACES(n), GB_B_PLACE(c, column), GB_B_AT(c, tap)   the same for B and its columns;
 *                      without GB_B_SPREAD all columns begin at one place
 *   GB_LOAD_A(at, row, k), GB_LOAD_B(at, k, column)
 *   GB_LANES_OF_A(at, row, k), GB_LANES_OF_B(at, k, column)   where the kernel is in lanes, may be
 *                      there: GB_LANES elements of A along k; of B along columns, or along k
 *                      where its elements are neighbours
 *   GB_B_AT_LANES(c, tap)   in lanes, may be there: GB_B_AT of columns c, c + 1, ... in 31 bits
 *   GB_B_MOST          in lanes, where B's elements may be neighbours: the largest GB_B_AT() of all
 *   GB_A_ADDRESS(at, row)   of A's f32 elements, only where those along k are neighbours
 *   GB_A_IN_PLACE      only where there is no tap but one, and no zeros
 *   GB_B_ADDRESS(at, k, column)   of B's f32 elements, only where columns are neighbours
 *   GB_B_ALONG_K       where B's elements along k are neighbours
 *   GB_TAP(tap)        declares what GB_A_AT and GB_B_AT need to know of a tap; may be absent
 *   GB_A_PACKED, GB_B_PACKED   addresses of operands as cl/pack.cl lays them out, in place of all of
 *                      the above for that operand
 *   GB_B_DIRECT        B is read once, where it lies: there are no more rows than a tile has
 *   GB_POST(row, column, lanes, value)   in lanes, where the kernel is: `lanes` columns
 *   GB_RESULT_AT(row, column)   address of f32 results, where they are neighbours and all there is
 *   GB_GATED           a second product of the same A comes first, the gate: GB_POST() finds its
 *                      results as `gate`
 *   GB_PRODUCT(product)   with it: declares where B is, of the gate (0) and of the product (1)
 *
 * and the sizes of a tile: GB_TILE_ROWS x GB_LANES results are summed up in registers. */
#define GB_VECTOR_OF(n)     GB_VECTOR_NAME(n)
#define GB_VECTOR_NAME(n)   float##n
#define GB_LOAD_OF(n)       GB_LOAD_NAME(n)
#define GB_LOAD_NAME(n)     vload##n
#define GB_STORE_OF(n)      GB_STORE_NAME(n)
#define GB_STORE_NAME(n)    vstore##n
typedef GB_VECTOR_OF(GB_LANES) gb_lanes;
#define gb_load_lanes  GB_LOAD_OF(GB_LANES)
#define gb_store_lanes GB_STORE_OF(GB_LANES)

#ifdef GB_FMA
#define GB_ADD_PRODUCT(a, b, c) fma(a, b, c)
#else
#define GB_ADD_PRODUCT(a, b, c) mad(a, b, c)
#endif

#ifndef GB_TAP
#define GB_TAP(tap)
#endif
#ifdef GB_GATED
#define GB_PRODUCTS 2
#else
#define GB_PRODUCTS 1
#define GB_PRODUCT(product)
#endif

#ifdef GB_BLOCK_ROWS
/* For devices with caches: a work-item computes GB_BLOCK_ROWS x GB_BLOCK_COLUMNS results. Of every
 * GB_DEPTH terms of their sums it packs both operands in private memory, B in panels of GB_LANES
 * columns; A is read where it lies when it can be. */
#define GB_PANELS (GB_BLOCK_COLUMNS / GB_LANES)
#define GB_PANEL  ((GB_DEPTH + 4) * GB_LANES) /* what is turned comes in fours */
#define GB_BLOCK  (GB_PANELS * GB_BLOCK_ROWS * GB_LANES)

#define GB_ROWS_OF_1(statement) statement(0)
#define GB_ROWS_OF_2(statement) GB_ROWS_OF_1(statement) statement(1)
#define GB_ROWS_OF_3(statement) GB_ROWS_OF_2(statement) statement(2)
#define GB_ROWS_OF_4(statement) GB_ROWS_OF_3(statement) statement(3)
#define GB_ROWS_OF_5(statement) GB_ROWS_OF_4(statement) statement(4)
#define GB_ROWS_OF_6(statement) GB_ROWS_OF_5(statement) statement(5)
#define GB_ROWS_OF_7(statement) GB_ROWS_OF_6(statement) statement(6)
#define GB_ROWS_OF_8(statement) GB_ROWS_OF_7(statement) statement(7)
#define GB_ROWS_OF(n)           GB_ROWS_NAME(n)
#define GB_ROWS_NAME(n)         GB_ROWS_OF_##n
#define GB_EACH_ROW             GB_ROWS_OF(GB_TILE_ROWS)

/* sums += a b for a tile. */
#ifdef GB_A_PACKED
#define GB_TERM_OF_A(r) a[i * GB_TILE_ROWS + r]
#else
#define GB_TERM_OF_A(r) a##r[i]
#endif
#define GB_DECLARE_SUM(r) gb_lanes c##r = gb_load_lanes(r, sums);
#define GB_ADD_TERM(r)    c##r = GB_ADD_PRODUCT((gb_lanes)(GB_TERM_OF_A(r)), row, c##r);
#define GB_KEEP_SUM(r)    gb_store_lanes(c##r, r, sums);
#define GB_MULTIPLY_TILE                                                                           \
    GB_EACH_ROW(GB_DECLARE_SUM)                                                                    \
    for (int i = 0; i < depth; i++) {                                                              \
        gb_lanes row = gb_load_lanes(i, b);                                                        \
        GB_EACH_ROW(GB_ADD_TERM)                                                                   \
    }                                                                                              \
    GB_EACH_ROW(GB_KEEP_SUM)

/* Where both begin at term `term` for tile r of the block's rows, and a panel. */
#ifdef GB_A_PACKED
#define GB_TILE_OF_A(r)                                                                            \
    __global const float *a = GB_A_PACKED + (first_row + r) * terms + term * GB_TILE_ROWS;
#elif defined(GB_A_IN_PLACE)
#define GB_ROW_IN_PLACE(q)                                                                         \
    long row##q = min(first_row + r + q, GB_ROWS - 1);                                             \
    __global const float *a##q = GB_A_ADDRESS(GB_A_AT(r, 0), row##q) + k;
#define GB_TILE_OF_A(r) GB_EACH_ROW(GB_ROW_IN_PLACE)
#else
#define GB_COPIES_A
#define GB_ROW_OF_A(q)  const float *a##q = packed_a + (r + q) * GB_DEPTH;
#define GB_TILE_OF_A(r) GB_EACH_ROW(GB_ROW_OF_A)
#endif
#ifdef GB_B_PACKED
#define GB_PANEL_OF_B(panel)                                                                       \
    __global const float *b =                                                                      \
            GB_B_PACKED + (first_column + panel * GB_LANES) * terms + term * GB_LANES;
#else
#define GB_PANEL_OF_B(panel) const float *b = packed_b + panel * GB_PANEL;
#endif

/* Terms k .. k + ks of the tap as `to`, row by row. */
#define GB_PACK_A(tap, k, ks, to)                                                                  \
    for (int r = 0; r < n; r++) {                                                                  \
        long at = GB_A_AT(r, tap), row = first_row + r;                                            \
        if (at < 0)                                                                                \
            for (int i = 0; i < ks; i++)                                                           \
                (to)[r * GB_DEPTH + i] = 0.0f;                                                     \
        else {                                                                                     \
            int i = 0;                                                                             \
            GB_PACK_LANES_OF_A(at, row, k, ks, (to) + r * GB_DEPTH)                                \
            for (; i < ks; i++)                                                                    \
                (to)[r * GB_DEPTH + i] = GB_A_ELEMENT(at, row, k, i);                              \
        }                                                                                          \
    }
#if defined(GB_A_ADDRESS) && !defined(GB_LANES_OF_A)
#define GB_LANES_OF_A(at, row, k) gb_load_lanes(0, GB_A_ADDRESS(at, row) + k)
#endif
#ifdef GB_LANES_OF_A
#define GB_PACK_LANES_OF_A(at, row, k, ks, to)                                                     \
    for (; i + GB_LANES <= ks; i += GB_LANES)                                                      \
        gb_store_lanes(GB_LANES_OF_A(at, row, k + i), 0, (to) + i);
#else
#define GB_PACK_LANES_OF_A(at, row, k, ks, to)
#endif
#ifdef GB_A_ADDRESS
#define GB_A_ELEMENT(at, row, k, i) (GB_A_ADDRESS(at, row) + k)[i]
#else
#define GB_A_ELEMENT(at, row, k, i) GB_LOAD_A(at, row, k + i)
#endif

/* Terms of a panel of B: columns `column` .. of the block, `whole` when all are there. */
#ifdef GB_B_ADDRESS
#define GB_COPY_ROW(at, k, column, row)                                                            \
    gb_store_lanes(gb_load_lanes(0, GB_B_ADDRESS(at, k, column)), 0, row);
#elif defined(GB_LANES_OF_B)
#define GB_COPY_ROW(at, k, column, row) gb_store_lanes(GB_LANES_OF_B(at, k, column), 0, row);
#else
#define GB_COPY_ROW(at, k, column, row)                                                            \
    for (int l = 0; l < GB_LANES; l++)                                                             \
        (row)[l] = GB_LOAD_B(at, k, (column) + l);
#endif
#ifdef GB_B_SPREAD
#ifdef GB_B_AT_LANES
typedef int gb_place;
#define GB_FIND_PLACES(c, tap) GB_STORE_OF(GB_LANES)(GB_B_AT_LANES(c, tap), 0, at);
#else
typedef long gb_place;
#define GB_FIND_PLACES(c, tap)                                                                     \
    for (int l = 0; l < GB_LANES; l++)                                                             \
        at[l] = GB_B_AT((c) + l, tap);
#endif
/* Does each lane lie `step` behind the one before, from the first on? */
static inline bool gb_are_spaced(const gb_place *at, int step)
{
    int differs = 0;
    for (int l = 1; l < GB_LANES; l++)
        differs |= at[l] != at[0] + l * step;
    return at[0] >= 0 && !differs;
}
#endif
#if defined(GB_B_SPREAD) && defined(GB_B_MOST)
/* Lanes that go on from row to row of an image are a few runs of neighbours, with zeros where there is
 * padding: each run is read as if all lanes were neighbours, and gives its own. */
#ifdef GB_B_ADDRESS
#define GB_READ_RUN(at, k) gb_load_lanes(0, GB_B_ADDRESS(at, k, 0))
#else
#define GB_READ_RUN(at, k) GB_LANES_OF_B(at, k, 0)
#endif
enum { GB_MOST_RUNS = 4 };
typedef struct gb_runs {
    int n; /* -1: there are too many, or one comes close to the ends of the image */
    gb_place first[GB_MOST_RUNS];
    int lanes[GB_MOST_RUNS * GB_LANES];
} gb_runs;
static inline void gb_find_runs(gb_runs *runs, const gb_place *at, gb_place most)
{
    runs->n = 0;
    for (int i = 0; i < GB_MOST_RUNS * GB_LANES; i++)
        runs->lanes[i] = 0;
    for (int l = 0; l < GB_LANES; l++) {
        gb_place first = at[l] - l;
        if (at[l] < 0)
            continue;
        if (runs->n == 0 || runs->first[runs->n - 1] != first) {
            if (runs->n == GB_MOST_RUNS || first < 0 || first + GB_LANES - 1 > most) {
                runs->n = -1;
                return;
            }
            runs->first[runs->n++] = first;
        }
        runs->lanes[(runs->n - 1) * GB_LANES + l] = -1;
    }
}
#define GB_PACK_RUNS(at, k, ks, to)                                                                \
    if (gb_find_runs(&runs, at, (gb_place)GB_B_MOST), runs.n >= 0) {                                         \
        for (int i = 0; runs.n == 0 && i < ks; i++)                                                \
            gb_store_lanes((gb_lanes)(0.0f), 0, (to) + i * GB_LANES);                              \
        for (int r = 0; r < runs.n; r++) {                                                         \
            GB_INT own = gb_load_lanes(0, runs.lanes + r * GB_LANES);                              \
            for (int i = 0; i < ks; i++) {                                                         \
                gb_lanes before = 0.0f, read = GB_READ_RUN(runs.first[r], k + i);                  \
                if (r > 0)                                                                         \
                    before = gb_load_lanes(0, (to) + i * GB_LANES);                                \
                gb_store_lanes(own ? read : before, 0, (to) + i * GB_LANES);                       \
            }                                                                                      \
        }                                                                                          \
    } else
#else
#define GB_PACK_RUNS(at, k, ks, to)
#endif
/* Every second element: of twice as many neighbours. */
#if defined(GB_B_SPREAD) && defined(GB_B_MOST)
#define GB_PACK_SECONDS(at, k, ks, to)                                                             \
    if (gb_are_spaced(at, 2) && at[0] + 2 * GB_LANES - 1 <= (gb_place)GB_B_MOST) {                 \
        for (int i = 0; i < ks; i++) {                                                             \
            gb_lanes low = GB_READ_RUN(at[0], k + i);                                              \
            gb_lanes high = GB_READ_RUN(at[0] + GB_LANES, k + i);                                  \
            gb_store_lanes((gb_lanes)(low.even, high.even), 0, (to) + i * GB_LANES);               \
        }                                                                                          \
    } else
#else
#define GB_PACK_SECONDS(at, k, ks, to)
#endif
#ifdef GB_B_SPREAD
#define GB_PACK_B(tap, k, ks, panel, to)                                                           \
    {                                                                                              \
        gb_place at[GB_LANES];                                                                     \
        int missing = 0;                                                                           \
        GB_FIND_PLACES((panel) * GB_LANES, tap)                                                    \
        if (GB_B_IN_ORDER && gb_are_spaced(at, 1)) {                                               \
            for (int i = 0; i < ks; i++) {                                                         \
                GB_COPY_ROW(at[0], k + i, 0, (to) + i * GB_LANES)                                  \
            }                                                                                      \
        } else GB_PACK_SECONDS(at, k, ks, to) GB_PACK_RUNS(at, k, ks, to) {                        \
            for (int l = 0; l < GB_LANES; l++)                                                     \
                missing |= at[l] < 0;                                                              \
            for (int i = 0; i < ks && !missing; i++)                                               \
                for (int l = 0; l < GB_LANES; l++)                                                 \
                    (to)[i * GB_LANES + l] = GB_LOAD_B(at[l], k + i, 0);                           \
            for (int i = 0; i < ks && missing; i++)                                                \
                for (int l = 0; l < GB_LANES; l++)                                                 \
                    (to)[i * GB_LANES + l] = at[l] < 0 ? 0.0f : GB_LOAD_B(at[l], k + i, 0);        \
        }                                                                                          \
    }
#else
#define GB_PACK_B(tap, k, ks, panel, to)                                                           \
    {                                                                                              \
        long at = GB_B_AT(0, tap), column = first_column + (panel) * GB_LANES;                     \
        if (column + GB_LANES > GB_COLUMNS) {                                                      \
            long last = GB_COLUMNS - 1;                                                            \
            for (int i = 0; i < ks; i++)                                                           \
                for (int l = 0; l < GB_LANES; l++)                                                 \
                    (to)[i * GB_LANES + l] = GB_LOAD_B(at, k + i, min(column + l, last));          \
        } else {                                                                                   \
            GB_PACK_WHOLE(at, k, ks, column, to)                                                   \
        }                                                                                          \
    }
#endif
#ifdef GB_B_ALONG_K
/* Rows of 4 columns are turned, 4 x 4 numbers at a time. */
static inline void gb_turn(const float *from, float *to)
{
    float4 a = vload4(0, from), b = vload4(0, from + GB_DEPTH);
    float4 c = vload4(0, from + 2 * GB_DEPTH), d = vload4(0, from + 3 * GB_DEPTH);
    vstore4((float4)(a.x, b.x, c.x, d.x), 0, to);
    vstore4((float4)(a.y, b.y, c.y, d.y), 0, to + GB_LANES);
    vstore4((float4)(a.z, b.z, c.z, d.z), 0, to + 2 * GB_LANES);
    vstore4((float4)(a.w, b.w, c.w, d.w), 0, to + 3 * GB_LANES);
}
#ifdef GB_LANES_OF_B
#define GB_PACK_LANES_OF_B(at, k, ks, column, to)                                                  \
    for (; i + GB_LANES <= ks; i += GB_LANES)                                                      \
        gb_store_lanes(GB_LANES_OF_B(at, k + i, column), 0, (to) + i);
#else
#define GB_PACK_LANES_OF_B(at, k, ks, column, to)
#endif
#define GB_PACK_WHOLE(at, k, ks, column, to)                                                       \
    for (int l = 0; l < GB_LANES; l++) {                                                           \
        int i = 0;                                                                                 \
        GB_PACK_LANES_OF_B(at, k, ks, (column) + l, turned + l * GB_DEPTH)                         \
        for (; i < ks; i++)                                                                        \
            turned[l * GB_DEPTH + i] = GB_LOAD_B(at, k + i, (column) + l);                         \
    }                                                                                              \
    for (int i = 0; i < ks; i += 4)                                                                \
        for (int l = 0; l < GB_LANES; l += 4)                                                      \
            gb_turn(turned + l * GB_DEPTH + i, (to) + i * GB_LANES + l);
#else
#define GB_PACK_WHOLE(at, k, ks, column, to)                                                       \
    for (int i = 0; i < ks; i++) {                                                                 \
        GB_COPY_ROW(at, k + i, column, (to) + i * GB_LANES)                                        \
    }
#endif

/* Few rows: sums of a block's columns += packed rows of A times terms k .. k + ks of B. */
#ifdef GB_B_ADDRESS
#define GB_READ_B(at, k, column) gb_load_lanes(0, GB_B_ADDRESS(at, k, column))
#else
#define GB_READ_B(at, k, column) GB_LANES_OF_B(at, k, column)
#endif
#define GB_ROW_OF_B(name, k, column)                                                               \
    gb_lanes name;                                                                                 \
    if ((column) + GB_LANES <= GB_COLUMNS)                                                         \
        name = GB_READ_B(at, k, column);                                                           \
    else {                                                                                         \
        float part[GB_LANES];                                                                      \
        for (int l = 0; l < GB_LANES; l++)                                                         \
            part[l] = GB_LOAD_B(at, k, min((column) + l, GB_COLUMNS - 1));                         \
        name = gb_load_lanes(0, part);                                                             \
    }
#define GB_SUMS_OF(panel, r) (sums + ((panel) * GB_BLOCK_ROWS + (r)) * GB_LANES)
/* Four rows of B at a time, each some neighbours. */
#define GB_ADD_FOUR(r)                                                                             \
    {                                                                                              \
        const float *a = packed_a + (r) * GB_DEPTH + i;                                            \
        gb_lanes c = gb_load_lanes(0, GB_SUMS_OF(panel, r));                                       \
        c = GB_ADD_PRODUCT((gb_lanes)(a[0]), b0, c);                                               \
        c = GB_ADD_PRODUCT((gb_lanes)(a[1]), b1, c);                                               \
        c = GB_ADD_PRODUCT((gb_lanes)(a[2]), b2, c);                                               \
        c = GB_ADD_PRODUCT((gb_lanes)(a[3]), b3, c);                                               \
        gb_store_lanes(c, 0, GB_SUMS_OF(panel, r));                                                \
    }
#define GB_ADD_ONE(r)                                                                              \
    gb_store_lanes(GB_ADD_PRODUCT((gb_lanes)(packed_a[(r) * GB_DEPTH + i]), b0,                    \
                           gb_load_lanes(0, GB_SUMS_OF(panel, r))),                                \
            0, GB_SUMS_OF(panel, r));
#define GB_MULTIPLY_ROWS                                                                           \
    {                                                                                              \
        long at = GB_B_AT(0, 0);                                                                   \
        int i = 0;                                                                                 \
        for (; i + 4 <= ks; i += 4)                                                                \
            for (int panel = 0; panel < panels; panel++) {                                         \
                long column = first_column + panel * GB_LANES;                                     \
                GB_ROW_OF_B(b0, k + i, column)                                                     \
                GB_ROW_OF_B(b1, k + i + 1, column)                                                 \
                GB_ROW_OF_B(b2, k + i + 2, column)                                                 \
                GB_ROW_OF_B(b3, k + i + 3, column)                                                 \
                GB_EACH_ROW(GB_ADD_FOUR)                                                           \
            }                                                                                      \
        for (; i < ks; i++)                                                                        \
            for (int panel = 0; panel < panels; panel++) {                                         \
                long column = first_column + panel * GB_LANES;                                     \
                GB_ROW_OF_B(b0, k + i, column)                                                     \
                GB_EACH_ROW(GB_ADD_ONE)                                                            \
            }                                                                                      \
    }
/* Columns of B one after the other, where their terms are neighbours. */
#define GB_DECLARE_LANES(r) gb_lanes c##r = 0.0f;
#define GB_ADD_LANES(r)                                                                            \
    c##r = GB_ADD_PRODUCT(gb_load_lanes(0, packed_a + (r) * GB_DEPTH + i), b, c##r);
#define GB_JOIN_LANES(r)                                                                           \
    {                                                                                              \
        float rest = 0.0f;                                                                         \
        for (int i = whole; i < ks; i++)                                                           \
            rest = GB_ADD_PRODUCT(                                                                 \
                    packed_a[(r) * GB_DEPTH + i], GB_LOAD_B(at, k + i, first_column + c), rest);   \
        GB_SUMS_OF(c / GB_LANES, r)[c % GB_LANES] += gb_join(c##r) + rest;                         \
    }
#define GB_MULTIPLY_COLUMNS                                                                        \
    {                                                                                              \
        long at = GB_B_AT(0, 0);                                                                   \
        int whole = ks / GB_LANES * GB_LANES;                                                      \
        for (int c = 0; c < m; c++) {                                                              \
            GB_EACH_ROW(GB_DECLARE_LANES)                                                          \
            for (int i = 0; i < whole; i += GB_LANES) {                                            \
                gb_lanes b = GB_LANES_OF_B(at, k + i, first_column + c);                           \
                GB_EACH_ROW(GB_ADD_LANES)                                                          \
            }                                                                                      \
            GB_EACH_ROW(GB_JOIN_LANES)                                                             \
        }                                                                                          \
    }
#if defined(GB_B_DIRECT) && defined(GB_B_ALONG_K)
static inline float gb_join(gb_lanes v)
{
    float parts[GB_LANES];
    gb_store_lanes(v, 0, parts);
    for (int n = GB_LANES / 2; n > 0; n /= 2)
        for (int l = 0; l < n; l++)
            parts[l] += parts[l + n];
    return parts[0];
}
#endif
#if !defined(GB_B_PACKED) && !defined(GB_B_DIRECT)
#define GB_COPIES_B
#endif

__kernel GB_ITEMS void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    long first_column = get_global_id(0) * GB_BLOCK_COLUMNS;
    long first_row = get_global_id(1) * GB_BLOCK_ROWS;
    GB_BATCH
    GB_BASES
    GB_A_PLACES(GB_BLOCK_ROWS)
    GB_B_PLACES(GB_BLOCK_COLUMNS)
    int n = (int)min((long)GB_BLOCK_ROWS, GB_ROWS - first_row);
    int m = (int)min((long)GB_BLOCK_COLUMNS, GB_COLUMNS - first_column);
    int panels = (m + GB_LANES - 1) / GB_LANES;
    float all_sums[GB_PRODUCTS * GB_BLOCK], *sums;
#ifdef GB_COPIES_B
    float packed_b[GB_PANELS * GB_PANEL];
#if defined(GB_B_SPREAD) && defined(GB_B_MOST)
    gb_runs runs;
#endif
#endif
#if defined(GB_A_PACKED) || defined(GB_B_PACKED)
    long terms = GB_TAPS * GB_K;
#endif
#ifdef GB_COPIES_A
    float packed_a[GB_BLOCK_ROWS * GB_DEPTH];
    for (int i = n * GB_DEPTH; i < GB_BLOCK_ROWS * GB_DEPTH; i++)
        packed_a[i] = 0.0f;
#endif
#if defined(GB_COPIES_B) && defined(GB_B_ALONG_K)
    float turned[GB_LANES * GB_DEPTH];
    for (int i = 0; i < GB_LANES * GB_DEPTH; i++)
        turned[i] = 0.0f;
#endif
    for (int i = 0; i < GB_PRODUCTS * GB_BLOCK; i++)
        all_sums[i] = 0.0f;
    for (int r = 0; r < GB_BLOCK_ROWS; r++) {
        GB_A_PLACE(r, min(first_row + r, GB_ROWS - 1))
    }
    for (int c = 0; c < GB_BLOCK_COLUMNS; c++) {
        GB_B_PLACE(c, min(first_column + c, GB_COLUMNS - 1))
    }
    /* Several taps at a time where their terms are few. */
    int step = GB_K < GB_DEPTH ? (int)min(GB_DEPTH / max((long)GB_K, 1L), (long)GB_TAPS) : 1;
    for (long tap = 0; tap < GB_TAPS; tap += step) {
        int taps = (int)min((long)step, GB_TAPS - tap);
        for (long k = 0; k < GB_K; k += GB_DEPTH) {
            int ks = (int)min((long)GB_DEPTH, GB_K - k), depth = taps * ks;
#if defined(GB_A_PACKED) || defined(GB_B_PACKED)
            long term = tap * GB_K + k;
#endif
#ifdef GB_COPIES_A
            for (int t = 0; t < taps; t++) {
                GB_TAP(tap + t)
                GB_PACK_A(tap + t, k, ks, packed_a + t * ks)
            }
#endif
            for (int product = 0; product < GB_PRODUCTS; product++) {
                GB_PRODUCT(product)
                sums = all_sums + product * GB_BLOCK;
#ifdef GB_COPIES_B
                for (int t = 0; t < taps; t++) {
                    GB_TAP(tap + t)
                    for (int panel = 0; panel < panels; panel++) {
                        GB_PACK_B(tap + t, k, ks, panel,
                                packed_b + panel * GB_PANEL + t * ks * GB_LANES)
                    }
                }
#endif
#ifndef GB_B_DIRECT
                for (int panel = 0; panel < panels; panel++)
                    for (int r = 0; r < n; r += GB_TILE_ROWS) {
                        float *to = sums + (panel * GB_BLOCK_ROWS + r) * GB_LANES;
                        GB_PANEL_OF_B(panel)
                        GB_TILE_OF_A(r)
                        {
                            float *sums = to;
                            GB_MULTIPLY_TILE
                        }
                    }
#elif defined(GB_B_ALONG_K)
                GB_MULTIPLY_COLUMNS
#else
                GB_MULTIPLY_ROWS
#endif
            }
        }
    }
    for (int r = 0; r < n; r++)
        for (int panel = 0; panel < panels; panel++) {
            const float *gates = all_sums + (panel * GB_BLOCK_ROWS + r) * GB_LANES;
            const float *from = gates + (GB_PRODUCTS - 1) * GB_BLOCK;
            long row = first_row + r, column = first_column + panel * GB_LANES;
#ifdef GB_RESULT_AT
            if (column + GB_LANES <= GB_COLUMNS) {
                gb_store_lanes(gb_load_lanes(0, from), 0, GB_RESULT_AT(row, column));
                continue;
            }
#endif
#ifdef GB_IN_LANES
            gb_lanes gate = gb_load_lanes(0, gates), value = gb_load_lanes(0, from);
            if (column + GB_LANES <= GB_COLUMNS)
                GB_POST(row, column, GB_LANES, value);
            else
                GB_POST(row, column, (int)(GB_COLUMNS - column), value);
#else
            for (int l = 0; l < GB_LANES && l < GB_COLUMNS - column; l++) {
                float gate = gates[l];
                GB_POST(row, column + l, 1, from[l]);
            }
#endif
        }
}
#else
/* For devices that run work-items side by side: each computes GB_TILE_ROWS x GB_LANES results. */
#ifdef GB_B_SPREAD
#define GB_COLUMN_OF(column) 0
#else
#define GB_COLUMN_OF(column) (column)
#endif
#ifdef GB_ROW_TILES
/* A group computes GB_ROW_TILES x GB_COLUMN_TILES tiles: it keeps blocks of GB_DEPTH terms of both
 * operands in local memory, to which each work-item brings some. */
#define GB_GROUP_ITEMS   (GB_ROW_TILES * GB_COLUMN_TILES)
#define GB_GROUP_ROWS    (GB_ROW_TILES * GB_TILE_ROWS)
#define GB_GROUP_COLUMNS (GB_COLUMN_TILES * GB_LANES)
#ifdef GB_B_ALONG_K /* those that lie next to each other are read side by side */
#define GB_TERM_OF_B(e)   ((e) % GB_DEPTH)
#define GB_COLUMN_OF_B(e) ((e) / GB_DEPTH)
#else
#define GB_TERM_OF_B(e)   ((e) / GB_GROUP_COLUMNS)
#define GB_COLUMN_OF_B(e) ((e) % GB_GROUP_COLUMNS)
#endif
__kernel __attribute__((reqd_work_group_size(GB_COLUMN_TILES, GB_ROW_TILES, 1))) void gb_run(
        GB_ARGUMENTS)
{
    GB_BEGIN
    __local float a_block[GB_DEPTH * GB_GROUP_ROWS], b_block[GB_DEPTH * GB_GROUP_COLUMNS];
    int x = (int)get_local_id(0), y = (int)get_local_id(1), item = y * GB_COLUMN_TILES + x;
    long group_row = (long)get_group_id(1) * GB_GROUP_ROWS;
    long group_column = (long)get_group_id(0) * GB_GROUP_COLUMNS;
    GB_BATCH
    GB_BASES
    GB_A_PLACES(1)
    GB_B_PLACES(1)
    gb_lanes sums[GB_PRODUCTS * GB_TILE_ROWS];
    for (int r = 0; r < GB_PRODUCTS * GB_TILE_ROWS; r++)
        sums[r] = (gb_lanes)(0.0f);
    /* Several taps at a time where their terms are few. */
    int step = GB_K < GB_DEPTH ? (int)min(GB_DEPTH / max((long)GB_K, 1L), (long)GB_TAPS) : 1;
    for (long tap = 0; tap < GB_TAPS; tap += step)
        for (long k = 0; k < GB_K; k += GB_DEPTH) {
            int ks = (int)min((long)GB_DEPTH, GB_K - k);
            int depth = (int)min((long)step, GB_TAPS - tap) * ks;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int e = item; e < GB_DEPTH * GB_GROUP_ROWS; e += GB_GROUP_ITEMS) {
                int i = e % GB_DEPTH, r = e / GB_DEPTH, t = i / ks;
                long row = group_row + r;
                float value = 0.0f;
                if (i < depth && row < GB_ROWS) {
                    GB_A_PLACE(0, row)
                    GB_TAP(tap + t)
                    long at = GB_A_AT(0, tap + t);
                    if (at >= 0)
                        value = GB_LOAD_A(at, row, k + i - t * ks);
                }
                a_block[i * GB_GROUP_ROWS + r] = value;
            }
#pragma unroll
            for (int product = 0; product < GB_PRODUCTS; product++) {
                GB_PRODUCT(product)
                if (product > 0)
                    barrier(CLK_LOCAL_MEM_FENCE);
                for (int e = item; e < GB_DEPTH * GB_GROUP_COLUMNS; e += GB_GROUP_ITEMS) {
                    int i = GB_TERM_OF_B(e), c = GB_COLUMN_OF_B(e), t = i / ks;
                    long column = group_column + c;
                    float value = 0.0f;
                    if (i < depth && column < GB_COLUMNS) {
                        GB_B_PLACE(0, column)
                        GB_TAP(tap + t)
                        long at = GB_B_AT(0, tap + t);
                        if (at >= 0)
                            value = GB_LOAD_B(at, k + i - t * ks, GB_COLUMN_OF(column));
                    }
                    b_block[i * GB_GROUP_COLUMNS + c] = value;
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int i = 0; i < depth; i++) {
                    gb_lanes b = gb_load_lanes(0, b_block + i * GB_GROUP_COLUMNS + x * GB_LANES);
#pragma unroll
                    for (int r = 0; r < GB_TILE_ROWS; r++) {
                        float a = a_block[i * GB_GROUP_ROWS + y * GB_TILE_ROWS + r];
                        int at = product * GB_TILE_ROWS + r;
                        sums[at] = GB_ADD_PRODUCT((gb_lanes)(a), b, sums[at]);
                    }
                }
            }
        }
    long first_row = group_row + y * GB_TILE_ROWS, first_column = group_column + x * GB_LANES;
    for (int r = 0; r < GB_TILE_ROWS && first_row + r < GB_ROWS; r++) {
        float gates[GB_LANES], values[GB_LANES];
        gb_store_lanes(sums[r], 0, gates);
        gb_store_lanes(sums[(GB_PRODUCTS - 1) * GB_TILE_ROWS + r], 0, values);
        for (int c = 0; c < GB_LANES && first_column + c < GB_COLUMNS; c++) {
            float gate = gates[c];
            GB_POST(first_row + r, first_column + c, 1, values[c]);
        }
    }
}
#else
__kernel void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    long first_column = get_global_id(0) * GB_LANES, first_row = get_global_id(1) * GB_TILE_ROWS;
    if (first_column >= GB_COLUMNS || first_row >= GB_ROWS)
        return;
    GB_BATCH
    GB_BASES
    GB_A_PLACES(GB_TILE_ROWS)
    GB_B_PLACES(GB_LANES)
    gb_lanes sums[GB_PRODUCTS * GB_TILE_ROWS];
    float loaded[GB_LANES], gates[GB_LANES];
    bool whole = first_column + GB_LANES <= GB_COLUMNS;
    for (int c = 0; c < GB_LANES; c++) {
        GB_B_PLACE(c, min(first_column + c, GB_COLUMNS - 1))
    }
    for (int r = 0; r < GB_TILE_ROWS; r++) {
        GB_A_PLACE(r, min(first_row + r, GB_ROWS - 1))
    }
    for (int r = 0; r < GB_PRODUCTS * GB_TILE_ROWS; r++)
        sums[r] = (gb_lanes)(0.0f);
    for (long tap = 0; tap < GB_TAPS; tap++) {
        long a_at[GB_TILE_ROWS], b_at[GB_LANES];
        bool any = false;
        GB_TAP(tap)
        for (int r = 0; r < GB_TILE_ROWS; r++) {
            a_at[r] = GB_A_AT(r, tap);
            any = any || a_at[r] >= 0;
        }
        for (int c = 0; c < GB_LANES; c++)
            b_at[c] = GB_B_AT(c, tap);
        if (!any)
            continue;
#pragma unroll
        for (int product = 0; product < GB_PRODUCTS; product++) {
            GB_PRODUCT(product)
            for (long k = 0; k < GB_K; k++) {
                gb_lanes b;
#if defined(GB_B_ADDRESS) && !defined(GB_B_SPREAD)
                if (whole) {
                    b = gb_load_lanes(0, GB_B_ADDRESS(b_at[0], k, first_column));
                } else
#endif
                {
                    for (int c = 0; c < GB_LANES; c++)
                        loaded[c] = b_at[c] < 0 ? 0.0f
                                                : GB_LOAD_B(b_at[c], k, GB_COLUMN_OF(min(first_column + c, GB_COLUMNS - 1)));
                    b = gb_load_lanes(0, loaded);
                }
#pragma unroll
                for (int r = 0; r < GB_TILE_ROWS; r++) {
                    float a = 0.0f;
                    int at = product * GB_TILE_ROWS + r;
                    if (a_at[r] >= 0)
                        a = GB_LOAD_A(a_at[r], min(first_row + r, GB_ROWS - 1), k);
                    sums[at] = GB_ADD_PRODUCT((gb_lanes)(a), b, sums[at]);
                }
            }
        }
    }
    for (int r = 0; r < GB_TILE_ROWS && first_row + r < GB_ROWS; r++) {
        gb_store_lanes(sums[r], 0, gates);
        gb_store_lanes(sums[(GB_PRODUCTS - 1) * GB_TILE_ROWS + r], 0, loaded);
        for (int c = 0; c < GB_LANES && first_column + c < GB_COLUMNS; c++) {
            float gate = gates[c];
            GB_POST(first_row + r, first_column + c, 1, loaded[c]);
        }
    }
}
#endif
#endif
