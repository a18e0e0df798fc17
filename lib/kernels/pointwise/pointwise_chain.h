/* Chains: programs that carry one value, register 0 of an anchor or an operand, through the
 * instructions of chain_knows() to a single store. The other operands are tensors whose columns are contiguous,
 * perhaps dequantized, constants, or a row, column or element that is computed of such. The post-ops of most
 * anchors are chains, and most element-wise groups. A chain runs as loops over sequences of its steps, or passes over
 * its tile once, some vectors at a time in registers, where the interpreter passes once for each instruction; the
 * results are the same bits.
 */
#ifndef GB_KERNELS_POINTWISE_POINTWISE_CHAIN_H
#define GB_KERNELS_POINTWISE_POINTWISE_CHAIN_H

#include "kernels/isa/vec_partial.h"
#include "kernels/pointwise/pointwise_expressions.h"
#include "kernels/pointwise/pointwise_load_store.h"
#include "kernels/pointwise/pointwise_sequences.h"

/* Vectors that are in registers at once. CHAIN_VECTORS past the caches, where loads wait behind the stores of more,
 * and with SSE2. */
enum { CHAIN_STEPS = 12, CHAIN_VECTORS = 4, CHAIN_MOST = VLEN >= 8 ? 8 : CHAIN_VECTORS };

enum { ROWS_AHEAD = 12 /* of a tile; one or two tiles */ };

/* Rows of at most so many elements are joined, if there are so many of the joined ones. */
enum { SHORT_ROW = 2 * CHAIN_MOST * VLEN, FEWEST_JOINED = 4 };
/* Rows of fewer elements are joined beside columns, too: beyond, spreading takes longer than a start for each row. */
enum { SPREAD_ROW = 3 * CHAIN_MOST * VLEN / 4 };

/* Smaller tiles run by passes: looking for loops takes as long. */
enum { LEAST_LOOPED = 512 };

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

/* Passes of chains know these types of the value and of the others; GB_UNDEF: any. */
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
    bool in_loops; /* sequences of its steps have loops of their own */
    int n_steps;
    chain_step steps[CHAIN_STEPS];
} op_chain;

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
 * joins rows beside one that is the same for all: worth it where they are short, or end in a part of a vector; and
 * its loops read columns once for each row. */
static bool chain_pays(
        const gb_pointwise_program *pointwise, const gb_pointwise_view *views, int64_t cols)
{
    const bool short_rows = cols > 1 && cols <= SHORT_ROW && (cols <= VLEN || cols % VLEN != 0);
    bool pays = pointwise->n_instructions > pointwise->n_operands + 1;
    for (uint32_t i = 0; !pays && i < pointwise->n_operands; i++)
        pays = (pointwise->operands[i].type != GB_F32 &&
                       (pointwise->n_instructions > 2 || !pointwise->operands[i].written)) ||
               (short_rows && views[i].row_stride == 0 && views[i].col_stride == 1) ||
               (cols > SHORT_ROW && views[i].row_stride != 0 && views[i].col_stride == 0);
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

/* Some types have passes of their own: chains of bf16 where processors convert it, which is so fast that
 * looking at the type of each operand takes as long; and those with others of f32. */
static chain_types chain_known_types(const op_chain *chain)
{
    gb_data_type value = chain->type, others = chain_type_of_others(chain);
    if (chain->src.type == value && value == GB_BF16 && (others == GB_F32 || others == GB_BF16))
        return (chain_types){GB_BF16, GB_BF16};
    return (chain_types){GB_UNDEF, others == GB_F32 ? GB_F32 : GB_UNDEF};
}

/* The opcode of a step; one whose sources may change places, as if the value were the first of them. */
static int chain_loop_opcode(const chain_step *step)
{
    const int opcode = step->opcode;
    return opcode == CHAIN_AT(1, GB_POINTWISE_ADD) || opcode == CHAIN_AT(1, GB_POINTWISE_MUL)
                   ? opcode - CHAIN_AT(1, 0)
                   : opcode;
}

/* Is there a loop for each step alone, one that reads the value, and one that stores it, by itself or with the last
 * step? Then the whole can be taken in parts. */
static bool chain_has_loops(const op_chain *chain)
{
    bool has = chain->n_steps > 0 && chain->types.others == GB_F32 &&
               (chain->src.type == GB_F32 || sequence_find(chain->src.type, GB_F32, NULL, 0));
    uint8_t opcode = 0;
    for (int i = 0; has && i < chain->n_steps; i++) {
        has = chain_loop_opcode(&chain->steps[i]) < GB_POINTWISE_OPCODES;
        opcode = (uint8_t)chain_loop_opcode(&chain->steps[i]);
        has = has && sequence_find(GB_F32, GB_F32, &opcode, 1);
    }
    return has && (sequence_find(GB_F32, chain->type, &opcode, 1) ||
                          sequence_find(GB_F32, chain->type, NULL, 0));
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
    chain->in_loops = !in_register_tile && rows * cols >= LEAST_LOOPED && chain_has_loops(chain);
    chain->streamed = view->streamed;
    return true;
}

#endif
