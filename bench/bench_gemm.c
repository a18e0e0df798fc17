/* MatMul and Convolution next to the machine's f32 peak and, when built with GB_WITH_DNNL, to
 * oneDNN.
 *
 * Rounds are interleaved: peak, ours and the peer take turns, the best round of each counts.
 * Usage: bench_gemm [rounds [part of a case's name]] */
#include <graphbench/graphbench.h>
#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#ifdef GB_WITH_DNNL
#include <dnnl.h>
#endif

typedef struct bench_case {
    const char *name;
    gb_data_type type;
    int ndims;
    int64_t src[6], weights[6], dst[6];
    int weights_ndims;
    bool convolution, transpose_b, channels_last, constant, bias;
    int64_t stride, pad, groups;
} bench_case;

static const bench_case cases[] = {
        {.name = "matmul 1024x1024x384",
                .type = GB_F32,
                .ndims = 4,
                .src = {4, 8, 32, 384},
                .weights_ndims = 2,
                .weights = {384, 1024},
                .dst = {4, 8, 32, 1024}},
        {.name = "matmul 1024x1024x384 const",
                .type = GB_F32,
                .ndims = 4,
                .src = {4, 8, 32, 384},
                .weights_ndims = 2,
                .weights = {384, 1024},
                .dst = {4, 8, 32, 1024},
                .constant = true},
        {.name = "matmul 1024x1024x384 bf16",
                .type = GB_BF16,
                .ndims = 4,
                .src = {4, 8, 32, 384},
                .weights_ndims = 2,
                .weights = {384, 1024},
                .dst = {4, 8, 32, 1024}},
        {.name = "matmul 64x128 by batch",
                .type = GB_F32,
                .ndims = 4,
                .src = {1, 1, 64, 128},
                .weights_ndims = 4,
                .weights = {8, 4, 128, 256},
                .dst = {8, 4, 64, 256}},
        {.name = "matmul 384x1024x4096",
                .type = GB_F32,
                .ndims = 2,
                .src = {384, 4096},
                .weights_ndims = 2,
                .weights = {4096, 1024},
                .dst = {384, 1024}},
        {.name = "matmul attention QK",
                .type = GB_F32,
                .ndims = 4,
                .src = {1, 16, 384, 64},
                .weights_ndims = 4,
                .weights = {1, 16, 384, 64},
                .dst = {1, 16, 384, 384},
                .transpose_b = true},
        {.name = "matmul attention PV",
                .type = GB_F32,
                .ndims = 4,
                .src = {1, 16, 384, 384},
                .weights_ndims = 4,
                .weights = {1, 16, 384, 64},
                .dst = {1, 16, 384, 64}},
        {.name = "matmul 13x1024x512",
                .type = GB_F32,
                .ndims = 2,
                .src = {13, 512},
                .weights_ndims = 2,
                .weights = {512, 1024},
                .dst = {13, 1024}},
        {.name = "matmul 4x4096x4096",
                .type = GB_F32,
                .ndims = 2,
                .src = {4, 4096},
                .weights_ndims = 2,
                .weights = {4096, 4096},
                .dst = {4, 4096}},
        {.name = "gemv 1x4096x4096",
                .type = GB_F32,
                .ndims = 2,
                .src = {1, 4096},
                .weights_ndims = 2,
                .weights = {4096, 4096},
                .dst = {1, 4096}},
        {.name = "gemv 1x4096x4096 transposed",
                .type = GB_F32,
                .ndims = 2,
                .src = {1, 4096},
                .weights_ndims = 2,
                .weights = {4096, 4096},
                .dst = {1, 4096},
                .transpose_b = true},
        {.name = "matmul 64x64x64",
                .type = GB_F32,
                .ndims = 2,
                .src = {64, 64},
                .weights_ndims = 2,
                .weights = {64, 64},
                .dst = {64, 64}},
        {.name = "conv 3x3 256 14x14",
                .type = GB_F32,
                .ndims = 4,
                .src = {50, 256, 14, 14},
                .weights_ndims = 4,
                .weights = {256, 256, 3, 3},
                .dst = {50, 256, 14, 14},
                .convolution = true,
                .stride = 1,
                .pad = 1,
                .bias = true},
        {.name = "conv 3x3 256 14x14 last",
                .type = GB_F32,
                .ndims = 4,
                .src = {50, 256, 14, 14},
                .weights_ndims = 4,
                .weights = {256, 256, 3, 3},
                .dst = {50, 256, 14, 14},
                .convolution = true,
                .stride = 1,
                .pad = 1,
                .channels_last = true},
        {.name = "conv 1x1 64 56x56",
                .type = GB_F32,
                .ndims = 4,
                .src = {50, 64, 56, 56},
                .weights_ndims = 4,
                .weights = {64, 64, 1, 1},
                .dst = {50, 64, 56, 56},
                .convolution = true,
                .stride = 1},
        {.name = "conv 1x1 64 56x56 last",
                .type = GB_F32,
                .ndims = 4,
                .src = {50, 64, 56, 56},
                .weights_ndims = 4,
                .weights = {64, 64, 1, 1},
                .dst = {50, 64, 56, 56},
                .convolution = true,
                .stride = 1,
                .channels_last = true},
        {.name = "conv 1x1 s2 256 56x56",
                .type = GB_F32,
                .ndims = 4,
                .src = {50, 256, 56, 56},
                .weights_ndims = 4,
                .weights = {128, 256, 1, 1},
                .dst = {50, 128, 28, 28},
                .convolution = true,
                .stride = 2,
                .bias = true},
        {.name = "conv 3x3 64 56x56",
                .type = GB_F32,
                .ndims = 4,
                .src = {8, 64, 56, 56},
                .weights_ndims = 4,
                .weights = {64, 64, 3, 3},
                .dst = {8, 64, 56, 56},
                .convolution = true,
                .stride = 1,
                .pad = 1},
        {.name = "conv 3x3 512 7x7",
                .type = GB_F32,
                .ndims = 4,
                .src = {8, 512, 7, 7},
                .weights_ndims = 4,
                .weights = {512, 512, 3, 3},
                .dst = {8, 512, 7, 7},
                .convolution = true,
                .stride = 1,
                .pad = 1},
        {.name = "conv 7x7 s2 3 224x224",
                .type = GB_F32,
                .ndims = 4,
                .src = {4, 3, 224, 224},
                .weights_ndims = 4,
                .weights = {64, 3, 7, 7},
                .dst = {4, 64, 112, 112},
                .convolution = true,
                .stride = 2,
                .pad = 3},
        {.name = "conv 3x3 32 groups of 4",
                .type = GB_F32,
                .ndims = 4,
                .src = {8, 128, 56, 56},
                .weights_ndims = 4,
                .weights = {128, 4, 3, 3},
                .dst = {8, 128, 56, 56},
                .convolution = true,
                .stride = 1,
                .pad = 1,
                .groups = 32},
        {.name = "conv depthwise 3x3 56x56",
                .type = GB_F32,
                .ndims = 4,
                .src = {16, 128, 56, 56},
                .weights_ndims = 4,
                .weights = {128, 1, 3, 3},
                .dst = {16, 128, 56, 56},
                .convolution = true,
                .stride = 1,
                .pad = 1,
                .groups = 128},
        {.name = "conv depthwise 3x3 last",
                .type = GB_F32,
                .ndims = 4,
                .src = {16, 128, 56, 56},
                .weights_ndims = 4,
                .weights = {128, 1, 3, 3},
                .dst = {16, 128, 56, 56},
                .convolution = true,
                .stride = 1,
                .pad = 1,
                .groups = 128,
                .channels_last = true},
        {.name = "conv depthwise 3x3 14x14",
                .type = GB_F32,
                .ndims = 4,
                .src = {16, 512, 14, 14},
                .weights_ndims = 4,
                .weights = {512, 1, 3, 3},
                .dst = {16, 512, 14, 14},
                .convolution = true,
                .stride = 1,
                .pad = 1,
                .groups = 512},
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(gb_status status)
{
    if (status == GB_SUCCESS)
        return;
    fprintf(stderr, "bench_gemm: %s: %s\n", gb_status_name(status), gb_last_error());
    exit(1);
}

/* Peak ----------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static float spin_avx512(int rounds)
{
    __m512 sums[12], x = _mm512_set1_ps(0.999F), y = _mm512_set1_ps(0.001F);
#pragma GCC unroll 12
    for (int i = 0; i < 12; i++)
        sums[i] = _mm512_set1_ps((float)i);
    for (int r = 0; r < rounds; r++)
#pragma GCC unroll 12
        for (int i = 0; i < 12; i++)
            sums[i] = _mm512_fmadd_ps(sums[i], x, y);
#pragma GCC unroll 12
    for (int i = 1; i < 12; i++)
        sums[0] = _mm512_add_ps(sums[0], sums[i]);
    return _mm512_reduce_add_ps(sums[0]);
}

__attribute__((target("avx2,fma"))) static float spin_avx2(int rounds)
{
    __m256 sums[12], x = _mm256_set1_ps(0.999F), y = _mm256_set1_ps(0.001F);
#pragma GCC unroll 12
    for (int i = 0; i < 12; i++)
        sums[i] = _mm256_set1_ps((float)i);
    for (int r = 0; r < rounds; r++)
#pragma GCC unroll 12
        for (int i = 0; i < 12; i++)
            sums[i] = _mm256_fmadd_ps(sums[i], x, y);
#pragma GCC unroll 12
    for (int i = 1; i < 12; i++)
        sums[0] = _mm256_add_ps(sums[0], sums[i]);
    return _mm256_cvtss_f32(sums[0]);
}
#endif

/* GFLOP/s of multiply-adds on all threads; 0 where there is no loop for the machine. */
static double peak(void)
{
#if defined(__x86_64__)
    const int rounds = 200000;
    bool wide = __builtin_cpu_supports("avx512f");
    if (!wide && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
        return 0;
    volatile float sink = 0;
    double start = now();
#pragma omp parallel
    {
        float sum = wide ? spin_avx512(rounds) : spin_avx2(rounds);
#pragma omp critical
        sink = sink + sum;
    }
    return 2e-9 * 12 * rounds * (wide ? 16 : 8) * omp_get_max_threads() / (now() - start);
#else
    return 0;
#endif
}

/* Ours ----------------------------------------------------------------------------------------- */

typedef struct ours {
    gb_compiled_partition *compiled;
    gb_stream *stream;
    gb_tensor *inputs[3], *output;
    size_t n_inputs;
} ours;

static gb_logical_tensor tensor_of(const bench_case *c, size_t id, int ndims, const int64_t *dims)
{
    gb_logical_tensor tensor;
    bool weights = id == 1 || id == 2;
    check(gb_logical_tensor_init_with_dims(&tensor, id, c->type, ndims, dims, GB_LAYOUT_STRIDED,
            weights && c->constant ? GB_PROPERTY_CONSTANT : GB_PROPERTY_VARIABLE));
    if (c->channels_last && !weights) {
        tensor.strides[1] = 1;
        int64_t stride = dims[1];
        for (int d = ndims; d-- > 2; stride *= dims[d])
            tensor.strides[d] = stride;
        tensor.strides[0] = stride;
    }
    return tensor;
}

static void set_convolution(const bench_case *c, gb_op *op)
{
    int64_t strides[] = {c->stride, c->stride}, pads[] = {c->pad, c->pad}, ones[] = {1, 1};
    int64_t groups = c->groups ? c->groups : 1;
    check(gb_op_set_attr_s64(op, GB_ATTR_STRIDES, 2, strides));
    check(gb_op_set_attr_s64(op, GB_ATTR_DILATIONS, 2, ones));
    check(gb_op_set_attr_s64(op, GB_ATTR_PADS_BEGIN, 2, pads));
    check(gb_op_set_attr_s64(op, GB_ATTR_PADS_END, 2, pads));
    check(gb_op_set_attr_s64(op, GB_ATTR_GROUPS, 1, &groups));
    check(gb_op_set_attr_str(op, GB_ATTR_DATA_FORMAT, "NCX", 3));
    check(gb_op_set_attr_str(op, GB_ATTR_WEIGHTS_FORMAT, "OIX", 3));
}

static gb_tensor *memory_of(const gb_logical_tensor *tensor, const gb_engine *engine)
{
    size_t bytes;
    void *data;
    gb_tensor *memory;
    check(gb_logical_tensor_get_mem_size(tensor, &bytes));
    data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(data, 0x3c, bytes); /* 0.0115 in f32 and bf16 */
    check(gb_tensor_create(&memory, tensor, engine, data));
    return memory;
}

static ours ours_create(const bench_case *c)
{
    ours o = {.n_inputs = c->bias ? 3 : 2};
    gb_engine *engine;
    gb_op *op;
    gb_graph *graph;
    gb_partition *partition;
    gb_logical_tensor tensors[4] = {tensor_of(c, 0, c->ndims, c->src),
            tensor_of(c, 1, c->weights_ndims, c->weights), tensor_of(c, 2, 1, c->weights),
            tensor_of(c, 3, c->ndims, c->dst)};
    const gb_logical_tensor *ports[] = {&tensors[0], &tensors[1], &tensors[2], &tensors[3]};
    uint8_t transpose = c->transpose_b;
    check(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    check(gb_stream_create(&o.stream, engine));
    check(gb_op_create(&op, 1, c->convolution ? GB_OP_CONVOLUTION : GB_OP_MATMUL, "op"));
    if (c->convolution)
        set_convolution(c, op);
    else
        check(gb_op_set_attr_bool(op, GB_ATTR_TRANSPOSE_B, 1, &transpose));
    for (size_t i = 0; i < o.n_inputs; i++)
        check(gb_op_add_input(op, ports[i]));
    check(gb_op_add_output(op, ports[3]));
    check(gb_graph_create(&graph, GB_ENGINE_CPU));
    check(gb_graph_add_op(graph, op));
    check(gb_graph_finalize(graph));
    check(gb_graph_filter(graph, GB_POLICY_FUSION));
    check(gb_graph_get_partitions(graph, 1, &partition, NULL));
    check(gb_partition_compile(partition, &o.compiled, o.n_inputs, ports, 1, ports + 3, engine));
    for (size_t i = 0; i < o.n_inputs; i++)
        o.inputs[i] = memory_of(ports[i], engine);
    o.output = memory_of(ports[3], engine);
    gb_partition_destroy(partition);
    gb_graph_destroy(graph);
    gb_op_destroy(op);
    gb_engine_destroy(engine);
    return o;
}

static void ours_run(ours *o)
{
    const gb_tensor *ins[] = {o->inputs[0], o->inputs[1], o->inputs[2]};
    gb_tensor *outs[] = {o->output};
    check(gb_compiled_partition_execute(o->compiled, o->stream, o->n_inputs, ins, 1, outs, NULL));
}

static void ours_destroy(ours *o)
{
    gb_tensor *tensors[] = {o->inputs[0], o->inputs[1], o->inputs[2], o->output};
    for (int i = 0; i < 4; i++) {
        void *data = NULL;
        if (!tensors[i])
            continue;
        gb_tensor_get_data_handle(tensors[i], &data);
        gb_tensor_destroy(tensors[i]);
        free(data);
    }
    gb_compiled_partition_destroy(o->compiled);
    gb_stream_destroy(o->stream);
}

/* Peer ----------------------------------------------------------------------------------------- */

#ifdef GB_WITH_DNNL

typedef struct peer {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[3];
} peer;

static dnnl_memory_desc_t peer_desc(const bench_case *c, int ndims, const int64_t *dims, bool any)
{
    dnnl_memory_desc_t desc;
    dnnl_data_type_t type = c->type == GB_F32 ? dnnl_f32 : dnnl_bf16;
    dnnl_dims_t own = {0}, strides = {0};
    int missing = c->convolution ? 0 : c->ndims - ndims;
    for (int d = 0; d < c->ndims && !c->groups; d++)
        own[d] = d < missing ? 1 : dims[d - missing];
    if (c->groups)
        memcpy(own, dims, sizeof *own * (size_t)ndims);
    int n = c->groups ? ndims : c->ndims;
    int64_t stride = 1;
    for (int d = n; d-- > 0; stride *= own[d])
        strides[d] = stride;
    if (any)
        dnnl_memory_desc_init_by_tag(&desc, n, own, type, dnnl_format_tag_any);
    else
        dnnl_memory_desc_init_by_strides(&desc, n, own, type, strides);
    return desc;
}

/* A convolution in the peer's own layouts (conversion from plain layouts is not timed). */
static dnnl_status_t peer_primitive(const bench_case *c, peer *p, dnnl_primitive_desc_t *desc)
{
    bool any = c->convolution;
    int64_t groups = c->groups ? c->groups : 1;
    int64_t grouped[] = {
            groups, c->weights[0] / groups, c->weights[1], c->weights[2], c->weights[3]};
    dnnl_memory_desc_t src = peer_desc(c, c->ndims, c->src, any);
    dnnl_memory_desc_t weights = c->groups ? peer_desc(c, 5, grouped, true)
                                           : peer_desc(c, c->weights_ndims, c->weights, any);
    dnnl_memory_desc_t dst = peer_desc(c, c->ndims, c->dst, any);
    dnnl_matmul_desc_t matmul;
    dnnl_convolution_desc_t convolution;
    dnnl_dims_t strides = {c->stride, c->stride}, pads = {c->pad, c->pad};
    if (!c->convolution) {
        if (c->transpose_b) {
            int last = weights.ndims - 1;
            int64_t dim = weights.dims[last], stride = weights.format_desc.blocking.strides[last];
            weights.dims[last] = weights.padded_dims[last] = weights.dims[last - 1];
            weights.format_desc.blocking.strides[last] =
                    weights.format_desc.blocking.strides[last - 1];
            weights.dims[last - 1] = weights.padded_dims[last - 1] = dim;
            weights.format_desc.blocking.strides[last - 1] = stride;
        }
        dnnl_matmul_desc_init(&matmul, &src, &weights, NULL, &dst);
        return dnnl_primitive_desc_create(desc, &matmul, NULL, p->engine, NULL);
    }
    dnnl_convolution_forward_desc_init(&convolution, dnnl_forward_inference,
            dnnl_convolution_direct, &src, &weights, NULL, &dst, strides, pads, pads);
    return dnnl_primitive_desc_create(desc, &convolution, NULL, p->engine, NULL);
}

static bool peer_create(const bench_case *c, peer *p)
{
    static const dnnl_query_t queries[] = {
            dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md};
    static const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    dnnl_primitive_desc_t desc;
    dnnl_engine_create(&p->engine, dnnl_cpu, 0);
    dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags);
    if (peer_primitive(c, p, &desc) != dnnl_success)
        return false;
    dnnl_primitive_create(&p->primitive, desc);
    for (int i = 0; i < 3; i++) {
        void *data;
        const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(desc, queries[i], 0);
        dnnl_memory_create(&p->arguments[i].memory, md, p->engine, DNNL_MEMORY_ALLOCATE);
        dnnl_memory_get_data_handle(p->arguments[i].memory, &data);
        memset(data, 0x3c, dnnl_memory_desc_get_size(md));
        p->arguments[i].arg = names[i];
    }
    dnnl_primitive_desc_destroy(desc);
    return true;
}

static void peer_run(peer *p)
{
    dnnl_primitive_execute(p->primitive, p->stream, 3, p->arguments);
    dnnl_stream_wait(p->stream);
}

static void peer_destroy(peer *p)
{
    dnnl_primitive_destroy(p->primitive);
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(p->arguments[i].memory);
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
}

#else

typedef struct peer {
    int none;
} peer;

static bool peer_create(const bench_case *c, peer *p)
{
    (void)c, (void)p;
    return false;
}
static void peer_run(peer *p)
{
    (void)p;
}
static void peer_destroy(peer *p)
{
    (void)p;
}

#endif

/* Comparison ----------------------------------------------------------------------------------- */

static double bytes_of(const bench_case *c)
{
    double src = 1, weights = 1, dst = 1;
    for (int d = 0; d < c->ndims; d++)
        src *= (double)c->src[d], dst *= (double)c->dst[d];
    for (int d = 0; d < c->weights_ndims; d++)
        weights *= (double)c->weights[d];
    return (src + weights + dst) * (double)gb_data_type_bytes(c->type, 1);
}

static void compare(const bench_case *c, int rounds)
{
    ours o = ours_create(c);
    peer p = {0};
    bool has_peer = peer_create(c, &p);
    double flops, bytes, best = INFINITY, best_peer = INFINITY, best_peak = 0;
    check(gb_compiled_partition_get_work(o.compiled, &flops, &bytes));
    ours_run(&o);
    for (int r = 0; r < rounds; r++) {
        best_peak = fmax(best_peak, peak());
        for (int i = 0; i < 3; i++) {
            double start = now();
            ours_run(&o);
            best = fmin(best, now() - start);
        }
        for (int i = 0; i < 3 && has_peer; i++) {
            double start = now();
            peer_run(&p);
            best_peer = fmin(best_peer, now() - start);
        }
    }
    printf("%-28s %9.4f ms %7.1f GFLOP/s %5.1f %% of %.0f %6.1f GB/s", c->name, best * 1e3,
            flops / best * 1e-9, 100e-9 * flops / best / best_peak, best_peak,
            bytes_of(c) / best * 1e-9);
    if (has_peer)
        printf("   peer %9.4f ms, ours %.2fx as fast", best_peer * 1e3, best_peer / best);
    printf("\n");
    fflush(stdout);
    if (has_peer)
        peer_destroy(&p);
    ours_destroy(&o);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc < 3 || strstr(cases[i].name, argv[2]))
            compare(&cases[i], rounds);
    return 0;
}
