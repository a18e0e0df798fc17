/* Convolution as an implicit product: positions x channels of the result, K over taps and input
 * channels, read from padded copies of small blocks of the source.
 *
 * Positions run along the tile axis inside a tile (broadcast, or along the vector when there are
 * few output channels: `wide`), output channels along the other side. The order of K is: blocks of
 * input channels, taps of the skip axis, all other taps, channels of the block. */
#ifndef GB_KERNELS_CONV_CONV_PLAN_H
#define GB_KERNELS_CONV_CONV_PLAN_H

#include "kernels/cpu/scratch.h"
#include "kernels/isa/kernels.h"

/* The batch, or a spatial axis. Result position o reads positions o * stride + tap * dilation - pad
 * of the source, or of the source with up - 1 zeros between neighbours: then only every so many
 * taps meet a source position, and which ones depends on o modulo up. */
typedef struct gb_conv_axis {
    int64_t in, out, kernel, stride, dilation, pad;
    int64_t input_dilation;         /* 1, or stride is 1 */
    int64_t src_stride, tap_stride; /* elements of the source and of the weights */
    int dim;                        /* of the result */

    /* Planned. The copy holds every step-th source position: in it, strides are stride / step. */
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
} gb_conv_axis;

/* For every term of K, class by class: where it lies in the copy and in a panel of weights. In a
 * class the taps of the skip axis come first. */
typedef struct gb_conv_offsets {
    int64_t *source, *panel;
} gb_conv_offsets;

typedef struct gb_conv {
    gb_pointwise_program epilogue; /* over the dims of the result */
    int channel_dim;
    gb_data_type src_type, weights_type;
    float zero_point; /* of quantized values in the source, which the copy holds as numbers */
    uint32_t src_buffer, weights_buffer; /* of the program */
    int64_t src_channel_stride;
    int64_t in_stride, out_stride;             /* of the weights, along input and output channels */
    int64_t group_stride, first_weight;        /* from group to group; that of tap 0 */
    int64_t groups, in_channels, out_channels; /* channels of one group */
    bool depthwise;  /* one input and few output channels per group: stands here as one group whose
                        in_channels are 1 and whose out_channels are all */
    int64_t repeats; /* depthwise: output channels that read the same input channel */
    int n_axes;
    gb_conv_axis axes[GB_AXES]; /* the batch first */
    struct gb_conv_dot *dot;    /* 8-bit quantized values (conv_dot.h), or NULL; owned as the
                                    producer */
    struct gb_conv_producer
            *producer; /* depthwise in two dims: makes the source (conv_pair.h), or NULL.
                                    Of a plan borrowed, of a step owned */

    /* From here on the work of gb_conv_add(). */
    const gb_kernels *kernels;
    uint32_t src, weights;    /* slots; weights are packed panels */
    int tile_axis, skip_axis; /* skip axis: taps outside the source are left out; -1: none */
    int joined_axis; /* its positions follow those of the tile axis without a gap, in the copy and
                        in all operands: lines run over both. -1: none */
    int row_axis;    /* wide depthwise: rows of tiles, -1: single rows */
    int64_t run, run_step;    /* depthwise: taps along the rows of tiles, see gb_depthwise */
    bool wide, channels_last; /* channels_last: of the copy */
    bool transposed;          /* tiles are positions x channels, the result wants the reverse */
    bool direct;              /* the pointwise program only stores, along the rows of tiles */
    int64_t taps, residues,
            residue_most_taps; /* taps in all, products of the axes' classes, taps of the
                                          largest one */
    int64_t in_block, out_block, out_blocks, items;
    int64_t tile_rows, tile_cols,
            group_positions; /* group: positions a pointwise program run takes */
    int64_t copy_channel_stride;
    size_t copy_bytes;
    gb_scratch copy, sums, transpose_buffer, registers;
    int64_t *residue_taps;   /* taps of all classes before a class; the last axis counts fastest */
    gb_conv_offsets offsets; /* for a whole block of channels */
    gb_conv_offsets last_offsets;
} gb_conv;

/* Fills in the planned part of an axis. */
void gb_conv_axis_plan(gb_conv_axis *axis);
/* The first tap that meets a source position at result position o, or -1. */
int64_t gb_conv_first_tap(const gb_conv_axis *axis, int64_t o);
/* Taps of a class. */
int64_t gb_conv_class_taps(const gb_conv_axis *axis, int64_t first_tap);
/* Source position that the copy for result positions from `first` on begins with. */
int64_t gb_conv_begin(const gb_conv_axis *axis, int64_t first);
/* Source position that a tap reads at result position o, which it has to meet. */
static inline int64_t gb_conv_source(const gb_conv_axis *axis, int64_t o, int64_t tap)
{
    return (o * axis->stride + tap * axis->dilation - axis->pad) / axis->input_dilation;
}

/* Positions of the copy that `count` result positions read, a multiple of the phases. */
int64_t gb_conv_extent(const gb_conv_axis *axis, int64_t count);

/* Taps that neighbouring results read in the same places, one further on each: a run of
 * gb_depthwise. */
static inline int64_t gb_conv_axis_run(const gb_conv_axis *axis)
{
    bool shared = axis->stride_in_copy == 1 && axis->dilation_in_copy == 1 && axis->interleave == 1;
    return axis->input_dilation == 1 && shared && (axis->kernel == 3 || axis->kernel == 5)
                   ? axis->kernel
                   : 1;
}

/* Positions of a line, of so many on all axes. */
static inline int64_t gb_conv_line(const gb_conv *conv, const int64_t *counts)
{
    return counts[conv->tile_axis] * (conv->joined_axis < 0 ? 1 : counts[conv->joined_axis]);
}

/* Axes in the order of their taps in K; returns their number. */
int gb_conv_tap_order(const gb_conv *conv, int order[GB_AXES]);
/* Chooses the blocks and what follows from them; tile axis, sides and depth are known. */
void gb_conv_choose_blocks(gb_conv *conv, int threads);
/* Lays out the copy; floats of it, more than 1e12 when it is refused. */
double gb_conv_lay_out(gb_conv *conv);

/* lower_convolution.c: the description of an op, without pointwise program and buffers. */
gb_status gb_conv_describe(const gb_op *op, gb_conv *conv);
/* The same with the tensors that stand for source and weights. */
gb_status gb_conv_describe_codes(const gb_op *op, const gb_logical_tensor *src,
        const gb_logical_tensor *weights, gb_conv *conv);
/* The formats in which a group around the convolution `op` writes `value` (gb_capability). */
uint32_t gb_conv_writes_formats(const gb_graph *graph, const gb_group *group, const gb_op *op,
        uint32_t value, gb_format_candidate *candidates);
/* Every position reads one source position of its own, none of them padding. */
bool gb_conv_is_pointwise(const gb_conv *conv);

/* Adds the packing of the weights and the convolution. `step` has the uses of the pointwise
 * program; `conv` is copied. */
gb_status gb_conv_add(gb_program *program, gb_step *step, const gb_conv *conv);

void gb_conv_run(const gb_step_call *call);
void gb_depthwise_run(const gb_step_call *call);

#endif
