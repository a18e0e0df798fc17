/* Graph files of both forms. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/io/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of a graph file: a device or a pipe may never end. */
static const size_t MOST_BYTES = (size_t)512 << 20;

/* The whole file, with memory to be freed by the caller. */
static gb_status read_stream(FILE *file, const char *path, char **text, size_t *length)
{
    uint32_t capacity = 0;
    size_t used = 0, got = 1;
    while (got > 0) {
        if (used > MOST_BYTES)
            return gb_fail(
                    GB_INVALID_ARGUMENTS, "%s is larger than %zu MiB", path, MOST_BYTES >> 20);
        if (!gb_reserve(text, &capacity, used + 65536, 1))
            return GB_OUT_OF_MEMORY;
        got = fread(*text + used, 1, capacity - used, file);
        used += got;
        if (used && !**text)
            return gb_fail(GB_INVALID_ARGUMENTS, "%s is no text: it starts with NUL", path);
    }
    *length = used;
    if (!ferror(file))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS, "cannot read %s: %s", path, strerror(errno));
}

static gb_status read_file(const char *path, char **text, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return gb_fail(GB_INVALID_ARGUMENTS, "cannot open %s: %s", path, strerror(errno));
    gb_status status = read_stream(file, path, text, length);
    fclose(file);
    return status;
}

static gb_status load(
        gb_graph **graph, const char *path, bool may_be_text, gb_note_fn note, void *context)
{
    char *text = NULL;
    size_t length;
    if (!graph || !path)
        return gb_fail(GB_INVALID_ARGUMENTS, "loading a graph: NULL argument");
    gb_status status = read_file(path, &text, &length);
    if (status == GB_SUCCESS && may_be_text && gb_is_text(text, length))
        status = gb_graph_parse_text(graph, text, length, path);
    else if (status == GB_SUCCESS)
        status = gb_graph_parse_json(graph, text, length, path, note, context);
    free(text);
    return status;
}

gb_status gb_graph_load(gb_graph **graph, const char *path, gb_note_fn note, void *context)
{
    return load(graph, path, true, note, context);
}

gb_status gb_graph_load_json(gb_graph **graph, const char *path, gb_note_fn note, void *context)
{
    return load(graph, path, false, note, context);
}
