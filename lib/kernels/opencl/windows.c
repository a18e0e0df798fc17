/* What kernels of cl/window.cl share. */
#include "kernels/opencl/windows.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_LANES = 16,
    MOST_TAPS = 256, /* of a row: what a work-item keeps of them takes 24 bytes each */
    FEW_TAPS = 32,
    MOST_LINE_TAPS = 64,
    MOST_LINE = INT32_MAX / 4 /* its cells are 32-bit integers: three such numbers are added up */
};

/* As in cl/window.cl. */
enum { LINE_NEXT = 1, LINE_SECOND, LINE_TWICE, LINE_APART, LINE_ONE_BY_ONE };

gb_cl_window_axis gb_cl_no_window_axis(void)
{
    return (gb_cl_window_axis){
            .dim = -1, .size = 1, .kernel = 1, .step = 1, .dilation = 1, .zeros = 1};
}

static const gb_cl_window_axis *line_of(const gb_cl_windows *windows)
{
    return &windows->axes[GB_CL_WINDOW_AXES - 1];
}

bool gb_cl_line_fits(const gb_cl_window_axis *line, int64_t positions)
{
    return line->size <= MOST_LINE / gb_max_i64(line->zeros, line->source) &&
           positions <= MOST_LINE / gb_max_i64(1, line->step) - MOST_LANES &&
           line->dilation <= MOST_LINE / gb_max_i64(1, line->kernel) && line->pad <= MOST_LINE &&
           line->pad >= -MOST_LINE;
}

/* Is a list of a row's taps, all but those of the line, kept? */
static bool fits_list(const gb_cl_windows *windows, bool along_line)
{
    int64_t taps = 1;
    const gb_cl_window_axis *line = line_of(windows);
    if (along_line &&
            (line->kernel > MOST_LINE_TAPS || !gb_cl_line_fits(line, windows->dims[line->dim])))
        return false;
    for (int a = 0; a < GB_CL_WINDOW_AXES - along_line; a++) {
        if (windows->axes[a].kernel > MOST_TAPS / taps)
            return false;
        taps *= windows->axes[a].kernel;
    }
    return true;
}

int gb_cl_window_lanes(int64_t size)
{
    int lanes = MOST_LANES;
    while (lanes > GB_CL_LEAST_LANES && size <= lanes / 2)
        lanes /= 2;
    return lanes;
}

void gb_cl_choose_window_lanes(gb_cl_writer *w, gb_cl_windows *windows, int64_t channel_stride)
{
    const gb_cl_window_axis *line = line_of(windows);
    int64_t channels = windows->dims[windows->channel_dim];
    int64_t positions = line->dim < 0 ? 1 : windows->dims[line->dim];
    bool line_fits = positions >= GB_CL_LEAST_LANES && fits_list(windows, true);
    bool channels_fit =
            channel_stride != 0 && channels >= GB_CL_LEAST_LANES && fits_list(windows, false);
    windows->lane_dim = GB_CL_NO_LANES;
    windows->moved = windows->ndims - 1;
    if (!gb_cl_shape_of(w->program).is_cpu || (!line_fits && !channels_fit))
        return;
    windows->along_line =
            !channels_fit || (line_fits && (channel_stride != 1 || line->source == 1) &&
                                     (line->source == 1 || positions >= channels));
    windows->moved = windows->along_line ? line->dim : windows->channel_dim;
    windows->lane_dim = windows->ndims - 1;
    w->lanes = gb_cl_window_lanes(windows->along_line ? positions : channels);
    gb_cl_order_dims(windows, windows->dims);
    for (int a = 0; a < GB_CL_WINDOW_AXES; a++) {
        int *dim = &windows->axes[a].dim;
        *dim = *dim == windows->moved ? windows->lane_dim : *dim - (*dim > windows->moved);
    }
    windows->channel_dim = windows->along_line
                                   ? windows->channel_dim - (windows->channel_dim > windows->moved)
                                   : windows->lane_dim;
}

void gb_cl_order_dims(const gb_cl_windows *windows, int64_t *numbers)
{
    int last = windows->ndims - 1;
    int64_t moved = numbers[windows->moved];
    for (int d = windows->moved; d < last; d++)
        numbers[d] = numbers[d + 1];
    numbers[last] = moved;
}

gb_status gb_cl_order_pointwise(const gb_cl_writer *w, const gb_cl_windows *windows,
        const gb_pointwise_program *pointwise, gb_pointwise_program *ordered)
{
    *ordered = *pointwise;
    ordered->operands = gb_step_alloc(w->step, pointwise->n_operands, sizeof *ordered->operands);
    if (!ordered->operands)
        return GB_OUT_OF_MEMORY;
    memcpy(ordered->operands, pointwise->operands,
            pointwise->n_operands * sizeof *ordered->operands);
    gb_cl_order_dims(windows, ordered->dims);
    for (uint32_t i = 0; i < ordered->n_operands; i++)
        gb_cl_order_dims(windows, ordered->operands[i].strides);
    return GB_SUCCESS;
}

void gb_cl_print_window_source(gb_cl_writer *w, const gb_cl_windows *windows, const char *name,
        uint32_t slot, int64_t channel_stride, int64_t last, float zero_point)
{
    gb_cl_text *t = &w->text;
    char shift[48] = "";
    if (zero_point != 0)
        snprintf(shift, sizeof shift, " - as_float((int)p[%u])", gb_cl_float(w, zero_point));
    gb_cl_print(t, "#define GB_LOAD(i) (gb_load_%s(m%u, i)%s)\n", name, slot, shift);
    if (windows->lane_dim < 0)
        return;
    if (windows->along_line || channel_stride == 1)
        gb_cl_print(t, "#define GB_READ(i) (gb_read_%s(m%u, i, %s)%s)\n", name, slot,
                windows->along_line ? "GB_LANES" : "lanes", shift);
    else
        gb_cl_print(t, "#define GB_READ(i) (gb_gather_%s(m%u, i, p[%u], lanes)%s)\n", name, slot,
                gb_cl_number(w, channel_stride), shift);
    gb_cl_print(t,
            "#define GB_GATHER(i, stride) (gb_gather_%s(m%u, i, stride, GB_LANES)%s)\n"
            "#define GB_MOST p[%u]\n",
            name, slot, shift, gb_cl_number(w, last));
}

void gb_cl_print_window_places(
        gb_cl_writer *w, const gb_cl_windows *windows, uint32_t slot, int64_t last)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "#define GB_PLACES\n#define GB_LOAD_PLACE(i) gb_load_lane(m%u, i)\n", slot);
    if (windows->lane_dim < 0)
        return;
    gb_cl_print(t,
            "#define GB_READ_PLACES(i) gb_read_lane(m%u, i, %s)\n"
            "#define GB_GATHER_PLACES(i, stride) gb_gather_lane(m%u, i, stride, GB_LANES)\n"
            "#define GB_MOST_PLACE p[%u]\n",
            slot, windows->along_line ? "GB_LANES" : "lanes", slot, gb_cl_number(w, last));
}

static uint32_t write_axis(gb_cl_writer *w, const gb_cl_window_axis *axis)
{
    const int64_t numbers[] = {axis->size, axis->kernel, axis->step, axis->dilation, axis->pad,
            axis->zeros, axis->source, axis->by_tap, axis->by_cell};
    uint32_t first = w->n_numbers;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        gb_cl_number(w, numbers[i]);
    return first;
}

static int form_of(const gb_cl_window_axis *line)
{
    if (line->zeros > 1)
        return line->zeros == 2 && line->source == 1 ? LINE_TWICE : LINE_ONE_BY_ONE;
    if (line->source != 1)
        return LINE_APART;
    return line->step == 1 ? LINE_NEXT : line->step == 2 ? LINE_SECOND : LINE_APART;
}

void gb_cl_print_window_line(gb_cl_writer *w, const gb_cl_window_axis *line, bool along_line)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "%s#define GB_LINE %u\n#define GB_LINE_FORM %d\n",
            along_line ? "#define GB_ALONG_LINE\n" : "", write_axis(w, line), form_of(line));
    if (line->kernel <= GB_CL_FEW_LINE_TAPS)
        gb_cl_print(t, "#define GB_LINE_TAPS %d\n#define GB_LINE_LOOP _Pragma(\"unroll\")\n",
                (int)line->kernel);
    else
        gb_cl_print(t, "#define GB_LINE_TAPS p[%u]\n#define GB_LINE_LOOP GB_AS_IT_IS\n",
                gb_cl_number(w, line->kernel));
    gb_cl_print(t, "#define GB_MOST_LINE_TAPS %d\n",
            line->kernel <= GB_CL_FEW_LINE_TAPS ? GB_CL_FEW_LINE_TAPS : MOST_LINE_TAPS);
}

static bool is_listed(const gb_cl_windows *windows, int a)
{
    return windows->lane_dim < 0 || !windows->along_line || a < GB_CL_WINDOW_AXES - 1;
}

void gb_cl_print_window_axes(gb_cl_writer *w, const gb_cl_windows *windows)
{
    gb_cl_window_axis none = gb_cl_no_window_axis();
    gb_cl_print(&w->text, "#define GB_AXES %u\n", w->n_numbers);
    for (int a = 0; a < GB_CL_WINDOW_AXES; a++)
        write_axis(w, is_listed(windows, a) ? &windows->axes[a] : &none);
}

int gb_cl_window_list(const gb_cl_windows *windows)
{
    int64_t taps = 1;
    for (int a = 0; a < GB_CL_WINDOW_AXES; a++)
        taps *= is_listed(windows, a) ? windows->axes[a].kernel : 1;
    return taps <= FEW_TAPS ? FEW_TAPS : MOST_TAPS;
}

void gb_cl_print_windows(gb_cl_writer *w, const gb_cl_windows *windows)
{
    gb_cl_text *t = &w->text;
    gb_cl_print_window_axes(w, windows);
    if (!is_listed(windows, GB_CL_WINDOW_AXES - 1))
        gb_cl_print_window_line(w, line_of(windows), true);
    if (windows->lane_dim >= 0)
        gb_cl_print(t, "#define GB_MOST_TAPS %d\n", gb_cl_window_list(windows));
    gb_cl_print(t, "%s", gb_cl_window);
}

void gb_cl_print_window_element(gb_cl_writer *w, const gb_cl_windows *windows)
{
    gb_cl_print(&w->text, "static inline void gb_element(GB_PARAMETERS");
    gb_cl_print_indices(w, windows->ndims, true);
    gb_cl_print(
            &w->text, "%s)\n{\n", windows->lane_dim < 0 ? "" : ", int lanes, const gb_taps *taps");
}

/* ", i2, i3, i4": the positions along the axes, 0 for those that are missing, and for the line of which
 * there is none in the list. */
static void print_positions(gb_cl_text *t, const gb_cl_windows *windows)
{
    for (int a = 0; a < GB_CL_WINDOW_AXES; a++) {
        int dim = windows->axes[a].dim;
        if (dim < 0 || dim == windows->lane_dim)
            gb_cl_print(t, ", 0");
        else
            gb_cl_print(t, ", i%d", dim);
    }
}

void gb_cl_print_window_outer(gb_cl_writer *w, const gb_cl_windows *windows, const int64_t *strides)
{
    int64_t outer[GB_AXES];
    memcpy(outer, strides, sizeof outer);
    for (int a = 0; a < GB_CL_WINDOW_AXES; a++)
        if (windows->axes[a].dim >= 0)
            outer[windows->axes[a].dim] = 0;
    gb_cl_print_offset(w, windows->ndims, outer);
}

void gb_cl_print_window_positions(gb_cl_writer *w, const gb_cl_windows *windows)
{
    if (windows->lane_dim < 0)
        print_positions(&w->text, windows);
    else if (windows->along_line)
        gb_cl_print(&w->text, ", i%d, lanes", windows->lane_dim);
    else
        gb_cl_print(&w->text, ", lanes");
}

void gb_cl_print_window(gb_cl_writer *w, const gb_cl_windows *windows, const int64_t *source,
        const int64_t *other, const char *own)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "gb_window(GB_PASSED%s, ", windows->lane_dim < 0 ? "" : ", taps");
    gb_cl_print_window_outer(w, windows, source);
    gb_cl_print(t, "%s, ", windows->source_base);
    gb_cl_print_window_outer(w, windows, other);
    gb_cl_print(t, "%s, %s", windows->other_base, own);
    gb_cl_print_window_positions(w, windows);
    gb_cl_print(t, ")");
}

void gb_cl_print_window_taps(gb_cl_text *t, const gb_cl_windows *windows)
{
    gb_cl_print(t, "gb_taps taps; gb_list_taps(GB_PASSED, &taps");
    print_positions(t, windows);
    gb_cl_print(t, ");");
}

void gb_cl_print_window_space(gb_cl_writer *w, const gb_cl_windows *windows)
{
    gb_cl_text row = {0};
    if (windows->lane_dim >= 0) {
        gb_cl_print_window_taps(&row, windows);
        w->row = row.data;
        w->failed = w->failed || row.failed;
        w->repeats = gb_cl_may_repeat(w->step);
    }
    gb_cl_print_space(
            w, windows->ndims, windows->dims, "gb_element", windows->lane_dim < 0 ? "" : ", &taps");
    gb_cl_text_free(&row);
    w->row = NULL;
}
