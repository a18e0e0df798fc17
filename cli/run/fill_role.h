/* What an input of a graph is for: how its values should be distributed, by the op that reads them.
 */
#ifndef GB_CLI_RUN_FILL_ROLE_H
#define GB_CLI_RUN_FILL_ROLE_H

#include <graphbench/graphbench.h>
#include <stdbool.h>

typedef enum gb_fill_domain {
    DOMAIN_ANY,         /* around 0 */
    DOMAIN_WEIGHTS,     /* likewise, so small that sums of products stay of size 1 */
    DOMAIN_POSITIVE,    /* away from 0 */
    DOMAIN_DIVISOR,     /* either sign, away from 0 */
    DOMAIN_FACTOR,      /* of long products */
    DOMAIN_SCALAR,      /* one element for all: positive, near 1 */
    DOMAIN_PROBABILITY, /* 0.5 */
    DOMAIN_SCALE,       /* small powers of two */
    DOMAIN_ZERO_POINT,
    DOMAIN_SEED,
    DOMAIN_OFFSET,
    DOMAIN_AXES /* of a reduction */
} gb_fill_domain;

typedef struct gb_fill_role {
    gb_fill_domain domain;
    double size;               /* standard deviation that the values should have */
    double terms;              /* factors: elements of a product */
    int halvings;              /* scales: more when what they scale are weights */
    double step, centre;       /* static Dequantize: scale and zero point; step 0 = not quantised */
    double grid;               /* normal values are multiples of it; 0 = any */
    bool by_element;           /* whatever reads the tensor keeps elements apart */
    int64_t row, rows;         /* elements of a row (along the last axis), and how many there are */
    int8_t axes[GB_MAX_NDIMS]; /* of a reduction, counted from the end: those that its dims tell */
} gb_fill_role;

/* The role of an input of a finalized graph. */
gb_fill_role gb_cli_fill_role(const gb_graph *graph, const gb_logical_tensor *tensor);

#endif
