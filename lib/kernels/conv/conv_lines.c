/* Lines of result positions and their taps. */
#include "kernels/conv/conv_lines.h"

#include "base/memory.h"

/* The longest axis; of several the last, whose positions lie closest where channels come last. */
static int find_tile_axis(const gb_conv_problem *problem)
{
    int best = 0;
    for (int a = 1; a < problem->n_axes; a++)
        if (problem->axes[a].out >= problem->axes[best].out)
            best = a;
    return best;
}

static void find_inner(gb_conv_lines *lines)
{
    const gb_conv_axis *axis = gb_conv_lines_axis(lines);
    int64_t reach = (axis->kernel - 1) * axis->dilation;
    int64_t end = gb_ceil_div(axis->in + axis->pad - reach, axis->stride);
    lines->inner_first = gb_min_i64(gb_max_i64(gb_ceil_div(axis->pad, axis->stride), 0), axis->out);
    lines->inner_end = gb_max_i64(gb_min_i64(end, axis->out), lines->inner_first);
}

gb_conv_lines gb_conv_lines_make(const gb_conv_problem *problem)
{
    gb_conv_lines lines = {.n_axes = problem->n_axes,
            .tile_axis = find_tile_axis(problem),
            .taps = 1,
            .n_lines = 1};
    for (int a = 0; a < lines.n_axes; a++) {
        lines.axes[a] = problem->axes[a];
        lines.taps *= problem->axes[a].kernel;
        lines.n_lines *= a == lines.tile_axis ? 1 : problem->axes[a].out;
    }
    find_inner(&lines);
    return lines;
}

double gb_conv_lines_terms(const gb_conv_lines *lines)
{
    return (double)lines->taps * (double)lines->n_lines * (double)gb_conv_lines_axis(lines)->out;
}

void gb_conv_lines_find(const gb_conv_lines *lines, int64_t index, int64_t *position)
{
    for (int a = lines->n_axes; a-- > 0;) {
        if (a == lines->tile_axis)
            continue;
        position[lines->axes[a].dim] = index % lines->axes[a].out;
        index /= lines->axes[a].out;
    }
}

gb_conv_line_taps gb_conv_lines_taps(
        const gb_conv_lines *lines, const int64_t *position, int64_t *offsets, int64_t *numbers)
{
    int64_t low[GB_AXES], count[GB_AXES];
    gb_conv_line_taps taps = {.n = 1, .inside = 1};
    for (int a = 0; a < lines->n_axes; a++) {
        const gb_conv_axis *axis = &lines->axes[a];
        int64_t begin = position[axis->dim] * axis->stride - axis->pad;
        int64_t end = gb_min_i64(gb_ceil_div(axis->in - begin, axis->dilation), axis->kernel);
        low[a] = gb_max_i64(gb_ceil_div(-begin, axis->dilation), 0);
        count[a] = gb_max_i64(end - low[a], 0);
        taps.n *= count[a];
        taps.inside *= a > lines->tile_axis ? count[a] : 1;
        if (count[a] > 0) /* else far outside, perhaps */
            taps.source += (begin + low[a] * axis->dilation) * axis->src_stride;
    }
    if (taps.n == 0)
        taps.source = 0;
    int64_t at[GB_AXES] = {0}, offset = 0, number = 0, steps[GB_AXES];
    for (int64_t a = lines->n_axes, all = 1; a-- > 0; all *= lines->axes[a].kernel) {
        steps[a] = all;
        number += low[a] * all;
    }
    for (int64_t i = 0; i < taps.n; i++) {
        offsets[i] = offset;
        numbers[i] = number;
        for (int a = lines->n_axes; a-- > 0;) {
            const int64_t apart = lines->axes[a].dilation * lines->axes[a].src_stride;
            offset += apart;
            number += steps[a];
            if (++at[a] < count[a])
                break;
            offset -= at[a] * apart;
            number -= at[a] * steps[a];
            at[a] = 0;
        }
    }
    return taps;
}

int64_t gb_conv_lines_alike(const gb_conv_lines *lines, int64_t first, int64_t end)
{
    if (first < lines->inner_first || first >= lines->inner_end)
        return 1;
    return gb_min_i64(lines->inner_end, end) - first;
}
