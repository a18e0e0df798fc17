/* Runs chains: by loops that take sequences of their steps, or by passes that look up each step; and makes post-ops of
 * register tiles of them.
 */
#ifndef GB_KERNELS_POINTWISE_POINTWISE_CHAIN_RUN_H
#define GB_KERNELS_POINTWISE_POINTWISE_CHAIN_RUN_H

#include "kernels/pointwise/pointwise_chain.h"

/* By passes ------------------------------------------------------------------------------------- */

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
#if defined(GB_VEC_HAS_BF16)
CHAIN_PART(bf16, GB_BF16, GB_BF16)
#endif
CHAIN_PART(with_f32, GB_UNDEF, GB_F32)
CHAIN_PART(any, GB_UNDEF, GB_UNDEF)

/* By loops -------------------------------------------------------------------------------------- */

/* Lanes that one loop leaves to the next; they stay in L1. */
enum { SEQUENCE_BLOCK = 512 };

typedef struct chain_stage {
    int first, n_steps; /* which steps of the chain */
    gb_data_type to;    /* what it stores */
    sequence_loop_fn *loop;
    sequence_call call;
} chain_stage;

/* A chain as loops. */
typedef struct chain_stages {
    const op_chain *chain;
    int n;
    chain_stage stages[CHAIN_STEPS + 2]; /* one to read the value, one to store it */
    /* Of each step whose other source is an element or a column. */
    float equal[CHAIN_STEPS][SEQUENCE_LANES];
} chain_stages;

static void chain_stage_step(chain_stages *loops, chain_stage *stage, int k)
{
    const chain_step *step = &loops->chain->steps[stage->first + k];
    const tile_register *at = &step->others[0].at;
    sequence_operand *operand = &stage->call.others[k];
    operand->row = at->row;
    operand->mask = -(int64_t)at->col;
    operand->far = loops->chain->far && at->far;
    operand->equal = loops->equal[stage->first + k];
    stage->call.far = stage->call.far || operand->far;
    stage->call.alpha[k] = step->alpha;
    stage->call.beta[k] = step->beta;
    if (!at->col && !at->row)
        sequence_repeat(operand->equal, *at->data);
}

/* The longest sequence from step `first` on that has a loop: how many steps it takes. The last stage stores `to`,
 * others f32. */
static int chain_choose_loop(const op_chain *t, int first, gb_data_type from, chain_stage *stage)
{
    uint8_t opcodes[SEQUENCE_STEPS];
    const int rest = t->n_steps - first, most = rest < SEQUENCE_STEPS ? rest : SEQUENCE_STEPS;
    for (int k = 0; k < most; k++)
        opcodes[k] = (uint8_t)chain_loop_opcode(&t->steps[first + k]);
    for (int n = most;; n--) {
        stage->to = n == rest ? t->type : GB_F32;
        stage->loop = sequence_find(from, stage->to, opcodes, n);
        if (!stage->loop && stage->to != GB_F32 && sequence_find(GB_F32, stage->to, NULL, 0)) {
            stage->to = GB_F32;
            stage->loop = sequence_find(from, GB_F32, opcodes, n);
        }
        if (stage->loop)
            return n;
    }
}

static void chain_list_loops(const op_chain *t, chain_stages *loops)
{
    gb_data_type from = t->src.type;
    loops->chain = t;
    loops->n = 0;
    for (int i = 0; i < t->n_steps || from != t->type;) {
        chain_stage *stage = &loops->stages[loops->n];
        stage->first = i;
        stage->n_steps = chain_choose_loop(t, i, from, stage);
        stage->call.src_far = loops->n == 0 && t->far && t->src.at.far;
        stage->call.far = stage->call.src_far;
        for (int k = 0; k < stage->n_steps; k++)
            chain_stage_step(loops, stage, k);
        i += stage->n_steps;
        from = stage->to;
        loops->n++;
    }
}

/* Runs a stage on `rows` rows of `cols` columns, from column c of row r on. */
static void chain_run_stage(
        chain_stages *loops, int index, int64_t r, int64_t c, int64_t rows, int64_t cols)
{
    chain_stage *stage = &loops->stages[index];
    for (int k = 0; k < stage->n_steps; k++) {
        const tile_register *at = &loops->chain->steps[stage->first + k].others[0].at;
        stage->call.others[k].data = at->data + r * at->row + c * at->col;
    }
    stage->call.rows = rows;
    stage->call.cols = cols;
    stage->loop(&stage->call);
}

/* Columns c .. end - 1 of rows r .. r + rows - 1; dst is where row r begins. */
static void chain_part_by_loops(chain_stages *loops, int64_t r, int64_t rows, int64_t c,
        int64_t end, char *dst, bool streamed)
{
    float lanes[SEQUENCE_BLOCK] __attribute__((aligned(GB_CACHE_LINE)));
    const op_chain *chain = loops->chain;
    const tile_register *src = &chain->src.at;
    const int64_t src_bytes = code_types[chain->src.type].bytes;
    const int64_t dst_bytes = code_types[chain->type].bytes;
    const int last = loops->n - 1;
    if (c == end)
        return;
    const int64_t block_cols = last ? gb_min_i64(SEQUENCE_BLOCK, end - c) : end - c;
    const int64_t block_rows = last ? SEQUENCE_BLOCK / block_cols : rows;
    for (int i = 0; i <= last; i++) {
        sequence_call *call = &loops->stages[i].call;
        call->src = call->dst = (char *)(void *)lanes;
        call->src_row = call->dst_row = block_cols * (int64_t)sizeof *lanes;
        call->streamed = i == last && streamed;
    }
    loops->stages[0].call.src_row = src->row * src_bytes;
    loops->stages[last].call.dst_row = chain->dst_row * dst_bytes;
    for (int64_t i = 0; i < rows; i += block_rows)
        for (int64_t k = c; k < end; k += block_cols) {
            loops->stages[0].call.src =
                    (const char *)src->data + ((r + i) * src->row + k) * src_bytes;
            loops->stages[last].call.dst = dst + (i * chain->dst_row + k) * dst_bytes;
            for (int stage = 0; stage <= last; stage++)
                chain_run_stage(loops, stage, r + i, k, gb_min_i64(block_rows, rows - i),
                        gb_min_i64(block_cols, end - k));
        }
}

/* Rows ------------------------------------------------------------------------------------------ */

static void chain_part(const op_chain *t, chain_stages *loops, int64_t r, int64_t c, int64_t end,
        char *dst, bool streamed)
{
    if (t->in_loops)
        chain_part_by_loops(loops, r, 1, c, end, dst, streamed);
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
    chain_stages loops;
    int64_t done = 0;
    if (t->in_loops)
        chain_list_loops(t, &loops);
    if (t->in_loops && !streamed) {
        done = t->rows - (t->last_cols < t->cols);
        chain_part_by_loops(&loops, 0, done, 0, t->cols, t->dst, false);
    }
    for (int64_t r = done; r < t->rows; r++) {
        char *dst = t->dst + r * t->dst_row * bytes;
        const int64_t cols = r + 1 < t->rows ? t->cols : t->last_cols;
        int64_t first = 0, end = 0;
        if (streamed && (uintptr_t)dst % (size_t)bytes == 0) {
            first = gb_min_i64((int64_t)(-(uintptr_t)dst % GB_CACHE_LINE) / bytes, cols);
            end = first + (cols - first) / line * line;
            chain_part(t, &loops, r, 0, first, dst, false);
            chain_part(t, &loops, r, first, end, dst, true);
        }
        chain_part(t, &loops, r, end, cols, dst, false);
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
    post_ops->plain = gb_tile_is_plain(post_ops);
    post_ops->codes = gb_tile_find_codes(post_ops);
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
