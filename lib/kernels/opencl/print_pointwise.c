/* Pointwise programs as OpenCL C: a work-item runs the program on one element, its registers are
 * variables. */
#include "base/status.h"
#include "kernels/opencl/writer.h"

#include <string.h>

/* x and y are the registers a and b; A and B stand for alpha and beta. */
typedef struct form {
    const char *text;
    bool math;
} form;

static const form forms[GB_POINTWISE_OPCODES] = {
        [GB_POINTWISE_ABS] = {"fabs(x)", false},
        [GB_POINTWISE_CLAMP] = {"gb_min(B, gb_max(A, x))", false},
        [GB_POINTWISE_DIV_KNOWN] = {"gb_div(x, B)", false},
        [GB_POINTWISE_ELU] = {"x > 0.0f ? x : A * gb_expm1(x)", true},
        [GB_POINTWISE_EXP] = {"gb_exp(x)", true},
        [GB_POINTWISE_GELU_ERF] = {"gb_gelu_erf(x)", true},
        [GB_POINTWISE_GELU_TANH] = {"gb_gelu_tanh(x)", true},
        [GB_POINTWISE_HARDSIGMOID] = {"gb_clamp(gb_fma(A, x, B), 0.0f, 1.0f)", true},
        [GB_POINTWISE_HARDSWISH] = {"gb_hardswish(x)", true},
        [GB_POINTWISE_LEAKY_RELU] = {"x > 0.0f ? x : A * x", false},
        [GB_POINTWISE_LOG] = {"gb_log(x)", true},
        [GB_POINTWISE_MISH] = {"gb_mish(x)", true},
        [GB_POINTWISE_POW] = {"gb_pow(x, B)", true},
        [GB_POINTWISE_RECIPROCAL] = {"gb_div(1.0f, x)", false},
        [GB_POINTWISE_RELU] = {"gb_max(0.0f, x)", false},
        [GB_POINTWISE_ROUND_EVEN] = {"rint(x)", false},
        [GB_POINTWISE_SIGMOID] = {"gb_sigmoid(x)", true},
        [GB_POINTWISE_SOFTPLUS] = {"gb_div(gb_softplus(B * x), B)", true},
        [GB_POINTWISE_SQRT] = {"gb_sqrt(x)", false},
        [GB_POINTWISE_SQUARE] = {"x * x", false},
        [GB_POINTWISE_SWISH] = {"x * gb_sigmoid(x)", true},
        [GB_POINTWISE_TANH] = {"gb_tanh(x)", true},
        [GB_POINTWISE_ADD] = {"x + y", false},
        [GB_POINTWISE_SUB] = {"x - y", false},
        [GB_POINTWISE_MUL] = {"x * y", false},
        [GB_POINTWISE_DIV] = {"gb_div(x, y)", false},
        [GB_POINTWISE_MAX] = {"gb_max(x, y)", false},
        [GB_POINTWISE_MIN] = {"gb_min(x, y)", false},
        [GB_POINTWISE_SQUARED_DIFFERENCE] = {"(x - y) * (x - y)", false},
        [GB_POINTWISE_GREATER_EQUAL] = {"x >= y ? 1.0f : 0.0f", false},
        [GB_POINTWISE_PRELU] = {"x > 0.0f ? x : x * y", false},
        [GB_POINTWISE_ABS_BACKWARD] = {"x > 0.0f ? y : (x < 0.0f ? -y : 0.0f)", false},
        [GB_POINTWISE_CLAMP_BACKWARD] = {"x > A && x < B ? y : 0.0f", false},
        [GB_POINTWISE_ELU_BACKWARD] = {"y * (x > 0.0f ? 1.0f : A * gb_exp(x))", true},
        [GB_POINTWISE_ELU_BACKWARD_DST] = {"y * (x > 0.0f ? 1.0f : x + A)", false},
        [GB_POINTWISE_GELU_ERF_BACKWARD] = {"y * gb_gelu_erf_slope(x)", true},
        [GB_POINTWISE_GELU_TANH_BACKWARD] = {"y * gb_gelu_tanh_slope(x)", true},
        [GB_POINTWISE_HARDSIGMOID_BACKWARD] =
                {"gb_fma(A, x, B) > 0.0f && gb_fma(A, x, B) < 1.0f ? y * A : 0.0f", true},
        [GB_POINTWISE_HARDSWISH_BACKWARD] = {"gb_hardswish_backward(x, y)", true},
        [GB_POINTWISE_MISH_BACKWARD] = {"y * gb_mish_slope(x)", true},
        [GB_POINTWISE_RELU_BACKWARD] = {"x > 0.0f ? y : 0.0f", false},
        [GB_POINTWISE_SIGMOID_BACKWARD] = {"y * gb_sigmoid_slope(x)", true},
        [GB_POINTWISE_SIGMOID_BACKWARD_DST] = {"y * x * (1.0f - x)", false},
        [GB_POINTWISE_SOFTPLUS_BACKWARD] = {"y * gb_sigmoid(B * x)", true},
        [GB_POINTWISE_SQRT_BACKWARD] = {"gb_div(y, 2.0f * gb_sqrt(x))", false},
        [GB_POINTWISE_SQRT_BACKWARD_DST] = {"gb_div(y, 2.0f * x)", false},
        [GB_POINTWISE_TANH_BACKWARD] = {"y * gb_tanh_slope(x)", true},
        [GB_POINTWISE_TANH_BACKWARD_DST] = {"y * (1.0f - x) * (1.0f + x)", false},
};

const char *gb_cl_type_name(gb_data_type type)
{
    switch (type) {
    case GB_F32:
        return "f32";
    case GB_BF16:
        return "bf16";
    case GB_F16:
        return "f16";
    case GB_F8_E5M2:
        return "f8_e5m2";
    case GB_F8_E4M3:
        return "f8_e4m3";
    case GB_S32:
        return "s32";
    case GB_S8:
        return "s8";
    case GB_U8:
        return "u8";
    case GB_S4:
        return "s4";
    case GB_U4:
        return "u4";
    case GB_BOOLEAN:
        return "boolean";
    default:
        return NULL;
    }
}

/* A program being printed: which registers hold s32 lanes. */
typedef struct printer {
    gb_cl_writer *w;
    const gb_pointwise_program *pointwise;
    int lane_dim;  /* that runs in lanes */
    bool is_local; /* operands in scratch are elements of t */
    bool stores;   /* results are written to memory, too */
    bool lanes[GB_POINTWISE_REGISTERS];
} printer;

static bool is_in_scratch(const gb_pointwise_operand *operand)
{
    return !operand->is_index && operand->slot >= GB_SCRATCH_OPERAND;
}

/* A constant that the source does not depend on. */
static void print_number(printer *s, float number)
{
    gb_cl_print(&s->w->text, "as_float((int)p[%u])", gb_cl_float(s->w, number));
}

/* One that it does, since which code runs hangs on it. */
static void print_literal(printer *s, float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    gb_cl_print(&s->w->text, "as_float(0x%08xu)", bits);
}

static void print_form(printer *s, const gb_pointwise_instruction *i)
{
    gb_cl_text *t = &s->w->text;
    gb_cl_print(t, "r%u = ", i->dst);
    if (i->opcode == GB_POINTWISE_SOFTPLUS && i->beta == 1) {
        gb_cl_print(t, "gb_softplus(r%u)", i->a);
        return;
    }
    const char *text = forms[i->opcode].text;
    for (const char *at = text; *at; at++) {
        bool alone = (at == text || strchr(" (*-+", at[-1])) && (!at[1] || strchr(" ),*", at[1]));
        if (*at == 'x' && alone)
            gb_cl_print(t, "r%u", i->a);
        else if (*at == 'y' && alone)
            gb_cl_print(t, "r%u", i->b);
        else if ((*at == 'A' || *at == 'B') && alone && i->opcode == GB_POINTWISE_POW)
            print_literal(s, *at == 'A' ? i->alpha : i->beta);
        else if ((*at == 'A' || *at == 'B') && alone)
            print_number(s, *at == 'A' ? i->alpha : i->beta);
        else
            gb_cl_print(t, "%c", *at);
    }
}

static gb_status check_operand(const printer *s, const gb_pointwise_operand *operand)
{
    if (operand->in_panels)
        return gb_fail(GB_UNIMPLEMENTED, "OpenCL has no kernel for elements in panels");
    bool known =
            operand->is_index || operand->type == GB_S64 || gb_cl_type_name(operand->type) != NULL;
    bool written = operand->written && (operand->type == GB_S4 || operand->type == GB_U4);
    return known && !written && (s->is_local || !is_in_scratch(operand))
                   ? GB_SUCCESS
                   : gb_fail(GB_UNIMPLEMENTED, "OpenCL has no kernel for an operand of type %s",
                             gb_data_type_name(operand->type));
}

static gb_status print_access(printer *s, const gb_pointwise_instruction *i)
{
    gb_cl_text *t = &s->w->text;
    const gb_pointwise_operand *operand = &s->pointwise->operands[i->operand];
    bool lanes = i->type == GB_S32, loads = i->opcode == GB_POINTWISE_LOAD;
    const char *name = lanes ? "lane" : gb_cl_type_name(operand->type);
    if (is_in_scratch(operand)) {
        uint32_t place = operand->slot - GB_SCRATCH_OPERAND;
        if (loads)
            gb_cl_print(t, "r%u = t[%u]", i->dst, place);
        else
            gb_cl_print(t, "t[%u] = r%u", place, i->a);
        s->lanes[i->dst] = s->lanes[i->dst] && !loads;
        return GB_SUCCESS;
    }
    if (!name)
        return gb_fail(GB_UNIMPLEMENTED, "OpenCL has no kernel for an operand of type %s",
                gb_data_type_name(operand->type));
    if (!loads && !s->stores)
        return GB_SUCCESS;
    if (loads) {
        gb_cl_print(t, "%c%u = ", lanes ? 's' : 'r', i->dst);
        gb_cl_print_read(
                s->w, name, operand->slot, s->pointwise->ndims, operand->strides, s->lane_dim);
        s->lanes[i->dst] = lanes;
    } else {
        int64_t strides[GB_AXES];
        memcpy(strides, operand->strides, sizeof strides);
        if (s->lane_dim >= 0 && strides[s->lane_dim] == 0)
            strides[s->lane_dim] = 1; /* of a dim of one element, which is the first of the lanes */
        gb_cl_print_write(s->w, name, operand->slot, s->pointwise->ndims, strides, s->lane_dim);
        gb_cl_print(t, "%c%u)", lanes ? 's' : 'r', i->a);
    }
    return GB_SUCCESS;
}

static void print_index(printer *s, const gb_pointwise_instruction *i)
{
    const int64_t *strides = s->pointwise->operands[i->operand].strides;
    gb_cl_text *t = &s->w->text;
    gb_cl_print(t, "s%u = (int)(", i->dst);
    gb_cl_print_offset(s->w, s->pointwise->ndims, strides);
    gb_cl_print(t, ")");
    if (s->lane_dim >= 0 && strides[s->lane_dim] != 0)
        gb_cl_print(t, " + GB_LANE_NUMBERS * (int)p[%u]", gb_cl_number(s->w, strides[s->lane_dim]));
}

/* The whole offset, which may be beyond 32 bits. */
static void print_dropout(printer *s, const gb_pointwise_instruction *i)
{
    const int64_t *strides = s->pointwise->operands[i->operand].strides;
    gb_cl_text *t = &s->w->text;
    gb_cl_print(t, "{ ulong at = ");
    gb_cl_print_offset(s->w, s->pointwise->ndims, strides);
    if (s->lane_dim >= 0)
        gb_cl_print(t, "; r%u = gb_keep_lanes(at, p[%u]", i->dst,
                gb_cl_number(s->w, strides[s->lane_dim]));
    else
        gb_cl_print(t, "; r%u = gb_keep((uint)at, (uint)(at >> 32)", i->dst);
    gb_cl_print(t, ", *(__global const ulong *)m%u, *(__global const ulong *)m%u, r%u); }",
            s->pointwise->operands[i->b].slot, s->pointwise->operands[i->c].slot, i->a);
    s->w->uses_math = true;
}

static gb_status print_instruction(printer *s, const gb_pointwise_instruction *i)
{
    gb_cl_text *t = &s->w->text;
    bool lanes = false;
    switch (i->opcode) {
    case GB_POINTWISE_LOAD:
    case GB_POINTWISE_STORE:
        return print_access(s, i);
    case GB_POINTWISE_CONSTANT:
        gb_cl_print(t, "r%u = ", i->dst);
        print_number(s, i->alpha);
        break;
    case GB_POINTWISE_ROUND: {
        const char *name = gb_cl_type_name((gb_data_type)i->type);
        bool same = !name || i->type == GB_S32 || i->type == GB_BOOLEAN || i->type == GB_S4 ||
                    i->type == GB_U4;
        gb_cl_print(t, "r%u = gb_round_%s(r%u)", i->dst, same ? "f32" : name, i->a);
        break;
    }
    case GB_POINTWISE_ADD_S32:
    case GB_POINTWISE_SUB_S32:
        gb_cl_print(t, "s%u = gb_%s_lanes(s%u, s%u)", i->dst,
                i->opcode == GB_POINTWISE_ADD_S32 ? "add" : "sub", i->a, i->b);
        lanes = true;
        break;
    case GB_POINTWISE_GREATER_EQUAL_S32:
        gb_cl_print(t, "r%u = s%u >= s%u ? 1.0f : 0.0f", i->dst, i->a, i->b);
        break;
    case GB_POINTWISE_FROM_S32:
        gb_cl_print(t, "r%u = gb_from_s32(s%u)", i->dst, i->a);
        break;
    case GB_POINTWISE_TO_S32:
        gb_cl_print(t, "s%u = gb_s32_encode(r%u)", i->dst, i->a);
        lanes = true;
        break;
    case GB_POINTWISE_SELECT:
        lanes = s->lanes[i->b];
        gb_cl_print(t, "%c%u = r%u != 0.0f ? %c%u : %c%u", lanes ? 's' : 'r', i->dst, i->a,
                lanes ? 's' : 'r', i->b, lanes ? 's' : 'r', i->c);
        break;
    case GB_POINTWISE_INDEX:
        print_index(s, i);
        lanes = true;
        break;
    case GB_POINTWISE_DROPOUT:
        print_dropout(s, i);
        break;
    default:
        if (!forms[i->opcode].text)
            return gb_fail(GB_UNIMPLEMENTED, "OpenCL has no kernel for instruction %u", i->opcode);
        print_form(s, i);
        s->w->uses_math = s->w->uses_math || forms[i->opcode].math;
    }
    s->lanes[i->dst] = lanes;
    return GB_SUCCESS;
}

static gb_status print_program(gb_cl_writer *w, const gb_pointwise_program *pointwise,
        const char *name, int lane_dim, bool is_local, bool stores)
{
    printer s = {.w = w,
            .pointwise = pointwise,
            .lane_dim = lane_dim,
            .is_local = is_local,
            .stores = stores};
    const char *type = lane_dim < 0 ? "float" : "GB_FLOATS";
    const char *table = !is_local ? "" : lane_dim < 0 ? ", float *t" : ", GB_FLOATS *t";
    for (uint32_t i = 0; i < pointwise->n_operands; i++)
        GB_TRY(check_operand(&s, &pointwise->operands[i]));
    gb_cl_print(&w->text, "static inline void %s(GB_PARAMETERS", name);
    gb_cl_print_indices(w, pointwise->ndims, true);
    gb_cl_print(&w->text, "%s, %s r0%s)\n{\n    %s s0 = 0", lane_dim < 0 ? "" : ", int lanes", type,
            table, lane_dim < 0 ? "int" : "GB_INTS");
    for (uint32_t i = 1; i < pointwise->n_registers; i++)
        gb_cl_print(&w->text, ", s%u = 0", i);
    gb_cl_print(&w->text, ";\n");
    for (uint32_t i = 1; i < pointwise->n_registers; i++)
        gb_cl_print(&w->text, "    %s r%u = 0.0f;\n", type, i);
    for (uint32_t i = 0; i < pointwise->n_instructions; i++) {
        gb_cl_print(&w->text, "    ");
        GB_TRY(print_instruction(&s, &pointwise->instructions[i]));
        gb_cl_print(&w->text, ";\n");
    }
    gb_cl_print(&w->text, "}\n");
    return GB_SUCCESS;
}

gb_status gb_cl_print_pointwise(
        gb_cl_writer *w, const gb_pointwise_program *pointwise, const char *name, int lane_dim)
{
    return print_program(w, pointwise, name, lane_dim, false, true);
}

gb_status gb_cl_print_local_pointwise(gb_cl_writer *w, const gb_pointwise_program *pointwise,
        const char *name, int lane_dim, bool stores)
{
    return print_program(w, pointwise, name, lane_dim, true, stores);
}
