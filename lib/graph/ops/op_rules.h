/* The functions that rows of the op table name (shape rules and extra checks), and what they share.
 */
#ifndef GB_GRAPH_OPS_OP_RULES_H
#define GB_GRAPH_OPS_OP_RULES_H

#include "base/status.h"
#include "graph/ops/op_table.h"

/* The numbers of inputs and outputs that gb_op_verify() asks for, which rules rely on (verify.c).
 */
gb_status gb_op_verify_counts(const gb_op *op);

/* Extra checks of gb_op_verify() (check.c). */
gb_status gb_check_convolution(const gb_op *op);
gb_status gb_check_pool(const gb_op *op);
gb_status gb_check_batch_norm(const gb_op *op);
gb_status gb_check_layer_norm(const gb_op *op); /* and GroupNorm */
gb_status gb_check_layer_norm_backward(const gb_op *op);
gb_status gb_check_rms_norm(const gb_op *op);
gb_status gb_check_matmul(const gb_op *op);
gb_status gb_check_softmax(const gb_op *op);
gb_status gb_check_softmax_backward(const gb_op *op);
gb_status gb_check_type_cast(const gb_op *op);
gb_status gb_check_interpolate(const gb_op *op);
gb_status gb_check_quantize(const gb_op *op);
gb_status gb_check_dynamic_quantize(const gb_op *op);

/* Limits (limits.c). */
gb_status gb_limit_clamp(const gb_op *op);
gb_status gb_limit_elu_backward(const gb_op *op);
gb_status gb_limit_quantize(const gb_op *op);
gb_status gb_limit_dynamic_quantize(const gb_op *op);

/* What operations are counted by (work.c). Dims are known. */
double gb_work_output(const gb_op *op);  /* elements of output 0 */
double gb_work_input(const gb_op *op);   /* elements of input 0 */
double gb_work_product(const gb_op *op); /* products of two elements in a MatMul or convolution */
double gb_work_cell(const gb_op *op);    /* cells of all windows of a pool */
double gb_work_tap(const gb_op *op);     /* products of an element and its weight in resampling */
/* "element of the first output", ... */
const char *gb_work_phrase(gb_work_fn work);

/* Shape rules (shape_*.c). */
gb_status gb_infer_identity(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_same(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_binary(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_select(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_bias_add(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_bias_add_backward(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_prelu(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_dropout(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_gen_index(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_wildcard(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_matmul(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_convolution(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_convolution_backward_data(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_convolution_backward_weights(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_conv_transpose(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_conv_transpose_backward_data(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_conv_transpose_backward_weights(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_pool(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_avg_pool_backward(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_max_pool_backward(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_batch_norm(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_batch_norm_backward(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_layer_norm(gb_op *op, gb_logical_tensor *outputs); /* and RMSNorm */
gb_status gb_infer_layer_norm_backward(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_group_norm(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_softmax(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_reduce(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_interpolate(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_interpolate_backward(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_concat(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_reshape(gb_op *op, gb_logical_tensor *outputs);
gb_status gb_infer_transpose(gb_op *op, gb_logical_tensor *outputs);

/* Shared by shape rules (shape.c). Failures are GB_INVALID_SHAPE and name the op and its ports.
 * ---------------------- */

/* Rank and every dim known. */
bool gb_dims_known(const gb_logical_tensor *tensor);
void gb_dims_set(gb_logical_tensor *tensor, int ndims, const int64_t *dims);
/* Name of input `i` in the op's schema. */
const char *gb_input_name(const gb_op *op, uint32_t i);
/* Inputs a and b have the same dims. */
gb_status gb_same_dims(const gb_op *op, uint32_t a, uint32_t b);
/* Input `i`, if the op has it, is a vector of `length` elements. */
gb_status gb_vector_input(const gb_op *op, uint32_t i, int64_t length);
/* Input `i` has a rank between min and max. */
gb_status gb_rank_between(const gb_op *op, uint32_t i, int min, int max);
/* The axis attribute, counted from 0, of a tensor of rank ndims. */
gb_status gb_axis_attr(const gb_op *op, gb_op_attr name, int ndims, int *axis);
/* Dims of output 0 that no input tells: those of the tensor when they are known, else the list
 * attribute's. */
gb_status gb_target_dims(const gb_op *op, gb_op_attr name, int ndims, gb_logical_tensor *output);

/* Shared by the rules of ops with windows (window.c)
 * ----------------------------------------------------------------- */

/* Positions of the window along `axis` of size `in`: (in + pads - extent) / stride + 1. Port: the
 * name for messages. */
gb_status gb_window_positions(const gb_op *op, const gb_window *window, int axis, int64_t in,
        bool round_up, int64_t *out);
/* The reverse: stride (in - 1) + extent - pads + output_padding. */
gb_status gb_window_transposed_size(
        const gb_op *op, const gb_window *window, int axis, int64_t in, int64_t *out);
/* Stores the pads that auto_pad stands for in pads_begin and pads_end; auto_pad stays. */
gb_status gb_window_store_pads(gb_op *op, const gb_window *window);

#endif
