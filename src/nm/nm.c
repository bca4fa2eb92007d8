/* SPDX-License-Identifier: MIT */
/* The node manager's step: which input is whose affair. */
#include "nm/nm.h"

#include <string.h>

#include "base/assert.h"
#include "nm/inside.h"
#include "rm/say.h"

static struct nm *carve(const struct nm_config *c, struct arena *a) {
    uint32_t universe = limits_universe(&c->limits);
    size_t set = nodeset_bytes(universe) / 8;
    struct nm *n = ARENA_TAKE(a, struct nm, 1);
    struct run *runs = ARENA_TAKE(a, struct run, c->runs);
    uint64_t *sets = ARENA_TAKE(a, uint64_t, (4 + 3 * (size_t)c->runs) * set);
    struct ending *endings = ARENA_TAKE(a, struct ending, (size_t)c->runs * ENDINGS_MAX);
    uint8_t *setups = ARENA_TAKE(a, uint8_t, (1 + (size_t)c->runs) * c->limits.body_bytes);
    uint8_t *orders = ARENA_TAKE(a, uint8_t, (size_t)ORDERS_MAX * c->limits.body_bytes);
    if (arena_measuring(a))
        return NULL;
    memset(n, 0, sizeof *n);
    n->config = *c;
    n->runs = runs;
    n->stow.setup = setups + (size_t)c->runs * c->limits.body_bytes;
    for (uint32_t i = 0; i < ORDERS_MAX; i++)
        n->orders[i].body = orders + (size_t)i * c->limits.body_bytes;
    nodeset_init(&n->below, universe, sets);
    nodeset_init(&n->scratch[0], universe, sets + set);
    nodeset_init(&n->scratch[1], universe, sets + 2 * set);
    nodeset_init(&n->work, universe, sets + 3 * set);
    for (uint32_t i = 0; i < c->runs; i++) {
        runs[i] = (struct run){.setup = setups + (size_t)i * c->limits.body_bytes,
                               .endings = endings + (size_t)i * ENDINGS_MAX};
        uint64_t *mine = sets + (4 + 3 * (size_t)i) * set;
        nodeset_init(&runs[i].set, universe, mine);
        nodeset_init(&runs[i].told, universe, mine + set);
        nodeset_init(&runs[i].clean, universe, mine + 2 * set);
    }
    return n;
}

size_t nm_bytes(const struct nm_config *c) {
    struct arena a;
    arena_init(&a, NULL, 0);
    carve(c, &a);
    return arena_used(&a);
}

struct nm *nm_new(const struct nm_config *c, struct arena *a) {
    return carve(c, a);
}

/* Mail: from the root, or from nodes below on its way up. */
static void on_mail(struct nm *n, const struct input_message *in) {
    union message m;
    if (in->type == MESSAGE_TAKEN || in->type == MESSAGE_TYPED || in->type == MESSAGE_REPLY) {
        if (n->launcher != 0)
            effects_send(n->out, n->launcher, 0, in->type, in->body, (struct bytes){0});
        return;
    }
    if (message_decode(in->type, in->body, n->scratch, &m) < 0)
        return; /* who sent it is not on a link of ours; it will notice that nothing happens */
    if (in->type == MESSAGE_COMMAND)
        launch_command(n, &m.command);
    else if (in->type == MESSAGE_FORGET)
        launch_forget(n, &m.forget);
    else if (in->type == MESSAGE_ENDS)
        ends_heard(n, &m.ends);
    else if (in->type == MESSAGE_ENOUGH)
        orders_enough(n, in, &m.enough);
    else if (in->type == MESSAGE_OFFER)
        orders_offer(n, in);
    else if (in->type == MESSAGE_SLOTS)
        turns_slots(n, &m.slots);
    else if (in->type == MESSAGE_OWNER)
        owner_heard(n, &m.owner);
}

static void on_tree(struct nm *n, const struct input_tree *in) {
    bool regained = in->epoch != 0 && in->epoch != n->settled;
    bool found_way = in->attached && !n->attached;
    n->attached = in->attached;
    n->settled = in->epoch;
    nodeset_copy(&n->below, in->below);
    ends_check(n);
    if (regained || found_way)
        keeper_talks_anew(n);
    if (!regained)
        return;
    if (n->epoch != 0 && n->epoch != in->epoch)
        launch_settled(n);
    if (n->epoch != 0 && n->epoch != in->epoch)
        orders_settled(n);
    n->epoch = in->epoch;
    n->announced = false;
    keeper_announce(n);
    ends_repeat(n);
}

static void on_joined(struct nm *n) {
    n->joined = true;
    n->announced = false;
    keeper_announce(n);
    ends_repeat(n);
    health_publish(n);
}

static void on_timer(struct nm *n, uint32_t id) {
    if (id == TIMER_REPEAT)
        ends_repeat(n);
    else if (id == TIMER_FILES)
        orders_timer(n);
    else if (id == TIMER_FOLDERS)
        folders_timer(n);
    else if (id == TIMER_HEALTH)
        health_timer(n);
    else
        keeper_timer(n, id);
}

static void step(void *self, const struct input *in, struct effects *out) {
    struct nm *n = self;
    n->now = in->now;
    n->out = out;
    switch (in->kind) {
    case INPUT_BOOT:
        stow_boot(n, in->boot.stowed);
        keeper_boot(n);
        folders_boot(n, in->boot.folders);
        health_boot(n);
        break;
    case INPUT_LINK_UP:
        if (in->link.role == ROLE_MOVER)
            orders_up(n, &in->link);
        else
            keeper_link_up(n, &in->link);
        break;
    case INPUT_LINK_DOWN:
        if (in->link.role == ROLE_MOVER)
            orders_down(n);
        else
            keeper_link_down(n, &in->link);
        break;
    case INPUT_MESSAGE:
        if (in->message.link == 0)
            on_mail(n, &in->message);
        else if (in->message.link == n->mover)
            orders_message(n, &in->message);
        else
            keeper_message(n, &in->message);
        break;
    case INPUT_PREPARED:
        launch_prepared(n, &in->prepared);
        break;
    case INPUT_LOOKED:
        launch_looked(n, &in->looked);
        break;
    case INPUT_SIGNAL:
        if (in->signal.event == EVENT_LAUNCH)
            launch_decided(n, &in->signal);
        else if (in->signal.event == EVENT_FILES)
            orders_heard(n, &in->signal);
        else if (in->signal.event == EVENT_SLOTS)
            turns_heard(n, &in->signal);
        break;
    case INPUT_GAUGED:
        health_gauged(n, &in->gauged);
        break;
    case INPUT_STROBE:
        turns_strobe(n, &in->strobe);
        break;
    case INPUT_TREE:
        on_tree(n, &in->tree);
        break;
    case INPUT_JOINED:
        on_joined(n);
        break;
    case INPUT_FENCED:
        n->joined = false;
        orders_settled(n);
        break;
    case INPUT_TIMER:
        on_timer(n, in->timer.id);
        break;
    default:
        break;
    }
}

struct machine nm_machine(struct nm *n) {
    return (struct machine){.self = n, .step = step};
}
