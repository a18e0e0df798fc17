/* Element-wise loops over a space in normal form: chunks of the innermost dim. */
#ifndef GB_KERNELS_CHUNKS_H
#define GB_KERNELS_CHUNKS_H

#include "base/memory.h"
#include "kernels/space.h"

typedef struct gb_chunks {
    int ndims, inner; /* the innermost dim, -1: none */
    int64_t dims[GB_AXES];
    int64_t length, units;
} gb_chunks;

/* Chunks of at most `length` elements; brings the space into normal form. */
static inline gb_chunks gb_chunks_of(gb_space *space, int64_t length)
{
    gb_space_normalize(space);
    gb_chunks chunks = {.ndims = space->ndims, .inner = space->ndims - 1, .units = 1};
    for (int d = 0; d < space->ndims; d++)
        chunks.dims[d] = space->dims[d];
    int64_t inner = chunks.inner < 0 ? 1 : chunks.dims[chunks.inner];
    chunks.length = gb_max_i64(1, gb_min_i64(inner, length));
    for (int d = 0; d < chunks.inner; d++)
        chunks.units *= chunks.dims[d];
    chunks.units *= gb_div_up(inner, chunks.length);
    return chunks;
}

/* Sets the position of a chunk; returns its elements. */
static inline int64_t gb_chunks_locate(const gb_chunks *chunks, int64_t unit, int64_t *position)
{
    if (chunks->inner < 0)
        return 1;
    int64_t inner = chunks->dims[chunks->inner], steps = gb_div_up(inner, chunks->length);
    int64_t rest = unit / steps;
    for (int d = chunks->inner; d-- > 0;) {
        position[d] = rest % chunks->dims[d];
        rest /= chunks->dims[d];
    }
    position[chunks->inner] = unit % steps * chunks->length;
    return gb_min_i64(chunks->length, inner - position[chunks->inner]);
}

#endif
