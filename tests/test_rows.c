/* Softmax and norms of the library against the reference, at every instruction set. */
#include "base/machine.h"
#include "kernel_case.h"

static const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};

static void softmax(gb_op_kind kind, gb_data_type type, int ndims, const int64_t *dims,
        int64_t axis, kernel_case settings, const char *mode)
{
    kernel_case c = settings;
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_int(op, GB_ATTR_AXIS, axis);
    if (mode)
        kernel_case_text(op, GB_ATTR_MODE, mode);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    kernel_case_out(&c, op, type);
    if (mode)
        kernel_case_out(&c, op, GB_F32);
    char name[80];
    snprintf(name, sizeof name, "%s %s axis %d length %d", gb_op_kind_name(kind),
            gb_data_type_name(type), (int)axis, (int)dims[axis]);
    kernel_case_run(&c, name);
}

KERNEL_TEST(rows, softmax_lengths)
{
    for (int64_t n = 1; n <= 35; n++)
        for (int t = 0; t < 3; t++) {
            kernel_case wide = {.scale = 8};
            softmax(GB_OP_SOFTMAX, types[t], SHAPE(3, 2, n), 2, wide, "none");
            softmax(GB_OP_LOG_SOFTMAX, types[t], SHAPE(2, n, 5), 1, wide, NULL);
            softmax(GB_OP_SOFTMAX, types[t], SHAPE(2, 5, n), 1, wide, "inf_as_zero");
        }
    for (int64_t n = 36; n <= 135; n += 3) {
        kernel_case wide = {.scale = 8};
        softmax(GB_OP_SOFTMAX, GB_F32, SHAPE(7, n), 1, wide, "inf_as_zero");
        softmax(GB_OP_LOG_SOFTMAX, GB_F32, SHAPE(7, n), 1, wide, NULL);
    }
}

KERNEL_TEST(rows, softmax_sizes)
{
    kernel_case c = {.scale = 4};
    for (int t = 0; t < 3; t++) {
        softmax(GB_OP_SOFTMAX, types[t], SHAPE(9000), 0, c, "none");
        softmax(GB_OP_SOFTMAX, types[t], SHAPE(40, 1500), 1, c, "none");
        softmax(GB_OP_LOG_SOFTMAX, types[t], SHAPE(1100, 40), 0, c, NULL);
        softmax(GB_OP_SOFTMAX, types[t], SHAPE(2, 3, 4, 2, 3, 4), 3, c, "none");
        softmax(GB_OP_LOG_SOFTMAX, types[t], SHAPE(3, 1, 50, 33), 2, c, NULL);
    }
    softmax(GB_OP_SOFTMAX, GB_F32, SHAPE(2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3), 11, c, "none");
}

/* So much for the caches that rows are written past them. */
KERNEL_TEST(rows, softmax_past_the_caches)
{
    kernel_case wide = {.scale = 8}, special = {.scale = 4, .special = true};
    cr_assert(gb_machine_replace(":4096:"));
    for (int64_t n = 16; n <= 256; n += 24) {
        softmax(GB_OP_SOFTMAX, GB_F32, SHAPE(8192 / n, n), 1, wide, "inf_as_zero");
        softmax(GB_OP_LOG_SOFTMAX, GB_F32, SHAPE(8192 / n, n), 1, wide, NULL);
    }
    softmax(GB_OP_SOFTMAX, GB_F32, SHAPE(64, 128), 1, special, "inf_as_zero");
    softmax(GB_OP_SOFTMAX, GB_F32, SHAPE(32, 256), 1, special, "inf_as_zero");
    cr_assert(gb_machine_replace(NULL));
}

KERNEL_TEST(rows, softmax_special)
{
    kernel_case c = {.scale = 4, .special = true};
    softmax(GB_OP_SOFTMAX, GB_F32, SHAPE(400, 5), 1, c, "none");
    softmax(GB_OP_SOFTMAX, GB_F32, SHAPE(5, 400), 0, c, "inf_as_zero");
    softmax(GB_OP_LOG_SOFTMAX, GB_BF16, SHAPE(300, 7), 1, c, NULL);
}

KERNEL_TEST(rows, softmax_masked_rows)
{
    kernel_case c = {.offset = -INFINITY};
    softmax(GB_OP_SOFTMAX, GB_F32, SHAPE(3, 20), 1, c, "inf_as_zero");
    softmax(GB_OP_SOFTMAX, GB_F32, SHAPE(20, 3), 0, c, "inf_as_zero");
    softmax(GB_OP_SOFTMAX, GB_F32, SHAPE(3, 150), 1, c, "inf_as_zero");
    c.unbounded = "a row of -inf has no answer: it must do no harm";
    softmax(GB_OP_SOFTMAX, GB_F32, SHAPE(3, 20), 1, c, "none");
    softmax(GB_OP_LOG_SOFTMAX, GB_F32, SHAPE(3, 20), 1, c, NULL);
}

KERNEL_TEST(rows, softmax_mixed_types)
{
    kernel_case c = {.scale = 3};
    gb_op *op = kernel_case_op(&c, GB_OP_SOFTMAX);
    kernel_case_int(op, GB_ATTR_AXIS, -1);
    kernel_case_in(&c, op, kernel_case_tensor(&c, GB_BF16, SHAPE(7, 37)));
    kernel_case_out(&c, op, GB_F32);
    kernel_case_run(&c, "bf16 to f32");
}

static void norm(gb_op_kind kind, gb_data_type type, gb_data_type affine_type, int ndims,
        const int64_t *dims, int begin, bool affine, kernel_case settings)
{
    kernel_case c = settings;
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_int(op, GB_ATTR_BEGIN_NORM_AXIS, begin);
    kernel_case_float(op, GB_ATTR_EPSILON, 1e-3F);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    bool layer = kind == GB_OP_LAYER_NORM;
    if (layer)
        kernel_case_flag(op, GB_ATTR_USE_AFFINE, affine);
    for (int i = 0; affine && i < (layer ? 2 : 1); i++)
        kernel_case_in(&c, op, kernel_case_tensor(&c, affine_type, ndims - begin, dims + begin));
    kernel_case_out(&c, op, type);
    for (int i = 0; layer && i < 2; i++)
        kernel_case_out(&c, op, affine_type);
    char name[80];
    snprintf(name, sizeof name, "%s %s rank %d from %d, last %d", gb_op_kind_name(kind),
            gb_data_type_name(type), ndims, begin, (int)dims[ndims - 1]);
    kernel_case_run(&c, name);
}

KERNEL_TEST(rows, layer_norm_lengths)
{
    kernel_case c = {.scale = 2, .offset = 1};
    for (int64_t n = 1; n <= 70; n += n < 35 ? 1 : 7) {
        norm(GB_OP_LAYER_NORM, GB_F32, GB_F32, SHAPE(3, 5, n), 2, n % 2, c);
        norm(GB_OP_LAYER_NORM, GB_BF16, n % 3 ? GB_F32 : GB_BF16, SHAPE(3, 5, n), 2, true, c);
        norm(GB_OP_RMS_NORM, GB_F16, GB_F32, SHAPE(3, 5, n), 2, n % 2, c);
    }
}

KERNEL_TEST(rows, layer_norm_axes)
{
    kernel_case c = {.scale = 1};
    for (int begin = 0; begin < 4; begin++)
        for (int t = 0; t < 3; t++) {
            norm(GB_OP_LAYER_NORM, types[t], GB_F32, SHAPE(3, 4, 5, 7), begin, true, c);
            norm(GB_OP_RMS_NORM, types[t], GB_F32, SHAPE(3, 4, 5, 7), begin, true, c);
        }
    norm(GB_OP_LAYER_NORM, GB_F32, GB_F32, SHAPE(50, 3000), 1, true, c);
    norm(GB_OP_LAYER_NORM, GB_F32, GB_F32, SHAPE(7000), 0, true, c);
    norm(GB_OP_LAYER_NORM, GB_F32, GB_F32, SHAPE(6, 0), 1, true, c);
    norm(GB_OP_LAYER_NORM, GB_F32, GB_F32, SHAPE(0, 6), 1, true, c);
}

KERNEL_TEST(rows, layer_norm_offset)
{
    kernel_case c = {.scale = 1, .offset = 4096};
    norm(GB_OP_LAYER_NORM, GB_F32, GB_F32, SHAPE(9, 700), 1, true, c);
}

static void group_norm(gb_data_type type, int ndims, const int64_t *dims, int64_t groups,
        const char *format, bool affine)
{
    kernel_case c = {.scale = 1};
    gb_op *op = kernel_case_op(&c, GB_OP_GROUP_NORM);
    kernel_case_int(op, GB_ATTR_GROUPS, groups);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, format);
    kernel_case_flag(op, GB_ATTR_USE_AFFINE, affine);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    int64_t channels = dims[strcmp(format, "NCX") == 0 ? 1 : ndims - 1];
    for (int i = 0; affine && i < 2; i++)
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, 1, &channels));
    for (int i = 0; i < 3; i++)
        kernel_case_out(&c, op, i ? GB_F32 : type);
    char name[80];
    snprintf(name, sizeof name, "GroupNorm %s %s groups %d", gb_data_type_name(type), format,
            (int)groups);
    kernel_case_run(&c, name);
}

KERNEL_TEST(rows, group_norm)
{
    for (int t = 0; t < 3; t++)
        for (int64_t groups = 1; groups <= 12; groups++) {
            if (12 % groups)
                continue;
            group_norm(types[t], SHAPE(2, 12, 5, 7), groups, "NCX", groups != 3);
            group_norm(types[t], SHAPE(2, 5, 7, 12), groups, "NXC", true);
        }
    group_norm(GB_F32, SHAPE(2, 64, 40, 33), 8, "NCX", true);
    group_norm(GB_F32, SHAPE(3, 8), 4, "NCX", true);
}

/* Post-ops run on the result while it is in L1. */
KERNEL_TEST(rows, epilogue)
{
    for (int kind = 0; kind < 3; kind++) {
        const gb_op_kind kinds[] = {GB_OP_SOFTMAX, GB_OP_LAYER_NORM, GB_OP_LOG_SOFTMAX};
        kernel_case c = {.scale = 2};
        gb_op *op = kernel_case_op(&c, kinds[kind]);
        if (kinds[kind] == GB_OP_LAYER_NORM) {
            kernel_case_flag(op, GB_ATTR_KEEP_STATS, false);
            kernel_case_flag(op, GB_ATTR_USE_AFFINE, false);
        } else {
            kernel_case_int(op, GB_ATTR_AXIS, 1);
        }
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, SHAPE(5, 37, 41)));
        size_t middle = kernel_case_out(&c, op, GB_F32);
        gb_op *add = kernel_case_op(&c, GB_OP_ADD), *cast = kernel_case_op(&c, GB_OP_TYPE_CAST);
        kernel_case_in(&c, add, middle);
        kernel_case_in(&c, add, kernel_case_tensor(&c, GB_F32, SHAPE(37, 1)));
        kernel_case_in(&c, cast, kernel_case_out(&c, add, GB_F32));
        kernel_case_out(&c, cast, GB_BF16);
        kernel_case_run(&c, gb_op_kind_name(kinds[kind]));
    }
}
