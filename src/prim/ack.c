/* SPDX-License-Identifier: MIT */
/* Combining acknowledgements on their way up.
 *
 * For each cast that went on to children an inner node collects who has answered and sends one ACK
 * with exactly that set when all of them have, or have left. Because an ACK says whom it covers, a
 * path that changes half way, a repeated cast or a repeated answer can do no harm: the root strikes
 * the covered nodes off and sends again to the rest. A "no" goes up at once. */
#include "base/assert.h"
#include "prim/internal.h"

void ack_init(struct prim *p, struct arena *a) {
    p->ack_count = p->config.limits.window + p->config.limits.standing + 1;
    p->acks = ARENA_TAKE(a, struct ack, p->ack_count);
    p->ack_sets = ARENA_TAKE(a, uint64_t, 2 * (nodeset_bytes(p->universe) / 8) * p->ack_count);
    p->ack_end = 0;
    for (uint32_t i = 0; !arena_measuring(a) && i < p->ack_count; i++)
        p->acks[i].open = false;
}

/* All that are open lie before this: most nodes have nobody below, and none at all. */
static void close_ack(struct prim *p, struct ack *a) {
    a->open = false;
    while (p->ack_end > 0 && !p->acks[p->ack_end - 1].open)
        p->ack_end--;
}

void ack_reset(struct prim *p) {
    for (uint32_t i = 0; i < p->ack_end; i++)
        p->acks[i].open = false;
    p->ack_end = 0;
}

static bool same_cast(const struct ack *a, enum ack_what what, uint64_t number) {
    return a->open && a->what == what && a->number == number;
}

static struct ack *find(struct prim *p, enum ack_what what, uint64_t number) {
    for (uint32_t i = 0; i < p->ack_end; i++)
        if (same_cast(&p->acks[i], what, number))
            return &p->acks[i];
    return NULL;
}

static struct ack *find_free(struct prim *p) {
    size_t words = nodeset_bytes(p->universe) / 8;
    for (uint32_t i = 0; i < p->ack_count; i++) {
        struct ack *a = &p->acks[i];
        if (a->open)
            continue;
        *a = (struct ack){.open = true};
        if (p->ack_end <= i)
            p->ack_end = i + 1;
        nodeset_init(&a->want, p->universe, p->ack_sets + 2 * i * words);
        nodeset_init(&a->have, p->universe, p->ack_sets + (2 * i + 1) * words);
        return a;
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
    struct ack *votes = what == ACK_DECIDE ? find(p, ACK_PREPARE, number) : NULL;
    if (votes != NULL)
        close_ack(p, votes);
    for (uint32_t i = 0; what == ACK_VIEW && i < p->ack_end; i++)
        if (p->acks[i].what == ACK_VIEW && p->acks[i].number < number)
            close_ack(p, &p->acks[i]);
}

/* After a cast that reached p->aim. One that is repeated, for some of its nodes, is not combined any
 * more: the root wants to know who it is that does not answer. */
void ack_open(struct prim *p, enum ack_what what, uint64_t number, bool self) {
    supersede(p, what, number);
    if (nodeset_empty(&p->aim))
        return; /* nobody below: our own answer goes up by itself */
    struct ack *a = find(p, what, number);
    if (a != NULL) { /* cast again: tell who has answered, then pass answers on as they come */
        close_ack(p, a);
        if (!nodeset_empty(&a->have))
            send_ack(p, what, number, a->no, &a->have);
        return;
    }
    a = find_free(p);
    if (a == NULL)
        return; /* more than the window allows: answers go up one by one */
    a->what = (uint8_t)what;
    a->number = number;
    nodeset_copy(&a->want, &p->aim);
    if (self)
        nodeset_add(&a->want, p->self);
}

static void settle(struct prim *p, struct ack *a) {
    if (!nodeset_covers(&a->have, &a->want))
        return;
    close_ack(p, a);
    if (!a->answered && !nodeset_empty(&a->have))
        send_ack(p, (enum ack_what)a->what, a->number, false, &a->have);
}

static void answer_no(struct prim *p, struct ack *a) {
    a->no = true;
    if (!a->answered)
        send_ack(p, (enum ack_what)a->what, a->number, true, &a->have);
    a->answered = true;
    settle(p, a);
}

void ack_acked(struct prim *p, const struct message_ack *m) {
    struct ack *a = find(p, (enum ack_what)m->what, m->number);
    if (a == NULL) {
        send_ack(p, (enum ack_what)m->what, m->number, m->no, m->set);
        return;
    }
    nodeset_unite(&a->have, m->set);
    if (m->no)
        answer_no(p, a);
    else
        settle(p, a);
}

void ack_self(struct prim *p, enum ack_what what, uint64_t number, bool no) {
    if (p->root) {
        if (what != ACK_VIEW)
            order_acked(p, what, number, no, &p->own);
        return;
    }
    struct ack *a = find(p, what, number);
    if (a == NULL) {
        send_ack(p, what, number, no, &p->own);
        return;
    }
    nodeset_add(&a->have, p->self);
    if (no)
        answer_no(p, a);
    else
        settle(p, a);
}

void ack_without(struct prim *p, const struct nodeset *gone) {
    for (uint32_t i = 0; i < p->ack_end; i++) {
        struct ack *a = &p->acks[i];
        if (!a->open || !nodeset_intersects(&a->want, gone))
            continue;
        nodeset_subtract(&a->want, gone);
        settle(p, a);
    }
}

void ack_close(struct prim *p, enum ack_what what, uint64_t number) {
    struct ack *a = find(p, what, number);
    if (a != NULL)
        close_ack(p, a);
}

/* Operations before `stable` are finished everywhere: nobody waits for these answers. */
void ack_trim(struct prim *p, uint64_t stable) {
    for (uint32_t i = 0; i < p->ack_end; i++) {
        struct ack *a = &p->acks[i];
        if (a->open && (a->what == ACK_PREPARE || a->what == ACK_DECIDE) && a->number < stable)
            close_ack(p, a);
    }
}
