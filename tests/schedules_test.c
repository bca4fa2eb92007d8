/* SPDX-License-Identifier: MIT */
/* What every schedule must be, with random machines and jobs, seen from outside the court.
 *
 *   all            no PE has two jobs in a slot, guests of alternative scheduling counted; no node that is down is
 *                  given away; every job runs once, on what it wants
 *   fcfs           starts in the order of the queue; the head does not fit
 *   conservative   what was promised to a job never becomes later
 *   easy           what was promised to the head never becomes later; whoever waits and fits would delay it
 *   gang           no PE idles in a slot that a waiting job fits in; every job has its own slot in each round
 *   windows        nodes that are reserved: nobody starts there who does not belong to them and would not be over before
 *                  they begin; who does starts nowhere else and at no other time, whatever the policy
 *
 * The promises are judged on machines where one PE is as good as another and estimates hold: elsewhere they depend
 * on what nobody can know. */
#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "sched/court.h"
#include "sched/policies.h"
#include "tap.h"

#ifdef STORM_SLOW
enum { SEEDS = 15 };
#else
enum { SEEDS = 150 };
#endif

enum { NODES = 24, JOBS = 120, SLOTS = 4, ROUNDS = 120, WINDOWS = 8 };

struct player {
    struct court_order order;
    uint64_t arrives, runs;
    uint32_t number;
    bool known, started, over;
    uint64_t start, promised;
    struct nodeset only, nodes;
    uint64_t words[2][8];
    uint32_t slot;
    uint64_t slots;
    uint64_t own_ticks, guest_ticks;
};

struct reservation {
    uint64_t from, to;
    struct nodeset nodes;
    uint64_t words[8];
};

struct play {
    struct random random;
    struct court *court;
    void *memory;
    uint32_t nodes, pes, slots;
    bool ends_hold;
    bool plain; /* one PE is as good as another, estimates hold, all nodes stay */
    bool up[NODES];
    struct player at[JOBS];
    uint32_t count;
    uint64_t now;
    uint32_t last_head;
    bool windows;  /* there are some, */
    bool guests;   /* with jobs that belong to them */
    bool surprise; /* some are made while jobs run */
    struct reservation booked[WINDOWS];
    uint32_t booked_count;
};

/* ---- drawing ---- */

static void draw_job(struct play *p, struct player *j, uint64_t id) {
    struct random *r = &p->random;
    struct court_order *o = &j->order;
    *j = (struct player){.promised = STORM_NEVER};
    nodeset_init(&j->only, p->nodes, j->words[0]);
    nodeset_init(&j->nodes, p->nodes, j->words[1]);
    j->arrives = random_below(r, 400);
    j->runs = random_between(r, 1, 60);
    *o = (struct court_order){.id = id, .ppn = 1};
    o->nodes = (uint32_t)random_between(r, 1, p->nodes);
    if (random_chance(r, 2, 3))
        o->nodes = 1 + o->nodes / 4;
    if (o->nodes > p->nodes)
        o->nodes = p->nodes;
    o->estimate = j->runs + (random_chance(r, 1, 4) ? 0 : random_below(r, 100));
    if (p->plain)
        return;
    o->ppn = (uint32_t)random_between(r, 1, p->pes);
    o->exclusive = random_chance(r, 1, 6);
    o->priority = (int32_t)random_below(r, 3);
    if (random_chance(r, 1, 8))
        o->estimate = STORM_NEVER;
    else if (random_chance(r, 1, 8))
        o->estimate = random_between(r, 1, 20); /* it may be too short */
    if (random_chance(r, 1, 6)) {
        for (uint32_t n = 0; n < p->nodes; n++)
            if (n < o->nodes || random_chance(r, 1, 2))
                nodeset_add(&j->only, n);
        o->only = &j->only;
    }
    if (random_chance(r, 1, 6))
        o->begin = j->arrives + random_below(r, 100);
}

static void set_up(struct play *p, uint32_t first, uint32_t last, bool up) {
    uint64_t words[8];
    struct nodeset set;
    nodeset_init(&set, p->nodes, words);
    nodeset_add_range(&set, first, last);
    for (uint32_t n = first; n <= last; n++)
        p->up[n] = up;
    court_set_usable(p->court, p->now, &set, up);
}

/* One that overlaps another is refused. */
static void draw_window(struct play *p) {
    struct random *r = &p->random;
    struct reservation *w = &p->booked[p->booked_count];
    uint32_t first = (uint32_t)random_below(r, p->nodes);
    nodeset_init(&w->nodes, p->nodes, w->words);
    nodeset_add_range(&w->nodes, first, (uint32_t)random_between(r, first, p->nodes - 1));
    w->from = p->now + random_below(r, 300);
    w->to = w->from + random_between(r, 1, 80);
    bool clash = false;
    for (uint32_t i = 0; i < p->booked_count; i++)
        clash = clash ||
                (p->booked[i].from < w->to && w->from < p->booked[i].to &&
                 p->booked[i].to > p->now && nodeset_intersects(&p->booked[i].nodes, &w->nodes));
    CHECK_EQ(court_window_add(p->court, p->now, p->booked_count + 1, w->from, w->to, &w->nodes),
             clash ? -EEXIST : 0);
    p->booked_count += !clash;
}

/* Some of the jobs belong to them, if they could ever run there. */
static void draw_windows(struct play *p) {
    for (uint32_t i = 0; i < WINDOWS / 2; i++)
        draw_window(p);
    for (uint32_t i = 0; p->guests && i < p->count; i++) {
        struct court_order *o = &p->at[i].order;
        uint32_t id = (uint32_t)random_below(&p->random, 2 * p->booked_count + 1);
        if (id == 0 || id > p->booked_count || o->nodes > nodeset_count(&p->booked[id - 1].nodes))
            continue;
        o->window = id;
        o->only = NULL;
    }
}

static void begin_with(struct play *p, const struct storm_policy *policy, uint64_t seed, bool plain,
                       bool windows) {
    struct arena a;
    memset(p, 0, sizeof *p);
    random_init(&p->random, seed);
    p->plain = plain;
    p->windows = windows;
    p->guests = windows && seed % 2 == 0;
    p->surprise = windows && seed % 3 == 0;
    p->nodes = (uint32_t)random_between(&p->random, 1, NODES);
    p->pes = plain ? 1 : (uint32_t)random_between(&p->random, 1, 4);
    p->slots = (uint32_t)random_between(&p->random, 1, SLOTS);
    p->count = (uint32_t)random_between(&p->random, 2, JOBS);
    struct court_config c = {.limits = {.nodes = p->nodes,
                                        .pes_max = p->pes,
                                        .jobs = JOBS,
                                        .slots = p->slots,
                                        .quantum = 5},
                             .ends_hold = plain && !(policy->flags & STORM_SLICED)};
    p->ends_hold = c.ends_hold;
    size_t bytes = court_bytes(&c);
    p->memory = malloc(bytes);
    memset(p->memory, 0xEE, bytes);
    arena_init(&a, p->memory, bytes);
    p->court = court_new(&c, policy, &a);
    p->last_head = COURT_NONE;
    for (uint32_t i = 0; i < p->count; i++)
        draw_job(p, &p->at[i], i + 1);
    set_up(p, 0, p->nodes - 1, true);
    if (windows)
        draw_windows(p);
}

static void begin(struct play *p, const struct storm_policy *policy, uint64_t seed, bool plain) {
    begin_with(p, policy, seed, plain, false);
}

/* ---- judging ---- */

/* When it is over at the latest, if it starts now. */
static uint64_t end_of(const struct play *p, const struct player *j) {
    uint64_t slots =
        court_policy(p->court)->flags & STORM_SLICED ? court_limits(p->court)->slots : 1;
    return j->order.estimate == STORM_NEVER ? STORM_NEVER : p->now + slots * j->order.estimate;
}

/* Is this node kept from it now? */
static bool is_kept(const struct play *p, const struct player *j, uint32_t n) {
    for (uint32_t i = 0; i < p->booked_count; i++) {
        const struct reservation *w = &p->booked[i];
        bool own = j->order.window == i + 1, has = nodeset_has(&w->nodes, n);
        if (own && (!has || p->now < w->from || p->now >= w->to))
            return true;
        if (!own && has && w->from < end_of(p, j) && w->to > p->now)
            return true;
    }
    return false;
}

static uint32_t each(const struct play *p, const struct player *j) {
    return j->order.exclusive ? p->pes : j->order.ppn;
}

/* It has its PEs, as far as a policy has to care: where estimates hold it has left when its own is used up. */
static bool holds(const struct play *p, const struct player *j) {
    bool spent = p->ends_hold && j->start + j->order.estimate <= p->now;
    return j->started && !j->over && !spent;
}

/* S1: every slot on its own, guests and all. */
static void check_pes(const struct play *p) {
    for (uint32_t s = 0; s < p->slots; s++) {
        uint32_t used[NODES] = {0}, own[NODES] = {0};
        for (uint32_t i = 0; i < p->count; i++) {
            const struct player *j = &p->at[i];
            if (!holds(p, j))
                continue;
            NODESET_EACH (n, &j->nodes) {
                if ((j->slots >> s) & 1)
                    used[n] += each(p, j);
                if (j->slot == s)
                    own[n] += each(p, j);
            }
        }
        bool local = (court_policy(p->court)->flags & STORM_UNCOORDINATED) != 0;
        for (uint32_t n = 0; n < p->nodes; n++)
            CHECK((local ? own[n] : used[n]) <= p->pes);
    }
}

/* Nodes that would do for it in this slot now. */
static uint32_t rooms(const struct play *p, const struct player *j, uint32_t slot) {
    uint32_t used[NODES] = {0}, count = 0;
    for (uint32_t i = 0; i < p->count; i++)
        if (holds(p, &p->at[i]) && p->at[i].slot == slot)
            NODESET_EACH (n, &p->at[i].nodes)
                used[n] += each(p, &p->at[i]);
    for (uint32_t n = 0; n < p->nodes; n++)
        count += !is_kept(p, j, n) && p->up[n] && used[n] + each(p, j) <= p->pes &&
                 (j->order.only == NULL || nodeset_has(&j->only, n));
    return count;
}

static bool waits(const struct play *p, const struct player *j) {
    return j->known && !j->started && !j->over && j->order.window == 0 &&
           (j->order.begin < p->now || j->order.begin <= j->arrives); /* its tick may be to come */
}

static void check_greedy(const struct play *p) {
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t s = 0; s < court_limits(p->court)->slots && waits(p, &p->at[i]); s++)
            CHECK(rooms(p, &p->at[i], s) < p->at[i].order.nodes);
}

static struct player *head_of(struct play *p) {
    uint32_t head = court_head(p->court);
    return head == COURT_NONE ? NULL : &p->at[court_job(p->court, head)->id - 1];
}

static void check_head_waits(struct play *p) {
    const struct player *head = head_of(p);
    if (head != NULL)
        CHECK(rooms(p, head, 0) < head->order.nodes);
}

/* Would the head, which fits at `shadow`, fit there still if this one started now? */
static bool delays(const struct play *p, const struct player *head, const struct player *j,
                   uint64_t shadow) {
    uint32_t left = p->nodes;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct player *r = &p->at[i];
        if (r->started && !r->over && r->start + r->order.estimate > shadow)
            left -= r->order.nodes;
    }
    return p->now + j->order.estimate > shadow && left < head->order.nodes + j->order.nodes;
}

static void check_easy(struct play *p) {
    struct player *head = head_of(p);
    if (head == NULL)
        return;
    uint64_t shadow = court_job(p->court, head->number)->reserved;
    if (p->last_head == head->number && !p->guests && !p->surprise)
        CHECK(shadow <= head->promised);
    p->last_head = head->number;
    head->promised = shadow;
    CHECK(shadow > p->now && shadow != STORM_NEVER);
    for (uint32_t i = 0; i < p->count; i++) {
        const struct player *j = &p->at[i];
        if (!p->windows && waits(p, j) && j != head && rooms(p, j, 0) >= j->order.nodes)
            CHECK(delays(p, head, j, shadow));
    }
}

static void check_promises(struct play *p) {
    for (uint32_t i = 0; i < p->count; i++) {
        struct player *j = &p->at[i];
        if (!waits(p, j))
            continue;
        uint64_t at = court_job(p->court, j->number)->reserved;
        CHECK(at <= j->promised);
        j->promised = at;
    }
}

static void judge(struct play *p) {
    const char *name = court_policy(p->court)->name;
    check_pes(p);
    CHECK(court_conserved(p->court));
    if (strcmp(name, "fcfs") == 0)
        check_head_waits(p);
    if (strncmp(name, "easy", 4) == 0 && p->plain) {
        check_head_waits(p);
        check_easy(p);
    }
    if (strcmp(name, "conservative") == 0 && p->plain && !p->windows)
        check_promises(p);
    if (strcmp(name, "gang") == 0 || strcmp(name, "local") == 0)
        check_greedy(p);
}

/* ---- playing ---- */

static void started(struct play *p, uint32_t number) {
    const struct storm_job *job = court_job(p->court, number);
    struct player *j = &p->at[job->id - 1];
    CHECK(j->known && !j->started && p->now >= j->order.begin);
    j->started = true;
    j->start = p->now;
    j->slot = job->slot;
    j->slots = job->slots;
    nodeset_copy(&j->nodes, court_nodes(p->court, number));
    CHECK_EQ(nodeset_count(&j->nodes), j->order.nodes);
    NODESET_EACH (n, &j->nodes)
        CHECK(!is_kept(p, j, n) && p->up[n] && (j->order.only == NULL || nodeset_has(&j->only, n)));
    if (p->plain && !p->windows && strcmp(court_policy(p->court)->name, "conservative") == 0)
        CHECK(p->now <= j->promised);
}

static void obey(struct play *p) {
    struct court_effect e;
    while (court_next(p->court, &e)) {
        CHECK(e.kind != COURT_FAULT);
        if (e.kind == COURT_START) {
            started(p, e.job);
        } else if (e.kind == COURT_SLOTS) {
            struct player *j = &p->at[court_job(p->court, e.job)->id - 1];
            j->slot = e.slot;
            j->slots = e.slots;
        }
    }
    judge(p);
}

/* Of what ends at this time the one that started first; NULL: nobody does. */
static struct player *ending(struct play *p, uint64_t *ret_at) {
    struct player *best = NULL;
    *ret_at = STORM_NEVER;
    for (uint32_t i = 0; i < p->count; i++) {
        struct player *j = &p->at[i];
        if (!j->started || j->over || j->start + j->runs >= *ret_at)
            continue;
        best = j;
        *ret_at = j->start + j->runs;
    }
    return best;
}

static struct player *arriving(struct play *p, uint64_t *ret_at) {
    struct player *best = NULL;
    *ret_at = STORM_NEVER;
    for (uint32_t i = 0; i < p->count; i++)
        if (!p->at[i].known && p->at[i].arrives < *ret_at) {
            best = &p->at[i];
            *ret_at = best->arrives;
        }
    return best;
}

static void flap(struct play *p) {
    uint32_t first = (uint32_t)random_below(&p->random, p->nodes);
    uint32_t last = (uint32_t)random_between(&p->random, first, p->nodes - 1);
    set_up(p, first, last, random_chance(&p->random, 1, 2));
    obey(p);
}

static void end(struct play *p, struct player *j) {
    court_end(p->court, p->now, j->number);
    j->over = true;
    obey(p);
}

/* All nodes are up again, so that everybody can run; but those whose window is over never will. */
static bool last_act(struct play *p) {
    for (uint32_t i = 0; i < p->count; i++)
        if (p->at[i].order.window != 0 && !p->at[i].started && !p->at[i].over) {
            end(p, &p->at[i]);
            return true;
        }
    for (uint32_t n = 0; n < p->nodes; n++)
        if (!p->up[n]) {
            set_up(p, 0, p->nodes - 1, true);
            obey(p);
            return true;
        }
    return false;
}

static bool step(struct play *p) {
    uint64_t arrives, ends, due = court_due(p->court);
    struct player *in = arriving(p, &arrives), *out = ending(p, &ends);
    if (in == NULL && out == NULL && due == STORM_NEVER)
        return last_act(p);
    if (!p->plain && random_chance(&p->random, 1, 12)) {
        flap(p);
        return true;
    }
    if (p->surprise && p->booked_count < WINDOWS && random_chance(&p->random, 1, 40)) {
        draw_window(p);
        obey(p);
        return true;
    }
    if (in != NULL && arrives <= ends && arrives <= due) {
        p->now = arrives;
        in->known = true;
        CHECK_EQ(court_arrive(p->court, p->now, &in->order, &in->number), 0);
        obey(p);
    } else if (out != NULL && ends <= due) {
        p->now = ends;
        end(p, out);
    } else {
        p->now = due;
        court_tick(p->court, due);
        obey(p);
    }
    return true;
}

static void play(const struct storm_policy *policy, uint64_t seed, bool plain, bool windows) {
    struct play p;
    int failed = tap_current_fail;
    begin_with(&p, policy, seed, plain, windows);
    while (step(&p))
        ;
    for (uint32_t i = 0; i < p.count; i++)
        CHECK(p.at[i].over); /* nobody is forgotten */
    free(p.memory);
    if (tap_current_fail && !failed)
        printf("# %s, seed %llu, %s%s\n", policy->name, (unsigned long long)seed,
               plain ? "plain" : "any machine", windows ? ", windows" : "");
}

static void test_plain_machines(void) {
    const struct storm_policy *policy;
    for (uint32_t i = 0; (policy = policies_at(i)) != NULL; i++)
        for (uint64_t seed = 1; seed <= SEEDS && !tap_current_fail; seed++)
            play(policy, seed, true, false);
}

static void test_any_machine(void) {
    const struct storm_policy *policy;
    for (uint32_t i = 0; (policy = policies_at(i)) != NULL; i++)
        for (uint64_t seed = 1; seed <= SEEDS && !tap_current_fail; seed++)
            play(policy, seed, false, false);
}

static void test_windows(void) {
    const struct storm_policy *policy;
    for (uint32_t i = 0; (policy = policies_at(i)) != NULL; i++)
        for (uint64_t seed = 1; seed <= SEEDS && !tap_current_fail; seed++)
            play(policy, seed, seed % 4 < 2, true);
}

/* Policies that take turns with each other: nobody is lost. */
static void test_policies_change(void) {
    for (uint64_t seed = 1; seed <= SEEDS && !tap_current_fail; seed++) {
        struct play p;
        begin(&p, &policy_gang, seed, false);
        while (step(&p))
            if (random_chance(&p.random, 1, 20)) {
                court_change(p.court, p.now, policies_at((uint32_t)random_below(&p.random, 7)),
                             1 + (uint32_t)random_below(&p.random, p.slots), 5);
                struct court_effect e;
                while (court_next(p.court, &e))
                    if (e.kind == COURT_START)
                        started(&p, e.job);
                for (uint32_t i = 0; i < p.count; i++)
                    if (p.at[i].started && !p.at[i].over) {
                        p.at[i].slot = court_job(p.court, p.at[i].number)->slot;
                        p.at[i].slots = court_job(p.court, p.at[i].number)->slots;
                    }
                check_pes(&p);
            }
        for (uint32_t i = 0; i < p.count; i++)
            CHECK(p.at[i].over);
        free(p.memory);
    }
}

/* ---- shares ---- */

/* All jobs stay; turns are taken for many rounds. */
static void rounds(uint64_t seed) {
    struct play p;
    uint64_t least = UINT64_MAX, most = 0;
    begin(&p, &policy_gang, seed, true);
    for (uint32_t i = 0; i < p.count; i++) {
        p.at[i].known = true;
        CHECK_EQ(court_arrive(p.court, 0, &p.at[i].order, &p.at[i].number), 0);
        obey(&p);
    }
    for (uint32_t t = 0; t < ROUNDS * court_rows(p.court); t++) {
        uint64_t due = court_due(p.court);
        if (due == STORM_NEVER)
            break;
        for (uint32_t i = 0; i < p.count; i++) {
            struct player *j = &p.at[i];
            if (j->started && j->slot == court_slot(p.court))
                j->own_ticks += due - p.now;
            else if (j->started && (j->slots >> court_slot(p.court)) & 1)
                j->guest_ticks += due - p.now;
        }
        p.now = due;
        court_tick(p.court, due);
        obey(&p);
    }
    for (uint32_t i = 0; i < p.count; i++) {
        if (!p.at[i].started || p.now == 0)
            continue;
        least = p.at[i].own_ticks < least ? p.at[i].own_ticks : least;
        most = p.at[i].own_ticks > most ? p.at[i].own_ticks : most;
        CHECK(p.at[i].own_ticks + p.at[i].guest_ticks <= p.now);
    }
    if (p.now > 0)
        CHECK(most > 0 && (most - least) * 50 <= most); /* within 2 per cent */
    free(p.memory);
}

static void test_equal_shares(void) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        rounds(seed);
}

int main(void) {
    TEST(test_plain_machines);
    TEST(test_any_machine);
    TEST(test_windows);
    TEST(test_policies_change);
    TEST(test_equal_shares);
    return tap_finish();
}
