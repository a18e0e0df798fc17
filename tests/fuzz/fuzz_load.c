/* Graphs from files, JSON or text, run as far as they are small: bytes as in a file, after one byte
 * that chooses how they run. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    gb_graph *graph = NULL;
    const char *text = (const char *)data + 1;
    const fuzz_run run = {.policy = data[0] & 1 ? GB_POLICY_DEBUG : GB_POLICY_FUSION,
            .threads = data[0] & 2 ? 2 : 1,
            .any = data[0] & 4,
            .seed = data[0] >> 3};
    gb_status status =
            text[0] == 'g' ? gb_graph_parse_text(&graph, text, size - 1, "fuzz.gbt")
                           : gb_graph_parse_json(&graph, text, size - 1, "fuzz.json", NULL, NULL);
    if (!fuzz_succeeded(status, "reading the graph"))
        return 0;
    fuzz_run_graph(graph, &run);
    gb_graph_destroy(graph);
    return 0;
}
