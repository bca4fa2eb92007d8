/* SPDX-License-Identifier: MIT */
/* Jobs on a simulated cluster: the machine manager, node managers and launchers as they are, processes and
 * customers as told.
 *
 * Every play is watched by the auditor (sim/audit.h) from the first step to the last; at its end everything
 * must be over and accounted for. */
#include <string.h>

#include "base/units.h"
#include "machine/record.h"
#include "sched/policies.h"
#include "sim/audit.h"
#include "sim/customer.h"
#include "tap.h"

enum { CUSTOMERS = 2, UNIVERSE_MAX = 64 };

struct play {
    struct hall_config config;
    struct hall *hall;
    struct book book;
    struct verdict verdict;
    struct audit audit;
    struct customer *customers[CUSTOMERS];
    bool closed;
    uint32_t ends; /* messages of that kind that the root got */
};

/* ---- the stage ---- */

static struct machine make_client(void *context, struct hall *h, uint32_t k) {
    struct play *p = context;
    (void)h;
    struct customer_config c = {.number = k,
                                .book = &p->book,
                                .nodes = p->config.nodes,
                                .pes = p->config.pes,
                                .universe = p->config.nodes + 1,
                                .seed = k + 1,
                                .errands = 4,
                                .closed = &p->closed};
    customer_free(p->customers[k]);
    p->customers[k] = customer_new(&c);
    return customer_machine(p->customers[k]);
}

static void observe(void *context, struct hall *h, uint32_t node) {
    struct play *p = context;
    (void)h;
    audit_step(&p->audit, node);
}

/* `send_ns`: of a processor for each message. */
static void begin_with(struct play *p, uint32_t nodes, uint32_t pes, uint32_t arity,
                       uint64_t send_ns, const struct storm_policy *policy) {
    *p = (struct play){.config = {.nodes = nodes,
                                  .pes = pes,
                                  .clients = CUSTOMERS,
                                  .tree = {.shape = SHAPE_KARY, .arity = arity, .nodes = nodes},
                                  .link = {.latency_ns = 50 * NS_PER_US,
                                           .cpu_receive_ns = 2000,
                                           .cpu_send_ns = send_ns,
                                           .connect_ns = 150 * NS_PER_US,
                                           .durable_ns = NS_PER_MS},
                                  .period_ns = NS_PER_S,
                                  .seed = 7,
                                  .policy = policy,
                                  .client = make_client,
                                  .observe = observe}};
    p->config.context = p;
    p->book.verdict = &p->verdict;
    p->hall = hall_new(&p->config);
    audit_init(&p->audit, p->hall, &p->book, &p->verdict);
    p->audit.gone = true; /* plays know whether */
    hall_boot_all(p->hall);
    hall_run_until(p->hall, NS_PER_S);
}

static void begin_slow(struct play *p, uint32_t nodes, uint32_t pes, uint32_t arity,
                       uint64_t send_ns) {
    begin_with(p, nodes, pes, arity, send_ns, NULL);
}

static void begin(struct play *p, uint32_t nodes, uint32_t pes, uint32_t arity) {
    begin_slow(p, nodes, pes, arity, NS_PER_US);
}

static uint64_t now(const struct play *p) {
    return hall_now(p->hall);
}

static void pass(struct play *p, uint64_t ns) {
    hall_run_until(p->hall, now(p) + ns);
}

/* Everything must be over in time, and as it should be. */
static void finish(struct play *p) {
    uint64_t until = now(p) + 120 * NS_PER_S;
    while (now(p) < until && !audit_done(&p->audit))
        pass(p, NS_PER_S / 4);
    CHECK(audit_done(&p->audit));
    pass(p, NS_PER_S);
    CHECK(audit_whole(&p->audit));
    audit_final(&p->audit);
    CHECK_EQ(p->verdict.count, 0);
    verdict_print(&p->verdict, VERDICT_LINES, stderr);
    for (uint32_t k = 0; k < CUSTOMERS; k++)
        customer_free(p->customers[k]);
    hall_free(p->hall);
    audit_fini(&p->audit);
    book_fini(&p->book);
}

/* ---- orders ---- */

static struct order order_of(enum job_kind kind, uint32_t nodes, uint32_t ppn, const char *text) {
    static uint64_t requests;
    struct order o = {.request = {++requests, 1},
                      .kind = kind,
                      .nodes = nodes,
                      .ppn = ppn,
                      .procs = nodes * ppn,
                      .count = 1,
                      .around = NO_ORDER,
                      .on = -1,
                      .exclude = -1,
                      .program = "/actor"};
    snprintf(o.words, sizeof o.words, "actor%s%s", *text ? " " : "", text);
    o.words_len = (uint32_t)strlen(o.words) + 1;
    for (char *at = o.words; *at != '\0'; at++)
        *at = *at == ' ' ? '\0' : *at; /* strings follow each other */
    return o;
}

static int32_t ask(struct play *p, struct order o) {
    return customer_order(p->customers[0], &o);
}

static int32_t ask_run(struct play *p, uint32_t nodes, uint32_t ppn, const char *text) {
    return ask(p, order_of(JOB_RUN, nodes, ppn, text));
}

static const struct order *got(const struct play *p, int32_t order) {
    return &p->book.orders[order];
}

static bool settled(const struct play *p, int32_t order) {
    const struct order *o = got(p, order);
    for (uint32_t k = 0; k < o->count; k++)
        if (!o->ends[k].settled)
            return false;
    return o->job != 0;
}

/* Waits for the end; how long that took from now on, in ns. */
static uint64_t wait_end(struct play *p, int32_t order, uint64_t ns) {
    uint64_t from = now(p);
    while (!settled(p, order) && now(p) < from + ns)
        pass(p, 10 * NS_PER_MS);
    CHECK(settled(p, order));
    return now(p) - from;
}

static bool is_state(const struct play *p, int32_t order, enum job_state state) {
    struct mm_job j;
    const struct mm *m = hall_mm(p->hall);
    return m != NULL && got(p, order)->job != 0 && mm_job(m, got(p, order)->job, &j) &&
           j.state == state;
}

static void wait_state(struct play *p, int32_t order, enum job_state state) {
    uint64_t until = now(p) + 20 * NS_PER_S;
    while (!is_state(p, order, state) && now(p) < until)
        pass(p, 5 * NS_PER_MS);
    CHECK(is_state(p, order, state));
}

static void check_end(const struct play *p, int32_t order, enum job_state state, uint32_t status) {
    for (uint32_t k = 0; k < got(p, order)->count; k++) {
        CHECK_STR(state_name((enum job_state)got(p, order)->ends[k].state), state_name(state));
        CHECK_EQ(got(p, order)->ends[k].status, status);
    }
}

static void restart(struct play *p, uint32_t who, uint64_t after) {
    hall_crash(p->hall, who);
    pass(p, after);
    hall_boot(p->hall, who);
}

/* ---- start and end ---- */

static void count_ends(void *context, struct bytes record) {
    struct play *p = context;
    uint64_t storage[2][UNIVERSE_MAX];
    struct nodeset sets[2];
    struct record_scratch scratch;
    struct input in;
    union message m;
    enum layer layer;
    size_t used;
    record_scratch_init(&scratch, p->config.nodes + 1, storage[0]);
    if (record_decode(record, &scratch, &layer, &in, &used) < 0 || in.kind != INPUT_MESSAGE ||
        in.message.type != MESSAGE_MAIL)
        return;
    nodeset_init(&sets[0], p->config.nodes + 1, storage[0]);
    nodeset_init(&sets[1], p->config.nodes + 1, storage[1]);
    if (message_decode(MESSAGE_MAIL, in.message.body, sets, &m) == 0)
        p->ends += m.mail.type == MESSAGE_ENDS;
}

static void test_all_nodes_and_a_clean_end(void) {
    struct play p;
    begin(&p, 40, 2, 4);
    int32_t o = ask_run(&p, 40, 2, "run 300ms");
    wait_state(&p, o, STATE_RUNNING);
    pass(&p, 50 * NS_PER_MS);
    const struct run_deeds *r = deeds_find(hall_deeds(p.hall), run_of(got(&p, o)->job, 1));
    CHECK(r != NULL && r->alive == 80);
    world_record(hall_world(p.hall), hall_root(p.hall), count_ends, &p);
    CHECK(wait_end(&p, o, NS_PER_S) < 600 * NS_PER_MS);
    check_end(&p, o, STATE_DONE, 0);
    CHECK(p.ends >= 1 && p.ends <= 4); /* as many as the root has children */
    world_record(hall_world(p.hall), hall_root(p.hall), NULL, NULL);
    finish(&p);
}

static void test_output_and_input(void) {
    struct play p;
    begin(&p, 3, 2, 2);
    int32_t large = ask_run(&p, 3, 2, "write 400000 error 1000 run 10ms write 50000 exit 3");
    struct order copy = order_of(JOB_RUN, 1, 1, "cat");
    copy.typed = 300000;
    int32_t cat = ask(&p, copy);
    wait_end(&p, large, 30 * NS_PER_S);
    wait_end(&p, cat, 30 * NS_PER_S);
    check_end(&p, large, STATE_FAILED, 3);
    check_end(&p, cat, STATE_DONE, 0);
    finish(&p);
}

static void test_a_program_that_is_missing_on_one_node(void) {
    struct play p;
    begin(&p, 12, 1, 3);
    struct order o = order_of(JOB_RUN, 12, 1, "hang");
    o.program = "/none-on-1";
    int32_t n = ask(&p, o);
    CHECK(wait_end(&p, n, 5 * NS_PER_S) < 2 * NS_PER_S);
    check_end(&p, n, STATE_FAILED, 127);
    CHECK_EQ(got(&p, n)->ends[0].cause, CAUSE_FAILED);
    CHECK_EQ(got(&p, n)->ends[0].node, 1);
    finish(&p);
}

static void test_a_process_that_dies_ends_its_job(void) {
    struct play p;
    begin(&p, 4, 2, 2);
    int32_t soft = ask_run(&p, 2, 2, "rank 2 signal 11 hang");
    int32_t hard = ask_run(&p, 2, 2, "ignore-term rank 0 signal 6 hang");
    uint64_t took = wait_end(&p, soft, 20 * NS_PER_S);
    CHECK(took > 5 * NS_PER_S && took < 6500 * NS_PER_MS);
    took += wait_end(&p, hard, 20 * NS_PER_S);
    CHECK(took > 10 * NS_PER_S && took < 11500 * NS_PER_MS);
    check_end(&p, soft, STATE_FAILED, 128 + 11);
    check_end(&p, hard, STATE_FAILED, 128 + 6);
    finish(&p);
}

static void test_a_bad_status(void) {
    struct play p;
    begin(&p, 2, 2, 2);
    int32_t goes_on = ask_run(&p, 1, 2, "rank 1 exit 4 run 2s");
    struct order o = order_of(JOB_RUN, 1, 2, "rank 1 exit 4 hang");
    o.flags = JOB_BAD_EXIT;
    int32_t ends = ask(&p, o);
    CHECK(wait_end(&p, goes_on, 5 * NS_PER_S) >= 2 * NS_PER_S);
    wait_end(&p, ends, 20 * NS_PER_S);
    check_end(&p, goes_on, STATE_FAILED, 4);
    check_end(&p, ends, STATE_FAILED, 4);
    finish(&p);
}

static void test_a_time_limit(void) {
    struct play p;
    begin(&p, 3, 1, 2);
    struct order o = order_of(JOB_RUN, 3, 1, "hang");
    o.limit_ns = 2 * NS_PER_S;
    int32_t n = ask(&p, o);
    uint64_t took = wait_end(&p, n, 10 * NS_PER_S);
    CHECK(took > 2 * NS_PER_S && took < 3 * NS_PER_S);
    check_end(&p, n, STATE_TIMEOUT, 124);
    finish(&p);
}

static void test_kill_and_what_was_left_behind(void) {
    struct play p;
    begin(&p, 3, 2, 2);
    int32_t hangs = ask_run(&p, 3, 1, "ignore-term fork hang");
    int32_t away = ask_run(&p, 3, 1, "fork-away hang");
    wait_end(&p, away, 5 * NS_PER_S); /* who runs away is found */
    wait_state(&p, hangs, STATE_RUNNING);
    customer_act(p.customers[0], hangs, VERB_KILL, 0);
    CHECK(wait_end(&p, hangs, 5 * NS_PER_S) < NS_PER_S);
    check_end(&p, away, STATE_DONE, 0);
    check_end(&p, hangs, STATE_KILLED, 128 + 9);
    finish(&p);
}

/* One that there is not is refused, and nobody gets it. */
static void test_a_signal_to_some(void) {
    struct play p;
    begin(&p, 3, 2, 2);
    int32_t n = ask_run(&p, 3, 2, "hang");
    wait_state(&p, n, STATE_RUNNING);
    customer_signal(p.customers[0], n, 10, "0,6");
    pass(&p, 8 * NS_PER_S);
    CHECK(is_state(&p, n, STATE_RUNNING));
    customer_signal(p.customers[0], n, 10, "1,4-5");
    uint64_t took = wait_end(&p, n, 20 * NS_PER_S); /* the others are ended by us, later */
    CHECK(took > 5 * NS_PER_S && took < 6500 * NS_PER_MS);
    check_end(&p, n, STATE_FAILED, 128 + 10);
    finish(&p);
}

static void test_suspended_and_resumed(void) {
    struct play p;
    begin(&p, 3, 1, 2);
    int32_t n = ask_run(&p, 3, 1, "run 2s");
    wait_state(&p, n, STATE_RUNNING);
    customer_act(p.customers[0], n, VERB_SUSPEND, 0);
    wait_state(&p, n, STATE_SUSPENDED);
    restart(&p, hall_root(p.hall), NS_PER_S);
    restart(&p, 1, NS_PER_S);
    pass(&p, 5 * NS_PER_S);
    CHECK(is_state(&p, n, STATE_SUSPENDED));
    customer_act(p.customers[0], n, VERB_RESUME, 0);
    wait_end(&p, n, 5 * NS_PER_S);
    check_end(&p, n, STATE_DONE, 0);
    finish(&p);
}

/* ---- who dies ---- */

/* At every moment of its way. */
static void test_the_manager_dies_on_the_way(void) {
    for (uint64_t at = 0; at < 40; at++) {
        struct play p;
        begin(&p, 5, 1, 2);
        int32_t n = ask_run(&p, 5, 1, "run 20ms");
        pass(&p, at * 250 * NS_PER_US);
        restart(&p, hall_root(p.hall), 500 * NS_PER_MS);
        wait_end(&p, n, 30 * NS_PER_S);
        check_end(&p, n, STATE_DONE, 0);
        CHECK_EQ(hall_deeds(p.hall)->count, 1);
        finish(&p);
    }
}

/* The launcher has it, or it was written down: the next node manager takes it up, whatever it has missed. */
static void test_a_node_manager_dies_on_the_way(void) {
    for (uint64_t at = 0; at < 40; at++) {
        struct play p;
        begin(&p, 5, 1, 2);
        int32_t n = ask_run(&p, 5, 1, "run 2s");
        pass(&p, at * 200 * NS_PER_US);
        restart(&p, (uint32_t)at % 5, 100 * NS_PER_MS);
        wait_end(&p, n, 60 * NS_PER_S);
        check_end(&p, n, STATE_DONE, 0);
        finish(&p);
    }
}

/* Both know of it, or both did: what has begun is lost, and must not begin again. The auditor sees to that. */
static void test_a_node_manager_and_its_launcher_die_on_the_way(void) {
    for (uint64_t at = 0; at < 60; at++) {
        struct play p;
        begin(&p, 3, 1, 3);
        int32_t n = ask_run(&p, 3, 1, "run 2s");
        pass(&p, at * 150 * NS_PER_US);
        hall_crash(p.hall, hall_launcher(p.hall, 1));
        hall_crash(p.hall, 1);
        pass(&p, 10 * NS_PER_MS);
        hall_boot(p.hall, hall_launcher(p.hall, 1));
        pass(&p, at % 3 * NS_PER_MS);
        hall_boot(p.hall, 1);
        wait_end(&p, n, 60 * NS_PER_S);
        finish(&p);
    }
}

/* Nobody dies, so nothing is lost: the same launcher is told again what it has not heard. */
static void test_the_link_to_a_launcher_breaks_on_the_way(void) {
    for (uint64_t at = 0; at < 200; at++) {
        struct play p;
        begin(&p, 3, 1 + at % 2, 3);
        int32_t n = ask_run(&p, 3, 1, "run 300ms");
        pass(&p, at * 20 * NS_PER_US);
        world_reset(hall_world(p.hall), hall_launcher(p.hall, 1), 0);
        wait_end(&p, n, 60 * NS_PER_S);
        check_end(&p, n, STATE_DONE, 0);
        finish(&p);
    }
}

/* What it has agreed to is given up by all others meanwhile, and must not begin when it goes on: S2, S9. */
static void test_a_node_stands_still_on_the_way(void) {
    for (uint64_t at = 0; at < 20; at++) {
        struct play p;
        begin(&p, 3, 1, 3);
        int32_t n = ask_run(&p, 3, 1, "run 2s");
        pass(&p, NS_PER_MS + at * 20 * NS_PER_US);
        world_pause(hall_world(p.hall), 1, now(&p) + 60 * NS_PER_S);
        pass(&p, 60 * NS_PER_S); /* its lease is over long before */
        wait_end(&p, n, 60 * NS_PER_S);
        finish(&p);
    }
}

/* In the same launch, one shortly after the other; either may be back first. Some have heard of the launch by
 * then, and some have not. */
static void test_a_node_manager_and_the_manager_die_on_the_way(void) {
    for (uint64_t at = 0; at < 120; at++) {
        struct play p;
        begin_slow(&p, 10, 1, at % 2 ? 10 : 3, 100 * NS_PER_US);
        uint32_t both[] = {at % 3 ? 9 : (uint32_t)at % 10, hall_root(p.hall)}, first = at / 5 % 2;
        int32_t n = ask_run(&p, 10, 1, "run 500ms");
        pass(&p, 2 * NS_PER_MS + at * 50 * NS_PER_US);
        hall_crash(p.hall, both[0]);
        pass(&p, at % 7 * 60 * NS_PER_US);
        hall_crash(p.hall, both[1]);
        pass(&p, 50 * NS_PER_MS);
        hall_boot(p.hall, both[first]);
        pass(&p, 100 * NS_PER_MS);
        hall_boot(p.hall, both[1 - first]);
        wait_end(&p, n, 60 * NS_PER_S);
        check_end(&p, n, STATE_DONE, 0);
        finish(&p);
    }
}

static void test_the_manager_dies_while_a_job_runs(void) {
    struct play p;
    begin(&p, 6, 2, 2);
    int32_t n = ask_run(&p, 6, 2, "write 1000 run 8s write 1000");
    int32_t waits = ask_run(&p, 6, 2, "run 100ms");
    wait_state(&p, n, STATE_RUNNING);
    for (int i = 0; i < 3; i++) {
        pass(&p, NS_PER_S);
        restart(&p, hall_root(p.hall), NS_PER_S);
    }
    wait_end(&p, n, 30 * NS_PER_S);
    wait_end(&p, waits, 30 * NS_PER_S);
    check_end(&p, n, STATE_DONE, 0);
    check_end(&p, waits, STATE_DONE, 0);
    CHECK_EQ(hall_deeds(p.hall)->count, 2);
    finish(&p);
}

static void test_a_node_manager_dies_and_adopts(void) {
    struct play p;
    begin(&p, 6, 1, 2);
    int32_t n = ask_run(&p, 6, 1, "write 5000 run 5s write 5000");
    wait_state(&p, n, STATE_RUNNING);
    pass(&p, NS_PER_S);
    restart(&p, 0, 600 * NS_PER_MS);
    restart(&p, 4, 600 * NS_PER_MS);
    wait_end(&p, n, 30 * NS_PER_S);
    check_end(&p, n, STATE_DONE, 0);
    finish(&p);
}

enum { TALKERS = 12 };

/* Those who talked to the manager before (sim/caller.h), some did, still do. */
static void check_talk_goes_on(struct play *p) {
    uint64_t before[TALKERS], sum = 0;
    for (uint32_t i = 0; i < TALKERS; i++)
        sum += before[i] = sim_kernel_answers(hall_kernel(p->hall, i));
    CHECK(sum > 0);
    pass(p, 6 * NS_PER_S); /* what was lost is found */
    for (uint32_t i = 0; i < TALKERS; i++)
        CHECK(before[i] == 0 || sim_kernel_answers(hall_kernel(p->hall, i)) > before[i]);
}

static void test_programs_talk_whoever_dies(void) {
    struct play p;
    struct order o = order_of(JOB_RUN, 1, 1, "run 60s");
    begin(&p, o.count = TALKERS, 1, 2);
    int32_t n = ask(&p, o);
    pass(&p, 2 * NS_PER_S);
    restart(&p, hall_root(p.hall), NS_PER_S);
    check_talk_goes_on(&p);
    for (uint32_t i = 0; i < TALKERS; i++)
        restart(&p, i, 100 * NS_PER_MS);
    check_talk_goes_on(&p);
    wait_end(&p, n, 90 * NS_PER_S);
    finish(&p);
}

static void test_a_launcher_dies(void) {
    struct play p;
    begin(&p, 6, 1, 2);
    int32_t n = ask_run(&p, 6, 1, "ignore-term hang");
    wait_state(&p, n, STATE_RUNNING);
    pass(&p, NS_PER_S);
    restart(&p, hall_launcher(p.hall, 3), 300 * NS_PER_MS);
    CHECK(wait_end(&p, n, 30 * NS_PER_S) < 2 * NS_PER_S);
    check_end(&p, n, STATE_LOST, 125);
    CHECK_EQ(got(&p, n)->ends[0].node, 3);
    int32_t again = ask_run(&p, 6, 1, ""); /* the next one serves */
    wait_end(&p, again, 5 * NS_PER_S);
    check_end(&p, again, STATE_DONE, 0);
    finish(&p);
}

static void test_a_lost_job_starts_again_if_it_may(void) {
    struct play p;
    begin(&p, 4, 1, 2);
    struct order o = order_of(JOB_RUN, 4, 1, "write 300 run 2s");
    o.flags = JOB_REQUEUE;
    int32_t n = ask(&p, o);
    wait_state(&p, n, STATE_RUNNING);
    pass(&p, NS_PER_S);
    restart(&p, hall_launcher(p.hall, 2), 300 * NS_PER_MS);
    wait_end(&p, n, 30 * NS_PER_S);
    check_end(&p, n, STATE_DONE, 0);
    CHECK_EQ(got(&p, n)->ends[0].run, run_of(got(&p, n)->job, 2));
    finish(&p);
}

/* Nobody has heard of it but the manager, and that one dies, as do those who could tell the next. */
static void test_a_kill_that_was_answered_is_not_forgotten(void) {
    struct play p;
    begin(&p, 3, 1, 3);
    int32_t n = ask_run(&p, 3, 1, "ignore-term hang");
    wait_state(&p, n, STATE_RUNNING);
    for (uint32_t i = 0; i < 3; i++)
        world_pause(hall_world(p.hall), i, now(&p) + 60 * NS_PER_S);
    customer_act(p.customers[0], n, VERB_END, 15);
    pass(&p, NS_PER_S);
    hall_crash(p.hall, hall_root(p.hall));
    for (uint32_t i = 0; i < 3; i++)
        restart(&p, i, 0);
    restart(&p, hall_root(p.hall), NS_PER_S);
    wait_end(&p, n, 20 * NS_PER_S);
    check_end(&p, n, STATE_KILLED, 128 + 15);
    finish(&p);
}

static void test_an_allocation_that_was_to_end_ends(void) {
    struct play p;
    begin(&p, 3, 1, 3);
    int32_t room = ask(&p, order_of(JOB_ALLOC, 3, 1, ""));
    wait_state(&p, room, STATE_RUNNING);
    struct order step = order_of(JOB_STEP, 3, 1, "hang");
    step.around = room;
    int32_t n = ask(&p, step);
    wait_state(&p, n, STATE_RUNNING);
    for (uint32_t i = 0; i < 3; i++)
        world_pause(hall_world(p.hall), i, now(&p) + 60 * NS_PER_S);
    customer_act(p.customers[0], room, VERB_END, 0);
    pass(&p, NS_PER_S);
    hall_crash(p.hall, hall_root(p.hall));
    for (uint32_t i = 0; i < 3; i++)
        restart(&p, i, 0);
    restart(&p, hall_root(p.hall), NS_PER_S);
    wait_end(&p, room, 20 * NS_PER_S);
    check_end(&p, room, STATE_DONE, 0);
    CHECK_EQ(got(&p, n)->ends[0].state, STATE_KILLED);
    finish(&p);
}

/* It would be started again; but somebody wants it to end. */
static void test_a_lost_job_is_killed(void) {
    struct play p;
    begin(&p, 4, 1, 4);
    struct order o = order_of(JOB_RUN, 4, 1, "hang");
    o.flags = JOB_REQUEUE;
    int32_t n = ask(&p, o);
    wait_state(&p, n, STATE_RUNNING);
    world_pause(hall_world(p.hall), 1, now(&p) + 8 * NS_PER_S);
    restart(&p, hall_launcher(p.hall, 3), 300 * NS_PER_MS);
    wait_state(&p, n, STATE_ENDING);
    customer_act(p.customers[0], n, VERB_KILL, 0);
    wait_end(&p, n, 60 * NS_PER_S);
    CHECK_EQ(hall_deeds(p.hall)->count, 1);
    CHECK(got(&p, n)->ends[0].status != 0);
    finish(&p);
}

/* The command returns, the processors stay held until the node's lease is over. */
static void test_a_node_that_is_silent_for_longer_than_its_lease(void) {
    struct play p;
    struct mm_job j;
    begin(&p, 4, 1, 2);
    int32_t n = ask_run(&p, 4, 1, "hang");
    wait_state(&p, n, STATE_RUNNING);
    world_pause(hall_world(p.hall), 2, now(&p) + 60 * NS_PER_S);
    uint64_t took = wait_end(&p, n, 30 * NS_PER_S);
    CHECK(took > 5 * NS_PER_S && took < 10 * NS_PER_S);
    CHECK_EQ(got(&p, n)->ends[0].status, 125);
    CHECK_EQ(got(&p, n)->ends[0].state, STATE_ENDING);
    CHECK(mm_job(hall_mm(p.hall), got(&p, n)->job, &j) && j.holds);
    CHECK_EQ(sim_kernel_alive_all(hall_kernel(p.hall, 2)), 1);
    pass(&p, 25 * NS_PER_S);
    CHECK(mm_job(hall_mm(p.hall), got(&p, n)->job, &j) && j.settled && j.state == STATE_LOST);
    CHECK_EQ(sim_kernel_alive_all(hall_kernel(p.hall, 2)), 0);
    pass(&p, 30 * NS_PER_S);
    finish(&p);
}

static void test_a_client_that_is_gone(void) {
    struct play p;
    begin(&p, 3, 2, 2);
    int32_t left = ask_run(&p, 3, 1, "hang");
    struct order o = order_of(JOB_RUN, 3, 1, "run 50s");
    o.flags = JOB_DETACHED;
    int32_t alone = ask(&p, o);
    wait_state(&p, left, STATE_RUNNING);
    wait_state(&p, alone, STATE_RUNNING);
    hall_crash(p.hall, hall_client(p.hall, 0));
    pass(&p, 29 * NS_PER_S);
    CHECK(is_state(&p, left, STATE_RUNNING));
    pass(&p, 3 * NS_PER_S);
    CHECK(is_state(&p, left, STATE_KILLED));
    CHECK(is_state(&p, alone, STATE_RUNNING));
    pass(&p, 20 * NS_PER_S);
    CHECK(is_state(&p, alone, STATE_DONE));
    hall_boot(p.hall, hall_client(p.hall, 0));
    finish(&p);
}

static void test_a_client_that_is_cut_off_comes_back(void) {
    struct play p;
    begin(&p, 3, 1, 2);
    int32_t n = ask_run(&p, 3, 1, "write 3000 run 10s write 3000");
    wait_state(&p, n, STATE_RUNNING);
    for (int i = 0; i < 10; i++) {
        world_reset(hall_world(p.hall), hall_client(p.hall, 0), 0);
        pass(&p, 700 * NS_PER_MS);
    }
    wait_end(&p, n, 30 * NS_PER_S);
    check_end(&p, n, STATE_DONE, 0);
    finish(&p);
}

/* Its answer is lost, again and again: it is one job nevertheless. */
static void test_a_submission_that_comes_again(void) {
    for (uint64_t at = 0; at < 12; at++) {
        struct play p;
        begin(&p, 2, 1, 2);
        int32_t n = ask_run(&p, 2, 1, "run 20ms");
        pass(&p, NS_PER_S / 4);
        for (int i = 0; i < 6; i++) {
            pass(&p, at * 150 * NS_PER_US);
            world_reset(hall_world(p.hall), hall_client(p.hall, 0), 0);
        }
        wait_end(&p, n, 10 * NS_PER_S);
        check_end(&p, n, STATE_DONE, 0);
        CHECK_EQ(hall_deeds(p.hall)->count, 1);
        CHECK_EQ(mm_next_job(hall_mm(p.hall)), 2);
        finish(&p);
    }
}

/* ---- who runs when and where ---- */

static void test_first_come_first_served(void) {
    struct play p;
    begin(&p, 4, 1, 2);
    int32_t a = ask_run(&p, 3, 1, "run 500ms");
    pass(&p, NS_PER_S / 2);
    int32_t b = ask_run(&p, 4, 1, "run 500ms");
    int32_t c = ask_run(&p, 1, 1, "run 10ms"); /* it would fit, but nobody overtakes */
    wait_end(&p, a, 5 * NS_PER_S);
    wait_end(&p, b, 5 * NS_PER_S);
    wait_end(&p, c, 5 * NS_PER_S);
    const struct deeds *d = hall_deeds(p.hall);
    CHECK_EQ(d->count, 3);
    CHECK_EQ(d->runs[0].run, run_of(got(&p, a)->job, 1));
    CHECK_EQ(d->runs[1].run, run_of(got(&p, b)->job, 1));
    CHECK_EQ(d->runs[2].run, run_of(got(&p, c)->job, 1));
    finish(&p);
}

static void test_a_drained_node_gets_nothing(void) {
    struct play p;
    begin(&p, 2, 1, 2);
    customer_drain(p.customers[0], 0, true);
    pass(&p, NS_PER_S);
    int32_t one = ask_run(&p, 1, 1, "run 1s");
    int32_t both = ask_run(&p, 2, 1, "run 1s");
    wait_state(&p, one, STATE_RUNNING);
    CHECK_EQ(sim_kernel_alive_all(hall_kernel(p.hall, 0)), 0);
    wait_end(&p, one, 5 * NS_PER_S);
    restart(&p, hall_root(p.hall), NS_PER_S); /* it is remembered */
    pass(&p, 10 * NS_PER_S);
    CHECK(is_state(&p, both, STATE_QUEUED));
    customer_drain(p.customers[0], 0, false);
    wait_end(&p, both, 10 * NS_PER_S);
    check_end(&p, both, STATE_DONE, 0);
    finish(&p);
}

/* ---- who is there ---- */

/* All but this one are, or all. */
static void enrol(struct play *p, int32_t without) {
    uint64_t storage[UNIVERSE_MAX];
    struct nodeset taken;
    nodeset_init(&taken, p->config.nodes, storage);
    nodeset_add_range(&taken, 0, p->config.nodes - 1);
    if (without >= 0)
        nodeset_remove(&taken, (uint32_t)without);
    hall_roster(p->hall, &taken);
    pass(p, 10 * NS_PER_MS);
}

static void check_nodes(const struct play *p, uint32_t nodes) {
    struct mm_counts c;
    mm_counts(hall_mm(p->hall), &c);
    CHECK_EQ(c.nodes, nodes);
    CHECK_EQ(c.nodes_up, nodes);
}

static void test_a_vacant_number_gets_nothing(void) {
    struct play p;
    begin(&p, 4, 1, 2);
    enrol(&p, 1);
    check_nodes(&p, 3);
    int32_t three = ask_run(&p, 3, 1, "run 1s");
    wait_state(&p, three, STATE_RUNNING);
    CHECK_EQ(sim_kernel_alive_all(hall_kernel(p.hall, 1)), 0);
    int32_t four = ask_run(&p, 4, 1, "run 1s");
    pass(&p, NS_PER_S);
    CHECK(got(&p, four)->answered_at != 0 && got(&p, four)->code == ANSWER_REFUSED);
    wait_end(&p, three, 5 * NS_PER_S);
    check_end(&p, three, STATE_DONE, 0);
    restart(&p, 1, NS_PER_S); /* its daemon comes and goes: that is nobody's business */
    restart(&p, hall_root(p.hall), NS_PER_S);
    pass(&p, 5 * NS_PER_S);
    check_nodes(&p, 3);
    enrol(&p, -1);
    pass(&p, 3 * NS_PER_S);
    check_nodes(&p, 4);
    int32_t all = ask_run(&p, 4, 1, "run 1s");
    wait_end(&p, all, 10 * NS_PER_S);
    check_end(&p, all, STATE_DONE, 0);
    finish(&p);
}

/* Its daemon is there all the time, and ends what it has. */
static void test_a_number_becomes_vacant_while_a_job_runs(void) {
    struct play p;
    begin(&p, 4, 1, 2);
    int32_t n = ask_run(&p, 4, 1, "ignore-term hang");
    wait_state(&p, n, STATE_RUNNING);
    enrol(&p, 2);
    CHECK(wait_end(&p, n, 30 * NS_PER_S) < 2 * NS_PER_S);
    check_end(&p, n, STATE_LOST, 125);
    CHECK_EQ(got(&p, n)->ends[0].node, 2);
    int32_t rest = ask_run(&p, 3, 1, "run 1s");
    wait_end(&p, rest, 10 * NS_PER_S);
    check_end(&p, rest, STATE_DONE, 0);
    finish(&p);
}

/* It is switched off, and taken out of the cluster for that: its job is held no longer than the lease says. */
static void test_a_host_that_is_gone_becomes_vacant(void) {
    struct play p;
    begin(&p, 4, 1, 2);
    int32_t n = ask_run(&p, 4, 1, "hang");
    wait_state(&p, n, STATE_RUNNING);
    hall_crash(p.hall, hall_launcher(p.hall, 2));
    hall_crash(p.hall, 2);
    enrol(&p, 2);
    wait_end(&p, n, 5 * NS_PER_S);
    CHECK_EQ(got(&p, n)->ends[0].status, 125);
    pass(&p, 25 * NS_PER_S);
    check_nodes(&p, 3);
    hall_boot(p.hall, hall_launcher(p.hall, 2));
    hall_boot(p.hall, 2);
    finish(&p);
}

/* The next manager finds in its log a job on a node that is not there any more. */
static void test_a_number_becomes_vacant_while_nobody_looks(void) {
    struct play p;
    begin(&p, 4, 1, 2);
    int32_t lost = ask_run(&p, 2, 1, "hang"), stays = ask_run(&p, 2, 1, "run 8s");
    wait_state(&p, lost, STATE_RUNNING);
    wait_state(&p, stays, STATE_RUNNING);
    struct mm_job j;
    CHECK(mm_job(hall_mm(p.hall), got(&p, lost)->job, &j));
    int32_t gone = (int32_t)nodeset_first(j.nodes);
    hall_crash(p.hall, hall_root(p.hall));
    enrol(&p, gone);
    pass(&p, NS_PER_S);
    hall_boot(p.hall, hall_root(p.hall));
    wait_end(&p, lost, 10 * NS_PER_S);
    check_end(&p, lost, STATE_LOST, 125);
    CHECK_EQ(got(&p, lost)->ends[0].node, gone);
    wait_end(&p, stays, 20 * NS_PER_S);
    check_end(&p, stays, STATE_DONE, 0);
    check_nodes(&p, 3);
    finish(&p);
}

static void test_a_drained_number_changes_hands(void) {
    struct play p;
    begin(&p, 3, 1, 2);
    customer_drain(p.customers[0], 1, true);
    pass(&p, NS_PER_S);
    CHECK(mm_drained(hall_mm(p.hall), 1));
    enrol(&p, 1);
    pass(&p, NS_PER_S);
    enrol(&p, -1);
    CHECK(!mm_drained(hall_mm(p.hall), 1));
    restart(&p, hall_root(p.hall), NS_PER_S);
    pass(&p, 3 * NS_PER_S);
    CHECK(!mm_drained(hall_mm(p.hall), 1));
    check_nodes(&p, 3);
    finish(&p);
}

static void test_an_array(void) {
    struct play p;
    begin(&p, 3, 1, 2);
    struct order o = order_of(JOB_BATCH, 1, 1, "run 100ms-900ms");
    o.count = 11;
    int32_t n = ask(&p, o);
    pass(&p, 1200 * NS_PER_MS);
    restart(&p, hall_root(p.hall), NS_PER_S);
    wait_end(&p, n, 40 * NS_PER_S);
    check_end(&p, n, STATE_DONE, 0);
    CHECK_EQ(hall_deeds(p.hall)->count, 11);
    finish(&p);
}

static void test_an_allocation_and_its_steps(void) {
    struct play p;
    begin(&p, 4, 2, 2);
    int32_t room = ask(&p, order_of(JOB_ALLOC, 3, 2, ""));
    wait_state(&p, room, STATE_RUNNING);
    struct order step = order_of(JOB_STEP, 3, 2, "run 500ms exit 2");
    step.around = room;
    int32_t first = ask(&p, step);
    step = order_of(JOB_STEP, 2, 1, "hang");
    step.around = room;
    int32_t second = ask(&p, step);
    wait_end(&p, first, 5 * NS_PER_S);
    wait_state(&p, second, STATE_RUNNING);
    restart(&p, hall_root(p.hall), NS_PER_S);
    pass(&p, 3 * NS_PER_S);
    customer_act(p.customers[0], room, VERB_END, 0); /* with all that is in it */
    wait_end(&p, room, 5 * NS_PER_S);
    check_end(&p, first, STATE_FAILED, 2);
    CHECK_EQ(got(&p, second)->ends[0].state, STATE_KILLED);
    check_end(&p, room, STATE_DONE, 0);
    finish(&p);
}

/* ---- gangs ---- */

static void begin_gangs(struct play *p, uint32_t nodes) {
    begin_with(p, nodes, 1, 2, NS_PER_US, &policy_gang);
}

/* What runs goes on, and still not at once. */
static void test_gangs_under_a_new_manager(void) {
    struct play p;
    begin_gangs(&p, 3);
    int32_t first = ask_run(&p, 3, 1, "run 4s"), second = ask_run(&p, 3, 1, "run 4s");
    wait_state(&p, first, STATE_RUNNING);
    wait_state(&p, second, STATE_RUNNING);
    uint64_t from = now(&p);
    restart(&p, hall_root(p.hall), NS_PER_S);
    wait_end(&p, first, 30 * NS_PER_S);
    wait_end(&p, second, 30 * NS_PER_S);
    CHECK(now(&p) - from > 7 * NS_PER_S);
    check_end(&p, first, STATE_DONE, 0);
    check_end(&p, second, STATE_DONE, 0);
    finish(&p);
}

/* At every moment of its launch: its slots change, and its limit counts its own turns nevertheless. */
static void test_a_limit_and_other_slots(void) {
    for (uint64_t at = 0; at < 20; at++) {
        struct play p;
        begin_gangs(&p, 2);
        pass(&p, 3 * NS_PER_S);
        int32_t left = ask_run(&p, 1, 1, "hang"), right = ask_run(&p, 1, 1, "hang");
        int32_t both = ask_run(&p, 2, 1, "hang");
        wait_state(&p, left, STATE_RUNNING);
        wait_state(&p, right, STATE_RUNNING);
        wait_state(&p, both, STATE_RUNNING);
        struct order o = order_of(JOB_RUN, 1, 1, "hang");
        o.limit_ns = 2 * NS_PER_S;
        int32_t n = ask(&p, o);
        for (uint64_t until = now(&p) + NS_PER_S; now(&p) < until; pass(&p, 50 * NS_PER_US))
            if (is_state(&p, n, STATE_STARTING))
                break;
        pass(&p, at * 100 * NS_PER_US);
        CHECK(hall_kill(p.hall, 0, 1, 9));
        CHECK(wait_end(&p, n, 20 * NS_PER_S) > 3 * NS_PER_S);
        check_end(&p, n, STATE_TIMEOUT, 124);
        customer_act(p.customers[0], right, VERB_KILL, 0);
        customer_act(p.customers[0], both, VERB_KILL, 0);
        finish(&p);
    }
}

static void test_a_full_disk(void) {
    struct play p;
    begin(&p, 2, 1, 2);
    int32_t runs = ask_run(&p, 2, 1, "run 1s");
    wait_state(&p, runs, STATE_RUNNING);
    world_fill_disk(hall_world(p.hall), hall_root(p.hall), now(&p) + 5 * NS_PER_S);
    int32_t waits = ask_run(&p, 2, 1, "run 10ms");
    pass(&p, 4 * NS_PER_S);
    CHECK(!settled(&p, runs)); /* nobody is told what could be forgotten */
    CHECK_EQ(got(&p, waits)->job, 0);
    wait_end(&p, runs, 5 * NS_PER_S);
    wait_end(&p, waits, 10 * NS_PER_S);
    check_end(&p, runs, STATE_DONE, 0);
    check_end(&p, waits, STATE_DONE, 0);
    finish(&p);
}

/* What the disk did not take has not been, or is tried again; whoever asked is not told otherwise. */
static void test_wishes_on_a_full_disk(void) {
    struct play p;
    begin(&p, 2, 1, 2);
    int32_t runs = ask_run(&p, 2, 1, "hang");
    wait_state(&p, runs, STATE_RUNNING);
    world_fill_disk(hall_world(p.hall), hall_root(p.hall), now(&p) + 4 * NS_PER_S);
    customer_drain(p.customers[1], 1, true);
    customer_act(p.customers[0], runs, VERB_SUSPEND, 0);
    pass(&p, 3 * NS_PER_S + NS_PER_S / 10);
    CHECK(!customer_idle(p.customers[1])); /* it was not told that it is done */
    uint32_t drained = 0;
    for (int i = 0; i < 20; i++, pass(&p, 20 * NS_PER_MS))
        drained += mm_drained(hall_mm(p.hall), 1);
    CHECK(drained < 10); /* only while it is tried */
    pass(&p, 3 * NS_PER_S);
    CHECK(customer_idle(p.customers[1]));
    CHECK(mm_drained(hall_mm(p.hall), 1));
    restart(&p, hall_root(p.hall), NS_PER_S);
    pass(&p, 3 * NS_PER_S);
    CHECK(is_state(&p, runs, STATE_SUSPENDED));
    CHECK(mm_drained(hall_mm(p.hall), 1));
    customer_act(p.customers[0], runs, VERB_KILL, 0);
    customer_drain(p.customers[1], 1, false);
    wait_end(&p, runs, 5 * NS_PER_S);
    finish(&p);
}

int main(void) {
    TEST(test_all_nodes_and_a_clean_end);
    TEST(test_output_and_input);
    TEST(test_a_program_that_is_missing_on_one_node);
    TEST(test_a_process_that_dies_ends_its_job);
    TEST(test_a_bad_status);
    TEST(test_a_time_limit);
    TEST(test_kill_and_what_was_left_behind);
    TEST(test_a_signal_to_some);
    TEST(test_suspended_and_resumed);
    TEST(test_the_manager_dies_on_the_way);
    TEST(test_a_node_manager_dies_on_the_way);
    TEST(test_a_node_manager_and_its_launcher_die_on_the_way);
    TEST(test_the_link_to_a_launcher_breaks_on_the_way);
    TEST(test_a_node_stands_still_on_the_way);
    TEST(test_a_node_manager_and_the_manager_die_on_the_way);
    TEST(test_the_manager_dies_while_a_job_runs);
    TEST(test_a_node_manager_dies_and_adopts);
    TEST(test_programs_talk_whoever_dies);
    TEST(test_a_launcher_dies);
    TEST(test_a_lost_job_starts_again_if_it_may);
    TEST(test_a_kill_that_was_answered_is_not_forgotten);
    TEST(test_an_allocation_that_was_to_end_ends);
    TEST(test_a_lost_job_is_killed);
    TEST(test_a_node_that_is_silent_for_longer_than_its_lease);
    TEST(test_a_client_that_is_gone);
    TEST(test_a_client_that_is_cut_off_comes_back);
    TEST(test_a_submission_that_comes_again);
    TEST(test_first_come_first_served);
    TEST(test_a_drained_node_gets_nothing);
    TEST(test_a_vacant_number_gets_nothing);
    TEST(test_a_number_becomes_vacant_while_a_job_runs);
    TEST(test_a_host_that_is_gone_becomes_vacant);
    TEST(test_a_number_becomes_vacant_while_nobody_looks);
    TEST(test_a_drained_number_changes_hands);
    TEST(test_an_array);
    TEST(test_an_allocation_and_its_steps);
    TEST(test_gangs_under_a_new_manager);
    TEST(test_a_limit_and_other_slots);
    TEST(test_a_full_disk);
    TEST(test_wishes_on_a_full_disk);
    return tap_finish();
}
