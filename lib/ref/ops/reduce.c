/* The seven reductions. */
#include "ref/bounds/bound.h"
#include "ref/ops/ref_functions.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include <stdlib.h>
#include <string.h>

/* Results of a unit of work, and elements that each takes in turn: enough for a cache to keep the
 * lines that neighbours share. */
enum { RESULTS = 128, RUN = 64 };

/* What a reduction has gathered of one result. Sums and products: value, the same of magnitudes,
 * and of the largest magnitudes that the bounds allow. Maxima: value, and the maxima of the ends of
 * the intervals. */
typedef struct gathered {
    double value, magnitude, wide;
    double largest, smallest; /* products: what partial products can reach */
    double peak, squares;     /* sums of either sign: largest partial sum, sum of squares */
    double error_squares;     /* likewise: of the bounds */
    double shift;             /* likewise: of gb_ref_store_shift() */
    double finite;            /* likewise: of the magnitudes of finite terms */
    bool nan, infinite;
    bool zeros[2]; /* of either sign, or what may be read as one; of products [0]: a certain zero */
} gathered;

typedef void (*gather_fn)(gathered *g, double value, double error);

static void gather_magnitude(gathered *g, double value, double error)
{
    g->value += fabs(value);
    g->magnitude += fabs(value);
    g->wide += fabs(value) + error;
}

static void gather_sum(gathered *g, double value, double error)
{
    g->value += value;
    g->magnitude += fabs(value);
    g->wide += fabs(value) + error;
    g->error_squares += error * error;
    g->squares += value * value;
    g->finite += isfinite(value) ? fabs(value) : 0;
    g->peak = fmax(g->peak, fabs(g->value));
}

static void gather_square(gathered *g, double value, double error)
{
    double wide = fabs(value) + error;
    g->value += value * value;
    g->magnitude += value * value;
    g->wide += wide * wide;
}

static void gather_product(gathered *g, double value, double error)
{
    double wide = fabs(value) + error;
    g->value *= value;
    g->magnitude *= fabs(value);
    g->wide *= wide;
    g->largest *= fmax(wide, 1);
    g->smallest *= fmin(fabs(value), 1);
    g->nan |= isnan(value);
    g->infinite |= isinf(value);
    g->zeros[0] |= wide == 0;
}

static void gather_max(gathered *g, double value, double error)
{
    if (isnan(value))
        g->nan = true;
    if (fabs(value) < GB_REF_ETA)
        g->zeros[signbit(value) != 0] = true;
    if (value > g->value)
        g->value = value;
    if (value - error > g->magnitude)
        g->magnitude = value - error;
    if (value + error > g->wide)
        g->wide = value + error;
}

static void gather_min(gathered *g, double value, double error)
{
    gather_max(g, -value, error);
}

typedef struct reduction {
    gb_op_kind kind;
    const gb_ref_tensor *src;
    gb_ref_tensor *dst;
    gather_fn gather;
    gathered start;
    int n_kept;
    int64_t kept_dims[GB_MAX_NDIMS], kept_strides[GB_MAX_NDIMS];
    int64_t *outer;               /* owned: offsets of the reduced axes but the last */
    int64_t n_outer, run, stride; /* the last reduced axis (adjacent ones merged) */
    int64_t terms;
    double factor;
    bool exact, bounded;
} reduction;

/* Errors of magnitudes and squares all point upwards where the values are small: only in sums of
 * either sign do they cancel. */
static gb_ref_terms terms_of(const reduction *r, const gathered *g)
{
    gb_ref_terms terms = {r->terms, g->value, g->magnitude, g->magnitude, 0, 0};
    terms.error = fmax(g->wide - g->magnitude, 0);
    if (r->kind != GB_OP_REDUCE_SUM && r->kind != GB_OP_REDUCE_MEAN)
        return terms;
    terms.reach = gb_ref_sum_reach(r->terms, g->magnitude, g->squares, g->peak);
    terms.error =
            gb_ref_sum_of_errors(terms.error, g->error_squares, gb_ref_ratio(r->src), g->shift);
    return terms;
}

static void close_sum(const reduction *r, const gathered *g, double *value, double *bound)
{
    const gb_ref_terms terms = terms_of(r, g);
    bool certain = r->bounded && gb_ref_infinity_is_certain(g->finite);
    *value = g->value;
    *bound = r->exact ? 0 : gb_ref_sum_bound(&gb_ref_f32_sums, r->factor, &terms, certain);
    if (r->kind != GB_OP_REDUCE_MEAN)
        return;
    *value = g->value / (double)r->terms;
    *bound = gb_ref_mean_bound(g->value, *bound, g->magnitude, (double)r->terms, certain);
}

/* The root of an interval; the root itself within one ulp. */
static void close_norm(const reduction *r, const gathered *g, double *value, double *bound)
{
    double error;
    close_sum(r, g, value, &error);
    double root = sqrt(*value);
    *value = root;
    *bound = error;
    if (!isfinite(root) || !isfinite(error))
        return;
    double high = sqrt(g->value + error), low = sqrt(fmax(g->value - error, 0));
    *bound = fmax(high - root, root - low) + 2 * GB_REF_U * high;
}

/* A partial product that overflows, or underflows and meets a large factor, can be anything; one
 * that underflows and meets an infinity is no number, nor is one that overflows and meets a zero. */
static void close_product(const reduction *r, const gathered *g, double *value, double *bound)
{
    *value = g->value;
    *bound = 0;
    if (!isfinite(g->value)) {
        bool certain = g->nan || (g->infinite && g->zeros[0]) || g->smallest >= GB_REF_ETA;
        *bound = r->bounded && certain ? 0 : (double)INFINITY;
    } else if (!(g->largest < gb_ref_f32_sums.limit)) {
        *bound = INFINITY;
    } else if (!r->exact || g->largest > 0x1p24) {
        *bound = fmax(g->wide - g->magnitude, 0) + r->factor * g->wide + g->largest * GB_REF_ETA;
        if (g->smallest < GB_REF_ETA)
            *bound += fabs(g->value);
    }
}

/* An implementation may or may not pass NaN on, and may start from the lowest finite value. */
static void close_max(const reduction *r, const gathered *g, double *value, double *bound)
{
    bool exact = g->wide == g->value && g->magnitude == g->value;
    *value = r->kind == GB_OP_REDUCE_MIN ? -g->value : g->value;
    *bound = exact ? 0 : fmax(g->wide - g->value, g->value - g->magnitude);
    /* Of two zeros it may be either, which shows in a quotient; subnormal numbers may be read as one. */
    if (fabs(g->value) < GB_REF_ETA && g->zeros[0] && g->zeros[1])
        *bound = fmax(*bound, GB_REF_ETA);
    if (g->nan || g->value == -(double)INFINITY)
        *bound = INFINITY;
}

static void close_result(const reduction *r, const gathered *g, double *value, double *bound)
{
    switch (r->kind) {
    case GB_OP_REDUCE_L2:
        close_norm(r, g, value, bound);
        break;
    case GB_OP_REDUCE_PROD:
        close_product(r, g, value, bound);
        break;
    case GB_OP_REDUCE_MAX:
    case GB_OP_REDUCE_MIN:
        close_max(r, g, value, bound);
        break;
    default:
        close_sum(r, g, value, bound);
        break;
    }
}

static void gather_run(const reduction *r, int64_t from, int64_t count, gathered *g)
{
    gather_fn gather = r->gather;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = from + i * r->stride;
        double value = r->src->value[at], bound = gb_ref_bound(r->src, at);
        gather(g, value, bound);
        if (bound > 0 && gather == gather_sum)
            g->shift += gb_ref_store_shift(r->src->tensor.data_type, value);
    }
}

static int64_t kept_offset(const reduction *r, int64_t result)
{
    int64_t offset = 0;
    for (int d = r->n_kept - 1; d >= 0; d--) {
        offset += result % r->kept_dims[d] * r->kept_strides[d];
        result /= r->kept_dims[d];
    }
    return offset;
}

static void reduce_results(const reduction *r, int64_t first, int64_t count)
{
    gathered g[RESULTS];
    int64_t base[RESULTS];
    for (int64_t i = 0; i < count; i++) {
        g[i] = r->start;
        base[i] = kept_offset(r, first + i);
    }
    for (int64_t o = 0; o < r->n_outer; o++) {
        for (int64_t at = 0; at < r->run; at += RUN) {
            int64_t from = r->outer[o] + at * r->stride, n = gb_min_i64(RUN, r->run - at);
            for (int64_t i = 0; i < count; i++)
                gather_run(r, base[i] + from, n, &g[i]);
        }
    }
    for (int64_t i = 0; i < count; i++)
        close_result(r, &g[i], &r->dst->value[first + i], &r->dst->bound[first + i]);
}

static void reduce_part(void *context, int thread, int n_threads)
{
    const reduction *r = context;
    int64_t begin, end;
    gb_split(r->dst->count, thread, n_threads, &begin, &end);
    for (; begin < end; begin += RESULTS)
        reduce_results(r, begin, gb_min_i64(RESULTS, end - begin));
}

static gb_status refuse_axis(const gb_op *op, double axis)
{
    return gb_fail(
            GB_INVALID_SHAPE, "%s: axis %g is out of range or given twice", gb_op_label(op), axis);
}

/* The axes as bits: from the attribute, or from the second input. */
static gb_status reduce_read_axes(const gb_ref_call *call, unsigned *axes)
{
    const int64_t *listed;
    int64_t count = (int64_t)gb_op_attr_s64s(call->op, GB_ATTR_AXES, &listed);
    const gb_ref_tensor *tensor = count == 0 && call->n_inputs > 1 ? call->inputs[1] : NULL;
    if (tensor)
        count = tensor->count;
    *axes = 0;
    for (int64_t i = 0; i < count; i++) {
        double axis = tensor ? tensor->value[i] : (double)listed[i];
        int d = fabs(axis) <= GB_MAX_NDIMS
                        ? gb_normalize_axis((int64_t)axis, call->inputs[0]->tensor.ndims)
                        : -1;
        if (d < 0 || *axes >> d & 1)
            return refuse_axis(call->op, axis);
        *axes |= 1u << d;
    }
    return GB_SUCCESS;
}

/* Lists the offsets of the reduced axes before the last one in row-major order. */
static gb_status list_outer(reduction *r, int n, const int64_t *dims, const int64_t *strides)
{
    if (!gb_dims_count(n, dims, &r->n_outer))
        return GB_OUT_OF_MEMORY;
    r->outer = gb_calloc((size_t)r->n_outer, sizeof(int64_t));
    if (!r->outer)
        return GB_OUT_OF_MEMORY;
    for (int64_t i = 0; i < r->n_outer; i++) {
        int64_t rest = i;
        for (int d = n - 1; d >= 0; d--) {
            r->outer[i] += rest % dims[d] * strides[d];
            rest /= dims[d];
        }
    }
    return GB_SUCCESS;
}

static gb_status split_axes(reduction *r, unsigned axes)
{
    const gb_logical_tensor *src = &r->src->tensor;
    int64_t strides[GB_MAX_NDIMS], dims[GB_MAX_NDIMS], reduced[GB_MAX_NDIMS];
    int n = 0;
    gb_dense_strides(src->ndims, src->dims, strides);
    r->terms = 1;
    for (int d = 0; d < src->ndims; d++) {
        if (!(axes >> d & 1)) {
            r->kept_dims[r->n_kept] = src->dims[d];
            r->kept_strides[r->n_kept++] = strides[d];
            continue;
        }
        r->terms *= src->dims[d];
        bool merge = n > 0 && axes >> (d - 1) & 1;
        if (!merge)
            dims[n++] = 1;
        dims[n - 1] *= src->dims[d];
        reduced[n - 1] = strides[d];
    }
    r->run = n > 0 ? dims[n - 1] : 1;
    r->stride = n > 0 ? reduced[n - 1] : 1;
    return list_outer(r, n > 0 ? n - 1 : 0, dims, reduced);
}

static void choose_function(reduction *r)
{
    static const struct {
        gb_op_kind kind;
        gather_fn gather;
        gathered start;
    } functions[] = {
            {GB_OP_REDUCE_SUM, gather_sum, {.value = 0}},
            {GB_OP_REDUCE_MEAN, gather_sum, {.value = 0}},
            {GB_OP_REDUCE_L1, gather_magnitude, {.value = 0}},
            {GB_OP_REDUCE_L2, gather_square, {.value = 0}},
            {GB_OP_REDUCE_PROD, gather_product,
                    {.value = 1, .magnitude = 1, .wide = 1, .largest = 1, .smallest = 1}},
            {GB_OP_REDUCE_MAX, gather_max,
                    {.value = -INFINITY, .magnitude = -INFINITY, .wide = -INFINITY}},
            {GB_OP_REDUCE_MIN, gather_min,
                    {.value = -INFINITY, .magnitude = -INFINITY, .wide = -INFINITY}},
    };
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (functions[i].kind != r->kind)
            continue;
        r->gather = functions[i].gather;
        r->start = functions[i].start;
    }
}

static gb_status find_exactness(reduction *r)
{
    gb_ref_survey survey;
    GB_TRY(gb_ref_survey_values(r->src->value, r->src->bound, r->src->count, &survey));
    bool squares = r->kind == GB_OP_REDUCE_L2, product = r->kind == GB_OP_REDUCE_PROD;
    double largest = squares ? survey.max * survey.max : survey.max;
    r->bounded = survey.bounded;
    r->exact = survey.exact && survey.finite &&
               (product ? survey.grid >= 0
                        : gb_ref_sums_are_exact(&gb_ref_f32_sums, largest * (double)r->terms,
                                  squares ? 2 * survey.grid : survey.grid));
    bool order = r->kind == GB_OP_REDUCE_MAX || r->kind == GB_OP_REDUCE_MIN;
    if (product) /* factors near 1 have roundings with a mean */
        r->factor = (double)r->terms * GB_REF_U;
    else if (!r->exact && !order)
        r->factor = gb_ref_sum_factor(r->terms, GB_REF_U, &r->dst->statistical);
    return GB_SUCCESS;
}

/* Results over no elements. */
static void fill_empty(const reduction *r)
{
    const gb_dtype_info *type = gb_dtype_get(r->dst->tensor.data_type);
    double value = 0;
    switch (r->kind) {
    case GB_OP_REDUCE_MEAN:
        value = (double)NAN;
        break;
    case GB_OP_REDUCE_PROD:
        value = 1;
        break;
    case GB_OP_REDUCE_MAX:
        value = type ? type->lowest : 0;
        break;
    case GB_OP_REDUCE_MIN:
        value = type ? type->max : 0;
        break;
    default:
        break;
    }
    for (int64_t i = 0; i < r->dst->count; i++)
        r->dst->value[i] = value;
}

static gb_status identity(const gb_ref_call *call)
{
    const gb_ref_tensor *src = call->inputs[0];
    gb_ref_tensor *dst = &call->outputs[0];
    memcpy(dst->value, src->value, (size_t)src->count * sizeof(double));
    if (src->bound)
        memcpy(dst->bound, src->bound, (size_t)src->count * sizeof(double));
    return GB_SUCCESS;
}

gb_status gb_ref_reduce(const gb_ref_call *call)
{
    reduction r = {.kind = call->op->kind, .src = call->inputs[0], .dst = &call->outputs[0]};
    unsigned axes;
    int64_t kept;
    GB_TRY(reduce_read_axes(call, &axes));
    choose_function(&r);
    gb_status status = split_axes(&r, axes);
    if (status == GB_SUCCESS &&
            (!gb_dims_count(r.n_kept, r.kept_dims, &kept) || kept != r.dst->count))
        status = gb_fail(GB_INVALID_SHAPE, "%s: result %s does not fit %s", gb_op_label(call->op),
                gb_tensor_label(&r.dst->tensor), gb_tensor_label(&r.src->tensor));
    if (status == GB_SUCCESS && r.dst->count > 0) {
        if (axes == 0)
            status = identity(call);
        else if (r.src->count == 0)
            fill_empty(&r);
        else if ((status = find_exactness(&r)) == GB_SUCCESS)
            gb_parallel(gb_threads_for(4.0 * (double)r.src->count), reduce_part, &r);
    }
    free(r.outer);
    return status;
}
