/* Words for tests of shape rules: an op that stands alone, its dims and attributes in one line
 * each. */
#ifndef GB_TESTS_SHAPE_CASE_H
#define GB_TESTS_SHAPE_CASE_H

#include "graph/ops/op_table.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct dims {
    int n;
    int64_t d[GB_MAX_NDIMS];
} dims;

#define COUNT_OF(type, ...) (sizeof((type[]){__VA_ARGS__}) / sizeof(type))
#define D(...)              ((dims){(int)COUNT_OF(int64_t, __VA_ARGS__), {__VA_ARGS__}})
#define SCALAR              ((dims){0, {0}})
#define UNKNOWN             ((dims){GB_UNKNOWN_NDIMS, {0}})

static inline gb_logical_tensor tensor_of(size_t id, dims shape)
{
    gb_logical_tensor tensor = {
            .id = id, .ndims = shape.n, .data_type = GB_F32, .layout_type = GB_LAYOUT_STRIDED};
    for (int i = 0; i < GB_MAX_NDIMS; i++) {
        tensor.dims[i] = i < shape.n ? shape.d[i] : GB_UNKNOWN_DIM;
        tensor.strides[i] = GB_UNKNOWN_DIM;
    }
    return tensor;
}

static inline void output(gb_op *op, dims shape)
{
    gb_logical_tensor tensor = tensor_of(100 + op->n_outputs, shape);
    cr_assert_eq(gb_op_add_output(op, &tensor), GB_SUCCESS);
}

/* An op with these inputs and n_outputs outputs of unknown dims. */
static inline gb_op *make_op(gb_op_kind kind, uint32_t n_outputs, size_t n_inputs, const dims *in)
{
    gb_op *op;
    cr_assert_eq(gb_op_create(&op, 7, kind, ""), GB_SUCCESS);
    for (size_t i = 0; i < n_inputs; i++) {
        gb_logical_tensor tensor = tensor_of(i, in[i]);
        cr_assert_eq(gb_op_add_input(op, &tensor), GB_SUCCESS);
    }
    for (uint32_t i = 0; i < n_outputs; i++)
        output(op, UNKNOWN);
    return op;
}
#define OP(kind, n_outputs, ...)                                                                   \
    make_op(GB_OP_##kind, n_outputs, COUNT_OF(dims, __VA_ARGS__), (const dims[]){__VA_ARGS__})

#define INTS(op, attr, ...)                                                                        \
    cr_assert_eq(gb_op_set_attr_s64(op, GB_ATTR_##attr, COUNT_OF(int64_t, __VA_ARGS__),            \
                         (const int64_t[]){__VA_ARGS__}),                                          \
            GB_SUCCESS)
#define NO_INTS(op, attr)                                                                          \
    cr_assert_eq(gb_op_set_attr_s64(op, GB_ATTR_##attr, 0, (const int64_t[]){0}), GB_SUCCESS)
#define FLOATS(op, attr, ...)                                                                      \
    cr_assert_eq(gb_op_set_attr_f32(op, GB_ATTR_##attr, COUNT_OF(float, __VA_ARGS__),              \
                         (const float[]){__VA_ARGS__}),                                            \
            GB_SUCCESS)
#define FLAG(op, attr, value)                                                                      \
    cr_assert_eq(gb_op_set_attr_bool(op, GB_ATTR_##attr, 1, &(const uint8_t){value}), GB_SUCCESS)
#define TEXT(op, attr, value)                                                                      \
    cr_assert_eq(gb_op_set_attr_str(op, GB_ATTR_##attr, value, strlen(value)), GB_SUCCESS)

/* Fills defaults and infers. */
static inline gb_status infer(gb_op *op)
{
    cr_assert_eq(gb_op_fill_defaults(op), GB_SUCCESS);
    return gb_op_infer_shapes(NULL, op);
}

/* The op infers and output i has these dims. */
static inline void expect_output(gb_op *op, uint32_t i, dims expected, int line)
{
    cr_assert_eq(infer(op), GB_SUCCESS, "line %d: %s", line, gb_last_error());
    const gb_logical_tensor *tensor = gb_op_output(op, i);
    bool equal = tensor->ndims == expected.n;
    for (int k = 0; equal && k < expected.n; k++)
        equal = tensor->dims[k] == expected.d[k];
    cr_assert(equal, "line %d: output %u is %s", line, i, gb_tensor_label(tensor));
}
#define EXPECT(op, i, ...) expect_output(op, i, __VA_ARGS__, __LINE__)

/* EXPECT for output 0, after which the op is no longer needed. */
static inline void expect_only(gb_op *op, dims expected, int line)
{
    expect_output(op, 0, expected, line);
    gb_op_destroy(op);
}
#define GIVES(op, ...) expect_only(op, __VA_ARGS__, __LINE__)

/* Inference fails with the status, and the message holds the word. */
static inline void expect_failure(gb_op *op, const char *word, int line)
{
    cr_assert_eq(infer(op), GB_INVALID_SHAPE, "line %d: %s", line, gb_op_label(op));
    cr_assert(strstr(gb_last_error(), word), "line %d: %s", line, gb_last_error());
    cr_assert(strstr(gb_last_error(), gb_op_label(op)), "line %d: %s", line, gb_last_error());
    gb_op_destroy(op);
}
#define FAILS(op, word) expect_failure(op, word, __LINE__)

#endif
