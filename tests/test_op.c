/* Ops and logical tensors on their own. */
#include "graph/ir/written.h"
#include <criterion/criterion.h>
#include <string.h>

static gb_op *make_op(gb_op_kind kind)
{
    gb_op *op;
    cr_assert_eq(gb_op_create(&op, 7, kind, "name"), GB_SUCCESS);
    return op;
}

Test(op, create_and_read)
{
    gb_op *op = make_op(GB_OP_MATMUL);
    size_t id;
    gb_op_kind kind;
    cr_assert_eq(gb_op_get_id(op, &id), GB_SUCCESS);
    cr_assert_eq(gb_op_get_kind(op, &kind), GB_SUCCESS);
    cr_expect_eq(id, 7);
    cr_expect_eq(kind, GB_OP_MATMUL);
    cr_expect_str_eq(gb_op_get_name(op), "name");
    cr_expect_eq(gb_op_get_input_num(op), 0);
    cr_expect_eq(gb_op_get_output_num(op), 0);
    gb_logical_tensor tensor;
    cr_expect_eq(gb_op_get_input(op, 0, &tensor), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_get_output(op, 0, &tensor), GB_INVALID_ARGUMENTS);
    gb_op_destroy(op);
}

Test(op, null_arguments)
{
    gb_op *op = NULL;
    float f32 = 1;
    cr_expect_eq(gb_op_create(NULL, 1, GB_OP_ABS, ""), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_create(&op, 1, GB_OP_ABS, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_null(op);
    cr_expect_eq(gb_op_destroy(NULL), GB_SUCCESS);
    cr_expect_eq(gb_op_set_attr_f32(NULL, GB_ATTR_ALPHA, 1, &f32), GB_INVALID_ARGUMENTS);
    op = make_op(GB_OP_ELU);
    cr_expect_eq(gb_op_set_attr_f32(op, GB_ATTR_ALPHA, 0, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_add_input(op, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_get_id(op, NULL), GB_INVALID_ARGUMENTS);
    gb_op_destroy(op);
}

Test(op, setters_follow_the_type_of_the_attribute)
{
    gb_op *op = make_op(GB_OP_ELU);
    float f32s[] = {1, 2};
    int64_t s64s[] = {3, 4};
    uint8_t bools[] = {7, 0};
    cr_expect_eq(gb_op_set_attr_f32(op, GB_ATTR_ALPHA, 1, f32s), GB_SUCCESS);
    cr_expect_eq(gb_op_set_attr_f32(op, GB_ATTR_ALPHA, 2, f32s), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_f32(op, GB_ATTR_SCALES, 2, f32s), GB_SUCCESS);
    cr_expect_eq(gb_op_set_attr_f32(op, GB_ATTR_AXIS, 1, f32s), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_s64(op, GB_ATTR_AXIS, 1, s64s), GB_SUCCESS);
    cr_expect_eq(gb_op_set_attr_s64(op, GB_ATTR_AXIS, 0, s64s), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_s64(op, GB_ATTR_AXES, 2, s64s), GB_SUCCESS);
    cr_expect_eq(gb_op_set_attr_s64(op, GB_ATTR_MODE, 1, s64s), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_bool(op, GB_ATTR_USE_DST, 1, bools), GB_SUCCESS);
    cr_expect_eq(gb_op_set_attr_bool(op, GB_ATTR_USE_DST, 2, bools), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_bool(op, GB_ATTR_ALPHA, 1, bools), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_str(op, GB_ATTR_MODE, "gelu_tanh", 9), GB_SUCCESS);
    cr_expect_eq(gb_op_set_attr_str(op, GB_ATTR_MODE, "gelu_tanh", 0), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_str(op, GB_ATTR_AXIS, "1", 1), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_f32(op, GB_ATTR_UNDEF, 1, f32s), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_f32(op, (gb_op_attr)0x21, 1, f32s), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_str(op, GB_ATTR_END, "x", 1), GB_INVALID_ARGUMENTS);

    size_t count;
    const void *value;
    gb_op_attr attrs[8];
    gb_op_get_attrs(op, 0, NULL, &count);
    cr_assert_eq(count, 6);
    cr_assert_eq(gb_op_get_attrs(op, count, attrs, NULL), GB_SUCCESS);
    cr_expect_eq(attrs[0], GB_ATTR_ALPHA);
    cr_expect_eq(attrs[5], GB_ATTR_MODE);
    gb_op_get_attr(op, GB_ATTR_USE_DST, &count, &value);
    cr_expect_eq(*(const uint8_t *)value, 1, "bools are 0 or 1");
    gb_op_get_attr(op, GB_ATTR_AXES, &count, &value);
    cr_expect_eq(count, 2);
    cr_expect_eq(((const int64_t *)value)[1], 4);
    gb_op_get_attr(op, GB_ATTR_GROUPS, &count, &value);
    cr_expect_null(value);
    cr_expect_eq(count, 0);
    gb_op_destroy(op);
}

Test(op, lists_may_be_empty)
{
    gb_op *op;
    const void *values;
    size_t count = 9;
    cr_assert_eq(gb_op_create(&op, 0, GB_OP_WILDCARD, ""), GB_SUCCESS);
    cr_expect_eq(gb_op_set_attr_s64(op, GB_ATTR_ORDER, 0, NULL), GB_SUCCESS);
    cr_expect_eq(gb_op_set_attr_f32(op, GB_ATTR_SCALES, 0, NULL), GB_SUCCESS);
    cr_expect_eq(gb_op_get_attr(op, GB_ATTR_ORDER, &count, &values), GB_SUCCESS);
    cr_expect(values && count == 0);
    cr_expect_eq(gb_op_set_attr_s64(op, GB_ATTR_ORDER, 1, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_s64(op, GB_ATTR_AXIS, 0, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_f32(op, GB_ATTR_ALPHA, 0, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_bool(op, GB_ATTR_USE_DST, 0, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_set_attr_str(op, GB_ATTR_MODE, NULL, 0), GB_INVALID_ARGUMENTS);
    gb_op_destroy(op);
}

Test(op, setting_again_replaces_in_place)
{
    gb_op *op = make_op(GB_OP_GELU);
    const void *value;
    size_t count;
    int64_t axes[] = {1, 2, 3};
    gb_op_set_attr_str(op, GB_ATTR_MODE, "gelu_erf and more", 8);
    gb_op_set_attr_s64(op, GB_ATTR_AXES, 3, axes);
    gb_op_get_attr(op, GB_ATTR_MODE, &count, &value);
    cr_expect_str_eq(value, "gelu_erf");
    cr_expect_eq(count, 8);
    gb_op_set_attr_str(op, GB_ATTR_MODE, "gelu_tanh", 9);
    gb_op_set_attr_s64(op, GB_ATTR_AXES, 0, axes);
    gb_op_attr attrs[2];
    cr_assert_eq(gb_op_get_attrs(op, 2, attrs, &count), GB_SUCCESS);
    cr_expect_eq(count, 2);
    cr_expect_eq(attrs[0], GB_ATTR_MODE);
    gb_op_get_attr(op, GB_ATTR_AXES, &count, &value);
    cr_expect_not_null(value, "an empty list is set");
    cr_expect_eq(count, 0);
    gb_op_destroy(op);
}

Test(op, tensors_must_be_described_well)
{
    gb_op *op = make_op(GB_OP_ABS);
    gb_logical_tensor good, bad;
    int64_t dims[] = {2, 3};
    gb_logical_tensor_init_with_dims(
            &good, 1, GB_F32, 2, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF);
    cr_expect_eq(gb_op_add_input(op, &good), GB_SUCCESS);
    bad = good;
    bad.ndims = 13;
    cr_expect_eq(gb_op_add_input(op, &bad), GB_INVALID_ARGUMENTS);
    bad = good;
    bad.dims[1] = -2; /* -1: unknown */
    cr_expect_eq(gb_op_add_input(op, &bad), GB_INVALID_ARGUMENTS);
    bad = good;
    bad.strides[0] = -3;
    cr_expect_eq(gb_op_add_input(op, &bad), GB_INVALID_ARGUMENTS);
    bad = good;
    bad.data_type = (gb_data_type)7;
    cr_expect_eq(gb_op_add_input(op, &bad), GB_INVALID_ARGUMENTS);
    bad = good;
    bad.id = GB_NO_ID;
    cr_expect_eq(gb_op_add_output(op, &bad), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_get_input_num(op), 1);
    gb_op_destroy(op);
}

Test(logical_tensor, init_leaves_sizes_open)
{
    gb_logical_tensor tensor;
    cr_assert_eq(
            gb_logical_tensor_init(&tensor, 1, GB_F32, 3, GB_LAYOUT_STRIDED, GB_PROPERTY_CONSTANT),
            GB_SUCCESS);
    for (int d = 0; d < 3; d++) {
        cr_expect_eq(tensor.dims[d], GB_UNKNOWN_DIM);
        cr_expect_eq(tensor.strides[d], GB_UNKNOWN_DIM);
    }
    cr_assert_eq(
            gb_logical_tensor_init(&tensor, 1, GB_F32, 0, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF),
            GB_SUCCESS);
    cr_expect_eq(tensor.dims[0], 0);
    cr_expect_eq(gb_logical_tensor_init(
                         &tensor, 1, GB_F32, GB_UNKNOWN_NDIMS, GB_LAYOUT_ANY, GB_PROPERTY_UNDEF),
            GB_SUCCESS);
    cr_expect_eq(gb_logical_tensor_init(&tensor, 1, GB_F32, 13, GB_LAYOUT_ANY, GB_PROPERTY_UNDEF),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_logical_tensor_init(&tensor, 1, GB_F32, -2, GB_LAYOUT_ANY, GB_PROPERTY_UNDEF),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_logical_tensor_init(NULL, 1, GB_F32, 1, GB_LAYOUT_ANY, GB_PROPERTY_UNDEF),
            GB_INVALID_ARGUMENTS);
}

Test(logical_tensor, dims_give_dense_strides)
{
    gb_logical_tensor tensor;
    int64_t dims[] = {2, 0, 4}, open[] = {2, GB_UNKNOWN_DIM, 4}, huge[] = {2, INT64_MAX, INT64_MAX};
    cr_assert_eq(gb_logical_tensor_init_with_dims(
                         &tensor, 1, GB_F32, 3, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF),
            GB_SUCCESS);
    cr_expect_eq(tensor.strides[0], 4, "a dim of 0 counts as 1");
    cr_expect_eq(tensor.strides[1], 4);
    cr_expect_eq(tensor.strides[2], 1);
    cr_assert_eq(gb_logical_tensor_init_with_dims(
                         &tensor, 1, GB_F32, 3, open, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF),
            GB_SUCCESS);
    cr_expect_eq(tensor.strides[2], GB_UNKNOWN_DIM);
    cr_expect_eq(gb_logical_tensor_init_with_dims(
                         &tensor, 1, GB_F32, 3, huge, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_logical_tensor_init_with_dims(
                         &tensor, 1, GB_F32, 3, NULL, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_logical_tensor_init_with_dims(
                         &tensor, 1, GB_F32, 0, NULL, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF),
            GB_SUCCESS);
    cr_expect_eq(gb_logical_tensor_init_with_strides(
                         &tensor, 1, GB_F32, 3, dims, NULL, GB_PROPERTY_UNDEF),
            GB_INVALID_ARGUMENTS);
}

Test(logical_tensor, host_scalars_are_scalars)
{
    gb_logical_tensor tensor;
    static const gb_data_type good[] = {GB_F32, GB_S32, GB_S64}, bad[] = {GB_F16, GB_U8, GB_UNDEF};
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(gb_logical_tensor_init(
                             &tensor, 1, good[i], 0, GB_LAYOUT_STRIDED, GB_PROPERTY_HOST_SCALAR),
                GB_SUCCESS);
        cr_expect_eq(gb_logical_tensor_init(
                             &tensor, 1, bad[i], 0, GB_LAYOUT_STRIDED, GB_PROPERTY_HOST_SCALAR),
                GB_INVALID_ARGUMENTS);
    }
    int64_t one = 1;
    cr_expect_eq(gb_logical_tensor_init_with_dims(
                         &tensor, 1, GB_F32, 1, &one, GB_LAYOUT_STRIDED, GB_PROPERTY_HOST_SCALAR),
            GB_INVALID_ARGUMENTS);
}

static size_t mem_size(gb_data_type type, int ndims, const int64_t *dims, const int64_t *strides)
{
    gb_logical_tensor tensor;
    size_t bytes = 12345;
    cr_assert_eq(gb_logical_tensor_init_with_strides(
                         &tensor, 1, type, ndims, dims, strides, GB_PROPERTY_UNDEF),
            GB_SUCCESS);
    cr_assert_eq(gb_logical_tensor_get_mem_size(&tensor, &bytes), GB_SUCCESS);
    return bytes;
}

Test(logical_tensor, mem_size)
{
    cr_expect_eq(mem_size(GB_F32, 2, (int64_t[]){2, 3}, (int64_t[]){3, 1}), 24);
    cr_expect_eq(mem_size(GB_F32, 2, (int64_t[]){2, 3}, (int64_t[]){8, 1}), 44,
            "padded rows: nothing lies behind the last element");
    cr_expect_eq(mem_size(GB_F32, 2, (int64_t[]){2, 3}, (int64_t[]){3, 2}), 32,
            "rows that lie between each other: the last element is at 3 + 4");
    cr_expect_eq(mem_size(GB_S8, 2, (int64_t[]){1000, 1001}, (int64_t[]){1001, 1000}),
            1 + 999 * 1001 + 1000 * 1000);
    cr_expect_eq(mem_size(GB_F32, 3, (int64_t[]){4, 5, 6}, (int64_t[]){0, 0, 1}), 24, "repeated");
    cr_expect_eq(mem_size(GB_F32, 3, (int64_t[]){4, 0, 6}, (int64_t[]){7, 0, INT64_MAX}), 0);
    cr_expect_eq(mem_size(GB_F32, 2, (int64_t[]){1, 3}, (int64_t[]){100, 1}), 12,
            "the stride of a dim of 1 does not count");
    cr_expect_eq(mem_size(GB_F32, 2, (int64_t[]){0, 3}, (int64_t[]){3, 1}), 0);
    cr_expect_eq(mem_size(GB_F16, 0, NULL, NULL), 2);
    cr_expect_eq(mem_size(GB_S4, 1, (int64_t[]){5}, (int64_t[]){1}), 3, "two 4-bit in a byte");
    cr_expect_eq(mem_size(GB_F32, 1, (int64_t[]){5}, (int64_t[]){GB_UNKNOWN_DIM}), SIZE_MAX);

    gb_logical_tensor tensor;
    size_t bytes = 0;
    int64_t dims[] = {INT64_MAX, 4}, strides[] = {2, 1};
    gb_logical_tensor_init(&tensor, 1, GB_F32, 2, GB_LAYOUT_ANY, GB_PROPERTY_UNDEF);
    gb_logical_tensor_get_mem_size(&tensor, &bytes);
    cr_expect_eq(bytes, SIZE_MAX);
    gb_logical_tensor_init_with_strides(&tensor, 1, GB_F32, 2, dims, strides, GB_PROPERTY_UNDEF);
    cr_expect_eq(gb_logical_tensor_get_mem_size(&tensor, &bytes), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_logical_tensor_get_mem_size(NULL, &bytes), GB_INVALID_ARGUMENTS);
}

Test(logical_tensor, mem_size_of_any_strides)
{
    const int64_t near = INT64_MAX / 8;
    gb_logical_tensor tensor;
    size_t bytes = 0;
    gb_logical_tensor_init_with_strides(
            &tensor, 1, GB_S8, 2, (int64_t[]){near, near}, (int64_t[]){1, 0}, GB_PROPERTY_UNDEF);
    cr_expect_eq(gb_logical_tensor_get_mem_size(&tensor, &bytes), GB_SUCCESS);
    cr_expect_eq(bytes, (size_t)near);
    for (int64_t stride = 1; stride <= 3; stride++) { /* the sum does not fit, each term does */
        tensor.strides[1] = stride * 2;
        cr_expect_eq(gb_logical_tensor_get_mem_size(&tensor, &bytes), GB_INVALID_ARGUMENTS);
    }
}

/* Every pair of elements, the way no library would do it. */
static bool overlaps(int ndims, const int64_t *dims, const int64_t *strides)
{
    static unsigned char used[4096];
    memset(used, 0, sizeof used);
    int64_t count = 1;
    for (int d = 0; d < ndims; d++)
        count *= dims[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, offset = 0;
        for (int d = ndims - 1; d >= 0; d--) {
            offset += rest % dims[d] * strides[d];
            rest /= dims[d];
        }
        if (used[offset]++)
            return true;
    }
    return false;
}

static gb_status check_written(int ndims, const int64_t *dims, const int64_t *strides)
{
    gb_logical_tensor tensor;
    cr_assert_eq(gb_logical_tensor_init_with_strides(
                         &tensor, 1, GB_F32, ndims, dims, strides, GB_PROPERTY_UNDEF),
            GB_SUCCESS);
    return gb_check_written(&tensor);
}

Test(logical_tensor, elements_that_share_memory_are_found)
{
    uint64_t bits = 1;
    int shared = 0;
    for (int trial = 0; trial < 20000; trial++) {
        int64_t dims[4], strides[4];
        int ndims = trial % 5;
        for (int d = 0; d < ndims; d++) {
            bits = bits * 6364136223846793005U + 1442695040888963407U;
            dims[d] = (int64_t)(bits >> 40) % 6;
            strides[d] = (int64_t)(bits >> 48) % (trial % 2 ? 40 : 200);
        }
        bool expected = overlaps(ndims, dims, strides);
        shared += expected;
        cr_assert_eq(
                check_written(ndims, dims, strides) != GB_SUCCESS, expected, "trial %d", trial);
    }
    cr_expect_gt(shared, 1000);
    cr_expect_lt(shared, 18000);
}

Test(logical_tensor, large_outputs_are_judged_at_once)
{
    enum { N = 1000000 };
    cr_expect_eq(check_written(2, (int64_t[]){N, N + 1}, (int64_t[]){N + 1, N}), GB_SUCCESS);
    cr_expect_eq(check_written(2, (int64_t[]){N + 1, N + 2}, (int64_t[]){N + 1, N}),
            GB_INVALID_ARGUMENTS);
    cr_expect(strstr(gb_last_error(), "strides are 1000001x1000000"), "%s", gb_last_error());
    cr_expect_eq(check_written(2, (int64_t[]){N, N}, (int64_t[]){0, 1}), GB_INVALID_ARGUMENTS);
    cr_expect_eq(check_written(2, (int64_t[]){1, N}, (int64_t[]){0, 1}), GB_SUCCESS);
    /* Beyond what is worth looking at: refused. */
    cr_expect_eq(check_written(4, (int64_t[]){N, N, N, N}, (int64_t[]){N + 1, N, N + 3, N + 7}),
            GB_INVALID_ARGUMENTS);
    /* Nothing can be said of what is not known, and nothing of what no memory holds. */
    cr_expect_eq(check_written(2, (int64_t[]){N, GB_UNKNOWN_DIM}, (int64_t[]){0, 0}), GB_SUCCESS);
    cr_expect_eq(
            check_written(2, (int64_t[]){N, 2}, (int64_t[]){INT64_MAX, INT64_MAX}), GB_SUCCESS);
}

Test(logical_tensor, equality)
{
    gb_logical_tensor a, b;
    uint8_t equal;
    int64_t dims[] = {2, 3};
    gb_logical_tensor_init_with_dims(&a, 1, GB_F32, 2, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF);
    b = a;
    gb_logical_tensor_is_equal(&a, &b, &equal);
    cr_expect(equal);
    b.dims[5] = 9;
    gb_logical_tensor_is_equal(&a, &b, &equal);
    cr_expect(equal, "only dims below the rank count");
    b.strides[0] = 4;
    gb_logical_tensor_is_equal(&a, &b, &equal);
    cr_expect_not(equal);
    a.layout_type = b.layout_type = GB_LAYOUT_ANY;
    gb_logical_tensor_is_equal(&a, &b, &equal);
    cr_expect(equal, "strides mean nothing for layout any");
    b.layout_type = GB_LAYOUT_STRIDED;
    gb_logical_tensor_is_equal(&a, &b, &equal);
    cr_expect_not(equal);
    cr_expect_eq(gb_logical_tensor_is_equal(&a, NULL, &equal), GB_INVALID_ARGUMENTS);
}
