/* Values by the names of cases, from reports that earlier runs left: members of a JSON object. */
#ifndef GB_CLI_REPORT_CASES_H
#define GB_CLI_REPORT_CASES_H

#include <json-c/json.h>
#include <stdbool.h>

/* `repro` is the reproducer line as a report has it. Takes the value over; of two values of one line
 * the last stays. */
void gb_cli_cases_add(json_object *cases, const char *repro, json_object *value);
/* The value of the case with this reproducer line, or else of one with its name; lent. False: there is
 * none. */
bool gb_cli_cases_find(json_object *cases, const char *repro, json_object **value);

#endif
