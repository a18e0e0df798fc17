/* The JSON reader: any bytes are refused with a message, or make a graph that can be saved and read
 * again. */
#include "fuzz.h"

static void note(void *context, const char *message)
{
    fuzz_check(message && *message, "a note without text");
    ++*(int *)context;
}

static gb_status parse(gb_graph **graph, const char *text, size_t length)
{
    int notes = 0;
    return gb_graph_parse_json(graph, text, length, "fuzz.json", note, &notes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gb_graph *graph = NULL;
    if (!fuzz_succeeded(parse(&graph, (const char *)data, size), "gb_graph_parse_json")) {
        fuzz_check(!graph, "a graph came with a failure");
        return 0;
    }
    fuzz_check_round_trip(graph, gb_graph_save_json, parse);
    gb_graph_destroy(graph);
    return 0;
}
