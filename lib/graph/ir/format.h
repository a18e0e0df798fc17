/* Formats: in which order the elements of a tensor lie in memory, whatever its sizes.
 *
 * A format is an order of the axes, some of which may be split into blocks that lie innermost. Its
 * text names the axes by letters from the outermost in, those with blocks as capitals, then the
 * blocks with their sizes: aBcd16b is n x c x h x w with channels in blocks of 16, so that element
 * (n, c, h, w) lies where a dense tensor n x c/16 x h x w x 16 has (n, c / 16, h, w, c % 16). The
 * last block of an axis may not be full: what is left of it is padding, and holds zeros.
 *
 * Formats are interned: equal ones are one object with one id, for as long as the process runs. All
 * functions may be called from any thread. */
#ifndef GB_GRAPH_IR_FORMAT_H
#define GB_GRAPH_IR_FORMAT_H

#include <graphbench/graphbench.h>
#include <stdbool.h>

enum {
    GB_FORMAT_BLOCKS = 4, /* most blocks of a format; ndims + blocks is at most GB_MAX_NDIMS */
    GB_FORMAT_TEXT = 64,
    GB_FORMAT_MAX_BLOCK = 4096
};

typedef struct gb_format_block {
    uint8_t axis;
    int64_t size; /* above 1 */
} gb_format_block;

typedef struct gb_format {
    size_t id; /* above 0: the layout_id of opaque tensors */
    int ndims, n_blocks;
    uint8_t order[GB_MAX_NDIMS];              /* axes from the outermost in */
    gb_format_block blocks[GB_FORMAT_BLOCKS]; /* from the outermost in */
    char text[GB_FORMAT_TEXT];
} gb_format;

/* The format that a text names, capitals or not. Beside letters of axes, names of images and
 * matrices are known: NCHW16c, NCDHW8c, MK16m16k, NK16k32n (of a k x n matrix), nhwc.
 * GB_INVALID_ARGUMENTS: it names none. */
gb_status gb_format_parse(const char *text, const gb_format **format);
/* NULL when there is no format of this id. */
const gb_format *gb_format_find(size_t id);

/* Positions of an axis that lie in one block, all blocks of the axis together; 1 without blocks. */
int64_t gb_format_block_size(const gb_format *format, int axis);
/* Do the blocks divide the dims, so that there is no padding? */
bool gb_format_divides(const gb_format *format, const int64_t *dims);
/* Dims of the dense array that the format makes of a tensor, from the outermost in: axes in blocks,
 * then the blocks; returns their number. Dims are known. */
int gb_format_dims(const gb_format *format, const int64_t *dims, int64_t physical[GB_MAX_NDIMS]);
/* Elements with padding, dims known; false when they do not fit 64 bits. */
bool gb_format_count(const gb_format *format, const int64_t *dims, int64_t *count);

/* Moving along an axis by `unit` positions, from a multiple of it and up to the next larger unit,
 * moves by `stride` elements. */
typedef struct gb_format_part {
    int64_t unit, stride;
} gb_format_part;

/* The parts of an axis of a strided or opaque tensor with known dims, from unit 1 up; returns their
 * number: one more than the axis has blocks. */
int gb_tensor_parts(
        const gb_logical_tensor *tensor, int axis, gb_format_part parts[GB_FORMAT_BLOCKS + 1]);
/* Elements per position of each axis, from block to block of those that have some. */
void gb_tensor_steps(const gb_logical_tensor *tensor, int64_t steps[GB_MAX_NDIMS]);
/* Element at `position` of a strided or opaque tensor with known dims. */
int64_t gb_tensor_offset(const gb_logical_tensor *tensor, const int64_t *position);

/* Lays a tensor with known dims out in a format: one without blocks is strided. */
void gb_format_apply(const gb_format *format, gb_logical_tensor *tensor);
/* Does a strided tensor lie as a format without blocks has it? False when dims are not known. */
bool gb_tensor_lies_in(const gb_logical_tensor *tensor, const gb_format *format);

#endif
