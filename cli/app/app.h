/* The program. */
#ifndef GB_CLI_APP_APP_H
#define GB_CLI_APP_APP_H

/* Interprets the arguments and runs their cases; the result is the exit status of the program. */
int gb_cli_main(int argc, char **argv);

#endif
