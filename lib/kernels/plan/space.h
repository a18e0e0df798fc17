/* Iteration spaces: dims that several tensors are walked over together, brought into the form that
 * loops like best. */
#ifndef GB_KERNELS_PLAN_SPACE_H
#define GB_KERNELS_PLAN_SPACE_H

#include "kernels/plan/pointwise.h"

enum { GB_SPACE_VIEWS = 2 * (GB_POINTWISE_OPERANDS + 8) };

typedef struct gb_space {
    int ndims;
    int64_t dims[GB_AXES];
    uint8_t roles[GB_AXES]; /* only dims of one role are merged */
    int n_views;
    int64_t *strides[GB_SPACE_VIEWS]; /* of each tensor, per dim; rewritten with the dims */
} gb_space;

/* The dims of a tensor, all of role 0, without views. */
gb_space gb_space_of(const gb_logical_tensor *tensor);
void gb_space_add(gb_space *space, int64_t *strides);
/* Adds the operands of a pointwise program over the same dims. */
void gb_space_add_pointwise(gb_space *space, gb_pointwise_program *pointwise);
/* Drops dims of size 1, orders the others as the first tensor lies in memory (outermost first; dims
 * that it broadcasts first of all) and merges neighbours that all tensors allow to. */
void gb_space_normalize(gb_space *space);
/* The pointwise program's dims become those of the space. */
void gb_space_set_pointwise(const gb_space *space, gb_pointwise_program *pointwise);

/* Element offset of a position. */
static inline int64_t gb_offset(int ndims, const int64_t *strides, const int64_t *position)
{
    int64_t offset = 0;
    for (int d = 0; d < ndims; d++)
        offset += strides[d] * position[d];
    return offset;
}

/* Sets position[list[i]] for all i so that `index` counts over the listed dims, the last one
 * fastest. */
static inline void gb_position_set(
        int n, const uint8_t *list, const int64_t *dims, int64_t index, int64_t *position)
{
    for (int i = n; i-- > 0;) {
        int64_t size = dims[list[i]];
        position[list[i]] = index % size;
        index /= size;
    }
}

static inline int64_t gb_product(int n, const uint8_t *list, const int64_t *dims)
{
    int64_t product = 1;
    for (int i = 0; i < n; i++)
        product *= dims[list[i]];
    return product;
}

#endif
