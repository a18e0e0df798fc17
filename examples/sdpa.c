/* Scaled dot-product attention with an explicit mask: softmax(Q K^T / sqrt(D) + mask) V. */
#include "executor.h"

enum { Q, K, V, SCALE, MASK, SCORES, SCALED, MASKED, P, DST };
enum { HEADS = 2, ROWS = 5, KEYS = 7, SIZE = 16 };

static gb_graph *build(void)
{
    gb_logical_tensor q =
            dense(Q, GB_F32, 4, (int64_t[]){1, HEADS, ROWS, SIZE}, GB_PROPERTY_VARIABLE);
    gb_logical_tensor k =
            dense(K, GB_F32, 4, (int64_t[]){1, HEADS, KEYS, SIZE}, GB_PROPERTY_VARIABLE);
    gb_logical_tensor v =
            dense(V, GB_F32, 4, (int64_t[]){1, HEADS, KEYS, SIZE}, GB_PROPERTY_VARIABLE);
    gb_logical_tensor scale = dense(SCALE, GB_F32, 1, (int64_t[]){1}, GB_PROPERTY_CONSTANT);
    gb_logical_tensor mask =
            dense(MASK, GB_F32, 4, (int64_t[]){1, 1, ROWS, KEYS}, GB_PROPERTY_VARIABLE);
    gb_logical_tensor scores = inferred(SCORES, GB_F32, 4), scaled = inferred(SCALED, GB_F32, 4);
    gb_logical_tensor masked = inferred(MASKED, GB_F32, 4), p = inferred(P, GB_F32, 4);
    gb_logical_tensor dst = inferred(DST, GB_F32, 4);

    gb_graph *graph;
    CHECK(gb_graph_create(&graph, GB_ENGINE_CPU));
    gb_op *qk = make_op(0, GB_OP_MATMUL, "qk", &q, &k, NULL, &scores);
    CHECK(gb_op_set_attr_bool(qk, GB_ATTR_TRANSPOSE_B, 1, &(uint8_t){1}));
    add_op(graph, qk);
    add_op(graph, make_op(1, GB_OP_MULTIPLY, "scale", &scores, &scale, NULL, &scaled));
    add_op(graph, make_op(2, GB_OP_ADD, "mask", &scaled, &mask, NULL, &masked));
    gb_op *softmax = make_op(3, GB_OP_SOFTMAX, "softmax", &masked, NULL, NULL, &p);
    CHECK(gb_op_set_attr_s64(softmax, GB_ATTR_AXIS, 1, &(int64_t){-1}));
    add_op(graph, softmax);
    add_op(graph, make_op(4, GB_OP_MATMUL, "pv", &p, &v, NULL, &dst));
    CHECK(gb_graph_finalize(graph));
    return graph;
}

/* One row of the result, from the formula. */
static void by_hand(const float *q, const float *k, const float *v, const float *mask, double scale,
        double *row)
{
    double weights[KEYS], sum = 0;
    for (int j = 0; j < KEYS; j++) {
        double score = 0;
        for (int d = 0; d < SIZE; d++)
            score += (double)q[d] * (double)k[j * SIZE + d];
        weights[j] = exp(score * scale + (double)mask[j]);
        sum += weights[j];
    }
    for (int d = 0; d < SIZE; d++) {
        row[d] = 0;
        for (int j = 0; j < KEYS; j++)
            row[d] += weights[j] / sum * (double)v[j * SIZE + d];
    }
}

int main(void)
{
    gb_graph *graph = build();
    executor *run = executor_create(graph);
    executor_print(run);
    EXPECT(executor_partitions(run) == 1);
    float *q = executor_data(run, Q), *k = executor_data(run, K), *v = executor_data(run, V);
    float *mask = executor_data(run, MASK), *scale = executor_data(run, SCALE);
    fill_random(q, HEADS * ROWS * SIZE, 1);
    fill_random(k, HEADS * KEYS * SIZE, 2);
    fill_random(v, HEADS * KEYS * SIZE, 3);
    for (int i = 0; i < ROWS; i++) /* row i sees keys 0 .. i + 2 */
        for (int j = 0; j < KEYS; j++)
            mask[i * KEYS + j] = j <= i + 2 ? 0 : -INFINITY;
    *scale = 1 / sqrtf(SIZE);
    executor_run(run);

    const float *dst = executor_data(run, DST);
    double worst = 0;
    for (int row = 0; row < HEADS * ROWS; row++) {
        double expected[SIZE];
        int head = row / ROWS;
        by_hand(q + row * SIZE, k + head * KEYS * SIZE, v + head * KEYS * SIZE,
                mask + row % ROWS * KEYS, (double)*scale, expected);
        for (int d = 0; d < SIZE; d++)
            worst = fmax(worst, fabs(expected[d] - (double)dst[row * SIZE + d]));
    }
    printf("largest difference to the formula: %.2g\n", worst);
    EXPECT(worst < 1e-6);
    executor_destroy(run);
    CHECK(gb_graph_destroy(graph));
    return 0;
}
