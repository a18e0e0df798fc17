/* The option table and the look-up of options by their spelling. */
#include "cli/options/options.h"

#include "cli/options/message.h"
#include "cli/options/option_parsers.h"

#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(gb_settings, name)
/* Fields of a row after its texts. */
#define GLOBAL(group_, take_, offset_) .group = group_, .take = take_, .offset = offset_
#define SWITCH(group_, field_)                                                                     \
    GLOBAL(group_, gb_cli_parse_option_bool, FIELD(field_)), .words = "true false",                \
                                                             .value_optional = true
#define AXIS(axis_)                                                                                \
    .group = GROUP_REWRITING, .take = gb_cli_parse_option_axis, .offset = axis_, .of_case = true
#define IGNORED .group = GROUP_IGNORED, .action = ACTION_IGNORE, .value_optional = true

/* clang-format off */
const gb_option gb_cli_options[] = {
    {"mode", "LETTERS", "C",
        "L list, I compile, R run, C check, P measure, F measure fast; CP and CF combine",
        GLOBAL(GROUP_RUNNING, gb_cli_parse_option_mode, 0), .in_repro = true,
        .words = "L I R C P F CP CF"},
    {"max-ms-per-prb", "MS", "3000", "budget of one measurement, 10 to 60000 (mode F: 10)",
        GLOBAL(GROUP_MEASURING, gb_cli_parse_option_budget, FIELD(max_ms)),
        .low = 10, .high = 60000, .in_repro = true},
    {"fix-times-per-prb", "N", "0", "take exactly N samples; 0 = by the budget",
        GLOBAL(GROUP_MEASURING, gb_cli_parse_option_integer, FIELD(fix_times)),
        .high = 1e9, .in_repro = true},
    {"visits", "N", "0",
        "compile and measure each case N times over the run, in random order; 0 = up to 6, by the budget",
        GLOBAL(GROUP_MEASURING, gb_cli_parse_option_integer, FIELD(visits)),
        .high = MOST_VISITS, .in_repro = true},
    {"ci", "PERCENT", "1%",
        "measure until the 95 % interval of the median is narrower than this to both sides",
        GLOBAL(GROUP_MEASURING, gb_cli_take_percent, FIELD(precision)),
        .low = 0.01, .high = 50, .in_repro = true},
    {"cold-cache", "WORD", "none",
        "before each timed execution, evict from the caches: none, wei (constants and weights) or all",
        GLOBAL(GROUP_MEASURING, gb_cli_take_cold_cache, 0), .in_repro = true,
        .words = "none wei all"},
    {"samples", "BOOL", "false", "put every sample into the report of --json",
        SWITCH(GROUP_MEASURING, samples)},
    {"strict-env", "BOOL", "false",
        "time nothing on a machine that graph-bench env calls BAD: cases fail",
        SWITCH(GROUP_MEASURING, strict_env)},
    {"canonical", "BOOL", "false", "write default values in the reproducer line too",
        SWITCH(GROUP_OUTPUT, canonical), .in_repro = true},
    {"engine", "KIND[:INDEX]", "cpu", "device to run on: cpu, or gpu, which is any of OpenCL",
        GLOBAL(GROUP_RUNNING, gb_cli_parse_option_engine, 0), .in_repro = true,
        .words = "cpu gpu"},
    {"threads", "N", "0", "threads of the CPU engine; 0 = as OMP_NUM_THREADS says",
        GLOBAL(GROUP_RUNNING, gb_cli_parse_option_integer, FIELD(threads)), .high = 4096,
        .in_repro = true},
    {"isa", "WORD", "machine",
        "instruction sets that kernels may use, in a worker: machine (all), baseline, avx2, avx512 or amx",
        GLOBAL(GROUP_RUNNING, gb_cli_take_isa, 0), .in_repro = true,
        .words = "machine baseline avx2 avx512 amx"},
    {"caches", "L1:L2:L3", "machine",
        "plan for caches of so many bytes: with small ones small tensors need several blocks",
        GLOBAL(GROUP_RUNNING, gb_cli_take_caches, FIELD(caches)), .in_repro = true,
        .words = "machine"},
    {"bf16-products", "WORD", "auto",
        "products of two bf16: auto (the faster way here), dot (instructions for them; SKIPPED where there are none) or f32",
        GLOBAL(GROUP_RUNNING, gb_cli_take_bf16_products, 0), .in_repro = true,
        .words = "auto dot f32"},
    {"memory-kind", "WORD", "auto",
        "memory of an OpenCL device: auto, usm, svm or buffer; SKIPPED where the device lacks it",
        GLOBAL(GROUP_RUNNING, gb_cli_take_memory_kind, 0), .in_repro = true,
        .words = "auto usm svm buffer"},
    {"stream-kind", "WORD", "in_order", "queue of an OpenCL device: in_order or out_of_order",
        GLOBAL(GROUP_RUNNING, gb_cli_take_stream_kind, 0), .in_repro = true,
        .words = "in_order out_of_order"},
    {"policy", "WORD", "fusion",
        "partitioning: debug (one op each), fusion or max (as large as possible)",
        GLOBAL(GROUP_RUNNING, gb_cli_parse_option_policy, 0), .in_repro = true,
        .words = "fusion debug max"},
    {"dynamic", "BOOL", "false",
        "compile with unknown dims but for constants, and execute with those of the graph",
        SWITCH(GROUP_RUNNING, dynamic), .in_repro = true},
    {"layouts", "WORD", "any",
        "of tensors between partitions: any (the library's choice; mode C checks strided, too) or strided",
        GLOBAL(GROUP_RUNNING, gb_cli_take_layouts, 0), .in_repro = true,
        .words = "any strided"},
    {"fill", "WORD", "normal",
        "input data: exact (small integers), normal, adversarial (extreme values), edges (ties, saturation), nan or bits (all of the type)",
        GLOBAL(GROUP_RUNNING, gb_cli_parse_option_fill, 0), .in_repro = true,
        .words = "exact normal adversarial edges nan bits"},
    {"blame", "BOOL", "true",
        "on a failure run the case op by op and without each pass, and name what is to blame",
        SWITCH(GROUP_RUNNING, blame)},
    {"wildcard", "WORD", "refuse",
        "graphs with a Wildcard: refuse (UNIMPLEMENTED), or fill its results like inputs and run the rest",
        GLOBAL(GROUP_RUNNING, gb_cli_take_wildcard, 0), .in_repro = true,
        .words = "refuse fill"},
    {"seed", "N", "0", "seed of the input data; random draws one and prints it",
        GLOBAL(GROUP_RUNNING, gb_cli_take_seed, FIELD(seed)), .high = 9e15, .in_repro = true,
        .words = "random"},
    {"seeds", "N", "1", "run each case under N seeds, from --seed on; the verdict is the worst",
        GLOBAL(GROUP_RUNNING, gb_cli_parse_option_integer, FIELD(seeds)),
        .low = 1, .high = 1e6, .in_repro = true},
    {"ref", "WORD", "fast",
        "reference of mode C: fast, or naive (slow; the values of both must agree within the bounds)",
        GLOBAL(GROUP_RUNNING, gb_cli_take_reference, 0), .in_repro = true,
        .words = "fast naive"},
    {"isolate", "WORD", "auto",
        "run cases in a worker process, whose end is a verdict: auto (batches in modes C and R, and cases with a limit), on or off",
        GLOBAL(GROUP_RUNNING, gb_cli_take_isolate, 0), .value_optional = true,
        .words = "auto on off"},
    {"jobs", "N", "0",
        "workers at a time, for cases that are not timed; 0 = one for each processor and 4 GiB, 1 with --shard",
        GLOBAL(GROUP_RUNNING, gb_cli_parse_option_integer, FIELD(jobs)), .high = 64, .of_run = true},
    {"case-timeout", "TIME", "10m", "of a case in a worker, for each seed (90s, 10m, 2h); 0 = none",
        GLOBAL(GROUP_RUNNING, gb_cli_parse_option_time, FIELD(case_timeout_s)),
        .high = 1e7, .is_limit = true},
    {"case-memory", "BYTES", "0",
        "most of a case in a worker (500M, 8G); 0 = nine tenths of what the process may have",
        GLOBAL(GROUP_RUNNING, gb_cli_take_bytes, FIELD(case_memory)), .high = 1e18, .is_limit = true},
    {"load-tensors", "DIR", NULL, "read the data of graph inputs from DIR/in_ID.TYPE.npy",
        GLOBAL(GROUP_RUNNING, gb_cli_parse_option_path, FIELD(load_tensors_dir)), .in_repro = true},
    {"golden", "DIR", NULL, "compare outputs with DIR/out_ID.TYPE.npy too",
        GLOBAL(GROUP_RUNNING, gb_cli_parse_option_path, FIELD(golden_dir)), .in_repro = true},
    {"input-dir", "DIR", NULL, "look for case and batch files in DIR too; may be repeated",
        GLOBAL(GROUP_CASES, gb_cli_parse_option_input_dir, 0), .in_repro = true, .repeats = true},

    {"mb", "N,...", "0",
        "set dim 0 of every graph input that carries the minibatch; 0 = as in the file",
        AXIS(AXIS_MB)},
    {"dt", "TYPE,... | ID:TYPE+...,...", "",
        "data type f32, bf16 or f16 of the whole graph, or types by tensor id (undef: as in the file)",
        .group = GROUP_REWRITING, .take = gb_cli_parse_option_dt, .of_case = true,
        .words = "f32 bf16 f16"},
    {"op-kind", "ID:KIND+...,...", "",
        "replace ops by others of their family; KIND undef removes the op, default leaves it", AXIS(AXIS_OP_KIND)},
    {"tensor-property", "ID:WORD+...,...", "",
        "undef, variable, constant or host_scalar; default: as in the file", AXIS(AXIS_TENSOR_PROPERTY)},
    {"in-shapes", "ID:SHAPE[*TAG|*STRIDES]+...,...", "",
        "shapes and layouts of graph inputs", AXIS(AXIS_IN_SHAPES)},
    {"op-attrs", "ID:NAME:VALUE[*NAME:VALUE]+...,...", "",
        "attributes of ops", AXIS(AXIS_OP_ATTRS)},
    {"attr-fpmath", "MODE[:BOOL],...", "",
        "strict, bf16, f16, tf32 or any; BOOL: for integers too", AXIS(AXIS_FPMATH),
        .words = "strict bf16 f16 tf32 any"},
    {"expected-n-partitions", "N,...", "",
        "fail unless there are N partitions; 0 = any number; unset: any, but 1 for cases of batch files", AXIS(AXIS_EXPECTED_N_PARTITIONS)},
    {"reset", NULL, NULL, "set all options of this group back to their defaults",
        .group = GROUP_REWRITING, .action = ACTION_RESET},

    {"case", "FILE", NULL,
        "run the graph in FILE now, once for each combination of the lists given before",
        .group = GROUP_CASES, .action = ACTION_CASE},
    {"batch", "FILE", NULL, "read options from FILE now",
        .group = GROUP_CASES, .action = ACTION_BATCH},
    {"start", "N", "0", "skip the cases before number N",
        GLOBAL(GROUP_CASES, gb_cli_parse_option_integer, FIELD(start)), .high = 9e15},
    {"filter", "GLOB", NULL,
        "run only cases whose file or reproducer line fits; op:GLOB by op, pattern:GLOB by partition; "
        "repeats",
        GLOBAL(GROUP_CASES, gb_cli_parse_option_filter, 0), .repeats = true},
    {"rerun-failed", "REPORT", NULL, "run only cases that failed in a report of --json",
        GLOBAL(GROUP_CASES, gb_cli_parse_option_path, FIELD(rerun_file)), .once = true},
    {"resume", "REPORT", NULL, "take over the cases that a report of --json has, and run the others",
        GLOBAL(GROUP_CASES, gb_cli_parse_option_path, FIELD(resume_file)), .once = true},
    {"shard", "I/N", NULL, "run only the cases of part I of N; graph-bench merge joins the reports",
        GLOBAL(GROUP_CASES, gb_cli_parse_option_shard, 0)},
    {"shard-costs", "REPORT", NULL,
        "divide by what the cases of a report of --json took, and not by a hash",
        GLOBAL(GROUP_CASES, gb_cli_parse_option_path, FIELD(shard_costs_file)), .once = true},
    {"budget", "TIME", "0", "start no case after so long (90s, 10m, 2h); 0 = no limit",
        GLOBAL(GROUP_CASES, gb_cli_parse_option_time, FIELD(budget_s)), .high = 1e7,
        .of_run = true},
    {"expect", "FILE", NULL,
        "cases that are known not to pass: lines of \"STATUS GLOB # reason\"",
        GLOBAL(GROUP_CASES, gb_cli_parse_option_path, FIELD(expect_file)), .once = true},
    {"strict", "BOOL", "false",
        "fail also when no case ran, one was skipped or mistrusted, or --expect is out of date",
        SWITCH(GROUP_CASES, strict)},

    {"perf-template", "TEXT", "def",
        "line of a measured case: def, csv, or text with %engine%, %prb%, %-time% and the like",
        GLOBAL(GROUP_OUTPUT, gb_cli_take_perf_template, FIELD(perf_template)),
        .words = "def csv"},
    {"verbose", "N", "0", "-vN: 1 partitions, 6 comparisons, 7 graph, 20 compiler passes, 50 files found",
        GLOBAL(GROUP_OUTPUT, gb_cli_parse_option_integer, FIELD(verbose)),
        .high = 1000, .value_optional = true},
    {"summary", "[no-]WORD+...", "failures",
        "at the end: failures (the failed cases), impl (kernels used)",
        GLOBAL(GROUP_OUTPUT, gb_cli_parse_option_summary, 0),
        .words = "failures impl no-failures no-impl"},
    {"explain", "FORMAT[:FILE]", "none",
        "partitions, and why they are not larger: text, json or dot (Graphviz)",
        GLOBAL(GROUP_OUTPUT, gb_cli_parse_option_explain, FIELD(explain_file)),
        .writes = WRITES_FILE, .value_optional = true, .words = "none text json dot"},
    {"print", "WORD+...", "none",
        "while compiling, on the standard error: passes (the graph after each one), program (what it "
        "was lowered to)",
        GLOBAL(GROUP_OUTPUT, gb_cli_parse_option_print, 0),
        .words = "none passes program"},
    {"json", "FILE", NULL,
        "write all results to FILE as JSON, from time to time and at the end; - = stdout, and all lines go "
        "to stderr",
        GLOBAL(GROUP_OUTPUT, gb_cli_parse_option_path, FIELD(json_file)),
        .writes = WRITES_REPORT, .of_run = true},
    {"junit", "FILE", NULL, "the same as JUnit's XML, for CI servers",
        GLOBAL(GROUP_OUTPUT, gb_cli_parse_option_path, FIELD(junit_file)),
        .writes = WRITES_REPORT, .of_run = true},
    {"csv", "FILE", NULL, "the same as a table, a row for each partition",
        GLOBAL(GROUP_OUTPUT, gb_cli_parse_option_path, FIELD(csv_file)),
        .writes = WRITES_REPORT, .of_run = true},
    {"save-graph", "FILE", NULL,
        "write the rewritten graph of each case to FILE (the last one stays; - = stdout), as JSON or, "
        "when FILE ends in .gbt, as text",
        GLOBAL(GROUP_OUTPUT, gb_cli_parse_option_path, FIELD(save_graph_file)),
        .writes = WRITES_FILE},
    {"save-tensors", "DIR", NULL, "write inputs, outputs and reference values to DIR as .npy files",
        GLOBAL(GROUP_OUTPUT, gb_cli_parse_option_path, FIELD(save_tensors_dir)),
        .writes = WRITES_FOLDER},
    {"repro-dir", "DIR", NULL,
        "write a folder for each failed case, for graph-bench repro: graph, seed, small tensors, command",
        GLOBAL(GROUP_OUTPUT, gb_cli_parse_option_path, FIELD(repro_dir)),
        .writes = WRITES_FOLDER},
    {"list-ops", NULL, NULL,
        "run every op in all its data types, print the op set with what runs, and end",
        .group = GROUP_OUTPUT, .action = ACTION_LIST_OPS},
    {"list-devices", NULL, NULL, "print the devices of all engines and end",
        .group = GROUP_OUTPUT, .action = ACTION_LIST_DEVICES},
    {"help", NULL, NULL, "print this text and end", .group = GROUP_OUTPUT, .action = ACTION_HELP},
    {"version", NULL, NULL,
        "print the version and end", .group = GROUP_OUTPUT, .action = ACTION_VERSION},

    {"graph", NULL, NULL,
        "driver word of benchdnn command lines", .group = GROUP_IGNORED, .action = ACTION_NONE},
    {"mode-modifier", "LETTERS", NULL, "", IGNORED},
    {"execution-mode", "WORD", NULL, "", IGNORED},
    {"fast-ref", "BOOL", NULL, "", IGNORED},
    {"cpu-isa-hints", "WORD", NULL, "", IGNORED},
    {"mem-check", "BOOL", NULL, "", IGNORED},
    {"allow-enum-tags-only", "BOOL", NULL, "", IGNORED},
    {"attr-same-pd-check", "BOOL", NULL, "", IGNORED},
    {"check-ref-impl", "BOOL", NULL, "", IGNORED},
    {"num-streams", "N", NULL, "", IGNORED},
    {"repeats-per-prb", "N", NULL, "", IGNORED},
    {"buffer-prefix", "TEXT", NULL, "", IGNORED},
    {"ctx-init", "WORD", NULL, "", IGNORED},
    {"ctx-exe", "WORD", NULL, "", IGNORED},
    {"global-impl", "WORD", NULL, "", IGNORED},
    {"global-skip-impl", "WORD", NULL, "", IGNORED},
    {"skip-impl", "WORD", NULL, "", IGNORED},
};
/* clang-format on */

_Static_assert(sizeof(gb_cli_options) / sizeof(gb_cli_options[0]) <= OPTION_LIMIT,
        "gb_settings keeps one text per option");

size_t gb_cli_option_count(void)
{
    return sizeof(gb_cli_options) / sizeof(gb_cli_options[0]);
}

static gb_status unknown_option(const char *token, const char *name)
{
    const gb_option *nearest = NULL;
    size_t best = strlen(name) / 2 + 1;
    for (size_t i = 0; i < gb_cli_option_count() && strlen(name) < 64; i++) {
        size_t distance = gb_cli_edit_distance(name, gb_cli_options[i].name);
        if (distance >= best)
            continue;
        best = distance;
        nearest = &gb_cli_options[i];
    }
    if (nearest)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "unknown option \"%.80s\"; did you mean --%s?",
                token, nearest->name);
    return gb_cli_fail(GB_INVALID_ARGUMENTS, "unknown option \"%.80s\"", token);
}

static const gb_option *find_row(const char *name)
{
    for (size_t i = 0; i < gb_cli_option_count(); i++)
        if (strcmp(gb_cli_options[i].name, name) == 0)
            return &gb_cli_options[i];
    return NULL;
}

gb_status gb_cli_option_find(const char *token, const gb_option **option, const char **value)
{
    *option = NULL;
    if (token[0] == '-' && token[1] == 'v') {
        *option = find_row("verbose");
        *value = token[2] ? token + 2 : "1";
        return GB_SUCCESS;
    }
    if (strcmp(token, "-h") == 0)
        token = "--help";
    const char *extension = strrchr(token, '.');
    if (token[0] != '-' && extension &&
            (strcmp(extension, ".json") == 0 || strcmp(extension, ".gbt") == 0))
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "\"%.200s\" is not an option; to run the graph: --case=%.200s", token, token);
    if (strncmp(token, "--", 2) != 0)
        return gb_cli_fail(
                GB_INVALID_ARGUMENTS, "\"%.80s\" is not an option; options start with --", token);
    char name[64];
    size_t length = strcspn(token + 2, "=");
    if (length >= sizeof(name))
        return unknown_option(token, "");
    memcpy(name, token + 2, length);
    name[length] = '\0';
    const gb_option *found = find_row(name);
    if (!found)
        return unknown_option(token, name);
    *option = found;
    *value = token[2 + length] ? token + 3 + length : NULL;
    if (!found->argument && *value)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "--%s takes no value", name);
    if (found->argument && !*value && !found->value_optional)
        return gb_cli_fail(
                GB_INVALID_ARGUMENTS, "--%s needs a value: --%s=%s", name, name, found->argument);
    return GB_SUCCESS;
}

gb_status gb_cli_option_set(gb_settings *settings, const gb_option *option, const char *value)
{
    if (!value || !*value)
        value = option->fallback;
    if (!value)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "--%s needs a value: --%s=%s", option->name,
                option->name, option->argument);
    char **text = &settings->text[option - gb_cli_options];
    if (option->once && *text && strcmp(*text, value) != 0)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "--%s: a run has one, which is \"%.200s\"",
                option->name, *text);
    char *canonical = gb_cli_copy(value);
    gb_status status = option->take(settings, option, value, &canonical);
    if (status != GB_SUCCESS) {
        char *reason = gb_cli_copy(gb_cli_failure());
        gb_cli_fail(status, "--%s: %s", option->name, reason);
        free(reason);
        free(canonical);
        return status;
    }
    free(*text);
    *text = canonical;
    settings->has_limit = settings->has_limit || option->is_limit;
    return GB_SUCCESS;
}
