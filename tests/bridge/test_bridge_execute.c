/* Results of groups against formulas written out here, and kernels from several threads. */
#include "bridge_run.h"

#include <pthread.h>

static void no_node(void *context, run_env *env, const char *node)
{
    (void)context;
    (void)env;
    cr_assert_fail("%s is outside", node);
}

static float noise(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / (float)(1 << 23) - 1;
}

/* Inputs as "name:2x3" words, filled with noise. */
static void fill_inputs(run_env *env, const char *inputs)
{
    char copy[512];
    unsigned seed = 1;
    snprintf(copy, sizeof copy, "%s", inputs);
    for (char *save, *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        long long read[12];
        int64_t dims[12];
        char *colon = strchr(word, ':');
        *colon = '\0';
        int n = read_dims(colon + 1, read);
        for (int d = 0; d < n; d++)
            dims[d] = read[d];
        run_tensor *t = run_dense(env, word, n, dims);
        for (int64_t i = 0; i < run_count(&t->t); i++)
            ((float *)t->t.data)[i] = noise(&seed);
    }
}

static const float *data_of(run_env *env, const char *name)
{
    run_tensor *t = run_find(env, name);
    cr_assert(t, "%s", name);
    return t->t.data;
}

/* All nodes are in groups. */
static void run_with(
        gb_policy policy, const char *lines, const char *inputs, void (*check)(run_env *env))
{
    static run_env env;
    gb_bridge_options options = {.size = sizeof options, .policy = policy, .keep_single_ops = 1};
    gb_bridge_module *module = make_module(lines, &options);
    fill_inputs(&env, inputs);
    run_module(module, &env, no_node, NULL);
    check(&env);
    run_release(&env);
    gb_bridge_module_destroy(module);
}

static void run_case(const char *lines, const char *inputs, void (*check)(run_env *env))
{
    run_with(GB_POLICY_FUSION, lines, inputs, check);
    run_with(GB_POLICY_MAX, lines, inputs, check);
}

static void expect_near(float got, double expected, const char *what, int at)
{
    cr_assert(fabs((double)got - expected) <= 1e-4 * (1 + fabs(expected)), "%s[%d]: %g, not %g",
            what, at, (double)got, expected);
}

static void check_linear(run_env *env)
{
    const float *x = data_of(env, "x"), *w = data_of(env, "w"), *b = data_of(env, "b");
    const float *y = data_of(env, "y");
    for (int r = 0; r < 6; r++)
        for (int c = 0; c < 5; c++) {
            double sum = (double)b[c];
            for (int k = 0; k < 4; k++)
                sum += (double)x[r * 4 + k] * (double)w[c * 4 + k];
            expect_near(y[r * 5 + c], sum > 0 ? sum : 0, "y", r * 5 + c);
        }
}

Test(bridge_execute, linear_relu)
{
    run_case("input x f32 2x3x4\nparam w f32 5x4\nparam b f32 5\n"
             "linear.default l:f32:2x3x5 input=@x weight=@w bias=@b\n"
             "relu.default y:f32:2x3x5 self=@l\noutput y\n",
            "x:2x3x4 w:5x4 b:5", check_linear);
}

Test(bridge_execute, addmm_of_views)
{
    /* Policy fusion leaves the first view to the framework. */
    run_with(GB_POLICY_MAX,
            "input x f32 2x3x4\nparam w f32 5x4\nparam b f32 5\n"
            "view.default v:f32:6x4 self=@x size=[6,4]\n"
            "t.default t:f32:4x5:1x4 self=@w\n"
            "addmm.default l:f32:6x5 self=@b mat1=@v mat2=@t\n"
            "relu.default y:f32:6x5 self=@l\noutput y\n",
            "x:2x3x4 w:5x4 b:5", check_linear);
}

static void check_scaled(run_env *env)
{
    const float *x = data_of(env, "x"), *z = data_of(env, "z"), *y = data_of(env, "y");
    for (int i = 0; i < 12; i++)
        expect_near(y[i], (double)x[i] * 3 + 2 * (double)z[i % 4] - 0.5, "y", i);
}

Test(bridge_execute, alpha_scalars_and_broadcast)
{
    run_case("input x f32 3x4\ninput z f32 4\n"
             "mul.Tensor m:f32:3x4 self=@x other=3\n"
             "add.Tensor a:f32:3x4 self=@m other=@z alpha=2\n"
             "add.Tensor y:f32:3x4 self=@a other=-0.5\noutput y\n",
            "x:3x4 z:4", check_scaled);
}

enum { HEADS = 2, ROWS = 3, KEYS = 5, SIZE = 4 };

static void attend(run_env *env, bool is_causal)
{
    const float *q = data_of(env, "q"), *k = data_of(env, "k"), *v = data_of(env, "v");
    const float *y = data_of(env, "y");
    for (int h = 0; h < HEADS; h++)
        for (int r = 0; r < ROWS; r++) {
            double weights[KEYS], total = 0;
            for (int c = 0; c < KEYS; c++) {
                double s = 0;
                for (int d = 0; d < SIZE; d++)
                    s += (double)q[(h * ROWS + r) * SIZE + d] *
                         (double)k[(h * KEYS + c) * SIZE + d];
                weights[c] = is_causal && c > r ? 0 : exp(s / 2);
                total += weights[c];
            }
            for (int d = 0; d < SIZE; d++) {
                double sum = 0;
                for (int c = 0; c < KEYS; c++)
                    sum += weights[c] / total * (double)v[(h * KEYS + c) * SIZE + d];
                expect_near(y[(h * ROWS + r) * SIZE + d], sum, "y", (h * ROWS + r) * SIZE + d);
            }
        }
}

static void check_attention(run_env *env)
{
    attend(env, false);
}

static void check_causal(run_env *env)
{
    attend(env, true);
}

#define HEAD "input q f32 1x2x3x4\ninput k f32 1x2x5x4\ninput v f32 1x2x5x4\n"

Test(bridge_execute, attention)
{
    const char *inputs = "q:1x2x3x4 k:1x2x5x4 v:1x2x5x4";
    run_case(HEAD "scaled_dot_product_attention.default y:f32:1x2x3x4 query=@q key=@k value=@v\n"
                  "output y\n",
            inputs, check_attention);
    run_case(HEAD "scaled_dot_product_attention.default y:f32:1x2x3x4 query=@q key=@k value=@v "
                  "is_causal=true\noutput y\n",
            inputs, check_causal);
}

/* The gradient against differences of the forward pass. */
static double forward_sum(const float *q, const float *k, const float *v, const float *g)
{
    double sum = 0;
    for (int h = 0; h < HEADS; h++)
        for (int r = 0; r < ROWS; r++) {
            double weights[KEYS], total = 0;
            for (int c = 0; c < KEYS; c++) {
                double s = 0;
                for (int d = 0; d < SIZE; d++)
                    s += (double)q[(h * ROWS + r) * SIZE + d] *
                         (double)k[(h * KEYS + c) * SIZE + d];
                total += weights[c] = exp(s / 2);
            }
            for (int d = 0; d < SIZE; d++)
                for (int c = 0; c < KEYS; c++)
                    sum += weights[c] / total * (double)v[(h * KEYS + c) * SIZE + d] *
                           (double)g[(h * ROWS + r) * SIZE + d];
        }
    return sum;
}

static void check_gradient(run_env *env)
{
    const char *const names[] = {"q", "k", "v"}, *const gradients[] = {"dq", "dk", "dv"};
    const int counts[] = {HEADS * ROWS * SIZE, HEADS * KEYS * SIZE, HEADS * KEYS * SIZE};
    const float *g = data_of(env, "g");
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < counts[t]; i++) {
            float *at = (float *)run_find(env, names[t])->t.data + i, kept = *at;
            *at = kept + 0.01f;
            double up = forward_sum(data_of(env, "q"), data_of(env, "k"), data_of(env, "v"), g);
            *at = kept - 0.01f;
            double down = forward_sum(data_of(env, "q"), data_of(env, "k"), data_of(env, "v"), g);
            *at = kept;
            double expected = (up - down) / 0.02, got = (double)data_of(env, gradients[t])[i];
            cr_assert(fabs(got - expected) < 2e-3, "%s[%d]: %g, not %g", gradients[t], i, got,
                    expected);
        }
}

Test(bridge_execute, attention_backward)
{
    run_case(HEAD "input g f32 1x2x3x4\n"
                  "_scaled_dot_product_flash_attention_for_cpu.default "
                  "o:f32:1x2x3x4,lse:f32:1x2x3 query=@q key=@k value=@v\n"
                  "_scaled_dot_product_flash_attention_for_cpu_backward.default "
                  "dq:f32:1x2x3x4,dk:f32:1x2x5x4,dv:f32:1x2x5x4 grad_out=@g query=@q key=@k "
                  "value=@v out=@o logsumexp=@lse dropout_p=0.0 is_causal=false\n"
                  "output o\noutput lse\noutput dq\noutput dk\noutput dv\n",
            "q:1x2x3x4 k:1x2x5x4 v:1x2x5x4 g:1x2x3x4", check_gradient);
}

static void check_layer_norm(run_env *env)
{
    const float *x = data_of(env, "x"), *w = data_of(env, "w"), *b = data_of(env, "b");
    for (int r = 0; r < 6; r++) {
        double mean = 0, variance = 0;
        for (int c = 0; c < 8; c++)
            mean += (double)x[r * 8 + c] / 8;
        for (int c = 0; c < 8; c++)
            variance += pow((double)x[r * 8 + c] - mean, 2) / 8;
        double inverse = 1 / sqrt(variance + 1e-5);
        expect_near(data_of(env, "mean")[r], mean, "mean", r);
        expect_near(data_of(env, "rstd")[r], inverse, "rstd", r);
        for (int c = 0; c < 8; c++)
            expect_near(data_of(env, "y")[r * 8 + c],
                    ((double)x[r * 8 + c] - mean) * inverse * (double)w[c] + (double)b[c], "y",
                    r * 8 + c);
    }
}

Test(bridge_execute, layer_norm_with_statistics)
{
    run_case("input x f32 2x3x8\nparam w f32 8\nparam b f32 8\n"
             "native_layer_norm.default y:f32:2x3x8,mean:f32:2x3x1,rstd:f32:2x3x1 input=@x "
             "normalized_shape=[8] weight=@w bias=@b eps=0.00001\noutput y\noutput mean\noutput "
             "rstd\n",
            "x:2x3x8 w:8 b:8", check_layer_norm);
}

/* The epsilon that statistics were made with may be small beside any other. */
Test(bridge_execute, layer_norm_backward_with_a_small_epsilon)
{
    static run_env env;
    gb_bridge_options options = {
            .size = sizeof options, .policy = GB_POLICY_MAX, .keep_single_ops = 1};
    gb_bridge_module *module =
            make_module("input g f32 2x4\ninput x f32 2x4\ninput m f32 2x1\ninput r f32 2x1\n"
                        "param w f32 4\nparam b f32 4\n"
                        "native_layer_norm_backward.default dx:f32:2x4,dw:f32:4,db:f32:4 "
                        "grad_out=@g input=@x normalized_shape=[4] mean=@m rstd=@r weight=@w "
                        "bias=@b output_mask=[true,true,true]\noutput dx\noutput dw\noutput db\n",
                    &options);
    for (double epsilon = 1e-4; epsilon > 1e-15; epsilon /= 10) {
        fill_inputs(&env, "g:2x4 x:2x4 m:2x1 r:2x1 w:4 b:4");
        float *x = run_find(&env, "x")->t.data, *m = run_find(&env, "m")->t.data;
        float *r = run_find(&env, "r")->t.data;
        const float *g = data_of(&env, "g"), *w = data_of(&env, "w");
        /* A row of equal values, and one of a variance of 1.25e-10. */
        for (int i = 0; i < 8; i++)
            x[i] = i < 4 ? 0 : (float)(i - 4) * 1e-5f;
        m[0] = 0;
        m[1] = 1.5e-5f;
        r[0] = (float)(1 / sqrt(epsilon));
        r[1] = (float)(1 / sqrt(1.25e-10 + epsilon));
        run_module(module, &env, no_node, NULL);
        for (int row = 0; row < 2; row++) {
            double sum = 0, product = 0, inverse = (double)r[row], normal[4];
            for (int c = 0; c < 4; c++) {
                double d = (double)g[row * 4 + c] * (double)w[c];
                normal[c] = ((double)x[row * 4 + c] - (double)m[row]) * inverse;
                sum += d / 4;
                product += d * normal[c] / 4;
            }
            for (int c = 0; c < 4; c++) {
                double d = (double)g[row * 4 + c] * (double)w[c];
                double expected = (d - sum - normal[c] * product) * inverse;
                double got = (double)data_of(&env, "dx")[row * 4 + c];
                cr_assert(fabs(got - expected) <= 1e-4 * inverse, "epsilon %g, dx[%d]: %g, not %g",
                        epsilon, row * 4 + c, got, expected);
            }
        }
        run_release(&env);
    }
    gb_bridge_module_destroy(module);
}

static void check_batch_norm(run_env *env)
{
    const float *x = data_of(env, "x"), *w = data_of(env, "w"), *b = data_of(env, "b");
    for (int c = 0; c < 3; c++) {
        double mean = 0, variance = 0;
        for (int n = 0; n < 2; n++)
            for (int i = 0; i < 4; i++)
                mean += (double)x[(n * 3 + c) * 4 + i] / 8;
        for (int n = 0; n < 2; n++)
            for (int i = 0; i < 4; i++)
                variance += pow((double)x[(n * 3 + c) * 4 + i] - mean, 2) / 8;
        double inverse = 1 / sqrt(variance + 1e-5);
        expect_near(data_of(env, "sm")[c], mean, "mean", c);
        expect_near(data_of(env, "si")[c], inverse, "invstd", c);
        expect_near(data_of(env, "nm")[c], 0.9 * (double)data_of(env, "rm")[c] + 0.1 * mean,
                "running mean", c);
        expect_near(data_of(env, "nv")[c],
                0.9 * (double)data_of(env, "rv")[c] + 0.1 * variance * 8 / 7, "running var", c);
        for (int n = 0; n < 2; n++)
            for (int i = 0; i < 4; i++) {
                int at = (n * 3 + c) * 4 + i;
                expect_near(data_of(env, "y")[at],
                        ((double)x[at] - mean) * inverse * (double)w[c] + (double)b[c], "y", at);
            }
    }
}

Test(bridge_execute, batch_norm_in_training)
{
    run_case("input x f32 2x3x2x2\nparam w f32 3\nparam b f32 3\ninput rm f32 3\ninput rv f32 3\n"
             "_native_batch_norm_legit_functional.default "
             "y:f32:2x3x2x2,sm:f32:3,si:f32:3,nm:f32:3,nv:f32:3 input=@x weight=@w bias=@b "
             "running_mean=@rm running_var=@rv training=true momentum=0.1 eps=0.00001\n"
             "output y\noutput sm\noutput si\noutput nm\noutput nv\n",
            "x:2x3x2x2 w:3 b:3 rm:3 rv:3", check_batch_norm);
}

static void check_fixed_norm(run_env *env)
{
    const float *x = data_of(env, "x"), *g = data_of(env, "g"), *w = data_of(env, "w");
    for (int c = 0; c < 3; c++) {
        double inverse = 1 / sqrt((double)data_of(env, "rv")[c] + 2), weight = 0, bias = 0;
        for (int i = 0; i < 8; i++) {
            int at = (i / 4 * 3 + c) * 4 + i % 4;
            weight += (double)g[at] * ((double)x[at] - (double)data_of(env, "rm")[c]) * inverse;
            bias += (double)g[at];
            expect_near(data_of(env, "dx")[at], (double)g[at] * inverse * (double)w[c], "dx", at);
        }
        expect_near(data_of(env, "dw")[c], weight, "dw", c);
        expect_near(data_of(env, "db")[c], bias, "db", c);
    }
}

/* Gradients where the norm had used running statistics: the others are not there. */
Test(bridge_execute, batch_norm_of_running_statistics_backward)
{
    /* Policy fusion leaves it to the framework: its ops are in several partitions. */
    run_with(GB_POLICY_MAX,
            "input x f32 2x3x2x2\ninput g f32 2x3x2x2\nparam w f32 3\ninput rm f32 3\n"
            "input rv f32 3\n"
            "native_batch_norm_backward.default dx:f32:2x3x2x2,dw:f32:3,db:f32:3 grad_out=@g "
            "input=@x weight=@w running_mean=@rm running_var=@rv train=false eps=2.0\n"
            "output dx\noutput dw\noutput db\n",
            "x:2x3x2x2 g:2x3x2x2 w:3 rm:3 rv:3", check_fixed_norm);
}

static void check_conv_gradients(run_env *env)
{
    const float *x = data_of(env, "x"), *g = data_of(env, "g"), *w = data_of(env, "w");
    double dx[32] = {0}, dw[6] = {0}, db[3] = {0};
    for (int at = 0; at < 48; at++) {
        int n = at / 24, o = at / 8 % 3, i = at % 8;
        db[o] += (double)g[at];
        for (int c = 0; c < 2; c++) {
            int from = (n * 2 + c) * 8 + i;
            dx[from] += (double)g[at] * (double)w[o * 2 + c];
            dw[o * 2 + c] += (double)g[at] * (double)x[from];
        }
    }
    for (int i = 0; i < 32; i++)
        expect_near(data_of(env, "dx")[i], dx[i], "dx", i);
    for (int i = 0; i < 6; i++)
        expect_near(data_of(env, "dw")[i], dw[i], "dw", i);
    for (int i = 0; i < 3; i++)
        expect_near(data_of(env, "db")[i], db[i], "db", i);
}

/* Three ops of one node that read no results of each other: several groups make its outputs. */
Test(bridge_execute, gradients_of_a_lone_convolution)
{
    const char *lines = "input x f32 2x2x8\ninput g f32 2x3x8\nparam w f32 3x2x1\n"
                        "convolution_backward.default dx:f32:2x2x8,dw:f32:3x2x1,db:f32:3 "
                        "grad_output=@g input=@x weight=@w bias_sizes=[3] stride=[1] padding=[0] "
                        "dilation=[1] transposed=false output_padding=[0] groups=1\n"
                        "output dx\noutput dw\noutput db\n";
    run_case(lines, "x:2x2x8 g:2x3x8 w:3x2x1", check_conv_gradients);
    cr_assert_eq(count_groups(lines), 3);
}

static void check_dropped(run_env *env)
{
    for (int i = 0; i < 12; i++)
        expect_near(data_of(env, "d")[i], i % 3 ? (double)data_of(env, "g")[i] * 2 : 0, "d", i);
}

Test(bridge_execute, dropout_backward)
{
    static run_env env;
    gb_bridge_options options = {.size = sizeof options, .keep_single_ops = 1};
    gb_bridge_module *module = make_module(
            "input g f32 3x4\ninput m bool 3x4\n"
            "native_dropout_backward.default d:f32:3x4 grad_output=@g mask=@m scale=2.0\n"
            "output d\n",
            &options);
    fill_inputs(&env, "g:3x4 m:3x4");
    run_tensor *mask = run_find(&env, "m");
    mask->t.dtype = GB_BOOLEAN;
    for (int i = 0; i < 12; i++)
        ((uint8_t *)mask->t.data)[i] = i % 3 != 0;
    run_module(module, &env, no_node, NULL);
    check_dropped(&env);
    run_release(&env);
    gb_bridge_module_destroy(module);
}

enum { ALIGN = 1, LINEAR = 2 };

/* Rows and columns of 2 x 3 at the places of `rows` x `columns`, and ReLU. */
static void check_resized(run_env *env, int flags, int rows, int columns)
{
    const float *x = data_of(env, "x"), *y = data_of(env, "y");
    const int from[] = {2, 3}, to[] = {rows, columns};
    for (int i = 0; i < rows * columns; i++) {
        const int place[] = {i / columns, i % columns};
        int low[2], high[2];
        double part[2];
        for (int d = 0; d < 2; d++) {
            double at = (double)place[d] * from[d] / to[d];
            if (flags & ALIGN)
                at = (double)place[d] * (from[d] - 1) / (to[d] - 1);
            else if (flags & LINEAR)
                at = fmin(fmax((place[d] + 0.5) * from[d] / to[d] - 0.5, 0), from[d] - 1);
            low[d] = (int)at;
            high[d] = low[d] + 1 < from[d] ? low[d] + 1 : low[d];
            part[d] = flags & LINEAR ? at - low[d] : 0;
        }
        double up = (double)x[low[0] * 3 + low[1]] * (1 - part[1]) +
                    (double)x[low[0] * 3 + high[1]] * part[1];
        double down = (double)x[high[0] * 3 + low[1]] * (1 - part[1]) +
                      (double)x[high[0] * 3 + high[1]] * part[1];
        expect_near(y[i], fmax(up * (1 - part[0]) + down * part[0], 0), "y", i);
    }
}

static void check_nearest(run_env *env)
{
    check_resized(env, 0, 4, 9);
}

static void check_linear_places(run_env *env)
{
    check_resized(env, LINEAR, 5, 7);
}

static void check_aligned(run_env *env)
{
    check_resized(env, LINEAR | ALIGN, 5, 7);
}

#define RESIZE(op, dims, args)                                                                     \
    "input x f32 1x1x2x3\n" op ".default u:f32:" dims " self=@x " args                             \
    "\nrelu.default y:f32:" dims " self=@u\noutput y\n"

Test(bridge_execute, resizing)
{
    run_case(RESIZE("upsample_nearest2d", "1x1x4x9", "output_size=[4,9]"), "x:1x1x2x3",
            check_nearest);
    run_case(RESIZE("upsample_bilinear2d", "1x1x5x7", "output_size=[5,7] align_corners=false"),
            "x:1x1x2x3", check_linear_places);
    run_case(RESIZE("upsample_bilinear2d", "1x1x5x7", "output_size=[5,7] align_corners=true"),
            "x:1x1x2x3", check_aligned);
}

static void check_spread(run_env *env)
{
    const float *x = data_of(env, "x"), *z = data_of(env, "z");
    for (int i = 0; i < 24; i++)
        expect_near(data_of(env, "y")[i], (double)x[i / 12 * 3 + i % 3] / 4 * (double)z[i], "y", i);
}

/* The gradient of a mean: a number beside a tensor that is read expanded. */
Test(bridge_execute, a_number_beside_an_expanded_tensor)
{
    run_case("input x f32 2x1x3\ninput z f32 2x4x3\n"
             "expand.default e:f32:2x4x3:3x0x1 self=@x size=[2,4,3]\n"
             "div.Scalar d:f32:2x4x3 self=@e other=4\n"
             "mul.Tensor y:f32:2x4x3 self=@d other=@z\noutput y\n",
            "x:2x1x3 z:2x4x3", check_spread);
}

static void check_repeated(run_env *env)
{
    const float *x = data_of(env, "x"), *w = data_of(env, "w"), *y = data_of(env, "y");
    for (int r = 0; r < 12; r++)
        for (int c = 0; c < 2; c++) {
            double sum = 0;
            for (int k = 0; k < 2; k++)
                sum += fmax((double)x[r / 3 * 2 + k], 0) * (double)w[k * 2 + c];
            expect_near(y[r * 2 + c], sum, "y", r * 2 + c);
        }
}

/* Rows that are repeated and copied between two ops. */
Test(bridge_execute, a_tensor_expanded_between_two_ops)
{
    run_with(GB_POLICY_MAX,
            "input x f32 4x2\ninput w f32 2x2\nrelu.default r:f32:4x2 self=@x\n"
            "unsqueeze.default u:f32:4x1x2:2x2x1 self=@r dim=1\n"
            "expand.default e:f32:4x3x2:2x0x1 self=@u size=[4,3,2]\n"
            "clone.default c:f32:4x3x2 self=@e\nview.default v:f32:12x2 self=@c size=[12,2]\n"
            "mm.default y:f32:12x2 self=@v mat2=@w\noutput y\n",
            "x:4x2 w:2x2", check_repeated);
}

static void check_extrema(run_env *env)
{
    const float *x = data_of(env, "x"), *z = data_of(env, "z");
    for (int i = 0; i < 12; i++) {
        expect_near(data_of(env, "y")[i], fmax((double)x[i], (double)z[i % 4]), "y", i);
        expect_near(data_of(env, "n")[i], fmin((double)z[i % 4], (double)x[i]), "n", i);
    }
}

Test(bridge_execute, extrema_of_two_tensors)
{
    run_case("input x f32 3x4\ninput z f32 4\nmaximum.default y:f32:3x4 self=@x other=@z\n"
             "minimum.default n:f32:3x4 self=@z other=@x\noutput y\noutput n\n",
            "x:3x4 z:4", check_extrema);
}

static void check_choices(run_env *env)
{
    const float *x = data_of(env, "x"), *z = data_of(env, "z");
    for (int i = 0; i < 12; i++) {
        double a = (double)x[i], c = (double)z[i % 4];
        expect_near(data_of(env, "y")[i], a >= c ? a : c / 2, "y", i);
        expect_near(data_of(env, "n")[i], a <= 0.25 ? a : c / 2, "n", i);
    }
}

Test(bridge_execute, comparisons)
{
    run_case("input x f32 3x4\ninput z f32 4\ndiv.Scalar h:f32:4 self=@z other=2\n"
             "ge.Tensor a:bool:3x4 self=@x other=@z\nle.Scalar b:bool:3x4 self=@x other=0.25\n"
             "where.self y:f32:3x4 condition=@a self=@x other=@h\n"
             "where.self n:f32:3x4 condition=@b self=@x other=@h\noutput y\noutput n\n",
            "x:3x4 z:4", check_choices);
}

static void check_slopes(run_env *env)
{
    const float *x = data_of(env, "x"), *g = data_of(env, "g");
    for (int i = 0; i < 12; i++) {
        double v = (double)x[i], d = (double)g[i], e = exp(v), t = tanh(log1p(e));
        expect_near(data_of(env, "s")[i], d * (v / 3 + 0.5), "s", i);
        expect_near(data_of(env, "h")[i], d / 6, "h", i);
        expect_near(data_of(env, "m")[i], d * (t + v * e / (1 + e) * (1 - t * t)), "m", i);
        expect_near(data_of(env, "p")[i], d * exp(2 * v) / (1 + exp(2 * v)), "p", i);
        expect_near(data_of(env, "e")[i], v > 0 ? d : d * e / 2, "e", i);
        expect_near(data_of(env, "r")[i], v > 0 ? d : d * (v + 0.5), "r", i);
    }
}

/* Of hardswish, hardsigmoid, mish, softplus and ELU; inputs are between -1 and 1. */
Test(bridge_execute, gradients_of_activations)
{
    run_case("input x f32 3x4\ninput g f32 3x4\n"
             "hardswish_backward.default s:f32:3x4 grad_output=@g self=@x\n"
             "hardsigmoid_backward.default h:f32:3x4 grad_output=@g self=@x\n"
             "mish_backward.default m:f32:3x4 grad_output=@g self=@x\n"
             "softplus_backward.default p:f32:3x4 grad_output=@g self=@x beta=2 threshold=20\n"
             "elu_backward.default e:f32:3x4 grad_output=@g alpha=0.5 scale=1 input_scale=1 "
             "is_result=false self_or_result=@x\n"
             "elu_backward.default r:f32:3x4 grad_output=@g alpha=0.5 scale=1 input_scale=1 "
             "is_result=true self_or_result=@x\n"
             "output s\noutput h\noutput m\noutput p\noutput e\noutput r\n",
            "x:3x4 g:3x4", check_slopes);
}

/* Each element of 4 is the sum of what 8 took of it: 3/4 or 1/4 of its neighbours, all at the ends. */
static void check_gathered(run_env *env)
{
    const float *g = data_of(env, "g"), *d = data_of(env, "d");
    for (int i = 0; i < 4; i++) {
        double sum = 0.75 * ((double)g[2 * i] + (double)g[2 * i + 1]);
        sum += i > 0 ? 0.25 * (double)g[2 * i - 1] : 0.25 * (double)g[0];
        sum += i < 3 ? 0.25 * (double)g[2 * i + 2] : 0.25 * (double)g[7];
        expect_near(d[i], sum, "d", i);
    }
}

Test(bridge_execute, resizing_backward)
{
    run_case("input g f32 1x1x8\nupsample_linear1d_backward.default d:f32:1x1x4 grad_output=@g "
             "output_size=[8] input_size=[1,1,4] align_corners=false scales=2.0\noutput d\n",
            "g:1x1x8", check_gathered);
}

/* ---- layouts between groups ---- */

/* Runs the graph with and without layouts of the library's choice between groups; both must give the
 * same "y". Returns whether any value lay otherwise than the framework would have it. */
static bool run_opaque(const char *lines, const char *inputs)
{
    static run_env env[2];
    bool is_any = false;
    for (int opaque = 0; opaque < 2; opaque++) {
        gb_bridge_options options = {
                .size = sizeof options, .keep_single_ops = 1, .opaque_outputs = (uint8_t)opaque};
        gb_bridge_module *module = make_module(lines, &options);
        cr_assert_eq(gb_bridge_module_get_group_num(module), 2);
        cr_assert((strstr(gb_bridge_module_describe(module), "\"opaque\": true") != NULL) ==
                  (opaque != 0));
        fill_inputs(&env[opaque], inputs);
        run_module(module, &env[opaque], no_node, NULL);
        gb_bridge_module_destroy(module);
    }
    for (int i = 0; i < env[0].count; i++) {
        const run_tensor *dense = &env[0].values[i], *chosen = run_find(&env[1], dense->name);
        bool differs = chosen->t.layout_id != 0;
        for (int d = 0; d < dense->t.ndims && !differs; d++)
            differs = dense->t.strides[d] != chosen->t.strides[d];
        cr_assert(!differs || strcmp(dense->name, "h") == 0, "%s leaves the graph", dense->name);
        is_any = is_any || differs;
    }
    const gb_bridge_tensor *y = &run_find(&env[0], "y")->t;
    for (int64_t i = 0; i < run_count(y); i++)
        expect_near(data_of(&env[1], "y")[i], (double)((const float *)y->data)[i], "y", (int)i);
    run_release(&env[0]);
    run_release(&env[1]);
    return is_any;
}

Test(bridge_execute, layouts_between_groups)
{
    /* A product that is the right operand of the next one lies in panels. */
    cr_assert(run_opaque("input a f32 70x40\ninput b f32 40x96\ninput x f32 100x70\n"
                         "mm.default h:f32:70x96 self=@a mat2=@b\n"
                         "mm.default y:f32:100x96 self=@x mat2=@h\noutput y\n",
            "a:70x40 b:40x96 x:100x70"));
    /* Images between convolutions have their channels last. */
    cr_assert(run_opaque("input x f32 2x16x9x9\ninput v f32 48x16x3x3\ninput w f32 20x48x1x1\n"
                         "conv2d.default c:f32:2x48x9x9 input=@x weight=@v padding=[1,1]\n"
                         "relu.default h:f32:2x48x9x9 self=@c\n"
                         "conv2d.default y:f32:2x20x9x9 input=@h weight=@w\noutput y\n",
            "x:2x16x9x9 v:48x16x3x3 w:20x48x1x1"));
}

/* ---- strides, caches, threads ---- */

#define RELU_SUM                                                                                   \
    "input x f32 4x6\ninput z f32 4x6\nadd.Tensor a:f32:4x6 self=@x other=@z\n"                    \
    "relu.default y:f32:4x6 self=@a\noutput y\n"

static gb_bridge_tensor matrix(float *data, int64_t row, int64_t column)
{
    gb_bridge_tensor t = {.data = data, .dtype = GB_F32, .ndims = 2};
    t.dims[0] = 4;
    t.dims[1] = 6;
    t.strides[0] = row;
    t.strides[1] = column;
    return t;
}

Test(bridge_execute, inputs_lie_as_they_are)
{
    float x[24], z[24], y[24];
    gb_bridge_module *module = make_module(RELU_SUM, NULL);
    for (int i = 0; i < 24; i++) {
        x[i] = (float)i - 9;
        z[i] = (float)(i * i % 7) - 3;
    }
    gb_bridge_tensor inputs[] = {matrix(x, 1, 4), matrix(z, 6, 1)}, output;
    cr_assert_eq(gb_bridge_group_prepare(module, 0, 2, inputs, 1, &output, NULL), GB_SUCCESS);
    cr_assert_eq(output.size, 96);
    output.data = y;
    cr_assert_eq(gb_bridge_group_execute(module, 0, 2, inputs, 1, &output), GB_SUCCESS);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 6; c++) {
            float sum = x[r + 4 * c] + z[6 * r + c];
            cr_assert_eq(y[6 * r + c], sum > 0 ? sum : 0);
        }
    gb_bridge_module_destroy(module);
}

Test(bridge_execute, an_output_in_the_memory_of_an_input)
{
    float x[24], z[24], y[24];
    gb_bridge_module *module = make_module(RELU_SUM, NULL);
    for (int i = 0; i < 24; i++) {
        x[i] = (float)i - 9;
        z[i] = (float)(i * i % 7) - 3;
        y[i] = x[i] + z[i] > 0 ? x[i] + z[i] : 0;
    }
    gb_bridge_tensor inputs[] = {matrix(x, 6, 1), matrix(z, 6, 1)};
    const gb_bridge_kernel *kernel;
    cr_assert_eq(gb_bridge_group_prepare(module, 0, 2, inputs, 0, NULL, &kernel), GB_SUCCESS);
    size_t input = gb_bridge_kernel_get_inplace_input(kernel, 0);
    cr_assert_lt(input, 2);
    cr_assert_eq(gb_bridge_kernel_get_inplace_input(kernel, 1), SIZE_MAX);
    const void *const in[] = {x, z};
    void *const out[] = {input == 0 ? x : z};
    cr_assert_eq(gb_bridge_kernel_execute(kernel, 2, in, 1, out), GB_SUCCESS);
    cr_assert_arr_eq(out[0], y, sizeof y);
    /* A transposed input is no place for a dense output. */
    inputs[0] = matrix(x, 1, 4);
    inputs[1] = matrix(z, 1, 4);
    cr_assert_eq(gb_bridge_group_prepare(module, 0, 2, inputs, 0, NULL, &kernel), GB_SUCCESS);
    cr_assert_eq(gb_bridge_kernel_get_inplace_input(kernel, 0), SIZE_MAX);
    gb_bridge_module_destroy(module);
}

Test(bridge_execute, refusals)
{
    float x[64] = {0};
    gb_bridge_options options = {.size = sizeof options, .kernels_per_group = 2};
    gb_bridge_module *module = make_module(RELU_SUM, &options);
    gb_bridge_tensor inputs[] = {matrix(x, 6, 1), matrix(x, 6, 1)}, output;
    const gb_bridge_kernel *kernel, *again;
    const void *const in[] = {x, NULL};
    void *const out[] = {x};
    cr_assert_eq(
            gb_bridge_group_prepare(module, 1, 2, inputs, 1, &output, NULL), GB_INVALID_ARGUMENTS);
    cr_assert_eq(
            gb_bridge_group_prepare(module, 0, 1, inputs, 1, &output, NULL), GB_INVALID_ARGUMENTS);
    cr_assert_eq(gb_bridge_group_prepare(module, 0, 2, inputs, 1, &output, &kernel), GB_SUCCESS);
    cr_assert_eq(gb_bridge_group_prepare(module, 0, 2, inputs, 0, NULL, &again), GB_SUCCESS);
    cr_assert_eq(kernel, again);
    cr_assert_eq(gb_bridge_kernel_execute(kernel, 2, in, 1, out), GB_INVALID_ARGUMENTS);
    inputs[0] = matrix(x, 1, 4);
    cr_assert_eq(gb_bridge_group_prepare(module, 0, 2, inputs, 1, &output, &kernel), GB_SUCCESS);
    inputs[0] = matrix(x, 8, 1);
    cr_assert_eq(
            gb_bridge_group_prepare(module, 0, 2, inputs, 1, &output, &kernel), GB_UNIMPLEMENTED);
    cr_assert(strstr(gb_bridge_last_error(), "keeps 2 kernels"));
    gb_bridge_module_destroy(module);
    module = make_module(RELU_SUM, NULL);
    inputs[0] = matrix(x, 6, 1);
    inputs[0].dims[0] = 5;
    cr_assert_eq(gb_bridge_group_prepare(module, 0, 2, inputs, 1, &output, NULL), GB_INVALID_SHAPE);
    inputs[0] = matrix(x, 6, 1);
    inputs[0].dtype = GB_BF16;
    cr_assert_eq(
            gb_bridge_group_prepare(module, 0, 2, inputs, 1, &output, NULL), GB_INVALID_ARGUMENTS);
    inputs[0] = matrix(x, 6, -1); /* which the library takes as not known */
    cr_assert_eq(gb_bridge_group_prepare(module, 0, 2, inputs, 1, &output, NULL), GB_UNIMPLEMENTED);
    cr_assert(strstr(gb_bridge_last_error(), "stride 1 is -1"));
    gb_bridge_module_destroy(module);
}

/* Constants are taken once, and again when they lie elsewhere or are said to be new. */
Test(bridge_execute, constants)
{
    float x[4] = {1, 2, 3, 4}, w[8] = {1, 0, 0, 0, 0, 1, 0, 0}, other[8] = {0, 0, 1, 0, 0, 0, 0, 1};
    float y[2];
    gb_bridge_options options = {
            .size = sizeof options, .constant_parameters = 1, .keep_single_ops = 1};
    gb_bridge_module *module =
            make_module("input x f32 1x4\nparam w f32 2x4\n"
                        "linear.default y:f32:1x2 input=@x weight=@w\noutput y\n",
                    &options);
    cr_assert(strstr(gb_bridge_module_describe(module), "\"constant\": true"));
    gb_bridge_tensor inputs[2] = {{.dtype = GB_F32, .ndims = 2, .dims = {1, 4}, .strides = {4, 1}},
            {.dtype = GB_F32, .ndims = 2, .dims = {2, 4}, .strides = {4, 1}}};
    const gb_bridge_kernel *kernel;
    cr_assert_eq(gb_bridge_group_prepare(module, 0, 2, inputs, 0, NULL, &kernel), GB_SUCCESS);
    const void *in[] = {x, w};
    void *const out[] = {y};
    cr_assert_eq(gb_bridge_kernel_execute(kernel, 2, in, 1, out), GB_SUCCESS);
    cr_assert(y[0] == 1 && y[1] == 2);
    in[1] = other;
    cr_assert_eq(gb_bridge_kernel_execute(kernel, 2, in, 1, out), GB_SUCCESS);
    cr_assert(y[0] == 3 && y[1] == 4);
    memcpy(other, w, sizeof w);
    cr_assert_eq(gb_bridge_module_renew_constants(module), GB_SUCCESS);
    cr_assert_eq(gb_bridge_kernel_execute(kernel, 2, in, 1, out), GB_SUCCESS);
    cr_assert(y[0] == 1 && y[1] == 2);
    gb_bridge_module_destroy(module);
}

static void add_one(void *context, run_env *env, const char *node)
{
    (void)context;
    cr_assert_str_eq(node, "u");
    const gb_bridge_tensor *w = &run_find(env, "w")->t;
    for (int64_t i = 0; i < run_count(w); i++)
        ((float *)w->data)[i] += 1;
    run_add(env, "u")->t = *w;
}

/* A parameter in the same memory that each run adds one to, before it is read or after. */
Test(bridge_execute, a_parameter_that_the_graph_writes_to)
{
    static const char *const nodes[] = {"add_.Tensor u:f32:5x6 self=@w other=1\n",
            "linear.default l:f32:4x5 input=@x weight=@w\nrelu.default y:f32:4x5 self=@l\n"};
    for (int first = 0; first < 2; first++) {
        static run_env env;
        float w[30] = {0};
        char lines[512];
        gb_bridge_options options = {
                .size = sizeof options, .constant_parameters = 1, .keep_single_ops = 1};
        snprintf(lines, sizeof lines, "input x f32 4x6\nparam w f32 5x6\n%s%soutput y\n",
                nodes[first], nodes[!first]);
        gb_bridge_module *module = make_module(lines, &options);
        for (int run = 0; run < 3; run++) {
            run_tensor *x = run_dense(&env, "x", 2, (const int64_t[]){4, 6});
            for (int i = 0; i < 24; i++)
                ((float *)x->t.data)[i] = 1;
            run_add(&env, "w")->t = (gb_bridge_tensor){
                    .data = w, .dtype = GB_F32, .ndims = 2, .dims = {5, 6}, .strides = {6, 1}};
            run_module(module, &env, add_one, NULL);
            for (int i = 0; i < 20; i++)
                expect_near(data_of(&env, "y")[i], 6 * (run + !first), "y", i);
            run_release(&env);
        }
        gb_bridge_module_destroy(module);
    }
}

enum { THREADS = 4, ROUNDS = 50 };

static void *work(void *argument)
{
    gb_bridge_module *module = argument;
    float x[24], z[24], y[24];
    for (int round = 0; round < ROUNDS; round++) {
        bool flipped = round % 2;
        gb_bridge_tensor inputs[] = {matrix(x, flipped ? 1 : 6, flipped ? 4 : 1), matrix(z, 6, 1)};
        gb_bridge_tensor output;
        for (int i = 0; i < 24; i++) {
            x[i] = (float)(i + round) - 12;
            z[i] = (float)(i - round);
        }
        const gb_bridge_kernel *kernel = NULL;
        if (gb_bridge_group_prepare(module, 0, 2, inputs, 1, &output, &kernel) != GB_SUCCESS)
            return "prepare";
        output.data = y;
        if (gb_bridge_group_execute(module, 0, 2, inputs, 1, &output) != GB_SUCCESS)
            return "execute";
        for (int i = 0; i < 24; i++) {
            float sum = x[flipped ? i / 6 + 4 * (i % 6) : i] + z[i];
            if (y[i] != (sum > 0 ? sum : 0))
                return "value";
        }
    }
    return NULL;
}

Test(bridge_execute, many_threads)
{
    pthread_t threads[THREADS];
    gb_bridge_module *module = make_module(RELU_SUM, NULL);
    cr_assert_eq(gb_bridge_module_set_threads(module, 1), GB_SUCCESS);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, work, module), 0);
    for (int i = 0; i < THREADS; i++) {
        void *fault;
        pthread_join(threads[i], &fault);
        cr_assert_null(fault, "%s", (const char *)fault);
    }
    /* Each of the two layouts was compiled once: the same kernel is found. */
    gb_bridge_module_destroy(module);
}
