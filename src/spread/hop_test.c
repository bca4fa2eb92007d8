/* SPDX-License-Identifier: MIT */
/* Tests of how a tree of hops reaches its hosts: all hops of a tree, in a time of their own. */
#include "spread/hop.h"

#include <stdlib.h>

#include "base/random.h"
#include "base/units.h"
#include "tap.h"

enum { HOSTS_MAX = 512, EVENTS_MAX = 8 * HOSTS_MAX, NOBODY = UINT32_MAX };
#define LAMBDA (100 * NS_PER_MS)

enum nature { FINE, DEAD, REFUSES, REFUSES_OTHERS, UNFIT };
enum event_kind { ANSWERS, FAILS, ENDS, DIES };

struct event {
    uint64_t at;
    enum event_kind kind;
    uint32_t hop, child, host; /* the hop that hears of it */
    uint32_t life;             /* of the hop */
};

struct actor {
    struct hop hop;
    void *mem;
    uint32_t parent, child; /* we are child `child` of hop `parent` */
    uint32_t life;
    uint32_t children[HOSTS_MAX]; /* hop of each child */
    bool alive, fresh, released, wants;
    bool at_work;
    uint64_t busy; /* until then, with a connection */
};

/* Hop 0 is the root; hop i + 1 is on host i. */
struct stage {
    struct hop_config config;
    struct actor actors[HOSTS_MAX + 1];
    struct event events[EVENTS_MAX];
    uint32_t event_count;
    enum nature nature[HOSTS_MAX];
    uint32_t runs[HOSTS_MAX], ends[HOSTS_MAX], told[HOSTS_MAX];
    enum hop_why why[HOSTS_MAX];
    uint32_t crate[HOSTS_MAX];
    uint64_t now, last_run;
    uint64_t command_ns;
    bool one_at_a_time;
    uint32_t crossings; /* connections between hosts of different switches */
};

static struct stage *stage_new(uint32_t hosts, enum hop_shape shape, uint32_t fanout) {
    struct stage *s = calloc(1, sizeof *s);
    s->config = (struct hop_config){.hosts = hosts,
                                    .children = HOSTS_MAX,
                                    .fanout = fanout,
                                    .at_once = shape == HOP_BINOMIAL ? 1 : 64,
                                    .shape = shape,
                                    .connect_ns = 10 * NS_PER_S,
                                    .late_ns = NS_PER_S};
    s->command_ns = NS_PER_MS;
    return s;
}

static void stage_free(struct stage *s) {
    for (uint32_t i = 0; i <= s->config.hosts; i++)
        free(s->actors[i].mem);
    free(s);
}

static void later(struct stage *s, uint64_t at, enum event_kind kind, uint32_t hop, uint32_t child,
                  uint32_t host) {
    if (!CHECK(s->event_count < EVENTS_MAX))
        abort();
    s->events[s->event_count++] = (struct event){.at = at,
                                                 .kind = kind,
                                                 .hop = hop,
                                                 .child = child,
                                                 .host = host,
                                                 .life = s->actors[hop].life};
}

static void actor_begin(struct stage *s, uint32_t i, uint32_t parent, uint32_t child) {
    struct actor *a = &s->actors[i];
    struct hop_config c = s->config;
    c.root = parent == NOBODY;
    free(a->mem);
    *a = (struct actor){.parent = parent, .child = child, .alive = true, .life = a->life + 1};
    a->mem = calloc(1, hop_bytes(&c));
    hop_init(&a->hop, &c, a->mem);
}

static void pump(struct stage *s, uint32_t i);

/* ---- What is said upwards ---------------------------------------------------------------------- */

static void tell(struct stage *s, uint32_t host, enum hop_why why) {
    s->told[host]++;
    s->why[host] = why;
}

/* Of a host behind hop i, from there up. */
static void say_reached(struct stage *s, uint32_t i, uint32_t host) {
    for (struct actor *a = &s->actors[i]; a->parent != NOBODY; a = &s->actors[a->parent])
        CHECK(hop_reached(&s->actors[a->parent].hop, a->child, host));
}

static void say_over(struct stage *s, uint32_t i, uint32_t host) {
    for (struct actor *a = &s->actors[i]; a->parent != NOBODY; a = &s->actors[a->parent])
        CHECK(hop_over(&s->actors[a->parent].hop, a->child, host));
}

/* A host that hop i could not reach. */
static void say_back(struct stage *s, uint32_t i, uint32_t host, enum hop_why why) {
    struct actor *a = &s->actors[i];
    while (a->parent != NOBODY) {
        bool final = true;
        uint32_t parent = a->parent;
        if (!CHECK(hop_returned(&s->actors[parent].hop, a->child, host, why, &final)))
            return;
        if (!final) {
            pump(s, parent);
            return;
        }
        a = &s->actors[parent];
    }
    tell(s, host, why);
}

/* One behind hop i that was reached, and is no more. */
static void say_lost(struct stage *s, uint32_t i, uint32_t host) {
    say_over(s, i, host);
    tell(s, host, HOP_LOST);
}

/* ---- Hosts and connections --------------------------------------------------------------------- */

static void connect_to(struct stage *s, uint32_t i, struct hop_deed d) {
    struct actor *a = &s->actors[i];
    uint64_t from = s->one_at_a_time && a->busy > s->now ? a->busy : s->now;
    enum nature n = s->nature[d.host];
    a->busy = from + LAMBDA;
    if (i > 0 && s->crate[i - 1] != s->crate[d.host])
        s->crossings++;
    if (n == DEAD)
        return;
    bool fails = n == REFUSES || n == UNFIT || (n == REFUSES_OTHERS && i > 0);
    later(s, from + LAMBDA, fails ? FAILS : ANSWERS, i, d.child, d.host);
}

static void child_gone(struct stage *s, uint32_t i, uint32_t child, uint32_t host,
                       enum hop_why why) {
    if (hop_gone(&s->actors[i].hop, child))
        say_back(s, i, host, why);
    pump(s, i);
}

static void fall(struct stage *s, uint32_t i);

static void kill_behind(struct stage *s, uint32_t i) {
    for (uint32_t k = 1; k <= s->config.hosts; k++)
        if (s->actors[k].alive && s->actors[k].parent == i)
            fall(s, k);
}

/* A hop and all behind it are no more; nobody has heard of it yet. */
static void fall(struct stage *s, uint32_t i) {
    s->actors[i].alive = false;
    s->actors[i].life++;
    kill_behind(s, i);
}

/* A helper ends when its command and all behind it have. */
static void leave_if_done(struct stage *s, uint32_t i) {
    struct actor *a = &s->actors[i];
    if (i == 0 || !a->alive || a->at_work || !a->released || !hop_done(&a->hop))
        return;
    uint32_t parent = a->parent, child = a->child;
    fall(s, i);
    child_gone(s, parent, child, i - 1, HOP_LOST);
    leave_if_done(s, parent);
}

static void drop(struct stage *s, uint32_t i, struct hop_deed d) {
    child_gone(s, i, d.child, d.host, d.why);
}

static void give(struct stage *s, uint32_t i, struct hop_deed d) {
    struct actor *to = &s->actors[s->actors[i].children[d.child]];
    CHECK(hop_take(&to->hop, d.host, (uint16_t)s->crate[d.host]));
    to->fresh = true;
}

static void pump(struct stage *s, uint32_t i) {
    struct actor *a = &s->actors[i];
    for (struct hop_deed d; (d = hop_next(&a->hop, s->now)).kind != HOP_NOTHING;) {
        if (d.kind == HOP_CONNECT)
            connect_to(s, i, d);
        else if (d.kind == HOP_GIVE)
            give(s, i, d);
        else if (d.kind == HOP_RELEASE)
            s->actors[a->children[d.child]].released = true;
        else if (d.kind == HOP_DROP)
            drop(s, i, d);
        else
            say_lost(s, i, d.host);
    }
    for (uint32_t k = 1; k <= s->config.hosts; k++) {
        if (s->actors[k].alive && s->actors[k].fresh) {
            s->actors[k].fresh = false;
            hop_share(&s->actors[k].hop);
            pump(s, k);
        }
    }
}

/* Who could do more says so. */
static void say_idle(struct stage *s) {
    for (uint32_t k = s->config.hosts; k > 0; k--) {
        struct actor *a = &s->actors[k];
        bool wants = a->alive && !a->released && hop_wants(&a->hop, s->now);
        if (wants && !a->wants) {
            hop_idle(&s->actors[a->parent].hop, a->child);
            pump(s, a->parent);
        }
        a->wants = wants;
    }
}

static void answers(struct stage *s, const struct event *e) {
    uint32_t me = e->host + 1;
    if (!CHECK(!s->actors[me].alive))
        return;
    actor_begin(s, me, e->hop, e->child);
    s->actors[e->hop].children[e->child] = me;
    hop_greeted(&s->actors[e->hop].hop, e->child, s->now);
    say_reached(s, e->hop, e->host);
    s->runs[e->host]++;
    s->last_run = s->now;
    s->actors[me].at_work = true;
    later(s, s->now + s->command_ns, ENDS, me, 0, e->host);
    pump(s, e->hop);
}

static void happen(struct stage *s, const struct event *e) {
    uint32_t parent = s->actors[e->hop].parent, child = s->actors[e->hop].child;
    switch (e->kind) {
    case ANSWERS:
        answers(s, e);
        break;
    case FAILS:
        child_gone(s, e->hop, e->child, e->host,
                   s->nature[e->host] == UNFIT ? HOP_UNFIT : HOP_REFUSED);
        leave_if_done(s, e->hop);
        break;
    case ENDS:
        s->ends[e->host]++;
        s->actors[e->hop].at_work = false;
        say_over(s, e->hop, e->host);
        leave_if_done(s, e->hop);
        break;
    case DIES:
        fall(s, e->hop);
        child_gone(s, parent, child, e->hop - 1, HOP_LOST);
        leave_if_done(s, parent);
        break;
    }
}

/* The next event; false if the next thing to happen is only that somebody's patience ends. */
static bool take_event(struct stage *s, uint64_t before, struct event *ret) {
    uint32_t best = NOBODY;
    for (uint32_t i = 0; i < s->event_count; i++)
        if (best == NOBODY || s->events[i].at < s->events[best].at)
            best = i;
    if (best == NOBODY || (before != 0 && s->events[best].at > before))
        return false;
    *ret = s->events[best];
    s->events[best] = s->events[--s->event_count];
    return true;
}

static uint64_t patience(const struct stage *s, uint32_t *ret_hop) {
    uint64_t at = 0;
    for (uint32_t i = 0; i <= s->config.hosts; i++) {
        uint64_t d = s->actors[i].alive ? hop_deadline(&s->actors[i].hop, s->now) : 0;
        if (d != 0 && (at == 0 || d < at)) {
            at = d;
            *ret_hop = i;
        }
    }
    return at;
}

static void play(struct stage *s) {
    actor_begin(s, 0, NOBODY, 0);
    for (uint32_t i = 0; i < s->config.hosts; i++)
        CHECK(hop_take(&s->actors[0].hop, i, (uint16_t)s->crate[i]));
    hop_share(&s->actors[0].hop);
    pump(s, 0);
    while (!hop_done(&s->actors[0].hop)) {
        struct event e;
        uint32_t hop = 0;
        uint64_t until = patience(s, &hop);
        if (take_event(s, until, &e)) {
            s->now = e.at;
            if (s->actors[e.hop].life == e.life)
                happen(s, &e);
            say_idle(s);
        } else if (CHECK(until != 0)) {
            s->now = until;
            pump(s, hop);
            leave_if_done(s, hop);
            say_idle(s);
        } else {
            return;
        }
    }
}

/* ---- Times ------------------------------------------------------------------------------------- */

static uint32_t log2_up(uint32_t n) {
    uint32_t rounds = 0;
    while ((1u << rounds) < n)
        rounds++;
    return rounds;
}

static uint64_t lambdas(uint32_t hosts, enum hop_shape shape, uint32_t fanout, bool one) {
    struct stage *s = stage_new(hosts, shape, fanout);
    s->one_at_a_time = one;
    play(s);
    for (uint32_t i = 0; i < hosts; i++)
        CHECK(s->runs[i] == 1 && s->ends[i] == 1 && s->told[i] == 0);
    uint64_t n = s->last_run / LAMBDA;
    stage_free(s);
    return n;
}

static void test_a_binomial_tree_takes_the_logarithm(void) {
    for (uint32_t n = 1; n <= 300; n += n < 40 ? 1 : 37)
        CHECK_EQ(lambdas(n, HOP_BINOMIAL, 0, true), log2_up(n + 1));
}

/* A node's children are connected to one by one: the last of them is the latest at each depth. */
static void test_a_kary_tree_takes_arity_times_depth(void) {
    for (uint32_t arity = 2; arity <= 4; arity++) {
        uint32_t hosts = 0;
        for (uint32_t depth = 1, row = arity; hosts + row <= 256; depth++, row *= arity) {
            hosts += row;
            CHECK_EQ(lambdas(hosts, HOP_KARY, arity, true), arity * depth);
            CHECK_EQ(lambdas(hosts, HOP_KARY, arity, false), depth);
        }
    }
}

static void test_chain_and_flat(void) {
    CHECK_EQ(lambdas(20, HOP_CHAIN, 0, true), 20);
    CHECK_EQ(lambdas(20, HOP_FLAT, 0, true), 20);
    CHECK_EQ(lambdas(20, HOP_FLAT, 0, false), 1);
}

static void test_the_adaptive_tree_is_wide_where_it_can(void) {
    CHECK_EQ(lambdas(64, HOP_ADAPTIVE, 0, false), 1);
    CHECK_EQ(lambdas(500, HOP_ADAPTIVE, 0, false), 2);
    CHECK_EQ(lambdas(30, HOP_ADAPTIVE, 2, false), 4);
}

/* ---- Hosts that are not as they should be ------------------------------------------------------ */

static const struct {
    enum hop_shape shape;
    uint32_t fanout;
} shapes[] = {{HOP_ADAPTIVE, 0}, {HOP_ADAPTIVE, 2}, {HOP_BINOMIAL, 0},
              {HOP_KARY, 3},     {HOP_CHAIN, 0},    {HOP_FLAT, 0}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void test_hosts_that_cannot_be_reached_are_told_once(void) {
    for (uint32_t k = 0; k < SHAPES; k++) {
        struct stage *s = stage_new(60, shapes[k].shape, shapes[k].fanout);
        s->nature[0] = s->nature[1] = s->nature[59] = DEAD;
        s->nature[2] = s->nature[30] = REFUSES;
        s->nature[31] = UNFIT;
        s->nature[32] = s->nature[5] = REFUSES_OTHERS;
        play(s);
        for (uint32_t i = 0; i < 60; i++) {
            bool fine = s->nature[i] == FINE || s->nature[i] == REFUSES_OTHERS;
            CHECK(s->runs[i] == fine && s->ends[i] == fine && s->told[i] == !fine);
        }
        CHECK(s->why[0] == HOP_LATE && s->why[2] == HOP_REFUSED && s->why[31] == HOP_UNFIT);
        stage_free(s);
    }
}

/* Half of the hosts are dead; nobody else waits for them longer than it takes to call them late. */
static void test_dead_hosts_hold_nobody_up(void) {
    struct stage *s = stage_new(400, HOP_ADAPTIVE, 0);
    for (uint32_t i = 0; i < 400; i++)
        s->nature[i] = i < 100 || i % 2 == 0 ? DEAD : FINE;
    play(s);
    CHECK(s->last_run < 4 * s->config.late_ns);
    stage_free(s);
}

static void test_a_silent_helper_is_lost(void) {
    struct stage *s = stage_new(1, HOP_ADAPTIVE, 0);
    s->config.silent_ns = 15 * NS_PER_S;
    s->command_ns = 60 * NS_PER_S;
    play(s);
    CHECK(s->told[0] == 1 && s->why[0] == HOP_LOST && s->now >= 15 * NS_PER_S);
    stage_free(s);
}

/* Helpers die at any time. Every host is over once, in one way; what ran twice had been lost on its way. */
static void test_helpers_that_die(void) {
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct random r;
        random_init(&r, seed);
        uint32_t hosts = (uint32_t)random_between(&r, 1, 90),
                 k = (uint32_t)random_below(&r, SHAPES);
        struct stage *s = stage_new(hosts, shapes[k].shape, shapes[k].fanout);
        s->command_ns = random_below(&r, 2 * NS_PER_S);
        s->one_at_a_time = random_chance(&r, 1, 2);
        for (uint32_t i = 0; i < hosts; i++)
            s->nature[i] =
                random_chance(&r, 1, 8) ? (enum nature)random_below(&r, UNFIT + 1) : FINE;
        for (uint32_t i = 0; i < hosts; i++) {
            if (!random_chance(&r, 1, 6))
                continue;
            s->actors[i + 1].life = 0;
            later(s, random_below(&r, 3 * NS_PER_S), DIES, i + 1, 0, i);
            s->events[s->event_count - 1].life = 1; /* its first */
        }
        play(s);
        for (uint32_t i = 0; i < hosts; i++) {
            bool never = s->nature[i] == DEAD || s->nature[i] == REFUSES || s->nature[i] == UNFIT;
            CHECK(s->ends[i] + s->told[i] == 1);
            CHECK(!never || (s->runs[i] == 0 && s->told[i] == 1));
            CHECK(s->told[i] == 0 || never || s->why[i] == HOP_LOST ||
                  s->nature[i] == REFUSES_OTHERS);
        }
        stage_free(s);
    }
}

/* Three children where two were meant, as one was late; all have been released, then one is lost: somebody must reach what it was to
 * reach. */
static void test_more_children_than_meant(void) {
    struct stage *s = stage_new(6, HOP_ADAPTIVE, 2);
    actor_begin(s, 0, NOBODY, 0);
    struct hop *h = &s->actors[0].hop;
    for (uint32_t i = 0; i < 6; i++)
        CHECK(hop_take(h, i, 0));
    hop_share(h);
    struct hop_deed a = hop_next(h, 0), b = hop_next(h, 0);
    CHECK(a.kind == HOP_CONNECT && b.kind == HOP_CONNECT && hop_next(h, 0).kind == HOP_NOTHING);
    uint64_t late = 2 * s->config.late_ns;
    struct hop_deed c = hop_next(h, late);
    CHECK(c.kind == HOP_CONNECT);
    uint64_t now = late + 1;
    for (hop_greeted(h, b.child, now); hop_next(h, now).kind != HOP_NOTHING;)
        continue;
    for (hop_greeted(h, c.child, now); hop_next(h, now).kind != HOP_NOTHING;)
        continue;
    for (hop_greeted(h, a.child, now); hop_next(h, now).kind != HOP_NOTHING;)
        continue;
    uint32_t given = h->children[b.child].given;
    CHECK(given > 0 && h->children[b.child].released);
    hop_gone(h, b.child);
    uint32_t tried = 0;
    for (struct hop_deed d; (d = hop_next(h, now)).kind != HOP_NOTHING;)
        tried += d.kind == HOP_CONNECT;
    CHECK(tried > 0);
    stage_free(s);
}

static void test_excuse(void) {
    struct stage *s = stage_new(1, HOP_ADAPTIVE, 0);
    s->config.silent_ns = 20 * NS_PER_S;
    actor_begin(s, 0, NOBODY, 0);
    struct hop *h = &s->actors[0].hop;
    CHECK(hop_take(h, 0, 0));
    hop_share(h);
    struct hop_deed d = hop_next(h, 0);
    hop_greeted(h, d.child, 0);
    while (hop_next(h, 0).kind != HOP_NOTHING)
        continue;
    hop_excuse(h, 60 * NS_PER_S);
    CHECK(hop_next(h, 70 * NS_PER_S).kind == HOP_NOTHING);
    CHECK(hop_next(h, 80 * NS_PER_S).kind == HOP_DROP);
    stage_free(s);
}

static void test_what_cannot_be_is_refused(void) {
    struct stage *s = stage_new(4, HOP_FLAT, 0);
    actor_begin(s, 0, NOBODY, 0);
    struct hop *h = &s->actors[0].hop;
    CHECK(hop_take(h, 1, 0) && !hop_take(h, 1, 0) && !hop_take(h, 4, 0));
    hop_share(h);
    struct hop_deed d = hop_next(h, 0);
    CHECK(d.kind == HOP_CONNECT && d.host == 1);
    CHECK(!hop_over(h, d.child, 1) && !hop_reached(h, d.child, 1));
    hop_greeted(h, d.child, 0);
    bool final;
    CHECK(!hop_reached(h, d.child, 2) && !hop_over(h, d.child, 9));
    CHECK(!hop_returned(h, d.child, 1, HOP_LATE, &final) && !hop_over(h, d.child + 1, 1));
    CHECK(hop_over(h, d.child, 1) && !hop_over(h, d.child, 1) && hop_done(h));
    stage_free(s);
}

/* Three switches with 20 hosts each, their names mixed. */
static void test_hosts_behind_one_switch_stay_together(void) {
    struct stage *s = stage_new(60, HOP_ADAPTIVE, 0);
    s->config.at_once = 3;
    for (uint32_t i = 0; i < 60; i++)
        s->crate[i] = 1 + i % 3;
    play(s);
    CHECK(s->crossings <= 3);
    stage_free(s);
}

int main(void) {
    TEST(test_a_binomial_tree_takes_the_logarithm);
    TEST(test_a_kary_tree_takes_arity_times_depth);
    TEST(test_chain_and_flat);
    TEST(test_the_adaptive_tree_is_wide_where_it_can);
    TEST(test_hosts_that_cannot_be_reached_are_told_once);
    TEST(test_dead_hosts_hold_nobody_up);
    TEST(test_a_silent_helper_is_lost);
    TEST(test_helpers_that_die);
    TEST(test_more_children_than_meant);
    TEST(test_excuse);
    TEST(test_what_cannot_be_is_refused);
    TEST(test_hosts_behind_one_switch_stay_together);
    return tap_finish();
}
