/* The transforms of minimal filtering: channels lie along vectors. */
#include "kernels/gemm/register_sums.h"
#include "kernels/isa/vec_partial.h"

#include "base/memory.h"

enum { PANEL = GB_GEMM_PANEL, SIDE = 4, TAPS = 3 };

/* What lanes hold: floats, pairs of s16, or s32, the sums of the products of those. */
enum { FLOATS, PAIRS, SUMS };

GB_TEMPLATE vf add(const int lanes, vf a, vf b)
{
    return lanes == FLOATS  ? vf_add(a, b)
           : lanes == PAIRS ? vi_as_vf(vi_add_halves(vf_bits(a), vf_bits(b)))
                            : vi_as_vf(vi_add(vf_bits(a), vf_bits(b)));
}

GB_TEMPLATE vf subtract(const int lanes, vf a, vf b)
{
    return lanes == FLOATS  ? vf_sub(a, b)
           : lanes == PAIRS ? vi_as_vf(vi_sub_halves(vf_bits(a), vf_bits(b)))
                            : vi_as_vf(vi_sub(vf_bits(a), vf_bits(b)));
}

/* Row i of B^T times a column of four. */
GB_TEMPLATE vf source_term(const int lanes, const int i, vf d0, vf d1, vf d2, vf d3)
{
    return i == 0   ? subtract(lanes, d0, d2)
           : i == 1 ? add(lanes, d1, d2)
           : i == 2 ? subtract(lanes, d2, d1)
                    : subtract(lanes, d1, d3);
}

/* One tile and one vector of channels, of which n count. */
GB_TEMPLATE vf transform_tile(const int lanes, const gb_winograd_source *s, const float *src,
        float *dst, const int64_t n, vf most)
{
    vf columns[SIDE][SIDE]; /* B^T d */
#pragma GCC unroll 4
    for (int x = 0; x < SIDE; x++) {
        vf d[SIDE];
#pragma GCC unroll 4
        for (int y = 0; y < SIDE; y++) {
            const float *p = src + y * s->line + x * s->position;
            d[y] = n == VLEN ? vf_load(p) : vf_load_n(p, n);
            if (lanes == FLOATS)
                most = vf_max(vf_abs(d[y]), most);
        }
#pragma GCC unroll 4
        for (int i = 0; i < SIDE; i++)
            columns[i][x] = source_term(lanes, i, d[0], d[1], d[2], d[3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < SIDE; i++)
#pragma GCC unroll 4
        for (int j = 0; j < SIDE; j++)
            vf_store(dst + (i * SIDE + j) * s->matrix,
                    source_term(
                            lanes, j, columns[i][0], columns[i][1], columns[i][2], columns[i][3]));
    return most;
}

GB_TEMPLATE void transform_source(const int lanes, const gb_winograd_source *source)
{
    const gb_winograd_source s = *source; /* stores may alias *source */
    for (int64_t t = 0; t < s.tiles; t++) {
        const float *src = s.src + 2 * t * s.position;
        float *dst = s.dst + t * s.row;
        vf most = lanes == FLOATS ? vf_set1(s.most[t]) : vf_zero();
        int64_t c = 0;
        for (; c + VLEN <= s.channels; c += VLEN)
            most = transform_tile(lanes, &s, src + c, dst + c, VLEN, most);
        if (c < s.channels)
            most = transform_tile(lanes, &s, src + c, dst + c, s.channels - c, most);
        if (lanes == FLOATS)
            s.most[t] = vf_max_lane(most);
    }
}

void GB_ISA_NAME(winograd_source)(const gb_winograd_source *source)
{
    if (source->pairs)
        transform_source(PAIRS, source);
    else
        transform_source(FLOATS, source);
}

/* Row i of G times a column of three; of 2 G, of pairs. */
GB_TEMPLATE vf weight_term(const int lanes, const int i, vf g0, vf g1, vf g2)
{
    if (i == 0 || i == SIDE - 1) {
        const vf side = i == 0 ? g0 : g2;
        return lanes == FLOATS ? side : add(lanes, side, side);
    }
    const vf sides = add(lanes, g0, g2);
    const vf sum = i == 1 ? add(lanes, sides, g1) : subtract(lanes, sides, g1);
    return lanes == FLOATS ? vf_mul(vf_set1(0.5f), sum) : sum;
}

GB_TEMPLATE float transform_weights(const int lanes, const gb_winograd_weights *weights)
{
    const gb_winograd_weights w = *weights;
    const int64_t matrix = w.terms * PANEL;
    vf most = vf_zero();
    for (int64_t k = 0; k < matrix; k += VLEN) {
        vf columns[SIDE][TAPS]; /* G g */
        for (int x = 0; x < TAPS; x++) {
            vf g[TAPS];
            for (int y = 0; y < TAPS; y++) {
                g[y] = vf_load(w.taps + (y * TAPS + x) * matrix + k);
                if (lanes == FLOATS)
                    most = vf_max(vf_abs(g[y]), most);
            }
#pragma GCC unroll 4
            for (int i = 0; i < SIDE; i++)
                columns[i][x] = weight_term(lanes, i, g[0], g[1], g[2]);
        }
#pragma GCC unroll 4
        for (int i = 0; i < SIDE; i++)
#pragma GCC unroll 4
            for (int j = 0; j < SIDE; j++)
                vf_store(w.dst + (i * SIDE + j) * matrix + k,
                        weight_term(lanes, j, columns[i][0], columns[i][1], columns[i][2]));
    }
    return vf_max_lane(most);
}

float GB_ISA_NAME(winograd_weights)(const gb_winograd_weights *weights)
{
    return weights->pairs ? transform_weights(PAIRS, weights) : transform_weights(FLOATS, weights);
}

/* Four times a sum of integers -> the number it stands for. */
GB_TEMPLATE vf finish_integers(const gb_dot_finish *finish, vf sum, int64_t col)
{
    const vi whole = vi_add(vi_shr(vf_bits(sum), 2), vi_load(finish->column_terms + col));
    return vf_mul(vf_from_vi(whole), vf_load(finish->column_scales + col));
}

/* One or two results of a tile, `vectors` vectors of columns from `col` on. */
GB_TEMPLATE void finish_tile(const int lanes, const gb_winograd_result *r, const float *sums,
        int64_t col, const int line, const int positions, const int vectors,
        const gb_register_sums *place)
{
    vf results[2][MOST_VECTORS];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) {
        vf row[SIDE]; /* a row of A^T times the sums */
#pragma GCC unroll 4
        for (int j = 0; j < SIDE; j++) {
            const float *p = sums + col + v * VLEN + j * r->matrix;
            const vf middle = vf_load(p + SIDE * r->matrix),
                     next = vf_load(p + 2 * SIDE * r->matrix);
            row[j] = line == 0 ? add(lanes, vf_load(p), add(lanes, middle, next))
                               : subtract(lanes, subtract(lanes, middle, next),
                                         vf_load(p + 3 * SIDE * r->matrix));
        }
        results[0][v] = add(lanes, row[0], add(lanes, row[1], row[2]));
        if (positions == 2)
            results[1][v] = subtract(lanes, subtract(lanes, row[1], row[2]), row[3]);
        for (int i = 0; lanes == SUMS && i < positions; i++)
            results[i][v] = finish_integers(r->finish, results[i][v], col + v * VLEN);
    }
    gb_finish_sums(place, positions, vectors, results);
}

GB_TEMPLATE void finish_line(const int lanes, const gb_winograd_result *r, const int line)
{
    for (int64_t p = 0; p < r->positions; p += 2) {
        const float *sums = r->sums + p / 2 * r->row;
        for (int64_t c = 0; c < r->cols; c += 2 * VLEN) {
            const int64_t cols = gb_min_i64(r->cols - c, 2 * VLEN);
            gb_register_sums place = {.post_ops = r->post_ops,
                    .row = r->first_position + p,
                    .col = r->first_col + c,
                    .last = (int)(cols > VLEN ? cols - VLEN : cols),
                    .dst = r->dst + p * r->dst_row + c,
                    .dst_row = r->dst_row};
            if (p + 1 == r->positions && cols > VLEN)
                finish_tile(lanes, r, sums, c, line, 1, 2, &place);
            else if (p + 1 == r->positions)
                finish_tile(lanes, r, sums, c, line, 1, 1, &place);
            else if (cols > VLEN)
                finish_tile(lanes, r, sums, c, line, 2, 2, &place);
            else
                finish_tile(lanes, r, sums, c, line, 2, 1, &place);
        }
    }
}

void GB_ISA_NAME(winograd_result)(const gb_winograd_result *result)
{
    const gb_winograd_result r = *result; /* stores may alias *result */
    if (r.finish && r.line == 0)
        finish_line(SUMS, &r, 0);
    else if (r.finish)
        finish_line(SUMS, &r, 1);
    else if (r.line == 0)
        finish_line(FLOATS, &r, 0);
    else
        finish_line(FLOATS, &r, 1);
}
