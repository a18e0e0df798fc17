/* Convolutions of 8-bit quantized values: the plan of conv_plan.h with VNNI groups of several
 * channels in place of floats, sums in s32, and a scale per output channel. */
#ifndef GB_KERNELS_CONV_CONV_DOT_H
#define GB_KERNELS_CONV_CONV_DOT_H

#include "kernels/conv/conv_item.h"

/* Source quantized values stand for (code - zero_point) * scale, weights for code * scales[n %
 * n_scales] with n the output channel over all groups. Padding is 0, as code: the zero point. */
typedef struct gb_conv_dot {
    int64_t channels; /* input channels of a group; the plan's in_channels count VNNI groups */
    int64_t zero_point;
    float scale;
    int64_t n_scales;
    const float *scales; /* of the graph while planning */

    /* Work of gb_conv_add(). */
    gb_dot_form form;
    bool is_signed, flip;    /* of the source quantized values */
    int32_t fill;            /* the VNNI group of padding */
    uint32_t terms, factors; /* slots: what gb_dot_finish takes, panel by panel of each group */
} gb_conv_dot;

/* Turns channels into VNNI groups before anything is planned. */
void gb_conv_dot_init(gb_conv *conv);
/* Adds the packing of the weights, which becomes conv->weights_buffer, and the uses of terms and
 * factors. */
gb_status gb_conv_dot_pack(gb_program *program, gb_step *step, gb_conv *conv);
/* As gb_conv_item_copy(). */
void gb_conv_dot_copy(gb_conv_item *u, int64_t first, bool clear);
/* The product `whole` of VNNI groups, where it has s32 in place of floats: positions x channels of
 * the group from `channel` on. After the last block of channels the results are finished. */
void gb_conv_dot_multiply(const gb_conv_item *u, const gb_gemm_tile *whole, int64_t positions,
        int64_t channels, int64_t channel);

#endif
