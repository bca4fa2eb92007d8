/* SPDX-License-Identifier: MIT */
/* Starting a thread: see thread.h. */
#include "os/thread.h"

#include <signal.h>

#include "base/units.h"

#define STACK_BYTES (128 * KIB)

/* They come of what a thread does itself, and are the end of the process where they are blocked, whatever handler there is. */
static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};

int thread_start(pthread_t *ret, void *(*work)(void *context), void *context) {
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&all, own[i]);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = -pthread_create(ret, &attributes, work, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return r;
}
