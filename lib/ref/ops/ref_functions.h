/* The reference functions of the ops, one prototype each; table.c says which kinds each one serves.
 */
#ifndef GB_REF_OPS_REF_FUNCTIONS_H
#define GB_REF_OPS_REF_FUNCTIONS_H

#include "ref/bounds/ref_op.h"

/* Element-wise: unary.c, unary_backward.c, binary.c, select.c, bias.c, prelu.c */
gb_status gb_ref_unary(const gb_ref_call *call);          /* the 19 forward kinds */
gb_status gb_ref_unary_backward(const gb_ref_call *call); /* the 12 gradients */
gb_status gb_ref_binary(const gb_ref_call *call);         /* arithmetic, GreaterEqual */
gb_status gb_ref_select(const gb_ref_call *call);
gb_status gb_ref_bias_add(const gb_ref_call *call);
gb_status gb_ref_bias_add_backward(const gb_ref_call *call);
gb_status gb_ref_prelu(const gb_ref_call *call);
gb_status gb_ref_prelu_backward(const gb_ref_call *call);

/* Rows: softmax.c, batch_norm.c, layer_norm.c */
gb_status gb_ref_softmax(const gb_ref_call *call);          /* SoftMax, LogSoftmax */
gb_status gb_ref_softmax_backward(const gb_ref_call *call); /* of both */
gb_status gb_ref_batch_norm_inference(const gb_ref_call *call);
gb_status gb_ref_batch_norm_training(const gb_ref_call *call);
gb_status gb_ref_batch_norm_backward(const gb_ref_call *call);
gb_status gb_ref_layer_norm(const gb_ref_call *call);
gb_status gb_ref_layer_norm_backward(const gb_ref_call *call);
gb_status gb_ref_group_norm(const gb_ref_call *call);
gb_status gb_ref_rms_norm(const gb_ref_call *call);

/* Conversion: quantize.c, copy.c, dropout.c */
gb_status gb_ref_quantize(const gb_ref_call *call);   /* static and dynamic */
gb_status gb_ref_dequantize(const gb_ref_call *call); /* static and dynamic */
gb_status gb_ref_copy(const gb_ref_call *call);       /* TypeCast, Reorder */
gb_status gb_ref_dropout(const gb_ref_call *call);
gb_status gb_ref_end(const gb_ref_call *call);

/* Contractions, windows, reductions and data movement */
gb_status gb_ref_matmul(const gb_ref_call *call);
gb_status gb_ref_convolution(const gb_ref_call *call);
gb_status gb_ref_convolution_backward_data(const gb_ref_call *call);
gb_status gb_ref_convolution_backward_weights(const gb_ref_call *call);
gb_status gb_ref_conv_transpose(const gb_ref_call *call);
gb_status gb_ref_conv_transpose_backward_data(const gb_ref_call *call);
gb_status gb_ref_conv_transpose_backward_weights(const gb_ref_call *call);
gb_status gb_ref_pool(const gb_ref_call *call);          /* AvgPool, MaxPool */
gb_status gb_ref_pool_backward(const gb_ref_call *call); /* of both */
gb_status gb_ref_interpolate(const gb_ref_call *call);
gb_status gb_ref_interpolate_backward(const gb_ref_call *call);
gb_status gb_ref_reduce(const gb_ref_call *call); /* the 7 reductions */
gb_status gb_ref_concat(const gb_ref_call *call);
gb_status gb_ref_reshape(const gb_ref_call *call);
gb_status gb_ref_transpose(const gb_ref_call *call);
gb_status gb_ref_gen_index(const gb_ref_call *call);

#endif
