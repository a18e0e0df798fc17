/* The list of fusion patterns. */
#include "fusion/pattern_nodes.h"

const gb_pattern gb_patterns[] = {
        {"gated_mlp_swish", 22.05F, &gb_root_gated_mlp_swish},
        {"gated_mlp", 22.0F, &gb_root_gated_mlp},
        {"attention_gpt", 22.0F, &gb_root_attention_gpt},
        {"attention_gqa", 21.1F, &gb_root_attention_gqa},
        {"attention_backward", 21.0F, &gb_root_attention_backward},
        {"attention", 21.0F, &gb_root_attention},
        {"attention_mha", 21.0F, &gb_root_attention_mha},
        {"attention_mqa", 21.0F, &gb_root_attention_mqa},
        {"binary_matmul_binary", 19.5F, &gb_root_binary_matmul},
        {"conv_transpose_post_ops", 10.4F, &gb_root_conv_transpose},
        {"pool_post_ops", 9.9F, &gb_root_pool},
        {"convolution_post_ops", 9.8F, &gb_root_convolution},
        {"batch_norm_relu", 8.8F, &gb_root_batch_norm},
        {"matmul_post_ops", 8.8F, &gb_root_matmul},
        {"reduction_post_ops", 8.4F, &gb_root_reduction},
        {"interpolate_post_ops", 8.4F, &gb_root_interpolate},
        {"group_norm_post_ops", 8.4F, &gb_root_group_norm},
        {"binary_post_ops", 8.3F, &gb_root_binary},
        {"softmax_post_ops", 8.2F, &gb_root_softmax},
        {"layer_norm_post_ops", 8.2F, &gb_root_layer_norm},
        {"unary_post_ops", 8.2F, &gb_root_unary},
        {"shuffle", 8.2F, &gb_root_shuffle},
        {NULL, 0, NULL},
};
