/* Chains: programs that carry one value, register 0 of an anchor or an operand, through the
 * instructions of chain_knows() to a single store. The other operands are tensors whose columns are contiguous,
 * perhaps dequantized, constants, or a row, column or element that is computed of such. The post-ops of most
 * anchors are chains, and most element-wise groups. A chain passes over its tile once, some vectors at a time in
 * registers, where the interpreter passes once for each instruction; the results are the same bits.
 */
#ifndef GB_KERNELS_POINTWISE_POINTWISE_CHAIN_H
#define GB_KERNELS_POINTWISE_POINTWISE_CHAIN_H

#include "kernels/isa/vec_partial.h"
#include "kernels/pointwise/pointwise_expressions.h"
#include "kernels/pointwise/pointwise_load_store.h"

/* Vectors that are in registers at once. CHAIN_VECTORS past the caches, where loads wait behind the stores of more,
 * and with SSE2. */
enum { CHAIN_STEPS = 12, CHAIN_VECTORS = 4, CHAIN_MOST = VLEN >= 8 ? 8 : CHAIN_VECTORS };

enum { ROWS_AHEAD = 12 /* of a tile; one or two tiles */ };

/* Rows of at most so many elements are joined, if there are so many of the joined ones. */
enum { SHORT_ROW = 2 * CHAIN_MOST * VLEN, FEWEST_JOINED = 4 };
/* Rows of fewer elements are joined beside columns, too: beyond, spreading takes longer than a start for each row. */
enum { SPREAD_ROW = 3 * CHAIN_MOST * VLEN / 4 };

/* The opcode of an instruction whose source `place` (0: a, 1: b, 2: c) is the value. */
#define CHAIN_AT(place, opcode) ((place)*GB_POINTWISE_OPCODES + (opcode))

/* A tile as it lies in memory: strides in elements of the type. Where it is `moved`, it stands for
 * (element - zero) * scale, each rounded. */
typedef struct chain_operand {
    tile_register at;
    gb_data_type type; /* chain_stores() it; other than f32 only where columns are contiguous */
    bool moved;
    float zero, scale;
} chain_operand;

typedef struct chain_step {
    int opcode; /* CHAIN_AT() */
    int n_others;
    chain_operand others[2]; /* the sources beside the value, in order; of a unary instruction the
                                first is any element */
    float alpha, beta;
} chain_step;

/* Loops of chains know these types of the value and of the others; GB_UNDEF: any. */
typedef struct chain_types {
    gb_data_type value;  /* of src and dst */
    gb_data_type others; /* that are not f32; none is moved */
} chain_types;

typedef struct op_chain {
    int64_t rows, cols, last_cols; /* fewer in the last row where rows are joined */
    chain_operand src;
    char *dst;
    int64_t dst_row;
    gb_data_type type; /* of dst */
    chain_types types;
    bool streamed; /* where runs are long enough */
    bool far;      /* some operand is, and there is no anchor: it is fetched ahead */
    int n_steps;
    chain_step steps[CHAIN_STEPS];
} op_chain;

/* Reading --------------------------------------------------------------------------------------- */

/* Unary instructions of so many operations that they take a loop of their own. Register tiles call it
 * over their sums, with 512 bits enough to be worth its start. Chains that run by themselves have no such
 * step: calls made those of the other steps up to 18 % slower. */
static bool chain_loops(int opcode)
{
    if (VLEN < 16)
        return false;
    switch (opcode) {
    case GB_POINTWISE_ELU:
    case GB_POINTWISE_EXP:
    case GB_POINTWISE_GELU_ERF:
    case GB_POINTWISE_GELU_TANH:
    case GB_POINTWISE_HARDSIGMOID:
    case GB_POINTWISE_LOG:
    case GB_POINTWISE_MISH:
    case GB_POINTWISE_POW:
    case GB_POINTWISE_RECIPROCAL:
    case GB_POINTWISE_SIGMOID:
    case GB_POINTWISE_SOFTPLUS:
    case GB_POINTWISE_SQRT:
    case GB_POINTWISE_TANH:
        return true;
    default:
        return false;
    }
}

static bool chain_knows(uint8_t opcode, int place, bool in_register_tile)
{
    switch (opcode) {
    case GB_POINTWISE_ADD:
    case GB_POINTWISE_MUL:
    case GB_POINTWISE_SELECT:
        return true;
    case GB_POINTWISE_SUB:
    case GB_POINTWISE_DIV:
    case GB_POINTWISE_MAX:
    case GB_POINTWISE_MIN:
    case GB_POINTWISE_ABS:
    case GB_POINTWISE_CLAMP:
    case GB_POINTWISE_DIV_KNOWN:
    case GB_POINTWISE_GREATER_EQUAL:
    case GB_POINTWISE_HARDSWISH:
    case GB_POINTWISE_LEAKY_RELU:
    case GB_POINTWISE_PRELU:
    case GB_POINTWISE_RELU:
    case GB_POINTWISE_RELU_BACKWARD:
    case GB_POINTWISE_ROUND_EVEN:
    case GB_POINTWISE_SQUARE:
    case GB_POINTWISE_SWISH:
        return place == 0;
    default:
        return in_register_tile && chain_loops(opcode);
    }
}

static bool chain_stores(gb_data_type type)
{
    return type == GB_F32 || type == GB_BF16 || type == GB_F16 || type == GB_S8 || type == GB_U8 ||
           type == GB_BOOLEAN;
}

/* Field by field: a whole operand that is copied right after it was written waits for its parts. */
static void set_f32_operand(chain_operand *operand, float *data, int64_t row, int64_t col)
{
    operand->at.data = data;
    operand->at.row = row;
    operand->at.col = col;
    operand->at.far = false;
    operand->type = GB_F32;
    operand->moved = false;
    operand->zero = 0;
    operand->scale = 1.0F;
}

enum { NO_VALUE = -1 };

/* What is left for rows, columns and elements that are computed. */
typedef struct chain_memory {
    float *next, *end;
} chain_memory;

typedef struct chain_reader {
    const gb_pointwise_program *pointwise;
    const gb_pointwise_view *views;
    bool in_register_tile;
    int value;      /* register of the value that the chain carries; NO_VALUE: none is chosen */
    uint32_t known; /* registers that hold operands */
    chain_operand operands[GB_POINTWISE_REGISTERS];
    chain_memory *memory;
} chain_reader;

/* Room for a row or column of `count`, or NULL. */
static float *chain_take_memory(chain_memory *memory, int64_t count)
{
    float *taken = memory->next;
    int64_t size = (int64_t)gb_align_up((size_t)count, VLEN);
    if (memory->end - taken < size)
        return NULL;
    memory->next += size;
    return taken;
}

/* Makes a row, column or element of another type one of f32. */
static bool chain_convert(chain_reader *reader, chain_operand *operand, const op_chain *chain)
{
    tile_register *at = &operand->at;
    int64_t rows = at->row ? chain->rows : 1, cols = at->col ? chain->cols : 1;
    if (operand->type == GB_F32)
        return true;
    if ((rows > 1 && (cols > 1 || at->row != 1)) || !code_types[operand->type].load)
        return false;
    float *data = chain_take_memory(reader->memory, rows * cols);
    if (!data)
        return false;
    code_types[operand->type].load(
            &(code_rows){1, rows * cols, (char *)(void *)at->data, 0, data, 0, false});
    at->data = data;
    operand->type = GB_F32;
    return true;
}

static bool chain_loads(const gb_pointwise_instruction *instruction)
{
    return instruction->opcode == GB_POINTWISE_LOAD || instruction->opcode == GB_POINTWISE_CONSTANT;
}

/* Register 0 holds the sums of an anchor. */
static bool chain_has_anchor(const gb_pointwise_program *pointwise)
{
    const gb_pointwise_instruction *first = pointwise->instructions;
    return !chain_loads(first) || first->dst != 0;
}

static bool chain_read_operand(
        chain_reader *reader, const gb_pointwise_instruction *instruction, op_chain *chain)
{
    chain_operand *operand = &reader->operands[instruction->dst];
    if (instruction->dst == reader->value)
        return false;
    reader->known |= 1U << instruction->dst;
    if (instruction->opcode == GB_POINTWISE_CONSTANT) {
        float *data = chain_take_memory(reader->memory, 1);
        set_f32_operand(operand, data, 0, 0);
        if (data)
            *data = instruction->alpha;
        return data;
    }
    const gb_pointwise_view *view = &reader->views[instruction->operand];
    int64_t row = chain->rows > 1 ? view->row_stride : 0;
    int64_t col = chain->cols > 1 ? view->col_stride : 0;
    set_f32_operand(operand, (float *)(void *)view->data, row, col);
    operand->type = reader->pointwise->operands[instruction->operand].type;
    operand->at.far = view->far && col;
    chain->far = chain->far || (operand->at.far && !chain_has_anchor(reader->pointwise));
    if (instruction->type == GB_S32 || operand->type == GB_S4 || operand->type == GB_U4 ||
            (col != 0 && col != 1))
        return false;
    bool is_read_once = col == 1 && (row != 0 || chain->rows == 1);
    return (is_read_once && chain_stores(operand->type)) || chain_convert(reader, operand, chain);
}

/* An instruction on rows, columns and elements alone: its result is one, too. A column is computed
 * as a row. */
static bool chain_compute(
        chain_reader *reader, const gb_pointwise_instruction *instruction, const op_chain *chain)
{
    const tile_op *op = &TILE_OPS[instruction->opcode];
    const uint8_t sources[] = {instruction->a, instruction->b, instruction->c};
    tile_register given[3] = {{0}};
    bool row = false, column = false;
    for (int i = 0; i < op->n_sources; i++) {
        chain_operand *operand = &reader->operands[sources[i]];
        if (!(reader->known >> sources[i] & 1) || operand->moved)
            return false;
        row = row || operand->at.col;
        column = column || operand->at.row;
        if ((row && (column || (reader->value == NO_VALUE && chain->rows == 1))) ||
                !chain_convert(reader, operand, chain))
            return false; /* as large as the tile */
        given[i] = operand->at;
        /* rows apart by more than an element: not as a row */
        if (given[i].row != 0 && given[i].row != 1)
            return false;
        if (given[i].row)
            given[i].col = 1;
    }
    int64_t count = row ? chain->cols : column ? chain->rows : 1;
    if (!op->loop || instruction->dst == reader->value)
        return false;
    float *data = chain_take_memory(reader->memory, count);
    if (!data)
        return false;
    op->loop(&(tile_call){1, count, data, count, given[0], given[1], given[2], instruction->alpha,
            instruction->beta, (gb_data_type)instruction->type, false});
    set_f32_operand(&reader->operands[instruction->dst], data, column, row);
    reader->known |= 1U << instruction->dst;
    return true;
}

/* An operand as large as the tile less an element, or times one, is read so. */
static bool chain_move(chain_reader *reader, const gb_pointwise_instruction *instruction)
{
    const chain_operand *tile = &reader->operands[instruction->a];
    const chain_operand *by = &reader->operands[instruction->b];
    bool subtracts = instruction->opcode == GB_POINTWISE_SUB;
    if ((!subtracts && instruction->opcode != GB_POINTWISE_MUL) || reader->value == NO_VALUE ||
            instruction->dst == reader->value || !(reader->known >> instruction->a & 1) ||
            !(reader->known >> instruction->b & 1))
        return false;
    if (!subtracts && tile->at.col == 0) {
        const chain_operand *other = tile;
        tile = by;
        by = other;
    }
    if (tile->at.col == 0 || tile->scale != 1.0F || (subtracts && tile->moved) ||
            by->type != GB_F32 || by->at.row || by->at.col)
        return false;
    chain_operand moved = *tile;
    *(subtracts ? &moved.zero : &moved.scale) = *by->at.data;
    moved.moved = true;
    reader->operands[instruction->dst] = moved;
    reader->known |= 1U << instruction->dst;
    return true;
}

/* Without an anchor the first operand as large as the tile is the value. */
static void chain_choose_value(chain_reader *reader, int reg, op_chain *chain)
{
    const tile_register *at = &reader->operands[reg].at;
    if (reader->value != NO_VALUE || !(reader->known >> reg & 1) || at->col != 1 ||
            (chain->rows > 1 && at->row == 0))
        return;
    reader->value = reg;
    chain->src = reader->operands[reg];
}

static bool chain_read_step(
        chain_reader *reader, const gb_pointwise_instruction *instruction, op_chain *chain)
{
    if (chain_compute(reader, instruction, chain))
        return true;
    const uint8_t sources[] = {instruction->a, instruction->b, instruction->c};
    const int n = TILE_OPS[instruction->opcode].n_sources;
    int place = 0;
    for (int i = 0; i < n; i++)
        chain_choose_value(reader, sources[i], chain);
    while (place < n && sources[place] != reader->value)
        place++;
    if (place == n)
        return n == 2 && chain_move(reader, instruction);
    if (!chain_knows(instruction->opcode, place, reader->in_register_tile) ||
            chain->n_steps == CHAIN_STEPS)
        return false;
    chain_step *step = &chain->steps[chain->n_steps++];
    step->opcode = CHAIN_AT(place, instruction->opcode);
    step->alpha = instruction->alpha;
    step->beta = instruction->beta;
    step->n_others = 0;
    for (int i = 0; i < n; i++) {
        if (i == place)
            continue;
        const chain_operand *other = &reader->operands[sources[i]];
        if (!(reader->known >> sources[i] & 1))
            return false;
        step->others[step->n_others++] = *other;
    }
    if (n == 1)
        set_f32_operand(&step->others[0], &step->alpha, 0, 0);
    reader->value = instruction->dst;
    reader->known &= ~(1U << instruction->dst);
    return true;
}

/* Rows that follow each other in all that is read and written are one. */
static void chain_join_rows(op_chain *chain)
{
    bool joined = chain->dst_row == chain->cols && chain->src.at.row == chain->cols;
    for (int i = 0; i < chain->n_steps; i++)
        for (int k = 0; k < chain->steps[i].n_others; k++) {
            const tile_register *other = &chain->steps[i].others[k].at;
            joined = joined && other->row == (other->col ? chain->cols : 0);
        }
    if (joined) {
        chain->cols *= chain->rows;
        chain->rows = 1;
    }
    chain->last_cols = chain->cols;
}

/* The same for all rows, and not for all columns? */
static bool chain_is_row(const chain_operand *operand)
{
    return operand->at.row == 0 && operand->at.col;
}

/* How many operands are rows, when rows follow each other in all others that are not one element; or -1. */
static int chain_count_rows(const op_chain *chain)
{
    int n = 0;
    if (chain->dst_row != chain->cols || chain->src.at.row != chain->cols)
        return -1;
    for (int i = 0; i < chain->n_steps; i++)
        for (int k = 0; k < chain->steps[i].n_others; k++) {
            const chain_operand *other = &chain->steps[i].others[k];
            n += chain_is_row(other);
            if (!chain_is_row(other) && other->at.row != (other->at.col ? chain->cols : 0))
                return -1;
        }
    return n;
}

static void chain_repeat_operand(chain_operand *operand, int64_t cols, int64_t times, float *into)
{
    for (int64_t i = 0; i < times; i++)
        memcpy(into + i * cols, operand->at.data, (size_t)cols * sizeof *into);
    operand->at = (tile_register){into, 0, 1, false};
}

/* Short rows are joined, several to one, where operands that are the same for all are repeated for that: a pass
 * over a row is worth its start. */
static void chain_join_short_rows(op_chain *chain, chain_memory *memory)
{
    const int64_t cols = chain->cols, rows = chain->rows;
    int64_t times = gb_min_i64(GB_TILE_ELEMENTS / cols, rows / FEWEST_JOINED);
    int n = cols <= SHORT_ROW && times > 1 ? chain_count_rows(chain) : -1;
    if (n < 0 || memory->end - memory->next < n * (int64_t)GB_TILE_ELEMENTS)
        return;
    for (int i = 0; i < chain->n_steps; i++)
        for (int k = 0; k < chain->steps[i].n_others; k++) {
            chain_operand *other = &chain->steps[i].others[k];
            if (chain_is_row(other))
                chain_repeat_operand(
                        other, cols, times, chain_take_memory(memory, GB_TILE_ELEMENTS));
            else if (other->at.col)
                other->at.row *= times;
        }
    chain->src.at.row *= times;
    chain->dst_row *= times;
    chain->cols *= times;
    chain->rows = (rows + times - 1) / times;
    chain->last_cols = cols * (rows - (chain->rows - 1) * times);
}

/* The interpreter has a loop for one instruction on f32, and for its conversion to another type,
 * which looks nothing up for each vector. Each operand is loaded or stored; constants count, too. But a chain
 * joins rows beside one that is the same for all: worth it where they are short, or end in a part of a vector. */
static bool chain_pays(
        const gb_pointwise_program *pointwise, const gb_pointwise_view *views, int64_t cols)
{
    const bool short_rows = cols > 1 && cols <= SHORT_ROW && (cols <= VLEN || cols % VLEN != 0);
    bool pays = pointwise->n_instructions > pointwise->n_operands + 1;
    for (uint32_t i = 0; !pays && i < pointwise->n_operands; i++)
        pays = (pointwise->operands[i].type != GB_F32 &&
                       (pointwise->n_instructions > 2 || !pointwise->operands[i].written)) ||
               (short_rows && views[i].row_stride == 0 && views[i].col_stride == 1);
    return pays;
}

/* The type of all others that are not f32, or GB_UNDEF. */
static gb_data_type chain_type_of_others(const op_chain *chain)
{
    gb_data_type type = GB_F32;
    for (int i = 0; i < chain->n_steps; i++)
        for (int k = 0; k < chain->steps[i].n_others; k++) {
            const chain_operand *other = &chain->steps[i].others[k];
            if (other->moved || (type != GB_F32 && other->type != GB_F32 && other->type != type))
                return GB_UNDEF;
            type = other->type == GB_F32 ? type : other->type;
        }
    return type;
}

/* Some types have loops of their own: chains of f32; of bf16 where processors convert it, which is so fast that
 * looking at the type of each operand takes as long; and those with others of f32. */
static chain_types chain_known_types(const op_chain *chain)
{
    gb_data_type value = chain->type, others = chain_type_of_others(chain);
    if (chain->src.type == value && value == GB_F32 && others == GB_F32)
        return (chain_types){GB_F32, GB_F32};
    if (chain->src.type == value && value == GB_BF16 && (others == GB_F32 || others == GB_BF16))
        return (chain_types){GB_BF16, GB_BF16};
    return (chain_types){GB_UNDEF, others == GB_F32 ? GB_F32 : GB_UNDEF};
}

/* Is the program a chain, on this tile? */
static bool chain_read(const gb_pointwise_program *pointwise, const gb_pointwise_view *views,
        int64_t rows, int64_t cols, float *registers, bool in_register_tile, chain_memory *memory,
        op_chain *chain)
{
    uint32_t last = pointwise->n_instructions - 1;
    const gb_pointwise_instruction *first = pointwise->instructions, *store = first + last;
    if (pointwise->n_instructions < (in_register_tile ? 1 : 2) ||
            store->opcode != GB_POINTWISE_STORE)
        return false; /* what is only stored needs no chain elsewhere */
    bool has_anchor = chain_has_anchor(pointwise);
    if (!has_anchor && !chain_pays(pointwise, views, cols))
        return false;
    const gb_pointwise_view *view = &views[store->operand];
    chain->rows = rows;
    chain->cols = cols;
    set_f32_operand(&chain->src, registers, cols, 1);
    chain->dst = view->data;
    chain->dst_row = rows > 1 ? view->row_stride : cols;
    chain->type = pointwise->operands[store->operand].type;
    chain->far = false;
    chain->n_steps = 0;
    if (store->type == GB_S32 || !chain_stores(chain->type) || (cols > 1 && view->col_stride != 1))
        return false;
    chain_reader reader;
    reader.pointwise = pointwise;
    reader.in_register_tile = in_register_tile;
    reader.views = views;
    reader.value = has_anchor ? 0 : NO_VALUE;
    reader.known = 0;
    reader.memory = memory;
    for (uint32_t i = 0; i < last; i++) {
        const gb_pointwise_instruction *instruction = &pointwise->instructions[i];
        if (chain_loads(instruction) ? !chain_read_operand(&reader, instruction, chain)
                                     : !chain_read_step(&reader, instruction, chain))
            return false;
    }
    chain_choose_value(&reader, store->a, chain);
    if (store->a != reader.value)
        return false;
    chain->types = chain_known_types(chain);
    chain->streamed = view->streamed;
    return true;
}

/* Running --------------------------------------------------------------------------------------- */

/* Of vector v, when the last one has n. */
#define CHAIN_LANES(v) ((v) + 1 < vectors ? VLEN : n)

#define CHAIN_LOAD(enumerator, name)                                                               \
    case enumerator:                                                                               \
        _Pragma("GCC unroll 8") for (int v = 0; v < vectors; v++)                                  \
        {                                                                                          \
            const char *p = data + v * VLEN * code_types[enumerator].bytes;                        \
            x[v] = CHAIN_LANES(v) == VLEN ? vf_load_##name(p) : vf_load_##name##_n(p, n);          \
        }                                                                                          \
        break;

/* Of row r, column c. The compiler is not to see how it is made: it would make one for each vector, ahead of
 * the switch over instructions, and run out of registers (bf16: up to a tenth slower). */
GB_INLINE const char *chain_address(
        const chain_operand *from, const gb_data_type type, int64_t r, int64_t c)
{
    const char *address = (const char *)from->at.data +
                          (r * from->at.row + c * from->at.col) * code_types[type].bytes;
    __asm__("" : "+r"(address));
    return address;
}

/* `vectors` vectors of row r from column c on, n lanes of the last one. */
GB_INLINE void chain_load(const chain_operand *from, const gb_data_type type, int64_t r, int64_t c,
        const int vectors, int64_t n, vf *x)
{
    if (from->at.col == 0) {
        vf all = vf_set1(from->at.data[r * from->at.row]);
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            x[v] = all;
        return;
    }
    const char *data = chain_address(from, type, r, c);
    switch (type) {
        CHAIN_LOAD(GB_BF16, bf16)
        CHAIN_LOAD(GB_F16, f16)
        CHAIN_LOAD(GB_S8, s8)
        CHAIN_LOAD(GB_U8, u8)
        CHAIN_LOAD(GB_BOOLEAN, boolean)
    default:
        CHAIN_LOAD(GB_F32, f32)
    }
}

GB_INLINE void chain_move_lanes(const chain_operand *operand, const int vectors, vf *x)
{
    const vf zero = vf_set1(operand->zero), scale = vf_set1(operand->scale);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
        x[v] = vf_mul(vf_sub(x[v], zero), scale);
}

/* An operand that is of type `others` or f32; GB_UNDEF: of any, perhaps moved. */
GB_INLINE void chain_load_other(const chain_operand *from, const gb_data_type others, int64_t r,
        int64_t c, const int vectors, int64_t n, vf *x)
{
    if (others != GB_UNDEF && from->type == others) {
        chain_load(from, others, r, c, vectors, n, x);
    } else if (others != GB_UNDEF) {
        chain_load(from, GB_F32, r, c, vectors, n, x);
    } else {
        chain_load(from, from->type, r, c, vectors, n, x);
        if (from->moved)
            chain_move_lanes(from, vectors, x);
    }
}

/* Where the value is not the condition, it is what is chosen where the condition holds, or where it
 * does not. */
GB_INLINE void chain_select(const chain_step *step, const int place, const gb_data_type others,
        int64_t r, int64_t c, const int vectors, int64_t n, vf *y, vf *x)
{
    vf z[CHAIN_MOST];
    if (others == GB_F32)
        chain_load(&step->others[0], GB_F32, r, c, vectors, n, y);
    chain_load_other(&step->others[1], others, r, c, vectors, n, z);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
        x[v] = place == 0   ? vf_select(vf_ne(x[v], vf_zero()), y[v], z[v])
               : place == 1 ? vf_select(vf_ne(y[v], vf_zero()), x[v], z[v])
                            : vf_select(vf_ne(y[v], vf_zero()), z[v], x[v]);
}

/* f32 lanes are loaded where they are used, others ahead, so that their type is looked at once. */
#define CHAIN_OTHER(v)                                                                             \
    (others != GB_F32                ? y[v]                                                        \
            : CHAIN_LANES(v) == VLEN ? lanes(f32, col, v * VLEN)                                   \
                                     : lanes_n(f32, col, v * VLEN, n))
#define CHAIN_EACH(expression)                                                                     \
    _Pragma("GCC unroll 8") for (int v = 0; v < vectors; v++) x[v] = expression;                   \
    break;
#define CHAIN_UNARY(enumerator, name)                                                              \
    case GB_POINTWISE_##enumerator:                                                                \
        CHAIN_EACH(loop_##name##_of(x[v], alpha, beta, NULL))
#define CHAIN_BINARY(enumerator, name)                                                             \
    case GB_POINTWISE_##enumerator:                                                                \
        CHAIN_EACH(loop_##name##_of(x[v], CHAIN_OTHER(v), alpha, beta))
#define CHAIN_BINARY_SWAPPED(enumerator, name)                                                     \
    case CHAIN_AT(1, GB_POINTWISE_##enumerator):                                                   \
        CHAIN_EACH(loop_##name##_of(CHAIN_OTHER(v), x[v], alpha, beta))

#define CHAIN_SELECT(place)                                                                        \
    case CHAIN_AT(place, GB_POINTWISE_SELECT):                                                     \
        chain_select(step, place, others, r, c, vectors, n, y, x);                                 \
        break;

/* An instruction of chain_loops(), or Swish, on the sums of a register tile that lie in memory. */
static void chain_loop(int opcode, float alpha, float beta, float *values, int64_t n)
{
    const tile_register all = {values, 0, 1, false};
    TILE_OPS[opcode].loop(&(tile_call){
            .rows = 1, .cols = n, .dst = values, .a = all, .alpha = alpha, .beta = beta});
}

GB_INLINE void chain_take(const chain_step *step, const gb_data_type others, int64_t r, int64_t c,
        const int vectors, int64_t n, vf *x)
{
    const vf alpha = vf_set1(step->alpha), beta = vf_set1(step->beta);
    vf y[CHAIN_MOST];
    const int64_t col = step->others[0].at.col;
    const float *f32 = NULL;
    if (others == GB_F32)
        f32 = (const float *)(const void *)chain_address(&step->others[0], GB_F32, r, c);
    else
        chain_load_other(&step->others[0], others, r, c, vectors, n, y);
    switch (step->opcode) {
        CHAIN_UNARY(ABS, abs)
        CHAIN_UNARY(CLAMP, clamp)
        CHAIN_UNARY(DIV_KNOWN, div_known)
        CHAIN_UNARY(HARDSWISH, hardswish)
        CHAIN_UNARY(LEAKY_RELU, leaky_relu)
        CHAIN_UNARY(RELU, relu)
        CHAIN_UNARY(ROUND_EVEN, round_even)
        CHAIN_UNARY(SQUARE, square)
        CHAIN_UNARY(SWISH, swish)
        CHAIN_BINARY(ADD, add)
        CHAIN_BINARY(SUB, sub)
        CHAIN_BINARY(MUL, mul)
        CHAIN_BINARY(DIV, div)
        CHAIN_BINARY(MAX, max)
        CHAIN_BINARY(MIN, min)
        CHAIN_BINARY(PRELU, prelu)
        CHAIN_BINARY(RELU_BACKWARD, relu_backward)
        CHAIN_BINARY(GREATER_EQUAL, greater_equal)
        CHAIN_BINARY_SWAPPED(ADD, add)
        CHAIN_BINARY_SWAPPED(MUL, mul)
        CHAIN_SELECT(0)
        CHAIN_SELECT(1)
        CHAIN_SELECT(2)
    default:
        break;
    }
}

#if defined(GB_VEC_HAS_BF16)
/* Where the processor does not convert: one copy for all chains. */
static __attribute__((noinline)) void chain_encode_bf16(const vf *x, int vectors, uint16_t *codes)
{
    for (int v = 0; v < vectors; v++)
        gb_store_u16(codes + v * VLEN, gb_bf16_encode(x[v]));
}

GB_INLINE void chain_store_bf16(
        char *dst, const vf *x, const int vectors, int64_t n, const bool streamed)
{
    if (gb_cpu_converts_bf16) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            char *p = dst + v * VLEN * (int64_t)sizeof(uint16_t);
            if (CHAIN_LANES(v) < VLEN)
                gb_store_bf16_n(p, x[v], n);
            else if (streamed)
                gb_stream_bf16(p, x[v]);
            else
                gb_store_bf16(p, x[v]);
        }
        return;
    }
    vf lanes[CHAIN_MOST]; /* a copy, so that x may stay in registers elsewhere */
    uint16_t codes[CHAIN_MOST * VLEN];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
        lanes[v] = x[v];
    chain_encode_bf16(lanes, vectors, codes);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
        char *p = dst + v * VLEN * (int64_t)sizeof *codes;
        vi code = gb_load_u16(codes + v * VLEN);
        if (CHAIN_LANES(v) < VLEN)
            gb_store_u16_n(p, code, n);
        else if (streamed)
            gb_stream_u16(p, code);
        else
            gb_store_u16(p, code);
    }
}
#endif

#define CHAIN_STORE(enumerator, name)                                                              \
    case enumerator:                                                                               \
        _Pragma("GCC unroll 8") for (int v = 0; v < vectors; v++)                                  \
        {                                                                                          \
            char *p = dst + v * VLEN * code_types[enumerator].bytes;                               \
            if (CHAIN_LANES(v) == VLEN)                                                            \
                put_##name(p, x[v], streamed);                                                     \
            else                                                                                   \
                vf_store_##name##_n(p, x[v], n);                                                   \
        }                                                                                          \
        break;

#if defined(GB_VEC_HAS_FOURS)
/* False: they are none of 8 bits. */
GB_INLINE bool chain_store_fours(
        const gb_data_type type, char *dst, const vf *x, const int vectors, const bool streamed)
{
    if (type == GB_S8) {
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v += 4)
            vf_store_four_s8(dst + v * VLEN, x + v, streamed);
    } else if (type == GB_U8) {
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v += 4)
            vf_store_four_u8(dst + v * VLEN, x + v, streamed);
    }
    return type == GB_S8 || type == GB_U8;
}
#endif

GB_INLINE void chain_store(const gb_data_type type, char *dst, const vf *x, const int vectors,
        int64_t n, const bool streamed)
{
#if defined(GB_VEC_HAS_FOURS)
    if (vectors % 4 == 0 && n == VLEN && chain_store_fours(type, dst, x, vectors, streamed))
        return;
#endif
    switch (type) {
#if defined(GB_VEC_HAS_BF16)
    case GB_BF16:
        chain_store_bf16(dst, x, vectors, n, streamed);
        break;
#else
        CHAIN_STORE(GB_BF16, bf16)
#endif
        CHAIN_STORE(GB_F16, f16)
        CHAIN_STORE(GB_S8, s8)
        CHAIN_STORE(GB_U8, u8)
        CHAIN_STORE(GB_BOOLEAN, boolean)
        CHAIN_STORE(GB_F32, f32)
    default:
        break;
    }
}

/* What will be read FETCH_AHEAD bytes further on, of an operand that comes from memory. */
GB_INLINE void chain_fetch(const chain_operand *from, int64_t r, int64_t c, const int vectors)
{
    if (!from->at.far)
        return;
    const int64_t bytes = code_types[from->type].bytes;
    const char *address = (const char *)from->at.data + (r * from->at.row + c) * bytes;
    for (int64_t at = 0; at < vectors * VLEN * bytes; at += GB_CACHE_LINE)
        gb_prefetch(address + FETCH_AHEAD + at);
}

GB_INLINE void chain_fetch_all(const op_chain *t, int64_t r, int64_t c, int vectors)
{
    chain_fetch(&t->src, r, c, vectors);
    for (int i = 0; i < t->n_steps; i++)
        for (int k = 0; k < t->steps[i].n_others; k++)
            chain_fetch(&t->steps[i].others[k], r, c, vectors);
}

/* `vectors` vectors of row r from column c on, n lanes of the last one. */
GB_INLINE void chain_pass(const op_chain *t, const chain_types types, int64_t r, int64_t c,
        const int vectors, int64_t n, char *dst, const bool streamed)
{
    const gb_data_type type = types.value == GB_UNDEF ? t->type : types.value;
    vf x[CHAIN_MOST];
    if (t->far)
        chain_fetch_all(t, r, c, vectors);
    chain_load(&t->src, types.value == GB_UNDEF ? t->src.type : type, r, c, vectors, n, x);
    for (int i = 0; i < t->n_steps; i++)
        chain_take(&t->steps[i], types.others, r, c, vectors, n, x);
    chain_store(type, dst + c * code_types[type].bytes, x, vectors, n, streamed);
}

/* Columns c .. end - 1 of row r. */
GB_INLINE void chain_span(const op_chain *t, const chain_types types, int64_t r, int64_t c,
        int64_t end, char *dst, const bool streamed)
{
    if (CHAIN_MOST > CHAIN_VECTORS && !streamed)
        for (; c + CHAIN_MOST * VLEN <= end; c += CHAIN_MOST * VLEN)
            chain_pass(t, types, r, c, CHAIN_MOST, VLEN, dst, streamed);
    for (; c + CHAIN_VECTORS * VLEN <= end; c += CHAIN_VECTORS * VLEN)
        chain_pass(t, types, r, c, CHAIN_VECTORS, VLEN, dst, streamed);
    const int64_t last = (end - c - 1) % VLEN + 1;
#define LAST_PASS(n) chain_pass(t, types, r, c, n, last, dst, streamed)
    GB_CONSTANT_TO_4((end - c + VLEN - 1) / VLEN, LAST_PASS)
#undef LAST_PASS
}

/* The types of most chains are known to the compiler. Functions of their own: registers are given out for each. */
#define CHAIN_PART(name, value, others)                                                            \
    static __attribute__((noinline)) void chain_part_##name(                                       \
            const op_chain *t, int64_t r, int64_t c, int64_t end, char *dst, bool streamed)        \
    {                                                                                              \
        chain_span(t, (chain_types){value, others}, r, c, end, dst, streamed);                     \
    }
CHAIN_PART(f32, GB_F32, GB_F32)
#if defined(GB_VEC_HAS_BF16)
CHAIN_PART(bf16, GB_BF16, GB_BF16)
#endif
CHAIN_PART(with_f32, GB_UNDEF, GB_F32)
CHAIN_PART(any, GB_UNDEF, GB_UNDEF)

static void chain_part(
        const op_chain *t, int64_t r, int64_t c, int64_t end, char *dst, bool streamed)
{
    if (t->types.value == GB_F32)
        chain_part_f32(t, r, c, end, dst, streamed);
#if defined(GB_VEC_HAS_BF16)
    else if (t->types.value == GB_BF16)
        chain_part_bf16(t, r, c, end, dst, streamed);
#endif
    else if (t->types.others == GB_F32)
        chain_part_with_f32(t, r, c, end, dst, streamed);
    else
        chain_part_any(t, r, c, end, dst, streamed);
}

/* Short rows beside columns: how many at a time are joined, the columns spread to tiles; 0 where there are none, or
 * other operands lie otherwise (there is seldom memory to repeat rows as well). */
static int64_t chain_rows_to_spread(const op_chain *t, const chain_memory *memory)
{
    int64_t columns = 0;
    bool others_join = true;
    if (t->rows == 1 || t->cols >= SPREAD_ROW || t->dst_row != t->cols || t->src.at.row != t->cols)
        return 0;
    for (int i = 0; i < t->n_steps; i++)
        for (int k = 0; k < t->steps[i].n_others; k++) {
            const tile_register *other = &t->steps[i].others[k].at;
            bool is_column = other->row && !other->col;
            columns += is_column;
            others_join = others_join && (is_column || other->row == (other->col ? t->cols : 0));
        }
    if (!others_join || columns == 0 || memory->end - memory->next < columns * GB_TILE_ELEMENTS)
        return 0;
    return (GB_TILE_ELEMENTS - VLEN) / t->cols; /* vectors reach into the next row */
}

static void chain_spread_column(chain_operand *operand, int64_t rows, int64_t cols, float *into)
{
    for (int64_t r = 0; r < rows; r++) {
        vf all = vf_set1(operand->at.data[r * operand->at.row]);
        for (int64_t c = 0; c < cols; c += VLEN)
            vf_store(into + r * cols + c, all);
    }
    operand->at = (tile_register){into, cols, 1, false};
}

static void chain_skip_rows(chain_operand *operand, int64_t rows)
{
    char *data = (char *)(void *)operand->at.data;
    operand->at.data =
            (float *)(void *)(data + rows * operand->at.row * code_types[operand->type].bytes);
}

/* Rows first .. first + rows - 1, with columns spread. */
static op_chain chain_spread_rows(
        const op_chain *t, int64_t first, int64_t rows, chain_memory *memory)
{
    op_chain part = *t;
    part.rows = rows;
    part.dst += first * t->dst_row * code_types[t->type].bytes;
    chain_skip_rows(&part.src, first);
    for (int i = 0; i < part.n_steps; i++)
        for (int k = 0; k < part.steps[i].n_others; k++) {
            chain_operand *other = &part.steps[i].others[k];
            chain_skip_rows(other, first);
            if (other->at.row && !other->at.col)
                chain_spread_column(
                        other, rows, t->cols, chain_take_memory(memory, GB_TILE_ELEMENTS));
        }
    return part;
}

/* Whole lines go past the caches; what lies before the first and behind the last one does not. */
static void chain_run_rows(op_chain *t, chain_memory *memory)
{
    const int64_t bytes = code_types[t->type].bytes, line = GB_CACHE_LINE / bytes;
    chain_join_rows(t);
    chain_join_short_rows(t, memory);
    bool streamed = t->streamed && t->cols * bytes >= GB_STREAM_RUN;
    for (int64_t r = 0; r < t->rows; r++) {
        char *dst = t->dst + r * t->dst_row * bytes;
        const int64_t cols = r + 1 < t->rows ? t->cols : t->last_cols;
        int64_t first = 0, end = 0;
        if (streamed && (uintptr_t)dst % (size_t)bytes == 0) {
            first = gb_min_i64((int64_t)(-(uintptr_t)dst % GB_CACHE_LINE) / bytes, cols);
            end = first + (cols - first) / line * line;
            chain_part(t, r, 0, first, dst, false);
            chain_part(t, r, first, end, dst, true);
        }
        chain_part(t, r, end, cols, dst, false);
    }
}

static void chain_run(op_chain *t, chain_memory *memory)
{
    const int64_t portion = chain_rows_to_spread(t, memory);
    if (portion == 0)
        chain_run_rows(t, memory);
    for (int64_t r = 0; portion && r < t->rows; r += portion) {
        chain_memory rest = *memory;
        op_chain part = chain_spread_rows(t, r, gb_min_i64(portion, t->rows - r), &rest);
        chain_run_rows(&part, &rest);
    }
}

/* In register tiles -------------------------------------------------------------------------------- */

static bool tile_knows(int opcode)
{
    return opcode == GB_POINTWISE_ADD || opcode == GB_POINTWISE_SUB || opcode == GB_POINTWISE_MUL ||
           opcode == GB_POINTWISE_DIV || opcode == GB_POINTWISE_MAX || opcode == GB_POINTWISE_MIN ||
           opcode == GB_POINTWISE_RELU || opcode == GB_POINTWISE_LEAKY_RELU ||
           opcode == GB_POINTWISE_CLAMP || opcode == GB_POINTWISE_DIV_KNOWN ||
           opcode == GB_POINTWISE_SWISH || chain_loops(opcode);
}

/* The step of a chain as one of a register tile. */
static bool chain_tile_step(const chain_step *from, gb_tile_step *step)
{
    const tile_register *at = &from->others[0].at;
    int opcode = from->opcode;
    if (opcode == CHAIN_AT(1, GB_POINTWISE_ADD) || opcode == CHAIN_AT(1, GB_POINTWISE_MUL))
        opcode -= CHAIN_AT(1, 0);
    *step = (gb_tile_step){.opcode = opcode,
            .type = GB_F32,
            .bytes = sizeof(float),
            .scale = 1.0F,
            .alpha = from->alpha,
            .beta = from->beta,
            .loop = chain_loop};
    if (!tile_knows(opcode) || TILE_OPS[opcode].n_sources < 2)
        return tile_knows(opcode);
    step->other = (const char *)at->data;
    step->type = from->others[0].type;
    step->moved = from->others[0].moved;
    step->zero = from->others[0].zero;
    step->scale = from->others[0].scale;
    step->bytes = (int)code_types[step->type].bytes;
    step->other_row = at->row;
    step->other_col = at->col;
    return step->type != GB_BOOLEAN;
}

static bool chain_tile_post_ops(const op_chain *chain, gb_tile_post_ops *post_ops)
{
    if (chain->n_steps > GB_TILE_STEPS || chain->type == GB_BOOLEAN)
        return false;
    post_ops->n_steps = chain->n_steps;
    post_ops->type = chain->type;
    post_ops->bytes = (int)code_types[chain->type].bytes;
    post_ops->dst = chain->dst;
    post_ops->dst_row = chain->dst_row;
    /* Panel by panel, in each row by row. */
    bool panels = chain->cols > GB_GEMM_PANEL;
    post_ops->apart = panels || chain->dst_row != chain->cols;
    post_ops->next_row = panels ? 0 : ROWS_AHEAD;
    post_ops->next_col = panels ? GB_GEMM_PANEL : 0;
    for (int i = 0; i < chain->n_steps; i++)
        if (!chain_tile_step(&chain->steps[i], &post_ops->steps[i]))
            return false;
    return true;
}

#undef CHAIN_LANES
#undef CHAIN_LOAD
#undef CHAIN_OTHER
#undef CHAIN_EACH
#undef CHAIN_UNARY
#undef CHAIN_BINARY
#undef CHAIN_BINARY_SWAPPED
#undef CHAIN_SELECT
#undef CHAIN_STORE

#endif
