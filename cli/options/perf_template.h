/* What --perf-template says of the line that a measured case prints. */
#ifndef GB_CLI_OPTIONS_PERF_TEMPLATE_H
#define GB_CLI_OPTIONS_PERF_TEMPLATE_H

#include <graphbench/graphbench.h>
#include <stddef.h>

/* Tokens between percent signs, in the order of their names. */
typedef enum gb_perf_token {
    PERF_LITERAL, /* the text around tokens */
    PERF_BW,      /* bytes per second */
    PERF_CTIME,   /* ms of compilation */
    PERF_DESC,    /* the case without options of the run */
    PERF_DRIVER,  /* "graph" */
    PERF_ENGINE,
    PERF_FLOPS, /* operations per second */
    PERF_IDX,
    PERF_IMPL,    /* kernels */
    PERF_IOBYTES, /* bytes that an execution reads and writes */
    PERF_OPS,     /* operations of an execution */
    PERF_PRB,     /* the reproducer line */
    PERF_TIME     /* ms of an execution */
} gb_perf_token;

typedef struct gb_perf_part {
    gb_perf_token token;
    char mode;        /* '-' minimum, '0' average, '+' maximum; 0: not given, the minimum */
    double unit;      /* what numbers are divided by: 1, or K, M, G */
    const char *text; /* of a literal or of the token's name; lent by the template */
    size_t length;
} gb_perf_part;

/* "def" and "csv" stand for templates; any other word is one itself. */
const char *gb_cli_perf_template_text(const char *value);
/* The part at *at, which moves behind it; GB_INVALID_ARGUMENTS, with a message: a token that is
 * unknown or does not end. Ends with an empty literal. */
gb_status gb_cli_perf_template_next(const char **at, gb_perf_part *part);

#endif
