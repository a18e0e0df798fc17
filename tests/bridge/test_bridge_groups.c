/* Which groups come out of graphs. */
#include "bridge_case.h"

#define CONV(out, in)                                                                              \
    "conv2d.default " out ":f32:1x8x6x6 input=@" in " weight=@w bias=@b padding=[1,1]\n"
#define HEAD "input x f32 1x8x6x6\nparam w f32 8x8x3x3\nparam b f32 8\n"

static void expect_groups(const char *lines, size_t count)
{
    gb_bridge_module *module = make_module(lines, NULL);
    cr_assert_eq(gb_bridge_module_get_group_num(module), count, "%zu groups, not %zu:\n%s%s",
            gb_bridge_module_get_group_num(module), count, lines,
            gb_bridge_module_describe(module));
    gb_bridge_module_destroy(module);
}

Test(bridge_groups, convolution_and_one_unary)
{
    static const char *const unary[] = {"relu.default", "leaky_relu.default", "sigmoid.default",
            "square.default", "abs.default", "exp.default", "hardswish.default", "tanh.default",
            "hardtanh.default", "silu.default", "gelu.default"};
    for (size_t i = 0; i < sizeof unary / sizeof unary[0]; i++) {
        char lines[2048];
        snprintf(lines, sizeof lines,
                HEAD CONV("c", "x") "%s r:f32:1x8x6x6 self=@c\n" CONV(
                        "d", "r") "%s y:f32:1x8x6x6 self=@d\noutput y\n",
                unary[i], unary[i]);
        expect_groups(lines, 2);
    }
}
