/* Products in private memory: tiles of GB_TILE_ROWS rows, which the writer of a kernel defines, and GB_LANES
 * columns. */
#define GB_LANES 16

#ifdef GB_FMA
#define GB_ADD_PRODUCT(a, b, c) fma(a, b, c)
#else
#define GB_ADD_PRODUCT(a, b, c) mad(a, b, c)
#endif

/* Row r of sums, one statement for each row of a tile. */
#if GB_TILE_ROWS == 1
#define GB_EACH_ROW(statement) statement(0)
#elif GB_TILE_ROWS == 4
#define GB_EACH_ROW(statement) statement(0) statement(1) statement(2) statement(3)
#else
#define GB_EACH_ROW(statement)                                                                     \
    statement(0) statement(1) statement(2) statement(3) statement(4) statement(5)
#endif

/* c (+)= a b: GB_TILE_ROWS rows of a, k rows of GB_LANES columns of b; where each lies is a parameter. */
#define GB_DECLARE(r) float16 c##r = adds ? vload16(0, c + (r) * c_row) : (float16)(0.0f);
#define GB_ADD(r)     c##r = GB_ADD_PRODUCT((float16)(a[(r) * a_row + i * a_k]), row, c##r);
#define GB_KEEP(r)    vstore16(c##r, 0, c + (r) * c_row);
#define GB_MULTIPLIER(name, a_space, b_space, c_space)                                             \
    static inline void name(a_space const float *a, int a_row, int a_k, b_space const float *b,    \
            int k, c_space float *c, int c_row, bool adds)                                         \
    {                                                                                              \
        GB_EACH_ROW(GB_DECLARE)                                                                    \
        for (int i = 0; i < k; i++) {                                                              \
            float16 row = vload16(i, b);                                                           \
            GB_EACH_ROW(GB_ADD)                                                                    \
        }                                                                                          \
        GB_EACH_ROW(GB_KEEP)                                                                       \
    }
GB_MULTIPLIER(gb_multiply, __private, __private, __private)
