/* Depthwise windows: every channel by itself, a weighted sum of shifted source rows; or the channels of narrow groups, in
 * which each lane has one weighted sum of each channel of its group. */
#include "kernels/conv/depthwise_finish.h"
#include "kernels/isa/vec.h"
#include "kernels/isa/vec_float.h"

/* ACROSS: vectors of a single row, whose sums would wait for each other otherwise. */
enum { ROWS = MOST_DEPTHWISE_ROWS, ACROSS = MOST_VECTORS, MOST_RUN = 5 };

typedef enum depthwise_groups {
    CHANNELS, /* each by itself */
    NARROW,   /* several in a vector: lanes exchange their sources */
    VECTORS   /* each is a vector */
} depthwise_groups;

/* What the compiler knows of a call. */
typedef struct depthwise_form {
    gb_data_type type; /* of the source; of VECTORS f32 */
    bool per_column;   /* weights */
    depthwise_groups groups;
    int run;
} depthwise_form;

/* Lanes that hold the first channel of the group of each lane. */
static vi first_of_groups(int64_t width)
{
    int32_t lanes[VLEN];
    for (int i = 0; i < VLEN; i++)
        lanes[i] = i & -(int32_t)width; /* a power of two */
    return vi_load(lanes);
}

/* Source rows j .. j + rows + run - 2 of one vector, of which `lanes` count; each of them serves up
 * to `run` results. Of NARROW groups lanes take the source of the lanes `from`, of VECTORS that of the first. */
GB_INLINE void add_run(const char *src, int64_t row, const vf *factors, const vi from,
        const int rows, const depthwise_form form, const int64_t lanes, const int v,
        vf sums[][MOST_VECTORS])
{
    const int64_t bytes = row * (int64_t)gb_float_size(form.type);
#pragma GCC unroll 12
    for (int j = 0; j < rows + form.run - 1; j++) {
        vf values = form.groups == VECTORS
                            ? vf_set1(*(const float *)(const void *)(src + j * bytes))
                            : vf_load_float(form.type, src + j * bytes, lanes);
        if (form.groups == NARROW)
            values = vf_permute(values, from);
#pragma GCC unroll 5
        for (int i = 0; i < form.run; i++)
            if (j - i >= 0 && j - i < rows)
                sums[j - i][v] = vf_fma(factors[i], values, sums[j - i][v]);
    }
}

/* Post-ops: once for all forms, the sums go through memory. */
#define FINISH(rows, vectors)                                                                      \
    static __attribute__((noinline)) void finish_##rows##x##vectors(                               \
            const gb_register_sums *place, const vf *sums)                                         \
    {                                                                                              \
        vf copy[rows][MOST_VECTORS];                                                               \
        _Pragma("GCC unroll 8") for (int i = 0; i < (rows); i++)                                   \
                _Pragma("GCC unroll 4") for (int v = 0; v < (vectors); v++) copy[i][v] =           \
                        sums[i * MOST_VECTORS + v];                                                \
        gb_finish_sums(place, rows, vectors, copy);                                                \
    }
#define FINISH_ROWS(rows) FINISH(rows, 1) FINISH(rows, 2)
FINISH_ROWS(1)
FINISH_ROWS(2)
FINISH_ROWS(4)
#if VREGS == 32
FINISH_ROWS(8)
#else
FINISH(1, 4)
#endif

typedef void finish_fn(const gb_register_sums *place, const vf *sums);
static finish_fn *const finishes[ROWS + 1][MOST_VECTORS + 1] = {
        [1] = {NULL, finish_1x1, finish_1x2},
        [2] = {NULL, finish_2x1, finish_2x2},
        [4] = {NULL, finish_4x1, finish_4x2},
#if VREGS == 32
        [8] = {NULL, finish_8x1, finish_8x2}
#else
        [1][4] = finish_1x4
#endif
};

void GB_ISA_NAME(depthwise_finish)(
        const gb_register_sums *place, int rows, int vectors, const vf *sums)
{
    finishes[rows][vectors](place, sums);
}

/* Of a column, or of so many columns behind one that begins a panel or does not leave its own. */
GB_INLINE int64_t panel_place(const gb_depthwise *d, int64_t c)
{
    return c / GB_GEMM_PANEL * d->panel + c % GB_GEMM_PANEL;
}

/* rows x vectors results at row r, column c. `lanes` of the last vector are read, `last` are stored. */
GB_INLINE void add_taps(const gb_depthwise *d, int64_t r, int64_t c, const int rows,
        const int vectors, const depthwise_form form, const int64_t lanes, int64_t last)
{
    const int64_t size = (int64_t)gb_float_size(form.type);
    vf sums[ROWS][MOST_VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sums[i][v] = vf_zero();
    const char *src = (const char *)d->src + (r * d->row + c) * size;
    const float *weights = d->weights;
    if (form.per_column)
        weights += panel_place(d, c);
    const int64_t width = form.groups == CHANNELS ? 1 : d->width;
    const vi groups = form.groups == NARROW ? first_of_groups(width) : vi_set1(0);
    for (int64_t first = 0; first < d->taps; first += form.run * d->run_step)
        for (int64_t t = first; t < first + d->run_step; t++)
            for (int64_t channel = 0; channel < width; channel++) {
                const vi from = vi_add(groups, vi_set1((int32_t)channel));
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++) {
                    const int64_t at = form.per_column ? panel_place(d, v * VLEN) : 0;
                    vf factors[MOST_RUN];
#pragma GCC unroll 5
                    for (int i = 0; i < form.run; i++) {
                        const float *weight = weights + d->weight_offsets[t + i * d->run_step] +
                                              channel * GB_GEMM_PANEL;
                        factors[i] = form.per_column ? vf_load(weight + at) : vf_set1(*weight);
                    }
                    const int64_t of_group = form.groups == VECTORS ? channel : 0;
                    add_run(src + (d->offsets[t] + v * VLEN + of_group) * size, d->row, factors,
                            from, rows, form, v + 1 < vectors ? VLEN : lanes, v, sums);
                }
            }
    if (form.per_column && d->post_ops) {
        const gb_register_sums place = {
                .post_ops = d->post_ops, .row = d->post_row + r, .col = c, .last = (int)last};
        gb_finish_depthwise(&place, rows, vectors, sums);
        return;
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        float *dst = d->dst + (r + i) * d->dst_row + c;
#pragma GCC unroll 4
        for (int v = 0; v + 1 < vectors; v++)
            vf_store(dst + v * VLEN, sums[i][v]);
        vf_store_first(dst + (vectors - 1) * VLEN, sums[i][vectors - 1], last);
    }
}

GB_INLINE void add_rows(const gb_depthwise *d, int64_t r, const int rows, const depthwise_form form)
{
    int64_t c = 0;
    if (form.per_column) {
        const int across = rows == 1 ? ACROSS : 2;
        for (; c + across * VLEN <= d->cols; c += across * VLEN)
            add_taps(d, r, c, rows, across, form, VLEN, VLEN);
        for (; c + VLEN <= d->cols; c += VLEN)
            add_taps(d, r, c, rows, 1, form, VLEN, VLEN);
        if (c < d->cols)
            add_taps(d, r, c, rows, 1, form, d->cols - c, d->cols - c);
        return;
    }
    for (; c + VLEN < d->cols; c += 2 * VLEN) {
        const int64_t last = d->cols - c - VLEN;
        add_taps(d, r, c, rows, 2, form, VLEN, last < VLEN ? last : VLEN);
    }
    if (c < d->cols)
        add_taps(d, r, c, rows, 1, form, VLEN, d->cols - c);
}

GB_INLINE void run_all(const gb_depthwise *d, const depthwise_form form)
{
    int64_t r = 0;
    for (; r + ROWS <= d->rows; r += ROWS)
        add_rows(d, r, ROWS, form);
    if (ROWS > 4)
        for (; r + 4 <= d->rows; r += 4)
            add_rows(d, r, 4, form);
    for (; r + 2 <= d->rows; r += 2)
        add_rows(d, r, 2, form);
    for (; r < d->rows; r++)
        add_rows(d, r, 1, form);
}

/* A run of another length than 3 and 5 counts as single taps: their order is that of the list. Functions of their own:
 * registers are given out for each. */
#define DEPTHWISE(name, type, per_column, groups, run)                                             \
    static __attribute__((noinline)) void name(const gb_depthwise *d)                              \
    {                                                                                              \
        run_all(d, (depthwise_form){type, per_column, groups, run});                               \
    }
#define DEPTHWISE_RUNS(name, type, per_column, groups)                                             \
    DEPTHWISE(name##_single, type, per_column, groups, 1)                                          \
    DEPTHWISE(name##_3, type, per_column, groups, 3)                                               \
    DEPTHWISE(name##_5, type, per_column, groups, 5)
#define DEPTHWISE_RUN(name, d)                                                                     \
    ((d)->run == 3 ? name##_3 : (d)->run == 5 ? name##_5 : name##_single)(d)

DEPTHWISE_RUNS(positions, GB_F32, false, CHANNELS)
DEPTHWISE_RUNS(channels, GB_F32, true, CHANNELS)
DEPTHWISE_RUNS(channels_bf16, GB_BF16, true, CHANNELS)
DEPTHWISE_RUNS(channels_f16, GB_F16, true, CHANNELS)
DEPTHWISE_RUNS(groups, GB_F32, true, NARROW)
DEPTHWISE_RUNS(groups_bf16, GB_BF16, true, NARROW)
DEPTHWISE_RUNS(groups_f16, GB_F16, true, NARROW)
DEPTHWISE_RUNS(group_vectors, GB_F32, true, VECTORS)

void GB_ISA_NAME(depthwise_positions)(const gb_depthwise *d)
{
    DEPTHWISE_RUN(positions, d);
}

static void run_groups(const gb_depthwise *d)
{
    if (d->width == VLEN)
        DEPTHWISE_RUN(group_vectors, d);
    else if (d->type == GB_BF16)
        DEPTHWISE_RUN(groups_bf16, d);
    else if (d->type == GB_F16)
        DEPTHWISE_RUN(groups_f16, d);
    else
        DEPTHWISE_RUN(groups, d);
}

void GB_ISA_NAME(depthwise_channels)(const gb_depthwise *d)
{
    if (d->width > 1)
        run_groups(d);
    else if (d->type == GB_BF16)
        DEPTHWISE_RUN(channels_bf16, d);
    else if (d->type == GB_F16)
        DEPTHWISE_RUN(channels_f16, d);
    else
        DEPTHWISE_RUN(channels, d);
}
