/* Products of VNNI groups with AMX: up to 32 x 32 sums lie in four tile registers, in two rows of
 * two, while K runs by, 16 VNNI groups at a time. */
#define GB_CODES_ADD_TERMS 1
#include "kernels/gemm/finish_codes.h"
#include "kernels/gemm/register_sums.h"
#include "kernels/gemm/register_tile.h"

#include "base/memory.h"
#if !defined(GB_AMX_TILES_EMULATED)
#include "kernels/gemm/amx_tiles.h"
#endif

#include <string.h>

enum { SIDE = 16, MOST = 2 * SIDE, WORD = sizeof(int32_t) };
/* VNNI groups of a run from which on tiles are faster than vectors: a tile takes as long for few. */
enum { LEAST_RUN = 4 };
/* ... and of B from which on it does not stay in L1, where the next rows of A would find it. */
enum { LEAST_PASSING = 160 };

/* Registers: sums are 0 and 1 above 2 and 3, the rows of A 4 above 5, the columns of B 6 and 7. */
static _Thread_local struct {
    bool kept;                /* between dot_begin and dot_end */
    int upper, lower, groups; /* rows of the configuration; no groups: there is none */
} state;

static void configure(int upper, int lower, int groups)
{
    if (state.upper == upper && state.lower == lower && state.groups == groups)
        return;
    gb_tile_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        bool below = i == 2 || i == 3 || i == 5, of_a = i == 4 || i == 5, of_b = i >= 6;
        config.rows[i] = (uint8_t)(of_b ? groups : below ? gb_max_i64(lower, 1) : upper);
        config.row_bytes[i] = (uint16_t)((of_a ? groups : SIDE) * WORD);
    }
    gb_tile_configure(&config);
    state.upper = upper;
    state.lower = lower;
    state.groups = groups;
}

static void forget(void)
{
    if (state.groups > 0)
        gb_tile_release();
    state.upper = state.lower = state.groups = 0;
}

void GB_ISA_NAME(dot_begin)(void)
{
    state.kept = true;
}

void GB_ISA_NAME(dot_end)(void)
{
    state.kept = false;
    forget();
}

/* The unit that multiplies tiles goes to sleep after about 0.6 us without work, and takes 0.5 us to
 * wake up: a product in between keeps it awake, of registers that hold nothing any more. */
static void stay_awake(void)
{
    if (state.kept && state.groups > 0)
        GB_TILE_DOT_BF16(0, 4, 6);
}

extern gb_pointwise_run_fn gb_pointwise_run_avx512;

/* As AVX-512 has it, between products of tiles. */
void GB_ISA_NAME(pointwise_run)(const gb_pointwise_program *pointwise,
        const gb_pointwise_view *views, int64_t rows, int64_t cols, float *registers)
{
    gb_pointwise_run_avx512(pointwise, views, rows, cols, registers);
    stay_awake();
}

/* Sums ---------------------------------------------------------------------------------------- */

static int upper_rows(const gb_dot_tile *tile)
{
    return (int)gb_min_i64(tile->upper ? tile->upper : SIDE, tile->rows);
}

GB_INLINE void load_sums(const gb_dot_tile *tile, const bool low, const bool wide)
{
    const int64_t row = tile->c_in_row * WORD;
    const char *upper = tile->c_in, *lower = upper + upper_rows(tile) * row;
    if (!upper) {
        GB_TILE_ZERO(0);
        GB_TILE_ZERO(1);
        GB_TILE_ZERO(2);
        GB_TILE_ZERO(3);
        return;
    }
    GB_TILE_LOAD(0, upper, row);
    if (wide)
        GB_TILE_LOAD(1, upper + SIDE * WORD, row);
    if (low)
        GB_TILE_LOAD(2, lower, row);
    if (low && wide)
        GB_TILE_LOAD(3, lower + SIDE * WORD, row);
}

GB_INLINE void store_sums(void *to, int64_t to_row, int upper_rows, const bool low, const bool wide)
{
    const int64_t row = to_row * WORD;
    char *upper = to, *lower = upper + upper_rows * row;
    GB_TILE_STORE(0, upper, row);
    if (wide)
        GB_TILE_STORE(1, upper + SIDE * WORD, row);
    if (low)
        GB_TILE_STORE(2, lower, row);
    if (low && wide)
        GB_TILE_STORE(3, lower + SIDE * WORD, row);
}

static void copy_sums(const gb_dot_tile *tile, const int32_t *sums)
{
    for (int m = 0; m < tile->rows; m++)
        memcpy((int32_t *)tile->c_out + m * tile->c_out_row, sums + m * MOST,
                (size_t)tile->cols * WORD);
}

/* Rows that are finished at a time, in registers. */
enum { FINISHED_ROWS = 8 };

/* Rows of sums become results: those of integers are moved and scaled, and all take the post-ops. */
GB_INLINE void finish_rows(const gb_dot_tile *tile, const int32_t *sums, int64_t m, const int rows,
        const int vectors, const bool floats)
{
    vf results[MOST_ROWS][MOST_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            const vi sum = vi_load(sums + (m + r) * MOST + v * VLEN);
            if (floats)
                results[r][v] = vi_as_vf(sum);
            else
                results[r][v] = gb_finish_integers(tile->finish,
                        vi_add(sum, vi_load(tile->finish->column_terms + v * VLEN)), m + r,
                        v * VLEN);
        }
    const gb_register_sums place = {.post_ops = tile->post_ops,
            .row = tile->row + m,
            .col = tile->col,
            .last = tile->cols - (vectors - 1) * VLEN,
            .dst = (float *)tile->c_out + m * tile->c_out_row,
            .dst_row = tile->c_out_row};
    gb_finish_sums(&place, rows, vectors, results);
}

GB_INLINE void finish_sums(
        const gb_dot_tile *tile, const int32_t *sums, const int vectors, const bool floats)
{
    int m = 0;
    for (; m + FINISHED_ROWS <= tile->rows; m += FINISHED_ROWS)
        finish_rows(tile, sums, m, FINISHED_ROWS, vectors, floats);
    for (; m < tile->rows; m++)
        finish_rows(tile, sums, m, 1, vectors, floats);
}

/* Products ------------------------------------------------------------------------------------ */

/* `passing`: the rows of B shall not take the place of those of A in L1. */
GB_INLINE void add_groups(const int32_t *a, int64_t a_row, int64_t a_lower, const int32_t *b,
        int64_t b_row, bool passing, const bool low, const bool wide, const bool floats)
{
#define DOT(sums, a, b)                                                                            \
    do {                                                                                           \
        if (floats)                                                                                \
            GB_TILE_DOT_BF16(sums, a, b);                                                          \
        else                                                                                       \
            GB_TILE_DOT_BYTES(sums, a, b);                                                         \
    } while (0)
/* Not if and else: clang-tidy does not see that their instructions differ. */
#define LOAD_B(tile, from)                                                                         \
    do {                                                                                           \
        if (passing)                                                                               \
            GB_TILE_LOAD_PASSING(tile, from, b_bytes);                                             \
        if (!passing)                                                                              \
            GB_TILE_LOAD(tile, from, b_bytes);                                                     \
    } while (0)
    const int64_t b_bytes = b_row * WORD;
    GB_TILE_LOAD(4, a, a_row * WORD);
    LOAD_B(6, b);
    DOT(0, 4, 6);
    if (wide) {
        LOAD_B(7, b + SIDE);
        DOT(1, 4, 7);
    }
    if (low) {
        GB_TILE_LOAD(5, a + a_lower, a_row * WORD);
        DOT(2, 5, 6);
        if (wide)
            DOT(3, 5, 7);
    }
#undef LOAD_B
#undef DOT
}

/* Fewer VNNI groups than tiles have are followed by zeros. */
GB_INLINE void add_rest(const gb_dot_tile *tile, const int32_t *a, int64_t a_lower,
        const int32_t *b, int64_t b_row, int64_t groups, const bool low, const bool wide,
        const bool floats)
{
    _Alignas(64) int32_t a_groups[MOST * SIDE], b_groups[SIDE * MOST];
    const int upper = upper_rows(tile);
    for (int m = 0; m < upper; m++)
        vi_store(a_groups + m * SIDE, vi_load_n(a + m * tile->a_row, groups));
    for (int m = 0; m < tile->rows - upper; m++)
        vi_store(a_groups + (SIDE + m) * SIDE, vi_load_n(a + a_lower + m * tile->a_row, groups));
    memset(b_groups, 0, sizeof b_groups);
    for (int64_t k = 0; k < groups; k++)
        memcpy(b_groups + k * MOST, b + k * b_row, (size_t)(wide ? MOST : SIDE) * WORD);
    add_groups(a_groups, SIDE, SIDE * SIDE, b_groups, MOST, false, low, wide, floats);
}

/* VNNI groups that are multiplied at a time: all blocks of a run have the same, if they can. */
static int block_groups(int64_t run)
{
    const int64_t blocks = gb_div_up(run, SIDE);
    return (int)(run % blocks == 0 ? run / blocks : SIDE);
}

GB_INLINE void multiply(
        const gb_dot_tile *tile, int64_t run, const bool low, const bool wide, const bool floats)
{
    const int groups = block_groups(run);
    const int64_t b_row = tile->b_offsets[1] - tile->b_offsets[0];
    const bool passing = tile->k >= LEAST_PASSING;
    const int upper = upper_rows(tile);
    const int64_t a_lower = tile->upper ? tile->a_lower : upper * tile->a_row;
    if (tile->post_ops)
        gb_fetch_post_ops(tile->post_ops, tile->row, tile->col, tile->k, tile->rows, wide ? 2 : 1);
    configure(upper, tile->rows - upper, groups);
    load_sums(tile, low, wide);
    for (int64_t k = 0; k < tile->k; k += run) {
        const int32_t *a = tile->a + tile->a_offsets[k], *b = tile->b + tile->b_offsets[k];
        int64_t rest = gb_min_i64(run, tile->k - k);
        for (; rest >= groups; rest -= groups, a += groups, b += groups * b_row)
            add_groups(a, tile->a_row, a_lower, b, b_row, passing, low, wide, floats);
        if (rest > 0)
            add_rest(tile, a, a_lower, b, b_row, rest, low, wide, floats);
    }
    const bool finishes = tile->finish || tile->post_ops;
    if (!finishes && tile->cols % SIDE == 0) {
        store_sums(tile->c_out, tile->c_out_row, upper, low, wide);
        return;
    }
    _Alignas(64) int32_t sums[MOST * MOST];
    store_sums(sums, MOST, upper, low, wide);
    if (!floats && wide && gb_become_codes(tile))
        gb_finish_codes(tile->post_ops, tile->finish, sums, tile->row, tile->col, tile->rows);
    else if (finishes)
        finish_sums(tile, sums, wide ? 2 : 1, floats);
    else
        copy_sums(tile, sums);
}

/* A function for each form: one with all of their arrays would take too much of a small stack. */
#define MULTIPLY(name, low, wide, floats)                                                          \
    static void multiply_##name(const gb_dot_tile *tile, int64_t run)                              \
    {                                                                                              \
        multiply(tile, run, low, wide, floats);                                                    \
    }
MULTIPLY(bytes_1x1, false, false, false)
MULTIPLY(bytes_1x2, false, true, false)
MULTIPLY(bytes_2x1, true, false, false)
MULTIPLY(bytes_2x2, true, true, false)
MULTIPLY(floats_1x1, false, false, true)
MULTIPLY(floats_1x2, false, true, true)
MULTIPLY(floats_2x1, true, false, true)
MULTIPLY(floats_2x2, true, true, true)

/* By floats, low and wide. */
static void (*const forms[2][2][2])(const gb_dot_tile *tile, int64_t run) = {
        {{multiply_bytes_1x1, multiply_bytes_1x2}, {multiply_bytes_2x1, multiply_bytes_2x2}},
        {{multiply_floats_1x1, multiply_floats_1x2}, {multiply_floats_2x1, multiply_floats_2x2}}};

/* In vectors, as AVX-512 has them. */
extern gb_dot_tile_fn gb_dot_tile_avx512;

static void multiply_vectors(const gb_dot_tile *whole)
{
    gb_dot_tile tile = *whole;
    gb_dot_finish finish;
    const int upper = whole->upper ? upper_rows(whole) : whole->rows;
    tile.upper = 0;
    for (int m = 0; m < whole->rows; m += tile.rows) {
        tile.rows = (int)gb_min_i64((m < upper ? upper : whole->rows) - m, ROWS);
        tile.a = m < upper ? whole->a + m * whole->a_row
                           : whole->a + whole->a_lower + (m - upper) * whole->a_row;
        tile.c_in = whole->c_in ? (const int32_t *)whole->c_in + m * whole->c_in_row : NULL;
        tile.c_out = (int32_t *)whole->c_out + m * whole->c_out_row;
        tile.row = whole->row + m;
        if (whole->finish) {
            finish = *whole->finish;
            finish.row_terms = finish.row_terms ? finish.row_terms + m : NULL;
            finish.row_scales = finish.row_scales ? finish.row_scales + m : NULL;
            tile.finish = &finish;
        }
        gb_dot_tile_avx512(&tile);
    }
}

void GB_ISA_NAME(dot_tile)(const gb_dot_tile *tile)
{
    const int64_t run = gb_min_i64(tile->run, tile->k);
    const bool halves = !tile->floats && tile->vnni_factor == 2; /* s16 */
    if (halves || run < LEAST_RUN || tile->a_offsets[1] - tile->a_offsets[0] != 1) {
        multiply_vectors(tile);
        return;
    }
    forms[tile->floats][tile->rows > upper_rows(tile)][tile->cols > SIDE](tile, run);
    if (!state.kept)
        forget();
}

gb_dot_form GB_ISA_NAME(dot_form)(bool floats)
{
    return (gb_dot_form){.vnni_factor = floats ? 2 : 4,
            .rows = MOST,
            .cols = MOST,
            .row_step = SIDE,
            .group_step = SIDE,
            .along_k = true};
}
