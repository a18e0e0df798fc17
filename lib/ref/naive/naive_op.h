/* What the twin's op functions have in common: the op with its tensors, attributes as the user gave
 * them, and indices. */
#ifndef GB_REF_NAIVE_OP_H
#define GB_REF_NAIVE_OP_H

#include "base/status.h"
#include "graph/ir/graph.h"
#include "ref/naive.h"

typedef struct gb_naive_call {
    const gb_op *op;
    const gb_naive_tensor *in;
    gb_naive_tensor *out; /* type is set; dims and value by gb_naive_make() */
} gb_naive_call;

/* "op 7 (Convolution): ...", GB_INVALID_SHAPE */
#define GB_NAIVE_REFUSE(call, text)                                                                \
    gb_fail(GB_INVALID_SHAPE, "naive reference: %s: %s", gb_op_label((call)->op), text)

/* Attributes; `otherwise` is the default of the op set. */
const gb_attr *gb_naive_attr(const gb_op *op, gb_op_attr name);
double gb_naive_real(const gb_op *op, gb_op_attr name, double otherwise);
int64_t gb_naive_int(const gb_op *op, gb_op_attr name, int64_t otherwise);
bool gb_naive_flag(const gb_op *op, gb_op_attr name, bool otherwise);
bool gb_naive_says(const gb_op *op, gb_op_attr name, const char *otherwise, const char *text);
size_t gb_naive_ints(const gb_op *op, gb_op_attr name, const int64_t **values);

/* Output i gets dims and zeros. */
gb_status gb_naive_make(const gb_naive_call *call, uint32_t i, int ndims, const int64_t *dims);
gb_status gb_naive_make_like(const gb_naive_call *call, uint32_t i, const gb_naive_tensor *other);
bool gb_naive_same_dims(const gb_naive_tensor *a, const gb_naive_tensor *b);
/* Axis -1 is the last one; -1 when there is no such axis. */
int gb_naive_axis(int64_t axis, int ndims);
/* The channels: axis 1 of NCX, the last of NXC (default). */
int gb_naive_channel_axis(const gb_op *op, int ndims);
/* Is input i a vector of `length` elements (or missing)? */
bool gb_naive_is_vector(const gb_naive_call *call, uint32_t i, int64_t length);
/* Elements between neighbours along an axis. */
int64_t gb_naive_stride(const gb_naive_tensor *tensor, int axis);
/* Index along `axis` of the element at p. */
int64_t gb_naive_along(const gb_naive_tensor *tensor, int axis, int64_t p);
/* Indices of the element at p, and back. */
void gb_naive_index(const gb_naive_tensor *tensor, int64_t p, int64_t index[GB_MAX_NDIMS]);
int64_t gb_naive_at(const gb_naive_tensor *tensor, const int64_t *index);
/* Where `tensor`, broadcast onto `onto`, has its element for the one at p; and does it fit? */
int64_t gb_naive_broadcast_at(
        const gb_naive_tensor *tensor, const gb_naive_tensor *onto, int64_t p);
bool gb_naive_broadcasts(const gb_naive_tensor *tensor, const gb_naive_tensor *onto);
/* Dims that two lists broadcast to, aligned at their ends; false when they do not. */
bool gb_naive_broadcast_dims(int n_a, const int64_t *a, int n_b, const int64_t *b, int *ndims,
        int64_t dims[GB_MAX_NDIMS]);

/* Lowest and highest finite value of a type. */
double gb_naive_lowest(gb_data_type type);
double gb_naive_highest(gb_data_type type);
bool gb_naive_is_integer(gb_data_type type);
/* Rounded, half to even, and saturated to an integer type. */
double gb_naive_to_integer(gb_data_type type, double value);
/* A result of the type: that for an integer type; a floating type only makes infinity or NaN of
 * what is beyond its range. */
double gb_naive_settle(gb_data_type type, double value);

gb_status gb_naive_unary(const gb_naive_call *call);
gb_status gb_naive_unary_backward(const gb_naive_call *call);
gb_status gb_naive_binary(const gb_naive_call *call);
gb_status gb_naive_select(const gb_naive_call *call);
gb_status gb_naive_bias_add(const gb_naive_call *call);
gb_status gb_naive_bias_add_backward(const gb_naive_call *call);
gb_status gb_naive_prelu(const gb_naive_call *call);
gb_status gb_naive_prelu_backward(const gb_naive_call *call);
gb_status gb_naive_convolution(const gb_naive_call *call);
gb_status gb_naive_convolution_backward_data(const gb_naive_call *call);
gb_status gb_naive_convolution_backward_weights(const gb_naive_call *call);
gb_status gb_naive_conv_transpose(const gb_naive_call *call);
gb_status gb_naive_conv_transpose_backward_data(const gb_naive_call *call);
gb_status gb_naive_conv_transpose_backward_weights(const gb_naive_call *call);
gb_status gb_naive_avg_pool(const gb_naive_call *call);
gb_status gb_naive_avg_pool_backward(const gb_naive_call *call);
gb_status gb_naive_max_pool(const gb_naive_call *call);
gb_status gb_naive_max_pool_backward(const gb_naive_call *call);
gb_status gb_naive_batch_norm_inference(const gb_naive_call *call);
gb_status gb_naive_batch_norm_training(const gb_naive_call *call);
gb_status gb_naive_batch_norm_backward(const gb_naive_call *call);
gb_status gb_naive_layer_norm(const gb_naive_call *call);
gb_status gb_naive_layer_norm_backward(const gb_naive_call *call);
gb_status gb_naive_group_norm(const gb_naive_call *call);
gb_status gb_naive_rms_norm(const gb_naive_call *call);
gb_status gb_naive_softmax(const gb_naive_call *call);
gb_status gb_naive_softmax_backward(const gb_naive_call *call);
gb_status gb_naive_log_softmax(const gb_naive_call *call);
gb_status gb_naive_log_softmax_backward(const gb_naive_call *call);
gb_status gb_naive_matmul(const gb_naive_call *call);
gb_status gb_naive_reduce(const gb_naive_call *call);
gb_status gb_naive_interpolate(const gb_naive_call *call);
gb_status gb_naive_interpolate_backward(const gb_naive_call *call);
gb_status gb_naive_concat(const gb_naive_call *call);
gb_status gb_naive_reshape(const gb_naive_call *call);
gb_status gb_naive_transpose(const gb_naive_call *call);
gb_status gb_naive_copy(const gb_naive_call *call);
gb_status gb_naive_gen_index(const gb_naive_call *call);
gb_status gb_naive_quantize(const gb_naive_call *call);
gb_status gb_naive_dequantize(const gb_naive_call *call);
gb_status gb_naive_dropout(const gb_naive_call *call);
gb_status gb_naive_end(const gb_naive_call *call);

#endif
