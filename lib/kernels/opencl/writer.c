/* Writing kernels. */
#include "kernels/opencl/writer.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Rows of the innermost dim that are long enough for a group of their own; shorter ones are walked
 * as one dim, with divisions. */
enum { LONG_ROW = 32 };

/* Work-items of a group that have much to do each, on devices that run them side by side. */
enum { WARP = 32 };

uint64_t gb_cl_shape_key(const gb_cl_shape *shape)
{
    return (uint64_t)shape->local_size | (uint64_t)shape->units << 16 |
           (uint64_t)shape->tile_rows << 32 | (uint64_t)shape->tile_columns << 40 |
           (uint64_t)shape->is_cpu << 48;
}

gb_cl_shape gb_cl_shape_of(const gb_program *program)
{
    uint64_t key = gb_program_compile_key(program);
    return (gb_cl_shape){.local_size = (size_t)(key & 0xFFFF),
            .units = (int)(key >> 16 & 0xFFFF),
            .tile_rows = (int)(key >> 32 & 0xFF),
            .tile_columns = (int)(key >> 40 & 0xFF),
            .is_cpu = key >> 48 & 1};
}

uint32_t gb_cl_number(gb_cl_writer *w, int64_t number)
{
    if (w->failed ||
            !gb_reserve(&w->numbers, &w->capacity, (size_t)w->n_numbers + 1, sizeof *w->numbers)) {
        w->failed = true;
        return 0;
    }
    w->numbers[w->n_numbers] = number;
    return w->n_numbers++;
}

uint32_t gb_cl_float(gb_cl_writer *w, float number)
{
    int32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return gb_cl_number(w, bits);
}

uint32_t gb_cl_list(gb_cl_writer *w, int n, const int64_t *dims, const int64_t *strides)
{
    uint32_t first = gb_cl_number(w, n);
    for (int d = n; d-- > 0;) {
        gb_cl_number(w, dims[d]);
        gb_cl_number(w, strides[d]);
    }
    return first;
}

void gb_cl_print_arguments(gb_cl_writer *w)
{
    gb_cl_text *t = &w->text;
    uint32_t n = w->step->n_uses;
    gb_cl_print(t, "#define GB_ARGUMENTS __global const long *restrict p, long p0");
    for (uint32_t i = 0; i < n; i++)
        gb_cl_print(t, ", __global uchar *m%u, long o%u", i, i);
    gb_cl_print(t, "\n#define GB_BEGIN p += p0;");
    for (uint32_t i = 0; i < n; i++)
        gb_cl_print(t, " m%u += o%u;", i, i);
    gb_cl_print(t, "\n#define GB_PARAMETERS __global const long *restrict p");
    for (uint32_t i = 0; i < n; i++)
        gb_cl_print(t, ", __global uchar *m%u", i);
    gb_cl_print(t, "\n#define GB_PASSED p");
    for (uint32_t i = 0; i < n; i++)
        gb_cl_print(t, ", m%u", i);
    gb_cl_print(t, "\n");
}

void gb_cl_print_offset(gb_cl_writer *w, int ndims, const int64_t *strides)
{
    gb_cl_print(&w->text, "0");
    for (int d = 0; d < ndims; d++) {
        if (strides[d] == 1)
            gb_cl_print(&w->text, " + i%d", d);
        else if (strides[d] != 0)
            gb_cl_print(&w->text, " + i%d * p[%u]", d, gb_cl_number(w, strides[d]));
    }
}

void gb_cl_print_indices(gb_cl_writer *w, int ndims, bool declared)
{
    for (int d = 0; d < ndims; d++)
        gb_cl_print(&w->text, ", %si%d", declared ? "long " : "", d);
}

static size_t round_up(int64_t count, size_t group)
{
    return ((size_t)(count > 0 ? count : 1) + group - 1) / group * group;
}

static void set_size(gb_cl_writer *w, int64_t x, int64_t y, int64_t z)
{
    w->local[0] = gb_cl_shape_of(w->program).local_size;
    w->local[1] = w->local[2] = 1;
    w->global[0] = round_up(x, w->local[0]);
    w->global[1] = (size_t)gb_max_i64(y, 1);
    w->global[2] = (size_t)gb_max_i64(z, 1);
}

void gb_cl_set_flat(gb_cl_writer *w, int64_t count)
{
    set_size(w, count, 1, 1);
}

void gb_cl_set_items(gb_cl_writer *w, int64_t x, int64_t y)
{
    gb_cl_shape shape = gb_cl_shape_of(w->program);
    w->local[0] = shape.is_cpu ? 1 : WARP;
    w->local[1] = w->local[2] = 1;
    w->global[0] = round_up(x, w->local[0]);
    w->global[1] = (size_t)gb_max_i64(y, 1);
    w->global[2] = 1;
    gb_cl_print(&w->text, "#define GB_ITEMS __attribute__((reqd_work_group_size(%u, 1, 1)))\n",
            (unsigned)w->local[0]);
}

/* long i2 = rest % p[5]; rest /= p[5]; for dims count - 1 .. 0, the outermost without a
 * remainder. */
static void print_digits(gb_cl_writer *w, int count, const int64_t *dims)
{
    gb_cl_text *t = &w->text;
    for (int d = count; d-- > 1;) {
        uint32_t dim = gb_cl_number(w, dims[d]);
        gb_cl_print(t, "    long i%d = rest %% p[%u];\n    rest /= p[%u];\n", d, dim, dim);
    }
    if (count > 0)
        gb_cl_print(t, "    long i0 = rest;\n");
}

void gb_cl_print_space(
        gb_cl_writer *w, int ndims, const int64_t *dims, const char *name, const char *rest)
{
    gb_cl_text *t = &w->text;
    int64_t count = 1, outer = 1;
    for (int d = 0; d < ndims; d++)
        count *= dims[d];
    for (int d = 0; d + 2 < ndims; d++)
        outer *= dims[d];
    int last = ndims - 1;
    bool has_rows =
            ndims >= 2 && dims[last] >= LONG_ROW && dims[last - 1] < INT32_MAX && outer < INT32_MAX;
    gb_cl_print(t, "__kernel void " GB_CL_KERNEL "(GB_ARGUMENTS)\n{\n    GB_BEGIN\n");
    if (has_rows) {
        uint32_t row = gb_cl_number(w, dims[last]);
        gb_cl_print(t,
                "    long i%d = get_global_id(0), i%d = get_global_id(1), rest = "
                "get_global_id(2);\n"
                "    if (i%d >= p[%u])\n        return;\n",
                last, last - 1, last, row);
        print_digits(w, ndims - 2, dims);
        set_size(w, dims[last], dims[last - 1], outer);
    } else {
        gb_cl_print(t,
                "    long rest = get_global_id(0);\n    if (rest >= p[%u])\n        return;\n",
                gb_cl_number(w, count));
        print_digits(w, ndims, dims);
        set_size(w, count, 1, 1);
    }
    gb_cl_print(t, "    %s(GB_PASSED", name);
    gb_cl_print_indices(w, ndims, false);
    gb_cl_print(t, "%s);\n}\n", rest);
}

gb_status gb_cl_writer_add(gb_cl_writer *w, gb_status status)
{
    if (status == GB_SUCCESS && (w->failed || w->text.failed))
        status = GB_OUT_OF_MEMORY;
    gb_cl_step *made = NULL;
    char *source = NULL;
    int64_t *numbers = NULL;
    if (status == GB_SUCCESS) {
        made = gb_step_alloc(w->step, 1, sizeof *made);
        source = gb_step_alloc(w->step, (size_t)w->text.n + 1, 1);
        numbers = gb_step_alloc(w->step, w->n_numbers, sizeof *numbers);
        if (!made || !source || !numbers)
            status = GB_OUT_OF_MEMORY;
    }
    if (status == GB_SUCCESS) {
        memcpy(source, w->text.data, w->text.n);
        if (w->n_numbers)
            memcpy(numbers, w->numbers, w->n_numbers * sizeof *numbers);
        *made = (gb_cl_step){.source = source,
                .uses_math = w->uses_math,
                .family = w->family,
                .numbers = numbers,
                .n_numbers = w->n_numbers};
        memcpy(made->global, w->global, sizeof made->global);
        memcpy(made->local, w->local, sizeof made->local);
        w->step->params = made;
    }
    gb_cl_text_free(&w->text);
    free(w->numbers);
    return status == GB_SUCCESS ? gb_program_add(w->program, w->step) : status;
}
