/* graph-bench report, and what writes its forms. */
#include "cli/commands/files.h"

#include "cli/commands/arguments.h"
#include "cli/options/message.h"
#include "cli/report/render.h"

#include <errno.h>
#include <string.h>

static const struct {
    const char *extension;
    bool (*write)(const gb_results *results, FILE *file);
} forms[] = {
        {".html", gb_cli_write_html},
        {".xml", gb_cli_write_junit},
        {".csv", gb_cli_write_csv},
        {".json", gb_cli_results_write_json},
};

int gb_cli_command_write(const gb_results *results, const char *path)
{
    const char *extension = strcmp(path, "-") == 0 ? ".json" : strrchr(path, '.');
    size_t form = 0, n = sizeof forms / sizeof forms[0];
    while (form < n && (!extension || strcmp(forms[form].extension, extension) != 0))
        form++;
    if (form == n) {
        gb_cli_print_error(NULL, "%s: the name must end in .html, .xml, .csv or .json", path);
        return EXIT_USAGE;
    }
    errno = 0;
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    bool good = file && forms[form].write(results, file);
    if (file)
        good = (file == stdout ? fflush(file) : fclose(file)) == 0 && good;
    if (good)
        return EXIT_GOOD;
    gb_cli_print_error(NULL, "%s: cannot be written: %s", path, strerror(errno));
    return EXIT_UNWRITTEN;
}

static int write_report(const gb_arguments *arguments)
{
    const char *output = arguments->values[0];
    if (!output) {
        gb_cli_print_error("report", "-o FILE is missing");
        return EXIT_USAGE;
    }
    if (arguments->n_words != 1) {
        gb_cli_print_error("report", "one report is needed");
        return EXIT_USAGE;
    }
    gb_results *results;
    if (gb_cli_results_read(arguments->words[0], &results) != GB_SUCCESS) {
        gb_cli_print_error(NULL, "%s", gb_cli_failure());
        return EXIT_USAGE;
    }
    int status = gb_cli_command_write(results, output);
    gb_cli_results_free(results);
    return status;
}

int gb_cli_command_report(const gb_command *command, int argc, char **argv)
{
    gb_arguments arguments;
    int status = EXIT_USAGE;
    if (gb_cli_arguments_read(command, argc, argv, false, &arguments))
        status = write_report(&arguments);
    gb_cli_arguments_free(&arguments);
    return status;
}
