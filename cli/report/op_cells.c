/* The table of --list-ops: every sample op is compiled, executed and compared with the reference,
 * so that a cell is shown because it runs. */
#include "cli/report/op_cells.h"

#include "cli/options/combos.h"
#include "cli/options/message.h"
#include "cli/options/text.h"

#include <graphbench/graphbench_tools.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const gb_data_type columns[] = {
        GB_F32, GB_BF16, GB_F16, GB_S32, GB_S8, GB_U8, GB_S4, GB_U4, GB_F8_E5M2, GB_F8_E4M3};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

/* One op kind. Cells are forms times combinations of types, by the type of the data. */
typedef struct kind_cells {
    int legal[N_COLUMNS], ran[N_COLUMNS];
    gb_text form, types; /* of the form being run */
    gb_text forms, row;  /* of forms with equal types, not written yet */
} kind_cells;

typedef struct op_cells {
    gb_session *session; /* lent */
    gb_settings settings;
    int n_legal, n_ran;
    gb_text overview, details, failures;
} op_cells;

static gb_status run_graph(op_cells *cells, gb_graph *graph, const gb_op *op, bool *ran)
{
    gb_op_kind kind;
    gb_op_get_kind(op, &kind);
    const char *name = gb_op_kind_name(kind);
    gb_case test = {.file = name, .path = name, .graph = graph};
    gb_case_result result = {0};
    gb_cli_combo_get(&cells->settings, &(gb_combo){{0}}, test.choice);
    LIB_TRY(gb_graph_add_op(graph, op));
    LIB_TRY(gb_graph_infer_shapes(graph));
    gb_status status = gb_cli_run_case(cells->session, &cells->settings, &test, &result);
    *ran = status == GB_SUCCESS &&
           (result.status == CASE_PASSED || result.status == CASE_MISTRUSTED);
    if (!*ran)
        gb_cli_text_add(&cells->failures, "\n%s (%s) does not run: %s\n", name, gb_op_get_name(op),
                status != GB_SUCCESS ? gb_cli_failure()
                : result.reason      ? result.reason
                                     : "wrong results");
    gb_cli_result_free(&result);
    return GB_SUCCESS;
}

static gb_status run_sample(op_cells *cells, const gb_op *op, bool *ran)
{
    gb_graph *graph;
    LIB_TRY(gb_graph_create(&graph, cells->settings.engine_kind));
    gb_status status = run_graph(cells, graph, op, ran);
    gb_graph_destroy(graph);
    return status;
}

static gb_logical_tensor op_cells_port_of(const gb_op *op, size_t i)
{
    size_t n_inputs = gb_op_get_input_num(op);
    gb_logical_tensor tensor;
    if (i < n_inputs)
        gb_op_get_input(op, i, &tensor);
    else
        gb_op_get_output(op, i - n_inputs, &tensor);
    return tensor;
}

/* The type where all tensors have the same, else those of inputs and outputs. */
static void write_types(const gb_op *op, gb_text *text)
{
    size_t n_inputs = gb_op_get_input_num(op), n = n_inputs + gb_op_get_output_num(op);
    gb_data_type first = op_cells_port_of(op, 0).data_type;
    bool same = true;
    for (size_t i = 1; i < n; i++)
        same = same && op_cells_port_of(op, i).data_type == first;
    for (size_t i = 0; i < (same ? 1 : n); i++)
        gb_cli_text_add(text, "%s%s",
                i == n_inputs ? " -> "
                : i           ? ", "
                              : "",
                gb_data_type_name(op_cells_port_of(op, i).data_type));
}

static int column_of(const gb_op *op)
{
    gb_data_type type = op_cells_port_of(op, 0).data_type;
    if (type == GB_BOOLEAN) /* a condition */
        type = op_cells_port_of(op, 1).data_type;
    int column = 0;
    while (column < N_COLUMNS - 1 && columns[column] != type)
        column++;
    return column;
}

/* Writes the row of forms that have their types in common. */
static void flush_row(op_cells *cells, gb_op_kind kind, kind_cells *own)
{
    if (own->row.length)
        gb_cli_text_add(&cells->details, "| %s | %s | %s |\n", gb_op_kind_name(kind),
                gb_cli_text_get(&own->forms), gb_cli_text_get(&own->row));
    gb_cli_text_clear(&own->forms);
    gb_cli_text_clear(&own->row);
}

static void end_form(op_cells *cells, gb_op_kind kind, kind_cells *own)
{
    if (!own->types.length)
        return;
    if (strcmp(gb_cli_text_get(&own->types), gb_cli_text_get(&own->row)) != 0) {
        flush_row(cells, kind, own);
        gb_cli_text_add(&own->row, "%s", own->types.data);
    }
    const char *separator = own->forms.length ? "; " : "";
    gb_cli_text_add(&own->forms, "%s%s", separator, gb_cli_text_get(&own->form));
    gb_cli_text_clear(&own->types);
}

static gb_status add_sample(op_cells *cells, const gb_op *op, gb_op_kind kind, kind_cells *own)
{
    bool ran = false;
    int column = column_of(op);
    CLI_TRY(run_sample(cells, op, &ran));
    if (strcmp(gb_op_get_name(op), gb_cli_text_get(&own->form)) != 0) {
        end_form(cells, kind, own);
        gb_cli_text_clear(&own->form);
        gb_cli_text_add(&own->form, "%s", gb_op_get_name(op));
    }
    if (own->types.length)
        gb_cli_text_add(&own->types, "; ");
    if (!ran)
        gb_cli_text_add(&own->types, "NOT ");
    write_types(op, &own->types);
    own->legal[column]++;
    own->ran[column] += ran;
    return GB_SUCCESS;
}

static void write_overview(op_cells *cells, gb_op_kind kind, const kind_cells *own)
{
    const char *name = gb_op_kind_name(kind);
    gb_cli_text_add(&cells->overview, "| %s | %s |", name,
            strstr(name, "Backward") ? "backward" : "forward");
    for (int c = 0; c < N_COLUMNS; c++) {
        if (own->ran[c] < own->legal[c])
            gb_cli_text_add(&cells->overview, " %d of %d |", own->ran[c], own->legal[c]);
        else if (own->legal[c])
            gb_cli_text_add(&cells->overview, " %d |", own->legal[c]);
        else
            gb_cli_text_add(&cells->overview, " |");
        cells->n_legal += own->legal[c];
        cells->n_ran += own->ran[c];
    }
    gb_cli_text_add(&cells->overview, "\n");
}

static gb_status add_kind(op_cells *cells, gb_op_kind kind)
{
    kind_cells own = {0};
    gb_status status = GB_SUCCESS;
    for (size_t i = 0, n = gb_op_sample_num(kind); i < n && status == GB_SUCCESS; i++) {
        gb_op *op;
        status = gb_op_sample_create(&op, kind, i);
        if (status != GB_SUCCESS) {
            gb_cli_fail_library(status);
            break;
        }
        status = add_sample(cells, op, kind, &own);
        gb_op_destroy(op);
    }
    end_form(cells, kind, &own);
    flush_row(cells, kind, &own);
    write_overview(cells, kind, &own);
    gb_text *texts[] = {&own.form, &own.types, &own.forms, &own.row};
    for (int i = 0; i < 4; i++)
        gb_cli_text_free(texts[i]);
    return status;
}

static void print_cells(const op_cells *cells)
{
    printf("\n## What runs\n\n"
           "Found by running: each op alone, in several forms (with and without optional tensors, "
           "main modes) and in every\ncombination of data types that its schema allows, is "
           "compiled, executed and compared with the reference. %d of %d\ncells run.\n\n"
           "The overview counts cells by the type of the op's data (its first input, of Select "
           "the second). A number: so many\nlegal cells, and all of them run; nothing: no legal "
           "cell. Wildcard and End are never executed.\n\n| op | direction |",
            cells->n_ran, cells->n_legal);
    for (int c = 0; c < N_COLUMNS; c++)
        printf(" %s |", gb_data_type_name(columns[c]));
    printf("\n|:--|:--|");
    for (int c = 0; c < N_COLUMNS; c++)
        printf("--:|");
    printf("\n%s\nThe combinations: one type where all tensors have it, else those of inputs and "
           "outputs.\n\n| op | forms | types |\n|:--|:--|:--|\n%s%s",
            gb_cli_text_get(&cells->overview), gb_cli_text_get(&cells->details),
            gb_cli_text_get(&cells->failures));
}

gb_status gb_cli_write_op_cells(gb_session *session, const gb_settings *settings, bool *all_ran)
{
    op_cells cells = {.session = session};
    gb_cli_settings_init(&cells.settings);
    cells.settings.engine_kind = settings->engine_kind;
    cells.settings.engine_index = settings->engine_index;
    gb_status status = GB_SUCCESS;
    for (int kind = 0; kind < GB_OP_LAST && status == GB_SUCCESS; kind++)
        status = add_kind(&cells, (gb_op_kind)kind);
    if (status == GB_SUCCESS)
        print_cells(&cells);
    *all_ran = status == GB_SUCCESS && cells.n_ran == cells.n_legal;
    gb_cli_settings_free(&cells.settings);
    gb_cli_text_free(&cells.overview);
    gb_cli_text_free(&cells.details);
    gb_cli_text_free(&cells.failures);
    return status;
}
