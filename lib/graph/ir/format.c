/* Formats: the table of all that were asked for, their text, and where elements lie. */
#include "graph/ir/format.h"

#include "base/memory.h"
#include "base/status.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* The table ------------------------------------------------------------------------------------ */

enum { MOST_FORMATS = 1024 };

/* Formats stay until the process ends, and need no memory; the id is the place in the list, counted
 * from 1. Those below n do not change. */
static struct {
    pthread_mutex_t lock; /* of adding */
    atomic_size_t n;
    gb_format formats[MOST_FORMATS];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Under the lock; NULL when the table is full. */
static const gb_format *find_or_add(const gb_format *format)
{
    size_t n = table.n;
    for (size_t i = 0; i < n; i++)
        if (strcmp(table.formats[i].text, format->text) == 0)
            return &table.formats[i];
    if (n == MOST_FORMATS)
        return NULL;
    table.formats[n] = *format;
    table.formats[n].id = n + 1;
    table.n = n + 1;
    return &table.formats[n];
}

static gb_status intern(const gb_format *format, const gb_format **interned)
{
    pthread_mutex_lock(&table.lock);
    const gb_format *found = find_or_add(format);
    pthread_mutex_unlock(&table.lock);
    if (!found)
        return gb_fail(GB_OUT_OF_MEMORY, "layout %s: there are %d others already", format->text,
                MOST_FORMATS);
    *interned = found;
    return GB_SUCCESS;
}

const gb_format *gb_format_find(size_t id)
{
    return id > 0 && id <= table.n ? &table.formats[id - 1] : NULL;
}

/* Text ----------------------------------------------------------------------------------------- */

/* Letters of the axes in their logical order; of the first, as many as there are axes. */
static const char *const families[] = {"abcdefghijkl", "nc", "ncw", "nchw", "ncdhw", "mk", "kn"};

static bool has_letters(const char *family, int n, const char *letters)
{
    size_t length = strlen(family);
    if (family == families[0] ? length < (size_t)n : length != (size_t)n)
        return false;
    for (int i = 0; i < n; i++)
        if (!memchr(letters, family[i], (size_t)n))
            return false;
    return true;
}

/* The family whose letters these are, each once; NULL when there is none. */
static const char *find_family(int n, const char *letters)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (has_letters(families[i], n, letters))
            return families[i];
    return NULL;
}

/* Reads the blocks behind the axes; false when they are not sound. */
static bool parse_blocks(const char *text, const char *family, gb_format *format)
{
    while (*text) {
        gb_format_block *block = &format->blocks[format->n_blocks];
        if (format->n_blocks == GB_FORMAT_BLOCKS || !isdigit((unsigned char)*text))
            return false;
        for (block->size = 0; isdigit((unsigned char)*text); text++)
            if ((block->size = 10 * block->size + (*text - '0')) > GB_FORMAT_MAX_BLOCK)
                return false;
        const char *letter =
                *text ? memchr(family, tolower((unsigned char)*text++), (size_t)format->ndims)
                      : NULL;
        if (!letter || block->size < 2)
            return false;
        block->axis = (uint8_t)(letter - family);
        format->n_blocks++;
    }
    return format->ndims + format->n_blocks <= GB_MAX_NDIMS;
}

static void write_text(gb_format *format)
{
    char *end = format->text;
    for (int i = 0; i < format->ndims; i++) {
        int letter = 'a' + format->order[i];
        bool blocks = gb_format_block_size(format, format->order[i]) > 1;
        *end++ = (char)(blocks ? toupper(letter) : letter);
    }
    for (int i = 0; i < format->n_blocks; i++)
        end += snprintf(end, (size_t)(format->text + GB_FORMAT_TEXT - end), "%d%c",
                (int)format->blocks[i].size, 'a' + format->blocks[i].axis);
    *end = '\0';
}

static bool format_parse(const char *text, gb_format *format)
{
    char letters[GB_MAX_NDIMS];
    for (; isalpha((unsigned char)text[format->ndims]); format->ndims++) {
        if (format->ndims == GB_MAX_NDIMS)
            return false;
        letters[format->ndims] = (char)tolower((unsigned char)text[format->ndims]);
    }
    const char *family = format->ndims ? find_family(format->ndims, letters) : NULL;
    if (!family)
        return false;
    for (int i = 0; i < format->ndims; i++)
        format->order[i] = (uint8_t)(strchr(family, letters[i]) - family);
    if (!parse_blocks(text + format->ndims, family, format))
        return false;
    write_text(format);
    return true;
}

gb_status gb_format_parse(const char *text, const gb_format **format)
{
    gb_format parsed = {0};
    if (!format_parse(text, &parsed))
        return gb_fail(GB_INVALID_ARGUMENTS,
                "\"%.64s\" is no layout: axes from the outermost in, then blocks, as in aBcd16b",
                text);
    return intern(&parsed, format);
}

/* Where elements lie --------------------------------------------------------------------------- */

int64_t gb_format_block_size(const gb_format *format, int axis)
{
    int64_t size = 1;
    for (int i = 0; i < format->n_blocks; i++)
        if (format->blocks[i].axis == axis)
            size *= format->blocks[i].size;
    return size;
}

bool gb_format_divides(const gb_format *format, const int64_t *dims)
{
    for (int i = 0; i < format->n_blocks; i++)
        if (dims[format->blocks[i].axis] % gb_format_block_size(format, format->blocks[i].axis))
            return false;
    return true;
}

bool gb_format_count(const gb_format *format, const int64_t *dims, int64_t *count)
{
    *count = 1;
    for (int d = 0; d < format->ndims; d++) {
        int64_t size = gb_format_block_size(format, d), padded;
        if (__builtin_add_overflow(dims[d], size - 1, &padded) ||
                __builtin_mul_overflow(*count, padded / size * size, count))
            return false;
    }
    return true;
}

int gb_format_dims(const gb_format *format, const int64_t *dims, int64_t physical[GB_MAX_NDIMS])
{
    int n = 0;
    for (; n < format->ndims; n++)
        physical[n] =
                gb_div_up(dims[format->order[n]], gb_format_block_size(format, format->order[n]));
    for (int i = 0; i < format->n_blocks; i++)
        physical[n++] = format->blocks[i].size;
    return n;
}

/* From the innermost block of the format out: the axis' own blocks, then what is outside of them.
 */
static int format_parts(
        const gb_format *format, const int64_t *dims, int axis, gb_format_part *parts)
{
    int n = 0;
    int64_t stride = 1, unit = 1;
    for (int i = format->n_blocks; i-- > 0; stride *= format->blocks[i].size) {
        if (format->blocks[i].axis != axis)
            continue;
        parts[n++] = (gb_format_part){unit, stride};
        unit *= format->blocks[i].size;
    }
    for (int i = format->ndims; format->order[--i] != axis;)
        stride *= gb_max_i64(
                gb_div_up(dims[format->order[i]], gb_format_block_size(format, format->order[i])),
                1);
    parts[n++] = (gb_format_part){unit, stride};
    return n;
}

int gb_tensor_parts(
        const gb_logical_tensor *tensor, int axis, gb_format_part parts[GB_FORMAT_BLOCKS + 1])
{
    if (tensor->layout_type == GB_LAYOUT_OPAQUE)
        return format_parts(gb_format_find(tensor->layout_id), tensor->dims, axis, parts);
    parts[0] = (gb_format_part){1, tensor->strides[axis]};
    return 1;
}

void gb_tensor_steps(const gb_logical_tensor *tensor, int64_t steps[GB_MAX_NDIMS])
{
    for (int d = 0; d < tensor->ndims; d++) {
        gb_format_part parts[GB_FORMAT_BLOCKS + 1];
        const gb_format_part *outer = &parts[gb_tensor_parts(tensor, d, parts) - 1];
        steps[d] = outer->stride / outer->unit;
    }
}

int64_t gb_tensor_offset(const gb_logical_tensor *tensor, const int64_t *position)
{
    int64_t offset = 0;
    for (int d = 0; d < tensor->ndims; d++) {
        gb_format_part parts[GB_FORMAT_BLOCKS + 1];
        int64_t rest = position[d];
        for (int i = gb_tensor_parts(tensor, d, parts); i-- > 0; rest %= parts[i].unit)
            offset += rest / parts[i].unit * parts[i].stride;
    }
    return offset;
}

void gb_format_apply(const gb_format *format, gb_logical_tensor *tensor)
{
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        tensor->strides[d] = GB_UNKNOWN_DIM;
    if (format->n_blocks) {
        tensor->layout_type = GB_LAYOUT_OPAQUE;
        tensor->layout_id = format->id;
        return;
    }
    tensor->layout_type = GB_LAYOUT_STRIDED;
    tensor->layout_id = 0;
    for (int d = 0; d < tensor->ndims; d++) {
        gb_format_part parts[GB_FORMAT_BLOCKS + 1];
        format_parts(format, tensor->dims, d, parts);
        tensor->strides[d] = parts[0].stride;
    }
}

bool gb_tensor_lies_in(const gb_logical_tensor *tensor, const gb_format *format)
{
    gb_logical_tensor wanted = *tensor;
    if (tensor->layout_type != GB_LAYOUT_STRIDED || tensor->ndims != format->ndims)
        return false;
    for (int d = 0; d < tensor->ndims; d++)
        if (tensor->dims[d] < 0)
            return false;
    gb_format_apply(format, &wanted);
    return memcmp(tensor->strides, wanted.strides, sizeof *wanted.strides * (size_t)wanted.ndims) ==
           0;
}
