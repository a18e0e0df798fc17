/* The OpenCL backend. */
#include "base/status.h"
#include "kernels/opencl/lower.h"
#include "kernels/plan/pointwise_rules.h"

#include <stdio.h>
#include <string.h>

extern const gb_backend gb_opencl_backend;

static const gb_cl_lowering *const lowerings[GB_OP_LAST] = {
        [GB_OP_STATIC_RESHAPE] = &gb_cl_lowering_movement,
        [GB_OP_STATIC_TRANSPOSE] = &gb_cl_lowering_movement,
        [GB_OP_REORDER] = &gb_cl_lowering_reorder,
        [GB_OP_CONCAT] = &gb_cl_lowering_concat,
        [GB_OP_MATMUL] = &gb_cl_lowering_matmul,
        [GB_OP_CONVOLUTION] = &gb_cl_lowering_conv,
        [GB_OP_CONVOLUTION_BACKWARD_DATA] = &gb_cl_lowering_conv,
        [GB_OP_CONV_TRANSPOSE] = &gb_cl_lowering_conv,
        [GB_OP_CONV_TRANSPOSE_BACKWARD_DATA] = &gb_cl_lowering_conv,
        [GB_OP_CONVOLUTION_BACKWARD_WEIGHTS] = &gb_cl_lowering_gradient,
        [GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS] = &gb_cl_lowering_gradient,
        [GB_OP_AVG_POOL] = &gb_cl_lowering_pool,
        [GB_OP_MAX_POOL] = &gb_cl_lowering_pool,
        [GB_OP_AVG_POOL_BACKWARD] = &gb_cl_lowering_pool_backward,
        [GB_OP_MAX_POOL_BACKWARD] = &gb_cl_lowering_pool_backward,
        [GB_OP_INTERPOLATE] = &gb_cl_lowering_resample,
        [GB_OP_INTERPOLATE_BACKWARD] = &gb_cl_lowering_resample,
        [GB_OP_BATCH_NORM_FORWARD_TRAINING] = &gb_cl_lowering_batch_norm,
        [GB_OP_BATCH_NORM_BACKWARD] = &gb_cl_lowering_batch_norm,
        [GB_OP_LAYER_NORM_BACKWARD] = &gb_cl_lowering_layer_norm_backward,
        [GB_OP_PRELU_BACKWARD] = &gb_cl_lowering_prelu_backward,
        [GB_OP_WILDCARD] = &gb_cl_lowering_defined,
        [GB_OP_REDUCE_L1] = &gb_cl_lowering_reduction,
        [GB_OP_REDUCE_L2] = &gb_cl_lowering_reduction,
        [GB_OP_REDUCE_MAX] = &gb_cl_lowering_reduction,
        [GB_OP_REDUCE_MEAN] = &gb_cl_lowering_reduction,
        [GB_OP_REDUCE_MIN] = &gb_cl_lowering_reduction,
        [GB_OP_REDUCE_PROD] = &gb_cl_lowering_reduction,
        [GB_OP_REDUCE_SUM] = &gb_cl_lowering_reduction,
        [GB_OP_BIAS_ADD_BACKWARD] = &gb_cl_lowering_reduction,
        [GB_OP_SOFTMAX] = &gb_cl_lowering_softmax,
        [GB_OP_LOG_SOFTMAX] = &gb_cl_lowering_softmax,
        [GB_OP_SOFTMAX_BACKWARD] = &gb_cl_lowering_softmax_backward,
        [GB_OP_LOG_SOFTMAX_BACKWARD] = &gb_cl_lowering_softmax_backward,
        [GB_OP_LAYER_NORM] = &gb_cl_lowering_norm,
        [GB_OP_RMS_NORM] = &gb_cl_lowering_norm,
        [GB_OP_GROUP_NORM] = &gb_cl_lowering_norm,
};

const gb_cl_lowering *gb_cl_lowering_of(gb_op_kind kind)
{
    return (unsigned)kind < GB_OP_LAST ? lowerings[kind] : NULL;
}

static void describe(size_t index, char *text, size_t bytes)
{
    gb_cl_device_describe(gb_cl_device_at(index), text, bytes);
}

static const char *variant(size_t index)
{
    (void)index;
    return "opencl";
}

static bool supports(const gb_op *op, const char **reason)
{
    const gb_cl_lowering *lowering = gb_cl_lowering_of(op->kind);
    return lowering ? lowering->supports(op, reason) : gb_pointwise_supports(op, reason);
}

static bool takes_epilogue(const gb_op *op)
{
    const gb_cl_lowering *lowering = gb_cl_lowering_of(op->kind);
    return lowering && lowering->takes_epilogue;
}

static bool is_pointwise(const gb_op *op)
{
    const char *reason;
    return !gb_cl_lowering_of(op->kind) && gb_pointwise_supports(op, &reason);
}

static bool fuses_producer(const gb_op *anchor, uint32_t input, const gb_op *op)
{
    const gb_cl_lowering *lowering = gb_cl_lowering_of(anchor->kind);
    return lowering && lowering->fuses_producer && lowering->fuses_producer(anchor, input, op);
}

static uint32_t reads_formats(const gb_op *op, uint32_t input, gb_format_candidate *candidates)
{
    (void)op, (void)input, (void)candidates;
    return 0;
}

static uint32_t writes_formats(const gb_graph *graph, const gb_group *group, uint32_t value,
        gb_format_candidate *candidates)
{
    if (group->region || group->anchor == GB_NONE)
        return 0;
    const gb_cl_lowering *lowering = gb_cl_lowering_of(graph->ops[group->anchor]->kind);
    return lowering && lowering->writes_formats
                   ? lowering->writes_formats(graph, group, value, candidates)
                   : 0;
}

static const gb_cl_region_lowering *const regions[] = {&gb_cl_lowering_attention,
        &gb_cl_lowering_attention_gradients, &gb_cl_lowering_gated_matmul,
        &gb_cl_lowering_conv_pair, &gb_cl_lowering_batch_norm_relu,
        &gb_cl_lowering_relu_batch_norm_backward};

static const gb_region *region(uint32_t index)
{
    return index < sizeof regions / sizeof *regions ? regions[index]->region : NULL;
}

static const gb_cl_region_lowering *region_lowering_of(const gb_region *region)
{
    uint32_t i = 0;
    while (regions[i]->region != region)
        i++;
    return regions[i];
}

static bool accepts(const gb_graph *graph, const gb_region *region, const void *parts, bool on_cpu)
{
    const gb_cl_region_lowering *lowering = region_lowering_of(region);
    return !lowering->accepts || lowering->accepts(graph, parts, on_cpu);
}

static bool accepts_on_cpu(const gb_graph *graph, const gb_region *region, const void *parts)
{
    return accepts(graph, region, parts, true);
}

static bool accepts_elsewhere(const gb_graph *graph, const gb_region *region, const void *parts)
{
    return accepts(graph, region, parts, false);
}

/* A kernel has an argument for each tensor, of which devices take some sixty. */
enum { POST_OPS = 24 };

#define CAPABILITY(accepts)                                                                        \
    {                                                                                              \
        .supports = supports, .takes_epilogue = takes_epilogue, .is_pointwise = is_pointwise,      \
        .fuses_producer = fuses_producer, .reads_formats = reads_formats,                          \
        .writes_formats = writes_formats, .region = region, .accepts_region = (accepts),           \
        .cost = {.group_post_ops = POST_OPS,                                                       \
                .repeated_row = 64,                                                                \
                .head_terms = 512,                                                                 \
                .head_columns = 16},                                                               \
    }

static const gb_capability *capability(size_t index)
{
    static const gb_capability on_cpu = CAPABILITY(accepts_on_cpu),
                               elsewhere = CAPABILITY(accepts_elsewhere);
    const gb_cl_device *device = gb_cl_device_at(index);
    return device && device->type & CL_DEVICE_TYPE_CPU ? &on_cpu : &elsewhere;
}

static gb_status lower(gb_program *program, const gb_group *group)
{
    if (group->region)
        return region_lowering_of(group->region)->lower(program, group);
    if (group->anchor == GB_NONE)
        return gb_cl_lower_pointwise(program, group);
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_cl_lowering *lowering = gb_cl_lowering_of(op->kind);
    return lowering ? lowering->lower(program, group)
                    : gb_fail(GB_UNIMPLEMENTED, "%s: OpenCL has no kernel", gb_op_label(op));
}

static uint64_t compile_key(const gb_engine *engine)
{
    return gb_cl_shape_key(&gb_cl_engine_of(engine)->shape);
}

static size_t scratch_bytes(const gb_program *program, const gb_stream *stream)
{
    (void)program, (void)stream;
    return 0;
}

static bool identify(const gb_step *step, gb_digest *digest)
{
    const gb_cl_step *s = step->params;
    if (s->op)
        return false;
    size_t sizes[] = {s->global[0], s->global[1], s->global[2], s->local[0], s->local[1],
            s->local[2], (size_t)s->uses_math, (size_t)s->lanes};
    *digest = gb_digest_join(gb_digest_memory(s->source, strlen(s->source)),
            gb_digest_memory(s->numbers, s->n_numbers * sizeof *s->numbers));
    *digest = gb_digest_join(*digest, gb_digest_memory(sizes, sizeof sizes));
    if (s->family)
        *digest = gb_digest_join(*digest, gb_digest_memory(s->family, strlen(s->family)));
    return true;
}

const gb_backend gb_opencl_backend = {
        .name = "opencl",
        .kind = GB_ENGINE_GPU,
        .host_memory = false,
        .device_count = gb_cl_device_count,
        .describe = describe,
        .variant = variant,
        .capability = capability,
        .engine_init = gb_cl_engine_init,
        .engine_fini = gb_cl_engine_fini,
        .compile_key = compile_key,
        .memory_create = gb_cl_memory_create,
        .memory_adopt = gb_cl_memory_adopt,
        .memory_retain = gb_cl_memory_retain,
        .memory_release = gb_cl_memory_release,
        .map = gb_cl_memory_map,
        .unmap = gb_cl_memory_unmap,
        .digest = gb_cl_memory_digest,
        .stream_init = gb_cl_stream_init,
        .stream_fini = gb_cl_stream_fini,
        .stream_wait = gb_cl_stream_wait,
        .lower = lower,
        .finish = gb_cl_program_finish,
        .program_fini = gb_cl_program_fini,
        .scratch_bytes = scratch_bytes,
        .execute = gb_cl_execute,
        .identify = identify,
};
