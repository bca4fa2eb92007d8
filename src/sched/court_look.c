/* SPDX-License-Identifier: MIT */
/* What the court's owner takes and sees. */
#include "base/assert.h"
#include "sched/court_inside.h"

void court_news(struct court *c, struct court_job *j, uint8_t what) {
    uint32_t at = (uint32_t)(j - c->jobs);
    j->pending |= what;
    if (j->in_news)
        return;
    j->in_news = true;
    j->news_next = COURT_NONE;
    *(c->news_last == COURT_NONE ? &c->news_first : &c->jobs[c->news_last].news_next) = at;
    c->news_last = at;
}

static bool next_of_job(struct court *c, struct court_effect *ret) {
    if (c->news_first == COURT_NONE)
        return false;
    struct court_job *j = &c->jobs[c->news_first];
    *ret = (struct court_effect){.job = c->news_first, .slot = j->pub.slot, .slots = j->pub.slots};
    if (j->pending & PENDING_START) {
        ret->kind = COURT_START;
        j->pending &= (uint8_t) ~(PENDING_START | PENDING_SLOTS);
    } else if (j->pending & PENDING_SLOTS) {
        ret->kind = COURT_SLOTS;
        j->pending &= (uint8_t)~PENDING_SLOTS;
    } else {
        ret->kind = COURT_STOP;
        j->pending = 0;
    }
    if (j->pending == 0) {
        j->in_news = false;
        c->news_first = j->news_next;
        if (c->news_first == COURT_NONE)
            c->news_last = COURT_NONE;
    }
    return true;
}

bool court_next(struct court *c, struct court_effect *ret) {
    if (c->words_news) {
        c->words_news = false;
        *ret = (struct court_effect){
            .kind = COURT_FAULT, .job = COURT_NONE, .slot = c->slot, .words = c->words};
        return true;
    }
    if (next_of_job(c, ret))
        return true;
    if (!c->turn_news)
        return false;
    c->turn_news = false;
    *ret = (struct court_effect){.kind = COURT_TURN, .job = COURT_NONE, .slot = c->slot};
    return true;
}

uint64_t court_due_but_turns(const struct court *c) {
    const struct heap_item *later = heap_peek(&c->later);
    uint64_t at = c->windows.edge < c->wake_at ? c->windows.edge : c->wake_at;
    return later != NULL && later->key < at ? later->key : at;
}

uint64_t court_due(const struct court *c) {
    uint64_t at = court_due_but_turns(c);
    return at < c->quantum_at ? at : c->quantum_at;
}

const struct storm_job *court_job(const struct court *c, uint32_t job) {
    ASSERT(job < c->jobs_used);
    return &c->jobs[job].pub;
}

const struct nodeset *court_nodes(const struct court *c, uint32_t job) {
    ASSERT(job < c->jobs_used && c->jobs[job].where == WHERE_RUNS);
    return &c->sets[c->jobs[job].set];
}

const struct storm_policy *court_policy(const struct court *c) {
    return c->policy;
}

uint32_t court_slot(const struct court *c) {
    return c->slot;
}

uint64_t court_free(const struct court *c, uint32_t slot) {
    return c->matrix.rows[slot].free;
}

const struct storm_limits *court_limits(const struct court *c) {
    return &c->limits;
}

uint32_t court_row_jobs(const struct court *c, uint32_t slot) {
    return c->matrix.rows[slot].jobs;
}

uint32_t court_node_pes_of(const struct court *c, uint32_t node) {
    return matrix_node_pes(&c->matrix, node);
}

uint32_t court_node_used(const struct court *c, uint32_t slot, uint32_t node) {
    return matrix_node_used(&c->matrix, slot, node);
}

uint32_t court_queued(const struct court *c) {
    return c->queue.count + c->booked.count;
}

uint32_t court_running(const struct court *c) {
    return c->running;
}

uint32_t court_head(const struct court *c) {
    return c->queue.first;
}

static bool line_conserved(const struct court *c, const struct court_line *line, uint8_t where) {
    uint32_t count = 0, prev = COURT_NONE;
    for (uint32_t at = line->first; at != COURT_NONE; prev = at, at = c->jobs[at].next, count++)
        if (c->jobs[at].prev != prev || c->jobs[at].where != where)
            return false;
    return count == line->count && prev == line->last && court_tree_conserved(c, line);
}

/* PEs of a row, as its jobs have them. */
static bool row_conserved(const struct court *c, uint32_t row) {
    uint64_t jobs = 0;
    for (uint32_t i = 0; i < c->running; i++)
        jobs += c->jobs[c->ends[i].job].pub.slot == row;
    for (uint32_t n = 0; n < c->config.limits.nodes; n++) {
        uint64_t used = 0;
        for (uint32_t i = 0; i < c->running; i++) {
            const struct court_job *j = &c->jobs[c->ends[i].job];
            struct court_part p;
            for (uint32_t k = 0; j->pub.slot == row && court_part(c, j, k, &p); k++)
                if (nodeset_has(p.set, n))
                    used += p.each == WANT_WHOLE ? matrix_node_pes(&c->matrix, n) : p.each;
        }
        if (used != matrix_node_used(&c->matrix, row, n) || used > matrix_node_pes(&c->matrix, n))
            return false;
    }
    return jobs == c->matrix.rows[row].jobs;
}

bool court_conserved(const struct court *c) {
    for (uint32_t i = 0; i < c->running; i++) {
        const struct court_job *j = &c->jobs[c->ends[i].job];
        if (j->where != WHERE_RUNS || j->pub.ends != c->ends[i].ends ||
            (i > 0 && c->ends[i - 1].ends > c->ends[i].ends))
            return false;
    }
    for (uint32_t s = 0; s < c->config.limits.slots; s++)
        if (!row_conserved(c, s))
            return false;
    return matrix_conserved(&c->matrix) && line_conserved(c, &c->queue, WHERE_QUEUE) &&
           line_conserved(c, &c->booked, WHERE_BOOKED) && court_windows_conserved(c) &&
           court_seats_conserved(c) && court_memory_conserved(c);
}
