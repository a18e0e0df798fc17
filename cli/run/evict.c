/* Flushing tensors out of the caches. */
#include "cli/run/evict.h"

#include "cli/options/message.h"
#include "cli/run/held_memory.h"

#include <graphbench/graphbench_tools.h>
#include <stdint.h>
#include <stdlib.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* ------------------------------------------------------------ lines */

#if defined(__x86_64__)

enum { LINE = 64, BLOCK = 1 << 16 };
static const bool can_flush = true;

/* Flushes that wait for each other; every processor has them. */
static void flush_in_turn(const char *from, const char *to)
{
    for (; from < to; from += LINE)
        _mm_clflush(from);
}

/* Many at a time. */
__attribute__((target("clflushopt"))) static void flush_at_once(const char *from, const char *to)
{
    for (; from < to; from += LINE)
        _mm_clflushopt((void *)(uintptr_t)from);
}

static bool has_clflushopt(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & 1u << 23;
}

static void flush(const gb_cached_range *range)
{
    const char *data = (const char *)range->data - (uintptr_t)range->data % LINE;
    const char *end = (const char *)range->data + range->bytes;
    void (*lines)(const char *, const char *) = has_clflushopt() ? flush_at_once : flush_in_turn;
    int64_t blocks = (end - data + BLOCK - 1) / BLOCK;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < blocks; i++) {
        const char *from = data + i * BLOCK;
        lines(from, end - from < BLOCK ? end : from + BLOCK);
        _mm_mfence(); /* they are done when this is */
    }
}

#else

static const bool can_flush = false;

static void flush(const gb_cached_range *range)
{
    (void)range;
}

#endif

void gb_cli_evict(const gb_eviction *eviction)
{
    for (size_t i = 0; i < eviction->n; i++)
        flush(&eviction->ranges[i]);
}

void gb_cli_eviction_free(gb_eviction *eviction)
{
    free(eviction->ranges);
    *eviction = (gb_eviction){0};
}

/* ------------------------------------------------------------ tensors */

static void add(void *context, const void *data, size_t bytes)
{
    gb_eviction *eviction = context;
    if (bytes == 0)
        return;
    eviction->ranges = gb_cli_realloc(eviction->ranges, eviction->n + 1, sizeof *eviction->ranges);
    eviction->ranges[eviction->n++] = (gb_cached_range){data, bytes};
}

/* Constants, and what is given and read where the op table has weights. */
static gb_status is_weight(const gb_workload *work, size_t memory, bool *weight)
{
    const gb_logical_tensor *tensor = &work->memories[memory].tensor;
    size_t n;
    *weight = tensor->property == GB_PROPERTY_CONSTANT;
    if (*weight || !work->is_given[memory])
        return GB_SUCCESS;
    LIB_TRY(gb_graph_get_uses(work->graph, tensor->id, 0, NULL, &n));
    gb_tensor_use *uses = gb_cli_realloc(NULL, n, sizeof *uses);
    gb_status status = gb_graph_get_uses(work->graph, tensor->id, n, uses, NULL);
    for (size_t i = 0; status == GB_SUCCESS && i < n && !*weight; i++) {
        const gb_op *reader;
        gb_op_kind kind;
        status = gb_graph_find_op(work->graph, uses[i].op_id, &reader);
        if (status == GB_SUCCESS)
            status = gb_op_get_kind(reader, &kind);
        *weight = status == GB_SUCCESS &&
                  gb_op_kind_get_input_range(kind, uses[i].input) == GB_RANGE_WEIGHTS;
    }
    free(uses);
    return status == GB_SUCCESS ? status : gb_cli_fail_library(status);
}

gb_status gb_cli_eviction_check(gb_workload *work, bool *go_on)
{
    const gb_settings *settings = work->settings;
    const char *why = NULL;
    bool found = settings->cold_cache == COLD_ALL;
    if (settings->cold_cache == COLD_NONE || !(settings->mode & MODE_PERFORMANCE))
        return GB_SUCCESS;
    for (size_t m = 0; m < work->n_memories && !found; m++)
        CLI_TRY(is_weight(work, m, &found));
    if (settings->engine_kind != GB_ENGINE_CPU)
        why = "the caches of this device cannot be flushed";
    else if (!can_flush)
        why = "the caches of this processor cannot be flushed";
    else if (settings->dynamic)
        why = "not with --dynamic";
    else if (!found)
        why = "the graph has neither constants nor weights";
    if (why)
        gb_cli_result_set(work->result, CASE_SKIPPED, "--cold-cache: %s", why);
    *go_on = !why;
    return GB_SUCCESS;
}

gb_status gb_cli_eviction_add(
        const gb_workload *work, const gb_work_part *part, gb_eviction *eviction)
{
    for (size_t i = 0; i < part->n_inputs + part->n_outputs; i++) {
        size_t m = i < part->n_inputs ? part->inputs[i] : part->outputs[i - part->n_inputs];
        bool wanted = work->settings->cold_cache == COLD_ALL;
        if (!wanted)
            CLI_TRY(is_weight(work, m, &wanted));
        if (wanted)
            add(eviction, work->memories[m].data, work->memories[m].bytes);
    }
    gb_cli_held_visit(work->session->held, part->first_block, part->end_block, add, eviction);
    return GB_SUCCESS;
}
