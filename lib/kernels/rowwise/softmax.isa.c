/* Softmax and its logarithm over rows or columns of f32. */
#include "kernels/isa/vec.h"
#include "kernels/isa/vec_math.h"
#include "kernels/isa/vec_partial.h"

#include <math.h>

enum {
    CHUNK = 4096, /* elements of a row whose exponentials are summed before they join the total */
    CHUNK_ROWS = 256, /* the same down a column */
    SHORT = 8,        /* vectors of a row that stays in registers */
    AHEAD = 512,      /* elements that short rows are asked for before they are read */
    NEXT_ROW = 4096   /* elements of the next row that are asked for during a long one, at most */
};

GB_TEMPLATE void write(float *y, vf v, bool streamed)
{
    if (streamed)
        vf_stream(y, v);
    else
        vf_store(y, v);
}

static float row_max(const float *x, int64_t n, float start)
{
    vf lowest = vf_set1(start), most[4] = {lowest, lowest, lowest, lowest};
    int64_t i = 0;
    for (; i + 4 * VLEN <= n; i += 4 * VLEN)
        for (int k = 0; k < 4; k++)
            most[k] = vf_max(vf_load(x + i + k * VLEN), most[k]);
    for (int k = 0; i + VLEN <= n; i += VLEN, k++)
        most[k] = vf_max(vf_load(x + i), most[k]);
    if (i < n)
        most[3] = vf_max(vf_keep_n(vf_load_n(x + i, n - i), lowest, n - i), most[3]);
    return vf_max_lane(vf_max(vf_max(most[0], most[1]), vf_max(most[2], most[3])));
}

/* Sum of exp(x - shift) of up to CHUNK elements, each stored unless y is NULL. What lies `ahead`
 * elements behind them is on its way into the caches then. */
GB_TEMPLATE vf exp_chunk(const float *x, float *y, int64_t n, float shift, int64_t ahead)
{
    vf by = vf_set1(shift), sum[2] = {vf_zero(), vf_zero()};
    int64_t i = 0;
    for (; i + 2 * VLEN <= n; i += 2 * VLEN)
        for (int k = 0; k < 2; k++) {
            __builtin_prefetch(x + i + k * VLEN + ahead);
            vf e = vf_exp_flushed(vf_sub(vf_load(x + i + k * VLEN), by));
            if (y)
                vf_store(y + i + k * VLEN, e);
            sum[k] = vf_add(sum[k], e);
        }
    for (; i < n; i += VLEN) {
        int64_t left = n - i < VLEN ? n - i : VLEN;
        vf e = vf_exp_flushed(vf_sub(vf_load_n(x + i, left), by));
        if (y)
            vf_store_n(y + i, e, left);
        sum[1] = vf_add(sum[1], vf_keep_n(e, vf_zero(), left));
    }
    return vf_add(sum[0], sum[1]);
}

GB_TEMPLATE float row_exp(const float *x, float *y, int64_t n, float shift)
{
    vf total = vf_zero();
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t left = n - i < CHUNK ? n - i : CHUNK;
        total = vf_add(total, exp_chunk(x + i, y ? y + i : NULL, left, shift, n));
    }
    return vf_sum(total);
}

/* y = (x - first) - second, past the caches where wanted */
GB_TEMPLATE void row_shift(
        const float *x, float *y, int64_t n, float first, float second, bool streamed)
{
    vf a = vf_set1(first), b = vf_set1(second);
    int64_t i = 0;
    for (; i + VLEN <= n; i += VLEN)
        write(y + i, vf_sub(vf_sub(vf_load(x + i), a), b), streamed);
    if (i < n)
        vf_store_n(y + i, vf_sub(vf_sub(vf_load_n(x + i, n - i), a), b), n - i);
}

/* y = x * factor, likewise */
GB_TEMPLATE void row_scale(const float *x, float *y, int64_t n, float factor, bool streamed)
{
    vf by = vf_set1(factor);
    int64_t i = 0;
    for (; i + VLEN <= n; i += VLEN)
        write(y + i, vf_mul(vf_load(x + i), by), streamed);
    if (i < n)
        vf_store_n(y + i, vf_mul(vf_load_n(x + i, n - i), by), n - i);
}

static void softmax_fill(float *dst, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = value;
}

/* The same NaN for all: which of two a sum or product hands on is the compiler's choice, and may be
 * another for rows that go past the caches. */
static float one_nan(float sum)
{
    return isnan(sum) ? NAN : sum;
}

/* Where the maximum starts: the lowest number makes exp(-inf - max) 0, -inf makes it NaN. */
static float start_of(const gb_softmax_block *block)
{
    return block->inf_as_zero ? -0x1.fffffep127F : -INFINITY;
}

static float log_sum(const gb_softmax_block *block, float max, float sum)
{
    return block->inf_as_zero && sum == 0 ? 0.0F : max + logf(sum);
}

/* A row of `vectors` vectors becomes its softmax; the first `known` numbers of the last vector are
 * in the one before, too, and count once. */
GB_TEMPLATE void short_row(
        const gb_softmax_block *block, const int vectors, int64_t known, int64_t r, vf *v)
{
    vf most = vf_set1(start_of(block)), sum = vf_zero(), e[SHORT];
    for (int i = 0; i < vectors; i++)
        most = vf_max(v[i], most);
    float max = vf_max_lane(most);
    for (int i = 0; i < vectors; i++) {
        v[i] = vf_sub(v[i], vf_set1(max));
        e[i] = vf_exp_flushed(v[i]);
        sum = vf_add(sum, i + 1 < vectors ? e[i] : vf_keep_n(vf_zero(), e[i], known));
    }
    float total = one_nan(vf_sum(sum));
    for (int i = 0; isnan(total) && i < vectors; i++)
        e[i] = vf_zero();
    if (block->stats)
        block->stats[r] = log_sum(block, max, total);
    bool zero = block->inf_as_zero && total == 0;
    vf by = vf_set1(block->log ? logf(total) : zero ? 1.0F : 1 / total);
    for (int i = 0; i < vectors; i++)
        v[i] = block->log ? vf_sub(v[i], by) : vf_mul(e[i], by);
}

/* The last of several vectors ends with the row and overlaps the one before: where y is x, the next
 * row need not wait for a store of part of a vector. */
GB_TEMPLATE void short_rows(const gb_softmax_block *block, const int vectors, const bool streamed)
{
    int64_t last = vectors > 1 ? block->n - VLEN : 0;
    for (int64_t r = 0; r < block->count; r++) {
        const float *x = block->x + r * block->x_stride;
        float *y = block->y + r * block->y_stride;
        vf v[SHORT];
        for (int i = 0; i < vectors; i++)
            __builtin_prefetch(x + i * VLEN + AHEAD);
        for (int i = 0; i + 1 < vectors; i++)
            v[i] = vf_load(x + i * VLEN);
        v[vectors - 1] = vf_load(x + last);
        short_row(block, vectors, vectors * VLEN - block->n, r, v);
        for (int i = 0; i + 1 < vectors; i++)
            write(y + i * VLEN, v[i], streamed);
        write(y + last, v[vectors - 1], streamed);
    }
}

/* A row of less than a vector. */
static void shortest_rows(const gb_softmax_block *block)
{
    for (int64_t r = 0; r < block->count; r++) {
        vf x = vf_load_n(block->x + r * block->x_stride, block->n);
        vf v = vf_keep_n(x, vf_set1(-INFINITY), block->n);
        short_row(block, 1, 0, r, &v);
        vf_store_n(block->y + r * block->y_stride, v, block->n);
    }
}

/* Whole vectors at places of whole vectors. */
static bool streams(const gb_softmax_block *block)
{
    return block->row && block->x != block->y && block->n % VLEN == 0 &&
           block->y_stride % VLEN == 0 && (uintptr_t)block->y % sizeof(vf) == 0;
}

static bool are_short(const gb_softmax_block *block, bool streamed)
{
    if (block->n > 0 && block->n < VLEN)
        shortest_rows(block);
#define SHORT_ROWS(vectors)                                                                        \
    case vectors:                                                                                  \
        if (streamed)                                                                              \
            short_rows(block, vectors, true);                                                      \
        else                                                                                       \
            short_rows(block, vectors, false);                                                     \
        return true
    switch ((block->n + VLEN - 1) / VLEN) {
    case 1:
        if (block->n == VLEN)
            short_rows(block, 1, false);
        return true;
        SHORT_ROWS(2);
        SHORT_ROWS(3);
        SHORT_ROWS(4);
        SHORT_ROWS(5);
        SHORT_ROWS(6);
        SHORT_ROWS(7);
        SHORT_ROWS(SHORT);
    default:
        return false;
    }
#undef SHORT_ROWS
}

GB_TEMPLATE void long_rows(const gb_softmax_block *block, const bool streamed)
{
    for (int64_t r = 0; r < block->count; r++) {
        const float *x = block->x + r * block->x_stride;
        float *y = block->y + r * block->y_stride, *e = streamed ? block->row : y;
        float max = row_max(x, block->n, start_of(block)), sum;
        if (block->log) {
            sum = one_nan(row_exp(x, NULL, block->n, max));
            row_shift(x, y, block->n, max, logf(sum), streamed);
        } else {
            sum = one_nan(row_exp(x, e, block->n, max));
            row_scale(e, y, block->n, block->inf_as_zero && sum == 0 ? 1.0F : 1 / sum, streamed);
            if (isnan(sum))
                softmax_fill(y, block->n, sum);
        }
        if (block->stats)
            block->stats[r] = log_sum(block, max, sum);
    }
}

void GB_ISA_NAME(softmax_rows)(const gb_softmax_block *block)
{
    bool streamed = streams(block);
    if (are_short(block, streamed))
        return;
    if (streamed)
        long_rows(block, true);
    else
        long_rows(block, false);
}

/* Columns: the maxima of a block are found row after row, as memory likes it; then a group of a few vectors at a time
 * comes back out of L2 twice, with its sums in registers. */
enum { GROUP = 4, ROWS_AHEAD = 4 };
/* Columns of so many elements, of part of a group, have their exponentials in whole vectors on the stack: what was
 * stored in part is slow to read back. */
enum { FEW_ROWS = 64 };
_Static_assert(GROUP *VLEN <= GB_SOFTMAX_GROUP, "exponentials of a group have room");

/* A few vectors of columns from `first` on. e: where exponentials lie until their sum is known, e_stride from row to
 * row. */
typedef struct column_group {
    int64_t first;
    const float *max; /* whole vectors */
    float *e;
    int64_t e_stride;
    bool own_e;    /* e has room for whole vectors */
    bool streamed; /* results go past the caches */
} column_group;

static void column_max(const gb_softmax_block *block, float *max)
{
    const int64_t ahead = ROWS_AHEAD * block->x_stride, n = block->count;
    for (int64_t c = 0; c < n; c += VLEN)
        vf_store(max + c, vf_set1(start_of(block)));
    for (int64_t r = 0; r < block->n; r++) {
        const float *x = block->x + r * block->x_stride;
        int64_t c = 0;
        for (; c + VLEN <= n; c += VLEN) {
            gb_prefetch(x + c + ahead);
            vf_store(max + c, vf_max(vf_load(x + c), vf_load(max + c)));
        }
        if (c < n) /* what was stored in part is not read back at once */
            vf_store(max + c, vf_max(vf_load_n(x + c, n - c), vf_load(max + c)));
    }
}

GB_TEMPLATE vf load_lanes(const float *from, int v, const int vectors, int64_t lanes)
{
    return v + 1 < vectors || lanes == VLEN ? vf_load(from + v * VLEN)
                                            : vf_load_n(from + v * VLEN, lanes);
}

GB_TEMPLATE void store_lanes(float *to, vf value, int v, const int vectors, int64_t lanes)
{
    if (v + 1 < vectors || lanes == VLEN)
        vf_store(to + v * VLEN, value);
    else
        vf_store_n(to + v * VLEN, value, lanes);
}

/* Sums of exp(x - max). Kept for the results: these, or x - max where they are logarithms and there is room. */
GB_TEMPLATE void group_exp(const gb_softmax_block *block, const column_group *group,
        const int vectors, int64_t lanes, const bool log, vf *total)
{
    const int64_t e_lanes = group->own_e ? VLEN : lanes;
    vf part[GROUP];
    for (int v = 0; v < vectors; v++)
        total[v] = vf_zero();
    for (int64_t first = 0; first < block->n; first += CHUNK_ROWS) {
        int64_t end = first + CHUNK_ROWS < block->n ? first + CHUNK_ROWS : block->n;
        for (int v = 0; v < vectors; v++)
            part[v] = vf_zero();
        for (int64_t r = first; r < end; r++) {
            const float *x = block->x + r * block->x_stride + group->first;
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
                vf shifted =
                        vf_sub(load_lanes(x, v, vectors, lanes), vf_load(group->max + v * VLEN));
                vf e = vf_exp_flushed(shifted);
                if (!log || group->own_e)
                    store_lanes(
                            group->e + r * group->e_stride, log ? shifted : e, v, vectors, e_lanes);
                part[v] = vf_add(part[v], e);
            }
        }
        for (int v = 0; v < vectors; v++)
            total[v] = vf_add(total[v], part[v]);
    }
}

/* Sums become what the column is shifted or multiplied by. Is one of them NaN? */
GB_TEMPLATE bool group_factors(const gb_softmax_block *block, const column_group *group,
        const int vectors, int64_t lanes, vf *sums)
{
    bool nan = false;
    for (int v = 0; v < vectors; v++) {
        vf sum = vf_select(vf_unordered(sums[v], sums[v]), vf_set1(NAN), sums[v]);
        nan = nan || vm_any(vf_unordered(sum, sum));
        sums[v] = vf_div(vf_set1(1.0F), sum);
        if (block->inf_as_zero)
            sums[v] = vf_select(vf_eq(sum, vf_zero()), vf_set1(1.0F), sums[v]);
        if (!block->log && !block->stats)
            continue;
        vf log = vf_log(sum), stats = vf_add(vf_load(group->max + v * VLEN), log);
        if (block->inf_as_zero)
            stats = vf_select(vf_eq(sum, vf_zero()), vf_zero(), stats);
        if (block->stats)
            store_lanes(block->stats + group->first, stats, v, vectors, lanes);
        if (block->log)
            sums[v] = log;
    }
    return nan;
}

/* y = x - max - ln(sum), or e / sum. Columns with a NaN become that, the same for all. */
GB_TEMPLATE void group_finish(const gb_softmax_block *block, const column_group *group,
        const int vectors, int64_t lanes, const vf *by, const bool log, const bool streamed,
        const bool nan)
{
    const int64_t e_lanes = group->own_e ? VLEN : lanes;
    for (int64_t r = 0; r < block->n; r++) {
        const float *x = block->x + r * block->x_stride + group->first;
        float *y = block->y + r * block->y_stride + group->first;
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            vf result;
            if (log && group->own_e)
                result = vf_sub(vf_load(group->e + r * group->e_stride + v * VLEN), by[v]);
            else if (log)
                result = vf_sub(
                        vf_sub(load_lanes(x, v, vectors, lanes), vf_load(group->max + v * VLEN)),
                        by[v]);
            else
                result = vf_mul(
                        load_lanes(group->e + r * group->e_stride, v, vectors, e_lanes), by[v]);
            if (nan)
                result = vf_select(vf_unordered(by[v], by[v]), by[v], result);
            if (streamed)
                vf_stream(y + v * VLEN, result);
            else
                store_lanes(y, result, v, vectors, lanes);
        }
    }
}

GB_TEMPLATE void run_group_of(const gb_softmax_block *block, const column_group *group,
        const int vectors, int64_t lanes, const bool log)
{
    vf by[GROUP];
    group_exp(block, group, vectors, lanes, log, by);
    if (group_factors(block, group, vectors, lanes, by))
        group_finish(block, group, vectors, lanes, by, log, false, true);
    else if (group->streamed)
        group_finish(block, group, vectors, lanes, by, log, true, false);
    else
        group_finish(block, group, vectors, lanes, by, log, false, false);
}

/* lanes: VLEN as a constant where vectors are whole. */
GB_TEMPLATE void run_group(
        const gb_softmax_block *block, const column_group *group, const int vectors, int64_t lanes)
{
    if (block->log)
        run_group_of(block, group, vectors, lanes, true);
    else
        run_group_of(block, group, vectors, lanes, false);
}

/* Lines of memory are written whole. */
static bool streams_columns(const gb_softmax_block *block)
{
    return block->row && block->x != block->y &&
           block->y_stride * (int64_t)sizeof(float) % GB_CACHE_LINE == 0 &&
           (uintptr_t)block->y % GB_CACHE_LINE == 0;
}

void GB_ISA_NAME(softmax_columns)(const gb_softmax_block *whole)
{
    const gb_softmax_block copy = *whole, *block = &copy; /* stores of vectors may alias *whole */
    float max[GB_TILE_ELEMENTS], few[FEW_ROWS * VLEN];
    bool streamed = streams_columns(block);
    column_max(block, max);
    for (int64_t c = 0, step; c < block->count; c += step) {
        step = block->count - c < GROUP * VLEN ? VLEN : GROUP * VLEN;
        column_group group = {
                .first = c, .max = max + c, .e = block->y + c, .e_stride = block->y_stride};
        group.streamed = streamed && step == GROUP * VLEN;
        if (group.streamed)
            group.e = block->row, group.e_stride = step;
        else if (step == VLEN && block->n <= FEW_ROWS)
            group.e = few, group.e_stride = VLEN, group.own_e = true;
        if (step > VLEN)
            run_group(block, &group, GROUP, VLEN);
        else if (block->count - c >= VLEN)
            run_group(block, &group, 1, VLEN);
        else
            run_group(block, &group, 1, block->count - c);
    }
}
