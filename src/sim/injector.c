/* SPDX-License-Identifier: MIT */
/* Injects the faults of one run: see injector.h.
 *
 * Some phases do not come by themselves: a new root gathers survivors only after the old one has
 * crashed, membership changes only when someone comes or goes. To meet these a crash prepares the
 * ground; it counts as a hit of its own. */
#include "sim/injector.h"

#include <stdlib.h>

#include "base/assert.h"

static uint64_t period(const struct injector *i) {
    return i->scenario->prim.period_ns;
}

static uint64_t now(const struct injector *i) {
    return world_now(i->world);
}

/* ---- Power ---------------------------------------------------------------------------------- */

static void plan_power(struct injector *i, uint32_t node, uint64_t at) {
    i->power_at[node] = at ? at : 1;
    if (i->power_at[node] < i->power_next)
        i->power_next = i->power_at[node];
}

static void power_on(struct injector *i, uint32_t node) {
    i->power_at[node] = 0;
    if (!world_up(i->world, node))
        world_boot(i->world, node, node == i->scenario->layout.root);
}

static void power_due(struct injector *i) {
    if (now(i) < i->power_next)
        return;
    i->power_next = UINT64_MAX;
    for (uint32_t n = 0; n < i->scenario->layout.universe; n++) {
        if (i->power_at[n] != 0 && i->power_at[n] <= now(i))
            power_on(i, n);
        if (i->power_at[n] != 0 && i->power_at[n] < i->power_next)
            i->power_next = i->power_at[n];
    }
}

static uint64_t draw_absence(struct injector *i) {
    uint64_t kind = random_below(&i->random, 3);
    if (kind == 0)
        return random_below(&i->random, period(i) / 4 + 1);
    if (kind == 1)
        return random_between(&i->random, period(i) / 4, period(i) * 6);
    return random_between(&i->random, period(i) * 6, period(i) * 40);
}

static void crash(struct injector *i, uint32_t node, uint64_t absence) {
    history_crash(i->history, node, now(i));
    world_crash(i->world, node);
    plan_power(i, node, now(i) + absence);
}

void injector_init(struct injector *i, const struct scenario *s, struct world *w, struct history *h,
                   struct coverage *c) {
    *i = (struct injector){.world = w,
                           .history = h,
                           .scenario = s,
                           .coverage = c,
                           .next_cell = s->seed * 8,
                           .prey = NO_NODE,
                           .ambushed = NO_NODE,
                           .power_next = UINT64_MAX};
    struct random seed;
    random_init(&seed, s->seed);
    i->random = random_fork(&seed, 0xFA17);
    i->power_at = calloc(s->layout.universe, sizeof *i->power_at);
    i->outstanding = calloc(s->layout.universe, sizeof *i->outstanding);
    ASSERT(i->power_at && i->outstanding);
    power_on(i, s->layout.root);
    for (uint32_t n = 0; n < s->layout.root; n++) {
        uint64_t at = 1 + random_below(&i->random, s->boot_spread_ns);
        bool late = random_chance(&i->random, 1, 4);
        if (late && s->late_nodes)
            at += random_below(&i->random, 60 * period(i));
        plan_power(i, n, at);
    }
    i->act_at = s->boot_spread_ns + 4 * period(i) + random_below(&i->random, s->fault_gap_ns * 2);
}

void injector_fini(struct injector *i) {
    free(i->power_at);
    free(i->outstanding);
    i->power_at = NULL;
    i->outstanding = NULL;
}

void injector_heal(struct injector *i) {
    for (uint32_t n = 0; n < i->scenario->layout.universe; n++)
        power_on(i, n);
    i->power_next = UINT64_MAX;
}

/* ---- Whom to hit ---------------------------------------------------------------------------- */

static enum hit_role role_of(const struct injector *i, uint32_t node) {
    struct prim_status status;
    if (node == i->scenario->layout.root)
        return HIT_ROOT;
    prim_status(world_prim(i->world, node), &status);
    return status.children > 0 ? HIT_INNER : HIT_LEAF;
}

/* A random one among the nodes that are up and have the role; NO_NODE if there is none. */
static uint32_t pick_node(struct injector *i, enum hit_role role, bool any) {
    uint32_t found = NO_NODE;
    uint64_t count = 0;
    for (uint32_t n = 0; n < i->scenario->layout.universe; n++) {
        if (!world_up(i->world, n) || (!any && role_of(i, n) != role))
            continue;
        if (random_below(&i->random, ++count) == 0)
            found = n;
    }
    return found;
}

/* ---- Hitting -------------------------------------------------------------------------------- */

static void hit(struct injector *i, uint32_t node, enum fault_kind kind) {
    uint64_t length = random_between(&i->random, period(i) / 8, period(i) * 3);
    if (random_chance(&i->random, 1, 3))
        length *= 8;
    uint64_t until = now(i) + length;
    uint32_t pick = (uint32_t)random_u64(&i->random);
    history_fault(i->history, node, now(i), fault_name(kind));
    if (kind != FAULT_CRASH && kind != FAULT_RESET && until > i->heal_at)
        i->heal_at = until;
    switch (kind) {
    case FAULT_CRASH:
        crash(i, node, draw_absence(i));
        break;
    case FAULT_PAUSE:
        world_pause(i->world, node, until);
        break;
    case FAULT_RESET:
        world_reset(i->world, node, pick);
        break;
    case FAULT_MUTE_IN:
        world_mute(i->world, node, pick, false, until);
        break;
    case FAULT_MUTE_OUT:
        world_mute(i->world, node, pick, true, until);
        break;
    case FAULT_DUPLICATE:
        world_duplicate(i->world, node, until);
        break;
    case FAULT_SLOW:
        world_slow(i->world, node, (uint32_t)random_between(&i->random, 2, 40), until);
        break;
    case FAULT_KINDS:
        break;
    }
}

static enum prim_phase root_phase(const struct injector *i) {
    struct prim_status status;
    uint32_t root = i->scenario->layout.root;
    if (!world_up(i->world, root))
        return PHASES;
    prim_status(world_prim(i->world, root), &status);
    return status.phase;
}

/* Counts, if there is a root whose phase tells where to. */
static void count(struct injector *i, enum fault_kind kind, enum hit_role role, bool aimed) {
    struct coverage_cell cell = {.kind = kind, .role = role, .phase = root_phase(i)};
    if (aimed && i->aim.phase == PHASE_STREAMING)
        cell.phase = PHASE_STREAMING; /* seen at another node than the root */
    if (cell.phase < PHASES)
        coverage_add(i->coverage, &cell);
}

/* A crash so that the phase aimed at will come. */
static void prepare_ground(struct injector *i) {
    if (i->aim.phase == PHASE_COLLECTING && root_phase(i) < PHASES &&
        root_phase(i) != PHASE_COLLECTING) {
        i->doomed = true;
        i->doom_at = now(i) + 4 * period(i);
    } else if (i->aim.phase == PHASE_VIEW && i->power_next == UINT64_MAX) {
        uint32_t node = pick_node(i, HIT_LEAF, false);
        if (node == NO_NODE)
            return;
        count(i, FAULT_CRASH, HIT_LEAF, false);
        crash(i, node, random_below(&i->random, period(i) * 2));
    }
}

static void take_aim(struct injector *i) {
    i->aim = coverage_cell(i->next_cell++);
    i->aiming = true;
    i->ready = false;
    i->act_at = now(i) + 30 * period(i);
    prepare_ground(i);
}

/* Breaks some links of a root that is about to die. */
static void cut_links(struct injector *i, uint32_t root) {
    struct prim_status status;
    prim_status(world_prim(i->world, root), &status);
    uint64_t cuts = 1 + random_below(&i->random, status.children / 2 + 1);
    for (uint64_t c = 0; c < cuts; c++) {
        count(i, FAULT_RESET, HIT_ROOT, false);
        history_fault(i->history, root, now(i), fault_name(FAULT_RESET));
        world_reset(i->world, root, (uint32_t)random_u64(&i->random));
    }
}

static uint32_t inner_parent(const struct injector *i, const struct prim_status *status) {
    uint32_t parent = status->parent;
    bool usable = parent < i->scenario->layout.root && world_up(i->world, parent);
    return usable ? parent : NO_NODE;
}

/* The node has just asked: pause the parent that is to pass it on, and kill the node in a moment.
 */
static void lay_ambush(struct injector *i) {
    struct prim_status status;
    uint32_t node = i->prey;
    i->prey = NO_NODE;
    if (!world_up(i->world, node))
        return;
    prim_status(world_prim(i->world, node), &status);
    uint32_t parent = inner_parent(i, &status);
    if (parent == NO_NODE)
        return;
    uint64_t until = now(i) + random_between(&i->random, period(i) * 3 / 2, period(i) * 3);
    count(i, FAULT_PAUSE, role_of(i, parent), false);
    history_fault(i->history, parent, now(i), fault_name(FAULT_PAUSE));
    world_pause(i->world, parent, until);
    if (until > i->heal_at)
        i->heal_at = until;
    i->lurking = false;
    i->ambushed = node;
    i->ambush_at = now(i) + random_between(&i->random, period(i) / 16, period(i) / 4);
}

static void spring_ambush(struct injector *i) {
    if (i->prey != NO_NODE)
        lay_ambush(i);
    if (now(i) < i->ambush_at)
        return;
    uint32_t node = i->ambushed;
    i->lurking = false;
    i->ambushed = NO_NODE;
    if (node == NO_NODE || !world_up(i->world, node))
        return;
    count(i, FAULT_CRASH, role_of(i, node), false);
    history_fault(i->history, node, now(i), fault_name(FAULT_CRASH));
    crash(i, node, random_below(&i->random, period(i) / 8 + 1));
}

/* How long a cast of the root's takes to leave it and to arrive, about. */
static uint64_t cast_time(const struct injector *i) {
    struct prim_status status;
    const struct link_model *link = &i->scenario->link;
    prim_status(world_prim(i->world, i->scenario->layout.root), &status);
    return status.children * link->cpu_send_ns + link->latency_ns + link->jitter_ns;
}

/* The root dies while a decision of its is on the way to the nodes. */
static void doom(struct injector *i) {
    uint32_t root = i->scenario->layout.root;
    if (!i->doomed)
        return;
    if (!i->dooming && root_phase(i) == PHASE_DECIDING) {
        i->dooming = true;
        i->doom_at = now(i) + random_below(&i->random, cast_time(i) + 1);
    }
    if (now(i) < i->doom_at)
        return;
    i->doomed = false;
    i->dooming = false;
    if (!world_up(i->world, root))
        return;
    if (random_chance(&i->random, 3, 4))
        cut_links(i, root);
    count(i, FAULT_CRASH, HIT_ROOT, false);
    crash(i, root, random_below(&i->random, period(i)));
}

static void strike(struct injector *i, uint32_t node) {
    bool crashes = i->aim.kind == FAULT_CRASH;
    bool root = node == i->scenario->layout.root;
    if (crashes && root && random_chance(&i->random, 2, 3))
        cut_links(i, node);
    if (crashes && !root && !i->lurking && i->ambushed == NO_NODE) {
        i->lurking = true;
        i->ambush_at = now(i) + 30 * period(i);
        if (random_chance(&i->random, 2, 3))
            return;
    }
    count(i, i->aim.kind, role_of(i, node), i->ready);
    hit(i, node, i->aim.kind);
}

static void shoot(struct injector *i) {
    uint32_t node = pick_node(i, i->aim.role, false);
    if (node == NO_NODE)
        node = pick_node(i, i->aim.role, true);
    if (node != NO_NODE)
        strike(i, node);
    i->injected++;
    i->aiming = false;
    i->act_at = now(i) + 1 + random_below(&i->random, i->scenario->fault_gap_ns * 2);
}

void injector_observe(struct injector *i, uint32_t node, const struct prim_status *status) {
    bool asked = status->outstanding > i->outstanding[node];
    i->outstanding[node] = status->outstanding;
    if (i->lurking && asked && i->prey == NO_NODE && inner_parent(i, status) != NO_NODE)
        i->prey = node;
    if (!i->aiming || i->ready || status->phase != i->aim.phase)
        return;
    i->ready = status->root || i->aim.phase == PHASE_STREAMING;
}

void injector_act(struct injector *i) {
    power_due(i);
    doom(i);
    spring_ambush(i);
    if (i->injected >= i->scenario->faults)
        return;
    if (i->aiming ? i->ready || now(i) >= i->act_at : now(i) >= i->act_at) {
        if (i->aiming)
            shoot(i);
        else
            take_aim(i);
    }
}

bool injector_finished(const struct injector *i) {
    return i->injected >= i->scenario->faults && i->ambushed == NO_NODE && !i->doomed;
}

uint64_t injector_next(const struct injector *i) {
    uint64_t next = i->injected >= i->scenario->faults ? UINT64_MAX : i->act_at;
    if ((i->lurking || i->ambushed != NO_NODE) && i->ambush_at < next)
        next = i->ambush_at;
    if (i->doomed && i->doom_at < next)
        next = i->doom_at;
    return i->power_next < next ? i->power_next : next;
}
