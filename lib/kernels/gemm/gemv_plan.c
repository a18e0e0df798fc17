/* Products of a vector and a matrix: the matrix is read once, as it lies. */
#include "kernels/gemm/gemm_plan.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/cpu/step_call.h"
#include "kernels/gemm/gemm_run.h"
#include "kernels/plan/space.h"

#include <string.h>

/* Of a work item: the results stay in the caches. A line of 16-bit weights adds to twice as many of them: they stay in
 * L1. */
enum { MOST_COLUMNS = 8192, MOST_COLUMNS_OF_HALVES = 4096 };
/* Terms that join one sum, whose roundings go the same way where they are equal; a dot product has as many
 * sums as DOT_SUMS at least. */
enum { MOST_TERMS = 4096, DOT_SUMS = 8 };

typedef struct gemv_params {
    gb_gemm gemm;
    int64_t chunk, chunks; /* columns of a work item; work items per batch */
    bool copy_x;
    gb_scratch sums, gate_sums; /* of a chunk */
    gb_scratch part;            /* the same of MOST_TERMS terms, where there are more */
    gb_scratch x;               /* where it is copied */
    gb_scratch parameters;      /* of quantized operands */
} gemv_params;

static int64_t column_stride(const gb_gemm_operand *b, int col_dim)
{
    return col_dim < 0 ? 1 : b->strides[col_dim];
}

/* Constant bytes are packed once into VNNI groups of as many bytes, which a tile reads one after
 * another and multiplies as they are. */
static bool has_better_tiles(const gb_gemm_problem *problem)
{
    return problem->integer && problem->b.constant &&
           gb_kernels_get()->dot_form(false).vnni_factor == 4;
}

bool gb_gemv_fits(const gb_gemm_problem *problem)
{
    const gb_gemm_operand *b = &problem->b;
    return problem->row_dim < 0 && !b->in_panels && !has_better_tiles(problem) &&
           (b->k_stride == 1 || column_stride(b, problem->col_dim) == 1) &&
           (!problem->gate || gb_gemv_fits(problem->gate));
}

/* Of an operand that is not quantized. */
static const char *gemv_element(const gb_step_call *call, const gb_gemm *gemm,
        const gb_gemm_operand *operand, const int64_t *position)
{
    int64_t offset = gb_offset(gemm->epilogue.ndims, operand->strides, position);
    return (const char *)call->buffers[operand->slot] + offset * (operand->type == GB_F32 ? 4 : 2);
}

/* The vector as consecutive f32. */
static const float *vector(const gb_step_call *call, const int64_t *position)
{
    const gemv_params *params = call->params;
    const gb_gemm_operand *a = &params->gemm.a;
    float *copied = gb_scratch_get(call, params->x);
    if (gb_gemm_is_quantized(a)) {
        gb_quantized_matrix matrix = gb_gemm_matrix(
                a, params->gemm.epilogue.ndims, call->buffers, position, params->gemm.row_dim);
        matrix = gb_quantized_matrix_transposed(&matrix);
        gb_quantized_matrix_dequantize(params->gemm.kernels, &matrix,
                &(gb_block){0, 1, 0, params->gemm.k}, copied, params->gemm.k, 0,
                gb_scratch_get(call, params->parameters));
        return copied;
    }
    const char *src = gemv_element(call, &params->gemm, a, position);
    if (!params->copy_x)
        return (const float *)(const void *)src;
    gb_gemm_copy copy = {.type = a->type,
            .src = src,
            .rows = 1,
            .cols = params->gemm.k,
            .col_stride = a->k_stride,
            .dst = copied};
    params->gemm.kernels->gemm_copy(&copy);
    return copied;
}

static void gemv_multiply(const gb_step_call *call, const gb_gemm *gemm, const int64_t *position,
        const float *x, int64_t n, float *y)
{
    const gemv_params *params = call->params;
    float *parameters = gb_scratch_get(call, params->parameters);
    if (gemm->k == 0) {
        memset(y, 0, (size_t)n * sizeof(float));
        return;
    }
    if (gb_gemm_is_quantized(&gemm->b)) {
        gb_quantized_matrix matrix = gb_gemm_matrix(
                &gemm->b, gemm->epilogue.ndims, call->buffers, position, gemm->col_dim);
        gb_block block = {0, gemm->k, gemm->col_dim < 0 ? 0 : position[gemm->col_dim], n};
        gb_quantized_matrix_gemv(gemm->kernels, &matrix, &block, x, y, parameters);
        return;
    }
    gb_gemv gemv = {.type = gemm->b.type,
            .n = n,
            .k_stride = gemm->b.k_stride,
            .n_stride = column_stride(&gemm->b, gemm->col_dim)};
    const char *w = gemv_element(call, gemm, &gemm->b, position);
    float *part = gb_scratch_get(call, params->part);
    const int64_t most = gemm->b.k_stride == 1 ? DOT_SUMS * MOST_TERMS : MOST_TERMS;
    for (int64_t k = 0; k < gemm->k; k += most) {
        gemv.w = w + k * gemm->b.k_stride * (int64_t)gb_data_type_bytes(gemm->b.type, 1);
        gemv.x = x + k;
        gemv.k = gb_min_i64(most, gemm->k - k);
        gemv.y = k ? part : y;
        gemm->kernels->gemv(&gemv);
        for (int64_t i = 0; k && i < n; i++)
            y[i] += part[i];
    }
}

/* The pointwise program on some of the sums. */
static void finish_tile(const gb_step_call *call, const gb_gemm *gemm, const int64_t *position,
        const float *sums, int64_t n)
{
    const gb_gemm *last = &((const gemv_params *)call->params)->gemm;
    float *registers = gb_scratch_get(call, last->registers);
    gb_pointwise_view views[GB_POINTWISE_OPERANDS];
    memcpy(registers, sums, (size_t)n * sizeof *sums);
    gb_pointwise_views(&gemm->epilogue, call->buffers, position, -1, gemm->col_dim, views);
    gb_gemm_set_gate_view(gemm, gb_scratch_get(call, last->gate_result), n, views);
    gemm->kernels->pointwise_run(&gemm->epilogue, views, 1, n, registers);
}

static void run_chunk(const gb_step_call *call, int64_t *position, const float *x, int64_t n)
{
    const gemv_params *params = call->params;
    const gb_gemm *gemm = &params->gemm, *gate = gemm->gate;
    float *sums = gb_scratch_get(call, params->sums);
    float *gate_sums = gb_scratch_get(call, params->gate_sums);
    if (gate)
        gemv_multiply(call, gate, position, x, n, gate_sums);
    gemv_multiply(call, gemm, position, x, n, sums);
    for (int64_t c = 0; c < n; c += GB_TILE_ELEMENTS) {
        int64_t cols = gb_min_i64(GB_TILE_ELEMENTS, n - c);
        if (gate)
            finish_tile(call, gate, position, gate_sums + c, cols);
        finish_tile(call, gemm, position, sums + c, cols);
        if (gemm->col_dim >= 0)
            position[gemm->col_dim] += cols;
    }
}

/* Where a vector lies, to tell whether it has been copied. */
static bool same_vector(const gb_gemm *gemm, const int64_t *a, const int64_t *b)
{
    for (int i = 0; i < gemm->n_batch_dims; i++)
        if (a[gemm->batch_dims[i]] != b[gemm->batch_dims[i]] &&
                (gemm->a.strides[gemm->batch_dims[i]] || gb_gemm_is_quantized(&gemm->a)))
            return false;
    return true;
}

static void gemv_run(const gb_step_call *call)
{
    const gemv_params *params = call->params;
    const gb_gemm *gemm = &params->gemm;
    int64_t position[GB_AXES] = {0}, last[GB_AXES] = {0}, begin, end;
    const float *x = NULL;
    while (gb_take_items(call, gemm->batches * params->chunks, &begin, &end))
        for (int64_t i = begin; i < end; i++) {
            int64_t first = i % params->chunks * params->chunk;
            gb_position_set(gemm->n_batch_dims, gemm->batch_dims, gemm->epilogue.dims,
                    i / params->chunks, position);
            if (gemm->col_dim >= 0)
                position[gemm->col_dim] = first;
            if (!x || !same_vector(gemm, position, last))
                x = vector(call, position);
            memcpy(last, position, sizeof last);
            run_chunk(call, position, x, gb_min_i64(params->chunk, gemm->n - first));
        }
}

static bool has_quantized_b(const gb_gemm *gemm)
{
    return gb_gemm_is_quantized(&gemm->b) || (gemm->gate && has_quantized_b(gemm->gate));
}

/* Long rows are read faster than short ones; of quantized values there are several to a byte, and
 * columns come with parameters. All threads get the same number of chunks. */
static void choose_chunks(gemv_params *params, int threads)
{
    const gb_gemm *gemm = &params->gemm;
    bool compressed = has_quantized_b(gemm);
    int64_t row = compressed ? GB_QUANTIZED_MATRIX_COLUMNS : 32;
    int64_t most = compressed               ? GB_TILE_ELEMENTS
                   : gemm->b.type == GB_F32 ? MOST_COLUMNS
                                            : MOST_COLUMNS_OF_HALVES;
    int64_t parts = gemm->batches > 1 ? gb_div_up(2 * (int64_t)threads, gemm->batches) : threads;
    int64_t chunks = gb_div_up(gb_div_up(gemm->n, most), parts) * parts;
    params->chunk = gb_div_up(gb_div_up(gemm->n, chunks), row) * row;
    params->chunks = gb_div_up(gemm->n, params->chunk);
}

static void gemv_add_scratch(gb_step *step, gemv_params *params)
{
    gb_gemm *gemm = &params->gemm;
    size_t chunk = (size_t)params->chunk * sizeof(float);
    gb_gemm_add_registers(step, gemm);
    params->sums = gb_scratch_add(step, chunk);
    if (gemm->gate)
        params->gate_sums = gb_scratch_add(step, chunk);
    if (gemm->k > MOST_TERMS)
        params->part = gb_scratch_add(step, chunk);
    if (params->copy_x)
        params->x = gb_scratch_add(step, (size_t)gemm->k * sizeof(float));
    if (gb_gemm_is_quantized(&gemm->a) || has_quantized_b(gemm)) {
        int64_t floats = gb_max_i64(gb_quantized_matrix_scratch(gemm->k, 1),
                gb_quantized_matrix_gemv_scratch(params->chunk));
        params->parameters = gb_scratch_add(step, (size_t)floats * sizeof(float));
    }
}

static gemv_params *keep(gb_step *step, const gb_gemm_problem *problem)
{
    gemv_params *params = gb_step_alloc(step, 1, sizeof *params);
    gb_gemm *gate = params && problem->gate ? gb_step_alloc(step, 1, sizeof *gate) : NULL;
    if (!params || (problem->gate && !gate))
        return NULL;
    gb_gemm *gemm = &params->gemm;
    *gemm = gb_gemm_begin(problem);
    gemm->gate = gate;
    if (gate)
        *gate = gb_gemm_begin(problem->gate);
    params->copy_x = gb_gemm_is_quantized(&gemm->a) || gemm->a.type != GB_F32 ||
                     (gemm->a.k_stride != 1 && gemm->k > 1);
    return params;
}

gb_status gb_gemv_add(gb_program *program, gb_step *step, const gb_gemm_problem *problem)
{
    gemv_params *params = keep(step, problem);
    if (!params)
        return GB_OUT_OF_MEMORY;
    choose_chunks(params, gb_program_threads(program));
    step->kernel = problem->gate ? "gated gemv" : "gemv";
    step->run = gemv_run;
    step->params = params;
    gemv_add_scratch(step, params);
    GB_TRY(gb_gemm_use_operands(step, &params->gemm));
    for (const gb_gemm *product = &params->gemm; product; product = product->gate)
        step->work += 4 * (double)product->batches * (double)product->n * (double)product->k;
    return gb_program_add(program, step);
}
