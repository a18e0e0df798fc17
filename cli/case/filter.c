/* --filter: which cases run. */
#include "cli/case/filter.h"

#include "cli/options/case_name.h"
#include "cli/options/message.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const char *const prefixes[] = {
        [FILTER_CASE] = "", [FILTER_OP] = "op:", [FILTER_PATTERN] = "pattern:"};

static gb_filter_sort sort_of(const char *word)
{
    for (int sort = FILTER_PATTERN; sort > FILTER_CASE; sort--)
        if (strncmp(word, prefixes[sort], strlen(prefixes[sort])) == 0)
            return (gb_filter_sort)sort;
    return FILTER_CASE;
}

bool gb_cli_filter_fits(
        const gb_settings *settings, gb_filter_sort sort, size_t n_texts, const char *const *texts)
{
    bool asked = false;
    for (size_t i = 0; i < settings->n_filters; i++) {
        const char *word = settings->filters[i];
        if (sort_of(word) != sort)
            continue;
        asked = true;
        for (size_t t = 0; t < n_texts; t++)
            if (fnmatch(word + strlen(prefixes[sort]), texts[t], 0) == 0)
                return true;
    }
    return !asked;
}

static bool line_fits(const char *line, const char *glob)
{
    char *name = gb_cli_case_name(line);
    bool fits = fnmatch(glob, line, 0) == 0 || fnmatch(glob, name, 0) == 0;
    free(name);
    return fits;
}

bool gb_cli_case_fits(const gb_case *test, const char *glob)
{
    return fnmatch(glob, test->file, 0) == 0 || line_fits(test->repro, glob) ||
           line_fits(test->arguments, glob);
}

bool gb_cli_filter_fits_case(const gb_settings *settings, const gb_case *test)
{
    bool asked = false;
    for (size_t i = 0; i < settings->n_filters; i++) {
        if (sort_of(settings->filters[i]) != FILTER_CASE)
            continue;
        asked = true;
        if (gb_cli_case_fits(test, settings->filters[i]))
            return true;
    }
    return !asked;
}

gb_status gb_cli_filter_fits_ops(const gb_settings *settings, const gb_case *test, bool *fits)
{
    size_t n = gb_graph_get_op_num(test->graph);
    const char **kinds = gb_cli_realloc(NULL, n, sizeof *kinds);
    gb_status status = GB_SUCCESS;
    for (size_t i = 0; i < n && status == GB_SUCCESS; i++) {
        const gb_op *op;
        gb_op_kind kind;
        status = gb_graph_get_op(test->graph, i, &op);
        if (status == GB_SUCCESS)
            status = gb_op_get_kind(op, &kind);
        if (status == GB_SUCCESS)
            kinds[i] = gb_op_kind_name(kind);
    }
    *fits = status == GB_SUCCESS && gb_cli_filter_fits(settings, FILTER_OP, n, kinds);
    free(kinds);
    return status == GB_SUCCESS ? status : gb_cli_fail_library(status);
}
