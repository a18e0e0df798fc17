/* A page for people: page.html with the report inside. */
#include "cli/report/render.h"
#include "cli/report/temporary.h"

#include <string.h>

/* The text of page.html, put into a C file when the program is built. */
extern const char gb_text_page[];

/* JSON in a page: "</script" in a string would end the element that holds it, and "<!--<script" would
 * hide where it ends. JSON has a '<' in strings only. */
static void copy_escaped(FILE *from, FILE *to)
{
    rewind(from);
    for (int c; (c = getc(from)) != EOF;) {
        if (c == '<')
            fputs("\\u003c", to);
        else
            putc(c, to);
    }
}

bool gb_cli_write_html(const gb_results *results, FILE *file)
{
    static const char place[] = "@DATA@\n";
    const char *data = strstr(gb_text_page, place);
    FILE *json = gb_cli_temporary_file();
    if (!json)
        return false;
    bool written = gb_cli_results_write_json(results, json) && fflush(json) == 0;
    fwrite(gb_text_page, 1, (size_t)(data - gb_text_page), file);
    copy_escaped(json, file);
    fputs(data + strlen(place), file);
    fclose(json);
    return written && !ferror(file);
}
