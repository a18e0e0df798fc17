/* Chains: programs that carry one value from register 0 through cheap instructions to a single
 * store. The other operands are f32 as they lie in memory, constants, or a row, column or element
 * of another type or computed of such. The post-ops of most anchors are such. A chain passes over
 * its tile once, some vectors at a time in registers, where the interpreter passes once for each
 * instruction; the results are the same bits. */
#ifndef GB_KERNELS_POINTWISE_POINTWISE_CHAIN_H
#define GB_KERNELS_POINTWISE_POINTWISE_CHAIN_H

#include "kernels/pointwise/pointwise_load_store.h"
#include "kernels/pointwise/pointwise_loops.h"

/* Vectors that are in registers at once. */
enum { CHAIN_STEPS = 12, CHAIN_VECTORS = 4 };

/* The opcode of a binary instruction whose operand b is the value. */
#define CHAIN_SWAPPED(opcode) ((opcode) + GB_POINTWISE_OPCODES)

typedef struct chain_step {
    int opcode;
    tile_register other; /* of a binary instruction */
    float alpha, beta;
} chain_step;

typedef struct op_chain {
    int64_t rows, cols;
    const float *src; /* register 0: dense */
    char *dst;
    int64_t dst_row;
    gb_data_type type; /* of dst */
    bool streamed;
    int n_steps;
    chain_step steps[CHAIN_STEPS];
} op_chain;

/* Reading --------------------------------------------------------------------------------------- */

static bool chain_knows(uint8_t opcode, bool swapped)
{
    switch (opcode) {
    case GB_POINTWISE_ADD:
    case GB_POINTWISE_MUL:
        return true;
    case GB_POINTWISE_SUB:
    case GB_POINTWISE_DIV:
    case GB_POINTWISE_MAX:
    case GB_POINTWISE_MIN:
    case GB_POINTWISE_ABS:
    case GB_POINTWISE_CLAMP:
    case GB_POINTWISE_HARDSWISH:
    case GB_POINTWISE_LEAKY_RELU:
    case GB_POINTWISE_RELU:
    case GB_POINTWISE_SQUARE:
        return !swapped;
    default:
        return false;
    }
}

static bool chain_stores(gb_data_type type)
{
    return type == GB_F32 || type == GB_BF16 || type == GB_F16 || type == GB_S8 || type == GB_U8;
}

typedef struct chain_reader {
    const gb_pointwise_program *pointwise;
    const gb_pointwise_view *views;
    int value;      /* register of the value that the chain carries */
    uint32_t known; /* registers that hold operands */
    tile_register operands[GB_POINTWISE_REGISTERS];
    float *memory, *memory_end; /* what is left for rows, columns and elements */
} chain_reader;

/* Room for a row or column of `count`, or NULL. */
static float *chain_take_memory(chain_reader *reader, int64_t count)
{
    float *taken = reader->memory;
    int64_t size = (int64_t)gb_align_up((size_t)count, VLEN);
    if (reader->memory_end - taken < size)
        return NULL;
    reader->memory += size;
    return taken;
}

/* A row, column or element of another type. */
static bool chain_load(chain_reader *reader, gb_data_type type, const gb_pointwise_view *view,
        tile_register *reg, const op_chain *chain)
{
    int64_t rows = reg->row ? chain->rows : 1, cols = reg->col ? chain->cols : 1;
    if ((rows > 1 && (cols > 1 || reg->row != 1)) || type == GB_S4 || type == GB_U4)
        return false;
    reg->data = chain_take_memory(reader, rows * cols);
    if (!reg->data)
        return false;
    code_types[type].load(&(code_rows){1, rows * cols, view->data, 0, reg->data, 0, false});
    return true;
}

static bool chain_read_operand(
        chain_reader *reader, const gb_pointwise_instruction *instruction, const op_chain *chain)
{
    tile_register *reg = &reader->operands[instruction->dst];
    if (instruction->dst == reader->value)
        return false;
    reader->known |= 1U << instruction->dst;
    if (instruction->opcode == GB_POINTWISE_CONSTANT) {
        *reg = (tile_register){chain_take_memory(reader, 1), 0, 0};
        if (reg->data)
            *reg->data = instruction->alpha;
        return reg->data;
    }
    const gb_pointwise_view *view = &reader->views[instruction->operand];
    gb_data_type type = reader->pointwise->operands[instruction->operand].type;
    int64_t col = chain->cols > 1 ? view->col_stride : 0;
    *reg = (tile_register){
            (float *)(void *)view->data, chain->rows > 1 ? view->row_stride : 0, col};
    return instruction->type != GB_S32 && (col == 0 || col == 1) &&
           (type == GB_F32 || chain_load(reader, type, view, reg, chain));
}

/* An instruction on rows, columns and elements alone: its result is one, too. A column is computed
 * as a row. */
static bool chain_compute(
        chain_reader *reader, const gb_pointwise_instruction *instruction, const op_chain *chain)
{
    const tile_op *op = &ops[instruction->opcode];
    const uint8_t sources[] = {instruction->a, instruction->b, instruction->c};
    tile_register given[3] = {{0}};
    bool row = false, column = false;
    for (int i = 0; i < op->n_sources; i++) {
        if (!(reader->known >> sources[i] & 1))
            return false;
        given[i] = reader->operands[sources[i]];
        row = row || given[i].col;
        column = column || given[i].row;
        if (given[i].row && !given[i].col) /* rows apart by more than an element: not as a row */
            given[i].col = given[i].row;
        if (given[i].col != 0 && given[i].col != 1)
            return false;
    }
    int64_t count = row ? chain->cols : column ? chain->rows : 1;
    float *data = row && column ? NULL : chain_take_memory(reader, count);
    if (!op->loop || instruction->dst == reader->value || !data)
        return false;
    op->loop(&(tile_call){1, count, data, count, given[0], given[1], given[2], instruction->alpha,
            instruction->beta, (gb_data_type)instruction->type, false});
    reader->operands[instruction->dst] = (tile_register){data, column, row};
    reader->known |= 1U << instruction->dst;
    return true;
}

static bool chain_read_step(
        chain_reader *reader, const gb_pointwise_instruction *instruction, op_chain *chain)
{
    if (chain_compute(reader, instruction, chain))
        return true;
    bool binary = ops[instruction->opcode].n_sources == 2;
    bool swapped = binary && instruction->a != reader->value;
    int other = swapped ? instruction->a : instruction->b;
    if (!chain_knows(instruction->opcode, swapped) || chain->n_steps == CHAIN_STEPS ||
            (swapped ? instruction->b : instruction->a) != reader->value ||
            (binary && !(reader->known >> other & 1)))
        return false;
    chain_step *step = &chain->steps[chain->n_steps++];
    step->opcode = swapped ? CHAIN_SWAPPED(instruction->opcode) : instruction->opcode;
    step->other = (tile_register){NULL, 0, 0};
    step->alpha = instruction->alpha;
    step->beta = instruction->beta;
    if (binary)
        step->other = reader->operands[other];
    reader->value = instruction->dst;
    reader->known &= ~(1U << instruction->dst);
    return true;
}

/* Rows that follow each other in all that is read and written are one. */
static void chain_join_rows(op_chain *chain)
{
    bool joined = chain->dst_row == chain->cols;
    for (int i = 0; i < chain->n_steps; i++) {
        const tile_register *other = &chain->steps[i].other;
        joined = joined && other->row == (other->col ? chain->cols : 0);
    }
    if (joined) {
        chain->cols *= chain->rows;
        chain->rows = 1;
    }
}

/* Is the program a chain, on this tile? */
static bool chain_read(const gb_pointwise_program *pointwise, const gb_pointwise_view *views,
        int64_t rows, int64_t cols, float *registers, op_chain *chain)
{
    uint32_t last = pointwise->n_instructions - 1;
    const gb_pointwise_instruction *store = &pointwise->instructions[last];
    if (pointwise->n_instructions < 2 || store->opcode != GB_POINTWISE_STORE)
        return false;
    const gb_pointwise_view *view = &views[store->operand];
    chain->rows = rows;
    chain->cols = cols;
    chain->src = registers;
    chain->dst = view->data;
    chain->dst_row = rows > 1 ? view->row_stride : cols;
    chain->type = pointwise->operands[store->operand].type;
    chain->n_steps = 0;
    if (store->type == GB_S32 || !chain_stores(chain->type) || (cols > 1 && view->col_stride != 1))
        return false;
    chain_reader reader;
    reader.pointwise = pointwise;
    reader.views = views;
    reader.value = 0;
    reader.known = 0;
    reader.memory = registers + GB_TILE_ELEMENTS;
    reader.memory_end = registers + pointwise->n_registers * (size_t)GB_TILE_ELEMENTS;
    for (uint32_t i = 0; i < last; i++) {
        const gb_pointwise_instruction *instruction = &pointwise->instructions[i];
        bool loads = instruction->opcode == GB_POINTWISE_LOAD ||
                     instruction->opcode == GB_POINTWISE_CONSTANT;
        if (loads ? !chain_read_operand(&reader, instruction, chain)
                  : !chain_read_step(&reader, instruction, chain))
            return false;
    }
    if (store->a != reader.value)
        return false;
    chain_join_rows(chain);
    chain->streamed =
            view->streamed && chain->cols * code_types[chain->type].bytes >= GB_STREAM_RUN;
    return true;
}

/* Running --------------------------------------------------------------------------------------- */

/* Lanes of the other operand from column c on, n of them. */
GB_INLINE vf chain_other(const chain_step *step, int64_t r, int64_t c, int64_t n)
{
    const float *row = step->other.data + r * step->other.row;
    return n == VLEN ? lanes(row, step->other.col, c) : lanes_n(row, step->other.col, c, n);
}

/* Of vector v, when the last one has n. */
#define CHAIN_LANES(v) ((v) + 1 < vectors ? VLEN : n)

#define CHAIN_EACH(expression)                                                                     \
    _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) x[v] = expression;                   \
    break;
#define CHAIN_UNARY(enumerator, name)                                                              \
    case GB_POINTWISE_##enumerator:                                                                \
        CHAIN_EACH(loop_##name##_of(x[v], alpha, beta, NULL))
#define CHAIN_BINARY(enumerator, name)                                                             \
    case GB_POINTWISE_##enumerator:                                                                \
        CHAIN_EACH(loop_##name##_of(                                                               \
                x[v], chain_other(step, r, c + v * VLEN, CHAIN_LANES(v)), alpha, beta))
#define CHAIN_BINARY_SWAPPED(enumerator, name)                                                     \
    case CHAIN_SWAPPED(GB_POINTWISE_##enumerator):                                                 \
        CHAIN_EACH(loop_##name##_of(                                                               \
                chain_other(step, r, c + v * VLEN, CHAIN_LANES(v)), x[v], alpha, beta))

GB_INLINE void chain_take(
        const chain_step *step, int64_t r, int64_t c, const int vectors, int64_t n, vf *x)
{
    const vf alpha = vf_set1(step->alpha), beta = vf_set1(step->beta);
    switch (step->opcode) {
        CHAIN_UNARY(ABS, abs)
        CHAIN_UNARY(CLAMP, clamp)
        CHAIN_UNARY(HARDSWISH, hardswish)
        CHAIN_UNARY(LEAKY_RELU, leaky_relu)
        CHAIN_UNARY(RELU, relu)
        CHAIN_UNARY(SQUARE, square)
        CHAIN_BINARY(ADD, add)
        CHAIN_BINARY(SUB, sub)
        CHAIN_BINARY(MUL, mul)
        CHAIN_BINARY(DIV, div)
        CHAIN_BINARY(MAX, max)
        CHAIN_BINARY(MIN, min)
        CHAIN_BINARY_SWAPPED(ADD, add)
        CHAIN_BINARY_SWAPPED(MUL, mul)
    default:
        break;
    }
}

#define CHAIN_STORE(enumerator, name)                                                              \
    case enumerator:                                                                               \
        if (n == VLEN)                                                                             \
            put_##name(dst, x, streamed);                                                          \
        else                                                                                       \
            vf_store_##name##_n(dst, x, n);                                                        \
        break;

GB_INLINE void chain_store(gb_data_type type, char *dst, vf x, int64_t n, bool streamed)
{
    switch (type) {
        CHAIN_STORE(GB_BF16, bf16)
        CHAIN_STORE(GB_F16, f16)
        CHAIN_STORE(GB_S8, s8)
        CHAIN_STORE(GB_U8, u8)
        CHAIN_STORE(GB_F32, f32)
    default:
        break;
    }
}

/* `vectors` vectors of row r from column c on, n lanes of the last one. */
GB_INLINE void chain_pass(const op_chain *t, const gb_data_type type, int64_t r, int64_t c,
        const int vectors, int64_t n, char *dst, const bool streamed)
{
    vf x[CHAIN_VECTORS];
    const float *src = t->src + r * t->cols + c;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        x[v] = CHAIN_LANES(v) == VLEN ? vf_load(src + v * VLEN) : vf_load_n(src + v * VLEN, n);
    for (int i = 0; i < t->n_steps; i++)
        chain_take(&t->steps[i], r, c, vectors, n, x);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        chain_store(type, dst + (c + v * VLEN) * code_types[type].bytes, x[v], CHAIN_LANES(v),
                streamed);
}

GB_INLINE void chain_row(
        const op_chain *t, const gb_data_type type, int64_t r, char *dst, const bool streamed)
{
    const int64_t cols = t->cols;
    int64_t c = 0;
    for (; c + CHAIN_VECTORS * VLEN <= cols; c += CHAIN_VECTORS * VLEN)
        chain_pass(t, type, r, c, CHAIN_VECTORS, VLEN, dst, streamed);
    const int64_t last = (cols - c - 1) % VLEN + 1;
    switch ((cols - c + VLEN - 1) / VLEN) {
    case 1:
        chain_pass(t, type, r, c, 1, last, dst, streamed);
        break;
    case 2:
        chain_pass(t, type, r, c, 2, last, dst, streamed);
        break;
    case 3:
        chain_pass(t, type, r, c, 3, last, dst, streamed);
        break;
    case 4:
        chain_pass(t, type, r, c, 4, last, dst, streamed);
        break;
    default:
        break;
    }
}

static void chain_run(const op_chain *t)
{
    const int64_t bytes = code_types[t->type].bytes;
    for (int64_t r = 0; r < t->rows; r++) {
        char *dst = t->dst + r * t->dst_row * bytes;
        bool streamed = t->streamed && (uintptr_t)dst % (size_t)(VLEN * bytes) == 0;
        if (t->type == GB_F32 && streamed) /* the kind of most stores, known to the compiler */
            chain_row(t, GB_F32, r, dst, true);
        else if (t->type == GB_F32)
            chain_row(t, GB_F32, r, dst, false);
        else
            chain_row(t, t->type, r, dst, streamed);
    }
}

#undef CHAIN_LANES
#undef CHAIN_EACH
#undef CHAIN_UNARY
#undef CHAIN_BINARY
#undef CHAIN_BINARY_SWAPPED
#undef CHAIN_STORE

#endif
