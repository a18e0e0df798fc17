/* How values of options become settings; the takers named in the option table. */
#ifndef GB_CLI_OPTIONS_TAKERS_H
#define GB_CLI_OPTIONS_TAKERS_H

#include "cli/options/options.h"

/* By the row's offset into gb_settings: int64_t, bool, const char *. */
gb_status gb_cli_take_integer(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_bool(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_path(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
/* double; a value outside the row's range is moved to its edge. */
gb_status gb_cli_take_budget(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
/* The row's offset is the axis. */
gb_status gb_cli_take_axis(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);

gb_status gb_cli_take_mode(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_engine(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_policy(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_fill(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_reference(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_layouts(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_wildcard(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_explain(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_summary(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_input_dir(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_dt(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);

#endif
