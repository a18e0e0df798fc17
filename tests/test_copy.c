/* Concat, StaticReshape, StaticTranspose and Reorder of the library against the reference, at every
 * instruction set. */
#include "base/machine.h"
#include "kernel_case.h"
#include "kernels/movement/copy.h"

static const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};
enum { TYPES = 3 };

static void transpose(
        gb_data_type type, int ndims, const int64_t *dims, int n, const int64_t *order)
{
    kernel_case c = {0};
    gb_op *op = kernel_case_op(&c, GB_OP_STATIC_TRANSPOSE);
    kernel_case_ints(op, GB_ATTR_ORDER, n, order);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    kernel_case_out(&c, op, type);
    kernel_case_run(&c, "StaticTranspose");
}

KERNEL_TEST(copy, transpose_sizes)
{
    for (int64_t rows = 1; rows <= 35; rows += rows < 6 ? 1 : 3)
        for (int64_t cols = 1; cols <= 35; cols += cols < 6 ? 1 : 3)
            transpose(types[(rows + cols) % TYPES], SHAPE(rows, cols), SHAPE(1, 0));
}

KERNEL_TEST(copy, transpose_orders)
{
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            for (int d = 0; d < 4; d++) {
                if (a == b || a == d || b == d)
                    continue;
                transpose(types[(a + b) % TYPES], SHAPE(3, 10, 4, 17),
                        SHAPE(a, b, d - 4, 6 - a - b - d));
            }
    transpose(GB_F32, SHAPE(3, 10, 4), 0, NULL);
    transpose(GB_BF16, SHAPE(300, 500), SHAPE(1, 0));
    transpose(GB_F32, SHAPE(3, 0, 4), SHAPE(2, 0, 1));
    transpose(GB_F16, SHAPE(2, 1, 2, 3, 1, 2, 2, 1, 2, 2, 2, 3),
            SHAPE(11, 3, 5, 7, 9, 0, 1, 2, 4, 6, 8, 10));
}

/* So much for the caches that results are written past them. */
KERNEL_TEST(copy, transpose_past_the_caches)
{
    cr_assert(gb_machine_replace(":4096:"));
    for (int t = 0; t < TYPES; t++) {
        transpose(types[t], SHAPE(20, 56, 8), SHAPE(0, 2, 1));
        transpose(types[t], SHAPE(20, 16, 32), SHAPE(0, 2, 1));
        transpose(types[t], SHAPE(20, 33, 17), SHAPE(0, 2, 1));
        transpose(types[t], SHAPE(2, 100, 100), SHAPE(0, 2, 1));
    }
    cr_assert(gb_machine_replace(NULL));
}

static void reshape(gb_data_type type, int ndims, const int64_t *dims, int n, const int64_t *shape)
{
    kernel_case c = {0};
    gb_op *op = kernel_case_op(&c, GB_OP_STATIC_RESHAPE);
    kernel_case_ints(op, GB_ATTR_SHAPE, n, shape);
    kernel_case_flag(op, GB_ATTR_SPECIAL_ZERO, false);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    kernel_case_out(&c, op, type);
    kernel_case_run(&c, "StaticReshape");
}

KERNEL_TEST(copy, reshape)
{
    for (int t = 0; t < TYPES; t++) {
        reshape(types[t], SHAPE(4, 6), SHAPE(3, 8)); /* strided: through a dense copy */
        reshape(types[t], SHAPE(4, 6, 5), SHAPE(2, -1, 3, 5));
        reshape(types[t], SHAPE(2, 12, 7), SHAPE(24, 7));
        reshape(types[t], SHAPE(2, 3, 1, 4), SHAPE(24));
        reshape(types[t], SHAPE(1), 0, NULL);
        reshape(types[t], SHAPE(3, 0, 5), SHAPE(0, 7));
        reshape(types[t], SHAPE(300, 500), SHAPE(500, 300));
    }
}

static void concat(gb_data_type type, int ndims, const int64_t *dims, int axis, int n)
{
    kernel_case c = {0};
    gb_op *op = kernel_case_op(&c, GB_OP_CONCAT);
    kernel_case_int(op, GB_ATTR_AXIS, axis - (n % 2 ? ndims : 0));
    for (int i = 0; i < n; i++) {
        int64_t part[GB_MAX_NDIMS];
        memcpy(part, dims, (size_t)ndims * sizeof *part);
        part[axis] += i % 3;
        kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, part));
    }
    kernel_case_out(&c, op, type);
    kernel_case_run(&c, "Concat");
}

KERNEL_TEST(copy, concat)
{
    for (int t = 0; t < TYPES; t++)
        for (int axis = 0; axis < 4; axis++) {
            concat(types[t], SHAPE(2, 3, 4, 5), axis, 1);
            concat(types[t], SHAPE(2, 3, 4, 5), axis, 4);
            concat(types[t], SHAPE(2, 0, 4, 0), axis, 3);
        }
    concat(GB_F32, SHAPE(3, 2), 1, 64);
    concat(GB_BF16, SHAPE(200, 700), 0, 3);
}

static void reorder(gb_data_type type, int ndims, const int64_t *dims)
{
    kernel_case c = {0};
    gb_op *op = kernel_case_op(&c, GB_OP_REORDER);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    kernel_case_out(&c, op, type);
    kernel_case_run(&c, "Reorder");
}

KERNEL_TEST(copy, reorder)
{
    for (int t = 0; t < TYPES; t++) {
        reorder(types[t], SHAPE(70, 90));
        reorder(types[t], SHAPE(3, 40, 5, 9));
        reorder(types[t], SHAPE(0, 4));
        reorder(types[t], SHAPE(300, 1, 700));
        reorder(types[t], 0, NULL);
    }
}

/* A signalling pattern or a NaN's payload must not change on the way. */
KERNEL_TEST(copy, special_values)
{
    kernel_case c = {.special = true};
    gb_op *op = kernel_case_op(&c, GB_OP_STATIC_TRANSPOSE);
    kernel_case_ints(op, GB_ATTR_ORDER, SHAPE(1, 0));
    kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, SHAPE(40, 33)));
    kernel_case_out(&c, op, GB_F32);
    kernel_case_run(&c, "special values");
}

/* Element i of `size` bytes holds i in its low bytes. */
static void fill_bytes(char *data, int64_t n, size_t size)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(data + i * (int64_t)size, &(uint64_t){(uint64_t)i * 2654435761U}, size);
}

/* A rows x cols copy, transposed or not, past the caches; dst rows lie `gap` bytes apart. */
static void streamed(size_t size, int64_t rows, int64_t cols, bool crossed, int64_t gap)
{
    int64_t n = rows * cols, step = cols + gap;
    size_t dst_bytes = ((size_t)(rows * step) * size + 127) / 64 * 64;
    char *src = malloc((size_t)n * size), *dst = aligned_alloc(64, dst_bytes);
    const int64_t dims[] = {rows, cols}, from[] = {crossed ? 1 : cols, crossed ? rows : 1};
    const int64_t to[] = {step, 1};
    gb_copy_box box;
    gb_copy_plan plan;
    fill_bytes(src, n, size);
    memset(dst, 0x5A, dst_bytes);
    gb_copy_box_init(&box, 2, dims, from, to, size);
    gb_copy_plan_init(&plan, &box, true);
    gb_copy_items(&plan, src, dst, 0, plan.items);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < step; c++) {
            const char *got = dst + (r * step + c) * (int64_t)size;
            const char *want = src + (r * from[0] + c * from[1]) * (int64_t)size;
            bool same = c < cols ? memcmp(got, want, size) == 0 : *got == 0x5A;
            cr_assert(same, "size %zu, %lld x %lld, element %lld, %lld", size, (long long)rows,
                    (long long)cols, (long long)r, (long long)c);
        }
    free(src);
    free(dst);
}

KERNEL_TEST(copy, streamed)
{
    const int64_t sizes[] = {1, 2, 3, 8, 16, 33, 64, 128, 300};
    for (size_t size = 1; size <= 8; size *= 2)
        for (int r = 0; r < 9; r++)
            for (int c = 0; c < 9; c++)
                for (int crossed = 0; crossed < 2; crossed++) {
                    streamed(size, sizes[r], sizes[c], crossed, 0);
                    streamed(size, sizes[r], sizes[c], crossed, 3);
                    streamed(size, sizes[r], sizes[c], crossed, 64);
                }
}
