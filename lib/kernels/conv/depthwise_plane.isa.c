/* Depthwise windows over a plane that is read where it lies: positions along vectors. */
#include "kernels/isa/depthwise_plane.h"

#include "kernels/conv/depthwise_finish.h"
#include "kernels/isa/vec.h"
#include "kernels/isa/vec_alternate.h"
#include "kernels/isa/vec_float.h"

enum { ROWS = 4, ACROSS = GB_PLANE_ACROSS, MOST_RUN = 5 };

/* What the compiler knows of a tile. */
typedef struct plane_form {
    int step;     /* from column to column of the source */
    int run;      /* taps down the kernel whose source rows neighbouring results share, or 1 */
    int taps;     /* across the kernel, next to each other; 0: any */
    bool clipped; /* some rows lie beyond the plane */
    bool masked;  /* some columns do */
} plane_form;

/* Source rows of a tile, one after the other, of which those from `first` to before `end` lie in the plane. */
typedef struct source_rows {
    const float *row;
    int64_t next;
    int first, end;
} source_rows;

/* A vector of source columns, of which masks say what lies in the plane. */
GB_INLINE vf load_columns(
        const float *columns, const int32_t *masks, const bool masked, const int vector)
{
    return masked ? vf_load_lanes(columns + vector * VLEN, masks + vector * VLEN)
                  : vf_load(columns + vector * VLEN);
}

/* One column of `run` taps, where results are as far apart as what they read. */
GB_INLINE void add_column(source_rows source, const float *weights, int64_t weight_row,
        const int32_t *masks, const int rows, const int vectors, const plane_form form,
        vf sums[][MOST_VECTORS])
{
    vf factors[MOST_RUN];
#pragma GCC unroll 5
    for (int i = 0; i < form.run; i++)
        factors[i] = vf_set1(weights[i * weight_row]);
#pragma GCC unroll 12
    for (int s = 0; s < rows + form.run - 1; s++, source.row += source.next) {
        if (form.clipped && (s < source.first || s >= source.end))
            continue;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            const vf values = load_columns(source.row, masks, form.masked, v);
#pragma GCC unroll 5
            for (int i = 0; i < form.run; i++)
                if (s - i >= 0 && s - i < rows)
                    sums[s - i][v] = vf_fma(factors[i], values, sums[s - i][v]);
        }
    }
}

/* One tap, or it and its neighbour, where results read every other column: sums are in the order of vf_even_near(). */
GB_INLINE void add_alternate(source_rows source, const float *weights, int64_t weight_col,
        const int32_t *masks, const bool both, const int rows, const int vectors,
        const plane_form form, vf sums[][MOST_VECTORS])
{
    const vf factor = vf_set1(*weights), next = vf_set1(both ? weights[weight_col] : 0);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++, source.row += source.next) {
        if (form.clipped && (r < source.first || r >= source.end))
            continue;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            const vf low = load_columns(source.row, masks, form.masked, 2 * v);
            const vf high = load_columns(source.row, masks, form.masked, 2 * v + 1);
            sums[r][v] = vf_fma(factor, vf_even_near(low, high), sums[r][v]);
            if (both)
                sums[r][v] = vf_fma(next, vf_odd_near(low, high), sums[r][v]);
        }
    }
}

/* Those that row `tap` of the taps meets for the results from row r on. */
GB_INLINE source_rows find_rows(
        const gb_depthwise_plane *p, int64_t r, int64_t tap, const int rows, const bool clipped)
{
    const int64_t step = p->step[0], y = (p->first + r) * step + tap * p->dilation[0] - p->pad[0];
    source_rows source = {.row = p->src + y * p->src_row, .next = step * p->src_row, .end = rows};
    if (!clipped)
        return source;
    while (source.first < rows && y + source.first * step < 0)
        source.first++;
    while (source.end > source.first && y + (source.end - 1) * step >= p->height)
        source.end--;
    return source;
}

/* Source rows that the tile below will be the first to read: it follows when the other tiles of these rows are done, and
 * processors see no order in what so many rows read. Results of every other column are so few that they wait for it. */
GB_INLINE void fetch_below(
        const gb_depthwise_plane *p, int64_t r, int64_t c, const int rows, const int vectors)
{
    const int64_t reach = (p->kernel[0] - 1) * p->dilation[0];
    const int64_t y = (p->first + r + rows - 1) * 2 - p->pad[0] + reach;
    const float *row = p->src + y * p->src_row + c * 2;
    for (int i = 0; i < 2 * rows; i++) {
        row += p->src_row;
        for (int at = 0; at < vectors * 2 * VLEN; at += GB_CACHE_LINE / 4)
            gb_prefetch(row + at);
    }
}

/* All taps; row 0 of the results is r. */
GB_INLINE void add_taps(const gb_depthwise_plane *p, int64_t r, int64_t c, const int rows,
        const int vectors, const plane_form form, vf sums[][MOST_VECTORS])
{
    const int64_t taps = form.taps ? form.taps : p->kernel[1];
    const int64_t apart = form.taps ? 1 : p->dilation[1];
    const int64_t words = ACROSS * form.step * VLEN; /* of masks, a tap */
    for (int64_t i = 0; i < p->kernel[0]; i += form.run) {
        source_rows source = find_rows(p, r, i, rows + form.run - 1, form.clipped);
        source.row += c * form.step - p->pad[1];
        const float *weights = p->weights + i * p->weight_row;
        const int32_t *masks = form.masked ? p->masks[c / (ACROSS * VLEN)] : NULL;
        int64_t j = 0;
        for (; form.step == 1 && j < taps; j++) {
            add_column(source, weights, p->weight_row, masks, rows, vectors, form, sums);
            source.row += apart;
            weights += p->weight_col;
            masks += form.masked ? words : 0;
        }
        for (; form.step == 2 && apart == 1 && j + 1 < taps; j += 2) {
            add_alternate(source, weights, p->weight_col, masks, true, rows, vectors, form, sums);
            source.row += 2;
            weights += 2 * p->weight_col;
            masks += form.masked ? 2 * words : 0;
        }
        for (; form.step == 2 && j < taps; j++) {
            add_alternate(source, weights, p->weight_col, masks, false, rows, vectors, form, sums);
            source.row += apart;
            weights += p->weight_col;
            masks += form.masked ? words : 0;
        }
    }
}

/* rows x vectors results at row r, column c; of the last vector the lanes up to cols. */
GB_INLINE void run_tile(const gb_depthwise_plane *p, int64_t r, int64_t c, const int rows,
        const int vectors, const plane_form form)
{
    const int64_t left = p->cols - c - (vectors - 1) * VLEN, last = left < VLEN ? left : VLEN;
    vf sums[ROWS][MOST_VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sums[i][v] = vf_zero();
    if (form.step == 2 && p->step[0] == 2)
        fetch_below(p, r, c, rows, vectors);
    add_taps(p, r, c, rows, vectors, form, sums);
    if (form.step == 2)
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sums[i][v] = vf_order_near(sums[i][v]);
    if (p->post_ops) {
        const gb_register_sums place = {.post_ops = p->post_ops,
                .row = p->first + r - p->post_first,
                .col = c,
                .last = (int)last};
        gb_finish_depthwise(&place, rows, vectors, sums);
        return;
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        float *dst = p->dst + (r + i) * p->dst_row + c;
        if (vectors == 2)
            vf_store(dst, sums[i][0]);
        vf_store_first(dst + (vectors - 1) * VLEN, sums[i][vectors - 1], last);
    }
}

/* All columns of `rows` rows. */
GB_INLINE void run_rows(
        const gb_depthwise_plane *p, int64_t r, const int rows, const plane_form form)
{
    plane_form masked = form;
    masked.masked = true;
    for (int64_t c = 0; c < p->cols; c += ACROSS * VLEN)
        if (p->cols - c <= VLEN)
            run_tile(p, r, c, rows, 1, masked);
        else if (p->masks[c / (ACROSS * VLEN)])
            run_tile(p, r, c, rows, 2, masked);
        else
            run_tile(p, r, c, rows, 2, form);
}

/* Functions of their own: registers are given out for each. */
#define ROWS_OF(rows, step, run, taps, clipped, name)                                              \
    static __attribute__((noinline)) void rows_##rows##_##step##_##run##_##taps##name(             \
            const gb_depthwise_plane *p, int64_t r)                                                \
    {                                                                                              \
        run_rows(p, r, rows, (plane_form){step, run, taps, clipped, false});                       \
    }
#define EACH_FORM(rows, clipped, name)                                                             \
    ROWS_OF(rows, 1, 1, 0, clipped, name)                                                          \
    ROWS_OF(rows, 1, 3, 0, clipped, name)                                                          \
    ROWS_OF(rows, 1, 5, 0, clipped, name)                                                          \
    ROWS_OF(rows, 2, 1, 0, clipped, name)                                                          \
    ROWS_OF(rows, 2, 1, 3, clipped, name)
#define EACH_CLIP(rows) EACH_FORM(rows, false, _inner) EACH_FORM(rows, true, _clipped)
EACH_CLIP(1)
EACH_CLIP(2)
EACH_CLIP(4)

typedef void rows_fn(const gb_depthwise_plane *p, int64_t r);
enum { ANY, RUN_3, RUN_5, ALTERNATE, ALTERNATE_3, FORMS };
#define FORMS_OF(rows, name)                                                                       \
    {                                                                                              \
        rows_##rows##_1_1_0##name, rows_##rows##_1_3_0##name, rows_##rows##_1_5_0##name,           \
                rows_##rows##_2_1_0##name, rows_##rows##_2_1_3##name                               \
    }
#define CLIPS_OF(rows)                                                                             \
    {                                                                                              \
        rows,                                                                                      \
        {                                                                                          \
            FORMS_OF(rows, _inner), FORMS_OF(rows, _clipped)                                       \
        }                                                                                          \
    }
static const struct {
    int64_t rows;
    rows_fn *functions[2][FORMS]; /* inner, clipped */
} heights[] = {CLIPS_OF(4), CLIPS_OF(2), CLIPS_OF(1)};

static int choose_form(const gb_depthwise_plane *p)
{
    const bool shared = p->step[0] == 1 && p->dilation[0] == 1;
    if (p->step[1] == 2)
        return p->kernel[1] == 3 && p->dilation[1] == 1 ? ALTERNATE_3 : ALTERNATE;
    return shared && p->kernel[0] == 3 ? RUN_3 : shared && p->kernel[0] == 5 ? RUN_5 : ANY;
}

void GB_ISA_NAME(depthwise_plane)(const gb_depthwise_plane *p)
{
    const int form = choose_form(p);
    int height = 0;
    for (int64_t r = 0, rows; r < p->rows; r += rows) {
        while (heights[height].rows > p->rows - r)
            height++;
        rows = heights[height].rows;
        const int64_t first = p->first + r;
        const bool clipped = first < p->inner_first || first + rows > p->inner_end;
        heights[height].functions[clipped][form](p, r);
    }
}
