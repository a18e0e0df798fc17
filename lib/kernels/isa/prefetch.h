/* Operands of a pointwise program on their way into the caches before it runs. */
#ifndef GB_KERNELS_ISA_PREFETCH_H
#define GB_KERNELS_ISA_PREFETCH_H

#include "base/memory.h"
#include "kernels/isa/gemm.h"
#include "kernels/plan/pointwise.h"

/* With a smaller K, finding operands whose rows lie in pages of their own takes longer than the product, so they are
 * not fetched ahead. Results always are: stores complete in order, and a cold line holds up those behind it. */
enum { GB_PREFETCH_LEAST_K = 128, GB_PAGE = 4096 };

/* The lines of a tile of `rows` x `cols` elements that the program will read or write, of operands
 * whose rows lie apart: to be called before the products that the tile holds, of `k` steps, are
 * summed, which takes longer than memory. */
static inline void gb_prefetch_operands(const gb_pointwise_program *program,
        const gb_pointwise_view *views, int64_t rows, int64_t cols, int64_t k)
{
    for (uint32_t i = 0; i < program->n_operands; i++) {
        const gb_pointwise_operand *operand = &program->operands[i];
        int64_t row_bytes = views[i].row_stride * operand->bytes;
        if (!views[i].data || !row_bytes || views[i].col_stride != 1)
            continue;
        if (!operand->written && row_bytes >= GB_PAGE && k < GB_PREFETCH_LEAST_K)
            continue;
        if (views[i].row_stride == cols) /* one run, which the processor fetches ahead itself */
            continue;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t at = 0; at < cols * operand->bytes; at += GB_CACHE_LINE) {
                const char *line = views[i].data + r * row_bytes + at;
                if (operand->written)
                    gb_prefetch_to_write(line);
                else
                    gb_prefetch(line);
            }
    }
}

#endif
