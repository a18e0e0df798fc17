/* Allocation helpers: checked sizes, arrays that grow, aligned blocks. All return NULL or false
 * when out of memory (the message for gb_last_error() is recorded). */
#ifndef GB_BASE_MEMORY_H
#define GB_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GB_CACHE_LINE = 64 };

/* *product = a * b; false when it does not fit. */
bool gb_size_mul(size_t a, size_t b, size_t *product);
/* Product of dims; false when it does not fit int64_t. All dims must be >= 0; an empty list
 * gives 1. */
bool gb_dims_count(int ndims, const int64_t *dims, int64_t *count);

/* Zeroed memory for `count` elements, free() releases it. count 0 gives a valid pointer. */
void *gb_calloc(size_t count, size_t size);
char *gb_strdup(const char *text);
void *gb_memdup(const void *data, size_t bytes);
/* Makes room for `needed` elements in a malloc'ed array: *array and *capacity grow geometrically,
 * new memory is zeroed. */
bool gb_reserve(void *array /* T** */, uint32_t *capacity, size_t needed, size_t size);

/* Aligned to `alignment` (0: a cache line; a power of two otherwise), released with free(). Large
 * blocks are in huge pages where the system has them on request: streams through memory wait less
 * for page tables. */
void *gb_aligned_alloc(size_t bytes, size_t alignment);

static inline size_t gb_align_up(size_t value, size_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}
/* Bytes of `count` floats in whole cache lines. */
static inline size_t gb_float_bytes(int64_t count)
{
    return gb_align_up((size_t)count * sizeof(float), GB_CACHE_LINE);
}
/* a / b rounded up, for b > 0 and any a. */
static inline int64_t gb_ceil_div(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}
static inline int64_t gb_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t gb_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t gb_div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#endif
