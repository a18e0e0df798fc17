/* ReLU of two numbers through an installed library. */
#include <graphbench/graphbench.h>

#include <stdio.h>

int main(void)
{
    const int64_t dims[] = {2};
    float x[] = {-1.0f, 2.0f}, y[] = {9.0f, 9.0f};
    gb_logical_tensor src, dst;
    gb_op *op = NULL;
    gb_partition *partition = NULL;
    gb_engine *engine = NULL;
    gb_stream *stream = NULL;
    gb_compiled_partition *compiled = NULL;
    gb_tensor *in = NULL, *out = NULL;
    const gb_logical_tensor *inputs[1], *outputs[1];
    const gb_tensor *ins[1];
    gb_tensor *outs[1];
    unsigned failed = 0;
    failed |= gb_logical_tensor_init_with_dims(
            &src, 0, GB_F32, 1, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE);
    dst = src;
    dst.id = 1;
    failed |= gb_op_create(&op, 0, GB_OP_RELU, "relu");
    failed |= gb_op_add_input(op, &src);
    failed |= gb_op_add_output(op, &dst);
    failed |= gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU);
    failed |= gb_engine_create(&engine, GB_ENGINE_CPU, 0);
    failed |= gb_stream_create(&stream, engine);
    inputs[0] = &src;
    outputs[0] = &dst;
    failed |= gb_partition_compile(partition, &compiled, 1, inputs, 1, outputs, engine);
    failed |= gb_tensor_create(&in, &src, engine, x);
    failed |= gb_tensor_create(&out, &dst, engine, y);
    ins[0] = in;
    outs[0] = out;
    failed |= gb_compiled_partition_execute(compiled, stream, 1, ins, 1, outs, NULL);
    if (failed || y[0] != 0.0f || y[1] != 2.0f) {
        fprintf(stderr, "wrong: %s\n", gb_last_error());
        return 1;
    }
    gb_tensor_destroy(in);
    gb_tensor_destroy(out);
    gb_compiled_partition_destroy(compiled);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
    gb_partition_destroy(partition);
    gb_op_destroy(op);
    return 0;
}
