/* SoftMax, LogSoftmax and their gradients: lines along an axis.
 *
 * Bounds of the inputs move the odds p_i / (1 - p_i) by their own factor against the average one of
 * the others; the rounding of x - max enters through d ln p_i = dx_i - sum_j p_j dx_j. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "ref/ops/norm.h"
#include "ref/ops/ref_functions.h"

#include <float.h>

/* Relative error of e^(x - max) per unit of the exponent: the difference is rounded, and where 2^y
 * is used, so are log2(e) and the product with it. */
#define EXPONENT_UNIT (3 * GB_REF_U)

typedef struct softmax_job {
    const gb_ref_call *call;
    gb_ref_subsets lines;
    bool logarithm;   /* LogSoftmax */
    bool inf_as_zero; /* a line of -inf gives zeros */
} softmax_job;

/* A sum of numbers >= 0, and what is left of it without one of them. */
typedef struct rest_sum {
    double largest, others; /* the largest number, and the sum of the others */
    int64_t place;          /* of the largest */
} rest_sum;

/* What a line adds up to. */
typedef struct line_sums {
    double max, sum; /* of exp(x - max) */
    rest_sum terms;  /* the same */
    rest_sum moved;  /* how far they may move by the bounds of the x */
    double relative; /* error of the sum and of a term's exp and scaling */
    double rounded;  /* how far ln(sum) may move by the roundings of x - max */
    double shift;    /* by both */
    bool unsure;     /* an x may be NaN or infinite, or a number */
} line_sums;

static void rest_add(rest_sum *sum, double number, int64_t place)
{
    bool larger = number > sum->largest;
    sum->others += larger ? sum->largest : number;
    if (larger) {
        sum->largest = number;
        sum->place = place;
    }
}

static double rest_of(const rest_sum *sum, double number, int64_t place)
{
    return place == sum->place ? sum->others : fmax(sum->others - number, 0) + sum->largest;
}

/* What an op before this one made may come with log2(e) folded into its factors: two more
 * roundings. */
static gb_ref_pair softmax_element(const softmax_job *job, int64_t at)
{
    const gb_ref_tensor *src = job->call->inputs[0];
    gb_ref_pair x = {src->value[at], gb_ref_bound(src, at)};
    if (x.e > 0 && isfinite(x.v))
        x.e += 2 * GB_REF_U * fabs(x.v);
    return x;
}

/* e^x - 1 for x >= 0, at most 1 % above. */
static double growth(double x)
{
    return x < 0.5 ? x * (1 + x * (0.5 + 0.2 * x)) : expm1(x);
}

static double line_max(const softmax_job *job, int64_t line)
{
    double max = job->inf_as_zero ? -(double)FLT_MAX : -GB_REF_INFINITY;
    for (gb_ref_cursor c = gb_ref_subset_begin(&job->lines, line); c.left > 0;
            gb_ref_subset_next(&c)) {
        double value = job->call->inputs[0]->value[c.at];
        max = value > max ? value : max;
    }
    return max;
}

static double term_movement(double below, double term, double error)
{
    return error < 30 ? term * growth(error) : exp(below + error);
}

/* Leaves the terms of the sum in the output. */
static line_sums add_line(const softmax_job *job, int64_t line, int *statistical)
{
    line_sums s = {.max = line_max(job, line)};
    for (gb_ref_cursor c = gb_ref_subset_begin(&job->lines, line); c.left > 0;
            gb_ref_subset_next(&c)) {
        gb_ref_pair x = softmax_element(job, c.at);
        double below = x.v - s.max, term = exp(below);
        job->call->outputs[0].value[c.at] = term;
        s.sum += term;
        rest_add(&s.terms, term, c.at);
        s.unsure = s.unsure || (isnan(x.v) && x.e > 0) || isinf(x.e);
        if (x.e > 0)
            rest_add(&s.moved, term_movement(below, term, x.e), c.at);
        if (term > 0)
            s.rounded += term * fabs(below);
    }
    double moved = s.moved.largest + s.moved.others;
    s.rounded = s.sum > 0 ? EXPONENT_UNIT * s.rounded / s.sum : 0;
    if (s.sum > 0)
        s.shift = log1p(moved / s.sum) + s.rounded;
    if (s.sum == 0 && moved > 0)
        s.shift = INFINITY;
    s.relative = 2 * GB_REF_TRANSCENDENTAL + 7 * GB_REF_U +
                 gb_ref_sum_factor(gb_ref_subset_size(&job->lines), GB_REF_U, statistical);
    return s;
}

/* Relative change of term / sum when the x move within their bounds: with f the factor by which the
 * odds change, p becomes p f / (p f + 1 - p), or p / (p + (1 - p) f). */
static double odds_movement(gb_ref_pair x, double term, int64_t at, const line_sums *s)
{
    if (s->moved.largest == 0)
        return 0;
    double movement = rest_of(&s->moved, x.e > 0 ? term_movement(x.v - s->max, term, x.e) : 0, at);
    double others = rest_of(&s->terms, term, at), p = term / s->sum, rest = others / s->sum;
    double more = (growth(x.e) * (others + movement) + movement) / s->sum; /* (1 - p) (f - 1) */
    if (!(more < 1e300))
        return fmax(rest / p, 1);
    double down = more / (p + rest + more);
    double up = rest > 0 ? more * rest / (p * (rest + more) + rest * rest) : 0;
    return fmax(up, down);
}

static gb_ref_pair probability(gb_ref_pair x, double term, int64_t at, const line_sums *s)
{
    gb_ref_pair p = {term / s->sum, 0};
    if (s->sum == 0)
        p.v = 0;
    if (x.v == -GB_REF_INFINITY && x.e == 0 && p.v == 0)
        return (gb_ref_pair){0, isinf(s->shift) ? INFINITY : 0};
    double below = isfinite(x.v) ? fabs(x.v - s->max) : 0;
    if (p.v == 0 && s->sum > 0) { /* a share of 0 would hide how far the exponent may be off */
        double most = exp(EXPONENT_UNIT * below - below + x.e + s->shift) / s->sum;
        return gb_ref_widen(p, most * (1 + s->relative) + 2 * GB_REF_ETA);
    }
    double relative = growth(EXPONENT_UNIT * below + s->rounded) + s->relative;
    relative += odds_movement(x, term, at, s) * (1 + relative);
    return gb_ref_widen(p, p.v * relative + 2 * GB_REF_ETA);
}

static gb_ref_pair log_probability(gb_ref_pair x, const line_sums *s)
{
    double log_sum = log(s->sum), below = x.v - s->max;
    double steps = s->relative + GB_REF_TRANSCENDENTAL * fabs(log_sum) +
                   GB_REF_U * (fabs(below) + fabs(s->max + log_sum));
    return gb_ref_widen((gb_ref_pair){below - log_sum, x.e}, s->shift + steps);
}

static gb_ref_pair statistics(const softmax_job *job, const line_sums *s)
{
    if (job->inf_as_zero && s->sum == 0)
        return (gb_ref_pair){0, isinf(s->shift) ? INFINITY : 0};
    double log_sum = log(s->sum);
    gb_ref_pair x = {s->max + log_sum, s->shift};
    return gb_ref_widen(x, s->relative + GB_REF_TRANSCENDENTAL * fabs(log_sum));
}

static void evaluate_line(const softmax_job *job, int64_t line, int *statistical)
{
    const gb_ref_call *call = job->call;
    line_sums s = add_line(job, line, statistical);
    /* A line of -inf has no answer: NaN by the formula, 0 in some implementations. */
    bool undefined = s.max == -GB_REF_INFINITY || s.unsure;
    for (gb_ref_cursor c = gb_ref_subset_begin(&job->lines, line); c.left > 0;
            gb_ref_subset_next(&c)) {
        gb_ref_pair x = softmax_element(job, c.at);
        double term = call->outputs[0].value[c.at];
        gb_ref_pair y = job->logarithm ? log_probability(x, &s) : probability(x, term, c.at, &s);
        if (undefined)
            y = (gb_ref_pair){(double)NAN, INFINITY};
        gb_ref_put(&call->outputs[0], c.at, y);
    }
    if (call->n_outputs < 2)
        return;
    gb_ref_pair x = undefined ? (gb_ref_pair){(double)NAN, INFINITY} : statistics(job, &s);
    gb_ref_put(&call->outputs[1], line, x);
}

static gb_status find_lines(const gb_ref_call *call, int64_t default_axis, gb_ref_subsets *lines)
{
    const gb_logical_tensor *src = &call->inputs[0]->tensor;
    int64_t attribute = gb_op_attr_s64(call->op, GB_ATTR_AXIS, default_axis);
    int axis = gb_normalize_axis(attribute, src->ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: axis %lld is outside %s", gb_op_label(call->op),
                (long long)attribute, gb_tensor_label(src));
    if (call->outputs[0].count != call->inputs[0]->count)
        return gb_fail(
                GB_INVALID_SHAPE, "%s: input and output differ in size", gb_op_label(call->op));
    gb_ref_subsets_lines(lines, src, axis);
    return GB_SUCCESS;
}

/* The logarithm of the sum of nothing. */
static void set_empty_statistics(const softmax_job *job)
{
    const gb_ref_call *call = job->call;
    for (int64_t i = 0; call->n_outputs > 1 && i < call->outputs[1].count; i++)
        call->outputs[1].value[i] = job->inf_as_zero ? 0 : -GB_REF_INFINITY;
}

gb_status gb_ref_softmax(const gb_ref_call *call)
{
    softmax_job job = {.call = call, .logarithm = call->op->kind == GB_OP_LOG_SOFTMAX};
    job.inf_as_zero = gb_op_attr_is(call->op, GB_ATTR_MODE, "inf_as_zero", false);
    GB_TRY(find_lines(call, job.logarithm ? -1 : 1, &job.lines));
    if (call->inputs[0]->count == 0) {
        set_empty_statistics(&job);
        return GB_SUCCESS;
    }
    if (call->n_outputs > 1 && call->outputs[1].count != job.lines.count)
        return gb_fail(
                GB_INVALID_SHAPE, "%s: stats need one element per line", gb_op_label(call->op));
    int statistical = 0;
#pragma omp parallel for reduction(| : statistical)
    for (int64_t line = 0; line < job.lines.count; line++)
        evaluate_line(&job, line, &statistical);
    gb_ref_mark_statistical(call, statistical);
    return GB_SUCCESS;
}

static double exponential(const void *parameters, double x)
{
    (void)parameters;
    return exp(x);
}

/* e^y, the probability that LogSoftmax gave as y. */
static gb_ref_pair probability_of(gb_ref_pair y)
{
    gb_ref_pair p = gb_ref_interval(exponential, NULL, y, NULL, 0, -INFINITY);
    return gb_ref_in_range(gb_ref_widen(p, GB_REF_TRANSCENDENTAL * p.v + GB_REF_ETA));
}

/* y (g - sum g y), or of the logarithm g - e^y sum g */
static void differentiate_line(const softmax_job *job, int64_t line, int *statistical)
{
    const gb_ref_tensor *diff_dst = job->call->inputs[0], *dst = job->call->inputs[1];
    gb_ref_sum sum = {0};
    for (gb_ref_cursor c = gb_ref_subset_begin(&job->lines, line); c.left > 0;
            gb_ref_subset_next(&c)) {
        if (job->logarithm)
            gb_ref_sum_add_element(&sum, diff_dst, c.at);
        else
            gb_ref_sum_add_product(&sum, diff_dst, dst, c.at);
    }
    gb_ref_pair total = gb_ref_round(gb_ref_sum_get(&sum, statistical));
    for (gb_ref_cursor c = gb_ref_subset_begin(&job->lines, line); c.left > 0;
            gb_ref_subset_next(&c)) {
        gb_ref_pair g = gb_ref_get(diff_dst, c.at), y = gb_ref_get(dst, c.at), x;
        if (job->logarithm)
            x = gb_ref_sub(g, gb_ref_round(gb_ref_mul(probability_of(y), total)));
        else
            x = gb_ref_mul(y, gb_ref_round(gb_ref_sub(g, total)));
        gb_ref_put(&job->call->outputs[0], c.at, x);
    }
}

gb_status gb_ref_softmax_backward(const gb_ref_call *call)
{
    softmax_job job = {.call = call, .logarithm = call->op->kind == GB_OP_LOG_SOFTMAX_BACKWARD};
    GB_TRY(find_lines(call, job.logarithm ? -1 : 1, &job.lines));
    if (call->inputs[1]->count != call->inputs[0]->count)
        return gb_fail(
                GB_INVALID_SHAPE, "%s: diff_dst and dst differ in size", gb_op_label(call->op));
    int statistical = 0;
#pragma omp parallel for reduction(| : statistical)
    for (int64_t line = 0; line < job.lines.count; line++)
        differentiate_line(&job, line, &statistical);
    gb_ref_mark_statistical(call, statistical);
    return GB_SUCCESS;
}
