/* Lists of window cells per axis, and their products. */
#include "ref/ops/window_cells.h"

#include "base/memory.h"
#include "base/status.h"
#include <stdlib.h>

/* One axis: window o has cell k at image position o * stride + k * dilation - pad. */
typedef struct axis_rule {
    int64_t stride, dilation, pad, kernel, source;
    bool gradient;
} axis_rule;

static int64_t div_up(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

static int64_t div_down(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* Counts the source positions that target position `i` reads and lists them where `offsets` is not
 * NULL. */
static int64_t list_axis(const axis_rule *rule, int64_t i, int64_t stride, int64_t *offsets)
{
    int64_t count = 0;
    if (!rule->gradient) {
        int64_t start = i * rule->stride - rule->pad;
        int64_t k = gb_max_i64(0, div_up(-start, rule->dilation));
        for (; k < rule->kernel && start + k * rule->dilation < rule->source; k++, count++)
            if (offsets)
                offsets[count] = (start + k * rule->dilation) * stride;
        return count;
    }
    int64_t reach = (rule->kernel - 1) * rule->dilation, at = i + rule->pad;
    int64_t o = gb_max_i64(0, div_up(at - reach, rule->stride));
    int64_t last = gb_min_i64(rule->source - 1, div_down(at, rule->stride));
    for (; o <= last; o++) {
        if ((at - o * rule->stride) % rule->dilation != 0)
            continue;
        if (offsets)
            offsets[count] = o * stride;
        count++;
    }
    return count;
}

static gb_status window_cells_create_axis(
        gb_ref_axis_cells *axis, const axis_rule *rule, int64_t positions, int64_t stride)
{
    axis->first = gb_calloc((size_t)positions + 1, sizeof(int64_t));
    if (!axis->first)
        return GB_OUT_OF_MEMORY;
    for (int64_t i = 0; i < positions; i++) {
        int64_t count = list_axis(rule, i, stride, NULL);
        axis->most = gb_max_i64(axis->most, count);
        axis->first[i + 1] = axis->first[i] + count;
    }
    axis->offsets = gb_calloc((size_t)axis->first[positions], sizeof(int64_t));
    if (!axis->offsets)
        return GB_OUT_OF_MEMORY;
    for (int64_t i = 0; i < positions; i++)
        list_axis(rule, i, stride, axis->offsets + axis->first[i]);
    return GB_SUCCESS;
}

static gb_status create_axes(gb_ref_window_cells *cells, const gb_window *window, bool gradient)
{
    int64_t stride = cells->source.position_stride;
    cells->most = 1;
    for (int axis = cells->target.n_spatial - 1; axis >= 0; axis--) {
        axis_rule rule = {window->strides[axis], window->dilations[axis], window->pads_begin[axis],
                window->kernel[axis], cells->source.spatial[axis], gradient};
        GB_TRY(window_cells_create_axis(
                &cells->axes[axis], &rule, cells->target.spatial[axis], stride));
        stride *= cells->source.spatial[axis];
        cells->most *= cells->axes[axis].most;
    }
    return GB_SUCCESS;
}

gb_status gb_ref_window_cells_create(gb_ref_window_cells *cells, const gb_ref_view *source,
        const gb_ref_view *target, const gb_window *window, bool gradient)
{
    *cells = (gb_ref_window_cells){.source = *source, .target = *target};
    cells->columns = target->batch * target->positions;
    gb_status status = create_axes(cells, window, gradient);
    if (status != GB_SUCCESS)
        gb_ref_window_cells_destroy(cells);
    return status;
}

void gb_ref_window_cells_destroy(gb_ref_window_cells *cells)
{
    for (int axis = 0; axis < GB_MAX_NDIMS; axis++) {
        free(cells->axes[axis].first);
        free(cells->axes[axis].offsets);
    }
    *cells = (gb_ref_window_cells){0};
}

int64_t gb_ref_window_cells_list(
        const gb_ref_window_cells *cells, int64_t column, int64_t *offsets, int64_t *target)
{
    const gb_ref_view *view = &cells->target;
    int64_t batch = column / view->positions, position = column % view->positions;
    int64_t count = cells->most > 0;
    *target = batch * view->batch_stride + position * view->position_stride;
    if (count == 0)
        return 0;
    offsets[0] = batch * cells->source.batch_stride;
    /* From the last axis outwards: the list so far is repeated for each cell of the next axis,
     * backwards, so that it can grow in place. */
    for (int d = view->n_spatial - 1; d >= 0; d--) {
        const gb_ref_axis_cells *axis = &cells->axes[d];
        int64_t at = position % view->spatial[d];
        const int64_t *more = axis->offsets + axis->first[at];
        int64_t n = axis->first[at + 1] - axis->first[at];
        position /= view->spatial[d];
        for (int64_t i = n - 1; i >= 0; i--)
            for (int64_t j = 0; j < count; j++)
                offsets[i * count + j] = offsets[j] + more[i];
        count *= n;
    }
    return count;
}
