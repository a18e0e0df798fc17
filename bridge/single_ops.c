/* Which ops are worth a group of their own: one table, measured.
 *
 * A group of one op is a call more, and what it computes is fused with nothing. So it is made only
 * where the library runs the op alone faster than the framework does, the call included. Groups of
 * several ops are not judged. */
#include "module.h"

/* Classes of sizes: up to so many elements of the largest tensor. */
static const struct {
    double most;
    const char *name;
} sizes[] = {{1 << 16, "up to 2^16"}, {1 << 20, "2^16 to 2^20"}, {1e300, "more than 2^20"}};

/* Classes of types: that of the largest tensor. */
static const struct {
    gb_data_type type;
    const char *name;
} types[] = {{GB_F32, "f32"}, {GB_BF16, "bf16"}, {GB_F16, "f16"}};

/* So many times faster, in hundredths, is worth a call: less is lost in what the framework cannot do
 * across it. */
enum { ENOUGH = 105, SIZES = BR_COUNT(sizes), TYPES = BR_COUNT(types) };

/* How many times faster than the framework's node the group is, in hundredths. */
typedef struct single_op {
    gb_op_kind kind;
    uint16_t speeds[TYPES][SIZES];
} single_op;

/* python/benchmarks/single_ops.py --table writes the rows: geometric means over its nodes of a kind,
 * 2026-11-23, Intel with AVX-512 and AMX, one thread, PyTorch 2.15, two runs. 0: in no group. */
static const single_op single_ops[] = {
        /* kind, {f32: small, middle, large}, {bf16}, {f16} */
        {GB_OP_ABS, {{88, 96, 92}, {42, 29, 99}, {57, 47, 93}}},
        {GB_OP_ADD, {{76, 101, 112}, {90, 94, 98}, {111, 129, 102}}},
        {GB_OP_AVG_POOL, {{207, 212, 204}, {228, 244, 230}, {239, 249, 242}}},
        {GB_OP_AVG_POOL_BACKWARD, {{278, 284, 233}, {325, 374, 305}, {328, 346, 319}}},
        {GB_OP_BATCH_NORM_BACKWARD, {{81, 99, 99}, {94, 80, 79}, {92, 77, 75}}},
        {GB_OP_BATCH_NORM_FORWARD_TRAINING, {{318, 404, 300}, {112, 86, 89}, {121, 96, 90}}},
        {GB_OP_BATCH_NORM_INFERENCE, {{89, 61, 113}, {74, 54, 58}, {0, 0, 0}}},
        {GB_OP_CLAMP, {{83, 87, 124}, {91, 93, 107}, {111, 122, 121}}},
        {GB_OP_CLAMP_BACKWARD, {{94, 104, 99}, {87, 91, 92}, {81, 77, 78}}},
        {GB_OP_CONCAT, {{104, 105, 76}, {110, 107, 140}, {109, 101, 130}}},
        {GB_OP_CONVOLUTION, {{190, 116, 146}, {376, 198, 89}, {352, 199, 218}}},
        {GB_OP_CONVOLUTION_BACKWARD_DATA, {{150, 110, 126}, {260, 161, 30}, {230, 184, 172}}},
        {GB_OP_CONVOLUTION_BACKWARD_WEIGHTS, {{143, 121, 167}, {95, 48, 42}, {9999, 9999, 9999}}},
        {GB_OP_CONV_TRANSPOSE, {{224, 190, 263}, {138, 67, 62}, {255, 224, 403}}},
        {GB_OP_DIVIDE, {{80, 98, 106}, {73, 74, 77}, {77, 77, 101}}},
        {GB_OP_ELU, {{330, 352, 457}, {262, 286, 462}, {295, 334, 388}}},
        {GB_OP_EXP, {{85, 90, 98}, {109, 120, 123}, {118, 130, 130}}},
        {GB_OP_GELU, {{135, 88, 79}, {114, 73, 67}, {123, 79, 77}}},
        {GB_OP_GELU_BACKWARD, {{173, 124, 116}, {141, 103, 86}, {150, 105, 94}}},
        {GB_OP_GROUP_NORM, {{100, 83, 82}, {86, 76, 77}, {0, 0, 0}}},
        {GB_OP_HARD_SIGMOID, {{121, 92, 111}, {118, 128, 122}, {107, 119, 105}}},
        {GB_OP_HARD_SWISH, {{86, 92, 91}, {82, 82, 87}, {93, 94, 101}}},
        {GB_OP_INTERPOLATE, {{92, 96, 132}, {66, 60, 65}, {65, 57, 64}}},
        {GB_OP_LAYER_NORM, {{179, 121, 96}, {121, 119, 106}, {0, 0, 0}}},
        {GB_OP_LAYER_NORM_BACKWARD, {{45, 70, 94}, {67, 104, 94}, {57, 84, 79}}},
        {GB_OP_LEAKY_RELU, {{88, 89, 112}, {95, 102, 123}, {94, 103, 125}}},
        {GB_OP_LOG, {{69, 68, 83}, {118, 122, 115}, {124, 127, 128}}},
        {GB_OP_LOG_SOFTMAX, {{166, 202, 185}, {106, 109, 104}, {115, 118, 114}}},
        {GB_OP_LOG_SOFTMAX_BACKWARD, {{111, 117, 107}, {88, 81, 75}, {111, 81, 76}}},
        {GB_OP_MATMUL, {{93, 97, 86}, {261, 72, 61}, {172, 95, 97}}},
        {GB_OP_MAXIMUM, {{58, 88, 95}, {62, 64, 63}, {57, 55, 60}}},
        {GB_OP_MAX_POOL, {{1000, 1188, 992}, {1004, 1235, 1278}, {1234, 1433, 1309}}},
        {GB_OP_MAX_POOL_BACKWARD, {{425, 466, 389}, {415, 477, 490}, {501, 562, 388}}},
        {GB_OP_MINIMUM, {{60, 93, 59}, {62, 62, 66}, {58, 53, 62}}},
        {GB_OP_MISH, {{1155, 1245, 1040}, {879, 995, 1194}, {1021, 1153, 1235}}},
        {GB_OP_MULTIPLY, {{90, 100, 130}, {86, 82, 108}, {103, 100, 123}}},
        {GB_OP_POW, {{76, 74, 44}, {73, 69, 61}, {73, 72, 63}}},
        {GB_OP_RECIPROCAL, {{88, 83, 101}, {61, 57, 58}, {68, 65, 57}}},
        {GB_OP_REDUCE_MAX, {{149, 183, 104}, {245, 359, 290}, {233, 346, 278}}},
        {GB_OP_REDUCE_MEAN, {{194, 156, 114}, {240, 284, 500}, {241, 332, 571}}},
        {GB_OP_REDUCE_MIN, {{146, 172, 96}, {223, 350, 295}, {230, 345, 282}}},
        {GB_OP_REDUCE_SUM, {{135, 116, 120}, {114, 86, 131}, {114, 84, 135}}},
        {GB_OP_RELU, {{77, 90, 94}, {78, 83, 102}, {98, 112, 119}}},
        {GB_OP_RELU_BACKWARD, {{91, 100, 102}, {88, 93, 87}, {80, 79, 77}}},
        {GB_OP_RMS_NORM, {{235, 147, 75}, {270, 194, 118}, {217, 211, 98}}},
        {GB_OP_ROUND, {{77, 90, 115}, {81, 85, 92}, {73, 69, 94}}},
        {GB_OP_SELECT, {{1232, 773, 807}, {823, 998, 595}, {989, 1205, 764}}},
        {GB_OP_SIGMOID, {{110, 112, 112}, {106, 109, 104}, {110, 115, 106}}},
        {GB_OP_SIGMOID_BACKWARD, {{88, 99, 100}, {58, 53, 64}, {100, 102, 85}}},
        {GB_OP_SOFTMAX, {{192, 229, 143}, {114, 112, 92}, {125, 124, 120}}},
        {GB_OP_SOFTMAX_BACKWARD, {{63, 89, 82}, {54, 43, 50}, {51, 40, 48}}},
        {GB_OP_SOFTPLUS, {{234, 227, 286}, {265, 282, 260}, {234, 246, 413}}},
        {GB_OP_SQRT, {{58, 78, 98}, {63, 60, 64}, {65, 64, 56}}},
        {GB_OP_SQUARE, {{88, 89, 113}, {59, 48, 82}, {1338, 1995, 1849}}},
        {GB_OP_SUBTRACT, {{80, 99, 116}, {91, 91, 103}, {110, 119, 99}}},
        {GB_OP_TANH, {{68, 65, 61}, {259, 286, 344}, {285, 312, 349}}},
        {GB_OP_TANH_BACKWARD, {{84, 99, 96}, {54, 50, 75}, {56, 48, 78}}},
};

static const single_op *find_row(gb_op_kind kind)
{
    for (size_t i = 0; i < BR_COUNT(single_ops); i++)
        if (single_ops[i].kind == kind)
            return &single_ops[i];
    return NULL;
}

static double count_elements(const br_wire *wire)
{
    double count = 1;
    for (int d = 0; d < wire->ndims; d++)
        count *= (double)wire->dims[d];
    return count;
}

static const br_wire *largest_wire(const br_builder *b, const br_op *op)
{
    const br_wire *largest = br_wire_of(b, op->outputs[0]);
    for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
        const br_wire *wire =
                br_wire_of(b, i < op->n_inputs ? op->inputs[i] : op->outputs[i - op->n_inputs]);
        if (count_elements(wire) > count_elements(largest))
            largest = wire;
    }
    return largest;
}

const char *br_judge_single_op(br_builder *b, const br_op *op)
{
    const single_op *row = find_row(op->kind);
    const br_wire *wire = largest_wire(b, op);
    size_t type = 0, size = 0;
    while (type < TYPES && types[type].type != wire->type)
        type++;
    while (count_elements(wire) > sizes[size].most)
        size++;
    if (!row || type == TYPES)
        return "a single op, and not one that is known to be faster than the framework's";
    int speed = row->speeds[type][size];
    if (speed >= ENOUGH)
        return NULL;
    const char *reason = br_format(b->arena,
            "a single op: %s of %s with %s elements has %d.%02d of the speed of the framework's",
            gb_op_kind_name(op->kind), types[type].name, sizes[size].name, speed / 100,
            speed % 100);
    return reason ? reason : "a single op";
}
