/* graph-bench: checks and measures deep-learning graphs. */
#include "cli/app.h"

int main(int argc, char **argv)
{
    return gb_cli_main(argc, argv);
}
