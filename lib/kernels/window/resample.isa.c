/* Resampling: weighted sums of rows, and of elements of a line. */
#include "kernels/isa/vec.h"

#include "kernels/isa/vec_float.h"

GB_INLINE void sum_vector(const gb_resample_rows *rows, const gb_data_type type,
        const int64_t stride, int64_t i, int64_t n, float *dst)
{
    vf sum = !rows->add ? vf_zero() : n == VLEN ? vf_load(dst + i) : vf_load_n(dst + i, n);
    int64_t offset = i * stride * (int64_t)gb_float_size(type);
    for (int k = 0; k < rows->n; k++)
        sum = vf_fma(vf_set1(rows->weight[k]),
                vf_gather_float(type, rows->src[k] + offset, stride, n), sum);
    vf_store_first(dst + i, sum, n);
}

GB_INLINE void sum_strided(const gb_resample_rows *rows, const gb_data_type type,
        const int64_t stride, int64_t length, float *dst)
{
    int64_t i = 0;
    for (; i + VLEN <= length; i += VLEN)
        sum_vector(rows, type, stride, i, VLEN, dst);
    if (i < length)
        sum_vector(rows, type, stride, i, length - i, dst);
}

GB_INLINE void sum_typed(
        const gb_resample_rows *rows, const gb_data_type type, int64_t length, float *dst)
{
    if (rows->stride == 1)
        sum_strided(rows, type, 1, length, dst);
    else
        sum_strided(rows, type, rows->stride, length, dst);
}

static void resample_sum_rows(const gb_resample_rows *rows, int64_t length, float *dst)
{
    if (rows->type == GB_BF16)
        sum_typed(rows, GB_BF16, length, dst);
    else if (rows->type == GB_F16)
        sum_typed(rows, GB_F16, length, dst);
    else
        sum_typed(rows, GB_F32, length, dst);
}

void GB_ISA_NAME(resample_rows)(const gb_resample_rows *rows, int64_t length, float *dst)
{
    resample_sum_rows(rows, length, dst);
}

static void sum_position(const gb_resample_rows *rows, const gb_resample_taps *taps, int64_t i,
        int64_t step, int64_t length, float *dst)
{
    gb_resample_rows sum = {.type = rows->type, .stride = rows->stride, .add = rows->add};
    int64_t size = rows->type == GB_F32 ? 4 : 2;
    for (int64_t t = 0; t < taps->taps; t++) {
        float weight = taps->weight[t * taps->pitch + i];
        int64_t offset = taps->index[t * taps->pitch + i] * step * size;
        for (int k = 0; k < rows->n && weight != 0; k++) {
            sum.src[sum.n] = rows->src[k] + offset;
            sum.weight[sum.n++] = rows->weight[k] * weight;
            if (sum.n < GB_RESAMPLE_ROWS)
                continue;
            resample_sum_rows(&sum, length, dst);
            sum.add = true;
            sum.n = 0;
        }
    }
    if (sum.n || !sum.add)
        resample_sum_rows(&sum, length, dst);
}

void GB_ISA_NAME(resample_positions)(const gb_resample_rows *rows, const gb_resample_taps *taps,
        int64_t step, int64_t length, float *dst)
{
    for (int64_t i = 0; i < taps->count; i++)
        sum_position(rows, taps, i, step, length, dst + i * length);
}

GB_INLINE void line_vector(
        const gb_resample_taps *taps, const float *line, int64_t i, int64_t n, float *dst)
{
    vf sum = vf_zero();
    for (int64_t t = 0; t < taps->taps; t++) {
        const int32_t *index = taps->index + t * taps->pitch + i;
        const float *weights = taps->weight + t * taps->pitch + i;
        vf weight = n == VLEN ? vf_load(weights) : vf_load_n(weights, n);
        vf x = vf_lookup(line, n == VLEN ? vi_load(index) : vi_load_n(index, n));
        /* 0 times infinity is no term */
        sum = vf_select(vf_ne(weight, vf_zero()), vf_fma(weight, x, sum), sum);
    }
    vf_store_first(dst + i, sum, n);
}

/* What stands for no tap looks up element 0. */
void GB_ISA_NAME(resample_line)(const gb_resample_taps *taps, const float *line, float *dst)
{
    int64_t i = 0;
    for (; i + VLEN <= taps->count; i += VLEN)
        line_vector(taps, line, i, VLEN, dst);
    if (i < taps->count)
        line_vector(taps, line, i, taps->count - i, dst);
}
