/* Tensors as .npy files. */
#include "cli/run/npy.h"

#include "cli/run/memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_packed(gb_data_type type)
{
    return type == GB_S4 || type == GB_U4;
}

static const char *descriptor(gb_data_type type)
{
    switch (type) {
    case GB_F32:
        return "<f4";
    case GB_S32:
        return "<i4";
    case GB_S64:
        return "<i8";
    case GB_S8:
        return "|i1";
    case GB_BF16:
    case GB_F16:
        return "<u2";
    default:
        return "|u1";
    }
}

int gb_cli_npy_path(char *path, size_t bytes, const char *dir, const char *prefix,
        const gb_logical_tensor *tensor)
{
    int n = snprintf(path, bytes, "%s/%s_%zu.%s.npy", dir, prefix, tensor->id,
            gb_data_type_name(tensor->data_type));
    return n > 0 && (size_t)n < bytes;
}

enum { MAGIC_BYTES = 10, HEADER_ALIGNMENT = 64 };

static int format_shape(
        char *text, size_t bytes, const gb_logical_tensor *tensor, size_t data_bytes)
{
    if (is_packed(tensor->data_type))
        return snprintf(text, bytes, "(%zu,)", data_bytes);
    int n = snprintf(text, bytes, "(");
    for (int d = 0; d < tensor->ndims; d++)
        n += snprintf(text + n, bytes - (size_t)n, "%" PRId64 ",%s", tensor->dims[d],
                d + 1 < tensor->ndims ? " " : "");
    return n + snprintf(text + n, bytes - (size_t)n, ")");
}

static bool write_file(FILE *file, const gb_logical_tensor *tensor, const char *data, size_t bytes)
{
    char shape[512], header[1024];
    format_shape(shape, sizeof shape, tensor, bytes);
    int length = snprintf(header, sizeof header,
            "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descriptor(tensor->data_type),
            shape);
    int total =
            (MAGIC_BYTES + length + 1 + HEADER_ALIGNMENT - 1) / HEADER_ALIGNMENT * HEADER_ALIGNMENT;
    int header_bytes = total - MAGIC_BYTES;
    memset(header + length, ' ', (size_t)(header_bytes - length));
    header[header_bytes - 1] = '\n';
    unsigned char magic[MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0,
            (unsigned char)(header_bytes & 255), (unsigned char)(header_bytes >> 8)};
    return fwrite(magic, 1, sizeof magic, file) == sizeof magic &&
           fwrite(header, 1, (size_t)header_bytes, file) == (size_t)header_bytes &&
           fwrite(data, 1, bytes, file) == bytes;
}

gb_status gb_cli_npy_save(const char *path, const gb_logical_tensor *tensor, const void *memory)
{
    size_t bytes = gb_data_type_bytes(tensor->data_type, (size_t)gb_cli_count(tensor));
    char *dense = calloc(bytes ? bytes : 1, 1);
    FILE *file = dense ? fopen(path, "wb") : NULL;
    bool done = false;
    if (file) {
        gb_cli_copy_elements(tensor, dense, (char *)(uintptr_t)memory, true);
        done = write_file(file, tensor, dense, bytes);
        done = fclose(file) == 0 && done;
    }
    free(dense);
    return done ? GB_SUCCESS : GB_RUNTIME_ERROR;
}

/* Reads magic and header; false when they are not version 1.0 of the format. */
static bool read_header(FILE *file, char *header, size_t bytes)
{
    unsigned char magic[MAGIC_BYTES];
    if (fread(magic, 1, sizeof magic, file) != sizeof magic ||
            memcmp(magic, "\x93NUMPY\x01", 7) != 0)
        return false;
    size_t length = (size_t)magic[8] | (size_t)magic[9] << 8;
    if (length >= bytes || fread(header, 1, length, file) != length)
        return false;
    header[length] = '\0';
    return strstr(header, "'fortran_order': False") != NULL;
}

/* Is the shape in the header this one? Numbers with commas between them or behind them. */
static bool has_shape(const char *header, int ndims, const int64_t *dims)
{
    static const char key[] = "'shape': (";
    const char *text = strstr(header, key);
    if (!text)
        return false;
    text += strlen(key);
    for (int d = 0; d < ndims; d++) {
        char *end;
        if (strtoll(text, &end, 10) != dims[d] || end == text)
            return false;
        text = end + strspn(end, " ");
        if (*text != ',' && !(*text == ')' && d > 0 && d + 1 == ndims))
            return false;
        text += strspn(text, ", ");
    }
    return *text == ')';
}

/* Its text, as far as it goes on. */
static void copy_shape(const char *header, char *shape, size_t bytes)
{
    const char *text = strstr(header, "'shape': ");
    text = text ? text + strlen("'shape': ") : "";
    snprintf(shape, bytes, "%.*s", (int)(strcspn(text, ")") + (strchr(text, ')') != NULL)), text);
}

static bool read_data(FILE *file, char *dense, size_t bytes)
{
    return fread(dense, 1, bytes, file) == bytes && fgetc(file) == EOF;
}

gb_status gb_cli_npy_load(const char *path, const gb_logical_tensor *tensor, void *memory,
        char *message, size_t message_bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        snprintf(message, message_bytes, "%s: cannot be opened", path);
        return GB_INVALID_ARGUMENTS;
    }
    size_t bytes = gb_data_type_bytes(tensor->data_type, (size_t)gb_cli_count(tensor));
    bool packed = is_packed(tensor->data_type); /* bytes in a row */
    int64_t length = (int64_t)bytes;
    char header[4096], quoted[16], shape[80], own[512];
    snprintf(quoted, sizeof quoted, "'%s'", descriptor(tensor->data_type));
    char *dense = malloc(bytes ? bytes : 1);
    gb_status status = GB_INVALID_ARGUMENTS;
    if (!dense)
        status = GB_OUT_OF_MEMORY;
    else if (!read_header(file, header, sizeof header))
        snprintf(message, message_bytes, "%s: not an .npy file of version 1.0 in C order", path);
    else if (!strstr(header, quoted) &&
             !(tensor->data_type == GB_BOOLEAN && strstr(header, "'|b1'")) &&
             !(tensor->data_type == GB_F16 && strstr(header, "'<f2'")))
        snprintf(message, message_bytes, "%s: expected elements %s", path,
                descriptor(tensor->data_type));
    else if (!has_shape(header, packed ? 1 : tensor->ndims, packed ? &length : tensor->dims)) {
        copy_shape(header, shape, sizeof shape);
        format_shape(own, sizeof own, tensor, bytes);
        snprintf(message, message_bytes, "%s: has the shape %s, tensor %zu %s", path, shape,
                tensor->id, own);
    } else if (!read_data(file, dense, bytes))
        snprintf(message, message_bytes, "%s: its size does not fit its header", path);
    else
        status = GB_SUCCESS;
    if (status == GB_SUCCESS)
        gb_cli_copy_elements(tensor, dense, memory, false);
    free(dense);
    fclose(file);
    return status;
}
