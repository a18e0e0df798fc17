/* A file that takes the place of an old one when it is complete. */
#ifndef GB_CLI_REPORT_NEW_FILE_H
#define GB_CLI_REPORT_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

typedef struct gb_new_file {
    FILE *stream;
    char *part, *target; /* owned; NULL: it is written in place */
} gb_new_file;

/* Begins to write what will be at `path`: beside the file that links lead to. Written in place are
 * what is no file (pipes, devices), descriptors of the process, by whatever name (/dev/stdout), and
 * "-", which is the standard output. False: it cannot be, errno tells why. */
bool gb_cli_new_file_open(const char *path, gb_new_file *file);
/* Puts the file into place, or, unless it is good, takes it away. False: it is not in place, errno
 * tells why. */
bool gb_cli_new_file_close(gb_new_file *file, bool good);
/* Is it the standard output, by whatever name? */
bool gb_cli_new_file_is_stdout(const char *path);
/* From now on the standard output has only what is written by its name here. What the program and those
 * that it starts print goes to the standard error. */
void gb_cli_new_file_take_stdout(void);
/* Is it written in place? */
bool gb_cli_new_file_is_special(const char *path);

/* Can it be written so? What is there stays as it is, and what is not is not there behind it, either. Of
 * pipes, devices and descriptors only writing tells. False: errno tells why it cannot. */
bool gb_cli_new_file_can_be_made(const char *path);
/* The same of a file that is written without the care above. */
bool gb_cli_can_be_written(const char *path);
/* And of a folder that is made for what is written, or is there. */
bool gb_cli_folder_can_be_written(const char *path);

#endif
