/* Whether two reports are of one program and machine. */
#include "cli/report/origin.h"

static const struct {
    const char *outer, *inner, *what;
} origins[] = {
        {"build", "commit", "commit"},
        {"build", "compiler", "compiler"},
        {"build", "flags", "compiler flags"},
        {"build", "type", "build type"},
        {"cpu", "model", "CPU"},
};

static const char *text_of(json_object *value)
{
    return value ? json_object_get_string(value) : "none";
}

void gb_cli_origin_compare(json_object *one, json_object *other, gb_text *differences)
{
    for (size_t i = 0; i < sizeof origins / sizeof origins[0]; i++) {
        json_object *a = json_object_object_get(
                json_object_object_get(one, origins[i].outer), origins[i].inner);
        json_object *b = json_object_object_get(
                json_object_object_get(other, origins[i].outer), origins[i].inner);
        if (!json_object_equal(a, b))
            gb_cli_text_add(differences, "%sanother %s (%s, not %s)",
                    differences->length ? ", " : "", origins[i].what, text_of(a), text_of(b));
    }
}
