/* SPDX-License-Identifier: MIT */
/* Judges a cluster of jobs when everything should be over: how jobs ended, what customers received, what is
 * left. See audit.h. */
#include <errno.h>
#include <inttypes.h>

#include "sim/audit_inside.h"

bool audit_done(const struct audit *a) {
    const struct mm *m = hall_mm(a->hall);
    struct mm_counts counts;
    if (m == NULL)
        return false;
    mm_counts(m, &counts);
    if (counts.queued > 0 || counts.nodes_up < counts.nodes)
        return false;
    struct mm_job j;
    for (uint32_t id = 1; id < mm_next_job(m); id++)
        if (mm_job(m, id, &j) && !j.settled)
            return false;
    for (uint32_t i = 0; i < a->nodes; i++)
        if (sim_kernel_alive_all(hall_kernel(a->hall, i)) > 0)
            return false;
    for (uint32_t i = 0; i < a->book->count; i++) {
        const struct order *o = &a->book->orders[i];
        for (uint32_t k = 0; k < o->count && o->job != 0 && !o->abandoned; k++)
            if (!o->ends[k].settled)
                return false;
    }
    return true;
}

static void complain(struct audit *a, const struct order *o, uint32_t k, const char *why) {
    const struct ended *e = &o->ends[k];
    const struct run_deeds *r = deeds_find(hall_deeds(a->hall), e->run);
    verdict_add(a->verdict, "status",
                "job %" PRIu32 " (%.*s): %s %" PRIu32 " cause %u node %" PRId32 " run %" PRIx64
                ": %s; of %" PRIu32 ": %" PRIu32 " exited, %" PRIu32 " with 0, %" PRIu32
                " killed, %" PRIu32 " crashed, %" PRIu32 " failed",
                o->job + k, (int)o->words_len, o->words, state_name((enum job_state)e->state),
                e->status, e->cause, (int32_t)e->node, e->run, why, r ? r->size : 0,
                deeds_count(r, FATE_EXITED, UINT32_MAX), deeds_count(r, FATE_EXITED, 0),
                deeds_count(r, FATE_KILLED, UINT32_MAX), deeds_count(r, FATE_CRASHED, UINT32_MAX),
                deeds_count(r, FATE_FAILED, UINT32_MAX));
}

static void judge_failed(struct audit *a, const struct order *o, uint32_t k) {
    const struct ended *e = &o->ends[k];
    const struct run_deeds *r = deeds_find(hall_deeds(a->hall), e->run);
    if (e->cause == CAUSE_EXITED) {
        if (e->status == 0 || deeds_count(r, FATE_EXITED, e->status) == 0)
            complain(a, o, k, "nobody exited so");
    } else if (e->cause == CAUSE_KILLED) {
        if (e->status <= 128 || deeds_count(r, FATE_KILLED, e->status - 128) == 0)
            complain(a, o, k, "nobody was killed so");
    } else if (e->cause == CAUSE_FAILED) {
        bool none = deeds_count(r, FATE_FAILED, ENOENT) > 0 && e->status == 127;
        bool other = (r == NULL || deeds_count(r, FATE_FAILED, UINT32_MAX) > 0) &&
                     (e->status == 125 || e->status == 126);
        if (!none && !other)
            complain(a, o, k, "no start failed so");
    } else if (a->faultless || e->status != 125 || e->node >= a->nodes) {
        complain(a, o, k, "failed for no reason");
    }
}

/* How it ended is what its processes did, or what was done to them. */
static void judge_end(struct audit *a, const struct order *o, uint32_t k) {
    const struct ended *e = &o->ends[k];
    const struct run_deeds *r = deeds_find(hall_deeds(a->hall), e->run);
    switch ((enum job_state)e->state) {
    case STATE_DONE:
        if (e->status != 0)
            complain(a, o, k, "done, but not 0");
        if (o->kind != JOB_ALLOC && (r == NULL || deeds_count(r, FATE_EXITED, 0) != o->procs))
            complain(a, o, k, "done, but not by all");
        break;
    case STATE_FAILED:
        judge_failed(a, o, k);
        break;
    case STATE_KILLED:
        if (!o->killed && a->faultless && o->kind != JOB_STEP && o->after == 0 &&
            o->reservation == 0 && (o->flags & JOB_LENT) == 0)
            complain(a, o, k, "killed by nobody");
        if (e->status == 0)
            complain(a, o, k, "killed with 0");
        break;
    case STATE_TIMEOUT:
        if (o->limit_ns == 0 || e->status != 124)
            complain(a, o, k, "there is no limit");
        break;
    case STATE_LOST:
        if (e->status != 125 || a->faultless || !a->gone)
            complain(a, o, k, "nothing was lost");
        if (e->cause == CAUSE_LOST && e->node >= a->nodes)
            complain(a, o, k, "names no node");
        break;
    default:
        if (e->status != 125 || a->faultless)
            complain(a, o, k, "settled, but not over");
    }
}

static void judge_output(struct audit *a, const struct order *o) {
    const struct ended *e = &o->ends[0];
    const struct run_deeds *r = deeds_find(hall_deeds(a->hall), e->run);
    if (o->abandoned || o->count > 1 || o->kind == JOB_ALLOC || !e->settled)
        return;
    bool whole = e->state == STATE_DONE ||
                 (e->state == STATE_FAILED && deeds_count(r, FATE_KILLED, UINT32_MAX) == 0);
    bool short_of = !o->complete || o->received != deeds_wrote(r);
    if (whole && (a->lossy ? o->received > deeds_wrote(r) : short_of))
        verdict_add(a->verdict, "output",
                    "job %" PRIu32 " (%.*s) %s: %" PRIu64 " bytes written, %" PRIu64
                    " said, %" PRIu64 " received",
                    o->job, (int)o->words_len, o->words, state_name((enum job_state)e->state),
                    deeds_wrote(r), e->output, o->received);
}

/* What it has used is the sum of what its processes have, none left out and none counted twice. */
static void judge_usage(struct audit *a, const struct order *o, uint32_t k,
                        const struct mm_job *j) {
    struct usage all = {0};
    if (j->state != STATE_DONE || o->kind == JOB_ALLOC)
        return;
    for (uint32_t rank = 0; rank < o->procs; rank++) {
        struct usage u = sim_usage(rank);
        usage_add(&all, &u);
    }
    all.peak_node = j->usage.peak_node;
    if (!usage_same(&all, &j->usage) || j->usage.peak_node >= a->nodes)
        complain(a, o, k, "has used more or less than its processes");
}

/* The manager agrees with what customers were told; nothing is left of anybody. */
static void judge_leftovers(struct audit *a) {
    const struct mm *m = hall_mm(a->hall);
    struct mm_job j;
    uint32_t unclaimed = 0, unanswered = 0;
    for (uint32_t id = 1; m != NULL && id < mm_next_job(m); id++) {
        bool known = mm_job(m, id, &j);
        unclaimed += known && j.parent == 0 && book_find(a->book, id) == NO_ORDER;
        if (known && j.holds)
            verdict_add(a->verdict, "S9", "processors are held for job %" PRIu32, id);
    }
    for (uint32_t i = 0; i < a->book->count; i++)
        unanswered += a->book->orders[i].job == 0 ? a->book->orders[i].count : 0;
    if (unclaimed > unanswered)
        verdict_add(a->verdict, "S3", "%" PRIu32 " jobs, but %" PRIu32 " unanswered orders",
                    unclaimed, unanswered);
}

static void judge_order(struct audit *a, const struct order *o) {
    const struct mm *m = hall_mm(a->hall);
    struct mm_job j;
    for (uint32_t k = 0; o->job != 0 && k < o->count; k++) {
        const struct ended *e = &o->ends[k];
        bool known = m != NULL && mm_job(m, o->job + k, &j);
        if (m != NULL && (!known || !j.settled))
            verdict_add(a->verdict, "S3", "job %" PRIu32 " was accepted and has no end",
                        o->job + k);
        if (!e->settled) {
            if (!o->abandoned)
                verdict_add(a->verdict, "converge", "the customer of job %" PRIu32 " was not told",
                            o->job + k);
            continue;
        }
        if (known && state_over((enum job_state)e->state) &&
            (j.state != e->state || j.status != e->status))
            verdict_add(a->verdict, "S3", "job %" PRIu32 ": told %s %" PRIu32 ", is %s %" PRIu32,
                        o->job + k, state_name((enum job_state)e->state), e->status,
                        state_name(j.state), j.status);
        judge_end(a, o, k);
        if (known)
            judge_usage(a, o, k, &j);
    }
    if (o->job != 0)
        judge_output(a, o);
}

void audit_final(struct audit *a) {
    judge_leftovers(a);
    for (uint32_t i = 0; i < a->book->count; i++)
        judge_order(a, &a->book->orders[i]);
}
