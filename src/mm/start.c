/* SPDX-License-Identifier: MIT */
/* From nodes given to processes running.
 *
 *   logging: the start, with its nodes, becomes durable, so a new life knows where to look
 *   fetching: what is to be run comes back from the log
 *   launching: XFER-AND-SIGNAL to all nodes, or to none
 *   going: it is there */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "mm/inside.h"
#include "rm/say.h"
#include "wire/crates.h"
#include "wire/spec.h"

enum { ATTEMPTS_MAX = 8 };

/* A place that was never taken: there may be very many, and what nobody touches costs nothing. */
static uint32_t fresh(struct mm *m) {
    uint32_t slot = m->running_peak++, universe = limits_universe(&m->config.limits);
    struct running *r = &m->runnings[slot];
    struct nodeset *const its[RUNNING_SETS] = {&r->set, &r->waiting, &r->unsure, &r->lost,
                                               &r->ready};
    size_t each = nodeset_bytes(universe) / 8;
    for (size_t k = 0; k < RUNNING_SETS; k++)
        nodeset_init(its[k], universe, m->running_sets + (slot * (size_t)RUNNING_SETS + k) * each);
    r->by_node = m->running_by_node + (size_t)slot * m->config.limits.nodes;
    return slot;
}

struct running *running_new(struct mm *m, struct job *j, const struct nodeset *set) {
    ASSERT(m->running_free_count > 0);
    uint32_t slot = m->running_returned > 0 ? m->running_free[--m->running_returned] : fresh(m);
    struct running *r = &m->runnings[slot];
    m->running_free_count--;
    struct running fresh = {.job = j->id,
                            .run = run_of(j->id, j->attempt),
                            .set = r->set,
                            .waiting = r->waiting,
                            .unsure = r->unsure,
                            .lost = r->lost,
                            .ready = r->ready,
                            .by_node = r->by_node,
                            .worst = {.node = NO_NODE}};
    *r = fresh;
    nodeset_copy(&r->set, set);
    nodeset_clear(&r->waiting);
    nodeset_clear(&r->unsure);
    nodeset_clear(&r->lost);
    nodeset_clear(&r->ready);
    if (j->kind != JOB_STEP) /* what another has left there would be what its steps use */
        NODESET_EACH (n, set)
            r->by_node[n] = 0;
    j->slot = slot;
    m->running_count++;
    m->lent += (j->flags & JOB_LENT) != 0;
    return r;
}

void running_free(struct mm *m, struct running *r) {
    if (heap_item_queued(&r->due))
        heap_remove(&m->dues, &r->due);
    m->lent -= (job_find(m, r->job)->flags & JOB_LENT) != 0;
    petition_run_over(m, r->run);
    r->job = 0;
    m->running_free[m->running_returned++] = (uint32_t)(r - m->runnings);
    m->running_free_count++;
    m->running_count--;
}

/* Nodes that get processes: all, or the first of a script's, or none of an allocation's. */
static void expect(const struct job *j, struct running *r) {
    if (j->kind == JOB_ALLOC)
        return;
    nodeset_copy(&r->waiting, &r->set);
    if (j->procs < nodeset_count(&r->set)) {
        uint32_t node = nodeset_first(&r->set);
        for (uint32_t k = 1; k < j->procs; k++)
            node = nodeset_next(&r->set, node);
        nodeset_remove_range(&r->waiting, node + 1, r->waiting.universe - 1);
    }
}

/* It takes a request to the primitives to start. */
static bool is_launched(const struct job *j) {
    return j->kind != JOB_ALLOC;
}

void start_job(struct mm *m, struct job *j, const struct nodeset *set) {
    j->attempt++;
    classes_drop(m, j->id);
    struct running *r = running_new(m, j, set);
    j->state = STATE_STARTING;
    j->started_ns = wall(m);
    sections_assign(m, j, r);
    expect(j, r);
    m->starting += is_launched(j);
    if (j->kind == JOB_STEP)
        job_running(m, job_find(m, j->inside))->steps++;
    struct after *a = after_add(m, record_start(m, j, r), AFTER_START);
    a->job = j->id;
}

void start_orphan(struct mm *m, const struct job *j, struct running *r) {
    if (j->kind == JOB_BATCH || j->parent != 0 || (j->flags & JOB_DETACHED) ||
        j->reason != REASON_NONE || client_of_output(m, j) != 0)
        return;
    r->orphan_at = m->now + m->config.orphan_ns;
}

void start_leave(struct mm *m, struct running *r) {
    if (r->phase >= PHASE_GOING)
        return;
    m->starting -= is_launched(job_find(m, r->job));
    m->dirty = true;
    r->phase = PHASE_GOING;
}

/* Its allocation has been suspended while it was on its way, or by a life that did not come to it any more. */
static bool is_held_around(const struct mm *m, const struct job *j) {
    const struct job *around = j->kind == JOB_STEP ? job_find(m, j->inside) : NULL;
    return around != NULL && around->state == STATE_SUSPENDED && j->state == STATE_RUNNING;
}

static void going(struct mm *m, struct job *j, struct running *r) {
    start_leave(m, r);
    r->started = true;
    start_orphan(m, j, r);
    slices_began(m, r);
    if (r->missed)
        stream_again(m, r);
    if (j->limit_ns > 0)
        r->limit_at = m->now + j->limit_ns;
    if (!nodeset_empty(&r->unsure)) /* who was away meanwhile */
        r->repeat_at = m->now;
    due_set(m, r);
    if (j->state == STATE_STARTING)
        j->state = STATE_RUNNING;
    client_news(m, j);
    if (is_held_around(m, j))
        act_hold(m, j, true);
}

/* It could not be started; nobody has it. */
static void undo(struct mm *m, struct job *j, struct running *r, const struct ending *why) {
    start_leave(m, r);
    end_forget(m, r->run, &r->set);
    nodeset_clear(&r->waiting);
    if (why != NULL) {
        r->worst = *why;
        r->bad = 1;
        j->reason = j->reason == REASON_NONE ? REASON_BAD : j->reason;
    } else if (j->reason == REASON_NONE && j->attempt < ATTEMPTS_MAX) {
        j->again = true;
    } else if (j->reason == REASON_NONE) {
        j->reason = REASON_LOST;
    }
    end_check(m, r);
}

static void fetch(struct mm *m, const struct job *j, struct running *r) {
    r->phase = PHASE_FETCHING;
    struct effect *e = effects_add(m->out, EFFECT_FETCH);
    e->fetch.ticket = r->run;
    e->fetch.key = j->key;
}

void start_durable(struct mm *m, struct job *j) {
    struct running *r = job_running(m, j);
    if (r == NULL || r->phase != PHASE_LOGGING)
        return;
    if (j->reason != REASON_NONE) { /* ended meanwhile: nothing was started */
        undo(m, j, r, NULL);
        return;
    }
    if (j->kind == JOB_ALLOC) {
        going(m, j, r);
        return;
    }
    fetch(m, j, r);
}

static void keep_words(struct mm *m, uint32_t job, struct bytes text) {
    struct copy_words *w = &m->copy_words[m->copy_words_next++ % COPY_WORDS_MAX];
    w->job = job;
    w->len = (uint32_t)(text.len < sizeof w->text ? text.len : sizeof w->text);
    if (w->len > 0)
        memcpy(w->text, text.at, w->len);
}

void start_stop_copying(struct mm *m, struct job *j, struct running *r) {
    files_run_over(m, r->run);
    undo(m, j, r, NULL);
}

/* What is to be run is fetched once more: nobody keeps it meanwhile. */
void start_copied(struct mm *m, uint64_t run, const struct copying *c) {
    struct job *j = job_find(m, run_job(run));
    struct running *r = j == NULL ? NULL : job_running(m, j);
    if (r == NULL || r->run != run || r->phase != PHASE_COPYING)
        return;
    struct ending why = {.node = c->node,
                         .cause = CAUSE_FAILED,
                         .step = SPAWN_COPY,
                         .value = (uint32_t)-c->error,
                         .bad = 1};
    if (c->error == 0) {
        r->copied++;
        fetch(m, j, r);
    } else if (c->error == -EHOSTDOWN) { /* others may do */
        undo(m, j, r, NULL);
    } else {
        keep_words(m, j->id, bytes_of(c->text, c->text_len));
        undo(m, j, r, &why);
    }
}

/* Nodes that have ranks which need it. */
static const struct nodeset *needed_by(struct mm *m, const struct job *j, const struct running *r,
                                       const struct message_submit *s, const struct crate *p) {
    struct spec spec = {0};
    struct rank_range ranks;
    struct map map = job_placing(m, j, r);
    if (map.kind == MAP_LIST && spec_decode(s->spec, &spec) == 0)
        map.places = spec.places;
    if (!map_good(&map))
        return &r->waiting; /* those who are to start it will say so */
    nodeset_clear(&m->work);
    for (uint32_t i = 0; crate_range_load(p, i, &ranks); i++)
        map_nodes_of(&map, ranks.first, ranks.count, &r->set, &m->work);
    nodeset_intersect(&m->work, &r->waiting);
    return &m->work;
}

/* First what goes to its folder, then the bundles of its programs. False: there are not so many. */
static bool choose_shipment(struct mm *m, const struct job *j, const struct running *r,
                            const struct message_submit *s, struct shipment *ret) {
    struct crate p = {0};
    *ret = (struct shipment){.copy = s->inputs, .inputs = r->copied == 0, .to = &r->waiting};
    if (r->copied == 0)
        return true;
    ret->copy = s->files;
    if ((j->flags & JOB_SEVERAL) == 0)
        return r->copied == 1;
    if (crate_at(s->files, r->copied - 1, &p) <= 0) /* it was judged when it came */
        return false;
    ret->copy = p.copy;
    ret->to = needed_by(m, j, r, s, &p);
    return true;
}

/* The bundle that comes next. False if it need not be waited for. */
static bool send_bundle(struct mm *m, struct job *j, struct running *r,
                        const struct shipment *next) {
    const char *wrong = NULL;
    struct ending why = {
        .node = NO_NODE, .cause = CAUSE_FAILED, .step = SPAWN_COPY, .value = EAGAIN, .bad = 1};
    r->phase = PHASE_COPYING; /* before: it may come to an end at once */
    switch (files_send(m, r, next, &wrong)) {
    case FILES_SENT:
        return true;
    case FILES_LATER:
        r->crowded = true;
        return true;
    case FILES_WRONG:
        keep_words(m, j->id, bytes_from_str(wrong));
        undo(m, j, r, &why);
        return true;
    case FILES_THERE:
        break;
    }
    r->phase = PHASE_FETCHING;
    return false;
}

/* One bundle after the other. False if all that it needs is there. */
static bool send_files(struct mm *m, struct job *j, struct running *r,
                       const struct message_submit *s) {
    struct shipment next;
    for (; choose_shipment(m, j, r, s, &next); r->copied++)
        if (next.copy.len > 0 && send_bundle(m, j, r, &next))
            return true;
    return false;
}

/* The oldest first. */
void start_crowded(struct mm *m) {
    m->copy_left = false;
    for (uint32_t left = files_free(m); left > 0; left--) {
        struct running *first = NULL;
        for (struct running *r = m->runnings; r < m->runnings + m->running_peak; r++)
            if (r->job != 0 && r->phase == PHASE_COPYING && r->crowded &&
                (first == NULL || r->run < first->run))
                first = r;
        if (first == NULL)
            return;
        first->crowded = false;
        fetch(m, job_find(m, first->job), first);
    }
}

void start_fetched(struct mm *m, const struct input_fetched *in) {
    struct job *j = job_find(m, run_job(in->ticket));
    struct running *r = j == NULL ? NULL : job_running(m, j);
    if (r == NULL || r->run != in->ticket || r->phase != PHASE_FETCHING)
        return;
    struct message_submit s;
    struct ending why = {.node = NO_NODE, .cause = CAUSE_FAILED, .step = SPAWN_FORK, .bad = 1};
    if (j->reason != REASON_NONE || record_spec(m, in->body, &s) < 0) {
        why.value = ENODATA;
        undo(m, j, r, j->reason != REASON_NONE ? NULL : &why);
        return;
    }
    if (send_files(m, j, r, &s))
        return;
    union message launch = {.launch = {.run = r->run,
                                       .procs = j->procs,
                                       .map = (uint8_t)job_map(j->flags),
                                       .window = stream_window(j->procs),
                                       .index = j->index,
                                       .set = &r->set,
                                       .sections = sections_map(m, j, r),
                                       .folder = (j->flags & JOB_FOLDER) != 0}};
    slices_launch(m, j, r, &launch.launch);
    struct say_all how = {.set = &r->waiting,
                          .tag = r->run,
                          .timeout_ns = m->config.launch_ns,
                          .event = EVENT_LAUNCH,
                          .hint = true,
                          .ask = (j->flags & JOB_LOOK) != 0};
    r->phase = PHASE_LAUNCHING;
    end_forget_with(m, &r->set);
    uint32_t room = m->config.limits.body_bytes;
    bool told = sections_of(m, j) == NULL || launch.launch.sections.len > 0;
    if (!told || !say_all(m->out, &how, room, MESSAGE_LAUNCH, &launch, s.spec)) {
        why.value = E2BIG;
        undo(m, j, r, &why);
    }
}

void start_completed(struct mm *m, const struct completion *c) {
    struct job *j = job_find(m, run_job(c->tag));
    struct running *r = j == NULL ? NULL : job_running(m, j);
    if (r == NULL || r->run != c->tag || r->phase != PHASE_LAUNCHING ||
        c->outcome == OUTCOME_UNKNOWN)
        return;
    if (c->outcome != OUTCOME_DONE) {
        if (c->culprit < m->config.limits.nodes)
            node_suspect(m, c->culprit);
        undo(m, j, r, NULL);
        return;
    }
    going(m, j, r);
    if (r->force != 0) /* ended while it was on its way */
        r->repeat_at = m->now;
    due_set(m, r);
}

/* Takes the processors of what runs; those of a run whose end was not kept on a full disk may have been given
 * to another already. */
void start_hold(struct mm *m) {
    m->overlap = false;
    for (uint32_t i = 0; i < m->running_peak; i++) {
        struct running *r = &m->runnings[i];
        struct job *j = r->job == 0 || r->phase == PHASE_OVER ? NULL : job_find(m, r->job);
        if (j == NULL || !r->unheld)
            continue;
        r->unheld = !queue_hold(m, j, r);
        m->overlap = m->overlap || r->unheld;
        if (!r->unheld)
            slices_moved(m, j);
    }
}

void start_resume(struct mm *m) {
    start_hold(m);
    for (uint32_t i = 0; i < m->running_peak; i++) {
        struct running *r = &m->runnings[i];
        struct job *j = r->job == 0 ? NULL : job_find(m, r->job);
        if (j == NULL)
            continue;
        if (r->phase == PHASE_OVER) {
            end_unfollowed(m, j);
            continue;
        }
        r->phase = PHASE_GOING;
        expect(j, r);
        slices_began(m, r);
        nodeset_copy(&r->unsure, &r->waiting);
        r->started = r->started || m->fresh;
        r->repeat_at = m->now + NS_PER_S;
        start_orphan(m, j, r);
        if (j->limit_ns > 0) { /* it ran on while we were away */
            uint64_t ran = wall(m) > j->started_ns ? wall(m) - j->started_ns : 0;
            r->ran_ns = ran / slices_share(m); /* how many turns it had, nobody knows */
            r->limit_at = m->now + (r->ran_ns < j->limit_ns ? j->limit_ns - r->ran_ns : 1);
        }
        j->state = r->suspended ? STATE_SUSPENDED : STATE_RUNNING;
        due_set(m, r);
    }
    for (uint32_t i = 0; i < m->running_peak; i++) {
        struct running *r = &m->runnings[i];
        struct job *j = r->job == 0 || r->phase == PHASE_OVER ? NULL : job_find(m, r->job);
        if (j != NULL && j->reason != REASON_NONE)
            end_resume(m, j, r);
    }
    for (uint32_t i = 0; i < m->running_peak; i++) {
        const struct running *r = &m->runnings[i];
        struct job *j = r->job == 0 || r->phase != PHASE_GOING ? NULL : job_find(m, r->job);
        if (j != NULL && is_held_around(m, j))
            act_hold(m, j, true);
    }
}
