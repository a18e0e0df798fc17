/* Tensor memory that notices stray writes. */
#include "cli/run/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GUARD = 4096 };

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
    if (tensor->layout_type == GB_LAYOUT_OPAQUE)
        return false;
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

void gb_cli_memory_poison(gb_memory *memory, unsigned char poison)
{
    memory->poison = poison;
    memset(memory->block, poison, memory->bytes + 2 * (size_t)GUARD);
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
    gb_cli_memory_poison(memory, GB_POISON);
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

static bool is_poison(const gb_memory *memory, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)bytes[i] != memory->poison)
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
        intact =
                map.used[i] || is_poison(memory, (const char *)memory->data + i * element, element);
    free(map.used);
    return intact;
}

/* Another memory of the same elements, brought there by the library. */
static gb_status reorder(
        const gb_memory *from, const gb_logical_tensor *layout, gb_stream *stream, gb_memory *to)
{
    const gb_engine *engine;
    gb_status status = gb_stream_get_engine(stream, &engine);
    if (status == GB_SUCCESS)
        status = gb_cli_memory_create(to, layout, engine);
    if (status == GB_SUCCESS)
        status = gb_tensor_reorder(from->handle, to->handle, stream);
    return status == GB_SUCCESS ? gb_cli_memory_download(to, stream) : status;
}

gb_status gb_cli_describe_dense(const gb_logical_tensor *tensor, gb_logical_tensor *dense)
{
    return gb_logical_tensor_init_with_dims(dense, tensor->id, tensor->data_type, tensor->ndims,
            tensor->dims, GB_LAYOUT_STRIDED, tensor->property);
}

gb_status gb_cli_memory_plain(
        const gb_memory *memory, gb_stream *stream, gb_memory *copy, const gb_memory **plain)
{
    gb_logical_tensor dense;
    *copy = (gb_memory){0};
    *plain = memory;
    if (memory->tensor.layout_type != GB_LAYOUT_OPAQUE)
        return GB_SUCCESS;
    *plain = copy;
    gb_status status = gb_cli_describe_dense(&memory->tensor, &dense);
    return status == GB_SUCCESS ? reorder(memory, &dense, stream, copy) : status;
}

/* Padding holds zeros when the elements alone, laid out once more, make the same bytes. */
static bool padding_intact(const gb_memory *memory, gb_stream *stream)
{
    size_t elements =
            gb_data_type_bytes(memory->tensor.data_type, (size_t)gb_cli_count(&memory->tensor));
    if (elements == memory->bytes)
        return true;
    gb_memory copy, again = {0};
    const gb_memory *plain;
    bool intact = gb_cli_memory_plain(memory, stream, &copy, &plain) != GB_SUCCESS ||
                  reorder(plain, &memory->tensor, stream, &again) != GB_SUCCESS ||
                  memcmp(memory->data, again.data, memory->bytes) == 0;
    gb_cli_memory_free(&copy);
    gb_cli_memory_free(&again);
    return intact;
}

typedef struct boolean_check {
    const unsigned char *data;
    bool good;
} boolean_check;

static void check_boolean(void *context, int64_t index, int64_t offset)
{
    boolean_check *check = context;
    (void)index;
    check->good = check->good && check->data[offset] <= 1;
}

static bool booleans_good(const gb_memory *memory)
{
    boolean_check check = {.data = memory->data, .good = true};
    if (memory->tensor.data_type == GB_BOOLEAN)
        gb_cli_visit(&memory->tensor, check_boolean, &check);
    return check.good;
}

const char *gb_cli_memory_check(const gb_memory *memory, gb_stream *stream)
{
    if (!is_poison(memory, memory->block, GUARD))
        return "memory before the tensor was overwritten";
    if (!is_poison(memory, memory->block + GUARD + memory->bytes, GUARD))
        return "memory behind the tensor was overwritten";
    if (memory->tensor.layout_type == GB_LAYOUT_OPAQUE)
        return padding_intact(memory, stream) ? NULL
                                              : "the padding of the tensor's blocks is not 0";
    bool packed = memory->tensor.data_type == GB_S4 || memory->tensor.data_type == GB_U4;
    if (memory->tensor.property != GB_PROPERTY_HOST_SCALAR && !packed &&
            !gb_cli_is_dense(&memory->tensor) && !gaps_intact(memory))
        return "a gap between the tensor's elements was overwritten";
    if (!booleans_good(memory))
        return "a boolean is neither 0 nor 1";
    return NULL;
}

/* How floats of a type look. */
typedef struct float_bits {
    unsigned bits;
    uint64_t infinity; /* above it, without the sign, are the NaNs */
} float_bits;

/* 0 bits: of no floats. */
static float_bits float_bits_of(gb_data_type type)
{
    switch (type) {
    case GB_F32:
        return (float_bits){32, 0x7F800000};
    case GB_BF16:
        return (float_bits){16, 0x7F80};
    case GB_F16:
        return (float_bits){16, 0x7C00};
    case GB_F8_E5M2:
        return (float_bits){8, 0x7C};
    case GB_F8_E4M3:
        return (float_bits){8, 0x7E}; /* the largest number: there is no infinity */
    default:
        return (float_bits){0, 0};
    }
}

/* The word with one NaN in place of all. */
static uint64_t with_one_nan(uint64_t word, float_bits type)
{
    const uint64_t sign = 1ULL << (type.bits - 1), all = sign | (sign - 1);
    for (unsigned at = 0; at < 64; at += type.bits)
        if ((word >> at & (sign - 1)) > type.infinity)
            word |= all << at;
    return word;
}

/* Is some element of the word a NaN? Added to one without its sign, what lies between infinity and the
 * sign carries into the sign. */
static bool has_nan(uint64_t word, float_bits type)
{
    const uint64_t ones = ~UINT64_C(0) / (~UINT64_C(0) >> (64 - type.bits));
    const uint64_t sign = UINT64_C(1) << (type.bits - 1);
    return (((word & ones * (sign - 1)) + ones * (sign - 1 - type.infinity)) & ones * sign) != 0;
}

/* FNV-1a over 8-byte words. Which of two NaNs an operation returns depends on the order in which the
 * compiler has its operands, and so on the place of the element: they are all alike. */
static uint64_t hash_elements(gb_data_type type, const char *bytes, size_t n)
{
    const float_bits floats = float_bits_of(type);
    uint64_t hash = 0xcbf29ce484222325U;
    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, n - i < sizeof word ? n - i : sizeof word);
        if (floats.bits && has_nan(word, floats))
            word = with_one_nan(word, floats);
        hash = (hash ^ word) * 0x100000001b3U;
        hash ^= hash >> 29;
    }
    return hash;
}

uint64_t gb_cli_memory_hash(const gb_memory *memory)
{
    return hash_elements(memory->tensor.data_type, memory->data, memory->bytes);
}

typedef struct copy_context {
    char *dense, *strided;
    size_t element; /* bytes; 0 = 4 bits */
    bool to_dense;
} copy_context;

static void copy_nibble(char *to, int64_t i, const char *from, int64_t k)
{
    unsigned nibble = (unsigned char)from[k / 2] >> (k % 2 * 4) & 15;
    unsigned shift = (unsigned)(i % 2 * 4);
    to[i / 2] = (char)(((unsigned char)to[i / 2] & ~(15U << shift)) | nibble << shift);
}

static void copy_element(void *context, int64_t index, int64_t offset)
{
    const copy_context *copy = context;
    if (copy->element == 0) {
        if (copy->to_dense)
            copy_nibble(copy->dense, index, copy->strided, offset);
        else
            copy_nibble(copy->strided, offset, copy->dense, index);
        return;
    }
    char *dense = copy->dense + (size_t)index * copy->element;
    char *strided = copy->strided + (size_t)offset * copy->element;
    memcpy(copy->to_dense ? dense : strided, copy->to_dense ? strided : dense, copy->element);
}

void gb_cli_copy_elements(
        const gb_logical_tensor *tensor, char *dense, char *strided, bool to_dense)
{
    copy_context copy = {dense, strided,
            tensor->data_type == GB_S4 || tensor->data_type == GB_U4
                    ? 0
                    : gb_data_type_bytes(tensor->data_type, 1),
            to_dense};
    gb_cli_visit(tensor, copy_element, &copy);
}

static gb_status digest_plain(const gb_memory *plain, uint64_t *digest)
{
    if (plain->tensor.property == GB_PROPERTY_HOST_SCALAR || gb_cli_is_dense(&plain->tensor)) {
        *digest = gb_cli_memory_hash(plain);
        return GB_SUCCESS;
    }
    size_t bytes =
            gb_data_type_bytes(plain->tensor.data_type, (size_t)gb_cli_count(&plain->tensor));
    char *dense = calloc(bytes ? bytes : 1, 1);
    if (!dense)
        return GB_OUT_OF_MEMORY;
    gb_cli_copy_elements(&plain->tensor, dense, plain->data, true);
    *digest = hash_elements(plain->tensor.data_type, dense, bytes);
    free(dense);
    return GB_SUCCESS;
}

gb_status gb_cli_memory_digest(const gb_memory *memory, gb_stream *stream, uint64_t *digest)
{
    gb_memory copy;
    const gb_memory *plain;
    gb_status status = gb_cli_memory_plain(memory, stream, &copy, &plain);
    if (status == GB_SUCCESS)
        status = digest_plain(plain, digest);
    gb_cli_memory_free(&copy);
    return status;
}
