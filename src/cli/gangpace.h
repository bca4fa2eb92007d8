/* SPDX-License-Identifier: MIT */
/* How fast benched jobs get on while nobody else has our processors.
 *
 * On a machine that is a guest of another, the host takes processors away now and then, for milliseconds or for a second:
 * run times then tell of the host. So the jobs' progress is looked at ten times a second, and only those moments count in which
 * nothing was taken, neither shortly before nor shortly after. */
#pragma once

#include <pthread.h>

#include "cli/gangnotes.h"

/* Looks at once: three spans between them, of which the middle one counts if all are clean. */
enum { GANGPACE_MAX = 4096, GANGPACE_LOOKS = 4 };

/* At one moment. */
struct gangpace_look {
    uint64_t at, stolen_ns; /* of all our processors so far */
    uint32_t jobs;  /* all whose processes have begun and are not done; 0 if it cannot be told */
    uint64_t units; /* that those have done */
};

struct gangpace {
    uint32_t jobs;                              /* that must be there at once */
    struct gangpace_look looks[GANGPACE_LOOKS]; /* the last ones, the newest at the end */
    uint64_t rates[GANGPACE_MAX];               /* units a second, of all jobs together */
    uint32_t count;                             /* of rates */
    const struct gangnotes *notes;              /* of `notes_count` jobs */
    uint32_t notes_count;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool over;
};

/* What other guests of the host have had of our processors, all of them together. */
uint64_t machine_stolen_ns(void);

void gangpace_init(struct gangpace *p, const struct gangnotes *notes, uint32_t count);

/* From now on, until stop: so many jobs are to be there at once. Rates of all such times are collected. 0 or -errno. */
int gangpace_start(struct gangpace *p, uint32_t jobs);
void gangpace_stop(struct gangpace *p);

/* One look more; what it tells of the time before the last one is noted. */
void gangpace_take(struct gangpace *p, const struct gangpace_look *look);
