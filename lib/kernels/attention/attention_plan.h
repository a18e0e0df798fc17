/* How the CPU runs attention: scores of a block of queries and a block of keys at a time, softmax
 * on-line, so that no tensor of scores is ever in memory.
 *
 * Batch dims along which neither keys nor values move (heads that share them) count as queries:
 * `rows` runs over those dims and the queries, the queries fastest. A *task* is a combination of the
 * other batch dims. A work item is a block of rows of a task, times a slice of the keys where there
 * are too few rows for all threads.
 *
 * The number of threads decides how many rows a work item has, and nothing else: groups of rows
 * start at multiples of group_rows in their task, blocks of keys at multiples of key_block, and
 * results do not depend on work items. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_PLAN_H
#define GB_KERNELS_ATTENTION_ATTENTION_PLAN_H

#include "kernels/cpu/scratch.h"
#include "kernels/isa/kernels.h"
#include "kernels/plan/attention_problem.h"
#include "kernels/plan/attention_space.h"

/* Which regions become one kernel is decided before a machine is looked at, so that partitions and
 * results are the same everywhere. */
enum {
    GB_ATTENTION_WIDTH = 4096,   /* most columns of Q, K and V: the smallest block of keys and one
                                    of values, two panels each, are 2 MiB then, all that L2 has */
    GB_ATTENTION_KEPT = 1 << 20, /* most elements of K and of the results that a thread keeps where
                                    products sum over the queries: 4 MiB, its share of L3 */
};

/* How blocks are multiplied by K and by V (attention_block.c). */
typedef enum gb_attention_products {
    GB_ATTENTION_PANELS,  /* keys and values in panels, for all rows of the work item */
    GB_ATTENTION_BF16,    /* the same as VNNI groups, rows of Q and weights, too: all are bf16 */
    GB_ATTENTION_BYTES,   /* the same of quantized values of 8 bits (attention_bytes.h) */
    GB_ATTENTION_VECTORS, /* few rows: K and V are read as they lie */
} gb_attention_products;

/* How scores become weights (attention_run.c). */
typedef enum gb_attention_softmax {
    GB_ATTENTION_ONLINE,  /* weights are relative to the maximum so far; results are divided by the
                             sum */
    GB_ATTENTION_AT_ONCE, /* exact weights, all keys in one block */
    GB_ATTENTION_TWICE,   /* exact weights: keys pass once for maximum and sum, once more for V */
} gb_attention_softmax;

/* K or V as products read them: in memory, or the dense block that its source has made. */
typedef struct gb_attention_matrix {
    const gb_attention_operand *operand;
    gb_data_type type;
    int64_t row_stride, col_stride;
    gb_scratch dense; /* of operands with a source */
} gb_attention_matrix;

typedef struct gb_attention_plan {
    const gb_attention_problem *problem;
    const gb_kernels *kernels;
    gb_attention_space space;
    gb_attention_products products;
    gb_attention_softmax softmax;
    gb_attention_matrix k, v;
    int64_t group_rows, key_block, key_blocks, item_rows, row_items, key_splits;
    int64_t q_row, acc_row,
            score_row;     /* steps between rows in scratch, floats or VNNI groups; ... */
    int64_t weight_row;    /* ... of weights as VNNI groups */
    gb_dot_form form;      /* of VNNI groups */
    int64_t tile_floats;   /* that post-ops in tiles need; 0: scores are no such tiles' */
    int64_t result_floats; /* likewise, of results */
    bool q_in_place;       /* rows of Q are read as they lie, and keys are scaled */
    struct {
        gb_scratch q, values, max, sum, factor, k, v, scores, weights, integers, product, registers,
                tiles;
    } scratch;
    /* What a slice of the keys leaves in shared scratch, for all rows: sums of values; maximum and
     * sum of weights. */
    struct {
        size_t state, bytes; /* where state begins; of all */
    } slice;
    const int64_t *unit_offsets, *panels; /* offsets of element i: i, and i * PANEL */
} gb_attention_plan;

/* Plans and adds the step; the problem is memory of the step. */
gb_status gb_attention_add(gb_program *program, gb_step *step, const gb_attention_problem *problem);
/* The step's function (attention_run.c). */
void gb_attention_run(const gb_step_call *call);
/* Do all keys pass by a group of rows in one block, which its results can follow at once? */
bool gb_attention_finishes_groups(const gb_attention_plan *plan);

/* The parts of a plan, and of its scratch, that are the same whatever the product with V sums over:
 * rows in groups of group_rows, item_rows in scratch, and blocks of key_block keys. */
gb_attention_plan gb_attention_plan_begin(const gb_attention_problem *problem);
void gb_attention_add_rows(gb_step *step, gb_attention_plan *plan);

#endif
