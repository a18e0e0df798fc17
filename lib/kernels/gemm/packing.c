/* Packs weights into panels, in parallel over panels. */
#include "kernels/gemm/packing.h"

#include "base/dtype.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/cpu/step_call.h"
#include "kernels/isa/costs.h"

#include <string.h>

enum {
    PANEL = GB_GEMM_PANEL,
    MOST_TAPS = 64, /* of those that are packed at once */
};

static int64_t count(int ndims, const int64_t *dims)
{
    int64_t product = 1;
    for (int d = 0; d < ndims; d++)
        product *= dims[d];
    return product;
}

/* Element offset of entry `index` of a list of dims, the last one fastest. */
static int64_t offset_of(int ndims, const int64_t *dims, const int64_t *strides, int64_t index)
{
    int64_t offset = 0;
    for (int d = ndims; d-- > 0; index /= dims[d])
        offset += index % dims[d] * strides[d];
    return offset;
}

/* Rows of a panel, of all taps: terms, or VNNI groups. */
static int64_t packing_rows_of(const gb_packing *packing)
{
    int64_t taps = count(packing->n_taps, packing->tap_dims), block = packing->inner_block;
    if (packing->vnni_factor == 0 || packing->inner == 0)
        return packing->inner * taps;
    int64_t whole = packing->inner / block, rest = packing->inner % block;
    return taps *
           (whole * gb_div_up(block, packing->vnni_factor) + gb_div_up(rest, packing->vnni_factor));
}

static bool has_sums(const gb_packing *packing)
{
    return packing->vnni_factor > 0 && packing->type != GB_BF16;
}

/* Of a number or VNNI group of a panel. */
static int64_t packing_bytes(const gb_packing *packing)
{
    return packing->halves ? 2 : 4;
}

int64_t gb_packing_panel(const gb_packing *packing)
{
    return (packing_rows_of(packing) + has_sums(packing)) * PANEL;
}

int64_t gb_packing_batch(const gb_packing *packing)
{
    return gb_div_up(packing->n, PANEL) * gb_packing_panel(packing);
}

bool gb_packing_keeps_halves(gb_data_type type, double elements, double rows)
{
    return (type == GB_BF16 || type == GB_F16) && rows <= (double)gb_costs_get()->widened_rows &&
           elements * sizeof(float) > (double)gb_machine_get()->l2_bytes;
}

/* The VNNI groups of `k` terms of a panel; returns their number. */
static int64_t pack_words(
        const gb_packing *packing, const void *src, int64_t k, int64_t n, int32_t *dst)
{
    gb_dot_pack pack = {.vnni_factor = packing->vnni_factor,
            .floats = packing->type == GB_BF16,
            .is_signed = packing->type == GB_S8,
            .flip = packing->vnni_factor == 4 && packing->type == GB_U8,
            .src = src,
            .k = k,
            .n = n,
            .k_stride = packing->inner_stride,
            .n_stride = packing->n_stride,
            .dst = dst,
            .dst_row = PANEL,
            .panel_stride = PANEL};
    packing->kernels->dot_pack(&pack);
    return gb_div_up(k, packing->vnni_factor);
}

static void pack_groups(const gb_packing *packing, const char *src, int32_t *dst, int64_t n)
{
    int64_t size = gb_dtype_get(packing->type)->bits / 8;
    int32_t *words = dst;
    for (int64_t first = 0; first < packing->inner; first += packing->inner_block) {
        int64_t k = gb_min_i64(packing->inner_block, packing->inner - first);
        for (int64_t tap = 0; tap < packing->taps; tap++) {
            int64_t offset =
                    first * packing->inner_stride +
                    offset_of(packing->n_taps, packing->tap_dims, packing->tap_strides, tap);
            words += pack_words(packing, src + offset * size, k, n, words) * PANEL;
        }
    }
    if (!has_sums(packing))
        return;
    gb_dot_sums sums = {.vnni_factor = packing->vnni_factor,
            .is_signed = true,
            .words = dst,
            .n = PANEL,
            .stride = 1,
            .k = (words - dst) / PANEL,
            .step = PANEL,
            .sums = words};
    packing->kernels->dot_sums(&sums);
}

/* Rows of a panel of halves, bit for bit. */
static void pack_halves(const gb_packing *packing, const char *src, char *dst, int64_t k, int64_t n)
{
    const int64_t size = 2, row = packing->inner_stride * size, column = packing->n_stride * size;
    if (n < PANEL)
        memset(dst, 0, (size_t)(k * PANEL * size));
    if (packing->inner_stride == 1) {
        packing->kernels->transpose((size_t)size, src, column, dst, PANEL * size, k, n);
        return;
    }
    for (int64_t i = 0; i < k; i++, dst += PANEL * size)
        if (packing->n_stride == 1)
            memcpy(dst, src + i * row, (size_t)(n * size));
        else
            for (int64_t c = 0; c < n; c++)
                memcpy(dst + c * size, src + i * row + c * column, (size_t)size);
}

/* Terms of all taps at once, where these are neighbours in memory and their terms are not. */
static bool pack_neighbouring_taps(
        const gb_packing *packing, const char *src, float *dst, int64_t k, int64_t n)
{
    int64_t offsets[MOST_TAPS], rows[MOST_TAPS], least = INT64_MAX;
    if (packing->halves || packing->taps == 1 || packing->taps > MOST_TAPS ||
            packing->inner_stride == 1 || packing->n_stride == 1)
        return false;
    for (int64_t tap = 0; tap < packing->taps; tap++) {
        offsets[tap] = offset_of(packing->n_taps, packing->tap_dims, packing->tap_strides, tap);
        least = gb_min_i64(least, offsets[tap]);
    }
    for (int64_t tap = 0; tap < packing->taps; tap++)
        rows[tap] = -1;
    for (int64_t tap = 0; tap < packing->taps; tap++) {
        int64_t place = offsets[tap] - least;
        if (place >= packing->taps || rows[place] >= 0)
            return false;
        rows[place] = tap * k;
    }
    gb_gemm_pack_taps pack = {.type = packing->type,
            .src = src + least * (gb_dtype_get(packing->type)->bits / 8),
            .k = k,
            .n = n,
            .k_stride = packing->inner_stride,
            .n_stride = packing->n_stride,
            .taps = packing->taps,
            .rows = rows,
            .dst = dst};
    packing->kernels->gemm_pack_taps(&pack);
    return true;
}

static void pack_panel(const gb_packing *packing, const char *src, char *dst, int64_t n)
{
    int64_t size = gb_dtype_get(packing->type)->bits / 8;
    gb_gemm_pack pack = {.type = packing->type,
            .n = n,
            .k_stride = packing->inner_stride,
            .n_stride = packing->n_stride};
    for (int64_t first = 0; first < packing->inner; first += packing->inner_block) {
        pack.k = gb_min_i64(packing->inner_block, packing->inner - first);
        if (pack_neighbouring_taps(packing, src + first * packing->inner_stride * size,
                    (float *)(void *)dst, pack.k, n)) {
            dst += packing->taps * pack.k * PANEL * packing_bytes(packing);
            continue;
        }
        for (int64_t tap = 0; tap < packing->taps; tap++) {
            int64_t offset =
                    first * packing->inner_stride +
                    offset_of(packing->n_taps, packing->tap_dims, packing->tap_strides, tap);
            pack.src = src + offset * size;
            pack.dst = (float *)(void *)dst;
            if (packing->halves)
                pack_halves(packing, pack.src, dst, pack.k, n);
            else
                packing->kernels->gemm_pack(&pack);
            dst += pack.k * PANEL * packing_bytes(packing);
        }
    }
}

void gb_packing_complete(gb_packing *packing)
{
    packing->kernels = gb_kernels_get();
    packing->panels = gb_div_up(packing->n, PANEL);
    packing->taps = count(packing->n_taps, packing->tap_dims);
    packing->batches = count(packing->n_batch, packing->batch_dims);
}

void gb_packing_run_panel(const gb_packing *packing, const void *source, int64_t index, void *dst)
{
    int64_t size = gb_dtype_get(packing->type)->bits / 8, n = index % packing->panels * PANEL;
    int64_t offset = packing->first + n * packing->n_stride +
                     offset_of(packing->n_batch, packing->batch_dims, packing->batch_strides,
                             index / packing->panels);
    const char *src = (const char *)source + offset * size;
    int64_t columns = gb_min_i64(PANEL, packing->n - n);
    if (packing->vnni_factor)
        pack_groups(packing, src, dst, columns);
    else
        pack_panel(packing, src, dst, columns);
}

static void packing_run(const gb_step_call *call)
{
    const gb_packing *packing = call->params;
    int64_t panel = gb_packing_panel(packing) * packing_bytes(packing), begin, end;
    while (gb_take_items(call, packing->batches * packing->panels, &begin, &end))
        for (int64_t i = begin; i < end; i++)
            gb_packing_run_panel(packing, call->buffers[packing->src], i,
                    (char *)call->buffers[packing->dst] + i * panel);
}

static gb_status packed_bytes(const gb_packing *packing, size_t *bytes)
{
    size_t total = (size_t)packing_bytes(packing) * PANEL;
    int64_t rows = packing_rows_of(packing) + has_sums(packing);
    bool fits = gb_size_mul(total, (size_t)packing->panels, &total) &&
                gb_size_mul(total, (size_t)rows, &total) &&
                gb_size_mul(total, (size_t)packing->batches, &total) && total <= INT64_MAX;
    *bytes = total;
    return fits ? GB_SUCCESS
                : gb_fail(GB_OUT_OF_MEMORY, "packed weights do not fit the address space");
}

/* ", taps 3x3 [3,1]" */
static void print_dims(const gb_printer *printer, const char *name, int n, const int64_t *dims,
        const int64_t *strides)
{
    if (n == 0)
        return;
    fprintf(printer->file, ", %s ", name);
    gb_print_sizes(printer, n, dims);
    fputs(" ", printer->file);
    gb_print_strides(printer, n, strides);
}

static void print_packing(const gb_printer *printer, const void *problem)
{
    const gb_packing *packing = problem;
    fprintf(printer->file, "panels of %s ", gb_data_type_name(packing->type));
    gb_print_slot(printer, packing->src);
    print_dims(printer, "batches", packing->n_batch, packing->batch_dims, packing->batch_strides);
    print_dims(printer, "taps", packing->n_taps, packing->tap_dims, packing->tap_strides);
    print_dims(printer, "rows", 1, &packing->inner, &packing->inner_stride);
    print_dims(printer, "columns", 1, &packing->n, &packing->n_stride);
    fputs("\n", printer->file);
}

gb_status gb_packing_add(
        gb_program *program, const gb_packing *packing, uint32_t source, uint32_t *packed)
{
    gb_step *step;
    size_t bytes;
    GB_TRY(gb_program_begin(program, "pack", &step));
    gb_packing *own = gb_step_alloc(step, 1, sizeof *own);
    if (!own)
        return GB_OUT_OF_MEMORY;
    memcpy(own, packing, sizeof *own); /* with its padding: all bytes count (params_bytes) */
    gb_packing_complete(own);
    GB_TRY(packed_bytes(own, &bytes));
    GB_TRY(gb_program_temporary(program, bytes, packed));
    GB_TRY(gb_step_use_buffer(step, source, false, &own->src));
    GB_TRY(gb_step_use_buffer(step, *packed, true, &own->dst));
    step->run = packing_run;
    step->params = own;
    step->params_bytes = sizeof *own;
    step->work = 2 * (double)bytes;
    GB_TRY(gb_step_describe(program, step, print_packing, own));
    return gb_program_add(program, step);
}
