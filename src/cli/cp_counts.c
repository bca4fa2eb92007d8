/* SPDX-License-Identifier: MIT */
/* storm cp: what went by a fabric and what by streams, as every mover of the copy has counted it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/cp.h"

/* For movers to answer. */
#define PATIENCE_NS (5 * NS_PER_S)

struct counting {
    struct cp *cp;
    uint32_t left;
};

static void on_counted(void *context, uint32_t node, const struct message_counted *m) {
    struct counting *q = context;
    struct tally *t = &q->cp->tally;
    struct tally_mover *v = &t->movers[t->mover_count++];
    cluster_node_name(&q->cp->contact.cluster, node, v->name, sizeof v->name);
    tally_mover_set(v, m);
    q->left--;
}

void cp_count(struct cp *c) {
    char why[256];
    struct counting q = {.cp = c};
    struct message_counted own;
    if (c->giver == NULL &&
        giver_new(&c->contact.loop, &c->contact.cluster, NULL, &c->giver, why) < 0)
        return;
    nodeset_unite(&c->set, &c->from);
    q.left = nodeset_count(&c->set);
    c->tally.movers = calloc(q.left + 1, sizeof *c->tally.movers);
    if (c->tally.movers == NULL)
        return;
    if (c->survey != NULL) {
        struct tally_mover *v = &c->tally.movers[c->tally.mover_count++];
        snprintf(v->name, sizeof v->name, "here");
        giver_counts(c->giver, c->offer, &own);
        tally_mover_set(v, &own);
    }
    giver_count(c->giver, &c->set, c->offer, on_counted, &q);
    uint64_t deadline = clock_ns() + PATIENCE_NS;
    while (q.left > 0 && clock_ns() < deadline && !c->contact.lost) {
        giver_settle(c->giver);
        loop_wake_at(&c->contact.loop, deadline);
        session_turn(c->contact.session);
    }
}
