/* SPDX-License-Identifier: MIT */
/* Tests of the world without faults: times are exact, order is kept, every effect does its work. */
#include "sim/puppet.h"
#include "tap.h"

#define US NS_PER_US

/* Children may send ACK (control), parents TICK (control), sources PUT (bulk). */
enum { UP_TYPE = MESSAGE_ACK, DOWN_TYPE = MESSAGE_TICK };

static const struct link_model plain = {
    .latency_ns = 10 * US, .connect_ns = 50 * US, .durable_ns = 100 * US};

/* ---- links ---- */

static void test_open(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1, .number = PURPOSE_TREE},
        {.at = US, .node = 2, .kind = ACT_OPEN, .peer = 3, .number = PURPOSE_SLOT},
    };
    struct stage *s = STAGE(plain, acts);
    world_run_until(s->w, 60 * US);
    const struct heard *child = stage_heard(s, 0, INPUT_LINK_UP, 0);
    const struct heard *parent = stage_heard(s, 1, INPUT_LINK_UP, 0);
    CHECK_EQ(child->in.now, 51 * US);
    CHECK_EQ(parent->in.now, 51 * US);
    CHECK(parent < child);
    CHECK_EQ(child->in.link.peer, 1);
    CHECK_EQ(child->in.link.cookie, 101);
    CHECK_EQ(child->in.link.role, ROLE_PARENT);
    CHECK(child->in.link.link != 0);
    CHECK_EQ(parent->in.link.peer, 0);
    CHECK_EQ(parent->in.link.cookie, 0);
    CHECK_EQ(parent->in.link.role, ROLE_CHILD);
    CHECK_EQ(stage_heard(s, 2, INPUT_LINK_UP, 0)->in.link.role, ROLE_SOURCE);
    CHECK_EQ(stage_heard(s, 3, INPUT_LINK_UP, 0)->in.link.role, ROLE_SINK);
    CHECK_EQ(world_links(s->w, 0), 1);
    stage_free(s);
}

static void test_open_to_nobody(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1, .number = PURPOSE_TREE},
    };
    struct stage *s = STAGE(plain, acts);
    world_crash(s->w, 1);
    world_run_until(s->w, 60 * US);
    const struct heard *h = stage_heard(s, 0, INPUT_LINK_DOWN, 0);
    CHECK_EQ(h->in.now, 51 * US);
    CHECK_EQ(h->in.link.link, 0);
    CHECK_EQ(h->in.link.cookie, 101);
    CHECK_EQ(h->in.link.peer, 1);
    stage_free(s);
}

static void test_close(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1},
        {.at = 100 * US, .node = 0, .kind = ACT_SEND, .peer = 1, .type = UP_TYPE, .text = "last"},
        {.at = 100 * US, .node = 0, .kind = ACT_CLOSE, .peer = 1, .number = REFUSAL_EPOCH},
        {.at = 101 * US, .node = 1, .kind = ACT_SEND, .peer = 0, .type = DOWN_TYPE, .text = "late"},
        {.at = 150 * US, .node = 0, .kind = ACT_CLOSE, .peer = 1},
        {.at = 150 * US, .node = 0, .kind = ACT_SEND, .peer = 1, .type = UP_TYPE, .text = "void"},
    };
    struct stage *s = STAGE(plain, acts);
    world_run_until(s->w, 200 * US);
    const struct heard *last = stage_heard(s, 1, INPUT_MESSAGE, 0);
    const struct heard *down = stage_heard(s, 1, INPUT_LINK_DOWN, 0);
    CHECK_STR(last->text, "last");
    CHECK_EQ(down->in.now, 110 * US);
    CHECK(last < down);
    CHECK_EQ(stage_count(s, 1, INPUT_MESSAGE), 1);
    CHECK_EQ(stage_count(s, 0, INPUT_MESSAGE), 0);
    CHECK_EQ(stage_count(s, 0, INPUT_LINK_DOWN), 0);
    CHECK_EQ(world_counts(s->w)->refused[REFUSAL_EPOCH], 1);
    CHECK_EQ(world_links(s->w, 0), 0);
    CHECK_EQ(world_links(s->w, 1), 0);
    stage_free(s);
}

/* ---- frames ---- */

static void test_latency(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1},
        {.at = 100 * US, .node = 0, .kind = ACT_SEND, .peer = 1, .type = UP_TYPE, .text = "up"},
        {.at = 100 * US, .node = 1, .kind = ACT_SEND, .peer = 0, .type = DOWN_TYPE, .text = "down"},
    };
    struct stage *s = STAGE(plain, acts);
    world_run_until(s->w, 200 * US);
    const struct heard *up = stage_heard(s, 1, INPUT_MESSAGE, 0);
    CHECK_EQ(up->in.now, 110 * US);
    CHECK_STR(up->text, "up");
    CHECK_EQ(up->in.message.type, UP_TYPE);
    CHECK_EQ(up->in.message.epoch, 5);
    CHECK_EQ(up->in.message.link, stage_heard(s, 1, INPUT_LINK_UP, 0)->in.link.link);
    CHECK_EQ(stage_heard(s, 0, INPUT_MESSAGE, 0)->in.now, 110 * US);
    CHECK_EQ(world_counts(s->w)->messages, 2);
    CHECK_EQ(world_counts(s->w)->bytes, 2 * HEADER_BYTES + 2 + 4);
    stage_free(s);
}

/* One byte a nanosecond: two frames of 1000 bytes leave one after the other. */
static void test_bandwidth(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 3},
        {.at = US, .node = 1, .kind = ACT_OPEN, .peer = 3},
        {100 * US, 0, ACT_SEND, 3, UP_TYPE, 1000 - HEADER_BYTES, "a"},
        {100 * US, 0, ACT_SEND, 3, UP_TYPE, 1000 - HEADER_BYTES, "b"},
        {200 * US, 0, ACT_SEND, 3, UP_TYPE, 1000 - HEADER_BYTES, "c"},
        {200 * US, 1, ACT_SEND, 3, UP_TYPE, 500 - HEADER_BYTES, "d"},
        {200 * US, 1, ACT_SEND, 3, UP_TYPE, 500 - HEADER_BYTES, "e"},
    };
    struct link_model link = plain;
    link.bytes_per_s = NS_PER_S;
    struct stage *s = STAGE(link, acts);
    world_run_until(s->w, 300 * US);
    CHECK_EQ(stage_heard(s, 3, INPUT_MESSAGE, 0)->in.now, 111 * US);
    CHECK_EQ(stage_heard(s, 3, INPUT_MESSAGE, 1)->in.now, 112 * US);
    /* d comes first; then the receiver's interface takes c and e in, one after the other */
    CHECK_STR(stage_heard(s, 3, INPUT_MESSAGE, 2)->text, "d");
    CHECK_EQ(stage_heard(s, 3, INPUT_MESSAGE, 2)->in.now, 210 * US + 500);
    CHECK_STR(stage_heard(s, 3, INPUT_MESSAGE, 3)->text, "c");
    CHECK_EQ(stage_heard(s, 3, INPUT_MESSAGE, 3)->in.now, 211 * US + 500);
    CHECK_STR(stage_heard(s, 3, INPUT_MESSAGE, 4)->text, "e");
    CHECK_EQ(stage_heard(s, 3, INPUT_MESSAGE, 4)->in.now, 212 * US);
    stage_free(s);
}

/* A put of 80,000 bytes is under way while a control message overtakes it. */
static void test_lanes(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1, .number = PURPOSE_SLOT},
        {.at = US, .node = 2, .kind = ACT_OPEN, .peer = 1, .number = PURPOSE_TREE},
        {.at = US, .node = 0, .kind = ACT_BUFFER, .peer = 9, .number = 100000},
        {.at = 100 * US, .node = 1, .kind = ACT_PUT, .peer = 0, .number = 80000},
        {.at = 100 * US, .node = 1, .kind = ACT_SEND, .peer = 2, .type = DOWN_TYPE, .text = "t"},
        {.at = 100 * US, .node = 1, .kind = ACT_CLOSE, .peer = 0},
    };
    struct link_model link = plain;
    link.bytes_per_s = NS_PER_S;
    struct stage *s = STAGE(link, acts);
    uint8_t *from = world_buffer(s->w, 1, 7, 80000);
    for (uint32_t i = 0; i < 80000; i++)
        from[i] = (uint8_t)(i * 7);
    world_run_until(s->w, 300 * US);
    CHECK_EQ(stage_heard(s, 2, INPUT_MESSAGE, 0)->in.now, 110 * US + HEADER_BYTES + 1);
    const struct heard *put = stage_heard(s, 0, INPUT_PUT, 0);
    CHECK_EQ(put->in.now, 190 * US + HEADER_BYTES + 20);
    CHECK_EQ(put->in.put.buffer, 9);
    CHECK_EQ(put->in.put.offset, 3);
    CHECK_EQ(put->in.put.len, 80000);
    CHECK_EQ(put->in.put.note, 42);
    CHECK(memcmp(world_buffer(s->w, 0, 9, 0) + 3, from, 80000) == 0);
    const struct heard *down = stage_heard(s, 0, INPUT_LINK_DOWN, 0);
    CHECK(put < down);
    CHECK_EQ(down->in.now, put->in.now);
    stage_free(s);
}

static void test_order_with_jitter(void) {
    struct act acts[201] = {{.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1}};
    char texts[200][4];
    for (uint32_t i = 0; i < 200; i++) {
        snprintf(texts[i], sizeof texts[i], "%u", i);
        acts[i + 1] = (struct act){(200 + i) * US, 0, ACT_SEND, 1, UP_TYPE, 0, texts[i]};
    }
    struct link_model link = plain;
    link.jitter_ns = 40 * US;
    struct stage *s = STAGE(link, acts);
    world_run_until(s->w, NS_PER_MS);
    CHECK_EQ(stage_count(s, 1, INPUT_MESSAGE), 200);
    bool jitter = false;
    for (uint32_t i = 0; i < 200; i++) {
        const struct heard *h = stage_heard(s, 1, INPUT_MESSAGE, i);
        CHECK_STR(h->text, texts[i]);
        CHECK(h->in.now >= (210 + i) * US);
        jitter = jitter || h->in.now > (210 + i) * US;
    }
    CHECK(jitter);
    CHECK(world_counts(s->w)->queue_max > 10);
    stage_free(s);
}

/* Three frames of one effect leave staggered; three that arrive together wait for the processor. */
static void test_processor(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 3},
        {.at = US, .node = 1, .kind = ACT_OPEN, .peer = 3},
        {.at = US, .node = 2, .kind = ACT_OPEN, .peer = 3},
        {.at = 200 * US, .node = 3, .kind = ACT_SPREAD, .type = DOWN_TYPE, .text = "down"},
        {.at = 300 * US, .node = 0, .kind = ACT_SEND, .peer = 3, .type = UP_TYPE, .text = "a"},
        {.at = 300 * US, .node = 1, .kind = ACT_SEND, .peer = 3, .type = UP_TYPE, .text = "b"},
        {.at = 300 * US, .node = 2, .kind = ACT_SEND, .peer = 3, .type = UP_TYPE, .text = "c"},
        {.at = US, .node = 3, .kind = ACT_ALARM, .number = 315 * US},
    };
    struct link_model link = plain;
    link.cpu_send_ns = 2 * US;
    link.cpu_receive_ns = 3 * US;
    struct stage *s = STAGE(link, acts);
    world_run_until(s->w, 400 * US);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(stage_heard(s, i, INPUT_MESSAGE, 0)->in.now, (212 + 2 * i) * US);
        CHECK_EQ(stage_heard(s, 3, INPUT_MESSAGE, i)->in.now, (312 + 3 * i) * US);
    }
    /* due while b is processed, behind c in the inbox; costs nothing itself */
    CHECK_EQ(stage_heard(s, 3, INPUT_TIMER, 0)->in.now, 321 * US);
    stage_free(s);
}

/* ---- timers, disk, memory ---- */

static void test_timers(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_ALARM, .peer = 1, .number = 50 * US},
        {.at = US, .node = 0, .kind = ACT_ALARM, .peer = 2, .number = 40 * US},
        {.at = US, .node = 0, .kind = ACT_ALARM, .peer = 3, .number = 30 * US},
        {.at = US, .node = 0, .kind = ACT_ALARM, .peer = 4, .number = 20 * US},
        {.at = 10 * US, .node = 0, .kind = ACT_ALARM, .peer = 1, .number = 5 * US}, /* past */
        {.at = 11 * US, .node = 0, .kind = ACT_ALARM, .peer = 2, .number = 60 * US},
        {.at = 12 * US, .node = 0, .kind = ACT_ALARM, .peer = 3, .number = 0},
        {.at = 13 * US, .node = 0, .kind = ACT_ALARM, .peer = 3, .number = 0},
    };
    struct stage *s = STAGE(plain, acts);
    world_run_until(s->w, 100 * US);
    CHECK_EQ(stage_count(s, 0, INPUT_TIMER), 3);
    CHECK_EQ(stage_heard(s, 0, INPUT_TIMER, 0)->in.timer.id, ALARM + 1);
    CHECK_EQ(stage_heard(s, 0, INPUT_TIMER, 0)->in.now, 10 * US);
    CHECK_EQ(stage_heard(s, 0, INPUT_TIMER, 1)->in.timer.id, ALARM + 4);
    CHECK_EQ(stage_heard(s, 0, INPUT_TIMER, 1)->in.now, 20 * US);
    CHECK_EQ(stage_heard(s, 0, INPUT_TIMER, 2)->in.timer.id, ALARM + 2);
    CHECK_EQ(stage_heard(s, 0, INPUT_TIMER, 2)->in.now, 60 * US);
    stage_free(s);
}

/* Alarm 1 is due and waits in the inbox of a paused node behind the act that cancels it. */
static void test_timer_cancelled_when_due(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_ALARM, .peer = 1, .number = 30 * US},
        {.at = US, .node = 0, .kind = ACT_ALARM, .peer = 2, .number = 31 * US},
        {.at = 20 * US, .node = 0, .kind = ACT_ALARM, .peer = 1, .number = 0},
    };
    struct stage *s = STAGE(plain, acts);
    world_run_until(s->w, 10 * US);
    world_pause(s->w, 0, 50 * US);
    world_run_until(s->w, 100 * US);
    CHECK_EQ(stage_count(s, 0, INPUT_TIMER), 1);
    CHECK_EQ(stage_heard(s, 0, INPUT_TIMER, 0)->in.timer.id, ALARM + 2);
    CHECK_EQ(stage_heard(s, 0, INPUT_TIMER, 0)->in.now, 50 * US);
    stage_free(s);
}

static void test_persist(void) {
    static const struct act acts[] = {
        {.at = 10 * US, .node = 0, .kind = ACT_PERSIST, .number = 7},
        {.at = 200 * US, .node = 0, .kind = ACT_PERSIST, .number = 9},
        {.at = 10 * US, .node = 4, .kind = ACT_PERSIST, .number = 20},
    };
    struct stage *s = STAGE(plain, acts);
    CHECK_EQ(stage_heard(s, 4, INPUT_BOOT, 0)->in.boot.epoch, 1);
    CHECK(stage_heard(s, 4, INPUT_BOOT, 0)->in.boot.root);
    CHECK_EQ(stage_heard(s, 0, INPUT_BOOT, 0)->in.boot.epoch, 0);
    CHECK_EQ(stage_heard(s, 0, INPUT_BOOT, 0)->in.boot.kept, 0);
    CHECK_EQ(stage_heard(s, 0, INPUT_BOOT, 0)->in.boot.boots, 1);
    world_run_until(s->w, 250 * US);
    CHECK_EQ(stage_count(s, 0, INPUT_DURABLE), 1);
    CHECK_EQ(stage_heard(s, 0, INPUT_DURABLE, 0)->in.now, 110 * US);
    CHECK_EQ(stage_heard(s, 0, INPUT_DURABLE, 0)->in.durable.ticket, 70);
    world_crash(s->w, 0); /* 9 is not on the disk yet */
    world_crash(s->w, 4);
    world_run_until(s->w, 400 * US);
    world_boot(s->w, 0, false);
    world_boot(s->w, 4, true);
    CHECK_EQ(world_boots(s->w, 0), 2);
    CHECK_EQ(stage_heard(s, 0, INPUT_BOOT, 1)->in.boot.kept, 7);
    CHECK_EQ(stage_heard(s, 0, INPUT_BOOT, 1)->in.boot.boots, 2);
    CHECK_EQ(stage_heard(s, 4, INPUT_BOOT, 1)->in.boot.epoch, 2);
    CHECK_EQ(stage_heard(s, 4, INPUT_BOOT, 1)->in.boot.kept, 20);
    world_crash(s->w, 4);
    world_boot(s->w, 4, true);
    CHECK_EQ(stage_heard(s, 4, INPUT_BOOT, 2)->in.boot.epoch, 3);
    CHECK(stage_heard(s, 0, INPUT_BOOT, 0)->in.boot.random_seed !=
          stage_heard(s, 0, INPUT_BOOT, 1)->in.boot.random_seed);
    stage_free(s);
}

static void test_heap(void) {
    static const struct act acts[] = {
        {.at = 10 * US, .node = 0, .kind = ACT_WRITE, .number = 4090, .text = "corner"},
        {.at = 20 * US, .node = 0, .kind = ACT_PUBLISH, .peer = 100, .number = 3},
        {.at = 30 * US, .node = 0, .kind = ACT_CLEAR},
        {.at = 40 * US, .node = 0, .kind = ACT_WRITE, .number = 0, .text = "again"},
    };
    struct stage *s = STAGE(plain, acts);
    memcpy(world_buffer(s->w, 0, 7, 3), "xyz", 3);
    world_run_until(s->w, 25 * US);
    CHECK(memcmp(world_heap(s->w, 0) + 4090, "corner", 6) == 0);
    CHECK(memcmp(world_heap(s->w, 0) + 99, "\0xyz", 5) == 0);
    world_run_until(s->w, 35 * US);
    CHECK_EQ(world_heap(s->w, 0)[4090], 0);
    world_run_until(s->w, 45 * US);
    CHECK(memcmp(world_heap(s->w, 0), "again", 5) == 0);
    world_crash(s->w, 0);
    CHECK(world_heap(s->w, 0) == NULL);
    world_boot(s->w, 0, false);
    CHECK_EQ(world_heap(s->w, 0)[0], 0);
    stage_free(s);
}

/* A put into a buffer that is closed vanishes; one beyond its end is refused. */
static void test_puts_astray(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1, .number = PURPOSE_SLOT},
        {.at = US, .node = 0, .kind = ACT_BUFFER, .peer = 9, .number = 7},
        {.at = 100 * US, .node = 1, .kind = ACT_PUT, .peer = 0, .number = 4},
        {.at = 120 * US, .node = 0, .kind = ACT_RELEASE, .peer = 9},
        {.at = 120 * US, .node = 1, .kind = ACT_PUT, .peer = 0, .number = 4},
        {.at = 140 * US, .node = 0, .kind = ACT_BUFFER, .peer = 9, .number = 7},
        {.at = 140 * US, .node = 1, .kind = ACT_PUT, .peer = 0, .number = 5},
    };
    struct stage *s = STAGE(plain, acts);
    world_buffer(s->w, 1, 7, 5);
    world_run_until(s->w, 200 * US);
    CHECK_EQ(stage_count(s, 0, INPUT_PUT), 1);
    CHECK_EQ(stage_heard(s, 0, INPUT_PUT, 0)->in.now, 110 * US);
    CHECK_EQ(world_counts(s->w)->refused[REFUSAL_BODY], 1);
    CHECK_EQ(stage_heard(s, 0, INPUT_LINK_DOWN, 0)->in.now, 150 * US);
    CHECK_EQ(stage_heard(s, 1, INPUT_LINK_DOWN, 0)->in.now, 160 * US);
    stage_free(s);
}

/* ---- all of it ---- */

static void test_nothing_happens(void) {
    struct act acts[1] = {{0}};
    struct link_model link = plain;
    struct stage *s = stage_new(link, acts, 0);
    CHECK(!world_step(s->w));
    CHECK_EQ(world_counts(s->w)->steps, 5);
    world_run_until(s->w, 7);
    CHECK_EQ(world_now(s->w), 7);
    CHECK(world_prim(s->w, 0) == NULL);
    CHECK(world_globals(s->w, 0).variables == NULL);
    CHECK(world_up(s->w, 0));
    stage_free(s);
    world_free(NULL);
}

int main(void) {
    TEST(test_open);
    TEST(test_open_to_nobody);
    TEST(test_close);
    TEST(test_latency);
    TEST(test_bandwidth);
    TEST(test_lanes);
    TEST(test_order_with_jitter);
    TEST(test_processor);
    TEST(test_timers);
    TEST(test_timer_cancelled_when_due);
    TEST(test_persist);
    TEST(test_heap);
    TEST(test_puts_astray);
    TEST(test_nothing_happens);
    return tap_finish();
}
