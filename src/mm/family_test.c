/* SPDX-License-Identifier: MIT */
/* Hosts, loans and what is inside them, as the manager has them. */
#include "manager_alone.h"
#include "sched/policies.h"

enum { KEPT_MAX = 256, KEPT_BYTES = 512 };

/* What a manager has written down so far. */
static struct kept {
    uint64_t key;
    size_t len;
    uint8_t body[KEPT_BYTES];
} kept[KEPT_MAX];
static uint32_t kept_count;

static void note_log(const struct bench *b) {
    for (uint32_t i = 0; i < b->out.count; i++) {
        const struct effect *e = &b->out.list[i];
        if (e->kind != EFFECT_LOG || !CHECK(kept_count < KEPT_MAX && e->log.body.len <= KEPT_BYTES))
            continue;
        struct kept *k = &kept[kept_count++];
        k->key = e->log.key;
        k->len = e->log.body.len;
        memcpy(k->body, e->log.body.at, k->len);
    }
}

/* What was logged is durable; and what is logged because of that. */
static void keep(struct bench *b) {
    note_log(b);
    while (b->mm->durable != b->mm->tickets) {
        feed(b, (struct input){.kind = INPUT_LOGGED, .logged = {.ticket = b->mm->tickets}});
        note_log(b);
    }
}

static const struct storm_policy *policy; /* NULL: the usual one */

static void start(struct bench *b) {
    kept_count = 0;
    setup(b);
    b->mm->config.policy = policy == NULL ? b->mm->config.policy : policy;
    feed(b, (struct input){.kind = INPUT_REPLAY}); /* there was nothing */
    for (uint32_t i = 0; i < NODES; i++)
        join(b, i);
}

static void submit(struct bench *b, struct message_submit s) {
    union message m = {.submit = s};
    m.submit.request[0] = ++b->requests;
    m.submit.request[1] = 2;
    m.submit.procs = s.procs == 0 ? 1 : s.procs;
    m.submit.on = s.on == NULL ? &b->none : s.on;
    m.submit.exclude = s.exclude == NULL ? &b->none : s.exclude;
    say(b, LINK, 0, MESSAGE_SUBMIT, &m);
    keep(b);
}

static void act(struct bench *b, enum verb verb, uint32_t job) {
    uint8_t jobs[4];
    store_le32(jobs, job);
    union message m = {.act = {.request = {++b->requests, 3},
                               .verb = (uint8_t)verb,
                               .nodes = &b->none,
                               .jobs = bytes_of(jobs, sizeof jobs)}};
    say(b, LINK, 0, MESSAGE_ACT, &m);
    keep(b);
}

static enum job_state state(const struct bench *b, uint32_t job) {
    const struct job *j = job_find(b->mm, job);
    return j == NULL ? STATES : (enum job_state)j->state;
}

/* A new life that reads what was written down, but for one event. */
static void live_again(struct bench *b, uint32_t but) {
    setup(b);
    for (uint32_t i = 0; i < kept_count; i++)
        if (i != but)
            feed(b, (struct input){.kind = INPUT_REPLAY,
                                   .replay = {.key = kept[i].key,
                                              .body = bytes_of(kept[i].body, kept[i].len)}});
    feed(b, (struct input){.kind = INPUT_REPLAY});
}

/* A step is on its way while its allocation is suspended, and the manager dies. */
static void test_steps_of_a_suspended_host(void) {
    struct bench a, b;
    start(&a);
    submit(&a, (struct message_submit){.kind = JOB_ALLOC, .nodes = 1, .ppn = 2});
    submit(&a, (struct message_submit){.kind = JOB_STEP, .nodes = 1, .ppn = 1, .inside = 1});
    CHECK_EQ(state(&a, 2), STATE_STARTING);
    act(&a, VERB_SUSPEND, 1);
    live_again(&b, kept_count);
    CHECK_EQ(state(&b, 1), STATE_SUSPENDED);
    CHECK_EQ(state(&b, 2), STATE_SUSPENDED);
    act(&b, VERB_RESUME, 1);
    CHECK_EQ(state(&b, 2), STATE_RUNNING);
    teardown(&a);
    teardown(&b);
}

/* More wait inside an allocation than can be written down at once when it ends. */
static void test_many_steps_end_little_by_little(void) {
    enum { STEPS = 40, PLACES_LEFT = 12 };
    struct bench b;
    uint32_t over = 0;
    start(&b);
    submit(&b, (struct message_submit){.kind = JOB_ALLOC, .nodes = 1, .ppn = 2});
    b.mm->starting = UINT32_MAX / 2; /* none of them begins */
    for (uint32_t i = 0; i < STEPS; i++)
        submit(&b, (struct message_submit){.kind = JOB_STEP, .nodes = 1, .ppn = 1, .inside = 1});
    CHECK_EQ(state(&b, 1 + STEPS), STATE_QUEUED);
    submit(&b, (struct message_submit){.kind = JOB_STEP,
                                       .nodes = 1,
                                       .ppn = 1,
                                       .inside = 1,
                                       .array_first = 1,
                                       .array_last = 9});
    CHECK_EQ(state(&b, 2 + STEPS), STATES); /* no step is an array */
    CHECK_EQ(b.mm->after_count, 0);
    b.mm->after_head = 0;
    b.mm->after_cap = PLACES_LEFT;
    job_find(b.mm, 1)->state = STATE_KILLED;
    for (int i = 0; i < STEPS && over < STEPS; i++) {
        feed(&b, (struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER_QUEUE}});
        CHECK(b.mm->after_count < PLACES_LEFT);
        keep(&b);
        over = 0;
        for (uint32_t j = 2; j < 2 + STEPS; j++)
            over += state(&b, j) != STATE_QUEUED;
    }
    CHECK_EQ(over, STEPS);
    b.mm->starting = 0;
    teardown(&b);
}

/* Whoever has a time to begin comes after those who waited when it came, and before those who came then: also in the next life. */
static void test_a_time_to_begin_and_a_new_life(void) {
    struct bench a, b;
    start(&a);
    submit(&a, (struct message_submit){.kind = JOB_ALLOC, .nodes = NODES, .ppn = PES});
    struct message_submit wants = {.kind = JOB_BATCH, .nodes = NODES, .ppn = PES};
    wants.procs = NODES * PES;
    struct message_submit later = wants;
    later.begin_ns = wall(a.mm) + 5 * NS_PER_S;
    submit(&a, later);
    submit(&a, wants);
    a.now += 10 * NS_PER_S;
    feed(&a, (struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER_BEGIN}});
    submit(&a, wants);
    live_again(&b, kept_count);
    struct bench *lives[] = {&a, &b};
    for (int i = 0; i < 2; i++) {
        const struct mm *m = lives[i]->mm;
        CHECK(job_find(m, 3)->rank < job_find(m, 2)->rank);
        CHECK(job_find(m, 2)->rank < job_find(m, 4)->rank);
        CHECK(!job_find(m, 2)->waits);
    }
    teardown(&a);
    teardown(&b);
}

/* Somebody who says the same for ever, while the log is slow. */
static void test_the_same_again_and_again(void) {
    struct bench b;
    start(&b);
    union message m = {.submit = {.kind = JOB_BATCH,
                                  .request = {77, 2},
                                  .nodes = 1,
                                  .ppn = 1,
                                  .procs = 1,
                                  .on = &b.none,
                                  .exclude = &b.none}};
    for (uint32_t i = 0; i < b.mm->after_cap + 100; i++)
        say(&b, LINK, 0, MESSAGE_SUBMIT, &m);
    CHECK(b.mm->after_count <=
          3); /* the first, its start, and one that is to be answered as well */
    keep(&b);
    CHECK_EQ(b.mm->after_count, 0);
    teardown(&b);
}

static void lend(struct bench *b, uint32_t parent, uint32_t ppn) {
    submit(b, (struct message_submit){.kind = JOB_ALLOC,
                                      .flags = JOB_FAMILY | JOB_LENT | JOB_DETACHED,
                                      .nodes = 1,
                                      .ppn = ppn,
                                      .procs = ppn,
                                      .parent = parent});
}

/* Job 1 has all nodes but so many, for an hour. */
static void start_full(struct bench *b, uint32_t but) {
    start(b);
    b->now += 60 * NS_PER_S; /* it is known who is there */
    submit(b, (struct message_submit){.kind = JOB_RUN,
                                      .flags = JOB_DETACHED,
                                      .nodes = NODES - but,
                                      .ppn = PES,
                                      .procs = (NODES - but) * PES,
                                      .limit_ns = 3600 * NS_PER_S});
    CHECK_EQ(state(b, 1), STATE_STARTING);
}

/* As many loans are called back as are missing, and the same ones as long as that does not change. */
static void test_one_loan_is_enough(void) {
    struct bench b;
    start_full(&b, 1);
    lend(&b, 1, 1);
    lend(&b, 1, 1);
    CHECK(state(&b, 2) == STATE_RUNNING && state(&b, 3) == STATE_RUNNING);
    submit(&b, (struct message_submit){.kind = JOB_BATCH, .nodes = 1, .ppn = 1});
    CHECK_EQ(state(&b, 4), STATE_QUEUED);
    CHECK_EQ((state(&b, 2) == STATE_SUSPENDED) + (state(&b, 3) == STATE_SUSPENDED), 1);
    bool second = state(&b, 2) == STATE_SUSPENDED;
    submit(&b, (struct message_submit){.kind = JOB_BATCH, .nodes = 1, .ppn = 1});
    CHECK_EQ(state(&b, second ? 2 : 3), STATE_SUSPENDED);
    CHECK_EQ(state(&b, second ? 3 : 2), STATE_RUNNING);
    act(&b, VERB_KILL, 5);
    act(&b, VERB_KILL, 4);
    CHECK(state(&b, 2) == STATE_RUNNING && state(&b, 3) == STATE_RUNNING);
    submit(&b, (struct message_submit){.kind = JOB_BATCH, .nodes = 1, .ppn = 2, .procs = 2});
    CHECK(state(&b, 2) == STATE_SUSPENDED && state(&b, 3) == STATE_SUSPENDED);
    teardown(&b);
}

/* A job that becomes several starts when everybody else waits: it is one more until it is them. */
static void test_all_places_are_taken(void) {
    struct bench b;
    uint8_t list[64];
    struct host_class one = {.least = 1, .most = 2, .ppn = 1, .name = bytes_from_str("x")};
    long len = class_store(&one, room_of(list, sizeof list));
    kept_count = 0;
    begin(&b);
    submit(&b, (struct message_submit){.kind = JOB_BATCH,
                                       .flags = JOB_CLASSES,
                                       .nodes = 1,
                                       .ppn = 1,
                                       .classes = bytes_of(list, (size_t)len)});
    for (uint32_t i = 1; i < b.mm->config.jobs_max; i++)
        submit(&b, (struct message_submit){.kind = JOB_BATCH, .nodes = 1, .ppn = 1});
    CHECK_EQ(state(&b, 1), STATE_QUEUED);
    for (uint32_t i = 0; i < NODES; i++)
        join(&b, i);
    CHECK_EQ(state(&b, 1), STATE_STARTING);
    teardown(&b);
}

/* Where the job itself is to be says nothing of its hosts. */
static void test_named_nodes_are_its_own(void) {
    struct bench b;
    uint8_t list[64];
    struct host_class one = {.least = 2, .most = 2, .ppn = PES, .name = bytes_from_str("x")};
    long len = class_store(&one, room_of(list, sizeof list));
    start(&b);
    nodeset_clear(&b.set);
    nodeset_add(&b.set, 3);
    submit(&b, (struct message_submit){.kind = JOB_RUN,
                                       .flags = JOB_CLASSES | JOB_DETACHED,
                                       .nodes = 1,
                                       .ppn = PES,
                                       .procs = PES,
                                       .on = &b.set,
                                       .classes = bytes_of(list, (size_t)len)});
    if (CHECK_EQ(state(&b, 1), STATE_STARTING))
        CHECK(nodeset_has(&job_running(b.mm, job_find(b.mm, 1))->set, 3));
    CHECK(state(&b, 2) == STATE_RUNNING && state(&b, 3) == STATE_RUNNING);
    teardown(&b);
}

/* A loan is in the way on the node that it names. */
static void test_named_nodes_are_given_back(void) {
    struct bench b;
    uint8_t list[64];
    struct host_class one = {.least = 1, .most = 1, .ppn = PES, .name = bytes_from_str("x")};
    long len = class_store(&one, room_of(list, sizeof list));
    start_full(&b, 2);
    lend(&b, 1, PES);
    const struct nodeset *lent = &job_running(b.mm, job_find(b.mm, 2))->set;
    nodeset_copy(&b.set, lent);
    submit(&b, (struct message_submit){.kind = JOB_BATCH,
                                       .flags = JOB_CLASSES,
                                       .nodes = 1,
                                       .ppn = PES,
                                       .procs = PES,
                                       .on = &b.set,
                                       .classes = bytes_of(list, (size_t)len)});
    CHECK(state(&b, 3) == STATE_QUEUED && state(&b, 2) == STATE_SUSPENDED);
    teardown(&b);
}

/* Hosts that come later are not on nodes that the job is not to be on, either. */
static void test_excluded_nodes_are_for_all(void) {
    struct bench b;
    uint8_t list[64];
    struct host_class one = {.least = 1, .most = NODES, .ppn = PES, .name = bytes_from_str("x")};
    long len = class_store(&one, room_of(list, sizeof list));
    start(&b);
    nodeset_clear(&b.set);
    nodeset_add(&b.set, 4);
    submit(&b, (struct message_submit){.kind = JOB_RUN,
                                       .flags = JOB_CLASSES | JOB_DETACHED,
                                       .nodes = 1,
                                       .ppn = PES,
                                       .procs = PES,
                                       .exclude = &b.set,
                                       .classes = bytes_of(list, (size_t)len)});
    uint32_t running = 0;
    for (uint32_t i = 2; i <= NODES + 1; i++) {
        const struct running *r = job_running(b.mm, job_find(b.mm, i));
        running += r != NULL;
        CHECK(r == NULL || !nodeset_has(&r->set, 4));
    }
    CHECK_EQ(running, NODES - 2);
    teardown(&b);
}

/* One of a group, whose start could not be kept, waits for one node. */
static void check_alone(uint32_t which) {
    struct bench a, b;
    start_full(&a, 3);
    uint32_t before = kept_count;
    submit(&a, (struct message_submit){.kind = JOB_ALLOC,
                                       .flags = JOB_FAMILY | JOB_LENT | JOB_DETACHED,
                                       .nodes = 1,
                                       .ppn = PES,
                                       .procs = PES,
                                       .parent = 1,
                                       .array_first = 1,
                                       .array_last = 3,
                                       .together = 3});
    CHECK(state(&a, 2) == STATE_RUNNING && state(&a, 4) == STATE_RUNNING);
    CHECK_EQ(kept_count, before + 4);
    live_again(&b, before + 1 + which);
    for (uint32_t i = NODES - 3; i < NODES; i++) /* where job 1 is not */
        join(&b, i);
    keep(&b);
    for (uint32_t i = 2; i <= 4; i++)
        CHECK_EQ(state(&b, i), STATE_RUNNING);
    teardown(&a);
    teardown(&b);
}

static void test_one_of_a_group_alone(void) {
    for (uint32_t which = 0; which < 3; which++)
        check_alone(which);
}

/* What is given back for somebody who needs more of that is not lent again meanwhile. */
static void test_nothing_is_lent_before_the_first(void) {
    struct bench b;
    policy = &policy_easy;
    start_full(&b, 2);
    policy = NULL;
    for (uint32_t i = 0; i < 3; i++)
        lend(&b, 1, PES);
    CHECK(state(&b, 3) == STATE_RUNNING && state(&b, 4) == STATE_QUEUED);
    submit(&b,
           (struct message_submit){.kind = JOB_BATCH, .nodes = 2, .ppn = PES, .procs = 2 * PES});
    CHECK(state(&b, 2) == STATE_SUSPENDED && state(&b, 3) == STATE_SUSPENDED);
    act(&b, VERB_KILL, 2);
    CHECK_EQ(state(&b, 4), STATE_QUEUED);
    CHECK_EQ(state(&b, 3), STATE_SUSPENDED);
    act(&b, VERB_KILL, 3);
    CHECK_EQ(state(&b, 5), STATE_STARTING);
    CHECK(nodeset_empty(&b.mm->unlent));
    teardown(&b);
}

/* Why it was ended after its grace. */
static enum reason vacated(struct bench *b, uint32_t job) {
    b->now += b->mm->config.vacate_ns;
    feed(b, (struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER_DUE}});
    keep(b);
    return (enum reason)job_find(b->mm, job)->reason;
}

static void test_why_it_was_called_back(void) {
    struct bench b;
    start_full(&b, 2);
    lend(&b, 1, PES);
    lend(&b, 1, PES);
    submit(&b, (struct message_submit){.kind = JOB_BATCH, .nodes = 1, .ppn = 1});
    uint32_t called = state(&b, 2) == STATE_SUSPENDED ? 2 : 3, other = called == 2 ? 3 : 2;
    CHECK_EQ(vacated(&b, called), REASON_CLAIMED);
    nodeset_copy(&b.set, &job_running(b.mm, job_find(b.mm, other))->set);
    union message m = {.act = {.request = {++b.requests, 3}, .verb = VERB_DRAIN, .nodes = &b.set}};
    say(&b, LINK, 0, MESSAGE_ACT, &m);
    keep(&b);
    CHECK_EQ(state(&b, other), STATE_SUSPENDED);
    CHECK_EQ(vacated(&b, other), REASON_DRAINED);
    CHECK_EQ(state(&b, other), STATE_KILLED);
    teardown(&b);
}

int main(void) {
    TEST(test_steps_of_a_suspended_host);
    TEST(test_many_steps_end_little_by_little);
    TEST(test_a_time_to_begin_and_a_new_life);
    TEST(test_the_same_again_and_again);
    TEST(test_one_loan_is_enough);
    TEST(test_all_places_are_taken);
    TEST(test_named_nodes_are_its_own);
    TEST(test_named_nodes_are_given_back);
    TEST(test_excluded_nodes_are_for_all);
    TEST(test_one_of_a_group_alone);
    TEST(test_nothing_is_lent_before_the_first);
    TEST(test_why_it_was_called_back);
    return tap_finish();
}
