/* Which graph inputs carry the minibatch in dim 0: those that reach a result through ops that pass
 * it on. */
#include "cli/case/rewrite.h"

#include "cli/options/message.h"

#include <graphbench/graphbench_tools.h>
#include <stdlib.h>
#include <string.h>

typedef struct op_view {
    const gb_op *op;
    gb_op_kind kind;
    size_t n_inputs;
} op_view;

static bool is_backward(gb_op_kind kind)
{
    return gb_op_kind_get_traits(kind) & GB_TRAIT_BACKWARD;
}

static int64_t dim0(const gb_logical_tensor *tensor)
{
    return tensor->ndims > 0 ? tensor->dims[0] : 0;
}

/* Of operands that broadcast, those that have the result's dim 0. */
static bool spans_result(const op_view *view, size_t input)
{
    gb_logical_tensor mine, other;
    if (gb_op_get_input(view->op, input, &mine) != GB_SUCCESS)
        return false;
    for (size_t i = 0; i < view->n_inputs; i++) {
        if (gb_op_get_input(view->op, i, &other) != GB_SUCCESS)
            return false;
        if (other.ndims > mine.ndims)
            return false;
        if (other.ndims == mine.ndims && dim0(&other) > dim0(&mine))
            return false;
    }
    return true;
}

static bool has_rank_above(const op_view *view, size_t input, int rank)
{
    gb_logical_tensor tensor;
    return gb_op_get_input(view->op, input, &tensor) == GB_SUCCESS && tensor.ndims > rank;
}

static bool backward_takes(const op_view *view, size_t input)
{
    gb_logical_tensor src, statistics;
    if (input <= 1)
        return true;
    if (view->kind != GB_OP_LAYER_NORM_BACKWARD || input > 3)
        return false;
    return gb_op_get_input(view->op, 0, &src) == GB_SUCCESS &&
           gb_op_get_input(view->op, input, &statistics) == GB_SUCCESS &&
           dim0(&src) == dim0(&statistics);
}

/* Is dim 0 of this operand the minibatch of the op? */
static bool takes_minibatch(const op_view *view, size_t input)
{
    if (gb_op_kind_get_traits(view->kind) & GB_TRAIT_BROADCASTS)
        return spans_result(view, input);
    switch (view->kind) {
    case GB_OP_CONVOLUTION_BACKWARD_DATA:
    case GB_OP_CONVOLUTION_BACKWARD_WEIGHTS:
    case GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS:
        return false;
    case GB_OP_MATMUL:
        return input == 0 || (input == 1 && has_rank_above(view, 1, 2));
    case GB_OP_DYNAMIC_DEQUANTIZE:
        return input == 0 || has_rank_above(view, input, 2);
    case GB_OP_CONCAT:
    case GB_OP_END:
        return true;
    default:
        return is_backward(view->kind) ? backward_takes(view, input) : input == 0;
    }
}

/* Answers by tensor; inputs and intermediates share one table. */
typedef enum answer { ANSWER_OPEN, ANSWER_NO, ANSWER_YES } answer;

typedef struct tensor_answer {
    size_t id;
    answer answer;
} tensor_answer;

typedef struct minibatch_search {
    const gb_graph *graph;
    size_t count;
    tensor_answer *answers; /* owned; sorted by id */
} minibatch_search;

static int compare_answers(const void *a, const void *b)
{
    const tensor_answer *left = a, *right = b;
    return left->id < right->id ? -1 : left->id > right->id;
}

static answer *answer_of(const minibatch_search *search, size_t id)
{
    tensor_answer key = {.id = id};
    tensor_answer *found =
            bsearch(&key, search->answers, search->count, sizeof(key), compare_answers);
    return found ? &found->answer : NULL;
}

/* The last reader decides. */
static gb_status last_reader(
        const minibatch_search *search, size_t id, op_view *view, size_t *input)
{
    size_t count;
    view->op = NULL;
    LIB_TRY(gb_graph_get_consumers(search->graph, id, 0, NULL, &count));
    if (count == 0)
        return GB_SUCCESS;
    const gb_op **readers = gb_cli_realloc(NULL, count, sizeof(gb_op *));
    gb_status status = gb_graph_get_consumers(search->graph, id, count, readers, NULL);
    if (status == GB_SUCCESS)
        view->op = readers[count - 1];
    free(readers);
    if (status != GB_SUCCESS)
        return gb_cli_fail_library(status);
    LIB_TRY(gb_op_get_kind(view->op, &view->kind));
    view->n_inputs = gb_op_get_input_num(view->op);
    for (*input = 0; *input < view->n_inputs; ++*input) {
        gb_logical_tensor tensor;
        LIB_TRY(gb_op_get_input(view->op, *input, &tensor));
        if (tensor.id == id)
            break;
    }
    return GB_SUCCESS;
}

/* Answers for one tensor if what it depends on is answered; *progress tells whether it was. */
static gb_status resolve(const minibatch_search *search, tensor_answer *item, bool *progress)
{
    op_view view;
    size_t input = 0;
    CLI_TRY(last_reader(search, item->id, &view, &input));
    answer result = ANSWER_YES;
    if (view.op && !takes_minibatch(&view, input)) {
        result = ANSWER_NO;
    } else if (view.op && gb_op_get_output_num(view.op) > 0) {
        gb_logical_tensor output;
        LIB_TRY(gb_op_get_output(view.op, 0, &output));
        const answer *of_output = answer_of(search, output.id);
        result = of_output ? *of_output : ANSWER_NO;
    }
    item->answer = result;
    *progress = *progress || result != ANSWER_OPEN;
    return GB_SUCCESS;
}

/* Tensors of a cycle are never answered, and stay out. */
static gb_status resolve_all(const minibatch_search *search)
{
    bool progress = true;
    while (progress) {
        progress = false;
        for (size_t i = search->count; i-- > 0;)
            if (search->answers[i].answer == ANSWER_OPEN)
                CLI_TRY(resolve(search, &search->answers[i], &progress));
    }
    return GB_SUCCESS;
}

static gb_status mb_collect(const minibatch_search *search, gb_minibatch *minibatch)
{
    for (size_t i = 0; i < search->count; i++) {
        bool given;
        gb_logical_tensor tensor;
        size_t id = search->answers[i].id;
        if (search->answers[i].answer != ANSWER_YES)
            continue;
        CLI_TRY(gb_cli_is_given(search->graph, id, &given));
        LIB_TRY(gb_graph_find_tensor(search->graph, id, &tensor));
        if (!given || tensor.ndims < 1)
            continue;
        minibatch->ids =
                gb_cli_realloc(minibatch->ids, minibatch->count + 1, sizeof(*minibatch->ids));
        minibatch->ids[minibatch->count++] = id;
    }
    return GB_SUCCESS;
}

gb_status gb_cli_find_minibatch(const gb_graph *graph, gb_minibatch *minibatch)
{
    minibatch_search search = {.graph = graph, .count = gb_graph_get_tensor_num(graph)};
    search.answers = gb_cli_realloc(NULL, search.count, sizeof(*search.answers));
    gb_status status = GB_SUCCESS;
    for (size_t i = 0; i < search.count && status == GB_SUCCESS; i++) {
        gb_logical_tensor tensor;
        status = gb_graph_get_tensor(graph, i, &tensor);
        search.answers[i] = (tensor_answer){tensor.id, ANSWER_OPEN};
    }
    if (status == GB_SUCCESS) {
        qsort(search.answers, search.count, sizeof(*search.answers), compare_answers);
        status = resolve_all(&search);
    } else {
        gb_cli_fail_library(status);
    }
    if (status == GB_SUCCESS)
        status = mb_collect(&search, minibatch);
    free(search.answers);
    return status;
}
