/* The C++ wrapper through an installed library: a product with ReLU, a single op, and an error. */
#include <graphbench/graphbench.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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
    const auto compiled = partitions[0].compile(partitions[0].input_ports(), {c}, engine);
    float x[] = {1, 2, 3, 4}, w[] = {1, 0, 0, -1};
    const gb::tensor in(a, engine, x), weights(b, engine, w);
    gb::tensor out(compiled.query(3), engine);
    compiled.execute(stream, {&in, &weights}, {&out});
    stream.wait();
    const float *y = static_cast<const float *>(out.data());
    expect(y[0] == 1 && y[1] == 0 && y[2] == 3 && y[3] == 0, "values");
}

static void any_number_of_rows()
{
    const gb::logical_tensor open(0, GB_F32, {-1, 2}), result(1, GB_F32, 2);
    const gb::partition single(gb::op(0, GB_OP_ABS, "abs").input(open).output(result));
    const gb::engine engine;
    gb::stream stream(engine);
    const auto compiled = single.compile({open}, {result}, engine);
    const gb::logical_tensor three(0, GB_F32, {3, 2});
    expect(single.infer_shape({three}, {result})[0].dims[0] == 3, "rows of the partition's result");
    expect(compiled.infer_shape({three}, {result})[0].dims[0] == 3, "rows of the result");
    expect(compiled.specialize({three}).query(1).dims[0] == 3, "rows compiled for");
    float x[] = {-1, 2, -3, 4, -5, 6};
    const gb::tensor in(three, engine, x);
    gb::tensor out(result, engine);
    compiled.execute(stream, {&in}, {&out});
    expect(out.description().dims[0] == 3, "rows");
    expect(static_cast<const float *>(out.data())[4] == 5, "values");
}

static void handles_are_shared()
{
    gb::partition kept = gb::partition(gb::op(0, GB_OP_ABS, {gb::logical_tensor(0, GB_F32, {3})},
            {gb::logical_tensor(1, GB_F32, {3})}));
    {
        const gb::partition other = kept; /* the same object */
        expect(other.get() == kept.get(), "the same handle");
        kept = gb::partition(gb::op(1, GB_OP_EXP, {gb::logical_tensor(0, GB_F32, {3})},
                {gb::logical_tensor(1, GB_F32, {3})}));
        expect(other.ops() == std::vector<size_t>({0}), "the other keeps its own");
    }
    expect(kept.ops() == std::vector<size_t>({1}), "the new one is there");
}

static void looking_inside()
{
    const gb::logical_tensor x(0, GB_F32, {4, 4}), w(1, GB_F32, {4, 64}), y(2, GB_F32, {4, 64});
    const gb_op_attr stage = gb::define_attr("stage", GB_ATTR_TYPE_S64);
    gb::graph graph({gb::op(7, GB_OP_MATMUL, {x, w}, {y}, "product").attr(stage, int64_t(3)),
            gb::op(8, GB_OP_RELU, {y}, {gb::logical_tensor(3, GB_F32, {4, 64})})});
    const float values[4 * 64] = {1};
    graph.make_output(2).attr(stage, int64_t(5));
    graph.make_input(gb::logical_tensor(20, GB_F32, {2}))
            .make_constant(gb::logical_tensor(21, GB_F32, {4, 64}), values);
    expect(graph.ops().size() == 3 && graph.find_op(7).name() == "product", "ops");
    expect(graph.find_op(7).attr<int64_t>(stage) == 3, "an attribute");
    expect(!graph.find_op(7).attr<bool>(GB_ATTR_TRANSPOSE_B), "a default attribute");
    expect(*static_cast<const int64_t *>(graph.attr(stage).first) == 5, "one of the graph");
    expect(graph.find_op(7).text().find("stage=3") != std::string::npos, "text");
    expect(graph.producer(2)[0].id() == 7 && graph.producer(0).empty(), "producer");
    expect(graph.uses(1).size() == 1 && graph.uses(1)[0].input == 1, "uses");
    expect(graph.inputs().size() == 4 && graph.outputs().size() == 2, "ends");
    expect(graph.constant(21).second == sizeof values, "a constant");
    size_t visited = 0;
    graph.visit(GB_VISIT_REVERSE, [&](const gb::op_view &) { visited++; });
    expect(visited == 3, "a visit");
    try {
        graph.visit(GB_VISIT_TOPOLOGICAL, [](const gb::op_view &) { throw 5; });
        expect(false, "what a visit throws");
    } catch (int five) {
        expect(five == 5, "what a visit throws");
    }
    graph.op_attr(7, GB_ATTR_TRANSPOSE_B, false).op_attr(7, stage, int64_t(4));
    expect(graph.find_op(7).attr<int64_t>(stage) == 4, "an attribute of an op of the graph");
    expect(graph.consumers(1).size() == 1 && graph.consumers(1)[0].id() == 7, "consumers");
    gb::tools::remove_op(graph, 8);
    expect(graph.ops().size() == 2, "an edit");
    graph.finalize();
    for (const gb::partition &p : graph.partitions()) {
        if (!p.is_supported())
            continue;
        const auto preferred = p.preferred_layout({x, w}, 1);
        expect(preferred.dims[1] == 64, "preferred layout");
        const auto rows = p.layouts({x, w});
        expect(!rows.empty() && rows[0].size() == 3 && rows[0][1].dims[1] == 64, "layouts");
        expect(p.op_of_input_port(1) == std::pair<size_t, size_t>(7, 1), "op of a port");
        const auto compiled = p.compile({x, w}, {y}, gb::engine());
        expect(compiled.ops() == std::vector<size_t>({7}), "ops of a compiled partition");
        expect(compiled.partition_id() == p.id(), "its source");
        expect(compiled.work().first > 0, "work");
    }
}

static void in_turn(void *, int n, void (*body)(void *, int), void *context)
{
    for (int i = 0; i < n; i++)
        body(context, i);
}

/* Two ops in partitions of one op, on an engine with caches and a stream with threads of its own. */
static void attributes_of_engines_and_streams()
{
    const gb::logical_tensor x(0, GB_F32, {1, 2}), y(1, GB_F32, {1, 2}), z(2, GB_F32, {1, 2});
    gb::graph graph({gb::op(0, GB_OP_ABS, {x}, {y}), gb::op(1, GB_OP_SQUARE, {y}, {z})});
    graph.finalize();
    expect(graph.partitions().size() == 1, "one partition");
    const auto parts = graph.partitions_within(GB_POLICY_FUSION, 1);
    expect(parts.size() == 2, "partitions of one op");
    const gb::context context(7);
    const gb::engine engine(GB_ENGINE_CPU, 0, context);
    gb_stream_attrs attrs = {};
    attrs.parallel_for = in_turn;
    attrs.concurrency = 2;
    gb::stream stream(engine, attrs);
    const auto compiled = parts[1].compile({y}, {z}, engine);
    float values[] = {3, -5};
    const gb::tensor in(y, engine, values);
    gb::tensor out(z, engine);
    compiled.execute(stream, {&in}, {&out});
    expect(static_cast<const float *>(out.data())[1] == 25, "values");
    expect(context.compiled_partition_cache_counters().entries == 1, "a cache of its own");
    expect(gb::compiled_partition_cache_counters().entries == 0, "and not that of the process");
}

static void dims_in_braces()
{
    const gb::logical_tensor vector(0, GB_F32, {4}), open(1, GB_F32, 4);
    expect(vector.ndims == 1 && vector.dims[0] == 4 && vector.strides[0] == 1, "a vector");
    expect(open.ndims == 4 && open.dims[0] == GB_UNKNOWN_DIM, "a rank");
    const gb::logical_tensor apart(2, GB_F32, {4}, {3});
    expect(apart.ndims == 1 && apart.strides[0] == 3, "a vector with a stride");
}

/* x times a host scalar. */
static float times(const gb::tensor &factor, float x)
{
    const gb::logical_tensor in(0, GB_F32, {1}), out(2, GB_F32, {1}), by = factor.description();
    const gb::partition single(gb::op(0, GB_OP_MULTIPLY, {in, by}, {out}));
    const gb::engine engine;
    gb::stream stream(engine);
    const auto compiled = single.compile({in, by}, {out}, engine);
    const gb::tensor src(in, engine, &x);
    gb::tensor dst(out, engine);
    compiled.execute(stream, {&src, &factor}, {&dst});
    return *static_cast<const float *>(dst.data());
}

static void scalars_have_the_type_of_their_description()
{
    gb_logical_tensor d;
    gb::check(gb_logical_tensor_init(&d, 1, GB_F32, 0, GB_LAYOUT_STRIDED, GB_PROPERTY_HOST_SCALAR));
    expect(times(gb::tensor::scalar(d, 5), 3) == 15, "an integer for an f32");
    expect(times(gb::tensor::scalar(d, 0.5), 3) == 1.5f, "a double for an f32");
    const std::array<float, 1> one = {2};
    const std::array<float, 2> two = {2, 3};
    expect(times(gb::tensor::scalar(d, one), 3) == 6, "bytes of an f32");
    try {
        gb::tensor::scalar(d, two);
        expect(false, "a scalar of another size");
    } catch (const std::invalid_argument &) {
    }
    d.data_type = GB_S64;
    expect(gb::tensor::scalar(d, 5).get() != nullptr, "an integer for an s64");
}

/* A description that no op reads needs no tensor. */
static void places_that_are_no_ports()
{
    const gb::logical_tensor x(0, GB_F32, {2}), y(1, GB_F32, {2}), other(7, GB_F32, {2});
    const gb::partition single(gb::op(0, GB_OP_ABS, {x}, {y}));
    const gb::engine engine;
    gb::stream stream(engine);
    const auto compiled = single.compile({x, other}, {y}, engine);
    float values[] = {-1, 2};
    const gb::tensor in(x, engine, values);
    gb::tensor out(y, engine);
    compiled.execute(stream, {&in, nullptr}, {&out});
    expect(static_cast<const float *>(out.data())[0] == 1, "values beside an empty place");
    std::memset(out.data(), 0, 2 * sizeof(float));
    compiled.execute_after(stream, {}, {&in, nullptr}, {&out}).wait();
    expect(static_cast<const float *>(out.data())[1] == 2, "values beside an empty place");
}

static void notes_that_throw()
{
    const std::string tensor = "\"dtype\": \"f32\", \"shape\": [2], \"stride\": [1], "
                               "\"layout_type\": \"strided\", \"property_type\": \"variable\"}]";
    const std::string text = "{\"version\": \"3.14.0\", \"odd\": 1, \"strange\": 2, \"graph\": [{"
                             "\"id\": 0, \"name\": \"a\", \"kind\": \"Abs\", \"attrs\": {}, "
                             "\"inputs\": [{\"id\": 0, " +
                             tensor + ", \"outputs\": [{\"id\": 1, " + tensor + "}]}";
    int heard = 0;
    gb::graph::parse_json(text, [&](const std::string &) { heard++; });
    expect(heard == 2, "two notes");
    try {
        gb::graph::parse_json(text, [&](const std::string &) { throw heard++; });
        expect(false, "what notes throw");
    } catch (int thrown) {
        expect(thrown == 2 && heard == 3, "what the first note throws");
    }
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
    handles_are_shared();
    attributes_of_engines_and_streams();
    looking_inside();
    dims_in_braces();
    scalars_have_the_type_of_their_description();
    places_that_are_no_ports();
    notes_that_throw();
    errors_are_exceptions();
    const gb::partition single(gb::op(0, GB_OP_ABS, "abs")
                                       .input(gb::logical_tensor(0, GB_F32, {3}))
                                       .output(gb::logical_tensor(1, GB_F32, {3})));
    expect(single.is_supported(), "a single op");
    return 0;
}
