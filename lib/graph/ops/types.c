/* Questions about the data types of an op. */
#include "base/dtype.h"
#include "graph/ops/op_table.h"

static bool types_float(const gb_op *op, uint32_t n_inputs, const char **reason)
{
    for (uint32_t i = 0; i < n_inputs + op->n_outputs; i++) {
        const gb_logical_tensor *tensor =
                i < n_inputs ? gb_op_input(op, i) : gb_op_output(op, i - n_inputs);
        if (gb_dtype_is_f(tensor->data_type))
            continue;
        *reason = "data type";
        return false;
    }
    return true;
}

bool gb_all_types_float(const gb_op *op, const char **reason)
{
    return types_float(op, op->n_inputs, reason);
}

bool gb_convolution_types_float(const gb_op *op, const char **reason)
{
    return types_float(op, 2, reason);
}
