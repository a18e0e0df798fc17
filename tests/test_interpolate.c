/* Interpolate, its gradient and the gradients of pools against the reference at every instruction
 * set. */
#include "kernel_case.h"

static const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};

/* Interpolate ---------------------------------------------------------------------------------- */

typedef struct resampling {
    gb_data_type type;
    const char *mode, *coordinates, *format;
    int ndims;
    int64_t from[GB_MAX_NDIMS], sizes[3];
} resampling;

static void sizes_or_scales(gb_op *op, const resampling *r, bool scales)
{
    if (!scales) {
        kernel_case_ints(op, GB_ATTR_SIZES, r->ndims - 2, r->sizes);
        return;
    }
    float factors[3];
    int first = strcmp(r->format, "NCX") == 0 ? 2 : 1;
    for (int i = 0; i < r->ndims - 2; i++)
        factors[i] = ((float)r->sizes[i] + 0.25F) / (float)r->from[first + i];
    kernel_ok(gb_op_set_attr_f32(op, GB_ATTR_SCALES, (size_t)(r->ndims - 2), factors));
}

static void interpolate(const resampling *r, bool gradient, bool scales)
{
    kernel_case c = {.scale = 1, .repeated = true};
    gb_op *op = kernel_case_op(&c, gradient ? GB_OP_INTERPOLATE_BACKWARD : GB_OP_INTERPOLATE);
    int64_t to[GB_MAX_NDIMS];
    int first = strcmp(r->format, "NCX") == 0 ? 2 : 1;
    memcpy(to, r->from, sizeof to);
    memcpy(to + first, r->sizes, (size_t)(r->ndims - 2) * sizeof *to);
    kernel_case_text(op, GB_ATTR_MODE, r->mode);
    kernel_case_text(op, GB_ATTR_COORDINATE_TRANSFORMATION_MODE, r->coordinates);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, r->format);
    sizes_or_scales(op, r, scales);
    kernel_case_in(&c, op, kernel_case_tensor(&c, r->type, r->ndims, r->from));
    if (gradient)
        kernel_case_in(&c, op, kernel_case_tensor(&c, r->type, r->ndims, to));
    kernel_case_out(&c, op, r->type);
    char name[120];
    snprintf(name, sizeof name, "%s%s %s %s %s rank %d, width %lld to %lld",
            gradient ? "gradient of " : "", r->mode, r->coordinates, r->format,
            gb_data_type_name(r->type), r->ndims, (long long)r->from[first + r->ndims - 3],
            (long long)r->sizes[r->ndims - 3]);
    kernel_case_run(&c, name);
}

static void all_modes(resampling r, bool scales)
{
    static const char *const modes[] = {"nearest", "linear"};
    static const char *const coordinates[] = {"half_pixel", "align_corners"};
    for (int m = 0; m < 2; m++)
        for (int k = 0; k < 2; k++) {
            r.mode = modes[m];
            r.coordinates = coordinates[k];
            interpolate(&r, false, scales);
            interpolate(&r, true, scales);
        }
}

KERNEL_TEST(interpolate, axes)
{
    for (int t = 0; t < 3; t++) {
        all_modes((resampling){types[t], .format = "NCX", .ndims = 3, .from = {2, 3, 7}, {13}},
                t == 1);
        all_modes((resampling){types[t], .format = "NXC", .ndims = 3, .from = {2, 17, 5}, {6}},
                t == 1);
        all_modes((resampling){types[t], .format = "NCX", .ndims = 4, .from = {2, 3, 7, 9},
                          .sizes = {14, 18}},
                t == 0);
        all_modes((resampling){types[t], .format = "NXC", .ndims = 4, .from = {2, 11, 9, 19},
                          .sizes = {5, 13}},
                t == 0);
        all_modes((resampling){types[t], .format = "NCX", .ndims = 5, .from = {1, 2, 3, 5, 4},
                          .sizes = {5, 3, 9}},
                t == 2);
        all_modes((resampling){types[t], .format = "NXC", .ndims = 5, .from = {2, 3, 4, 5, 3},
                          .sizes = {2, 9, 7}},
                t == 2);
    }
}

KERNEL_TEST(interpolate, sizes)
{
    all_modes(
            (resampling){GB_F32, .format = "NCX", .ndims = 3, .from = {1, 2, 700}, {2900}}, false);
    all_modes(
            (resampling){GB_BF16, .format = "NCX", .ndims = 3, .from = {1, 2, 5000}, {100}}, true);
    all_modes((resampling){GB_F32, .format = "NXC", .ndims = 3, .from = {1, 3, 1100}, {7}}, false);
    all_modes((resampling){GB_F32, .format = "NCX", .ndims = 4, .from = {1, 2, 3, 2},
                      .sizes = {60, 70}},
            false);
    all_modes((resampling){GB_F32, .format = "NXC", .ndims = 4, .from = {2, 9, 9, 40}, {9, 1}},
            false);
    all_modes((resampling){GB_F32, .format = "NCX", .ndims = 4, .from = {2, 3, 90, 80}, {45, 160}},
            true);
    all_modes((resampling){GB_F32, .format = "NCX", .ndims = 4, .from = {1, 2, 17, 30},
                      .sizes = {90, 100}},
            false);
    all_modes((resampling){GB_BF16, .format = "NCX", .ndims = 4, .from = {1, 2, 64, 50},
                      .sizes = {30, 40}},
            false);
    all_modes((resampling){GB_F32, .format = "NXC", .ndims = 4, .from = {0, 9, 9, 40}, {4, 4}},
            false);
}

KERNEL_TEST(interpolate, no_result)
{
    static const int64_t sizes[][2] = {{0, 4}, {4, 0}, {0, 0}}, widths[] = {5, 50};
    for (int i = 0; i < 3; i++)
        for (int w = 0; w < 2; w++) {
            resampling r = {GB_F32, "linear", "half_pixel", "NCX", 4, {2, 3, 5, widths[w]},
                    {sizes[i][0], sizes[i][1]}};
            interpolate(&r, true, false);
            r.mode = "nearest";
            interpolate(&r, true, false);
        }
}

/* A weight of 0 does not spread an infinity. */
KERNEL_TEST(interpolate, special)
{
    kernel_case c = {.special = true};
    gb_op *op = kernel_case_op(&c, GB_OP_INTERPOLATE);
    kernel_case_text(op, GB_ATTR_MODE, "linear");
    kernel_case_text(op, GB_ATTR_COORDINATE_TRANSFORMATION_MODE, "align_corners");
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, "NCX");
    kernel_case_ints(op, GB_ATTR_SIZES, SHAPE(9, 17));
    kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, SHAPE(2, 2, 5, 9)));
    kernel_case_out(&c, op, GB_F32);
    kernel_case_run(&c, "infinities");
}

/* Post-ops run on the result. */
KERNEL_TEST(interpolate, epilogue)
{
    for (int channels = 0; channels < 2; channels++) {
        kernel_case c = {.scale = 1};
        gb_op *op = kernel_case_op(&c, GB_OP_INTERPOLATE);
        gb_op *add = kernel_case_op(&c, GB_OP_ADD), *relu = kernel_case_op(&c, GB_OP_RELU);
        kernel_case_text(op, GB_ATTR_MODE, "bilinear");
        kernel_case_text(op, GB_ATTR_DATA_FORMAT, channels ? "NXC" : "NCX");
        kernel_case_ints(op, GB_ATTR_SIZES, SHAPE(10, 15));
        int64_t dims[] = {2, channels ? 5 : 21, channels ? 7 : 5, channels ? 21 : 7};
        int64_t other[] = {2, channels ? 10 : 21, channels ? 15 : 10, channels ? 21 : 15};
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, 4, dims));
        kernel_case_in(&c, add, kernel_case_out(&c, op, GB_F32));
        kernel_case_in(&c, add, kernel_case_tensor(&c, GB_F32, 4, other));
        kernel_case_in(&c, relu, kernel_case_out(&c, add, GB_F32));
        kernel_case_out(&c, relu, GB_F32);
        kernel_case_run(&c, "interpolate, add, relu");
    }
}

/* Pools ---------------------------------------------------------------------------------------- */

typedef struct pool {
    gb_data_type type;
    const char *format;
    int ndims;
    int64_t image[GB_MAX_NDIMS], kernel[3], strides[3], pads[3], dilations[3];
} pool;

/* Size behind the pool; pads are larger at the end by one. */
static int64_t pooled(const pool *p, int i, int64_t in, bool max)
{
    int64_t extent = (p->kernel[i] - 1) * (max ? p->dilations[i] : 1) + 1;
    int64_t room = in + 2 * p->pads[i] + 1 - extent;
    return room / p->strides[i] + 1;
}

static void pool_backward(const pool *p, bool max, bool exclude_pad)
{
    kernel_case c = {.scale = 1, .repeated = true};
    gb_op *op = kernel_case_op(&c, max ? GB_OP_MAX_POOL_BACKWARD : GB_OP_AVG_POOL_BACKWARD);
    int n = p->ndims - 2, first = strcmp(p->format, "NCX") == 0 ? 2 : 1;
    int64_t result[GB_MAX_NDIMS], end[3];
    memcpy(result, p->image, sizeof result);
    for (int i = 0; i < n; i++) {
        result[first + i] = pooled(p, i, p->image[first + i], max);
        end[i] = p->pads[i] + 1;
    }
    kernel_case_ints(op, GB_ATTR_KERNEL, n, p->kernel);
    kernel_case_ints(op, GB_ATTR_STRIDES, n, p->strides);
    kernel_case_ints(op, GB_ATTR_PADS_BEGIN, n, p->pads);
    kernel_case_ints(op, GB_ATTR_PADS_END, n, end);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, p->format);
    if (max) {
        kernel_case_ints(op, GB_ATTR_DILATIONS, n, p->dilations);
        kernel_case_in(&c, op, kernel_case_tensor(&c, p->type, p->ndims, p->image));
    } else {
        kernel_case_flag(op, GB_ATTR_EXCLUDE_PAD, exclude_pad);
        kernel_case_ints(op, GB_ATTR_SRC_SHAPE, p->ndims, p->image);
    }
    kernel_case_in(&c, op, kernel_case_tensor(&c, p->type, p->ndims, result));
    kernel_case_out(&c, op, p->type);
    char name[120];
    snprintf(name, sizeof name, "%s %s %s rank %d, width %lld", max ? "max" : "mean", p->format,
            gb_data_type_name(p->type), p->ndims, (long long)p->image[first + n - 1]);
    kernel_case_run(&c, name);
}

static void all_pools(const pool *p)
{
    pool_backward(p, true, false);
    pool_backward(p, false, true);
    pool_backward(p, false, false);
}

KERNEL_TEST(pool_backward, axes)
{
    for (int t = 0; t < 3; t++) {
        all_pools(&(pool){types[t], "NCX", 3, {2, 5, 37}, {3}, {2}, {1}, {2}});
        all_pools(&(pool){types[t], "NXC", 3, {2, 37, 5}, {4}, {3}, {0}, {3}});
        all_pools(&(pool){types[t], "NCX", 4, {2, 19, 9, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}});
        all_pools(&(pool){types[t], "NXC", 4, {2, 9, 11, 70}, {2, 3}, {1, 2}, {0, 1}, {3, 2}});
        all_pools(&(pool){types[t], "NCX", 4, {3, 3, 7, 7}, {7, 7}, {1, 1}, {0, 0}, {1, 1}});
        all_pools(&(pool){
                types[t], "NCX", 5, {1, 3, 4, 5, 6}, {2, 3, 2}, {2, 1, 2}, {0, 1, 0}, {1, 2, 1}});
        all_pools(&(pool){
                types[t], "NXC", 5, {1, 4, 5, 6, 3}, {2, 2, 3}, {1, 2, 3}, {1, 0, 1}, {1, 1, 2}});
    }
}

KERNEL_TEST(pool_backward, sizes)
{
    all_pools(&(pool){GB_F32, "NCX", 4, {1, 5, 120, 110}, {3, 3}, {2, 2}, {1, 1}, {1, 1}});
    all_pools(&(pool){GB_BF16, "NXC", 4, {1, 120, 110, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1}});
    all_pools(&(pool){GB_F32, "NCX", 4, {2, 3, 50, 60}, {20, 13}, {5, 2}, {3, 5}, {2, 3}});
    all_pools(&(pool){GB_F32, "NCX", 3, {1, 2, 30000}, {5}, {3}, {2}, {2}});
    all_pools(&(pool){GB_F32, "NCX", 4, {2, 3, 8, 8}, {1, 1}, {5, 3}, {0, 0}, {1, 1}});
    all_pools(&(pool){GB_F32, "NCX", 4, {0, 3, 8, 8}, {2, 2}, {2, 2}, {0, 0}, {1, 1}});
    all_pools(&(pool){GB_F32, "NCX", 4, {2, 3, 4, 4}, {3, 3}, {2, 2}, {7, 7}, {1, 1}});
}

/* NaN and minus infinity win nowhere. */
KERNEL_TEST(pool_backward, no_winner)
{
    for (int nan = 0; nan < 2; nan++) {
        kernel_case c = {.scale = 1};
        gb_op *op = kernel_case_op(&c, GB_OP_MAX_POOL_BACKWARD);
        kernel_case_ints(op, GB_ATTR_KERNEL, SHAPE(3, 3));
        kernel_case_ints(op, GB_ATTR_STRIDES, SHAPE(2, 2));
        kernel_case_ints(op, GB_ATTR_PADS_BEGIN, SHAPE(1, 1));
        kernel_case_ints(op, GB_ATTR_PADS_END, SHAPE(1, 1));
        kernel_case_text(op, GB_ATTR_DATA_FORMAT, "NCX");
        size_t src = kernel_case_tensor(&c, GB_F32, SHAPE(2, 5, 9, 9));
        c.is_fixed[src] = true;
        c.fixed[src] = nan ? (double)NAN : -(double)INFINITY;
        kernel_case_in(&c, op, src);
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, SHAPE(2, 5, 5, 5)));
        kernel_case_out(&c, op, GB_F32);
        kernel_case_run(&c, "no winner");
    }
}
