/* A single op without a graph: a partition made of it, compiled for two shapes. */
#include "example.h"

static void softmax_of(const gb_partition *partition, gb_engine *engine, gb_stream *stream,
        int64_t rows, int64_t columns)
{
    const int64_t dims[] = {rows, columns};
    gb_logical_tensor src = dense(0, GB_F32, 2, dims, GB_PROPERTY_VARIABLE);
    gb_logical_tensor dst = dense(1, GB_F32, 2, dims, GB_PROPERTY_VARIABLE);
    const gb_logical_tensor *inputs[] = {&src}, *outputs[] = {&dst};
    gb_compiled_partition *compiled;
    CHECK(gb_partition_compile(partition, &compiled, 1, inputs, 1, outputs, engine));
    gb_tensor *in, *out;
    void *x, *y;
    CHECK(gb_tensor_create(&in, &src, engine, GB_MEMORY_ALLOCATE));
    CHECK(gb_tensor_create(&out, &dst, engine, GB_MEMORY_ALLOCATE));
    CHECK(gb_tensor_get_data_handle(in, &x));
    CHECK(gb_tensor_get_data_handle(out, &y));
    fill_random(x, (size_t)(rows * columns), 7);
    CHECK(gb_compiled_partition_execute(
            compiled, stream, 1, (const gb_tensor *[]){in}, 1, (gb_tensor *[]){out}, NULL));
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t c = 0; c < columns; c++)
            sum += (double)((float *)y)[r * columns + c];
        EXPECT(fabs(sum - 1) < 1e-6);
    }
    printf("softmax of %d x %d: every row sums up to 1\n", (int)rows, (int)columns);
    CHECK(gb_tensor_destroy(in));
    CHECK(gb_tensor_destroy(out));
    CHECK(gb_compiled_partition_destroy(compiled));
}

int main(void)
{
    gb_logical_tensor src = inferred(0, GB_F32, 2), dst = inferred(1, GB_F32, 2);
    gb_op *op = make_op(0, GB_OP_SOFTMAX, "softmax", &src, NULL, NULL, &dst);
    CHECK(gb_op_set_attr_s64(op, GB_ATTR_AXIS, 1, &(int64_t){1}));
    gb_partition *partition;
    gb_engine *engine;
    gb_stream *stream;
    CHECK(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    CHECK(gb_op_destroy(op));
    CHECK(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    CHECK(gb_stream_create(&stream, engine));
    softmax_of(partition, engine, stream, 4, 10);
    softmax_of(partition, engine, stream, 3, 1000);
    CHECK(gb_stream_destroy(stream));
    CHECK(gb_engine_destroy(engine));
    CHECK(gb_partition_destroy(partition));
    return 0;
}
