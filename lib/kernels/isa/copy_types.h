/* Function types of the copy kernels. */
#ifndef GB_KERNELS_ISA_COPY_TYPES_H
#define GB_KERNELS_ISA_COPY_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Rows, or columns, of 4-byte elements that are few: where they lie close, lanes are picked from all of them. */
enum { GB_FEW_WORDS = 4 };

/* Element (r, c) of `size` (1, 2 or 4) bytes: src + r * size + c * src_step -> dst + r * dst_step +
 * c * size. Steps in bytes. transpose_streamed writes whole lines of dst past the caches. */
typedef void gb_transpose_fn(size_t size, const char *src, int64_t src_step, char *dst,
        int64_t dst_step, int64_t rows, int64_t cols);

/* Copies bytes that lie in the cache to memory that nobody reads soon, past the caches: whole lines
 * of it, the ends as usual. Other threads see them behind a barrier. */
typedef void gb_stream_fn(const void *src, void *dst, size_t bytes);

#endif
