/* Function types of the copy kernels. */
#ifndef GB_KERNELS_COPY_TYPES_H
#define GB_KERNELS_COPY_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Element (r, c) of `size` (1, 2 or 4) bytes: src + r * size + c * src_step -> dst + r * dst_step +
 * c * size. Steps in bytes. */
typedef void gb_transpose_fn(size_t size, const char *src, int64_t src_step, char *dst,
        int64_t dst_step, int64_t rows, int64_t cols);

#endif
