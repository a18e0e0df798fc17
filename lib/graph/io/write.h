/* What the writers of graph files share. */
#ifndef GB_GRAPH_IO_WRITE_H
#define GB_GRAPH_IO_WRITE_H

#include "graph/ir/graph.h"

#include <stdio.h>

/* A list in square brackets. */
void gb_write_s64s(FILE *file, const int64_t *values, size_t count);

/* What graph files write differently. */
typedef struct gb_value_style {
    const char *quote;    /* around nan, inf and -inf */
    const char *words[2]; /* false and true */
    bool is_utf8;         /* bytes of strings that are none stand as \xNN */
} gb_value_style;
/* In double quotes; they, backslashes and control characters (as \u00xx) are escaped. */
void gb_write_string(FILE *file, const char *text, const gb_value_style *style);
/* Numbers with the fewest digits that read back as the same. */
void gb_write_attr_value(FILE *file, const gb_attr *attr, const gb_value_style *style);

/* Numbers have a decimal point, whatever the program's locale, until gb_leave_c_locale(). */
typedef struct gb_c_locale {
    void *own, *before;
} gb_c_locale;
gb_status gb_enter_c_locale(gb_c_locale *locale);
void gb_leave_c_locale(gb_c_locale *locale);

/* Calls `write` on the file of this path ("-": the standard output), in the C locale. */
gb_status gb_write_file(const gb_graph *graph, const char *path,
        void (*write)(FILE *file, const gb_graph *graph, void *context), void *context);

#endif
