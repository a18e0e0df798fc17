/* Writing kernels. */
#include "kernels/opencl/writer.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of the innermost dim that are long enough for a group of their own; shorter ones are walked
 * as one dim, with divisions. */
enum { LONG_ROW = 32 };

/* Work-items that spaces side by side may be given for each one that has work. */
enum { MOST_WASTE = 3 };

/* Work-items of a group that is made to divide a row: whole vectors. Drivers may compile a kernel anew
 * for each size. */
enum { GROUP_STEP = 8, SHORTEST_GROUP = 32 };

/* A CPU's work-items are given so many elements, if there are as many for all of its units. */
enum { LANES = 16, ITEMS_PER_UNIT = 4, LEAST_WORK = 4096, MOST_WORK = 65536 };

/* Work-items of a group that have much to do each, on devices that run them side by side. */
enum { WARP = 32 };

gb_cl_shape gb_cl_shape_of(const gb_program *program)
{
    return gb_cl_shape_of_key(gb_program_compile_key(program));
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

static void print_access(gb_cl_writer *w, const char *const verbs[3], const char *name,
        uint32_t slot, int ndims, const int64_t *strides, int lane_dim)
{
    int64_t stride = lane_dim < 0 ? 0 : strides[lane_dim];
    gb_cl_print(&w->text, "gb_%s_%s(m%u, ",
            verbs[stride == 0     ? 0
                    : stride == 1 ? 1
                                  : 2],
            name, slot);
    gb_cl_print_offset(w, ndims, strides);
    if (stride != 0 && stride != 1)
        gb_cl_print(&w->text, ", p[%u]", gb_cl_number(w, stride));
    if (stride != 0)
        gb_cl_print(&w->text, ", lanes");
}

void gb_cl_print_read(gb_cl_writer *w, const char *name, uint32_t slot, int ndims,
        const int64_t *strides, int lane_dim)
{
    static const char *const verbs[] = {"load", "read", "gather"};
    print_access(w, verbs, name, slot, ndims, strides, lane_dim);
    gb_cl_print(&w->text, ")");
}

void gb_cl_print_write(gb_cl_writer *w, const char *name, uint32_t slot, int ndims,
        const int64_t *strides, int lane_dim)
{
    static const char *const verbs[] = {"store", "write", "scatter"};
    print_access(w, verbs, name, slot, ndims, strides, lane_dim);
    gb_cl_print(&w->text, ", ");
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
    w->local[0] = (size_t)gb_cl_shape_of(w->program).local_size;
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
    w->local[0] = shape.is_cpu ? 1 : (size_t)gb_min_i64(WARP, (int64_t)shape.local_size);
    w->local[1] = w->local[2] = 1;
    w->global[0] = round_up(x, w->local[0]);
    w->global[1] = (size_t)gb_max_i64(y, 1);
    w->global[2] = 1;
    gb_cl_print(&w->text, "#define GB_ITEMS __attribute__((reqd_work_group_size(%u, 1, 1)))\n",
            (unsigned)w->local[0]);
}

/* "q = rest / dim" of 31 bits: a product and a shift, which vectors have. The factor is 2^shift / dim
 * rounded up, with so large a shift that the excess stays below one. */
static void print_quotient(gb_cl_writer *w, int64_t dim)
{
    int shift = 31;
    dim = gb_max_i64(1, dim);
    while ((int64_t)1 << (shift - 31) < dim)
        shift++;
    uint64_t factor = (((uint64_t)1 << shift) + (uint64_t)dim - 1) / (uint64_t)dim;
    gb_cl_print(&w->text, "    q = (long)((ulong)(uint)rest * (ulong)p[%u] >> p[%u]);\n",
            gb_cl_number(w, (int64_t)factor), gb_cl_number(w, shift));
}

/* long i2 = rest % p[5]; rest /= p[5]; for dims count - 1 .. 0, the outermost without a
 * remainder. */
static void print_digits(gb_cl_writer *w, int count, const int64_t *dims)
{
    gb_cl_text *t = &w->text;
    int64_t all = 1;
    for (int d = 0; d < count && all <= INT32_MAX; d++)
        all = dims[d] <= INT32_MAX ? all * dims[d] : INT64_MAX;
    if (count > 1)
        gb_cl_print(t, "    long q;\n");
    for (int d = count; d-- > 1;) {
        if (all <= INT32_MAX)
            print_quotient(w, dims[d]);
        else
            gb_cl_print(t, "    q = rest / p[%u];\n", gb_cl_number(w, dims[d]));
        gb_cl_print(t, "    long i%d = rest - q * p[%u];\n    rest = q;\n", d,
                gb_cl_number(w, dims[d]));
    }
    if (count > 0)
        gb_cl_print(t, "    long i0 = rest;\n");
}

/* How work-items cover a space: a row along x, the dim before along y, all others along z; short
 * rows are walked as one dim. */
typedef struct extents {
    bool in_rows;
    int64_t x, y, z;
} extents;

static extents measure(const gb_cl_space *space, bool may_use_rows)
{
    int last = space->ndims - 1;
    int64_t count = 1, outer = 1;
    for (int d = 0; d < space->ndims; d++)
        count *= space->dims[d];
    for (int d = 0; d + 1 < last; d++)
        outer *= space->dims[d];
    if (may_use_rows && last >= 1 && space->dims[last] >= LONG_ROW &&
            space->dims[last - 1] < INT32_MAX && outer < INT32_MAX)
        return (extents){true, space->dims[last], space->dims[last - 1], outer};
    return (extents){false, count, 1, 1};
}

/* The body of a work-item at `x` of a space. `shared`: others lie beside it, and may be larger. */
static void print_item(gb_cl_writer *w, const gb_cl_space *space, const extents *e, bool shared)
{
    gb_cl_text *t = &w->text;
    int last = space->ndims - 1;
    if (!e->in_rows) {
        gb_cl_print(t, "    long rest = x;\n    if (rest >= p[%u]", gb_cl_number(w, e->x));
        if (shared)
            gb_cl_print(t, " || get_global_id(1) + get_global_id(2) > 0");
        gb_cl_print(t, ")\n        return;\n");
        print_digits(w, space->ndims, space->dims);
        return;
    }
    gb_cl_print(t, "    long i%d = x, i%d = get_global_id(1), rest = get_global_id(2);\n", last,
            last - 1);
    if (shared)
        gb_cl_print(t, "    if (i%d >= p[%u] || rest >= p[%u])\n        return;\n", last - 1,
                gb_cl_number(w, e->y), gb_cl_number(w, e->z));
    if (e->x % (int64_t)w->local[0] != 0)
        gb_cl_print(t, "    if (i%d >= p[%u])\n        return;\n", last, gb_cl_number(w, e->x));
    print_digits(w, space->ndims - 2, space->dims);
}

/* Groups that divide a row leave no work-item idle, so that none has to ask: what is done under a
 * condition is done one by one where vectors cannot be stored in part. */
static void fit_group(gb_cl_writer *w, int64_t x)
{
    for (size_t local = w->local[0]; local >= SHORTEST_GROUP; local -= GROUP_STEP)
        if (x % (int64_t)local == 0) {
            w->local[0] = local;
            w->global[0] = (size_t)x;
            return;
        }
}

/* Chooses how each space is covered. Where rows side by side would leave most work-items without
 * work, all spaces are walked as one dim. */
static void measure_all(gb_cl_writer *w, uint32_t n, const gb_cl_space *spaces, extents *each)
{
    size_t local = (size_t)gb_cl_shape_of(w->program).local_size;
    for (int may_use_rows = 1; may_use_rows >= 0; may_use_rows--) {
        double work = 0;
        int64_t x = 0, y = 1, z = 1;
        for (uint32_t i = 0; i < n; i++) {
            each[i] = measure(&spaces[i], may_use_rows);
            x += (int64_t)round_up(each[i].x, local);
            y = gb_max_i64(y, each[i].y);
            z = gb_max_i64(z, each[i].z);
            work += (double)round_up(each[i].x, local) * (double)each[i].y * (double)each[i].z;
        }
        set_size(w, x, y, z);
        if (n == 1 && each[0].in_rows && gb_cl_shape_of(w->program).is_cpu)
            fit_group(w, each[0].x);
        if ((double)x * (double)y * (double)z <= MOST_WASTE * work)
            return;
    }
}

bool gb_cl_may_repeat(const gb_step *step)
{
    for (uint32_t i = 0; i < step->n_uses; i++)
        if (step->uses[i].elementwise && !step->uses[i].written)
            return false;
    return true;
}

static int64_t size_of_last(const gb_cl_space *space)
{
    return space->ndims ? space->dims[space->ndims - 1] : 1;
}

static int64_t count_of(const gb_cl_space *space)
{
    int64_t count = 1;
    for (int d = 0; d < space->ndims; d++)
        count *= space->dims[d];
    return count;
}

bool gb_cl_choose_lanes(gb_cl_writer *w, uint32_t n, const gb_cl_space *spaces)
{
    double all = 0, in_lanes = 0;
    if (!gb_cl_shape_of(w->program).is_cpu)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        double count = (double)count_of(&spaces[i]);
        all += count;
        in_lanes += size_of_last(&spaces[i]) >= LANES ? count : 0;
    }
    w->lanes = in_lanes * 2 > all ? LANES : 0;
    return w->lanes > 0;
}

/* Rows of the last dim, in pieces where they are long: a work-item takes `each` of them. */
typedef struct pieces {
    int64_t piece, per_row, each, items;
} pieces;

static pieces cut_rows(const gb_cl_space *space, int units)
{
    int64_t row = gb_max_i64(1, size_of_last(space)), count = count_of(space);
    int64_t work = gb_div_up(count, (int64_t)units * ITEMS_PER_UNIT);
    work = gb_max_i64(LEAST_WORK, gb_min_i64(work, MOST_WORK));
    pieces p = {.piece = gb_min_i64(row, gb_div_up(work, LANES) * LANES)};
    p.per_row = gb_div_up(row, p.piece);
    p.each = gb_max_i64(1, work / p.piece);
    p.items = gb_div_up(count / row * p.per_row, p.each);
    return p;
}

static void print_call(gb_cl_writer *w, int last, const char *name, const char *number,
        const char *lanes, const char *rest)
{
    gb_cl_print(&w->text, "%s%s(GB_PASSED", name, number);
    gb_cl_print_indices(w, last, false);
    if (last >= 0)
        gb_cl_print(&w->text, ", x");
    gb_cl_print(&w->text, ", %s%s);\n", lanes, rest);
}

/* Lanes x .. of a row, up to `high`. */
static void print_row(gb_cl_writer *w, int last, const char *name, const char *number,
        const char *rest, const pieces *p)
{
    gb_cl_text *t = &w->text;
    if (w->repeats && p->piece >= LANES)
        gb_cl_print(t, "    long begin = x;\n");
    gb_cl_print(t, "    for (; x + GB_LANES <= high; x += GB_LANES)\n        ");
    print_call(w, last, name, number, "GB_LANES", rest);
    if (w->repeats && p->piece >= LANES) {
        gb_cl_print(t,
                "    if (x < high && begin + GB_LANES <= high) {\n        x = high - GB_LANES;\n"
                "        ");
        print_call(w, last, name, number, "GB_LANES", rest);
        gb_cl_print(t, "        x = high;\n    }\n");
    }
    gb_cl_print(t, "    if (x < high)\n        ");
    print_call(w, last, name, number, "(int)(high - x)", rest);
}

/* The same with one call, for a function that is long and does not gain by knowing how many lanes there
 * are. */
static void print_row_once(gb_cl_writer *w, int last, const char *name, const char *number,
        const char *rest, const pieces *p)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "    %s\n    long begin = x;\n    for (; x < high; x += GB_LANES) {\n", w->row);
    if (w->repeats && p->piece >= w->lanes)
        gb_cl_print(t, "        x = max(begin, min(x, high - GB_LANES));\n");
    gb_cl_print(t, "        int lanes = (int)min((long)GB_LANES, high - x);\n        ");
    print_call(w, last, name, number, "lanes", rest);
    gb_cl_print(t, "    }\n");
}

/* The rows of an item of a space. */
static void print_pieces(gb_cl_writer *w, const gb_cl_space *space, const pieces *p,
        const char *name, const char *number, const char *rest)
{
    gb_cl_text *t = &w->text;
    int last = space->ndims - 1;
    int64_t row = gb_max_i64(1, size_of_last(space));
    gb_cl_print(t,
            "    long at = item * p[%u], end = min(at + p[%u], p[%u]);\n"
            "    for (; at < end; at++) {\n    long rest = at",
            gb_cl_number(w, p->each), gb_cl_number(w, p->each),
            gb_cl_number(w, count_of(space) / row * p->per_row));
    if (p->per_row > 1) {
        uint32_t per_row = gb_cl_number(w, p->per_row), piece = gb_cl_number(w, p->piece);
        gb_cl_print(t,
                " / p[%u], x = (at - rest * p[%u]) * p[%u];\n"
                "    long high = min(x + p[%u], p[%u]);\n",
                per_row, per_row, piece, piece, gb_cl_number(w, row));
    } else {
        gb_cl_print(t, ", x = 0, high = p[%u];\n", gb_cl_number(w, row));
    }
    print_digits(w, last < 0 ? 0 : last, space->dims);
    if (w->row)
        print_row_once(w, last, name, number, rest, p);
    else
        print_row(w, last, name, number, rest, p);
    gb_cl_print(t, "    }\n");
}

static void print_lane_spaces(
        gb_cl_writer *w, uint32_t n, const gb_cl_space *spaces, const char *name, const char *rest)
{
    gb_cl_text *t = &w->text;
    pieces each[GB_CL_SPACES];
    int64_t items = 0;
    for (uint32_t i = 0; i < n; i++) {
        each[i] = cut_rows(&spaces[i], gb_cl_shape_of(w->program).units);
        items += each[i].items;
    }
    gb_cl_set_items(w, items, 1);
    gb_cl_print(t, "__kernel GB_ITEMS void " GB_CL_KERNEL "(GB_ARGUMENTS)\n{\n    GB_BEGIN\n"
                   "    long item = get_global_id(0);\n");
    for (uint32_t i = 0; i < n; i++) {
        char number[16] = "";
        if (n > 1) {
            snprintf(number, sizeof number, "%u", i);
            gb_cl_print(t, "    if (item < p[%u]) {\n", gb_cl_number(w, each[i].items));
        }
        print_pieces(w, &spaces[i], &each[i], name, number, rest);
        if (n > 1)
            gb_cl_print(
                    t, "    return;\n    }\n    item -= p[%u];\n", gb_cl_number(w, each[i].items));
    }
    gb_cl_print(t, "}\n");
}

void gb_cl_print_spaces(
        gb_cl_writer *w, uint32_t n, const gb_cl_space *spaces, const char *name, const char *rest)
{
    if (w->lanes) {
        print_lane_spaces(w, n, spaces, name, rest);
        return;
    }
    gb_cl_text *t = &w->text;
    extents each[GB_CL_SPACES];
    int64_t groups = 0;
    measure_all(w, n, spaces, each);
    gb_cl_print(t, "__kernel void " GB_CL_KERNEL "(GB_ARGUMENTS)\n{\n    GB_BEGIN\n"
                   "    long x = get_global_id(0);\n");
    /* The space is chosen by the group, so that compilers know it to be the same for all. */
    for (uint32_t i = 0; i < n; i++) {
        if (n > 1)
            gb_cl_print(t, "    if (get_group_id(0) < p[%u]) {\n    x -= p[%u];\n",
                    gb_cl_number(
                            w, groups + (int64_t)(round_up(each[i].x, w->local[0]) / w->local[0])),
                    gb_cl_number(w, groups * (int64_t)w->local[0]));
        print_item(w, &spaces[i], &each[i], n > 1);
        gb_cl_print(t, "    %s", name);
        if (n > 1)
            gb_cl_print(t, "%u", i);
        gb_cl_print(t, "(GB_PASSED");
        gb_cl_print_indices(w, spaces[i].ndims, false);
        gb_cl_print(t, n > 1 ? "%s);\n    return;\n    }\n" : "%s);\n", rest);
        groups += (int64_t)(round_up(each[i].x, w->local[0]) / w->local[0]);
    }
    gb_cl_print(t, "}\n");
}

void gb_cl_print_space(
        gb_cl_writer *w, int ndims, const int64_t *dims, const char *name, const char *rest)
{
    gb_cl_print_spaces(w, 1, &(gb_cl_space){ndims, dims}, name, rest);
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
                .lanes = w->lanes,
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
