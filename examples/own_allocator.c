/* The application's allocator: every block that the library takes for tensors and scratch comes
 * from it, and goes back. */
#include "example.h"

#include <stdatomic.h>

/* Callbacks may come from any thread. */
static atomic_size_t taken, given_back;

static void *take(size_t size, size_t alignment)
{
    if (alignment == 0)
        alignment = 64;
    taken++;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void give_back(void *memory)
{
    given_back++;
    free(memory);
}

int main(void)
{
    const int64_t dims[] = {64, 512};
    gb_allocator *allocator;
    gb_engine *engine;
    gb_stream *stream;
    CHECK(gb_allocator_create(&allocator, take, give_back));
    CHECK(gb_engine_create_with_allocator(&engine, GB_ENGINE_CPU, 0, allocator));
    CHECK(gb_allocator_destroy(allocator)); /* the engine keeps the callbacks */
    CHECK(gb_stream_create(&stream, engine));

    gb_logical_tensor src = dense(0, GB_F32, 2, dims, GB_PROPERTY_VARIABLE);
    gb_logical_tensor dst = dense(1, GB_F32, 2, dims, GB_PROPERTY_VARIABLE);
    gb_op *op = make_op(0, GB_OP_SOFTMAX, "softmax", &src, NULL, NULL, &dst);
    CHECK(gb_op_set_attr_s64(op, GB_ATTR_AXIS, 1, &(int64_t){0}));
    gb_partition *partition;
    gb_compiled_partition *compiled;
    CHECK(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    const gb_logical_tensor *inputs[] = {&src}, *outputs[] = {&dst};
    CHECK(gb_partition_compile(partition, &compiled, 1, inputs, 1, outputs, engine));

    gb_tensor *in, *out;
    void *x;
    CHECK(gb_tensor_create(&in, &src, engine, GB_MEMORY_ALLOCATE));
    CHECK(gb_tensor_create(&out, &dst, engine, GB_MEMORY_ALLOCATE));
    CHECK(gb_tensor_get_data_handle(in, &x));
    fill_random(x, 64 * 512, 3);
    EXPECT(taken == 2);
    CHECK(gb_compiled_partition_execute(
            compiled, stream, 1, (const gb_tensor *[]){in}, 1, (gb_tensor *[]){out}, NULL));

    /* Memory that the caller brings for scratch takes the allocator out of the way. */
    gb_logical_tensor scratch;
    gb_tensor *pad;
    CHECK(gb_compiled_partition_get_scratchpad(compiled, &scratch));
    CHECK(gb_tensor_create(&pad, &scratch, engine, GB_MEMORY_ALLOCATE));
    size_t before = taken;
    CHECK(gb_compiled_partition_execute(
            compiled, stream, 1, (const gb_tensor *[]){in}, 1, (gb_tensor *[]){out}, pad));
    EXPECT(taken == before);

    CHECK(gb_tensor_destroy(pad));
    CHECK(gb_tensor_destroy(in));
    CHECK(gb_tensor_destroy(out));
    CHECK(gb_compiled_partition_destroy(compiled));
    CHECK(gb_partition_destroy(partition));
    CHECK(gb_op_destroy(op));
    CHECK(gb_stream_destroy(stream));
    CHECK(gb_engine_destroy(engine));
    printf("blocks taken: %zu, given back: %zu\n", (size_t)taken, (size_t)given_back);
    EXPECT(taken == given_back);
    return 0;
}
