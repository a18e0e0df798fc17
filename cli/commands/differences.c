/* What differs, as text, Markdown or JSON. */
#include "cli/commands/differences.h"

#include "cli/options/text.h"
#include "cli/options/utf8.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGES = CHANGE_UNSURE + 1 };

void gb_cli_differences_add(gb_differences *differences, gb_difference row)
{
    row.repro = gb_cli_copy(row.repro);
    row.ops = gb_cli_copy(row.ops);
    row.change = row.why ? CHANGE_UNSURE : gb_stats_judge(&row.effect, row.floor, row.noise);
    differences->rows =
            gb_cli_realloc(differences->rows, differences->n + 1, sizeof *differences->rows);
    differences->rows[differences->n++] = row;
}

void gb_cli_differences_note(
        gb_differences *differences, bool worse, const char *repro, const char *format, ...)
{
    gb_text text = {0};
    va_list args;
    va_start(args, format);
    gb_cli_text_add_list(&text, format, args);
    va_end(args);
    differences->notes = gb_cli_realloc(
            differences->notes, differences->n_notes + 1, sizeof *differences->notes);
    differences->notes[differences->n_notes++] =
            (gb_difference_note){gb_cli_copy(repro), text.data, worse};
}

static void count(const gb_differences *differences, size_t counts[CHANGES])
{
    memset(counts, 0, CHANGES * sizeof *counts);
    for (size_t i = 0; i < differences->n; i++)
        counts[differences->rows[i].change]++;
}

bool gb_cli_differences_are_worse(const gb_differences *differences)
{
    bool worse = false;
    for (size_t i = 0; i < differences->n; i++)
        worse = worse || differences->rows[i].change == CHANGE_SLOWER;
    for (size_t i = 0; i < differences->n_notes; i++)
        worse = worse || differences->notes[i].worse;
    return worse;
}

void gb_cli_differences_free(gb_differences *differences)
{
    for (size_t i = 0; i < differences->n; i++) {
        free(differences->rows[i].repro);
        free(differences->rows[i].ops);
    }
    for (size_t i = 0; i < differences->n_notes; i++) {
        free(differences->notes[i].repro);
        free(differences->notes[i].text);
    }
    free(differences->rows);
    free(differences->notes);
    *differences = (gb_differences){0};
}

/* "partition 2 ", before the kinds of its ops; nothing for all of them end to end. */
static const char *partition_name(const gb_difference *row, char text[32])
{
    text[0] = '\0';
    if (row->partition != WHOLE_GRAPH)
        snprintf(text, 32, "partition %" PRId64 " ", row->partition);
    return text;
}

/* "+3.1 % (+2.5 to +3.8)"; an interval without end is left out. */
static void write_effect(const gb_effect *effect, gb_text *text)
{
    gb_cli_text_clear(text);
    gb_cli_text_add(text, "%+.1f %%", 100 * effect->change);
    if (isfinite(effect->high))
        gb_cli_text_add(text, " (%+.1f to %+.1f)", 100 * effect->low, 100 * effect->high);
}

static void write_summary(const gb_differences *differences, FILE *file)
{
    size_t counts[CHANGES];
    count(differences, counts);
    fprintf(file, "%zu times:", differences->n);
    static const gb_change order[] = {CHANGE_SLOWER, CHANGE_FASTER, CHANGE_SAME, CHANGE_UNSURE};
    for (size_t i = 0; i < CHANGES; i++)
        fprintf(file, "%s %zu %s", i ? "," : "", counts[order[i]], gb_stats_change_name(order[i]));
    fprintf(file, "; %zu other differences\n", differences->n_notes);
}

static void write_text(const gb_differences *differences, bool all, FILE *file)
{
    gb_text effect = {0};
    for (size_t i = 0; i < differences->n; i++) {
        const gb_difference *row = &differences->rows[i];
        if (row->change == CHANGE_SAME && !all)
            continue;
        write_effect(&row->effect, &effect);
        char name[32];
        fprintf(file, "%-6s  %-26s  %9.4g -> %9.4g ms%s  %s%s: %s%s%s%s\n",
                gb_stats_change_name(row->change), effect.data, row->base_ns * 1e-6,
                row->new_ns * 1e-6, row->equal_clock ? ", at equal clock" : "",
                partition_name(row, name), row->ops, row->repro, row->why ? " [" : "",
                row->why ? row->why : "", row->why ? "]" : "");
    }
    for (size_t i = 0; i < differences->n_notes; i++)
        fprintf(file, "%s  %s: %s\n", differences->notes[i].worse ? "WORSE " : "note  ",
                differences->notes[i].text, differences->notes[i].repro);
    write_summary(differences, file);
    gb_cli_text_free(&effect);
}

/* A '|' would end the cell. */
static void write_cell(const char *text, FILE *file)
{
    fputs("`", file);
    for (; *text; text++)
        fputs(*text == '|' ? "\\|" : (char[]){*text, '\0'}, file);
    fputs("` |", file);
}

static void write_markdown(const gb_differences *differences, bool all, FILE *file)
{
    gb_text effect = {0};
    fputs("| verdict | change (99 % interval) | before, ms | after, ms | partition | case |\n"
          "|:--|:--|--:|--:|:--|:--|\n",
            file);
    for (size_t i = 0; i < differences->n; i++) {
        const gb_difference *row = &differences->rows[i];
        if (row->change == CHANGE_SAME && !all)
            continue;
        write_effect(&row->effect, &effect);
        fprintf(file, "| %s%s%s%s | %s%s | %.4g | %.4g | ", gb_stats_change_name(row->change),
                row->why ? " (" : "", row->why ? row->why : "", row->why ? ")" : "", effect.data,
                row->equal_clock ? " at equal clock" : "", row->base_ns * 1e-6, row->new_ns * 1e-6);
        if (row->partition != WHOLE_GRAPH)
            fprintf(file, "%" PRId64 " ", row->partition);
        write_cell(row->ops, file);
        fputs(" ", file);
        write_cell(row->repro, file);
        fputs("\n", file);
    }
    fputs("\n", file);
    for (size_t i = 0; i < differences->n_notes; i++)
        fprintf(file, "- %s%s: `%s`\n", differences->notes[i].worse ? "**worse**: " : "",
                differences->notes[i].text, differences->notes[i].repro);
    if (differences->n_notes)
        fputs("\n", file);
    write_summary(differences, file);
    gb_cli_text_free(&effect);
}

/* An interval without end is null. */
static void add_number(json_object *object, const char *key, double value)
{
    json_object_object_add(object, key, isfinite(value) ? json_object_new_double(value) : NULL);
}

static json_object *row_object(const gb_difference *row)
{
    json_object *object = json_object_new_object();
    bool bounded = isfinite(row->effect.high);
    json_object_object_add(object, "repro", gb_cli_utf8_json(row->repro));
    json_object_object_add(object, "partition",
            row->partition == WHOLE_GRAPH ? NULL : json_object_new_int64(row->partition));
    json_object_object_add(object, "ops", gb_cli_utf8_json(row->ops));
    json_object_object_add(
            object, "verdict", json_object_new_string(gb_stats_change_name(row->change)));
    add_number(object, "change", row->effect.change);
    add_number(object, "low", bounded ? row->effect.low : (double)INFINITY);
    add_number(object, "high", row->effect.high);
    add_number(object, "floor", row->floor);
    add_number(object, "noise", row->noise);
    add_number(object, "base_ns", row->base_ns);
    add_number(object, "new_ns", row->new_ns);
    json_object_object_add(object, "equal_clock", json_object_new_boolean(row->equal_clock));
    json_object_object_add(object, "base_values", json_object_new_uint64(row->n_base));
    json_object_object_add(object, "new_values", json_object_new_uint64(row->n_new));
    json_object_object_add(object, "why", row->why ? json_object_new_string(row->why) : NULL);
    return object;
}

static void write_json(const gb_differences *differences, bool all, FILE *file)
{
    (void)all;
    size_t counts[CHANGES];
    json_object *document = json_object_new_object(), *rows = json_object_new_array(),
                *notes = json_object_new_array(), *summary = json_object_new_object();
    for (size_t i = 0; i < differences->n; i++)
        json_object_array_add(rows, row_object(&differences->rows[i]));
    for (size_t i = 0; i < differences->n_notes; i++) {
        const gb_difference_note *note = &differences->notes[i];
        json_object *object = json_object_new_object();
        json_object_object_add(object, "repro", gb_cli_utf8_json(note->repro));
        json_object_object_add(object, "text", gb_cli_utf8_json(note->text));
        json_object_object_add(object, "worse", json_object_new_boolean(note->worse));
        json_object_array_add(notes, object);
    }
    count(differences, counts);
    for (int change = 0; change < CHANGES; change++)
        json_object_object_add(summary, gb_stats_change_name((gb_change)change),
                json_object_new_uint64(counts[change]));
    json_object_object_add(document, "schema", json_object_new_string("graph-bench-comparison"));
    json_object_object_add(document, "schema_version", json_object_new_int(1));
    json_object_object_add(document, "base", gb_cli_utf8_json(differences->base));
    json_object_object_add(document, "new", gb_cli_utf8_json(differences->new));
    json_object_object_add(document, "summary", summary);
    json_object_object_add(document, "changes", rows);
    json_object_object_add(document, "notes", notes);
    fprintf(file, "%s\n",
            json_object_to_json_string_ext(document, JSON_C_TO_STRING_PRETTY |
                                                             JSON_C_TO_STRING_SPACED |
                                                             JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(document);
}

static const struct {
    const char *name;
    void (*write)(const gb_differences *differences, bool all, FILE *file);
} formats[] = {{"text", write_text}, {"markdown", write_markdown}, {"json", write_json}};
enum { FORMATS = sizeof formats / sizeof formats[0] };

bool gb_cli_differences_format_is_known(const char *format)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (strcmp(formats[i].name, format) == 0)
            return true;
    return false;
}

void gb_cli_differences_write(
        const gb_differences *differences, const char *format, bool all, FILE *file)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (strcmp(formats[i].name, format) == 0)
            formats[i].write(differences, all, file);
}
