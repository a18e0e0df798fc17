/* Every combination of data types that the schemas of binary ops allow, at every instruction set.
 */
#include "graph/ops/op_table.h"
#include "kernel_case.h"

static const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16, GB_S32, GB_BOOLEAN};
enum { TYPES = sizeof types / sizeof *types };

/* Runs the op when its schema accepts the types. */
static int run_types(gb_op_kind kind, gb_data_type a, gb_data_type b, gb_data_type dst)
{
    kernel_case c = {.scale = 50};
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_in(&c, op, kernel_case_tensor(&c, a, SHAPE(3, 5, 21)));
    kernel_case_in(&c, op, kernel_case_tensor(&c, b, SHAPE(5, 1)));
    kernel_case_out(&c, op, dst);
    if (gb_op_verify(op) != GB_SUCCESS) {
        gb_op_destroy(op);
        return 0;
    }
    char name[80];
    snprintf(name, sizeof name, "%s %s %s -> %s", gb_op_kind_name(kind), gb_data_type_name(a),
            gb_data_type_name(b), gb_data_type_name(dst));
    kernel_case_run(&c, name);
    return 1;
}

KERNEL_TEST(types, binary)
{
    static const struct {
        gb_op_kind kind;
        int combinations;
    } ops[] = {{GB_OP_ADD, 64}, {GB_OP_SUBTRACT, 64}, {GB_OP_MULTIPLY, 27}, {GB_OP_DIVIDE, 27},
            {GB_OP_MAXIMUM, 3}, {GB_OP_MINIMUM, 3}, {GB_OP_SQUARED_DIFFERENCE, 3},
            {GB_OP_GREATER_EQUAL, 4}};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        int ran = 0;
        for (int i = 0; i < TYPES * TYPES * TYPES; i++)
            ran += run_types(ops[k].kind, types[i / TYPES / TYPES], types[i / TYPES % TYPES],
                    types[i % TYPES]);
        cr_assert_eq(
                ran, ops[k].combinations, "%s: %d combinations", gb_op_kind_name(ops[k].kind), ran);
    }
}
