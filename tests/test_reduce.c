/* Reductions of the library against the reference, at every instruction set. */
#include "kernel_case.h"

static const gb_op_kind kinds[] = {GB_OP_REDUCE_SUM, GB_OP_REDUCE_MEAN, GB_OP_REDUCE_PROD,
        GB_OP_REDUCE_MAX, GB_OP_REDUCE_MIN, GB_OP_REDUCE_L1, GB_OP_REDUCE_L2};
static const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};
enum { KINDS = 7, TYPES = 3 };

static void reduce(gb_op_kind kind, gb_data_type type, int ndims, const int64_t *dims, int n_axes,
        const int64_t *axes, bool keep_dims, kernel_case settings)
{
    kernel_case c = settings;
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_ints(op, GB_ATTR_AXES, n_axes, axes);
    kernel_case_flag(op, GB_ATTR_KEEP_DIMS, keep_dims);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    kernel_case_out(&c, op, type);
    char name[120];
    snprintf(name, sizeof name, "%s %s rank %d dims %d %d axis %d of %d", gb_op_kind_name(kind),
            gb_data_type_name(type), ndims, (int)dims[0], (int)dims[ndims - 1],
            n_axes ? (int)axes[0] : -1, n_axes);
    kernel_case_run(&c, name);
}

KERNEL_TEST(reduce, lengths)
{
    kernel_case c = {.scale = 1};
    for (int64_t n = 1; n <= 70; n++)
        for (int k = 0; k < KINDS; k++) {
            gb_data_type type = types[(n + k) % TYPES];
            reduce(kinds[k], type, SHAPE(3, n), SHAPE(1), false, c);
            reduce(kinds[k], type, SHAPE(n, 19), SHAPE(0), true, c);
            reduce(kinds[k], type, SHAPE(2, n, 3), SHAPE(1), true, c);
        }
}

/* All sets of axes of a tensor of rank 4. */
KERNEL_TEST(reduce, axes)
{
    kernel_case c = {.scale = 1};
    for (int set = 0; set < 16; set++)
        for (int k = 0; k < KINDS; k++) {
            int64_t axes[4];
            int n = 0;
            for (int d = 0; d < 4; d++)
                if (set & (1 << d))
                    axes[n++] = k % 2 ? d : d - 4;
            reduce(kinds[k], types[(set + k) % TYPES], SHAPE(3, 5, 4, 18), n, axes, set % 3, c);
        }
}

/* Few results of many elements: the reduced set is split between threads. */
KERNEL_TEST(reduce, large)
{
    kernel_case c = {.scale = 1, .offset = 0.75, .dense_only = true};
    for (int k = 0; k < KINDS; k++) {
        if (kinds[k] == GB_OP_REDUCE_PROD)
            continue;
        reduce(kinds[k], GB_F32, SHAPE(1 << 20), SHAPE(0), false, c);
        reduce(kinds[k], GB_BF16, SHAPE(3000, 100), SHAPE(0), false, c);
        reduce(kinds[k], GB_F32, SHAPE(70, 20, 300), SHAPE(0, 2), false, c);
        reduce(kinds[k], GB_F32, SHAPE(60, 40, 70), SHAPE(0, 1), true, c);
        reduce(kinds[k], GB_F16, SHAPE(20000, 3), SHAPE(1), true, c);
    }
}

KERNEL_TEST(reduce, large_layouts)
{
    kernel_case c = {.scale = 1, .offset = 0.75};
    reduce(GB_OP_REDUCE_SUM, GB_F32, SHAPE(300, 1000), SHAPE(0, 1), false, c);
    reduce(GB_OP_REDUCE_MEAN, GB_BF16, SHAPE(90, 7, 300), SHAPE(0, 2), false, c);
}

KERNEL_TEST(reduce, empty_sets)
{
    kernel_case c = {.scale = 1};
    for (int k = 0; k < KINDS; k++)
        for (int t = 0; t < TYPES; t++) {
            reduce(kinds[k], types[t], SHAPE(3, 0, 5), SHAPE(1), false, c);
            reduce(kinds[k], types[t], SHAPE(3, 0), SHAPE(1), true, c);
            reduce(kinds[k], types[t], SHAPE(0, 3), SHAPE(1), true, c);
        }
}

KERNEL_TEST(reduce, special)
{
    kernel_case c = {.scale = 1, .special = true};
    for (int k = 0; k < KINDS; k++) {
        if (kinds[k] == GB_OP_REDUCE_PROD)
            continue; /* underflow on the way to infinity depends on the order */
        reduce(kinds[k], GB_F32, SHAPE(400, 5), SHAPE(1), false, c);
        reduce(kinds[k], GB_BF16, SHAPE(5, 400), SHAPE(0), false, c);
    }
}

/* Links run on the result. */
KERNEL_TEST(reduce, epilogue)
{
    for (int keep = 0; keep < 2; keep++) {
        kernel_case c = {.scale = 2};
        gb_op *op = kernel_case_op(&c, GB_OP_REDUCE_SUM), *add = kernel_case_op(&c, GB_OP_ADD);
        gb_op *relu = kernel_case_op(&c, GB_OP_RELU);
        kernel_case_ints(op, GB_ATTR_AXES, SHAPE(1));
        kernel_case_flag(op, GB_ATTR_KEEP_DIMS, keep);
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, SHAPE(6, 30, 5, 7)));
        size_t sum = kernel_case_out(&c, op, GB_F32);
        kernel_case_in(&c, add, sum);
        kernel_case_in(&c, add, kernel_case_tensor(&c, GB_F32, SHAPE(5, 1)));
        kernel_case_in(&c, relu, kernel_case_out(&c, add, GB_F32));
        kernel_case_out(&c, relu, GB_F32);
        kernel_case_run(&c, "sum, add, relu");
    }
}
