/* SPDX-License-Identifier: MIT */
/* Mail in the model: see model_inside.h.
 *
 * As in the protocol: judged by the row of what is carried, given to whoever can be reached when it
 * arrives, lost without a word otherwise and with the epoch. Downwards all letters take as long as the way
 * to the lowest level: so they arrive in the order in which they were sent, whatever their sets. Letters
 * do not get into each other's way, nor their bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "prim/tree.h"
#include "sim/model_inside.h"
#include "wire/message.h"

enum { ANCESTORS_MAX = 32 };

/* One block: the letter, its set, its body. */
struct letter {
    struct due due;
    uint32_t epoch;
    struct input_message message;
    struct nodeset set;
};

static bool fits(const struct model *m, const struct primitive *r) {
    const struct message_rule *rule = message_rule(r->type);
    enum role sender = r->way == MAIL_DOWN ? ROLE_ROOT : ROLE_NODE;
    if (rule == NULL || !(rule->from & 1U << sender) || r->body.len > rule->max_bytes)
        return false;
    return r->way != MAIL_DOWN || (r->set != NULL && r->set->universe == m->node_count);
}

static bool reachable(const struct model *m, uint32_t node) {
    return m->nodes[node].up && nodeset_has(&m->members, node) && !nodeset_has(&m->dead, node);
}

static uint32_t parent_of(const struct model *m, uint32_t node) {
    uint32_t above[ANCESTORS_MAX];
    uint32_t count = 0;
    if (node < m->config.prim.limits.nodes)
        count = tree_ancestors(&m->config.prim.tree, node, above, ANCESTORS_MAX);
    for (uint32_t i = 0; i < count; i++)
        if (reachable(m, above[i]))
            return above[i];
    return m->root;
}

static uint64_t way_ns(const struct model *m, uint32_t node, enum mail_way way) {
    const struct cost *c = &m->config.cost;
    if (way == MAIL_DOWN)
        return cost_path_ns(c, cost_levels(c, COST_WAVE));
    if (node == m->root)
        return 0;
    return cost_path_ns(c, way == MAIL_PARENT ? 1 : cost_level(c, node));
}

static struct letter *make(const struct model *m, uint32_t node, const struct primitive *r) {
    size_t head = align_up(sizeof(struct letter), 8);
    size_t set = nodeset_bytes(m->node_count);
    struct letter *l = malloc(head + set + r->body.len);
    ASSERT(l != NULL);
    memset(l, 0, sizeof *l);
    uint8_t *storage = (uint8_t *)l + head;
    nodeset_init(&l->set, m->node_count, storage);
    if (r->body.len > 0)
        memcpy(storage + set, r->body.at, r->body.len);
    l->due.kind = DUE_MAIL;
    l->due.node = node;
    l->epoch = m->epoch;
    l->message = (struct input_message){.peer = node,
                                        .epoch = m->epoch,
                                        .type = r->type,
                                        .body = bytes_of(storage + set, r->body.len)};
    return l;
}

void post_request(struct model *m, uint32_t node, const struct primitive *r) {
    if (!m->open || !reachable(m, node) || !fits(m, r))
        return;
    struct letter *l = make(m, node, r);
    if (r->way == MAIL_DOWN)
        nodeset_copy(&l->set, r->set);
    else
        nodeset_add(&l->set, r->way == MAIL_ROOT ? m->root : parent_of(m, node));
    m->counts.messages += nodeset_count(&l->set);
    model_schedule(m, &l->due, m->now + way_ns(m, node, r->way));
}

/* The letter is freed by who has called. */
void post_due(struct model *m, const struct due *d) {
    struct letter *l = CONTAINER_OF((struct due *)d, struct letter, due);
    if (!m->open || m->epoch != l->epoch)
        return;
    struct input in = {.kind = INPUT_MESSAGE, .now = m->now, .message = l->message};
    nodeset_intersect(&l->set, &m->listeners);
    NODESET_EACH (node, &l->set)
        if (reachable(m, node))
            model_feed(m, node, &in);
}
