/* The parsers of the command line: words of batch files, values of options, combinations; and that
 * every option is documented. */
#include "cli/case/batch.h"
#include "cli/options/case_name.h"
#include "cli/options/combos.h"
#include "cli/options/message.h"
#include "cli/options/options.h"
#include "cli/run/memory_limit.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_words(
        const char *text, size_t count, const char *const *words, const size_t *lines)
{
    gb_words split;
    gb_cli_words_split(text, strlen(text), &split);
    cr_assert_eq(split.count, count, "\"%s\" has %zu words", text, split.count);
    for (size_t i = 0; i < count; i++) {
        cr_expect_str_eq(split.items[i].text, words[i]);
        cr_expect_eq(
                split.items[i].line, lines[i], "line of %s is %zu", words[i], split.items[i].line);
    }
    gb_cli_words_free(&split);
}

Test(batch_words, white_space_and_comments)
{
    const char *words[] = {"--a", "b#c", "d", "e"};
    size_t lines[] = {1, 1, 2, 4};
    expect_words("--a\tb#c #comment d\n d\r\n# x\ne", 4, words, lines);
}

Test(batch_words, glued_words_count_as_one_line)
{
    const char *words[] = {"1,2,3", "4", "5"};
    size_t lines[] = {1, 1, 4};
    expect_words("1,\\\n2,\\ # comment\n3 4\n5", 3, words, lines);
}

Test(batch_words, a_backslash_alone_glues_both_sides)
{
    const char *words[] = {"0", "1,2,3", "4"};
    size_t lines[] = {1, 1, 3};
    expect_words("0 1, \\\n2,\\ \\ 3\n4", 3, words, lines);
    expect_words("0 1,\n\\ 2, # comment\n \\ \\ 3\n4", 3, words, (size_t[]){1, 1, 4});
    expect_words("\\ 0 1,2,3\n\n4", 3, words, lines);
}

Test(batch_words, edges)
{
    const char *word = "a";
    size_t line = 1;
    expect_words("", 0, NULL, NULL);
    expect_words("\\\n\\", 0, NULL, NULL);
    expect_words("a\\", 1, &word, &line);
    line = 2;
    expect_words("#a\na", 1, &word, &line);
}

static gb_alternatives parse(gb_axis axis, const char *value)
{
    gb_alternatives result = {0};
    gb_status status = gb_cli_alternatives_parse(axis, value, &result);
    cr_assert_eq(status, GB_SUCCESS, "\"%s\": %s", value, gb_cli_failure());
    return result;
}

Test(list_values, shapes)
{
    gb_alternatives list = parse(AXIS_IN_SHAPES, ",7:2x3*ba+1:-+2:0,18446744073709551614:*8x1");
    cr_assert_eq(list.count, 3);
    cr_expect_eq(list.items[0].n_overrides, 0);
    cr_expect_str_eq(list.items[1].text, "1:-+2:0+7:2x3*ba");
    const gb_shape_override *shape = &gb_cli_find_override(&list.items[1], 7)->value.shape;
    cr_expect(shape->has_dims && shape->ndims == 2 && shape->dims[1] == 3 && !shape->has_strides);
    cr_expect_str_eq(shape->tag, "ba");
    shape = &gb_cli_find_override(&list.items[1], 1)->value.shape;
    cr_expect(shape->has_dims && shape->ndims == 0);
    shape = &gb_cli_find_override(&list.items[1], 2)->value.shape;
    cr_expect(shape->has_dims && shape->ndims == 1 && shape->dims[0] == 0);
    cr_expect_eq(list.items[2].overrides[0].id, SIZE_MAX - 1);
    shape = &list.items[2].overrides[0].value.shape;
    cr_expect(!shape->has_dims && shape->n_strides == 2 && shape->strides[0] == 8);
    gb_cli_alternatives_free(AXIS_IN_SHAPES, &list);
}

Test(list_values, attributes)
{
    gb_alternatives list = parse(AXIS_OP_ATTRS,
            "3:strides:2x-1*mode:gelu_erf+1:scales:0x0.5x1e-3*transpose_a:true*alpha:-2");
    cr_assert_eq(list.items[0].n_overrides, 5);
    cr_expect_str_eq(list.items[0].text,
            "1:scales:0x0.5x1e-3*transpose_a:true*alpha:-2+3:strides:2x-1*mode:gelu_erf");
    const gb_override *overrides = list.items[0].overrides;
    cr_expect(overrides[0].value.attr.count == 2 && overrides[0].value.attr.s64s[1] == -1);
    cr_expect_str_eq(overrides[1].value.attr.string, "gelu_erf");
    cr_expect(overrides[2].value.attr.count == 3 && overrides[2].value.attr.f32s[1] == 0.5F);
    cr_expect_eq(overrides[3].value.attr.s64s[0], 1);
    cr_expect_eq(overrides[4].value.attr.f32s[0], -2.0F);
    cr_expect(!overrides[0].value.attr.truncated);
    gb_cli_alternatives_free(AXIS_OP_ATTRS, &list);
    list = parse(AXIS_OP_ATTRS, "0:sizes:1.67x2");
    cr_expect(list.items[0].overrides[0].value.attr.truncated);
    cr_expect_eq(list.items[0].overrides[0].value.attr.s64s[0], 1);
    gb_cli_alternatives_free(AXIS_OP_ATTRS, &list);
}

Test(list_values, fpmath_kinds_types)
{
    gb_alternatives list = parse(AXIS_FPMATH, "tf32:1,,any");
    cr_expect(list.count == 3 && list.items[0].fpmath == GB_FPMATH_TF32 &&
              list.items[0].apply_to_int);
    cr_expect(list.items[2].fpmath == GB_FPMATH_ANY && !list.items[2].apply_to_int);
    gb_cli_alternatives_free(AXIS_FPMATH, &list);
    list = parse(AXIS_OP_KIND, "4:undef+2:Tanh");
    cr_expect_eq(gb_cli_find_override(&list.items[0], 4)->value.kind, KIND_REMOVED);
    cr_expect_eq(gb_cli_find_override(&list.items[0], 2)->value.kind, GB_OP_TANH);
    gb_cli_alternatives_free(AXIS_OP_KIND, &list);
    list = parse(AXIS_FPMATH, "BF16:TRUE,bf16:False");
    cr_expect(list.items[0].fpmath == GB_FPMATH_BF16 && list.items[0].apply_to_int);
    cr_expect(list.items[1].fpmath == GB_FPMATH_BF16 && !list.items[1].apply_to_int);
    gb_cli_alternatives_free(AXIS_FPMATH, &list);
    list = parse(AXIS_DT, "undef,f16");
    cr_expect_str_eq(list.items[0].text, "");
    cr_expect_eq(list.items[1].type, GB_F16);
    gb_cli_alternatives_free(AXIS_DT, &list);
}

Test(list_values, words_that_leave_a_value_as_it_is)
{
    static const struct {
        gb_axis axis;
        const char *value, *text;
    } rows[] = {
            {AXIS_OP_KIND, "0:default", ""},
            {AXIS_OP_KIND, "3:Tanh+0:default+1:ReLU", "1:ReLU+3:Tanh"},
            {AXIS_TENSOR_PROPERTY, "0:default+1:constant", "1:constant"},
            {AXIS_DT_IDS, "0:undef+2:f16", "2:f16"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        gb_alternatives list = parse(rows[i].axis, rows[i].value);
        cr_expect_str_eq(list.items[0].text, rows[i].text);
        cr_expect_null(gb_cli_find_override(&list.items[0], 0));
        gb_cli_alternatives_free(rows[i].axis, &list);
    }
}

Test(list_values, malformed)
{
    static const struct {
        gb_axis axis;
        const char *value;
    } rows[] = {
            {AXIS_IN_SHAPES, "1"},
            {AXIS_IN_SHAPES, "1:"},
            {AXIS_IN_SHAPES, ":2"},
            {AXIS_IN_SHAPES, "1:2x"},
            {AXIS_IN_SHAPES, "1:x2"},
            {AXIS_IN_SHAPES, "1:2*"},
            {AXIS_IN_SHAPES, "1:2*A"},
            {AXIS_IN_SHAPES, "1:2+"},
            {AXIS_IN_SHAPES, "1:2+1:3"},
            {AXIS_IN_SHAPES, "-1:2"},
            {AXIS_IN_SHAPES, "1:-2"},
            {AXIS_IN_SHAPES, "1:2.5"},
            {AXIS_IN_SHAPES, "1:9223372036854775808"},
            {AXIS_IN_SHAPES, "18446744073709551616:1"},
            {AXIS_IN_SHAPES, "1:1x1x1x1x1x1x1x1x1x1x1x1x1"},
            {AXIS_IN_SHAPES, "1:2*abcdefghijklm"},
            {AXIS_IN_SHAPES, "1:default"},
            {AXIS_OP_KIND, "1:defaults"},
            {AXIS_OP_ATTRS, "1:axis"},
            {AXIS_OP_ATTRS, "1:axis:"},
            {AXIS_OP_ATTRS, "1:nothing:1"},
            {AXIS_OP_ATTRS, "1:axis:1x2"},
            {AXIS_OP_ATTRS, "1:alpha:x"},
            {AXIS_OP_ATTRS, "1:keep_dims:2"},
            {AXIS_OP_ATTRS, "1:axis:1*"},
            {AXIS_OP_ATTRS, "1:axis:1*axis:1"},
            {AXIS_OP_ATTRS, "1:axis:0x10:2"},
            {AXIS_DT, "f33"},
            {AXIS_DT, "f32+f16"},
            {AXIS_DT_IDS, "1:f32,f16"},
            {AXIS_DT_IDS, "1:undefined"},
            {AXIS_OP_KIND, "1:tanh"},
            {AXIS_TENSOR_PROPERTY, "1:const"},
            {AXIS_FPMATH, "strictly"},
            {AXIS_FPMATH, "strict:"},
            {AXIS_FPMATH, "strict:2"},
            {AXIS_MB, "01"},
            {AXIS_MB, "+1"},
            {AXIS_MB, "1+2"},
            {AXIS_EXPECTED_N_PARTITIONS, "-1"},
            {AXIS_EXPECTED_N_PARTITIONS, "1x"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        gb_alternatives result = {0};
        cr_expect_eq(gb_cli_alternatives_parse(rows[i].axis, rows[i].value, &result),
                GB_INVALID_ARGUMENTS, "\"%s\"", rows[i].value);
        cr_expect_eq(result.count, 0);
    }
}

Test(combinations, last_axis_is_fastest)
{
    gb_settings settings;
    gb_cli_settings_init(&settings);
    static const char *const tokens[] = {"--mb=1,2", "--in-shapes=0:1,0:2,0:3", "--dt=f32,f16"};
    for (size_t i = 0; i < 3; i++) {
        const gb_option *option;
        const char *value;
        cr_assert_eq(gb_cli_option_find(tokens[i], &option, &value), GB_SUCCESS);
        cr_assert_eq(gb_cli_option_set(&settings, option, value), GB_SUCCESS);
    }
    gb_combo combo = {0};
    gb_text order = {0};
    do {
        const gb_alternative *choice[AXIS_COUNT];
        gb_cli_combo_get(&settings, &combo, choice);
        gb_cli_text_add(&order, "%s/%s/%s ", choice[AXIS_IN_SHAPES]->text, choice[AXIS_DT]->text,
                choice[AXIS_MB]->text);
    } while (gb_cli_combo_next(&settings, &combo));
    cr_expect_str_eq(order.data,
            "0:1/f32/1 0:1/f32/2 0:1/f16/1 0:1/f16/2 0:2/f32/1 0:2/f32/2 0:2/f16/1 0:2/f16/2 "
            "0:3/f32/1 0:3/f32/2 0:3/f16/1 0:3/f16/2 ");
    gb_cli_settings_reset(&settings);
    cr_expect_eq(settings.axes[AXIS_IN_SHAPES].count, 1);
    cr_expect_eq(settings.axes[AXIS_MB].items[0].number, 0);
    gb_cli_text_free(&order);
    gb_cli_settings_free(&settings);
}

Test(option_table, defaults_are_legal_and_not_in_the_reproducer_line)
{
    gb_settings settings;
    gb_cli_settings_init(&settings);
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        const gb_option *option = &gb_cli_options[i];
        if (option->take && option->fallback)
            cr_expect_eq(
                    gb_cli_option_set(&settings, option, ""), GB_SUCCESS, "--%s", option->name);
        cr_expect(option->action != ACTION_NONE || option->take || option->group == GROUP_IGNORED,
                "--%s", option->name);
        cr_expect(option->group == GROUP_IGNORED || *option->help, "--%s", option->name);
    }
    gb_combo combo = {0};
    const gb_alternative *choice[AXIS_COUNT];
    gb_cli_combo_get(&settings, &combo, choice);
    gb_text repro = {0};
    gb_cli_write_repro(&settings, choice, "x.json", &repro);
    cr_expect_str_eq(repro.data, "--graph --case=x.json");
    gb_cli_text_free(&repro);
    gb_cli_settings_free(&settings);
}

Test(case_names, the_option_of_batches_and_the_place_of_files_make_no_difference)
{
    static const struct {
        const char *line, *name, *with;
    } rows[] = {
            {"--graph --case=x", "--graph --case=x", "--graph --expected-n-partitions=1 --case=x"},
            {"--expected-n-partitions=1 --case=x", "--case=x",
                    "--expected-n-partitions=1 --case=x"},
            {"--mode=L --graph --mb=2 --expected-n-partitions=1 '--case=a b'",
                    "--mode=L --graph --mb=2 '--case=a b'",
                    "--mode=L --graph --mb=2 --expected-n-partitions=1 '--case=a b'"},
            {"--expected-n-partitions=11 --case=x", "--expected-n-partitions=11 --case=x", NULL},
            {"'--case=a'\\''s --expected-n-partitions=1 b'",
                    "'--case=a'\\''s --expected-n-partitions=1 b'",
                    "--expected-n-partitions=1 '--case=a'\\''s --expected-n-partitions=1 b'"},
            {"--mode=L --input-dir=/build/7 '--input-dir=a b' --graph --case=x",
                    "--mode=L --graph --case=x",
                    "--mode=L --graph --expected-n-partitions=1 --case=x"},
            {"'--case=a --input-dir=b'", "'--case=a --input-dir=b'",
                    "--expected-n-partitions=1 '--case=a --input-dir=b'"},
            {"", "", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *name = gb_cli_case_name(rows[i].line);
        char *with = gb_cli_case_name_with_option(rows[i].line);
        cr_expect_str_eq(name, rows[i].name);
        cr_expect(!rows[i].with || strcmp(with, rows[i].with) == 0, "%s", with);
        cr_expect(gb_cli_case_names_are_equal(with, rows[i].with ? name : with));
        free(name);
        free(with);
    }
}

Test(option_table, words_of_truth)
{
    static const struct {
        const char *word;
        bool truth;
    } rows[] = {{"true", true}, {"1", true}, {"on", true}, {"false", false}, {"0", false},
            {"off", false}};
    const gb_option *option = gb_cli_options;
    while (strcmp(option->name, "blame") != 0)
        option++;
    gb_settings settings;
    gb_cli_settings_init(&settings);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        settings.blame = !rows[i].truth;
        cr_expect_eq(gb_cli_option_set(&settings, option, rows[i].word), GB_SUCCESS);
        cr_expect_eq(settings.blame, rows[i].truth, "%s", rows[i].word);
    }
    cr_expect_eq(gb_cli_option_set(&settings, option, "offs"), GB_INVALID_ARGUMENTS);
    gb_cli_settings_free(&settings);
}

/* What shells offer as values. */
Test(option_table, words_of_rows_are_legal_values)
{
    gb_settings settings;
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        const gb_option *option = &gb_cli_options[i];
        const char *words = option->words ? option->words : "";
        for (size_t length; *words; words += length + (words[length] == ' ')) {
            length = strcspn(words, " ");
            char *word = gb_cli_copy_part(words, length);
            gb_cli_settings_init(&settings);
            cr_expect_eq(gb_cli_option_set(&settings, option, word), GB_SUCCESS, "--%s=%s",
                    option->name, word);
            gb_cli_settings_free(&settings);
            free(word);
        }
    }
}

Test(option_table, words_choose_what_they_say)
{
    static const struct {
        const char *token;
        size_t offset, bytes;
        unsigned value;
    } rows[] = {
#define ROW(token_, field_, value_)                                                                \
    {token_, offsetof(gb_settings, field_), sizeof(((gb_settings *)0)->field_), value_}
            ROW("--memory-kind=usm", memory_kind, MEMORY_USM),
            ROW("--memory-kind=buffer", memory_kind, MEMORY_BUFFER),
            ROW("--policy=debug", policy, GB_POLICY_DEBUG),
            ROW("--policy=max", policy, GB_POLICY_MAX),
            ROW("--isa=amx", isa, ISA_AMX),
            ROW("--fill=bits", fill, FILL_BITS),
            ROW("--cold-cache=all", cold_cache, COLD_ALL),
            ROW("--wildcard=fill", wildcard, WILDCARD_FILL),
            ROW("--layouts=strided", layouts, LAYOUTS_STRIDED),
            ROW("--isolate=off", isolate, ISOLATE_OFF),
            ROW("--isolate=true", isolate, ISOLATE_ON),
            ROW("--ref=naive", naive, true),
            ROW("--stream-kind=out_of_order", out_of_order, true),
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const gb_option *option;
        const char *value;
        unsigned found = 0;
        gb_settings settings;
        gb_cli_settings_init(&settings);
        cr_assert_eq(gb_cli_option_find(rows[i].token, &option, &value), GB_SUCCESS);
        cr_expect_eq(gb_cli_option_set(&settings, option, value), GB_SUCCESS);
        memcpy(&found, (const char *)&settings + rows[i].offset, rows[i].bytes);
        cr_expect_eq(found, rows[i].value, "%s", rows[i].token);
        gb_cli_settings_free(&settings);
    }
}

static char *read_document(const char *name)
{
    gb_text path = {0};
    gb_cli_text_add(&path, "%s/../docs/%s", GB_TEST_DATA, name);
    FILE *file = fopen(path.data, "rb");
    cr_assert(file, "%s", path.data);
    gb_text text = {0};
    for (int c; (c = fgetc(file)) != EOF;)
        if (c != '\\') /* the manual page writes \- for - */
            gb_cli_text_add(&text, "%c", c);
    fclose(file);
    gb_cli_text_free(&path);
    return text.data;
}

/* Is "--name" in the text, not as the beginning of a longer name? */
static bool mentions(const char *text, const char *name)
{
    gb_text spelling = {0};
    gb_cli_text_add(&spelling, "--%s", name);
    bool found = false;
    for (const char *at = text; !found && (at = strstr(at, spelling.data)); at++)
        found = !strchr("-abcdefghijklmnopqrstuvwxyz", at[spelling.length]);
    gb_cli_text_free(&spelling);
    return found;
}

Test(option_table, every_option_is_documented)
{
    static const char *const documents[] = {"graph-bench.1", "usage.md"};
    for (size_t d = 0; d < 2; d++) {
        char *text = read_document(documents[d]);
        for (size_t i = 0; i < gb_cli_option_count(); i++)
            cr_expect(mentions(text, gb_cli_options[i].name), "docs/%s does not mention --%s",
                    documents[d], gb_cli_options[i].name);
        free(text);
    }
}

/* The memory that control groups leave ----------------------------------------------------------
 */

static void put_file(const char *root, const char *dir, const char *file, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "mkdir -p '%s/%s'", root, dir);
    cr_assert_eq(system(path), 0);
    snprintf(path, sizeof path, "%s/%s/%s", root, dir, file);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fputs(text, out);
    fclose(out);
}

static void check_limit(const char *groups, double expected)
{
    char root[] = "/tmp/gb_cgroup_XXXXXX", command[64];
    cr_assert_not_null(mkdtemp(root));
    put_file(root, "proc/self", "cgroup", groups);
    put_file(root, "sys/fs/cgroup", "memory.max", "max\n");
    put_file(root, "sys/fs/cgroup/a", "memory.max", "5000000\n");
    put_file(root, "sys/fs/cgroup/a/b", "memory.max", "7000000\n");
    put_file(root, "sys/fs/cgroup/memory", "memory.limit_in_bytes", "9223372036854771712\n");
    put_file(root, "sys/fs/cgroup/memory/a", "memory.limit_in_bytes", "3000000\n");
    cr_expect_eq(gb_cli_cgroup_limit(root), expected, "%s", groups);
    snprintf(command, sizeof command, "rm -r %s", root);
    cr_expect_eq(system(command), 0);
}

Test(memory_limit, the_least_of_a_group_and_those_above_it)
{
    check_limit("0::/a/b\n", 5000000);
    check_limit("0::/\n", INFINITY);
    check_limit("0::/gone/away\n", INFINITY);
    check_limit("12:cpu,cpuacct:/a\n4:memory:/a\n0::/a/b\n", 3000000);
    check_limit("4:hugetlb,memory:/\n", 9223372036854771712.0);
    check_limit("4:memory:/x/y/z\n3:cpu:/a", 9223372036854771712.0);
    check_limit("", INFINITY);
    check_limit("no groups\n::\n:\n", INFINITY);
    cr_expect_eq(gb_cli_cgroup_limit("/nowhere"), INFINITY);
    cr_expect_gt(gb_cli_memory_limit(), 0);
}
