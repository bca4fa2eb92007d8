/* SPDX-License-Identifier: MIT */
/* Who is there, as the manager has it: numbers that are vacant, and hosts that come and go. */
#include "manager_alone.h"

/* Its books agree, too. */
static void teardown_sound(struct bench *b) {
    uint32_t scratch[NODES];
    const char *wrong = mm_wrong(b->mm, scratch, true);
    CHECK_STR(wrong != NULL ? wrong : "", "");
    teardown(b);
}

static void leave(struct bench *b, uint32_t node) {
    nodeset_clear(&b->set);
    nodeset_add(&b->set, node);
    feed(b, (struct input){.kind = INPUT_NODES, .nodes = {.nodes = &b->set}});
}

/* Who is there: numbers as a folded list, names one behind the other. */
static void enrol(struct bench *b, const char *numbers, struct bytes names) {
    CHECK_EQ(nodeset_parse(&b->set, numbers, "n", NULL), 0);
    feed(b, (struct input){.kind = INPUT_ROSTER, .roster = {.taken = &b->set, .names = names}});
}

static void tick(struct bench *b) {
    feed(b, (struct input){.kind = INPUT_TIMER, .timer.id = TIMER_NODES});
}

/* Everything that was logged is durable. */
static void keep(struct bench *b) {
    feed(b, (struct input){.kind = INPUT_LOGGED, .logged = {.ticket = b->mm->tickets}});
}

/* The first effect of a kind in the last step, NULL if there is none. */
static const struct effect *find(const struct bench *b, enum effect_kind kind) {
    for (uint32_t i = 0; i < b->out.count; i++)
        if (b->out.list[i].kind == kind)
            return &b->out.list[i];
    return NULL;
}

static const char *noted(const struct bench *b) {
    static char words[256];
    const struct effect *e = find(b, EFFECT_NOTE);
    snprintf(words, sizeof words, "%.*s", e == NULL ? 0 : (int)e->note.len,
             e == NULL ? "" : (const char *)e->note.at);
    return words;
}

/* What a client is told. */
static union message heard(struct bench *b, uint16_t type) {
    static uint8_t body[1 << 17];
    union message m = {0};
    for (uint32_t i = 0; i < b->out.count; i++) {
        const struct effect *e = &b->out.list[i];
        if (e->kind != EFFECT_SEND || e->send.type != type)
            continue;
        memcpy(body, e->send.head.at, e->send.head.len);
        if (e->send.tail.len > 0)
            memcpy(body + e->send.head.len, e->send.tail.at, e->send.tail.len);
        struct bytes all = bytes_of(body, e->send.head.len + e->send.tail.len);
        CHECK_EQ(message_decode(type, all, b->sets, &m), 0);
        return m;
    }
    CHECK(false);
    return m;
}

static struct message_rows ask(struct bench *b, enum subject subject, uint32_t job) {
    union message m = {.ask = {.request = {1, 1}, .subject = (uint8_t)subject, .job = job}};
    say(b, LINK, 0, MESSAGE_ASK, &m);
    return heard(b, MESSAGE_ROWS).rows;
}

static struct cluster_row cluster(struct bench *b) {
    struct cluster_row row = {0};
    size_t at = 0;
    CHECK_EQ(cluster_row_next(ask(b, SUBJECT_CLUSTER, 0).rows, &at, &row), 1);
    return row;
}

/* "h0:up h1:down" */
static const char *listed(struct bench *b) {
    static char words[256];
    struct message_rows rows = ask(b, SUBJECT_NODES, 0);
    struct node_row row;
    struct text t;
    size_t at = 0;
    uint32_t count = 0;
    text_init(&t, words, sizeof words);
    for (; node_row_next(rows.rows, &at, &row) == 1; count++) {
        text_str(&t, count > 0 ? " " : "");
        text_strn(&t, (const char *)row.name.at, row.name.len);
        text_char(&t, ':');
        text_str(&t, node_state_name((enum node_state)row.state));
    }
    CHECK_EQ(rows.total, count);
    return words;
}

/* The answer's text; "" if it is taken. */
static const char *submit(struct bench *b, uint32_t nodes, const char *on) {
    static char words[256];
    union message m = {.submit = {.request = {++b->requests, 2},
                                  .kind = JOB_RUN,
                                  .nodes = nodes,
                                  .ppn = 1,
                                  .procs = nodes,
                                  .on = &b->set,
                                  .exclude = &b->none}};
    CHECK_EQ(nodeset_parse(&b->set, on, "n", NULL), 0);
    say(b, LINK, 0, MESSAGE_SUBMIT, &m);
    if (find(b, EFFECT_LOG) != NULL)
        return "";
    struct message_answer a = heard(b, MESSAGE_ANSWER).answer;
    snprintf(words, sizeof words, "%.*s", (int)a.text.len, (const char *)a.text.at);
    return words;
}

static const char *why(struct bench *b, uint32_t job) {
    static char words[256];
    struct message_rows rows = ask(b, SUBJECT_WHY, job);
    struct job_row row = {0};
    size_t at = 0;
    CHECK_EQ(job_row_next(rows.rows, &at, &row), 1);
    snprintf(words, sizeof words, "%.*s", (int)row.why.len, (const char *)row.why.at);
    return words;
}

#define NAMES(text) bytes_of(text, sizeof text)

/* ---- the tests ---- */

static void test_all_are_taken_at_first(void) {
    struct bench b;
    begin(&b);
    join(&b, 2);
    struct cluster_row row = cluster(&b);
    CHECK(row.nodes == NODES && row.up == 1 && row.pes == NODES * PES);
    CHECK_STR(listed(&b), "n0:down n1:down n2:up n3:down n4:down n5:down");
    teardown_sound(&b);
}

static void test_vacant_numbers_do_not_exist(void) {
    struct bench b;
    begin(&b);
    enrol(&b, "n[0-1,4]", NAMES("h0\0h1\0gate"));
    for (uint32_t i = 0; i < 3; i++)
        join(&b, i); /* also one that is not there for anybody */
    struct cluster_row row = cluster(&b);
    CHECK(row.nodes == 3 && row.up == 2 && row.pes == 3 * PES && row.used == 0);
    CHECK_STR(listed(&b), "h0:up h1:up gate:down");
    CHECK_STR(submit(&b, 4, ""), "needs 4 nodes with 1 processor; the cluster has 3 with 2");
    CHECK_STR(submit(&b, 2, "n[0,2]"), "needs 2 nodes, but only 1 are named and not excluded");
    CHECK_STR(submit(&b, 3, ""), "");
    keep(&b);
    CHECK_STR(why(&b, 1), "waits for 1 more processor; 1 node is drained or down");
    CHECK(!node_usable(b.mm, 2) && node_usable(b.mm, 1));
    b.now += 60 * NS_PER_S;
    tick(&b);
    CHECK_STR(noted(&b), "node gate down"); /* and nobody else */
    join(&b, 4);
    CHECK_STR(noted(&b), "node gate up");
    CHECK(find(&b, EFFECT_LOG) != NULL); /* it starts */
    teardown_sound(&b);
}

static void test_hosts_come_and_go(void) {
    struct bench b;
    begin(&b);
    enrol(&b, "n[0-2]", NAMES("a\0b\0c"));
    for (uint32_t i = 0; i < 4; i++)
        join(&b, i);
    CHECK_STR(listed(&b), "a:up b:up c:up");
    enrol(&b, "n[0,2-3]", NAMES("a\0c\0d"));
    CHECK_STR(listed(&b), "a:up c:up d:down"); /* it has not told what it has */
    b.now += NS_PER_S;
    tick(&b);
    CHECK_STR(noted(&b), "");
    CHECK(find(&b, EFFECT_REQUEST) != NULL); /* it is asked */
    join(&b, 3);
    CHECK_STR(listed(&b), "a:up c:up d:up");
    leave(&b, 1); /* whoever it was: nobody's any more */
    b.now += 60 * NS_PER_S;
    tick(&b);
    CHECK_STR(noted(&b), "");
    enrol(&b, "n[0,2]", NAMES("a\0c\0d")); /* nonsense */
    CHECK_STR(listed(&b), "a:up c:up d:up");
    enrol(&b, "", (struct bytes){0});
    CHECK_STR(listed(&b), "");
    CHECK_EQ(cluster(&b).nodes, 0);
    CHECK(strlen(submit(&b, 1, "")) > 0);
    teardown_sound(&b);
}

static const char *drain(struct bench *b, const char *nodes, bool drained) {
    static char words[256];
    union message m = {.act = {.request = {++b->requests, 3},
                               .verb = drained ? VERB_DRAIN : VERB_UNDRAIN,
                               .nodes = &b->set,
                               .text = bytes_from_str("a fan")}};
    CHECK_EQ(nodeset_parse(&b->set, nodes, "n", NULL), 0);
    say(b, LINK, 0, MESSAGE_ACT, &m);
    if (find(b, EFFECT_LOG) != NULL) {
        keep(b);
        return "";
    }
    struct message_answer a = heard(b, MESSAGE_ANSWER).answer;
    snprintf(words, sizeof words, "%.*s", (int)a.text.len, (const char *)a.text.at);
    return words;
}

/* Who has a number next has nothing to do with who had it before. */
static void test_a_number_changes_hands(void) {
    struct bench b;
    begin(&b);
    enrol(&b, "n[0-2]", NAMES("a\0b\0c"));
    for (uint32_t i = 0; i < 3; i++)
        join(&b, i);
    CHECK_STR(drain(&b, "n1", true), "");
    CHECK_STR(drain(&b, "n[1,5]", true), "some of these are not in the cluster (any more)");
    CHECK_STR(listed(&b), "a:up b:drained c:up");
    enrol(&b, "n[0-2]", NAMES("a\0other\0c"));
    CHECK(find(&b, EFFECT_LOG) != NULL); /* the log must know */
    keep(&b);
    CHECK(!mm_drained(b.mm, 1));
    CHECK_STR(listed(&b), "a:up other:down c:up");
    join(&b, 1);
    CHECK_STR(listed(&b), "a:up other:up c:up");
    teardown_sound(&b);
}

/* What the last step has logged, at most `most` events; how many. */
static uint32_t copy_log(const struct bench *b, uint8_t (*events)[512], size_t *lens,
                         uint32_t most) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->out.count; i++) {
        const struct effect *e = &b->out.list[i];
        if (e->kind != EFFECT_LOG || !CHECK(count < most && e->log.body.len <= 512))
            continue;
        memcpy(events[count], e->log.body.at, e->log.body.len);
        lens[count++] = e->log.body.len;
    }
    return count;
}

/* The log speaks of a node that is vacant by now, as the world says before all of it was read. */
static void test_the_log_of_another_roster(void) {
    uint8_t events[2][512];
    size_t lens[2];
    struct bench a, b;
    struct mm_job j;
    begin(&a);
    for (uint32_t i = 0; i < 3; i++)
        join(&a, i);
    CHECK_STR(drain(&a, "n0", true), "");
    CHECK_STR(submit(&a, 2, ""), ""); /* and it starts at once */
    uint32_t count = copy_log(&a, events, lens, 2);
    CHECK_EQ(count, 2);
    setup(&b);
    enrol(&b, "n[0-1]", NAMES("x\0y"));
    for (uint32_t i = 0; i < count; i++)
        feed(&b, (struct input){.kind = INPUT_REPLAY,
                                .replay = {.key = 1, .body = bytes_of(events[i], lens[i])}});
    CHECK(mm_job(b.mm, 1, &j) && j.nodes != NULL && nodeset_has(j.nodes, 2));
    feed(&b, (struct input){.kind = INPUT_REPLAY});
    CHECK(mm_job(b.mm, 1, &j) && j.state == STATE_RUNNING);
    b.now += 4 * NS_PER_S; /* far less than nodes get to come back */
    tick(&b);
    CHECK_STR(noted(&b), "");
    CHECK(mm_job(b.mm, 1, &j) && j.state == STATE_ENDING && j.reason == REASON_LOST);
    CHECK_EQ(cluster(&b).nodes, 2);
    teardown(&a);
    teardown_sound(&b);
}

int main(void) {
    TEST(test_all_are_taken_at_first);
    TEST(test_vacant_numbers_do_not_exist);
    TEST(test_hosts_come_and_go);
    TEST(test_a_number_changes_hands);
    TEST(test_the_log_of_another_roster);
    return tap_finish();
}
