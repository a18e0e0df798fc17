/* graph-bench worker: the process that --isolate has cases run in. */
#include "cli/perform/worker.h"
#include "cli/commands/arguments.h"
#include "cli/options/exit_status.h"
#include "cli/options/message.h"

#include <stdlib.h>

int gb_cli_command_worker(const gb_command *command, int argc, char **argv)
{
    (void)command;
    enum { SOCKET = 1, STAGE, PARENT, WORDS };
    long numbers[WORDS] = {0};
    bool good = argc == WORDS;
    for (int i = SOCKET; good && i < WORDS; i++) {
        char *end;
        numbers[i] = strtol(argv[i], &end, 10);
        good = *argv[i] && !*end && numbers[i] > 0;
    }
    if (!good) {
        gb_cli_print_error(NULL, "worker: to be started by --isolate only");
        return EXIT_USAGE;
    }
    return gb_cli_worker_run((int)numbers[SOCKET], (int)numbers[STAGE], numbers[PARENT]);
}
