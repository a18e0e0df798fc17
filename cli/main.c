/* graph-bench: checks and measures deep-learning graphs. */
#include "app.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

int main(int argc, char **argv)
{
#if defined(__GLIBC__)
    /* Tensors and their f64 twins come and go by the gigabyte: memory that is kept and used again saves the page faults,
     * which otherwise take longer than the arithmetic. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
#endif
    return gb_cli_main(argc, argv);
}
