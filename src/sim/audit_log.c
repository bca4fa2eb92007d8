/* SPDX-License-Identifier: MIT */
/* Judges what is durable: S3 and S11. See audit.h.
 *
 * An event is logged first and believed when it is durable; so at any moment the log may be behind what the
 * manager plans, and ahead of what it has heard, but never behind what was told or begun. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sim/audit_inside.h"
#include "sim/journal.h"

enum { EFFECTS = 4096, BYTES = 1 << 22 };

/* ---- the second manager ---- */

static void feed(struct shadow *s, const struct input *in) {
    struct machine machine = mm_machine(s->mm);
    s->out.count = 0;
    s->out.bytes_used = 0;
    machine.step(machine.self, in, &s->out);
}

static void make(struct audit *a, struct shadow *s) {
    const struct mm_config *c = hall_mm_config(a->hall);
    struct arena arena;
    arena_init(&arena, region_at(&s->memory, 0), mm_bytes(c));
    s->mm = mm_new(c, &arena);
    s->read = 0;
    struct input in = {.kind = INPUT_BOOT, .now = hall_now(a->hall)};
    in.boot =
        (struct input_boot){.node = hall_root(a->hall),
                            .root = true,
                            .epoch = 1,
                            .boots = world_boots(hall_world(a->hall), hall_root(a->hall)) + 1};
    feed(s, &in);
}

static void shadow_new(struct audit *a, struct shadow *s) {
    struct effect *list = malloc(EFFECTS * sizeof *list);
    uint8_t *bytes = malloc(BYTES);
    ASSERT(list != NULL && bytes != NULL);
    effects_init(&s->out, list, EFFECTS, bytes, BYTES);
    int r = region_init(&s->memory, 1, mm_bytes(hall_mm_config(a->hall)), false);
    ASSERT(r == 0);
    make(a, s);
}

static void shadow_free(struct shadow *s) {
    region_fini(&s->memory);
    free(s->out.list);
    free(s->out.bytes);
}

void shadow_init(struct audit *a) {
    shadow_new(a, &a->shadow);
}

void shadow_fini(struct audit *a) {
    shadow_free(&a->shadow);
}

static const struct journal *log_of(const struct audit *a) {
    return world_journal(hall_world(a->hall), hall_root(a->hall));
}

/* Reads on: what has become durable since. */
static void read_on(struct audit *a) {
    struct shadow *s = &a->shadow;
    const struct journal *j = log_of(a);
    struct input in = {.kind = INPUT_REPLAY, .now = hall_now(a->hall)};
    for (; s->read < j->count; s->read++) {
        const struct journal_event *e = &j->events[s->read];
        in.replay = (struct input_replay){.key = e->key, .body = bytes_of(e->at, e->len)};
        feed(s, &in);
    }
}

/* ---- S3, S11: all jobs ---- */

/* As the manager has it and as the log does; NULL: not at all. */
struct pair {
    uint32_t id;
    const struct mm_job *live, *log;
};

static void complain(struct audit *a, const struct pair *p, const char *rule, const char *why) {
    const struct mm_job none = {0}, *x = p->live ? p->live : &none, *y = p->log ? p->log : &none;
    verdict_add(
        a->verdict, rule,
        "job %" PRIu32 " %s: %s %s %" PRIu32 " attempt %u; in the log %s %s %" PRIu32 " attempt %u",
        p->id, why, p->live ? "is" : "would be", state_name(x->state), x->status, x->attempt,
        p->log ? "is" : "would be", state_name(y->state), y->status, y->attempt);
}

static void judge_open(struct audit *a, const struct pair *p, bool quiet) {
    const struct mm_job *x = p->live, *y = p->log;
    if (y->attempt > x->attempt)
        complain(a, p, "S11", "has forgotten an attempt");
    if (x->begun && x->holds &&
        (y->attempt != x->attempt || !y->holds || !nodeset_equal(x->nodes, y->nodes)))
        complain(a, p, "S11", "has begun, and the log does not say so");
    if (quiet && (x->attempt != y->attempt || (x->holds && !y->holds)))
        complain(a, p, "S11", "has another attempt in the log");
    if (quiet && x->holds && x->suspended != y->suspended)
        complain(a, p, "S11", "is suspended, or is so in the log only");
    if (quiet && x->kind != JOB_STEP && x->asked && !y->asked)
        complain(a, p, "S11", "was to end, and the log does not say so");
}

static void judge_job(struct audit *a, const struct pair *p, bool quiet) {
    const struct mm_job *x = p->live, *y = p->log;
    if (x == NULL) { /* places of jobs that are over are needed some time */
        if (y != NULL && !y->settled)
            complain(a, p, "S3", "was accepted, and is gone");
        return;
    }
    if (x->settled)
        audit_over(a, p->id, x->state, x->status, "the manager says");
    if (y == NULL) {
        if (x->logged || x->settled || x->begun)
            complain(a, p, "S11", "is not in the log");
        return;
    }
    bool same = x->state == y->state && x->status == y->status &&
                (!x->settled || !y->settled || usage_same(&x->usage, &y->usage));
    if (x->settled && !(y->settled && same))
        complain(a, p, "S11", "is over, and the log does not say so");
    if (y->settled && !same)
        complain(a, p, "S11", "is over in the log only");
    if (!y->settled && !state_over(x->state))
        judge_open(a, p, quiet);
}

/* `quiet`: nothing is under way between them. */
static void compare(struct audit *a, const struct mm *live, const struct mm *log, bool quiet) {
    uint32_t end = mm_next_job(live) > mm_next_job(log) ? mm_next_job(live) : mm_next_job(log);
    for (uint32_t id = 1; id < end; id++) {
        struct mm_job x, y;
        struct pair p = {.id = id,
                         .live = mm_job(live, id, &x) ? &x : NULL,
                         .log = mm_job(log, id, &y) ? &y : NULL};
        judge_job(a, &p, quiet);
    }
    if (mm_next_job(live) < mm_next_job(log))
        verdict_add(a->verdict, "S11", "there was job %" PRIu32 ", the next is %" PRIu32 " now",
                    mm_next_job(log) - 1, mm_next_job(live));
    uint64_t at = mm_calendar(live) > mm_calendar(log) ? mm_calendar(live) : mm_calendar(log);
    for (uint32_t i = 0; quiet && i < a->nodes; i++)
        if (mm_reserved(live, i, at) != mm_reserved(log, i, at))
            verdict_add(a->verdict, "S11", "node %" PRIu32 " is reserved, or is so in the log only",
                        i);
    for (uint32_t i = 0; quiet && i < a->nodes; i++)
        if (mm_drained(live, i) != mm_drained(log, i))
            verdict_add(a->verdict, "S11", "node %" PRIu32 " is drained, or is so in the log only",
                        i);
}

void audit_jobs(struct audit *a) {
    const struct mm *live = audit_manager(a);
    read_on(a);
    if (live != NULL)
        compare(a, live, a->shadow.mm, mm_quiet(live));
}

/* ---- S3: what customers were told ---- */

static void judge_told(struct audit *a, const struct told *t) {
    const struct order *o = &a->book->orders[t->order];
    for (uint32_t k = 0; k < o->count; k++) {
        struct mm_job y;
        const struct ended *e = &o->ends[k];
        bool known = mm_job(a->shadow.mm, o->job + k, &y);
        if (!known)
            verdict_add(a->verdict, "S3", "job %" PRIu32 " was accepted, and is not in the log",
                        o->job + k);
        if (!t->ended || t->k != k)
            continue;
        if (!known || !y.settled)
            verdict_add(a->verdict, "S3", "job %" PRIu32 " was told to be over before the log was",
                        o->job + k);
        audit_over(a, o->job + k, (enum job_state)e->state, e->status, "its customer was told");
    }
}

void audit_told(struct audit *a) {
    read_on(a);
    for (; a->told < a->book->told_count; a->told++)
        judge_told(a, &a->book->told[a->told]);
}

/* ---- from the ground ---- */

static void judge_census(struct audit *a) {
    const struct deeds *d = hall_deeds(a->hall);
    uint32_t all = 0;
    for (uint32_t i = 0; i < d->living_count; i++) {
        const struct living *l = &d->living[i];
        all += l->all;
        if (sim_kernel_alive(hall_kernel(a->hall, l->node), l->run) != l->all)
            verdict_add(a->verdict, "S2",
                        "run %" PRIx64 " has no group any more, but %" PRIu32
                        " processes on node %" PRIu32,
                        l->run, l->all, l->node);
    }
    for (uint32_t i = 0; i < a->nodes; i++)
        all -= sim_kernel_alive_all(hall_kernel(a->hall, i));
    if (all != 0)
        verdict_add(a->verdict, "S2", "processes are counted wrong");
}

static void judge_policy(struct audit *a, const struct mm *live, const struct mm *log) {
    struct mm_policy x, y;
    mm_policy(live, &x);
    mm_policy(log, &y);
    if (x.policy != y.policy || x.slots != y.slots || x.quantum_ns != y.quantum_ns)
        verdict_add(a->verdict, "S11",
                    "the policy is %s, %" PRIu32 " slots, and in the log %s, %" PRIu32 " slots",
                    x.policy->name, x.slots, y.policy->name, y.slots);
}

/* A manager that has just been made, and reads the log as the disk tells it. */
static void judge_new_life(struct audit *a, const struct mm *live) {
    struct shadow s = {0};
    struct input in = {.kind = INPUT_REPLAY, .now = hall_now(a->hall)};
    shadow_new(a, &s);
    for (uint32_t at = 0; journal_next(log_of(a), &at, &in.replay);)
        feed(&s, &in);
    compare(a, a->shadow.mm, s.mm, true);
    in.replay = (struct input_replay){0};
    feed(&s, &in);
    compare(a, live, s.mm, true);
    judge_policy(a, live, s.mm);
    shadow_free(&s);
}

bool audit_whole(struct audit *a) {
    const struct mm *live = audit_manager(a);
    audit_living(a);
    audit_held(a);
    judge_census(a);
    for (uint32_t i = 0; i < a->nodes; i++) {
        audit_node(a, i);
        audit_launcher(a, i);
    }
    audit_root(a, true);
    audit_jobs(a);
    if (live == NULL || !mm_quiet(live))
        return false;
    judge_new_life(a, live);
    return true;
}
