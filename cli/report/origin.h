/* Where results come from: whether two reports are of one program and machine. */
#ifndef GB_CLI_REPORT_ORIGIN_H
#define GB_CLI_REPORT_ORIGIN_H

#include "cli/options/text.h"

#include <json-c/json.h>

/* Adds what differs between the environments of two reports, either of which may be NULL: "another
 * commit (1f2e3d, not 4c5b6a), another CPU (...)"; nothing when nothing does. */
void gb_cli_origin_compare(json_object *one, json_object *other, gb_text *differences);

#endif
