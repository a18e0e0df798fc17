/* The CPU backend: kernels on OpenMP threads. */
#include "base/dtype.h"
#include "base/guard.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "graph/ir/content.h"
#include "kernels/cpu/execute.h"
#include "kernels/cpu/lower.h"
#include "kernels/isa/kernels.h"
#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>

extern const gb_backend gb_cpu_backend;

static size_t device_count(void)
{
    return 1;
}

static void cpu_describe(size_t index, char *text, size_t bytes)
{
    (void)index;
    int threads = gb_max_threads();
    snprintf(text, bytes, "cpu, isa %s, %d thread%s", gb_isa_name(gb_cpu_isa()), threads,
            threads == 1 ? "" : "s");
}

static const char *variant(size_t device)
{
    (void)device;
    return gb_isa_name(gb_cpu_isa());
}

static bool cpu_supports(const gb_op *op, const char **reason)
{
    const gb_lowering *lowering = gb_lowering_get(op->kind);
    if (lowering)
        return lowering->supports(op, reason);
    return gb_pointwise_supports(op, reason);
}

static bool takes_epilogue(const gb_op *op)
{
    const gb_lowering *lowering = gb_lowering_get(op->kind);
    return lowering && lowering->takes_epilogue;
}

static bool cpu_fuses_producer(const gb_op *anchor, uint32_t input, const gb_op *op)
{
    const gb_lowering *lowering = gb_lowering_get(anchor->kind);
    return lowering && lowering->fuses_producer && lowering->fuses_producer(anchor, input, op);
}

static uint32_t cpu_reads_formats(const gb_op *op, uint32_t input, gb_format_candidate *candidates)
{
    const gb_lowering *lowering = gb_lowering_get(op->kind);
    return lowering && lowering->reads_formats ? lowering->reads_formats(op, input, candidates) : 0;
}

static bool cpu_keeps_formats(const gb_op *op)
{
    const gb_lowering *lowering = gb_lowering_get(op->kind);
    return lowering && lowering->keeps_formats;
}

static uint32_t cpu_writes_formats(const gb_graph *graph, const gb_group *group, uint32_t value,
        gb_format_candidate *candidates)
{
    if (group->region) {
        const gb_region_lowering *region = gb_region_lowering_of(group->region);
        return region->writes_formats ? region->writes_formats(graph, group, value, candidates) : 0;
    }
    if (group->anchor == GB_NONE)
        return 0;
    const gb_lowering *lowering = gb_lowering_get(graph->ops[group->anchor]->kind);
    if (!lowering || !lowering->writes_formats)
        return 0;
    return lowering->writes_formats(graph, group, value, candidates);
}

static bool cpu_is_post_op(const gb_op *op)
{
    const char *reason;
    return !gb_lowering_get(op->kind) && gb_pointwise_supports(op, &reason);
}

static const gb_region *region(uint32_t index)
{
    const gb_region_lowering *lowering = gb_region_lowering_at(index);
    return lowering ? lowering->region : NULL;
}

static bool accepts_region(const gb_graph *graph, const gb_region *region, const void *parts)
{
    const gb_region_lowering *lowering = gb_region_lowering_of(region);
    return !lowering->accepts || lowering->accepts(graph, parts);
}

static gb_status cpu_lower(gb_program *program, const gb_group *group)
{
    if (group->region)
        return gb_region_lowering_of(group->region)->lower(program, group);
    if (group->anchor == GB_NONE)
        return gb_lower_pointwise(program, group);
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    return gb_lowering_get(op->kind)->lower(program, group);
}

/* What kernels do is known by function and parameters, unless these point to more. */
static bool identify(const gb_step *step, gb_digest *digest)
{
    if (!step->params_bytes)
        return false;
    *digest = gb_digest_join(gb_digest_memory(&step->run, sizeof step->run),
            gb_digest_memory(step->params, step->params_bytes));
    return true;
}

static const gb_capability *capability(size_t device)
{
    static const gb_capability cpu = {.supports = cpu_supports,
            .takes_epilogue = takes_epilogue,
            .is_pointwise = cpu_is_post_op,
            .fuses_producer = cpu_fuses_producer,
            .reads_formats = cpu_reads_formats,
            .keeps_formats = cpu_keeps_formats,
            .writes_formats = cpu_writes_formats,
            .region = region,
            .accepts_region = accepts_region,
            /* One pass over a result costs as much as some hundred terms of each element; the
             * batched product is slower than the whole one by less than that. Columns of a head
             * fill vectors. */
            .cost = {.group_post_ops = GB_GROUP_OPS,
                    .repeated_row = 64,
                    .head_terms = 512,
                    .head_columns = 16}};
    (void)device;
    return &cpu;
}

/* Engines and memory --------------------------------------------------------------------------- */

static gb_status engine_init(gb_engine *engine, const gb_interop *interop)
{
    (void)engine;
    return interop->device || interop->context
                   ? gb_fail(GB_INVALID_ARGUMENTS, "a CPU engine has no device and no context")
                   : GB_SUCCESS;
}

static void engine_fini(gb_engine *engine)
{
    (void)engine;
}

static uint64_t compile_key(const gb_engine *engine)
{
    (void)engine;
    const gb_machine *machine = gb_machine_get();
    uint64_t key = gb_hash_mix((uint64_t)machine->l1_bytes, (uint64_t)machine->l2_bytes);
    key = gb_hash_mix(gb_hash_mix(key, (uint64_t)machine->l3_bytes), gb_guard_bytes());
    key = gb_hash_mix(key, (uint64_t)machine->bf16_groups);
    return key << 32 | (uint32_t)gb_max_threads(); /* the executor reads the lower half */
}

static gb_status memory_create(const gb_engine *engine, size_t bytes, void **memory)
{
    const gb_allocator *a = &engine->allocator;
    *memory = a->malloc_with ? a->malloc_with(bytes, GB_CACHE_LINE, a->context)
                             : a->malloc_fn(bytes, GB_CACHE_LINE);
    return *memory ? GB_SUCCESS
                   : gb_fail(GB_OUT_OF_MEMORY,
                             "the engine's allocator returned no memory for %zu bytes", bytes);
}

static void memory_release(const gb_engine *engine, void *memory)
{
    if (engine->allocator.free_with)
        engine->allocator.free_with(memory, engine->allocator.context);
    else
        engine->allocator.free_fn(memory);
}

static gb_status map(const gb_engine *engine, gb_stream *stream, void *memory, size_t offset,
        size_t bytes, void **pointer)
{
    (void)engine;
    (void)stream;
    (void)bytes;
    *pointer = (char *)memory + offset;
    return GB_SUCCESS;
}

static gb_status unmap(const gb_engine *engine, gb_stream *stream, void *memory, void *pointer)
{
    (void)engine;
    (void)stream;
    (void)memory;
    (void)pointer;
    return GB_SUCCESS;
}

static void stream_wait(gb_stream *stream)
{
    (void)stream;
}

const gb_backend gb_cpu_backend = {
        .name = "cpu",
        .kind = GB_ENGINE_CPU,
        .host_memory = true,
        .device_count = device_count,
        .describe = cpu_describe,
        .variant = variant,
        .capability = capability,
        .engine_init = engine_init,
        .engine_fini = engine_fini,
        .compile_key = compile_key,
        .memory_create = memory_create,
        .memory_release = memory_release,
        .map = map,
        .unmap = unmap,
        .digest = gb_cpu_digest,
        .stream_init = gb_cpu_stream_init,
        .stream_fini = gb_cpu_stream_fini,
        .stream_wait = stream_wait,
        .lower = cpu_lower,
        .finish = gb_cpu_finish,
        .program_fini = gb_cpu_program_fini,
        .scratch_bytes = gb_cpu_scratch_bytes,
        .execute = gb_cpu_execute,
        .identify = identify,
};
