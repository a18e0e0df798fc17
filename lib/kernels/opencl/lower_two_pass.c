/* Batch norm in training, and the gradients of softmax, norms and PReLU. */
#include "base/memory.h"
#include "base/status.h"
#include "fusion/regions/batch_norm.h"
#include "fusion/regions/regions.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/rows.h"
#include "kernels/plan/two_pass_problem.h"

#include <string.h>

/* What all of them share ------------------------------------------------------------------------ */

static const gb_two_pass_problem *two_pass_of(const gb_cl_row_writer *rows)
{
    return rows->problem; /* every problem begins with it */
}

/* " float x1 = ...;" */
static void print_input(gb_cl_row_writer *rows, int i)
{
    gb_cl_print(&rows->w->text, " GB_FLOATS x%d = ", i);
    gb_cl_rows_load(rows, &two_pass_of(rows)->in[i]);
    gb_cl_print(&rows->w->text, ";");
}

static void print_inputs(gb_cl_row_writer *rows, const char *macro)
{
    gb_cl_print(&rows->w->text, "#define %s", macro);
    for (int i = 0; i < GB_TWO_PASS_INPUTS; i++)
        if (two_pass_of(rows)->in[i].type != GB_UNDEF)
            print_input(rows, i);
}

/* GB_FOLD, and the sums are sums. */
static void print_fold(gb_cl_row_writer *rows, const char *text)
{
    gb_cl_print(&rows->w->text, "#define GB_START 0.0f\n#define GB_JOIN(p, q) (p + q)\n");
    if (rows->stage == GB_CL_STAGE_JOIN)
        return;
    print_inputs(rows, "GB_FOLD");
    gb_cl_print(&rows->w->text, "%s\n", text);
}

static void print_result(gb_cl_row_writer *rows, const char *before, const char *value)
{
    print_inputs(rows, "GB_APPLY");
    gb_cl_print(&rows->w->text, "%s", before);
    gb_cl_rows_store(rows, &two_pass_of(rows)->out, value);
    gb_cl_print(&rows->w->text, "\n");
}

void gb_cl_print_moments(gb_cl_row_writer *rows, const gb_operand *src)
{
    gb_cl_text *t = &rows->w->text;
    gb_cl_print(t, "#define GB_START 0.0f\n#define GB_JOIN(p, q) (p + q)\n"
                   "#define GB_PIVOT(a, n) gb_mean(a, n)\n"
                   "#define GB_REBASE(a, b, n) ((b) + gb_square(gb_mean(a, n) - pivot) * (n))\n"
                   "#define GB_FOLD_AGAIN");
    if (rows->stage == GB_CL_STAGE_JOIN) {
        gb_cl_print(t, "\n");
        return;
    }
    gb_cl_print(t, " GB_B += gb_square(");
    gb_cl_rows_load(rows, src);
    gb_cl_print(t, " - pivot);\n#define GB_FOLD GB_A += ");
    gb_cl_rows_load(rows, src);
    gb_cl_print(t, ";\n");
}

/* " k1 = ...;" of an operand that runs along rows. */
static void print_parameter(
        gb_cl_row_writer *rows, int k, const gb_operand *operand, const char *missing)
{
    gb_cl_text *t = &rows->w->text;
    gb_cl_print(t, " k%d = ", k);
    if (operand->type == GB_UNDEF)
        gb_cl_print(t, "%s", missing);
    else
        gb_cl_rows_load(rows, operand);
    gb_cl_print(t, ";");
}

/* GB_PREPARE: k0 the mean, k1 = 1 / sqrt(variance + epsilon) */
static void print_statistics(
        gb_cl_row_writer *rows, const gb_operand *mean, const gb_operand *variance, float epsilon)
{
    gb_cl_text *t = &rows->w->text;
    gb_cl_print(t, "#define GB_PREPARE");
    print_parameter(rows, 0, mean, "0.0f");
    gb_cl_print(t, " k1 = gb_inverse_root(");
    gb_cl_rows_load(rows, variance);
    gb_cl_print(t, " + as_float((int)p[%u]));\n", gb_cl_float(rows->w, epsilon));
}

static gb_cl_row_writer writer_of(gb_program *program, gb_step *step, const gb_cl_rows_form *form,
        const gb_two_pass_problem *problem)
{
    return (gb_cl_row_writer){.program = program,
            .described = step,
            .space = &problem->space,
            .form = form,
            .problem = problem,
            .uses_math = problem->kind == GB_TWO_PASS_LOG_SOFTMAX};
}

static gb_status add(gb_program *program, gb_step *step, const gb_cl_rows_form *form,
        const gb_two_pass_problem *problem)
{
    gb_cl_row_writer rows = writer_of(program, step, form, problem);
    return gb_cl_rows_add(&rows);
}

static gb_status begin(
        gb_program *program, const char *kernel, double work, const gb_op *op, gb_step **step)
{
    GB_TRY(gb_program_begin(program, kernel, step));
    (*step)->work = work * (double)gb_tensor_count(gb_op_input(op, 0));
    return GB_SUCCESS;
}

/* SoftMaxBackward, LogSoftmaxBackward ----------------------------------------------------------- */

static void fold_softmax(gb_cl_row_writer *rows)
{
    bool log = two_pass_of(rows)->kind == GB_TWO_PASS_LOG_SOFTMAX;
    print_fold(rows, log ? " GB_A += x0;" : " GB_A += x0 * x1;");
}

static void finish_softmax(gb_cl_row_writer *rows)
{
    gb_cl_print(&rows->w->text, "#define GB_FINISH k0 = a;\n");
}

static void result_softmax(gb_cl_row_writer *rows)
{
    bool log = two_pass_of(rows)->kind == GB_TWO_PASS_LOG_SOFTMAX;
    print_result(rows, "", log ? "x0 - gb_exp(x1) * k0" : "x1 * (x0 - k0)");
}

static const gb_cl_rows_form softmax_form = {
        .fold = fold_softmax, .finish = finish_softmax, .result = result_softmax, .n_values = 1};

static gb_status lower_softmax_backward(gb_program *program, const gb_group *group)
{
    gb_two_pass_problem problem = {0};
    gb_step *step;
    GB_TRY(begin(
            program, "softmax_backward", 12, gb_program_graph(program)->ops[group->anchor], &step));
    GB_TRY(gb_softmax_backward_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_two_pass_problem_print, &problem));
    return add(program, step, &softmax_form, &problem);
}

/* PReLUBackward --------------------------------------------------------------------------------- */

static void prepare_prelu(gb_cl_row_writer *rows)
{
    const gb_prelu_backward_problem *problem = rows->problem;
    gb_cl_print(&rows->w->text, "#define GB_PREPARE");
    print_parameter(rows, 0, &problem->slope, "0.0f");
    gb_cl_print(&rows->w->text, "\n");
}

static void fold_prelu(gb_cl_row_writer *rows)
{
    print_fold(rows, " GB_A += x0 > 0.0f ? 0.0f : x0 * x1;");
}

static void finish_prelu(gb_cl_row_writer *rows)
{
    const gb_prelu_backward_problem *problem = rows->problem;
    gb_cl_print(&rows->w->text, "#define GB_FINISH GB_ONCE");
    gb_cl_rows_store(rows, &problem->diff_slope, "a");
    gb_cl_print(&rows->w->text, "\n");
}

static void result_prelu(gb_cl_row_writer *rows)
{
    print_result(rows, "", "x0 > 0.0f ? x1 : x1 * k0");
}

static const gb_cl_rows_form prelu_form = {.prepare = prepare_prelu,
        .fold = fold_prelu,
        .finish = finish_prelu,
        .result = result_prelu,
        .n_values = 1};

static gb_status lower_prelu_backward(gb_program *program, const gb_group *group)
{
    gb_prelu_backward_problem problem = {0};
    gb_step *step;
    GB_TRY(begin(
            program, "prelu_backward", 12, gb_program_graph(program)->ops[group->anchor], &step));
    GB_TRY(gb_prelu_backward_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_prelu_backward_problem_print, &problem));
    return add(program, step, &prelu_form, &problem.two_pass);
}

/* Batch norm ------------------------------------------------------------------------------------ */

static void fold_batch_norm(gb_cl_row_writer *rows)
{
    gb_cl_print_moments(rows, &two_pass_of(rows)->in[0]);
}

/* momentum old + (1 - momentum) batch */
static void print_running(
        gb_cl_row_writer *rows, const gb_operand *old, const char *batch, const gb_operand *output)
{
    const gb_batch_norm_problem *problem = rows->problem;
    gb_cl_writer *w = rows->w;
    gb_cl_print(&w->text, " { GB_R old = ");
    gb_cl_rows_load(rows, old);
    gb_cl_print(&w->text,
            "; float kept = as_float((int)p[%u]); GB_R v = kept * old + (1.0f - kept) * %s;",
            gb_cl_float(w, problem->momentum), batch);
    gb_cl_rows_store(rows, output, "v");
    gb_cl_print(&w->text, " }");
}

static void finish_batch_norm(gb_cl_row_writer *rows)
{
    const gb_batch_norm_problem *problem = rows->problem;
    gb_cl_writer *w = rows->w;
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "#define GB_FINISH GB_R mean = gb_mean(a, (float)GB_TOTAL);"
                   " GB_R variance = gb_mean(b, (float)GB_TOTAL); GB_ONCE {");
    print_running(rows, &problem->mean, "mean", &problem->outputs[0]);
    print_running(rows, &problem->variance, "variance", &problem->outputs[1]);
    gb_cl_rows_store(rows, &problem->outputs[2], "mean");
    gb_cl_rows_store(rows, &problem->outputs[3], "variance");
    gb_cl_print(t, " } k0 = mean;");
    print_parameter(rows, 1, &problem->gamma, "1.0f");
    gb_cl_print(t, " k1 *= gb_inverse_root(variance + as_float((int)p[%u]));",
            gb_cl_float(w, problem->epsilon));
    print_parameter(rows, 2, &problem->beta, "0.0f");
    gb_cl_print(t, "\n");
}

static void result_batch_norm(gb_cl_row_writer *rows)
{
    bool relu = two_pass_of(rows)->kind == GB_TWO_PASS_BATCH_NORM_RELU;
    print_result(rows, " GB_FLOATS y = (x0 - k0) * k1 + k2;", relu ? "gb_max(0.0f, y)" : "y");
}

static const gb_cl_rows_form batch_norm_form = {.fold = fold_batch_norm,
        .finish = finish_batch_norm,
        .result = result_batch_norm,
        .n_values = 3};

static void prepare_batch_norm(gb_cl_row_writer *rows)
{
    const gb_batch_norm_problem *problem = rows->problem;
    print_statistics(rows, &problem->mean, &problem->variance, problem->epsilon);
}

/* Gradients that a ReLU stopped count as 0. */
static const char *stop(const gb_cl_row_writer *rows, int sign)
{
    if (two_pass_of(rows)->in[sign].type == GB_UNDEF)
        return "";
    return sign == 2 ? " x1 = x2 > 0.0f ? x1 : 0.0f;" : " x0 = x1 > 0.0f ? x0 : 0.0f;";
}

static void fold_batch_norm_backward(gb_cl_row_writer *rows)
{
    print_fold(rows, two_pass_of(rows)->in[2].type == GB_UNDEF
                             ? " GB_A += x1;"
                               " GB_B += x1 * ((x0 - k0) * k1);"
                             : " x1 = x2 > 0.0f ? x1 : 0.0f; GB_A += x1;"
                               " GB_B += x1 * ((x0 - k0) * k1);");
}

static void finish_batch_norm_backward(gb_cl_row_writer *rows)
{
    const gb_batch_norm_problem *problem = rows->problem;
    gb_cl_text *t = &rows->w->text;
    gb_cl_print(t, "#define GB_FINISH GB_ONCE {");
    gb_cl_rows_store(rows, &problem->outputs[0], "b");
    if (problem->outputs[1].type != GB_UNDEF)
        gb_cl_rows_store(rows, &problem->outputs[1], "a");
    gb_cl_print(t, " }");
    print_parameter(rows, 2, &problem->gamma, "1.0f");
    gb_cl_print(t, " k2 *= k1;"
                   " k3 = gb_mean(a, (float)GB_TOTAL);"
                   " k4 = gb_mean(b, (float)GB_TOTAL);\n");
}

static void result_batch_norm_backward(gb_cl_row_writer *rows)
{
    print_inputs(rows, "GB_APPLY");
    gb_cl_print(&rows->w->text, "%s GB_FLOATS y = (x0 - k0) * k1;", stop(rows, 2));
    gb_cl_rows_store(rows, &two_pass_of(rows)->out, "k2 * (x1 - (y * k4 + k3))");
    gb_cl_print(&rows->w->text, "\n");
}

static const gb_cl_rows_form batch_norm_backward_form = {.prepare = prepare_batch_norm,
        .fold = fold_batch_norm_backward,
        .finish = finish_batch_norm_backward,
        .result = result_batch_norm_backward,
        .n_values = 5};

/* With the statistics as constants nothing is summed. */
static void fold_nothing(gb_cl_row_writer *rows)
{
    print_fold(rows, "");
}

static void finish_nothing(gb_cl_row_writer *rows)
{
    gb_cl_print(&rows->w->text, "#define GB_FINISH\n");
}

static void result_scale(gb_cl_row_writer *rows)
{
    print_result(rows, stop(rows, 1), "x0 * k1");
}

static const gb_cl_rows_form scale_form = {.prepare = prepare_batch_norm,
        .fold = fold_nothing,
        .finish = finish_nothing,
        .result = result_scale,
        .n_values = 2};

static gb_status lower_batch_norm(gb_program *program, const gb_group *group)
{
    const gb_batch_norm_parts *parts = group->parts;
    const gb_op *op = parts ? parts->norm : gb_program_graph(program)->ops[group->anchor];
    const gb_cl_rows_form *form = &batch_norm_form;
    gb_batch_norm_problem problem = {0};
    gb_step *step;
    GB_TRY(begin(program, "batch_norm", 12, op, &step));
    GB_TRY(gb_batch_norm_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_batch_norm_problem_print, &problem));
    if (problem.two_pass.kind == GB_TWO_PASS_BATCH_NORM_BACKWARD)
        form = &batch_norm_backward_form;
    if (problem.two_pass.kind == GB_TWO_PASS_SCALE)
        form = &scale_form;
    return add(program, step, form, &problem.two_pass);
}

/* LayerNormBackward ----------------------------------------------------------------------------- */

static void prepare_layer_norm(gb_cl_row_writer *rows)
{
    const gb_layer_norm_backward_problem *problem = rows->problem;
    print_statistics(rows, &problem->mean, &problem->variance, problem->epsilon);
}

static const char *weighted(const gb_cl_row_writer *rows)
{
    return two_pass_of(rows)->in[2].type == GB_UNDEF ? "" : " x1 *= x2;";
}

static void fold_layer_norm(gb_cl_row_writer *rows)
{
    bool gamma = two_pass_of(rows)->in[2].type != GB_UNDEF;
    print_fold(rows, gamma ? " x1 *= x2; GB_A += x1;"
                             " GB_B += x1 * ((x0 - k0) * k1);"
                           : " GB_A += x1;"
                             " GB_B += x1 * ((x0 - k0) * k1);");
}

static void finish_layer_norm(gb_cl_row_writer *rows)
{
    gb_cl_print(&rows->w->text, "#define GB_FINISH k2 = gb_mean(a, (float)GB_TOTAL);"
                                " k3 = gb_mean(b, (float)GB_TOTAL);\n");
}

static void result_layer_norm(gb_cl_row_writer *rows)
{
    print_inputs(rows, "GB_APPLY");
    gb_cl_print(&rows->w->text, "%s GB_FLOATS y = (x0 - k0) * k1;", weighted(rows));
    gb_cl_rows_store(rows, &two_pass_of(rows)->out, "k1 * ((x1 - k2) - y * k3)");
    gb_cl_print(&rows->w->text, "\n");
}

static const gb_cl_rows_form layer_norm_form = {.prepare = prepare_layer_norm,
        .fold = fold_layer_norm,
        .finish = finish_layer_norm,
        .result = result_layer_norm,
        .n_values = 4};

/* Gradients of gamma and beta: sums over all rows, in a space where what was kept is reduced. */
static void fold_gradients(gb_cl_row_writer *rows)
{
    const gb_layer_norm_backward_problem *problem = rows->problem;
    gb_cl_text *t = &rows->w->text;
    gb_cl_print(t, "#define GB_START 0.0f\n#define GB_JOIN(p, q) (p + q)\n");
    if (rows->stage == GB_CL_STAGE_JOIN)
        return;
    gb_cl_print(t, "#define GB_FOLD");
    print_input(rows, 0);
    print_input(rows, 1);
    gb_cl_print(t, " GB_FLOATS mean = ");
    gb_cl_rows_load(rows, &problem->mean);
    gb_cl_print(t, "; GB_FLOATS scale = gb_inverse_root(");
    gb_cl_rows_load(rows, &problem->variance);
    gb_cl_print(t, " + as_float((int)p[%u])); GB_A += x1 * ((x0 - mean) * scale); GB_B += x1;\n",
            gb_cl_float(rows->w, problem->epsilon));
}

static void finish_gradients(gb_cl_row_writer *rows)
{
    static const char *const sums[] = {"a", "b"};
    const gb_layer_norm_backward_problem *problem = rows->problem;
    gb_cl_text *t = &rows->w->text;
    gb_cl_print(t, "#define GB_FINISH GB_ONCE {");
    for (int i = 0; i < problem->n_gradients; i++) {
        const gb_logical_tensor *tensor = &problem->gradients[i];
        gb_cl_rows_store_numbered(rows, tensor, problem->slots[i], problem->order, sums[i]);
    }
    gb_cl_print(t, " }\n");
}

static const gb_cl_rows_form gradients_form = {.fold = fold_gradients, .finish = finish_gradients};

static gb_reduced_space exchange(const gb_reduced_space *space)
{
    gb_reduced_space other = *space;
    other.n_kept = space->n_reduced;
    other.n_reduced = space->n_kept;
    memcpy(other.kept, space->reduced, sizeof other.kept);
    memcpy(other.reduced, space->kept, sizeof other.reduced);
    other.n = gb_product(space->n_kept, space->kept, space->dims);
    return other;
}

/* The gradients of gamma and beta come first: diff_src may be written over what they read. Sums of parts are
 * joined beside diff_src. */
static gb_status lower_layer_norm_backward(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_layer_norm_backward_problem problem = {0};
    gb_step *step;
    GB_TRY(begin(program, "layer_norm_backward", 16, op, &step));
    GB_TRY(gb_layer_norm_backward_describe(program, group, step, &problem));
    GB_TRY(gb_layer_norm_backward_copy(program, step, gb_cl_add_dense_copy, &problem));
    GB_TRY(gb_step_describe(program, step, gb_layer_norm_backward_problem_print, &problem));
    gb_cl_row_writer rows = writer_of(program, step, &layer_norm_form, &problem.two_pass);
    gb_reduced_space across = exchange(&problem.two_pass.space);
    gb_cl_row_writer gradients = writer_of(program, step, &gradients_form, &problem.two_pass);
    gradients.space = &across;
    gradients.separate = gradients.joins_later = true;
    if (problem.n_gradients)
        GB_TRY(gb_cl_rows_add(&gradients));
    if (gradients.splits > 1)
        rows.others = &gradients;
    return gb_cl_rows_add(&rows);
}

const gb_cl_lowering gb_cl_lowering_softmax_backward = {
        .supports = gb_all_types_float, .lower = lower_softmax_backward};
const gb_cl_lowering gb_cl_lowering_prelu_backward = {
        .supports = gb_all_types_float, .lower = lower_prelu_backward};
const gb_cl_lowering gb_cl_lowering_batch_norm = {
        .supports = gb_all_types_float, .lower = lower_batch_norm};
const gb_cl_lowering gb_cl_lowering_layer_norm_backward = {
        .supports = gb_all_types_float, .lower = lower_layer_norm_backward};
const gb_cl_region_lowering gb_cl_lowering_batch_norm_relu = {
        .region = &gb_region_batch_norm_relu, .lower = lower_batch_norm};
const gb_cl_region_lowering gb_cl_lowering_relu_batch_norm_backward = {
        .region = &gb_region_relu_batch_norm_backward, .lower = lower_batch_norm};
