/* What kernels are shaped by: figures of the device that a program is compiled for. */
#ifndef GB_KERNELS_OPENCL_SHAPE_H
#define GB_KERNELS_OPENCL_SHAPE_H

#include "kernels/opencl/device.h"

#include <stdint.h>

/* name, bits of gb_backend.compile_key, what a number is a multiple of */
#define GB_CL_SHAPE_FIELDS(field)                                                                  \
    field(is_cpu, 1, 1) /* work-items are loops, and private memory is cached */                   \
            field(local_memory, 1,                                                                 \
                    1)          /* groups keep blocks of a product's operands in local memory */   \
            field(units, 12, 1) /* compute units */                                                \
            field(local_size, 9, 1) /* work-items of a group that kernels of rows ask for */       \
            field(tile_rows, 4, 1)  /* of a product's results in registers, ... */                 \
            field(lanes, 5, 1)      /* ... and columns */                                          \
            field(row_tiles, 5,                                                                    \
                    1) /* tiles of a work-item on a CPU, of a group elsewhere: rows, ... */        \
            field(column_tiles, 5, 1) /* ... and columns */                                        \
            field(depth, 7, 8)        /* terms of sums for which operands are packed at a time */  \
            field(items, 4, 1)        /* work-items wanted for each compute unit, on a CPU */      \
            field(attention_tile, 3, 1)  /* rows of scores in registers */                         \
            field(attention_rows, 4, 4)  /* of a work-item */                                      \
            field(attention_keys, 4, 16) /* that it walks by at a time */

typedef struct gb_cl_shape {
#define GB_CL_DECLARE(name, bits, unit) int name;
    GB_CL_SHAPE_FIELDS(GB_CL_DECLARE)
#undef GB_CL_DECLARE
} gb_cl_shape;

/* Longest text of gb_cl_shape_print(). */
enum { GB_CL_SHAPE_TEXT = 512 };

uint64_t gb_cl_shape_key(const gb_cl_shape *shape);
gb_cl_shape gb_cl_shape_of_key(uint64_t key);
/* "tile_rows=6,lanes=16" for all fields, and its reading: what is not named stays. False, and nothing
 * changes, where the text is no such list or the device has no kernels of that shape. */
void gb_cl_shape_print(const gb_cl_shape *shape, char *text, size_t bytes);
bool gb_cl_shape_read(gb_cl_shape *shape, const gb_cl_device *device, const char *text, size_t n);

/* tuned.c: by rules from the device's description, then by the table of devices that were measured,
 * then by what GB_OPENCL_TUNE=1 found on this machine, then by GB_OPENCL_SHAPE. */
gb_cl_shape gb_cl_shape_choose(const gb_cl_device *device);
/* What was found on this machine for the device and its driver; false where there is nothing that can
 * be used. */
bool gb_cl_shape_load(const gb_cl_device *device, gb_cl_shape *shape);
void gb_cl_shape_store(const gb_cl_device *device, const gb_cl_shape *shape);

/* tune.c: measures products and attention on an engine of the device's own, and improves the shape.
 * A failing call ends the search, and so does the end of the time; the best so far is left. */
void gb_cl_shape_search(const gb_cl_device *device, gb_cl_shape *shape, int seconds);

#endif
