/* Function types of the resampling kernels. */
#ifndef GB_KERNELS_ISA_RESAMPLE_TYPES_H
#define GB_KERNELS_ISA_RESAMPLE_TYPES_H

#include "kernels/plan/resample_taps.h"

#include <graphbench/graphbench.h>
#include <stdbool.h>

enum { GB_RESAMPLE_ROWS = 16, GB_RESAMPLE_SLACK = 16 };

/* Rows of a source of f32, bf16, f16, s8 or u8 that are added up with weights other than 0. */
typedef struct gb_resample_rows {
    gb_data_type type;
    int64_t stride; /* elements between neighbours in a row */
    bool add;       /* to the result; otherwise it starts from 0 */
    int n;
    const char *src[GB_RESAMPLE_ROWS];
    float weight[GB_RESAMPLE_ROWS];
} gb_resample_rows;

/* dst[i] = sum over the rows, i < length: resample_rows. */
typedef void gb_resample_rows_fn(const gb_resample_rows *rows, int64_t length, float *dst);
/* For every position its taps are sums over the rows, whose `step` elements lie between indices;
 * dst is count x length: resample_positions. */
typedef void gb_resample_positions_fn(const gb_resample_rows *rows, const gb_resample_taps *taps,
        int64_t step, int64_t length, float *dst);
/* The same in a line of positions of `length` elements each, in f32, which may be read up to GB_RESAMPLE_SLACK
 * elements beyond its end. `streamed`: past the caches, where positions are whole lines of them: resample_joined. */
typedef void gb_resample_joined_fn(
        const gb_resample_taps *taps, const float *line, int64_t length, float *dst, bool streamed);
/* Position i, `bytes` of them, is what lies index[i] times src_step behind src: positions of one tap of weight 1.
 * `streamed`: past the caches, where dst lies in whole vectors: resample_copies. */
typedef void gb_resample_copies_fn(const int32_t *index, int64_t count, const char *src,
        int64_t src_step, char *dst, int64_t dst_step, int64_t bytes, bool streamed);
/* dst[i] = src[index[i]], elements of `bytes` 1, 2 or 4 bytes; `doubled`: index[i] is index[0] + i / 2, and count is even:
 * resample_picks. */
typedef void gb_resample_picks_fn(
        const int32_t *index, int64_t count, bool doubled, const void *src, void *dst, int bytes);
/* dst[i] = sum of the taps of position i in a line: resample_line. */
typedef void gb_resample_line_fn(const gb_resample_taps *taps, const float *line, float *dst);

#endif
