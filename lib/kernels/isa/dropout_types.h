/* Function type of the draws of Dropout. */
#ifndef GB_KERNELS_ISA_DROPOUT_TYPES_H
#define GB_KERNELS_ISA_DROPOUT_TYPES_H

#include <stdint.h>

enum { GB_DROPOUT_ELEMENTS = 1024 };

/* Up to GB_DROPOUT_ELEMENTS elements. keep[i] = 1 when the draw of index first + i * step is above
 * the threshold, otherwise 0. */
typedef struct gb_dropout_block {
    uint64_t seed, offset;
    uint64_t first;
    int64_t step, n;
    uint32_t threshold;
    float *keep;
} gb_dropout_block;

typedef void gb_dropout_fn(const gb_dropout_block *block);

#endif
