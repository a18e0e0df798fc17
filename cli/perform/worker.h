/* The process that performs cases for another one: what crashes, hangs or takes all memory there is
 * no more than the verdict of a case. */
#ifndef GB_CLI_PERFORM_WORKER_H
#define GB_CLI_PERFORM_WORKER_H

/* Performs what comes over the socket, one case after the other, until the other end is gone.
 * `stage`: descriptor of a shared gb_stage. Ends with the process `parent`. The exit status. */
int gb_cli_worker_run(int socket, int stage, long parent);

#endif
