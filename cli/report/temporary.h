/* Where files lie that nobody keeps. */
#ifndef GB_CLI_REPORT_TEMPORARY_H
#define GB_CLI_REPORT_TEMPORARY_H

#include <stdio.h>

/* $TMPDIR, or /tmp. */
const char *gb_cli_temporary_folder(void);
/* An empty file without a name there, to be written and read, which is gone when it is closed. NULL: it
 * cannot be made, errno tells why. */
FILE *gb_cli_temporary_file(void);

#endif
