/* The reference of softmax and of the normalisations: known values, plain f32 evaluations within
 * the bounds, faults outside of them. */
#include "ref_case.h"

#include <stdbool.h>

static void set_epsilon(ref_case *c, float epsilon)
{
    cr_assert_eq(gb_op_set_attr_f32(c->op, GB_ATTR_EPSILON, 1, &epsilon), GB_SUCCESS);
}

static bool within(const gb_ref_tensor *tensor, int64_t i, double got)
{
    return fabs(got - tensor->value[i]) <= ref_case_bound(tensor, i);
}

Test(ref_norm, softmax_and_statistics)
{
    const int64_t dims[2] = {1, 3}, stats[2] = {1, 1};
    const double x[3] = {1, 2, 3},
                 y[3] = {0.090030573170380458, 0.24472847105479765, 0.66524095577482189};
    const double logs[3] = {-2.4076059644443803, -1.4076059644443804, -0.40760596444438036};
    const double sum = 3.4076059644443804;
    ref_case c = ref_case_begin(GB_OP_SOFTMAX);
    ref_case_input(&c, GB_F32, 2, dims, x);
    ref_case_output(&c, GB_F32, 2, dims);
    ref_case_output(&c, GB_F32, 2, stats);
    ref_case_expect(ref_case_run(&c), 3, y, 1e-15);
    ref_case_expect(gb_ref_store_get(c.store, 101), 1, &sum, 1e-15);
    ref_case_end(&c);
    c = ref_case_begin(GB_OP_LOG_SOFTMAX);
    ref_case_input(&c, GB_F32, 2, dims, x);
    ref_case_output(&c, GB_F32, 2, dims);
    ref_case_expect(ref_case_run(&c), 3, logs, 1e-15);
    ref_case_end(&c);
}

Test(ref_norm, softmax_gradients)
{
    const int64_t dims[2] = {1, 3};
    const double g[3] = {1, 2, -1}, y[3] = {0.25, 0.5, 0.25}, expected[3] = {0, 0.5, -0.5};
    const double logs[3] = {-1, -0.5, -2};
    const double expected_log[3] = {0.26424111765711536, 0.78693868057473315, -1.2706705664732254};
    for (int logarithm = 0; logarithm < 2; logarithm++) {
        ref_case c =
                ref_case_begin(logarithm ? GB_OP_LOG_SOFTMAX_BACKWARD : GB_OP_SOFTMAX_BACKWARD);
        ref_case_input(&c, GB_F32, 2, dims, g);
        ref_case_input(&c, GB_F32, 2, dims, logarithm ? logs : y);
        ref_case_output(&c, GB_F32, 2, dims);
        ref_case_expect(ref_case_run(&c), 3, logarithm ? expected_log : expected, 1e-15);
        ref_case_end(&c);
    }
}

static const gb_ref_tensor *run_softmax(ref_case *c, const char *mode, gb_data_type dst,
        const int64_t dims[2], const double *x, const double *bound)
{
    *c = ref_case_begin(GB_OP_SOFTMAX);
    const int64_t stats[2] = {dims[0], 1};
    ref_case_text(c, GB_ATTR_MODE, mode);
    ref_case_input_bounded(c, GB_F32, 2, dims, x, bound);
    ref_case_output(c, dst, 2, dims);
    ref_case_output(c, GB_F32, 2, stats);
    return ref_case_run(c);
}

Test(ref_norm, masked_softmax_rows)
{
    const double inf = INFINITY;
    const int64_t dims[2] = {3, 2};
    const double x[6] = {-inf, 0, -inf, -inf, inf, 1}, zeros[4] = {0, 1, 0, 0};
    ref_case c;
    const gb_ref_tensor *got = run_softmax(&c, "inf_as_zero", GB_F32, dims, x, NULL);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(got->value[i], zeros[i]);
    cr_expect(ref_case_bound(got, 0) == 0 && ref_case_bound(got, 2) == 0 &&
              ref_case_bound(got, 1) < 1e-5);
    cr_expect(isnan(got->value[4]));
    const gb_ref_tensor *stats = gb_ref_store_get(c.store, 101);
    cr_expect(stats->value[0] == 0 && stats->value[1] == 0 && ref_case_bound(stats, 1) == 0);
    ref_case_end(&c);
    got = run_softmax(&c, "none", GB_F32, dims, x, NULL);
    cr_expect(
            ref_case_bound(got, 0) == 0 && isinf(ref_case_bound(got, 2)), "all -inf has no answer");
    ref_case_end(&c);
}

/* Softmax in f32, plain or on line in blocks of four; `fault`: the last element is left out of the
 * sum. */
static void plain_softmax(const double *x, int n, bool online, bool fault, float *y)
{
    float max = -INFINITY, sum = 0;
    for (int i = 0; i < n - fault; i++) {
        float value = (float)x[i], next = fmaxf(max, value);
        if (online && i % 4 == 0)
            sum *= expf(max - next);
        if (!online)
            next = 0;
        if (online && i % 4 != 0 && next > max)
            sum *= expf(max - next);
        max = next;
        if (online)
            sum += expf(value - max);
    }
    if (!online) {
        for (int i = 0; i < n; i++)
            max = i == 0 ? (float)x[0] : fmaxf(max, (float)x[i]);
        for (int i = 0; i < n - fault; i++)
            sum += expf((float)x[i] - max);
    }
    for (int i = 0; i < n; i++)
        y[i] = expf((float)x[i] - max) / sum;
}

Test(ref_norm, softmax_bounds)
{
    enum { ROWS = 40, N = 100 };
    const int64_t dims[2] = {ROWS, N};
    double *x = ref_case_randoms(1, ROWS * N, 24);
    for (int i = 0; i < ROWS * N; i++)
        x[i] = (double)(float)(x[i] * (i / N % 4 == 0 ? 30 : 3));
    ref_case c;
    const gb_ref_tensor *got = run_softmax(&c, "none", GB_F32, dims, x, NULL);
    double margin = 0;
    int64_t missed = 0;
    for (int row = 0; row < ROWS; row++) {
        float y[3][N];
        plain_softmax(x + row * N, N, false, false, y[0]);
        plain_softmax(x + row * N, N, true, false, y[1]);
        plain_softmax(x + row * N, N, false, true, y[2]);
        for (int i = 0; i < N; i++) {
            int64_t at = row * N + i;
            cr_expect(within(got, at, (double)y[0][i]) && within(got, at, (double)y[1][i]),
                    "%g, %g: %g +- %g", (double)y[0][i], (double)y[1][i], got->value[at],
                    ref_case_bound(got, at));
            margin = fmax(margin, fabs((double)y[0][i] - got->value[at]) / ref_case_bound(got, at));
        }
        double lost = got->value[row * N + N - 1]; /* the share of the element left out */
        missed +=
                lost > 1e-4 && within(got, row * N, (double)y[2][0]) && got->value[row * N] > 1e-30;
    }
    cr_expect(margin > 0.02, "margin %g", margin);
    cr_expect_eq(missed, 0, "%lld rows with a lost tail pass", (long long)missed);
    ref_case_end(&c);
    free(x);
}

/* Inputs that move within their bounds. */
Test(ref_norm, softmax_propagates)
{
    enum { N = 24 };
    const int64_t dims[2] = {1, N};
    double *x = ref_case_randoms(5, N, 24), *bound = ref_case_randoms(6, N, 24), moved[N],
           reach[N] = {0};
    for (int i = 0; i < N; i++)
        bound[i] = fabs(bound[i]) * 0.5;
    ref_case c;
    const gb_ref_tensor *got = run_softmax(&c, "none", GB_F32, dims, x, bound);
    uint64_t state = 1;
    for (int trial = 0; trial < 3000; trial++) {
        for (int i = 0; i < N; i++) {
            double part = trial < N       ? (i == trial ? 1 : -1)
                          : trial < 2 * N ? (i == trial - N ? -1 : 1)
                                          : ref_case_random(&state, 20);
            moved[i] = x[i] + part * bound[i];
        }
        ref_case there_case;
        const gb_ref_tensor *there = run_softmax(&there_case, "none", GB_F32, dims, moved, NULL);
        for (int i = 0; i < N; i++)
            reach[i] = fmax(reach[i], fabs(there->value[i] - got->value[i]));
        ref_case_end(&there_case);
    }
    for (int i = 0; i < N; i++) {
        double e = ref_case_bound(got, i);
        cr_expect(reach[i] <= e && e < 2.5 * reach[i], "element %d moves %g, bound %g", i, reach[i],
                e);
    }
    ref_case_end(&c);
    free(x);
    free(bound);
}

/* What may be NaN or infinite spoils its line. A probability near 1 falls where the others, far
 * below, may rise by more than it is above them. */
Test(ref_norm, softmax_of_wide_bounds)
{
    const double inf = INFINITY;
    const int64_t dims[2] = {3, 3};
    const double x[9] = {0, 1, 2, 0, 1, 2, 100, 0, 1},
                 bound[9] = {0, inf, 0, 0, 1e-3, 0, 1e-3, 1e-3, 120};
    ref_case c;
    const gb_ref_tensor *got = run_softmax(&c, "none", GB_F32, dims, x, bound);
    for (int i = 0; i < 3; i++) {
        cr_expect(isinf(ref_case_bound(got, i)));
        cr_expect(ref_case_bound(got, 3 + i) < 2e-3);
    }
    cr_expect_float_eq(got->value[6], 1, 1e-9);
    cr_expect_geq(ref_case_bound(got, 6), 1 - 1e-6);
    cr_expect_geq(ref_case_bound(got, 8), 1 - 1e-6);
    ref_case_end(&c);
}

Test(ref_norm, moments_of_what_may_be_nan)
{
    const int64_t dims[2] = {1, 4}, rows = 1;
    ref_case c = ref_case_begin(GB_OP_LAYER_NORM);
    ref_case_flag(&c, GB_ATTR_USE_AFFINE, 0);
    ref_case_input_bounded(
            &c, GB_F32, 2, dims, (double[]){1, 2, NAN, 6}, (double[]){0, 0, (double)INFINITY, 0});
    ref_case_output(&c, GB_F32, 2, dims);
    ref_case_output(&c, GB_F32, 1, &rows);
    ref_case_output(&c, GB_F32, 1, &rows);
    const gb_ref_tensor *got = ref_case_run(&c);
    for (int i = 0; i < 4; i++)
        cr_expect(isinf(ref_case_bound(got, i)));
    cr_expect(isinf(ref_case_bound(gb_ref_store_get(c.store, 101), 0)));
    cr_expect(isinf(ref_case_bound(gb_ref_store_get(c.store, 102), 0)));
    ref_case_end(&c);
}

Test(ref_norm, layer_norm_values)
{
    const int64_t dims[2] = {1, 4}, length = 4, rows = 1;
    const double x[4] = {1, 2, 3, 6}, gamma[4] = {1, 2, 0.5, -1}, beta[4] = {0, 1, 0, 0};
    const double r = 0.53452172022293674; /* 1 / sqrt(3.5 + 1e-5) */
    const double y[4] = {-2 * r, -2 * r + 1, 0, -3 * r}, mean = 3, variance = 3.5;
    ref_case c = ref_case_begin(GB_OP_LAYER_NORM);
    ref_case_input(&c, GB_F32, 2, dims, x);
    ref_case_input(&c, GB_F32, 1, &length, gamma);
    ref_case_input(&c, GB_F32, 1, &length, beta);
    ref_case_output(&c, GB_F32, 2, dims);
    ref_case_output(&c, GB_F32, 1, &rows);
    ref_case_output(&c, GB_F32, 1, &rows);
    ref_case_expect(ref_case_run(&c), 4, y, 1e-9);
    ref_case_expect(gb_ref_store_get(c.store, 101), 1, &mean, 0);
    ref_case_expect_exact(gb_ref_store_get(c.store, 101));
    ref_case_expect(gb_ref_store_get(c.store, 102), 1, &variance, 0);
    ref_case_end(&c);
}

Test(ref_norm, layer_norm_gradient)
{
    const int64_t dims[2] = {1, 4}, length = 4, rows = 1;
    const double x[4] = {1, 2, 3, 6}, gamma[4] = {1, 2, 0.5, -1}, beta[4] = {0},
                 g[4] = {1, -2, 0.5, 3};
    const double mean = 3, variance = 3.5, r = 0.53452172022293674;
    double h[4], x_hat[4], average = 0, projection = 0, diff_src[4], diff_gamma[4];
    for (int i = 0; i < 4; i++) {
        h[i] = g[i] * gamma[i];
        x_hat[i] = (x[i] - mean) * r;
        average += h[i] / 4;
        projection += h[i] * x_hat[i] / 4;
        diff_gamma[i] = g[i] * x_hat[i];
    }
    for (int i = 0; i < 4; i++)
        diff_src[i] = r * (h[i] - average - x_hat[i] * projection);
    ref_case c = ref_case_begin(GB_OP_LAYER_NORM_BACKWARD);
    ref_case_input(&c, GB_F32, 2, dims, x);
    ref_case_input(&c, GB_F32, 2, dims, g);
    ref_case_input(&c, GB_F32, 1, &rows, &mean);
    ref_case_input(&c, GB_F32, 1, &rows, &variance);
    ref_case_input(&c, GB_F32, 1, &length, gamma);
    ref_case_input(&c, GB_F32, 1, &length, beta);
    ref_case_output(&c, GB_F32, 2, dims);
    ref_case_output(&c, GB_F32, 1, &length);
    ref_case_output(&c, GB_F32, 1, &length);
    ref_case_expect(ref_case_run(&c), 4, diff_src, 1e-9);
    ref_case_expect(gb_ref_store_get(c.store, 101), 4, diff_gamma, 1e-9);
    ref_case_expect(gb_ref_store_get(c.store, 102), 4, g, 0);
    ref_case_end(&c);
}

Test(ref_norm, rms_norm_values)
{
    const int64_t dims[2] = {1, 4};
    const double x[4] = {1, 2, 3, 4}, y[4] = {.365148, .730296, 1.095444, 1.460593};
    ref_case c = ref_case_begin(GB_OP_RMS_NORM);
    ref_case_input(&c, GB_F32, 2, dims, x);
    ref_case_output(&c, GB_F32, 2, dims);
    ref_case_expect(ref_case_run(&c), 4, y, 1e-6);
    ref_case_end(&c);
}

/* How a kernel may find mean and variance. */
typedef enum statistics { TWO_PASSES, WELFORD, LAST_ONE_LOST, SQUARES } statistics;

static void plain_moments(
        const float *x, int n, int step, statistics how, float *mean, float *variance)
{
    float sum = 0, squares = 0, center = 0, spread = 0;
    int count = n - (how == LAST_ONE_LOST);
    for (int i = 0; i < count; i++) {
        float value = x[i * step], delta = value - center;
        sum += value;
        squares += value * value;
        center += delta / (float)(i + 1);
        spread += delta * (value - center);
    }
    *mean = how == WELFORD ? center : sum / (float)n;
    for (int i = 0; i < count && how != WELFORD && how != SQUARES; i++)
        spread = i == 0 ? (x[0] - *mean) * (x[0] - *mean)
                        : spread + (x[i * step] - *mean) * (x[i * step] - *mean);
    *variance = how == SQUARES ? squares / (float)n - *mean * *mean : spread / (float)n;
}

enum { SAMPLES = 12, CHANNELS = 6, SPATIAL = 20, TOTAL = SAMPLES * CHANNELS * SPATIAL };

/* Data with an offset of a few standard deviations. */
static double *channel_data(uint64_t seed, double offset)
{
    double *x = ref_case_randoms(seed, TOTAL, 24);
    for (int i = 0; i < TOTAL; i++)
        x[i] = (double)(float)(x[i] + offset);
    return x;
}

static const gb_ref_tensor *run_batch_norm(
        ref_case *c, bool ncx, const double *x, const double *parameters)
{
    const int64_t first[3] = {SAMPLES, CHANNELS, SPATIAL}, last[3] = {SAMPLES, SPATIAL, CHANNELS},
                  channels = CHANNELS;
    *c = ref_case_begin(GB_OP_BATCH_NORM_FORWARD_TRAINING);
    set_epsilon(c, 1e-3F);
    const float momentum = 0.9F;
    cr_assert_eq(gb_op_set_attr_f32(c->op, GB_ATTR_MOMENTUM, 1, &momentum), GB_SUCCESS);
    ref_case_text(c, GB_ATTR_DATA_FORMAT, ncx ? "NCX" : "NXC");
    ref_case_input(c, GB_F32, 3, ncx ? first : last, x);
    for (int i = 0; i < 4; i++)
        ref_case_input(c, GB_F32, 1, &channels, parameters + i * CHANNELS);
    ref_case_output(c, GB_F32, 3, ncx ? first : last);
    for (int i = 0; i < 4; i++)
        ref_case_output(c, GB_F32, 1, &channels);
    return ref_case_run(c);
}

/* Copies one channel; returns where its elements are. */
static void gather_channel(bool ncx, const double *x, int channel, float *values, int64_t *at)
{
    int n = 0;
    for (int i = 0; i < TOTAL; i++) {
        int own = ncx ? i / SPATIAL % CHANNELS : i % CHANNELS;
        if (own != channel)
            continue;
        at[n] = i;
        values[n++] = (float)x[i];
    }
}

Test(ref_norm, batch_norm_bounds)
{
    enum { SIZE = TOTAL / CHANNELS };
    double *parameters = ref_case_randoms(8, 4 * CHANNELS, 24);
    for (int format = 0; format < 2; format++) {
        double *x = channel_data(3 + (uint64_t)format, 2.5);
        ref_case c;
        const gb_ref_tensor *got = run_batch_norm(&c, format, x, parameters);
        const gb_ref_tensor *means = gb_ref_store_get(c.store, 103),
                            *variances = gb_ref_store_get(c.store, 104);
        const gb_ref_tensor *running = gb_ref_store_get(c.store, 101);
        for (int channel = 0; channel < CHANNELS; channel++) {
            float values[SIZE], mean, variance;
            int64_t at[SIZE];
            gather_channel(format, x, channel, values, at);
            for (int how = TWO_PASSES; how <= WELFORD; how++) {
                plain_moments(values, SIZE, 1, (statistics)how, &mean, &variance);
                cr_expect(within(means, channel, (double)mean) &&
                          within(variances, channel, (double)variance));
                float moved = 0.9F * (float)parameters[channel] + 0.1F * mean;
                cr_expect(within(running, channel, (double)moved));
                float rstd = 1.0F / sqrtf(variance + 1e-3F),
                      gamma = (float)parameters[2 * CHANNELS + channel];
                float beta = (float)parameters[3 * CHANNELS + channel], scale = gamma * rstd,
                      shift = beta - mean * scale;
                for (int i = 0; i < SIZE; i++) {
                    float y = (values[i] - mean) * rstd * gamma + beta,
                          folded = values[i] * scale + shift;
                    cr_expect(within(got, at[i], (double)y) && within(got, at[i], (double)folded));
                }
            }
            plain_moments(values, SIZE, 1, LAST_ONE_LOST, &mean, &variance);
            cr_expect(!within(means, channel, (double)mean) &&
                      !within(variances, channel, (double)variance));
        }
        ref_case_end(&c);
        free(x);
    }
    free(parameters);
}

/* E[x^2] - E[x]^2 loses what the bound does not allow, when the mean is large. */
Test(ref_norm, cancelling_variance_is_caught)
{
    double *parameters = ref_case_randoms(8, 4 * CHANNELS, 24), *x = channel_data(3, 300);
    ref_case c;
    run_batch_norm(&c, true, x, parameters);
    int caught = 0;
    for (int channel = 0; channel < CHANNELS; channel++) {
        float values[TOTAL / CHANNELS], mean, variance;
        int64_t at[TOTAL / CHANNELS];
        gather_channel(true, x, channel, values, at);
        plain_moments(values, TOTAL / CHANNELS, 1, SQUARES, &mean, &variance);
        caught += !within(gb_ref_store_get(c.store, 104), channel, (double)variance);
        plain_moments(values, TOTAL / CHANNELS, 1, WELFORD, &mean, &variance);
        cr_expect(within(gb_ref_store_get(c.store, 104), channel, (double)variance));
    }
    cr_expect(caught >= CHANNELS / 2, "caught %d", caught);
    ref_case_end(&c);
    free(x);
    free(parameters);
}

Test(ref_norm, batch_norm_gradient)
{
    enum { SIZE = TOTAL / CHANNELS };
    const int64_t dims[4] = {SAMPLES, CHANNELS, 4, SPATIAL / 4}, channels = CHANNELS;
    double *x = channel_data(1, 0.5), *g = channel_data(2, 0),
           *parameters = ref_case_randoms(5, 3 * CHANNELS, 24);
    for (int i = CHANNELS; i < 2 * CHANNELS; i++)
        parameters[i] = fabs(parameters[i]) + 0.25;
    ref_case c = ref_case_begin(GB_OP_BATCH_NORM_BACKWARD);
    set_epsilon(&c, 1e-3F);
    ref_case_text(&c, GB_ATTR_DATA_FORMAT, "NCX");
    ref_case_input(&c, GB_F32, 4, dims, x);
    ref_case_input(&c, GB_F32, 4, dims, g);
    for (int i = 0; i < 3; i++)
        ref_case_input(&c, GB_F32, 1, &channels, parameters + i * CHANNELS);
    ref_case_output(&c, GB_F32, 4, dims);
    ref_case_output(&c, GB_F32, 1, &channels);
    ref_case_output(&c, GB_F32, 1, &channels);
    const gb_ref_tensor *got = ref_case_run(&c);
    for (int channel = 0; channel < CHANNELS; channel++) {
        float values[SIZE], gradients[SIZE], by_gamma = 0, by_beta = 0;
        int64_t at[SIZE];
        gather_channel(true, g, channel, gradients, at);
        gather_channel(true, x, channel, values, at);
        float mean = (float)parameters[channel],
              rstd = 1 / sqrtf((float)parameters[CHANNELS + channel] + 1e-3F);
        for (int i = 0; i < SIZE; i++) {
            by_gamma += gradients[i] * (values[i] - mean) * rstd;
            by_beta += gradients[i];
        }
        cr_expect(within(gb_ref_store_get(c.store, 101), channel, (double)by_gamma));
        cr_expect(within(gb_ref_store_get(c.store, 102), channel, (double)by_beta));
        for (int i = 0; i < SIZE; i++) {
            float shift = (by_beta + (values[i] - mean) * rstd * by_gamma) / SIZE;
            float y = (float)parameters[2 * CHANNELS + channel] * rstd * (gradients[i] - shift);
            cr_expect(within(got, at[i], (double)y), "%g is not %g +- %g", (double)y,
                    got->value[at[i]], ref_case_bound(got, at[i]));
            cr_expect(fabs(got->value[at[i]]) < 1e-3 || !within(got, at[i], (double)y * 1.01));
        }
    }
    ref_case_end(&c);
    free(x), free(g), free(parameters);
}

/* A group is a run of channels of one sample; both formats give the same numbers. */
Test(ref_norm, group_norm_formats_agree)
{
    const int64_t first[3] = {SAMPLES, CHANNELS, SPATIAL}, last[3] = {SAMPLES, SPATIAL, CHANNELS},
                  channels = CHANNELS;
    const int64_t stats[2] = {SAMPLES, 3};
    double *x = channel_data(4, 1), *moved = malloc(TOTAL * sizeof *moved),
           *affine = ref_case_randoms(1, 2 * CHANNELS, 24);
    for (int i = 0; i < TOTAL; i++)
        moved[i / (CHANNELS * SPATIAL) * CHANNELS * SPATIAL + i % SPATIAL * CHANNELS +
                i / SPATIAL % CHANNELS] = x[i];
    ref_case c[2];
    const gb_ref_tensor *got[2];
    for (int k = 0; k < 2; k++) {
        c[k] = ref_case_begin(GB_OP_GROUP_NORM);
        ref_case_int(&c[k], GB_ATTR_GROUPS, 3);
        ref_case_text(&c[k], GB_ATTR_DATA_FORMAT, k ? "NXC" : "NCX");
        ref_case_input(&c[k], GB_F32, 3, k ? last : first, k ? moved : x);
        ref_case_input(&c[k], GB_F32, 1, &channels, affine);
        ref_case_input(&c[k], GB_F32, 1, &channels, affine + CHANNELS);
        ref_case_output(&c[k], GB_F32, 3, k ? last : first);
        ref_case_output(&c[k], GB_F32, 2, stats);
        ref_case_output(&c[k], GB_F32, 2, stats);
        got[k] = ref_case_run(&c[k]);
    }
    for (int i = 0; i < TOTAL; i++) {
        int at = i / (CHANNELS * SPATIAL) * CHANNELS * SPATIAL + i % SPATIAL * CHANNELS +
                 i / SPATIAL % CHANNELS;
        cr_expect(fabs(got[0]->value[i] - got[1]->value[at]) < 1e-12);
    }
    float values[2 * SPATIAL], mean, variance; /* group 1 of sample 0 */
    for (int i = 0; i < 2 * SPATIAL; i++)
        values[i] = (float)x[2 * SPATIAL + i];
    plain_moments(values, 2 * SPATIAL, 1, TWO_PASSES, &mean, &variance);
    cr_expect(within(gb_ref_store_get(c[0].store, 101), 1, (double)mean));
    cr_expect(within(gb_ref_store_get(c[0].store, 102), 1, (double)variance));
    ref_case_end(&c[0]);
    ref_case_end(&c[1]);
    free(x), free(moved), free(affine);
}

/* Data that moves within its bounds moves results within theirs. */
Test(ref_norm, layer_norm_propagates)
{
    enum { N = 16 };
    const int64_t dims[2] = {1, N}, rows = 1;
    double *x = ref_case_randoms(21, N, 24), bound[N], moved[N], reach[N + 2] = {0};
    for (int i = 0; i < N; i++)
        bound[i] = i % 3 ? 0.01 : 0;
    ref_case base = {0};
    uint64_t state = 3;
    for (int trial = 0; trial < 500; trial++) {
        ref_case c = ref_case_begin(GB_OP_LAYER_NORM);
        for (int i = 0; i < N; i++)
            moved[i] =
                    x[i] + (trial == 0 ? 0 : copysign(1, ref_case_random(&state, 20))) * bound[i];
        ref_case_flag(&c, GB_ATTR_USE_AFFINE, 0);
        ref_case_input_bounded(&c, GB_F32, 2, dims, moved, trial == 0 ? bound : NULL);
        ref_case_output(&c, GB_F32, 2, dims);
        ref_case_output(&c, GB_F32, 1, &rows);
        ref_case_output(&c, GB_F32, 1, &rows);
        ref_case_run(&c);
        for (size_t id = 100, k = 0; id < 103 && trial > 0; id++) {
            const gb_ref_tensor *a = gb_ref_store_get(base.store, id),
                                *b = gb_ref_store_get(c.store, id);
            for (int64_t i = 0; i < a->count; i++, k++)
                reach[k] = fmax(reach[k], fabs(a->value[i] - b->value[i]));
        }
        if (trial == 0)
            base = c;
        else
            ref_case_end(&c);
    }
    for (size_t id = 100, k = 0; id < 103; id++) {
        const gb_ref_tensor *a = gb_ref_store_get(base.store, id);
        for (int64_t i = 0; i < a->count; i++, k++)
            cr_expect(
                    reach[k] <= ref_case_bound(a, i) && ref_case_bound(a, i) < 4 * reach[k] + 0.06,
                    "tensor %zu element %lld moves %g, bound %g", id, (long long)i, reach[k],
                    ref_case_bound(a, i));
    }
    ref_case_end(&base);
    free(x);
}

Test(ref_norm, empty_batches)
{
    const int64_t dims[3] = {0, 3, 2}, channels = 3;
    const double nothing[1] = {0}, old[3] = {1, 2, 3};
    ref_case c = ref_case_begin(GB_OP_BATCH_NORM_FORWARD_TRAINING);
    set_epsilon(&c, 1e-3F);
    ref_case_text(&c, GB_ATTR_DATA_FORMAT, "NCX");
    ref_case_input(&c, GB_F32, 3, dims, nothing);
    ref_case_input(&c, GB_F32, 1, &channels, old);
    ref_case_input(&c, GB_F32, 1, &channels, old);
    ref_case_output(&c, GB_F32, 3, dims);
    for (int i = 0; i < 4; i++)
        ref_case_output(&c, GB_F32, 1, &channels);
    const double half[3] = {0.5, 1, 1.5}, zero[3] = {0};
    cr_expect_eq(ref_case_run(&c)->count, 0);
    ref_case_expect(gb_ref_store_get(c.store, 101), 3, half, 0);
    ref_case_expect(gb_ref_store_get(c.store, 104), 3, zero, 0);
    ref_case_end(&c);
}

/* Beside an infinite product, finite ones may overflow to the opposite infinity. */
Test(ref_softmax_backward, sums_that_overflow_beside_an_infinity)
{
    for (int large = 0; large < 2; large++) {
        ref_case c = ref_case_begin(GB_OP_SOFTMAX_BACKWARD);
        ref_case_int(&c, GB_ATTR_AXIS, 0);
        ref_case_input(&c, GB_F32, LIST(3), (double[]){INFINITY, large ? 0x1p127 : 1, 1});
        ref_case_input(&c, GB_F32, LIST(3), (double[]){2, -3, 1});
        ref_case_output(&c, GB_F32, LIST(3));
        cr_expect_eq(isinf(ref_case_bound(ref_case_run(&c), 2)) != 0, large == 1);
        ref_case_end(&c);
    }
}
