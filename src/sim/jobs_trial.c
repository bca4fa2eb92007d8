/* SPDX-License-Identifier: MIT */
/* One run of a campaign of jobs: see jobs_trial.h. */
#include "sim/jobs_trial.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/units.h"
#include "sim/audit.h"
#include "sim/customer.h"
#include "sim/jobs_plan.h"

/* How long jobs and faults may take, and how long it may take until all is over then. */
#define PLAY_NS   (300 * NS_PER_S)
#define SETTLE_NS (900 * NS_PER_S)
#define LOG_NS    (3 * NS_PER_S)

enum { CLIENTS_MAX = 8, RESTARTS_MAX = 64, EVENTS_MAX = 20000000, RESERVATIONS = 3 };

struct restart {
    uint32_t who;
    uint64_t at;
};

struct jobs_trial {
    struct jobs_plan plan;
    struct hall *hall;
    struct book book;
    struct audit audit;
    struct verdict *verdict;
    struct customer *customers[CLIENTS_MAX];
    struct random random; /* of faults */
    uint32_t orders_left;
    bool closed; /* no more orders */
    uint32_t injected;
    uint64_t fault_at, log_at, heal_at;
    struct random books; /* of reservations */
    bool reserves;       /* there are some in this run */
    uint64_t reserve_at;
    const struct jobs_terms *terms;
    struct random whims; /* for policies */
    uint32_t changes;    /* of the policy, still to come */
    uint64_t change_at;
    struct random lurks; /* for ambushes */
    uint32_t ambushes;   /* still to come */
    bool launching;      /* the manager has just done something while a job was being started */
    uint64_t events;
    struct restart restarts[RESTARTS_MAX];
    uint32_t restart_count;
    FILE *trace;
};

static void note(struct jobs_trial *t, const char *what, uint32_t who, uint64_t ns) {
    if (t->trace != NULL)
        fprintf(t->trace, "%12.6f %s %" PRIu32 " %" PRIu64 " ms\n", (double)hall_now(t->hall) / 1e9,
                what, who, ns / NS_PER_MS);
}

/* ---- what the hall calls ---- */

static bool draw(void *context, uint32_t number, struct random *r, struct order *ret) {
    struct jobs_trial *t = context;
    if (t->orders_left == 0 || t->closed)
        return false;
    t->orders_left--;
    jobs_plan_order(&t->plan, number, r, ret);
    if (t->reserves && ret->kind != JOB_STEP && random_chance(&t->books, 1, 6))
        ret->reservation = 1 + (uint32_t)random_below(&t->books, RESERVATIONS);
    return true;
}

static struct machine make_client(void *context, struct hall *h, uint32_t k) {
    struct jobs_trial *t = context;
    uint64_t boots = t->hall == NULL ? 0 : world_boots(hall_world(h), hall_client(h, k));
    struct customer_config c = {.number = k,
                                .book = &t->book,
                                .nodes = t->plan.hall.nodes,
                                .pes = t->plan.hall.pes,
                                .universe = t->plan.hall.nodes + 1,
                                .seed = t->plan.hall.seed * 131 + k * 17 + boots,
                                .errands = t->plan.errands,
                                .pause_ns = t->plan.pause_ns,
                                .closed = &t->closed,
                                .draw = draw,
                                .context = t};
    customer_free(t->customers[k]);
    t->customers[k] = customer_new(&c);
    return customer_machine(t->customers[k]);
}

static void woke(void *context, struct hall *h, uint32_t node) {
    struct jobs_trial *t = context;
    (void)h;
    audit_woke(&t->audit, node);
}

static void observe(void *context, struct hall *h, uint32_t node) {
    struct jobs_trial *t = context;
    audit_step(&t->audit, node);
    const struct mm *m = t->ambushes > 0 ? hall_mm(h) : NULL;
    t->launching = node == hall_root(h) && m != NULL && mm_launching(m);
}

/* ---- faults ---- */

static void restart_later(struct jobs_trial *t, uint32_t who, uint64_t ns) {
    ASSERT(t->restart_count < RESTARTS_MAX);
    t->restarts[t->restart_count++] = (struct restart){.who = who, .at = hall_now(t->hall) + ns};
}

static void crash_by(struct jobs_trial *t, struct random *r, uint32_t who, uint64_t least_ms,
                     uint64_t most_ms) {
    uint64_t ns = random_between(r, least_ms, most_ms) * NS_PER_MS;
    if (!world_up(hall_world(t->hall), who))
        return;
    note(t, "crash", who, ns);
    t->audit.gone = t->audit.gone || (ns > 1500 * NS_PER_MS && who < hall_root(t->hall)) ||
                    (who > hall_root(t->hall) && who < hall_client(t->hall, 0));
    hall_crash(t->hall, who);
    restart_later(t, who, ns);
}

static void crash(struct jobs_trial *t, uint32_t who, uint64_t least_ms, uint64_t most_ms) {
    crash_by(t, &t->random, who, least_ms, most_ms);
}

static void pause(struct jobs_trial *t, uint32_t who, uint64_t most_ms) {
    uint64_t ns = random_between(&t->random, 1, most_ms) * NS_PER_MS;
    note(t, "pause", who, ns);
    t->audit.gone = t->audit.gone || who < hall_client(t->hall, 0);
    world_pause(hall_world(t->hall), who, hall_now(t->hall) + ns);
    if (t->heal_at < hall_now(t->hall) + ns)
        t->heal_at = hall_now(t->hall) + ns;
}

static uint32_t any_of_all(struct jobs_trial *t) {
    const struct hall_config *c = &t->plan.hall;
    return (uint32_t)random_below(&t->random, c->nodes * 2 + 1 + c->clients);
}

static void break_link(struct jobs_trial *t) {
    struct world *w = hall_world(t->hall);
    uint64_t kind = random_below(&t->random, 4);
    uint32_t who = any_of_all(t), pick = (uint32_t)random_below(&t->random, 64);
    uint64_t until = hall_now(t->hall) + random_between(&t->random, 1, 3000) * NS_PER_MS;
    uint8_t bytes[64];
    random_bytes(&t->random, bytes, sizeof bytes);
    t->audit.gone = t->audit.gone || kind == 1 || kind == 3;
    note(t, kind == 0 ? "reset" : kind == 1 ? "mute" : kind == 2 ? "duplicate" : "garbage", who, 0);
    if (kind == 0)
        world_reset(w, who, pick);
    else if (kind == 1)
        world_mute(w, who, pick, pick % 2 == 0, until);
    else if (kind == 2)
        world_duplicate(w, who, until);
    else
        world_garbage(w, who, pick, bytes, 1 + pick);
    if (t->heal_at < until)
        t->heal_at = until;
}

static void drain(struct jobs_trial *t, uint32_t node) {
    uint32_t k = (uint32_t)random_below(&t->random, t->plan.hall.clients);
    bool drained = random_chance(&t->random, 2, 3);
    note(t, drained ? "drain" : "undrain", node, 0);
    if (world_up(hall_world(t->hall), hall_client(t->hall, k)))
        customer_drain(t->customers[k], node, drained);
}

static void change_policy(struct jobs_trial *t) {
    struct hall_config c;
    uint32_t k = (uint32_t)random_below(&t->whims, t->plan.hall.clients);
    jobs_plan_policy(&t->plan, t->terms, &t->whims, &c);
    t->change_at = hall_now(t->hall) + random_below(&t->whims, 2 * t->plan.change_gap_ns) + 1;
    if (!world_up(hall_world(t->hall), hall_client(t->hall, k)))
        return;
    t->changes--;
    note(t, c.policy->name, k, c.quantum_ns);
    customer_policy(t->customers[k], c.policy->name, c.slots, (uint32_t)(c.quantum_ns / NS_PER_US));
}

static void inject(struct jobs_trial *t) {
    struct hall *h = t->hall;
    struct random *r = &t->random;
    uint32_t node = (uint32_t)random_below(r, t->plan.hall.nodes);
    uint32_t k = (uint32_t)random_below(r, t->plan.hall.clients);
    uint64_t kind = random_below(r, 100);
    uint32_t pick = (uint32_t)random_below(r, 1000);
    if (kind < 14) {
        crash(t, hall_root(h), 5, 4000);
    } else if (kind < 27) {
        crash(t, node, 5, random_chance(r, 1, 3) ? 40000 : 1500);
    } else if (kind < 39) {
        t->audit.lossy = true;
        crash(t, hall_launcher(h, node), 5, 2000);
    } else if (kind < 44) { /* the whole node */
        t->audit.lossy = true;
        crash(t, hall_launcher(h, node), 5, 8000);
        crash(t, node, 5, 8000);
    } else if (kind < 52) {
        crash(t, hall_client(h, k), 5, 5000);
    } else if (kind < 60) {
        note(t, "kill", node, 0);
        hall_kill(h, node, pick, pick % 3 == 0 ? 15 : 9);
    } else if (kind < 66) {
        pause(t, node, random_chance(r, 1, 2) ? 35000 : 2000);
    } else if (kind < 70) {
        pause(t, hall_launcher(h, node), 2000);
    } else if (kind < 75) {
        pause(t, hall_root(h), 5000);
    } else if (kind < 79) {
        t->audit.lossy = true; /* if it is cut off at the same time */
        pause(t, hall_client(h, k), 40000);
    } else if (kind < 92) {
        break_link(t);
    } else if (kind < 96) {
        uint64_t ns = random_between(r, 1, 4000) * NS_PER_MS;
        note(t, "full disk", hall_root(h), ns);
        world_fill_disk(hall_world(h), hall_root(h), hall_now(h) + ns);
        if (t->heal_at < hall_now(h) + ns)
            t->heal_at = hall_now(h) + ns;
    } else {
        drain(t, node);
    }
}

/* Somebody reserves nodes, from soon on and not for long, or takes that back. Most of it is refused or over soon. */
static void reserve(struct jobs_trial *t) {
    struct random *r = &t->books;
    uint32_t k = (uint32_t)random_below(r, t->plan.hall.clients);
    uint32_t number = 1 + (uint32_t)random_below(r, RESERVATIONS);
    uint32_t first = (uint32_t)random_below(r, t->plan.hall.nodes);
    uint32_t last = (uint32_t)random_between(r, first, t->plan.hall.nodes - 1);
    uint64_t from = hall_now(t->hall) + random_below(r, 4000) * NS_PER_MS;
    uint64_t to = from + random_between(r, 100, 6000) * NS_PER_MS;
    bool back = random_chance(r, 1, 4);
    t->reserve_at = hall_now(t->hall) + random_below(r, 5000) * NS_PER_MS + 1;
    note(t, back ? "unreserve" : "reserve", first, to - from);
    if (!t->closed && world_up(hall_world(t->hall), hall_client(t->hall, k)))
        customer_reserve(t->customers[k], number, first, last, from, back ? 0 : to);
}

/* The manager and those who have heard of a launch, or not yet, die while it is under way: so soon after each
 * other that chance alone would hardly ever find it. */
static void ambush(struct jobs_trial *t) {
    struct random *r = &t->lurks;
    uint32_t node = (uint32_t)random_below(r, t->plan.hall.nodes);
    uint64_t wait = random_below(r, 4 * t->plan.hall.link.latency_ns);
    bool both = random_chance(r, 2, 3), first = random_chance(r, 1, 2);
    t->launching = false;
    if (!random_chance(r, 1, 6))
        return;
    t->ambushes--;
    hall_run_until(t->hall, hall_now(t->hall) + wait);
    if (both && first)
        crash_by(t, r, node, 1, 300);
    hall_run_until(t->hall, hall_now(t->hall) + wait / 4);
    crash_by(t, r, hall_root(t->hall), 1, 300);
    if (both && !first)
        crash_by(t, r, node, 1, 300);
}

/* ---- time ---- */

static void restart_due(struct jobs_trial *t) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->restart_count; i++) {
        struct restart r = t->restarts[i];
        if (r.at > hall_now(t->hall)) {
            t->restarts[kept++] = r;
            continue;
        }
        note(t, "restart", r.who, 0);
        hall_boot(t->hall, r.who);
    }
    t->restart_count = kept;
}

static uint64_t next_duty(const struct jobs_trial *t) {
    uint64_t next = t->log_at;
    if (t->injected < t->plan.faults && t->fault_at < next)
        next = t->fault_at;
    if (t->reserves && !t->closed && t->reserve_at < next)
        next = t->reserve_at;
    if (t->changes > 0 && t->change_at < next)
        next = t->change_at;
    for (uint32_t i = 0; i < t->restart_count; i++)
        if (t->restarts[i].at < next)
            next = t->restarts[i].at;
    return next;
}

static void do_duties(struct jobs_trial *t) {
    uint64_t now = hall_now(t->hall);
    restart_due(t);
    if (t->injected < t->plan.faults && now >= t->fault_at) {
        t->injected++;
        t->fault_at = now + random_below(&t->random, 2 * t->plan.fault_gap_ns) + 1;
        inject(t);
    }
    if (t->reserves && !t->closed && now >= t->reserve_at)
        reserve(t);
    if (t->changes > 0 && now >= t->change_at)
        change_policy(t);
    if (now < t->log_at)
        return;
    if (t->closed && now > t->heal_at)
        audit_turns(&t->audit);
    t->log_at = audit_whole(&t->audit) ? now + LOG_NS : now + NS_PER_S / 20;
}

/* Runs until `done` holds; false if time or events run out before. */
static bool run_stage(struct jobs_trial *t, uint64_t until, bool (*done)(struct jobs_trial *)) {
    while (t->events < EVENTS_MAX && t->verdict->count < VERDICT_LINES) {
        uint64_t next = next_duty(t);
        if (next > until)
            next = until;
        while (t->events < EVENTS_MAX && !t->launching && hall_step(t->hall, next))
            t->events++;
        if (t->launching && t->ambushes > 0 && t->restart_count + 2 < RESTARTS_MAX) {
            ambush(t);
            continue;
        }
        hall_run_until(t->hall, next);
        if (hall_now(t->hall) >= until)
            return false;
        do_duties(t);
        if (done(t))
            return true;
    }
    return false;
}

static bool played(struct jobs_trial *t) {
    if (t->injected < t->plan.faults || t->orders_left > 0 || t->restart_count > 0)
        return false;
    for (uint32_t k = 0; k < t->plan.hall.clients; k++)
        if (!customer_idle(t->customers[k]))
            return false;
    return true;
}

static bool over(struct jobs_trial *t) {
    if (t->restart_count > 0 || hall_now(t->hall) < t->heal_at || !audit_done(&t->audit))
        return false;
    for (uint32_t k = 0; k < t->plan.hall.clients; k++)
        if (!customer_idle(t->customers[k]))
            return false;
    return true;
}

/* Nothing stands in the way any more. */
static void heal(struct jobs_trial *t) {
    t->closed = true;
    t->changes = 0;
    if (t->heal_at < hall_now(t->hall))
        t->heal_at = hall_now(t->hall);
    t->plan.faults = t->injected;
    t->ambushes = 0;
    t->launching = false;
    for (uint32_t i = 0; i < t->restart_count; i++)
        t->restarts[i].at = hall_now(t->hall);
    restart_due(t);
    for (uint32_t n = 0; n < t->plan.hall.nodes; n++)
        customer_drain(t->customers[0], n, false);
    for (uint32_t i = 0; i < t->book.count; i++) {
        const struct order *o = &t->book.orders[i];
        if (o->job != 0 && o->abandoned && (o->kind == JOB_BATCH || (o->flags & JOB_DETACHED) != 0))
            customer_act(t->customers[0], (int32_t)i, VERB_RESUME, 0);
    }
}

static void report_unsettled(struct jobs_trial *t) {
    const struct mm *m = hall_mm(t->hall);
    struct mm_job j;
    struct mm_counts c = {0};
    if (m == NULL)
        return;
    mm_counts(m, &c);
    verdict_add(t->verdict, "converge", "%" PRIu32 " queued, %" PRIu32 " nodes of %" PRIu32 " up",
                c.queued, c.nodes_up, t->plan.hall.nodes);
    for (uint32_t id = 1; id < mm_next_job(m); id++)
        if (mm_job(m, id, &j) && !j.settled) {
            char on[60] = "", waits[60] = "", why[100] = "";
            mm_why(m, id, why, sizeof why);
            if (j.nodes != NULL) {
                nodeset_format(j.nodes, "", on, sizeof on);
                nodeset_format(j.waiting, "", waits, sizeof waits);
            }
            verdict_add(t->verdict, "converge",
                        "job %" PRIu32 " kind %d is %s, attempt %u, phase %u, reason %u, on %s,"
                        " waits for %s, %" PRIu32 " live; %s",
                        id, j.kind, state_name(j.state), j.attempt, j.phase, j.reason, on, waits,
                        deeds_alive(hall_deeds(t->hall), id), why);
        }
    for (uint32_t k = 0; k < t->plan.hall.clients; k++)
        if (!customer_idle(t->customers[k]))
            verdict_add(t->verdict, "converge", "customer %" PRIu32 " still waits", k);
}

static void play(struct jobs_trial *t) {
    hall_boot_all(t->hall);
    run_stage(t, PLAY_NS, played);
    heal(t);
    if (t->verdict->count > 0)
        return;
    if (!run_stage(t, hall_now(t->hall) + SETTLE_NS, over)) {
        verdict_add(t->verdict, "converge", "not over %d s after the last fault",
                    (int)(SETTLE_NS / NS_PER_S));
        report_unsettled(t);
        return;
    }
    audit_whole(&t->audit);
    audit_final(&t->audit);
}

/* ---- the whole ---- */

static void print_orders(const struct jobs_trial *t) {
    for (uint32_t i = 0; i < t->book.count; i++) {
        const struct order *o = &t->book.orders[i];
        fprintf(t->trace,
                "order %" PRIu32 " customer %" PRIu32 " kind %d flags %" PRIu32 " size %" PRIu32
                ":%" PRIu32 ":%" PRIu32 " x%" PRIu32 " %s",
                i, o->customer, o->kind, o->flags, o->nodes, o->ppn, o->procs, o->count,
                o->program);
        for (uint32_t at = 0; at < o->words_len; at++)
            fputc(o->words[at] ? o->words[at] : ' ', t->trace);
        fprintf(t->trace, ": asked %.3f job %" PRIu32 "%s%s", (double)o->asked_at / 1e9, o->job,
                o->killed ? " killed" : "", o->abandoned ? " abandoned" : "");
        if (o->received != o->ends[0].output)
            fprintf(t->trace, " (%" PRIu64 " bytes of %" PRIu64 ")", o->received,
                    o->ends[0].output);
        for (uint32_t k = 0; k < o->count; k++)
            fprintf(t->trace, " %s/%" PRIu32,
                    o->ends[k].settled ? state_name((enum job_state)o->ends[k].state) : "-",
                    o->ends[k].status);
        fputc('\n', t->trace);
    }
}

static void sum_up(const struct jobs_trial *t, struct trial_result *ret) {
    ret->hash = world_hash(hall_world(t->hall));
    ret->nodes = t->plan.hall.nodes;
    ret->faults = t->injected;
    ret->steps = world_counts(hall_world(t->hall))->steps;
    ret->time_ns = hall_now(t->hall);
    for (uint32_t i = 0; i < t->book.count; i++) {
        const struct order *o = &t->book.orders[i];
        ret->asked += o->count;
        for (uint32_t k = 0; k < o->count; k++)
            ret->done += o->ends[k].settled && o->ends[k].state == STATE_DONE;
    }
    for (uint32_t i = 0; i < 2 * t->plan.hall.nodes + 1 + t->plan.hall.clients; i++)
        ret->lives += world_boots(hall_world(t->hall), i);
}

void jobs_trial_run(uint64_t seed, const struct jobs_terms *terms, struct trial_result *ret,
                    FILE *trace) {
    struct jobs_trial t = {.verdict = &ret->verdict, .trace = trace, .terms = terms};
    *ret = (struct trial_result){.seed = seed};
    jobs_plan_draw(&t.plan, seed, terms);
    random_init(&t.random, seed ^ 0x6661756C74);
    t.book.verdict = &ret->verdict;
    t.orders_left = t.plan.orders;
    t.log_at = LOG_NS;
    t.fault_at = 2 * NS_PER_S + random_below(&t.random, 2 * t.plan.fault_gap_ns);
    t.ambushes = t.plan.ambushes;
    random_init(&t.lurks, seed ^ 0x6C75726B);
    random_init(&t.books, seed ^ 0x626F6F6B);
    t.reserves = random_chance(&t.books, 1, 2);
    t.reserve_at = NS_PER_S;
    t.changes = t.plan.changes;
    t.change_at = t.plan.change_gap_ns;
    random_init(&t.whims, seed ^ 0x7768696D);
    t.plan.hall.client = make_client;
    t.plan.hall.woke = woke;
    t.plan.hall.observe = observe;
    t.plan.hall.context = &t;
    t.hall = hall_new(&t.plan.hall);
    ASSERT(t.hall != NULL);
    audit_init(&t.audit, t.hall, &t.book, &ret->verdict);
    t.audit.faultless = t.plan.faults == 0 && t.plan.ambushes == 0;
    play(&t);
    sum_up(&t, ret);
    if (trace != NULL)
        print_orders(&t);
    for (uint32_t k = 0; k < CLIENTS_MAX; k++)
        customer_free(t.customers[k]);
    hall_free(t.hall);
    audit_fini(&t.audit);
    book_fini(&t.book);
}
