/* The C++ wrapper through an installed library: a product with ReLU, a single op, and an error. */
#include <graphbench/graphbench.hpp>

#include <cstdio>
#include <cstdlib>

namespace gb = graphbench;

static void expect(bool condition, const char *what)
{
    if (condition)
        return;
    std::fprintf(stderr, "not true: %s\n", what);
    std::exit(1);
}

static void product_with_relu()
{
    const gb::logical_tensor a(0, GB_F32, {2, 2}), b(1, GB_F32, {2, 2}, GB_PROPERTY_CONSTANT);
    const gb::logical_tensor sum(2, GB_F32, 2), c(3, GB_F32, 2);
    gb::graph graph;
    graph.add(gb::op(0, GB_OP_MATMUL, "matmul").input(a).input(b).output(sum));
    graph.add(gb::op(1, GB_OP_RELU, "relu").input(sum).output(c));
    graph.finalize();
    expect(graph.is_finalized(), "finalized");
    const auto partitions = graph.partitions();
    expect(partitions.size() == 1 && partitions[0].is_supported(), "one partition");
    expect(partitions[0].ops() == std::vector<size_t>({0, 1}), "both ops");

    const gb::engine engine;
    gb::stream stream(engine);
    const auto compiled =
            partitions[0].compile(partitions[0].input_ports(), {c}, engine);
    float x[] = {1, 2, 3, 4}, w[] = {1, 0, 0, -1};
    const gb::tensor in(a, engine, x), weights(b, engine, w), out(compiled.query(3), engine);
    compiled.execute(stream, {&in, &weights}, {&out});
    stream.wait();
    const float *y = static_cast<const float *>(out.data());
    expect(y[0] == 1 && y[1] == 0 && y[2] == 3 && y[3] == 0, "values");
}

static void any_number_of_rows()
{
    const gb::logical_tensor open(0, GB_F32, {GB_UNKNOWN_DIM, 2}), result(1, GB_F32, 2);
    const gb::partition single(gb::op(0, GB_OP_ABS, "abs").input(open).output(result));
    const gb::engine engine;
    gb::stream stream(engine);
    const auto compiled = single.compile({open}, {result}, engine);
    const gb::logical_tensor three(0, GB_F32, {3, 2});
    expect(single.infer_shape({three}, {result})[0].dims[0] == 3, "rows of the partition's result");
    expect(compiled.infer_shape({three}, {result})[0].dims[0] == 3, "rows of the result");
    expect(compiled.specialize({three}).query(1).dims[0] == 3, "rows compiled for");
    float x[] = {-1, 2, -3, 4, -5, 6};
    const gb::tensor in(three, engine, x), out(result, engine);
    compiled.execute(stream, {&in}, {&out});
    expect(out.description().dims[0] == 3, "rows");
    expect(static_cast<const float *>(out.data())[4] == 5, "values");
}

static void errors_are_exceptions()
{
    try {
        gb::engine none(GB_ENGINE_CPU, 1000);
    } catch (const gb::error &e) {
        expect(e.status() == GB_INVALID_ARGUMENTS, "status");
        return;
    }
    expect(false, "an exception");
}

int main()
{
    product_with_relu();
    any_number_of_rows();
    errors_are_exceptions();
    const gb::partition single(gb::op(0, GB_OP_ABS, "abs")
                                       .input(gb::logical_tensor(0, GB_F32, {3}))
                                       .output(gb::logical_tensor(1, GB_F32, {3})));
    expect(single.is_supported(), "a single op");
    return 0;
}
