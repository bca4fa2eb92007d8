/* SPDX-License-Identifier: MIT */
/* Judges a cluster of jobs: see audit.h. */
#include "sim/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sim/journal.h"

enum { JOBS = 8192, DEEP_EVERY = 64, RUNS_ROOM = 16 };

void audit_init(struct audit *a, struct hall *h, const struct book *b, struct verdict *v) {
    const struct mm_config *c = hall_mm_config(h);
    *a = (struct audit){.hall = h,
                        .book = b,
                        .verdict = v,
                        .nodes = c->limits.nodes,
                        .pes = c->pes,
                        .over_cap = JOBS,
                        .over = calloc(JOBS, 1),
                        .epochs = calloc(c->limits.nodes, sizeof *a->epochs),
                        .boots = calloc(c->limits.nodes, sizeof *a->boots)};
    ASSERT(a->over != NULL && a->epochs != NULL && a->boots != NULL);
}

void audit_fini(struct audit *a) {
    free(a->over);
    free(a->epochs);
    free(a->boots);
}

/* ---- S1, S2, S4: the living ---- */

static void judge_node(struct audit *a, uint32_t node) {
    struct sim_census census;
    uint32_t own = 0;
    for (uint32_t at = 0; sim_kernel_census(hall_kernel(a->hall, node), &at, &census);)
        own += census.own;
    if (own > a->pes)
        verdict_add(a->verdict, "S1", "node %" PRIu32 " has %" PRIu32 " processes", node, own);
    for (uint32_t at = 0; sim_kernel_census(hall_kernel(a->hall, node), &at, &census);) {
        uint32_t job = run_job(census.run);
        if (census.all > 0 && job < a->over_cap && a->over[job])
            verdict_add(a->verdict, "S2",
                        "job %" PRIu32 " is over, run %" PRIx64 " lives on node %" PRIu32, job,
                        census.run, node);
    }
}

static void judge_living(struct audit *a) {
    const struct deeds *d = hall_deeds(a->hall);
    for (uint32_t i = 0; i < d->count; i++) {
        const struct run_deeds *r = &d->runs[i];
        uint32_t job = run_job(r->run);
        if (r->again)
            verdict_add(a->verdict, "S4", "a process of run %" PRIx64 " was started twice", r->run);
        if (r->alive == 0)
            continue;
        if (deeds_alive(d, job) != r->alive)
            verdict_add(a->verdict, "S4", "two attempts of job %" PRIu32 " live at once", job);
        if (job < a->over_cap && a->over[job])
            verdict_add(a->verdict, "S2",
                        "job %" PRIu32 " is over, %" PRIu32 " processes of run %" PRIx64 " live",
                        job, r->alive, r->run);
    }
}

/* Jobs that the manager holds to be over for ever. */
static void mark_over(struct audit *a, const struct mm *m) {
    struct mm_job j;
    bool any = false;
    for (uint32_t id = 1; id < mm_next_job(m) && id < a->over_cap; id++) {
        if (a->over[id] || !mm_job(m, id, &j) || !j.settled)
            continue;
        a->over[id] = 1;
        any = true;
    }
    for (uint32_t i = 0; any && i < a->nodes; i++)
        judge_node(a, i);
    if (any)
        judge_living(a);
}

/* ---- S8, S9, S10 ---- */

static void judge_manager(struct audit *a) {
    const struct mm *m = hall_mm(a->hall);
    struct mm_counts counts;
    if (m == NULL)
        return;
    mm_counts(m, &counts);
    if (counts.ended != a->settled) {
        a->settled = counts.ended;
        mark_over(a, m);
    }
    if (a->steps++ % DEEP_EVERY != 0)
        return;
    const char *why = mm_wrong(m);
    if (why != NULL)
        verdict_add(a->verdict, "S9", "%s", why);
}

static void judge_compute(struct audit *a, uint32_t node) {
    struct world *w = hall_world(a->hall);
    const struct nm *n = hall_nm(a->hall, node);
    struct prim_status s;
    if (n == NULL)
        return;
    prim_status(world_prim(w, node), &s);
    uint32_t boots = world_boots(w, node);
    if (a->boots[node] == boots && s.epoch < a->epochs[node])
        verdict_add(a->verdict, "S8", "node %" PRIu32 ": epoch %" PRIu32 " after %" PRIu32, node,
                    s.epoch, a->epochs[node]);
    a->boots[node] = boots;
    a->epochs[node] = s.epoch;
}

void audit_step(struct audit *a, uint32_t node) {
    uint32_t root = hall_root(a->hall);
    const struct deeds *d = hall_deeds(a->hall);
    if (node == root)
        judge_manager(a);
    else if (node < root)
        judge_compute(a, node);
    else if (node <= root + a->nodes)
        judge_node(a, node - root - 1);
    if (a->changes == d->changes)
        return;
    a->changes = d->changes;
    judge_living(a);
}

/* ---- S11 ---- */

static void feed(struct machine machine, struct input *in) {
    enum { EFFECTS = 4096, BYTES = 1 << 22 };
    struct effects out;
    struct effect *list = calloc(EFFECTS, sizeof *list);
    uint8_t *bytes = malloc(BYTES);
    ASSERT(list != NULL && bytes != NULL);
    effects_init(&out, list, EFFECTS, bytes, BYTES);
    machine.step(machine.self, in, &out);
    free(list);
    free(bytes);
}

static void compare(struct audit *a, const struct mm *live, const struct mm *fresh) {
    uint32_t highest = 0;
    for (uint32_t id = 1; id < mm_next_job(live); id++) {
        struct mm_job x, y;
        bool lived = mm_job(live, id, &x), known = mm_job(fresh, id, &y);
        if (!lived || !x.logged)
            continue;
        highest = id;
        bool same = known && x.settled == y.settled &&
                    (!x.settled || (x.state == y.state && x.status == y.status)) &&
                    (x.settled || x.attempt == y.attempt) && (!x.holds || y.holds);
        if (!same)
            verdict_add(a->verdict, "S11",
                        "job %" PRIu32 ": %s %" PRIu32 " attempt %u, from the log %s %" PRIu32
                        " attempt %u",
                        id, state_name(x.state), x.status, x.attempt,
                        known ? state_name(y.state) : "unknown", known ? y.status : 0,
                        known ? y.attempt : 0);
    }
    if (mm_next_job(fresh) <= highest)
        verdict_add(a->verdict, "S11", "there was job %" PRIu32 ", the next is %" PRIu32 " now",
                    highest, mm_next_job(fresh));
}

bool audit_log(struct audit *a) {
    const struct mm *live = hall_mm(a->hall);
    const struct mm_config *c = hall_mm_config(a->hall);
    if (live == NULL || !mm_quiet(live))
        return false;
    struct arena arena;
    size_t bytes = mm_bytes(c);
    void *memory = calloc(1, bytes);
    ASSERT(memory != NULL);
    arena_init(&arena, memory, bytes);
    struct mm *fresh = mm_new(c, &arena);
    struct machine machine = mm_machine(fresh);
    const struct journal *j = world_journal(hall_world(a->hall), hall_root(a->hall));
    struct input in = {.kind = INPUT_BOOT, .now = hall_now(a->hall)};
    in.boot = (struct input_boot){.node = hall_root(a->hall), .root = true, .epoch = 1};
    feed(machine, &in);
    in.kind = INPUT_REPLAY;
    for (uint32_t at = 0; journal_next(j, &at, &in.replay);)
        feed(machine, &in);
    in.replay = (struct input_replay){0};
    feed(machine, &in);
    compare(a, live, fresh);
    free(memory);
    return true;
}

/* ---- the end ---- */

bool audit_done(const struct audit *a) {
    const struct mm *m = hall_mm(a->hall);
    struct mm_counts counts;
    if (m == NULL)
        return false;
    mm_counts(m, &counts);
    if (counts.queued > 0 || counts.nodes_up < a->nodes)
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
        if (!o->killed && a->faultless && o->kind != JOB_STEP)
            complain(a, o, k, "killed by nobody");
        if (e->status == 0)
            complain(a, o, k, "killed with 0");
        break;
    case STATE_TIMEOUT:
        if (o->limit_ns == 0 || e->status != 124)
            complain(a, o, k, "there is no limit");
        break;
    case STATE_LOST:
        if (e->status != 125 || a->faultless)
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

/* The manager agrees with what customers were told; nothing is left of anybody. */
static void judge_leftovers(struct audit *a) {
    const struct mm *m = hall_mm(a->hall);
    struct mm_job j;
    const char *why = m == NULL ? NULL : mm_wrong(m);
    uint32_t unclaimed = 0, unanswered = 0;
    if (why != NULL)
        verdict_add(a->verdict, "S9", "%s", why);
    for (uint32_t id = 1; m != NULL && id < mm_next_job(m); id++) {
        bool known = mm_job(m, id, &j);
        unclaimed += known && book_find(a->book, id) == NO_ORDER;
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
    }
    if (o->job != 0)
        judge_output(a, o);
}

void audit_final(struct audit *a) {
    judge_leftovers(a);
    for (uint32_t i = 0; i < a->book->count; i++)
        judge_order(a, &a->book->orders[i]);
}
