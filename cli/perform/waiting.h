/* How threads of the GNU OpenMP runtime wait for each other. Other runtimes make nothing of it. */
#ifndef GB_CLI_PERFORM_WAITING_H
#define GB_CLI_PERFORM_WAITING_H

/* Starts the program `argv` anew, unless the user says how threads wait (GOMP_SPINCOUNT,
 * OMP_WAIT_POLICY): the runtime reads it when it is loaded. Threads then spin for 0.1 ms before they
 * sleep, in place of milliseconds. Where another program takes a core, the scheduler may leave the
 * other one to two threads of ours, and each spins until its time slice ends. */
void gb_cli_wait_briefly(char **argv);

/* In a process that is about to become a worker which measures nothing: its threads sleep at once,
 * unless the user says how they wait, for those that spin keep others from running. */
void gb_cli_wait_asleep(void);

#endif
