/* SPDX-License-Identifier: MIT */
/* storm-mime SECONDS [PERCENT]: plays a job of a trace. It takes so long, computes for that share of the time, and sleeps
 * for the rest. Linked statically, it needs almost no memory: a machine can have thousands of them.
 *
 * It computes in portions, of a processor's time, and between them sleeps until the portion's time is over. So a process that
 * is alone takes as long as it was told; one that has to share its processor, or is held while others have their
 * turn, still computes all it has to and takes longer, but catches up on sleep. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static const uint64_t second = 1000000000;

enum { PORTIONS = 20, STEPS = 400 };

static uint64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * second + (uint64_t)t.tv_nsec;
}

static void compute(uint64_t ns) {
    uint64_t end = now(CLOCK_PROCESS_CPUTIME_ID) + ns, x = end;
    while (now(CLOCK_PROCESS_CPUTIME_ID) < end)
        for (int i = 0; i < STEPS; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            __asm__ volatile("" : "+r"(x));
        }
}

static void sleep_until(uint64_t ns) {
    struct timespec t = {.tv_sec = (time_t)(ns / second), .tv_nsec = (long)(ns % second)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        continue;
}

/* At most a second, not below ten milliseconds: many jobs wake up often. */
static uint64_t portion_of(uint64_t run) {
    uint64_t portion = run / PORTIONS;
    return portion > second ? second : portion < second / 100 ? second / 100 : portion;
}

int main(int argc, char **argv) {
    uint64_t begin = now(CLOCK_MONOTONIC);
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0;
    double percent = argc > 2 ? strtod(argv[2], NULL) : 0;
    if (!(seconds > 0 && seconds < 1e9))
        return seconds == 0 ? 0 : 2;
    double share = percent > 0 ? percent < 100 ? percent / 100 : 1 : 0;
    uint64_t run = (uint64_t)(seconds * (double)second);
    uint64_t portion = share > 0 ? portion_of(run) : run;
    for (uint64_t done = 0; done < run; done += portion) {
        uint64_t next = run - done < portion ? run - done : portion;
        if (share > 0)
            compute((uint64_t)((double)next * share));
        sleep_until(begin + done + next);
    }
    return 0;
}
