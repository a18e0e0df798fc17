/* What elements are reduced to. */
#ifndef GB_KERNELS_PLAN_REDUCE_KIND_H
#define GB_KERNELS_PLAN_REDUCE_KIND_H

typedef enum gb_reduce_kind {
    GB_REDUCE_SUM, /* 0, the default */
    GB_REDUCE_SUM_ABS,
    GB_REDUCE_SUM_SQUARE,
    GB_REDUCE_PROD,
    GB_REDUCE_MAX,
    GB_REDUCE_MIN
} gb_reduce_kind;

#endif
