/* SPDX-License-Identifier: MIT */
/* From the first end to the last word.
 *
 * A job is over when every node that had processes of it has told that none is left, or its lease is
 * over. Its nodes are free then; what became of it is told, and the nodes may forget it, when the end is
 * durable. */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "mm/inside.h"
#include "rm/say.h"

/* Nodes are told what to forget so much later, for many runs at once. */
#define FORGET_NS NS_PER_S

/* How long output of a batch job that nobody takes is kept. */
#define KEEP_BATCH_NS (600 * NS_PER_S)

/* A program that vanishes from a node again and again is not sent for ever. */
enum { IMAGE_ATTEMPTS = 4 };

enum { STATUS_TIME = 124, STATUS_STORM = 125, STATUS_CANNOT = 126, STATUS_NO_PROGRAM = 127 };
enum { SIGNAL_BASE = 128, SIGNAL_KILL = 9, SIGNAL_TERM = 15 };

/* ---- how bad it is ---- */

static uint32_t status_of_ending(const struct ending *e) {
    switch ((enum cause)e->cause) {
    case CAUSE_EXITED:
        return e->value;
    case CAUSE_KILLED:
        return SIGNAL_BASE + e->value;
    case CAUSE_MEMORY:
        return SIGNAL_BASE + SIGNAL_KILL;
    case CAUSE_FAILED:
        if (e->step != SPAWN_PROGRAM)
            return STATUS_STORM;
        return e->value == ENOENT ? STATUS_NO_PROGRAM : STATUS_CANNOT;
    default:
        return STATUS_STORM;
    }
}

/* What STORM could not do says more than what a program did. */
static uint32_t severity(const struct ending *e) {
    static const uint32_t of_cause[CAUSES] = {
        [CAUSE_LOST] = 1000, [CAUSE_UNKNOWN] = 1000, [CAUSE_FAILED] = 2000};
    return of_cause[e->cause] + status_of_ending(e);
}

static void merge(struct running *r, const struct ending *e) {
    r->output += e->output;
    usage_add(&r->usage, &e->usage);
    r->ours = r->ours || e->ours;
    r->bad += e->bad;
    if (r->worst.node == NO_NODE || severity(e) > severity(&r->worst))
        r->worst = *e;
}

static void judge(struct job *j, const struct running *r) {
    uint32_t status = r == NULL || r->worst.node == NO_NODE ? 0 : status_of_ending(&r->worst);
    bool failed = r != NULL && r->worst.cause == CAUSE_FAILED;
    j->state = status == 0 ? STATE_DONE : STATE_FAILED;
    j->status = status;
    if (failed)
        return;
    if (j->reason == REASON_NONE && status == 0 && r != NULL && r->ours) {
        j->reason = REASON_USER; /* a former life has ended it */
    } else if (j->reason == REASON_BAD && status == 0) {
        j->state = STATE_FAILED; /* what was bad is lost */
        j->status = STATUS_STORM;
    }
    if (j->reason == REASON_TIME) {
        j->state = STATE_TIMEOUT;
        j->status = STATUS_TIME;
    } else if (j->reason == REASON_LOST) {
        j->state = STATE_LOST;
        j->status = STATUS_STORM;
    } else if (j->reason == REASON_ORPHAN || j->reason == REASON_AFTER ||
               j->reason == REASON_POLICY || j->reason == REASON_WINDOW ||
               j->reason == REASON_CLAIMED || j->reason == REASON_OWNER ||
               j->reason == REASON_DRAINED || j->reason == REASON_AROUND) {
        j->state = STATE_KILLED;
        j->status = STATUS_STORM;
    } else if (j->reason == REASON_USER) {
        uint32_t signal = r == NULL || r->signal == 0 ? SIGNAL_TERM : r->signal;
        j->state = STATE_KILLED;
        j->status = status == 0 ? SIGNAL_BASE + signal : status;
    }
    if (j->reason == REASON_PARENT ||
        (j->kind == JOB_ALLOC && j->reason == REASON_USER)) { /* given back as it should be */
        j->state = STATE_DONE;
        j->status = 0;
    }
}

/* ---- over ---- */

void end_give_back(struct mm *m, struct job *j, const struct running *r) {
    m->dirty = true;
    if (j->kind != JOB_STEP) {
        queue_leave(m, j);
        if (m->overlap)
            start_hold(m);
        return;
    }
    struct job *around = job_find(m, j->inside);
    struct running *a = around == NULL ? NULL : job_running(m, around);
    if (a == NULL)
        return;
    NODESET_EACH (n, &r->set)
        a->by_node[n] = (uint16_t)(a->by_node[n] - j->ppn);
    a->steps--;
    if (around->reason != REASON_NONE)
        end_check(m, a);
}

static void queue_again(struct mm *m, struct job *j, struct running *r) {
    start_leave(m, r);
    record_again(m, j);
    end_give_back(m, j, r);
    end_forget(m, r->run, &r->set);
    running_free(m, r);
    j->slot = NO_SLOT;
    j->reason = REASON_NONE;
    j->again = false;
    queue_enter(m, j);
    client_news(m, j);
}

static void over(struct mm *m, struct job *j, struct running *r) {
    judge(j, r);
    j->ended_ns = wall(m);
    if (r != NULL) {
        j->worst = r->worst;
        j->bad = r->bad;
        j->output = r->output;
        j->usage = r->usage;
        j->measured = j->kind != JOB_ALLOC;
        r->limit_at = r->force_at = r->repeat_at = r->orphan_at = r->lost_at = r->vacate_at = 0;
        start_leave(m, r); /* perhaps it has ended before its launch was told to be done */
        r->phase = PHASE_OVER;
        due_set(m, r);
        end_give_back(m, j, r);
    }
    waits_ended(m, j);
    after_add(m, record_end(m, j), AFTER_SETTLE)->job = j->id;
    struct job *first = job_find(m, (uint32_t)j->key);
    if (first != NULL && first->left > 0)
        first->left--;
    family_left(m, j);
    family_replace(m, j);
}

/* What was sent to a node once was not there any more: it is sent again. */
static bool image_lost(const struct job *j, const struct running *r) {
    return r->worst.cause == CAUSE_FAILED && r->worst.step == SPAWN_IMAGE &&
           (j->reason == REASON_NONE || j->reason == REASON_BAD) && j->attempt < IMAGE_ATTEMPTS;
}

void end_check(struct mm *m, struct running *r) {
    struct job *j = job_find(m, r->job);
    bool requeue = j->reason == REASON_LOST && (j->flags & JOB_REQUEUE) != 0;
    if (r->phase == PHASE_OVER)
        return;
    if (!nodeset_empty(&r->waiting)) {
        if (!r->told && !requeue && j->reason != REASON_NONE &&
            nodeset_covers(&r->lost, &r->waiting)) {
            r->told = true;
            client_news(m, j);
        }
        return;
    }
    if (j->kind == JOB_ALLOC && (j->reason == REASON_NONE || r->steps > 0))
        return;
    if (family_parts(m, j, r))
        return;
    if ((j->again || requeue || image_lost(j, r)) && !m->stopped)
        queue_again(m, j, r);
    else
        over(m, j, r);
}

void end_settled(struct mm *m, struct job *j) {
    struct running *r = job_running(m, j);
    j->settled = true;
    m->ended++;
    client_news(m, j);
    if (r == NULL)
        return;
    if (j->output == 0 && (j->flags & JOB_FETCH) == 0) {
        end_release(m, j);
        return;
    }
    end_unfollowed(m, j);
}

/* Output and files stay with the nodes, and the way to them here, until the client has all of it and says
 * that it follows no more; or is gone for too long. */
void end_unfollowed(struct mm *m, struct job *j) {
    struct running *r = job_running(m, j);
    if (r == NULL || !j->settled || client_of_output(m, j) != 0)
        return;
    r->orphan_at = m->now + (j->kind == JOB_BATCH ? KEEP_BATCH_NS : m->config.orphan_ns);
    due_set(m, r);
}

void end_release(struct mm *m, struct job *j) {
    struct running *r = job_running(m, j);
    if (r == NULL || !j->settled)
        return;
    end_forget(m, r->run, &r->set);
    running_free(m, r);
    j->slot = NO_SLOT;
    m->dirty = m->dirty || m->queued > 0;
    if (j->kind == JOB_BATCH && j->output > 0)
        client_news(m, j); /* who waits for its files has them now */
}

void end_make_room(struct mm *m) {
    for (uint32_t i = 0; m->running_free_count < RUNNINGS_LOW && i < m->running_peak; i++) {
        struct job *j = m->runnings[i].job == 0 ? NULL : job_find(m, m->runnings[i].job);
        if (j != NULL && j->settled && client_of_output(m, j) == 0)
            end_release(m, j);
    }
}

/* ---- ending ---- */

static void end_steps(struct mm *m, const struct job *around) {
    for (uint32_t i = 0; i < m->running_peak; i++) {
        struct job *j = m->runnings[i].job == 0 ? NULL : job_find(m, m->runnings[i].job);
        if (j != NULL && j->kind == JOB_STEP && j->inside == around->id &&
            !state_over((enum job_state)j->state))
            end_job(m, j, REASON_USER, 0, true);
    }
    m->dirty = true; /* those that wait */
}

void end_job(struct mm *m, struct job *j, enum reason reason, uint32_t signal, bool now) {
    struct running *r = job_running(m, j);
    if (state_over((enum job_state)j->state))
        return;
    bool comes_back = j->reason == REASON_LOST && (j->flags & JOB_REQUEUE) != 0;
    if (j->reason == REASON_NONE || (comes_back && reason == REASON_USER))
        j->reason = (uint8_t)reason;
    if (r == NULL) {
        queue_remove(m, j);
        over(m, j, NULL);
        family_disband(m, j, reason);
        return;
    }
    if (r->signal == 0)
        r->signal = signal;
    j->state = STATE_ENDING;
    r->orphan_at = r->limit_at = r->vacate_at = 0;
    if (j->kind == JOB_ALLOC) {
        if (r->phase == PHASE_GOING) {
            end_steps(m, j);
            end_check(m, r);
        }
        return;
    }
    if (now || r->force == 0)
        r->force = now ? VERB_KILL : VERB_END;
    r->force_at = now ? 0 : m->now + m->config.grace_ns;
    if (r->phase == PHASE_COPYING) {
        start_stop_copying(m, j, r);
        return;
    }
    if (r->phase == PHASE_GOING)
        r->repeat_at = m->now;
    due_set(m, r);
}

void end_resume(struct mm *m, struct job *j, struct running *r) {
    j->state = STATE_ENDING;
    r->orphan_at = r->limit_at = 0;
    if (j->kind == JOB_ALLOC) {
        end_steps(m, j);
        end_check(m, r);
        return;
    }
    r->force_at = r->force == VERB_KILL ? 0 : m->now + m->config.grace_ns;
    due_set(m, r);
}

/* ---- what nodes tell ---- */

static void react(struct mm *m, struct job *j, struct running *r, const struct ending *e) {
    if (j->reason != REASON_NONE)
        return;
    bool bad_exit = e->cause == CAUSE_EXITED && e->value != 0 && (j->flags & JOB_BAD_EXIT) != 0;
    if (e->cause == CAUSE_FAILED) {
        end_job(m, j, REASON_BAD, 0, true);
    } else if (e->cause == CAUSE_LOST) {
        end_job(m, j, REASON_LOST, 0, true);
    } else if (e->cause == CAUSE_KILLED || e->cause == CAUSE_MEMORY || bad_exit) {
        j->reason = REASON_BAD;
        r->force_at = m->now + m->config.grace_ns;
        due_set(m, r);
    }
}

/* Some nodes do not have it. If none does, it was never started; otherwise it is lost there. To be told
 * apart when all have told. */
static void judge_unknown(struct mm *m, struct job *j, struct running *r) {
    if (r->unknown == 0 || !nodeset_empty(&r->unsure))
        return;
    if (j->reason != REASON_NONE && j->reason != REASON_BAD)
        return; /* it was to end anyway */
    if (!r->started && nodeset_empty(&r->waiting)) {
        j->again = true;
        return;
    }
    struct ending lost = {.node = r->unknown_node, .cause = CAUSE_LOST};
    merge(r, &lost);
    react(m, j, r, &lost);
}

/* One node stands for all that are so: it is said once. */
static void note_loose(struct mm *m, struct job *j, const struct ending *e) {
    if (!e->loose || j->loose != NO_NODE)
        return;
    j->loose = e->node;
    if (e->more)
        client_news(m, j);
}

static void ended_on(struct mm *m, struct job *j, struct running *r, const struct ending *e) {
    if (!nodeset_has(&r->waiting, e->node))
        return;
    note_loose(m, j, e);
    if (e->more) { /* its end will tell all */
        r->started = true;
        react(m, j, r, e);
        return;
    }
    if (e->cause == CAUSE_UNKNOWN && !m->nodes[e->node].member)
        return; /* perhaps it will be decided yet: to be asked again */
    nodeset_remove(&r->waiting, e->node);
    nodeset_remove(&r->unsure, e->node);
    nodeset_remove(&r->lost, e->node);
    if (e->cause == CAUSE_UNKNOWN) {
        r->unknown++;
        r->unknown_node = e->node;
    } else {
        r->started = true;
        merge(r, e);
        react(m, j, r, e);
    }
    judge_unknown(m, j, r);
}

static struct running *running_of(struct mm *m, uint64_t run) {
    struct job *j = job_find(m, run_job(run));
    struct running *r = j == NULL ? NULL : job_running(m, j);
    return r != NULL && r->run == run ? r : NULL;
}

/* Ends of what we know nothing of any more: to be forgotten. */
static void stale(struct mm *m, const struct message_ends *e) {
    struct ending one;
    nodeset_copy(&m->work, e->clean);
    for (uint32_t i = 0; ending_load(&one, e->ends, i); i++)
        if (one.node < m->config.limits.nodes && one.cause != CAUSE_UNKNOWN && !one.more)
            nodeset_add(&m->work, one.node);
    if (!nodeset_empty(&m->work))
        end_forget(m, e->run, &m->work);
}

/* Many that have ended well, with one sum: of nodes that have all not told before, or it would count some twice. Of others
 * each will tell again, alone. */
static void ended_clean(struct mm *m, struct running *r, const struct message_ends *e) {
    nodeset_and(&m->work, &r->waiting, e->clean);
    r->started = r->started || !nodeset_empty(e->clean);
    if (nodeset_empty(e->clean) || !nodeset_covers(&m->work, e->clean))
        return;
    nodeset_subtract(&r->waiting, e->clean);
    nodeset_subtract(&r->unsure, e->clean);
    nodeset_subtract(&r->lost, e->clean);
    r->output += e->output;
    usage_add(&r->usage, &e->usage);
}

void end_heard(struct mm *m, const struct message_ends *e) {
    struct running *r = running_of(m, e->run);
    if (r == NULL) {
        stale(m, e);
        return;
    }
    if (r->phase == PHASE_OVER)
        return;
    struct job *j = job_find(m, r->job);
    ended_clean(m, r, e);
    struct ending one;
    for (uint32_t i = 0; r->phase != PHASE_OVER && ending_load(&one, e->ends, i); i++) {
        if (one.cause == CAUSE_FAILED && one.step == SPAWN_IMAGE)
            files_missing(m, one.node);
        ended_on(m, j, r, &one);
    }
    if (r->phase == PHASE_OVER)
        return;
    judge_unknown(m, j, r);
    end_check(m, r);
}

static bool listed(struct bytes runs, uint64_t run) {
    for (size_t at = 0; at < runs.len; at += 8)
        if ((load_le64(runs.at + at) & ~HAVE_READY) == run)
            return true;
    return false;
}

/* A run that should not be there: one that was given up. */
static void kill_stray(struct mm *m, uint32_t node, uint64_t run) {
    nodeset_clear(&m->work);
    nodeset_add(&m->work, node);
    union message c = {.command = {.run = run, .verb = VERB_KILL}};
    say_down(m->out, &m->work, MESSAGE_COMMAND, &c, (struct bytes){0});
}

/* What it was told before may have been lost, or come from a life that we know nothing of. */
static void hold_or_not(struct mm *m, const struct running *r, uint32_t node) {
    if (!r->suspended && !r->held && !nodeset_has(&r->unsure, node))
        return;
    nodeset_clear(&m->work);
    nodeset_add(&m->work, node);
    union message c = {
        .command = {.run = r->run, .verb = r->suspended ? VERB_SUSPEND : VERB_RESUME}};
    say_down(m->out, &m->work, MESSAGE_COMMAND, &c, (struct bytes){0});
}

/* One that was started again while the launch was decided has what it needs, and has not heard that it is
 * to begin. To be said again is harmless. */
static void say_start(struct mm *m, const struct running *r, uint32_t node) {
    nodeset_clear(&m->work);
    nodeset_add(&m->work, node);
    union message c = {.command = {.run = r->run, .verb = VERB_START}};
    say_down(m->out, &m->work, MESSAGE_COMMAND, &c, (struct bytes){0});
}

/* A launch of a former life that those know of who have not begun it. If nobody has, it was never decided, and
 * never will be. If somebody has, they are told to begin when they are asked again. */
static void is_ready(struct mm *m, struct running *r, uint32_t node) {
    nodeset_add(&r->unsure, node);
    nodeset_add(&r->ready, node);
    if (!nodeset_covers(&r->ready, &r->waiting))
        return;
    job_find(m, r->job)->again = true;
    nodeset_clear(&r->waiting);
    nodeset_clear(&r->unsure);
    end_check(m, r);
}

static void is_there(struct mm *m, struct running *r, uint32_t node, bool ready) {
    bool ending = job_find(m, r->job)->state == STATE_ENDING;
    if (r->phase != PHASE_GOING) { /* to be asked when it is */
        nodeset_add(&r->unsure, node);
        return;
    }
    if (ready && !r->started && !ending) {
        is_ready(m, r, node);
        return;
    }
    if (!ending) {
        say_start(m, r, node);
        hold_or_not(m, r, node);
    }
    r->started = true;
    nodeset_remove(&r->unsure, node);
    judge_unknown(m, job_find(m, r->job), r);
    end_check(m, r);
}

/* While a node joins, what a former root has left undecided may still be decided: ask later. */
static void not_there(struct mm *m, struct running *r, uint32_t node) {
    struct ending none = {.node = node, .cause = CAUSE_UNKNOWN};
    if (m->nodes[node].member) {
        ended_on(m, job_find(m, r->job), r, &none);
        end_check(m, r);
        return;
    }
    nodeset_add(&r->unsure, node);
    if (r->repeat_at == 0)
        r->repeat_at = m->now + NS_PER_S / 4;
    due_set(m, r);
}

void end_have(struct mm *m, uint32_t node, const struct message_have *h) {
    for (size_t at = 0; at < h->runs.len; at += 8) {
        uint64_t run = load_le64(h->runs.at + at) & ~HAVE_READY;
        bool ready = (load_le64(h->runs.at + at) & HAVE_READY) != 0;
        struct running *r = running_of(m, run);
        if (r == NULL || (r->phase != PHASE_OVER && !nodeset_has(&r->waiting, node)))
            kill_stray(m, node, run);
        else if (r->phase != PHASE_OVER)
            is_there(m, r, node, ready);
    }
    if (!h->all)
        return;
    needs_reported(m, node, h->report);
    for (uint32_t i = 0; i < m->running_peak; i++) {
        struct running *r = &m->runnings[i];
        if (r->job != 0 && r->phase == PHASE_GOING && nodeset_has(&r->waiting, node) &&
            !listed(h->runs, r->run))
            not_there(m, r, node);
    }
    node_announced(m, node);
}

void end_node_lost(struct mm *m, uint32_t node) {
    for (uint32_t i = 0; i < m->running_peak; i++) {
        struct running *r = &m->runnings[i];
        struct job *j = r->job == 0 ? NULL : job_find(m, r->job);
        if (j == NULL || r->phase != PHASE_GOING)
            continue;
        if (j->kind == JOB_ALLOC && nodeset_has(&r->set, node)) {
            end_job(m, j, REASON_LOST, 0, true);
            continue;
        }
        if (!nodeset_has(&r->waiting, node) || nodeset_has(&r->lost, node))
            continue;
        struct ending lost = {.node = node, .cause = CAUSE_LOST};
        nodeset_add(&r->lost, node);
        r->lost_at = m->now + m->config.lease_ns;
        merge(r, &lost);
        end_job(m, j, REASON_LOST, 0, true);
        due_set(m, r);
        end_check(m, r);
    }
}

/* ---- forgetting ---- */

void end_forget_flush(struct mm *m) {
    uint8_t *room = effects_room(m->out, sizeof m->forget);
    for (uint32_t i = 0; i < m->forget_count; i++)
        store_le64(room + 8 * (size_t)i, m->forget[i]);
    union message f = {.forget = {.runs = bytes_of(room, 8 * (size_t)m->forget_count)}};
    if (m->forget_count > 0)
        say_down(m->out, &m->forget_set, MESSAGE_FORGET, &f, (struct bytes){0});
    m->forget_count = 0;
    nodeset_clear(&m->forget_set);
}

void end_forget_with(struct mm *m, const struct nodeset *nodes) {
    if (m->forget_count > 0 && nodeset_covers(nodes, &m->forget_set))
        end_forget_flush(m);
}

void end_forget(struct mm *m, uint64_t run, const struct nodeset *nodes) {
    if (m->forget_count == 0)
        effects_timer(m->out, TIMER_FORGET, m->now + FORGET_NS);
    m->forget[m->forget_count++] = run;
    nodeset_unite(&m->forget_set, nodes);
    if (m->forget_count == sizeof m->forget / sizeof *m->forget)
        end_forget_flush(m);
}
