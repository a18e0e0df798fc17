/* Where files lie that nobody keeps. */
#include "cli/report/temporary.h"

#include "cli/options/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

const char *gb_cli_temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

/* tmpfile() would not look at $TMPDIR. */
FILE *gb_cli_temporary_file(void)
{
    gb_text path = {0};
    gb_cli_text_add(&path, "%s/graph-bench-XXXXXX", gb_cli_temporary_folder());
    int descriptor = mkstemp(path.data);
    if (descriptor >= 0) {
        unlink(path.data);
        fcntl(descriptor, F_SETFD, FD_CLOEXEC); /* workers have no use for it */
    }
    int error = errno;
    gb_cli_text_free(&path);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w+") : NULL;
    if (!file && descriptor >= 0) {
        error = errno;
        close(descriptor);
    }
    errno = error;
    return file;
}
