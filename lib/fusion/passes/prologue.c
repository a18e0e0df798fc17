/* Prologues: ops that all readers of their result take over, each for itself. */
#include "fusion/passes/passes.h"

/* Does whatever reads `value` take `op` over, directly or behind ops that are fused? */
static bool all_take(const gb_graph *graph, const gb_pass_context *context,
        const uint32_t *region_of, const bool *is_fused, const gb_value *value, const gb_op *op)
{
    if (value->n_uses == 0 || gb_leaves_partition(context, value))
        return false;
    for (uint32_t i = 0; i < value->n_uses; i++) {
        const gb_op *reader = graph->ops[value->uses[i].op];
        if (reader->kind == GB_OP_END || region_of[reader->index] != GB_NONE)
            return false;
        bool takes =
                is_fused[reader->index]
                        ? value->uses[i].input == 0 &&
                                  all_take(graph, context, region_of, is_fused,
                                          &graph->values[reader->outputs[0]], op)
                        : context->capability->fuses_producer(reader, value->uses[i].input, op);
        if (!takes)
            return false;
    }
    return true;
}

void gb_find_fused_producers(const gb_graph *graph, const gb_pass_context *context,
        const uint32_t *region_of, bool *is_fused)
{
    for (uint32_t i = graph->n_ops; i-- > 0;) {
        const gb_op *op = graph->ops[i];
        is_fused[i] =
                context->capability->fuses_producer && op->kind != GB_OP_END &&
                op->n_outputs == 1 && region_of[i] == GB_NONE &&
                all_take(graph, context, region_of, is_fused, &graph->values[op->outputs[0]], op);
    }
}
