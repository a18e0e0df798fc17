/* Runs pointwise programs: one loop per instruction over a tile in L1.
 *
 * A register is a view of f32 (or s32) lanes: of its own memory, or of an operand's. One that does
 * not change along the rows or columns has stride 0 there and holds a single row, column or
 * element; arithmetic among such registers stays that small, and the loops broadcast them.
 */
#include "kernels/isa/vec.h"

#include "base/memory.h"
#include "kernels/pointwise/pointwise_chain_run.h"
#include "kernels/pointwise/pointwise_expressions.h"
#include "kernels/pointwise/pointwise_load_store.h"

#include <string.h>

typedef struct tile_machine {
    const gb_pointwise_program *pointwise;
    const gb_pointwise_view *views;
    int64_t rows, cols;
    float *memory;
    tile_register registers[GB_POINTWISE_REGISTERS];
} tile_machine;

static float *own_memory(const tile_machine *m, int index)
{
    return m->memory + index * GB_TILE_ELEMENTS;
}

/* The part of the tile that a register tells apart. */
static int64_t pointwise_rows_of(const tile_machine *m, const tile_register *reg)
{
    return reg->row ? m->rows : 1;
}
static int64_t cols_of(const tile_machine *m, const tile_register *reg)
{
    return reg->col ? m->cols : 1;
}

static tile_register dense(float *data, int64_t rows, int64_t cols)
{
    return (tile_register){data, rows > 1 ? cols : 0, cols > 1, false};
}

/* Type of the quantized values that LOAD and STORE turn lanes into: s32 lanes are stored as they
 * are. */
static gb_data_type type_of(const tile_machine *m, const gb_pointwise_instruction *instruction)
{
    return instruction->type == GB_S32 ? GB_F32 : m->pointwise->operands[instruction->operand].type;
}

static void pointwise_load(tile_machine *m, const gb_pointwise_instruction *instruction)
{
    const gb_pointwise_view *view = &m->views[instruction->operand];
    gb_data_type type = type_of(m, instruction);
    tile_register *reg = &m->registers[instruction->dst];
    int64_t row = m->rows > 1 ? view->row_stride : 0, col = m->cols > 1 ? view->col_stride : 0;
    int64_t rows = row ? m->rows : 1, cols = col ? m->cols : 1;
    if (type == GB_F32 && (col == 0 || col == 1)) {
        *reg = (tile_register){(float *)(void *)view->data, row, col, view->far};
        return;
    }
    *reg = dense(own_memory(m, instruction->dst), rows, cols);
    code_rows t = {rows, cols, view->data, row, reg->data, cols, false};
    uint32_t codes[GB_TILE_ELEMENTS];
    if (type == GB_S4 || type == GB_U4) {
        t.codes = (char *)codes;
        t.codes_row = cols;
        gb_pointwise_view far = {
                .data = view->data, .row_stride = row, .col_stride = col, .nibble = view->nibble};
        unpack_nibbles(&far, type == GB_S4, (uint8_t *)codes, rows, cols);
        type = type == GB_S4 ? GB_S8 : GB_U8;
    } else if (col > 1 || col < 0) {
        t.codes = (char *)codes;
        t.codes_row = cols;
        gb_pointwise_view far = {.data = view->data, .row_stride = row, .col_stride = col};
        move_codes(code_types[type].bytes, true, far, t.codes, rows, cols);
    }
    if (t.codes_row == cols || rows == 1) {
        t.cols *= rows;
        t.rows = 1;
    }
    code_types[type].load(&t);
}

static bool flat(const tile_register *reg, int64_t cols)
{
    return (reg->row == cols && reg->col == 1) || (reg->row == 0 && reg->col == 0);
}

static void run_loop(tile_loop_fn *loop, tile_call *call)
{
    bool whole = call->dst_row == call->cols && flat(&call->a, call->cols) &&
                 flat(&call->b, call->cols) && flat(&call->c, call->cols);
    if (whole) {
        call->cols *= call->rows;
        call->rows = 1;
    }
    loop(call);
}

/* Makes a register dense and as large as rows x cols, in its own memory. */
static void dequantize(tile_machine *m, int index, int64_t rows, int64_t cols)
{
    tile_register *reg = &m->registers[index], from = *reg;
    reg->data = own_memory(m, index);
    if (from.data != reg->data || cols_of(m, &from) == cols) {
        /* from elsewhere, or a single row that lies in place: top down */
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++)
                reg->data[r * cols + c] = from.data[r * from.row + c * from.col];
    } else {
        for (int64_t r = rows; r-- > 0;) { /* one element per row: bottom up, none is lost */
            float value = from.data[r * from.row];
            for (int64_t c = 0; c < cols; c++)
                reg->data[r * cols + c] = value;
        }
    }
    *reg = dense(reg->data, rows, cols);
}

/* Does the result go past the caches? */
static bool streams(const tile_machine *m, const gb_pointwise_instruction *instruction)
{
    const gb_pointwise_view *view = &m->views[instruction->operand];
    if (!view->streamed || (m->cols > 1 && view->col_stride != 1))
        return false;
    int64_t run = m->rows > 1 && view->row_stride == m->cols ? m->rows * m->cols : m->cols;
    return run * code_types[type_of(m, instruction)].bytes >= GB_STREAM_RUN;
}

static void pointwise_store(tile_machine *m, const gb_pointwise_instruction *instruction)
{
    const gb_pointwise_view *view = &m->views[instruction->operand];
    gb_data_type type = type_of(m, instruction);
    tile_register *reg = &m->registers[instruction->a];
    int64_t rows = m->rows, cols = m->cols;
    if (pointwise_rows_of(m, reg) != rows || cols_of(m, reg) != cols)
        dequantize(m, instruction->a, rows, cols);
    code_rows t = {rows, cols, view->data, view->row_stride, reg->data, rows > 1 ? reg->row : cols,
            streams(m, instruction)};
    uint32_t codes[GB_TILE_ELEMENTS];
    bool strided = cols > 1 && view->col_stride != 1;
    if (strided) {
        t.codes = (char *)codes;
        t.codes_row = cols;
    }
    if (rows == 1 || (t.codes_row == cols && t.lanes_row == cols)) {
        t.cols *= rows;
        t.rows = 1;
    }
    code_types[type].store(&t);
    if (strided)
        move_codes(code_types[type].bytes, false, *view, t.codes, rows, cols);
}

/* Where the result of an instruction goes: the operand itself when the next one stores it there. */
static tile_register destination(const tile_machine *m, const gb_pointwise_instruction *instruction,
        bool last, int64_t rows, int64_t cols, bool *stored)
{
    const gb_pointwise_instruction *next = instruction + 1;
    *stored = false;
    if (!last && next->opcode == GB_POINTWISE_STORE && next->a == instruction->dst &&
            rows == m->rows && cols == m->cols) {
        const gb_pointwise_view *view = &m->views[next->operand];
        *stored = type_of(m, next) == GB_F32 && (cols == 1 || view->col_stride == 1);
        if (*stored)
            return (tile_register){
                    (float *)(void *)view->data, rows > 1 ? view->row_stride : 0, cols > 1, false};
    }
    return dense(own_memory(m, instruction->dst), rows, cols);
}

/* Runs an arithmetic instruction; true when it has done the work of the STORE after it, too. */
static bool pointwise_compute(
        tile_machine *m, const gb_pointwise_instruction *instruction, bool last)
{
    const tile_op *op = &TILE_OPS[instruction->opcode];
    const uint8_t sources[] = {instruction->a, instruction->b, instruction->c};
    int64_t rows = 1, cols = 1;
    for (int i = 0; i < op->n_sources; i++) {
        rows = gb_max_i64(rows, pointwise_rows_of(m, &m->registers[sources[i]]));
        cols = gb_max_i64(cols, cols_of(m, &m->registers[sources[i]]));
    }
    bool stored;
    tile_register dst = destination(m, instruction, last, rows, cols, &stored);
    for (int i = 0; i < op->n_sources; i++) { /* no source may be overwritten before its last use */
        const tile_register *source = &m->registers[sources[i]];
        bool smaller = pointwise_rows_of(m, source) != rows || cols_of(m, source) != cols;
        if (smaller && source->data == dst.data)
            dequantize(m, sources[i], rows, cols);
    }
    tile_call call = {rows, cols, dst.data, rows > 1 ? dst.row : cols, {0}, {0}, {0},
            instruction->alpha, instruction->beta, (gb_data_type)instruction->type,
            stored && streams(m, instruction + 1)};
    call.a = m->registers[sources[0]];
    if (op->n_sources > 1)
        call.b = m->registers[sources[1]];
    if (op->n_sources > 2)
        call.c = m->registers[sources[2]];
    run_loop(op->loop, &call);
    m->registers[instruction->dst] = dst;
    return stored;
}

static void constant(tile_machine *m, const gb_pointwise_instruction *instruction)
{
    float *data = own_memory(m, instruction->dst);
    *data = instruction->alpha;
    m->registers[instruction->dst] = (tile_register){data, 0, 0, false};
}

/* The positions along rows and columns that differ; one number may stand for all. */
static void index_lanes(tile_machine *m, const gb_pointwise_instruction *instruction)
{
    const gb_pointwise_view *view = &m->views[instruction->operand];
    int64_t rows = view->row_stride ? m->rows : 1, cols = view->col_stride ? m->cols : 1;
    tile_register *reg = &m->registers[instruction->dst];
    *reg = dense(own_memory(m, instruction->dst), rows, cols);
    int32_t *lanes = (int32_t *)(void *)reg->data;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            lanes[r * cols + c] =
                    (int32_t)(view->offset + r * view->row_stride + c * view->col_stride);
}

/* A draw stays when it is above 4294967295 p. */
static void dropout(tile_machine *m, const gb_pointwise_instruction *instruction)
{
    const gb_pointwise_view *view = &m->views[instruction->operand];
    float p = m->registers[instruction->a].data[0];
    int64_t rows = m->rows, cols = m->cols;
    gb_dropout_block block = {.first = (uint64_t)view->offset, .step = view->col_stride, .n = cols};
    memcpy(&block.seed, m->views[instruction->b].data, sizeof block.seed);
    memcpy(&block.offset, m->views[instruction->c].data, sizeof block.offset);
    p = p > 0 ? p < 1 ? p : 1 : 0;
    block.threshold = (uint32_t)(4294967295.0 * (double)p);
    tile_register *reg = &m->registers[instruction->dst];
    *reg = dense(own_memory(m, instruction->dst), rows, cols);
    block.keep = reg->data;
    if (rows == 1 || view->row_stride == cols * view->col_stride) {
        block.n = rows * cols;
        rows = 1;
    }
    for (int64_t r = 0; r < rows; r++, block.keep += cols) {
        GB_ISA_NAME(dropout_keep)(&block);
        block.first += (uint64_t)view->row_stride;
    }
}

/* rows * cols <= GB_TILE_ELEMENTS, or runs_in_place() */
static void run_tile(const gb_pointwise_program *pointwise, const gb_pointwise_view *views,
        int64_t rows, int64_t cols, float *registers)
{
    tile_machine m; /* a register is written before it is read */
    m.pointwise = pointwise;
    m.views = views;
    m.rows = rows;
    m.cols = cols;
    m.memory = registers;
    m.registers[0] = dense(registers, rows, cols);
    for (uint32_t i = 0; i < pointwise->n_instructions; i++) {
        const gb_pointwise_instruction *instruction = &pointwise->instructions[i];
        switch (instruction->opcode) {
        case GB_POINTWISE_LOAD:
            pointwise_load(&m, instruction);
            break;
        case GB_POINTWISE_STORE:
            pointwise_store(&m, instruction);
            break;
        case GB_POINTWISE_CONSTANT:
            constant(&m, instruction);
            break;
        case GB_POINTWISE_INDEX:
            index_lanes(&m, instruction);
            break;
        case GB_POINTWISE_DROPOUT:
            dropout(&m, instruction);
            break;
        default:
            if (pointwise_compute(&m, instruction, i + 1 == pointwise->n_instructions))
                i++;
            break;
        }
    }
}

/* Does the instruction load or store 32-bit lanes as they are? */
static bool has_lanes(
        const gb_pointwise_program *pointwise, const gb_pointwise_instruction *instruction)
{
    return instruction->type == GB_S32 || pointwise->operands[instruction->operand].type == GB_F32;
}

/* Does the program read f32 lanes where they lie, run one instruction at most and store the result?
 * Then no register but those of constants has memory of its own, and the tile may be of any size. Not
 * so where the operands together lack the tile's rows or columns, or where one that does is read from
 * where the result is written. */
static bool runs_in_place(const gb_pointwise_program *pointwise, const gb_pointwise_view *views,
        int64_t rows, int64_t cols)
{
    const uint32_t last = pointwise->n_instructions - 1;
    const gb_pointwise_instruction *store = &pointwise->instructions[last];
    const gb_pointwise_view *dst = &views[store->operand];
    bool computes = false, has_rows = rows == 1, has_cols = cols == 1;
    for (uint32_t i = 0; i < last; i++) {
        const gb_pointwise_instruction *instruction = &pointwise->instructions[i];
        const gb_pointwise_view *view = &views[instruction->operand];
        if (instruction->opcode == GB_POINTWISE_CONSTANT)
            continue;
        if (instruction->opcode != GB_POINTWISE_LOAD) {
            computes = TILE_OPS[instruction->opcode].loop && i + 1 == last;
            if (!computes)
                return false;
            continue;
        }
        bool smaller = (rows > 1 && view->row_stride == 0) || (cols > 1 && view->col_stride == 0);
        if (!has_lanes(pointwise, instruction) || view->col_stride < 0 || view->col_stride > 1 ||
                (smaller && view->data == dst->data))
            return false;
        has_rows = has_rows || view->row_stride != 0;
        has_cols = has_cols || view->col_stride != 0;
    }
    return store->opcode == GB_POINTWISE_STORE && dst->col_stride == 1 && has_rows && has_cols &&
           (!computes || has_lanes(pointwise, store));
}

/* Is register 0, which may be of any size, only stored? */
static bool stores_only(const gb_pointwise_program *pointwise, const gb_pointwise_view *views)
{
    return pointwise->n_instructions == 1 &&
           views[pointwise->instructions[0].operand].col_stride == 1;
}

static void run_tiles(const gb_pointwise_program *pointwise, const gb_pointwise_view *views,
        int64_t rows, int64_t cols, float *registers)
{
    if (rows * cols <= GB_TILE_ELEMENTS || stores_only(pointwise, views) ||
            runs_in_place(pointwise, views, rows, cols)) {
        run_tile(pointwise, views, rows, cols, registers);
        return;
    }
    const int64_t tile_cols = gb_min_i64(cols, GB_TILE_ELEMENTS);
    const int64_t tile_rows = GB_TILE_ELEMENTS / tile_cols;
    gb_pointwise_view parts[GB_POINTWISE_OPERANDS];
    for (int64_t r = 0; r < rows; r += tile_rows)
        for (int64_t c = 0; c < cols; c += tile_cols) {
            for (uint32_t i = 0; i < pointwise->n_operands; i++)
                parts[i] = gb_pointwise_view_at(&views[i], r, c, pointwise->operands[i].bytes);
            run_tile(pointwise, parts, gb_min_i64(tile_rows, rows - r),
                    gb_min_i64(tile_cols, cols - c), registers);
        }
}

/* Runs a program of one instruction on whole tensors of a 16-bit type, where there is a loop for it. */
static bool run_16(const gb_pointwise_program *pointwise, const gb_pointwise_view *views,
        int64_t rows, int64_t cols)
{
    const gb_pointwise_instruction *first = pointwise->instructions;
    if (pointwise->n_instructions < 3)
        return false;
    const gb_pointwise_instruction *store = first + pointwise->n_instructions - 1, *op = store - 1;
    const tile_op *loops = &TILE_OPS[op->opcode];
    const gb_data_type type = pointwise->operands[store->operand].type;
    tile_loop_fn *loop = type == GB_BF16 ? loops->bf16 : type == GB_F16 ? loops->f16 : NULL;
    if (!loop || store->opcode != GB_POINTWISE_STORE || store->a != op->dst ||
            pointwise->n_instructions != (uint32_t)loops->n_sources + 2)
        return false;
    const gb_pointwise_view *dst = &views[store->operand];
    tile_call call = {.rows = rows,
            .cols = cols,
            .dst = (float *)(void *)dst->data,
            .dst_row = dst->row_stride,
            .alpha = op->alpha,
            .beta = op->beta,
            .type = (gb_data_type)op->type};
    bool dense = rows == 1 || dst->row_stride == cols;
    const uint8_t sources[] = {op->a, op->b};
    tile_register *read[] = {&call.a, &call.b};
    for (int i = 0; i < loops->n_sources; i++) {
        const gb_pointwise_instruction *load = first + i;
        const gb_pointwise_view *view = &views[load->operand];
        if (load->opcode != GB_POINTWISE_LOAD || load->dst != sources[i] ||
                pointwise->operands[load->operand].type != type || view->col_stride != 1 ||
                (rows > 1 && view->row_stride == 0))
            return false;
        *read[i] = (tile_register){(float *)(void *)view->data, view->row_stride, 1, view->far};
        dense = dense && (rows == 1 || view->row_stride == cols);
    }
    if (dst->col_stride != 1)
        return false;
    if (dense) {
        call.cols = rows * cols;
        call.rows = 1;
    }
    call.streamed = dst->streamed && call.cols * (int64_t)sizeof(uint16_t) >= GB_STREAM_RUN;
    loop(&call);
    return true;
}

void GB_ISA_NAME(pointwise_run)(const gb_pointwise_program *pointwise,
        const gb_pointwise_view *views, int64_t rows, int64_t cols, float *registers)
{
    gb_pointwise_view transposed[GB_POINTWISE_OPERANDS];
    if (cols == 1 && rows > 1) { /* a column runs as a row */
        for (uint32_t i = 0; i < pointwise->n_operands; i++)
            transposed[i] = (gb_pointwise_view){.data = views[i].data,
                    .col_stride = views[i].row_stride,
                    .offset = views[i].offset,
                    .nibble = views[i].nibble,
                    .streamed = views[i].streamed,
                    .far = views[i].far};
        views = transposed;
        cols = rows;
        rows = 1;
    }
    if (rows == 0 || cols == 0)
        return;
    if (run_16(pointwise, views, rows, cols))
        return;
    op_chain chain;
    chain_memory memory = {registers + (chain_has_anchor(pointwise) ? GB_TILE_ELEMENTS : 0),
            registers + pointwise->n_registers * (size_t)GB_TILE_ELEMENTS};
    if (chain_read(pointwise, views, rows, cols, registers, false, &memory, &chain))
        chain_run(&chain, &memory);
    else
        run_tiles(pointwise, views, rows, cols, registers);
}

bool GB_ISA_NAME(tile_post_ops)(const gb_pointwise_program *pointwise,
        const gb_pointwise_view *views, int64_t rows, int64_t cols, float *memory, int64_t floats,
        gb_tile_post_ops *post_ops)
{
    op_chain chain;
    chain_memory rest = {memory, memory + floats};
    return chain_has_anchor(pointwise) &&
           chain_read(pointwise, views, rows, cols, NULL, true, &rest, &chain) &&
           chain_tile_post_ops(&chain, post_ops);
}
