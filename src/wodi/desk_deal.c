/* SPDX-License-Identifier: MIT */
/* Which step goes to which worker: the longest first, to the fastest that is free; masters share evenly.
 *
 * Steps are sent ahead of their execution only where they are so short that waiting for the next would cost more than a bad
 * order does. A step that is late gets one copy, when there is nothing else to do, and another only if that is late too. */
#include "wodi/desk_inside.h"

/* A step that was sent ahead is freed from behind one that runs for so long, though that may not be late itself. */
enum { STUCK_NS = 50000000 };

/* A step of which nothing is known at all is late after this, and each further copy of it after twice the time. */
#define UNKNOWN_NS (60 * (uint64_t)1000000000)

static bool takes_more(const struct desk *d, const struct worker *k, const struct session *s,
                       uint64_t expected_ns) {
    if (!k->used || k->rests || !desk_worker_told(d, k, s))
        return false;
    if (k->count == 0)
        return true;
    return k->count < d->limits.steps_ahead && expected_ns > 0 &&
           k->load_ns + expected_ns <= d->limits.ahead_ns;
}

/* Free before busy, then fast before slow, or the one with the least to do. */
static bool better(const struct desk *d, const struct session *s, const struct worker *a,
                   const struct worker *b) {
    if (!b)
        return true;
    if ((a->count == 0) != (b->count == 0))
        return a->count == 0;
    return a->count == 0 ? desk_worker_speed(d, s, a) > desk_worker_speed(d, s, b)
                         : a->load_ns < b->load_ns;
}

static struct worker *choose_worker(struct desk *d, const struct session *s, uint64_t expected_ns,
                                    bool idle, const struct worker *except) {
    struct worker *best = NULL;
    for (uint32_t i = 0; i < d->workers_end; i++) {
        struct worker *k = &d->workers[i];
        if (k != except && !(idle && k->count > 0) && takes_more(d, k, s, expected_ns) &&
            better(d, s, k, best))
            best = k;
    }
    return best;
}

/* The one with the fewest under way; among equals they take turns. */
static struct session *choose_session(struct desk *d, const bool *passed, uint64_t now) {
    struct session *best = NULL;
    for (uint32_t i = 0; i < d->limits.masters; i++) {
        uint32_t slot = (d->turn + i) % d->limits.masters;
        struct session *s = &d->sessions[slot];
        if (s->used && !passed[slot] && desk_session_may_run(d, s, now) &&
            (!best || s->running < best->running))
            best = s;
    }
    return best;
}

bool desk_deal(struct desk *d, uint64_t now, struct deeds *out) {
    bool passed[DESK_MASTERS_MAX] = {false};
    for (struct session *s; d->waiting > 0 && (s = choose_session(d, passed, now));) {
        struct step *t = CONTAINER_OF(heap_peek(&s->waiting), struct step, wait);
        uint64_t expected = history_expect(&s->history, t->number, NULL);
        struct worker *k = choose_worker(d, s, expected, false, NULL);
        if (!k) {
            passed[desk_slot_of(d, s)] = true;
            continue;
        }
        if (!room_for_one(out))
            return true;
        desk_worker_give(d, k, t, now, out);
        d->turn = (desk_slot_of(d, s) + 1) % d->limits.masters;
    }
    return false;
}

/* Has what it executes, which is this, run for too long? When it was sent less may have been known than now. */
static bool runs_late(const struct desk *d, const struct worker *k, const struct step *t,
                      uint64_t ran) {
    const struct session *s = &d->sessions[t->slot];
    uint64_t expected = desk_worker_errand(d, k, 0)->expected_ns;
    if (expected == 0)
        expected = desk_worker_expect(d, k, t);
    if (expected == 0)
        return ran >> (t->copies < 10 ? t->copies : 10) > UNKNOWN_NS / 2;
    return straggle_late(&s->spread[k->class], ran, expected);
}

/* Is the n-th of its steps to be done elsewhere too? */
static bool is_late(const struct desk *d, const struct worker *k, uint32_t n, const struct step *t,
                    uint64_t now) {
    uint64_t ran = now > k->since ? now - k->since : 0;
    if (k->rests || n > 0)
        return k->rests || ran > STUCK_NS;
    return runs_late(d, k, t, ran);
}

/* Has nobody it who may still be in time? A copy that is late itself, as its machine stands still too, is none. */
static bool late_everywhere(struct desk *d, const struct step *t, uint64_t now) {
    uint32_t late = 0;
    for (uint32_t i = 0; i < d->workers_end && late < t->copies; i++) {
        const struct worker *k = &d->workers[i];
        for (uint32_t n = 0; k->used && n < k->count; n++)
            late += desk_step_of(d, desk_worker_errand(d, k, n)) == t && is_late(d, k, n, t, now);
    }
    return late == t->copies;
}

void desk_deal_copies(struct desk *d, uint64_t now, struct deeds *out) {
    for (uint32_t i = 0; i < d->workers_end && !d->limits.no_copies; i++) {
        struct worker *k = &d->workers[i];
        for (uint32_t n = 0; k->used && n < k->count; n++) {
            struct step *t = desk_step_of(d, desk_worker_errand(d, k, n));
            if (!t || t->state != STEP_RUNNING || !is_late(d, k, n, t, now) ||
                !late_everywhere(d, t, now))
                continue;
            struct worker *other = choose_worker(d, &d->sessions[t->slot], 0, true, k);
            if (!other || !room_for_one(out))
                return;
            desk_worker_give(d, other, t, now, out);
        }
    }
}
