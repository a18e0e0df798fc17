/* TypeCast and Reorder: the values stay, the store to the new type does the rest. */
#include "base/status.h"
#include "ref/bounds/bound.h"
#include "ref/bounds/walk.h"
#include "ref/ops/ref_functions.h"

static void copy_row(void *context, const gb_ref_row *row)
{
    const gb_ref_call *call = context;
    const gb_ref_tensor *src = call->inputs[0];
    for (int64_t i = row->first; i < row->first + row->count; i++)
        gb_ref_put(&call->outputs[0], i, (gb_ref_pair){src->value[i], gb_ref_bound(src, i)});
}

gb_status gb_ref_copy(const gb_ref_call *call)
{
    gb_ref_call context = *call;
    if (call->outputs[0].count != call->inputs[0]->count)
        return gb_fail(GB_INVALID_SHAPE, "%s: src and dst differ in size", gb_op_label(call->op));
    gb_ref_walk_flat(call->outputs[0].count, copy_row, &context);
    return GB_SUCCESS;
}
