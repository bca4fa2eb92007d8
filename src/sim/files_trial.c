/* SPDX-License-Identifier: MIT */
/* One run of a campaign of files: see files_trial.h. */
#include "sim/files_trial.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "sim/files_plan.h"

/* How long a round's transfers may take once nothing goes wrong any more: all who have lost their source must
 * have given it up. And how long something may be left of them when they are over. */
#define SETTLE_NS (90 * NS_PER_S)
#define REST_NS   (12 * NS_PER_S)

enum { RESTARTS_MAX = 256, SHIPMENTS_MAX = 3, EVENTS_MAX = 30000000 };

struct restart {
    uint32_t who;
    uint64_t at;
};

struct files_trial {
    struct files_plan plan;
    struct yard *yard;
    struct world *world;
    struct verdict *verdict;
    struct random random;
    uint32_t injected, round_faults;
    uint64_t fault_at, heal_at;
    uint64_t events;
    uint32_t from;  /* the first shipment of this round */
    bool *troubled; /* bodies to which something happened in this round that may make them fail */
    bool *ill;      /* the same, in their depots */
    struct restart restarts[RESTARTS_MAX];
    uint32_t restart_count;
    uint64_t asked, done;
    FILE *trace;
};

static void note(const struct files_trial *t, const char *what, uint32_t who, uint64_t ns) {
    if (t->trace != NULL)
        fprintf(t->trace, "%12.6f %s %" PRIu32 " %" PRIu64 " ms\n",
                (double)world_now(t->world) / 1e9, what, who, ns / NS_PER_MS);
}

static void on_sin(void *context, uint32_t body, enum sim_depot_sin sin) {
    struct files_trial *t = context;
    verdict_add(t->verdict, "S6", "the mover %" PRIu32 " %s at %" PRIu64 " us", body,
                sim_depot_sin_name(sin), world_now(t->world) / 1000);
}

/* ---- who is who ---- */

static uint32_t bodies(const struct files_trial *t) {
    return t->plan.yard.nodes + t->plan.yard.clients;
}

static uint32_t body(const struct files_trial *t, uint32_t index) {
    return yard_mover(t->yard, 0) + index;
}

/* Marks, as they are indexed by. */
static uint32_t index_of(const struct files_trial *t, uint32_t who) {
    return who - yard_mover(t->yard, 0);
}

static uint32_t source_of(const struct files_trial *t, const struct shipment *s) {
    return s->source == NO_NODE ? yard_client(t->yard, s->client) : yard_mover(t->yard, s->source);
}

/* ---- faults ---- */

static void heal_later(struct files_trial *t, uint64_t ns) {
    if (t->heal_at < world_now(t->world) + ns)
        t->heal_at = world_now(t->world) + ns;
}

static void boot_later(struct files_trial *t, uint32_t who, uint64_t ns) {
    ASSERT(t->restart_count < RESTARTS_MAX);
    t->restarts[t->restart_count++] = (struct restart){.who = who, .at = world_now(t->world) + ns};
}

static void crash(struct files_trial *t, uint32_t who, uint64_t most_ms) {
    uint64_t ns = random_between(&t->random, 1, most_ms) * NS_PER_MS;
    bool keep = random_chance(&t->random, 3, 4);
    if (!world_up(t->world, who) || t->restart_count == RESTARTS_MAX)
        return;
    note(t, keep ? "crash" : "crash with loss of", who, ns);
    if (who >= body(t, 0))
        t->troubled[index_of(t, who)] = true;
    yard_crash(t->yard, who, keep);
    if (who < yard_client(t->yard, 0)) /* a command is not started again */
        boot_later(t, who, ns);
}

static void pause(struct files_trial *t, uint32_t who, uint64_t least_ms, uint64_t most_ms) {
    uint64_t ns = random_between(&t->random, least_ms, most_ms) * NS_PER_MS;
    note(t, "pause", who, ns);
    if (who >= body(t, 0) && ns > 5 * NS_PER_S)
        t->troubled[index_of(t, who)] = true;
    world_pause(t->world, who, world_now(t->world) + ns);
    heal_later(t, ns);
}

static void break_link(struct files_trial *t, uint32_t who) {
    uint64_t kind = random_below(&t->random, 5), ms = random_between(&t->random, 1, 3000);
    uint32_t pick = (uint32_t)random_below(&t->random, 64);
    uint64_t until = world_now(t->world) + ms * NS_PER_MS;
    uint8_t bytes[64];
    random_bytes(&t->random, bytes, sizeof bytes);
    note(t, kind < 2 ? "reset" : kind == 2 ? "mute" : kind == 3 ? "duplicate" : "garbage", who, 0);
    if (kind < 2)
        world_reset(t->world, who, pick);
    else if (kind == 2)
        world_mute(t->world, who, pick, pick % 2 == 0, until);
    else if (kind == 3)
        world_duplicate(t->world, who, until);
    else
        world_garbage(t->world, who, pick, bytes, 1 + pick);
    heal_later(t, ms * NS_PER_MS);
}

static void hamper(struct files_trial *t, uint32_t who) {
    uint64_t kind = random_below(&t->random, 3), ms = random_between(&t->random, 1, 8000);
    uint32_t factor = (uint32_t)random_between(&t->random, 2, 40);
    note(t, kind == 0 ? "slow" : kind == 1 ? "hang" : "slow disk", who, ms * NS_PER_MS);
    if (kind == 0)
        world_slow(t->world, who, factor, world_now(t->world) + ms * NS_PER_MS);
    else if (kind == 1)
        sim_depot_hang(yard_depot(t->yard, who), world_now(t->world) + ms * NS_PER_MS);
    else
        sim_depot_slow(yard_depot(t->yard, who), factor);
    heal_later(t, ms * NS_PER_MS);
}

static void inject(struct files_trial *t) {
    struct random *r = &t->random;
    uint32_t node = (uint32_t)random_below(r, t->plan.yard.nodes);
    uint32_t client = (uint32_t)random_below(r, t->plan.yard.clients);
    uint32_t mover = yard_mover(t->yard, node), any = body(t, (uint32_t)random_below(r, bodies(t)));
    uint64_t kind = random_below(r, 100);
    if (kind < 22)
        crash(t, mover, random_chance(r, 1, 6) ? 40000 : 2000);
    else if (kind < 28)
        crash(t, yard_host(t->yard, node), 2000);
    else if (kind < 31)
        crash(t, yard_client(t->yard, client), 1);
    else if (kind < 43)
        pause(t, any, 1, 2900);
    else if (kind < 50)
        pause(t, any, 3000, 15000);
    else if (kind < 54)
        pause(t, yard_host(t->yard, node), 1, 5000);
    else if (kind < 82)
        break_link(t, any);
    else
        hamper(t, any);
}

static void sicken(struct files_trial *t) {
    for (uint32_t i = 0; i < bodies(t); i++) {
        struct sim_depot_ills ills = {0};
        t->ill[i] = random_below(&t->random, 100) < t->plan.ill_percent;
        if (t->ill[i]) {
            files_plan_ills(&t->random, i >= t->plan.yard.nodes, 200, &ills);
            note(t, "ill", body(t, i), 0);
        }
        sim_depot_ail(yard_depot(t->yard, body(t, i)), &ills);
    }
}

/* ---- time ---- */

static void restart_due(struct files_trial *t) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->restart_count; i++) {
        struct restart r = t->restarts[i];
        if (r.at > world_now(t->world)) {
            t->restarts[kept++] = r;
            continue;
        }
        note(t, "boot", r.who, 0);
        yard_boot(t->yard, r.who);
    }
    t->restart_count = kept;
}

static uint64_t next_duty(const struct files_trial *t, uint64_t until) {
    uint64_t next = world_now(t->world) + 10 * NS_PER_MS;
    if (t->injected < t->round_faults && t->fault_at < next)
        next = t->fault_at;
    for (uint32_t i = 0; i < t->restart_count; i++)
        if (t->restarts[i].at < next)
            next = t->restarts[i].at;
    if (next < world_now(t->world))
        next = world_now(t->world);
    return next < until ? next : until;
}

static void pass(struct files_trial *t, uint64_t until) {
    uint64_t at;
    while (t->events < EVENTS_MAX && world_next(t->world, &at) && at <= until) {
        world_step(t->world);
        t->events++;
    }
    world_run_until(t->world, until);
}

/* Runs until `done` holds; false if time or events run out before. */
static bool run_stage(struct files_trial *t, uint64_t until, bool (*done)(struct files_trial *)) {
    while (t->events < EVENTS_MAX && t->verdict->count < VERDICT_LINES) {
        if (done(t))
            return true;
        if (world_now(t->world) >= until)
            return false;
        pass(t, next_duty(t, until));
        restart_due(t);
        if (t->injected < t->round_faults && world_now(t->world) >= t->fault_at) {
            t->injected++;
            t->fault_at =
                world_now(t->world) + random_below(&t->random, 2 * t->plan.fault_gap_ns) + 1;
            inject(t);
        }
    }
    return false;
}

static bool settled(struct files_trial *t) {
    for (uint32_t i = t->from; i < yard_shipments(t->yard); i++)
        if (!yard_settled(t->yard, i))
            return false;
    return true;
}

static bool played(struct files_trial *t) {
    return t->injected == t->round_faults || settled(t);
}

static bool healed(struct files_trial *t) {
    return t->restart_count == 0 && world_now(t->world) >= t->heal_at;
}

static void heal(struct files_trial *t) {
    t->round_faults = t->injected;
    for (uint32_t i = 0; i < t->restart_count; i++)
        t->restarts[i].at = world_now(t->world);
    restart_due(t);
    for (uint32_t i = 0; i < bodies(t); i++)
        sim_depot_slow(yard_depot(t->yard, body(t, i)), 1);
}

/* ---- judging ---- */

/* May this node say that it could not have it, for that reason? */
static bool excused(const struct files_trial *t, uint32_t index, uint32_t node, int32_t error) {
    const struct shipment *s = yard_shipment(t->yard, index);
    uint32_t source = source_of(t, s), mover = yard_mover(t->yard, node);
    bool source_down = t->troubled[index_of(t, source)], down = t->troubled[index_of(t, mover)];
    bool source_ill = t->ill[index_of(t, source)], ill = t->ill[index_of(t, mover)];
    if (error == sim_depot_error(yard_depot(t->yard, mover), s->transfer) ||
        error == sim_depot_error(yard_depot(t->yard, source), yard_offer(t->yard, index)))
        return true;
    if (error == -ENOENT) /* it died, and what it offered with it */
        return source_down;
    if (error == -ETIMEDOUT)
        return source_down || down || source_ill || ill;
    return error == -EBADMSG && (source_down || source_ill || ill);
}

static void judge_node(struct files_trial *t, uint32_t index, uint32_t node) {
    const struct shipment *s = yard_shipment(t->yard, index);
    const struct sim_depot *d = yard_depot(t->yard, yard_mover(t->yard, node));
    t->asked++;
    t->done += s->state[node] == SHIPMENT_HERE;
    if (s->state[node] == SHIPMENT_UNKNOWN)
        verdict_add(t->verdict, "L1",
                    "transfer %" PRIu64 ": node %" PRIu32 " never said how it went", s->transfer,
                    node);
    else if (s->state[node] == SHIPMENT_HERE && !sim_depot_has(d, s->cargo))
        verdict_add(t->verdict, "S6",
                    "transfer %" PRIu64 " is said to be at node %" PRIu32 ": it is not",
                    s->transfer, node);
    else if (s->state[node] == SHIPMENT_FAILED && !excused(t, index, node, s->error[node]))
        verdict_add(t->verdict, "excuse",
                    "transfer %" PRIu64 ": node %" PRIu32
                    " failed with %s for no reason of its own",
                    s->transfer, node, strerrorname_np(-s->error[node]));
}

/* Nothing is left of what is over. */
static void judge_rest(struct files_trial *t) {
    for (uint32_t i = 0; i < bodies(t); i++) {
        const struct mover *m = yard_machine(t->yard, body(t, i));
        uint32_t links = world_links(t->world, body(t, i)),
                 buffers = world_buffers(t->world, body(t, i));
        uint32_t open = sim_depot_open(yard_depot(t->yard, body(t, i)));
        if (m == NULL)
            continue;
        if (!mover_idle(m) || buffers > 0 || open > 0 || links > (i < t->plan.yard.nodes))
            verdict_add(t->verdict, "rest",
                        "mover %" PRIu32 "%s: %" PRIu32 " buffers, %" PRIu32 " bundles, %" PRIu32
                        " links are left",
                        body(t, i), mover_idle(m) ? "" : " is not idle", buffers, open, links);
    }
}

/* ---- rounds ---- */

static void announce(const struct files_trial *t, const struct shipment *s) {
    char set[64];
    if (t->trace == NULL)
        return;
    nodeset_format(&s->set, "", set, sizeof set);
    fprintf(t->trace,
            "%12.6f transfer %" PRIu64 " of %" PRIu32 " pieces (%" PRIu32 " a page, %" PRIu32
            " bytes) from %" PRIu32 " to %s, shape %u:%" PRIu32 ", %" PRIu32 " slots%s\n",
            (double)world_now(t->world) / 1e9, s->transfer, s->cargo->bundle.pieces,
            s->cargo->bundle.page_pieces, s->cargo->bundle.piece_bytes, source_of(t, s), set,
            s->shape, s->arity, s->slots, s->switches != NULL ? ", by switches" : "");
}

static void ship(struct files_trial *t) {
    void *storage = malloc(files_plan_storage(&t->plan));
    struct shipment s;
    ASSERT(storage != NULL);
    files_plan_shipment(&t->plan, yard_stock(t->yard), &t->random, storage, &s);
    for (uint32_t c = 0; s.source == NO_NODE && c < t->plan.yard.clients; c++)
        if (!world_up(t->world, yard_client(t->yard, s.client))) /* the command has died */
            s.client = (s.client + 1) % t->plan.yard.clients;
    if (s.source == NO_NODE && !world_up(t->world, yard_client(t->yard, s.client))) {
        s.source = 0;
        if (t->plan.single && nodeset_count(&s.set) > 1)
            nodeset_remove(&s.set, 0);
    }
    uint32_t index = yard_ship(t->yard, &s);
    announce(t, yard_shipment(t->yard, index));
    free(storage);
}

/* What was there goes; some of its pieces stay. */
static void clear(struct files_trial *t) {
    const struct stock *f = yard_stock(t->yard);
    for (uint32_t i = 0; i < t->plan.yard.nodes; i++)
        for (uint32_t k = 0; k < f->count; k++)
            sim_depot_remove(yard_depot(t->yard, yard_mover(t->yard, i)), f->cargoes[k],
                             random_chance(&t->random, 1, 4));
}

static bool gives(const struct files_trial *t, uint32_t node) {
    for (uint32_t i = t->from; i < yard_shipments(t->yard); i++)
        if (yard_shipment(t->yard, i)->source == node)
            return true;
    return false;
}

static void start_late(struct files_trial *t) {
    for (uint32_t i = 0; t->plan.late_ns > 0 && i < t->plan.yard.nodes; i++) {
        if (gives(t, i))
            continue;
        yard_crash(t->yard, yard_mover(t->yard, i), true);
        boot_later(t, yard_mover(t->yard, i), random_below(&t->random, t->plan.late_ns));
    }
}

static void close_round(struct files_trial *t) {
    for (uint32_t i = t->from; i < yard_shipments(t->yard); i++) {
        const struct shipment *s = yard_shipment(t->yard, i);
        if (s->silent)
            verdict_add(t->verdict, "reason", "transfer %" PRIu64 " failed somewhere without words",
                        s->transfer);
        NODESET_EACH (node, &s->set)
            judge_node(t, i, node);
    }
    for (uint32_t i = t->from; i < yard_shipments(t->yard); i++)
        yard_enough(t->yard, i, random_chance(&t->random, 3, 4));
    pass(t, world_now(t->world) + t->plan.yard.skew_ns + REST_NS);
    judge_rest(t);
    t->from = yard_shipments(t->yard);
}

static void begin_round(struct files_trial *t, uint32_t shipments) {
    memset(t->troubled, 0, bodies(t) * sizeof *t->troubled);
    memset(t->ill, 0, bodies(t) * sizeof *t->ill);
    clear(t);
    for (uint32_t i = 0; i < shipments; i++)
        ship(t);
}

static void play_round(struct files_trial *t) {
    uint32_t shipments = (uint32_t)random_between(&t->random, 1, SHIPMENTS_MAX);
    if (t->plan.single || random_chance(&t->random, 1, 2))
        shipments = 1;
    sicken(t);
    bool *ill = malloc(bodies(t) * sizeof *ill);
    ASSERT(ill != NULL);
    memcpy(ill, t->ill, bodies(t) * sizeof *ill);
    begin_round(t, shipments);
    start_late(t);
    memcpy(t->ill, ill, bodies(t) * sizeof *ill);
    free(ill);
    t->round_faults = t->injected + t->plan.faults;
    t->fault_at = world_now(t->world) + random_below(&t->random, 2 * t->plan.fault_gap_ns);
    run_stage(t, world_now(t->world) + 120 * NS_PER_S, played);
    heal(t);
    run_stage(t, world_now(t->world) + 120 * NS_PER_S, healed);
    if (!run_stage(t, world_now(t->world) + SETTLE_NS, settled) && t->verdict->count == 0)
        verdict_add(t->verdict, "L1", "not over %d s after the last fault",
                    (int)(SETTLE_NS / NS_PER_S));
    close_round(t);
}

/* Without faults: all have it, and nothing came twice, or that was there. */
static void play_calm(struct files_trial *t) {
    uint32_t nodes = t->plan.yard.nodes;
    uint32_t *lacks = calloc(nodes, sizeof *lacks);
    uint64_t *had = calloc(nodes, sizeof *had), *again = calloc(nodes, sizeof *again);
    struct sim_depot_ills none = {0};
    ASSERT(lacks != NULL && had != NULL && again != NULL);
    for (uint32_t i = 0; i < bodies(t); i++)
        sim_depot_ail(yard_depot(t->yard, body(t, i)), &none);
    begin_round(t, 1);
    const struct shipment *s = yard_shipment(t->yard, t->from);
    for (uint32_t i = 0; i < nodes; i++) {
        const struct sim_depot *d = yard_depot(t->yard, yard_mover(t->yard, i));
        lacks[i] = sim_depot_lacks(d, s->cargo, NULL);
        had[i] = sim_depot_counts(d)->stored;
        again[i] = sim_depot_counts(d)->again;
    }
    if (!run_stage(t, world_now(t->world) + SETTLE_NS, settled))
        verdict_add(t->verdict, "L1", "a calm transfer is not over");
    for (uint32_t i = 0; i < nodes; i++) {
        const struct sim_depot_counts *c =
            sim_depot_counts(yard_depot(t->yard, yard_mover(t->yard, i)));
        uint32_t due = nodeset_has(&s->set, i) ? lacks[i] : 0;
        if (c->stored - had[i] != due || c->again != again[i])
            verdict_add(t->verdict, "thrift",
                        "node %" PRIu32 " lacked %" PRIu32 " pieces: %" PRIu64 " came, and %" PRIu64
                        " twice",
                        i, due, c->stored - had[i], c->again - again[i]);
    }
    close_round(t);
    free(lacks);
    free(had);
    free(again);
}

/* ---- the whole ---- */

static void fill_stock(struct files_trial *t) {
    struct random r;
    random_init(&r, t->plan.yard.seed ^ 0x636172676F);
    struct stock *f = yard_stock(t->yard);
    for (uint32_t i = 0; i < t->plan.cargoes; i++) {
        struct cargo_config c = t->plan.cargo[i];
        c.like = t->plan.like[i] == i ? NULL : f->cargoes[t->plan.like[i]];
        stock_add(f, &c, &r);
    }
    for (uint32_t i = 0; i < t->plan.yard.nodes && t->plan.cached_percent > 0; i++)
        if (random_chance(&r, 1, 2))
            sim_depot_cache(yard_depot(t->yard, yard_mover(t->yard, i)),
                            f->cargoes[random_below(&r, f->count)], t->plan.cached_percent);
}

static void sum_up(const struct files_trial *t, struct trial_result *ret) {
    ret->hash = world_hash(t->world);
    ret->nodes = t->plan.yard.nodes;
    ret->faults = t->injected;
    ret->steps = world_counts(t->world)->steps;
    ret->time_ns = world_now(t->world);
    ret->asked = (uint32_t)t->asked;
    ret->done = (uint32_t)t->done;
    for (uint32_t i = 0; i < bodies(t); i++)
        ret->lives += world_boots(t->world, body(t, i));
}

void files_trial_run(uint64_t seed, struct trial_result *ret, FILE *trace) {
    struct files_trial t = {.verdict = &ret->verdict, .trace = trace};
    *ret = (struct trial_result){.seed = seed};
    files_plan_draw(&t.plan, seed);
    random_init(&t.random, seed ^ 0x6D6F766572);
    t.plan.yard.depot.sinned = on_sin;
    t.plan.yard.depot.context = &t;
    t.yard = yard_new(&t.plan.yard);
    t.world = yard_world(t.yard);
    t.troubled = calloc(bodies(&t), sizeof *t.troubled);
    t.ill = calloc(bodies(&t), sizeof *t.ill);
    ASSERT(t.troubled != NULL && t.ill != NULL);
    fill_stock(&t);
    yard_boot_all(t.yard);
    pass(&t, NS_PER_MS);
    for (uint32_t i = 0; i < t.plan.rounds && ret->verdict.count == 0; i++)
        play_round(&t);
    if (ret->verdict.count == 0)
        play_calm(&t);
    sum_up(&t, ret);
    yard_free(t.yard);
    free(t.troubled);
    free(t.ill);
}
