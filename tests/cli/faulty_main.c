/* graph-bench with planted faults, for tests of what it makes of them: the functions of the library that
 * compile and execute a partition stand behind those here (ld --wrap). GB_TEST_FAULT is a list, separated
 * by commas, of KIND[+KIND]...:ACTION. Partitions that have ops of all these kinds then crash (segv, abort; fork: while a process that they have started goes on), end the process with status 0 (exit),
 * hang (loop), take 40 GiB (memory), fail (fail), or get a wrong first element (wrong) when they are executed. wrong@PASS: unless
 * that pass is left out; large: if the first element of the first input is, which is f32; strided: if that does
 * not lie row after row; between: when another
 * partition was executed before, but for the first time; second: from the second execution on; once: only in the
 * first one of the process; third: the third one crashes. input: the first element of the first input is changed. mask: the first byte of the
 * result becomes 0xFF. behind: so does the byte behind it. children: the process ends those it has, before. hold: adds
 * a byte to the file GB_TEST_HELD and keeps 500 MiB for a second. */
#include "cli/app/app.h"

#include <graphbench/graphbench_tools.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAULTY = 1024 };

static struct {
    const gb_compiled_partition *compiled;
    char action[32];
    size_t executions;
} faulty[FAULTY];
static char left_out[32]; /* pass */

gb_status __real_gb_partition_compile(const gb_partition *partition,
        gb_compiled_partition **compiled, size_t n_inputs, const gb_logical_tensor *const *inputs,
        size_t n_outputs, const gb_logical_tensor *const *outputs, const gb_engine *engine);
gb_status __wrap_gb_partition_compile(const gb_partition *partition,
        gb_compiled_partition **compiled, size_t n_inputs, const gb_logical_tensor *const *inputs,
        size_t n_outputs, const gb_logical_tensor *const *outputs, const gb_engine *engine);
gb_status __real_gb_compiled_partition_execute(const gb_compiled_partition *compiled,
        gb_stream *stream, size_t n_inputs, const gb_tensor *const *inputs, size_t n_outputs,
        gb_tensor *const *outputs, gb_tensor *scratchpad);
gb_status __wrap_gb_compiled_partition_execute(const gb_compiled_partition *compiled,
        gb_stream *stream, size_t n_inputs, const gb_tensor *const *inputs, size_t n_outputs,
        gb_tensor *const *outputs, gb_tensor *scratchpad);

gb_status __real_gb_set_left_out_pass(const char *name);
gb_status __wrap_gb_set_left_out_pass(const char *name);

gb_status __wrap_gb_set_left_out_pass(const char *name)
{
    snprintf(left_out, sizeof left_out, "%s", name ? name : "");
    return __real_gb_set_left_out_pass(name);
}

static bool has_kind(const gb_partition *partition, const char *name, size_t length)
{
    size_t n = 0;
    gb_partition_get_ops(partition, 0, NULL, &n);
    for (size_t i = 0; i < n; i++) {
        const gb_op *op;
        gb_op_kind kind;
        if (gb_partition_get_op(partition, i, &op) == GB_SUCCESS &&
                gb_op_get_kind(op, &kind) == GB_SUCCESS &&
                strlen(gb_op_kind_name(kind)) == length &&
                strncmp(gb_op_kind_name(kind), name, length) == 0)
            return true;
    }
    return false;
}

/* The action of the first fault that concerns the partition, or "". */
static void find_action(const gb_partition *partition, char action[32])
{
    const char *at = getenv("GB_TEST_FAULT");
    action[0] = '\0';
    while (at && *at && !action[0]) {
        bool fits = true;
        while (*at && *at != ':') {
            size_t length = strcspn(at, "+:");
            fits = fits && has_kind(partition, at, length);
            at += length + (at[length] == '+');
        }
        at += *at == ':';
        size_t length = strcspn(at, ",");
        if (fits)
            snprintf(action, 32, "%.*s", (int)length, at);
        at += length + (at[length] == ',');
    }
}

gb_status __wrap_gb_partition_compile(const gb_partition *partition,
        gb_compiled_partition **compiled, size_t n_inputs, const gb_logical_tensor *const *inputs,
        size_t n_outputs, const gb_logical_tensor *const *outputs, const gb_engine *engine)
{
    gb_status status = __real_gb_partition_compile(
            partition, compiled, n_inputs, inputs, n_outputs, outputs, engine);
    static size_t next;
    for (size_t i = 0; status == GB_SUCCESS && i < FAULTY; i++)
        if (faulty[i].compiled == *compiled)
            faulty[i].compiled = NULL;
    if (status != GB_SUCCESS)
        return status;
    char action[32];
    find_action(partition, action);
    if (action[0]) {
        faulty[next % FAULTY].compiled = *compiled;
        faulty[next % FAULTY].executions = 0;
        memcpy(faulty[next++ % FAULTY].action, action, sizeof action);
    }
    return status;
}

static void take_memory(void)
{
    enum { CHUNK = 1 << 24, CHUNKS = 40 * 64 };
    for (int i = 0; i < CHUNKS; i++) {
        char *chunk = malloc(CHUNK);
        if (!chunk)
            return;
        memset(chunk, 1, CHUNK);
    }
}

static void hold_memory(void)
{
    enum { HELD = 500 << 20 };
    FILE *file = fopen(getenv("GB_TEST_HELD"), "a");
    void *taken = malloc(HELD);
    volatile char *memory = taken;
    if (!file || !memory)
        abort();
    fputc('.', file);
    fclose(file);
    for (size_t i = 0; i < HELD; i += 1024)
        memory[i] = 1;
    sleep(1);
    free(taken);
}

/* A worker has none; the program that measures has one worker. */
static void end_children(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    FILE *file = fopen(path, "r");
    int pid;
    while (file && fscanf(file, "%d", &pid) == 1)
        kill(pid, SIGKILL);
    if (file)
        fclose(file);
}

/* NULL where the engine has memory of its own. */
static unsigned char *data_of(const gb_tensor *tensor, gb_logical_tensor *description)
{
    unsigned char *data = NULL;
    bool known = gb_tensor_get_logical_tensor(tensor, description) == GB_SUCCESS &&
                 gb_tensor_get_data_handle(tensor, (void **)&data) == GB_SUCCESS;
    return known ? data : NULL;
}

/* The bit above all others but the sign, of the first element. */
static void spoil(const gb_tensor *tensor)
{
    gb_logical_tensor description;
    unsigned char *data = data_of(tensor, &description);
    if (data)
        data[gb_data_type_bytes(description.data_type, 1) - 1] ^= 0x40;
}

static void set_byte(const gb_tensor *tensor, bool behind)
{
    gb_logical_tensor description;
    unsigned char *data = data_of(tensor, &description);
    size_t bytes = 0;
    if (data && gb_logical_tensor_get_mem_size(&description, &bytes) == GB_SUCCESS)
        data[behind ? bytes : 0] = behind ? 0x11 : 0xFF;
}

static bool begins_large(const gb_tensor *tensor)
{
    float *data = NULL;
    return gb_tensor_get_data_handle(tensor, (void **)&data) == GB_SUCCESS && data &&
           (data[0] > 8 || data[0] < -8);
}

static bool lies_otherwise(const gb_tensor *tensor)
{
    gb_logical_tensor description;
    int64_t dense = 1;
    bool row_major = true;
    if (gb_tensor_get_logical_tensor(tensor, &description) != GB_SUCCESS)
        return false;
    for (int d = description.ndims - 1; d >= 0; d--) {
        row_major = row_major && (description.dims[d] == 1 || description.strides[d] == dense);
        dense *= description.dims[d];
    }
    return !row_major;
}

gb_status __wrap_gb_compiled_partition_execute(const gb_compiled_partition *compiled,
        gb_stream *stream, size_t n_inputs, const gb_tensor *const *inputs, size_t n_outputs,
        gb_tensor *const *outputs, gb_tensor *scratchpad)
{
    const char *action = "";
    size_t executions = 0;
    static bool executed;
    for (size_t i = 0; i < FAULTY; i++)
        if (faulty[i].compiled == compiled) {
            action = faulty[i].action;
            executions = ++faulty[i].executions;
        }
    if (strcmp(action, "fail") == 0)
        return GB_RUNTIME_ERROR;
    if (strcmp(action, "segv") == 0)
        raise(SIGSEGV);
    if (strcmp(action, "abort") == 0)
        abort();
    if (strcmp(action, "exit") == 0)
        exit(0);
    static size_t thirds;
    if (strcmp(action, "third") == 0 && ++thirds == 3)
        raise(SIGSEGV);
    if (strcmp(action, "fork") == 0 && fork() == 0) {
        sleep(20);
        _exit(0);
    }
    if (strcmp(action, "fork") == 0)
        raise(SIGSEGV);
    while (strcmp(action, "loop") == 0)
        pause();
    if (strcmp(action, "memory") == 0)
        take_memory();
    if (strcmp(action, "hold") == 0)
        hold_memory();
    if (strcmp(action, "children") == 0)
        end_children();
    bool large = strcmp(action, "large") == 0 && begins_large(inputs[0]);
    static const gb_compiled_partition *last;
    static bool known;
    bool between = strcmp(action, "between") == 0 && known && last != compiled;
    known = known || strcmp(action, "between") == 0;
    last = compiled;
    gb_status status = __real_gb_compiled_partition_execute(
            compiled, stream, n_inputs, inputs, n_outputs, outputs, scratchpad);
    bool spoils = strncmp(action, "wrong", 5) == 0 &&
                  (action[5] != '@' || strcmp(action + 6, left_out) != 0);
    bool second = strcmp(action, "second") == 0 && executions > 1;
    bool once = strcmp(action, "once") == 0 && !executed;
    executed = executed || once;
    bool strided = strcmp(action, "strided") == 0 && lies_otherwise(inputs[0]);
    if (status == GB_SUCCESS && (spoils || large || between || second || once || strided))
        spoil(outputs[0]);
    if (status == GB_SUCCESS && strcmp(action, "input") == 0)
        spoil(inputs[0]);
    if (status == GB_SUCCESS && (strcmp(action, "mask") == 0 || strcmp(action, "behind") == 0))
        set_byte(outputs[0], strcmp(action, "behind") == 0);
    return status;
}

int main(int argc, char **argv)
{
    return gb_cli_main(argc, argv);
}
