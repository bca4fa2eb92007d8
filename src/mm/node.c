/* SPDX-License-Identifier: MIT */
/* The nodes: who is a member, who may be given to jobs.
 *
 * A node may be used when it is a member and has told which runs it has, so that nothing is given to one
 * whose launcher is not there. One that goes is missed for a while, as its manager may be started
 * again and find its processes running; then its jobs are lost. */
#include <string.h>

#include "mm/inside.h"

static void set_usable(struct mm *m, uint32_t node) {
    const struct node *n = &m->nodes[node];
    nodeset_clear(&m->work);
    nodeset_add(&m->work, node);
    places_set_usable(&m->places, &m->work, n->member && n->announced && !n->drained);
    m->dirty = true;
}

static void watch(struct mm *m) {
    uint64_t next = 0;
    for (uint32_t i = 0; i < m->config.limits.nodes; i++) {
        uint64_t at = m->nodes[i].absent_at;
        if (at != 0 && (next == 0 || at < next))
            next = at;
    }
    effects_timer(m->out, TIMER_NODES, next == 0 ? 0 : next + m->config.absent_ns);
}

void node_changed(struct mm *m, const struct input_nodes *in) {
    NODESET_EACH (i, in->nodes) {
        if (i >= m->config.limits.nodes)
            continue;
        struct node *n = &m->nodes[i];
        n->member = in->up;
        n->announced = false;
        n->since = wall(m);
        if (!in->up)
            n->absent_at = m->now;
        set_usable(m, i);
    }
    watch(m);
}

void node_announced(struct mm *m, uint32_t node) {
    struct node *n = &m->nodes[node];
    n->announced = true;
    n->absent_at = 0;
    n->since = wall(m);
    set_usable(m, node);
    watch(m);
}

void node_tick(struct mm *m) {
    for (uint32_t i = 0; i < m->config.limits.nodes; i++) {
        struct node *n = &m->nodes[i];
        if (n->absent_at == 0 || n->absent_at + m->config.absent_ns > m->now)
            continue;
        n->absent_at = 0;
        end_node_lost(m, i);
    }
    watch(m);
}

void node_resume(struct mm *m) {
    for (uint32_t i = 0; i < m->config.limits.nodes; i++)
        m->nodes[i].absent_at = m->now + m->config.absent_ns;
    watch(m);
}

void node_drain(struct mm *m, const struct nodeset *set, bool drained, struct bytes reason,
                uint64_t at) {
    NODESET_EACH (i, set) {
        if (i >= m->config.limits.nodes)
            continue;
        struct node *n = &m->nodes[i];
        n->drained = drained;
        n->since = at;
        n->reason_len = 0;
        if (drained && reason.len > 0) {
            n->reason_len =
                (uint32_t)(reason.len < sizeof n->reason ? reason.len : sizeof n->reason);
            memcpy(n->reason, reason.at, n->reason_len);
        }
        set_usable(m, i);
    }
}
