/* How threads wait for each other. */
#include "cli/perform/waiting.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rounds of 23 ns (Zen 5). BERT-base in int8 on two threads, end to end: 1.3 ms with 1,000 to 300,000
 * of them (the default); beside a program that takes one core all the time 3.5 ms with 1,000, 6.5
 * with 5,000, 112 with 300,000. With 1,000 a small ResNet-50 takes 30 % longer, with 5,000 it does not. */
static const char brief[] = "5000";

void gb_cli_wait_briefly(char **argv)
{
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY"))
        return;
    if (setenv("GOMP_SPINCOUNT", brief, 1) == 0)
        execv("/proc/self/exe", argv); /* or go on as it is */
}

void gb_cli_wait_asleep(void)
{
    const char *spins = getenv("GOMP_SPINCOUNT");
    if (spins && strcmp(spins, brief) == 0)
        unsetenv("GOMP_SPINCOUNT"); /* it would outweigh the policy */
    setenv("OMP_WAIT_POLICY", "passive", 0);
}
