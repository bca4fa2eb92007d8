/* SPDX-License-Identifier: MIT */
/* What clients ask for that goes to all nodes of a job, and what nodes answer. */
#include "manager_alone.h"
#include "sched/map.h"
#include "wire/sections.h"

/* Everything that was logged is durable. */
static void keep(struct bench *b) {
    feed(b, (struct input){.kind = INPUT_LOGGED, .logged = {.ticket = b->mm->tickets}});
}

/* What was sent to the client, or mailed to nodes, in the last step. */
static uint32_t sent(const struct bench *b, uint16_t type) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->out.count; i++)
        count += b->out.list[i].kind == EFFECT_SEND && b->out.list[i].send.type == type;
    return count;
}

static uint32_t mailed(const struct bench *b) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->out.count; i++)
        count +=
            b->out.list[i].kind == EFFECT_REQUEST && b->out.list[i].request.kind == PRIMITIVE_MAIL;
    return count;
}

static void act(struct bench *b, enum verb verb, uint32_t times) {
    static uint8_t jobs[4 * 600];
    for (uint32_t i = 0; i < times; i++)
        store_le32(jobs + (size_t)4 * i, 1);
    union message m = {.act = {.request = {++b->requests, 3},
                               .verb = (uint8_t)verb,
                               .nodes = &b->none,
                               .jobs = bytes_of(jobs, (size_t)4 * times)}};
    say(b, LINK, 0, MESSAGE_ACT, &m);
}

/* Job 1 goes, with two processes on each of the nodes 1, 2 and 4; how it came there is not looked at. */
static struct running *begin_going(struct bench *b, uint32_t flags) {
    begin(b);
    for (uint32_t i = 0; i < NODES; i++)
        join(b, i);
    union message m = {.submit = {.request = {++b->requests, 2},
                                  .kind = JOB_RUN,
                                  .flags = flags,
                                  .nodes = 3,
                                  .ppn = 2,
                                  .procs = 6,
                                  .on = &b->set,
                                  .exclude = &b->none}};
    CHECK_EQ(nodeset_parse(&b->set, "n[1-2,4]", "n", NULL), 0);
    say(b, LINK, 0, MESSAGE_SUBMIT, &m);
    keep(b);
    struct job *j = job_find(b->mm, 1);
    CHECK(j != NULL && job_running(b->mm, j) != NULL);
    struct running *r = job_running(b->mm, j);
    r->phase = PHASE_GOING;
    j->state = STATE_RUNNING;
    nodeset_copy(&r->waiting, &r->set);
    act(b, VERB_FOLLOW, 1);
    return r;
}

static void test_one_job_many_times(void) {
    static const enum verb verbs[] = {VERB_PIDS, VERB_SIZE, VERB_SIGNAL};
    struct bench b;
    begin_going(&b, 0);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        act(&b, verbs[i], 600);
        CHECK_EQ(mailed(&b), 0);
        CHECK_EQ(sent(&b, MESSAGE_ANSWER), 1);
    }
    act(&b, VERB_FOLLOW, 600); /* that goes to nobody but who asks */
    CHECK_EQ(sent(&b, MESSAGE_ANSWER), 1);
    act(&b, VERB_PIDS, 1);
    CHECK_EQ(mailed(&b), 1);
    teardown(&b);
}

/* Is it told to the client what this node says of two ranks? */
static bool told(struct bench *b, uint64_t run, uint32_t node, uint32_t first, uint32_t second) {
    uint8_t rows[2 * PIDS_ROW_BYTES];
    store_le32(rows, first);
    store_le32(rows + 4, 100);
    store_le32(rows + 8, second);
    store_le32(rows + 12, 101);
    union message m = {.pids = {.run = run, .asker = LINK, .rows = bytes_of(rows, sizeof rows)}};
    say(b, 0, node, MESSAGE_PIDS, &m);
    return sent(b, MESSAGE_PIDS) == 1;
}

static void test_processes_of_other_nodes(void) {
    struct bench b;
    uint64_t run = begin_going(&b, 0)->run;
    CHECK(told(&b, run, 1, 0, 1));
    CHECK(told(&b, run, 2, 2, 3));
    CHECK(told(&b, run, 4, 4, 5));
    CHECK(!told(&b, run, 2, 2, 4)); /* one of another */
    CHECK(!told(&b, run, 4, 4, 6)); /* there is none */
    CHECK(!told(&b, run, 3, 4, 5)); /* it is not of the run */
    CHECK(!told(&b, run + 1, 1, 0, 1));
    CHECK(!told(&b, run, NODES + 9, 0, 1));
    teardown(&b);
}

static void test_processes_that_are_dealt_out(void) {
    struct bench b;
    uint64_t run = begin_going(&b, JOB_CYCLIC)->run;
    CHECK(told(&b, run, 2, 1, 4));
    CHECK(!told(&b, run, 2, 2, 3));
    teardown(&b);
}

/* ---- sections ---- */

/* One more job goes, in sections of one, two and one nodes; the second has two processes on each. */
static struct running *begin_sections(struct bench *b, uint32_t flags) {
    static const struct section sizes[] = {{1, 1, 1, {0}}, {2, 2, 3, {0}}, {1, 1, 1, {0}}};
    uint8_t list[256];
    size_t len = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        len += (size_t)section_store(&sizes[i], room_of(list + len, sizeof list - len));
    union message m = {.submit = {.request = {++b->requests, 2},
                                  .kind = JOB_RUN,
                                  .flags = flags | JOB_SECTIONS,
                                  .nodes = 4,
                                  .ppn = 2,
                                  .procs = 5,
                                  .on = &b->none,
                                  .exclude = &b->none,
                                  .sections = bytes_of(list, len)}};
    uint8_t number[4];
    uint32_t id = b->mm->next_id;
    say(b, LINK, 0, MESSAGE_SUBMIT, &m);
    keep(b);
    struct job *j = job_find(b->mm, id);
    CHECK(j != NULL && job_running(b->mm, j) != NULL);
    job_running(b->mm, j)->phase = PHASE_GOING;
    j->state = STATE_RUNNING;
    store_le32(number, id);
    union message follow = {.act = {.request = {++b->requests, 3},
                                    .verb = VERB_FOLLOW,
                                    .value = 1,
                                    .nodes = &b->none,
                                    .jobs = bytes_of(number, sizeof number)}};
    say(b, LINK, 0, MESSAGE_ACT, &follow);
    return job_running(b->mm, j);
}

/* What is taken of a rank is told to its node, and that is the one that the map of the whole job has. */
static bool is_told_right(struct bench *b, const struct running *r, uint32_t rank) {
    union message m = {.taken = {.run = r->run, .rank = rank, .stream = 1, .offset = 5}};
    say(b, LINK, 0, MESSAGE_TAKEN, &m);
    if (mailed(b) != 1)
        return false;
    const struct nodeset *to = b->out.list[0].request.set;
    for (uint32_t i = 0; i < b->out.count; i++)
        to = b->out.list[i].kind == EFFECT_REQUEST ? b->out.list[i].request.set : to;
    uint32_t node = nodeset_first(to);
    struct map map = job_placing(b->mm, job_find(b->mm, run_job(r->run)), r);
    return nodeset_count(to) == 1 && node == nodeset_at(&r->set, map_place(&map, rank));
}

static void check_sections(uint32_t flags) {
    struct bench b;
    begin(&b);
    for (uint32_t i = 0; i < NODES; i++)
        join(&b, i);
    struct running *one = begin_sections(&b, flags), *other = begin_sections(&b, flags);
    CHECK(!nodeset_equal(&one->set, &other->set));
    for (uint32_t rank = 0; rank < 5; rank++) {
        CHECK(is_told_right(&b, one, rank));
        CHECK(is_told_right(&b, other, rank));
    }
    CHECK(!is_told_right(&b, one, 5)); /* there is none */
    teardown(&b);
}

static void test_sections(void) {
    check_sections(0);
    check_sections(JOB_CYCLIC);
}

static void test_processes_of_other_sections(void) {
    struct bench b;
    begin(&b);
    for (uint32_t i = 0; i < NODES; i++)
        join(&b, i);
    struct running *r = begin_sections(&b, 0);
    struct map map = job_placing(b.mm, job_find(b.mm, 1), r);
    uint32_t first = nodeset_at(&r->set, map_place(&map, 1));
    uint32_t second = nodeset_at(&r->set, map_place(&map, 3));
    CHECK(first != second);
    CHECK(told(&b, r->run, first, 1, 2)); /* the second section: ranks 1 and 2 together, then 3 */
    CHECK(told(&b, r->run, second, 3, 3));
    CHECK(!told(&b, r->run, second, 1, 3));
    CHECK(!told(&b, r->run, first, 0, 1));
    CHECK(!told(&b, r->run, first, 1, 5)); /* there is none */
    teardown(&b);
}

/* ---- output that could not be written ---- */

enum { SCRIBE = 10 };

static void follow(struct bench *b, uint32_t link, uint32_t value) {
    uint8_t job[4] = {1};
    union message m = {.act = {.request = {++b->requests, 3},
                               .verb = VERB_FOLLOW,
                               .value = value,
                               .nodes = &b->none,
                               .jobs = bytes_of(job, sizeof job)}};
    say(b, link, 0, MESSAGE_ACT, &m);
    CHECK_EQ(sent(b, MESSAGE_ANSWER), 1);
}

static void unfollow(struct bench *b, const char *words) {
    uint8_t job[4] = {1};
    union message m = {.act = {.request = {++b->requests, 3},
                               .verb = VERB_UNFOLLOW,
                               .value = 1,
                               .nodes = &b->none,
                               .jobs = bytes_of(job, sizeof job),
                               .text = bytes_from_str(words)}};
    say(b, SCRIBE, 0, MESSAGE_ACT, &m);
}

/* What the link was told in the last step: for each news `held` or `free`, and what was not written. */
static const char *news(struct bench *b, uint32_t link) {
    static char text[256];
    union message m;
    struct text t;
    text_init(&t, text, sizeof text);
    for (uint32_t i = 0; i < b->out.count; i++) {
        const struct effect *e = &b->out.list[i];
        if (e->kind != EFFECT_SEND || e->send.type != MESSAGE_NEWS || e->send.links[0] != link)
            continue;
        CHECK_EQ(message_decode(e->send.type, e->send.head, b->sets, &m), 0);
        text_str(&t, m.news.held ? "held(" : "free(");
        text_strn(&t, (const char *)m.news.unwritten.at, m.news.unwritten.len);
        text_str(&t, ") ");
    }
    return text;
}

/* Job 1 is over and somebody is to write its output, of which there is some. */
static void begin_written(struct bench *b) {
    struct job *j;
    begin_going(b, 0);
    j = job_find(b->mm, 1);
    j->kind = JOB_BATCH;
    j->state = STATE_DONE;
    j->settled = true;
    j->output = 5;
    follow(b, SCRIBE, 1);
}

static void test_unwritten(void) {
    struct bench b;
    begin_written(&b);
    unfollow(&b, "file: why");
    CHECK_STR(news(&b, LINK), "held(file: why) free() ");
    CHECK_STR(news(&b, SCRIBE), "");
    follow(&b, LINK + 2, 0);
    CHECK_STR(news(&b, LINK + 2), "free(see the log of the cluster) ");
    teardown(&b);
    begin_written(&b);
    unfollow(&b, "");
    CHECK_STR(news(&b, LINK), "free() ");
    follow(&b, LINK + 2, 0);
    CHECK_STR(news(&b, LINK + 2), "free() ");
    teardown(&b);
}

/* Whoever writes the output of one job after the other does not take all places of those who follow. */
static void test_follow_ends(void) {
    struct bench b;
    begin_written(&b);
    CHECK_EQ(b.mm->follow_end, 2);
    unfollow(&b, "");
    CHECK_EQ(b.mm->follow_end, 1); /* who waits is left */
    teardown(&b);
}

int main(void) {
    TEST(test_one_job_many_times);
    TEST(test_processes_of_other_nodes);
    TEST(test_processes_that_are_dealt_out);
    TEST(test_sections);
    TEST(test_processes_of_other_sections);
    TEST(test_unwritten);
    TEST(test_follow_ends);
    return tap_finish();
}
