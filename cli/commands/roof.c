/* graph-bench roof: what the machine reaches at most. */
#include "cli/run/roof.h"

#include "cli/commands/arguments.h"
#include "cli/options/exit_status.h"
#include "cli/options/message.h"
#include "cli/options/option_parsers.h"

#include <stdio.h>

enum { OPTION_ENGINE };

const gb_command_option gb_cli_roof_options[] = {
        [OPTION_ENGINE] = {"engine", "cpu|gpu[:INDEX]", "cpu",
                "cpu, or gpu for an OpenCL device (see graph-bench list devices)"},
        {0},
};

/* The value is read as --engine of a run is. */
static int print_roof(const char *engine)
{
    gb_settings settings;
    gb_roof roof;
    int status = EXIT_GOOD;
    gb_cli_settings_init(&settings);
    if (gb_cli_parse_option_engine(&settings, NULL, engine, NULL) != GB_SUCCESS) {
        gb_cli_print_error("roof", "--engine: %s", gb_cli_failure());
        status = EXIT_USAGE;
    } else if (settings.engine_kind == GB_ENGINE_CPU) {
        gb_cli_roof_print();
    } else {
        gb_cli_roof_of(settings.engine_kind, (size_t)settings.engine_index, &roof);
        if (roof.flops > 0) {
            gb_cli_roof_print_device(&roof);
        } else {
            gb_cli_print_error("roof",
                    "%s cannot be used; graph-bench list devices tells what there is", engine);
            status = EXIT_CASE_FAILED;
        }
    }
    gb_cli_settings_free(&settings);
    return status;
}

int gb_cli_command_roof(const gb_command *command, int argc, char **argv)
{
    gb_arguments arguments;
    int status = EXIT_USAGE;
    bool good = gb_cli_arguments_read(command, argc, argv, false, &arguments);
    if (good && arguments.n_words > 0)
        gb_cli_print_error("roof", "\"%.80s\" is no option", arguments.words[0]);
    else if (good)
        status = print_roof(arguments.values[OPTION_ENGINE]);
    gb_cli_arguments_free(&arguments);
    return fflush(stdout) != 0 || ferror(stdout) ? EXIT_UNWRITTEN : status;
}
