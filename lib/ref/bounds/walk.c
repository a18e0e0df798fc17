/* Walking index spaces: adjacent axes are merged where every operand allows it, then each thread
 * takes a range. */
#include "ref/bounds/walk.h"

#include "base/parallel.h"
#include "graph/ops/op_table.h"

#include <string.h>

void gb_ref_walk_init(gb_ref_walk *walk, int ndims, const int64_t *dims)
{
    memset(walk, 0, sizeof *walk);
    walk->ndims = ndims;
    if (ndims > 0)
        memcpy(walk->dims, dims, (size_t)ndims * sizeof *dims);
}

void gb_ref_walk_strided(gb_ref_walk *walk, const int64_t *strides)
{
    int64_t *own = walk->strides[walk->n_operands++];
    for (int d = 0; d < walk->ndims; d++)
        own[d] = strides[d];
}

void gb_ref_walk_broadcast(gb_ref_walk *walk, int ndims, const int64_t *dims)
{
    int64_t dense[GB_MAX_NDIMS], strides[GB_REF_WALK_DIMS] = {0};
    gb_dense_strides(ndims, dims, dense);
    int lead = walk->ndims - ndims;
    for (int d = 0; d < ndims; d++) {
        if (lead + d >= 0 && dims[d] != 1)
            strides[lead + d] = dense[d];
    }
    gb_ref_walk_strided(walk, strides);
}

void gb_ref_walk_along(gb_ref_walk *walk, int axis)
{
    int64_t strides[GB_REF_WALK_DIMS] = {0};
    strides[axis] = 1;
    gb_ref_walk_strided(walk, strides);
}

/* Can axis d be merged into the one before it? */
static int continues(const gb_ref_walk *walk, int before, int d)
{
    for (int k = 0; k < walk->n_operands; k++) {
        if (walk->strides[k][before] != walk->strides[k][d] * walk->dims[d])
            return 0;
    }
    return 1;
}

static void merge_axes(gb_ref_walk *walk)
{
    int kept = 0;
    for (int d = 0; d < walk->ndims; d++) {
        if (walk->dims[d] == 1)
            continue;
        bool merge = kept > 0 && continues(walk, kept - 1, d);
        int to = merge ? kept - 1 : kept++;
        walk->dims[to] = merge ? walk->dims[to] * walk->dims[d] : walk->dims[d];
        for (int k = 0; k < walk->n_operands; k++)
            walk->strides[k][to] = walk->strides[k][d];
    }
    if (kept == 0) { /* a single element is a row of one */
        walk->dims[kept] = 1;
        for (int k = 0; k < walk->n_operands; k++)
            walk->strides[k][kept] = 0;
        kept = 1;
    }
    walk->ndims = kept;
}

static int64_t count_elements(const gb_ref_walk *walk)
{
    int64_t count = 1;
    for (int d = 0; d < walk->ndims; d++)
        count *= walk->dims[d];
    return count;
}

static void walk_range(
        const gb_ref_walk *walk, int64_t begin, int64_t end, gb_ref_row_fn row, void *context)
{
    int last = walk->ndims - 1;
    int64_t index[GB_REF_WALK_DIMS], rest = begin;
    for (int d = last; d >= 0; d--) {
        index[d] = rest % walk->dims[d];
        rest /= walk->dims[d];
    }
    gb_ref_row at = {.first = begin};
    for (int k = 0; k < walk->n_operands; k++) {
        at.step[k] = walk->strides[k][last];
        for (int d = 0; d <= last; d++)
            at.offset[k] += index[d] * walk->strides[k][d];
    }
    while (at.first < end) {
        at.count = walk->dims[last] - index[last];
        if (at.count > end - at.first)
            at.count = end - at.first;
        row(context, &at);
        at.first += at.count;
        for (int k = 0; k < walk->n_operands; k++)
            at.offset[k] -= index[last] * at.step[k];
        index[last] = 0;
        for (int d = last - 1; d >= 0; d--) {
            bool carry = ++index[d] == walk->dims[d];
            for (int k = 0; k < walk->n_operands; k++)
                at.offset[k] += walk->strides[k][d] * (carry ? 1 - walk->dims[d] : 1);
            if (!carry)
                break;
            index[d] = 0;
        }
    }
}

typedef struct walk_job {
    const gb_ref_walk *walk;
    int64_t count;
    gb_ref_row_fn row;
    void *context;
} walk_job;

static void walk_part(void *context, int thread, int n_threads)
{
    const walk_job *job = context;
    int64_t begin, end;
    gb_split(job->count, thread, n_threads, &begin, &end);
    if (begin < end)
        walk_range(job->walk, begin, end, job->row, job->context);
}

void gb_ref_walk_run(gb_ref_walk *walk, gb_ref_row_fn row, void *context)
{
    merge_axes(walk);
    walk_job job = {walk, count_elements(walk), row, context};
    gb_parallel(gb_threads_for(32.0 * (double)job.count), walk_part, &job);
}

void gb_ref_walk_serial(gb_ref_walk *walk, gb_ref_row_fn row, void *context)
{
    merge_axes(walk);
    int64_t count = count_elements(walk);
    if (count > 0)
        walk_range(walk, 0, count, row, context);
}

void gb_ref_walk_flat(int64_t count, gb_ref_row_fn row, void *context)
{
    gb_ref_walk walk;
    gb_ref_walk_init(&walk, 1, &count);
    gb_ref_walk_run(&walk, row, context);
}
