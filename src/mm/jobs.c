/* SPDX-License-Identifier: MIT */
/* The table of jobs.
 *
 * The job of number i is at place i mod the size of the table; a number whose place is still taken by a
 * job that is not over is passed over. So jobs are found at once, and those that are over stay until
 * their places are needed. */
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "mm/inside.h"
#include "wire/spec.h"

uint64_t wall(const struct mm *m) {
    return m->wall_ns + m->now;
}

uint32_t job_place(const struct mm *m, const struct job *j) {
    return (uint32_t)(j - m->jobs);
}

struct job *job_find(const struct mm *m, uint32_t id) {
    struct job *j = &m->jobs[id & (m->config.jobs_max - 1)];
    return id != 0 && j->id == id ? j : NULL;
}

static uint32_t bucket_of(const uint64_t request[2]) {
    return (uint32_t)(request[0] ^ request[1] >> 7) % REQUEST_BUCKETS;
}

struct job *job_of_request(const struct mm *m, const uint64_t request[2]) {
    for (uint32_t at = m->requests[bucket_of(request)]; at != NO_SLOT;
         at = m->jobs[at].request_next) {
        struct job *j = &m->jobs[at];
        if (j->request[0] == request[0] && j->request[1] == request[1])
            return j;
    }
    return NULL;
}

void job_keep_request(struct mm *m, struct job *j) {
    uint32_t *first = &m->requests[bucket_of(j->request)];
    j->request_next = *first;
    *first = job_place(m, j);
}

static void drop_request(struct mm *m, const struct job *j) {
    uint32_t place = job_place(m, j);
    for (uint32_t *at = &m->requests[bucket_of(j->request)]; *at != NO_SLOT;
         at = &m->jobs[*at].request_next)
        if (*at == place) {
            *at = j->request_next;
            return;
        }
}

void job_free(struct mm *m, struct job *j) {
    drop_request(m, j);
    j->id = 0;
}

struct job *job_new(struct mm *m, uint32_t id) {
    struct job *j = &m->jobs[id & (m->config.jobs_max - 1)];
    if (j->id != 0 && (!j->settled || j->left > 0))
        return NULL;
    if (j->id != 0)
        job_free(m, j);
    memset(j, 0, sizeof *j);
    j->id = id;
    j->slot = j->prev = j->next = j->request_next = j->awaits = NO_SLOT;
    j->seat = COURT_NONE;
    j->born = m->now;
    j->worst.node = j->loose = NO_NODE;
    return j;
}

uint32_t job_memory(const struct message_submit *s) {
    struct spec spec;
    if (s->kind == JOB_STEP || s->spec.len == 0 || spec_decode(s->spec, &spec) < 0)
        return 0; /* what a step uses its allocation holds */
    uint64_t units = (spec.memory + MIB - 1) / MIB;
    return units > UINT32_MAX ? UINT32_MAX : (uint32_t)units;
}

uint32_t job_memory_of(uint32_t memory, uint32_t processes) {
    uint64_t all = (uint64_t)memory * processes;
    return all > INT32_MAX ? INT32_MAX : (uint32_t)all;
}

void job_fill(struct job *j, const struct message_submit *s, uint64_t at) {
    j->kind = s->kind;
    j->flags = s->flags;
    j->nodes = s->nodes;
    j->ppn = s->ppn;
    j->procs = s->procs;
    j->inside = s->inside;
    j->parent = s->flags & JOB_FAMILY ? s->parent : 0;
    j->together = s->flags & JOB_FAMILY ? s->together : 0;
    j->priority = s->priority;
    j->limit_ns = s->limit_ns;
    j->submitted_ns = at;
    j->begin_ns = s->begin_ns;
    j->request[0] = s->request[0];
    j->request[1] = s->request[1];
    j->name_len = (uint32_t)(s->name.len < sizeof j->name ? s->name.len : sizeof j->name);
    if (j->name_len > 0)
        memcpy(j->name, s->name.at, j->name_len);
}

enum { WISHES = 1U << 30 }; /* a flag of ours beside those of clients */

struct wish *job_wish(struct mm *m, const struct job *j) {
    return j->flags & WISHES ? &m->wishes[job_place(m, j)] : NULL;
}

static void keep_set(struct mm *m, struct nodeset *to, const struct nodeset *from, size_t which) {
    uint32_t universe = limits_universe(&m->config.limits);
    nodeset_init(to, universe, m->wish_sets + which * (nodeset_bytes(universe) / 8));
    nodeset_copy(to, from);
}

void job_keep_wish(struct mm *m, struct job *j, const struct message_submit *s) {
    if (nodeset_empty(s->on) && nodeset_empty(s->exclude))
        return;
    size_t place = job_place(m, j);
    j->flags |= WISHES;
    keep_set(m, &m->wishes[place].on, s->on, 2 * place);
    keep_set(m, &m->wishes[place].exclude, s->exclude, 2 * place + 1);
}

uint32_t job_each(const struct mm *m, const struct job *j, uint32_t node) {
    return j->flags & JOB_EXCLUSIVE    ? court_node_pes_of(m->court, node)
           : sections_of(m, j) != NULL ? sections_ppn(m, j, node)
                                       : j->ppn;
}

struct map job_placing(struct mm *m, const struct job *j, const struct running *r) {
    uint32_t nodes = nodeset_count(&r->set);
    return (struct map){.kind = job_map(j->flags),
                        .nodes = nodes < j->procs ? nodes : j->procs,
                        .procs = j->procs,
                        .sections = sections_map(m, j, r)};
}

struct running *job_running(const struct mm *m, const struct job *j) {
    return j->slot == NO_SLOT ? NULL : &m->runnings[j->slot];
}

void job_row_where(const struct roster *names, struct job_row *row, char peak[ROSTER_NAME_MAX],
                   char node[ROSTER_NAME_MAX]) {
    const struct usage *u = &row->usage;
    if (u->peak_bytes > 0)
        row->peak_where = bytes_of(peak, roster_name(names, u->peak_node, peak, ROSTER_NAME_MAX));
    if (u->node_bytes > 0)
        row->node_where = bytes_of(node, roster_name(names, u->node_node, node, ROSTER_NAME_MAX));
}

struct job_row job_row_of(const struct job *j) {
    return (struct job_row){.job = j->id,
                            .run = j->attempt == 0 ? 0 : run_of(j->id, j->attempt),
                            .state = j->state,
                            .kind = j->kind,
                            .flags = j->flags & (JOB_FLAGS_END - 1),
                            .procs = j->procs,
                            .nodes = j->nodes,
                            .ppn = j->ppn,
                            .status = j->status,
                            .priority = j->priority,
                            .array = j->index,
                            .parent = j->parent,
                            .hosts = j->children,
                            .measured = j->measured,
                            .usage = j->usage,
                            .measured_ns = j->ended_ns,
                            .submitted_ns = j->submitted_ns,
                            .started_ns = j->started_ns,
                            .ended_ns = j->ended_ns,
                            .begin_ns = j->begin_ns,
                            .limit_ns = j->limit_ns,
                            .name = bytes_of(j->name, j->name_len)};
}

const char *job_reason(enum reason reason) {
    static const char *const words[REASONS] = {
        [REASON_ORPHAN] = "nobody waits for it any more",
        [REASON_AFTER] = "a job that it was to wait for has not ended as it should",
        [REASON_POLICY] = "the scheduling policy wanted its end",
        [REASON_WINDOW] = "its reservation is over, and it had not started",
        [REASON_CLAIMED] = "its processors were lent, and others wanted them",
        [REASON_OWNER] = "its processors were lent, and the owner of the machine came back",
        [REASON_DRAINED] = "its processors were lent, and their node was drained",
        [REASON_AROUND] = "the allocation that it was to run in is over"};
    return reason < REASONS ? words[reason] : NULL;
}
