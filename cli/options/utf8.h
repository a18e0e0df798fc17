/* Texts for files that must be UTF-8: names of files may hold any bytes. */
#ifndef GB_CLI_OPTIONS_UTF8_H
#define GB_CLI_OPTIONS_UTF8_H

#include "cli/options/text.h"

#include <json-c/json.h>
#include <stdbool.h>

/* Adds a text; a byte that belongs to no character of UTF-8 becomes \xNN. */
void gb_cli_utf8_add(gb_text *to, const char *text);
/* The bytes that gb_cli_utf8_add() was given, the caller's; where they held the text \xNN, 80 or more,
 * they become that byte. */
char *gb_cli_utf8_restore(const char *text);
/* The same as JSON; NULL of NULL. The caller's. */
json_object *gb_cli_utf8_json(const char *text);
/* The member whose name is the text, as it is written here; lent. False: there is none. */
bool gb_cli_utf8_find(json_object *object, const char *text, json_object **member);

#endif
