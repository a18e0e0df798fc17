/* Matrix products and attention. */
#include "map.h"

#include <math.h>

static uint32_t matmul(br_builder *b, uint32_t n_inputs, const uint32_t *inputs, bool transpose_a,
        bool transpose_b, uint32_t out)
{
    br_op *op = br_emit(b, GB_OP_MATMUL, n_inputs, inputs, 1, &out);
    br_set_bool(b, op, GB_ATTR_TRANSPOSE_A, transpose_a);
    br_set_bool(b, op, GB_ATTR_TRANSPOSE_B, transpose_b);
    return out;
}

static uint32_t product(br_builder *b, uint32_t a, uint32_t c, bool transpose_a, bool transpose_b,
        gb_data_type type, int ndims, const int64_t *dims)
{
    const uint32_t inputs[] = {a, c};
    return matmul(b, 2, inputs, transpose_a, transpose_b, br_wire_new(b, type, ndims, dims));
}

bool br_map_product(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t inputs[2];
    bool transpose_a, transpose_b;
    const char *right = row->value == 2 ? "mat2" : "other";
    if (!br_arg_factor(b, node, "self", &inputs[0], &transpose_a) ||
            !br_arg_factor(b, node, right, &inputs[1], &transpose_b))
        return false;
    matmul(b, 2, inputs, transpose_a, transpose_b, br_output_wire(b, node, 0));
    return true;
}

bool br_map_linear(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t inputs[3];
    bool transposed;
    (void)row;
    if (!br_arg_wire(b, node, "input", &inputs[0]) ||
            !br_arg_factor(b, node, "weight", &inputs[1], &transposed) ||
            !br_arg_optional_wire(b, node, "bias", &inputs[2]))
        return false;
    if (br_wire_of(b, inputs[1])->ndims != 2)
        return br_refuse(b, "weights that are not a matrix");
    matmul(b, inputs[2] == BR_NONE ? 2 : 3, inputs, false, !transposed, br_output_wire(b, node, 0));
    return true;
}

/* beta self + alpha (a b) */
bool br_map_addmm(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t inputs[3];
    bool transpose_a, transpose_b, is_batch = row->value == 3;
    double alpha, beta;
    if (!br_arg_float(b, node, "alpha", 1, &alpha) || !br_arg_float(b, node, "beta", 1, &beta) ||
            !br_arg_factor(b, node, is_batch ? "batch1" : "mat1", &inputs[0], &transpose_a) ||
            !br_arg_factor(b, node, is_batch ? "batch2" : "mat2", &inputs[1], &transpose_b) ||
            !br_arg_operand(b, node, "self", &inputs[2]))
        return false;
    br_wire bias = *br_wire_of(b, inputs[2]);
    if (bias.type != GB_F32 && (alpha != 1 || (beta != 1 && beta != 0)))
        return br_refuse(b, "factors that would round twice");
    uint32_t out = br_output_wire(b, node, 0);
    br_wire result = *br_wire_of(b, out);
    if (alpha == 1 && beta == 0) {
        matmul(b, 2, inputs, transpose_a, transpose_b, out);
        return true;
    }
    bool is_row = bias.ndims == 1 && bias.dims[0] == result.dims[result.ndims - 1];
    if (alpha == 1 && beta == 1 && is_row) {
        matmul(b, 3, inputs, transpose_a, transpose_b, out);
        return true;
    }
    uint32_t sum = product(b, inputs[0], inputs[1], transpose_a, transpose_b, result.type,
            result.ndims, result.dims);
    if (alpha != 1)
        sum = br_binary(b, GB_OP_MULTIPLY, sum, br_scalar(b, alpha),
                beta == 0 ? out : br_wire_like(b, sum, result.type));
    if (beta == 0)
        return true;
    uint32_t added = inputs[2];
    if (beta != 1)
        added = br_binary(
                b, GB_OP_MULTIPLY, added, br_scalar(b, beta), br_wire_like(b, added, bias.type));
    br_binary(b, GB_OP_ADD, sum, added, out);
    return true;
}

/* ---- attention ---- */

typedef struct attention {
    uint32_t query, key, value, mask; /* mask BR_NONE: none */
    bool is_causal, mask_is_boolean;
    double scale;
    gb_data_type type;
    int ndims;
    int64_t scores[GB_MAX_NDIMS]; /* dims */
    int64_t groups;               /* query heads to a head of keys and values */
} attention;

static bool read_mask(br_builder *b, const br_node *node, attention *a)
{
    if (!br_has_arg(node, "attn_mask")) {
        a->mask = BR_NONE;
        return true;
    }
    if (!br_arg_operand(b, node, "attn_mask", &a->mask))
        return false;
    a->mask_is_boolean = br_wire_of(b, a->mask)->type == GB_BOOLEAN;
    if (!a->mask_is_boolean)
        a->mask = br_cast(b, a->mask, GB_F32);
    br_wire mask = *br_wire_of(b, a->mask);
    if (a->groups > 1) {
        /* One more axis, behind that of the heads, which all share the mask. */
        if (mask.ndims > 2 && (mask.ndims != 4 || mask.dims[1] != 1))
            return br_refuse(b, "heads have masks of their own and share keys");
        const int64_t dims[] = {mask.dims[0], 1, 1, mask.dims[2], mask.dims[3]};
        if (mask.ndims == 4)
            a->mask = br_reshape(b, a->mask, 5, dims, BR_NONE);
    }
    return true;
}

/* Query heads that share keys: keys and values get an axis of 1, queries one of `groups`. */
static bool share_keys(br_builder *b, attention *a)
{
    br_wire q = *br_wire_of(b, a->query), k = *br_wire_of(b, a->key), v = *br_wire_of(b, a->value);
    if (q.ndims != 4 || k.ndims != 4 || v.ndims != 4 || k.dims[1] == 0 ||
            q.dims[1] % k.dims[1] != 0 || v.dims[1] != k.dims[1])
        return br_refuse(b, "heads that do not divide");
    a->groups = q.dims[1] / k.dims[1];
    if (a->groups == 1)
        return true;
    const int64_t query[] = {q.dims[0], k.dims[1], a->groups, q.dims[2], q.dims[3]};
    const int64_t key[] = {k.dims[0], k.dims[1], 1, k.dims[2], k.dims[3]};
    const int64_t value[] = {v.dims[0], v.dims[1], 1, v.dims[2], v.dims[3]};
    a->query = br_reshape(b, a->query, 5, query, BR_NONE);
    a->key = br_reshape(b, a->key, 5, key, BR_NONE);
    a->value = br_reshape(b, a->value, 5, value, BR_NONE);
    return true;
}

static bool read_attention(br_builder *b, const br_node *node, attention *a)
{
    double dropout;
    bool shares;
    *a = (attention){.groups = 1, .mask = BR_NONE};
    if (!br_arg_wire(b, node, "query", &a->query) || !br_arg_wire(b, node, "key", &a->key) ||
            !br_arg_wire(b, node, "value", &a->value) ||
            !br_arg_float(b, node, "dropout_p", 0, &dropout) ||
            !br_arg_bool(b, node, "is_causal", false, &a->is_causal) ||
            !br_arg_bool(b, node, "enable_gqa", false, &shares))
        return false;
    if (dropout != 0)
        return br_refuse(b, "random numbers are the framework's");
    br_wire q = *br_wire_of(b, a->query);
    a->type = q.type;
    if (q.ndims < 3 || q.ndims != br_wire_of(b, a->key)->ndims ||
            q.ndims != br_wire_of(b, a->value)->ndims)
        return br_refuse(b, "queries, keys and values of other ranks");
    if (!br_arg_float(b, node, "scale", 1 / sqrt((double)q.dims[q.ndims - 1]), &a->scale) ||
            (shares && !share_keys(b, a)) || !read_mask(b, node, a))
        return false;
    q = *br_wire_of(b, a->query);
    a->ndims = q.ndims;
    for (int d = 0; d < q.ndims - 1; d++)
        a->scores[d] = q.dims[d];
    const br_wire *key = br_wire_of(b, a->key);
    a->scores[q.ndims - 1] = key->dims[key->ndims - 2];
    return true;
}

static uint32_t score_wire(br_builder *b, const attention *a)
{
    return br_wire_new(b, GB_F32, a->ndims, a->scores);
}

/* Scores where the mask allows them, else nothing. */
static uint32_t only_where(br_builder *b, const attention *a, uint32_t allowed, uint32_t s)
{
    const uint32_t inputs[] = {allowed, s, br_scalar(b, -(double)INFINITY)};
    uint32_t out = score_wire(b, a);
    br_emit(b, GB_OP_SELECT, 3, inputs, 1, &out);
    return out;
}

/* scale (query key^T), and the masks. */
static uint32_t scores(br_builder *b, const attention *a)
{
    uint32_t s = product(b, a->query, a->key, false, true, GB_F32, a->ndims, a->scores);
    s = br_binary(b, GB_OP_MULTIPLY, s, br_scalar(b, a->scale), score_wire(b, a));
    if (a->mask != BR_NONE && !a->mask_is_boolean)
        s = br_binary(b, GB_OP_ADD, s, a->mask, score_wire(b, a));
    else if (a->mask != BR_NONE)
        s = only_where(b, a, a->mask, s);
    if (a->is_causal) {
        uint32_t row = br_wire_new(b, GB_S32, a->ndims, a->scores);
        uint32_t column = br_wire_new(b, GB_S32, a->ndims, a->scores);
        const int64_t axes[] = {a->ndims - 2, a->ndims - 1};
        uint32_t allowed = br_wire_new(b, GB_BOOLEAN, a->ndims, a->scores);
        br_set_s64(b, br_emit(b, GB_OP_GEN_INDEX, 1, &s, 1, &row), GB_ATTR_AXIS, 1, &axes[0]);
        br_set_s64(b, br_emit(b, GB_OP_GEN_INDEX, 1, &s, 1, &column), GB_ATTR_AXIS, 1, &axes[1]);
        s = only_where(b, a, br_binary(b, GB_OP_GREATER_EQUAL, row, column, allowed), s);
    }
    return s;
}

bool br_map_attention(br_builder *b, const br_node *node, const br_row *row)
{
    attention a;
    (void)row;
    if (!read_attention(b, node, &a))
        return false;
    bool keeps = br_output_is_read(b, node, 1);
    if (keeps && a.groups > 1)
        return br_refuse(b, "heads share keys in training");
    uint32_t outputs[2], s = scores(b, &a);
    int64_t sums[GB_MAX_NDIMS];
    for (int d = 0; d < a.ndims; d++)
        sums[d] = d == a.ndims - 1 ? 1 : a.scores[d];
    outputs[0] = br_wire_new(b, a.type, a.ndims, a.scores);
    if (keeps)
        outputs[1] = br_wire_new(b, GB_F32, a.ndims, sums);
    br_op *op = br_emit(b, GB_OP_SOFTMAX, 1, &s, keeps ? 2 : 1, outputs);
    const int64_t axis = a.ndims - 1;
    br_set_s64(b, op, GB_ATTR_AXIS, 1, &axis);
    if (a.mask != BR_NONE)
        br_set_text(op, GB_ATTR_MODE, "inf_as_zero");
    const uint32_t inputs[] = {outputs[0], a.value};
    if (a.groups == 1) {
        matmul(b, 2, inputs, false, false, br_output_wire(b, node, 0));
    } else {
        br_wire q = *br_wire_of(b, a.query), v = *br_wire_of(b, a.value);
        int64_t dims[] = {q.dims[0], q.dims[1], q.dims[2], q.dims[3], v.dims[4]};
        uint32_t made = product(b, outputs[0], a.value, false, false, a.type, 5, dims);
        uint32_t out = br_output_wire(b, node, 0);
        br_wire shape = *br_wire_of(b, out);
        br_reshape(b, made, shape.ndims, shape.dims, out);
    }
    if (keeps)
        br_reshape(b, outputs[1], a.ndims - 1, sums, br_output_wire(b, node, 1));
    return !b->reason;
}

/* Gradients of queries, keys and values, with the scores computed again. */
bool br_map_attention_backward(br_builder *b, const br_node *node, const br_row *row)
{
    attention a;
    uint32_t gradient, result, sums;
    (void)row;
    if (!read_attention(b, node, &a) || !br_arg_wire(b, node, "grad_out", &gradient) ||
            !br_arg_wire(b, node, "out", &result) || !br_arg_wire(b, node, "logsumexp", &sums))
        return false;
    if (br_wire_of(b, sums)->type != GB_F32)
        return br_refuse(b, "sums that are not f32");
    for (uint32_t i = 0; i < 3; i++)
        if (!br_output(b, node, i))
            return br_refuse(b, "an output is missing");
    int64_t rows[GB_MAX_NDIMS];
    for (int d = 0; d < a.ndims; d++)
        rows[d] = d == a.ndims - 1 ? 1 : a.scores[d];
    sums = br_reshape(b, sums, a.ndims, rows, BR_NONE);
    uint32_t s = scores(b, &a);
    uint32_t p = br_binary(b, GB_OP_SUBTRACT, s, sums, score_wire(b, &a));
    p = br_unary(b, GB_OP_EXP, p, score_wire(b, &a));
    const uint32_t value_inputs[] = {br_cast(b, p, a.type), gradient};
    matmul(b, 2, value_inputs, true, false, br_output_wire(b, node, 2));
    uint32_t dp = product(b, gradient, a.value, false, true, GB_F32, a.ndims, a.scores);
    uint32_t both = br_binary(b, GB_OP_MULTIPLY, result, gradient, br_wire_like(b, result, GB_F32));
    uint32_t d = br_unary(b, GB_OP_REDUCE_SUM, both, br_wire_new(b, GB_F32, a.ndims, rows));
    const int64_t axis = a.ndims - 1;
    br_set_s64(b, &b->ops[b->n_ops - 1], GB_ATTR_AXES, 1, &axis);
    br_set_bool(b, &b->ops[b->n_ops - 1], GB_ATTR_KEEP_DIMS, true);
    uint32_t ds = br_binary(b, GB_OP_SUBTRACT, dp, d, score_wire(b, &a));
    ds = br_binary(b, GB_OP_MULTIPLY, p, ds, score_wire(b, &a));
    ds = br_binary(b, GB_OP_MULTIPLY, ds, br_scalar(b, a.scale), score_wire(b, &a));
    ds = br_cast(b, ds, a.type);
    const uint32_t query_inputs[] = {ds, a.key}, key_inputs[] = {ds, a.query};
    matmul(b, 2, query_inputs, false, false, br_output_wire(b, node, 0));
    matmul(b, 2, key_inputs, true, false, br_output_wire(b, node, 1));
    return !b->reason;
}
