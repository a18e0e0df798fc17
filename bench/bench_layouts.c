/* Chains of partitions, with the tensors between them strided and with their layouts left to the
 * library (any), side by side.
 *
 * Rounds of the two take turns, the best of each counts. The first product or convolution writes,
 * the second reads what is between, perhaps behind a ReLU in a partition of its own; weights are
 * constants, except where the tensor between is the right operand.
 * Usage: bench_layouts [rounds [part of a case's name]] */
#include <graphbench/graphbench.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { A, B, X, Y, ACTIVE, Z, TENSORS };

/* y = a b, then z = y x (LEFT) or z = x y (RIGHT). Of images, b and x are the weights; CODES are
 * images of 8 bits between a Dequantize and a Quantize. */
typedef enum chain_kind { IMAGES, CODES, LEFT, RIGHT } chain_kind;

typedef struct bench_chain {
    const char *name;
    chain_kind kind;
    /* LEFT: a is s0 x s1, y is s0 x s2, z is s0 x s3. RIGHT: the same, but z is s3 x s2. Images: s0
     * of s1 x s1 positions, channels of a, y and z, and the sizes of both windows. */
    int64_t sizes[7];
    bool has_relu;
} bench_chain;

static const bench_chain chains[] = {
        {"conv 3x3 64@56 > 3x3 64", IMAGES, {1, 56, 64, 64, 64, 3, 3}, false},
        {"conv 3x3 128@28 > 3x3 128", IMAGES, {1, 28, 128, 128, 128, 3, 3}, false},
        {"conv 3x3 256@14 > 1x1 1024", IMAGES, {1, 14, 256, 256, 1024, 3, 1}, false},
        {"conv 1x1 256>1024@14 > 1x1 256", IMAGES, {1, 14, 256, 1024, 256, 1, 1}, false},
        {"conv 1x1 512>2048@7 > 1x1 512", IMAGES, {1, 7, 512, 2048, 512, 1, 1}, false},
        {"conv 1x1 512>2048@7 x 8 > 1x1 512", IMAGES, {8, 7, 512, 2048, 512, 1, 1}, false},
        {"conv 1x1 64>256@56 > 1x1 64", IMAGES, {1, 56, 64, 256, 64, 1, 1}, false},
        {"int8 conv 3x3 64@56 > 3x3 64", CODES, {1, 56, 64, 64, 64, 3, 3}, false},
        {"int8 conv 3x3 64@56 > 1x1 256", CODES, {1, 56, 64, 64, 256, 3, 1}, false},
        {"int8 conv 1x1 256>64@56 > 3x3 64", CODES, {1, 56, 256, 64, 64, 1, 3}, false},
        {"int8 conv 1x1 256>1024@14 > 1x1 256", CODES, {1, 14, 256, 1024, 256, 1, 1}, false},
        {"int8 conv 1x1 512>2048@7 > 1x1 512", CODES, {1, 7, 512, 2048, 512, 1, 1}, false},
        {"left 128x256x1024 > 1024x64", LEFT, {128, 256, 1024, 64}, false},
        {"left 512x64x1024 > 1024x64", LEFT, {512, 64, 1024, 64}, false},
        {"left 512x64x4096 > 4096x64", LEFT, {512, 64, 4096, 64}, false},
        {"left 512x64x4096 > 4096x256", LEFT, {512, 64, 4096, 256}, false},
        {"left 512x64x4096 > 4096x512", LEFT, {512, 64, 4096, 512}, false},
        {"left 128x768x3072 > 3072x768", LEFT, {128, 768, 3072, 768}, false},
        {"left 256x512x512 > 512x512", LEFT, {256, 512, 512, 512}, false},
        {"right 1024x16x1024 > 32x1024", RIGHT, {1024, 16, 1024, 32}, false},
        {"right 512x16x512 > 96x512", RIGHT, {512, 16, 512, 96}, false},
        {"right 1024x64x1024 > 64x1024", RIGHT, {1024, 64, 1024, 64}, false},
        {"right 512x512x512 > 512x512", RIGHT, {512, 512, 512, 512}, false},
        {"conv 3x3 64@56 > relu > 3x3 64", IMAGES, {1, 56, 64, 64, 64, 3, 3}, true},
        {"conv 1x1 256>1024@14 > relu > 1x1 256", IMAGES, {1, 14, 256, 1024, 256, 1, 1}, true},
        {"conv 1x1 512>2048@7 > relu > 1x1 512", IMAGES, {1, 7, 512, 2048, 512, 1, 1}, true},
        {"left 512x64x4096 > relu > 4096x64", LEFT, {512, 64, 4096, 64}, true},
        {"right 1024x16x1024 > relu > 32x1024", RIGHT, {1024, 16, 1024, 32}, true},
};

static void ok(gb_status status)
{
    if (status == GB_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", gb_status_name(status), gb_last_error());
    exit(1);
}

static bool has_images(const bench_chain *chain)
{
    return chain->kind == IMAGES || chain->kind == CODES;
}

static void get_dims(const bench_chain *chain, size_t id, int64_t *dims)
{
    const int64_t *s = chain->sizes;
    if (has_images(chain)) {
        const int64_t all[TENSORS][4] = {{s[0], s[2], s[1], s[1]}, {s[3], s[2], s[5], s[5]},
                {s[4], s[3], s[6], s[6]}, {s[0], s[3], s[1], s[1]}, {s[0], s[3], s[1], s[1]},
                {s[0], s[4], s[1], s[1]}};
        memcpy(dims, all[id], sizeof all[id]);
        return;
    }
    const int64_t left[TENSORS][2] = {
            {s[0], s[1]}, {s[1], s[2]}, {s[2], s[3]}, {s[0], s[2]}, {s[0], s[2]}, {s[0], s[3]}};
    const int64_t right[TENSORS][2] = {
            {s[0], s[1]}, {s[1], s[2]}, {s[3], s[0]}, {s[0], s[2]}, {s[0], s[2]}, {s[3], s[2]}};
    memcpy(dims, (chain->kind == LEFT ? left : right)[id], sizeof left[id]);
}

/* Weights are constants; a right operand is not. */
static void describe(const bench_chain *chain, size_t id, gb_logical_tensor *tensor)
{
    int64_t dims[4];
    bool weights = id == B || (id == X && chain->kind != RIGHT);
    gb_data_type codes = id == B || id == X ? GB_S8 : GB_U8;
    get_dims(chain, id, dims);
    ok(gb_logical_tensor_init_with_dims(tensor, id, chain->kind == CODES ? codes : GB_F32,
            has_images(chain) ? 4 : 2, dims, GB_LAYOUT_STRIDED,
            weights ? GB_PROPERTY_CONSTANT : GB_PROPERTY_VARIABLE));
}

/* A partition: its inputs, b only of products and convolutions, and its result. */
typedef struct stage {
    size_t a, b, dst;
} stage;

enum { MOST_STAGES = 3, NONE = TENSORS };

static int list_stages(const bench_chain *chain, stage *stages)
{
    size_t between = chain->has_relu ? ACTIVE : Y;
    int n = 0;
    stages[n++] = (stage){A, B, Y};
    if (chain->has_relu)
        stages[n++] = (stage){Y, NONE, ACTIVE};
    stages[n++] = chain->kind == RIGHT ? (stage){X, between, Z} : (stage){between, X, Z};
    return n;
}

typedef struct runner {
    const bench_chain *chain;
    bool any;
    gb_logical_tensor tensors[TENSORS];
    gb_tensor *memory[TENSORS];
    int n_stages;
    gb_compiled_partition *compiled[MOST_STAGES];
    double best; /* seconds */
} runner;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void set_convolution(gb_op *op, const gb_logical_tensor *weights)
{
    int64_t kernel = weights->dims[2];
    const int64_t ones[] = {1, 1}, pads[] = {kernel / 2, kernel / 2};
    ok(gb_op_set_attr_s64(op, GB_ATTR_STRIDES, 2, ones));
    ok(gb_op_set_attr_s64(op, GB_ATTR_DILATIONS, 2, ones));
    ok(gb_op_set_attr_s64(op, GB_ATTR_PADS_BEGIN, 2, pads));
    ok(gb_op_set_attr_s64(op, GB_ATTR_PADS_END, 2, pads));
    ok(gb_op_set_attr_str(op, GB_ATTR_DATA_FORMAT, "NCX", 3));
    ok(gb_op_set_attr_str(op, GB_ATTR_WEIGHTS_FORMAT, "OIX", 3));
}

/* Takes the op over; `b` may be NULL. */
static void finish_op(gb_graph *graph, gb_op *op, const gb_logical_tensor *a,
        const gb_logical_tensor *b, const gb_logical_tensor *dst)
{
    ok(gb_op_add_input(op, a));
    if (b)
        ok(gb_op_add_input(op, b));
    ok(gb_op_add_output(op, dst));
    ok(gb_graph_add_op(graph, op));
    ok(gb_op_destroy(op));
}

static void add_conversion(gb_graph *graph, size_t id, gb_op_kind kind,
        const gb_logical_tensor *src, const gb_logical_tensor *dst)
{
    const float scale = kind == GB_OP_QUANTIZE ? 64 : 0.5F;
    const int64_t zero = 0;
    gb_op *op;
    ok(gb_op_create(&op, id, kind, ""));
    ok(gb_op_set_attr_f32(op, GB_ATTR_SCALES, 1, &scale));
    ok(gb_op_set_attr_s64(op, GB_ATTR_ZPS, 1, &zero));
    finish_op(graph, op, src, NULL, dst);
}

static gb_logical_tensor in_f32(const gb_logical_tensor *codes, size_t id)
{
    gb_logical_tensor tensor = *codes;
    tensor.id = id;
    tensor.data_type = GB_F32;
    tensor.property = GB_PROPERTY_VARIABLE;
    return tensor;
}

static void add_code_convolution(gb_graph *graph, const gb_logical_tensor *a,
        const gb_logical_tensor *b, const gb_logical_tensor *dst)
{
    size_t id = TENSORS * (dst->id + 1);
    gb_logical_tensor src = in_f32(a, id), weights = in_f32(b, id + 1), y = in_f32(dst, id + 2);
    gb_op *op;
    add_conversion(graph, id, GB_OP_DEQUANTIZE, a, &src);
    add_conversion(graph, id + 1, GB_OP_DEQUANTIZE, b, &weights);
    ok(gb_op_create(&op, id + 2, GB_OP_CONVOLUTION, ""));
    set_convolution(op, b);
    finish_op(graph, op, &src, &weights, &y);
    add_conversion(graph, id + 3, GB_OP_QUANTIZE, &y, dst);
}

static void add_op(gb_graph *graph, const runner *r, const stage *s)
{
    const gb_logical_tensor *t = r->tensors;
    gb_op_kind kind = has_images(r->chain) ? GB_OP_CONVOLUTION : GB_OP_MATMUL;
    gb_op *op;
    if (r->chain->kind == CODES) {
        add_code_convolution(graph, &t[s->a], &t[s->b], &t[s->dst]);
        return;
    }
    ok(gb_op_create(&op, s->dst, s->b == NONE ? GB_OP_RELU : kind, ""));
    if (s->b != NONE && has_images(r->chain))
        set_convolution(op, &t[s->b]);
    finish_op(graph, op, &t[s->a], s->b == NONE ? NULL : &t[s->b], &t[s->dst]);
}

static void compile(runner *r, const gb_partition *partition, const stage *s,
        gb_compiled_partition **compiled, const gb_engine *engine)
{
    const gb_logical_tensor *in[] = {&r->tensors[s->a], &r->tensors[s->b % TENSORS]};
    const gb_logical_tensor *out = &r->tensors[s->dst];
    if (r->any && s->dst != Z)
        r->tensors[s->dst].layout_type = GB_LAYOUT_ANY;
    ok(gb_partition_compile(partition, compiled, s->b == NONE ? 1 : 2, in, 1, &out, engine));
    ok(gb_compiled_partition_query_logical_tensor(*compiled, s->dst, &r->tensors[s->dst]));
}

static void allocate(runner *r, size_t id, const gb_engine *engine)
{
    void *data;
    size_t bytes;
    ok(gb_logical_tensor_get_mem_size(&r->tensors[id], &bytes));
    ok(gb_tensor_create(&r->memory[id], &r->tensors[id], engine, GB_MEMORY_ALLOCATE));
    ok(gb_tensor_get_data_handle(r->memory[id], &data));
    if (r->chain->kind == CODES)
        memset(data, 3, bytes);
    for (size_t i = 0; i < bytes / sizeof(float) && r->chain->kind != CODES; i++)
        ((float *)data)[i] = (float)(i % 17) - 8;
}

static void open_runner(runner *r, const bench_chain *chain, bool any, const gb_engine *engine)
{
    gb_graph *graph;
    gb_partition *partitions[MOST_STAGES];
    stage stages[MOST_STAGES];
    *r = (runner){.chain = chain, .any = any, .best = 1e9};
    for (size_t id = 0; id < TENSORS; id++)
        describe(chain, id, &r->tensors[id]);
    ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    r->n_stages = list_stages(chain, stages);
    for (int i = 0; i < r->n_stages; i++)
        add_op(graph, r, &stages[i]);
    ok(gb_graph_finalize(graph));
    ok(gb_graph_filter(graph, chain->kind == CODES ? GB_POLICY_FUSION : GB_POLICY_DEBUG));
    ok(gb_graph_get_partitions(graph, (size_t)r->n_stages, partitions, NULL));
    for (int i = 0; i < r->n_stages; i++) {
        compile(r, partitions[i], &stages[i], &r->compiled[i], engine);
        ok(gb_partition_destroy(partitions[i]));
    }
    ok(gb_graph_destroy(graph));
    for (size_t id = 0; id < TENSORS; id++)
        allocate(r, id, engine);
}

static void run(runner *r, gb_stream *stream)
{
    stage stages[MOST_STAGES];
    list_stages(r->chain, stages);
    double start = now();
    for (int i = 0; i < r->n_stages; i++) {
        const stage *s = &stages[i];
        const gb_tensor *in[] = {r->memory[s->a], r->memory[s->b % TENSORS]};
        gb_tensor *out = r->memory[s->dst];
        ok(gb_compiled_partition_execute(
                r->compiled[i], stream, s->b == NONE ? 1 : 2, in, 1, &out, NULL));
    }
    double time = now() - start;
    if (time < r->best)
        r->best = time;
}

static void close_runner(runner *r)
{
    for (int i = 0; i < r->n_stages; i++)
        ok(gb_compiled_partition_destroy(r->compiled[i]));
    for (size_t id = 0; id < TENSORS; id++)
        ok(gb_tensor_destroy(r->memory[id]));
}

/* The letters of a strided image, the text of an opaque layout. */
static const char *layout_of(const gb_logical_tensor *tensor)
{
    if (tensor->layout_type != GB_LAYOUT_STRIDED)
        return gb_logical_tensor_get_layout(tensor);
    return tensor->ndims == 4 && tensor->strides[1] == 1 ? "channels last" : "dense";
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 40;
    gb_engine *engine;
    gb_stream *stream;
    ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    ok(gb_stream_create(&stream, engine));
    printf("%s\n%-36s %10s %10s %7s  %s\n", gb_engine_get_description(engine), "chain",
            "strided ms", "any ms", "gain", "between");
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        runner runners[2];
        if (argc > 2 && !strstr(chains[i].name, argv[2]))
            continue;
        for (int any = 0; any < 2; any++)
            open_runner(&runners[any], &chains[i], any, engine);
        for (int round = 0; round < 2 * rounds; round++)
            run(&runners[round % 2], stream);
        printf("%-36s %10.4f %10.4f %6.2fx  %s\n", chains[i].name, runners[0].best * 1e3,
                runners[1].best * 1e3, runners[0].best / runners[1].best,
                layout_of(&runners[1].tensors[Y]));
        fflush(stdout);
        for (int any = 0; any < 2; any++)
            close_runner(&runners[any]);
    }
    ok(gb_stream_destroy(stream));
    ok(gb_engine_destroy(engine));
    return 0;
}
