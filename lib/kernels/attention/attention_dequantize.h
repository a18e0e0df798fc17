/* Operands that are dequantised block by block: Q, K and V as quantized values, seen through the
 * post-ops that make numbers of them. What is said of keys holds for the rows of Q as well. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_DEQUANTIZE_H
#define GB_KERNELS_ATTENTION_ATTENTION_DEQUANTIZE_H

#include "kernels/isa/kernels.h"
#include "kernels/plan/attention_problem.h"

/* Some keys of the matrix at the position's batch dims, n_batch of them, as f32 rows in the order
 * of the tensor: of keys, or of features where keys are the last dim; dst_row floats apart. */
typedef struct gb_attention_dequantization {
    const gb_attention_source *source;
    void *const *buffers;
    const int64_t *position;
    int n_batch;
    int64_t key, keys;
    float *dst, *registers;
    int64_t dst_row;
} gb_attention_dequantization;

void gb_attention_dequantize(
        const gb_kernels *kernels, const gb_attention_dequantization *dequantization);

#endif
