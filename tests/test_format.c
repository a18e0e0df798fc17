/* Formats: their text, their ids, and where elements lie; reorders between any two of them. */
#include "base/dtype.h"
#include "graph/ir/format.h"

#include <criterion/criterion.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 7;

static int64_t random_below(int64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % (uint64_t)n);
}

static void ok(gb_status status)
{
    cr_assert_eq(status, GB_SUCCESS, "%s: %s", gb_status_name(status), gb_last_error());
}

static const gb_format *parse(const char *text)
{
    const gb_format *format;
    ok(gb_format_parse(text, &format));
    return format;
}

static gb_logical_tensor tensor_of(
        size_t id, gb_data_type type, int ndims, const int64_t *dims, const char *layout)
{
    gb_logical_tensor tensor;
    ok(gb_logical_tensor_init_with_dims(
            &tensor, id, type, ndims, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    if (layout)
        ok(gb_logical_tensor_set_layout(&tensor, layout));
    return tensor;
}

Test(format, names)
{
    static const struct {
        const char *name, *text;
    } names[] = {{"aBcd16b", "aBcd16b"}, {"NCHW16c", "aBcd16b"}, {"nChw16c", "aBcd16b"},
            {"NCDHW8c", "aBcde8b"}, {"nhwc", "acdb"}, {"MK16m16k", "AB16a16b"},
            {"NK16k32n", "BA16a32b"}, {"AB16b16a4b", "AB16b16a4b"}, {"cba", "cba"}, {"A7a", "A7a"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cr_expect_str_eq(parse(names[i].name)->text, names[i].text);
}

Test(format, what_names_none)
{
    static const char *const bad[] = {"", "16b", "aa", "ac", "aBcd16", "aBcd16e", "aBcd1b",
            "aBcd0b", "aBcd16b ", "ab-4a", "nchwx", "AB2a2b2a2b2a", "aBcd99999999999999999999b",
            "abcdefghijklm", "abcdefghijkL2l", "wch"};
    const gb_format *format;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_eq(gb_format_parse(bad[i], &format), GB_INVALID_ARGUMENTS, "\"%s\"", bad[i]);
}

Test(format, ids_are_interned)
{
    const gb_format *format = parse("aBcd16b");
    cr_assert_gt(format->id, 0);
    cr_assert_eq(parse("NCHW16c"), format);
    cr_assert_neq(parse("aBcd8b")->id, format->id);
    cr_assert_eq(gb_format_find(format->id), format);
    cr_assert_null(gb_format_find(0));
    cr_assert_null(gb_format_find(SIZE_MAX));
}

/* Many threads ask for the same formats at once. */
Test(format, threads_agree)
{
    enum { THREADS = 8, FORMATS = 50 };
    static const gb_format *found[THREADS][FORMATS];
    omp_set_dynamic(0);
#pragma omp parallel num_threads(THREADS)
    for (int i = 0; i < FORMATS; i++) {
        char text[32];
        snprintf(text, sizeof text, "aB%db", 100 + i);
        gb_format_parse(text, &found[omp_get_thread_num()][i]);
    }
    for (int t = 1; t < THREADS; t++)
        for (int i = 0; i < FORMATS; i++)
            if (found[t][0]) /* fewer threads may have run */
                cr_assert_eq(found[t][i], found[0][i]);
}

Test(format, places)
{
    const int64_t dims[] = {2, 40, 3, 5};
    gb_logical_tensor tensor = tensor_of(0, GB_F32, 4, dims, "aBcd16b");
    size_t bytes;
    cr_assert_eq(tensor.layout_type, GB_LAYOUT_OPAQUE);
    cr_assert_str_eq(gb_logical_tensor_get_layout(&tensor), "aBcd16b");
    ok(gb_logical_tensor_get_mem_size(&tensor, &bytes));
    cr_assert_eq(bytes, 2 * 48 * 3 * 5 * sizeof(float));
    /* 2 x 3 x 3 x 5 x 16 */
    cr_assert_eq(gb_tensor_offset(&tensor, (const int64_t[]){1, 37, 2, 4}),
            720 + 2 * 240 + 2 * 80 + 4 * 16 + 5);
    cr_assert_not(gb_format_divides(gb_format_find(tensor.layout_id), dims));
    gb_logical_tensor nested = tensor_of(0, GB_F32, 2, (const int64_t[]){32, 64}, "AB16b16a4b");
    /* 2 x 1 x 16 x 16 x 4: b is 64 in one, 4 in another block */
    cr_assert_eq(gb_tensor_offset(&nested, (const int64_t[]){17, 23}), 1024 + 5 * 64 + 1 * 4 + 3);
    gb_logical_tensor plain = tensor_of(0, GB_F32, 4, dims, "acdb");
    cr_assert_eq(plain.layout_type, GB_LAYOUT_STRIDED);
    cr_assert_arr_eq(plain.strides, ((const int64_t[]){600, 1, 200, 40}), 4 * sizeof(int64_t));
}

Test(format, refusals)
{
    const int64_t dims[] = {4, 4}, huge[] = {INT64_MAX / 2, 2};
    size_t bytes;
    gb_logical_tensor tensor = tensor_of(3, GB_F32, 2, dims, NULL), before = tensor;
    cr_expect_eq(gb_logical_tensor_set_layout(&tensor, "aBcd16b"), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_logical_tensor_set_layout(&tensor, "x"), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_logical_tensor_set_layout(&tensor, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_logical_tensor_set_layout(NULL, "ab"), GB_INVALID_ARGUMENTS);
    cr_expect_arr_eq(&tensor, &before, sizeof tensor);
    tensor.dims[0] = GB_UNKNOWN_DIM;
    cr_expect_eq(gb_logical_tensor_set_layout(&tensor, "Ab4a"), GB_INVALID_ARGUMENTS);
    tensor = tensor_of(3, GB_S4, 2, dims, NULL);
    cr_expect_eq(gb_logical_tensor_set_layout(&tensor, "Ab4a"), GB_INVALID_ARGUMENTS);
    tensor = tensor_of(3, GB_U8, 2, huge, NULL);
    cr_expect_eq(gb_logical_tensor_set_layout(&tensor, "aB4b"), GB_INVALID_ARGUMENTS);
    tensor.layout_type = GB_LAYOUT_OPAQUE;
    tensor.layout_id = 1 << 20;
    cr_expect_eq(gb_logical_tensor_get_mem_size(&tensor, &bytes), GB_INVALID_ARGUMENTS);
    cr_expect_str_eq(gb_logical_tensor_get_layout(&tensor), "opaque");
}

Test(format, equality)
{
    const int64_t dims[] = {4, 4};
    uint8_t equal;
    gb_logical_tensor a = tensor_of(3, GB_F32, 2, dims, "Ab4a"), b = a;
    b.strides[0] = 77; /* of no meaning */
    ok(gb_logical_tensor_is_equal(&a, &b, &equal));
    cr_expect(equal);
    ok(gb_logical_tensor_set_layout(&b, "aB4b"));
    ok(gb_logical_tensor_is_equal(&a, &b, &equal));
    cr_expect_not(equal);
}

/* Reorders ------------------------------------------------------------------------------------- */

/* Axes in any order, up to three blocks of any axes. */
static void random_layout(int ndims, char *text, size_t size)
{
    static const int64_t sizes[] = {2, 3, 4, 8, 16, 24, 32};
    int order[6];
    size_t used = 0;
    for (int i = 0; i < ndims; i++)
        order[i] = i;
    for (int i = ndims; i-- > 1;) {
        int j = (int)random_below(i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (int i = 0; i < ndims; i++)
        text[used++] = (char)('a' + order[i]);
    text[used] = '\0';
    for (int64_t n = random_below(4); n > 0; n--)
        used += (size_t)snprintf(text + used, size - used, "%d%c", (int)sizes[random_below(7)],
                (int)('a' + random_below(ndims)));
}

static void fill(unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (unsigned char)(random_below(255) + 1);
}

/* Every element went where it belongs, and all else is zero where the layout is opaque. */
static void check(const gb_logical_tensor *src, const unsigned char *from,
        const gb_logical_tensor *dst, const unsigned char *to, size_t bytes)
{
    size_t size = gb_data_type_bytes(src->data_type, 1), count = 1;
    unsigned char *expected = calloc(bytes + 1, 1);
    for (int d = 0; d < src->ndims; d++)
        count *= (size_t)src->dims[d];
    for (size_t i = 0; i < count; i++) {
        int64_t position[GB_MAX_NDIMS];
        size_t rest = i;
        for (int d = src->ndims; d-- > 0; rest /= (size_t)src->dims[d])
            position[d] = (int64_t)(rest % (size_t)src->dims[d]);
        memcpy(expected + (size_t)gb_tensor_offset(dst, position) * size,
                from + (size_t)gb_tensor_offset(src, position) * size, size);
    }
    cr_assert(memcmp(expected, to, bytes) == 0, "%s to %s", gb_logical_tensor_get_layout(src),
            gb_logical_tensor_get_layout(dst));
    free(expected);
}

static void reorder(const gb_logical_tensor *src, const gb_logical_tensor *dst,
        const gb_engine *engine, gb_stream *stream)
{
    size_t src_bytes, dst_bytes;
    gb_tensor *from, *to;
    ok(gb_logical_tensor_get_mem_size(src, &src_bytes));
    ok(gb_logical_tensor_get_mem_size(dst, &dst_bytes));
    unsigned char *in = malloc(src_bytes + 1), *out = malloc(dst_bytes + 1);
    fill(in, src_bytes);
    memset(out, 0xEE, dst_bytes + 1);
    ok(gb_tensor_create(&from, src, engine, in));
    ok(gb_tensor_create(&to, dst, engine, out));
    ok(gb_tensor_reorder(from, to, stream));
    check(src, in, dst, out, dst_bytes);
    cr_assert_eq(out[dst_bytes], 0xEE);
    gb_tensor_destroy(from);
    gb_tensor_destroy(to);
    free(in);
    free(out);
}

Test(format, reorders)
{
    static const gb_data_type types[] = {
            GB_F32, GB_BF16, GB_F16, GB_S8, GB_U8, GB_S32, GB_BOOLEAN, GB_S64, GB_F8_E4M3};
    gb_engine *engine;
    gb_stream *stream;
    ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    ok(gb_stream_create(&stream, engine));
    for (int i = 0; i < 500; i++) {
        int ndims = (int)random_below(5) + 1;
        int64_t dims[6];
        char layouts[2][GB_FORMAT_TEXT];
        for (int d = 0; d < ndims; d++)
            dims[d] = random_below(ndims > 3 ? 8 : 40) + (i % 50 > 0);
        random_layout(ndims, layouts[0], GB_FORMAT_TEXT);
        random_layout(ndims, layouts[1], GB_FORMAT_TEXT);
        gb_data_type type = types[random_below(9)];
        gb_logical_tensor src = tensor_of(0, type, ndims, dims, layouts[0]);
        gb_logical_tensor dst = tensor_of(1, type, ndims, dims, layouts[1]);
        omp_set_num_threads(1 + i % 2);
        reorder(&src, &dst, engine, stream);
    }
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
}

Test(format, reorder_refusals)
{
    const int64_t dims[] = {4, 4}, other[] = {4, 5};
    gb_engine *engine;
    gb_stream *stream;
    gb_tensor *a, *b, *c, *d, *none;
    gb_logical_tensor descriptions[] = {tensor_of(0, GB_F32, 2, dims, NULL),
            tensor_of(0, GB_F32, 2, other, NULL), tensor_of(0, GB_S32, 2, dims, NULL),
            tensor_of(0, GB_S4, 2, dims, NULL)};
    ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    ok(gb_stream_create(&stream, engine));
    ok(gb_tensor_create(&a, &descriptions[0], engine, GB_MEMORY_ALLOCATE));
    ok(gb_tensor_create(&b, &descriptions[1], engine, GB_MEMORY_ALLOCATE));
    ok(gb_tensor_create(&c, &descriptions[2], engine, GB_MEMORY_ALLOCATE));
    ok(gb_tensor_create(&d, &descriptions[3], engine, GB_MEMORY_ALLOCATE));
    ok(gb_tensor_create(&none, &descriptions[0], engine, GB_MEMORY_NONE));
    cr_expect_eq(gb_tensor_reorder(a, b, stream), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_reorder(a, c, stream), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_reorder(d, d, stream), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_reorder(a, none, stream), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_reorder(NULL, a, stream), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_reorder(a, a, NULL), GB_INVALID_ARGUMENTS);
    gb_tensor *all[] = {a, b, c, d, none};
    for (size_t i = 0; i < 5; i++)
        gb_tensor_destroy(all[i]);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
}
