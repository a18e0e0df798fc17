/* graph-bench env: what the machine is, and whether it can be timed on. */
#include "cli/commands/arguments.h"
#include "cli/commands/files.h"
#include "cli/options/message.h"
#include "cli/report/doctor.h"
#include "cli/report/record.h"

#include <omp.h>
#include <stdio.h>

enum { OPTION_JSON, OPTION_STRICT };

const gb_command_option gb_cli_env_options[] = {
        [OPTION_JSON] = {"json", NULL, NULL, "as JSON"},
        [OPTION_STRICT] = {"strict-env", NULL, NULL,
                "exit with status 1 when times of this machine cannot be trusted"},
        {0},
};

static void print_text(const gb_diagnosis *diagnosis)
{
    static const char *const words[] = {
            [CHECK_GOOD] = "good", [CHECK_DOUBTFUL] = "doubt", [CHECK_BAD] = "BAD"};
    for (size_t i = 0; i < diagnosis->n; i++) {
        const gb_check *check = &diagnosis->checks[i];
        printf("%-5s  %-12s %s", words[check->grade], check->name, check->finding);
        if (check->grade != CHECK_GOOD)
            printf("; %s", check->advice);
        putchar('\n');
    }
}

int gb_cli_command_env(const gb_command *command, int argc, char **argv)
{
    gb_arguments arguments;
    int status = EXIT_USAGE;
    bool good = gb_cli_arguments_read(command, argc, argv, false, &arguments);
    if (good && arguments.n_words > 0) {
        gb_cli_print_error("env", "\"%.80s\" is no option", arguments.words[0]);
        good = false;
    }
    if (!good) {
        gb_cli_arguments_free(&arguments);
        return status;
    }
    gb_diagnosis diagnosis;
    gb_cli_diagnose(omp_get_max_threads(), &diagnosis);
    if (arguments.values[OPTION_JSON]) {
        gb_roof none = {0};
        json_object *document = gb_cli_environment_record(argc, argv, NULL, &none);
        json_object_object_add(document, "doctor", gb_cli_diagnosis_record(&diagnosis));
        puts(json_object_to_json_string_ext(document, JSON_C_TO_STRING_PRETTY |
                                                              JSON_C_TO_STRING_SPACED |
                                                              JSON_C_TO_STRING_NOSLASHESCAPE));
        json_object_put(document);
    } else {
        print_text(&diagnosis);
    }
    bool bad = gb_cli_diagnosis_is_bad(&diagnosis);
    status = arguments.values[OPTION_STRICT] && bad ? EXIT_CASE_FAILED : EXIT_GOOD;
    if (fflush(stdout) != 0 || ferror(stdout))
        status = EXIT_UNWRITTEN;
    gb_cli_arguments_free(&arguments);
    return status;
}
