/* A work item of a convolution: a block of result positions x output channels, and the padded copy
 * of the source that it reads. */
#ifndef GB_KERNELS_CONV_CONV_ITEM_H
#define GB_KERNELS_CONV_CONV_ITEM_H

#include "kernels/conv/conv_plan.h"

typedef struct gb_conv_item {
    const gb_conv_plan *conv;
    const gb_step_call *call;
    const void *source; /* unless NULL, in place of the tensor: where its element source_first is */
    int64_t source_first;
    float *copy;
    int64_t padding[GB_AXES]; /* per axis: begin of the copy that was cleared last, where it
                                      reaches beyond the source; a mark elsewhere */
    bool cleared;
    int64_t first[GB_AXES], count[GB_AXES]; /* result positions, per axis */
    int64_t begin[GB_AXES];                 /* source position of the copy's first */
    int64_t group, out_first, n_out;        /* output channels */
    int64_t n_in;                           /* input channels in the copy */
    int64_t line[GB_AXES];                  /* offset in the work item of the current line */
} gb_conv_item;

/* The blocks that work item `index` of the plan stands for. */
void gb_conv_item_start(gb_conv_item *u, int64_t index);
/* Source elements by axis, and where they go in the copy: what a copy of one phase reads and
 * writes.
 */
typedef struct gb_conv_copy_desc {
    int ndims; /* axes, then channels */
    int64_t dims[GB_AXES], src[GB_AXES], dst[GB_AXES];
    int64_t from, to; /* elements of the source, floats of the copy */
} gb_conv_copy_desc;

/* False when there is nothing to copy. */
bool gb_conv_item_copy_desc(
        const gb_conv_item *u, int64_t first_channel, int64_t phase, gb_conv_copy_desc *box);
/* Fills the copy where it reaches beyond the source, unless it still is from the work item
 * before. */
void gb_conv_item_clear(gb_conv_item *u, int32_t word);
/* Brings the source positions of the channels first_channel .. + u->n_in into the copy; clears what
 * lies outside the source first when `clear`. */
void gb_conv_item_copy(gb_conv_item *u, int64_t first_channel, bool clear);
/* Where the copy holds the first source position of result position o of an axis. Adds the axis'
 * part to the class of taps, which becomes -1 when no tap meets a source position. */
int64_t gb_conv_item_find(const gb_conv_item *u, int a, int64_t o, int64_t *class);
/* Steps u->line to the next one; the tile axis and `fixed_axis` stay. False after the last. */
bool gb_conv_item_next_line(gb_conv_item *u, int fixed_axis);

/* Quantized values that were copied as their distance from the zero point; what lies around them stands for 0. */
void gb_conv_subtract(float zero_point, const gb_gemm_copy *copied);

#endif
