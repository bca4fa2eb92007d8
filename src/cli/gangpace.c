/* SPDX-License-Identifier: MIT */
/* How fast benched jobs get on: see gangpace.h. */
#include "cli/gangpace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "os/loop.h"
#include "os/thread.h"

#define LOOK_NS (100 * NS_PER_MS)

uint64_t machine_stolen_ns(void) {
    FILE *f = fopen("/proc/stat", "re");
    uint64_t ticks = 0;
    if (f != NULL && fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks) != 1)
        ticks = 0;
    if (f != NULL)
        fclose(f);
    return ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

void gangpace_init(struct gangpace *p, const struct gangnotes *notes, uint32_t count) {
    *p = (struct gangpace){.notes = notes, .notes_count = count};
}

/* ---- looks ---- */

enum presence { ABSENT, PARTLY, PRESENT };

/* The others write meanwhile: what is wrong by a moment is so for a look that does not count. */
static enum presence look_at_job(const struct gangnotes *n, uint64_t *units) {
    uint32_t begun = 0, done = 0;
    for (uint32_t rank = 0; rank < n->count; rank++) {
        const volatile struct gangwork *w = gangnotes_of(n, rank);
        begun += w->begun != 0;
        done += w->done != 0;
        *units += w->units;
    }
    if (begun == n->count && done == 0)
        return PRESENT;
    return begun == 0 || done == n->count ? ABSENT : PARTLY;
}

static struct gangpace_look look(const struct gangpace *p) {
    struct gangpace_look l = {.at = clock_ns(), .stolen_ns = machine_stolen_ns()};
    for (uint32_t i = 0; i < p->notes_count; i++) {
        uint64_t units = 0;
        enum presence is = look_at_job(&p->notes[i], &units);
        if (is == PARTLY)
            return (struct gangpace_look){.at = l.at, .stolen_ns = l.stolen_ns};
        l.jobs += is == PRESENT;
        l.units += is == PRESENT ? units : 0;
    }
    return l;
}

void gangpace_take(struct gangpace *p, const struct gangpace_look *newest) {
    memmove(p->looks, p->looks + 1, (GANGPACE_LOOKS - 1) * sizeof *p->looks);
    p->looks[GANGPACE_LOOKS - 1] = *newest;
    for (int i = 0; i < GANGPACE_LOOKS; i++)
        if (p->looks[i].at == 0 || p->looks[i].jobs != p->jobs ||
            p->looks[i].stolen_ns != newest->stolen_ns)
            return;
    const struct gangpace_look *a = &p->looks[1], *b = &p->looks[2];
    if (p->count < GANGPACE_MAX && b->at > a->at && b->units > a->units)
        p->rates[p->count++] =
            (uint64_t)((double)(b->units - a->units) * (double)NS_PER_S / (double)(b->at - a->at));
}

/* ---- the thread ---- */

static void *watch(void *context) {
    struct gangpace *p = context;
    uint64_t next = clock_ns();
    pthread_mutex_lock(&p->lock);
    while (!p->over) {
        struct gangpace_look l = look(p);
        gangpace_take(p, &l);
        next += LOOK_NS;
        struct timespec until = {.tv_sec = (time_t)(next / NS_PER_S),
                                 .tv_nsec = (long)(next % NS_PER_S)};
        while (!p->over && pthread_cond_timedwait(&p->wake, &p->lock, &until) != ETIMEDOUT)
            ;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

int gangpace_start(struct gangpace *p, uint32_t jobs) {
    pthread_condattr_t clock;
    p->jobs = jobs;
    p->over = false;
    memset(p->looks, 0, sizeof p->looks);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&p->wake, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&p->lock, NULL);
    return thread_start(&p->thread, watch, p);
}

void gangpace_stop(struct gangpace *p) {
    pthread_mutex_lock(&p->lock);
    p->over = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
}
