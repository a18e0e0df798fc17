/* Runs a whole graph: partitions in order, each output the input of what follows. */
#include "executor.h"

enum { MOST_PORTS = 32, MOST_TENSORS = 256 };

typedef struct compiled_part {
    gb_partition *partition;
    gb_compiled_partition *compiled;
    size_t n_inputs, n_outputs;
    const gb_tensor *inputs[MOST_PORTS];
    gb_tensor *outputs[MOST_PORTS];
} compiled_part;

struct executor {
    gb_engine *engine;
    gb_stream *stream;
    size_t n_parts;
    compiled_part *parts;
    gb_tensor *tensors[MOST_TENSORS]; /* by tensor id */
};

/* The tensor of a description, with memory of its own, made when first asked for. */
static gb_tensor *tensor_of(executor *run, const gb_logical_tensor *description)
{
    EXPECT(description->id < MOST_TENSORS);
    gb_tensor **tensor = &run->tensors[description->id];
    if (!*tensor)
        CHECK(gb_tensor_create(tensor, description, run->engine, GB_MEMORY_ALLOCATE));
    return *tensor;
}

/* Inputs have the layout with which they were made, by the caller or by an earlier partition;
 * outputs get the one that compiling settles on. */
static void compile_part(executor *run, compiled_part *part)
{
    gb_logical_tensor in[MOST_PORTS], out[MOST_PORTS];
    const gb_logical_tensor *inputs[MOST_PORTS], *outputs[MOST_PORTS];
    CHECK(gb_partition_get_input_ports(part->partition, MOST_PORTS, in, &part->n_inputs));
    CHECK(gb_partition_get_output_ports(part->partition, MOST_PORTS, out, &part->n_outputs));
    for (size_t i = 0; i < part->n_inputs; i++) {
        EXPECT(in[i].id < MOST_TENSORS);
        if (run->tensors[in[i].id])
            CHECK(gb_tensor_get_logical_tensor(run->tensors[in[i].id], &in[i]));
        part->inputs[i] = tensor_of(run, &in[i]);
        inputs[i] = &in[i];
    }
    for (size_t i = 0; i < part->n_outputs; i++)
        outputs[i] = &out[i];
    CHECK(gb_partition_compile(part->partition, &part->compiled, part->n_inputs, inputs,
            part->n_outputs, outputs, run->engine));
    for (size_t i = 0; i < part->n_outputs; i++) {
        CHECK(gb_compiled_partition_query_logical_tensor(part->compiled, out[i].id, &out[i]));
        part->outputs[i] = tensor_of(run, &out[i]);
    }
}

executor *executor_create(gb_graph *graph)
{
    executor *run = calloc(1, sizeof *run);
    EXPECT(run);
    CHECK(gb_engine_create(&run->engine, GB_ENGINE_CPU, 0));
    CHECK(gb_stream_create(&run->stream, run->engine));
    CHECK(gb_graph_filter(graph, GB_POLICY_FUSION));
    CHECK(gb_graph_get_partitions(graph, 0, NULL, &run->n_parts));
    run->parts = calloc(run->n_parts, sizeof *run->parts);
    gb_partition **partitions = calloc(run->n_parts, sizeof(gb_partition *));
    EXPECT(run->parts && partitions);
    CHECK(gb_graph_get_partitions(graph, run->n_parts, partitions, NULL));
    for (size_t i = 0; i < run->n_parts; i++) {
        run->parts[i].partition = partitions[i];
        compile_part(run, &run->parts[i]);
    }
    free(partitions);
    return run;
}

void executor_destroy(executor *run)
{
    for (size_t i = 0; i < run->n_parts; i++) {
        CHECK(gb_compiled_partition_destroy(run->parts[i].compiled));
        CHECK(gb_partition_destroy(run->parts[i].partition));
    }
    for (size_t i = 0; i < MOST_TENSORS; i++)
        CHECK(gb_tensor_destroy(run->tensors[i]));
    CHECK(gb_stream_destroy(run->stream));
    CHECK(gb_engine_destroy(run->engine));
    free(run->parts);
    free(run);
}

void *executor_data(const executor *run, size_t tensor_id)
{
    void *data;
    EXPECT(tensor_id < MOST_TENSORS && run->tensors[tensor_id]);
    CHECK(gb_tensor_get_data_handle(run->tensors[tensor_id], &data));
    return data;
}

void executor_run(executor *run)
{
    for (size_t i = 0; i < run->n_parts; i++) {
        const compiled_part *part = &run->parts[i];
        CHECK(gb_compiled_partition_execute(part->compiled, run->stream, part->n_inputs,
                part->inputs, part->n_outputs, part->outputs, NULL));
    }
    CHECK(gb_stream_wait(run->stream));
}

void executor_print(const executor *run)
{
    for (size_t i = 0; i < run->n_parts; i++)
        printf("partition %zu: %s, %s\n", i, gb_partition_get_pattern(run->parts[i].partition),
                gb_compiled_partition_get_kernels(run->parts[i].compiled));
}

size_t executor_partitions(const executor *run)
{
    return run->n_parts;
}
