/* How values of options become settings; the parsers named in the option table. */
#ifndef GB_CLI_OPTIONS_OPTION_PARSERS_H
#define GB_CLI_OPTIONS_OPTION_PARSERS_H

#include "cli/options/options.h"

/* int64_t: a number, or "random": one that the system draws, the same for the whole run. */
gb_status gb_cli_take_seed(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
/* By the row's offset into gb_settings: int64_t, bool, const char *. */
gb_status gb_cli_parse_option_integer(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_parse_option_bool(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_parse_option_path(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
/* double; a value outside the row's range is moved to its edge. */
gb_status gb_cli_parse_option_budget(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
/* The row's offset is the axis. */
gb_status gb_cli_parse_option_axis(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);

gb_status gb_cli_parse_option_mode(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_bf16_products(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_memory_kind(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_stream_kind(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_parse_option_engine(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_parse_option_policy(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_parse_option_fill(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_reference(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_isolate(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_isa(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
/* double: a number with the unit K, M or G (powers of 1024), or without one. */
gb_status gb_cli_take_bytes(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_caches(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_layouts(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_cold_cache(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_wildcard(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_parse_option_explain(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_parse_option_summary(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_parse_option_print(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_parse_option_input_dir(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_parse_option_filter(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_parse_option_shard(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
/* double, in seconds: a number with the unit s, m or h, or without one. */
gb_status gb_cli_parse_option_time(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_take_perf_template(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
/* double, a fraction: percents with or without their sign. */
gb_status gb_cli_take_percent(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);
gb_status gb_cli_parse_option_dt(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);

#endif
