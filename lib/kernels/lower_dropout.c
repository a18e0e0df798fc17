/* Lowers Dropout: whether an element stays depends on seed, offset and its place in dst. */
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/chunks.h"
#include "kernels/kernels.h"
#include "kernels/lower_step.h"

#include <math.h>
#include <string.h>

typedef struct dropout_view {
    gb_data_type type; /* GB_UNDEF: none */
    uint32_t slot;
    int64_t strides[GB_MAX_NDIMS];
} dropout_view;

typedef struct dropout {
    gb_chunks chunks;
    dropout_view src, dst, mask;
    uint32_t seed_slot, offset_slot, probability_slot;
} dropout;

static char *locate(const dropout *params, const gb_step_call *call, const dropout_view *view,
        const int64_t *position)
{
    char *data = call->buffers[view->slot];
    return data + gb_offset(params->chunks.ndims, view->strides, position) *
                          (int64_t)gb_data_type_bytes(view->type, 1);
}

static int64_t step_of(const dropout *params, const dropout_view *view)
{
    return params->chunks.inner < 0 ? 1 : view->strides[params->chunks.inner];
}

/* Seed, offset, threshold and scale of one execution. A draw r stays when r > 4294967295 p. */
static gb_dropout_block settings(const dropout *params, const gb_step_call *call)
{
    gb_dropout_block block = {0};
    float p;
    memcpy(&block.seed, call->buffers[params->seed_slot], sizeof block.seed);
    memcpy(&block.offset, call->buffers[params->offset_slot], sizeof block.offset);
    memcpy(&p, call->buffers[params->probability_slot], sizeof p);
    p = fminf(fmaxf(p, 0), 1);
    block.threshold = (uint32_t)floor(4294967295.0 * (double)p);
    block.scale = p == 1 ? 0 : 1 / (1 - p);
    return block;
}

static void run_chunk(
        const dropout *params, const gb_step_call *call, int64_t unit, gb_dropout_block *block)
{
    int64_t position[GB_MAX_NDIMS] = {0};
    float *values = (float *)(void *)call->scratch;
    uint8_t *keep = (uint8_t *)(values + GB_DROPOUT_ELEMENTS);
    block->n = gb_chunks_locate(&params->chunks, unit, position);
    block->first = (uint64_t)gb_offset(params->chunks.ndims, params->dst.strides, position);
    block->step = step_of(params, &params->dst);
    gb_kernels_get()->load_tile(params->src.type, locate(params, call, &params->src, position), 0,
            step_of(params, &params->src), 1, block->n, values);
    block->src = block->dst = values;
    block->keep = keep;
    gb_kernels_get()->dropout(block);
    gb_kernels_get()->store_tile(params->dst.type, values, 1, block->n,
            locate(params, call, &params->dst, position), 0, block->step);
    if (params->mask.type == GB_UNDEF)
        return;
    uint8_t *mask = (uint8_t *)locate(params, call, &params->mask, position);
    int64_t step = step_of(params, &params->mask);
    for (int64_t i = 0; i < block->n; i++)
        mask[i * step] = keep[i];
}

static void run(const gb_step_call *call)
{
    const dropout *params = call->params;
    gb_dropout_block block = settings(params, call);
    int64_t begin, end;
    gb_split(params->chunks.units, call->thread, call->n_threads, &begin, &end);
    for (int64_t unit = begin; unit < end; unit++)
        run_chunk(params, call, unit, &block);
}

static gb_status use(gb_program *program, gb_step *step, uint32_t value, bool written,
        gb_space *space, dropout_view *view)
{
    const gb_logical_tensor *tensor = &gb_program_graph(program)->values[value].tensor;
    view->type = tensor->data_type;
    memcpy(view->strides, tensor->strides, (size_t)tensor->ndims * sizeof *view->strides);
    gb_space_add(space, view->strides);
    return gb_program_use(program, step, value, written, &view->slot);
}

static gb_status use_scalars(gb_program *program, const gb_op *op, gb_step *step)
{
    dropout *params = step->params;
    uint32_t *slots[] = {&params->seed_slot, &params->offset_slot, &params->probability_slot};
    for (uint32_t i = 0; i < 3; i++) {
        const gb_logical_tensor *tensor = gb_op_input(op, i + 1);
        if (gb_tensor_count(tensor) != 1)
            return gb_fail(GB_INVALID_SHAPE, "%s: input %u is %s, expected one element",
                    gb_op_label(op), i + 1, gb_tensor_label(tensor));
        GB_TRY(gb_program_use(program, step, op->inputs[i + 1], false, slots[i]));
    }
    return GB_SUCCESS;
}

static gb_status plan(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_group_op(program, group);
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    dropout *params = step->params;
    gb_space space = {.ndims = dst->ndims};
    memcpy(space.dims, dst->dims, sizeof dst->dims);
    GB_TRY(use(program, step, op->outputs[0], true, &space, &params->dst));
    GB_TRY(use(program, step, op->inputs[0], false, &space, &params->src));
    if (op->n_outputs > 1)
        GB_TRY(use(program, step, op->outputs[1], true, &space, &params->mask));
    GB_TRY(use_scalars(program, op, step));
    params->chunks = gb_chunks_of(&space, GB_DROPOUT_ELEMENTS);
    step->thread_scratch = GB_DROPOUT_ELEMENTS * (sizeof(float) + 1);
    step->flops = (double)gb_tensor_count(dst);
    step->work = 32 * step->flops;
    return GB_SUCCESS;
}

static gb_status lower(gb_program *program, const gb_group *group)
{
    gb_step step = {.kernel = "dropout", .run = run};
    return gb_lower_step(program, group, step, sizeof(dropout), plan);
}

static bool supports(const gb_op *op, const char **reason)
{
    (void)op;
    (void)reason;
    return true;
}

const gb_lowering gb_lowering_dropout = {.name = "dropout", .supports = supports, .lower = lower};
