/* Convolutions of 8-bit quantized values, and of bf16: the product of conv_product.h with VNNI groups
 * of several channels in place of floats. Sums of quantized values are s32, with a scale per output
 * channel. */
#ifndef GB_KERNELS_CONV_CONV_VNNI_H
#define GB_KERNELS_CONV_CONV_VNNI_H

#include "kernels/conv/conv_product.h"

typedef struct gb_conv_vnni {
    int64_t channels; /* input channels of a group; the plan's in_channels count VNNI groups */
    gb_dot_form form;
    bool floats;             /* bf16; else quantized values: */
    bool is_signed, flip;    /* of the source */
    int64_t zero_point;      /* of the source; padding is it, as code */
    int32_t fill;            /* the VNNI group of padding */
    uint32_t terms, factors; /* slots: what gb_dot_finish takes, panel by panel of each group */
} gb_conv_vnni;

/* Are source and weights quantized values whose sums fit 32 bits, with no gaps in the source? */
bool gb_conv_sums_integers(const gb_conv_problem *problem);

/* Rows of the variants (conv_plan.c); gb_conv_product_run() runs them. */
bool gb_conv_int8_fits(const gb_conv_problem *problem);
gb_status gb_conv_int8_plan(gb_program *program, gb_step *step, const gb_conv_problem *problem);

bool gb_conv_bf16_fits(const gb_conv_problem *problem);
gb_status gb_conv_bf16_plan(gb_program *program, gb_step *step, const gb_conv_problem *problem);

extern const gb_conv_arithmetic gb_conv_vnni_arithmetic;

/* Parts of it, for minimal filtering ------------------------------------------------------------*/

/* Of quantized values. */
gb_conv_vnni gb_conv_int8_begin(const gb_conv_problem *problem);
/* Adds the step that packs the weights of quantized values, and the uses of what it makes. */
gb_status gb_conv_int8_add_weights(
        gb_program *program, gb_step *step, const gb_conv_problem *problem, gb_conv_product *plan);
/* All tiles of positions x channels results; with `finish`, column 0 first, they are finished. */
void gb_conv_vnni_multiply(const gb_conv_product_item *u, const gb_gemm_tile *whole,
        int64_t positions, int64_t channels, const gb_dot_finish *finish);
/* Of quantized values: what finishes the sums of the group's channels from `channel` on. */
gb_dot_finish gb_conv_vnni_finish(const gb_conv_product_item *u, int64_t channel);

#endif
