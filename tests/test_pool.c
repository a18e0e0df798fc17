/* Pools of the library against the reference, at every instruction set. */
#include "kernel_case.h"

static const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};
enum { TYPES = 3, SPATIAL = 3 };

typedef struct pool_case {
    gb_op_kind kind;
    gb_data_type type;
    int64_t batch, channels;
    int n_spatial;
    int64_t in[SPATIAL], kernel[SPATIAL], strides[SPATIAL], dilations[SPATIAL];
    int64_t pads_begin[SPATIAL], pads_end[SPATIAL];
    const char *format, *auto_pad, *rounding;
    bool exclude_pad;
} pool_case;

static int64_t at_least_one(int64_t value)
{
    return value ? value : 1;
}

/* Sizes that are left 0 count as 1 (pads as 0). */
static void pool(pool_case p, kernel_case settings)
{
    kernel_case c = settings;
    gb_op *op = kernel_case_op(&c, p.kind);
    int64_t dims[SPATIAL + 2], ones[SPATIAL], steps[SPATIAL];
    int n = p.n_spatial;
    bool first = p.format && strcmp(p.format, "NCX") == 0;
    dims[0] = p.batch;
    dims[first ? 1 : n + 1] = p.channels;
    for (int i = 0; i < n; i++) {
        dims[i + (first ? 2 : 1)] = p.in[i];
        steps[i] = at_least_one(p.strides[i]);
        ones[i] = at_least_one(p.dilations[i]);
    }
    kernel_case_ints(op, GB_ATTR_KERNEL, n, p.kernel);
    kernel_case_ints(op, GB_ATTR_STRIDES, n, steps);
    kernel_case_ints(op, GB_ATTR_PADS_BEGIN, n, p.pads_begin);
    kernel_case_ints(op, GB_ATTR_PADS_END, n, p.pads_end);
    if (p.kind == GB_OP_MAX_POOL)
        kernel_case_ints(op, GB_ATTR_DILATIONS, n, ones);
    else
        kernel_case_flag(op, GB_ATTR_EXCLUDE_PAD, p.exclude_pad);
    if (p.format)
        kernel_case_text(op, GB_ATTR_DATA_FORMAT, p.format);
    if (p.auto_pad)
        kernel_case_text(op, GB_ATTR_AUTO_PAD, p.auto_pad);
    if (p.rounding)
        kernel_case_text(op, GB_ATTR_ROUNDING_TYPE, p.rounding);
    kernel_case_in(&c, op, kernel_case_tensor(&c, p.type, n + 2, dims));
    kernel_case_out(&c, op, p.type);
    char name[160];
    snprintf(name, sizeof name, "%s %s %s %d-D in %d kernel %d stride %d channels %d",
            gb_op_kind_name(p.kind), gb_data_type_name(p.type), p.format ? p.format : "NXC", n,
            (int)p.in[n - 1], (int)p.kernel[n - 1], (int)steps[n - 1], (int)p.channels);
    kernel_case_run(&c, name);
}

/* Both kinds, both formats, with and without the padding. */
static void pools(pool_case p, kernel_case settings)
{
    for (int i = 0; i < 6; i++) {
        p.kind = i < 2 ? GB_OP_MAX_POOL : GB_OP_AVG_POOL;
        p.format = i % 2 ? "NCX" : "NXC";
        p.exclude_pad = i >= 4;
        pool(p, settings);
    }
}

KERNEL_TEST(pool, widths)
{
    kernel_case c = {.scale = 1};
    for (int64_t in = 1; in <= 35; in++)
        for (int64_t stride = 1; stride <= 3; stride++)
            pools((pool_case){.type = types[(in + stride) % TYPES],
                          .batch = 2,
                          .channels = 3,
                          .n_spatial = 1,
                          .in = {in},
                          .kernel = {3},
                          .strides = {stride},
                          .pads_begin = {1},
                          .pads_end = {2}},
                    c);
}

KERNEL_TEST(pool, channels)
{
    kernel_case c = {.scale = 1};
    for (int64_t channels = 1; channels <= 35; channels += 2)
        pools((pool_case){.type = types[channels % TYPES],
                      .batch = 2,
                      .channels = channels,
                      .n_spatial = 2,
                      .in = {7, 9},
                      .kernel = {2, 3},
                      .strides = {2, 2},
                      .pads_begin = {1, 0},
                      .pads_end = {0, 1}},
                c);
}

KERNEL_TEST(pool, spatial)
{
    kernel_case c = {.scale = 1};
    for (int t = 0; t < TYPES; t++) {
        pools((pool_case){.type = types[t],
                      .batch = 2,
                      .channels = 9,
                      .n_spatial = 3,
                      .in = {5, 6, 20},
                      .kernel = {2, 3, 3},
                      .strides = {1, 2, 2},
                      .pads_begin = {1, 1, 1},
                      .pads_end = {0, 1, 1}},
                c);
        pools((pool_case){.type = types[t],
                      .batch = 1,
                      .channels = 20,
                      .n_spatial = 2,
                      .in = {30, 40},
                      .kernel = {3, 3},
                      .strides = {1, 1},
                      .pads_begin = {1, 1},
                      .pads_end = {1, 1}},
                c);
    }
}

KERNEL_TEST(pool, rounding_and_auto_pad)
{
    kernel_case c = {.scale = 1};
    const char *const pads[] = {"None", "SAME_UPPER", "SAME_LOWER", "VALID"};
    for (int i = 0; i < 4; i++)
        for (int ceil = 0; ceil < 2; ceil++)
            for (int64_t kernel = 1; kernel <= 5; kernel++)
                pools((pool_case){.type = GB_F32,
                              .batch = 1,
                              .channels = 4,
                              .n_spatial = 2,
                              .in = {8, 11},
                              .kernel = {kernel, 3},
                              .strides = {3, 2},
                              .pads_begin = {i ? 0 : 2, 0},
                              .pads_end = {i ? 0 : 1, i ? 0 : 2},
                              .auto_pad = pads[i],
                              .rounding = ceil ? "ceil" : "floor"},
                        c);
}

KERNEL_TEST(pool, dilations)
{
    kernel_case c = {.scale = 1};
    for (int t = 0; t < TYPES; t++)
        for (int format = 0; format < 2; format++)
            pool((pool_case){.kind = GB_OP_MAX_POOL,
                         .type = types[t],
                         .batch = 2,
                         .channels = 10,
                         .n_spatial = 2,
                         .in = {14, 23},
                         .kernel = {3, 4},
                         .strides = {2, 2},
                         .dilations = {2, 3},
                         .pads_begin = {3, 5},
                         .pads_end = {2, 4},
                         .format = format ? "NCX" : "NXC"},
                    c);
}

/* Windows wholly in the padding; a window over everything; windows wider than a buffer. */
KERNEL_TEST(pool, extremes)
{
    kernel_case c = {.scale = 1};
    for (int t = 0; t < TYPES; t++) {
        pools((pool_case){.type = types[t],
                      .batch = 2,
                      .channels = 9,
                      .n_spatial = 2,
                      .in = {3, 3},
                      .kernel = {1, 2},
                      .pads_begin = {2, 3},
                      .pads_end = {2, 4}},
                c);
        pools((pool_case){.type = types[t],
                      .batch = 2,
                      .channels = 19,
                      .n_spatial = 2,
                      .in = {7, 7},
                      .kernel = {7, 7}},
                c);
        pools((pool_case){.type = types[t],
                      .batch = 1,
                      .channels = 2,
                      .n_spatial = 2,
                      .in = {5, 6},
                      .kernel = {9, 8},
                      .pads_begin = {2, 1},
                      .pads_end = {2, 1}},
                c);
        pools((pool_case){.type = types[t],
                      .batch = 1,
                      .channels = 2,
                      .n_spatial = 1,
                      .in = {6000},
                      .kernel = {2500},
                      .strides = {700},
                      .pads_begin = {100}},
                c);
        pools((pool_case){.type = types[t],
                      .batch = 1,
                      .channels = 3,
                      .n_spatial = 1,
                      .in = {5},
                      .kernel = {4000},
                      .strides = {3},
                      .pads_begin = {3990},
                      .pads_end = {3000}},
                c);
        pools((pool_case){.type = types[t],
                      .batch = 0,
                      .channels = 3,
                      .n_spatial = 1,
                      .in = {5},
                      .kernel = {2}},
                c);
    }
}

KERNEL_TEST(pool, special)
{
    kernel_case c = {.scale = 1, .special = true};
    pools((pool_case){.type = GB_F32,
                  .batch = 3,
                  .channels = 11,
                  .n_spatial = 2,
                  .in = {9, 30},
                  .kernel = {3, 3},
                  .strides = {2, 2},
                  .pads_begin = {1, 1},
                  .pads_end = {1, 1}},
            c);
    kernel_case lowest = {.offset = -INFINITY};
    pools((pool_case){.type = GB_F32,
                  .batch = 3,
                  .channels = 11,
                  .n_spatial = 1,
                  .in = {9},
                  .kernel = {9}},
            lowest);
    pools((pool_case){.type = GB_BF16,
                  .batch = 3,
                  .channels = 11,
                  .n_spatial = 1,
                  .in = {9},
                  .kernel = {3}},
            lowest);
}

KERNEL_TEST(pool, large)
{
    kernel_case c = {.scale = 1, .dense_only = true};
    for (int t = 0; t < TYPES; t++)
        pools((pool_case){.type = types[t],
                      .batch = 2,
                      .channels = 40,
                      .n_spatial = 2,
                      .in = {57, 61},
                      .kernel = {3, 3},
                      .strides = {2, 2},
                      .pads_begin = {1, 1},
                      .pads_end = {1, 1}},
                c);
}

/* Post-ops run on the result. */
KERNEL_TEST(pool, epilogue)
{
    for (int format = 0; format < 2; format++) {
        kernel_case c = {.scale = 2};
        gb_op *op = kernel_case_op(&c, GB_OP_AVG_POOL), *add = kernel_case_op(&c, GB_OP_ADD);
        gb_op *relu = kernel_case_op(&c, GB_OP_RELU);
        kernel_case_ints(op, GB_ATTR_KERNEL, SHAPE(3, 2));
        kernel_case_ints(op, GB_ATTR_STRIDES, SHAPE(2, 2));
        kernel_case_ints(op, GB_ATTR_PADS_BEGIN, SHAPE(1, 0));
        kernel_case_ints(op, GB_ATTR_PADS_END, SHAPE(0, 1));
        kernel_case_flag(op, GB_ATTR_EXCLUDE_PAD, true);
        kernel_case_text(op, GB_ATTR_DATA_FORMAT, format ? "NCX" : "NXC");
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_BF16, SHAPE(2, 20, 18, 16)));
        size_t average = kernel_case_out(&c, op, GB_BF16);
        kernel_case_in(&c, add, average);
        kernel_case_in(&c, add, kernel_case_tensor(&c, GB_BF16, SHAPE(1, 1, 1, 1)));
        kernel_case_in(&c, relu, kernel_case_out(&c, add, GB_BF16));
        kernel_case_out(&c, relu, GB_BF16);
        kernel_case_run(&c, "average, add, relu");
    }
}
