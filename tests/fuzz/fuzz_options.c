/* Batch files and options: any bytes as the words of a batch file. Options set the settings; where
 * a case would run, a small graph is rewritten with every combination that they ask for (up to a
 * limit), and the line that reproduces it must give the same settings. */
#include "cli/case/batch.h"
#include "cli/case/case.h"
#include "cli/options/combos.h"
#include "cli/options/message.h"
#include "cli/options/options.h"
#include "fuzz.h"

#include <string.h>

enum { MOST_COMBINATIONS = 6, MOST_WORDS = 64 };

static const char graph_text[] =
        "graph engine=cpu fpmath=strict\n"
        "0: %3:f32:2x4x6x6 = Convolution(%0:f32:2x3x8x8, %1:f32:4x3x3x3:constant) "
        "strides=[1,1] pads_begin=[0,0] pads_end=[0,0] dilations=[1,1] "
        "data_format=\"NCX\" weights_format=\"OIX\"\n"
        "1: %4:f32:2x4x6x6 = Add(%3, %2:f32:1x4x1x1)\n"
        "2: %5:f32:2x4x6x6 = ReLU(%4)\n"
        "3: %6:f32:2x4x6x6 = SoftMax(%5) axis=1\n";

static void set_words(gb_settings *settings, const gb_words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        const gb_option *option;
        const char *value;
        gb_status status = gb_cli_option_find(words->items[i].text, &option, &value);
        fuzz_check(status == GB_SUCCESS, "'%s' of a reproducer is no option", words->items[i].text);
        if (option->action == ACTION_NONE && option->take) {
            status = gb_cli_option_set(
                    settings, option, !value && option->value_optional ? "1" : value);
            fuzz_check(status == GB_SUCCESS, "'%s' of a reproducer: %s", words->items[i].text,
                    gb_cli_failure());
        }
    }
}

/* Words that a shell would read as they are. */
static bool is_plain(const char *text)
{
    return !text[strcspn(text, "'\"\\#$`*?&|;<>()!~[]{}")];
}

/* The reproducer of a combination, taken as options, has itself as its reproducer. */
static void check_repro(const gb_settings *settings, const gb_alternative *const choice[AXIS_COUNT])
{
    gb_text repro = {0}, again = {0};
    gb_cli_write_repro(settings, choice, "case.json", &repro);
    if (is_plain(gb_cli_text_get(&repro))) {
        gb_settings copy;
        gb_words words;
        gb_combo combo = {0};
        const gb_alternative *chosen[AXIS_COUNT];
        gb_cli_settings_init(&copy);
        gb_cli_words_split(gb_cli_text_get(&repro), repro.length, &words);
        set_words(&copy, &words);
        gb_cli_combo_get(&copy, &combo, chosen);
        gb_cli_write_repro(&copy, chosen, "case.json", &again);
        fuzz_check(strcmp(gb_cli_text_get(&repro), gb_cli_text_get(&again)) == 0,
                "the reproducer\n%s\ngives\n%s", gb_cli_text_get(&repro), gb_cli_text_get(&again));
        fuzz_check(!gb_cli_combo_next(&copy, &combo), "the reproducer %s has several cases",
                gb_cli_text_get(&repro));
        gb_cli_words_free(&words);
        gb_cli_settings_free(&copy);
    }
    gb_cli_text_free(&repro);
    gb_cli_text_free(&again);
}

static void run_cases(const gb_settings *settings)
{
    gb_combo combo = {0};
    int n = 0;
    do {
        gb_case test = {.file = "case.json", .path = "case.json"};
        gb_cli_combo_get(settings, &combo, test.choice);
        check_repro(settings, test.choice);
        gb_status status =
                gb_graph_parse_text(&test.graph, graph_text, sizeof graph_text - 1, "case.gbt");
        fuzz_check(status == GB_SUCCESS, "%s", gb_last_error());
        status = gb_cli_case_rewrite(&test);
        fuzz_check(status == GB_SUCCESS || gb_cli_failure()[0], "a failure without a message");
        gb_cli_case_unload(&test);
    } while (++n < MOST_COMBINATIONS && gb_cli_combo_next(settings, &combo));
}

static void interpret(gb_settings *settings, const char *word)
{
    const gb_option *option;
    const char *value;
    if (gb_cli_option_find(word, &option, &value) != GB_SUCCESS) {
        fuzz_check(gb_cli_failure()[0], "'%s' is refused without a message", word);
        return;
    }
    if (option->action == ACTION_CASE)
        run_cases(settings);
    if (option->action == ACTION_RESET)
        gb_cli_settings_reset(settings);
    if (option->action != ACTION_NONE || !option->take)
        return;
    if (gb_cli_option_set(settings, option, !value && option->value_optional ? "1" : value) !=
            GB_SUCCESS)
        fuzz_check(gb_cli_failure()[0], "'%s' is refused without a message", word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gb_settings settings;
    gb_words words;
    gb_cli_settings_init(&settings);
    gb_cli_words_split((const char *)data, size, &words);
    for (size_t i = 0; i < words.count && i < MOST_WORDS; i++)
        interpret(&settings, words.items[i].text);
    run_cases(&settings);
    gb_cli_words_free(&words);
    gb_cli_settings_free(&settings);
    return 0;
}
