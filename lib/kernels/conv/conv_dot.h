/* Convolutions of 8-bit codes: the plan of conv_plan.h with words of several channels in place of
 * floats, sums in s32, and a scale per output channel. */
#ifndef GB_KERNELS_CONV_CONV_DOT_H
#define GB_KERNELS_CONV_CONV_DOT_H

#include "kernels/conv/conv_unit.h"

/* Source codes stand for (code - zero_point) * scale, weights for code * scales[n % n_scales] with
 * n the output channel over all groups. Padding is 0, as code: the zero point. */
typedef struct gb_conv_dot {
    int64_t channels; /* input channels of a group; the plan's in_channels count words */
    int64_t zero_point;
    float scale;
    int64_t n_scales;
    const float *scales; /* of the graph while planning */

    /* Work of gb_conv_add(). */
    gb_dot_form form;
    bool is_signed, flip;    /* of the source codes */
    int32_t fill;            /* the word of padding */
    uint32_t terms, factors; /* slots: what gb_dot_finish takes, panel by panel of each group */
} gb_conv_dot;

/* Turns channels into words before anything is planned. */
void gb_conv_dot_init(gb_conv *conv);
/* Adds the packing of the weights, which becomes conv->weights_buffer, and the uses of terms and
 * factors. */
gb_status gb_conv_dot_pack(gb_program *program, gb_step *step, gb_conv *conv);
/* As gb_conv_unit_copy(). */
void gb_conv_dot_copy(gb_conv_unit *u, int64_t first, bool clear);
/* The product `whole` of words, where it has s32 in place of floats: positions x channels of the
 * group from `channel` on. After the last block of channels the results are finished. */
void gb_conv_dot_multiply(const gb_conv_unit *u, const gb_gemm_tile *whole, int64_t positions,
        int64_t channels, int64_t channel);

#endif
