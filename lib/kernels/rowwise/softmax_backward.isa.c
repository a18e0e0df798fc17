/* Gradients of softmax and of its logarithm over rows or columns of any floating type, which stay in the caches between
 * the sum over them and the results. */
#include "kernels/isa/vec.h"
#include "kernels/isa/vec_float.h"
#include "kernels/isa/vec_math.h"
#include "kernels/isa/vec_partial.h"
#include "kernels/plan/pointwise.h"

enum {
    CHUNK = 4096,     /* elements of a row that are summed before they join the total */
    CHUNK_ROWS = 256, /* the same down a column */
    AHEAD = 2048,     /* bytes from what is read to what is asked for */
    ROWS_AHEAD = 2    /* the same down columns, in elements */
};

GB_TEMPLATE vf term(const gb_two_pass_kind kind, vf gradient, vf result)
{
    return kind == GB_TWO_PASS_SOFTMAX ? vf_mul(gradient, result) : gradient;
}

GB_TEMPLATE vf gradient_of(const gb_two_pass_kind kind, vf gradient, vf result, vf sum)
{
    return kind == GB_TWO_PASS_SOFTMAX ? vf_mul(result, vf_sub(gradient, sum))
                                       : vf_fnma(vf_exp(result), sum, gradient);
}

/* Rows: the first pass asks for the gradients that follow, the second for the results. */
GB_TEMPLATE float row_sum(const gb_two_pass_kind kind, const gb_data_type type,
        const char *gradient, const char *result, int64_t n)
{
    const int64_t size = (int64_t)gb_float_size(type);
    vf total = vf_zero();
    for (int64_t i = 0; i < n;) {
        const int64_t end = n - i < CHUNK ? n : i + CHUNK;
        vf even = vf_zero(), odd = vf_zero();
        for (; i + 2 * VLEN <= end; i += 2 * VLEN) {
            const char *g = gradient + i * size, *r = result + i * size;
            gb_prefetch(g + AHEAD);
            if (size == 4)
                gb_prefetch(g + AHEAD + VLEN * size);
            even = vf_add(
                    even, term(kind, vf_load_float(type, g, VLEN), vf_load_float(type, r, VLEN)));
            g += VLEN * size, r += VLEN * size;
            odd = vf_add(
                    odd, term(kind, vf_load_float(type, g, VLEN), vf_load_float(type, r, VLEN)));
        }
        for (; i < end; i += VLEN) {
            const int64_t left = end - i < VLEN ? end - i : VLEN;
            vf one = term(kind, vf_load_float(type, gradient + i * size, left),
                    vf_load_float(type, result + i * size, left));
            even = vf_add(even, vf_keep_n(one, vf_zero(), left));
        }
        total = vf_add(total, vf_add(even, odd));
    }
    return vf_sum(total);
}

GB_TEMPLATE void rows(const gb_softmax_gradient_block *given, const gb_two_pass_kind kind,
        const gb_data_type type)
{
    const gb_softmax_gradient_block b = *given; /* stores may alias *given */
    const int64_t size = (int64_t)gb_float_size(type);
    for (int64_t row = 0; row < b.count; row++) {
        const char *g = b.in[0] + row * b.in_step[0] * size;
        const char *r = b.in[1] + row * b.in_step[1] * size;
        char *out = b.out + row * b.out_step * size;
        const vf sum = vf_set1(row_sum(kind, type, g, r, b.n));
        for (int64_t i = 0; i < b.n; i += VLEN) {
            const int64_t at = i * size, n = b.n - i < VLEN ? b.n - i : VLEN;
            gb_prefetch(r + at + AHEAD);
            vf_store_float(type, out + at,
                    gradient_of(kind, vf_load_float(type, g + at, n),
                            vf_load_float(type, r + at, n), sum),
                    n);
        }
    }
}

/* Columns: row after row, as memory likes it. Each input comes from memory where it is needed first. */
GB_TEMPLATE void columns(const gb_softmax_gradient_block *given, const gb_two_pass_kind kind,
        const gb_data_type type)
{
    const gb_softmax_gradient_block b = *given;
    const int64_t size = (int64_t)gb_float_size(type);
    float total[GB_TILE_ELEMENTS], part[GB_TILE_ELEMENTS];
    for (int64_t c = 0; c < b.count; c += VLEN)
        vf_store(total + c, vf_zero());
    for (int64_t first = 0; first < b.n; first += CHUNK_ROWS) {
        const int64_t end = first + CHUNK_ROWS < b.n ? first + CHUNK_ROWS : b.n;
        for (int64_t c = 0; c < b.count; c += VLEN)
            vf_store(part + c, vf_zero());
        for (int64_t row = first; row < end; row++)
            for (int64_t c = 0; c < b.count; c += VLEN) {
                const char *g = b.in[0] + (row * b.in_step[0] + c) * size;
                const char *r = b.in[1] + (row * b.in_step[1] + c) * size;
                const int64_t n = b.count - c < VLEN ? b.count - c : VLEN;
                gb_prefetch(g + ROWS_AHEAD * b.in_step[0] * size);
                if (kind == GB_TWO_PASS_SOFTMAX)
                    gb_prefetch(r + ROWS_AHEAD * b.in_step[1] * size);
                vf one = term(kind, vf_load_float(type, g, n), vf_load_float(type, r, n));
                vf_store(part + c, vf_add(vf_load(part + c), one));
            }
        for (int64_t c = 0; c < b.count; c += VLEN)
            vf_store(total + c, vf_add(vf_load(total + c), vf_load(part + c)));
    }
    for (int64_t row = 0; row < b.n; row++)
        for (int64_t c = 0; c < b.count; c += VLEN) {
            const char *g = b.in[0] + (row * b.in_step[0] + c) * size;
            const char *r = b.in[1] + (row * b.in_step[1] + c) * size;
            const int64_t n = b.count - c < VLEN ? b.count - c : VLEN;
            if (kind == GB_TWO_PASS_LOG_SOFTMAX)
                gb_prefetch(r + ROWS_AHEAD * b.in_step[1] * size);
            vf_store_float(type, b.out + (row * b.out_step + c) * size,
                    gradient_of(kind, vf_load_float(type, g, n), vf_load_float(type, r, n),
                            vf_load(total + c)),
                    n);
        }
}

#define ROWS(block, type)                                                                          \
    if (block->kind == GB_TWO_PASS_SOFTMAX)                                                        \
        rows(block, GB_TWO_PASS_SOFTMAX, type);                                                    \
    else                                                                                           \
        rows(block, GB_TWO_PASS_LOG_SOFTMAX, type)

void GB_ISA_NAME(softmax_gradient_rows)(const gb_softmax_gradient_block *block)
{
    GB_FLOAT_SWITCH(block->type, ROWS, block)
}

#define COLUMNS(block, type)                                                                       \
    if (block->kind == GB_TWO_PASS_SOFTMAX)                                                        \
        columns(block, GB_TWO_PASS_SOFTMAX, type);                                                 \
    else                                                                                           \
        columns(block, GB_TWO_PASS_LOG_SOFTMAX, type)

void GB_ISA_NAME(softmax_gradient_columns)(const gb_softmax_gradient_block *block)
{
    GB_FLOAT_SWITCH(block->type, COLUMNS, block)
}
