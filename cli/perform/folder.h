/* Files and folders of cases. */
#ifndef GB_CLI_PERFORM_FOLDER_H
#define GB_CLI_PERFORM_FOLDER_H

#include "cli/options/message.h"

#include <stdbool.h>

/* Copies at most so many bytes; a larger file is not copied. False: it is not there as a whole. */
bool gb_cli_copy_file(const char *from, const char *to, size_t most);
bool gb_cli_write_file(const char *path, const char *text);
/* Bytes of the files in a folder, without those in folders below it. */
size_t gb_cli_folder_bytes(const char *path);
/* Makes a folder that nobody else has, below $TMPDIR or /tmp; the text becomes its path. A failure has
 * a message. */
gb_status gb_cli_make_temporary(gb_text *path);
/* Removes a folder and the files in it; what holds folders stays. "" and what is not there: nothing
 * happens. */
void gb_cli_remove_folder(const char *path);

#endif
