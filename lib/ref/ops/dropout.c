/* Dropout: a counter-based generator (Philox4x32-10: Salmon et al., Parallel Random Numbers: As
 * Easy as 1, 2, 3, 2011) decides which elements stay, so that the mask is a pure function of seed,
 * offset and position. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "ref/bounds/bound.h"
#include "ref/bounds/walk.h"
#include "ref/ops/ref_functions.h"

typedef struct draw_key {
    uint64_t seed, offset;
} draw_key;

static void philox_round(uint32_t c[4], const uint32_t k[2])
{
    uint64_t p0 = UINT64_C(0xD2511F53) * c[0], p1 = UINT64_C(0xCD9E8D57) * c[2];
    uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k[0], (uint32_t)p1,
            (uint32_t)(p0 >> 32) ^ c[3] ^ k[1], (uint32_t)p0};
    for (int i = 0; i < 4; i++)
        c[i] = next[i];
}

/* Word i & 3 of the block of four that `index` lies in. */
static uint32_t philox(uint64_t index, uint64_t seed, uint64_t offset)
{
    uint64_t block = index & ~UINT64_C(3);
    uint32_t c[4] = {
            (uint32_t)offset, (uint32_t)(offset >> 32), (uint32_t)block, (uint32_t)(block >> 32)};
    uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int i = 0; i < 10; i++) {
        philox_round(c, k);
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    return c[index & 3];
}

/* The draw of an element. Offset 0 stands for the 32-bit generator of old, in which four neighbours
 * share a draw. */
static uint32_t draw(const draw_key *key, uint64_t i)
{
    if (key->offset != 0)
        return philox(i, key->seed, key->offset);
    uint32_t x = (uint32_t)i & ~3U, seed = (uint32_t)key->seed;
    uint64_t index = ((uint64_t)(x + 3) << 32) + (x + 2);
    return philox(index, ((uint64_t)seed << 32) + seed, ((uint64_t)(x + 1) << 32) + x);
}

/* The 64 bits of an s64 element; f64 has lost some of them beyond 2^53. */
static uint64_t bits_of(const gb_ref_tensor *tensor)
{
    double value = tensor->value[0];
    if ((double)tensor->whole == value)
        return (uint64_t)tensor->whole;
    return value >= 0x1p63 ? (uint64_t)INT64_MAX : (uint64_t)(int64_t)value;
}

typedef struct dropout_job {
    draw_key key;
    gb_ref_pair threshold, scale; /* 4294967295 p, 1 / (1 - p) */
    const gb_ref_tensor *src;
    gb_ref_tensor *dst, *mask;
} dropout_job;

static void dropout_row(void *context, const gb_ref_row *row)
{
    const dropout_job *job = context;
    for (int64_t i = 0; i < row->count; i++) {
        int64_t at = row->first + i;
        double r = draw(&job->key, (uint64_t)(row->offset[0] + i * row->step[0]));
        bool keep = r > job->threshold.v;
        bool uncertain = job->threshold.e > 0 && fabs(r - job->threshold.v) <= job->threshold.e;
        gb_ref_pair zero = {0, 0}, scaled = gb_ref_mul(gb_ref_get(job->src, at), job->scale);
        gb_ref_pair x = keep ? scaled : zero;
        if (uncertain)
            x = gb_ref_either(x, keep ? zero : scaled);
        gb_ref_put(job->dst, at, x);
        if (job->mask)
            gb_ref_put(job->mask, at, (gb_ref_pair){keep, uncertain});
    }
}

/* 1 / (1 - p), and 0 when everything is dropped. */
static gb_ref_pair scale_of(gb_ref_pair p)
{
    if (p.v >= 1 && p.e == 0)
        return gb_ref_exact(0);
    gb_ref_pair rest = gb_ref_round(gb_ref_sub(gb_ref_exact(1), p));
    return gb_ref_round(gb_ref_div(gb_ref_exact(1), rest));
}

/* The draw belongs to the place in memory: strides of dst, when it has any. */
static void add_positions(gb_ref_walk *walk, const gb_logical_tensor *dst)
{
    int64_t strides[GB_REF_WALK_DIMS] = {0};
    bool strided = dst->layout_type == GB_LAYOUT_STRIDED;
    gb_dense_strides(dst->ndims, dst->dims, strides);
    for (int d = 0; d < dst->ndims; d++)
        strided = strided && dst->strides[d] >= 0;
    gb_ref_walk_strided(walk, strided ? dst->strides : strides);
}

gb_status gb_ref_dropout(const gb_ref_call *call)
{
    const gb_logical_tensor *dst = &call->outputs[0].tensor;
    for (uint32_t i = 0; i < 4; i++) {
        int64_t wanted = i == 0 ? call->outputs[0].count : 1;
        if (call->inputs[i]->count != wanted)
            return gb_fail(GB_INVALID_SHAPE, "%s: input %u has %lld elements, expected %lld",
                    gb_op_label(call->op), i, (long long)call->inputs[i]->count, (long long)wanted);
    }
    if (call->n_outputs > 1 && call->outputs[1].count != call->outputs[0].count)
        return gb_fail(GB_INVALID_SHAPE, "%s: mask and dst differ in size", gb_op_label(call->op));
    gb_ref_pair p = gb_ref_get(call->inputs[3], 0);
    p.v = fmin(fmax(p.v, 0), 1);
    dropout_job job = {
            .key = {bits_of(call->inputs[1]), bits_of(call->inputs[2])},
            .threshold = gb_ref_mul(gb_ref_exact(4294967295.0), p),
            .scale = scale_of(p),
            .src = call->inputs[0],
            .dst = &call->outputs[0],
            .mask = call->n_outputs > 1 ? &call->outputs[1] : NULL,
    };
    gb_ref_walk walk;
    gb_ref_walk_init(&walk, dst->ndims, dst->dims);
    add_positions(&walk, dst);
    gb_ref_walk_run(&walk, dropout_row, &job);
    return GB_SUCCESS;
}
