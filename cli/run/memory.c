/* Tensor memory that notices stray writes. */
#include "cli/run/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GUARD = 4096, POISON = 0xFF };

int64_t gb_cli_count(const gb_logical_tensor *tensor)
{
    int64_t count = 1;
    for (int d = 0; d < tensor->ndims; d++)
        count *= tensor->dims[d];
    return count;
}

bool gb_cli_is_dense(const gb_logical_tensor *tensor)
{
    int64_t expected = 1;
    for (int d = tensor->ndims - 1; d >= 0; d--) {
        if (tensor->dims[d] != 1 && tensor->strides[d] != expected)
            return false;
        expected *= tensor->dims[d];
    }
    return true;
}

void gb_cli_visit(const gb_logical_tensor *tensor,
        void (*visit)(void *context, int64_t index, int64_t offset), void *context)
{
    int64_t position[GB_MAX_NDIMS] = {0}, offset = 0, count = gb_cli_count(tensor);
    for (int64_t index = 0; index < count; index++) {
        visit(context, index, offset);
        for (int d = tensor->ndims - 1; d >= 0; d--) {
            offset += tensor->strides[d];
            if (++position[d] < tensor->dims[d])
                break;
            offset -= position[d] * tensor->strides[d];
            position[d] = 0;
        }
    }
}

void gb_cli_memory_poison(gb_memory *memory)
{
    memset(memory->block, POISON, memory->bytes + 2 * (size_t)GUARD);
}

gb_status gb_cli_memory_attach(gb_memory *memory, const gb_engine *engine)
{
    gb_tensor_destroy(memory->handle);
    memory->handle = NULL;
    if (memory->tensor.property == GB_PROPERTY_HOST_SCALAR)
        return gb_tensor_create_scalar(&memory->handle, &memory->tensor, memory->data);
    uint8_t host_memory = 0;
    gb_status status = gb_engine_has_host_memory(engine, &host_memory);
    memory->is_copy = !host_memory;
    return status != GB_SUCCESS ? status
                                : gb_tensor_create(&memory->handle, &memory->tensor, engine,
                                          memory->is_copy ? GB_MEMORY_ALLOCATE : memory->data);
}

gb_status gb_cli_memory_upload(const gb_memory *memory, gb_stream *stream)
{
    return memory->is_copy ? gb_tensor_write(memory->handle, stream, 0, memory->bytes, memory->data)
                           : GB_SUCCESS;
}

gb_status gb_cli_memory_download(const gb_memory *memory, gb_stream *stream)
{
    return memory->is_copy ? gb_tensor_read(memory->handle, stream, 0, memory->bytes, memory->data)
                           : GB_SUCCESS;
}

void *gb_cli_memory_allocate(size_t bytes)
{
    const size_t huge_block = (size_t)4 << 20, huge_page = (size_t)2 << 20;
    void *block = NULL;
    if (posix_memalign(&block, bytes < huge_block ? GUARD : huge_page, bytes) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (bytes >= huge_block)
        madvise(block, bytes, MADV_HUGEPAGE); /* a wish */
#endif
    return block;
}

gb_status gb_cli_memory_create(
        gb_memory *memory, const gb_logical_tensor *tensor, const gb_engine *engine)
{
    *memory = (gb_memory){.tensor = *tensor};
    if (tensor->property == GB_PROPERTY_HOST_SCALAR) {
        memory->bytes = gb_data_type_bytes(tensor->data_type, 1);
    } else {
        gb_status status = gb_logical_tensor_get_mem_size(tensor, &memory->bytes);
        if (status != GB_SUCCESS)
            return status;
    }
    if (memory->bytes > SIZE_MAX / 2)
        return GB_OUT_OF_MEMORY;
    memory->block = gb_cli_memory_allocate(memory->bytes + 2 * (size_t)GUARD);
    if (!memory->block)
        return GB_OUT_OF_MEMORY;
    memory->data = memory->block + GUARD;
    gb_cli_memory_poison(memory);
    gb_status status = gb_cli_memory_attach(memory, engine);
    if (status != GB_SUCCESS)
        gb_cli_memory_free(memory);
    return status;
}

void gb_cli_memory_free(gb_memory *memory)
{
    gb_tensor_destroy(memory->handle);
    free(memory->block);
    *memory = (gb_memory){0};
}

static bool is_poison(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)bytes[i] != POISON)
            return false;
    return true;
}

typedef struct gap_map {
    unsigned char *used; /* one per element of the buffer */
} gap_map;

static void mark(void *context, int64_t index, int64_t offset)
{
    (void)index;
    ((gap_map *)context)->used[offset] = 1;
}

static bool gaps_intact(const gb_memory *memory)
{
    size_t element = gb_data_type_bytes(memory->tensor.data_type, 1);
    size_t n = memory->bytes / element;
    gap_map map = {calloc(n ? n : 1, 1)};
    if (!map.used)
        return true;
    gb_cli_visit(&memory->tensor, mark, &map);
    bool intact = true;
    for (size_t i = 0; i < n && intact; i++)
        intact = map.used[i] || is_poison((const char *)memory->data + i * element, element);
    free(map.used);
    return intact;
}

const char *gb_cli_memory_check(const gb_memory *memory)
{
    if (!is_poison(memory->block, GUARD))
        return "memory before the tensor was overwritten";
    if (!is_poison(memory->block + GUARD + memory->bytes, GUARD))
        return "memory behind the tensor was overwritten";
    bool packed = memory->tensor.data_type == GB_S4 || memory->tensor.data_type == GB_U4;
    if (memory->tensor.property != GB_PROPERTY_HOST_SCALAR && !packed &&
            !gb_cli_is_dense(&memory->tensor) && !gaps_intact(memory))
        return "a gap between the tensor's elements was overwritten";
    return NULL;
}

uint64_t gb_cli_memory_hash(const gb_memory *memory)
{
    /* FNV-1a over 8-byte words, then the rest. */
    uint64_t hash = 0xcbf29ce484222325U;
    const char *bytes = memory->data;
    size_t i = 0;
    for (; i + sizeof(uint64_t) <= memory->bytes; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        hash = (hash ^ word) * 0x100000001b3U;
        hash ^= hash >> 29;
    }
    for (; i < memory->bytes; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3U;
    return hash;
}
