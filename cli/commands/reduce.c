/* graph-bench reduce: a smaller graph that fails as a case does. */
#include "cli/perform/reduce.h"
#include "cli/commands/arguments.h"
#include "cli/options/exit_status.h"
#include "cli/options/message.h"
#include "cli/options/text.h"
#include "cli/perform/repro.h"
#include "cli/perform/single.h"
#include "cli/report/interrupt.h"
#include "cli/report/new_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const gb_command_option gb_cli_reduce_options[] = {
        {"o", "FILE", NULL, "the small graph; as JSON or, when FILE ends in .gbt, as text"},
        {0},
};

static int tell(const gb_reduced *reduced)
{
    if (!reduced->fails) {
        gb_cli_print_error(NULL, "reduce: the case does not fail: %s", reduced->failure);
        return EXIT_CASE_FAILED;
    }
    if (gb_cli_interrupt_signal())
        gb_cli_print_warning(NULL, "reduce: ended by signal %d (%s): the smallest graph so far",
                gb_cli_interrupt_signal(), strsignal(gb_cli_interrupt_signal()));
    printf("reduced: %zu ops to %zu, %s, %zu runs\ngraph-bench %s\n", reduced->ops_before,
            reduced->ops, reduced->failure, reduced->runs, reduced->arguments);
    return fflush(stdout) == 0 ? EXIT_GOOD : EXIT_UNWRITTEN;
}

static const int fault_statuses[] = {[REDUCE_UNWRITTEN] = EXIT_UNWRITTEN,
        [REDUCE_UNREAD] = EXIT_USAGE,
        [REDUCE_NO_FAILURE] = EXIT_CASE_FAILED};

int gb_cli_command_reduce(const gb_command *command, int argc, char **argv)
{
    (void)command;
    const char *path = NULL;
    char **words = gb_cli_realloc(NULL, (size_t)argc, sizeof(char *));
    size_t n_words = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
            path = argv[++i];
        else
            words[n_words++] = argv[i];
    }
    gb_errand errand;
    gb_status status = gb_cli_single_read(n_words, words, &errand);
    free(words);
    if (status == GB_SUCCESS && !path)
        status = gb_cli_fail(GB_INVALID_ARGUMENTS, "-o FILE is missing");
    if (status == GB_SUCCESS && !gb_cli_can_be_written(path))
        status = gb_cli_fail(
                GB_INVALID_ARGUMENTS, "%s: cannot be written: %s", path, strerror(errno));
    if (status != GB_SUCCESS) {
        gb_cli_print_error(NULL, "reduce: %s", gb_cli_failure());
        gb_cli_errand_free(&errand);
        return EXIT_USAGE;
    }
    gb_reduced reduced;
    int exit_status;
    gb_cli_trials_start();
    if (gb_cli_reduce(&errand, path, &reduced) == GB_SUCCESS) {
        exit_status = tell(&reduced);
    } else {
        gb_cli_print_error(NULL, "reduce: %s", gb_cli_failure());
        exit_status = fault_statuses[reduced.fault];
    }
    gb_cli_reduced_free(&reduced);
    gb_cli_errand_free(&errand);
    return gb_cli_interrupt_signal() ? 128 + gb_cli_interrupt_signal() : exit_status;
}
