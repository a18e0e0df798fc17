/* Allocation helpers. */
#include "base/memory.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Blocks of this size and more lie in huge pages. */
static const size_t huge_block = (size_t)4 << 20, huge_page = (size_t)2 << 20;

bool gb_size_mul(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

bool gb_dims_count(int ndims, const int64_t *dims, int64_t *count)
{
    int64_t product = 1;
    for (int d = 0; d < ndims; d++) {
        if (dims[d] == 0) {
            *count = 0;
            return true;
        }
        if (__builtin_mul_overflow(product, dims[d], &product))
            return false;
    }
    *count = product;
    return true;
}

static void *checked(void *memory, size_t bytes)
{
    if (!memory)
        gb_fail(GB_OUT_OF_MEMORY, "out of memory: %zu bytes", bytes);
    return memory;
}

void *gb_calloc(size_t count, size_t size)
{
    return checked(calloc(count ? count : 1, size ? size : 1), count * size);
}

void *gb_memdup(const void *data, size_t bytes)
{
    void *copy = checked(malloc(bytes ? bytes : 1), bytes);
    if (copy && bytes)
        memcpy(copy, data, bytes);
    return copy;
}

char *gb_strdup(const char *text)
{
    return gb_memdup(text, strlen(text) + 1);
}

bool gb_reserve(void *array, uint32_t *capacity, size_t needed, size_t size)
{
    if (needed <= *capacity)
        return true;
    size_t grown = *capacity < 8 ? 8 : (size_t)*capacity * 2;
    if (grown < needed)
        grown = needed;
    size_t bytes;
    if (grown > UINT32_MAX || !gb_size_mul(grown, size, &bytes)) {
        gb_fail(GB_OUT_OF_MEMORY, "out of memory: %zu elements of %zu bytes", needed, size);
        return false;
    }
    void *old;
    memcpy(&old, array, sizeof old);
    void *memory = checked(realloc(old, bytes), bytes);
    if (!memory)
        return false;
    memset((char *)memory + *capacity * size, 0, bytes - *capacity * size);
    memcpy(array, &memory, sizeof memory);
    *capacity = (uint32_t)grown;
    return true;
}

void *gb_aligned_alloc(size_t bytes, size_t alignment)
{
    bool huge = bytes >= huge_block;
    if (alignment < GB_CACHE_LINE)
        alignment = GB_CACHE_LINE;
    if (huge && alignment < huge_page)
        alignment = huge_page;
    void *memory = NULL;
    if (posix_memalign(&memory, alignment, bytes ? bytes : 1) != 0)
        memory = NULL;
#ifdef MADV_HUGEPAGE
    if (memory && huge)
        madvise(memory, bytes, MADV_HUGEPAGE); /* a wish: without it the pages are small */
#endif
    return checked(memory, bytes);
}
