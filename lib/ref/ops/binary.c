/* The element-wise ops of two inputs with broadcast. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "ref/bounds/block.h"
#include "ref/bounds/bound.h"
#include "ref/bounds/clones.h"
#include "ref/bounds/walk.h"
#include "ref/ops/ref_functions.h"

typedef gb_ref_pair (*pair_fn)(gb_ref_pair a, gb_ref_pair b);

/* A NaN or an infinity that may as well be any number: the root of a subnormal that may be flushed, a
 * quotient by a zero of unknown sign. */
static bool is_doubtful(gb_ref_pair x)
{
    return !isfinite(x.v) && isinf(x.e);
}

static gb_ref_pair maximum(gb_ref_pair a, gb_ref_pair b)
{
    gb_ref_pair high = a.v > b.v ? a : b, low = a.v > b.v ? b : a;
    if (is_doubtful(a) || is_doubtful(b))
        return (gb_ref_pair){high.v, GB_REF_INFINITY};
    double above = fmax(a.v + a.e, b.v + b.e) - high.v;
    double below = high.v - fmax(a.v - a.e, b.v - b.e);
    /* Of two zeros it may be either, which shows in a quotient; subnormal numbers may be read as one. */
    if (fmax(fabs(a.v), fabs(b.v)) < GB_REF_ETA && signbit(a.v) != signbit(b.v))
        return (gb_ref_pair){high.v, fmax(fmax(above, below), GB_REF_ETA)};
    if (isfinite(above) && isfinite(below))
        return (gb_ref_pair){high.v, fmax(above, below)};
    if (low.v + low.e < high.v - high.e || isnan(low.v) || isnan(high.v))
        return gb_ref_settle(high);
    return gb_ref_either(high, low);
}

static gb_ref_pair minimum(gb_ref_pair a, gb_ref_pair b)
{
    gb_ref_pair negated = maximum((gb_ref_pair){-a.v, a.e}, (gb_ref_pair){-b.v, b.e});
    return (gb_ref_pair){-negated.v, negated.e};
}

static gb_ref_pair squared_difference(gb_ref_pair a, gb_ref_pair b)
{
    gb_ref_pair d = gb_ref_round(gb_ref_sub(a, b));
    return gb_ref_mul(d, d);
}

static gb_ref_pair greater_equal(gb_ref_pair a, gb_ref_pair b)
{
    bool uncertain = a.e + b.e > 0 && !(fabs(a.v - b.v) > a.e + b.e);
    bool certain = isnan(a.v) || isnan(b.v);
    return (gb_ref_pair){a.v >= b.v, is_doubtful(a) || is_doubtful(b) || (uncertain && !certain)};
}

/* The common ops over blocks, as long as the results are finite; each returns how many are not. */
GB_REF_CLONES static int64_t add_block(int64_t count, const gb_ref_block *a, const gb_ref_block *b,
        double *restrict v, double *restrict e)
{
    int64_t irregular = 0;
    for (int64_t i = 0; i < count; i++) {
        v[i] = a->v[i] + b->v[i];
        e[i] = a->e[i] + b->e[i];
        irregular += !isfinite(v[i]);
    }
    return irregular;
}

GB_REF_CLONES static int64_t subtract_block(int64_t count, const gb_ref_block *a,
        const gb_ref_block *b, double *restrict v, double *restrict e)
{
    int64_t irregular = 0;
    for (int64_t i = 0; i < count; i++) {
        v[i] = a->v[i] - b->v[i];
        e[i] = a->e[i] + b->e[i];
        irregular += !isfinite(v[i]);
    }
    return irregular;
}

GB_REF_CLONES static int64_t multiply_block(int64_t count, const gb_ref_block *a,
        const gb_ref_block *b, double *restrict v, double *restrict e)
{
    int64_t irregular = 0;
    for (int64_t i = 0; i < count; i++) {
        v[i] = a->v[i] * b->v[i];
        e[i] = fabs(a->v[i]) * b->e[i] + fabs(b->v[i]) * a->e[i] + a->e[i] * b->e[i];
        irregular += !(isfinite(v[i]) & isfinite(e[i]));
    }
    return irregular;
}

GB_REF_CLONES static int64_t divide_block(int64_t count, const gb_ref_block *a,
        const gb_ref_block *b, double *restrict v, double *restrict e)
{
    int64_t irregular = 0;
    for (int64_t i = 0; i < count; i++) {
        double size = fabs(b->v[i]);
        v[i] = a->v[i] / b->v[i];
        e[i] = (fabs(a->v[i]) * b->e[i] + size * a->e[i]) / (size * (size - b->e[i]));
        irregular += !((size > b->e[i]) & isfinite(v[i]) & isfinite(e[i]));
    }
    return irregular;
}

typedef int64_t (*block_fn)(int64_t count, const gb_ref_block *a, const gb_ref_block *b,
        double *restrict v, double *restrict e);

static const struct {
    pair_fn function;
    block_fn block; /* NULL: element by element */
} functions[GB_OP_LAST] = {
        [GB_OP_ADD] = {gb_ref_add, add_block},
        [GB_OP_SUBTRACT] = {gb_ref_sub, subtract_block},
        [GB_OP_MULTIPLY] = {gb_ref_mul, multiply_block},
        [GB_OP_DIVIDE] = {gb_ref_div, divide_block},
        [GB_OP_MAXIMUM] = {maximum, NULL},
        [GB_OP_MINIMUM] = {minimum, NULL},
        [GB_OP_SQUARED_DIFFERENCE] = {squared_difference, NULL},
        [GB_OP_GREATER_EQUAL] = {greater_equal, NULL},
};

typedef struct binary_job {
    pair_fn function;
    block_fn block;
    const gb_ref_tensor *a, *b;
    gb_ref_tensor *dst;
    bool integer;           /* dst is rounded and saturated to an integer type ... */
    double lowest, highest; /* ... of this range */
    bool rounds[2];         /* a, b: integers that become f32 numbers first */
} binary_job;

static void round_block(int64_t count, gb_ref_block *block)
{
    for (int64_t i = 0; i < count; i++)
        block->e[i] += gb_ref_conversion(block->v[i]);
}

/* An integer operation may pass through f32, which rounds beyond 2^24, and fractions: what lies near
 * a tie may be moved onto it. */
static gb_ref_pair integer_result(
        const binary_job *job, gb_ref_pair x, gb_ref_pair a, gb_ref_pair b)
{
    double largest = fmax(fmax(fabs(a.v), fabs(b.v)), fabs(x.v));
    if (isinf(largest))
        return gb_ref_to_integer(x, job->lowest, job->highest);
    if (largest > 0x1p24)
        x.e += GB_REF_U * (fabs(a.v) + fabs(b.v) + fabs(x.v));
    else if (x.v != (double)(float)x.v)
        x.e += GB_REF_U * fabs(x.v);
    return gb_ref_to_integer(x, job->lowest, job->highest);
}

static void evaluate_block(const binary_job *job, int64_t count, const gb_ref_block *a,
        const gb_ref_block *b, int64_t first)
{
    if (job->block && !job->integer &&
            job->block(count, a, b, job->dst->value + first, job->dst->bound + first) == 0)
        return;
    for (int64_t i = 0; i < count; i++) {
        gb_ref_pair p = {a->v[i], a->e[i]}, q = {b->v[i], b->e[i]};
        gb_ref_pair x = job->function(p, q);
        gb_ref_put(job->dst, first + i, job->integer ? integer_result(job, x, p, q) : x);
    }
}

static void binary_row(void *context, const gb_ref_row *row)
{
    const binary_job *job = context;
    gb_ref_block a, b;
    for (int64_t i = 0; i < row->count; i += GB_REF_BLOCK) {
        int64_t count = gb_min_i64(GB_REF_BLOCK, row->count - i);
        gb_ref_block_get(job->a, row->offset[0] + i * row->step[0], row->step[0], count, &a);
        gb_ref_block_get(job->b, row->offset[1] + i * row->step[1], row->step[1], count, &b);
        if (job->rounds[0])
            round_block(count, &a);
        if (job->rounds[1])
            round_block(count, &b);
        evaluate_block(job, count, &a, &b, row->first + i);
    }
}

gb_status gb_ref_binary(const gb_ref_call *call)
{
    const gb_logical_tensor *dst = &call->outputs[0].tensor;
    const gb_logical_tensor *a = &call->inputs[0]->tensor, *b = &call->inputs[1]->tensor;
    const gb_dtype_info *type = gb_dtype_get(dst->data_type);
    if (!gb_broadcasts_onto(a->ndims, a->dims, dst->ndims, dst->dims) ||
            !gb_broadcasts_onto(b->ndims, b->dims, dst->ndims, dst->dims))
        return gb_fail(GB_INVALID_SHAPE, "%s: inputs do not broadcast onto the output",
                gb_op_label(call->op));
    binary_job job = {
            .function = functions[call->op->kind].function,
            .block = functions[call->op->kind].block,
            .a = call->inputs[0],
            .b = call->inputs[1],
            .dst = &call->outputs[0],
            .integer = !type->is_float && dst->data_type != GB_BOOLEAN,
            .lowest = type->lowest,
            .highest = type->max,
            .rounds = {type->is_float && a->data_type == GB_S32,
                    type->is_float && b->data_type == GB_S32},
    };
    gb_ref_walk walk;
    gb_ref_walk_init(&walk, dst->ndims, dst->dims);
    gb_ref_walk_broadcast(&walk, a->ndims, a->dims);
    gb_ref_walk_broadcast(&walk, b->ndims, b->dims);
    gb_ref_walk_run(&walk, binary_row, &job);
    return GB_SUCCESS;
}
