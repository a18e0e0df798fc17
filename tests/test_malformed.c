/* Malformed graph files: each is refused with a message that says what is wrong. The files and a
 * fragment of the message each must give are in tests/malformed/. */
#include <criterion/criterion.h>
#include <graphbench/graphbench.h>
#include <stdio.h>
#include <string.h>

static void check_refused(const char *file, const char *fragment)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/malformed/%s", GB_TEST_DATA, file);
    gb_graph *graph = NULL;
    gb_status status = gb_graph_load_json(&graph, path, NULL, NULL);
    cr_expect_neq(status, GB_SUCCESS, "%s was accepted", file);
    cr_expect_null(graph, "%s: a failed load must not touch its result", file);
    cr_expect(strstr(gb_last_error(), fragment), "%s: the message is\n  %s\nwithout\n  %s", file,
            gb_last_error(), fragment);
    cr_expect(strstr(gb_last_error(), file), "%s: the message does not name the file: %s", file,
            gb_last_error());
}

Test(malformed, every_file_is_refused_with_its_message)
{
    FILE *table = fopen(GB_TEST_DATA "/malformed/expected.tsv", "r");
    cr_assert_not_null(table);
    char line[512];
    int count = 0;
    while (fgets(line, sizeof line, table)) {
        line[strcspn(line, "\n")] = '\0';
        char *tab = strchr(line, '\t');
        cr_assert_not_null(tab, "expected.tsv: no tab in: %s", line);
        *tab = '\0';
        check_refused(line, tab + 1);
        count++;
    }
    fclose(table);
    cr_assert_geq(count, 45);
}

/* No prefix of a graph may be accepted or do harm. */
Test(malformed, every_truncation_is_refused)
{
    static const char text[] =
            "{\"version\": \"3.14.0\", \"graph\": [{\"id\": 7, \"kind\": \"Elu\", \"attrs\": "
            "{\"alpha\": {\"type\": \"f32\", \"value\": -inf}}, \"inputs\": [{\"id\": 0, "
            "\"dtype\": \"f32\", \"shape\": [2], \"stride\": [1]}], \"outputs\": [{\"id\": 1, "
            "\"dtype\": \"f32\", \"shape\": [-9223372036854775808]}]}]}";
    gb_graph *graph = NULL;
    cr_assert_eq(gb_graph_parse_json(&graph, text, strlen(text), "whole", NULL, NULL), GB_SUCCESS,
            "%s", gb_last_error());
    gb_graph_destroy(graph);
    for (size_t length = 0; length < strlen(text); length++) {
        cr_expect_neq(gb_graph_parse_json(&graph, text, length, "part", NULL, NULL), GB_SUCCESS,
                "%zu bytes were accepted", length);
    }
}

/* Single wrong bytes must not crash; whether they are accepted depends on where they are. */
Test(malformed, changed_bytes_do_no_harm)
{
    static const char bytes[] = {
            '\0', '"', '{', '}', '[', ']', ',', ':', '-', '9', '\\', '\'', 'x'};
    static const char original[] =
            "{\"graph\": [{\"id\": 7, \"kind\": \"ReLU\", \"inputs\": [{\"id\": 0, \"dtype\": "
            "\"f32\", \"shape\": [2]}], \"outputs\": [{\"id\": 1, \"dtype\": \"f32\", \"shape\": "
            "[2], \"stride\": [1]}]}]}";
    for (size_t at = 0; at < sizeof original - 1; at++) {
        for (size_t b = 0; b < sizeof bytes; b++) {
            char text[sizeof original];
            memcpy(text, original, sizeof text);
            text[at] = bytes[b];
            gb_graph *graph = NULL;
            gb_graph_parse_json(&graph, text, sizeof text - 1, "changed", NULL, NULL);
            gb_graph_destroy(graph);
        }
    }
}
