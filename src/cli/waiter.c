/* SPDX-License-Identifier: MIT */
/* Waits for jobs without their output: see waiter.h. */
#include "cli/waiter.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/complain.h"
#include "cli/epilogue.h"

enum waited { WAITED_GOES, WAITED_HELD, WAITED_OVER };

/* Whoever writes output to files may be gone, or what it writes to may be slow. */
#define HELD_NS (10 * NS_PER_S)

/* Numbers often follow each other. */
static bool find(const struct waiter *w, uint32_t job, uint32_t *ret) {
    uint32_t count = w->jobs.count;
    if (count == 0)
        return false;
    *ret = job - w->jobs.at[0];
    if (*ret < count && w->jobs.at[*ret] == job)
        return true;
    for (*ret = 0; *ret < count; (*ret)++)
        if (w->jobs.at[*ret] == job)
            return true;
    return false;
}

static void is_over(struct waiter *w, uint32_t place, int status) {
    if (w->states[place] != WAITED_GOES)
        return;
    w->states[place] = WAITED_OVER;
    w->left--;
    w->status = status > w->status ? status : w->status;
}

static void is_held(struct waiter *w, uint32_t place, bool held) {
    if (held == (w->states[place] == WAITED_HELD))
        return;
    w->states[place] = held ? WAITED_HELD : WAITED_OVER;
    w->held = held ? w->held + 1 : w->held - 1;
    w->held_until = w->contact.loop.now + HELD_NS;
}

/* Jobs of an array often go wrong in the same way: one line is for the first, and one for all others. */
static void say_unwritten(struct waiter *w, uint32_t job, struct bytes words) {
    char what[24];
    snprintf(what, sizeof what, "job %" PRIu32, job);
    if (w->unwritten++ == 0)
        complain(what, "its output could not be written: %.*s", (int)words.len,
                 (const char *)words.at);
}

static void on_news(void *context, const struct message_news *n) {
    struct waiter *w = context;
    uint32_t place;
    if (!(state_over((enum job_state)n->state) || n->settled) || !find(w, n->job, &place))
        return;
    if (w->states[place] == WAITED_GOES)
        epilogue_print(&w->contact.cluster, n, &(struct epilogue){0});
    if (w->states[place] == WAITED_GOES && w->verbose)
        epilogue_usage(stderr, &w->contact.cluster, n);
    if (n->unwritten.len > 0)
        say_unwritten(w, n->job, n->unwritten);
    is_over(w, place, (int)(n->status & 0xff));
    is_held(w, place, n->held);
}

static void on_lost(void *context, enum session_loss why) {
    struct waiter *w = context;
    w->done = true;
    w->status = contact_lost(&w->contact, why);
}

static void on_followed(void *context, const struct message_answer *a) {
    struct waiter *w = context;
    char what[24];
    uint32_t place;
    if (a->code == ANSWER_DONE || !find(w, a->job, &place))
        return;
    snprintf(what, sizeof what, "job %" PRIu32, a->job);
    is_over(w, place, contact_refused(what, a));
}

int waiter_begin(struct waiter *w) {
    struct session_config callbacks = {
        .patience_ns = PATIENCE_WAITING, .context = w, .news = on_news, .lost = on_lost};
    return contact_begin(&w->contact, &callbacks);
}

int waiter_follow(struct waiter *w, struct joblist *jobs, bool array) {
    w->jobs = *jobs;
    *jobs = (struct joblist){0};
    w->left = w->jobs.count;
    w->states = calloc(w->jobs.count, sizeof *w->states);
    ASSERT(w->states != NULL);
    for (uint32_t i = 0; i < (array ? 1 : w->jobs.count); i++)
        if (session_follow(w->contact.session, w->jobs.at[i], array ? 2 : 0, false, on_followed,
                           w) < 0)
            return STATUS_STORM;
    return 0;
}

static bool goes_on(struct waiter *w) {
    if (w->done || w->left > 0)
        return !w->done;
    if (w->held > 0)
        loop_wake_at(&w->contact.loop, w->held_until);
    return w->held > 0 && w->contact.loop.now < w->held_until;
}

int waiter_until_over(struct waiter *w) {
    while (goes_on(w))
        session_turn(w->contact.session);
    if (w->unwritten > 1)
        complain(NULL, "the output of %" PRIu32 " more jobs could not be written",
                 w->unwritten - 1);
    contact_close(&w->contact);
    joblist_fini(&w->jobs);
    free(w->states);
    return w->status;
}
