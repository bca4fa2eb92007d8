/* SPDX-License-Identifier: MIT */
/* Who waits, and who starts: first come, first served among those of the same priority.
 *
 * The head of the queue starts when it fits; nothing overtakes it. Steps wait beside the queue, as they
 * use what their allocation holds already. Work in a turn is in proportion to what starts. */
#include <errno.h>

#include "base/assert.h"
#include "mm/inside.h"
#include "sched/size.h"

static uint32_t *first_of(struct mm *m, const struct job *j) {
    return j->kind == JOB_STEP ? &m->steps_first : &m->queue_first;
}

static uint32_t *last_of(struct mm *m, const struct job *j) {
    return j->kind == JOB_STEP ? &m->steps_last : &m->queue_last;
}

static void link_between(struct mm *m, struct job *j, uint32_t prev, uint32_t next) {
    uint32_t place = job_place(m, j);
    j->prev = prev;
    j->next = next;
    *(prev == NO_SLOT ? first_of(m, j) : &m->jobs[prev].next) = place;
    *(next == NO_SLOT ? last_of(m, j) : &m->jobs[next].prev) = place;
    m->queued++;
    m->dirty = true;
}

/* Behind all of its priority. Most jobs have the same, and who has another is mostly above or below all:
 * so the search is short. */
void queue_add(struct mm *m, struct job *j) {
    j->state = STATE_QUEUED;
    uint32_t first = *first_of(m, j), before = *last_of(m, j);
    if (first != NO_SLOT && m->jobs[first].priority < j->priority) {
        link_between(m, j, NO_SLOT, first);
        return;
    }
    while (before != NO_SLOT && m->jobs[before].priority < j->priority)
        before = m->jobs[before].prev;
    link_between(m, j, before, before == NO_SLOT ? NO_SLOT : m->jobs[before].next);
}

void queue_add_front(struct mm *m, struct job *j) {
    j->state = STATE_QUEUED;
    uint32_t next = *first_of(m, j), prev = NO_SLOT;
    while (next != NO_SLOT && m->jobs[next].priority >= j->priority &&
           (m->jobs[next].priority > j->priority || m->jobs[next].id < j->id)) {
        prev = next;
        next = m->jobs[next].next;
    }
    link_between(m, j, prev, next);
}

void queue_remove(struct mm *m, struct job *j) {
    if (j->waits) {
        waits_drop(m, j);
        return;
    }
    *(j->prev == NO_SLOT ? first_of(m, j) : &m->jobs[j->prev].next) = j->next;
    *(j->next == NO_SLOT ? last_of(m, j) : &m->jobs[j->next].prev) = j->prev;
    j->prev = j->next = NO_SLOT;
    m->queued--;
    m->dirty = true;
}

static struct places_want want_of(struct mm *m, const struct job *j) {
    const struct wish *w = job_wish(m, j);
    struct places_want want = {
        .nodes = j->nodes, .ppn = j->ppn, .exclusive = (j->flags & JOB_EXCLUSIVE) != 0};
    if (w != NULL) {
        want.only = nodeset_empty(&w->on) ? NULL : &w->on;
        want.exclude = &w->exclude;
    }
    return want;
}

/* Nodes of the allocation that have room for the step; true if there are enough. */
static bool take_inside(struct mm *m, const struct job *j, struct nodeset *ret) {
    const struct job *around = job_find(m, j->inside);
    struct running *r = around == NULL ? NULL : job_running(m, around);
    nodeset_clear(ret);
    if (r == NULL || around->state != STATE_RUNNING)
        return false;
    const struct wish *w = job_wish(m, j);
    uint32_t all = around->flags & JOB_EXCLUSIVE ? m->config.pes : around->ppn;
    NODESET_EACH (n, &r->set) {
        if (nodeset_count(ret) == j->nodes)
            break;
        bool wanted = w == NULL || ((nodeset_empty(&w->on) || nodeset_has(&w->on, n)) &&
                                    !nodeset_has(&w->exclude, n));
        if (wanted && r->used[n] + j->ppn <= all && nodeset_has(&m->places.usable, n))
            nodeset_add(ret, n);
    }
    if (nodeset_count(ret) < j->nodes)
        return false;
    NODESET_EACH (n, ret)
        r->used[n] = (uint16_t)(r->used[n] + j->ppn);
    return true;
}

/* A launch is a request to the primitives, and these take only so many at once. */
static uint32_t starting_max(const struct mm *m) {
    uint32_t most = m->config.limits.outstanding;
    return most > 8 ? most - 4 : most;
}

static void run_steps(struct mm *m) {
    for (uint32_t at = m->steps_first, next; at != NO_SLOT; at = next) {
        struct job *j = &m->jobs[at];
        next = j->next;
        const struct job *around = job_find(m, j->inside);
        if (around == NULL || state_over((enum job_state)around->state)) {
            end_job(m, j, REASON_ORPHAN, 0, true);
            continue;
        }
        if (m->running_free_count == 0 || m->starting >= starting_max(m) ||
            !take_inside(m, j, &m->work))
            continue;
        queue_remove(m, j);
        start_job(m, j, &m->work);
    }
}

void queue_run(struct mm *m) {
    if (!m->dirty || m->stopped || m->stalled || m->replaying)
        return;
    m->dirty = false;
    end_make_room(m);
    waits_end_doomed(m);
    run_steps(m);
    while (m->queue_first != NO_SLOT && m->running_free_count > 0 &&
           m->after_count + 4 < m->after_cap && m->starting < starting_max(m)) {
        struct job *j = &m->jobs[m->queue_first];
        struct places_want want = want_of(m, j);
        if (places_take(&m->places, &want, &m->work) < 0)
            break;
        queue_remove(m, j);
        start_job(m, j, &m->work);
    }
    m->dirty = false;
}

/* ---- words ---- */

static void name_nodes(struct mm *m, const struct nodeset *set, struct text *out) {
    char names[256];
    nodeset_format(set, m->config.prefix, names, sizeof names);
    text_str(out, names);
}

/* Nodes the job insists on that may not be used now. */
static int judge_wish(struct mm *m, const struct message_submit *s, struct text *why) {
    if (nodeset_empty(s->on))
        return 0;
    nodeset_copy(&m->work, s->on);
    nodeset_subtract(&m->work, s->exclude);
    if (nodeset_count(&m->work) < s->nodes) {
        text_str(why, "needs ");
        text_u64(why, s->nodes);
        text_str(why, " nodes, but only ");
        text_u64(why, nodeset_count(&m->work));
        text_str(why, " are named and not excluded");
        return -EINVAL;
    }
    NODESET_EACH (n, s->on)
        if (m->nodes[n].drained && nodeset_count(&m->work) == s->nodes) {
            nodeset_clear(&m->work);
            nodeset_add(&m->work, n);
            text_str(why, "node ");
            name_nodes(m, &m->work, why);
            text_str(why, " is drained (");
            text_strn(why, m->nodes[n].reason, m->nodes[n].reason_len);
            text_str(why, "); choose another, or undrain it");
            return -EBUSY;
        }
    return 0;
}

static int judge_step(struct mm *m, const struct message_submit *s, struct text *why) {
    const struct job *around = job_find(m, s->inside);
    if (around == NULL || state_over((enum job_state)around->state)) {
        text_str(why, "allocation ");
        text_u64(why, s->inside);
        text_str(why, " is over");
        return -ESRCH;
    }
    if (s->nodes > around->nodes || s->ppn > around->ppn) {
        text_str(why, "needs ");
        text_u64(why, s->nodes);
        text_str(why, s->nodes == 1 ? " node with " : " nodes with ");
        text_u64(why, s->ppn);
        text_str(why, s->ppn == 1 ? " processor" : " processors");
        text_str(why, "; the allocation has ");
        text_u64(why, around->nodes);
        text_str(why, " with ");
        text_u64(why, around->ppn);
        return -E2BIG;
    }
    return 0;
}

int queue_judge(struct mm *m, const struct message_submit *s, struct text *why) {
    struct size size = {.nodes = s->nodes, .ppn = s->ppn, .procs = s->procs};
    bool script = (s->flags & JOB_SCRIPT) != 0 || s->kind == JOB_ALLOC;
    if (s->nodes == 0 || s->ppn == 0 || s->procs == 0 || (!script && !size_is_whole(&size))) {
        text_str(why, "the size contradicts itself");
        return -EINVAL;
    }
    if (s->kind == JOB_STEP)
        return judge_step(m, s, why);
    struct places_want want = {.nodes = s->nodes,
                               .ppn = s->ppn,
                               .only = nodeset_empty(s->on) ? NULL : s->on,
                               .exclude = s->exclude};
    int r = waits_judge(m, s, why);
    if (r == 0)
        r = judge_wish(m, s, why);
    if (r < 0 || places_fits(&m->places, &want))
        return r;
    text_str(why, "needs ");
    text_u64(why, s->nodes);
    text_str(why, s->nodes == 1 ? " node with " : " nodes with ");
    text_u64(why, s->ppn);
    text_str(why, s->ppn == 1 ? " processor" : " processors");
    text_str(why, "; the cluster has ");
    text_u64(why, m->config.limits.nodes);
    text_str(why, " with ");
    text_u64(why, m->config.pes);
    return -ENOSPC;
}

/* Nodes that it insists on and that cannot be used. */
static bool why_nodes(struct mm *m, const struct job *j, struct text *why) {
    const struct wish *w = job_wish(m, j);
    char list[128];
    if (w == NULL || nodeset_empty(&w->on))
        return false;
    nodeset_clear(&m->work);
    NODESET_EACH (i, &w->on)
        if (i < m->config.limits.nodes && !(m->nodes[i].member && m->nodes[i].announced))
            nodeset_add(&m->work, i);
    if (nodeset_count(&w->on) - nodeset_count(&m->work) >= j->nodes)
        return false;
    size_t len = nodeset_format(&m->work, m->config.prefix, list, sizeof list);
    text_str(why, "waits for ");
    text_strn(why, list, len < sizeof list ? len : sizeof list - 1);
    text_str(why, nodeset_count(&m->work) == 1 ? ", which is down" : ", which are down");
    return true;
}

static void why_places(struct mm *m, const struct job *j, struct text *why) {
    if (why_nodes(m, j, why))
        return;
    uint64_t needs = (uint64_t)j->nodes * j->ppn, has = places_free(&m->places);
    if (has < needs) {
        text_str(why, "waits for ");
        text_u64(why, needs - has);
        text_str(why, needs - has == 1 ? " more processor" : " more processors");
    } else {
        text_str(why, "waits for nodes that have what it needs free at once");
    }
    uint32_t away = 0;
    for (uint32_t i = 0; i < m->config.limits.nodes; i++)
        away += m->nodes[i].drained || !(m->nodes[i].member && m->nodes[i].announced);
    if (away == 0)
        return;
    text_str(why, "; ");
    text_u64(why, away);
    text_str(why, away == 1 ? " node is drained or down" : " nodes are drained or down");
}

void queue_why(struct mm *m, const struct job *j, struct text *why) {
    if (j->state != STATE_QUEUED)
        return;
    if (j->kind == JOB_STEP) {
        text_str(why, "waits for room in allocation ");
        text_u64(why, j->inside);
        return;
    }
    if (m->stopped) {
        text_str(why, "the cluster is going down");
        return;
    }
    if (j->waits) {
        waits_why(m, j, why);
        return;
    }
    const struct job *head = &m->jobs[m->queue_first];
    if (head != j) {
        text_str(why, "waits behind job ");
        text_u64(why, head->id);
        text_str(why, ", which ");
    }
    why_places(m, head, why);
}
