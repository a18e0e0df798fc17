/* The state that options set and cases read. */
#ifndef GB_CLI_OPTIONS_SETTINGS_H
#define GB_CLI_OPTIONS_SETTINGS_H

#include "cli/options/overrides.h"

#include <graphbench/graphbench_tools.h>

/* Letters of --mode. C and P (or F) may be combined; the others stand alone. */
enum {
    MODE_LIST = 1,         /* L: load and rewrite */
    MODE_INIT = 2,         /* I: partition and compile */
    MODE_RUN = 4,          /* R: execute once */
    MODE_CORRECTNESS = 8,  /* C: compare with the reference */
    MODE_PERFORMANCE = 16, /* P: measure */
    MODE_FAST = 32         /* F: measure with a budget of 10 ms; comes with MODE_PERFORMANCE */
};

enum { SUMMARY_FAILURES = 1, SUMMARY_IMPL = 2 };
enum { MOST_VISITS = 200 };

typedef enum gb_explain { EXPLAIN_NONE, EXPLAIN_TEXT, EXPLAIN_JSON, EXPLAIN_DOT } gb_explain;
/* Layouts of tensors between partitions: left to the library, or the strides that the graph has. */
typedef enum gb_layouts { LAYOUTS_ANY, LAYOUTS_STRIDED } gb_layouts;
/* What becomes of a Wildcard when a case runs: it makes the case UNIMPLEMENTED, or its results are
 * data like that of inputs. */
typedef enum gb_wildcard { WILDCARD_REFUSE, WILDCARD_FILL } gb_wildcard;
/* What is evicted from the caches before each timed execution: nothing, weights, or all tensors. */
typedef enum gb_cold_cache { COLD_NONE, COLD_WEIGHTS, COLD_ALL } gb_cold_cache;
/* Memory of OpenCL devices, in the order of gb_ocl_memory_kind. */
typedef enum gb_memory_kind { MEMORY_AUTO, MEMORY_BUFFER, MEMORY_SVM, MEMORY_USM } gb_memory_kind;
/* The most that kernels may use of the machine's instruction sets, in their order. */
typedef enum gb_isa_limit { ISA_MACHINE, ISA_BASELINE, ISA_AVX2, ISA_AVX512, ISA_AMX } gb_isa_limit;
/* Do cases run in a worker: those of batches that are not measured, all, or none? */
typedef enum gb_isolate { ISOLATE_AUTO, ISOLATE_ON, ISOLATE_OFF } gb_isolate;
typedef enum gb_fill {
    FILL_EXACT,
    FILL_NORMAL,
    FILL_ADVERSARIAL,
    FILL_EDGES,
    FILL_NAN,
    FILL_BITS
} gb_fill;

enum { OPTION_LIMIT = 96, INPUT_DIR_LIMIT = 16, FILTER_LIMIT = 64 };

typedef struct gb_settings {
    unsigned mode;    /* MODE_ bits */
    unsigned summary; /* SUMMARY_ bits */
    unsigned print;   /* what compiling prints: GB_PASS_PRINT, GB_PASS_PROGRAM */
    gb_engine_kind engine_kind;
    int64_t engine_index;
    gb_memory_kind memory_kind;
    bool out_of_order; /* queue of an OpenCL device */
    gb_policy policy;
    gb_fill fill;
    bool blame; /* name the op or pass that a failure is due to */
    bool naive; /* compare with the naive reference too */
    gb_isolate isolate;
    gb_isa_limit isa; /* other than the machine's: of a worker, which chooses its kernels once */
    gb_isa_limit most_isa; /* given outside of batch files, which do not go beyond it */
    double case_timeout_s; /* of a case in a worker, for each seed; 0: none */
    int64_t jobs;          /* workers at a time; 0: as many as there is room for */
    double case_memory;    /* bytes of a case in a worker; 0: nine tenths of what there is */
    bool has_limit;        /* one of these two was given */
    gb_wildcard wildcard;
    gb_layouts layouts;
    gb_explain explain;
    int64_t seed;
    int64_t seeds; /* each case runs with this many, from `seed` on */
    int64_t verbose;
    int64_t start;
    int64_t fix_times; /* 0 = by budget */
    double max_ms;
    double precision; /* --ci: half-width of the median's interval that is narrow enough */
    int64_t visits;   /* 0 = by the budget; MOST_VISITS at most */
    gb_cold_cache cold_cache;
    bool samples;             /* raw samples in the report */
    uint32_t shard, n_shards; /* run part 1 .. n_shards; 0 of 0 = all */
    double budget_s;          /* of the whole run; 0 = none */
    int64_t threads;          /* 0 = as OpenMP has it */
    bool strict;
    bool strict_env;           /* time nothing on a bad machine */
    bool in_batch;             /* what is read stands in a batch file */
    const char *perf_template; /* lent by text[] */
    bool canonical;
    bool dynamic;       /* compile with unknown dims */
    const char *caches; /* plans are made for these; NULL: those of the machine */
    gb_bf16_products bf16_products;
    /* Paths; NULL = not given. They point into text[] below. */
    const char *json_file;
    const char *junit_file;
    const char *csv_file;
    const char *save_tensors_dir;
    const char *load_tensors_dir;
    const char *golden_dir;
    const char *save_graph_file;
    const char *repro_dir;
    const char *explain_file;
    const char *expect_file;
    const char *rerun_file;
    const char *resume_file;
    const char *shard_costs_file;
    char *input_dirs[INPUT_DIR_LIMIT]; /* owned */
    size_t n_input_dirs;
    char *filters[FILTER_LIMIT]; /* owned */
    size_t n_filters;
    gb_alternatives axes[AXIS_COUNT];
    /* Canonical value of every option that was given, by its row in the option table; NULL =
     * default. Owned. */
    char *text[OPTION_LIMIT];
} gb_settings;

void gb_cli_settings_init(gb_settings *settings);
void gb_cli_settings_free(gb_settings *settings);
/* --reset: the options that describe a case get their defaults back. */
void gb_cli_settings_reset(gb_settings *settings);
/* The word of --isa; static. */
const char *gb_cli_isa_word(gb_isa_limit isa);
/* Of one case: the settings with one alternative of each list. Where files are is left out. To be freed
 * by the caller. */
void gb_cli_settings_copy(const gb_settings *settings,
        const gb_alternative *const choice[AXIS_COUNT], gb_settings *copy);
/* Budget of one measurement in milliseconds: --max-ms-per-prb, or 10 in mode F. */
double gb_cli_budget_ms(const gb_settings *settings);

#endif
