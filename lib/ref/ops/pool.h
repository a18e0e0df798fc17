/* What pools and their gradients share. */
#ifndef GB_REF_OPS_POOL_H
#define GB_REF_OPS_POOL_H

#include "ref/bounds/sum.h"
#include "ref/ops/window_cells.h"

/* Channels that a unit of work handles for one column after the other. */
enum { GB_REF_POOL_CHANNELS = 64 };

typedef struct gb_ref_pool_geometry {
    gb_ref_view image, result; /* src and dst of the pool */
    gb_window window;
} gb_ref_pool_geometry;

gb_status gb_ref_pool_bind(const gb_op *op, const gb_logical_tensor *image,
        const gb_logical_tensor *result, gb_ref_pool_geometry *pool);
/* Denominators of AvgPool per position of the result; NULL when out of memory. */
double *gb_ref_pool_denominators(const gb_op *op, const gb_ref_pool_geometry *pool);

/* Sums over the cells of each column, divided by `denominators` (per target position) if given. */
gb_status gb_ref_pool_sum(const gb_ref_window_cells *cells, const double *value,
        const double *bound, const double *denominators, gb_ref_tensor *dst);

#endif
