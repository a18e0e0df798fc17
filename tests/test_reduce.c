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
        bool extreme = kinds[k] == GB_OP_REDUCE_MAX || kinds[k] == GB_OP_REDUCE_MIN;
        c.unbounded = extreme ? "a maximum beside NaN may be either" : NULL;
        reduce(kinds[k], GB_F32, SHAPE(400, 5), SHAPE(1), false, c);
        reduce(kinds[k], GB_BF16, SHAPE(5, 400), SHAPE(0), false, c);
    }
}

/* Post-ops run on the result. */
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

/* Axes -1, -2, ... */
static double late_value(const kernel_case *c, size_t id, int64_t index, double uniform)
{
    return c->tensors[id].data_type == GB_S32 ? (double)(-1 - index) : uniform;
}

static void late_reduce(gb_op_kind kind, gb_data_type type, int n_axes, bool keep_dims)
{
    static const int64_t src[3] = {4, 4, 4}, kept[3][3] = {{4, 4, 1}, {4, 1, 1}, {1, 1, 1}};
    kernel_case c = {.value = late_value};
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_flag(op, GB_ATTR_KEEP_DIMS, keep_dims);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, 3, src));
    kernel_case_in(&c, op, kernel_case_tensor(&c, GB_S32, 1, &(int64_t){n_axes}));
    size_t dst = kernel_case_tensor(
            &c, type, keep_dims ? 3 : 3 - n_axes, keep_dims ? kept[n_axes - 1] : src);
    c.produced[dst] = true;
    kernel_ok(gb_op_add_output(op, &c.tensors[dst]));
    char name[120];
    snprintf(name, sizeof name, "%s %s, %d axes in a tensor", gb_op_kind_name(kind),
            gb_data_type_name(type), n_axes);
    kernel_case_run(&c, name);
}

/* Which axes of equal size are reduced shows only when the kernel runs. */
KERNEL_TEST(reduce, axes_in_a_tensor)
{
    for (int k = 0; k < KINDS; k++)
        for (int n = 1; n <= 3; n++)
            for (int keep_dims = 0; keep_dims < 2; keep_dims++)
                late_reduce(kinds[k], types[(k + n) % TYPES], n, keep_dims);
}

/* Runs ReduceSum of {3, 5} twice with the axes given; dst is what it is said to be. */
static void run_axes(int n_axes, const int32_t *axes, const int64_t *dst_dims, float *dst)
{
    gb_logical_tensor tensors[3];
    gb_engine *engine;
    gb_stream *stream;
    gb_op *op;
    gb_partition *partition;
    gb_compiled_partition *compiled;
    gb_tensor *handles[3];
    float src[15];
    int32_t copy[3];
    for (int i = 0; i < 15; i++)
        src[i] = (float)i;
    memcpy(copy, axes, (size_t)n_axes * sizeof *axes);
    void *data[] = {src, copy, dst};
    kernel_ok(gb_logical_tensor_init_with_dims(
            &tensors[0], 0, GB_F32, 2, (int64_t[]){3, 5}, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    kernel_ok(gb_logical_tensor_init_with_dims(&tensors[1], 1, GB_S32, 1, &(int64_t){n_axes},
            GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    kernel_ok(gb_logical_tensor_init_with_dims(
            &tensors[2], 2, GB_F32, 1, dst_dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    kernel_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    kernel_ok(gb_stream_create(&stream, engine));
    kernel_ok(gb_op_create(&op, 0, GB_OP_REDUCE_SUM, "sum"));
    for (int i = 0; i < 2; i++)
        kernel_ok(gb_op_add_input(op, &tensors[i]));
    kernel_ok(gb_op_add_output(op, &tensors[2]));
    kernel_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    const gb_logical_tensor *ins[] = {&tensors[0], &tensors[1]}, *outs[] = {&tensors[2]};
    kernel_ok(gb_partition_compile(partition, &compiled, 2, ins, 1, outs, engine));
    for (int i = 0; i < 3; i++)
        kernel_ok(gb_tensor_create(&handles[i], &tensors[i], engine, data[i]));
    const gb_tensor *sources[] = {handles[0], handles[1]};
    gb_tensor *results[] = {handles[2]};
    for (int run = 0; run < 2; run++) {
        memset(dst, 0x5A, (size_t)dst_dims[0] * sizeof *dst);
        kernel_ok(gb_compiled_partition_execute(compiled, stream, 2, sources, 1, results, NULL));
    }
    for (int i = 0; i < 3; i++)
        gb_tensor_destroy(handles[i]);
    gb_compiled_partition_destroy(compiled);
    gb_partition_destroy(partition);
    gb_op_destroy(op);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
}

/* Each execution, and each thread of it, finds the strides of the result anew. */
Test(reduce, axes_in_a_tensor_again)
{
    float dst[5];
    run_axes(1, (const int32_t[]){0}, (const int64_t[]){5}, dst);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(dst[i], (float)(15 + 3 * i), "dst[%d] is %g", i, (double)dst[i]);
}

Test(reduce, axes_in_a_tensor_that_cannot_be_give_nan)
{
    static const int32_t far[] = {7}, huge[] = {INT32_MIN}, other[] = {0};
    float dst[3];
    run_axes(1, (const int32_t[]){1}, (const int64_t[]){3}, dst);
    cr_assert_eq(dst[0], 10.0F);
    cr_assert_eq(dst[1], 35.0F);
    cr_assert_eq(dst[2], 60.0F);
    const int32_t *wrong[] = {far, huge, other};
    for (int w = 0; w < 3; w++) {
        run_axes(1, wrong[w], (const int64_t[]){3}, dst);
        for (int i = 0; i < 3; i++)
            cr_assert(isnan(dst[i]), "case %d: dst[%d] is %g", w, i, (double)dst[i]);
    }
}
