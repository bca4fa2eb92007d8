/* SPDX-License-Identifier: MIT */
/* Combining acknowledgements on their way up.
 *
 * For each cast that went on to children an inner node collects who has answered and sends one ACK
 * with exactly that set when all of them have, or have left. Because an ACK says whom it covers, a
 * path that changes half way, a repeated cast or a repeated answer can do no harm: the root strikes
 * the covered nodes off and sends again to the rest. A "no" goes up at once. */
#include "base/assert.h"
#include "prim/internal.h"

void gather_init(struct prim *p, struct arena *a) {
    p->gather_count = p->config.limits.window + p->config.limits.standing + 1;
    p->gathers = ARENA_TAKE(a, struct gather, p->gather_count);
    p->gather_sets =
        ARENA_TAKE(a, uint64_t, 2 * (nodeset_bytes(p->universe) / 8) * p->gather_count);
}

void gather_reset(struct prim *p) {
    for (uint32_t i = 0; i < p->gather_count; i++)
        p->gathers[i].open = false;
}

static bool same_cast(const struct gather *g, enum ack_what what, uint64_t number) {
    return g->open && g->what == what && g->number == number;
}

static struct gather *find(struct prim *p, enum ack_what what, uint64_t number) {
    for (uint32_t i = 0; i < p->gather_count; i++)
        if (same_cast(&p->gathers[i], what, number))
            return &p->gathers[i];
    return NULL;
}

static struct gather *find_free(struct prim *p) {
    size_t words = nodeset_bytes(p->universe) / 8;
    for (uint32_t i = 0; i < p->gather_count; i++) {
        struct gather *g = &p->gathers[i];
        if (g->open)
            continue;
        *g = (struct gather){.open = true};
        nodeset_init(&g->want, p->universe, p->gather_sets + 2 * i * words);
        nodeset_init(&g->have, p->universe, p->gather_sets + (2 * i + 1) * words);
        return g;
    }
    return NULL;
}

static void send_ack(struct prim *p, enum ack_what what, uint64_t number, bool no,
                     const struct nodeset *set) {
    union message m = {
        .ack = {.what = (uint8_t)what, .no = no, .number = number, .set = (struct nodeset *)set}};
    uplink_send(p, MESSAGE_ACK, &m);
}

/* A decision ends the gathering of votes; a newer view that of older ones. */
static void supersede(struct prim *p, enum ack_what what, uint64_t number) {
    struct gather *votes = what == ACK_DECIDE ? find(p, ACK_PREPARE, number) : NULL;
    if (votes != NULL)
        votes->open = false;
    for (uint32_t i = 0; what == ACK_VIEW && i < p->gather_count; i++)
        if (p->gathers[i].what == ACK_VIEW && p->gathers[i].number < number)
            p->gathers[i].open = false;
}

/* After a cast that reached p->aim. One that is repeated, for some of its nodes, is not combined any
 * more: the root wants to know who it is that does not answer. */
void gather_open(struct prim *p, enum ack_what what, uint64_t number, bool self) {
    supersede(p, what, number);
    if (nodeset_empty(&p->aim))
        return; /* nobody below: our own answer goes up by itself */
    struct gather *g = find(p, what, number);
    if (g != NULL) { /* cast again: tell who has answered, then pass answers on as they come */
        g->open = false;
        if (!nodeset_empty(&g->have))
            send_ack(p, what, number, g->no, &g->have);
        return;
    }
    g = find_free(p);
    if (g == NULL)
        return; /* more than the window allows: answers go up one by one */
    g->what = (uint8_t)what;
    g->number = number;
    nodeset_copy(&g->want, &p->aim);
    if (self)
        nodeset_add(&g->want, p->self);
}

static void settle(struct prim *p, struct gather *g) {
    if (!nodeset_covers(&g->have, &g->want))
        return;
    g->open = false;
    if (!g->answered && !nodeset_empty(&g->have))
        send_ack(p, (enum ack_what)g->what, g->number, false, &g->have);
}

static void answer_no(struct prim *p, struct gather *g) {
    g->no = true;
    if (!g->answered)
        send_ack(p, (enum ack_what)g->what, g->number, true, &g->have);
    g->answered = true;
    settle(p, g);
}

void gather_acked(struct prim *p, const struct message_ack *m) {
    struct gather *g = find(p, (enum ack_what)m->what, m->number);
    if (g == NULL) {
        send_ack(p, (enum ack_what)m->what, m->number, m->no, m->set);
        return;
    }
    nodeset_unite(&g->have, m->set);
    if (m->no)
        answer_no(p, g);
    else
        settle(p, g);
}

void gather_self(struct prim *p, enum ack_what what, uint64_t number, bool no) {
    if (p->root) {
        if (what != ACK_VIEW)
            order_acked(p, what, number, no, &p->own);
        return;
    }
    struct gather *g = find(p, what, number);
    if (g == NULL) {
        send_ack(p, what, number, no, &p->own);
        return;
    }
    nodeset_add(&g->have, p->self);
    if (no)
        answer_no(p, g);
    else
        settle(p, g);
}

void gather_without(struct prim *p, const struct nodeset *gone) {
    for (uint32_t i = 0; i < p->gather_count; i++) {
        struct gather *g = &p->gathers[i];
        if (!g->open || !nodeset_intersects(&g->want, gone))
            continue;
        nodeset_subtract(&g->want, gone);
        settle(p, g);
    }
}

void gather_close(struct prim *p, enum ack_what what, uint64_t number) {
    struct gather *g = find(p, what, number);
    if (g != NULL)
        g->open = false;
}

/* Operations before `stable` are finished everywhere: nobody waits for these answers. */
void gather_trim(struct prim *p, uint64_t stable) {
    for (uint32_t i = 0; i < p->gather_count; i++) {
        struct gather *g = &p->gathers[i];
        if (g->open && (g->what == ACK_PREPARE || g->what == ACK_DECIDE) && g->number < stable)
            g->open = false;
    }
}
