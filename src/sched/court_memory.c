/* SPDX-License-Identifier: MIT */
/* Memory of nodes: one book for all slots.
 *
 * Processors change hands with every turn, memory does not: a job that is switched out keeps what it has. So what it
 * takes is counted once, whatever slots it runs in, from its start to its end. What is left may be less than nothing,
 * where a node has lost memory or was told to have less: who is there stays. A node that is not limited has so much
 * that no sum of what jobs may say comes near it, and so needs no case of its own. */
#include "base/assert.h"
#include "sched/court_inside.h"

#define UNLIMITED ((int64_t)1 << 61)

void court_memory_init(struct court *c) {
    for (uint32_t n = 0; n < c->config.limits.nodes; n++)
        c->memory.has[n] = c->memory.left[n] = UNLIMITED;
}

void court_node_memory(struct court *c, uint32_t node, uint32_t units) {
    struct court_memory *m = &c->memory;
    int64_t has = units == COURT_MEMORY_ANY ? UNLIMITED : (int64_t)units, had = m->has[node];
    ASSERT(node < c->config.limits.nodes && !c->deciding);
    if (has == had)
        return;
    m->limited += had == UNLIMITED;
    m->limited -= has == UNLIMITED;
    m->left[node] += has - had;
    m->has[node] = has;
    c->stirred = true;
}

const int64_t *court_memory_for(const struct court *c, const struct court_job *j) {
    return j->takes_memory && c->memory.limited > 0 ? c->memory.left : NULL;
}

void court_memory_change(struct court *c, const struct court_job *j, bool take) {
    struct court_part p;
    for (uint32_t k = 0; j->takes_memory && court_part(c, j, k, &p); k++)
        NODESET_EACH (n, p.set)
            c->memory.left[n] += take ? -(int64_t)p.memory : (int64_t)p.memory;
}

/* ---- for who asks, and for tests ---- */

uint32_t court_node_memory_of(const struct court *c, uint32_t node) {
    int64_t has = c->memory.has[node];
    return has == UNLIMITED ? COURT_MEMORY_ANY : (uint32_t)has;
}

uint64_t court_node_memory_held(const struct court *c, uint32_t node) {
    return (uint64_t)(c->memory.has[node] - c->memory.left[node]);
}

static uint64_t held_on(const struct court *c, uint32_t node) {
    struct court_part p;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->running; i++)
        for (uint32_t k = 0; court_part(c, &c->jobs[c->ends[i].job], k, &p); k++)
            if (p.memory > 0 && nodeset_has(p.set, node))
                sum += p.memory;
    return sum;
}

bool court_memory_conserved(const struct court *c) {
    uint32_t limited = 0;
    for (uint32_t n = 0; n < c->config.limits.nodes; n++) {
        limited += c->memory.has[n] != UNLIMITED;
        if (court_node_memory_held(c, n) != held_on(c, n))
            return false;
    }
    return limited == c->memory.limited;
}
