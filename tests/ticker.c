/* SPDX-License-Identifier: MIT */
/* ticker FILE FIRST COUNT: so many processes that each count up a number of their own in a shared file, as long as they run.
 *
 * They get away from each other in every way there is: children, children of children whose parents are gone, sessions of
 * their own, threads. The last one stops itself before it counts. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 64 * 1024, PAUSE_NS = 500000 };

static _Noreturn void tick(_Atomic uint64_t *number) {
    for (;;) {
        atomic_fetch_add(number, 1);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
}

static void *thread(void *number) {
    tick(number);
}

static _Noreturn void live(long kind, _Atomic uint64_t *number) {
    if (kind == 1)
        setsid();
    if (kind == 2 && fork() != 0)
        _exit(0);
    pthread_t t;
    if (kind == 3 && pthread_create(&t, NULL, thread, (void *)number) == 0)
        for (;;)
            pause();
    tick(number);
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    int fd = open(argv[1], O_RDWR | O_CLOEXEC);
    long first = atol(argv[2]), count = atol(argv[3]);
    _Atomic uint64_t *numbers = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (numbers == MAP_FAILED || (size_t)(first + count) * sizeof *numbers > BYTES)
        return 2;
    for (long i = 1; i < count; i++)
        if (fork() == 0) {
            if (i == count - 1)
                raise(SIGSTOP);
            live(i % 4, &numbers[first + i]);
        }
    tick(&numbers[first]);
}
