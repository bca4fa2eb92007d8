/* SPDX-License-Identifier: MIT */
/* Tests of the auditor: a cluster in which all is well, then one thing is spoiled behind everybody's back,
 * and he must say so, by the name of the promise that is broken. */
#include "sim/audit.h"

#include <string.h>

#include "base/units.h"
#include "mm/inside.h"
#include "sched/policies.h"
#include "sched/court_inside.h"
#include "sim/customer.h"
#include "tap.h"
#include "wire/setup.h"
#include "wire/spec.h"

enum { NODES = 4, PES = 2, STRAY = 900, GROUP_STRAY = 190 };

struct play {
    struct hall_config config;
    struct hall *hall;
    struct book book;
    struct verdict verdict;
    struct audit audit;
    struct customer *customer;
    bool closed;
    int32_t hangs, waits, over, alloc; /* orders */
    int32_t gangs[2];
};

/* ---- the stage ---- */

static struct machine make_client(void *context, struct hall *h, uint32_t k) {
    struct play *p = context;
    (void)h;
    struct customer_config c = {.number = k,
                                .book = &p->book,
                                .nodes = NODES,
                                .pes = PES,
                                .universe = NODES + 1,
                                .seed = 1,
                                .errands = 8,
                                .closed = &p->closed};
    customer_free(p->customer);
    p->customer = customer_new(&c);
    return customer_machine(p->customer);
}

static void observe(void *context, struct hall *h, uint32_t who) {
    struct play *p = context;
    (void)h;
    audit_step(&p->audit, who);
}

static int32_t ask(struct play *p, enum job_kind kind, uint32_t nodes, uint32_t ppn,
                   const char *word) {
    struct order o = {.request = {(uint64_t)p->book.count + 1, 1},
                      .kind = kind,
                      .nodes = nodes,
                      .ppn = ppn,
                      .procs = nodes * ppn,
                      .count = 1,
                      .around = NO_ORDER,
                      .on = -1,
                      .exclude = -1,
                      .program = "/actor"};
    int len = snprintf(o.words, sizeof o.words, "actor%c%s", 0, word);
    o.words_len = (uint32_t)len + (*word != '\0');
    return customer_order(p->customer, &o);
}

static void woke(void *context, struct hall *h, uint32_t node);

/* An empty cluster. */
static void begin_with(struct play *p, const struct storm_policy *policy) {
    *p = (struct play){.config = {.nodes = NODES,
                                  .pes = PES,
                                  .clients = 1,
                                  .tree = {.shape = SHAPE_KARY, .arity = 2, .nodes = NODES},
                                  .link = {.latency_ns = 50 * NS_PER_US,
                                           .connect_ns = 150 * NS_PER_US,
                                           .durable_ns = NS_PER_MS},
                                  .period_ns = NS_PER_S,
                                  .seed = 7,
                                  .policy = policy,
                                  .lease_ns = policy == NULL ? 0 : 100 * NS_PER_S,
                                  .quantum_ns = 100 * NS_PER_MS,
                                  .client = make_client,
                                  .observe = observe,
                                  .woke = policy == NULL ? NULL : woke}};
    p->config.context = p;
    p->book.verdict = &p->verdict;
    p->hall = hall_new(&p->config);
    audit_init(&p->audit, p->hall, &p->book, &p->verdict);
    hall_boot_all(p->hall);
    hall_run_until(p->hall, NS_PER_S);
}

/* One job is over, one hangs on two nodes, there is an allocation of one more, one waits. */
static void begin(struct play *p) {
    begin_with(p, NULL);
    p->over = ask(p, JOB_BATCH, 1, 1, "");
    hall_run_until(p->hall, 4 * NS_PER_S);
    p->hangs = ask(p, JOB_RUN, 2, 1, "hang");
    p->alloc = ask(p, JOB_ALLOC, 1, 1, "hang");
    p->waits = ask(p, JOB_RUN, NODES, PES, "hang");
    hall_run_until(p->hall, 8 * NS_PER_S);
}

static void end(struct play *p) {
    customer_free(p->customer);
    hall_free(p->hall);
    audit_fini(&p->audit);
    book_fini(&p->book);
}

static struct mm *manager(struct play *p) {
    return (struct mm *)hall_mm(p->hall);
}

static struct job *job_of(struct play *p, int32_t order) {
    return job_find(manager(p), p->book.orders[order].job);
}

static struct running *running_of(struct play *p, int32_t order) {
    return job_running(manager(p), job_of(p, order));
}

/* Is this promise said to be broken, in these words? */
static bool said(const struct play *p, const char *rule, const char *words) {
    char head[16];
    snprintf(head, sizeof head, "%s:", rule);
    for (uint32_t i = 0; i < p->verdict.count && i < VERDICT_LINES; i++)
        if (strncmp(p->verdict.lines[i], head, strlen(head)) == 0 &&
            strstr(p->verdict.lines[i], words) != NULL)
            return true;
    verdict_print(&p->verdict, VERDICT_LINES, stderr);
    return false;
}

/* ---- all is well ---- */

static void test_nothing_is_said_when_all_is_well(void) {
    struct play p;
    begin(&p);
    CHECK_EQ(job_of(&p, p.over)->state, STATE_DONE);
    CHECK_EQ(job_of(&p, p.hangs)->state, STATE_RUNNING);
    CHECK_EQ(job_of(&p, p.alloc)->state, STATE_RUNNING);
    CHECK_EQ(job_of(&p, p.waits)->state, STATE_QUEUED);
    CHECK_EQ(hall_deeds(p.hall)->living_count, 2);
    CHECK(audit_whole(&p.audit));
    CHECK_EQ(p.verdict.count, 0);
    verdict_print(&p.verdict, VERDICT_LINES, stderr);
    end(&p);
}

/* ---- processes that nobody should have started ---- */

static void start_stray(struct play *p, uint32_t node, uint64_t run, uint32_t count) {
    static const char words[] = "actor\0hang";
    struct spec spec = {.program = bytes_from_str("/actor"),
                        .folder = bytes_from_str("/"),
                        .arguments = bytes_of(words, sizeof words)};
    uint8_t spec_bytes[512], setup_bytes[1024];
    long spec_len = spec_encode(&spec, room_of(spec_bytes, sizeof spec_bytes));
    struct setup setup = {.run = run,
                          .count = count,
                          .size = count < 2 ? 2 : count,
                          .window = 4096,
                          .node_name = bytes_from_str("n"),
                          .node_list = bytes_from_str("n"),
                          .spec = bytes_of(spec_bytes, (size_t)spec_len)};
    long len = setup_encode(&setup, room_of(setup_bytes, sizeof setup_bytes));
    struct sim_kernel *k = (struct sim_kernel *)hall_kernel(p->hall, node);
    struct effect e = {.kind = EFFECT_GROUP_OPEN};
    CHECK(spec_len > 0 && len > 0);
    e.group =
        (struct effect_group){.group = GROUP_STRAY, .setup = bytes_of(setup_bytes, (size_t)len)};
    sim_kernel_carry(k, &e, hall_now(p->hall));
    e.kind = EFFECT_GROUP_START;
    sim_kernel_carry(k, &e, hall_now(p->hall));
}

/* Whoever steps next, it is seen. */
static void check_stray(const char *rule, const char *words, int32_t which, uint16_t attempt,
                        uint32_t count, uint32_t node) {
    struct play p;
    begin(&p);
    const int32_t orders[] = {p.hangs, p.over};
    uint32_t job = which < 0 ? STRAY : p.book.orders[orders[which]].job;
    start_stray(&p, node, run_of(job, attempt), count);
    CHECK_EQ(p.verdict.count, 0);
    audit_step(&p.audit, hall_client(p.hall, 0));
    CHECK(said(&p, rule, words));
    end(&p);
}

enum { HANGS = 0, OVER = 1, UNKNOWN = -1 };

static void test_more_processes_than_processors(void) {
    check_stray("S1", "has 3 processes", UNKNOWN, 1, PES + 1, 3);
}

static void test_a_process_of_a_job_that_is_over(void) {
    check_stray("S2", "is over", OVER, 1, 1, 3);
}

static void test_two_attempts(void) {
    check_stray("S4", "two attempts", HANGS, 2, 1, 3);
}

static void test_a_process_that_is_started_twice(void) {
    check_stray("S4", "started twice", HANGS, 1, 1, 3);
}

static void test_processes_for_which_nothing_is_held(void) {
    check_stray("S9", "is not known", UNKNOWN, 1, 1, 3);
    check_stray("S9", "holds other nodes", HANGS, 1, 1, 3);
    check_stray("S9", "holds less", HANGS, 1, 1, 0);
    check_stray("S9", "is of another attempt", HANGS, 2, 1, 0);
}

/* The group is gone, what was in it is not: nobody would ever end it. */
static void test_a_group_that_is_closed_with_somebody_in_it(void) {
    struct play p;
    begin(&p);
    struct effect e = {.kind = EFFECT_GROUP_CLOSE};
    start_stray(&p, 3, run_of(p.book.orders[p.hangs].job, 1), 1);
    e.group = (struct effect_group){.group = GROUP_STRAY};
    sim_kernel_carry((struct sim_kernel *)hall_kernel(p.hall, 3), &e, hall_now(p.hall));
    audit_whole(&p.audit);
    CHECK(said(&p, "S2", "has no group any more"));
    end(&p);
}

/* ---- slots that take turns ---- */

/* Two gangs of all processors in two slots; the first has its turn, and waits for the other's. */
static void begin_gangs(struct play *p) {
    begin_with(p, &policy_gang);
    for (uint32_t i = 0; i < 2; i++)
        p->gangs[i] = ask(p, JOB_RUN, NODES, PES, "hang");
    hall_run_until(p->hall, 3 * NS_PER_S);
}

/* Does to the group of this gang on node 1 what its launcher would not. */
static void carry(struct play *p, uint32_t gang, bool frozen) {
    uint64_t run = run_of(p->book.orders[p->gangs[gang]].job, 1);
    struct sim_kernel *k = (struct sim_kernel *)hall_kernel(p->hall, 1);
    struct sim_census c;
    uint32_t at = 0;
    while (sim_kernel_census(k, &at, &c) && c.run != run)
        ;
    CHECK_EQ(c.run, run);
    struct effect e = {.kind = EFFECT_GROUP_FREEZE};
    e.group = (struct effect_group){.group = at - 1, .value = frozen};
    sim_kernel_carry(k, &e, hall_now(p->hall));
}

static void woke(void *context, struct hall *h, uint32_t node) {
    struct play *p = context;
    (void)h;
    audit_woke(&p->audit, node);
}

static void test_gangs_take_turns_and_nothing_is_said(void) {
    struct play p;
    begin_gangs(&p);
    CHECK_EQ(hall_deeds(p.hall)->living_count, 2 * NODES);
    CHECK(!p.audit.loose && p.audit.shared);
    CHECK(audit_whole(&p.audit));
    audit_turns(&p.audit);
    CHECK_EQ(p.verdict.count, 0);
    verdict_print(&p.verdict, VERDICT_LINES, stderr);
    end(&p);
}

/* Whoever of the two is held is let go; what its launcher would undo with the next turn is seen before. */
static void test_two_gangs_at_once(void) {
    struct play p;
    begin_gangs(&p);
    carry(&p, 0, false);
    carry(&p, 1, false);
    CHECK(said(&p, "gang", "are of different slots"));
    end(&p);
}

/* Of no slot, or so its launcher thinks: but there is no processor for it. */
static void test_more_at_once_than_processors(void) {
    struct play p;
    begin_gangs(&p);
    start_stray(&p, 1, run_of(STRAY, 1), PES);
    CHECK(said(&p, "gang", "2 runs at once on node 1 need 4 processors"));
    end(&p);
}

static void test_a_suspended_gang_that_runs(void) {
    struct play p;
    begin_gangs(&p);
    customer_act(p.customer, p.gangs[0], VERB_SUSPEND, 0);
    hall_run_until(p.hall, 6 * NS_PER_S);
    CHECK_EQ(p.verdict.count, 0);
    carry(&p, 1, true);
    carry(&p, 0, false);
    audit_step(&p.audit, hall_launcher(p.hall, 1));
    CHECK(said(&p, "gang", "is suspended, and runs on node 1"));
    end(&p);
}

/* A launcher stands still, nobody is let go. */
static void test_a_gang_without_turns(void) {
    struct play p;
    begin_gangs(&p);
    world_pause(hall_world(p.hall), hall_launcher(p.hall, 1), hall_now(p.hall) + 60 * NS_PER_S);
    hall_run_until(p.hall, hall_now(p.hall) + 15 * NS_PER_S);
    audit_turns(&p.audit);
    CHECK_EQ(p.verdict.count, 0);
    hall_run_until(p.hall, hall_now(p.hall) + 15 * NS_PER_S);
    audit_turns(&p.audit);
    CHECK(said(&p, "gang", "has had no turn for"));
    end(&p);
}

static void test_a_policy_that_was_wrong(void) {
    struct play p;
    begin_gangs(&p);
    snprintf(manager(&p)->fault, sizeof manager(&p)->fault, "it has started a job twice");
    audit_step(&p.audit, hall_root(p.hall));
    CHECK(said(&p, "policy", "started a job twice"));
    end(&p);
}

static void test_a_policy_that_is_not_in_the_log(void) {
    struct play p;
    begin_gangs(&p);
    court_change(manager(&p)->court, hall_now(p.hall), &policy_gang, 3, NS_PER_S);
    audit_whole(&p.audit);
    CHECK(said(&p, "S11", "3 slots, and in the log gang"));
    end(&p);
}

/* ---- books that are spoiled ---- */

enum spoil_by { ROOT, NODE, LAUNCHER, WHOLE };

struct spoil {
    const char *rule, *words;
    void (*plant)(struct play *p);
    enum spoil_by by;
};

static void check_spoils(const struct spoil *spoils, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct play p;
        begin(&p);
        CHECK_EQ(p.verdict.count, 0);
        spoils[i].plant(&p);
        if (spoils[i].by == ROOT)
            audit_step(&p.audit, hall_root(p.hall));
        else if (spoils[i].by == NODE)
            audit_step(&p.audit, 0);
        else if (spoils[i].by == LAUNCHER)
            audit_step(&p.audit, hall_launcher(p.hall, 1));
        else
            audit_whole(&p.audit);
        if (!CHECK(said(&p, spoils[i].rule, spoils[i].words)))
            printf("## %s: %s\n", spoils[i].rule, spoils[i].words);
        end(&p);
    }
}

#define CHECK_SPOILS(s) check_spoils(s, sizeof(s) / sizeof *(s))

static void over_with_processes(struct play *p) {
    job_of(p, p->hangs)->settled = true;
    job_of(p, p->hangs)->state = STATE_DONE;
}

static void gone(struct play *p) {
    job_of(p, p->waits)->id = 0;
}

static void another_end(struct play *p) {
    job_of(p, p->over)->status = 3;
}

static void no_end_any_more(struct play *p) {
    job_of(p, p->over)->settled = false;
    job_of(p, p->over)->state = STATE_QUEUED;
}

static void told_early(struct play *p) {
    struct message_news n = {.job = p->book.orders[p->hangs].job,
                             .run = run_of(p->book.orders[p->hangs].job, 1),
                             .state = STATE_DONE,
                             .settled = true};
    book_news(&p->book, p->hangs, &n);
}

static void told_otherwise(struct play *p) {
    struct order *o = &p->book.orders[p->over];
    struct message_news n = {.job = o->job,
                             .run = run_of(o->job, 1),
                             .state = STATE_FAILED,
                             .status = 1,
                             .settled = true};
    o->ends[0] = (struct ended){0};
    book_news(&p->book, p->over, &n);
}

static void accepted_early(struct play *p) {
    struct order o = {.count = 1, .around = NO_ORDER};
    struct message_answer a = {.code = ANSWER_DONE, .job = STRAY, .count = 1};
    book_answer(&p->book, book_add(&p->book, &o), &a, 0);
}

/* What hangs was to run after what waits, or after the failure of what ended well. */
static void too_early(struct play *p) {
    p->book.orders[p->hangs].after = (uint32_t)p->waits + 1;
    p->audit.births--;
}

static void after_another_end(struct play *p) {
    p->book.orders[p->hangs].after = (uint32_t)p->over + 1;
    p->book.orders[p->hangs].after_kind = AWAIT_NOT_OK;
    p->audit.births--;
}

static void test_ends(void) {
    static const struct spoil spoils[] = {{"S2", "is over", over_with_processes, ROOT},
                                          {"S3", "and is gone", gone, ROOT},
                                          {"S3", "has ended twice", another_end, ROOT},
                                          {"S11", "is over in the log only", no_end_any_more, ROOT},
                                          {"S3", "before the log was", told_early, NODE},
                                          {"S3", "as its customer was told", told_otherwise, NODE},
                                          {"S2", "is over", told_early, NODE},
                                          {"after", "before it may", too_early, NODE},
                                          {"after", "before it may", after_another_end, NODE},
                                          {"S3", "is not in the log", accepted_early, LAUNCHER}};
    CHECK_SPOILS(spoils);
}

/* Managers have died, but nobody was away for long. */
static void test_a_job_that_is_lost_for_no_reason(void) {
    struct play p;
    begin(&p);
    struct order *o = &p.book.orders[p.over];
    struct message_news n = {.job = o->job,
                             .run = run_of(o->job, 1),
                             .state = STATE_LOST,
                             .status = 125,
                             .cause = CAUSE_LOST,
                             .settled = true};
    o->ends[0] = (struct ended){0};
    book_news(&p.book, p.over, &n);
    audit_final(&p.audit);
    CHECK(said(&p, "status", "nothing was lost"));
    end(&p);
}

static void epoch_of_this_life(struct play *p) {
    p->audit.epochs[0].last++;
}

static void epoch_of_a_former_life(struct play *p) {
    p->audit.epochs[0].boots--;
    p->audit.epochs[0].highest++;
}

static void epoch_of_the_root(struct play *p) {
    p->audit.epochs[NODES].boots--;
    p->audit.epochs[NODES].highest++;
}

static void test_epochs(void) {
    static const struct spoil spoils[] = {{"S8", "node 0: epoch", epoch_of_this_life, NODE},
                                          {"S8", "node 0: epoch", epoch_of_a_former_life, NODE},
                                          {"S8", "node 4: epoch", epoch_of_the_root, ROOT}};
    CHECK_SPOILS(spoils);
}

static void held_for_nobody(struct play *p) {
    struct nodeset *set = &manager(p)->work;
    nodeset_clear(set);
    nodeset_add(set, 3);
    uint32_t node;
    CHECK_EQ(matrix_hold(&manager(p)->court->matrix, 0, set, 1, true, &node), 0);
}

static void given_back(struct play *p) {
    matrix_give(&manager(p)->court->matrix, 0, &running_of(p, p->hangs)->set, 1);
}

static void given_back_and_not_noted(struct play *p) {
    given_back(p);
    running_of(p, p->hangs)->unheld = true;
}

static void one_more_in_court(struct play *p) {
    manager(p)->court->queue.count++;
}

static void usable_twice(struct play *p) {
    manager(p)->court->matrix.rows[0].free++;
}

static void not_in_court(struct play *p) {
    job_of(p, p->hangs)->seat = COURT_NONE;
}

/* What hangs is on its nodes since before; then these were not to be given to it. */
static struct reservation *reserve(struct play *p) {
    struct reservation *r = &manager(p)->reservations[0];
    *r = (struct reservation){.id = 1, .to_ns = UINT64_MAX, .nodes = r->nodes};
    nodeset_copy(&r->nodes, &running_of(p, p->hangs)->set);
    return r;
}

static void reserved_unknown(struct play *p) {
    reserve(p);
}

static void reserved_for_others(struct play *p) {
    struct mm *m = manager(p);
    const struct reservation *r = reserve(p);
    court_window_add(m->court, m->now, r->id, 0, r->to_ns, &r->nodes);
}

static void forgotten_place(struct play *p) {
    job_of(p, p->hangs)->slot = NO_SLOT;
}

static void one_place_less(struct play *p) {
    manager(p)->running_free_count--;
}

static void one_more_runs(struct play *p) {
    manager(p)->running_count++;
}

static void one_more_starts(struct play *p) {
    manager(p)->starting++;
}

static void one_more_waits(struct play *p) {
    manager(p)->queued++;
}

static void waits_elsewhere(struct play *p) {
    nodeset_add(&running_of(p, p->hangs)->waiting, 3);
}

static void a_time_of_nobody(struct play *p) {
    struct running *r = running_of(p, p->hangs);
    r->repeat_at = UINT64_MAX - 1;
    manager(p)->out = &p->audit.shadow.out;
    due_set(manager(p), r);
    memset(&r->due, 0, sizeof r->due);
}

static void lost_count_of_steps(struct play *p) {
    running_of(p, p->alloc)->steps++;
}

static void lost_count_of_use(struct play *p) {
    struct running *r = running_of(p, p->alloc);
    r->by_node[nodeset_first(&r->set)]++;
}

static void over_and_not_over(struct play *p) {
    job_of(p, p->hangs)->state = STATE_DONE;
}

static void queued_with_nodes(struct play *p) {
    job_of(p, p->waits)->slot = 7;
}

static void neither_queued_nor_running(struct play *p) {
    job_of(p, p->waits)->state = STATE_RUNNING;
}

static void step_elsewhere(struct play *p) {
    given_back(p);
    job_of(p, p->hangs)->kind = JOB_STEP;
    job_of(p, p->hangs)->inside = p->book.orders[p->alloc].job;
}

static void beyond_the_peak(struct play *p) {
    manager(p)->runnings[manager(p)->running_cap - 1].job = STRAY;
}

static void test_resources(void) {
    static const struct spoil spoils[] = {
        {"S9", "held for nobody", held_for_nobody, ROOT},
        {"S9", "held for nobody", given_back, ROOT},
        {"S9", "do not add up", one_more_in_court, WHOLE},
        {"S9", "do not add up", usable_twice, WHOLE},
        {"S9", "not known in court", not_in_court, ROOT},
        {"S9", "reservation is not known in court", reserved_unknown, ROOT},
        {"S9", "reserved for others", reserved_for_others, ROOT},
        {"S9", "has lost what is held", forgotten_place, ROOT},
        {"S9", "places for running jobs", one_place_less, ROOT},
        {"S9", "running jobs are counted", one_more_runs, ROOT},
        {"S9", "being started are counted", one_more_starts, ROOT},
        {"S9", "queued jobs are counted", one_more_waits, ROOT},
        {"S9", "not its own", waits_elsewhere, ROOT},
        {"S9", "lost count of its steps", lost_count_of_steps, ROOT},
        {"S9", "what its steps use", lost_count_of_use, ROOT},
        {"S9", "times are kept", a_time_of_nobody, ROOT},
        {"S9", "holds nothing", given_back_and_not_noted, ROOT},
        {"S9", "that is over holds nodes", over_and_not_over, ROOT},
        {"S9", "a queued job holds", queued_with_nodes, ROOT},
        {"S9", "neither queued nor", neither_queued_nor_running, ROOT},
        {"S9", "outside its allocation", step_elsewhere, ROOT},
        {"S9", "not there", beyond_the_peak, WHOLE}};
    CHECK_SPOILS(spoils);
}

static void ring_of_the_log(struct play *p) {
    manager(p)->after_count = manager(p)->after_cap + 1;
}

static void runs_to_forget(struct play *p) {
    manager(p)->forget_count = 512;
}

static void starts(struct play *p) {
    manager(p)->starting = 1000;
}

static void queue(struct play *p) {
    manager(p)->queued = manager(p)->config.jobs_max + 1;
}

static void places(struct play *p) {
    manager(p)->running_count = manager(p)->running_cap + 1;
}

static void times(struct play *p) {
    manager(p)->dues.count = manager(p)->dues.cap + 1;
}

static void links(struct play *p) {
    p->audit.links_max = 0;
}

static void children(struct play *p) {
    struct mm_config *c = (struct mm_config *)hall_mm_config(p->hall);
    c->limits.children = 0;
}

static void group_of_nobody(struct play *p) {
    start_stray(p, 1, run_of(STRAY, 1), 1);
}

static void test_limits(void) {
    static const struct spoil spoils[] = {
        {"S10", "waits for the log", ring_of_the_log, ROOT},
        {"S10", "to be forgotten", runs_to_forget, ROOT},
        {"S10", "being started than", starts, ROOT},
        {"S10", "queued than", queue, ROOT},
        {"S10", "run than there are", places, ROOT},
        {"S10", "times are kept than", times, ROOT},
        {"S10", "too many links", links, ROOT},
        {"S10", "too many links", links, NODE},
        {"S10", "too many links", links, LAUNCHER},
        {"S10", "too many children", children, NODE},
        {"S10", "groups that are of no run", group_of_nobody, LAUNCHER}};
    CHECK_SPOILS(spoils);
}

static void attempt_not_logged(struct play *p) {
    job_of(p, p->hangs)->attempt++;
}

static void attempt_forgotten(struct play *p) {
    job_of(p, p->hangs)->attempt--;
}

static void other_nodes(struct play *p) {
    nodeset_add(&running_of(p, p->hangs)->set, 3);
}

static void submission_not_logged(struct play *p) {
    struct job *j = job_new(manager(p), manager(p)->next_id++);
    j->logged = true;
    j->state = STATE_QUEUED;
}

static void number_again(struct play *p) {
    manager(p)->next_id--;
}

static void drained(struct play *p) {
    manager(p)->nodes[2].drained = true;
}

static void reserved(struct play *p) {
    reserve(p);
}

static void suspended(struct play *p) {
    running_of(p, p->hangs)->suspended = true;
}

static void to_be_ended(struct play *p) {
    job_of(p, p->hangs)->reason = REASON_USER;
}

static void read_wrongly(struct play *p) {
    struct mm *m = p->audit.shadow.mm;
    job_find(m, p->book.orders[p->waits].job)->attempt = 5;
}

static void test_log(void) {
    static const struct spoil spoils[] = {
        {"S11", "is over, and the log does not", over_with_processes, ROOT},
        {"S11", "has begun, and the log", attempt_not_logged, ROOT},
        {"S11", "forgotten an attempt", attempt_forgotten, ROOT},
        {"S11", "has begun, and the log", other_nodes, ROOT},
        {"S11", "is not in the log", submission_not_logged, ROOT},
        {"S11", "the next is", number_again, ROOT},
        {"S11", "is drained", drained, ROOT},
        {"S11", "is reserved", reserved, ROOT},
        {"S11", "is suspended", suspended, ROOT},
        {"S11", "was to end", to_be_ended, ROOT},
        {"S11", "another attempt in the log", read_wrongly, WHOLE}};
    CHECK_SPOILS(spoils);
}

int main(void) {
    TEST(test_nothing_is_said_when_all_is_well);
    TEST(test_more_processes_than_processors);
    TEST(test_a_process_of_a_job_that_is_over);
    TEST(test_two_attempts);
    TEST(test_gangs_take_turns_and_nothing_is_said);
    TEST(test_two_gangs_at_once);
    TEST(test_more_at_once_than_processors);
    TEST(test_a_suspended_gang_that_runs);
    TEST(test_a_gang_without_turns);
    TEST(test_a_policy_that_was_wrong);
    TEST(test_a_policy_that_is_not_in_the_log);
    TEST(test_a_process_that_is_started_twice);
    TEST(test_processes_for_which_nothing_is_held);
    TEST(test_a_group_that_is_closed_with_somebody_in_it);
    TEST(test_ends);
    TEST(test_a_job_that_is_lost_for_no_reason);
    TEST(test_epochs);
    TEST(test_resources);
    TEST(test_limits);
    TEST(test_log);
    return tap_finish();
}
