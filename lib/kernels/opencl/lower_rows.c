/* Reductions, SoftMax, LogSoftmax, LayerNorm, RMSNorm and GroupNorm. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/rows.h"
#include "kernels/plan/reduction_problem.h"
#include "kernels/plan/row_problem.h"

static gb_status begin(
        gb_program *program, const gb_group *group, const char *kernel, double work, gb_step **step)
{
    GB_TRY(gb_program_begin(program, kernel, step));
    (*step)->work = work * (double)gb_tensor_count(
                                   gb_op_input(gb_program_graph(program)->ops[group->anchor], 0));
    return GB_SUCCESS;
}

/* Reductions ----------------------------------------------------------------------------------- */

static const gb_cl_reduce_text reductions[] = {
        [GB_REDUCE_SUM] = {"0.0f", "GB_A + x", "p + q"},
        [GB_REDUCE_SUM_ABS] = {"0.0f", "GB_A + fabs(x)", "p + q"},
        [GB_REDUCE_SUM_SQUARE] = {"0.0f", "GB_A + x * x", "p + q"},
        [GB_REDUCE_PROD] = {"1.0f", "GB_A * x", "p * q"},
        [GB_REDUCE_MAX] = {"-INFINITY", "gb_larger(GB_A, x)", "gb_larger(p, q)"},
        [GB_REDUCE_MIN] = {"INFINITY", "gb_smaller(GB_A, x)", "gb_smaller(p, q)"},
};

/* Of a window, where NaN never wins. */
static const gb_cl_reduce_text pool_maximum = {"-INFINITY", "gb_max(x, GB_A)", "gb_max(p, q)"};

const gb_cl_reduce_text *gb_cl_reduce_text_of(gb_reduce_kind kind)
{
    return &reductions[kind];
}

static void fold_reduction(gb_cl_row_writer *rows)
{
    const gb_reduction_problem *problem = rows->problem;
    const gb_cl_reduce_text *text =
            problem->at_least_empty ? &pool_maximum : &reductions[problem->kind];
    gb_cl_text *t = &rows->w->text;
    gb_cl_print(t, "#define GB_START %s\n#define GB_JOIN(p, q) (%s)\n", text->start, text->join);
    if (rows->stage == GB_CL_STAGE_JOIN)
        return;
    gb_cl_print(t, "#define GB_FOLD GB_FLOATS x = ");
    gb_cl_rows_load(rows, &problem->src);
    gb_cl_print(t, "; GB_A = %s;\n", text->fold);
}

void gb_cl_print_reduction_finish(gb_cl_writer *w, const gb_reduction_problem *problem, int64_t n)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "#define GB_FINISH GB_ONCE { GB_R v = a;");
    if (n == 0)
        gb_cl_print(t, " v = as_float((int)p[%u]);", gb_cl_float(w, problem->empty));
    else if (problem->at_least_empty)
        gb_cl_print(t, " v = gb_larger(v, as_float((int)p[%u]));", gb_cl_float(w, problem->empty));
    if (problem->zero_points != 0)
        gb_cl_print(t, " v -= as_float((int)p[%u]);", gb_cl_float(w, problem->zero_points));
    if (problem->mean)
        gb_cl_print(t, " v = gb_div(v, as_float((int)p[%u]));", gb_cl_float(w, problem->divisor));
    gb_cl_print(t, "%s GB_POST(v); }\n", problem->root ? " v = gb_sqrt(v);" : "");
}

static void finish_reduction(gb_cl_row_writer *rows)
{
    const gb_reduction_problem *problem = rows->problem;
    gb_cl_print_reduction_finish(rows->w, problem, problem->space.n);
}

static const gb_cl_rows_form reduction_form = {.fold = fold_reduction, .finish = finish_reduction};

gb_status gb_cl_add_reduction(
        gb_program *program, gb_step *step, const gb_reduction_problem *problem)
{
    gb_cl_row_writer rows = {.program = program,
            .described = step,
            .space = &problem->space,
            .pointwise = &problem->pointwise,
            .form = &reduction_form,
            .problem = problem};
    return gb_cl_rows_add(&rows);
}

static gb_status lower_reduction(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_reduction_problem problem = {0};
    gb_step *step;
    if (op->kind != GB_OP_BIAS_ADD_BACKWARD && gb_reduction_is_late(op))
        return gb_cl_lower_late_reduction(program, group);
    GB_TRY(begin(program, group, "reduction", 4, &step));
    GB_TRY(gb_reduction_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_reduction_problem_print, &problem));
    return gb_cl_add_reduction(program, step, &problem);
}

static bool reduction_supports(const gb_op *op, const char **reason)
{
    *reason = "data type";
    return gb_dtype_is_f(gb_op_input(op, 0)->data_type) &&
           gb_dtype_is_f(gb_op_output(op, 0)->data_type);
}

/* Softmax -------------------------------------------------------------------------------------- */

/* Logarithms are made of the source. */
static bool keeps_powers(const gb_cl_row_writer *rows)
{
    const gb_softmax_problem *problem = rows->problem;
    return rows->keeps && !problem->log;
}

/* A part that is -inf throughout counts as the lowest number, so that it does not spoil the row. */
static void fold_softmax(gb_cl_row_writer *rows)
{
    const gb_softmax_problem *problem = rows->problem;
    gb_cl_text *t = &rows->w->text;
    bool lowest = problem->inf_as_zero || rows->splits > 1;
    gb_cl_print(t,
            "#define GB_START %s\n#define GB_JOIN(p, q) gb_max(p, q)\n#define GB_PIVOT(a, n) (a)\n"
            "#define GB_REBASE(a, b, n) ((b) * gb_exp((a) - pivot))\n#define GB_FOLD_AGAIN",
            lowest ? "-FLT_MAX" : "-INFINITY");
    if (rows->stage == GB_CL_STAGE_JOIN) {
        gb_cl_print(t, "\n");
        return;
    }
    gb_cl_print(t, " GB_FLOATS e = gb_exp(");
    gb_cl_rows_load(rows, &problem->rows.src);
    gb_cl_print(t, " - pivot); GB_B += e;%s\n#define GB_FOLD GB_A = gb_max(",
            keeps_powers(rows) ? " GB_KEEP_LANES(e)" : "");
    gb_cl_rows_load(rows, &problem->rows.src);
    gb_cl_print(t, ", GB_A);\n");
}

static void finish_softmax(gb_cl_row_writer *rows)
{
    const gb_softmax_problem *problem = rows->problem;
    gb_cl_text *t = &rows->w->text;
    gb_cl_print(t, "#define GB_FINISH GB_R sum = b; k0 = a; k1 = %s;",
            problem->log           ? "gb_log(sum)"
            : problem->inf_as_zero ? "gb_div(1.0f, sum == 0.0f ? 1.0f : sum)"
                                   : "gb_div(1.0f, sum)");
    if (problem->stats.type != GB_UNDEF) {
        gb_cl_print(t, " GB_ONCE");
        gb_cl_rows_store(rows, &problem->stats,
                problem->inf_as_zero ? "sum == 0.0f ? 0.0f : a + gb_log(sum)" : "a + gb_log(sum)");
    }
    gb_cl_print(t, "\n");
}

static void result_softmax(gb_cl_row_writer *rows)
{
    const gb_softmax_problem *problem = rows->problem;
    gb_cl_text *t = &rows->w->text;
    if (keeps_powers(rows)) {
        gb_cl_print(t, "#define GB_APPLY GB_POST(GB_KEPT_LANES * k1);\n");
        return;
    }
    gb_cl_print(t, "#define GB_APPLY GB_FLOATS x = ");
    gb_cl_rows_load(rows, &problem->rows.src);
    gb_cl_print(t, " - k0; GB_POST(%s);\n", problem->log ? "x - k1" : "gb_exp(x) * k1");
}

static const gb_cl_rows_form softmax_form = {.fold = fold_softmax,
        .finish = finish_softmax,
        .result = result_softmax,
        .n_values = 2,
        .keeps = true};

static gb_status lower_softmax(gb_program *program, const gb_group *group)
{
    gb_softmax_problem problem = {0};
    gb_step *step;
    GB_TRY(begin(program, group, "softmax", 16, &step));
    GB_TRY(gb_softmax_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_softmax_problem_print, &problem));
    gb_cl_row_writer rows = {.program = program,
            .described = step,
            .space = &problem.rows.space,
            .pointwise = &problem.rows.pointwise,
            .form = &softmax_form,
            .problem = &problem,
            .uses_math = true};
    return gb_cl_rows_add(&rows);
}

/* Norms ---------------------------------------------------------------------------------------- */

static void fold_norm(gb_cl_row_writer *rows)
{
    const gb_norm_problem *problem = rows->problem;
    const gb_operand *src = &problem->rows.src;
    gb_cl_text *t = &rows->w->text;
    bool joins = rows->stage == GB_CL_STAGE_JOIN;
    if (!problem->root_mean_square) {
        gb_cl_print_moments(rows, src);
        return;
    }
    gb_cl_print(t, "#define GB_START 0.0f\n#define GB_JOIN(p, q) (p + q)\n");
    if (joins)
        return;
    gb_cl_print(t, "#define GB_FOLD GB_B += gb_square(");
    gb_cl_rows_load(rows, src);
    gb_cl_print(t, ");\n");
}

static void print_statistic(
        gb_cl_row_writer *rows, const gb_norm_statistic *stats, const char *value)
{
    if (stats->numbered)
        gb_cl_rows_store_numbered(
                rows, &stats->tensor, stats->operand.slot, stats->operand.strides, value);
    else
        gb_cl_rows_store(rows, &stats->operand, value);
}

static void finish_norm(gb_cl_row_writer *rows)
{
    const gb_norm_problem *problem = rows->problem;
    gb_cl_text *t = &rows->w->text;
    gb_cl_print(t,
            "#define GB_FINISH GB_R variance = gb_mean(b, (float)GB_TOTAL);"
            " k0 = %s;"
            " k1 = gb_inverse_root(variance + as_float((int)p[%u]));",
            problem->root_mean_square ? "0.0f" : "gb_mean(a, (float)GB_TOTAL)",
            gb_cl_float(rows->w, problem->epsilon));
    if (problem->has_stats) {
        gb_cl_print(t, " GB_ONCE {");
        print_statistic(rows, &problem->mean, "k0");
        print_statistic(rows, &problem->variance, "variance");
        gb_cl_print(t, " }");
    }
    gb_cl_print(t, "\n");
}

static void print_affine(
        gb_cl_row_writer *rows, const gb_norm_affine *affine, const char *operation)
{
    const gb_norm_problem *problem = rows->problem;
    gb_cl_text *t = &rows->w->text;
    if (!affine->present)
        return;
    gb_cl_print(t, " y %s ", operation);
    gb_cl_rows_load_numbered(rows, &affine->tensor, affine->slot, problem->affine_strides);
    gb_cl_print(t, ";");
}

static void result_norm(gb_cl_row_writer *rows)
{
    const gb_norm_problem *problem = rows->problem;
    gb_cl_text *t = &rows->w->text;
    gb_cl_print(t, "#define GB_APPLY GB_FLOATS y = (");
    gb_cl_rows_load(rows, &problem->rows.src);
    gb_cl_print(t, " - k0) * k1;");
    print_affine(rows, &problem->gamma, "*=");
    print_affine(rows, &problem->beta, "+=");
    gb_cl_print(t, " GB_POST(y);\n");
}

static const gb_cl_rows_form norm_form = {
        .fold = fold_norm, .finish = finish_norm, .result = result_norm, .n_values = 2};

static gb_status lower_norm(gb_program *program, const gb_group *group)
{
    gb_norm_problem problem = {0};
    gb_step *step;
    GB_TRY(begin(program, group, "norm", 12, &step));
    GB_TRY(gb_norm_describe(program, group, 1, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_norm_problem_print, &problem));
    gb_cl_row_writer rows = {.program = program,
            .described = step,
            .space = &problem.rows.space,
            .pointwise = &problem.rows.pointwise,
            .form = &norm_form,
            .problem = &problem};
    return gb_cl_rows_add(&rows);
}

const gb_cl_lowering gb_cl_lowering_reduction = {
        .supports = reduction_supports, .takes_epilogue = true, .lower = lower_reduction};
const gb_cl_lowering gb_cl_lowering_softmax = {
        .supports = gb_all_types_float, .takes_epilogue = true, .lower = lower_softmax};
const gb_cl_lowering gb_cl_lowering_norm = {
        .supports = gb_all_types_float, .takes_epilogue = true, .lower = lower_norm};
