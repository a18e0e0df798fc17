/* graph-bench: checks and measures deep-learning graphs. */
#include "cli/app/app.h"
#include "cli/perform/waiting.h"

#include <fcntl.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sys/prctl.h>
#endif

/* Who started the program may have closed a standard stream. The next file must not take its place, and
 * the other direction lets each use of the stream fail. */
static void open_missing_streams(void)
{
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) < 0)
            open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
#if defined(__GLIBC__)
    /* Tensors and their f64 twins come and go by the gigabyte: memory that is kept and used again
     * saves the page faults, which otherwise take longer than the arithmetic. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
#endif
#if defined(__linux__)
    /* A program that starts itself anew is "exe" in lists of processes. */
    prctl(PR_SET_NAME, "graph-bench");
#endif
    open_missing_streams();
    gb_cli_wait_briefly(argv);
    return gb_cli_main(argc, argv);
}
