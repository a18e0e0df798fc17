/* Signals that end a run. */
#include "cli/report/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_SECONDS = 2, STACK_BYTES = 256 * 1024 };

static struct {
    sigset_t signals;
    void (*finish)(void *data, int signal);
    void *data;
    atomic_int signal;
    atomic_bool saved;
} interrupt;

static bool start_thread(void *(*function)(void *))
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    bool started = pthread_create(&thread, &attributes, function, NULL) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

/* Did another signal come within the grace? */
static bool comes_again(void)
{
    struct timespec grace = {.tv_sec = GRACE_SECONDS};
    return sigtimedwait(&interrupt.signals, NULL, &grace) > 0;
}

static void *end_run(void *unused)
{
    (void)unused;
    int signal = gb_cli_interrupt_signal();
    interrupt.finish(interrupt.data, signal);
    _exit(128 + signal);
}

static void *watch(void *unused)
{
    (void)unused;
    int signal;
    if (sigwait(&interrupt.signals, &signal) != 0)
        return NULL;
    atomic_store(&interrupt.signal, signal);
    comes_again();
    if (!start_thread(end_run))
        end_run(NULL);
    bool saved = false;
    while (!comes_again() && !saved)
        saved = atomic_load(&interrupt.saved);
    _exit(128 + signal);
}

bool gb_cli_interrupt_start(void (*finish)(void *data, int signal), void *data)
{
    interrupt.finish = finish;
    interrupt.data = data;
    sigemptyset(&interrupt.signals);
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct sigaction old;
        /* Who started the program with a signal ignored (nohup) wants it to live on. */
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaddset(&interrupt.signals, ends[i]);
    }
    sigset_t before;
    if (pthread_sigmask(SIG_BLOCK, &interrupt.signals, &before) != 0)
        return false;
    bool started = start_thread(watch);
    if (!started)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void gb_cli_interrupt_saved(void)
{
    atomic_store(&interrupt.saved, true);
}

int gb_cli_interrupt_signal(void)
{
    return atomic_load(&interrupt.signal);
}
