/* SPDX-License-Identifier: MIT */
/* Jobs that may not start yet: others have to end first, or a time has to come.
 *
 * A submission waits as a whole, so all jobs of an array do. Each condition has a place in a table; those about a job are
 * found by its number. When the last is met, its jobs join the queue; when one never can be, they are ended,
 * since nobody wants to wait for ever.
 *
 * What became of a condition is in the log before the end of the job that it was about. So when the log is read again, one
 * about a job that is not known any more was met, unless the log says that it was missed. On a full disk it may be missing:
 * then the job's own end, which is logged again, tells the same. */
#include <errno.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/units.h"
#include "mm/inside.h"

/* For one job; what follows from its end is done in one step. */
enum { FOLLOWERS_MAX = 256 };

static uint32_t bucket_of(uint32_t job) {
    return job % AWAIT_BUCKETS;
}

static uint32_t place_of(const struct mm *m, const struct await *a) {
    return (uint32_t)(a - m->awaits);
}

static struct await *await_new(struct mm *m, struct job *first) {
    struct await *a = NULL;
    if (m->await_free != NO_SLOT) {
        a = &m->awaits[m->await_free];
        m->await_free = a->next;
    } else if (m->await_peak < m->await_cap) {
        a = &m->awaits[m->await_peak++];
    }
    ASSERT(a !=
           NULL); /* waits_judge has counted; whoever is read again waits for no more than before */
    *a = (struct await){.job = first->id, .next = NO_SLOT, .sibling = first->awaits};
    first->awaits = place_of(m, a);
    m->await_used++;
    return a;
}

static void unlink_sibling(struct mm *m, const struct await *a) {
    struct job *first = job_find(m, a->job);
    uint32_t *at = first == NULL ? NULL : &first->awaits;
    while (at != NULL && *at != NO_SLOT && *at != place_of(m, a))
        at = &m->awaits[*at].sibling;
    if (at != NULL && *at != NO_SLOT)
        *at = a->sibling;
}

static void await_free(struct mm *m, struct await *a) {
    unlink_sibling(m, a);
    if (heap_item_queued(&a->due))
        heap_remove(&m->begins, &a->due);
    for (uint32_t *at = &m->await_buckets[bucket_of(a->on)]; a->on != 0 && *at != NO_SLOT;
         at = &m->awaits[*at].next)
        if (*at == place_of(m, a)) {
            *at = a->next;
            break;
        }
    *a = (struct await){.next = m->await_free};
    m->await_free = place_of(m, a);
    m->await_used--;
}

/* ---- what is known of a job that others wait for ---- */

/* The number of an array's first job means all of it. */
static bool is_over(const struct job *j) {
    return state_over((enum job_state)j->state) && (j->count <= 1 || j->left == 0);
}

static bool ended_well(const struct job *j) {
    return j->count > 1 ? !j->spoilt : j->state == STATE_DONE;
}

/* Will never be met: the job is over, and not as it should. */
static bool is_missed(const struct job *on, uint8_t kind) {
    return (kind == AWAIT_OK && !ended_well(on)) || (kind == AWAIT_NOT_OK && ended_well(on));
}

/* ---- submissions ---- */

static uint32_t count_followers(const struct mm *m, uint32_t job) {
    uint32_t count = 0;
    for (uint32_t at = m->await_buckets[bucket_of(job)]; at != NO_SLOT; at = m->awaits[at].next)
        count += m->awaits[at].on == job;
    return count;
}

static int say_of(uint32_t job, const char *words, int error, struct text *why) {
    text_str(why, "job ");
    text_u64(why, job);
    text_str(why, words);
    return error;
}

static int judge_one(const struct mm *m, uint8_t kind, uint32_t job, struct text *why) {
    const struct job *on = job_find(m, job);
    if (on == NULL || on->kind == JOB_STEP)
        return say_of(job, ", which it is to wait for, is not known (any more); see: storm ps -a",
                      -ENOENT, why);
    if (is_over(on) && is_missed(on, kind))
        return say_of(job,
                      kind == AWAIT_OK ? " has not ended well: this would never start"
                                       : " has ended well: this would never start",
                      -ECANCELED, why);
    if (count_followers(m, job) >= FOLLOWERS_MAX)
        return say_of(job, " has too many that wait for it; submit an array, or chain them",
                      -EAGAIN, why);
    return 0;
}

int waits_judge(struct mm *m, const struct message_submit *s, struct text *why) {
    size_t wants = s->after.len / AWAIT_BYTES + (s->begin_ns > 0);
    int r = 0;
    if (s->kind == JOB_STEP && wants > 0) {
        text_str(why, "a step of an allocation starts at once");
        return -EINVAL;
    }
    if (wants > m->await_cap - m->await_used) {
        text_str(why, "too many jobs wait for others; try again later");
        return -EAGAIN;
    }
    for (size_t at = 0; at < s->after.len && r == 0; at += AWAIT_BYTES)
        r = judge_one(m, s->after.at[at], load_le32(s->after.at + at + 1), why);
    return r;
}

static void await_job(struct mm *m, struct job *first, uint8_t kind, uint32_t on) {
    const struct job *j = job_find(m, on);
    if (j == NULL || is_over(j))
        return;
    struct await *a = await_new(m, first);
    a->kind = kind;
    a->on = on;
    a->next = m->await_buckets[bucket_of(on)];
    m->await_buckets[bucket_of(on)] = place_of(m, a);
}

static void await_time(struct mm *m, struct job *first, uint64_t begin_ns) {
    if (begin_ns <= (m->replaying ? m->replayed_at : wall(m)))
        return;
    struct await *a = await_new(m, first);
    a->kind = AWAIT_BEGIN;
    a->due = (struct heap_item){.key = begin_ns, .tie = ++m->ties};
    heap_push(&m->begins, &a->due);
    waits_timer(m);
}

bool waits_take(struct mm *m, struct job *first, const struct message_submit *s) {
    for (size_t at = 0; at < s->after.len; at += AWAIT_BYTES)
        await_job(m, first, s->after.at[at], load_le32(s->after.at + at + 1));
    await_time(m, first, s->begin_ns);
    return first->awaits != NO_SLOT;
}

void waits_forget(struct mm *m, const struct job *first) {
    while (first->awaits != NO_SLOT)
        await_free(m, &m->awaits[first->awaits]);
}

void waits_hold(struct mm *m, struct job *j) {
    j->state = STATE_QUEUED;
    j->waits = true;
    m->queued++;
}

void waits_drop(struct mm *m, struct job *j) {
    ASSERT(j->waits);
    j->waits = false;
    m->queued--;
}

/* ---- conditions are met, or not ---- */

/* All jobs of a submission that still wait. */
static void release(struct mm *m, struct job *first) {
    for (uint32_t i = 0; i < first->count; i++) {
        struct job *j = job_find(m, first->id + i);
        if (j == NULL || j->key != first->key || !j->waits)
            continue;
        waits_drop(m, j);
        queue_enter(m, j);
    }
}

static void met(struct mm *m, struct await *a) {
    struct job *first = job_find(m, a->job);
    await_free(m, a);
    if (first != NULL && first->awaits == NO_SLOT && !first->doomed)
        release(m, first);
}

/* None of its jobs starts any more; they are ended when it is their turn. */
static void doom(struct mm *m, struct job *first) {
    if (first == NULL || first->doomed)
        return;
    for (uint32_t i = 0; i < first->count; i++) {
        struct job *j = job_find(m, first->id + i);
        if (j == NULL || j->key != first->key || j->state != STATE_QUEUED || j->waits)
            continue;
        queue_remove(m, j); /* it was let in when the log was read again, before this was */
        waits_hold(m, j);
    }
    first->doomed = true;
    first->doomed_next = m->doomed_first;
    m->doomed_first = job_place(m, first);
    m->dirty = true;
}

static void settle(struct mm *m, struct await *a, bool good) {
    struct job *first = job_find(m, a->job);
    if (good) {
        met(m, a);
        return;
    }
    await_free(m, a);
    doom(m, first);
}

/* Those that wait for this number, one after the other: what follows changes the table. */
static struct await *next_about(const struct mm *m, uint32_t job) {
    for (uint32_t at = m->await_buckets[bucket_of(job)]; at != NO_SLOT; at = m->awaits[at].next)
        if (m->awaits[at].on == job)
            return &m->awaits[at];
    return NULL;
}

static void resolve(struct mm *m, const struct job *on) {
    for (struct await *a; (a = next_about(m, on->id)) != NULL;) {
        bool good = !is_missed(on, a->kind);
        const struct job *first = job_find(m, a->job);
        if (first != NULL && first->left > 0)
            record_await(m, first, on->id, good);
        m->ending++;
        settle(m, a, good);
    }
}

void waits_ended(struct mm *m, const struct job *j) {
    /* Told before it counts as over: what follows from it must be written down before. */
    struct job *first = job_find(m, (uint32_t)j->key);
    if (first == NULL)
        return;
    first->spoilt = first->spoilt || j->state != STATE_DONE;
    if (first->count > 1 && j->id != first->id)
        resolve(m, j);
    if (first->left <= 1)
        resolve(m, first);
}

void waits_replay(struct mm *m, uint32_t job, uint32_t on, bool good) {
    for (uint32_t at = m->await_buckets[bucket_of(on)]; at != NO_SLOT; at = m->awaits[at].next)
        if (m->awaits[at].on == on && m->awaits[at].job == job) {
            settle(m, &m->awaits[at], good);
            return;
        }
    if (!good) /* about a job that is not known any more */
        doom(m, job_find(m, job));
}

void waits_resume(struct mm *m) {
    for (uint32_t i = 0; i < m->await_peak; i++) {
        struct await *a = &m->awaits[i];
        const struct job *on = a->job == 0 || a->on == 0 ? NULL : job_find(m, a->on);
        if (on != NULL && is_over(on))
            settle(m, a, !is_missed(on, a->kind));
    }
}

void waits_timer(struct mm *m) {
    const struct heap_item *next = heap_peek(&m->begins);
    if (m->replaying)
        return;
    uint64_t at = next == NULL ? 0 : next->key <= wall(m) ? m->now : next->key - m->wall_ns;
    if (m->doomed_first != NO_SLOT) /* the rest of them */
        at = m->now;
    effects_timer(m->out, TIMER_BEGIN, at);
}

static void meet_begins(struct mm *m, uint64_t until) {
    for (struct heap_item *next; (next = heap_peek(&m->begins)) != NULL && next->key <= until;)
        met(m, CONTAINER_OF(next, struct await, due));
}

/* Whose time had come by then was let in before: so it comes to the same place among the others. */
void waits_replay_at(struct mm *m, uint64_t at) {
    m->replayed_at = at;
    meet_begins(m, at);
}

void waits_begin(struct mm *m) {
    meet_begins(m, wall(m));
    m->dirty = m->dirty || m->doomed_first != NO_SLOT;
    waits_timer(m);
}

/* False if there is no room for more ends in this step. */
static bool end_all(struct mm *m, const struct job *first) {
    for (uint32_t i = 0; i < first->count; i++) {
        struct job *j = job_find(m, first->id + i);
        if (j == NULL || j->key != first->key || !j->waits)
            continue;
        if (!after_may_end(m, &m->ending))
            return false;
        end_job(m, j, REASON_AFTER, 0, true);
    }
    return true;
}

/* An end may doom others: the list grows at its head meanwhile. */
void waits_end_doomed(struct mm *m) {
    m->ending = 0;
    while (m->doomed_first != NO_SLOT) {
        struct job *first = &m->jobs[m->doomed_first];
        uint32_t head = m->doomed_first;
        if (!end_all(m, first)) {
            waits_timer(m);
            return;
        }
        if (m->doomed_first == head) {
            m->doomed_first = first->doomed_next;
            waits_forget(m, first);
        }
    }
}

/* ---- words ---- */

static const char *words_of(uint8_t kind) {
    return kind == AWAIT_OK ? " to end well" : kind == AWAIT_NOT_OK ? " to fail" : " to end";
}

void waits_why(const struct mm *m, const struct job *j, struct text *why) {
    const struct job *first = job_find(m, (uint32_t)j->key);
    uint32_t told = 0;
    for (uint32_t i = first == NULL ? NO_SLOT : first->awaits; i != NO_SLOT;
         i = m->awaits[i].sibling) {
        const struct await *a = &m->awaits[i];
        if (told++ == 0 && a->kind == AWAIT_BEGIN) {
            text_str(why, "may start at ");
            text_time(why, a->due.key);
        } else if (told == 1) {
            text_str(why, "waits for job ");
            text_u64(why, a->on);
            text_str(why, words_of(a->kind));
        }
    }
    if (told > 1) {
        text_str(why, ", and for ");
        text_u64(why, told - 1);
        text_str(why, " more");
    }
}
