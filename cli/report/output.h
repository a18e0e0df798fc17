/* The files that a run leaves: --json, --junit and --csv. They are written as the run goes on, each
 * time as a whole beside the old one, which they then replace: however the run ends, what is there
 * is a valid report of what was done. */
#ifndef GB_CLI_REPORT_OUTPUT_H
#define GB_CLI_REPORT_OUTPUT_H

#include "cli/report/report.h"

#include <json-c/json.h>

typedef struct gb_output gb_output;

/* The arguments, lent, become part of the report. */
gb_output *gb_cli_output_create(int argc, char *const *argv);
void gb_cli_output_free(gb_output *output);
/* The report that is resumed, whose cases are taken over: what it knows of the engine and the machine
 * stays, as far as this run does not find it out itself. The environment is lent. */
void gb_cli_output_resume(gb_output *output, json_object *environment);
/* Takes the record of a case over. */
void gb_cli_output_add(gb_output *output, json_object *record);

/* Do the settings name a file? */
bool gb_cli_output_is_wanted(const gb_settings *settings);
/* Can the files that the settings name be written? What they hold stays. */
gb_status gb_cli_output_probe(const gb_settings *settings);
/* A report on the standard output has it for itself: what is printed goes to the standard error from now
 * on. */
void gb_cli_output_take_stdout(const gb_settings *settings);
/* Writes all files that the settings name. `ended`: "running", "complete", or why the run ended
 * before its last case. Failures name the option. */
gb_status gb_cli_output_write(gb_output *output, const gb_settings *settings,
        const gb_report *report, const char *engine, const char *ended);
/* The same, "running", if that was not done for a while. */
gb_status gb_cli_output_refresh(gb_output *output, const gb_settings *settings,
        const gb_report *report, const char *engine);

#endif
