/* The reference of ops with broadcast: binary arithmetic, comparison, Select, BiasAdd, PReLU and
 * their gradients. */
#include "ref/bounds/bound.h"
#include "ref/bounds/ref_op.h"
#include "ref_case.h"

static const int64_t two_by_three[2] = {2, 3};

static ref_case binary(gb_op_kind kind, gb_data_type type, const double *a, const double *a_bound,
        const double *b, const double *b_bound, int64_t count)
{
    ref_case c = ref_case_begin(kind);
    ref_case_input_bounded(&c, type, 1, &count, a, a_bound);
    ref_case_input_bounded(&c, type, 1, &count, b, b_bound);
    ref_case_output(&c, kind == GB_OP_GREATER_EQUAL ? GB_BOOLEAN : type, 1, &count);
    return c;
}

typedef struct known {
    gb_op_kind kind;
    double y[4];
} known;

Test(ref_binary, known_values)
{
    const double a[4] = {3, -2, 0.5, 7}, b[4] = {4, -2, 0.25, -2};
    const known table[] = {
            {GB_OP_ADD, {7, -4, 0.75, 5}},
            {GB_OP_SUBTRACT, {-1, 0, 0.25, 9}},
            {GB_OP_MULTIPLY, {12, 4, 0.125, -14}},
            {GB_OP_DIVIDE, {0.75, 1, 2, -3.5}},
            {GB_OP_MAXIMUM, {4, -2, 0.5, 7}},
            {GB_OP_MINIMUM, {3, -2, 0.25, -2}},
            {GB_OP_SQUARED_DIFFERENCE, {1, 0, 0.0625, 81}},
            {GB_OP_GREATER_EQUAL, {0, 1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        ref_case c = binary(table[i].kind, GB_F32, a, NULL, b, NULL, 4);
        const gb_ref_tensor *got = ref_case_run(&c);
        ref_case_expect(got, 4, table[i].y, 0);
        ref_case_expect_exact(got);
        ref_case_end(&c);
    }
}

/* 147755.496 becomes 147755.5 in f32, which is rounded to the even neighbour. */
Test(ref_binary, sums_near_a_tie_may_go_either_way)
{
    const int64_t count = 2;
    const double a[2] = {147755.5, 147755.5}, b[2] = {-0.00390625, -0.25};
    ref_case c = ref_case_begin(GB_OP_ADD);
    ref_case_input_bounded(&c, GB_F32, 1, &count, a, NULL);
    ref_case_input_bounded(&c, GB_F32, 1, &count, b, NULL);
    ref_case_output(&c, GB_S32, 1, &count);
    const gb_ref_tensor *got = ref_case_run(&c);
    ref_case_expect(got, 2, (const double[]){147755, 147755}, 0);
    cr_expect_eq(got->bound[0], 1);
    cr_expect_eq(got->bound[1], 0);
    ref_case_end(&c);
}

Test(ref_binary, not_finite)
{
    const double inf = INFINITY, nan = NAN;
    const double a[6] = {inf, inf, nan, 1, 0, 1}, b[6] = {-inf, 2, 1, nan, 0, 0};
    const known table[] = {{GB_OP_ADD, {nan, inf, nan, nan}},
            {GB_OP_MULTIPLY, {-inf, inf, nan, nan}}, {GB_OP_MAXIMUM, {inf, inf, 1, nan}},
            {GB_OP_MINIMUM, {-inf, 2, 1, nan}}, {GB_OP_GREATER_EQUAL, {1, 1, 0, 0}}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        ref_case c = binary(table[i].kind, GB_F32, a, NULL, b, NULL, 4);
        const gb_ref_tensor *got = ref_case_run(&c);
        ref_case_expect(got, 4, table[i].y, 0);
        ref_case_expect_exact(got);
        ref_case_end(&c);
    }
    const double quotients[6] = {nan, inf, nan, nan, nan, inf};
    ref_case c = binary(GB_OP_DIVIDE, GB_F32, a, NULL, b, NULL, 6);
    ref_case_expect(ref_case_run(&c), 6, quotients, 0);
    ref_case_end(&c);
}

/* A NaN of which nothing is known, like the root of what may have been flushed to 0, leaves nothing
 * known of what is chosen by it. */
Test(ref_binary, a_nan_that_may_be_a_number)
{
    const double a[2] = {NAN, NAN}, b[2] = {-1, 2}, a_bound[2] = {INFINITY, 0};
    const gb_op_kind kinds[] = {GB_OP_MAXIMUM, GB_OP_MINIMUM, GB_OP_GREATER_EQUAL};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        ref_case c = binary(kinds[i], GB_F32, a, a_bound, b, NULL, 2);
        const gb_ref_tensor *got = ref_case_run(&c);
        cr_expect_gt(ref_case_bound(got, 0), 0.5);
        cr_expect_eq(ref_case_bound(got, 1), 0);
        ref_case_end(&c);
    }
}

/* Errors of flushed subnormals are no roundings: the mean of a tensor tells nothing of them. */
Test(ref_binary, flushed_subnormals_have_errors_as_large_as_their_bounds)
{
    const double a[2] = {1e-36, 1}, a_bound[2] = {1e-36, 1e-6}, b[2] = {3, 3};
    for (int flushed = 0; flushed < 2; flushed++) {
        ref_case c = binary(
                GB_OP_MULTIPLY, GB_F32, a + !flushed, a_bound + !flushed, b, NULL, 1 + flushed);
        gb_ref_tensor *src = (gb_ref_tensor *)(uintptr_t)gb_ref_store_get(c.store, 0);
        src->spread =
                (gb_ref_spread){.deviations = 1e-4, .bounds = 1, .quotients = 1e-4, .elements = 1};
        const gb_ref_tensor *got = ref_case_run(&c);
        cr_expect_eq(got->spread.deviations == got->spread.bounds, flushed == 1);
        ref_case_end(&c);
    }
}

/* Operands anywhere within their bounds give results within the bound, one f32 rounding included.
 */
Test(ref_binary, bounds_propagate)
{
    enum { N = 4000 };
    const gb_op_kind kinds[] = {GB_OP_ADD, GB_OP_SUBTRACT, GB_OP_MULTIPLY, GB_OP_DIVIDE,
            GB_OP_MAXIMUM, GB_OP_MINIMUM, GB_OP_SQUARED_DIFFERENCE, GB_OP_GREATER_EQUAL};
    double *a = ref_case_randoms(1, N, 24), *b = ref_case_randoms(2, N, 24);
    double *ea = ref_case_randoms(3, N, 24), *eb = ref_case_randoms(4, N, 24);
    for (int i = 0; i < N; i++) {
        ea[i] = fabs(ea[i]) * 0.1;
        eb[i] = fabs(eb[i]) * 0.1;
    }
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        ref_case c = binary(kinds[k], GB_F32, a, ea, b, eb, N);
        const gb_ref_tensor *got = ref_case_run(&c);
        double widest = 0;
        uint64_t state = k;
        for (int i = 0; i < N; i++) {
            double reach = 0;
            for (int trial = 0; trial < 64; trial++) {
                double p = trial < 4 ? (trial & 1 ? 1 : -1) : ref_case_random(&state, 20);
                double q = trial < 4 ? (trial & 2 ? 1 : -1) : ref_case_random(&state, 20);
                double x = a[i] + p * ea[i], y = b[i] + q * eb[i], d = (double)(float)(x - y);
                const double results[] = {
                        x + y, d, x * y, x / y, x > y ? x : y, x < y ? x : y, d * d, x >= y};
                double error = fabs((double)(float)results[k] - got->value[i]);
                cr_expect(error <= ref_case_bound(got, i), "%s: %g and %g are off by %g, bound %g",
                        gb_op_kind_name(kinds[k]), x, y, error, ref_case_bound(got, i));
                reach = fmax(reach, error);
            }
            if (reach > 1e-3 && kinds[k] != GB_OP_DIVIDE)
                widest = fmax(widest, ref_case_bound(got, i) / reach);
        }
        cr_expect(widest < 1.5, "%s: %g times what is needed", gb_op_kind_name(kinds[k]), widest);
        ref_case_end(&c);
    }
    free(a), free(b), free(ea), free(eb);
}

Test(ref_binary, broadcast_both_ways)
{
    const int64_t a_dims[4] = {2, 1, 3, 1}, b_dims[3] = {4, 1, 5}, dims[4] = {2, 4, 3, 5};
    double a[6], b[20], expected[120];
    for (int i = 0; i < 6; i++)
        a[i] = i * 100;
    for (int i = 0; i < 20; i++)
        b[i] = i;
    for (int i = 0; i < 120; i++)
        expected[i] = a[i / 60 * 3 + i / 5 % 3] - b[i / 15 % 4 * 5 + i % 5];
    ref_case c = ref_case_begin(GB_OP_SUBTRACT);
    ref_case_input(&c, GB_F32, 4, a_dims, a);
    ref_case_input(&c, GB_F32, 3, b_dims, b);
    ref_case_output(&c, GB_F32, 4, dims);
    ref_case_expect(ref_case_run(&c), 120, expected, 0);
    ref_case_end(&c);
}

Test(ref_binary, integers_saturate_and_may_pass_through_f32)
{
    const double a[3] = {7, 2147483647, 33554433}, b[3] = {-9, 1, 0},
                 sums[3] = {-2, 2147483647, 33554433};
    ref_case c = binary(GB_OP_ADD, GB_S32, a, NULL, b, NULL, 3);
    const gb_ref_tensor *got = ref_case_run(&c);
    ref_case_expect(got, 3, sums, 0);
    cr_expect_eq(ref_case_bound(got, 0), 0.0);
    cr_expect(ref_case_bound(got, 1) >= 127 && ref_case_bound(got, 1) < 1024);
    cr_expect(ref_case_bound(got, 2) >= 1 && ref_case_bound(got, 2) < 16);
    ref_case_end(&c);
}

Test(ref_binary, select_accepts_both_when_unsure)
{
    const int64_t n = 3, one = 1;
    const double condition[3] = {1, 0, 1}, unsure[3] = {0, 0, 1}, a[3] = {5, 6, 7}, b[1] = {1};
    const double expected[3] = {5, 1, 7};
    ref_case c = ref_case_begin(GB_OP_SELECT);
    ref_case_input_bounded(&c, GB_BOOLEAN, 1, &n, condition, unsure);
    ref_case_input(&c, GB_F32, 1, &n, a);
    ref_case_input(&c, GB_F32, 1, &one, b);
    ref_case_output(&c, GB_F32, 1, &n);
    const gb_ref_tensor *got = ref_case_run(&c);
    ref_case_expect(got, 3, expected, 0);
    cr_expect_eq(ref_case_bound(got, 0), 0.0);
    cr_expect(ref_case_bound(got, 2) >= 6 && ref_case_bound(got, 2) < 6.001);
    ref_case_end(&c);
}

Test(ref_binary, bias_in_both_formats)
{
    const double src[6] = {1, 2, 3, 4, 5, 6}, bias[3] = {10, 20, 30},
                 last[6] = {11, 22, 33, 14, 25, 36};
    const int64_t channels = 3, first_dims[3] = {1, 3, 2};
    const double first[6] = {11, 12, 23, 24, 35, 36};
    for (int ncx = 0; ncx < 2; ncx++) {
        ref_case c = ref_case_begin(GB_OP_BIAS_ADD);
        ref_case_text(&c, GB_ATTR_DATA_FORMAT, ncx ? "NCX" : "NXC");
        ref_case_input(&c, GB_F32, 2 + ncx, ncx ? first_dims : two_by_three, src);
        ref_case_input(&c, GB_F32, 1, &channels, bias);
        ref_case_output(&c, GB_F32, 2 + ncx, ncx ? first_dims : two_by_three);
        const gb_ref_tensor *got = ref_case_run(&c);
        ref_case_expect(got, 6, ncx ? first : last, 0);
        ref_case_expect_exact(got);
        ref_case_end(&c);
    }
}

Test(ref_binary, bias_gradient_is_exact_for_integers_and_bounded_otherwise)
{
    const int64_t dims[4] = {8, 5, 5, 3}, channels = 3;
    double *integers = ref_case_randoms(3, 600, 6), *numbers = ref_case_randoms(4, 600, 24);
    double sums[3] = {0};
    float plain[3] = {0};
    for (int i = 0; i < 600; i++) {
        integers[i] *= 32;
        sums[i % 3] += integers[i];
        plain[i % 3] += (float)numbers[i];
    }
    for (int exact = 0; exact < 2; exact++) {
        ref_case c = ref_case_begin(GB_OP_BIAS_ADD_BACKWARD);
        ref_case_input(&c, GB_F32, 4, dims, exact ? integers : numbers);
        ref_case_output(&c, GB_F32, 1, &channels);
        const gb_ref_tensor *got = ref_case_run(&c);
        if (exact) {
            ref_case_expect(got, 3, sums, 0);
            ref_case_expect_exact(got);
        }
        for (int i = 0; i < 3 && !exact; i++) {
            double error = fabs((double)plain[i] - got->value[i]), bound = ref_case_bound(got, i);
            cr_expect(error <= bound && bound < 1e-3, "error %g, bound %g", error, bound);
        }
        cr_expect(exact || got->statistical);
        ref_case_end(&c);
    }
    free(integers);
    free(numbers);
}

Test(ref_binary, prelu_slopes)
{
    const int64_t dims[3] = {1, 2, 3}, two = 2, three = 3, mixed[2] = {2, 1};
    const double src[6] = {-1, 2, -3, 4, -5, -6};
    const double by_channel[6] = {-0.5, 2, -1.5, 4, -10, -12};
    const double slopes[2] = {0.5, 2}, slopes_last[3] = {0.5, 2, 2};
    ref_case c = ref_case_begin(GB_OP_PRELU);
    ref_case_text(&c, GB_ATTR_DATA_FORMAT, "NCX");
    ref_case_input(&c, GB_F32, 3, dims, src);
    ref_case_input(&c, GB_F32, 1, &two, slopes);
    ref_case_output(&c, GB_F32, 3, dims);
    ref_case_expect(ref_case_run(&c), 6, by_channel, 0);
    ref_case_end(&c);
    c = ref_case_begin(GB_OP_PRELU);
    ref_case_flag(&c, GB_ATTR_PER_CHANNEL_BROADCAST, 0);
    ref_case_input(&c, GB_F32, 3, dims, src);
    ref_case_input(&c, GB_F32, 1, &three, slopes_last);
    ref_case_output(&c, GB_F32, 3, dims);
    ref_case_expect(ref_case_run(&c), 6, (const double[]){-0.5, 2, -6, 4, -10, -12}, 0);
    ref_case_end(&c);
    c = ref_case_begin(GB_OP_PRELU);
    ref_case_input(&c, GB_F32, 3, dims, src);
    ref_case_input(&c, GB_F32, 2, mixed, slopes);
    ref_case_output(&c, GB_F32, 3, dims);
    ref_case_expect(ref_case_run(&c), 6, by_channel, 0);
    ref_case_end(&c);
}

Test(ref_binary, prelu_gradient)
{
    const int64_t dims[3] = {2, 2, 2}, slope_dims[2] = {2, 1};
    const double src[8] = {-1, 2, -3, 0, 5, -6, -7, 8}, slope[2] = {0.5, 2},
                 g[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const double diff_src[8] = {0.5, 2, 6, 8, 5, 3, 14, 8}, diff_slope[2] = {-1 - 36, -9 - 49};
    ref_case c = ref_case_begin(GB_OP_PRELU_BACKWARD);
    ref_case_input(&c, GB_F32, 3, dims, src);
    ref_case_input(&c, GB_F32, 2, slope_dims, slope);
    ref_case_input(&c, GB_F32, 3, dims, g);
    ref_case_output(&c, GB_F32, 3, dims);
    ref_case_output(&c, GB_F32, 2, slope_dims);
    ref_case_expect(ref_case_run(&c), 8, diff_src, 0);
    ref_case_expect(gb_ref_store_get(c.store, 101), 2, diff_slope, 0);
    ref_case_expect_exact(gb_ref_store_get(c.store, 101));
    ref_case_end(&c);
}

Test(ref_binary, subnormals_may_be_zero)
{
    const double a[1] = {0x1p-130}, b[1] = {0x1p100};
    ref_case c = binary(GB_OP_MULTIPLY, GB_F32, a, NULL, b, NULL, 1);
    cr_expect(ref_case_bound(ref_case_run(&c), 0) >= 0x1p-30);
    ref_case_end(&c);
    c = binary(GB_OP_DIVIDE, GB_F32, b, NULL, a, NULL, 1);
    cr_expect(isinf(ref_case_bound(ref_case_run(&c), 0)));
    ref_case_end(&c);
}

/* Infinities that are certain saturate; one that may as well be NaN, which becomes 0, does not. */
Test(ref_binary, integers_of_infinities)
{
    const double lowest = -2147483648.0, highest = 2147483647.0;
    const double a[2] = {INFINITY, -INFINITY}, b[2] = {3, 1e30};
    gb_ref_pair certain = gb_ref_to_integer((gb_ref_pair){-INFINITY, 0}, lowest, highest);
    gb_ref_pair doubtful = gb_ref_to_integer((gb_ref_pair){-INFINITY, INFINITY}, lowest, highest);
    gb_ref_pair none = gb_ref_to_integer((gb_ref_pair){NAN, 0}, lowest, highest);
    cr_expect(none.v == 0 && none.e == 0, "NaN becomes 0");
    cr_expect(certain.v == lowest && certain.e == 0);
    cr_expect(isinf(doubtful.e));
    ref_case c = ref_case_begin(GB_OP_ADD);
    const int64_t two = 2;
    ref_case_input(&c, GB_F32, 1, &two, a);
    ref_case_input(&c, GB_F32, 1, &two, b);
    ref_case_output(&c, GB_S32, 1, &two);
    const gb_ref_tensor *got = ref_case_run(&c);
    cr_expect(got->value[0] == highest && ref_case_bound(got, 0) == 0);
    cr_expect(got->value[1] == lowest && ref_case_bound(got, 1) == 0);
    ref_case_end(&c);
}

Test(ref_binary, overflow)
{
    const double a[5] = {60000, 65504, 65000, 65000, 65000}, b[5] = {60000, 0, 510, 519, 520};
    ref_case c = binary(GB_OP_ADD, GB_F16, a, NULL, b, NULL, 5);
    const gb_ref_tensor *got = ref_case_run(&c);
    cr_expect(isinf(got->value[0]) && ref_case_bound(got, 0) == 0);
    cr_expect(got->value[1] == 65504 && ref_case_bound(got, 1) == 0);
    for (int i = 2; i < 4; i++) /* rounded once, to the nearest number */
        cr_expect(got->value[i] == 65504 && ref_case_bound(got, i) == 0);
    cr_expect(isinf(got->value[4]) && ref_case_bound(got, 4) == 0, "a tie goes to the even one");
    ref_case_end(&c);
    const double x[1] = {65000}, x_bound[1] = {0.25}, y[1] = {519.75};
    c = binary(GB_OP_ADD, GB_F16, x, x_bound, y, NULL, 1);
    cr_expect(isinf(ref_case_bound(ref_case_run(&c), 0)), "it may lie on either side");
    ref_case_end(&c);
}

/* An infinity of unknown sign leaves nothing known of a maximum or minimum. */
/* A quotient by them has either sign. */
Test(ref_binary, extremes_of_zeros_may_be_either)
{
    const double a[4] = {0.0, -0.0, -1e-40, 0.0}, b[4] = {-0.0, 0.0, 1e-41, 0.0};
    const gb_op_kind kinds[] = {GB_OP_MAXIMUM, GB_OP_MINIMUM};
    for (int k = 0; k < 2; k++) {
        ref_case c = binary(kinds[k], GB_F32, a, NULL, b, NULL, 4);
        const gb_ref_tensor *got = ref_case_run(&c);
        for (int i = 0; i < 3; i++)
            cr_expect(ref_case_bound(got, i) >= GB_REF_ETA, "%d", i);
        cr_expect_eq(ref_case_bound(got, 3), 0);
        ref_case_end(&c);
    }
    const int64_t four = 4, one = 1;
    const double zeros[4] = {-5, -0.0, 0.0, -3};
    ref_case c = ref_case_begin(GB_OP_REDUCE_MAX);
    ref_case_ints(&c, GB_ATTR_AXES, 1, (const int64_t[]){0});
    ref_case_flag(&c, GB_ATTR_KEEP_DIMS, true);
    ref_case_input(&c, GB_F32, 1, &four, zeros);
    ref_case_output(&c, GB_F32, 1, &one);
    cr_expect(ref_case_bound(ref_case_run(&c), 0) >= GB_REF_ETA);
    ref_case_end(&c);
}

Test(ref_binary, extremes_of_what_may_be_anything)
{
    const double a[2] = {INFINITY, INFINITY}, bound[2] = {INFINITY, 0}, b[2] = {-1, -1};
    for (int minimum = 0; minimum < 2; minimum++) {
        ref_case c = binary(minimum ? GB_OP_MINIMUM : GB_OP_MAXIMUM, GB_F32, a, bound, b, NULL, 2);
        const gb_ref_tensor *got = ref_case_run(&c);
        cr_expect(isinf(ref_case_bound(got, 0)));
        cr_expect_eq(ref_case_bound(got, 1), 0);
        ref_case_end(&c);
    }
}

Test(ref_binary, inputs_that_do_not_fit)
{
    const double a[3] = {1, 2, 3};
    ref_case c = binary(GB_OP_ADD, GB_F32, a, NULL, a, NULL, 3);
    gb_ref_store_drop(c.store, 1);
    cr_expect_eq(ref_case_try(&c), GB_INVALID_ARGUMENTS);
    cr_expect(strstr(gb_last_error(), "input 1"), "%s", gb_last_error());
    ref_case_end(&c);
}

Test(ref_binary, ops_without_reference)
{
    const int64_t one = 1;
    const double x[1] = {0};
    const size_t missing = 77;
    ref_case c = ref_case_begin(GB_OP_WILDCARD);
    ref_case_input(&c, GB_F32, 1, &one, x);
    ref_case_output(&c, GB_F32, 1, &one);
    cr_expect_eq(ref_case_try(&c), GB_UNIMPLEMENTED);
    cr_expect(strstr(gb_last_error(), "Wildcard"), "%s", gb_last_error());
    cr_expect_eq(gb_ref_execute(c.graph, 1, &missing, c.store), GB_INVALID_ARGUMENTS);
    ref_case_end(&c);
    for (int kind = 0; kind < GB_OP_LAST; kind++)
        cr_expect_eq(gb_ref_supports((gb_op_kind)kind), kind != GB_OP_WILDCARD);
    cr_expect_not(gb_ref_supports(GB_OP_LAST));
}

Test(ref_binary, end_does_nothing)
{
    const int64_t one = 1;
    const double x[1] = {3};
    ref_case c = ref_case_begin(GB_OP_END);
    ref_case_input(&c, GB_F32, 1, &one, x);
    cr_expect_eq(ref_case_try(&c), GB_SUCCESS);
    ref_case_end(&c);
}
