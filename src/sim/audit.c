/* SPDX-License-Identifier: MIT */
/* Judges a cluster of jobs: see audit.h. Here: who is looked at when, and the living. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sim/audit_inside.h"

enum { JOBS = 8192, ALL_EVERY = 64, LINKS_SPARE = 64 };

void audit_init(struct audit *a, struct hall *h, const struct book *b, struct verdict *v) {
    const struct mm_config *c = hall_mm_config(h);
    *a = (struct audit){.hall = h,
                        .book = b,
                        .verdict = v,
                        .nodes = c->limits.nodes,
                        .pes = c->pes,
                        .links_max = c->limits.nodes + c->clients_max + LINKS_SPARE,
                        .ends = calloc(JOBS, sizeof *a->ends),
                        .epochs = calloc(c->limits.nodes + 1, sizeof *a->epochs),
                        .scratch = calloc(c->limits.nodes, sizeof *a->scratch)};
    ASSERT(a->ends != NULL && a->epochs != NULL && a->scratch != NULL);
    shadow_init(a);
}

void audit_fini(struct audit *a) {
    shadow_fini(a);
    free(a->ends);
    free(a->epochs);
    free(a->scratch);
}

const struct mm *audit_manager(const struct audit *a) {
    const struct mm *m = hall_mm(a->hall);
    return m == NULL || mm_replaying(m) ? NULL : m;
}

/* ---- S1, S2, S4: the living ---- */

/* In the row of this one, as the manager has it. If there is none, nobody knows of rows. */
static bool beside(const struct mm *m, const struct living *l, const struct living *other) {
    return other->node == l->node &&
           (m == NULL || audit_row(m, run_job(other->run)) == audit_row(m, run_job(l->run)));
}

static void judge_nodes(struct audit *a, const struct deeds *d) {
    const struct mm *m = audit_manager(a);
    for (uint32_t i = 0; i < d->living_count && (m != NULL || !a->shared); i++) {
        const struct living *l = &d->living[i];
        uint32_t own = 0;
        for (uint32_t k = 0; k <= i; k++)
            own += beside(m, l, &d->living[k]) ? d->living[k].own : 0;
        if (own > a->pes)
            verdict_add(a->verdict, "S1", "node %" PRIu32 " has %" PRIu32 " processes", l->node,
                        own);
    }
}

static void judge_attempts(struct audit *a, const struct deeds *d) {
    for (uint32_t i = 1; i < d->living_count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (d->living[i].run != d->living[k].run &&
                run_job(d->living[i].run) == run_job(d->living[k].run))
                verdict_add(a->verdict, "S4", "two attempts of job %" PRIu32 " live at once",
                            run_job(d->living[i].run));
    if (a->agains != d->agains)
        verdict_add(a->verdict, "S4", "a process of run %" PRIx64 " was started twice", d->again);
    a->agains = d->agains;
}

static void judge_over(struct audit *a, const struct deeds *d) {
    for (uint32_t i = 0; i < d->living_count; i++) {
        const struct living *l = &d->living[i];
        uint32_t job = run_job(l->run);
        ASSERT(job < JOBS);
        if (a->ends[job].over)
            verdict_add(a->verdict, "S2",
                        "job %" PRIu32 " is over, %" PRIu32 " processes of run %" PRIx64
                        " live on node %" PRIu32,
                        job, l->all, l->run, l->node);
    }
}

/* Everything that it waits for is over, as it should be. */
static bool may_live(const struct audit *a, const struct order *o) {
    const struct order *other = book_awaited(a->book, o);
    bool over = true, well = true;
    for (uint32_t k = 0; other != NULL && k < other->count; k++) {
        const struct audit_end *e = &a->ends[other->job + k];
        over = over && e->over;
        well = well && e->state == STATE_DONE;
    }
    return other == NULL ||
           (over && (o->after_kind == AWAIT_ANY || well == (o->after_kind == AWAIT_OK)));
}

/* Has the node what the job needs? */
static bool meets(const struct order *o, uint32_t node) {
    uint32_t speed = hall_speed(node);
    return o->speed == 0 || o->kind == JOB_STEP || order_splits(o) ||
           (o->faster ? speed >= o->speed : speed == o->speed);
}

static void judge_waits(struct audit *a, const struct deeds *d) {
    for (uint32_t i = 0; i < d->living_count; i++) {
        uint32_t job = run_job(d->living[i].run);
        int32_t order = book_find(a->book, job);
        if (order != NO_ORDER && !may_live(a, &a->book->orders[order]))
            verdict_add(a->verdict, "after", "job %" PRIu32 " runs before it may", job);
        if (order != NO_ORDER && !meets(&a->book->orders[order], d->living[i].node))
            verdict_add(a->verdict, "need", "job %" PRIu32 " runs on node %" PRIu32, job,
                        d->living[i].node);
    }
}

void audit_living(struct audit *a) {
    const struct deeds *d = hall_deeds(a->hall);
    judge_nodes(a, d);
    judge_attempts(a, d);
    judge_over(a, d);
    judge_waits(a, d);
}

void audit_over(struct audit *a, uint32_t job, enum job_state state, uint32_t status,
                const char *who) {
    ASSERT(job < JOBS);
    struct audit_end *e = &a->ends[job];
    if (e->over && (e->state != state || e->status != status))
        verdict_add(a->verdict, "S3",
                    "job %" PRIu32 " has ended twice: %s %" PRIu32 ", then %s %" PRIu32 " as %s",
                    job, state_name((enum job_state)e->state), e->status, state_name(state), status,
                    who);
    if (e->over)
        return;
    *e = (struct audit_end){.over = true, .state = (uint8_t)state, .status = status};
    judge_over(a, hall_deeds(a->hall));
}

/* ---- S9: what lives is held ---- */

static const char *not_held(const struct mm *m, const struct living *l) {
    struct mm_job j, around;
    if (!mm_job(m, run_job(l->run), &j))
        return "is not known";
    if (run_of(run_job(l->run), j.attempt) != l->run)
        return "is of another attempt";
    if (!j.held)
        return "holds nothing";
    if (j.kind == JOB_STEP && (!mm_job(m, j.inside, &around) || !around.held))
        return "is a step, and its allocation holds nothing";
    if (!nodeset_has(j.nodes, l->node))
        return "holds other nodes";
    return l->own > j.each ? "holds less" : NULL;
}

void audit_held(struct audit *a) {
    const struct mm *m = audit_manager(a);
    const struct deeds *d = hall_deeds(a->hall);
    for (uint32_t i = 0; m != NULL && i < d->living_count; i++) {
        const char *why = not_held(m, &d->living[i]);
        if (why != NULL)
            verdict_add(a->verdict, "S9",
                        "run %" PRIx64 " has %" PRIu32 " processes on node %" PRIu32 ", and %s",
                        d->living[i].run, d->living[i].own, d->living[i].node, why);
    }
}

/* ---- who is looked at ---- */

void audit_step(struct audit *a, uint32_t who) {
    uint32_t root = hall_root(a->hall);
    const struct deeds *d = hall_deeds(a->hall);
    bool began = a->births != d->births || a->agains != d->agains;
    a->births = d->births;
    if (began)
        audit_living(a);
    if (who == root) {
        audit_policy(a);
        audit_root(a, a->steps++ % ALL_EVERY == 0);
        audit_jobs(a);
    } else if (who < root) {
        audit_node(a, who);
    } else if (who <= root + a->nodes) {
        audit_launcher(a, who - root - 1);
        audit_still(a, who - root - 1);
    }
    if (began || who == root)
        audit_held(a);
    if (a->told < a->book->told_count)
        audit_told(a);
}
