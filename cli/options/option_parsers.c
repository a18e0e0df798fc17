/* How values of options become settings. */
#include "cli/options/option_parsers.h"

#include "cli/options/message.h"
#include "cli/options/perf_template.h"

#include <ctype.h>
#include <errno.h>
#include <graphbench/graphbench_tools.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

static void *field(gb_settings *settings, const gb_option *option)
{
    return (char *)settings + option->offset;
}

static void replace(char **canonical, const char *text)
{
    char *copy = gb_cli_copy(text);
    free(*canonical);
    *canonical = copy;
}

static gb_status bad_value(const char *value, const char *legal)
{
    return gb_cli_fail(GB_INVALID_ARGUMENTS, "\"%.80s\" is not %s", value, legal);
}

static gb_status parse_integer(const char *value, double low, double high, int64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoll(value, &end, 10);
    if (end == value || *end || errno || isspace((unsigned char)value[0]))
        return bad_value(value, "an integer");
    if ((double)*number < low || (double)*number > high)
        return gb_cli_fail(
                GB_INVALID_ARGUMENTS, "%s is not between %.0f and %.0f", value, low, high);
    return GB_SUCCESS;
}

gb_status gb_cli_parse_option_integer(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    int64_t number;
    char text[32];
    CLI_TRY(parse_integer(value, option->low, option->high, &number));
    *(int64_t *)field(settings, option) = number;
    snprintf(text, sizeof(text), "%lld", (long long)number);
    replace(canonical, text);
    return GB_SUCCESS;
}

/* Arguments are read several times, and must mean the same each time. */
static uint32_t random_seed(void)
{
    static uint32_t seed;
    static bool drawn;
    if (!drawn && getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = (uint32_t)time(NULL);
    drawn = true;
    return seed;
}

gb_status gb_cli_take_seed(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu32, random_seed());
    bool draws = strcmp(value, "random") == 0;
    return gb_cli_parse_option_integer(settings, option, draws ? text : value, canonical);
}

gb_status gb_cli_parse_option_bool(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    static const char *const words[] = {"false", "0", "off", "true", "1", "on"};
    size_t i = 0, n = sizeof words / sizeof *words;
    while (i < n && strcasecmp(value, words[i]) != 0)
        i++;
    if (i == n)
        return bad_value(value, "true, false, 1, 0, on or off");
    bool truth = i >= n / 2;
    *(bool *)field(settings, option) = truth;
    replace(canonical, truth ? "true" : "false");
    return GB_SUCCESS;
}

gb_status gb_cli_parse_option_path(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)value;
    /* The settings keep the canonical text, so the path lives as long as they need it. */
    *(const char **)field(settings, option) = *canonical;
    return GB_SUCCESS;
}

gb_status gb_cli_parse_option_budget(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    char *end, text[32];
    double number = strtod(value, &end);
    if (end == value || *end || !isfinite(number))
        return bad_value(value, "a number");
    number = fmin(fmax(number, option->low), option->high);
    *(double *)field(settings, option) = number;
    snprintf(text, sizeof(text), "%g", number);
    replace(canonical, text);
    return GB_SUCCESS;
}

gb_status gb_cli_parse_option_axis(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)canonical;
    gb_axis axis = (gb_axis)option->offset;
    gb_alternatives parsed;
    CLI_TRY(gb_cli_alternatives_parse(axis, value, &parsed));
    gb_cli_alternatives_free(axis, &settings->axes[axis]);
    settings->axes[axis] = parsed;
    return GB_SUCCESS;
}

static bool is_default(const gb_alternatives *alternatives)
{
    for (size_t i = 0; i < alternatives->count; i++)
        if (*alternatives->items[i].text)
            return false;
    return true;
}

/* --dt has two forms, each an axis of its own; they exclude each other until --reset. */
gb_status gb_cli_parse_option_dt(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    if (!*value) {
        for (int axis = AXIS_DT; axis <= AXIS_DT_IDS; axis++) {
            gb_cli_alternatives_free((gb_axis)axis, &settings->axes[axis]);
            gb_cli_alternatives_default((gb_axis)axis, &settings->axes[axis]);
        }
        return GB_SUCCESS;
    }
    gb_axis axis = strchr(value, ':') ? AXIS_DT_IDS : AXIS_DT;
    gb_axis other = axis == AXIS_DT ? AXIS_DT_IDS : AXIS_DT;
    if (!is_default(&settings->axes[other]))
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "TYPE and ID:TYPE exclude each other until --reset (or an empty --dt=)");
    gb_option of_axis = *option;
    of_axis.offset = axis;
    return gb_cli_parse_option_axis(settings, &of_axis, value, canonical);
}

static const struct {
    char letter;
    bool combines;
    unsigned bits;
} modes[] = {
        {'L', false, MODE_LIST},
        {'I', false, MODE_INIT},
        {'R', false, MODE_RUN},
        {'C', true, MODE_CORRECTNESS},
        {'P', true, MODE_PERFORMANCE},
        {'F', true, MODE_PERFORMANCE | MODE_FAST},
};
enum { N_MODES = sizeof(modes) / sizeof(modes[0]) };

gb_status gb_cli_parse_option_mode(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)option;
    unsigned bits = 0;
    bool combines = true;
    for (const char *at = value; *at; at++) {
        size_t i = 0;
        while (i < N_MODES && modes[i].letter != toupper((unsigned char)*at))
            i++;
        if (i == N_MODES)
            return bad_value(value, "made of the letters L, I, R, C, P, F");
        if (modes[i].bits & bits)
            return bad_value(value, "a mode: P and F exclude each other");
        bits |= modes[i].bits;
        combines = combines && modes[i].combines;
    }
    if (!combines && value[1])
        return bad_value(value, "a mode: only C combines, with P or F");
    settings->mode = bits;
    char text[N_MODES + 1], *end = text;
    for (size_t i = 0; i < N_MODES; i++)
        if ((bits & modes[i].bits) == modes[i].bits &&
                !(modes[i].letter == 'P' && bits & MODE_FAST))
            *end++ = modes[i].letter;
    *end = '\0';
    replace(canonical, text);
    return GB_SUCCESS;
}

gb_status gb_cli_parse_option_engine(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)option;
    static const gb_engine_kind kinds[] = {GB_ENGINE_CPU, GB_ENGINE_GPU, GB_ENGINE_TEST};
    size_t length = strcspn(value, ":");
    gb_engine_kind kind = GB_ENGINE_ANY;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *name = gb_engine_kind_name(kinds[i]);
        if (length == strlen(name) && strncmp(value, name, length) == 0)
            kind = kinds[i];
    }
    if (kind == GB_ENGINE_ANY)
        return bad_value(value, "cpu[:INDEX] or gpu[:INDEX]");
    int64_t index = 0;
    if (value[length])
        CLI_TRY(parse_integer(value + length + 1, 0, 1000, &index));
    settings->engine_kind = kind;
    settings->engine_index = index;
    char text[32];
    const char *name = gb_engine_kind_name(kind);
    snprintf(text, sizeof(text), index ? "%s:%lld" : "%s", name, (long long)index);
    if (canonical)
        replace(canonical, text);
    return GB_SUCCESS;
}

/* Index of the value among the words, or -1. */
static int find_word(const char *value, size_t length, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strlen(words[i]) == length && strncmp(words[i], value, length) == 0)
            return i;
    return -1;
}

/* Which of the words of the row the value is. */
static gb_status take_word(const gb_option *option, const char *value, size_t *found)
{
    gb_text legal = {0};
    size_t n = 0;
    for (const char *word = option->words, *next; *word; word = next, n++) {
        size_t length = strcspn(word, " ");
        next = word + length + (word[length] == ' ');
        if (strlen(value) == length && strncmp(value, word, length) == 0) {
            *found = n;
            gb_cli_text_free(&legal);
            return GB_SUCCESS;
        }
        gb_cli_text_add(&legal, "%s%.*s", n == 0 ? "" : *next ? ", " : " or ", (int)length, word);
    }
    bad_value(value, legal.data);
    gb_cli_text_free(&legal);
    return GB_INVALID_ARGUMENTS;
}

gb_status gb_cli_parse_option_policy(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)canonical;
    static const gb_policy choices[] = {GB_POLICY_FUSION, GB_POLICY_DEBUG, GB_POLICY_MAX};
    size_t found;
    CLI_TRY(take_word(option, value, &found));
    settings->policy = choices[found];
    return GB_SUCCESS;
}

gb_status gb_cli_parse_option_fill(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)canonical;
    static const gb_fill choices[] = {
            FILL_EXACT, FILL_NORMAL, FILL_ADVERSARIAL, FILL_EDGES, FILL_NAN, FILL_BITS};
    size_t found;
    CLI_TRY(take_word(option, value, &found));
    settings->fill = choices[found];
    return GB_SUCCESS;
}

gb_status gb_cli_take_reference(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)canonical;
    static const bool choices[] = {false, true};
    size_t found;
    CLI_TRY(take_word(option, value, &found));
    settings->naive = choices[found];
    return GB_SUCCESS;
}

gb_status gb_cli_take_isolate(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)canonical;
    static const char *const others[][2] = {
            {"1", "on"}, {"true", "on"}, {"0", "off"}, {"false", "off"}};
    static const gb_isolate choices[] = {ISOLATE_AUTO, ISOLATE_ON, ISOLATE_OFF};
    size_t found;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(value, others[i][0]) == 0)
            value = others[i][1];
    CLI_TRY(take_word(option, value, &found));
    settings->isolate = choices[found];
    return GB_SUCCESS;
}

gb_status gb_cli_take_isa(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    static const gb_isa_limit choices[] = {
            ISA_MACHINE, ISA_BASELINE, ISA_AVX2, ISA_AVX512, ISA_AMX};
    size_t found;
    CLI_TRY(take_word(option, value, &found));
    gb_isa_limit isa = choices[found];
    if (!settings->in_batch)
        settings->most_isa = isa;
    const gb_isa_limit most = settings->most_isa;
    if (most != ISA_MACHINE && (isa == ISA_MACHINE || isa > most)) {
        isa = most;
        free(*canonical);
        *canonical = gb_cli_copy(gb_cli_isa_word(isa));
    }
    settings->isa = isa;
    return GB_SUCCESS;
}

gb_status gb_cli_take_bytes(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)canonical;
    static const char units[] = "KMG";
    char *end;
    double number = strtod(value, &end);
    const char *unit = end != value && *end ? strchr(units, *end) : NULL;
    bool good = end != value && isfinite(number) && number >= 0 && (!*end || (unit && !end[1]));
    for (const char *u = units; unit && u <= unit; u++)
        number *= 1024;
    if (!good || number > option->high)
        return bad_value(value, "a number of bytes, as 500M or 8G");
    *(double *)field(settings, option) = number;
    return GB_SUCCESS;
}

gb_status gb_cli_take_wildcard(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)canonical;
    static const gb_wildcard choices[] = {WILDCARD_REFUSE, WILDCARD_FILL};
    size_t found;
    CLI_TRY(take_word(option, value, &found));
    settings->wildcard = choices[found];
    return GB_SUCCESS;
}

/* The library knows what it can plan for. It is set again where cases run. */
static bool are_caches(const char *value)
{
    bool good = gb_set_caches(value) == GB_SUCCESS;
    gb_set_caches(NULL);
    return good;
}

gb_status gb_cli_take_caches(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)option;
    bool own = strcmp(value, "machine") == 0;
    if (!own && !are_caches(value))
        return bad_value(value, "machine, or bytes of L1, L2 and L3 as 4096:16384:65536, at least "
                                "4096 of L1 and L2");
    settings->caches = own ? NULL : *canonical; /* which the settings keep */
    return GB_SUCCESS;
}

gb_status gb_cli_take_layouts(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)canonical;
    static const gb_layouts choices[] = {LAYOUTS_ANY, LAYOUTS_STRIDED};
    size_t found;
    CLI_TRY(take_word(option, value, &found));
    settings->layouts = choices[found];
    return GB_SUCCESS;
}

gb_status gb_cli_take_cold_cache(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)canonical;
    static const gb_cold_cache choices[] = {COLD_NONE, COLD_WEIGHTS, COLD_ALL};
    size_t found;
    CLI_TRY(take_word(option, value, &found));
    settings->cold_cache = choices[found];
    return GB_SUCCESS;
}

gb_status gb_cli_take_bf16_products(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)canonical;
    static const gb_bf16_products choices[] = {
            GB_BF16_PRODUCTS_AUTO, GB_BF16_PRODUCTS_DOT, GB_BF16_PRODUCTS_F32};
    size_t found;
    CLI_TRY(take_word(option, value, &found));
    settings->bf16_products = choices[found];
    return GB_SUCCESS;
}

gb_status gb_cli_take_memory_kind(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)canonical;
    static const gb_memory_kind choices[] = {MEMORY_AUTO, MEMORY_USM, MEMORY_SVM, MEMORY_BUFFER};
    size_t found;
    CLI_TRY(take_word(option, value, &found));
    settings->memory_kind = choices[found];
    return GB_SUCCESS;
}

gb_status gb_cli_take_stream_kind(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)canonical;
    static const bool choices[] = {false, true};
    size_t found;
    CLI_TRY(take_word(option, value, &found));
    settings->out_of_order = choices[found];
    return GB_SUCCESS;
}

/* FORMAT[:FILE]; the option alone stands for text. */
gb_status gb_cli_parse_option_explain(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)option;
    static const char *const words[] = {"none", "text", "json", "dot", "1"};
    static const gb_explain formats[] = {
            EXPLAIN_NONE, EXPLAIN_TEXT, EXPLAIN_JSON, EXPLAIN_DOT, EXPLAIN_TEXT};
    size_t length = strcspn(value, ":");
    int found = find_word(value, length, words, 5);
    if (found < 0 || (value[length] && !value[length + 1]))
        return bad_value(value, "text, json, dot or none, with :FILE if wanted");
    settings->explain = formats[found];
    /* The canonical text lives as long as the settings need the path. */
    settings->explain_file = value[length] ? *canonical + length + 1 : NULL;
    return GB_SUCCESS;
}

gb_status gb_cli_parse_option_summary(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)option;
    (void)canonical;
    static const char *const words[] = {"failures", "impl", "impl-csv"};
    static const unsigned bits[] = {SUMMARY_FAILURES, SUMMARY_IMPL, SUMMARY_IMPL};
    unsigned summary = settings->summary;
    for (const char *at = value;; at++) {
        bool off = strncmp(at, "no-", 3) == 0;
        if (off)
            at += 3;
        size_t length = strcspn(at, "+");
        int found = find_word(at, length, words, 3);
        if (found < 0)
            return bad_value(at, "[no-]failures or [no-]impl");
        summary = off ? summary & ~bits[found] : summary | bits[found];
        at += length;
        if (!*at)
            break;
    }
    settings->summary = summary;
    return GB_SUCCESS;
}

/* WORD+...; of all words, none counts as nothing. */
gb_status gb_cli_parse_option_print(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)option;
    (void)canonical;
    static const char *const words[] = {"none", "passes", "program"};
    static const unsigned bits[] = {GB_PASS_NONE, GB_PASS_PRINT, GB_PASS_PROGRAM};
    unsigned print = 0;
    for (const char *at = value;; at++) {
        size_t length = strcspn(at, "+");
        int found = find_word(at, length, words, 3);
        if (found < 0)
            return bad_value(at, "passes, program or none");
        print |= bits[found];
        at += length;
        if (!*at)
            break;
    }
    settings->print = print;
    return GB_SUCCESS;
}

gb_status gb_cli_parse_option_input_dir(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)option;
    (void)canonical;
    for (size_t i = 0; i < settings->n_input_dirs; i++)
        if (strcmp(settings->input_dirs[i], value) == 0)
            return GB_SUCCESS;
    if (settings->n_input_dirs == INPUT_DIR_LIMIT)
        return gb_cli_fail(
                GB_INVALID_ARGUMENTS, "at most %d directories are searched", INPUT_DIR_LIMIT);
    settings->input_dirs[settings->n_input_dirs++] = gb_cli_copy(value);
    return GB_SUCCESS;
}

gb_status gb_cli_parse_option_filter(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)option;
    (void)canonical;
    if (settings->n_filters == FILTER_LIMIT)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "at most %d filters can be given", FILTER_LIMIT);
    settings->filters[settings->n_filters++] = gb_cli_copy(value);
    return GB_SUCCESS;
}

gb_status gb_cli_parse_option_time(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)canonical;
    char *end;
    double seconds = strtod(value, &end);
    if (end != value && *end) {
        double factor = *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : -1;
        seconds = end[1] || factor < 0 ? -1 : seconds * factor;
    }
    if (end == value || !(seconds >= 0 && seconds <= option->high))
        return bad_value(value, "a time such as 90s, 10m or 2h");
    *(double *)field(settings, option) = seconds;
    return GB_SUCCESS;
}

gb_status gb_cli_take_perf_template(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    gb_perf_part part;
    const char *at = gb_cli_perf_template_text(value);
    while (*at)
        CLI_TRY(gb_cli_perf_template_next(&at, &part));
    return gb_cli_parse_option_path(settings, option, value, canonical);
}

gb_status gb_cli_take_percent(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    char *end, text[32];
    double percent = strtod(value, &end);
    bool number = end != value && (!*end || strcmp(end, "%") == 0);
    if (!number || !(percent >= option->low && percent <= option->high))
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "\"%.80s\" is not between %g%% and %g%%", value,
                option->low, option->high);
    *(double *)field(settings, option) = percent / 100;
    snprintf(text, sizeof text, "%g%%", percent);
    replace(canonical, text);
    return GB_SUCCESS;
}

gb_status gb_cli_parse_option_shard(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical)
{
    (void)option;
    (void)canonical;
    enum { MOST_SHARDS = 100000 };
    char *slash, *end = NULL;
    unsigned long count = 0, number = strtoul(value, &slash, 10);
    if (isdigit((unsigned char)value[0]) && slash[0] == '/' && isdigit((unsigned char)slash[1]))
        count = strtoul(slash + 1, &end, 10);
    if (!end || *end || number < 1 || number > count || count > MOST_SHARDS)
        return bad_value(value, "a part such as 2/8");
    settings->shard = (uint32_t)number;
    settings->n_shards = (uint32_t)count;
    return GB_SUCCESS;
}
