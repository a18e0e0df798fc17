/* The interpreter of the command line and of batch files. */
#ifndef GB_CLI_APP_H
#define GB_CLI_APP_H

/* A signal that ended the run gives 128 + its number. */
enum { EXIT_GOOD = 0, EXIT_CASE_FAILED = 1, EXIT_USAGE = 2, EXIT_UNWRITTEN = 3 };

/* Interprets the arguments and runs their cases; the result is the exit status of the program. */
int gb_cli_main(int argc, char **argv);

#endif
