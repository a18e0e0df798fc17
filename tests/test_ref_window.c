/* The reference of pools and resampling: golden values, laws, bounds, ties. */
#include "ref_case.h"

/* Pools ---------------------------------------------------------------------------------------- */

typedef struct pool_1d {
    int64_t kernel, stride, begin, end;
    const char *auto_pad, *rounding;
    int exclude_pad;
} pool_1d;

static ref_case pool_case(gb_op_kind kind, const pool_1d *p)
{
    ref_case c = ref_case_begin(kind);
    ref_case_ints(&c, GB_ATTR_STRIDES, 1, &p->stride);
    ref_case_ints(&c, GB_ATTR_KERNEL, 1, &p->kernel);
    ref_case_ints(&c, GB_ATTR_PADS_BEGIN, 1, &p->begin);
    ref_case_ints(&c, GB_ATTR_PADS_END, 1, &p->end);
    ref_case_text(&c, GB_ATTR_DATA_FORMAT, "NCX");
    if (p->auto_pad)
        ref_case_text(&c, GB_ATTR_AUTO_PAD, p->auto_pad);
    if (p->rounding)
        ref_case_text(&c, GB_ATTR_ROUNDING_TYPE, p->rounding);
    if (kind == GB_OP_AVG_POOL || kind == GB_OP_AVG_POOL_BACKWARD)
        ref_case_flag(&c, GB_ATTR_EXCLUDE_PAD, p->exclude_pad);
    return c;
}

static void expect_pool(gb_op_kind kind, const pool_1d *p, int64_t in, const double *src,
        int64_t out, const double *expected, double tolerance)
{
    ref_case c = pool_case(kind, p);
    ref_case_input(&c, GB_F32, 3, (int64_t[]){1, 1, in}, src);
    ref_case_output(&c, GB_F32, 3, (int64_t[]){1, 1, out});
    ref_case_expect(ref_case_run(&c), out, expected, tolerance);
    ref_case_end(&c);
}

static const double ramp[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

Test(ref_pool, golden_averages)
{
    pool_1d include = {3, 2, 1, 1, NULL, NULL, 0}, exclude = {3, 2, 1, 1, NULL, NULL, 1};
    pool_1d ceiling = {3, 2, 0, 0, NULL, "ceil", 1}, both = {3, 2, 0, 0, NULL, "ceil", 0};
    expect_pool(GB_OP_AVG_POOL, &include, 5, ramp, 3, (double[]){1, 3, 3}, 0);
    expect_pool(GB_OP_AVG_POOL, &exclude, 5, ramp, 3, (double[]){1.5, 3, 4.5}, 0);
    expect_pool(GB_OP_AVG_POOL, &ceiling, 6, ramp, 3, (double[]){2, 4, 5.5}, 0);
    /* The cells beyond the declared padding are not counted. */
    expect_pool(GB_OP_AVG_POOL, &both, 6, ramp, 3, (double[]){2, 4, 5.5}, 0);
}

Test(ref_pool, golden_maxima)
{
    pool_1d same = {3, 2, 0, 0, "SAME_UPPER", NULL, 0}, padded = {2, 2, 2, 2, NULL, NULL, 0};
    expect_pool(GB_OP_MAX_POOL, &same, 5, ramp, 3, (double[]){2, 4, 5}, 0);
    const double low = -(double)0x1.fffffep127f;
    expect_pool(GB_OP_MAX_POOL, &padded, 2, (double[]){-3, -4}, 3, (double[]){low, -3, low}, 0);
    expect_pool(GB_OP_MAX_POOL, &padded, 2, (double[]){NAN, -4}, 3, (double[]){low, -4, low}, 0);
}

/* Exact results carry no bound: sums of integers over a power of two, and maxima. */
Test(ref_pool, exact_results_have_no_bound)
{
    pool_1d four = {4, 1, 0, 0, NULL, NULL, 0}, three = {3, 1, 0, 0, NULL, NULL, 0};
    for (int i = 0; i < 3; i++) {
        ref_case c = pool_case(i == 2 ? GB_OP_MAX_POOL : GB_OP_AVG_POOL, i == 0 ? &four : &three);
        ref_case_input(&c, GB_F32, LIST(1, 1, 9), ramp);
        ref_case_output(&c, GB_F32, 3, (int64_t[]){1, 1, i == 0 ? 6 : 7});
        const gb_ref_tensor *got = ref_case_run(&c);
        if (i == 1)
            cr_expect_gt(ref_case_bound(got, 0), 0, "a third is rounded");
        else
            ref_case_expect_exact(got);
        ref_case_end(&c);
    }
}

static ref_case max_backward_case(const pool_1d *p, int64_t in, const double *src,
        const double *src_bound, int64_t out, const double *gradient)
{
    ref_case c = pool_case(GB_OP_MAX_POOL_BACKWARD, p);
    ref_case_input_bounded(&c, GB_F32, 3, (int64_t[]){1, 1, in}, src, src_bound);
    ref_case_input(&c, GB_F32, 3, (int64_t[]){1, 1, out}, gradient);
    ref_case_output(&c, GB_F32, 3, (int64_t[]){1, 1, in});
    return c;
}

/* Beside an infinity, finite terms may overflow to the opposite one; smaller ones may not. The sums
 * of ops over windows: three terms each, large or small. */
static void expect_certainty(ref_case *c, int64_t at, double infinity, bool certain)
{
    const gb_ref_tensor *got = ref_case_run(c);
    cr_expect_eq(got->value[at], infinity, "%g", got->value[at]);
    cr_expect_eq(ref_case_bound(got, at), certain ? 0 : (double)INFINITY);
    ref_case_end(c);
}

Test(ref_pool, sums_that_overflow_beside_an_infinity)
{
    pool_1d three = {3, 1, 0, 0, NULL, NULL, 1}, centre = {3, 1, 1, 1, NULL, NULL, 1};
    for (int certain = 0; certain < 2; certain++) {
        const double large = certain ? 1 : 3e38, terms[] = {large, large, -(double)INFINITY};
        ref_case c = pool_case(GB_OP_AVG_POOL, &three);
        ref_case_input(&c, GB_F32, LIST(1, 1, 3), terms);
        ref_case_output(&c, GB_F32, LIST(1, 1, 1));
        expect_certainty(&c, 0, -(double)INFINITY, certain);
        c = max_backward_case(&centre, 3, (double[]){1, 2, 1}, NULL, 3, terms);
        expect_certainty(&c, 1, -(double)INFINITY, certain);
    }
}

Test(ref_pool, maximum_takes_the_bounds_of_all_candidates)
{
    pool_1d p = {3, 1, 0, 0, NULL, NULL, 0};
    ref_case c = pool_case(GB_OP_MAX_POOL, &p);
    ref_case_input_bounded(
            &c, GB_F32, LIST(1, 1, 3), (double[]){1, 2, 1.5}, (double[]){0, 0.125, 1});
    ref_case_output(&c, GB_F32, LIST(1, 1, 1));
    const gb_ref_tensor *got = ref_case_run(&c);
    cr_expect_eq(got->value[0], 2);
    cr_expect_float_eq(got->bound[0], 0.5, 1e-6);
    ref_case_end(&c);
}

/* What may be NaN may be the largest number as well. */
Test(ref_pool, maximum_of_what_may_be_nan)
{
    const double inf = INFINITY;
    pool_1d p = {3, 3, 0, 0, NULL, NULL, 0};
    ref_case c = pool_case(GB_OP_MAX_POOL, &p);
    ref_case_input_bounded(&c, GB_F32, LIST(1, 1, 6), (double[]){1, NAN, 2, 1, NAN, 2},
            (double[]){0, inf, 0, 0, 0, 0});
    ref_case_output(&c, GB_F32, LIST(1, 1, 2));
    const gb_ref_tensor *got = ref_case_run(&c);
    cr_expect(isinf(ref_case_bound(got, 0)));
    cr_expect(got->value[1] == 2 && ref_case_bound(got, 1) == 0);
    ref_case_end(&c);
    c = max_backward_case(&p, 3, (double[]){1, 2, NAN}, (double[]){0, 0, inf}, 1, (double[]){8});
    got = ref_case_run(&c);
    cr_expect(ref_case_bound(got, 0) == 0 && ref_case_bound(got, 1) >= 8 &&
              ref_case_bound(got, 2) >= 8);
    ref_case_end(&c);
}

/* A quotient by it has either sign. */
Test(ref_pool, maximum_of_zeros_may_be_either)
{
    pool_1d p = {2, 1, 0, 0, NULL, NULL, 0};
    ref_case c = pool_case(GB_OP_MAX_POOL, &p);
    ref_case_input(&c, GB_F32, LIST(1, 1, 4), (double[]){-0.0, 0, 0, -1});
    ref_case_output(&c, GB_F32, LIST(1, 1, 3));
    const gb_ref_tensor *got = ref_case_run(&c);
    cr_expect(ref_case_bound(got, 0) > 0);
    cr_expect_eq(ref_case_bound(got, 1), 0);
    cr_expect_eq(ref_case_bound(got, 2), 0);
    ref_case_end(&c);
}

Test(ref_pool, first_maximum_gets_the_gradient)
{
    pool_1d p = {3, 1, 0, 0, NULL, NULL, 0};
    ref_case c =
            max_backward_case(&p, 5, (double[]){2, 7, 7, 1, 0}, NULL, 3, (double[]){1, 10, 100});
    const gb_ref_tensor *got = ref_case_run(&c);
    ref_case_expect(got, 5, (double[]){0, 11, 100, 0, 0}, 0);
    ref_case_expect_exact(got);
    ref_case_end(&c);
}

Test(ref_pool, near_ties_of_uncertain_values_accept_both_places)
{
    pool_1d p = {3, 3, 0, 0, NULL, NULL, 0};
    ref_case c = max_backward_case(
            &p, 3, (double[]){1, 1.25, 0}, (double[]){0.25, 0, 0.5}, 1, (double[]){8});
    const gb_ref_tensor *got = ref_case_run(&c);
    ref_case_expect(got, 3, (double[]){0, 8, 0}, 0);
    cr_expect_eq(ref_case_outside(got, (double[]){8, 0, 0}), 0);
    cr_expect_eq(ref_case_outside(got, (double[]){0, 0, 8}), 1, "the last one cannot win");
    ref_case_end(&c);
}

typedef struct pool_shape {
    int nxc;
    int64_t image[2], kernel[2], stride[2], begin[2], end[2], dilation[2];
    int exclude_pad;
} pool_shape;

static const pool_shape pool_shapes[] = {
        {0, {7, 6}, {3, 2}, {2, 1}, {1, 0}, {1, 1}, {1, 1}, 1},
        {1, {8, 9}, {2, 3}, {2, 3}, {0, 1}, {1, 2}, {1, 1}, 0},
        {1, {9, 9}, {3, 3}, {1, 2}, {2, 1}, {2, 1}, {2, 3}, 0},
        {0, {20, 17}, {20, 17}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, 0},
};

enum { CHANNELS = 67, BATCH = 2 };

static void pool_dims(const pool_shape *s, bool dilated, int64_t *image, int64_t *result)
{
    image[0] = result[0] = BATCH;
    image[s->nxc ? 3 : 1] = result[s->nxc ? 3 : 1] = CHANNELS;
    for (int d = 0; d < 2; d++) {
        int64_t reach = (s->kernel[d] - 1) * (dilated ? s->dilation[d] : 1) + 1;
        int at = d + (s->nxc ? 1 : 2);
        image[at] = s->image[d];
        result[at] = (s->image[d] + s->begin[d] + s->end[d] - reach) / s->stride[d] + 1;
    }
}

static ref_case pool_case_2d(gb_op_kind kind, const pool_shape *s)
{
    ref_case c = ref_case_begin(kind);
    bool dilated = kind == GB_OP_MAX_POOL || kind == GB_OP_MAX_POOL_BACKWARD;
    ref_case_ints(&c, GB_ATTR_STRIDES, 2, s->stride);
    ref_case_ints(&c, GB_ATTR_KERNEL, 2, s->kernel);
    ref_case_ints(&c, GB_ATTR_PADS_BEGIN, 2, s->begin);
    ref_case_ints(&c, GB_ATTR_PADS_END, 2, s->end);
    ref_case_text(&c, GB_ATTR_DATA_FORMAT, s->nxc ? "NXC" : "NCX");
    if (dilated)
        ref_case_ints(&c, GB_ATTR_DILATIONS, 2, s->dilation);
    else
        ref_case_flag(&c, GB_ATTR_EXCLUDE_PAD, s->exclude_pad);
    return c;
}

/* <avg(x), y> = <x, avg_backward(y)>, and likewise for the maximum, linear where the winners stay.
 */
Test(ref_pool, gradients_are_adjoint)
{
    for (size_t i = 0; i < 2 * sizeof(pool_shapes) / sizeof(pool_shapes[0]); i++) {
        const pool_shape *s = &pool_shapes[i / 2];
        bool max = i % 2;
        int64_t image[4], result[4];
        pool_dims(s, max, image, result);
        double *x = ref_case_randoms(1, ref_case_count(4, image), 24);
        double *y = ref_case_randoms(2, ref_case_count(4, result), 24);
        ref_case forward = pool_case_2d(max ? GB_OP_MAX_POOL : GB_OP_AVG_POOL, s);
        ref_case_input(&forward, GB_F32, 4, image, x);
        ref_case_output(&forward, GB_F32, 4, result);
        ref_case backward =
                pool_case_2d(max ? GB_OP_MAX_POOL_BACKWARD : GB_OP_AVG_POOL_BACKWARD, s);
        if (max)
            ref_case_input(&backward, GB_F32, 4, image, x);
        else
            ref_case_ints(&backward, GB_ATTR_SRC_SHAPE, 4, image);
        ref_case_input(&backward, GB_F32, 4, result, y);
        ref_case_output(&backward, GB_F32, 4, image);
        const gb_ref_tensor *a = ref_case_run(&forward), *b = ref_case_run(&backward);
        double left = 0, right = 0;
        for (int64_t k = 0; k < a->count; k++)
            left += a->value[k] * y[k];
        for (int64_t k = 0; k < b->count; k++)
            right += b->value[k] * x[k];
        cr_expect_lt(fabs(left - right), 1e-9, "case %zu: %g and %g", i, left, right);
        ref_case_end(&forward);
        ref_case_end(&backward);
        free(x);
        free(y);
    }
}

/* ----------------------------------------------------------------------------------------
 * resampling */

static ref_case resample_case(
        gb_op_kind kind, const char *mode, const char *coordinates, int64_t size)
{
    ref_case c = ref_case_begin(kind);
    ref_case_text(&c, GB_ATTR_MODE, mode);
    ref_case_text(&c, GB_ATTR_COORDINATE_TRANSFORMATION_MODE, coordinates);
    ref_case_text(&c, GB_ATTR_DATA_FORMAT, "NCX");
    ref_case_ints(&c, GB_ATTR_SIZES, 1, &size);
    return c;
}

static void expect_resampled(const char *mode, const char *coordinates, int64_t in, int64_t out,
        const double *expected, bool exact)
{
    const double src[] = {0, 1, 2, 3, 4, 5, 6, 7};
    ref_case c = resample_case(GB_OP_INTERPOLATE, mode, coordinates, out);
    ref_case_input(&c, GB_F32, 3, (int64_t[]){1, 1, in}, src);
    ref_case_output(&c, GB_F32, 3, (int64_t[]){1, 1, out});
    const gb_ref_tensor *got = ref_case_run(&c);
    ref_case_expect(got, out, expected, exact ? 0 : 1e-6);
    if (exact)
        ref_case_expect_exact(got);
    ref_case_end(&c);
}

Test(ref_interpolate, golden_lines)
{
    expect_resampled(
            "linear", "half_pixel", 4, 8, (double[]){0, .25, .75, 1.25, 1.75, 2.25, 2.75, 3}, true);
    expect_resampled("linear", "half_pixel", 4, 2, (double[]){.5, 2.5}, true);
    expect_resampled("linear", "half_pixel", 4, 3, (double[]){1 / 6., 1.5, 2 + 5 / 6.}, false);
    expect_resampled("linear", "align_corners", 4, 7, (double[]){0, .5, 1, 1.5, 2, 2.5, 3}, false);
    expect_resampled("linear", "align_corners", 3, 5, (double[]){0, .5, 1, 1.5, 2}, true);
    expect_resampled("linear", "align_corners", 4, 1, (double[]){0}, true);
}

Test(ref_interpolate, golden_nearest_indices)
{
    expect_resampled("nearest", "half_pixel", 4, 3, (double[]){0, 2, 3}, true);
    expect_resampled("nearest", "half_pixel", 4, 2, (double[]){1, 3}, true);
    expect_resampled("nearest", "half_pixel", 2, 4, (double[]){0, 0, 1, 1}, true);
    expect_resampled("nearest", "align_corners", 4, 2, (double[]){0, 3}, true);
}

Test(ref_interpolate, gradients_that_overflow_beside_an_infinity)
{
    for (int certain = 0; certain < 2; certain++) {
        const double large = certain ? 1 : 3e38, terms[] = {large, large, -(double)INFINITY};
        ref_case c = resample_case(GB_OP_INTERPOLATE_BACKWARD, "nearest", "half_pixel", 3);
        ref_case_input(&c, GB_F32, LIST(1, 1, 1), terms);
        ref_case_input(&c, GB_F32, LIST(1, 1, 3), terms);
        ref_case_output(&c, GB_F32, LIST(1, 1, 1));
        expect_certainty(&c, 0, -(double)INFINITY, certain);
    }
}

Test(ref_interpolate, gradients_are_adjoint)
{
    static const int64_t sizes[][2] = {{5, 8}, {8, 5}, {7, 7}, {1, 6}, {6, 1}, {3, 40}};
    static const char *const modes[] = {"nearest", "linear"};
    static const char *const coordinates[] = {"half_pixel", "align_corners"};
    for (int i = 0; i < 24; i++) {
        int64_t in = sizes[i / 4][0], out = sizes[i / 4][1];
        int64_t image[] = {3, 7, in}, result[] = {3, 7, out};
        double *x = ref_case_randoms(1, 21 * in, 24), *y = ref_case_randoms(2, 21 * out, 24);
        const char *mode = modes[i % 2], *rule = coordinates[i / 2 % 2];
        ref_case forward = resample_case(GB_OP_INTERPOLATE, mode, rule, out);
        ref_case backward = resample_case(GB_OP_INTERPOLATE_BACKWARD, mode, rule, out);
        ref_case_input(&forward, GB_F32, 3, image, x);
        ref_case_output(&forward, GB_F32, 3, result);
        ref_case_input(&backward, GB_F32, 3, image, x);
        ref_case_input(&backward, GB_F32, 3, result, y);
        ref_case_output(&backward, GB_F32, 3, image);
        const gb_ref_tensor *a = ref_case_run(&forward), *b = ref_case_run(&backward);
        double left = 0, right = 0;
        for (int64_t k = 0; k < a->count; k++)
            left += a->value[k] * y[k];
        for (int64_t k = 0; k < b->count; k++)
            right += b->value[k] * x[k];
        cr_expect_lt(fabs(left - right), 1e-10, "case %d: %g and %g", i, left, right);
        ref_case_end(&forward);
        ref_case_end(&backward);
        free(x);
        free(y);
    }
}

/* Bilinear in f32 by another route (axis after axis) stays within the bounds; a neighbour taken
 * wrongly does not. */
Test(ref_interpolate, bounds_hold_separable_evaluation_and_find_faults)
{
    enum { IN = 9, OUT = 23 };
    double *x = ref_case_randoms(3, IN * IN, 24), *y = malloc(OUT * OUT * sizeof(*y));
    ref_case c = ref_case_begin(GB_OP_INTERPOLATE);
    ref_case_text(&c, GB_ATTR_MODE, "bilinear");
    ref_case_ints(&c, GB_ATTR_SIZES, LIST(OUT, OUT));
    ref_case_input(&c, GB_F32, LIST(1, IN, IN, 1), x);
    ref_case_output(&c, GB_F32, LIST(1, OUT, OUT, 1));
    const gb_ref_tensor *reference = ref_case_run(&c);
    for (int fault = 0; fault < 2; fault++) {
        for (int i = 0; i < OUT * OUT; i++) {
            float s[2] = {((float)(i / OUT) + 0.5f) * IN / OUT - 0.5f,
                    ((float)(i % OUT) + 0.5f) * IN / OUT - 0.5f};
            float w[2];
            int l[2], r[2];
            for (int d = 0; d < 2; d++) {
                l[d] = (int)fmaxf(floorf(s[d]), 0);
                r[d] = s[d] < 0 ? 0 : (int)fminf(ceilf(s[d]), IN - 1);
                w[d] = fabsf(s[d] - (float)l[d]);
            }
            if (fault)
                r[1] = l[1];
            float top = (float)x[l[0] * IN + l[1]] * (1 - w[1]) + (float)x[l[0] * IN + r[1]] * w[1];
            float low = (float)x[r[0] * IN + l[1]] * (1 - w[1]) + (float)x[r[0] * IN + r[1]] * w[1];
            y[i] = (double)(top * (1 - w[0]) + low * w[0]);
        }
        int64_t outside = ref_case_outside(reference, y);
        cr_expect(fault ? outside > OUT * OUT / 2 : outside == 0, "%lld", (long long)outside);
    }
    ref_case_end(&c);
    free(x);
    free(y);
}
