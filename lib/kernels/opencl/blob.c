/* Layout of a blob: a head, then for each kernel an entry and its binary, padded to 8 bytes. */
#include "kernels/opencl/blob.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct blob_head {
    char magic[8];
    gb_digest device, contents; /* contents: of all behind the head */
    uint64_t bytes;             /* behind the head */
} blob_head;

typedef struct blob_entry {
    gb_digest key;
    uint64_t bytes;
} blob_entry;

struct gb_cl_blob {
    size_t bytes;
    unsigned char data[]; /* entries */
};

static const char magic[8] = "gb-blob";

static size_t padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* The entry at a place, and the place behind it; false when it does not fit. */
static bool entry_at(const unsigned char *data, size_t size, size_t *at, blob_entry *entry)
{
    if (size - *at < sizeof *entry)
        return false;
    memcpy(entry, data + *at, sizeof *entry);
    *at += sizeof *entry;
    if (entry->bytes > size - *at || padded((size_t)entry->bytes) > size - *at)
        return false;
    *at += padded((size_t)entry->bytes);
    return true;
}

static bool is_sound(const blob_head *head, size_t bytes, const unsigned char *data)
{
    blob_entry entry;
    size_t at = 0;
    if (memcmp(head->magic, magic, sizeof magic) != 0 || head->bytes != bytes ||
            !gb_digest_equal(head->contents, gb_digest_memory(data, bytes)))
        return false;
    while (at < bytes)
        if (!entry_at(data, bytes, &at, &entry))
            return false;
    return true;
}

gb_status gb_cl_blob_read(gb_cl_blob **blob, gb_digest device, size_t bytes, const void *data)
{
    blob_head head;
    if (bytes < sizeof head)
        return gb_fail(GB_INVALID_ARGUMENTS, "the cache blob is damaged");
    memcpy(&head, data, sizeof head);
    const unsigned char *entries = (const unsigned char *)data + sizeof head;
    bytes -= sizeof head;
    if (!is_sound(&head, bytes, entries))
        return gb_fail(GB_INVALID_ARGUMENTS, "the cache blob is damaged");
    if (!gb_digest_equal(head.device, device))
        return gb_fail(GB_INVALID_ARGUMENTS, "the cache blob is of another device or driver");
    *blob = gb_calloc(1, sizeof **blob + bytes);
    if (!*blob)
        return gb_fail(GB_OUT_OF_MEMORY, "no memory for a cache blob of %zu bytes", bytes);
    (*blob)->bytes = bytes;
    memcpy((*blob)->data, entries, bytes);
    return GB_SUCCESS;
}

const void *gb_cl_blob_find(const gb_cl_blob *blob, const gb_digest *key, size_t *bytes)
{
    blob_entry entry;
    for (size_t at = 0, begin = 0; blob && at < blob->bytes; begin = at) {
        entry_at(blob->data, blob->bytes, &at, &entry);
        if (!gb_digest_equal(entry.key, *key))
            continue;
        *bytes = (size_t)entry.bytes;
        return blob->data + begin + sizeof entry;
    }
    return NULL;
}

void gb_cl_blob_free(gb_cl_blob *blob)
{
    free(blob);
}

/* Writing -------------------------------------------------------------------------------------- */

/* Room for more bytes; the head's are there from the start. */
static gb_status reserve(gb_cl_blob_writer *writer, size_t more)
{
    size_t used = writer->bytes ? writer->bytes : sizeof(blob_head);
    if (used + more > writer->capacity) {
        size_t capacity = 2 * (used + more);
        unsigned char *data = realloc(writer->data, capacity);
        if (!data)
            return gb_fail(GB_OUT_OF_MEMORY, "no memory for a cache blob");
        memset(data + used, 0, capacity - used);
        writer->data = data;
        writer->capacity = capacity;
    }
    writer->bytes = used;
    return GB_SUCCESS;
}

gb_status gb_cl_blob_add(
        gb_cl_blob_writer *writer, const gb_digest *key, const void *data, size_t bytes)
{
    blob_entry entry = {*key, bytes};
    GB_TRY(reserve(writer, sizeof entry + padded(bytes)));
    memcpy(writer->data + writer->bytes, &entry, sizeof entry);
    memcpy(writer->data + writer->bytes + sizeof entry, data, bytes);
    writer->bytes += sizeof entry + padded(bytes);
    return GB_SUCCESS;
}

gb_status gb_cl_blob_finish(gb_cl_blob_writer *writer, gb_digest device)
{
    blob_head head = {.device = device};
    GB_TRY(reserve(writer, 0));
    memcpy(head.magic, magic, sizeof magic);
    head.bytes = writer->bytes - sizeof head;
    head.contents = gb_digest_memory(writer->data + sizeof head, (size_t)head.bytes);
    memcpy(writer->data, &head, sizeof head);
    return GB_SUCCESS;
}
