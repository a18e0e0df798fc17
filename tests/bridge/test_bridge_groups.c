/* Which groups come out of graphs: fusion by patterns, what stays outside and why. */
#include "bridge_case.h"

#define CONV(out, in)                                                                              \
    "conv2d.default " out ":f32:1x8x6x6 input=@" in " weight=@w bias=@b padding=[1,1]\n"
#define BN(out, in)                                                                                \
    "batch_norm.default " out ":f32:1x8x6x6 input=@" in " weight=@b bias=@b running_mean=@b "      \
    "running_var=@b training=false momentum=0.1 eps=0.00001 cudnn_enabled=true\n"
#define HEAD  "input x f32 1x8x6x6\nparam w f32 8x8x3x3\nparam b f32 8\n"
#define IMAGE ":f32:1x8x6x6"

static void expect_groups(const char *lines, size_t count)
{
    gb_bridge_module *module = make_module(lines, NULL);
    cr_assert_eq(gb_bridge_module_get_group_num(module), count, "%zu groups, not %zu:\n%s%s",
            gb_bridge_module_get_group_num(module), count, lines,
            gb_bridge_module_describe(module));
    gb_bridge_module_destroy(module);
}

static void expect_outside(const char *lines, const char *node, const char *reason)
{
    gb_bridge_module *module = make_module(lines, NULL);
    cr_assert(is_outside(module, node, reason), "%s: %s\n%s%s", node, reason, lines,
            gb_bridge_module_describe(module));
    gb_bridge_module_destroy(module);
}

/* As function and in place: conv, unary, conv, unary. */
Test(bridge_groups, convolution_and_one_unary)
{
    static const char *const unary[] = {"relu", "leaky_relu", "sigmoid", "square", "abs", "exp",
            "hardswish", "tanh", "hardtanh", "silu", "gelu", "relu6", "elu", "mish"};
    for (size_t i = 0; i < sizeof unary / sizeof unary[0]; i++)
        for (int in_place = 0; in_place < 2; in_place++) {
            char lines[2048];
            if (in_place && strcmp(unary[i], "gelu") == 0)
                continue;
            snprintf(lines, sizeof lines,
                    HEAD CONV("c", "x") "%s%s.default r" IMAGE " self=@c\n" CONV(
                            "d", "r") "%s%s.default y" IMAGE " self=@d\noutput y\n",
                    unary[i], in_place ? "_" : "", unary[i], in_place ? "_" : "");
            expect_groups(lines, 2);
        }
}

Test(bridge_groups, convolution_patterns)
{
    expect_groups(HEAD CONV("y", "x") "output y\n", 1);
    expect_groups(HEAD CONV("c", "x") BN("y", "c") "output y\n", 1);
    expect_groups(
            HEAD CONV("c", "x") BN("n", "c") "relu.default y" IMAGE " self=@n\noutput y\n", 1);
    expect_groups(HEAD BN("n", "x") "relu.default y" IMAGE " self=@n\noutput y\n", 1);
    expect_groups(HEAD CONV("c", "x") BN("n", "c") CONV("d", "x") BN(
                          "m", "d") "add.Tensor s" IMAGE " self=@n other=@m\nrelu.default r" IMAGE
                                    " self=@s\n" CONV("e", "r") BN("y", "e") "output y\n",
            3);
    /* What also leaves is still fused with nothing that would hide it. */
    expect_groups(HEAD CONV("c", "x") "relu.default y" IMAGE " self=@c\noutput y\noutput c\n", 1);
    expect_groups(HEAD CONV("c", "x") "clamp.default d" IMAGE
                                      " self=@c min=-1.0\nclamp.default e" IMAGE
                                      " self=@d max=1.0\noutput e\n",
            1);
}

/* Taken alone where the table says that the library is faster, by kind, type and size. */
Test(bridge_groups, single_ops)
{
    static const struct {
        const char *lines;
        bool is_taken;
    } cases[] = {
            {"input x f32 8x8\nrelu.default y:f32:8x8 self=@x\noutput y\n", false},
            {"input x f32 8x8\nmish.default y:f32:8x8 self=@x\noutput y\n", true},
            {"input x f32 4096x512\nmish.default y:f32:4096x512 self=@x\noutput y\n", true},
            {"input x f32 8x8\ntanh.default y:f32:8x8 self=@x\noutput y\n", false},
            {"input x bf16 8x8\ntanh.default y:bf16:8x8 self=@x\noutput y\n", true},
            {"input x f16 8x8\ntanh.default y:f16:8x8 self=@x\noutput y\n", true},
            {"input x f32 64x512\nsoftmax.int y:f32:64x512 self=@x dim=1\noutput y\n", true},
            {"input x f32 1x8x6x6\nmax_pool2d.default y:f32:1x8x3x3 self=@x kernel_size=[2,2]\n"
             "output y\n",
                    true},
            {"input x bf16 64x64\nmm.default y:bf16:64x64 self=@x mat2=@x\noutput y\n", true},
            /* The largest tensor counts. */
            {"input x bf16 8x512\ninput w bf16 512x512\n"
             "mm.default y:bf16:8x512 self=@x mat2=@w\noutput y\n",
                    false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_groups(cases[i].lines, cases[i].is_taken);
        if (!cases[i].is_taken)
            expect_outside(cases[i].lines, "y", "of the speed of the framework's");
        gb_bridge_options options = {.size = sizeof options, .keep_single_ops = 1};
        gb_bridge_module *module = make_module(cases[i].lines, &options);
        cr_assert_eq(gb_bridge_module_get_group_num(module), 1, "%s", cases[i].lines);
        gb_bridge_module_destroy(module);
    }
    expect_outside("input x f32 8x8\nprod.dim_int y:f32:8 self=@x dim=1\noutput y\n", "y", "no op");
    expect_outside(
            "input x bf16 8x8\nto.dtype y:f32:8x8 self=@x dtype=7\noutput y\n", "y", "a single op");
}

Test(bridge_groups, linear_and_one_unary)
{
    static const char *const unary[] = {"relu", "gelu", "sigmoid", "hardtanh", "relu6", "elu"};
    for (size_t i = 0; i < sizeof unary / sizeof unary[0]; i++)
        for (int bias = 0; bias < 2; bias++) {
            char lines[2048];
            snprintf(lines, sizeof lines,
                    "input x f32 32x28\nparam w f32 64x28\nparam b f32 64\nlinear.default "
                    "l:f32:32x64 input=@x weight=@w%s\n%s.default y:f32:32x64 self=@l\noutput y\n",
                    bias ? " bias=@b" : "", unary[i]);
            expect_groups(lines, 1);
        }
}

Test(bridge_groups, identities_and_numbers)
{
    expect_groups("input x f32 3x4\nadd.Tensor a:f32:3x4 self=@x other=42\nadd.Tensor y:f32:3x4 "
                  "self=@a other=3.14\noutput y\n",
            1);
    expect_outside("input x f32 3x4\nmul.Tensor m:f32:3x4 self=@x other=1\nadd.Tensor y:f32:3x4 "
                   "self=@m other=0.0\noutput y\n",
            "y", "a view that leaves the graph");
}

Test(bridge_groups, resizing_that_reads_other_elements)
{
    static const struct {
        const char *op, *dims, *args, *reason; /* NULL: mapped */
    } cases[] = {
            {"upsample_nearest2d", "1x2x10x10", "scales_h=2.0 scales_w=2.0", NULL},
            {"upsample_nearest2d", "1x2x15x5", "", NULL},
            {"upsample_nearest2d", "1x2x7x7", "", "other elements"},
            {"upsample_nearest2d", "1x2x10x10", "scales_h=2.1 scales_w=2.0", "other elements"},
            {"upsample_bilinear2d", "1x2x7x7", "", NULL},
            {"upsample_bilinear2d", "1x2x7x7", "scales_h=1.4 scales_w=1.4", NULL},
            {"upsample_bilinear2d", "1x2x7x7", "scales_h=1.5 scales_w=1.5", "other elements"},
            {"upsample_bilinear2d", "1x2x7x7", "align_corners=true scales_h=1.5", NULL},
            {"upsample_bilinear2d", "1x2x7x7", "scale_factors=[1,1]", "not one number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char lines[512];
        snprintf(lines, sizeof lines,
                "input x f32 1x2x5x5\n%s.default u:f32:%s self=@x %s\nrelu.default y:f32:%s "
                "self=@u\n"
                "output y\n",
                cases[i].op, cases[i].dims, cases[i].args, cases[i].dims);
        if (cases[i].reason)
            expect_outside(lines, "u", cases[i].reason);
        else
            expect_groups(lines, 1);
    }
}

Test(bridge_groups, attention_is_one_group)
{
    expect_groups("input q f32 1x2x8x4\ninput k f32 1x2x8x4\ninput v f32 1x2x8x4\n"
                  "scaled_dot_product_attention.default y:f32:1x2x8x4 query=@q key=@k value=@v\n"
                  "output y\n",
            1);
}

/* Nodes whose ops are more than a partition may have, which ends within a node. */
Test(bridge_groups, many_ops_are_groups_of_whole_nodes)
{
    enum { NODES = 120 }; /* of six ops each */
    static const gb_bridge_options options = {.size = sizeof options, .policy = GB_POLICY_MAX};
    static char lines[NODES * 80];
    int length = snprintf(lines, sizeof lines, "input x f32 8\ninput g0 f32 8\n");
    for (int i = 0; i < NODES; i++)
        length += snprintf(lines + length, sizeof lines - (size_t)length,
                "silu_backward.default g%d:f32:8 grad_output=@g%d self=@x\n", i + 1, i);
    snprintf(lines + length, sizeof lines - (size_t)length, "output g%d\n", NODES);
    gb_bridge_module *module = make_module(lines, &options);
    const char *text = gb_bridge_module_describe(module);
    cr_assert(strstr(text, "\"outside\": []"), "%s", text);
    cr_assert_geq(gb_bridge_module_get_group_num(module), 2);
    cr_assert_leq(gb_bridge_module_get_group_num(module), 3);
    gb_bridge_module_destroy(module);
}

/* The library moves floats only, so a view of truths is the framework's. */
Test(bridge_groups, a_view_of_a_mask_stays_outside)
{
    expect_groups("input q f32 1x2x8x4\ninput k f32 1x2x8x4\ninput v f32 1x2x8x4\n"
                  "input m bool 8x8\nunsqueeze.default n:bool:1x8x8 self=@m dim=0\n"
                  "scaled_dot_product_attention.default y:f32:1x2x8x4 query=@q key=@k value=@v "
                  "attn_mask=@n\noutput y\n",
            1);
}

Test(bridge_groups, bf16)
{
    expect_groups("input x bf16 8x16\nparam w bf16 16x16\nparam b bf16 16\nlinear.default "
                  "l:bf16:8x16 input=@x weight=@w bias=@b\nrelu.default y:bf16:8x16 self=@l\n"
                  "output y\n",
            1);
    expect_groups("input x bf16 8x16\ninput z f32 8x16\nadd.Tensor a:f32:8x16 self=@x other=@z\n"
                  "relu.default y:f32:8x16 self=@a\noutput y\n",
            1);
}

Test(bridge_groups, reasons)
{
    expect_outside(
            "input x s32 3x4\nadd.Tensor y:s32:3x4 self=@x other=@x\noutput y\n", "y", "integers");
    expect_outside(
            "input x f64 3x4\nrelu.default y:f64:3x4 self=@x\noutput y\n", "y", "data type f64");
    expect_outside("input x f32 3x0\nrelu.default y:f32:3x0 self=@x\noutput y\n", "y", "empty");
    expect_outside("input x f32 3x4\ncos.default y:f32:3x4 self=@x\noutput y\n", "y",
            "no op of the library");
    expect_outside("input x f32 3x4\nmy.op.default y:f32:3x4 self=@x\noutput y\n", "y",
            "no op of the library");
    expect_outside("input x f32 3x4\nrelu_.default y:f32:3x4 self=@x\noutput y\n", "y",
            "memory that is seen elsewhere");
    expect_outside(
            "input x f32 3x4\nrelu.default y:f32:3x4 self=@x\noutput y\n", "y", "a single op");
    expect_outside(HEAD "max_pool2d_with_indices.default y:f32:1x8x3x3,i:s64:1x8x3x3 self=@x "
                        "kernel_size=[2,2]\noutput y\noutput i\n",
            "y", "places of the maxima");
    expect_outside("input x f32 1x1x4x4\ninput g f32 1x1x2x2\ninput i s64 1x1x2x2\n"
                   "max_pool2d_with_indices_backward.default d:f32:1x1x4x4 grad_output=@g self=@x "
                   "kernel_size=[2,2] stride=[2,2] padding=[0,0] dilation=[1,1] ceil_mode=false "
                   "indices=@i\noutput d\n",
            "d", "come from elsewhere");
    expect_outside("input x f32 3x4\nnative_dropout.default y:f32:3x4,m:bool:3x4 input=@x p=0.5 "
                   "train=true\noutput y\noutput m\n",
            "y", "random numbers");
    expect_outside("input x s32 3x4\nge.Scalar y:bool:3x4 self=@x other=1\noutput y\n", "y",
            "a comparison of integers");
    expect_outside("input x f32 3x4\ninput z bf16 3x4\nge.Tensor y:bool:3x4 self=@x other=@z\n"
                   "output y\n",
            "y", "a comparison of two types");
    /* Neither is what >= says where numbers are not numbers. */
    expect_outside("input x f32 3x4\ngt.Scalar y:bool:3x4 self=@x other=1\noutput y\n", "y",
            "compares by >= alone");
    expect_outside("input g f32 1x1x6\nupsample_linear1d_backward.default d:f32:1x1x4 "
                   "grad_output=@g output_size=[6] input_size=[1,1,4] align_corners=false "
                   "scales=1.6\noutput d\n",
            "d", "other elements");
    /* Dims that are not what the op makes. */
    expect_outside("input x f32 3x4\nparam w f32 5x4\nlinear.default y:f32:3x6 input=@x weight=@w\n"
                   "output y\n",
            "y", "not as the library has it");
}

/* Nodes that nobody knows may write to what they read, also where elements share memory. */
Test(bridge_groups, written_from_outside)
{
    static const char *const strides[] = {"4x1", "0x1", "1x1", "1x3"};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        char lines[256];
        snprintf(lines, sizeof lines,
                "input z f32 3x4 %s\nmy.op.default o:f32:3x4 self=@z\nadd.Tensor a:f32:3x4 self=@o "
                "other=@z\nrelu.default y:f32:3x4 self=@a\noutput y\n",
                strides[i]);
        expect_groups(lines, 1);
        expect_outside(lines, "o", "no op of the library");
    }
}

/* A view that a node outside reads, too, does not keep the views of others from being fused. */
Test(bridge_groups, views_read_elsewhere)
{
    const char *lines = "input x f32 2x6\nparam w f32 6x6\nlinear.default l:f32:2x6 input=@x "
                        "weight=@w\nt.default v:f32:6x2:1x6 self=@l\n"
                        "cos.default o:f32:6x2 self=@v\nmm.default m:f32:6x6 self=@v mat2=@l\n"
                        "view.default f:f32:36 self=@m size=[36]\ntanh.default y:f32:36 self=@f\n"
                        "output y\noutput o\noutput v\n";
    gb_bridge_options options = {.size = sizeof options, .policy = GB_POLICY_MAX};
    gb_bridge_module *module = make_module(lines, &options);
    cr_assert(is_outside(module, "o", "no op of the library"));
    cr_assert_eq(
            gb_bridge_module_get_group_num(module), 1, "%s", gb_bridge_module_describe(module));
    gb_bridge_module_destroy(module);
}

/* A group would write the view "u" for each of its readers in another group: it is left to the
 * framework, but not "v", which lies within a group. */
Test(bridge_groups, a_view_with_two_makers)
{
    const char *lines = "input x f32 4x6\nparam w f32 6x6\nlinear.default l:f32:4x6 input=@x "
                        "weight=@w\nview.default v:f32:2x2x6 self=@l size=[2,2,6]\n"
                        "linear.default r:f32:2x2x6 input=@v weight=@w\n"
                        "square.default s:f32:2x2x6 self=@r\ncos.default o:f32:2x2x6 self=@s\n"
                        "unsqueeze.default u:f32:2x1x2x6 self=@r dim=1\n"
                        "unsqueeze.default c:f32:2x1x2x6 self=@o dim=1\n"
                        "mul.Tensor m:f32:2x1x2x6 self=@c other=@u\n"
                        "add.Tensor a:f32:2x1x2x6 self=@m other=@u\n"
                        "mul.Tensor y:f32:2x1x2x6 self=@a other=@u\noutput y\n";
    gb_bridge_options options = {.size = sizeof options, .policy = GB_POLICY_MAX};
    gb_bridge_module *module = make_module(lines, &options);
    const char *text = gb_bridge_module_describe(module);
    cr_assert_eq(gb_bridge_module_get_group_num(module), 2, "%s", text);
    cr_assert(is_outside(module, "u", "a view that a group reads"), "%s", text);
    cr_assert(strstr(text, "\"absorbed\": [\"v\""), "%s", text);
    gb_bridge_module_destroy(module);
}

/* Keys and values that query heads share, as they are written out: expanded and copied. */
Test(bridge_groups, an_expansion_between_two_ops)
{
    const char *lines = "input x f32 4x6\nparam w f32 6x6\nlinear.default l:f32:4x6 input=@x "
                        "weight=@w\nunsqueeze.default u:f32:4x1x6:6x6x1 self=@l dim=1\n"
                        "expand.default e:f32:4x3x6:6x0x1 self=@u size=[4,3,6]\n"
                        "clone.default c:f32:4x3x6 self=@e\n"
                        "view.default v:f32:12x6 self=@c size=[12,6]\n"
                        "linear.default y:f32:12x6 input=@v weight=@w\noutput y\n";
    gb_bridge_options options = {.size = sizeof options, .policy = GB_POLICY_MAX};
    gb_bridge_module *module = make_module(lines, &options);
    cr_assert_eq(
            gb_bridge_module_get_group_num(module), 1, "%s", gb_bridge_module_describe(module));
    gb_bridge_module_destroy(module);
}

Test(bridge_groups, disabled_ops)
{
    const char *lines = "input x f32 3x4\nadd.Tensor a:f32:3x4 self=@x other=@x\nrelu.default "
                        "y:f32:3x4 self=@a\noutput y\n";
    gb_bridge_options options = {
            .size = sizeof options, .disabled_ops = "aten.tanh.default,aten.relu.default"};
    gb_bridge_module *module = make_module(lines, &options);
    cr_assert(is_outside(module, "y", "disabled"));
    cr_assert_eq(gb_bridge_module_get_group_num(module), 0);
    gb_bridge_module_destroy(module);
}

/* Parameters that the graph writes to, itself or through a view, are not what they were when it runs
 * again. */
Test(bridge_groups, what_is_written_is_not_constant)
{
    static const struct {
        const char *lines, *written, *kept;
    } cases[] = {
            {"input x f32 4x30\nparam w f32 40x30\nparam b f32 40\n"
             "add_.Tensor u:f32:40x30 self=@w other=1\n"
             "linear.default l:f32:4x40 input=@x weight=@w bias=@b\n"
             "relu.default y:f32:4x40 self=@l\noutput y\n",
                    "w", "b"},
            {"input x f32 4x30\nparam w f32 40x30\nparam b f32 40\n"
             "linear.default l:f32:4x40 input=@x weight=@w bias=@b\n"
             "relu.default y:f32:4x40 self=@l\nview.default v:f32:1200 self=@w size=[1200]\n"
             "add_.Tensor u:f32:1200 self=@v other=1\noutput y\n",
                    "w", "b"},
            {"input x f32 4x30\nparam c f32 4x30\nparam b f32 30\n"
             "copy_.default u:f32:4x30 self=@c src=@x\nadd.Tensor a:f32:4x30 self=@c other=@b\n"
             "add.Tensor y:f32:4x30 self=@a other=@x\noutput y\n",
                    "c", "b"},
            {"input x f32 4x3x5x5\nparam m f32 3\nparam v f32 3\nparam w f32 3\nparam b f32 3\n"
             "batch_norm.default n:f32:4x3x5x5 input=@x weight=@w bias=@b running_mean=@m "
             "running_var=@v training=true momentum=0.1 eps=0.00001 cudnn_enabled=false\n"
             "batch_norm.default y:f32:4x3x5x5 input=@n weight=@w bias=@b running_mean=@m "
             "running_var=@v training=false momentum=0.1 eps=0.00001 cudnn_enabled=false\n"
             "output y\n",
                    "v", "w"},
            /* Others than the first argument. */
            {"input x f32 4x30\nparam n f32 4x30\nparam b f32 30\n"
             "rrelu_with_noise.default r:f32:4x30 self=@x noise=@n training=true\n"
             "add.Tensor a:f32:4x30 self=@n other=@b\nadd.Tensor y:f32:4x30 self=@a other=@r\n"
             "output y\n",
                    "n", "b"},
            {"input x f32 4x30\nparam p f32 4x30\nparam m f32 4x30\nparam b f32 30\n"
             "_fused_sgd_.default o:f32:4x30 self=[@p] grads=[@x] momentum_buffer_list=[@m]\n"
             "add.Tensor a:f32:4x30 self=@m other=@b\nadd.Tensor y:f32:4x30 self=@a other=@x\n"
             "output y\n",
                    "m", "b"},
            {"input x f32 4x30\nparam p f32 4x30\nparam b f32 30\n"
             "cos.out o:f32:4x30 self=@x out=@p\nadd.Tensor a:f32:4x30 self=@p other=@b\n"
             "add.Tensor y:f32:4x30 self=@a other=@x\noutput y\n",
                    "p", "b"},
    };
    gb_bridge_options options = {
            .size = sizeof options, .constant_parameters = 1, .keep_single_ops = 1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gb_bridge_module *module = make_module(cases[i].lines, &options);
        cr_assert(!is_constant_input(module, cases[i].written), "%s%s", cases[i].lines,
                gb_bridge_module_describe(module));
        cr_assert(is_constant_input(module, cases[i].kept), "%s%s", cases[i].lines,
                gb_bridge_module_describe(module));
        gb_bridge_module_destroy(module);
    }
}

/* "layout" has "out" in it, but to.dtype_layout writes to nothing: the views behind it are absorbed. */
Test(bridge_groups, a_conversion_with_a_layout_writes_nothing)
{
    gb_bridge_options options = {
            .size = sizeof options, .policy = GB_POLICY_MAX, .keep_single_ops = 1};
    gb_bridge_module *module = make_module(
            "input x f32 2x4\nto.dtype_layout c:f32:2x4 self=@x dtype=7\n"
            "relu.default r:f32:2x4 self=@c\ntranspose.int t:f32:4x2:1x4 self=@r dim0=0 dim1=1\n"
            "clone.default d:f32:4x2 self=@t\nexp.default y:f32:4x2 self=@d\noutput y\n",
            &options);
    const char *text = gb_bridge_module_describe(module);
    cr_assert(strstr(text, "\"absorbed\": [\"c\", \"t\", \"d\"]"), "%s", text);
    gb_bridge_module_destroy(module);
}

#define POOL(name, window)                                                                         \
    "max_pool2d_with_indices.default " name ":f32:1x8x3x3," name "_i:s64:1x8x3x3 self=@x "         \
    "kernel_size=" window " stride=[2,2] padding=[0,0] dilation=[1,1] ceil_mode=false\n"
#define POOL_GRADIENT                                                                              \
    "max_pool2d_with_indices_backward.default d" IMAGE " grad_output=@g self=@x "                  \
    "kernel_size=[2,2] stride=[2,2] padding=[0,0] dilation=[1,1] ceil_mode=false indices=@p_i\n"

/* Places that the gradient finds again need not be known, but where it stays outside they do. */
Test(bridge_groups, places_of_maxima)
{
    const char *lines =
            HEAD "input g f32 1x8x3x3\n" POOL("p", "[2,2]") POOL_GRADIENT "output p\noutput d\n";
    expect_groups(lines, 2);
    expect_groups(HEAD "input g f32 1x8x3x3\n" POOL("p", "[2,2]") POOL_GRADIENT "output d\n", 1);
    expect_outside(HEAD "input g f32 1x8x3x3\n" POOL("p", "[3,3]") POOL_GRADIENT "output d\n", "d",
            "come from elsewhere");
    gb_bridge_options options = {.size = sizeof options,
            .disabled_ops = "aten.max_pool2d_with_indices_backward.default"};
    gb_bridge_module *module = make_module(lines, &options);
    cr_assert(is_outside(module, "d", "disabled"));
    cr_assert(is_outside(module, "p", "places of the maxima are read"));
    gb_bridge_module_destroy(module);
}

/* The whole as few partitions: attention, products and norms of a block. */
Test(bridge_groups, policy_max)
{
    gb_bridge_options options = {.size = sizeof options, .policy = GB_POLICY_MAX};
    gb_bridge_module *module =
            make_module(HEAD CONV("c", "x") "relu.default r" IMAGE " self=@c\n" CONV(
                                "d", "r") "softmax.int s" IMAGE " self=@d dim=1\nadd.Tensor y" IMAGE
                                          " self=@s other=@x\noutput y\n",
                    &options);
    cr_assert_eq(gb_bridge_module_get_group_num(module), 1);
    gb_bridge_module_destroy(module);
}
