/* Subsets of a dense tensor's elements that are reduced together: channels, rows, columns, groups.
 */
#ifndef GB_REF_BOUNDS_SUBSET_H
#define GB_REF_BOUNDS_SUBSET_H

#include <graphbench/graphbench.h>
#include <stdint.h>

/* `count` subsets, equally shaped: `outer` runs of `inner` elements each. Subset s starts at
 * element s / per_block * block_stride + s % per_block * step. */
typedef struct gb_ref_subsets {
    int64_t count, per_block, block_stride, step;
    int64_t outer, outer_stride, inner, inner_stride;
} gb_ref_subsets;

/* One subset per index of the axis. */
void gb_ref_subsets_channels(gb_ref_subsets *subsets, const gb_logical_tensor *tensor, int axis);
/* One subset per line along the axis. */
void gb_ref_subsets_lines(gb_ref_subsets *subsets, const gb_logical_tensor *tensor, int axis);
/* The trailing axes from `axis` on form a subset, contiguous. */
void gb_ref_subsets_rows(gb_ref_subsets *subsets, const gb_logical_tensor *tensor, int axis);
/* One subset per sample (axis 0) and group of consecutive channels. */
void gb_ref_subsets_groups(
        gb_ref_subsets *subsets, const gb_logical_tensor *tensor, int channel_axis, int64_t groups);

static inline int64_t gb_ref_subset_size(const gb_ref_subsets *subsets)
{
    return subsets->outer * subsets->inner;
}

/* Walks a subset: for (c = gb_ref_subset_begin(...); c.left > 0; gb_ref_subset_next(&c)) ... c.at
 * ... */
typedef struct gb_ref_cursor {
    int64_t at, left; /* element, elements to come (this one included) */
    int64_t run;      /* elements left in the run */
    int64_t jump;     /* from the end of a run to the next one */
    const gb_ref_subsets *subsets;
} gb_ref_cursor;

static inline gb_ref_cursor gb_ref_subset_begin(const gb_ref_subsets *subsets, int64_t s)
{
    int64_t block = subsets->per_block > 0 ? s / subsets->per_block : 0;
    int64_t at = block * subsets->block_stride + (s - block * subsets->per_block) * subsets->step;
    return (gb_ref_cursor){at, gb_ref_subset_size(subsets), subsets->inner,
            subsets->outer_stride - subsets->inner * subsets->inner_stride, subsets};
}

static inline void gb_ref_subset_next(gb_ref_cursor *cursor)
{
    cursor->at += cursor->subsets->inner_stride;
    cursor->left--;
    if (--cursor->run == 0) {
        cursor->at += cursor->jump;
        cursor->run = cursor->subsets->inner;
    }
}

#endif
