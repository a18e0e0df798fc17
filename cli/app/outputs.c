/* Options that name what is written: whether that can be done is seen before anything takes time. */
#include "cli/app/interpreter.h"

#include "cli/options/message.h"
#include "cli/report/new_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static gb_status check_path(const gb_settings *settings, const gb_option *option)
{
    const char *path;
    memcpy(&path, (const char *)settings + option->offset, sizeof path);
    bool is_folder = option->writes == WRITES_FOLDER;
    if (!path || (is_folder ? gb_cli_folder_can_be_written(path) : gb_cli_can_be_written(path)))
        return GB_SUCCESS;
    return gb_cli_fail(GB_INVALID_ARGUMENTS, "--%s: %s: cannot be written: %s", option->name, path,
            strerror(errno));
}

/* Reports of the command line are looked at together, at its end. */
static gb_status check_output(gb_interpreter *app, const gb_option *option)
{
    if (option->writes != WRITES_REPORT)
        return check_path(&app->settings, option);
    if (app->checking)
        return GB_SUCCESS;
    pthread_mutex_lock(&app->lock); /* a signal's thread may be writing them */
    gb_status status = gb_cli_output_probe(&app->settings);
    if (status == GB_SUCCESS)
        gb_cli_output_take_stdout(&app->settings);
    pthread_mutex_unlock(&app->lock);
    return status;
}

gb_status gb_cli_set_output(gb_interpreter *app, const gb_option *option, const char *value)
{
    char *const *text = &app->settings.text[option - gb_cli_options];
    char *before = *text ? gb_cli_copy(*text) : NULL;
    gb_status status = gb_cli_option_set(&app->settings, option, value);
    bool checked = app->counting || (!app->checking && !app->file);
    if (status == GB_SUCCESS && !checked && !(before && strcmp(before, *text) == 0)) {
        status = check_output(app, option);
        if (status != GB_SUCCESS)
            gb_cli_set_option(&app->settings, option->name, before);
    }
    free(before);
    return status;
}
