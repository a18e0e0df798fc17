/* Legal cases at the edges of what ops allow: statistics under other dims, rank 12, subnormal
 * maxima, zero points that f32 cannot hold. */
#include "kernel_case.h"

static size_t given_output(
        kernel_case *c, gb_op *op, gb_data_type type, int ndims, const int64_t *dims)
{
    size_t id = kernel_case_tensor(c, type, ndims, dims);
    c->produced[id] = true;
    kernel_ok(gb_op_add_output(op, &c->tensors[id]));
    return id;
}

/* Variances are positive, other values of any sign. */
static double norm_value(const kernel_case *c, size_t id, int64_t index, double uniform)
{
    (void)c;
    (void)index;
    return id == 3 ? fabs(uniform) + 0.25 : uniform;
}

static void layer_norm(gb_data_type type, int stats_ndims, const int64_t *stats)
{
    kernel_case c = {0};
    gb_op *op = kernel_case_op(&c, GB_OP_LAYER_NORM);
    kernel_case_flag(op, GB_ATTR_USE_AFFINE, false);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, SHAPE(3, 5, 17)));
    kernel_case_out(&c, op, type);
    given_output(&c, op, GB_F32, stats_ndims, stats);
    given_output(&c, op, GB_F32, stats_ndims, stats);
    kernel_case_run(&c, "LayerNorm with statistics under other dims");
}

KERNEL_TEST(corners, layer_norm_statistics)
{
    layer_norm(GB_F32, SHAPE(3, 5));
    layer_norm(GB_F32, SHAPE(3, 5, 1));
    layer_norm(GB_BF16, SHAPE(1, 3, 1, 5));
    layer_norm(GB_F32, SHAPE(15));
    layer_norm(GB_F16, SHAPE(5, 3));
    layer_norm(GB_F32, SHAPE(1, 5, 3, 1));
}

static void layer_norm_backward(int64_t axis, int stats_ndims, const int64_t *stats,
        int affine_ndims, const int64_t *affine)
{
    kernel_case c = {.value = norm_value};
    gb_op *op = kernel_case_op(&c, GB_OP_LAYER_NORM_BACKWARD);
    kernel_case_int(op, GB_ATTR_BEGIN_NORM_AXIS, axis);
    for (int i = 0; i < 2; i++)
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, SHAPE(3, 5, 4, 6)));
    for (int i = 0; i < 2; i++)
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, stats_ndims, stats));
    for (int i = 0; i < 2; i++)
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, affine_ndims, affine));
    for (int i = 0; i < 3; i++)
        kernel_case_out(&c, op, GB_F32);
    kernel_case_run(&c, "LayerNormBackward with statistics under other dims");
}

KERNEL_TEST(corners, layer_norm_backward_parts)
{
    layer_norm_backward(2, SHAPE(3, 5), SHAPE(4, 6));
    layer_norm_backward(2, SHAPE(15), SHAPE(24));
    layer_norm_backward(2, SHAPE(5, 3), SHAPE(6, 4));
    layer_norm_backward(2, SHAPE(5, 1, 3), SHAPE(2, 2, 3, 2));
    layer_norm_backward(-1, SHAPE(4, 5, 3), SHAPE(1, 6));
}

/* The axis of channels is split in two; where layouts are mixed, no two axes can be merged. */
KERNEL_TEST(corners, group_norm_of_rank_12)
{
    static const char *const formats[] = {"NCX", "NXC"};
    for (int f = 0; f < 2; f++)
        for (int64_t groups = 1; groups <= 4; groups *= 2) {
            kernel_case c = {0};
            gb_op *op = kernel_case_op(&c, GB_OP_GROUP_NORM);
            kernel_case_int(op, GB_ATTR_GROUPS, groups);
            kernel_case_text(op, GB_ATTR_DATA_FORMAT, formats[f]);
            kernel_case_in(&c, op,
                    kernel_case_tensor(&c, GB_F32, SHAPE(2, 4, 2, 2, 2, 2, 2, 2, 1, 2, 2, 4)));
            for (int i = 0; i < 2; i++)
                kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, SHAPE(4)));
            for (int i = 0; i < 3; i++)
                kernel_case_out(&c, op, GB_F32);
            kernel_case_run(&c, formats[f]);
        }
}

/* Both of the last axes are split. */
KERNEL_TEST(corners, groups_of_codes_of_rank_12)
{
    static const int64_t groups[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3};
    kernel_case c = {0};
    gb_op *op = kernel_case_op(&c, GB_OP_DYNAMIC_DEQUANTIZE);
    kernel_case_text(op, GB_ATTR_QTYPE, "per_group");
    kernel_ok(gb_op_set_attr_s64(op, GB_ATTR_GROUP_SHAPE, 12, groups));
    kernel_case_in(
            &c, op, kernel_case_tensor(&c, GB_S8, SHAPE(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 6)));
    kernel_case_in(
            &c, op, kernel_case_tensor(&c, GB_F32, SHAPE(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)));
    kernel_case_out(&c, op, GB_F32);
    kernel_case_run(&c, "groups of codes of rank 12");
}

static double subnormal_value(const kernel_case *c, size_t id, int64_t index, double uniform)
{
    static const double values[] = {0x1p-140, 0x1p-133, -0x1p-133, 0, -0.0, 0x1p-127, 0x3p-131};
    bool is_src = id == 0;
    (void)c;
    (void)index;
    return is_src ? values[(int)((uniform + 1) * 3.49)] : uniform;
}

KERNEL_TEST(corners, max_pool_of_subnormals)
{
    static const gb_data_type types[] = {GB_F32, GB_BF16};
    for (int t = 0; t < 4; t++) {
        gb_data_type type = types[t % 2];
        bool backward = t >= 2;
        kernel_case c = {.value = subnormal_value};
        gb_op *op = kernel_case_op(&c, backward ? GB_OP_MAX_POOL_BACKWARD : GB_OP_MAX_POOL);
        kernel_case_ints(op, GB_ATTR_STRIDES, 2, (int64_t[]){2, 1});
        kernel_case_ints(op, GB_ATTR_KERNEL, 2, (int64_t[]){3, 2});
        kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 2, (int64_t[]){1, 0});
        kernel_case_ints(op, GB_ATTR_PADS_END, 2, (int64_t[]){1, 0});
        kernel_case_in(&c, op, kernel_case_tensor(&c, type, SHAPE(2, 9, 8, 19)));
        if (backward)
            kernel_case_in(&c, op, kernel_case_tensor(&c, type, SHAPE(2, 5, 7, 19)));
        kernel_case_out(&c, op, type);
        kernel_case_run(&c, backward ? "MaxPoolBackward" : "MaxPool");
    }
}

static double zero_point_value(const kernel_case *c, size_t id, int64_t index, double uniform)
{
    static const double points[] = {16777217, -16777219, 2147483647, -2147483647.0 - 1, 33554435};
    if (id == 1)
        return 0.5;
    if (id == 2)
        return points[index % 5];
    return floor(uniform * 128) + (c->tensors[0].data_type == GB_U8 ? 128 : 0);
}

/* src - zero point is exact before it becomes f32. */
KERNEL_TEST(corners, zero_points_beyond_f32)
{
    static const gb_data_type types[] = {GB_S8, GB_U8};
    for (int t = 0; t < 4; t++) {
        bool is_static = t >= 2;
        kernel_case c = {.value = zero_point_value};
        gb_op *op = kernel_case_op(&c, is_static ? GB_OP_DEQUANTIZE : GB_OP_DYNAMIC_DEQUANTIZE);
        kernel_case_text(op, GB_ATTR_QTYPE, "per_channel");
        kernel_case_int(op, GB_ATTR_AXIS, 1);
        kernel_case_in(&c, op, kernel_case_tensor(&c, types[t % 2], SHAPE(3, 5, 33)));
        if (is_static) {
            const float scales[] = {1, 0.5F, 0.25F, 1, 2};
            kernel_ok(gb_op_set_attr_f32(op, GB_ATTR_SCALES, 5, scales));
            kernel_case_ints(op, GB_ATTR_ZPS, 5,
                    (int64_t[]){16777217, -16777219, 2147483647, -2147483648, 33554435});
        } else {
            kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, SHAPE(5)));
            kernel_case_in(&c, op, kernel_case_tensor(&c, GB_S32, SHAPE(5)));
        }
        kernel_case_out(&c, op, GB_F32);
        kernel_case_run(&c, is_static ? "Dequantize" : "DynamicDequantize");
    }
}
