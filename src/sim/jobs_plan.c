/* SPDX-License-Identifier: MIT */
/* What a run of a campaign of jobs is like: see jobs_plan.h. */
#include "sim/jobs_plan.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "sched/policies.h"

static uint32_t draw32(struct random *r, uint32_t low, uint32_t high) {
    return (uint32_t)random_between(r, low, high);
}

/* ---- the cluster ---- */

static uint32_t draw_nodes(struct random *r) {
    uint64_t kind = random_below(r, 100);
    if (kind < 60)
        return draw32(r, 2, 6);
    return kind < 90 ? draw32(r, 7, 20) : draw32(r, 21, 64);
}

static void draw_tree(struct random *r, struct hall_config *c) {
    static const enum shape shapes[] = {SHAPE_KARY, SHAPE_KARY, SHAPE_BINOMIAL, SHAPE_FLAT,
                                        SHAPE_CHAIN};
    uint64_t which = random_below(r, c->nodes <= 8 ? 5 : 4);
    c->tree = (struct tree){.shape = shapes[which], .nodes = c->nodes, .arity = draw32(r, 2, 8)};
}

static void draw_link(struct random *r, struct link_model *m) {
    *m = (struct link_model){.latency_ns = random_between(r, 5, 1000) * NS_PER_US};
    m->jitter_ns = random_below(r, m->latency_ns + 1);
    m->bytes_per_s = random_chance(r, 1, 2) ? 1000000000 : 0;
    m->cpu_receive_ns = random_between(r, 500, 5000);
    m->cpu_send_ns = random_between(r, 500, 3000);
    m->connect_ns = 3 * m->latency_ns;
    m->durable_ns = random_between(r, 20, 8000) * NS_PER_US;
}

/* ---- policies ---- */

static const struct storm_policy *draw_policy(const struct jobs_plan *p, struct random *r) {
    uint32_t count = 0;
    while (policies_at(count) != NULL)
        count++;
    const struct storm_policy *chosen;
    do
        chosen = policies_at((uint32_t)random_below(r, count));
    while ((chosen->flags & STORM_UNCOORDINATED) != 0 && p->hall.seed % 3 != 0);
    return chosen;
}

/* Every turn is many steps of a large cluster. */
static uint64_t draw_quantum(const struct jobs_plan *p, struct random *r) {
    uint64_t least = 2 * (uint64_t)p->hall.nodes * NS_PER_MS, kind = random_below(r, 3);
    uint64_t quantum = kind == 0   ? random_between(r, 5, 50) * NS_PER_MS
                       : kind == 1 ? random_between(r, 50, 500) * NS_PER_MS
                                   : random_between(r, 500, 4000) * NS_PER_MS;
    return quantum < least ? least : quantum;
}

void jobs_plan_policy(const struct jobs_plan *p, const struct jobs_terms *terms, struct random *r,
                      struct hall_config *ret) {
    uint32_t slots = draw32(r, 2, 5);
    uint64_t quantum = draw_quantum(p, r);
    ret->policy = terms->any ? draw_policy(p, r) : terms->policy;
    ret->slots = terms->slots != 0 ? terms->slots : slots;
    ret->quantum_ns = terms->quantum_ns != 0 ? terms->quantum_ns : quantum;
}

/* Where time is shared there is more to do at once, so that there is something to share. */
static void draw_terms(struct jobs_plan *p, const struct jobs_terms *terms) {
    struct random r;
    random_init(&r, p->hall.seed ^ 0x7475726E);
    if (terms->policy == NULL && !terms->any)
        return;
    jobs_plan_policy(p, terms, &r, &p->hall);
    p->hall.lost_permille = random_chance(&r, 1, 2) ? 1000 : draw32(&r, 0, 400);
    p->shared = terms->any || (terms->policy->flags & STORM_SLICED) != 0;
    p->changes = terms->any ? draw32(&r, 1, 6) : 0;
    p->change_gap_ns = random_between(&r, 100, 4000) * NS_PER_MS;
    if (!p->shared)
        return;
    p->errands = draw32(&r, 2, 4);
    p->hall.clients = draw32(&r, 2, 4);
}

void jobs_plan_draw(struct jobs_plan *p, uint64_t seed, const struct jobs_terms *terms) {
    struct random r;
    random_init(&r, seed ^ 0x6A6F6273);
    *p = (struct jobs_plan){.hall = {.seed = seed}};
    struct hall_config *h = &p->hall;
    h->nodes = draw_nodes(&r);
    h->pes = draw32(&r, 1, 4);
    h->clients = draw32(&r, 1, 4);
    draw_tree(&r, h);
    draw_link(&r, &h->link);
    h->period_ns = random_between(&r, 4, 10) * 100 * NS_PER_MS;
    h->fail_permille = random_chance(&r, 1, 8) ? 5 : 0;
    h->owners = seed % 2 == 0;
    p->orders = draw32(&r, 8, 30);
    p->errands = draw32(&r, 1, 3);
    p->pause_ns = random_between(&r, 1, 2000) * NS_PER_MS;
    p->faults = random_chance(&r, 1, 10) ? 0 : draw32(&r, 1, 8);
    p->fault_gap_ns = random_between(&r, 200, 6000) * NS_PER_MS;
    if (random_chance(&r, 1, 3)) { /* one after the other */
        p->faults = draw32(&r, 6, 24);
        p->fault_gap_ns = random_between(&r, 2, 400) * NS_PER_MS;
    }
    if (p->faults > 0 && random_chance(&r, 1, 4))
        p->ambushes = draw32(&r, 1, 4);
    draw_terms(p, terms);
}

/* ---- what processes do ---- */

static void word(struct order *o, const char *text) {
    size_t len = strlen(text) + 1;
    ASSERT(o->words_len + len <= sizeof o->words);
    memcpy(o->words + o->words_len, text, len);
    o->words_len += (uint32_t)len;
}

static void number(struct order *o, const char *name, uint64_t value) {
    char text[24];
    word(o, name);
    snprintf(text, sizeof text, "%" PRIu64, value);
    word(o, text);
}

static void run_for(struct order *o, uint64_t low_ms, uint64_t high_ms) {
    char text[48];
    word(o, "run");
    snprintf(text, sizeof text, "%" PRIu64 "ms-%" PRIu64 "ms", low_ms, high_ms);
    word(o, text);
}

static void draw_end(struct random *r, struct order *o) {
    static const uint32_t signals[] = {9, 11, 15, 6};
    uint64_t status = random_below(r, 4) * 7, which = random_below(r, 4);
    uint64_t rank = random_below(r, o->procs);
    run_for(o, 1, 1500);
    number(o, "rank", rank);
    if (random_chance(r, 1, 2))
        number(o, "exit", status);
    else
        number(o, "signal", signals[which]);
    run_for(o, 1, 1500);
}

static void draw_output(struct random *r, struct order *o, uint64_t most) {
    uint64_t out = random_below(r, most), error = random_below(r, most / 4 + 1);
    number(o, "write", out);
    number(o, "error", error);
    run_for(o, 1, 300);
    number(o, "write", out / 3);
}

static void draw_stubborn(struct random *r, struct order *o) {
    uint64_t kind = random_below(r, 4);
    if (kind == 0)
        word(o, "ignore-term");
    else if (kind == 1)
        number(o, "catch-term", 5);
    else
        word(o, kind == 2 ? "fork" : "fork-away");
    run_for(o, 10, 6000);
}

static void draw_words(struct random *r, struct order *o, uint64_t most_output) {
    static const char *const wrong[] = {"/none", "/none-on-1", "/etc/passwd"};
    uint64_t kind = random_below(r, 16), which = random_below(r, 3);
    o->program = "/actor";
    word(o, "actor");
    if (kind < 2)
        return;
    if (kind < 6)
        run_for(o, 1, 2500);
    else if (kind < 9)
        draw_end(r, o);
    else if (kind < 12 && most_output > 0)
        draw_output(r, o, most_output);
    else if (kind < 14)
        draw_stubborn(r, o);
    else if (kind == 14)
        o->program = wrong[which];
    else
        run_for(o, 2000, 12000);
}

/* ---- what customers want ---- */

static void draw_size(const struct jobs_plan *p, struct random *r, struct order *o) {
    uint32_t most = p->shared ? p->hall.nodes : p->hall.nodes / 3 > 0 ? p->hall.nodes / 3 : 1;
    uint32_t part = draw32(r, 1, most);
    o->nodes = random_chance(r, 1, 8) ? p->hall.nodes : part;
    o->ppn = draw32(r, 1, p->hall.pes);
    uint32_t last = draw32(r, 1, o->nodes);
    o->procs = o->nodes * (o->ppn - 1) + last;
    if (o->procs < o->nodes)
        o->procs = o->nodes;
}

static void draw_flags(struct random *r, struct order *o) {
    uint64_t coin = random_u64(r);
    o->flags |= coin % 5 == 0 ? JOB_REQUEUE : 0;
    o->flags |= coin % 7 == 0 ? JOB_CYCLIC : 0;
    o->flags |= coin % 11 < 3 ? JOB_SEVERAL : 0;
    o->flags |= coin / 5 % 4 == 0 ? JOB_BAD_EXIT : 0;
    o->flags |= coin / 20 % 8 == 0 ? JOB_EXCLUSIVE : 0;
    o->flags |= coin / 1280 % 3 == 0 ? JOB_LOOK : 0;
    if (coin / 160 % 8 == 0)
        o->limit_ns = random_between(r, 300, 4000) * NS_PER_MS;
}

static void draw_kind(struct random *r, struct order *o) {
    uint64_t kind = random_below(r, 100);
    uint64_t small = 4000;
    if (kind < 40) {
        uint64_t large = random_chance(r, 1, 3) ? 700000 : 20000;
        o->kind = JOB_RUN;
        draw_words(r, o, large / o->procs + 1);
    } else if (kind < 50) {
        o->kind = JOB_RUN;
        o->flags |= JOB_DETACHED;
        draw_words(r, o, 0);
    } else if (kind < 65) {
        o->kind = JOB_BATCH;
        if (random_chance(r, 1, 4)) {
            o->flags |= JOB_SCRIPT;
            o->procs = 1;
        }
        draw_words(r, o, small);
    } else if (kind < 75) {
        o->kind = JOB_BATCH;
        o->count = draw32(r, 2, 6);
        draw_words(r, o, 0);
    } else if (kind < 88) {
        o->kind = JOB_ALLOC;
        o->flags &= JOB_EXCLUSIVE;
        o->program = "/actor";
        word(o, "actor");
    } else {
        o->kind = JOB_RUN;
        o->nodes = o->ppn = o->procs = 1;
        o->typed = random_between(r, 1, 200000);
        o->program = "/actor";
        word(o, "actor");
        word(o, "cat");
    }
}

static void draw_wishes(const struct jobs_plan *p, const struct random *from, struct order *o) {
    struct random fork = random_fork(from, 1), *r = &fork;
    uint32_t node = (uint32_t)random_below(r, p->hall.nodes);
    uint64_t coin = random_below(r, 12);
    if (coin == 0 && o->nodes == 1)
        o->on = (int32_t)node;
    else if (coin == 1 && o->nodes < p->hall.nodes)
        o->exclude = (int32_t)node;
    o->priority = coin == 2 ? (int32_t)random_below(r, 5) - 2 : 0;
}

/* Never so that too few nodes have it: that would be refused. */
static void draw_need(const struct jobs_plan *p, const struct random *from, struct order *o) {
    struct random fork = random_fork(from, 3), *r = &fork;
    bool needs = random_chance(r, 1, 6) && o->on < 0 && o->exclude < 0;
    uint32_t speed = draw32(r, 1, HALL_SPEEDS), have = 0;
    bool faster = random_chance(r, 1, 2);
    for (uint32_t n = 0; n < p->hall.nodes; n++)
        have += faster ? hall_speed(n) >= speed : hall_speed(n) == speed;
    if (!needs || have < o->nodes)
        return;
    o->speed = speed;
    o->faster = faster;
}

/* Some bring hosts. There must be room for those that come at once beside its own nodes. */
static void draw_hosts(const struct jobs_plan *p, const struct random *from, struct order *o) {
    struct random fork = random_fork(from, 4), *r = &fork;
    bool brings = random_chance(r, 1, 6) && (o->kind == JOB_RUN || o->kind == JOB_BATCH) &&
                  o->count == 1 && o->on < 0 && o->exclude < 0;
    uint32_t room = p->hall.nodes - o->nodes, least = (uint32_t)random_below(r, 3);
    uint32_t more = (uint32_t)random_below(r, 4);
    if (!brings)
        return;
    o->hosts = least < room ? least : room;
    o->hosts_more = more;
}

/* Which other it waits for is up to the customer, who knows what there is. */
static void draw_when(const struct random *from, struct order *o) {
    struct random fork = random_fork(from, 2), *r = &fork;
    uint64_t coin = random_below(r, 10);
    o->after_kind = (uint8_t)random_below(r, AWAIT_KINDS);
    if (coin < 2)
        o->after = 1;
    else if (coin == 2)
        o->begin_ns = random_between(r, 1, 5000) * NS_PER_MS;
}

void jobs_plan_order(const struct jobs_plan *p, uint32_t customer, struct random *r,
                     struct order *ret) {
    uint64_t one = random_u64(r), two = random_u64(r);
    *ret = (struct order){.customer = customer,
                          .request = {one, two},
                          .count = 1,
                          .around = NO_ORDER,
                          .on = -1,
                          .exclude = -1};
    draw_size(p, r, ret);
    draw_flags(r, ret);
    draw_wishes(p, r, ret);
    draw_when(r, ret);
    draw_need(p, r, ret);
    draw_kind(r, ret);
    draw_hosts(p, r, ret);
}
