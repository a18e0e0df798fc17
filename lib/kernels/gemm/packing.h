/* A step of its own that brings weights into the panels GEMM reads; the runtime runs it once when
 * they are constant. */
#ifndef GB_KERNELS_GEMM_PACKING_H
#define GB_KERNELS_GEMM_PACKING_H

#include "kernels/isa/kernels.h"

/* The source is a K x N matrix per batch. K runs over blocks of `inner`, in each over all taps, for
 * each tap over the block: convolutions skip taps and split channels; a plain matrix has no taps.
 * Result: [batch...][N / PANEL][K][PANEL] in f32 or as the source has them, columns beyond N are 0.
 *
 * With a vnni_factor, quantized values of 8 bits and bf16 become VNNI groups (kernels/isa/dot.h):
 * each block of a tap begins a new VNNI group. Behind those of quantized values comes, in each
 * panel, a row of PANEL sums of columns. */
typedef struct gb_packing {
    gb_data_type type;
    int vnni_factor; /* of VNNI groups, or 0 */
    int64_t halves;  /* 1: bf16 and f16 stay what they are; else they become f32 */
    int64_t first;   /* element of the source that the matrix starts at */
    int64_t n, n_stride;
    int64_t inner, inner_block, inner_stride;
    int n_taps, n_batch; /* dims of the taps and of batches; no padding: all bytes tell something */
    int64_t tap_dims[GB_AXES], tap_strides[GB_AXES];
    int64_t batch_dims[GB_AXES], batch_strides[GB_AXES];

    /* Set by gb_packing_complete(). */
    const gb_kernels *kernels;
    int64_t taps, batches, panels;
    uint32_t src, dst; /* slots of the step */
} gb_packing;

/* Sets what follows from the rest. */
void gb_packing_complete(gb_packing *packing);
/* Packs panel `index` of all batches' panels from where the source lies to dst. */
void gb_packing_run_panel(const gb_packing *packing, const void *source, int64_t index, void *dst);

/* Adds the step reading `source`; *packed is the temporary it writes. Copies `packing`. */
gb_status gb_packing_add(
        gb_program *program, const gb_packing *packing, uint32_t source, uint32_t *packed);
/* Should so many weights, multiplied with so many rows or positions, stay bf16 or f16? Halves take
 * half of the memory, and of the time to read it where they do not stay in L2. */
bool gb_packing_keeps_halves(gb_data_type type, double elements, double rows);
/* Numbers or VNNI groups of one panel, with its sums, and of one batch. */
int64_t gb_packing_panel(const gb_packing *packing);
int64_t gb_packing_batch(const gb_packing *packing);

#endif
