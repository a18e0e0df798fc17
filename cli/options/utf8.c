/* Texts in files that must be UTF-8. */
#include "cli/options/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the character that begins here; 0: none does. */
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
    return n == 0 || code < least[n] || code > 0x10ffff || is_surrogate ? 0 : n;
}

void gb_cli_utf8_add(gb_text *to, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    for (size_t n; *at; at += n ? n : 1) {
        n = character_bytes(at);
        if (n)
            gb_cli_text_add_part(to, (const char *)at, n);
        else
            gb_cli_text_add(to, "\\x%02X", *at);
    }
}

/* The byte that stands as \xNN here, 0: none does. Those below 0x80 are characters of their own. */
static unsigned char escaped_byte(const char *at)
{
    static const char digits[] = "0123456789ABCDEF";
    if (at[0] != '\\' || at[1] != 'x' || !at[2] || !at[3])
        return 0;
    const char *high = strchr(digits, at[2]), *low = strchr(digits, at[3]);
    return high && low && high >= digits + 8
                   ? (unsigned char)(16 * (high - digits) + (low - digits))
                   : 0;
}

char *gb_cli_utf8_restore(const char *text)
{
    gb_text bytes = {0};
    for (unsigned char byte; *text; text += byte ? strlen("\\xNN") : 1) {
        byte = escaped_byte(text);
        gb_cli_text_add(&bytes, "%c", byte ? byte : *text);
    }
    return bytes.data ? bytes.data : gb_cli_copy("");
}

json_object *gb_cli_utf8_json(const char *text)
{
    gb_text clean = {0};
    if (!text)
        return NULL;
    gb_cli_utf8_add(&clean, text);
    json_object *value = json_object_new_string(gb_cli_text_get(&clean));
    gb_cli_text_free(&clean);
    return value;
}

bool gb_cli_utf8_find(json_object *object, const char *text, json_object **member)
{
    gb_text clean = {0};
    gb_cli_utf8_add(&clean, text);
    bool found = json_object_object_get_ex(object, gb_cli_text_get(&clean), member);
    gb_cli_text_free(&clean);
    return found;
}
