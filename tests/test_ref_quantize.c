/* The reference of conversions: Quantize and Dequantize, TypeCast, Dropout, and tensors read from
 * and written to memory. */
#include "base/dtype.h"
#include "graph/ops/op_table.h"
#include "ref_case.h"

static void set_scales(ref_case *c, int count, const float *scales)
{
    cr_assert_eq(gb_op_set_attr_f32(c->op, GB_ATTR_SCALES, (size_t)count, scales), GB_SUCCESS);
}

typedef struct known {
    gb_data_type type;
    float scale;
    int64_t zp;
    double x, y, bound;
} known;

Test(ref_quantize, known_values)
{
    const known table[] = {
            {GB_S8, 1, 0, 0.5, 0, 0},
            {GB_S8, 1, 0, 1.5, 2, 0},
            {GB_S8, 1, 0, 2.5, 2, 0},
            {GB_S8, 1, 0, -0.5, 0, 0},
            {GB_S8, 1, 0, -2.5, -2, 0},
            {GB_S8, 1, 0, 130, 127, 0},
            {GB_S8, 1, 1, 0.5, 2, 0},
            {GB_S8, 0.5F, 3, -0.75, 2, 0},
            {GB_U8, 1, 0, -2.5, 0, 0},
            {GB_U8, 1, 0, 130, 130, 0},
            {GB_U8, 1, 0, 300, 255, 0},
            {GB_S8, 3, 0, 7.5, 2, 1},
            {GB_S8, 3, 0, 7.6, 3, 0},
            {GB_S8, 1, 0, INFINITY, 127, 0},
            {GB_U8, 1, 0, -INFINITY, 0, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const int64_t one = 1;
        const known *k = &table[i];
        double x = (double)(float)k->x;
        ref_case c = ref_case_begin(GB_OP_QUANTIZE);
        set_scales(&c, 1, &k->scale);
        ref_case_ints(&c, GB_ATTR_ZPS, 1, &k->zp);
        ref_case_input(&c, GB_F32, 1, &one, &x);
        ref_case_output(&c, k->type, 1, &one);
        const gb_ref_tensor *got = ref_case_run(&c);
        cr_expect(got->value[0] == k->y && ref_case_bound(got, 0) == k->bound,
                "row %zu: %g +- %g, expected %g +- %g", i, got->value[0], ref_case_bound(got, 0),
                k->y, k->bound);
        ref_case_end(&c);
    }
}

Test(ref_quantize, uncertain_inputs_flip_only_at_edges)
{
    const int64_t n = 3;
    const double x[3] = {2.4, 2.499, 2.6}, bound[3] = {0.01, 0.01, 2.2}, y[3] = {2, 2, 3},
                 e[3] = {0, 1, 3};
    const float scale = 1;
    ref_case c = ref_case_begin(GB_OP_QUANTIZE);
    set_scales(&c, 1, &scale);
    ref_case_input_bounded(&c, GB_F32, 1, &n, x, bound);
    ref_case_output(&c, GB_S8, 1, &n);
    const gb_ref_tensor *got = ref_case_run(&c);
    ref_case_expect(got, 3, y, 0);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(ref_case_bound(got, i), e[i], "%g", ref_case_bound(got, i));
    ref_case_end(&c);
}

/* Integers have one zero; a zero point that f32 cannot hold is rounded. */
Test(ref_quantize, zeros_and_far_zero_points)
{
    const int64_t n = 2, zp = 16777217;
    const double x[2] = {-0.2, 0}, far[2] = {-16777200, 5};
    const float scale = 1;
    ref_case c = ref_case_begin(GB_OP_QUANTIZE);
    set_scales(&c, 1, &scale);
    ref_case_input(&c, GB_F32, 1, &n, x);
    ref_case_output(&c, GB_S8, 1, &n);
    const gb_ref_tensor *got = ref_case_run(&c);
    cr_expect(got->value[0] == 0 && !signbit(got->value[0]));
    ref_case_end(&c);
    c = ref_case_begin(GB_OP_QUANTIZE);
    set_scales(&c, 1, &scale);
    ref_case_ints(&c, GB_ATTR_ZPS, 1, &zp);
    ref_case_input(&c, GB_F32, 1, &n, far);
    ref_case_output(&c, GB_S8, 1, &n);
    got = ref_case_run(&c);
    cr_expect(got->value[0] == 17 && ref_case_bound(got, 0) == 1);
    cr_expect(got->value[1] == 127 && ref_case_bound(got, 1) == 0);
    ref_case_end(&c);
}

/* Division, and multiplication with the rounded reciprocal, per channel. */
Test(ref_quantize, plain_f32_is_accepted)
{
    enum { CHANNELS = 5, LENGTH = 4000 };
    const int64_t dims[2] = {CHANNELS, LENGTH}, zps[CHANNELS] = {0, 3, -7, 1, 100};
    const float scales[CHANNELS] = {0.1F, 0.03F, 0.5F, 3.0F, 0.7F};
    double *x = ref_case_randoms(1, CHANNELS * LENGTH, 12);
    for (int i = 0; i < CHANNELS * LENGTH; i++)
        x[i] *= 16;
    ref_case c = ref_case_begin(GB_OP_QUANTIZE);
    set_scales(&c, CHANNELS, scales);
    ref_case_ints(&c, GB_ATTR_ZPS, CHANNELS, zps);
    ref_case_int(&c, GB_ATTR_AXIS, -2);
    ref_case_text(&c, GB_ATTR_QTYPE, "per_channel");
    ref_case_input(&c, GB_F32, 2, dims, x);
    ref_case_output(&c, GB_S8, 2, dims);
    const gb_ref_tensor *got = ref_case_run(&c);
    int64_t loose = 0, off = 0;
    for (int i = 0; i < CHANNELS * LENGTH; i++) {
        float s = scales[i / LENGTH], z = (float)zps[i / LENGTH];
        float divided = nearbyintf((float)x[i] / s + z),
              scaled = nearbyintf((float)x[i] * (1.0F / s) + z);
        double bound = ref_case_bound(got, i);
        divided = fminf(fmaxf(divided, -128), 127);
        scaled = fminf(fmaxf(scaled, -128), 127);
        cr_expect(fabs((double)divided - got->value[i]) <= bound &&
                  fabs((double)scaled - got->value[i]) <= bound);
        loose += bound > 0;
        off += bound == 0 || got->value[i] + 1 > 127; /* one unit off is seen */
    }
    cr_expect(
            loose < CHANNELS * LENGTH / 50, "%lld elements may be either of two", (long long)loose);
    cr_expect(off > CHANNELS * LENGTH * 49 / 50);
    ref_case_end(&c);
    free(x);
}

Test(ref_quantize, f8_is_rounded_twice)
{
    enum { N = 3000 };
    const int64_t n = N;
    double *x = ref_case_randoms(2, N, 24);
    const float scale = 0.01F;
    const gb_data_type types[2] = {GB_F8_E4M3, GB_F8_E5M2};
    for (int t = 0; t < 2; t++) {
        ref_case c = ref_case_begin(GB_OP_QUANTIZE);
        set_scales(&c, 1, &scale);
        ref_case_input(&c, GB_F32, 1, &n, x);
        ref_case_output(&c, types[t], 1, &n);
        const gb_ref_tensor *got = ref_case_run(&c);
        for (int i = 0; i < N; i++) {
            uint8_t byte;
            gb_element_set(types[t], &byte, 0, (double)((float)x[i] / scale));
            double stored = gb_element_get(types[t], &byte, 0);
            cr_expect(fabs(stored - got->value[i]) <= ref_case_bound(got, i));
            cr_expect(ref_case_bound(got, i) <= 0.14 * fabs(got->value[i]) + 0.002);
        }
        ref_case_end(&c);
    }
    free(x);
}

Test(ref_quantize, dequantize_static_and_dynamic)
{
    const int64_t dims[2] = {2, 3}, axis_length = 3, one = 1, zps[3] = {1, 0, -2};
    const double x[6] = {1, 2, 3, -4, 5, -6}, zp_values[3] = {1, 0, -2},
                 scale_values[3] = {0.5, 2, 0.25};
    const double y[6] = {0, 4, 1.25, -2.5, 10, -1}, by_tensor[6] = {0, 0.5, 1, -2.5, 2, -3.5};
    const float scales[3] = {0.5F, 2, 0.25F};
    ref_case c = ref_case_begin(GB_OP_DEQUANTIZE);
    set_scales(&c, 3, scales);
    ref_case_ints(&c, GB_ATTR_ZPS, 3, zps);
    ref_case_text(&c, GB_ATTR_QTYPE, "per_channel");
    ref_case_input(&c, GB_S8, 2, dims, x);
    ref_case_output(&c, GB_F32, 2, dims);
    ref_case_expect(ref_case_run(&c), 6, y, 0);
    ref_case_end(&c);
    for (int channel = 0; channel < 2; channel++) {
        c = ref_case_begin(GB_OP_DYNAMIC_DEQUANTIZE);
        ref_case_text(&c, GB_ATTR_QTYPE, channel ? "per_channel" : "per_tensor");
        ref_case_input(&c, GB_S8, 2, dims, x);
        ref_case_input(&c, GB_F32, 1, channel ? &axis_length : &one, scale_values);
        ref_case_input(&c, GB_S8, 1, channel ? &axis_length : &one, zp_values);
        ref_case_output(&c, GB_F32, 2, dims);
        const gb_ref_tensor *got = ref_case_run(&c);
        ref_case_expect(got, 6, channel ? y : by_tensor, 0);
        ref_case_expect_exact(got);
        ref_case_end(&c);
    }
}

Test(ref_quantize, groups)
{
    const int64_t dims[2] = {2, 6}, groups[2] = {2, 2}, shape[2] = {1, 3};
    double x[12], y[12];
    const double scales[4] = {1, 2, 0.5, 4}, zps[4] = {0, 1, 2, -1};
    for (int i = 0; i < 12; i++) {
        x[i] = i - 6;
        y[i] = (x[i] - zps[i / 3]) * scales[i / 3];
    }
    ref_case c = ref_case_begin(GB_OP_DYNAMIC_DEQUANTIZE);
    ref_case_text(&c, GB_ATTR_QTYPE, "per_group");
    ref_case_ints(&c, GB_ATTR_GROUP_SHAPE, 2, shape);
    ref_case_input(&c, GB_S4, 2, dims, x);
    ref_case_input(&c, GB_F16, 2, groups, scales);
    ref_case_input(&c, GB_S4, 2, groups, zps);
    ref_case_output(&c, GB_F16, 2, dims);
    ref_case_expect(ref_case_run(&c), 12, y, 0);
    ref_case_end(&c);
}

/* Weights of a grouped transposed convolution: the channel of a scale counts over all groups. */
Test(ref_quantize, grouped_weights)
{
    const int64_t src_dims[3] = {1, 4, 1}, dims[3] = {4, 1, 1}, zero = 0, one = 1, groups = 2,
                  axis = 1;
    const float scales[2] = {2, 16};
    const double ones[4] = {1, 1, 1, 1}, expected[4] = {2, 2, 16, 16};
    ref_case c = ref_case_begin(GB_OP_DEQUANTIZE);
    set_scales(&c, 2, scales);
    ref_case_int(&c, GB_ATTR_AXIS, axis);
    ref_case_text(&c, GB_ATTR_QTYPE, "per_channel");
    ref_case_input(&c, GB_S8, 3, dims, ones);
    ref_case_output(&c, GB_F32, 3, dims);
    gb_op *user;
    gb_logical_tensor src, weights, dst;
    cr_assert_eq(gb_op_create(&user, 2, GB_OP_CONV_TRANSPOSE, "user"), GB_SUCCESS);
    const gb_op_attr lists[] = {
            GB_ATTR_STRIDES, GB_ATTR_DILATIONS, GB_ATTR_PADS_BEGIN, GB_ATTR_PADS_END};
    for (int i = 0; i < 4; i++)
        cr_assert_eq(gb_op_set_attr_s64(user, lists[i], 1, i < 2 ? &one : &zero), GB_SUCCESS);
    cr_assert_eq(gb_op_set_attr_s64(user, GB_ATTR_GROUPS, 1, &groups), GB_SUCCESS);
    cr_assert_eq(gb_op_set_attr_str(user, GB_ATTR_WEIGHTS_FORMAT, "IOX", 3), GB_SUCCESS);
    cr_assert_eq(gb_op_set_attr_str(user, GB_ATTR_DATA_FORMAT, "NCX", 3), GB_SUCCESS);
    gb_logical_tensor_init_with_dims(
            &src, 50, GB_F32, 3, src_dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE);
    gb_logical_tensor_init_with_dims(
            &weights, 100, GB_F32, 3, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE);
    gb_logical_tensor_init(&dst, 60, GB_F32, 3, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE);
    gb_op_add_input(user, &src);
    gb_op_add_input(user, &weights);
    gb_op_add_output(user, &dst);
    size_t id = 1;
    cr_assert_eq(gb_graph_create(&c.graph, GB_ENGINE_CPU), GB_SUCCESS);
    cr_assert_eq(gb_graph_add_op(c.graph, c.op), GB_SUCCESS, "%s", gb_last_error());
    cr_assert_eq(gb_graph_add_op(c.graph, user), GB_SUCCESS, "%s", gb_last_error());
    cr_assert_eq(gb_graph_finalize(c.graph), GB_SUCCESS, "%s", gb_last_error());
    cr_assert_eq(gb_ref_execute(c.graph, 1, &id, c.store), GB_SUCCESS, "%s", gb_last_error());
    ref_case_expect(gb_ref_store_get(c.store, 100), 4, expected, 0);
    gb_op_destroy(user);
    ref_case_end(&c);
}

Test(ref_quantize, parameters_that_do_not_fit)
{
    const int64_t dims[2] = {2, 3}, groups[2] = {2, 2}, shape[2] = {1, 3};
    const double x[6] = {0};
    ref_case c = ref_case_begin(GB_OP_DYNAMIC_DEQUANTIZE);
    ref_case_text(&c, GB_ATTR_QTYPE, "per_group");
    ref_case_ints(&c, GB_ATTR_GROUP_SHAPE, 2, shape);
    ref_case_input(&c, GB_S8, 2, dims, x);
    ref_case_input(&c, GB_F32, 2, groups, x);
    ref_case_output(&c, GB_F32, 2, dims);
    cr_expect_neq(ref_case_try(&c), GB_SUCCESS);
    ref_case_end(&c);
}

Test(ref_quantize, type_cast_is_exact_to_the_last_bit)
{
    /* Half way between two numbers, of which the even one is taken; no bf16 number; too small. */
    const int64_t n = 5;
    const double x[5] = {1, 1 + 0x1p-8, 1 + 0x3p-8, 3.0e38F, 1e-40};
    const double bf16[5] = {1, 1, 1 + 0x1p-6, 0x1.c4p127, 1e-40};
    ref_case c = ref_case_begin(GB_OP_TYPE_CAST);
    ref_case_input(&c, GB_F32, 1, &n, x);
    ref_case_output(&c, GB_BF16, 1, &n);
    const gb_ref_tensor *got = ref_case_run(&c);
    ref_case_expect(got, 5, bf16, 0);
    for (int64_t i = 0; i < 4; i++)
        cr_expect_eq(ref_case_bound(got, i), 0.0);
    cr_expect(ref_case_bound(got, 4) >= 1e-40);
    ref_case_end(&c);
}

static ref_case dropout(int64_t n, const double *x, double seed, double offset, double p)
{
    ref_case c = ref_case_begin(GB_OP_DROPOUT);
    const int64_t one = 1;
    ref_case_input(&c, GB_F32, 1, &n, x);
    ref_case_input(&c, GB_S64, 1, &one, &seed);
    ref_case_input(&c, GB_S64, 1, &one, &offset);
    ref_case_input(&c, GB_F32, 1, &one, &p);
    ref_case_output(&c, GB_F32, 1, &n);
    ref_case_output(&c, GB_U8, 1, &n);
    return c;
}

Test(ref_quantize, dropout_draws)
{
    const double x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, mask[8] = {0, 0, 1, 1, 1, 0, 1, 1};
    const double kept[8] = {0, 0, 6, 8, 10, 0, 14, 16};
    ref_case c = dropout(8, x, 123456, 1, 0.5);
    const gb_ref_tensor *got = ref_case_run(&c);
    ref_case_expect(got, 8, kept, 0);
    ref_case_expect_exact(got);
    ref_case_expect(gb_ref_store_get(c.store, 101), 8, mask, 0);
    ref_case_end(&c);
    /* The draws of the 32-bit path are 1332900479 (4 times), 1149553868 (4 times), 106969201. */
    const double draws[3] = {1332900479, 1149553868, 106969201};
    for (int i = 0; i < 3; i++) {
        for (int above = 0; above < 2; above++) {
            c = dropout(9, x, 123456, 0,
                    (double)(float)((draws[i] + (above ? 1000 : -1000)) / 4294967295.0));
            ref_case_run(&c);
            cr_expect_eq(
                    gb_ref_store_get(c.store, 101)->value[i * 4], above ? 0.0 : 1.0, "draw %d", i);
            ref_case_end(&c);
        }
    }
}

Test(ref_quantize, dropout_extremes)
{
    const double x[4] = {1, -2, INFINITY, 4}, zeros[4] = {0};
    ref_case c = dropout(4, x, 7, 3, 0);
    ref_case_expect(ref_case_run(&c), 4, x, 0);
    ref_case_end(&c);
    c = dropout(4, x, -7, 3, 1);
    ref_case_expect(ref_case_run(&c), 4, zeros, 0);
    ref_case_end(&c);
}

/* Elements of every type go to strided memory and come back. */
Test(ref_quantize, tensors_in_memory)
{
    const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16, GB_F8_E5M2, GB_F8_E4M3, GB_S32, GB_S8,
            GB_U8, GB_S4, GB_U4, GB_BOOLEAN, GB_S64};
    const int64_t dims[3] = {2, 3, 4}, strides[3] = {1, 8, 30};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        gb_ref_tensor tensor = {.count = 24, .value = malloc(24 * sizeof(double))}, back;
        gb_logical_tensor layout;
        uint8_t memory[2048] = {0};
        for (int i = 0; i < 24; i++)
            tensor.value[i] = types[t] == GB_BOOLEAN ? i % 2 : i % 8;
        cr_assert_eq(gb_logical_tensor_init_with_strides(
                             &layout, 5, types[t], 3, dims, strides, GB_PROPERTY_VARIABLE),
                GB_SUCCESS);
        gb_ref_tensor_write(&tensor, &layout, memory);
        cr_assert_eq(gb_ref_tensor_read(&back, &layout, memory), GB_SUCCESS);
        ref_case_expect(&back, 24, tensor.value, 0);
        cr_expect_eq(gb_element_get(types[t], memory, 1 * 1 + 2 * 8 + 3 * 30), tensor.value[23]);
        gb_ref_tensor_free(&tensor);
        gb_ref_tensor_free(&back);
    }
}

Test(ref_quantize, layouts_that_cannot_be_read)
{
    const int64_t dims[1] = {4};
    const float memory[4] = {0};
    gb_logical_tensor layout;
    gb_ref_tensor tensor;
    cr_assert_eq(gb_logical_tensor_init_with_dims(
                         &layout, 1, GB_F32, 1, dims, GB_LAYOUT_ANY, GB_PROPERTY_VARIABLE),
            GB_SUCCESS);
    cr_expect_eq(gb_ref_tensor_read(&tensor, &layout, memory), GB_INVALID_ARGUMENTS);
    layout.layout_type = GB_LAYOUT_STRIDED;
    layout.dims[0] = GB_UNKNOWN_DIM;
    cr_expect_eq(gb_ref_tensor_read(&tensor, &layout, memory), GB_INVALID_ARGUMENTS);
    layout.dims[0] = 4;
    cr_expect_eq(gb_ref_tensor_read(&tensor, &layout, NULL), GB_INVALID_ARGUMENTS);
}

Test(ref_quantize, store_keeps_the_last)
{
    gb_ref_store *store;
    cr_assert_eq(gb_ref_store_create(&store), GB_SUCCESS);
    for (size_t id = 100; id-- > 0;) {
        for (int again = 0; again < 2; again++) {
            gb_ref_tensor tensor = {
                    .tensor.id = id * 7 % 101, .count = 1, .value = malloc(sizeof(double))};
            tensor.value[0] = (double)(id + 1000 * (size_t)again);
            cr_assert_eq(gb_ref_store_put(store, &tensor), GB_SUCCESS);
        }
    }
    for (size_t id = 0; id < 100; id++)
        cr_expect_eq(gb_ref_store_get(store, id * 7 % 101)->value[0], (double)(id + 1000));
    gb_ref_store_drop(store, 7);
    cr_expect_null(gb_ref_store_get(store, 7));
    cr_expect_null(gb_ref_store_get(store, 5000));
    gb_ref_store_destroy(store);
}
