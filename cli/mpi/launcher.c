/* graph-bench-mpi: runs graph-bench on many machines under mpirun. The cases are cut into chunks
 * (shards); each rank takes the next one from a counter that all share, runs graph-bench on it as a
 * process of its own, and takes another. Rank 0 joins the reports. Chunks whose report is missing
 * or cut short are run again. graph-bench itself knows nothing of MPI. */
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_GOOD = 0, STATUS_FAILED = 1, STATUS_USAGE = 2, CHUNKS_PER_RANK = 8 };

static const char help[] =
        "Usage: mpirun -n RANKS graph-bench-mpi [OPTION]... -- ARGUMENTS OF GRAPH-BENCH\n"
        "\n"
        "Runs the cases in chunks, each rank the next one, and joins the reports.\n"
        "\n"
        "Options:\n"
        "  -o FILE         the joined report, as of graph-bench merge [FOLDER/all.json]\n"
        "  --folder=DIR    of the reports of chunks, seen by all ranks; started again with the\n"
        "                  same arguments, whole ones are kept [mpi-results]\n"
        "  --chunks=N      [8 for each rank]\n"
        "  --retries=N     run lost chunks again so many times [2]\n"
        "  --program=FILE  graph-bench [beside this program]\n";

typedef struct launcher {
    int rank, n_ranks;
    char *program, *output; /* owned */
    const char *folder;
    long chunks, retries;
    int n_arguments;
    char **arguments; /* of graph-bench */
    long *todo;       /* owned; numbers of chunks */
    long n_todo;
    MPI_Win window; /* the counter, on rank 0: how many of `todo` were taken */
    long *counter;
} launcher;

static void *checked(void *memory)
{
    if (!memory) {
        fputs("graph-bench-mpi: out of memory\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, STATUS_FAILED);
    }
    return memory;
}

static char *join(const char *first, const char *second, const char *third)
{
    size_t size = strlen(first) + strlen(second) + strlen(third) + 1;
    char *text = checked(malloc(size));
    snprintf(text, size, "%s%s%s", first, second, third);
    return text;
}

static char *report_path(const launcher *l, long chunk)
{
    char name[40];
    snprintf(name, sizeof name, "/%ld", chunk);
    return join(l->folder, name, ".json");
}

/* ------------------------------------------------------------ processes */

/* Other ranks' use of the counter on rank 0 needs calls of MPI there while it waits. */
static void let_others_on(void)
{
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* Starts the program with its outputs in `out` (-1: as they are). It does not outlive this process:
 * mpirun only ends the processes that it knows. */
static pid_t start(char **arguments, int out)
{
    fflush(NULL);
    pid_t child = fork();
    if (child != 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    execvp(arguments[0], arguments);
    fprintf(stderr, "graph-bench-mpi: %s: %s\n", arguments[0], strerror(errno));
    _exit(127);
}

/* The exit status; -1 after a signal. */
static int wait_for(pid_t child)
{
    int status = 0;
    pid_t ended;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR))
        let_others_on();
    return ended == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void run_chunk(const launcher *l, long chunk)
{
    char numbers[64];
    snprintf(numbers, sizeof numbers, "%ld/%ld", chunk, l->chunks);
    char *report = report_path(l, chunk);
    char *shard = join("--shard=", numbers, ""), *json = join("--json=", report, "");
    char *resume = join("--resume=", report, "");
    char **arguments = checked(calloc((size_t)l->n_arguments + 5, sizeof *arguments));
    int n = 0;
    arguments[n++] = l->program;
    arguments[n++] = shard;
    arguments[n++] = json;
    struct stat info;
    if (stat(report, &info) == 0 && info.st_size > 0)
        arguments[n++] = resume;
    memcpy(arguments + n, l->arguments, (size_t)l->n_arguments * sizeof *arguments);
    int status = wait_for(start(arguments, -1));
    if (status != STATUS_GOOD && status != STATUS_FAILED)
        fprintf(stderr, "graph-bench-mpi: chunk %s ended with %d on rank %d\n", numbers, status,
                l->rank);
    /* What cannot be read as a report is no ground to go on from. */
    if (status == STATUS_USAGE && n > 3)
        unlink(report);
    free(arguments);
    free(resume);
    free(json);
    free(shard);
    free(report);
}

/* ------------------------------------------------------------ chunks that are to be run */

/* Arguments "PROGRAM merge OPTION... REPORTS OF ALL CHUNKS THAT HAVE ONE"; the last ones are the
 * caller's. */
static char **merge_arguments(const launcher *l, const char *const *options, int n_options)
{
    char **arguments = checked(calloc((size_t)(l->chunks + n_options) + 3, sizeof *arguments));
    int n = 0;
    arguments[n++] = join(l->program, "", "");
    arguments[n++] = join("merge", "", "");
    for (int i = 0; i < n_options; i++)
        arguments[n++] = join(options[i], "", "");
    for (long chunk = 1; chunk <= l->chunks; chunk++) {
        char *report = report_path(l, chunk);
        if (access(report, F_OK) == 0)
            arguments[n++] = report;
        else
            free(report);
    }
    return arguments;
}

static void free_arguments(char **arguments)
{
    for (char **argument = arguments; *argument; argument++)
        free(*argument);
    free(arguments);
}

/* "2,5-7" */
static void read_list(launcher *l, FILE *file)
{
    long first, last;
    while (fscanf(file, "%ld", &first) == 1) { /* NOLINT(cert-err34-c): graph-bench wrote it */
        last = first;
        int next = fgetc(file);
        if (next == '-' && fscanf(file, "%ld", &last) == 1) /* NOLINT(cert-err34-c): the same */
            next = fgetc(file);
        for (; first <= last && l->n_todo < l->chunks; first++)
            l->todo[l->n_todo++] = first;
        if (next != ',')
            break;
    }
}

/* Rank 0 asks graph-bench which chunks have no whole report, and tells the others. */
static void find_lost(launcher *l)
{
    l->n_todo = 0;
    if (l->rank == 0) {
        char count[40];
        snprintf(count, sizeof count, "--lost=%ld", l->chunks);
        char **arguments = merge_arguments(l, (const char *const[]){count}, 1);
        FILE *answer = checked(tmpfile());
        int status = wait_for(start(arguments, fileno(answer)));
        rewind(answer);
        read_list(l, answer);
        fclose(answer);
        free_arguments(arguments);
        if (status != STATUS_GOOD)
            MPI_Abort(MPI_COMM_WORLD, STATUS_USAGE);
    }
    MPI_Bcast(&l->n_todo, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    MPI_Bcast(l->todo, (int)l->n_todo, MPI_LONG, 0, MPI_COMM_WORLD);
}

/* The ranks wait without taking a processor from those that still run. */
static void meet(void)
{
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE))
        let_others_on();
}

static void run_chunks(launcher *l)
{
    const long one = 1;
    for (;;) {
        long taken;
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, l->window);
        MPI_Fetch_and_op(&one, &taken, MPI_LONG, 0, 0, MPI_SUM, l->window);
        MPI_Win_unlock(0, l->window);
        if (taken >= l->n_todo)
            break;
        run_chunk(l, l->todo[taken]);
    }
    meet();
}

/* ------------------------------------------------------------ arguments */

static bool take_number(const char *text, long least, long *number)
{
    char *end;
    *number = strtol(text, &end, 10);
    return end != text && !*end && *number >= least && *number <= 1000000;
}

/* graph-bench in the folder of this program. */
static char *find_program(void)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return join(path, "/graph-bench", "");
}

static bool take_option(launcher *l, int argc, char **argv, int *i)
{
    const char *word = argv[*i], *value = strchr(word, '=');
    if (strcmp(word, "-o") == 0 && *i + 1 < argc) {
        free(l->output);
        l->output = join(argv[++*i], "", "");
    } else if (strncmp(word, "--folder=", 9) == 0) {
        l->folder = value + 1;
    } else if (strncmp(word, "--program=", 10) == 0) {
        free(l->program);
        l->program = join(value + 1, "", "");
    } else if (strncmp(word, "--chunks=", 9) == 0) {
        return take_number(value + 1, 1, &l->chunks);
    } else if (strncmp(word, "--retries=", 10) == 0) {
        return take_number(value + 1, 0, &l->retries);
    } else {
        return false;
    }
    return true;
}

/* False, with a message of rank 0, when they are not understood. */
static bool take_arguments(launcher *l, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!take_option(l, argc, argv, &i)) {
            if (l->rank == 0)
                fprintf(stderr, "graph-bench-mpi: \"%s\" is not understood\n\n%s", argv[i], help);
            return false;
        }
    l->arguments = argv + i + 1;
    l->n_arguments = argc - i - 1;
    if (l->n_arguments < 1) {
        if (l->rank == 0)
            fprintf(stderr, "graph-bench-mpi: which cases? Behind --\n\n%s", help);
        return false;
    }
    if (!l->output)
        l->output = join(l->folder, "/all.json", "");
    return true;
}

/* Reports of another run would be counted as results of this one: the file "run" in the folder tells
 * what it is for. On rank 0. */
static bool claim_folder(const launcher *l)
{
    char chunks[40], path[4096], before[65536], now[sizeof before];
    snprintf(chunks, sizeof chunks, "%ld\n", l->chunks);
    snprintf(path, sizeof path, "%s/run", l->folder);
    size_t length = (size_t)snprintf(now, sizeof now, "%s", chunks);
    for (int i = 0; i < l->n_arguments && length < sizeof now; i++)
        length += (size_t)snprintf(now + length, sizeof now - length, "%s\n", l->arguments[i]);
    bool made = mkdir(l->folder, 0777) == 0 || errno == EEXIST;
    FILE *file = made && length < sizeof now ? fopen(path, "a+") : NULL;
    size_t n = 0;
    if (file) {
        rewind(file);
        n = fread(before, 1, sizeof before, file);
    }
    bool same = file && (n == 0 || (n == length && memcmp(before, now, n) == 0));
    if (!file)
        fprintf(stderr, "graph-bench-mpi: %s: %s\n", path, strerror(errno));
    else if (!same)
        fprintf(stderr, "graph-bench-mpi: %s holds another run: other arguments or chunks\n",
                l->folder);
    else if (n == 0)
        same = fwrite(now, 1, length, file) == length;
    if (file)
        same = fclose(file) == 0 && same;
    return same;
}

/* ------------------------------------------------------------ main */

static int run(launcher *l)
{
    l->todo = checked(calloc((size_t)l->chunks, sizeof *l->todo));
    MPI_Win_allocate(l->rank == 0 ? sizeof(long) : 0, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
            &l->counter, &l->window);
    int claimed = l->rank == 0 && claim_folder(l);
    MPI_Bcast(&claimed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (claimed)
        find_lost(l);
    int status = claimed ? STATUS_GOOD : STATUS_USAGE;
    for (long round = 0; l->n_todo > 0 && round <= l->retries; round++) {
        if (l->rank == 0) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, l->window);
            *l->counter = 0;
            MPI_Win_unlock(0, l->window);
        }
        meet();
        run_chunks(l);
        find_lost(l);
    }
    if (l->rank == 0 && claimed) {
        const char *const options[] = {"--check", "-o", l->output};
        char **arguments = merge_arguments(l, options, 3);
        status = wait_for(start(arguments, -1));
        free_arguments(arguments);
        if (l->n_todo > 0)
            fprintf(stderr, "graph-bench-mpi: %ld of %ld chunks are lost\n", l->n_todo, l->chunks);
        status = status < 0 || (status == STATUS_GOOD && l->n_todo > 0) ? STATUS_FAILED : status;
    }
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Win_free(&l->window);
    free(l->todo);
    return status;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    launcher l = {.folder = "mpi-results", .retries = 2, .program = find_program()};
    MPI_Comm_rank(MPI_COMM_WORLD, &l.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &l.n_ranks);
    l.chunks = (long)CHUNKS_PER_RANK * l.n_ranks;
    int status = STATUS_GOOD;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        if (l.rank == 0)
            fputs(help, stdout);
    } else {
        status = take_arguments(&l, argc, argv) ? run(&l) : STATUS_USAGE;
    }
    free(l.program);
    free(l.output);
    MPI_Finalize();
    return status;
}
