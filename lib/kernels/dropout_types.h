/* Function type of the dropout kernel. */
#ifndef GB_KERNELS_DROPOUT_TYPES_H
#define GB_KERNELS_DROPOUT_TYPES_H

#include <stdint.h>

enum { GB_DROPOUT_ELEMENTS = 1024 };

/* Up to GB_DROPOUT_ELEMENTS elements. Element i stays when the draw of index first + i * step is
 * above the threshold: dst = src * scale, keep = 1; otherwise both are 0. dst may be src. */
typedef struct gb_dropout_block {
    uint64_t seed, offset;
    uint64_t first;
    int64_t step, n;
    uint32_t threshold;
    float scale;
    const float *src;
    float *dst;
    uint8_t *keep;
} gb_dropout_block;

typedef void gb_dropout_fn(const gb_dropout_block *block);

#endif
