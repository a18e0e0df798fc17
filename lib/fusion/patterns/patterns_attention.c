/* Attention: forward with scale, masks, soft cap and dropout, the grouped-query and framework
 * forms, and backward. */
#include "fusion/patterns/pattern_nodes.h"

NODE(matmul, KINDS(GB_OP_MATMUL));
NODE(scale, KINDS(GB_OP_MULTIPLY, GB_OP_DIVIDE));
NODE(product, KINDS(GB_OP_MULTIPLY));
NODE(tanh_op, KINDS(GB_OP_TANH));
NODE(softmax, KINDS(GB_OP_SOFTMAX));
NODE(dropout, KINDS(GB_OP_DROPOUT), .accept = gb_accept_at_0);
NODE(reshape, KINDS(GB_OP_STATIC_RESHAPE));
NODE(transpose, KINDS(GB_OP_STATIC_TRANSPOSE));
NODE(reorder, KINDS(GB_OP_REORDER));
NODE(copy, KINDS(GB_OP_REORDER, GB_OP_STATIC_RESHAPE));
OPTIONAL(maybe_scale, &scale);
OPTIONAL(maybe_dropout, &dropout);
OPTIONAL(maybe_copy, &copy);
SEQUENCE(to_heads_last, &transpose, &maybe_copy);
const gb_pattern_node gb_node_maybe_heads_last = {
        .form = GB_PATTERN_OPTIONAL, CHILDREN(&to_heads_last)};

/* Masks: an implicit causal one compares row and column indices; explicit ones add, or select a
 * fill value. */
NODE(index_op, KINDS(GB_OP_GEN_INDEX));
NODE(shift_up, KINDS(GB_OP_ADD), .sides = {SIDE(0, &index_op)});
NODE(shift_down, KINDS(GB_OP_SUBTRACT), .sides = {SIDE(0, &shift_up)});
ALTERNATIVE(row_index, &index_op, &shift_down);
NODE(is_visible, KINDS(GB_OP_GREATER_EQUAL), .sides = {SIDE(0, &row_index), SIDE(1, &index_op)});
NODE(implicit_mask, KINDS(GB_OP_SELECT), .accept = gb_accept_branch, .shared = true,
        .sides = {SIDE(0, &is_visible)});
FORK(implicit_mask_fork, &implicit_mask);
NODE(mask_add, KINDS(GB_OP_ADD), .sides = {MAYBE_SIDE(GB_OTHER_INPUT, &reshape)});
NODE(mask_select, KINDS(GB_OP_SELECT), .accept = gb_accept_branch);
SEQUENCE(soft_cap, &tanh_op, &product);
OPTIONAL(maybe_soft_cap, &soft_cap);
OPTIONAL(maybe_implicit_mask, &implicit_mask_fork);
OPTIONAL(maybe_mask_add, &mask_add);
OPTIONAL(maybe_mask_select, &mask_select);
const gb_pattern_node gb_node_scores = {.form = GB_PATTERN_SEQUENCE,
        CHILDREN(&maybe_scale, &maybe_soft_cap, &maybe_implicit_mask, &maybe_mask_add,
                &maybe_mask_select)};

NODE(matmul_values, KINDS(GB_OP_MATMUL), .accept = gb_accept_at_0);
ROOT(gb_root_attention, &matmul, &gb_node_scores, &softmax, &maybe_dropout, &gb_node_maybe_cast,
        &matmul_values, &gb_node_maybe_heads_last);

/* GPT: the mask is selected before the scale. */
SEQUENCE(two_casts, &gb_node_maybe_cast, &gb_node_maybe_cast);
ROOT(gb_root_attention_gpt, &matmul, &mask_select, &scale, &mask_add, &softmax, &two_casts, &matmul,
        &transpose, &copy);

/* Grouped queries: operands are reshaped to five dims. */
NODE(matmul_grouped, KINDS(GB_OP_MATMUL), .sides = {SIDE(0, &reshape), SIDE(1, &reshape)});
NODE(matmul_grouped_values, KINDS(GB_OP_MATMUL), .accept = gb_accept_at_0,
        .sides = {SIDE(1, &reshape)});
ROOT(gb_root_attention_gqa, &matmul_grouped, &gb_node_scores, &softmax, &maybe_dropout,
        &gb_node_maybe_cast, &matmul_grouped_values, &reshape, &gb_node_maybe_heads_last);

/* JAX forms: the probabilities are the second operand. */
NODE(matmul_by, KINDS(GB_OP_MATMUL), .accept = gb_accept_at_1);
SEQUENCE(maybe_transposed_copy, &transpose, &copy);
OPTIONAL(maybe_tail, &maybe_transposed_copy);
ROOT(gb_root_attention_mha, &matmul, &scale, &mask_add, &softmax, &transpose, &reorder, &matmul_by,
        &maybe_tail);
ROOT(gb_root_attention_mqa, &matmul, &reshape, &transpose, &mask_add, &softmax, &transpose,
        &reshape, &matmul_by);

/* Backward: probabilities from the stored statistics, then
 * dS = P (dP - rowsum(O dO)), scaled, and three products; GQA sums dK and dV over the heads of a
 * group. */
NODE(minus_statistics, KINDS(GB_OP_SUBTRACT), .accept = gb_accept_at_0);
NODE(exponential, KINDS(GB_OP_EXP));
NODE(sum, KINDS(GB_OP_REDUCE_SUM));
OPTIONAL(maybe_sum, &sum);
NODE(shared_dropout, KINDS(GB_OP_DROPOUT), .accept = gb_accept_at_0, .shared = true);
NODE(shared_cast, KINDS(GB_OP_TYPE_CAST), .shared = true);
NODE(shared_matmul, KINDS(GB_OP_MATMUL), .shared = true);
SEQUENCE(values_after_dropout, &shared_dropout, &gb_node_maybe_cast, &matmul, &maybe_sum);
SEQUENCE(values_after_cast, &shared_cast, &matmul, &maybe_sum);
SEQUENCE(values_plain, &shared_matmul, &maybe_sum);
ALTERNATIVE(gradient_of_values, &values_after_dropout, &values_after_cast, &values_plain);
NODE(output_product, KINDS(GB_OP_MULTIPLY));
NODE(output_sum, KINDS(GB_OP_REDUCE_SUM), .sides = {SIDE(0, &output_product)});
NODE(dropped_gradient, KINDS(GB_OP_DROPOUT), .sides = {SIDE(0, &matmul)});
ALTERNATIVE(gradient_of_probabilities, &dropped_gradient, &matmul);
NODE(correction, KINDS(GB_OP_SUBTRACT),
        .sides = {SIDE(0, &gradient_of_probabilities), SIDE(1, &output_sum)});
NODE(gradient_of_scores, KINDS(GB_OP_MULTIPLY), .shared = true,
        .sides = {SIDE(GB_OTHER_INPUT, &correction)});
FORK(probabilities, &gradient_of_values, &gradient_of_scores);
NODE(exported, KINDS(GB_OP_END), .shared = true);
OPTIONAL(maybe_exported, &exported);
NODE(shared_scale, KINDS(GB_OP_MULTIPLY, GB_OP_DIVIDE), .shared = true);
FORK(scaled_scores, &maybe_exported, &shared_scale);
SEQUENCE(gradient_of_keys, &shared_matmul, &maybe_sum);
FORK(gradients, &gradient_of_keys, &gradient_of_keys);
ROOT(gb_root_attention_backward, &matmul, &gb_node_scores, &minus_statistics, &exponential,
        &probabilities, &scaled_scores, &gb_node_maybe_cast, &gradients);
