/* A gated MLP as in Llama-style decoders: (swish(x Wg) * (x Wu)) Wd, swish(z) = z sigmoid(z). */
#include "executor.h"

enum { X, WG, WU, WD, GATE, UP, SIGMOID, SWISH, HIDDEN, Y };
enum { ROWS = 3, WIDTH = 24, INNER = 40 };

static gb_logical_tensor weights(size_t id, int64_t rows, int64_t columns)
{
    return dense(id, GB_F32, 2, (int64_t[]){rows, columns}, GB_PROPERTY_CONSTANT);
}

static gb_graph *build(void)
{
    gb_logical_tensor x = dense(X, GB_F32, 2, (int64_t[]){ROWS, WIDTH}, GB_PROPERTY_VARIABLE);
    gb_logical_tensor wg = weights(WG, WIDTH, INNER), wu = weights(WU, WIDTH, INNER);
    gb_logical_tensor wd = weights(WD, INNER, WIDTH);
    gb_logical_tensor gate = inferred(GATE, GB_F32, 2), up = inferred(UP, GB_F32, 2);
    gb_logical_tensor sigmoid = inferred(SIGMOID, GB_F32, 2), swish = inferred(SWISH, GB_F32, 2);
    gb_logical_tensor hidden = inferred(HIDDEN, GB_F32, 2), y = inferred(Y, GB_F32, 2);
    gb_graph *graph;
    CHECK(gb_graph_create(&graph, GB_ENGINE_CPU));
    add_op(graph, make_op(0, GB_OP_MATMUL, "gate", &x, &wg, NULL, &gate));
    add_op(graph, make_op(1, GB_OP_MATMUL, "up", &x, &wu, NULL, &up));
    add_op(graph, make_op(2, GB_OP_SIGMOID, "sigmoid", &gate, NULL, NULL, &sigmoid));
    add_op(graph, make_op(3, GB_OP_MULTIPLY, "swish", &gate, &sigmoid, NULL, &swish));
    add_op(graph, make_op(4, GB_OP_MULTIPLY, "gated", &swish, &up, NULL, &hidden));
    add_op(graph, make_op(5, GB_OP_MATMUL, "down", &hidden, &wd, NULL, &y));
    CHECK(gb_graph_finalize(graph));
    return graph;
}

static double product(const float *row, const float *matrix, int size, int columns, int column)
{
    double sum = 0;
    for (int k = 0; k < size; k++)
        sum += (double)row[k] * (double)matrix[k * columns + column];
    return sum;
}

int main(void)
{
    gb_graph *graph = build();
    executor *run = executor_create(graph);
    executor_print(run);
    EXPECT(executor_partitions(run) == 1);
    float *x = executor_data(run, X), *wg = executor_data(run, WG), *wu = executor_data(run, WU);
    float *wd = executor_data(run, WD);
    fill_random(x, ROWS * WIDTH, 1);
    fill_random(wg, WIDTH * INNER, 2);
    fill_random(wu, WIDTH * INNER, 3);
    fill_random(wd, INNER * WIDTH, 4);
    executor_run(run);

    const float *y = executor_data(run, Y);
    double worst = 0;
    for (int i = 0; i < ROWS; i++) {
        float hidden[INNER];
        for (int n = 0; n < INNER; n++) {
            double gate = product(x + i * WIDTH, wg, WIDTH, INNER, n);
            hidden[n] =
                    (float)(gate / (1 + exp(-gate)) * product(x + i * WIDTH, wu, WIDTH, INNER, n));
        }
        for (int n = 0; n < WIDTH; n++)
            worst = fmax(
                    worst, fabs(product(hidden, wd, INNER, WIDTH, n) - (double)y[i * WIDTH + n]));
    }
    printf("largest difference to the formula: %.2g\n", worst);
    EXPECT(worst < 1e-4);
    executor_destroy(run);
    CHECK(gb_graph_destroy(graph));
    return 0;
}
