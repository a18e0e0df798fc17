/* The reference of reductions and of ops that only place elements. */
#include "ref_case.h"

/* Reductions ----------------------------------------------------------------------------------- */

static const gb_op_kind reductions[] = {GB_OP_REDUCE_SUM, GB_OP_REDUCE_MEAN, GB_OP_REDUCE_PROD,
        GB_OP_REDUCE_MAX, GB_OP_REDUCE_MIN, GB_OP_REDUCE_L1, GB_OP_REDUCE_L2};
enum { REDUCTIONS = sizeof(reductions) / sizeof(reductions[0]) };

static ref_case reduce_case(gb_op_kind kind, int n_axes, const int64_t *axes)
{
    ref_case c = ref_case_begin(kind);
    if (n_axes > 0)
        ref_case_ints(&c, GB_ATTR_AXES, n_axes, axes);
    return c;
}

Test(ref_reduce, golden_values_along_either_axis)
{
    const double src[] = {1, -2, 3, 4, -5, 6};
    const double rows[REDUCTIONS][2] = {{2, 5}, {2 / 3., 5 / 3.}, {-6, -120}, {3, 6}, {-2, -5},
            {6, 15}, {3.7416573867739413, 8.7749643873921226}};
    const double columns[REDUCTIONS][3] = {{5, -7, 9}, {2.5, -3.5, 4.5}, {4, 10, 18}, {4, -2, 6},
            {1, -5, 3}, {5, 7, 9}, {4.1231056256176606, 5.3851648071345037, 6.7082039324993694}};
    for (int i = 0; i < REDUCTIONS; i++) {
        ref_case c = reduce_case(reductions[i], LIST(-1));
        ref_case_input(&c, GB_F32, LIST(2, 3), src);
        ref_case_output(&c, GB_F32, LIST(2));
        ref_case_expect(ref_case_run(&c), 2, rows[i], 1e-15);
        ref_case_end(&c);
        c = reduce_case(reductions[i], LIST(0));
        ref_case_flag(&c, GB_ATTR_KEEP_DIMS, 1);
        ref_case_input(&c, GB_F32, LIST(2, 3), src);
        ref_case_output(&c, GB_F32, LIST(1, 3));
        ref_case_expect(ref_case_run(&c), 3, columns[i], 1e-15);
        ref_case_end(&c);
    }
}

/* An f32 implementation over axes 0 and 2 of a 4-D tensor, forwards or backwards. */
static float reduce_f32(
        gb_op_kind kind, const double *x, const int64_t *dims, int64_t b, int64_t d, int backwards)
{
    int64_t n = dims[0] * dims[2];
    float total = kind == GB_OP_REDUCE_PROD ? 1 : 0;
    for (int64_t step = 0; step < n; step++) {
        int64_t i = backwards ? n - 1 - step : step;
        int64_t at = ((i / dims[2] * dims[1] + b) * dims[2] + i % dims[2]) * dims[3] + d;
        float v = (float)x[at];
        if (kind == GB_OP_REDUCE_L1)
            total += fabsf(v);
        else if (kind == GB_OP_REDUCE_L2)
            total += v * v;
        else if (kind == GB_OP_REDUCE_PROD)
            total *= v;
        else if (kind == GB_OP_REDUCE_MAX)
            total = step == 0 ? v : fmaxf(total, v);
        else if (kind == GB_OP_REDUCE_MIN)
            total = step == 0 ? v : fminf(total, v);
        else
            total += kind == GB_OP_REDUCE_MEAN ? v * (1 / (float)n) : v;
    }
    return kind == GB_OP_REDUCE_L2 ? sqrtf(total) : total;
}

Test(ref_reduce, bounds_hold_f32_implementations_and_find_a_lost_element)
{
    const int64_t dims[] = {5, 3, 37, 50};
    double *x = ref_case_randoms(4, 5 * 3 * 37 * 50, 24), got[150];
    for (int64_t i = 0; i < 5 * 3 * 37 * 50; i++)
        x[i] = x[i] < 0 ? x[i] - 0.25 : x[i] + 0.25; /* away from zero: products stay in range */
    for (int i = 0; i < REDUCTIONS * 3; i++) {
        gb_op_kind kind = reductions[i / 3];
        ref_case c = reduce_case(kind, LIST(2, 0));
        ref_case_input(&c, GB_F32, 4, dims, x);
        ref_case_output(&c, GB_F32, LIST(3, 50));
        const gb_ref_tensor *reference = ref_case_run(&c);
        int fault = i % 3 == 2;
        double lost = x[7];
        x[7] = fault ? 0.5 : x[7];
        for (int64_t j = 0; j < 150; j++)
            got[j] = (double)reduce_f32(kind, x, dims, j / 50, j % 50, i % 3 == 1);
        x[7] = lost;
        bool order = kind == GB_OP_REDUCE_MAX || kind == GB_OP_REDUCE_MIN;
        cr_expect_eq(ref_case_outside(reference, got), fault && !order, "row %d", i);
        ref_case_end(&c);
    }
    free(x);
}

Test(ref_reduce, empty_sets_and_missing_axes)
{
    const double high = (double)0x1.fffffep127f;
    const double empty[REDUCTIONS] = {0, NAN, 1, -high, high, 0, 0};
    for (int i = 0; i < REDUCTIONS; i++) {
        ref_case c = reduce_case(reductions[i], LIST(1));
        ref_case_input(&c, GB_F32, LIST(2, 0), (double[]){0});
        ref_case_output(&c, GB_F32, LIST(2));
        ref_case_expect(ref_case_run(&c), 2, (double[]){empty[i], empty[i]}, 0);
        ref_case_end(&c);
        c = reduce_case(reductions[i], 0, NULL);
        ref_case_input(&c, GB_F32, LIST(2), (double[]){3, -4});
        ref_case_output(&c, GB_F32, LIST(2));
        ref_case_expect(ref_case_run(&c), 2, (double[]){3, -4}, 0);
        ref_case_end(&c);
    }
}

Test(ref_reduce, all_axes_give_a_scalar)
{
    ref_case c = reduce_case(GB_OP_REDUCE_SUM, LIST(0, -1, 1));
    ref_case_input(&c, GB_F32, LIST(1, 2, 2), (double[]){1, 2, 3, 4});
    ref_case_output(&c, GB_F32, 0, NULL);
    const gb_ref_tensor *got = ref_case_run(&c);
    ref_case_expect(got, 1, (double[]){10}, 0);
    ref_case_expect_exact(got);
    ref_case_end(&c);
}

Test(ref_reduce, uncertain_inputs)
{
    const double src[] = {1, 2}, bound[] = {0.5, 0.25};
    /* sum, mean, product, max, min, L1, L2 */
    const double least[] = {0.75, 0.375, 0.5 * 2 + 0.25 * 1 + 0.125, 0.25, 0.5, 0.75, 0.5967};
    for (int i = 0; i < REDUCTIONS; i++) {
        ref_case c = reduce_case(reductions[i], LIST(0));
        ref_case_input_bounded(&c, GB_F32, LIST(2), src, bound);
        ref_case_output(&c, GB_F32, 0, NULL);
        const gb_ref_tensor *got = ref_case_run(&c);
        cr_expect_geq(got->bound[0], least[i] * 0.999, "%d: %g", i, got->bound[0]);
        cr_expect_leq(got->bound[0], least[i] * 1.05, "%d: %g", i, got->bound[0]);
        ref_case_end(&c);
    }
}

/* Beside an infinity, finite terms may overflow to the opposite one. */
Test(ref_reduce, sums_that_overflow_beside_an_infinity)
{
    for (int i = 0; i < REDUCTIONS; i++)
        for (int certain = 0; certain < 2; certain++) {
            bool sum = reductions[i] == GB_OP_REDUCE_SUM || reductions[i] == GB_OP_REDUCE_MEAN;
            const double large = certain ? 1 : 3e38;
            ref_case c = reduce_case(reductions[i], LIST(0));
            ref_case_input(&c, GB_F32, LIST(3), (double[]){large, large, -(double)INFINITY});
            ref_case_output(&c, GB_F32, 0, NULL);
            const gb_ref_tensor *got = ref_case_run(&c);
            if (sum)
                cr_expect_eq(ref_case_bound(got, 0), certain ? 0 : (double)INFINITY);
            if (reductions[i] == GB_OP_REDUCE_L1 || reductions[i] == GB_OP_REDUCE_L2)
                cr_expect_eq(ref_case_bound(got, 0), 0, "no terms of either sign");
            ref_case_end(&c);
        }
}

Test(ref_reduce, products_that_may_overflow_or_vanish_are_uncertain)
{
    const double src[][3] = {{0x1p100, 0x1p100, 0x1p-100}, {0x1p-100, 0x1p-100, 0x1p100}};
    for (int i = 0; i < 2; i++) {
        ref_case c = reduce_case(GB_OP_REDUCE_PROD, LIST(0));
        ref_case_input(&c, GB_F32, LIST(3), src[i]);
        ref_case_output(&c, GB_F32, 0, NULL);
        const gb_ref_tensor *got = ref_case_run(&c);
        cr_expect(ref_case_bound(got, 0) >= fabs(got->value[0]));
        ref_case_end(&c);
    }
    for (int certain = 0; certain < 2; certain++) {
        const double small = certain ? 1 : 0x1p-100;
        ref_case c = reduce_case(GB_OP_REDUCE_PROD, LIST(0));
        ref_case_input(&c, GB_F32, LIST(3), (double[]){small, small, -(double)INFINITY});
        ref_case_output(&c, GB_F32, 0, NULL);
        cr_expect_eq(ref_case_bound(ref_case_run(&c), 0), certain ? 0 : (double)INFINITY);
        ref_case_end(&c);
    }
}

/* Whether a product of finite factors is no number depends on what meets the zero first. */
Test(ref_reduce, products_that_are_no_number)
{
    enum { FACTORS = 12 };
    const struct {
        double large, first, last, bound_of_last;
        bool certain;
    } rows[] = {{0x1p120, 1, 0, 0, false}, {1, (double)NAN, 0, 0, true},
            {0x1p120, (double)NAN, 1, 0, true}, {1, -(double)INFINITY, 0, 0, true},
            {0x1p120, (double)INFINITY, 0, 0, true}, {1, (double)INFINITY, 0, 0x1p-126, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double src[FACTORS], bound[FACTORS] = {0};
        for (int f = 0; f < FACTORS; f++)
            src[f] = rows[i].large;
        src[0] = rows[i].first;
        src[FACTORS - 1] = rows[i].last;
        bound[FACTORS - 1] = rows[i].bound_of_last;
        ref_case c = reduce_case(GB_OP_REDUCE_PROD, LIST(0));
        ref_case_input_bounded(&c, GB_F32, LIST(FACTORS), src, bound);
        ref_case_output(&c, GB_F32, 0, NULL);
        const gb_ref_tensor *got = ref_case_run(&c);
        cr_expect(isnan(got->value[0]), "row %zu: %g", i, got->value[0]);
        cr_expect_eq(ref_case_bound(got, 0), rows[i].certain ? 0 : (double)INFINITY, "row %zu", i);
        ref_case_end(&c);
    }
}

/* Placement ------------------------------------------------------------------------------------ */

static const double counting[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

Test(ref_movement, concat)
{
    for (int64_t axis = -2; axis < 2; axis += 3) { /* -2: rows, 1: columns */
        ref_case c = ref_case_begin(GB_OP_CONCAT);
        ref_case_int(&c, GB_ATTR_AXIS, axis);
        ref_case_input(&c, GB_F32, LIST(2, 2), counting);
        if (axis < 0)
            ref_case_input(&c, GB_F32, LIST(1, 2), counting + 4);
        else
            ref_case_input(&c, GB_F32, LIST(2, 1), counting + 4);
        ref_case_input_bounded(&c, GB_F32, 2, axis < 0 ? (int64_t[]){1, 2} : (int64_t[]){2, 1},
                counting + 6, (double[]){1, 2});
        ref_case_output(&c, GB_F32, 2, axis < 0 ? (int64_t[]){4, 2} : (int64_t[]){2, 4});
        const double columns[] = {0, 1, 4, 6, 2, 3, 5, 7};
        const gb_ref_tensor *got = ref_case_run(&c);
        ref_case_expect(got, 8, axis < 0 ? counting : columns, 0);
        cr_expect_eq(got->bound[0], 0);
        cr_expect_geq(got->bound[axis < 0 ? 6 : 3], 1);
        cr_expect_geq(got->bound[7], 2);
        ref_case_end(&c);
    }
}

Test(ref_movement, transpose)
{
    ref_case c = ref_case_begin(GB_OP_STATIC_TRANSPOSE);
    ref_case_ints(&c, GB_ATTR_ORDER, LIST(2, 0, -2));
    ref_case_input(&c, GB_F32, LIST(2, 3, 2), counting);
    ref_case_output(&c, GB_F32, LIST(2, 2, 3));
    const double expected[] = {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11};
    const gb_ref_tensor *got = ref_case_run(&c);
    ref_case_expect(got, 12, expected, 0);
    ref_case_expect_exact(got);
    ref_case_end(&c);
}

Test(ref_movement, empty_order_reverses_the_axes)
{
    ref_case c = ref_case_begin(GB_OP_STATIC_TRANSPOSE);
    ref_case_ints(&c, GB_ATTR_ORDER, 0, (const int64_t[]){0});
    ref_case_input(&c, GB_F32, LIST(2, 1, 3), counting);
    ref_case_output(&c, GB_F32, LIST(3, 1, 2));
    ref_case_expect(ref_case_run(&c), 6, (double[]){0, 3, 1, 4, 2, 5}, 0);
    ref_case_end(&c);
}

Test(ref_movement, reshape_keeps_the_order)
{
    ref_case c = ref_case_begin(GB_OP_STATIC_RESHAPE);
    ref_case_ints(&c, GB_ATTR_SHAPE, LIST(-1, 3));
    ref_case_flag(&c, GB_ATTR_SPECIAL_ZERO, 0);
    ref_case_input(&c, GB_F32, LIST(2, 3, 2), counting);
    ref_case_output(&c, GB_F32, LIST(4, 3));
    ref_case_expect(ref_case_run(&c), 12, counting, 0);
    ref_case_end(&c);
}

Test(ref_movement, gen_index)
{
    const double expected[2][6] = {{0, 0, 0, 1, 1, 1}, {0, 1, 2, 0, 1, 2}};
    for (int64_t axis = -2; axis < 0; axis++) {
        ref_case c = ref_case_begin(GB_OP_GEN_INDEX);
        ref_case_int(&c, GB_ATTR_AXIS, axis);
        ref_case_input(&c, GB_F32, LIST(2, 3), (double[]){NAN, 1, 2, 3, 4, 5});
        ref_case_output(&c, GB_S32, LIST(2, 3));
        const gb_ref_tensor *got = ref_case_run(&c);
        ref_case_expect(got, 6, expected[axis + 2], 0);
        ref_case_expect_exact(got);
        ref_case_end(&c);
    }
}

Test(ref_movement, nothing_to_move)
{
    ref_case c = ref_case_begin(GB_OP_CONCAT);
    ref_case_int(&c, GB_ATTR_AXIS, 0);
    ref_case_input(&c, GB_F32, LIST(0, 2), (double[]){0});
    ref_case_input(&c, GB_F32, LIST(1, 2), (double[]){5, 6});
    ref_case_output(&c, GB_F32, LIST(1, 2));
    ref_case_expect(ref_case_run(&c), 2, (double[]){5, 6}, 0);
    ref_case_end(&c);
}
