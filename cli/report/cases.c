/* Values by the names of cases. */
#include "cli/report/cases.h"

#include "cli/options/case_name.h"
#include "cli/options/utf8.h"

#include <stdlib.h>

/* Under the name, too, unless a case of that very line is there. */
void gb_cli_cases_add(json_object *cases, const char *repro, json_object *value)
{
    char *name = gb_cli_case_name(repro);
    json_object_object_add(cases, repro, value);
    if (!json_object_object_get_ex(cases, name, NULL))
        json_object_object_add(cases, name, json_object_get(value));
    free(name);
}

bool gb_cli_cases_find(json_object *cases, const char *repro, json_object **value)
{
    char *name = gb_cli_case_name(repro);
    bool found = gb_cli_utf8_find(cases, repro, value) || gb_cli_utf8_find(cases, name, value);
    free(name);
    return found;
}
