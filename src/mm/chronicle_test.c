/* SPDX-License-Identifier: MIT */
/* Tests of jobs of the past. */
#include "mm/chronicle.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "mm/inside.h"
#include "tap.h"

enum { NODES = 300, ROWS = 16, TEXT = 64 };

struct seen {
    uint32_t count;
    struct job_row rows[ROWS];
    char name[ROWS][64], list[ROWS][64], why[ROWS][64];
};

struct stage {
    struct seen seen;
    struct chronicle *history;
    struct roster roster;
    void *memory;
    uint64_t words[8];
    struct nodeset set;
    uint8_t event[4096];
};

static struct bytes keep(char out[64], struct bytes b) {
    snprintf(out, 64, "%.*s", (int)b.len, (const char *)b.at);
    return bytes_of(out, strlen(out));
}

static void on_row(void *context, const struct job_row *r) {
    struct seen *s = context;
    if (s->count >= ROWS)
        return;
    struct job_row *to = &s->rows[s->count];
    *to = *r;
    to->name = keep(s->name[s->count], r->name);
    to->node_list = keep(s->list[s->count], r->node_list);
    to->why = keep(s->why[s->count], r->why);
    s->count++;
}

static void begin_range(struct stage *s, uint32_t from, uint32_t to) {
    struct arena a;
    struct chronicle_config c = {.nodes_max = NODES,
                                 .jobs_max = 8,
                                 .text_max = TEXT,
                                 .roster = &s->roster,
                                 .from = from,
                                 .to = to,
                                 .row = on_row,
                                 .context = &s->seen};
    memset(s, 0, sizeof *s);
    s->roster = roster_plain("n", NODES);
    size_t bytes = chronicle_bytes(&c);
    s->memory = calloc(1, bytes);
    arena_init(&a, s->memory, bytes);
    s->history = chronicle_new(&c, &a);
    nodeset_init(&s->set, NODES, s->words);
}

static void begin(struct stage *s, uint32_t from) {
    begin_range(s, from, 0);
}

static struct codec head(struct stage *s, uint8_t event, uint32_t job, uint32_t count,
                         uint64_t at) {
    struct record_head h = {.event = event, .job = job, .count = count, .at = at};
    struct codec c = {.encoding = true, .out = s->event, .len = sizeof s->event};
    record_walk_head(&c, &h);
    return c;
}

static void feed(struct stage *s, uint64_t key, const struct codec *c) {
    CHECK(!c->failed);
    chronicle_feed(s->history, key, bytes_of(s->event, c->at));
}

static void submit(struct stage *s, uint32_t job, uint32_t count, const char *name) {
    struct nodeset none = s->set;
    nodeset_clear(&none);
    union message m = {.submit = {.kind = JOB_BATCH,
                                  .nodes = 2,
                                  .ppn = 1,
                                  .procs = 2,
                                  .array_first = count > 1 ? 10 : 0,
                                  .array_last = count > 1 ? 10 + count - 1 : 0,
                                  .on = &none,
                                  .exclude = &none,
                                  .name = bytes_of(name, strlen(name))}};
    struct codec c = head(s, EVENT_SUBMIT, job, count, 100);
    long len = message_encode(MESSAGE_SUBMIT, &m, room_of(s->event + c.at, sizeof s->event - c.at));
    CHECK(len > 0);
    c.at += (size_t)len;
    feed(s, job, &c);
}

static void start(struct stage *s, uint64_t key, uint32_t job, uint32_t node) {
    struct codec c = head(s, EVENT_START, job, 1, 200);
    nodeset_clear(&s->set);
    nodeset_add(&s->set, node);
    nodeset_add(&s->set, node + 1);
    codec_set(&c, &s->set);
    feed(s, key, &c);
}

static void end(struct stage *s, uint64_t key, uint32_t job, const struct job *how) {
    struct codec c = head(s, EVENT_END, job, 1, 300);
    struct job copy = *how;
    record_walk_end(&c, &copy);
    feed(s, key, &c);
}

static void test_one(void) {
    struct stage s;
    const struct job killed = {.state = STATE_FAILED,
                               .status = 137,
                               .worst = {.node = 4, .cause = CAUSE_KILLED, .rank = 1, .value = 9}};
    begin(&s, 0);
    submit(&s, 7, 1, "words");
    start(&s, 7, 7, 4);
    end(&s, 7, 7, &killed);
    CHECK_EQ(s.seen.count, 0); /* more may follow */
    chronicle_end(s.history);
    CHECK_EQ(s.seen.count, 1);
    const struct job_row *r = &s.seen.rows[0];
    CHECK(r->job == 7 && r->state == STATE_FAILED && r->status == 137 && r->procs == 2);
    CHECK(r->submitted_ns == 100 && r->started_ns == 200 && r->ended_ns == 300);
    CHECK_STR(s.seen.name[0], "words");
    CHECK_STR(s.seen.list[0], "n[4-5]");
    CHECK_STR(s.seen.why[0], "rank 1 on n4 was killed by signal 9");
    CHECK_EQ(chronicle_last(s.history), 7);
    free(s.memory);
}

static void test_memory(void) {
    struct stage s;
    const struct job greedy = {
        .state = STATE_FAILED,
        .status = 137,
        .worst = {.node = 4, .cause = CAUSE_MEMORY, .rank = 1, .value = 64 * 256}};
    begin(&s, 0);
    submit(&s, 7, 1, "words");
    start(&s, 7, 7, 4);
    end(&s, 7, 7, &greedy);
    chronicle_end(s.history);
    CHECK_STR(s.seen.why[0], "rank 1 on n4 was killed: it used more than its 64 MiB of memory");
    free(s.memory);
}

/* What it has used is behind the rest; of one that was written before that was so, it is not known. */
static void test_usage(void) {
    struct stage s;
    struct job done = {.state = STATE_DONE, .worst.node = NO_NODE};
    begin(&s, 0);
    submit(&s, 7, 1, "old");
    end(&s, 7, 7, &done);
    done.measured = true;
    done.usage = (struct usage){.user_ns = 5, .peak_bytes = 6, .peak_node = 4};
    submit(&s, 8, 1, "new");
    end(&s, 8, 8, &done);
    chronicle_end(s.history);
    CHECK_EQ(s.seen.count, 2);
    CHECK(s.seen.rows[0].state == STATE_DONE && !s.seen.rows[0].measured);
    CHECK(s.seen.rows[1].measured && usage_same(&s.seen.rows[1].usage, &done.usage));
    CHECK_EQ(s.seen.rows[1].peak_where.len, 2);
    free(s.memory);
}

/* As whoever is there now is called. */
static void test_hosts(void) {
    struct stage s;
    const struct job lost = {
        .state = STATE_LOST, .status = 125, .worst = {.node = 4, .cause = CAUSE_LOST}};
    begin(&s, 0);
    void *storage = malloc(roster_bytes(NODES));
    roster_init(&s.roster, "n", NODES, storage);
    nodeset_clear(&s.set);
    nodeset_add(&s.set, 4);
    nodeset_add(&s.set, 6);
    CHECK_EQ(roster_fill(&s.roster, &s.set, bytes_of("gate\0h6", 8), NULL), 0);
    submit(&s, 7, 1, "words");
    start(&s, 7, 7, 4);
    end(&s, 7, 7, &lost);
    chronicle_end(s.history);
    CHECK_EQ(s.seen.count, 1);
    CHECK_STR(s.seen.list[0], "gate,n5");
    CHECK_STR(s.seen.why[0], "a node was lost on gate");
    free(storage);
    free(s.memory);
}

static void test_array(void) {
    struct stage s;
    const struct job done = {.state = STATE_DONE, .worst.node = NO_NODE};
    begin(&s, 4);
    submit(&s, 1, 2, "early");
    submit(&s, 3, 4, "array"); /* 3 to 6; those before are not wanted */
    start(&s, 3, 5, 8);
    start(&s, 3, 4, 0);
    end(&s, 3, 5, &done);
    submit(&s, 7, 1, "last");
    CHECK_EQ(s.seen.count, 3);
    chronicle_end(s.history);
    CHECK_EQ(s.seen.count, 4);
    static const uint8_t states[] = {STATE_RUNNING, STATE_DONE, STATE_QUEUED, STATE_QUEUED};
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(s.seen.rows[i].job, 4 + i);
        CHECK_EQ(s.seen.rows[i].state, states[i]);
    }
    CHECK(s.seen.rows[0].array == 11 && s.seen.rows[3].array == 0);
    CHECK_STR(s.seen.list[1], "n[8-9]");
    free(s.memory);
}

static void test_one_of_many(void) {
    struct stage s;
    begin_range(&s, 4, 4);
    submit(&s, 3, 4, "array");
    struct codec c = head(&s, EVENT_HOLD, 4, 1, 250);
    CHECK(chronicle_feed(s.history, 3, bytes_of(s.event, c.at)));
    CHECK(!chronicle_feed(s.history, 7, bytes_of(s.event, c.at))); /* enough */
    CHECK_EQ(s.seen.count, 1);
    CHECK(s.seen.rows[0].job == 4 && s.seen.rows[0].state == STATE_SUSPENDED);
    free(s.memory);
}

static void test_changes(void) {
    struct stage s;
    begin(&s, 0);
    submit(&s, 1, 1, "job");
    start(&s, 1, 1, 0);
    struct codec c = head(&s, EVENT_HOLD, 1, 1, 250);
    feed(&s, 1, &c);
    submit(&s, 2, 1, "again");
    CHECK_EQ(s.seen.rows[0].state, STATE_SUSPENDED);
    start(&s, 2, 2, 0);
    c = head(&s, EVENT_AGAIN, 2, 1, 250);
    feed(&s, 2, &c);
    c = head(&s, EVENT_DRAIN, 0, 1, 250);
    feed(&s, NODES_KEY, &c);
    chronicle_end(s.history);
    CHECK_EQ(s.seen.count, 2);
    CHECK_EQ(s.seen.rows[1].state, STATE_QUEUED);
    free(s.memory);
}

/* Lists beyond the room for them are left out; whatever bytes come, nothing breaks. */
static void test_strange(void) {
    struct stage s;
    struct random dice;
    begin(&s, 0);
    submit(&s, 1, 8, "wide");
    for (uint32_t i = 0; i < 8; i++)
        for (int k = 0; k < 3; k++)
            start(&s, 1, 1 + i, 100 + 2 * i);
    chronicle_end(s.history);
    CHECK_STR(s.seen.list[0], "n[100-101]");
    CHECK_STR(s.seen.list[7], "");
    start(&s, 1, 5, 0); /* of a job that was never submitted */
    submit(&s, 20, 9, "too many");
    chronicle_end(s.history);
    CHECK_EQ(s.seen.count, 8);
    random_init(&dice, 1);
    for (uint32_t i = 0; i < 20000; i++) {
        uint8_t junk[64];
        size_t len = random_below(&dice, sizeof junk);
        for (size_t k = 0; k < len; k++)
            junk[k] = (uint8_t)random_below(&dice, k < 4 ? 8 : 256);
        chronicle_feed(s.history, 1 + random_below(&dice, 4), bytes_of(junk, len));
    }
    chronicle_end(s.history);
    free(s.memory);
}

int main(void) {
    TEST(test_one);
    TEST(test_memory);
    TEST(test_usage);
    TEST(test_hosts);
    TEST(test_array);
    TEST(test_one_of_many);
    TEST(test_changes);
    TEST(test_strange);
    return tap_finish();
}
