/* Two-pass kernels over blocks of f32: sums along one direction, and the formulas that use them. */
#include "kernels/isa/vec.h"
#include "kernels/isa/vec_math.h"
#include "kernels/isa/vec_partial.h"

enum {
    WHOLE_INPUTS = 2, /* inputs as large as the problem come first */
    AHEAD = 4096      /* bytes from what is summed to what is asked for */
};

/* The operands at VLEN neighbouring columns of one row. */
typedef struct lanes {
    vf in[GB_TWO_PASS_INPUTS], kept[GB_TWO_PASS_VALUES];
} lanes;

/* `gamma`: there is one more input, gamma or, of a batch norm, what tells which gradients count. */
GB_INLINE int inputs_of(const gb_two_pass_kind kind, const bool gamma)
{
    switch (kind) {
    case GB_TWO_PASS_BATCH_NORM:
    case GB_TWO_PASS_BATCH_NORM_RELU:
        return 1;
    case GB_TWO_PASS_SCALE:
        return gamma ? 2 : 1;
    case GB_TWO_PASS_BATCH_NORM_BACKWARD:
    case GB_TWO_PASS_LAYER_NORM_BACKWARD:
        return gamma ? 3 : 2;
    default:
        return 2;
    }
}

/* Per-row parameters that the sum uses. */
GB_INLINE int fold_values(const gb_two_pass_kind kind)
{
    switch (kind) {
    case GB_TWO_PASS_BATCH_NORM_BACKWARD:
    case GB_TWO_PASS_LAYER_NORM_BACKWARD:
        return 2;
    case GB_TWO_PASS_PRELU_BACKWARD:
        return 1;
    default:
        return 0;
    }
}

GB_INLINE int apply_values(const gb_two_pass_kind kind)
{
    switch (kind) {
    case GB_TWO_PASS_BATCH_NORM:
    case GB_TWO_PASS_BATCH_NORM_RELU:
        return 3;
    case GB_TWO_PASS_BATCH_NORM_BACKWARD:
        return 5;
    case GB_TWO_PASS_LAYER_NORM_BACKWARD:
        return 4;
    default:
        return 1;
    }
}

GB_INLINE int sums_of(const gb_two_pass_kind kind)
{
    return kind == GB_TWO_PASS_BATCH_NORM_BACKWARD || kind == GB_TWO_PASS_LAYER_NORM_BACKWARD ? 2
                                                                                              : 1;
}

GB_INLINE vf load(const float *p, int64_t n)
{
    return n == VLEN ? vf_load(p) : vf_load_n(p, n);
}

GB_INLINE void store(float *p, vf v, int64_t n)
{
    if (n == VLEN)
        vf_store(p, v);
    else
        vf_store_n(p, v, n);
}

GB_INLINE void load_inputs(const gb_two_pass_block *b, const gb_two_pass_kind kind, const int count,
        int64_t r, int64_t c, int64_t n, lanes *v)
{
    for (int i = 0; i < count; i++)
        v->in[i] = load(b->in[i] + r * b->in_stride[i] + c, n);
    if (kind == GB_TWO_PASS_BATCH_NORM_BACKWARD && count == 3)
        v->in[1] = vf_select(vf_gt(v->in[2], vf_zero()), v->in[1], vf_zero());
    if (kind == GB_TWO_PASS_SCALE && count == 2)
        v->in[0] = vf_select(vf_gt(v->in[1], vf_zero()), v->in[0], vf_zero());
}

/* Per-row parameters of a row, or of n columns. */
GB_INLINE void load_kept(const gb_two_pass_block *b, const bool columns, const int count,
        int64_t at, int64_t n, lanes *v)
{
    for (int i = 0; i < count; i++)
        v->kept[i] = columns ? load(b->params[i] + at, n) : vf_set1(b->params[i][at]);
}

/* Sums ----------------------------------------------------------------------------------------- */

GB_INLINE vf normalized(const lanes *v)
{
    return vf_mul(vf_sub(v->in[0], v->kept[0]), v->kept[1]);
}

GB_INLINE vf prelu_gradient(const lanes *v)
{
    return vf_select(vf_gt(v->in[0], vf_zero()), v->in[1], vf_mul(v->in[1], v->kept[0]));
}

/* Terms of the n first lanes are added to the sums. */
GB_INLINE void add_terms(
        const gb_two_pass_kind kind, const bool gamma, const lanes *v, int64_t n, vf *sum)
{
    vf zero = vf_zero(), first = v->in[0], second = zero;
    switch (kind) {
    case GB_TWO_PASS_SOFTMAX:
        first = vf_mul(v->in[0], v->in[1]);
        break;
    case GB_TWO_PASS_BATCH_NORM_BACKWARD:
    case GB_TWO_PASS_LAYER_NORM_BACKWARD:
        first = gamma && kind == GB_TWO_PASS_LAYER_NORM_BACKWARD ? vf_mul(v->in[1], v->in[2])
                                                                 : v->in[1];
        second = vf_mul(first, normalized(v));
        break;
    case GB_TWO_PASS_PRELU_BACKWARD:
        first = vf_select(vf_gt(v->in[0], zero), zero, vf_mul(v->in[0], v->in[1]));
        break;
    default:
        break;
    }
    sum[0] = vf_add(sum[0], n == VLEN ? first : vf_keep_n(first, zero, n));
    if (sums_of(kind) > 1)
        sum[1] = vf_add(sum[1], n == VLEN ? second : vf_keep_n(second, zero, n));
}

GB_INLINE void fold_at(const gb_two_pass_block *b, const gb_two_pass_kind kind, const bool gamma,
        const bool far, int64_t r, int64_t c, int64_t n, lanes *v, vf *sum)
{
    const int count = kind == GB_TWO_PASS_LOG_SOFTMAX ? 1 : inputs_of(kind, gamma);
    for (int i = 0; far && i < count && i < WHOLE_INPUTS; i++)
        gb_prefetch((const char *)(b->in[i] + r * b->in_stride[i] + c) + AHEAD);
    load_inputs(b, kind, count, r, c, n, v);
    add_terms(kind, gamma, v, n, sum);
    if (kind == GB_TWO_PASS_PRELU_BACKWARD)
        store(b->out + r * b->out_stride + c, prelu_gradient(v), n);
}

GB_INLINE void fold_rows(
        const gb_two_pass_block *b, const gb_two_pass_kind kind, const bool gamma, const bool far)
{
    for (int64_t r = 0; r < b->rows; r++) {
        vf even[2] = {vf_zero(), vf_zero()}, odd[2] = {vf_zero(), vf_zero()};
        lanes v;
        int64_t c = 0;
        load_kept(b, false, fold_values(kind), r, VLEN, &v);
        for (; c + 2 * VLEN <= b->cols; c += 2 * VLEN) {
            fold_at(b, kind, gamma, far, r, c, VLEN, &v, even);
            fold_at(b, kind, gamma, far, r, c + VLEN, VLEN, &v, odd);
        }
        for (; c < b->cols; c += VLEN) {
            int64_t left = b->cols - c;
            fold_at(b, kind, gamma, far, r, c, left < VLEN ? left : VLEN, &v, even);
        }
        for (int i = 0; i < sums_of(kind); i++)
            b->sum[i][r] += vf_sum(vf_add(even[i], odd[i]));
    }
}

GB_INLINE void fold_column(const gb_two_pass_block *b, const gb_two_pass_kind kind,
        const bool gamma, int64_t c, int64_t n)
{
    vf even[2] = {vf_zero(), vf_zero()}, odd[2] = {vf_zero(), vf_zero()};
    lanes v;
    int64_t r = 0;
    load_kept(b, true, fold_values(kind), c, n, &v);
    for (; r + 2 <= b->rows; r += 2) {
        fold_at(b, kind, gamma, false, r, c, n, &v, even);
        fold_at(b, kind, gamma, false, r + 1, c, n, &v, odd);
    }
    if (r < b->rows)
        fold_at(b, kind, gamma, false, r, c, n, &v, even);
    for (int i = 0; i < sums_of(kind); i++)
        store(b->sum[i] + c, vf_add(load(b->sum[i] + c, n), vf_add(even[i], odd[i])), n);
}

GB_INLINE void fold(const gb_two_pass_block *b, const gb_two_pass_kind kind, const bool gamma)
{
    if (!b->columns) {
        if (b->far)
            fold_rows(b, kind, gamma, true);
        else
            fold_rows(b, kind, gamma, false);
        return;
    }
    int64_t c = 0;
    for (; c + VLEN <= b->cols; c += VLEN)
        fold_column(b, kind, gamma, c, VLEN);
    if (c < b->cols)
        fold_column(b, kind, gamma, c, b->cols - c);
}

/* One row, a slope for each column: each sum gets a term. */
static void prelu_row(const gb_two_pass_block *b)
{
    const gb_two_pass_block t = *b; /* stores may alias *b */
    for (int64_t c = 0; c < t.cols; c += VLEN) {
        const int64_t n = t.cols - c < VLEN ? t.cols - c : VLEN;
        const lanes v = {.in = {load(t.in[0] + c, n), load(t.in[1] + c, n)},
                .kept = {load(t.params[0] + c, n)}};
        vf sum = load(t.sum[0] + c, n);
        add_terms(GB_TWO_PASS_PRELU_BACKWARD, false, &v, n, &sum);
        store(t.out + c, prelu_gradient(&v), n);
        store(t.sum[0] + c, sum, n);
    }
}

/* Sum, and sum of squared differences from the mean -------------------------------------------- */

/* A sum of squared differences grows by that of n further elements and by
 * delta^2 before n / (before + n), delta being the difference of the means (Chan, Golub and
 * LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979). */
static float join_weight(int64_t before, int64_t n)
{
    return (float)((double)before * ((double)n / (double)(before + n)));
}

/* What turns the sum so far into a mean. */
static float mean_weight(int64_t before)
{
    return before ? 1 / (float)before : 0;
}

/* Sum of x - shift over a row, or of its square. */
GB_INLINE float row_sum(const bool square, const float *x, int64_t n, float shift)
{
    vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()}, by = vf_set1(shift);
    int64_t i = 0;
    for (; i + 4 * VLEN <= n; i += 4 * VLEN)
        for (int k = 0; k < 4; k++) {
            vf d = vf_sub(vf_load(x + i + k * VLEN), by);
            sum[k] = square ? vf_fma(d, d, sum[k]) : vf_add(d, sum[k]);
        }
    for (; i < n; i += VLEN) {
        int64_t left = n - i < VLEN ? n - i : VLEN;
        vf d = vf_keep_n(vf_sub(load(x + i, left), by), vf_zero(), left);
        sum[0] = square ? vf_fma(d, d, sum[0]) : vf_add(d, sum[0]);
    }
    return vf_sum(vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3])));
}

static void moments_rows(const gb_two_pass_block *b)
{
    float weight = join_weight(b->before, b->cols), old = mean_weight(b->before);
    for (int64_t r = 0; r < b->rows; r++) {
        const float *x = b->in[0] + r * b->in_stride[0];
        float sum = row_sum(false, x, b->cols, 0), mean = sum / (float)b->cols;
        float square = row_sum(true, x, b->cols, mean);
        float delta = b->before ? mean - b->sum[0][r] * old : 0;
        b->sum[0][r] += sum;
        b->sum[1][r] += square + delta * delta * weight;
    }
}

GB_INLINE void moments_column(
        const gb_two_pass_block *b, float weight, float scale, int64_t c, int64_t n)
{
    const float *x = b->in[0] + c;
    vf sum = vf_zero(), square = load(b->sum[1] + c, n), old = load(b->sum[0] + c, n);
    for (int64_t r = 0; r < b->rows; r++)
        sum = vf_add(sum, load(x + r * b->in_stride[0], n));
    vf mean = vf_div(sum, vf_set1((float)b->rows));
    vf part = vf_zero(), delta = vf_sub(mean, vf_mul(old, vf_set1(scale)));
    for (int64_t r = 0; r < b->rows; r++) {
        vf d = vf_sub(load(x + r * b->in_stride[0], n), mean);
        part = vf_fma(d, d, part);
    }
    if (b->before)
        part = vf_fma(vf_mul(delta, delta), vf_set1(weight), part);
    store(b->sum[0] + c, vf_add(old, sum), n);
    store(b->sum[1] + c, vf_add(square, part), n);
}

static void moments(const gb_two_pass_block *b)
{
    if (!b->columns) {
        moments_rows(b);
        return;
    }
    float weight = join_weight(b->before, b->rows), scale = mean_weight(b->before);
    int64_t c = 0;
    for (; c + VLEN <= b->cols; c += VLEN)
        moments_column(b, weight, scale, c, VLEN);
    if (c < b->cols)
        moments_column(b, weight, scale, c, b->cols - c);
}

void GB_ISA_NAME(two_pass_reduce)(gb_two_pass_kind kind, const gb_two_pass_block *block)
{
    switch (kind) {
    case GB_TWO_PASS_SOFTMAX:
        fold(block, GB_TWO_PASS_SOFTMAX, false);
        break;
    case GB_TWO_PASS_LOG_SOFTMAX:
        fold(block, GB_TWO_PASS_LOG_SOFTMAX, false);
        break;
    case GB_TWO_PASS_BATCH_NORM:
    case GB_TWO_PASS_BATCH_NORM_RELU:
        moments(block);
        break;
    case GB_TWO_PASS_BATCH_NORM_BACKWARD:
        if (block->in[2])
            fold(block, GB_TWO_PASS_BATCH_NORM_BACKWARD, true);
        else
            fold(block, GB_TWO_PASS_BATCH_NORM_BACKWARD, false);
        break;
    case GB_TWO_PASS_LAYER_NORM_BACKWARD:
        if (block->in[2])
            fold(block, GB_TWO_PASS_LAYER_NORM_BACKWARD, true);
        else
            fold(block, GB_TWO_PASS_LAYER_NORM_BACKWARD, false);
        break;
    case GB_TWO_PASS_PRELU_BACKWARD:
        if (block->columns && block->rows == 1)
            prelu_row(block);
        else
            fold(block, GB_TWO_PASS_PRELU_BACKWARD, false);
        break;
    case GB_TWO_PASS_SCALE:
        break;
    }
}

/* Results -------------------------------------------------------------------------------------- */

GB_INLINE vf result(const gb_two_pass_kind kind, const bool gamma, const lanes *v)
{
    const vf *k = v->kept;
    switch (kind) {
    case GB_TWO_PASS_SOFTMAX:
        return vf_mul(v->in[1], vf_sub(v->in[0], k[0]));
    case GB_TWO_PASS_LOG_SOFTMAX:
        return vf_fnma(vf_exp(v->in[1]), k[0], v->in[0]);
    case GB_TWO_PASS_BATCH_NORM:
        return vf_fma(vf_sub(v->in[0], k[0]), k[1], k[2]);
    case GB_TWO_PASS_BATCH_NORM_RELU:
        return vf_max(vf_zero(), vf_fma(vf_sub(v->in[0], k[0]), k[1], k[2]));
    case GB_TWO_PASS_BATCH_NORM_BACKWARD:
        return vf_mul(k[2], vf_sub(v->in[1], vf_fma(normalized(v), k[4], k[3])));
    case GB_TWO_PASS_LAYER_NORM_BACKWARD: {
        vf h = gamma ? vf_mul(v->in[1], v->in[2]) : v->in[1];
        return vf_mul(k[1], vf_fnma(normalized(v), k[3], vf_sub(h, k[2])));
    }
    default:
        return vf_mul(v->in[0], k[0]);
    }
}

/* Adds in1 x and in1 to the sums across the block. */
GB_INLINE void add_cross(
        const gb_two_pass_block *b, const bool columns, const lanes *v, int64_t at, int64_t n)
{
    vf terms[2] = {vf_mul(v->in[1], normalized(v)), v->in[1]};
    for (int i = 0; i < 2; i++) {
        float *sum = b->cross[i] + at;
        if (columns)
            *sum += vf_sum(vf_keep_n(terms[i], vf_zero(), n));
        else
            store(sum, vf_add(load(sum, n), terms[i]), n);
    }
}

GB_INLINE void apply_at(const gb_two_pass_block *b, const gb_two_pass_kind kind, const bool columns,
        const bool gamma, int64_t r, int64_t c, int64_t n, lanes *v)
{
    load_inputs(b, kind, inputs_of(kind, gamma), r, c, n, v);
    if (kind == GB_TWO_PASS_LAYER_NORM_BACKWARD && b->cross[0])
        add_cross(b, columns, v, columns ? r : c, n);
    store(b->out + r * b->out_stride + c, result(kind, gamma, v), n);
}

GB_INLINE void apply(const gb_two_pass_block *b, const gb_two_pass_kind kind, const bool gamma)
{
    lanes v;
    if (b->columns) {
        for (int64_t c = 0; c < b->cols; c += VLEN) {
            int64_t left = b->cols - c, n = left < VLEN ? left : VLEN;
            load_kept(b, true, apply_values(kind), c, n, &v);
            for (int64_t r = 0; r < b->rows; r++)
                apply_at(b, kind, true, gamma, r, c, n, &v);
        }
        return;
    }
    for (int64_t r = 0; r < b->rows; r++) {
        int64_t c = 0;
        load_kept(b, false, apply_values(kind), r, VLEN, &v);
        for (; c + VLEN <= b->cols; c += VLEN)
            apply_at(b, kind, false, gamma, r, c, VLEN, &v);
        if (c < b->cols)
            apply_at(b, kind, false, gamma, r, c, b->cols - c, &v);
    }
}

void GB_ISA_NAME(two_pass_apply)(gb_two_pass_kind kind, const gb_two_pass_block *block)
{
    switch (kind) {
    case GB_TWO_PASS_SOFTMAX:
        apply(block, GB_TWO_PASS_SOFTMAX, false);
        break;
    case GB_TWO_PASS_LOG_SOFTMAX:
        apply(block, GB_TWO_PASS_LOG_SOFTMAX, false);
        break;
    case GB_TWO_PASS_BATCH_NORM:
        apply(block, GB_TWO_PASS_BATCH_NORM, false);
        break;
    case GB_TWO_PASS_BATCH_NORM_RELU:
        apply(block, GB_TWO_PASS_BATCH_NORM_RELU, false);
        break;
    case GB_TWO_PASS_BATCH_NORM_BACKWARD:
        if (block->in[2])
            apply(block, GB_TWO_PASS_BATCH_NORM_BACKWARD, true);
        else
            apply(block, GB_TWO_PASS_BATCH_NORM_BACKWARD, false);
        break;
    case GB_TWO_PASS_LAYER_NORM_BACKWARD:
        if (block->in[2])
            apply(block, GB_TWO_PASS_LAYER_NORM_BACKWARD, true);
        else
            apply(block, GB_TWO_PASS_LAYER_NORM_BACKWARD, false);
        break;
    case GB_TWO_PASS_SCALE:
        if (block->in[1])
            apply(block, GB_TWO_PASS_SCALE, true);
        else
            apply(block, GB_TWO_PASS_SCALE, false);
        break;
    case GB_TWO_PASS_PRELU_BACKWARD: /* done with the sum */
        break;
    }
}
