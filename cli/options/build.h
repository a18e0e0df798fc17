/* What this program was built from. */
#ifndef GB_CLI_OPTIONS_BUILD_H
#define GB_CLI_OPTIONS_BUILD_H

typedef struct gb_build {
    const char *commit; /* ends in "-dirty" when the sources differ from it; "": not known */
    const char *compiler, *flags, *type;
} gb_build;

extern const gb_build gb_cli_build;

#endif
