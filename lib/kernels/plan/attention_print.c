/* Attention and its gradients as text. */
#include "kernels/plan/attention_problem.h"

#include <inttypes.h>

static void print_head(const gb_printer *printer, const char *name, int n_batch,
        const int64_t *batch_dims, int64_t queries, int64_t keys, int64_t features, int64_t columns)
{
    fprintf(printer->file, "%s over ", name);
    gb_print_sizes(printer, n_batch, batch_dims);
    fprintf(printer->file,
            ", %" PRId64 " queries, %" PRId64 " keys, %" PRId64 " features, %" PRId64 " columns:\n",
            queries, keys, features, columns);
}

/* "  Q: f32 %0 [64,1] row 8 column 1", or "  K: f32 of a source" */
static void print_operand(const gb_printer *printer, const char *name, int n_batch,
        const gb_attention_operand *operand)
{
    FILE *file = printer->file;
    fprintf(file, "  %s: %s ", name, gb_data_type_name(operand->type));
    if (operand->source) {
        fprintf(file, "of a source%s\n", operand->source->along_rows ? ", transposed" : "");
        return;
    }
    gb_print_slot(printer, operand->slot);
    fputs(" ", file);
    gb_print_strides(printer, n_batch, operand->strides);
    fprintf(file, " row %" PRId64 " column %" PRId64 "\n", operand->row_stride,
            operand->col_stride);
}

static void print_source(
        const gb_printer *printer, const char *name, const gb_attention_operand *operand)
{
    if (!operand->source)
        return;
    fprintf(printer->file, "source of %s:\n", name);
    gb_pointwise_print(printer, &operand->source->pointwise);
}

static void print_rows(const gb_printer *printer, const char *text, int n_batch,
        const int64_t *batch_dims, const bool *is_row)
{
    for (int d = 0; d < n_batch; d++)
        if (is_row[d] && batch_dims[d] > 1)
            fprintf(printer->file, "  %s along dim %d\n", text, d);
}

/* Text in front of a number that a tensor holds; nothing where there is none. */
static void print_scalar(
        const gb_printer *printer, const char *text, const gb_attention_scalar *scalar)
{
    if (!scalar->is_set)
        return;
    fprintf(printer->file, "%s%s ", text, gb_data_type_name(scalar->type));
    gb_print_slot(printer, scalar->slot);
}

static void print_causal(const gb_printer *printer, const gb_attention_causal *causal)
{
    if (!causal->is_set)
        return;
    fputs("  causal mask: where key > query", printer->file);
    print_scalar(printer, " + ", &causal->shift_up);
    print_scalar(printer, " - ", &causal->shift_down);
    print_scalar(printer, ", scores are ", &causal->fill);
    fputs("\n", printer->file);
}

static void print_stats(
        const gb_printer *printer, uint32_t slot, int n_batch, const int64_t *strides)
{
    fputs("  statistics: f32 ", printer->file);
    gb_print_slot(printer, slot);
    fputs(" ", printer->file);
    gb_print_strides(printer, n_batch + 1, strides);
    fputs("\n", printer->file);
}

static void print_program(
        const gb_printer *printer, const char *text, const gb_attention_program *program)
{
    if (program->pointwise.n_instructions == 0)
        return;
    fprintf(printer->file, "%s:\n", text);
    gb_pointwise_print(printer, &program->pointwise);
}

void gb_attention_problem_print(const gb_printer *printer, const void *attention_problem)
{
    const gb_attention_problem *problem = attention_problem;
    int n_batch = problem->n_batch;
    print_head(printer, "attention", n_batch, problem->batch_dims, problem->queries, problem->keys,
            problem->features, problem->columns);
    print_operand(printer, "Q", n_batch, &problem->q);
    print_operand(printer, "K", n_batch, &problem->k);
    print_operand(printer, "V", n_batch, &problem->v);
    print_rows(printer, "heads share K and V", n_batch, problem->batch_dims, problem->is_row);
    if (problem->scale.is_set) {
        fputs(problem->divide_by_scale ? "  Q / " : "  Q * ", printer->file);
        print_scalar(printer, "", &problem->scale);
        fputs("\n", printer->file);
    }
    print_causal(printer, &problem->causal);
    if (problem->inf_as_zero)
        fputs("  rows of -inf have weights 0\n", printer->file);
    if (problem->has_stats)
        print_stats(printer, problem->stats_slot, n_batch, problem->stats_strides);
    if (problem->over_queries)
        fprintf(printer->file, "  sums over the queries, results are %s\n",
                problem->keys_last ? "columns x keys" : "keys x columns");
    print_source(printer, "Q", &problem->q);
    print_source(printer, "K", &problem->k);
    print_source(printer, "V", &problem->v);
    print_program(printer, "scores", &problem->before);
    print_program(printer, "scores, no key hidden", &problem->before_unmasked);
    print_program(printer, problem->exact ? "weights, of sum 1" : "weights", &problem->between);
    print_program(printer, "results", &problem->after);
}

void gb_attention_gradient_problem_print(const gb_printer *printer, const void *gradient_problem)
{
    const gb_attention_gradient_problem *problem = gradient_problem;
    const struct {
        const char *name;
        const gb_pointwise_program *pointwise;
    } programs[] = {
            {"weights and gradients of scores", &problem->score_ops},
            {"dQ", &problem->dq},
            {"dK", &problem->dk},
            {"dV", &problem->dv},
    };
    int n_batch = problem->n_batch;
    print_head(printer, "gradients of attention", n_batch, problem->batch_dims, problem->queries,
            problem->keys, problem->features, problem->columns);
    print_operand(printer, "Q", n_batch, &problem->q);
    print_operand(printer, "K", n_batch, &problem->k);
    print_operand(printer, "dO", n_batch, &problem->g);
    print_operand(printer, "V", n_batch, &problem->v);
    if (problem->has_outputs)
        print_operand(printer, "O", n_batch, &problem->o);
    print_rows(printer, "sums of dK and dV", n_batch, problem->batch_dims, problem->is_row);
    print_causal(printer, &problem->causal);
    if (problem->causal.is_set)
        print_stats(printer, problem->stats_slot, n_batch, problem->stats_strides);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        fprintf(printer->file, "%s:\n", programs[i].name);
        gb_pointwise_print(printer, programs[i].pointwise);
    }
}
