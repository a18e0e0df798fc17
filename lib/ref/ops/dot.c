/* Operands and tiles of dot products. */
#include "ref/ops/dot.h"
#include "ref/bounds/bound.h"
#include "ref/bounds/clones.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include <stdlib.h>
#include <string.h>

/* What an implementation may do to an input before it multiplies. */
typedef struct input_rounding {
    double unit, tiny, limit;
    int bits; /* significand; values that fit are not rounded. 0: no rounding */
} input_rounding;

static input_rounding input_rounding_of(const gb_op *op, gb_data_type type)
{
    static const input_rounding none = {0, 0, INFINITY, 0};
    static const input_rounding bf16 = {0x1p-8, GB_REF_ETA, INFINITY, 8};
    static const input_rounding tf32 = {0x1p-11, GB_REF_ETA, INFINITY, 11};
    static const input_rounding f16 = {0x1p-11, 0x1p-25, 65520, 11};
    if (type != GB_F32 || !op->graph)
        return none;
    switch (op->graph->fpmath_mode) {
    case GB_FPMATH_BF16:
    case GB_FPMATH_ANY:
        return bf16;
    case GB_FPMATH_F16:
        return f16;
    case GB_FPMATH_TF32:
        return tf32;
    default:
        return none;
    }
}

/* Error of an input as the multiplier sees it. */
static double input_error(double value, double bound, const input_rounding *rounding)
{
    double magnitude = fabs(value);
    if (magnitude < 0x1p-126)
        return fmax(bound, magnitude);
    if (rounding->bits == 0)
        return bound;
    if (magnitude + bound >= rounding->limit)
        return isfinite(magnitude) ? (double)INFINITY : bound;
    bool fits = bound == 0 && isfinite(magnitude) &&
                ilogb(magnitude) - gb_ref_grid(magnitude) < rounding->bits &&
                ldexp(1, gb_ref_grid(magnitude)) >= 2 * rounding->tiny;
    return fits ? 0 : bound + rounding->unit * (magnitude + bound) + rounding->tiny;
}

/* Some error is above zero; some element is subnormal. */
enum { WIDENED = 1, FLUSHED = 2 };

typedef struct widen_job {
    const gb_ref_tensor *tensor;
    input_rounding rounding;
    double *wide;
    int *widened; /* per thread: the flags above */
} widen_job;

static void widen_part(void *context, int thread, int n_threads)
{
    const widen_job *job = context;
    const gb_ref_tensor *tensor = job->tensor;
    int64_t begin, end;
    gb_split(tensor->count, thread, n_threads, &begin, &end);
    int widened = 0;
    for (int64_t i = begin; i < end; i++) {
        double size = fabs(tensor->value[i]);
        double error = input_error(tensor->value[i], gb_ref_bound(tensor, i), &job->rounding);
        widened |= error != 0 ? WIDENED : 0;
        widened |= size != 0 && size < GB_REF_ETA ? FLUSHED : 0;
        job->wide[i] = size + error;
    }
    job->widened[thread] = widened;
}

/* *found gets WIDENED and FLUSHED. */
static gb_status widen(
        const gb_op *op, const gb_ref_tensor *tensor, gb_ref_operand *operand, int *found)
{
    int n_threads = gb_threads_for((double)tensor->count);
    widen_job job = {tensor, input_rounding_of(op, tensor->tensor.data_type),
            gb_calloc((size_t)tensor->count, sizeof(double)),
            gb_calloc((size_t)n_threads, sizeof(int))};
    operand->wide = job.wide;
    if (!job.wide || !job.widened) {
        free(job.widened);
        return GB_OUT_OF_MEMORY;
    }
    gb_parallel(n_threads, widen_part, &job);
    for (int t = 0; t < n_threads; t++)
        *found |= job.widened[t];
    free(job.widened);
    return GB_SUCCESS;
}

/* Can an input differ from its value in front of the multiplier? A survey answers it cheaply in the
 * common case. */
static bool may_widen(const gb_op *op, const gb_ref_tensor *tensor, const gb_ref_survey *survey)
{
    return !survey->exact || survey->grid < -126 ||
           input_rounding_of(op, tensor->tensor.data_type).bits > 0;
}

/* Roundings of the inputs are as large as their bounds; errors that they bring along may have less
 * of a deviation. */
static double ratio_of(const gb_op *op, const gb_ref_tensor *const tensors[2])
{
    double ratio = 0;
    for (int i = 0; i < 2; i++) {
        if (input_rounding_of(op, tensors[i]->tensor.data_type).bits > 0)
            return 1;
        if (tensors[i]->bound)
            ratio = fmax(ratio, gb_ref_ratio(tensors[i]));
    }
    return ratio > 0 ? ratio : 1;
}

static gb_ref_accumulator accumulator_of(const gb_op *op, gb_data_type src, gb_data_type dst)
{
    gb_ref_accumulator accumulator = gb_ref_f32_sums;
    bool relaxed = gb_op_attr_is(op, GB_ATTR_ACCUMULATION_MODE, "relaxed", false) ||
                   gb_op_attr_is(op, GB_ATTR_ACCUMULATION_MODE, "any", false);
    gb_data_type types[2] = {src, dst};
    if (gb_op_attr_is(op, GB_ATTR_ACCUMULATION_MODE, "f16", false))
        types[0] = types[1] = GB_F16;
    else if (!relaxed)
        return accumulator;
    for (int i = 0; i < 2; i++) {
        const gb_dtype_info *info = gb_dtype_get(types[i]);
        if (!info || !info->is_float)
            continue;
        accumulator.unit = fmax(accumulator.unit, info->unit);
        accumulator.tiny = fmax(accumulator.tiny, info->tiny);
        accumulator.limit = fmin(accumulator.limit, info->max * (1 + info->unit / 2));
    }
    return accumulator;
}

static gb_status survey_bias(const gb_ref_tensor *bias, gb_ref_survey *survey)
{
    *survey = (gb_ref_survey){0, GB_REF_GRID_OF_ZERO, true, true, true};
    if (!bias)
        return GB_SUCCESS;
    GB_TRY(gb_ref_survey_values(bias->value, bias->bound, bias->count, survey));
    if (survey->grid < -126)
        survey->exact = false;
    return GB_SUCCESS;
}

static gb_status dot_prepare(const gb_op *op, const gb_ref_tensor *const tensors[2],
        const gb_ref_tensor *bias, int64_t terms, gb_ref_dot *dot)
{
    gb_ref_survey extra;
    GB_TRY(survey_bias(bias, &extra));
    dot->bounded = extra.bounded;
    double total = (double)terms;
    int grid = 0;
    bool exact = extra.exact && extra.finite, widen_any = false, flushes = false;
    for (int i = 0; i < 2; i++) {
        gb_ref_survey *survey = &dot->operands[i].survey;
        dot->operands[i].value = tensors[i]->value;
        dot->operands[i].split =
                tensors[i]->bound ? gb_ref_store_split(tensors[i]->tensor.data_type) : 0;
        GB_TRY(gb_ref_survey_values(
                tensors[i]->value, tensors[i]->bound, tensors[i]->count, survey));
        dot->bounded &= survey->bounded;
        exact &= survey->finite;
        total *= survey->max;
        grid += survey->grid;
        widen_any |= may_widen(op, tensors[i], survey);
        flushes |= survey->grid < -126;
    }
    int found = 0;
    for (int i = 0; i < 2 && widen_any; i++)
        GB_TRY(widen(op, tensors[i], &dot->operands[i], &found));
    dot->wide = found & WIDENED;
    dot->ratio = found & FLUSHED ? 1 : ratio_of(op, tensors); /* that is no rounding */
    total += extra.max;
    if (extra.grid < grid)
        grid = extra.grid;
    dot->exact = exact && !dot->wide && gb_ref_sums_are_exact(&dot->accumulator, total, grid);
    /* Beside an infinite product, a finite one may overflow to the opposite infinity; a subnormal
     * may be 0 when it meets infinity. */
    dot->bounded &= total < dot->accumulator.limit && !flushes;
    return GB_SUCCESS;
}

gb_status gb_ref_dot_create(const gb_op *op, const gb_ref_tensor *a, const gb_ref_tensor *b,
        const gb_ref_tensor *bias, int64_t terms, gb_ref_dot *dot)
{
    const gb_ref_tensor *const tensors[2] = {a, b};
    *dot = (gb_ref_dot){.many = terms > GB_REF_FEW_TERMS,
            .accumulator = accumulator_of(op, a->tensor.data_type, gb_op_output(op, 0)->data_type)};
    gb_status status = dot_prepare(op, tensors, bias, terms, dot);
    if (status != GB_SUCCESS)
        gb_ref_dot_destroy(dot);
    return status;
}

void gb_ref_dot_destroy(gb_ref_dot *dot)
{
    for (int i = 0; i < 2; i++) {
        free(dot->operands[i].wide);
        dot->operands[i].wide = NULL;
    }
}

gb_status gb_ref_tile_create(const gb_ref_dot *dot, int first, gb_ref_tile *tile)
{
    const size_t sums = (size_t)GB_REF_TILE_ROWS * GB_REF_TILE;
    const size_t slab = (size_t)GB_REF_TILE_DEPTH * GB_REF_TILE;
    const double split[2] = {dot->operands[first].split, dot->operands[!first].split};
    const bool splits = split[0] > 0 || split[1] > 0;
    *tile = (gb_ref_tile){.split = {split[0], split[1]}};
    const struct {
        double **array;
        size_t count;
        bool needed;
    } arrays[] = {
            {&tile->sum, sums, true},
            {&tile->slab, slab, true},
            {&tile->size, sums, !dot->exact},
            {&tile->peak, sums, !dot->exact && dot->many},
            {&tile->error, sums, !dot->exact && dot->wide},
            {&tile->error_squares, sums, !dot->exact && dot->wide},
            {&tile->wide_slab, slab, !dot->exact && dot->wide},
            {&tile->shift, sums, !dot->exact && dot->wide && splits},
            {&tile->other, sums, !dot->exact && dot->filters},
    };
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        if (arrays[i].needed && !(*arrays[i].array = gb_calloc(arrays[i].count, sizeof(double)))) {
            gb_ref_tile_destroy(tile);
            return GB_OUT_OF_MEMORY;
        }
    }
    return GB_SUCCESS;
}

void gb_ref_tile_report(const gb_ref_tile *tile, gb_ref_tensor *dst)
{
#pragma omp critical(gb_ref_tile_spread)
    gb_ref_spread_join(&dst->spread, &tile->closed);
}

void gb_ref_tile_destroy(gb_ref_tile *tile)
{
    free(tile->sum);
    free(tile->size);
    free(tile->peak);
    free(tile->error);
    free(tile->error_squares);
    free(tile->other);
    free(tile->slab);
    free(tile->wide_slab);
    free(tile->shift);
    *tile = (gb_ref_tile){0};
}

void gb_ref_tile_clear(gb_ref_tile *tile, int64_t rows)
{
    double *const sums[] = {tile->sum, tile->size, tile->peak, tile->error, tile->error_squares,
            tile->shift, tile->other};
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
        if (sums[i])
            memset(sums[i], 0, (size_t)rows * GB_REF_TILE * sizeof(double));
}

/* sum += a0 b0 + ... + a3 b3 over a row of columns. */
GB_REF_CLONED static inline void add_rows(
        int64_t columns, const double a[4], const double *b, double *restrict sum)
{
    const double *restrict b0 = b, *restrict b1 = b + GB_REF_TILE, *restrict b2 = b1 + GB_REF_TILE,
                           *restrict b3 = b2 + GB_REF_TILE;
    const double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    for (int64_t j = 0; j < columns; j++)
        sum[j] += a0 * b0[j] + a1 * b1[j] + (a2 * b2[j] + a3 * b3[j]);
}

GB_REF_CLONED static inline void add_rows_and_magnitudes(int64_t columns, const double a[4],
        const double *b, double *restrict sum, double *restrict magnitude)
{
    const double *restrict b0 = b, *restrict b1 = b + GB_REF_TILE, *restrict b2 = b1 + GB_REF_TILE,
                           *restrict b3 = b2 + GB_REF_TILE;
    const double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    for (int64_t j = 0; j < columns; j++) {
        double p0 = a0 * b0[j], p1 = a1 * b1[j], p2 = a2 * b2[j], p3 = a3 * b3[j];
        sum[j] += p0 + p1 + (p2 + p3);
        magnitude[j] += fabs(p0) + fabs(p1) + (fabs(p2) + fabs(p3));
    }
}

GB_REF_CLONED static inline void add_rows_and_squares(int64_t columns, const double a[4],
        const double *b, double *restrict sum, double *restrict squares)
{
    const double *restrict b0 = b, *restrict b1 = b + GB_REF_TILE, *restrict b2 = b1 + GB_REF_TILE,
                           *restrict b3 = b2 + GB_REF_TILE;
    const double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    for (int64_t j = 0; j < columns; j++) {
        double p0 = a0 * b0[j], p1 = a1 * b1[j], p2 = a2 * b2[j], p3 = a3 * b3[j];
        sum[j] += p0 + p1 + (p2 + p3);
        squares[j] += p0 * p0 + p1 * p1 + (p2 * p2 + p3 * p3);
    }
}

GB_REF_CLONED static inline void add_row(int64_t columns, double a, const double *restrict b,
        double *restrict sum, double *restrict size, bool squares)
{
    for (int64_t j = 0; j < columns; j++)
        sum[j] += a * b[j];
    for (int64_t j = 0; size && j < columns; j++)
        size[j] += squares ? a * b[j] * (a * b[j]) : fabs(a * b[j]);
}

GB_REF_CLONES static void multiply_row(int64_t columns, int64_t depth, const double *a,
        int64_t stride, const double *slab, double *sum, double *size, bool squares)
{
    int64_t k = 0;
    for (; k + GB_REF_TILE_STEP <= depth; k += GB_REF_TILE_STEP) {
        double factors[GB_REF_TILE_STEP] = {
                a[k * stride], a[(k + 1) * stride], a[(k + 2) * stride], a[(k + 3) * stride]};
        if (!size)
            add_rows(columns, factors, slab + k * GB_REF_TILE, sum);
        else if (squares)
            add_rows_and_squares(columns, factors, slab + k * GB_REF_TILE, sum, size);
        else
            add_rows_and_magnitudes(columns, factors, slab + k * GB_REF_TILE, sum, size);
    }
    for (; k < depth; k++)
        add_row(columns, a[k * stride], slab + k * GB_REF_TILE, sum, size, squares);
}

GB_REF_CLONES static void raise_peaks(
        int64_t columns, const double *restrict sum, double *restrict peak)
{
    for (int64_t j = 0; j < columns; j++)
        peak[j] = fabs(sum[j]) > peak[j] ? fabs(sum[j]) : peak[j];
}

/* How far products a[i] b may lie from their values, and the squares of it. */
GB_REF_CLONED static inline void add_errors(int64_t columns, int n, const double *a,
        const double *wide_a, const double *slab, const double *wide_slab, double *restrict errors,
        double *restrict squares)
{
    for (int64_t j = 0; j < columns; j++) {
        double error = 0, square = 0;
        for (int i = 0; i < n; i++) {
            int64_t at = i * GB_REF_TILE + j;
            double e = wide_a[i] * wide_slab[at] - fabs(a[i] * slab[at]);
            error += e;
            square += e * e;
        }
        errors[j] += error;
        squares[j] += square;
    }
}

GB_REF_CLONES static void multiply_wide_row(int64_t columns, int64_t depth, const double *a,
        const double *wide_a, int64_t stride, const gb_ref_tile *tile, int64_t at)
{
    for (int64_t k = 0; k < depth; k += GB_REF_TILE_STEP) {
        double factors[GB_REF_TILE_STEP], wide[GB_REF_TILE_STEP];
        int n = (int)gb_min_i64(GB_REF_TILE_STEP, depth - k);
        for (int i = 0; i < n; i++) {
            factors[i] = a[(k + i) * stride];
            wide[i] = wide_a[(k + i) * stride];
        }
        const double *slab = tile->slab + k * GB_REF_TILE;
        const double *wide_slab = tile->wide_slab + k * GB_REF_TILE;
        if (n == GB_REF_TILE_STEP) /* a constant, for the compiler */
            add_errors(columns, GB_REF_TILE_STEP, factors, wide, slab, wide_slab, tile->error + at,
                    tile->error_squares + at);
        else
            add_errors(columns, n, factors, wide, slab, wide_slab, tile->error + at,
                    tile->error_squares + at);
    }
}

/* How far a store to 16 bits moves x; not finite where x is not. */
static inline double store_move(double x, double split)
{
    return gb_ref_nearest(x, split) - x;
}

/* What stores of the factors add to the sums of products, as far as it is known. */
GB_REF_CLONES static void add_shifts(int64_t columns, int64_t depth, const double *restrict a,
        int64_t stride, const double *restrict slab, const double split[2], double *restrict shift)
{
    const double split_a = split[0], split_b = split[1];
    for (int64_t k = 0; k < depth; k++, slab += GB_REF_TILE) {
        double x = a[k * stride], moved = split_a > 0 ? store_move(x, split_a) : 0;
        if (split_b > 0)
            for (int64_t j = 0; j < columns; j++)
                shift[j] += moved * slab[j] + x * store_move(slab[j], split_b);
        else
            for (int64_t j = 0; j < columns; j++)
                shift[j] += moved * slab[j];
    }
}

void gb_ref_tile_multiply(gb_ref_tile *tile, int64_t first_row, int64_t rows, int64_t columns,
        int64_t depth, const double *a, const double *wide_a, int64_t row_stride, int64_t stride)
{
    for (int64_t row = 0; row < rows; row++) {
        int64_t at = (first_row + row) * GB_REF_TILE;
        multiply_row(columns, depth, a + row * row_stride, stride, tile->slab, tile->sum + at,
                tile->size ? tile->size + at : NULL, tile->peak != NULL);
        if (tile->peak)
            raise_peaks(columns, tile->sum + at, tile->peak + at);
        if (tile->error)
            multiply_wide_row(columns, depth, a + row * row_stride, wide_a + row * row_stride,
                    stride, tile, at);
        if (tile->shift)
            add_shifts(columns, depth, a + row * row_stride, stride, tile->slab, tile->split,
                    tile->shift + at);
    }
}
