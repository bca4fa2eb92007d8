/* SPDX-License-Identifier: MIT */
/* One run of a campaign: see trial.h. */
#include "sim/trial.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sim/checker.h"
#include "sim/injector.h"
#include "sim/tester.h"

/* Bounds of the stages, in wave periods, and of the whole run in events. */
enum { FAULT_PERIODS = 4000, SETTLE_PERIODS = 600, QUIET_PERIODS = 12, CLOSE_PERIODS = 200 };
enum { EVENTS_MAX = 40000000 };

/* To its parent and its sinks, twice while an old link has not been noticed to be dead. */
enum { LINKS_PER_TRANSFER = 18 };

struct trial {
    struct scenario scenario;
    struct world *world;
    struct history *history;
    struct injector injector;
    struct tester_config testers_config;
    struct tester *testers;
    bool injecting;
    uint64_t events;
    bool over_limit;
    struct verdict *verdict;
};

/* ---- What the world calls ------------------------------------------------------------------- */

static struct machine make_daemon(void *context, uint32_t node, struct globals globals) {
    struct trial *t = context;
    uint32_t boots = t->world ? world_boots(t->world, node) : 0;
    tester_init(&t->testers[node], &t->testers_config, node, boots, globals);
    return tester_machine(&t->testers[node]);
}

/* S10: every table stays within its limit, at every moment. */
static void watch_limits(struct trial *t, uint32_t node, const struct prim_status *s) {
    const struct limits *l = &t->scenario.prim.limits;
    uint32_t children = node >= l->nodes ? l->nodes : l->children;
    uint32_t links = world_links(t->world, node);
    uint32_t links_max = children + 1 + l->transfers * (LINKS_PER_TRANSFER + 1);
    bool within = s->children <= children && s->outstanding <= l->outstanding &&
                  s->in_flight <= l->window && links <= links_max;
    if (within || t->over_limit)
        return;
    t->over_limit = true;
    verdict_add(t->verdict, "limits",
                "node %" PRIu32 ": %" PRIu32 " children, %" PRIu32 " links, %" PRIu32
                " requests, %" PRIu32 " operations in flight",
                node, s->children, links, s->outstanding, s->in_flight);
}

/* Queues are bounded by the protocol: what the window lets be under way, a few casts for each
 * change of a path, and the strobes and ticks of the time until a silent link is given up. */
static void check_queues(const struct trial *t) {
    const struct limits *l = &t->scenario.prim.limits;
    const struct world_counts *c = world_counts(t->world);
    uint64_t queue_max = 64 + 32 * ((uint64_t)l->window + l->standing + l->nodes);
    if (c->queue_max > queue_max)
        verdict_add(t->verdict, "limits", "%" PRIu64 " messages waited on one link", c->queue_max);
}

static void observe(void *context, struct world *w, uint32_t node) {
    struct trial *t = context;
    const struct prim *prim = world_prim(w, node);
    if (!prim)
        return;
    struct prim_status status;
    prim_status(prim, &status);
    history_observe(t->history, node, world_now(w), world_globals(w, node), world_heap(w, node),
                    status.epoch);
    watch_limits(t, node, &status);
    if (t->injecting)
        injector_observe(&t->injector, node, &status);
}

/* ---- Stages --------------------------------------------------------------------------------- */

/* Runs until `done` holds; false if time or events run out before. */
static bool run_stage(struct trial *t, uint64_t until, bool (*done)(struct trial *)) {
    while (!done(t)) {
        uint64_t now = world_now(t->world);
        if (now >= until || t->events >= EVENTS_MAX)
            return false;
        injector_act(&t->injector);
        t->events++;
        if (!world_step(t->world)) {
            uint64_t next = injector_next(&t->injector);
            world_run_until(t->world, next > now && next < until ? next : until);
        }
    }
    return true;
}

static bool faults_done(struct trial *t) {
    struct tester_config *c = &t->testers_config;
    if (c->asked >= t->scenario.asked_max)
        c->stage = TESTER_STOP;
    return injector_finished(&t->injector) && c->asked >= t->scenario.asked_min;
}

/* All nodes are members, every request of theirs is answered. */
static bool settled(struct trial *t) {
    const struct history *h = t->history;
    if (world_now(t->world) < t->injector.heal_at)
        return false;
    for (uint32_t n = 0; n < h->layout.universe; n++) {
        if (history_open_life(h, n) == NO_LIFE)
            return false;
        for (uint32_t i = 0; i < t->scenario.prim.limits.outstanding; i++)
            if (t->testers[n].slots[i].used)
                return false;
    }
    return true;
}

static bool closed(struct trial *t) {
    const struct history *h = t->history;
    uint32_t answered = 0;
    for (uint32_t i = h->op_count; i-- > 0 && h->ops[i].closing;)
        answered += h->ops[i].finals > 0;
    return answered == TESTER_CLOSINGS;
}

static bool never(struct trial *t) {
    (void)t;
    return false;
}

/* Settled, and still so a while later. */
static bool settle(struct trial *t) {
    uint64_t period = t->scenario.prim.period_ns;
    uint64_t heal = t->injector.heal_at;
    uint64_t now = world_now(t->world);
    uint64_t until = (heal > now ? heal : now) + SETTLE_PERIODS * period;
    while (run_stage(t, until, settled)) {
        run_stage(t, world_now(t->world) + QUIET_PERIODS * period, never);
        if (settled(t))
            return true;
    }
    return false;
}

static void report_unsettled(struct trial *t, struct verdict *v) {
    const struct history *h = t->history;
    struct prim_status s;
    for (uint32_t n = 0; n < h->layout.universe; n++) {
        if (history_open_life(h, n) != NO_LIFE || !world_prim(t->world, n))
            continue;
        prim_status(world_prim(t->world, n), &s);
        verdict_add(v, "converge",
                    "node %" PRIu32 " is out: epoch %" PRIu32 ", parent %" PRId32
                    ", %s, %s, phase %s",
                    n, s.epoch, (int32_t)s.parent, s.attached ? "attached" : "not attached",
                    s.member ? "member" : "no member", phase_name(s.phase));
    }
    for (uint32_t i = 0; i < h->op_count; i++)
        if (h->ops[i].finals == 0 && h->ops[i].request.kind != PRIMITIVE_STROBE &&
            h->ops[i].life == history_open_life(h, h->ops[i].node))
            verdict_add(v, "converge", "#%" PRIu32 " of node %" PRIu32 " is not answered", i,
                        h->ops[i].node);
}

static void play(struct trial *t, struct verdict *v) {
    uint64_t period = t->scenario.prim.period_ns;
    t->injecting = true;
    if (!run_stage(t, FAULT_PERIODS * period, faults_done))
        verdict_add(v, "converge",
                    "after %" PRIu64 " events, %d periods: %" PRIu32 " operations, %" PRIu32
                    " faults",
                    t->events, FAULT_PERIODS, t->testers_config.asked, t->injector.injected);
    t->injecting = false;
    t->injector.injected = t->scenario.faults;
    t->testers_config.stage = TESTER_STOP;
    injector_heal(&t->injector);
    if (!settle(t)) {
        verdict_add(v, "converge", "did not settle in %d periods after the last fault",
                    SETTLE_PERIODS);
        report_unsettled(t, v);
        return;
    }
    t->testers_config.stage = TESTER_CLOSE;
    uint64_t patience = CLOSE_PERIODS * period + 2 * t->scenario.gap_ns; /* timers already set */
    if (!run_stage(t, world_now(t->world) + patience, closed))
        verdict_add(v, "converge", "the closing requests were not all answered");
    run_stage(t, world_now(t->world) + 2 * period, never);
}

/* ---- The whole ------------------------------------------------------------------------------ */

static void start(struct trial *t, uint64_t seed, struct coverage *coverage) {
    scenario_draw(&t->scenario, seed);
    const struct scenario *s = &t->scenario;
    t->history = history_new(&s->layout);
    t->testers = calloc(s->layout.universe, sizeof *t->testers);
    ASSERT(t->testers);
    t->testers_config = (struct tester_config){.limits = s->prim.limits,
                                               .layout = s->layout,
                                               .period_ns = s->prim.period_ns,
                                               .gap_ns = s->gap_ns,
                                               .seed = seed,
                                               .history = t->history};
    struct world_config config = {.prim = s->prim,
                                  .link = s->link,
                                  .seed = seed,
                                  .hash = true,
                                  .daemon = make_daemon,
                                  .context = t,
                                  .observe = observe};
    t->world = world_new(&config);
    t->testers_config.world = t->world;
    injector_init(&t->injector, s, t->world, t->history, coverage);
}

static void finish(struct trial *t) {
    for (uint32_t n = 0; n < t->scenario.layout.universe; n++)
        tester_fini(&t->testers[n]);
    free(t->testers);
    injector_fini(&t->injector);
    history_free(t->history);
    world_free(t->world);
}

void trial_run(uint64_t seed, struct trial_result *ret, FILE *trace) {
    struct trial t = {0};
    *ret = (struct trial_result){.seed = seed};
    t.verdict = &ret->verdict;
    start(&t, seed, &ret->coverage);
    play(&t, &ret->verdict);
    check_queues(&t);
    checker_run(t.history, true, &ret->verdict);
    ret->hash = world_hash(t.world);
    ret->nodes = t.scenario.prim.limits.nodes;
    ret->asked = t.testers_config.asked;
    for (uint32_t i = 0; i < t.history->op_count; i++)
        ret->done += t.history->ops[i].finals > 0 && t.history->ops[i].outcome == OUTCOME_DONE;
    ret->faults = t.injector.injected;
    ret->lives = t.history->life_count;
    ret->steps = world_counts(t.world)->steps;
    ret->time_ns = world_now(t.world);
    if (trace) {
        scenario_print(&t.scenario, trace);
        history_print(t.history, trace);
    }
    finish(&t);
}
