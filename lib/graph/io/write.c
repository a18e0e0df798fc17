/* Strings, numbers and lists as graph files have them, and opening such a file. */
#include "graph/io/write.h"

#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the character of UTF-8 that begins here; 0: none does. */
static size_t character_bytes(const unsigned char *at)
{
    /* By the number of bytes: what fits into fewer is no character. */
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = at[0] < 0x80       ? 1
               : at[0] >> 5 == 6  ? 2
               : at[0] >> 4 == 14 ? 3
               : at[0] >> 3 == 30 ? 4
                                  : 0;
    uint32_t code = n > 1 ? at[0] & (0x7fu >> n) : at[0];
    for (size_t i = 1; i < n; i++) {
        if (at[i] >> 6 != 2)
            return 0;
        code = code << 6 | (at[i] & 0x3fu);
    }
    bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < least[n] || code > 0x10ffff || is_surrogate ? 0 : n;
}

void gb_write_string(FILE *file, const char *text, const gb_value_style *style)
{
    const unsigned char *at = (const unsigned char *)text;
    fputc('"', file);
    for (size_t n; *at; at += n) {
        n = style->is_utf8 ? character_bytes(at) : 1;
        if (n == 0) {
            fprintf(file, "\\\\x%02X", *at);
            n = 1;
        } else if (*at == '"' || *at == '\\') {
            fprintf(file, "\\%c", *at);
        } else if (*at < ' ') {
            fprintf(file, "\\u%04x", *at);
        } else {
            fwrite(at, 1, n, file);
        }
    }
    fputc('"', file);
}

/* The fewest digits that read back as the same number; nan, inf and -inf between `quote`. */
static void write_f32(FILE *file, float number, const char *quote)
{
    char text[32];
    if (!isfinite(number)) {
        const char *word = isnan(number) ? "nan" : number < 0 ? "-inf" : "inf";
        fprintf(file, "%s%s%s", quote, word, quote);
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)number);
        if ((float)strtod(text, NULL) == number)
            break;
    }
    fputs(text, file);
}

static void write_f32s(FILE *file, const float *values, size_t count, const char *quote)
{
    fputc('[', file);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            fputs(", ", file);
        write_f32(file, values[i], quote);
    }
    fputc(']', file);
}

void gb_write_s64s(FILE *file, const int64_t *values, size_t count)
{
    fputc('[', file);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%s%" PRId64, i > 0 ? ", " : "", values[i]);
    fputc(']', file);
}

void gb_write_attr_value(FILE *file, const gb_attr *attr, const gb_value_style *style)
{
    switch (gb_op_attr_type(attr->name)) {
    case GB_ATTR_TYPE_F32:
        write_f32(file, attr->value.f32, style->quote);
        break;
    case GB_ATTR_TYPE_F32S:
        write_f32s(file, attr->value.f32s, attr->count, style->quote);
        break;
    case GB_ATTR_TYPE_S64:
        fprintf(file, "%" PRId64, attr->value.s64);
        break;
    case GB_ATTR_TYPE_S64S:
        gb_write_s64s(file, attr->value.s64s, attr->count);
        break;
    case GB_ATTR_TYPE_BOOL:
        fputs(style->words[attr->value.boolean], file);
        break;
    case GB_ATTR_TYPE_STRING:
        gb_write_string(file, attr->value.string, style);
        break;
    case GB_ATTR_TYPE_POINTER: /* is not written */
    case GB_ATTR_TYPE_NONE:
        break;
    }
}

gb_status gb_enter_c_locale(gb_c_locale *locale)
{
    locale->own = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!locale->own)
        return gb_fail(GB_OUT_OF_MEMORY, "out of memory: the C locale");
    locale->before = uselocale(locale->own);
    return GB_SUCCESS;
}

void gb_leave_c_locale(gb_c_locale *locale)
{
    uselocale(locale->before);
    freelocale(locale->own);
}

gb_status gb_write_file(const gb_graph *graph, const char *path,
        void (*write)(FILE *file, const gb_graph *graph, void *context), void *context)
{
    gb_c_locale locale;
    bool standard_output = strcmp(path, "-") == 0;
    GB_TRY(gb_enter_c_locale(&locale));
    FILE *file = standard_output ? stdout : fopen(path, "wb");
    if (file)
        write(file, graph, context);
    gb_leave_c_locale(&locale);
    if (!file)
        return gb_fail(GB_INVALID_ARGUMENTS, "cannot open %s: %s", path, strerror(errno));
    bool failed = fflush(file) != 0 || ferror(file);
    if (!standard_output && fclose(file) != 0)
        failed = true;
    return failed ? gb_fail(GB_RUNTIME_ERROR, "cannot write %s: %s", path, strerror(errno))
                  : GB_SUCCESS;
}
