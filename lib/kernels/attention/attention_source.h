/* Operands that are dequantised block by block: Q, K and V as quantized values, seen through the
 * post-ops that make numbers of them. What is said of keys holds for the rows of Q as well. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_SOURCE_H
#define GB_KERNELS_ATTENTION_ATTENTION_SOURCE_H

#include "fusion/regions/attention.h"
#include "kernels/isa/kernels.h"

/* A pointwise program over the dims of the tensor, some of them split into groups of sizes[d] > 1
 * elements, which have a dim of their own. Its result is scratch operand 0. */
typedef struct gb_attention_source {
    bool is_set;
    bool along_rows; /* keys are the last dim of the tensor */
    int ndims;
    int64_t dims[GB_AXES], sizes[GB_AXES];
    uint8_t places[GB_AXES]; /* dim of the program that tensor dim d, or its inside, is */
    gb_pointwise_program pointwise;
} gb_attention_source;

/* Builds the program of a chain that ends in `value`. */
gb_status gb_attention_source_init(gb_program *program, const gb_attention_chain *chain,
        uint32_t value, bool along_rows, gb_step *step, gb_attention_source *source);

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
