/* Stages of residual networks: blocks of two or three convolutions around which the source, or its
 * projection, is added; in f32 and between Dequantize and Quantize. */
#include "fusion/patterns/pattern_nodes.h"

enum { MOST_BLOCKS = 40, MOST_STEPS = 32 };

/* The tensor before Dequantize: one tensor may be dequantised for each of its readers. */
static uint32_t stored(const gb_graph *graph, uint32_t value)
{
    uint32_t producer = graph->values[value].producer;
    if (producer != GB_NONE && graph->ops[producer]->kind == GB_OP_DEQUANTIZE)
        return graph->ops[producer]->inputs[0];
    return value;
}

/* What the convolution `n` convolutions above the value reads, along first inputs. */
static uint32_t source_of(const gb_graph *graph, uint32_t value, int n)
{
    for (int step = 0; step < MOST_STEPS; step++) {
        uint32_t producer = graph->values[value].producer;
        if (producer == GB_NONE || graph->ops[producer]->n_inputs == 0)
            return GB_NONE;
        value = graph->ops[producer]->inputs[0];
        if (graph->ops[producer]->kind == GB_OP_CONVOLUTION && --n == 0)
            return stored(graph, value);
    }
    return GB_NONE;
}

static bool adds_source(const gb_op *op, uint32_t input, int n_convolutions)
{
    uint32_t source = source_of(op->graph, op->inputs[input], n_convolutions);
    return source != GB_NONE && stored(op->graph, op->inputs[1 - input]) == source;
}

static bool adds_source_or_projection(const gb_op *op, uint32_t input, int n_convolutions)
{
    uint32_t source = source_of(op->graph, op->inputs[input], n_convolutions);
    return adds_source(op, input, n_convolutions) ||
           (source != GB_NONE && source_of(op->graph, op->inputs[1 - input], 1) == source);
}

static bool accept_source_2(const gb_op *op, uint32_t input)
{
    return adds_source(op, input, 2);
}

static bool accept_source_3(const gb_op *op, uint32_t input)
{
    return adds_source(op, input, 3);
}

static bool accept_any_2(const gb_op *op, uint32_t input)
{
    return adds_source_or_projection(op, input, 2);
}

static bool accept_any_3(const gb_op *op, uint32_t input)
{
    return adds_source_or_projection(op, input, 3);
}

static bool accept_f32(const gb_op *op, uint32_t input)
{
    return input == 0 && gb_op_input(op, 0)->data_type == GB_F32;
}

static bool accept_grouped(const gb_op *op, uint32_t input)
{
    return input == 0 && gb_op_attr_s64(op, GB_ATTR_GROUPS, 1) > 1;
}

NODE(relu, KINDS(GB_OP_RELU));
NODE(bias, KINDS(GB_OP_BIAS_ADD), .accept = gb_accept_bias);
OPTIONAL(maybe_bias, &bias);

/* ------------------------------------------------------------------------------------------ f32 */

NODE(conv, KINDS(GB_OP_CONVOLUTION), .accept = accept_f32);
NODE(conv_shared, KINDS(GB_OP_CONVOLUTION), .accept = accept_f32, .shared = true);
NODE(projection_bias, KINDS(GB_OP_BIAS_ADD), .sides = {SIDE(0, &conv)});
ALTERNATIVE(projection, &conv, &projection_bias);
NODE(sum_of_3, KINDS(GB_OP_ADD), .accept = accept_source_3);
NODE(sum_of_3_or_projection, KINDS(GB_OP_ADD), .accept = accept_any_3,
        .sides = {MAYBE_SIDE(GB_OTHER_INPUT, &projection)});
SEQUENCE(bottleneck, &conv_shared, &maybe_bias, &relu, &conv, &maybe_bias, &relu, &conv,
        &maybe_bias, &sum_of_3, &relu);
FORK(bottleneck_fork, &bottleneck);
NODE(bottlenecks, .form = GB_PATTERN_REPEAT, .min = 1, .max = MOST_BLOCKS,
        CHILDREN(&bottleneck_fork));
ROOT(gb_root_bottlenecks, &conv, &maybe_bias, &relu, &conv, &maybe_bias, &relu, &conv, &maybe_bias,
        &sum_of_3_or_projection, &relu, &bottlenecks);

/* ----------------------------------------------------------------------------------- quantised */

NODE(quantize, KINDS(GB_OP_QUANTIZE));
OPTIONAL(maybe_quantize, &quantize);
NODE(dequantize, KINDS(GB_OP_DEQUANTIZE));
NODE(dequantize_shared, KINDS(GB_OP_DEQUANTIZE), .shared = true);
#define WEIGHTS MAYBE_SIDE(1, &gb_node_weights)
NODE(int_conv, KINDS(GB_OP_CONVOLUTION), .accept = gb_accept_at_0, .sides = {WEIGHTS});
NODE(int_conv_shared, KINDS(GB_OP_CONVOLUTION), .accept = gb_accept_at_0, .shared = true,
        .sides = {WEIGHTS});
NODE(int_conv_grouped, KINDS(GB_OP_CONVOLUTION), .accept = accept_grouped, .sides = {WEIGHTS});
NODE(int_projection_conv, KINDS(GB_OP_CONVOLUTION), .sides = {MAYBE_SIDE(0, &dequantize), WEIGHTS});
NODE(int_projection_bias, KINDS(GB_OP_BIAS_ADD), .sides = {SIDE(0, &int_projection_conv)});
ALTERNATIVE(int_projection, &int_projection_conv, &int_projection_bias);
NODE(projection_quantize, KINDS(GB_OP_QUANTIZE), .sides = {SIDE(0, &int_projection)});
NODE(projection_dequantize, KINDS(GB_OP_DEQUANTIZE), .sides = {SIDE(0, &projection_quantize)});
/* The other operand of the sum: the projection in f32 or stored as integers, or the source. */
ALTERNATIVE(int_operand, &projection_dequantize, &int_projection_conv, &int_projection_bias,
        &dequantize);
#define INT_SUM(name, accepted, operand)                                                           \
    NODE(name, KINDS(GB_OP_ADD), .accept = (accepted),                                             \
            .sides = {MAYBE_SIDE(GB_OTHER_INPUT, operand)})
INT_SUM(int_sum_2, accept_source_2, &dequantize);
INT_SUM(int_sum_2_or_projection, accept_any_2, &int_operand);
INT_SUM(int_sum_3, accept_source_3, &dequantize);
INT_SUM(int_sum_3_or_projection, accept_any_3, &int_operand);

SEQUENCE(int_first, &dequantize_shared, &int_conv_shared, &maybe_bias, &relu, &quantize);
SEQUENCE(int_first_after_dequantize, &int_conv_shared, &maybe_bias, &relu, &quantize);
SEQUENCE(int_middle, &dequantize, &int_conv, &maybe_bias, &relu, &quantize);
SEQUENCE(int_middle_grouped, &dequantize, &int_conv_grouped, &maybe_bias, &relu, &quantize);
#define INT_LAST(name, add)                                                                        \
    SEQUENCE(name, &dequantize, &int_conv, &maybe_bias, add, &relu, &maybe_quantize)
INT_LAST(int_last_2, &int_sum_2);
INT_LAST(int_last_2_or_projection, &int_sum_2_or_projection);
INT_LAST(int_last_3, &int_sum_3);
INT_LAST(int_last_3_or_projection, &int_sum_3_or_projection);

#define BLOCKS(name, ...)                                                                          \
    SEQUENCE(name##_block, __VA_ARGS__);                                                           \
    FORK(name##_fork, &name##_block);                                                              \
    NODE(name, .form = GB_PATTERN_REPEAT, .min = 1, .max = MOST_BLOCKS, CHILDREN(&name##_fork))
BLOCKS(int_basic, &int_first, &int_last_2);
BLOCKS(int_bottlenecks, &int_first, &int_middle, &int_last_3);
BLOCKS(int_grouped, &int_first, &int_middle_grouped, &int_last_3_or_projection);
ROOT(gb_root_quantized_basic_blocks, &dequantize, &int_first_after_dequantize,
        &int_last_2_or_projection, &int_basic);
ROOT(gb_root_quantized_bottlenecks, &dequantize, &int_first_after_dequantize, &int_middle,
        &int_last_3_or_projection, &int_bottlenecks);
/* All stages of a network with grouped convolutions. */
ROOT(gb_root_quantized_grouped_bottlenecks, &dequantize, &int_first_after_dequantize,
        &int_middle_grouped, &int_last_3_or_projection, &int_grouped);
