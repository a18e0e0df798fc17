/* Int8 inference: a product of u8 activations and s8 weights, requantised to u8.
 *
 * The graph says what the numbers mean (Dequantize before the product, Quantize behind); the
 * library computes on the integers. */
#include "executor.h"

#include <stdint.h>

enum { X8, X, W8, W, SUM, RELU, Y8 };
enum { ROWS = 4, SIZE = 32, COLUMNS = 8 };

static const float x_scale = 0.05F, y_scale = 0.1F;
static const int64_t x_zero = 128, y_zero = 10, no_zeros[COLUMNS] = {0};
static const float w_scales[COLUMNS] = {0.01F, 0.02F, 0.03F, 0.01F, 0.02F, 0.03F, 0.01F, 0.02F};

static gb_op *scaled(gb_op *op, const float *scales, const int64_t *zeros, size_t count)
{
    const char *kind = count > 1 ? "per_channel" : "per_tensor";
    CHECK(gb_op_set_attr_str(op, GB_ATTR_QTYPE, kind, count > 1 ? 11 : 10));
    CHECK(gb_op_set_attr_f32(op, GB_ATTR_SCALES, count, scales));
    CHECK(gb_op_set_attr_s64(op, GB_ATTR_ZPS, count, zeros));
    if (count > 1)
        CHECK(gb_op_set_attr_s64(op, GB_ATTR_AXIS, 1, &(int64_t){1}));
    return op;
}

static gb_graph *build(void)
{
    gb_logical_tensor x8 = dense(X8, GB_U8, 2, (int64_t[]){ROWS, SIZE}, GB_PROPERTY_VARIABLE);
    gb_logical_tensor w8 = dense(W8, GB_S8, 2, (int64_t[]){SIZE, COLUMNS}, GB_PROPERTY_CONSTANT);
    gb_logical_tensor x = inferred(X, GB_F32, 2), w = inferred(W, GB_F32, 2);
    gb_logical_tensor sum = inferred(SUM, GB_F32, 2), relu = inferred(RELU, GB_F32, 2);
    gb_logical_tensor y8 = inferred(Y8, GB_U8, 2);
    gb_graph *graph;
    CHECK(gb_graph_create(&graph, GB_ENGINE_CPU));
    add_op(graph,
            scaled(make_op(0, GB_OP_DEQUANTIZE, "x", &x8, NULL, NULL, &x), &x_scale, &x_zero, 1));
    add_op(graph, scaled(make_op(1, GB_OP_DEQUANTIZE, "w", &w8, NULL, NULL, &w), w_scales, no_zeros,
                          COLUMNS));
    add_op(graph, make_op(2, GB_OP_MATMUL, "product", &x, &w, NULL, &sum));
    add_op(graph, make_op(3, GB_OP_RELU, "relu", &sum, NULL, NULL, &relu));
    add_op(graph,
            scaled(make_op(4, GB_OP_QUANTIZE, "y", &relu, NULL, NULL, &y8), &y_scale, &y_zero, 1));
    CHECK(gb_graph_finalize(graph));
    return graph;
}

/* The exact result before rounding to an integer. */
static double by_hand(const uint8_t *x, const int8_t *w, int row, int column)
{
    double sum = 0;
    for (int k = 0; k < SIZE; k++)
        sum += (x[row * SIZE + k] - (double)x_zero) * w[k * COLUMNS + column];
    double real = sum * (double)x_scale * (double)w_scales[column];
    real = (real > 0 ? real : 0) / (double)y_scale + (double)y_zero;
    return real > 255 ? 255 : real;
}

int main(void)
{
    gb_graph *graph = build();
    executor *run = executor_create(graph);
    executor_print(run);
    EXPECT(executor_partitions(run) == 1);
    uint8_t *x = executor_data(run, X8);
    int8_t *w = executor_data(run, W8);
    for (int i = 0; i < ROWS * SIZE; i++)
        x[i] = (uint8_t)(i * 37 % 251);
    for (int i = 0; i < SIZE * COLUMNS; i++)
        w[i] = (int8_t)(i * 53 % 255 - 127);
    executor_run(run);

    const uint8_t *y = executor_data(run, Y8);
    for (int i = 0; i < ROWS; i++)
        for (int n = 0; n < COLUMNS; n++) {
            double exact = by_hand(x, w, i, n);
            EXPECT(fabs(y[i * COLUMNS + n] - exact) < 0.501);
        }
    printf("y[0][0] = %d, exact %.3f\n", y[0], by_hand(x, w, 0, 0));
    executor_destroy(run);
    CHECK(gb_graph_destroy(graph));
    return 0;
}
