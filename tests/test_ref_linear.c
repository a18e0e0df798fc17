/* The reference of MatMul and of the convolution family: golden values, laws, bounds and planted
 * faults. */
#include "ref_case.h"

/* MatMul --------------------------------------------------------------------------------------- */

typedef struct product {
    int64_t m, n, k;
    int transpose_a, transpose_b;
} product;

static ref_case matmul_case(const product *p, gb_data_type type, const double *a, const double *b)
{
    ref_case c = ref_case_begin(GB_OP_MATMUL);
    ref_case_flag(&c, GB_ATTR_TRANSPOSE_A, p->transpose_a);
    ref_case_flag(&c, GB_ATTR_TRANSPOSE_B, p->transpose_b);
    int64_t a_dims[2] = {p->m, p->k}, a_swapped[2] = {p->k, p->m};
    int64_t b_dims[2] = {p->k, p->n}, b_swapped[2] = {p->n, p->k};
    ref_case_input(&c, type, 2, p->transpose_a ? a_swapped : a_dims, a);
    ref_case_input(&c, type, 2, p->transpose_b ? b_swapped : b_dims, b);
    ref_case_output(&c, GB_F32, 2, (int64_t[]){p->m, p->n});
    return c;
}

static double element(
        const double *x, int64_t rows, int64_t columns, int swapped, int64_t i, int64_t j)
{
    return swapped ? x[j * rows + i] : x[i * columns + j];
}

/* An f32 implementation: products and sums rounded, in an order of our choice. */
static double *matmul_f32(const product *p, const double *a, const double *b, int backwards)
{
    double *c = malloc((size_t)(p->m * p->n) * sizeof(*c));
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            float sum = 0;
            for (int64_t step = 0; step < p->k; step++) {
                int64_t k = backwards ? p->k - 1 - step : step;
                sum += (float)element(a, p->m, p->k, p->transpose_a, i, k) *
                       (float)element(b, p->k, p->n, p->transpose_b, k, j);
            }
            c[i * p->n + j] = (double)sum;
        }
    }
    return c;
}

static const product products[] = {
        {1, 1, 1, 0, 0},
        {3, 5, 7, 0, 0},
        {3, 5, 7, 1, 0},
        {3, 5, 7, 0, 1},
        {70, 300, 130, 1, 1},
        {200, 3, 100, 0, 0}, /* computed transposed */
        {129, 1, 65, 1, 0},
        {1, 257, 64, 0, 1},
        {2, 2, 1000, 0, 0},
};

Test(ref_matmul, holds_f32_implementations_in_any_order)
{
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
        const product *p = &products[i];
        double *a = ref_case_randoms(i, p->m * p->k, 24),
               *b = ref_case_randoms(99, p->k * p->n, 24);
        ref_case c = matmul_case(p, GB_F32, a, b);
        const gb_ref_tensor *reference = ref_case_run(&c);
        for (int backwards = 0; backwards < 2; backwards++) {
            double *got = matmul_f32(p, a, b, backwards);
            cr_expect_eq(ref_case_outside(reference, got), 0, "case %zu", i);
            free(got);
        }
        cr_expect_eq(reference->statistical, p->k > 64);
        ref_case_end(&c);
        free(a);
        free(b);
    }
}

Test(ref_matmul, integers_are_exact_and_so_are_scaled_ones)
{
    const product *p = &products[4];
    for (int scale = -30; scale <= 30; scale += 30) {
        double *a = ref_case_randoms(1, p->m * p->k, 4), *b = ref_case_randoms(2, p->k * p->n, 4);
        for (int64_t i = 0; i < p->m * p->k; i++)
            a[i] = ldexp(a[i], scale);
        ref_case c = matmul_case(p, GB_F32, a, b);
        const gb_ref_tensor *reference = ref_case_run(&c);
        double *got = matmul_f32(p, a, b, 1);
        ref_case_expect_exact(reference);
        ref_case_expect(reference, p->m * p->n, got, 0);
        ref_case_end(&c);
        free(got);
        free(a);
        free(b);
    }
}

Test(ref_matmul, finds_a_dropped_term_and_a_swapped_index)
{
    const product *p = &products[4];
    double *a = ref_case_randoms(5, p->m * p->k, 24), *b = ref_case_randoms(6, p->k * p->n, 24);
    ref_case c = matmul_case(p, GB_F32, a, b);
    const gb_ref_tensor *reference = ref_case_run(&c);
    double *got = matmul_f32(p, a, b, 0);
    int64_t found = 0, tried = 0;
    for (int64_t i = 0; i < p->m; i += 3) {
        for (int64_t j = 0; j < p->n; j += 7) {
            int64_t at = i * p->n + j, last = p->k - 1;
            double right = got[at];
            got[at] -= a[last * p->m + i] * b[j * p->k + last];
            found += ref_case_outside(reference, got) == 1;
            got[at] = reference->value[at == 0 ? 1 : at - 1];
            found += ref_case_outside(reference, got) == 1;
            got[at] = right;
            tried += 2;
        }
    }
    cr_expect_geq(found, tried * 99 / 100, "%lld of %lld", (long long)found, (long long)tried);
    ref_case_end(&c);
    free(got);
    free(a);
    free(b);
}

Test(ref_matmul, golden_ranks_batches_and_bias)
{
    const double a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, 1, 3, 1};
    struct {
        int a_ndims, b_ndims, c_ndims, bias_ndims;
        int64_t a[3], b[3], c[3], bias[2];
        int count;
        double expected[8];
    } cases[] = {
            {1, 1, 0, -1, {6}, {6}, {0}, {0}, 1, {1 + 6 + 4 + 15 + 6}},
            {2, 1, 1, -1, {2, 3}, {3}, {2}, {0}, 2, {7, 16}},
            {1, 2, 1, -1, {3}, {3, 2}, {2}, {0}, 2, {1 + 4 + 9, 0 + 2 + 3}},
            {2, 2, 2, 1, {2, 3}, {3, 2}, {2, 2}, {2}, 4, {14 + 10, 5 + 20, 32 + 10, 11 + 20}},
            {2, 2, 2, 2, {2, 3}, {3, 2}, {2, 2}, {2, 1}, 4, {14 + 10, 5 + 10, 32 + 20, 11 + 20}},
            {3, 2, 3, -1, {3, 1, 2}, {2, 1}, {3, 1, 1}, {0}, 3, {1, 3, 5}},
            {3, 3, 3, -1, {1, 2, 3}, {2, 3, 1}, {2, 2, 1}, {0}, 4, {7, 16, 10, 25}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ref_case c = ref_case_begin(GB_OP_MATMUL);
        ref_case_input(&c, GB_F32, cases[i].a_ndims, cases[i].a, a);
        ref_case_input(&c, GB_F32, cases[i].b_ndims, cases[i].b, b);
        if (cases[i].bias_ndims >= 0)
            ref_case_input(&c, GB_F32, cases[i].bias_ndims, cases[i].bias, (double[]){10, 20});
        ref_case_output(&c, GB_F32, cases[i].c_ndims, cases[i].c);
        ref_case_expect(ref_case_run(&c), cases[i].count, cases[i].expected, 0);
        ref_case_end(&c);
    }
}

Test(ref_matmul, empty_inner_dimension_leaves_the_bias)
{
    ref_case c = ref_case_begin(GB_OP_MATMUL);
    ref_case_input(&c, GB_F32, LIST(2, 0), (double[]){0});
    ref_case_input(&c, GB_F32, LIST(0, 2), (double[]){0});
    ref_case_input(&c, GB_F32, LIST(2), (double[]){3, 4});
    ref_case_output(&c, GB_F32, LIST(2, 2));
    ref_case_expect(ref_case_run(&c), 4, (double[]){3, 4, 3, 4}, 0);
    ref_case_end(&c);
}

Test(ref_matmul, propagates_the_bounds_of_its_inputs)
{
    ref_case c = ref_case_begin(GB_OP_MATMUL);
    ref_case_input_bounded(&c, GB_F32, LIST(1, 2), (double[]){2, -3}, (double[]){0.5, 0});
    ref_case_input_bounded(&c, GB_F32, LIST(2, 1), (double[]){4, 5}, (double[]){0.25, 1});
    ref_case_output(&c, GB_F32, LIST(1, 1));
    const gb_ref_tensor *got = ref_case_run(&c);
    double expected = 2 * 0.25 + 4 * 0.5 + 0.5 * 0.25 + 3 * 1;
    cr_expect_eq(got->value[0], -7);
    cr_expect_geq(got->bound[0], expected);
    cr_expect_leq(got->bound[0], expected * 1.00001);
    ref_case_end(&c);
}

Test(ref_matmul, accumulation_and_fpmath_modes_widen_the_bound)
{
    double a[64], b[64];
    for (int i = 0; i < 64; i++)
        a[i] = b[i] = 1 + i * 0x1p-20;
    double bounds[3];
    for (int mode = 0; mode < 3; mode++) {
        ref_case c = ref_case_begin(GB_OP_MATMUL);
        if (mode == 1)
            ref_case_text(&c, GB_ATTR_ACCUMULATION_MODE, "f16");
        if (mode == 2)
            c.fpmath = GB_FPMATH_BF16;
        ref_case_input(&c, GB_F32, LIST(1, 64), a);
        ref_case_input(&c, GB_F32, LIST(64, 1), b);
        ref_case_output(&c, GB_F32, LIST(1, 1));
        bounds[mode] = ref_case_run(&c)->bound[0];
        ref_case_end(&c);
    }
    cr_expect_lt(bounds[0], 64 * 66 * 0x1p-24);
    cr_expect_gt(bounds[1], 64 * 64 * 0x1p-11);
    cr_expect_gt(bounds[2], 63 * 0x1p-7); /* 1 is a bf16 number */
    cr_expect_lt(bounds[2], 64 * 0x1.1p-7);
}

Test(ref_matmul, infinities_flow_and_overflow_is_uncertain)
{
    ref_case c = ref_case_begin(GB_OP_MATMUL);
    ref_case_input(&c, GB_F32, LIST(2, 2), (double[]){INFINITY, 1, INFINITY, 0});
    ref_case_input(&c, GB_F32, LIST(2, 2), (double[]){1, 0, 1, -1});
    ref_case_output(&c, GB_F32, LIST(2, 2));
    const gb_ref_tensor *got = ref_case_run(&c);
    ref_case_expect(got, 4, (double[]){INFINITY, NAN, INFINITY, NAN}, 0);
    cr_expect_eq(got->bound ? got->bound[0] : 0, 0);
    ref_case_end(&c);
    c = ref_case_begin(GB_OP_MATMUL);
    ref_case_input(&c, GB_F32, LIST(2, 2), (double[]){0x1p127, 0x1p127, INFINITY, 0x1p127});
    ref_case_input(&c, GB_F32, LIST(2, 1), (double[]){1, -4});
    ref_case_output(&c, GB_F32, LIST(2, 1));
    got = ref_case_run(&c);
    cr_expect(isinf(got->bound[0]), "the sum overflows in f32");
    cr_expect(isinf(got->bound[1]), "a product overflows to the infinity opposite to the other");
    ref_case_end(&c);
    c = ref_case_begin(GB_OP_MATMUL);
    ref_case_input(&c, GB_F32, LIST(1, 2), (double[]){INFINITY, 1});
    ref_case_input(&c, GB_F32, LIST(2, 1), (double[]){0x1p-130, 1});
    ref_case_output(&c, GB_F32, LIST(1, 1));
    got = ref_case_run(&c);
    cr_expect(isinf(got->bound[0]), "infinity times what is flushed to 0 is no number");
    ref_case_end(&c);
}

/* Convolution family --------------------------------------------------------------------------- */

typedef struct conv_shape {
    int n_spatial, groups, nxc, weights_swapped, output_padding;
    int64_t batch, image_channels, result_channels;
    int64_t image[3], kernel[3], stride[3], dilation[3], begin[3], end[3];
} conv_shape;

static const conv_shape shapes[] = {
        {1, 1, 0, 0, 0, 2, 3, 4, {9}, {3}, {1}, {1}, {1}, {1}},
        {1, 1, 1, 1, 0, 1, 1, 1, {5}, {5}, {1}, {1}, {0}, {0}},
        {2, 1, 0, 0, 0, 2, 5, 6, {7, 6}, {3, 2}, {2, 1}, {1, 1}, {1, 0}, {1, 1}},
        {2, 2, 1, 1, 0, 2, 4, 6, {8, 7}, {3, 3}, {2, 3}, {2, 1}, {2, 1}, {0, 2}},
        {2, 8, 0, 1, 0, 3, 8, 8, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
        {2, 4, 1, 0, 0, 1, 4, 8, {6, 5}, {2, 3}, {1, 2}, {1, 2}, {0, 2}, {1, 2}},
        {3, 1, 0, 0, 0, 1, 2, 3, {4, 5, 6}, {2, 3, 2}, {1, 2, 2}, {1, 1, 2}, {0, 1, 1}, {1, 1, 0}},
        {3, 2, 1, 1, 0, 2, 4, 2, {5, 4, 4}, {3, 1, 2}, {2, 1, 1}, {1, 1, 1}, {1, 0, 0}, {1, 0, 0}},
        {2, 1, 0, 0, 0, 1, 70, 66, {20, 20}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void result_size(const conv_shape *s, int64_t *result)
{
    for (int d = 0; d < s->n_spatial; d++) {
        int64_t reach = (s->kernel[d] - 1) * s->dilation[d] + 1;
        result[d] = (s->image[d] + s->begin[d] + s->end[d] - reach) / s->stride[d] + 1;
    }
}

static void data_dims(const conv_shape *s, int64_t channels, const int64_t *size, int64_t *dims)
{
    dims[0] = s->batch;
    dims[s->nxc ? s->n_spatial + 1 : 1] = channels;
    for (int d = 0; d < s->n_spatial; d++)
        dims[d + (s->nxc ? 1 : 2)] = size[d];
}

/* OIX (IOX) or, swapped, XIO (XOI); `o` is the channel count of the result. */
static void weights_dims(const conv_shape *s, int64_t *dims)
{
    int64_t o = s->result_channels, i = s->image_channels / s->groups;
    dims[s->weights_swapped ? s->n_spatial + 1 : 0] = o;
    dims[s->weights_swapped ? s->n_spatial : 1] = i;
    for (int d = 0; d < s->n_spatial; d++)
        dims[d + (s->weights_swapped ? 0 : 2)] = s->kernel[d];
}

typedef struct conv_data {
    int64_t x_dims[5], y_dims[5], w_dims[5];
    int64_t x_count, y_count, w_count;
    double *x, *y, *w;
} conv_data;

static conv_data conv_data_create(const conv_shape *s, int bits)
{
    conv_data d;
    int64_t result[3];
    result_size(s, result);
    data_dims(s, s->image_channels, s->image, d.x_dims);
    data_dims(s, s->result_channels, result, d.y_dims);
    weights_dims(s, d.w_dims);
    d.x_count = ref_case_count(s->n_spatial + 2, d.x_dims);
    d.y_count = ref_case_count(s->n_spatial + 2, d.y_dims);
    d.w_count = ref_case_count(s->n_spatial + 2, d.w_dims);
    d.x = ref_case_randoms(11, d.x_count, bits);
    d.y = ref_case_randoms(12, d.y_count, bits);
    d.w = ref_case_randoms(13, d.w_count, bits);
    return d;
}

static void conv_data_free(conv_data *d)
{
    free(d->x);
    free(d->y);
    free(d->w);
}

/* Inputs are given by letters: x image, y result, w weights. The transposed ops take the same
 * underlying convolution. */
static ref_case conv_case(
        const conv_shape *s, const conv_data *d, gb_op_kind kind, const char *inputs, char output)
{
    ref_case c = ref_case_begin(kind);
    int n = s->n_spatial, ndims = n + 2;
    bool transposed = kind == GB_OP_CONV_TRANSPOSE || kind == GB_OP_CONV_TRANSPOSE_BACKWARD_DATA ||
                      kind == GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS;
    const char *plain = transposed ? "IOX" : "OIX", *swapped = transposed ? "XOI" : "XIO";
    ref_case_ints(&c, GB_ATTR_STRIDES, n, s->stride);
    ref_case_ints(&c, GB_ATTR_DILATIONS, n, s->dilation);
    ref_case_ints(&c, GB_ATTR_PADS_BEGIN, n, s->begin);
    ref_case_ints(&c, GB_ATTR_PADS_END, n, s->end);
    ref_case_int(&c, GB_ATTR_GROUPS, s->groups);
    ref_case_text(&c, GB_ATTR_DATA_FORMAT, s->nxc ? "NXC" : "NCX");
    ref_case_text(&c, GB_ATTR_WEIGHTS_FORMAT, s->weights_swapped ? swapped : plain);
    for (int i = 0; i < 2; i++) {
        const int64_t *dims = inputs[i] == 'x'   ? d->x_dims
                              : inputs[i] == 'y' ? d->y_dims
                                                 : d->w_dims;
        ref_case_input(&c, GB_F32, ndims, dims,
                inputs[i] == 'x'   ? d->x
                : inputs[i] == 'y' ? d->y
                                   : d->w);
    }
    ref_case_output(&c, GB_F32, ndims,
            output == 'x'   ? d->x_dims
            : output == 'y' ? d->y_dims
                            : d->w_dims);
    return c;
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Seen by (n, c, position...), independent of the library's helpers. */
static int64_t data_at(
        const conv_shape *s, const int64_t *dims, int64_t n, int64_t c, const int64_t *at)
{
    int64_t index = n;
    if (!s->nxc)
        index = index * dims[1] + c;
    for (int d = 0; d < s->n_spatial; d++)
        index = index * dims[d + (s->nxc ? 1 : 2)] + at[d];
    return s->nxc ? index * dims[s->n_spatial + 1] + c : index;
}

static int64_t weight_at(
        const conv_shape *s, const int64_t *dims, int64_t o, int64_t i, const int64_t *k)
{
    int64_t index = s->weights_swapped ? 0 : o * dims[1] + i;
    for (int d = 0; d < s->n_spatial; d++)
        index = index * s->kernel[d] + k[d];
    if (!s->weights_swapped)
        return index;
    return (index * dims[s->n_spatial] + i) * dims[s->n_spatial + 1] + o;
}

static bool next_index(int n, const int64_t *size, int64_t *index)
{
    for (int d = n - 1; d >= 0; d--) {
        if (++index[d] < size[d])
            return true;
        index[d] = 0;
    }
    return false;
}

/* One term y[n,o,p] += x[n,c,i] w[o,c,k], in f32; the roles of the three depend on `output`. */
static void add_term(const conv_data *d, int64_t x, int64_t y, int64_t w, char output, float *sums)
{
    if (output == 'y')
        sums[y] += (float)d->x[x] * (float)d->w[w];
    else if (output == 'x')
        sums[x] += (float)d->y[y] * (float)d->w[w];
    else
        sums[w] += (float)d->x[x] * (float)d->y[y];
}

/* All terms that read one window: o, p and n are given. */
static void add_window(const conv_shape *s, const conv_data *d, int64_t n, int64_t o,
        const int64_t *p, char output, float *sums)
{
    int64_t per_group = s->image_channels / s->groups, k[3] = {0}, at[3];
    int64_t group = o / (s->result_channels / s->groups);
    do {
        bool inside = true;
        for (int a = 0; a < s->n_spatial; a++) {
            at[a] = p[a] * s->stride[a] + k[a] * s->dilation[a] - s->begin[a];
            inside = inside && at[a] >= 0 && at[a] < s->image[a];
        }
        for (int64_t i = 0; inside && i < per_group; i++)
            add_term(d, data_at(s, d->x_dims, n, group * per_group + i, at),
                    data_at(s, d->y_dims, n, o, p), weight_at(s, d->w_dims, o, i, k), output, sums);
    } while (next_index(s->n_spatial, s->kernel, k));
}

static double *conv_f32(const conv_shape *s, const conv_data *d, char output)
{
    int64_t count = output == 'x' ? d->x_count : output == 'y' ? d->y_count : d->w_count;
    float *sums = calloc((size_t)count, sizeof(*sums));
    double *result = malloc((size_t)count * sizeof(*result));
    int64_t size[3];
    result_size(s, size);
    for (int64_t n = 0; n < s->batch; n++) {
        for (int64_t o = 0; o < s->result_channels; o++) {
            int64_t p[3] = {0};
            do
                add_window(s, d, n, o, p, output, sums);
            while (next_index(s->n_spatial, size, p));
        }
    }
    for (int64_t i = 0; i < count; i++)
        result[i] = (double)sums[i];
    free(sums);
    return result;
}

static const struct {
    gb_op_kind kind;
    const char *inputs;
    char output;
} conv_ops[] = {
        {GB_OP_CONVOLUTION, "xw", 'y'},
        {GB_OP_CONVOLUTION_BACKWARD_DATA, "yw", 'x'},
        {GB_OP_CONVOLUTION_BACKWARD_WEIGHTS, "xy", 'w'},
        {GB_OP_CONV_TRANSPOSE, "yw", 'x'},
        {GB_OP_CONV_TRANSPOSE_BACKWARD_DATA, "xw", 'y'},
        {GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS, "yx", 'w'},
};
enum { CONV_OPS = sizeof(conv_ops) / sizeof(conv_ops[0]) };

Test(ref_conv, all_ops_hold_f32_implementations)
{
    for (int i = 0; i < SHAPES * CONV_OPS; i++) {
        const conv_shape *s = &shapes[i / CONV_OPS];
        int op = i % CONV_OPS;
        conv_data d = conv_data_create(s, 24);
        ref_case c = conv_case(s, &d, conv_ops[op].kind, conv_ops[op].inputs, conv_ops[op].output);
        double *got = conv_f32(s, &d, conv_ops[op].output);
        const gb_ref_tensor *reference = ref_case_run(&c);
        cr_expect_eq(ref_case_outside(reference, got), 0, "shape %d op %d: %lld of %lld",
                i / CONV_OPS, op, (long long)ref_case_outside(reference, got),
                (long long)reference->count);
        free(got);
        ref_case_end(&c);
        conv_data_free(&d);
    }
}

Test(ref_conv, integers_are_exact)
{
    for (int i = 0; i < SHAPES * CONV_OPS; i++) {
        const conv_shape *s = &shapes[i / CONV_OPS];
        int op = i % CONV_OPS;
        conv_data d = conv_data_create(s, 4);
        ref_case c = conv_case(s, &d, conv_ops[op].kind, conv_ops[op].inputs, conv_ops[op].output);
        double *got = conv_f32(s, &d, conv_ops[op].output);
        const gb_ref_tensor *reference = ref_case_run(&c);
        ref_case_expect_exact(reference);
        ref_case_expect(reference, reference->count, got, 0);
        free(got);
        ref_case_end(&c);
        conv_data_free(&d);
    }
}

/* <y, conv(x, w)> = <x, backward_data(y, w)> = <w, backward_weights(x, y)>. */
Test(ref_conv, gradients_are_adjoint)
{
    for (int i = 0; i < SHAPES * 2; i++) {
        const conv_shape *s = &shapes[i / 2];
        conv_data d = conv_data_create(s, 24);
        double sums[3];
        for (int op = 0; op < 3; op++) {
            int row = i % 2 * 3 + op;
            char to = conv_ops[row].output;
            ref_case c = conv_case(s, &d, conv_ops[row].kind, conv_ops[row].inputs, to);
            const gb_ref_tensor *got = ref_case_run(&c);
            sums[op] = dot(got->value, to == 'x' ? d.x : to == 'y' ? d.y : d.w, got->count);
            ref_case_end(&c);
        }
        cr_expect_lt(fabs(sums[1] - sums[0]), 1e-10, "shape %d", i / 2);
        cr_expect_lt(fabs(sums[2] - sums[0]), 1e-10, "shape %d", i / 2);
        conv_data_free(&d);
    }
}

Test(ref_conv, finds_a_lost_tap_and_a_shifted_pixel)
{
    const conv_shape *s = &shapes[8];
    conv_data d = conv_data_create(s, 24);
    ref_case c = conv_case(s, &d, GB_OP_CONVOLUTION, "xw", 'y');
    const gb_ref_tensor *reference = ref_case_run(&c);
    double lost = d.w[4];
    d.w[4] = 0; /* the centre tap of the first filter: one output channel is wrong */
    double *got = conv_f32(s, &d, 'y');
    cr_expect_geq(ref_case_outside(reference, got), 99);
    free(got);
    d.w[4] = lost;
    d.x[25] = d.x[24];
    got = conv_f32(s, &d, 'y');
    cr_expect_geq(ref_case_outside(reference, got), s->result_channels);
    free(got);
    ref_case_end(&c);
    conv_data_free(&d);
}

Test(ref_conv, golden_bias_and_padding)
{
    ref_case c = ref_case_begin(GB_OP_CONVOLUTION);
    ref_case_ints(&c, GB_ATTR_STRIDES, LIST(1));
    ref_case_ints(&c, GB_ATTR_DILATIONS, LIST(1));
    ref_case_ints(&c, GB_ATTR_PADS_BEGIN, LIST(0));
    ref_case_ints(&c, GB_ATTR_PADS_END, LIST(0));
    ref_case_text(&c, GB_ATTR_AUTO_PAD, "SAME_UPPER");
    ref_case_text(&c, GB_ATTR_DATA_FORMAT, "NCX");
    ref_case_text(&c, GB_ATTR_WEIGHTS_FORMAT, "OIX");
    ref_case_input(&c, GB_F32, LIST(1, 1, 4), (double[]){1, 2, 3, 4});
    ref_case_input(&c, GB_F32, LIST(2, 1, 2), (double[]){1, 10, 0, 1});
    ref_case_input(&c, GB_F32, LIST(2), (double[]){100, 0});
    ref_case_output(&c, GB_F32, LIST(1, 2, 4));
    ref_case_expect(ref_case_run(&c), 8, (double[]){121, 132, 143, 104, 2, 3, 4, 0}, 0);
    ref_case_end(&c);
}

Test(ref_conv, golden_transposed_with_output_padding)
{
    for (int64_t padding = 0; padding < 2; padding++) {
        ref_case c = ref_case_begin(GB_OP_CONV_TRANSPOSE);
        ref_case_ints(&c, GB_ATTR_STRIDES, LIST(2));
        ref_case_ints(&c, GB_ATTR_DILATIONS, LIST(1));
        ref_case_ints(&c, GB_ATTR_PADS_BEGIN, LIST(1));
        ref_case_ints(&c, GB_ATTR_PADS_END, LIST(1));
        ref_case_ints(&c, GB_ATTR_OUTPUT_PADDING, 1, &padding);
        ref_case_text(&c, GB_ATTR_DATA_FORMAT, "NCX");
        ref_case_text(&c, GB_ATTR_WEIGHTS_FORMAT, "IOX");
        ref_case_input(&c, GB_F32, LIST(1, 1, 3), (double[]){1, 2, 3});
        ref_case_input(&c, GB_F32, LIST(1, 1, 3), (double[]){1, 10, 100});
        ref_case_input(&c, GB_F32, LIST(1), (double[]){0.5});
        ref_case_output(&c, GB_F32, 3, (int64_t[]){1, 1, 5 + padding});
        const double expected[] = {10.5, 102.5, 20.5, 203.5, 30.5, 300.5};
        ref_case_expect(ref_case_run(&c), 5 + padding, expected, 0);
        ref_case_end(&c);
    }
}

/* Padding is not a factor of zero: an infinite weight or gradient next to it gives no NaN. */
Test(ref_conv, padding_hides_infinite_weights)
{
    conv_shape s = {1, 1, 0, 0, 0, 1, 1, 1, {3}, {3}, {1}, {1}, {1}, {1}};
    conv_data d = conv_data_create(&s, 24);
    memcpy(d.x, (double[]){1, 2, 3}, sizeof(double[3]));
    memcpy(d.w, (double[]){INFINITY, 1, 0}, sizeof(double[3]));
    ref_case c = conv_case(&s, &d, GB_OP_CONVOLUTION, "xw", 'y');
    const gb_ref_tensor *dst = ref_case_run(&c);
    ref_case_expect(dst, 3, (double[]){1, INFINITY, INFINITY}, 0);
    cr_expect(isinf(ref_case_bound(dst, 0))); /* kernels may multiply the padding */
    cr_expect_eq(ref_case_bound(dst, 1), 0);
    ref_case_end(&c);
    memcpy(d.y, (double[]){INFINITY, 0, 0}, sizeof(double[3]));
    c = conv_case(&s, &d, GB_OP_CONVOLUTION_BACKWARD_WEIGHTS, "xy", 'w');
    ref_case_expect(ref_case_run(&c), 3, (double[]){0, INFINITY, INFINITY}, 0);
    ref_case_end(&c);
    conv_data_free(&d);
}

Test(ref_conv, refuses_channels_that_do_not_fit)
{
    const conv_shape *s = &shapes[2];
    conv_data d = conv_data_create(s, 24);
    d.w_dims[1]--;
    ref_case c = conv_case(s, &d, GB_OP_CONVOLUTION, "xw", 'y');
    cr_expect_eq(ref_case_try(&c), GB_INVALID_SHAPE);
    ref_case_end(&c);
    conv_data_free(&d);
}

/* The ratio of errors to bounds is a mean over the tensor: one error may be as large as its bound. */
Test(ref_matmul, one_error_that_outweighs_the_others)
{
    ref_case c = ref_case_begin(GB_OP_MATMUL);
    ref_case_input_bounded(
            &c, GB_F32, LIST(1, 3), (double[]){1, 1, 1}, (double[]){1e-3, 1e-9, 1e-9});
    ref_case_input(&c, GB_F32, LIST(3, 1), (double[]){1, 1, 1});
    ref_case_output(&c, GB_F32, LIST(1, 1));
    gb_ref_tensor *src = (gb_ref_tensor *)(uintptr_t)gb_ref_store_get(c.store, 0);
    src->spread =
            (gb_ref_spread){.deviations = 1e-12, .bounds = 1e-6, .quotients = 1e-6, .elements = 1};
    cr_expect_geq(ref_case_bound(ref_case_run(&c), 0), 1e-3);
    ref_case_end(&c);
}

/* Errors of elements with small bounds may be as large as these where those of the others are not:
 * the sum may be over such elements alone. */
Test(ref_matmul, small_errors_that_are_as_large_as_their_bounds)
{
    double bounds[26];
    ref_case c = ref_case_begin(GB_OP_MATMUL);
    for (int i = 0; i < 26; i++)
        bounds[i] = 1e-6;
    ref_case_input_bounded(&c, GB_F32, LIST(1, 26), (double[26]){1}, bounds);
    double ones[26];
    for (int i = 0; i < 26; i++)
        ones[i] = 1;
    ref_case_input(&c, GB_F32, LIST(26, 1), ones);
    ref_case_output(&c, GB_F32, LIST(1, 1));
    gb_ref_tensor *src = (gb_ref_tensor *)(uintptr_t)gb_ref_store_get(c.store, 0);
    src->spread =
            (gb_ref_spread){.deviations = 1e-4, .bounds = 1, .quotients = 25, .elements = 100};
    cr_expect_geq(ref_case_bound(ref_case_run(&c), 0), 8 * sqrt(0.25 * 26) * 1e-6);
    ref_case_end(&c);
}

/* Equal factors are all rounded to the same side. */
Test(ref_matmul, stores_that_move_all_terms_alike)
{
    enum { N = 400 };
    double p[N], bound[N], ones[N];
    const double value = 1.0 / N, rounded = 0.00250244140625; /* in bf16 */
    for (int i = 0; i < N; i++) {
        p[i] = value;
        bound[i] = fabs(rounded - value);
        ones[i] = 1;
    }
    ref_case c = ref_case_begin(GB_OP_MATMUL);
    ref_case_input_bounded(&c, GB_BF16, LIST(1, N), p, bound);
    ref_case_input(&c, GB_BF16, LIST(N, 1), ones);
    ref_case_output(&c, GB_F32, LIST(1, 1));
    const gb_ref_tensor *got = ref_case_run(&c);
    cr_expect_geq(ref_case_bound(got, 0), N * fabs(rounded - value) * 0.999);
    ref_case_end(&c);
}

/* Subnormal factors may be 0, all of them, however well the errors of the others cancel. */
Test(ref_matmul, flushed_factors_add_up)
{
    ref_case c = ref_case_begin(GB_OP_MATMUL);
    ref_case_input_bounded(&c, GB_F32, LIST(1, 2), (double[]){1e9, 1e9}, (double[]){1, 1});
    ref_case_input(&c, GB_F32, LIST(2, 1), (double[]){0x1p-130, 0x1p-130});
    ref_case_output(&c, GB_F32, LIST(1, 1));
    gb_ref_tensor *src = (gb_ref_tensor *)(uintptr_t)gb_ref_store_get(c.store, 0);
    src->spread =
            (gb_ref_spread){.deviations = 1e-4, .bounds = 1, .quotients = 1e-4, .elements = 1};
    const gb_ref_tensor *got = ref_case_run(&c);
    cr_expect_geq(ref_case_bound(got, 0), got->value[0]);
    ref_case_end(&c);
}
