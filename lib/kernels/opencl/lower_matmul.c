/* MatMul, alone or gated: a product over the space of the pointwise program that takes its results. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "fusion/regions/regions.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/gemm.h"
#include "kernels/plan/dequantization.h"
#include "kernels/plan/gated_matmul.h"

#include <stdio.h>

/* "i2" where a dim is walked, in groups where entries are shared. */
static void print_term(gb_cl_writer *w, const char *index, int64_t stride, int64_t group)
{
    if (stride == 0)
        return;
    gb_cl_print(&w->text, " + (%s)", index);
    if (group > 1) /* a constant of the text: it is divided by for each element */
        gb_cl_print(&w->text, " / %lld", (long long)group);
    if (stride != 1)
        gb_cl_print(&w->text, " * p[%u]", gb_cl_number(w, stride));
}

static bool is_batch(const gb_gemm_problem *gemm, int d)
{
    return d != gemm->row_dim && d != gemm->col_dim;
}

/* long NAME = the offset of the batch position. */
static void print_base(
        gb_cl_writer *w, const gb_gemm_problem *gemm, const char *name, const int64_t *strides)
{
    char index[16];
    gb_cl_print(&w->text, " long %s = 0", name);
    for (int d = 0; d < gemm->pointwise.ndims; d++)
        if (is_batch(gemm, d)) {
            snprintf(index, sizeof index, "i%d", d);
            print_term(w, index, strides[d], 1);
        }
    gb_cl_print(&w->text, ";");
}

static void print_bases(gb_cl_writer *w, const gb_gemm_problem *gemm)
{
    const gb_gemm_operand *operands[] = {&gemm->a, &gemm->b};
    static const char *const names[] = {"a", "b"};
    char name[16];
    gb_cl_print(&w->text, "#define GB_BASES");
    for (int i = 0; i < 2; i++) {
        print_base(w, gemm, i ? "b_first" : "a_first", operands[i]->strides);
        snprintf(name, sizeof name, "%s_scale", names[i]);
        if (operands[i]->scales.type != GB_UNDEF)
            print_base(w, gemm, name, operands[i]->scales.strides);
        snprintf(name, sizeof name, "%s_zp", names[i]);
        if (operands[i]->zps.type != GB_UNDEF)
            print_base(w, gemm, name, operands[i]->zps.strides);
    }
    gb_cl_print(&w->text, "\n");
}

/* A tensor that goes with an operand: its own elements, or parameters. */
typedef struct part {
    gb_data_type type;
    uint32_t slot;
    const char *name; /* of the memory in the text; NULL: that of the slot */
    const char *at;   /* where it begins */
    int64_t own_stride, own_group, k_stride, k_group;
} part;

static part part_of_operand(const gb_gemm_operand *operand, int own_dim)
{
    return (part){operand->type, operand->slot, NULL, "(at)",
            own_dim < 0 ? 0 : operand->strides[own_dim], 1, operand->k_stride, 1};
}

static part part_of_parameter(const gb_gemm_operand *operand, const gb_gemm_parameter *parameter,
        const char *at, int own_dim)
{
    return (part){parameter->type, parameter->slot, NULL, at,
            own_dim < 0 ? 0 : parameter->strides[own_dim], operand->group, parameter->k_stride,
            operand->k_group};
}

/* How elements of an operand are read: one by one, or in lanes, along k or the other dim. */
typedef enum reading { READ_ONE, READ_ALONG_K, READ_ACROSS } reading;

static void print_memory(gb_cl_writer *w, const char *name, uint32_t slot)
{
    if (name)
        gb_cl_print(&w->text, "%s", name);
    else
        gb_cl_print(&w->text, "m%u", slot);
}

/* "gb_load_u8(m1, (at) + (row) * p[2] + (k) / 64)": one for all lanes where they share it. */
static void print_part(gb_cl_writer *w, const part *p, const char *own, reading how)
{
    gb_cl_text *t = &w->text;
    int64_t stride = 0;
    if (how == READ_ALONG_K && p->k_group <= 1)
        stride = p->k_stride;
    if (how == READ_ACROSS && p->own_group <= 1)
        stride = p->own_stride;
    gb_cl_print(t, "gb_%s_%s(",
            stride == 0   ? "load"
            : stride == 1 ? "read"
                          : "gather",
            gb_cl_type_name(p->type));
    print_memory(w, p->name, p->slot);
    gb_cl_print(t, ", %s", p->at);
    print_term(w, own, p->own_stride, p->own_group);
    print_term(w, "k", p->k_stride, p->k_group);
    if (stride != 0 && stride != 1)
        gb_cl_print(t, ", p[%u]", gb_cl_number(w, stride));
    gb_cl_print(t, stride ? ", GB_LANES)" : ")");
}

/* Names of the memory of B where there are two, as GB_PRODUCT() declares them. */
static const char in_codes[] = "codes", in_scales[] = "scales", in_zps[] = "zps";

/* (code - zero point) * scale. `which`: B of a gated product for GB_CL_GATE_B. */
static void print_value(
        gb_cl_writer *w, const gb_gemm_operand *operand, int which, int own_dim, reading how)
{
    gb_cl_text *t = &w->text;
    bool is_a = which == GB_CL_A, gated = which == GB_CL_GATE_B;
    const char *own = is_a ? "row" : "column";
    part codes = part_of_operand(operand, own_dim);
    codes.name = gated ? in_codes : NULL;
    gb_cl_print(t, "((");
    print_part(w, &codes, own, how);
    if (operand->zps.type != GB_UNDEF) {
        part zps = part_of_parameter(operand, &operand->zps, is_a ? "a_zp" : "b_zp", own_dim);
        zps.name = gated ? in_zps : NULL;
        gb_cl_print(t, " - ");
        print_part(w, &zps, own, how);
    }
    gb_cl_print(t, ")");
    if (operand->scales.type != GB_UNDEF) {
        part scales =
                part_of_parameter(operand, &operand->scales, is_a ? "a_scale" : "b_scale", own_dim);
        scales.name = gated ? in_scales : NULL;
        gb_cl_print(t, " * ");
        print_part(w, &scales, own, how);
    }
    gb_cl_print(t, ")\n");
}

/* Do neighbours share parameters, or have one each? Lanes begin at multiples of their number. */
static bool has_lanes(const gb_gemm_operand *operand, int own_dim, reading how)
{
    enum { MOST_LANES = 16 };
    bool has_parameters = operand->scales.type != GB_UNDEF || operand->zps.type != GB_UNDEF;
    if (how == READ_ALONG_K)
        return operand->k_stride == 1 &&
               (!has_parameters || operand->k_group <= 1 || operand->k_group % MOST_LANES == 0);
    return own_dim >= 0 && operand->strides[own_dim] == 1 &&
           (!has_parameters || operand->group <= 1 || operand->group % MOST_LANES == 0);
}

/* f32 as it lies in memory? */
static bool is_plain(const gb_gemm_operand *operand)
{
    return operand->type == GB_F32 && operand->scales.type == GB_UNDEF &&
           operand->zps.type == GB_UNDEF;
}

static bool is_in_place(const gb_gemm_problem *gemm)
{
    return is_plain(&gemm->a) && (gemm->a.k_stride == 1 || gemm->k == 1);
}

static void print_operands(gb_cl_writer *w, const gb_gemm_problem *gemm)
{
    gb_cl_text *t = &w->text;
    const gb_gemm_operand *b = &gemm->b;
    int which_b = gemm->gate ? GB_CL_GATE_B : GB_CL_B;
    gb_cl_print(t, "#define GB_TAPS 1\n#define GB_A_PLACES(n)\n#define GB_A_PLACE(r, row)\n"
                   "#define GB_A_AT(r, tap) a_first\n#define GB_B_PLACES(n)\n"
                   "#define GB_B_PLACE(c, column)\n#define GB_B_AT(c, tap) b_first\n");
    gb_cl_print(t, "#define GB_LOAD_A(at, row, k) ");
    print_value(w, &gemm->a, GB_CL_A, gemm->row_dim, READ_ONE);
    gb_cl_print(t, "#define GB_LOAD_B(at, k, column) ");
    print_value(w, b, which_b, gemm->col_dim, READ_ONE);
    if (is_in_place(gemm)) {
        gb_cl_print(t, "#define GB_A_ADDRESS(at, row) ((__global const float *)m%u + (at)",
                gemm->a.slot);
        if (gemm->row_dim >= 0)
            print_term(w, "row", gemm->a.strides[gemm->row_dim], 1);
        gb_cl_print(t, ")\n");
    }
    bool neighbours = gemm->col_dim >= 0 && b->strides[gemm->col_dim] == 1;
    reading how = b->k_stride == 1 && !neighbours ? READ_ALONG_K : READ_ACROSS;
    if (how == READ_ALONG_K)
        gb_cl_print(t, "#define GB_B_ALONG_K\n");
    if (w->lanes && !is_plain(&gemm->a) && has_lanes(&gemm->a, gemm->row_dim, READ_ALONG_K)) {
        gb_cl_print(t, "#define GB_LANES_OF_A(at, row, k) ");
        print_value(w, &gemm->a, GB_CL_A, gemm->row_dim, READ_ALONG_K);
    }
    if (w->lanes && has_lanes(b, gemm->col_dim, how)) {
        gb_cl_print(t, "#define GB_LANES_OF_B(at, k, column) ");
        print_value(w, b, which_b, gemm->col_dim, how);
    }
    if (!neighbours || !is_plain(b))
        return;
    gb_cl_print(t, "#define GB_B_ADDRESS(at, k, column) ((__global const float *)");
    print_memory(w, gemm->gate ? in_codes : NULL, b->slot);
    gb_cl_print(t, " + (at) + (column)");
    print_term(w, "k", b->k_stride, 1);
    gb_cl_print(t, ")\n");
}

/* " __global uchar *codes = product ? m5 : m3;" */
static void print_choice(gb_cl_writer *w, const char *name, uint32_t gate, uint32_t slot)
{
    gb_cl_print(&w->text, " __global uchar *%s = product ? m%u : m%u;", name, slot, gate);
}

static void print_gated_operand(gb_cl_writer *w, const gb_gemm_problem *gemm)
{
    const gb_gemm_operand *gate = &gemm->gate->b, *b = &gemm->b;
    gb_cl_print(&w->text, "#define GB_PRODUCT(product)");
    print_choice(w, in_codes, gate->slot, b->slot);
    if (b->scales.type != GB_UNDEF)
        print_choice(w, in_scales, gate->scales.slot, b->scales.slot);
    if (b->zps.type != GB_UNDEF)
        print_choice(w, in_zps, gate->zps.slot, b->zps.slot);
    gb_cl_print(&w->text, "\n");
}

static gb_status check_operand(const gb_gemm_operand *operand)
{
    bool known = gb_cl_type_name(operand->type) &&
                 (operand->scales.type == GB_UNDEF || gb_cl_type_name(operand->scales.type)) &&
                 (operand->zps.type == GB_UNDEF || gb_cl_type_name(operand->zps.type));
    return known && !operand->in_panels ? GB_SUCCESS
                                        : gb_fail(GB_UNIMPLEMENTED, "OpenCL has no product of %s",
                                                  gb_data_type_name(operand->type));
}

static gb_status print(gb_cl_writer *w, const gb_gemm_problem *gemm, gb_cl_tile_space *space)
{
    const gb_pointwise_program *pointwise = &gemm->pointwise;
    GB_TRY(check_operand(&gemm->a));
    GB_TRY(check_operand(&gemm->b));
    int lane_dim = gb_cl_choose_tile_lanes(w, gemm->col_dim, space->columns);
    gb_cl_print_arguments(w);
    if (gemm->gate) {
        GB_TRY(gb_cl_print_local_pointwise(w, &gemm->gate->pointwise, "gb_gate", lane_dim, true));
        GB_TRY(gb_cl_print_local_pointwise(w, pointwise, "gb_post", lane_dim, true));
    } else
        GB_TRY(gb_cl_print_pointwise(w, pointwise, "gb_post", lane_dim));
    const gb_gemm_operand *b = &gemm->b;
    bool neighbours = gemm->col_dim >= 0 && b->strides[gemm->col_dim] == 1;
    space->a_in_place = is_in_place(gemm);
    space->b_direct = w->lanes &&
                      (b->k_stride == 1 && !neighbours ? has_lanes(b, gemm->col_dim, READ_ALONG_K)
                                                       : has_lanes(b, gemm->col_dim, READ_ACROSS));
    gb_cl_print_tile_space(w, space);
    print_bases(w, gemm);
    print_operands(w, gemm);
    if (gemm->gate && !space->is_packed[GB_CL_B])
        print_gated_operand(w, gemm);
    w->family = gb_cl_gemm;
    return GB_SUCCESS;
}

/* The same in all batch positions? */
static bool is_shared(const gb_gemm_problem *gemm, const gb_gemm_operand *operand)
{
    for (int d = 0; d < gemm->pointwise.ndims; d++)
        if (is_batch(gemm, d) && gemm->pointwise.dims[d] > 1 &&
                (operand->strides[d] != 0 || operand->scales.strides[d] != 0 ||
                        operand->zps.strides[d] != 0))
            return false;
    return true;
}

/* A parameter as the step that packs reads it. */
static gb_status use_parameter(
        const gb_cl_writer *w, gb_cl_packing *packing, gb_gemm_parameter *parameter)
{
    if (parameter->type == GB_UNDEF)
        return GB_SUCCESS;
    uint32_t buffer = w->step->uses[parameter->slot].buffer;
    return gb_step_use_buffer(packing->w.step, buffer, false, &parameter->slot);
}

static const gb_gemm_operand *operand_of(const gb_gemm_problem *gemm, int which)
{
    return which == GB_CL_A ? &gemm->a : which == GB_CL_B ? &gemm->b : &gemm->gate->b;
}

static gb_status print_packing(
        const gb_cl_writer *w, const gb_gemm_problem *gemm, int which, gb_cl_packing *packing)
{
    gb_cl_writer *own = &packing->w;
    gb_gemm_operand operand = *operand_of(gemm, which);
    bool is_a = which == GB_CL_A;
    GB_TRY(check_operand(&operand));
    GB_TRY(gb_step_use_buffer(own->step, operand.buffer, false, &operand.slot));
    GB_TRY(use_parameter(w, packing, &operand.scales));
    GB_TRY(use_parameter(w, packing, &operand.zps));
    gb_cl_print_packing(packing);
    gb_cl_print(&own->text, "#define GB_BASES long at = 0, %c_scale = 0, %c_zp = 0;\n",
            is_a ? 'a' : 'b', is_a ? 'a' : 'b');
    gb_cl_print(&own->text, "#define GB_ELEMENT(%s, tap, k) ", is_a ? "row" : "column");
    print_value(own, &operand, is_a ? GB_CL_A : GB_CL_B, is_a ? gemm->row_dim : gemm->col_dim,
            READ_ONE);
    return GB_SUCCESS;
}

static bool is_constant(const gb_cl_writer *w, const gb_gemm_parameter *parameter)
{
    return parameter->type == GB_UNDEF ||
           gb_cl_is_constant(w->program, w->step->uses[parameter->slot].buffer);
}

static bool packs(const gb_cl_writer *w, const gb_gemm_problem *gemm, int which,
        const gb_cl_tile_space *space)
{
    const gb_gemm_operand *operand = operand_of(gemm, which);
    return space->k > 0 && (which == GB_CL_A ? gemm->row_dim : gemm->col_dim) >= 0 &&
           is_shared(gemm, operand) && is_constant(w, &operand->scales) &&
           is_constant(w, &operand->zps) &&
           gb_cl_packs(w->program, operand->buffer, which, space->rows, space->columns,
                   operand->type == GB_F32);
}

static gb_status pack_operand(
        gb_cl_writer *w, const gb_gemm_problem *gemm, int which, gb_cl_tile_space *space)
{
    gb_cl_packing packing;
    GB_TRY(gb_cl_begin_packing(w, which, space->rows, space->columns, space->k, 1, &packing,
            &space->packed_slots[which]));
    return gb_cl_writer_add(&packing.w, print_packing(w, gemm, which, &packing));
}

gb_status gb_cl_add_product(gb_cl_writer *w, gb_gemm_problem *gemm)
{
    const int64_t *dims = gemm->pointwise.dims;
    gb_cl_tile_space space = {.pointwise = &gemm->pointwise,
            .is_gated = gemm->gate != NULL,
            .dims = dims,
            .row_dim = gemm->row_dim,
            .col_dim = gemm->col_dim,
            .rows = gemm->row_dim < 0 ? 1 : dims[gemm->row_dim],
            .columns = gemm->col_dim < 0 ? 1 : dims[gemm->col_dim],
            .k = gemm->k};
    gb_gemm_operand *operands[] = {&gemm->a, &gemm->b, gemm->gate ? &gemm->gate->b : NULL};
    int n = gemm->gate ? GB_CL_OPERANDS : GB_CL_GATE_B;
    for (int which = 0; which < n; which++)
        space.is_packed[which] = packs(w, gemm, which, &space);
    if (gemm->gate) /* both or none */
        space.is_packed[GB_CL_B] = space.is_packed[GB_CL_GATE_B] =
                space.is_packed[GB_CL_B] && space.is_packed[GB_CL_GATE_B];
    for (int which = 0; which < n; which++)
        if (space.is_packed[which])
            GB_TRY(pack_operand(w, gemm, which, &space));
        else
            GB_TRY(gb_step_use_buffer(
                    w->step, operands[which]->buffer, false, &operands[which]->slot));
    return gb_cl_writer_add(w, print(w, gemm, &space));
}

static gb_status lower_matmul(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_gemm_problem gemm = {0};
    gb_cl_writer w;
    uint8_t roles[GB_AXES];
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    GB_TRY(gb_cl_begin(program, "gemm", &w));
    GB_TRY(gb_matmul_describe(program, group, NULL, w.step, &gemm, roles));
    gb_gemm_orient(&gemm, roles);
    w.step->work = 2 * (double)gemm.k * (double)gb_tensor_count(gb_op_output(op, 0));
    return gb_cl_add_product(&w, &gemm);
}

static gb_status lower_gated_matmul(gb_program *program, const gb_group *group)
{
    const gb_gated_matmul_parts *parts = group->parts;
    gb_gemm_problem gemm = {0}, gate = {0};
    const gb_logical_tensor *result = &gb_program_graph(program)->values[parts->result].tensor;
    gb_cl_writer w;
    if (gb_tensor_count(result) == 0)
        return GB_SUCCESS;
    GB_TRY(gb_cl_begin(program, "gated gemm", &w));
    GB_TRY(gb_gated_matmul_describe(program, parts, w.step, &gemm, &gate));
    w.step->work = 4 * (double)gemm.k * (double)gb_tensor_count(result);
    return gb_cl_add_product(&w, &gemm);
}

/* One description of B is that of both. */
static bool accepts_gated_matmul(const gb_graph *graph, const void *parts, bool on_cpu)
{
    (void)on_cpu;
    return gb_gated_matmul_is_even(graph, parts);
}

const gb_cl_region_lowering gb_cl_lowering_gated_matmul = {.region = &gb_region_gated_matmul,
        .accepts = accepts_gated_matmul,
        .lower = lower_gated_matmul};

static bool takes_prologue(const gb_op *anchor, uint32_t input, const gb_op *op)
{
    (void)anchor;
    return input <= GB_MATMUL_WEIGHTS && gb_dequantization_takes(op);
}

const gb_cl_lowering gb_cl_lowering_matmul = {.supports = gb_all_types_float,
        .takes_epilogue = true,
        .fuses_producer = takes_prologue,
        .lower = lower_matmul};
