/* Normal form of iteration spaces. */
#include "kernels/plan/space.h"

#include <string.h>

gb_space gb_space_of(const gb_logical_tensor *tensor)
{
    gb_space space = {.ndims = tensor->ndims};
    memcpy(space.dims, tensor->dims, sizeof tensor->dims);
    return space;
}

void gb_space_add(gb_space *space, int64_t *strides)
{
    space->strides[space->n_views++] = strides;
}

void gb_space_add_pointwise(gb_space *space, gb_pointwise_program *pointwise)
{
    for (uint32_t i = 0; i < pointwise->n_operands; i++)
        gb_space_add(space, pointwise->operands[i].strides);
}

void gb_space_set_pointwise(const gb_space *space, gb_pointwise_program *pointwise)
{
    pointwise->ndims = space->ndims;
    memcpy(pointwise->dims, space->dims, sizeof pointwise->dims);
}

static void move(gb_space *space, int to, int from)
{
    space->dims[to] = space->dims[from];
    space->roles[to] = space->roles[from];
    for (int v = 0; v < space->n_views; v++)
        space->strides[v][to] = space->strides[v][from];
}

static void swap(gb_space *space, int a, int b)
{
    int64_t dim = space->dims[a];
    uint8_t role = space->roles[a];
    space->dims[a] = space->dims[b], space->dims[b] = dim;
    space->roles[a] = space->roles[b], space->roles[b] = role;
    for (int v = 0; v < space->n_views; v++) {
        int64_t *strides = space->strides[v], stride = strides[a];
        strides[a] = strides[b], strides[b] = stride;
    }
}

static void drop_ones(gb_space *space)
{
    int kept = 0;
    for (int d = 0; d < space->ndims; d++)
        if (space->dims[d] != 1)
            move(space, kept++, d);
    space->ndims = kept;
}

static void sort(gb_space *space)
{
    const int64_t *strides = space->strides[0];
    for (int i = 1; i < space->ndims; i++)
        for (int d = i; d > 0; d--) {
            uint64_t outer = (uint64_t)strides[d - 1] - 1, inner = (uint64_t)strides[d] - 1;
            if (outer >= inner)
                break; /* stride 0 wraps to the largest key */
            swap(space, d - 1, d);
        }
}

static bool mergeable(const gb_space *space, int outer, int inner)
{
    if (space->roles[outer] != space->roles[inner])
        return false;
    for (int v = 0; v < space->n_views; v++)
        if (space->strides[v][outer] != space->strides[v][inner] * space->dims[inner])
            return false;
    return true;
}

static void merge(gb_space *space)
{
    int last = 0;
    for (int d = 1; d < space->ndims; d++) {
        if (!mergeable(space, last, d)) {
            move(space, ++last, d);
            continue;
        }
        int64_t size = space->dims[last];
        move(space, last, d);
        space->dims[last] *= size;
    }
    if (space->ndims)
        space->ndims = last + 1;
}

void gb_space_normalize(gb_space *space)
{
    drop_ones(space);
    sort(space);
    merge(space);
}
