/* Loads the graph of a case and rewrites it, step by step. */
#include "cli/case/case.h"

#include "cli/case/model.h"
#include "cli/case/rewrite.h"
#include "cli/options/message.h"

#include <stdlib.h>

static void print_note(void *context, const char *note)
{
    const gb_case *test = context;
    gb_cli_print_warning(test->file, "%s", note);
}

gb_status gb_cli_case_load(gb_case *test)
{
    if (gb_cli_is_model(test->path))
        CLI_TRY(gb_cli_model_load(test));
    else
        LIB_TRY(gb_graph_load(&test->graph, test->path, print_note, test));
    if (gb_graph_get_op_num(test->graph) == 0)
        return gb_cli_fail(GB_INVALID_GRAPH, "%s: the graph has no ops", test->file);
    return GB_SUCCESS;
}

void gb_cli_case_unload(gb_case *test)
{
    gb_graph_destroy(test->graph);
    free(test->outside);
    test->graph = NULL;
    test->outside = NULL;
    test->n_model_inputs = 0;
}

static gb_status set_fpmath(const gb_case *test)
{
    const gb_alternative *choice = test->choice[AXIS_FPMATH];
    if (!*choice->text)
        return GB_SUCCESS;
    LIB_TRY(gb_graph_set_fpmath_mode(test->graph, choice->fpmath, choice->apply_to_int));
    return GB_SUCCESS;
}

static gb_status rewrite_all(gb_rewrite *rewrite)
{
    CLI_TRY(gb_cli_rewrite_attrs(rewrite)); /* some tell shapes */
    CLI_TRY(gb_cli_rewrite_shapes(rewrite));
    CLI_TRY(gb_cli_rewrite_kinds(rewrite));
    CLI_TRY(gb_cli_rewrite_infer(rewrite));
    CLI_TRY(gb_cli_rewrite_layouts(rewrite));
    CLI_TRY(set_fpmath(rewrite->test));
    return gb_cli_rewrite_types(rewrite);
}

gb_status gb_cli_case_verify(const gb_case *test)
{
    LIB_TRY(gb_graph_verify(test->graph));
    return GB_SUCCESS;
}

gb_status gb_cli_case_rewrite(gb_case *test)
{
    gb_rewrite rewrite;
    gb_cli_rewrite_init(&rewrite, test);
    gb_status status = rewrite_all(&rewrite);
    gb_cli_rewrite_free(&rewrite);
    return status;
}
