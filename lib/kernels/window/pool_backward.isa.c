/* Gradients of pools over rows of windows, vectors across the channels. */
#include "kernels/isa/vec.h"

typedef struct cells {
    int64_t begin, end, start; /* of k, and the position of k = 0 */
} cells;

/* Cells of window `i` along the width that lie in the image. */
static inline cells cells_of(const gb_pool_gradient_row *row, int64_t i)
{
    int64_t start = (row->first + i) * row->stride - row->pad, d = row->dilation;
    int64_t begin = start < 0 ? (d - 1 - start) / d : 0;
    int64_t end = row->in > start ? (row->in - start + d - 1) / d : 0;
    return (cells){begin, end < row->kernel ? end : row->kernel, start};
}

static inline vf pool_backward_load(const float *p, int64_t n)
{
    return n == VLEN ? vf_load(p) : vf_load_n(p, n);
}

static inline void pool_backward_store(float *p, vf v, int64_t n)
{
    if (n == VLEN)
        vf_store(p, v);
    else
        vf_store_n(p, v, n);
}

/* Cells of a window: depth x height rows of them, and where its first lies along the width. */
typedef struct window {
    int64_t depth, height, width, first;
} window;

static inline int64_t cell_position(
        const gb_pool_gradient_row *row, const window *w, int64_t d, int64_t h, int64_t k)
{
    return row->base + w->first + d * row->depth_step + h * row->height_step + k * row->dilation;
}

static inline const float *cell_source(
        const gb_pool_gradient_row *row, const window *w, int64_t d, int64_t h, int64_t k)
{
    return row->src + d * row->src_depth_step + h * row->src_height_step +
           (w->first + k * row->dilation) * row->src_step;
}

/* Positions of the first maxima of n channels from c on, -1 where nothing is above the lowest. */
GB_INLINE vi find_winners(const gb_pool_gradient_row *row, window w, int64_t c, int64_t n)
{
    vf best = vf_set1(row->lowest);
    vi winner = vi_set1(-1);
    for (int64_t d = 0; d < w.depth; d++)
        for (int64_t h = 0; h < w.height; h++)
            for (int64_t k = 0; k < w.width; k++) {
                vf x = pool_backward_load(cell_source(row, &w, d, h, k) + c, n);
                vi position = vi_set1((int32_t)cell_position(row, &w, d, h, k));
                winner = vi_select(vf_gt(x, best), position, winner);
                best = vf_max(x, best); /* which stays where x is NaN */
            }
    return winner;
}

/* Adds the gradients of n channels to the cells of one window that won. */
GB_INLINE void add_to_cells(
        const gb_pool_gradient_row *row, window w, vi winner, vf gradient, int64_t c, int64_t n)
{
    for (int64_t d = 0; d < w.depth; d++)
        for (int64_t h = 0; h < w.height; h++)
            for (int64_t k = 0; k < w.width; k++) {
                int64_t position = cell_position(row, &w, d, h, k);
                float *p = row->diff_src + position * row->channels + c;
                vf sum = pool_backward_load(p, n);
                vm won = vi_eq(winner, vi_set1((int32_t)position));
                pool_backward_store(p, vf_select(won, vf_add(sum, gradient), sum), n);
            }
}

GB_INLINE void scatter(const gb_pool_gradient_row *row, int64_t i, window w, int64_t c, int64_t n)
{
    vi winner = find_winners(row, w, c, n);
    const float *gradient = row->diff_dst + i * row->channels + c;
    if (w.depth * w.height * w.width <= VLEN) {
        add_to_cells(row, w, winner, pool_backward_load(gradient, n), c, n);
        return;
    }
    int32_t winners[VLEN];
    vi_store(winners, winner);
    for (int64_t lane = 0; lane < n; lane++)
        if (winners[lane] >= 0)
            row->diff_src[winners[lane] * row->channels + c + lane] += gradient[lane];
}

/* The cells' positions, and their number where it is a constant, are the same for all channels. */
GB_INLINE void scatter_channels(gb_pool_gradient_row row, int64_t i, window w)
{
    int64_t c = 0;
    for (; c + VLEN <= row.channels; c += VLEN)
        scatter(&row, i, w, c, VLEN);
    if (c < row.channels)
        scatter(&row, i, w, c, row.channels - c);
}

void GB_ISA_NAME(max_pool_backward)(const gb_pool_gradient_row *row)
{
    for (int64_t i = 0; i < row->count; i++) {
        cells across = cells_of(row, i);
        int64_t first = across.start + across.begin * row->dilation;
        window w = {row->depth, row->height, across.end - across.begin, first};
        if (w.depth == 1 && w.height == 2 && w.width == 2)
            scatter_channels(*row, i, (window){1, 2, 2, first});
        else if (w.depth == 1 && w.height == 3 && w.width == 3)
            scatter_channels(*row, i, (window){1, 3, 3, first});
        else
            scatter_channels(*row, i, w);
    }
}

GB_INLINE void spread(
        const gb_pool_gradient_row *row, int64_t i, float divisor, int64_t c, int64_t n)
{
    cells w = cells_of(row, i);
    vf share =
            vf_div(pool_backward_load(row->diff_dst + i * row->channels + c, n), vf_set1(divisor));
    for (int64_t d = 0; d < row->depth; d++)
        for (int64_t h = 0; h < row->height; h++) {
            int64_t line = row->base + d * row->depth_step + h * row->height_step + w.start;
            for (int64_t k = w.begin; k < w.end; k++) {
                float *p = row->diff_src + (line + k * row->dilation) * row->channels + c;
                pool_backward_store(p, vf_add(pool_backward_load(p, n), share), n);
            }
        }
}

void GB_ISA_NAME(mean_pool_backward)(const gb_pool_gradient_row *row)
{
    for (int64_t i = 0; i < row->count; i++) {
        int64_t begin = (row->first + i) * row->stride - row->pad, end = begin + row->kernel;
        begin = begin > row->low ? begin : row->low;
        end = end < row->high ? end : row->high;
        float divisor = row->outer * (float)(end - begin);
        int64_t c = 0;
        for (; c + VLEN <= row->channels; c += VLEN)
            spread(row, i, divisor, c, VLEN);
        if (c < row->channels)
            spread(row, i, divisor, c, row->channels - c);
    }
}
