/* How the CPU runs convolutions: what the plans of all variants share.
 *
 * A work item is a block of result positions x output channels. It reads a padded copy of the source
 * positions that it needs, one block of input channels after the other. K runs over blocks of input
 * channels, in each over the taps of the skip axis, all other taps, and the channels of the block;
 * weights are packed in that order. */
#ifndef GB_KERNELS_CONV_CONV_PLAN_H
#define GB_KERNELS_CONV_CONV_PLAN_H

#include "kernels/cpu/scratch.h"
#include "kernels/isa/kernels.h"
#include "kernels/plan/conv_problem.h"

/* The batch, or a spatial axis. */
typedef struct gb_conv_plan_axis {
    /* As in gb_conv_axis. */
    int64_t in, out, kernel, stride, dilation, pad, input_dilation;
    int dim;
    int64_t src_stride; /* elements of what is copied */

    /* The copy holds every step-th source position: in it, strides are stride / step. */
    int64_t step, stride_in_copy;
    /* Taps of one class, first, first + classes, ..., are dilation_in_copy apart. Class number c
     * is that of tap c; inverse: of dilation / divisor modulo classes. */
    int64_t residues, divisor, inverse, dilation_in_copy;
    int64_t residue_stride; /* from class to class in the list of all axes' classes */
    /* When positions go along vectors and have a stride, the copy of the tile axis is ordered by
     * position modulo stride: `phases` runs one after another. */
    int64_t interleave;
    int64_t block, blocks; /* result positions of a work item */
    int64_t extent, copy_stride;
} gb_conv_plan_axis;

/* For every term of K, class by class: where it lies in the copy and in a panel of weights. In a
 * class the taps of the skip axis come first. */
typedef struct gb_conv_offsets {
    int64_t *source, *panel;
} gb_conv_offsets;

typedef struct gb_conv_plan {
    gb_pointwise_program epilogue; /* over the dims of the result */
    int channel_dim;
    const gb_kernels *kernels;
    gb_data_type src_type;
    float zero_point;      /* of quantized values in the source, which the copy holds as numbers */
    uint32_t src, weights; /* slots; weights are packed panels */
    int64_t src_channel_stride;
    /* Channels of one group. Depthwise, all groups stand here as one whose in_channels are 1 and
     * whose out_channels are all; where there are VNNI groups, in_channels are those. */
    int64_t groups, in_channels, out_channels;
    int n_axes;
    gb_conv_plan_axis axes[GB_AXES];
    int tile_axis;            /* positions along it run inside a tile */
    int skip_axis;            /* taps of it come first in K; -1: it does not matter which */
    bool wide, channels_last; /* wide: positions lie along vectors, not output channels;
                                 channels_last: of the copy */
    bool direct;              /* the pointwise program only stores, along the rows of tiles */
    int64_t taps, residues, residue_most_taps; /* taps in all, products of the axes' classes, taps
                                                  of the largest one */
    double term_cost;                          /* of a term of K (kernels/isa/costs.h) */
    int64_t in_block, out_block, out_blocks, items;
    int64_t copy_channel_stride;
    size_t copy_bytes;
    int64_t copy_apart; /* floats from the copy of a block of channels to that of the next, which
                           stay for the next output channels; 0: they share their place */
    gb_scratch copy, registers;
    gb_scratch views;        /* of the operands of the epilogue, for one tile */
    int64_t *residue_taps;   /* taps of all classes before a class; the last axis counts fastest */
    gb_conv_offsets offsets; /* for a whole block of channels */
} gb_conv_plan;

/* Plans and adds the step and the packing of the weights. `step` has the uses of the pointwise
 * program. */
gb_status gb_conv_add(gb_program *program, gb_step *step, const gb_conv_problem *problem);

/* Parts of planning ---------------------------------------------------------------------------- */

/* What sizes alone decide. */
gb_conv_plan gb_conv_begin(const gb_conv_problem *problem);
/* Elements of the result from position to position of a dim. */
int64_t gb_conv_result_stride(const gb_conv_plan *plan, int dim);
/* The axis next to a tile axis, if all operands of the post-ops have its lines one behind the other, or -1. */
int gb_conv_next_axis(const gb_conv_plan *plan, int tile_axis);
/* The same where its positions can follow in the same line, since neither axis has taps. */
int gb_conv_joined_axis(const gb_conv_plan *plan, int tile_axis);
/* The axis whose lines fill most of the `rows` rows of a tile; of several, that along which the result is
 * contiguous. row_step: as in gb_dot_form. */
int gb_conv_best_tile_axis(const gb_conv_plan *plan, int64_t rows, int64_t row_step);
/* The first spatial axis with taps besides the tile axis, or -1. */
int gb_conv_find_skip_axis(const gb_conv_plan *plan);
/* Counts taps, and sets in_block so that the weights that one tile of `columns` reads take 3/4 of
 * L1: they stay there for all tiles of a group, and tiles that wait for L2 leave less room for what
 * comes ahead of time. With a `step` above 1, the VNNI groups that tile registers take at a time,
 * those of a panel take eight times L1, and a multiple of it where there are several blocks. Axes
 * are planned. */
void gb_conv_choose_depth(gb_conv_plan *plan, int64_t columns, int64_t step);
/* Axes in the order of their taps in K; returns their number. */
int gb_conv_tap_order(const gb_conv_plan *plan, int order[GB_AXES]);
/* Lists the offsets of blocks of so many channels in memory of the step, and residue_taps. */
gb_status gb_conv_list_offsets(
        gb_step *step, gb_conv_plan *plan, int64_t channels, gb_conv_offsets *offsets);
/* Adds the packing of the weights, whose output channels are out_stride apart; *packed is the
 * buffer that it writes. `halves` and `vnni_factor` as in gb_packing. */
gb_status gb_conv_pack_weights(gb_program *program, const gb_conv_problem *problem,
        const gb_conv_plan *plan, int64_t out_stride, bool halves, int vnni_factor,
        uint32_t *packed);
/* The same for groups whose weights lie evenly (gb_conv_is_depthwise(), or a few channels each): panels of channels of all
 * groups, taps in the order of the axes. */
gb_status gb_conv_pack_depthwise(
        gb_program *program, const gb_conv_problem *problem, uint32_t *packed);
/* Multiplications. */
double gb_conv_terms(const gb_conv_plan *plan);

/* Axes (conv_axis.c) --------------------------------------------------------------------------- */

/* All but blocks, and what follows from them. */
gb_conv_plan_axis gb_conv_axis_plan(const gb_conv_axis *axis);
/* The first tap that meets a source position at result position o, or -1. */
int64_t gb_conv_first_tap(const gb_conv_plan_axis *axis, int64_t o);
/* Taps of a class. */
int64_t gb_conv_class_taps(const gb_conv_plan_axis *axis, int64_t first_tap);
/* Source position that the copy for result positions from `first` on begins with. */
int64_t gb_conv_first_source(const gb_conv_plan_axis *axis, int64_t first);
/* Source position that a tap reads at result position o, which it has to meet. */
static inline int64_t gb_conv_source(const gb_conv_plan_axis *axis, int64_t o, int64_t tap)
{
    return (o * axis->stride + tap * axis->dilation - axis->pad) / axis->input_dilation;
}
/* Positions of the copy that `count` result positions read, a multiple of the phases. */
int64_t gb_conv_extent(const gb_conv_plan_axis *axis, int64_t count);

#endif
