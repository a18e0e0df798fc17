/* Products and convolutions: a work-item computes GB_TILE_ROWS x GB_TILE_COLUMNS results in
 * registers. A sum runs over taps (the places of a convolution's kernel; one for a product) and over
 * k. The writer of the kernel defines, beside GB_ARGUMENTS and the like:
 *
 *   GB_ROWS, GB_COLUMNS, GB_K, GB_TAPS   sizes
 *   GB_BATCH           declares the position in the batch dims from get_global_id(2)
 *   GB_BASES           declares where operands begin there
 *   GB_A_TAP(row, tap) where A's row begins for the tap, or -1: zeros
 *   GB_B_TAP(tap)      the same for B
 *   GB_LOAD_A(at, row, k), GB_LOAD_B(at, k, column)
 *   GB_B_ADDRESS(at, k, column)   of B's f32 elements, only where its columns are neighbours
 *   GB_POST(row, column, value) */
#if GB_TILE_COLUMNS == 16
typedef float16 gb_tile_row;
#define GB_LOAD_ROW(p)     vload16(0, p)
#define GB_STORE_ROW(v, p) vstore16(v, 0, p)
#elif GB_TILE_COLUMNS == 8
typedef float8 gb_tile_row;
#define GB_LOAD_ROW(p)     vload8(0, p)
#define GB_STORE_ROW(v, p) vstore8(v, 0, p)
#else
typedef float4 gb_tile_row;
#define GB_LOAD_ROW(p)     vload4(0, p)
#define GB_STORE_ROW(v, p) vstore4(v, 0, p)
#endif
#ifdef GB_FMA
#define GB_ADD_PRODUCT(a, b, c) fma(a, b, c)
#else
#define GB_ADD_PRODUCT(a, b, c) ((a) * (b) + (c))
#endif

__kernel void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    long column = get_global_id(0) * GB_TILE_COLUMNS, row = get_global_id(1) * GB_TILE_ROWS;
    if (column >= GB_COLUMNS || row >= GB_ROWS)
        return;
    GB_BATCH
    GB_BASES
    gb_tile_row sums[GB_TILE_ROWS];
    float loaded[GB_TILE_COLUMNS];
    bool whole = column + GB_TILE_COLUMNS <= GB_COLUMNS;
    for (int r = 0; r < GB_TILE_ROWS; r++)
        sums[r] = (gb_tile_row)(0.0f);
    for (long tap = 0; tap < GB_TAPS; tap++) {
        long a_at[GB_TILE_ROWS], b_at = GB_B_TAP(tap);
        bool any = false;
        for (int r = 0; r < GB_TILE_ROWS; r++) {
            a_at[r] = GB_A_TAP(min(row + r, GB_ROWS - 1), tap);
            any = any || a_at[r] >= 0;
        }
        if (!any)
            continue;
        for (long k = 0; k < GB_K; k++) {
            gb_tile_row b;
#ifdef GB_B_ADDRESS
            if (whole) {
                b = GB_LOAD_ROW(GB_B_ADDRESS(b_at, k, column));
            } else
#endif
            {
                for (int c = 0; c < GB_TILE_COLUMNS; c++)
                    loaded[c] = GB_LOAD_B(b_at, k, min(column + c, GB_COLUMNS - 1));
                b = GB_LOAD_ROW(loaded);
            }
#pragma unroll
            for (int r = 0; r < GB_TILE_ROWS; r++) {
                float a = 0.0f;
                if (a_at[r] >= 0)
                    a = GB_LOAD_A(a_at[r], min(row + r, GB_ROWS - 1), k);
                sums[r] = GB_ADD_PRODUCT((gb_tile_row)(a), b, sums[r]);
            }
        }
    }
    for (int r = 0; r < GB_TILE_ROWS && row + r < GB_ROWS; r++) {
        GB_STORE_ROW(sums[r], loaded);
        for (int c = 0; c < GB_TILE_COLUMNS && column + c < GB_COLUMNS; c++)
            GB_POST(row + r, column + c, loaded[c]);
    }
}
