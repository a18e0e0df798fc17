/* Do the elements of a strided tensor have places of their own?
 *
 * Two elements share one when the differences of their positions, weighted by the strides, add up
 * to 0. The search goes from the largest stride down and leaves out every difference that the axes
 * below cannot make up for: axes that nest, as in every dense tensor, have the difference 0 only.
 */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/written.h"

#include <stdio.h>

enum { MOST_STEPS = 1 << 20 };

typedef struct search {
    int n;                      /* axes of more than one position, by falling stride */
    int64_t last[GB_MAX_NDIMS]; /* position: dim - 1 */
    int64_t stride[GB_MAX_NDIMS];
    int64_t reach[GB_MAX_NDIMS + 1]; /* largest offset that the axes from here on make */
    int steps;                       /* taken */
} search;

static bool is_known(const gb_logical_tensor *tensor)
{
    for (int d = 0; d < tensor->ndims; d++)
        if (tensor->dims[d] < 0 || tensor->strides[d] < 0)
            return false;
    return tensor->ndims >= 0 && tensor->layout_type == GB_LAYOUT_STRIDED;
}

static void add_axis(search *s, int64_t dim, int64_t stride)
{
    int at = s->n++;
    for (; at > 0 && s->stride[at - 1] < stride; at--) {
        s->stride[at] = s->stride[at - 1];
        s->last[at] = s->last[at - 1];
    }
    s->stride[at] = stride;
    s->last[at] = dim - 1;
}

/* False when the offsets are beyond what any memory holds; such sizes are refused elsewhere. */
static bool add_reaches(search *s)
{
    s->reach[s->n] = 0;
    for (int i = s->n; i-- > 0;) {
        int64_t own;
        if (__builtin_mul_overflow(s->last[i], s->stride[i], &own) ||
                __builtin_add_overflow(own, s->reach[i + 1], &s->reach[i]) ||
                s->reach[i] > INT64_MAX / 4)
            return false;
    }
    return true;
}

/* Can the axes from `axis` on bring the offset `rest` back to 0? `moved`: an axis before has a
 * difference; without one the first may be taken above 0, and must be there. */
static bool returns(search *s, int axis, int64_t rest, bool moved)
{
    if (axis == s->n)
        return false;
    int64_t stride = s->stride[axis], below = s->reach[axis + 1];
    if (stride == 0)
        return rest == 0;
    if (axis == s->n - 1)
        return moved && rest % stride == 0 && gb_max_i64(rest, -rest) / stride <= s->last[axis];
    int64_t least = gb_max_i64(moved ? -s->last[axis] : 0, -((below + rest) / stride));
    int64_t most = gb_min_i64(s->last[axis], (below - rest) / stride);
    for (int64_t difference = least; difference <= most; difference++)
        if (++s->steps > MOST_STEPS ||
                returns(s, axis + 1, rest + difference * stride, moved || difference != 0))
            return true;
    return false;
}

bool gb_elements_overlap(const gb_logical_tensor *tensor)
{
    search s = {0};
    if (!is_known(tensor))
        return false;
    for (int d = 0; d < tensor->ndims; d++) {
        if (tensor->dims[d] == 0)
            return false;
        if (tensor->dims[d] > 1)
            add_axis(&s, tensor->dims[d], tensor->strides[d]);
    }
    return add_reaches(&s) && returns(&s, 0, 0, false);
}

gb_status gb_check_written(const gb_logical_tensor *tensor)
{
    if (!gb_elements_overlap(tensor))
        return GB_SUCCESS;
    char strides[32 * GB_MAX_NDIMS] = "";
    for (int d = 0, n = 0; d < tensor->ndims; d++)
        n += snprintf(strides + n, sizeof strides - (size_t)n, "%s%lld", d ? "x" : "",
                (long long)tensor->strides[d]);
    return gb_fail(GB_INVALID_ARGUMENTS,
            "tensor %zu (%s) is an output, but elements of it share memory: its strides are %s",
            tensor->id, gb_tensor_label(tensor), strides);
}

gb_status gb_graph_check_written(const gb_graph *graph)
{
    for (uint32_t v = 0; v < graph->n_values; v++)
        if (graph->values[v].producer != GB_NONE)
            GB_TRY(gb_check_written(&graph->values[v].tensor));
    return GB_SUCCESS;
}
