/* SPDX-License-Identifier: MIT */
/* Tests of every fault the world can have, and of what the gate refuses. */
#include "sim/puppet.h"
#include "tap.h"

#define US NS_PER_US

enum { UP_TYPE = MESSAGE_ACK, DOWN_TYPE = MESSAGE_TICK };

static const struct link_model plain = {
    .latency_ns = 10 * US, .connect_ns = 50 * US, .durable_ns = 100 * US};

/* ---- crash ---- */

static void test_crash(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1},
        {.at = US, .node = 0, .kind = ACT_ALARM, .number = 300 * US},
        {100 * US, 0, ACT_SEND, 1, UP_TYPE, 0, "sent"},
        {102 * US, 0, ACT_SEND, 1, UP_TYPE, 0, "not sent"},
        {101 * US, 1, ACT_SEND, 0, DOWN_TYPE, 0, "too late"},
    };
    struct link_model link = plain;
    link.cpu_send_ns = 2 * US;
    struct stage *s = STAGE(link, acts);
    world_buffer(s->w, 0, 3, 10);
    world_run_until(s->w, 103 * US);
    world_crash(s->w, 0);
    CHECK(!world_up(s->w, 0));
    world_crash(s->w, 0); /* once is enough */
    CHECK_EQ(world_links(s->w, 0), 0);
    world_boot(s->w, 0, false);
    CHECK_EQ(world_buffer(s->w, 0, 3, 20)[19], 0);
    world_run_until(s->w, 400 * US);
    CHECK_EQ(stage_count(s, 1, INPUT_MESSAGE), 1);
    const struct heard *message = stage_heard(s, 1, INPUT_MESSAGE, 0);
    const struct heard *down = stage_heard(s, 1, INPUT_LINK_DOWN, 0);
    CHECK_STR(message->text, "sent");
    CHECK(message < down);
    CHECK_EQ(down->in.now, 113 * US);
    CHECK_EQ(down->in.link.peer, 0);
    CHECK_EQ(stage_count(s, 0, INPUT_MESSAGE), 0);
    CHECK_EQ(stage_count(s, 0, INPUT_TIMER), 0);
    CHECK_EQ(stage_count(s, 0, INPUT_LINK_DOWN), 0);
    CHECK_EQ(stage_count(s, 0, INPUT_BOOT), 2);
    stage_free(s);
}

/* Frames of a crash that are still in the network interface do not delay the bad news. */
static void test_crash_with_bulk_unsent(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1, .number = PURPOSE_SLOT},
        {.at = US, .node = 0, .kind = ACT_BUFFER, .peer = 9, .number = 1003},
        {.at = 100 * US, .node = 1, .kind = ACT_PUT, .peer = 0, .number = 1000},
        {.at = 100 * US, .node = 1, .kind = ACT_PUT, .peer = 0, .number = 1000},
        {.at = 100 * US, .node = 1, .kind = ACT_PUT, .peer = 0, .number = 1000},
    };
    struct link_model link = plain;
    link.bytes_per_s = 1000000; /* a byte a microsecond */
    struct stage *s = STAGE(link, acts);
    world_buffer(s->w, 1, 7, 1000);
    world_run_until(s->w, 1500 * US);
    world_crash(s->w, 1);
    world_run_until(s->w, 10000 * US);
    CHECK_EQ(stage_count(s, 0, INPUT_PUT), 1);
    CHECK_EQ(stage_heard(s, 0, INPUT_LINK_DOWN, 0)->in.now, 1510 * US);
    stage_free(s);
}

static void test_crash_while_opening(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1},
        {.at = US, .node = 2, .kind = ACT_OPEN, .peer = 3},
    };
    struct stage *s = STAGE(plain, acts);
    world_run_until(s->w, 20 * US);
    world_crash(s->w, 0); /* the opener: nobody hears anything */
    world_boot(s->w, 0, false);
    world_pause(s->w, 3, 500 * US);
    world_run_until(s->w, 100 * US);
    CHECK_EQ(stage_count(s, 2, INPUT_LINK_UP), 0);
    world_crash(s->w, 3); /* the target, with the request in its inbox */
    world_run_until(s->w, 1000 * US);
    CHECK_EQ(stage_count(s, 0, INPUT_LINK_UP), 0);
    CHECK_EQ(stage_count(s, 1, INPUT_LINK_UP), 0);
    CHECK_EQ(stage_heard(s, 2, INPUT_LINK_DOWN, 0)->in.now, 110 * US);
    CHECK_EQ(stage_heard(s, 2, INPUT_LINK_DOWN, 0)->in.link.link, 0);
    CHECK_EQ(stage_heard(s, 2, INPUT_LINK_DOWN, 0)->in.link.cookie, 103);
    stage_free(s);
}

/* ---- pause, slow ---- */

static void test_pause(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1},
        {.at = 100 * US, .node = 2, .kind = ACT_OPEN, .peer = 1},
        {100 * US, 0, ACT_SEND, 1, UP_TYPE, 0, "a"},
        {110 * US, 0, ACT_SEND, 1, UP_TYPE, 0, "b"},
        {.at = 1, .node = 1, .kind = ACT_ALARM, .number = 115 * US},
        {.at = 130 * US, .node = 0, .kind = ACT_CLOSE, .peer = 1},
    };
    struct stage *s = STAGE(plain, acts);
    world_run_until(s->w, 105 * US);
    world_pause(s->w, 1, 200 * US);
    world_pause(s->w, 1, 190 * US); /* the longer one counts */
    CHECK(world_paused(s->w, 1));
    world_run_until(s->w, 160 * US);
    world_pause(s->w, 1, 300 * US);
    world_run_until(s->w, 299 * US);
    CHECK_EQ(stage_count(s, 1, INPUT_MESSAGE), 0);
    CHECK_EQ(stage_count(s, 2, INPUT_LINK_UP), 0);
    world_run_until(s->w, 301 * US);
    CHECK(!world_paused(s->w, 1));
    const struct heard *a = stage_heard(s, 1, INPUT_MESSAGE, 0);
    CHECK_EQ(a->in.now, 300 * US);
    CHECK_STR(a[0].text, "a");
    CHECK_EQ(a[1].in.kind, INPUT_TIMER);
    CHECK_STR(a[2].text, "b");
    CHECK_EQ(a[3].in.kind, INPUT_LINK_DOWN);
    CHECK_EQ(a[4].in.kind, INPUT_LINK_UP);
    CHECK_EQ(stage_heard(s, 2, INPUT_LINK_UP, 0)->in.now, 300 * US);
    stage_free(s);
}

static void test_resume(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1},
        {100 * US, 0, ACT_SEND, 1, UP_TYPE, 0, "a"},
        {150 * US, 0, ACT_SEND, 1, UP_TYPE, 0, "b"},
    };
    struct stage *s = STAGE(plain, acts);
    world_run_until(s->w, 90 * US);
    world_resume(s->w, 1); /* it is not paused */
    world_pause(s->w, 1, NS_PER_S);
    world_run_until(s->w, 120 * US);
    CHECK_EQ(stage_count(s, 1, INPUT_MESSAGE), 0);
    world_resume(s->w, 1);
    CHECK(!world_paused(s->w, 1));
    world_run_until(s->w, 2 * NS_PER_S);
    CHECK_EQ(stage_count(s, 1, INPUT_MESSAGE), 2);
    CHECK_EQ(stage_heard(s, 1, INPUT_MESSAGE, 0)->in.now, 120 * US);
    CHECK_EQ(stage_heard(s, 1, INPUT_MESSAGE, 1)->in.now, 160 * US);
    stage_free(s);
}

static void test_slow(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1},
        {100 * US, 0, ACT_SEND, 1, UP_TYPE, 0, "a"},
        {200 * US, 1, ACT_SEND, 0, DOWN_TYPE, 0, "b"},
        {400 * US, 0, ACT_SEND, 1, UP_TYPE, 0, "c"},
    };
    struct link_model link = plain;
    link.cpu_send_ns = US;
    struct stage *s = STAGE(link, acts);
    world_run_until(s->w, 90 * US);
    world_slow(s->w, 0, 5, 350 * US);
    world_run_until(s->w, 500 * US);
    CHECK_EQ(stage_heard(s, 1, INPUT_MESSAGE, 0)->in.now, 155 * US);
    CHECK_EQ(stage_heard(s, 0, INPUT_MESSAGE, 0)->in.now, 251 * US);
    CHECK_EQ(stage_heard(s, 1, INPUT_MESSAGE, 1)->in.now, 411 * US);
    stage_free(s);
}

/* ---- links that fail ---- */

enum { BURST = 40 };

/* A link from 0 to 1, then forty frames a microsecond apart from 100 us on. */
static struct stage *stage_burst(struct act acts[BURST + 1], char texts[BURST][4],
                                 struct link_model link) {
    acts[0] = (struct act){.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1};
    for (uint32_t i = 0; i < BURST; i++) {
        snprintf(texts[i], 4, "%u", i);
        acts[i + 1] = (struct act){(100 + i) * US, 0, ACT_SEND, 1, UP_TYPE, 0, texts[i]};
    }
    return stage_new(link, acts, BURST + 1);
}

static void test_reset(void) {
    struct act acts[BURST + 1];
    char texts[BURST][4];
    struct stage *s = stage_burst(acts, texts, plain);
    world_run_until(s->w, 120 * US);
    world_reset(s->w, 2, 0); /* it has no link: nothing to break */
    world_reset(s->w, 0, 7);
    world_reset(s->w, 1, 0); /* it is broken already */
    world_run_until(s->w, 500 * US);
    uint32_t got = stage_count(s, 1, INPUT_MESSAGE);
    CHECK(got >= 11 && got <= 21); /* eleven had arrived, ten were under way */
    for (uint32_t i = 0; i < got; i++)
        CHECK_STR(stage_heard(s, 1, INPUT_MESSAGE, i)->text, texts[i]);
    for (uint32_t node = 0; node < 2; node++) {
        CHECK_EQ(stage_count(s, node, INPUT_LINK_DOWN), 1);
        const struct heard *down = stage_heard(s, node, INPUT_LINK_DOWN, 0);
        CHECK(down->in.now >= 120 * US && down->in.now <= 160 * US);
        CHECK_EQ(world_links(s->w, node), 0);
    }
    CHECK_EQ(stage_heard(s, 2, INPUT_LINK_DOWN, 0)->in.kind, INPUT_KINDS);
    stage_free(s);
}

static void test_mute(void) {
    struct act acts[BURST + 1];
    char texts[BURST][4];
    struct stage *s = stage_burst(acts, texts, plain);
    world_run_until(s->w, 120 * US);
    world_mute(s->w, 0, 0, true, 130 * US);
    world_run_until(s->w, 500 * US);
    CHECK_EQ(stage_count(s, 1, INPUT_MESSAGE), 11);
    CHECK_EQ(world_counts(s->w)->refused[REFUSAL_GAP], 1);
    CHECK_EQ(stage_heard(s, 1, INPUT_LINK_DOWN, 0)->in.now, 130 * US);
    CHECK_EQ(stage_heard(s, 0, INPUT_LINK_DOWN, 0)->in.now, 140 * US);
    stage_free(s);
}

/* The other direction still works, and the end of the link comes through when the loss is over. */
static void test_mute_one_way(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1},
        {110 * US, 0, ACT_SEND, 1, UP_TYPE, 0, "lost"},
        {110 * US, 1, ACT_SEND, 0, DOWN_TYPE, 0, "heard"},
        {.at = 125 * US, .node = 0, .kind = ACT_CLOSE, .peer = 1},
    };
    struct stage *s = STAGE(plain, acts);
    world_run_until(s->w, 100 * US);
    world_mute(s->w, 1, 0, false, 300 * US);
    world_run_until(s->w, 500 * US);
    CHECK_EQ(stage_count(s, 0, INPUT_MESSAGE), 1);
    CHECK_EQ(stage_count(s, 1, INPUT_MESSAGE), 0);
    CHECK_EQ(stage_heard(s, 1, INPUT_LINK_DOWN, 0)->in.now, 300 * US);
    stage_free(s);
}

static void test_duplicate(void) {
    struct act acts[BURST + 1];
    char texts[BURST][4];
    struct link_model link = plain;
    link.jitter_ns = 5 * US;
    struct stage *s = stage_burst(acts, texts, link);
    world_duplicate(s->w, 0, NS_PER_S);
    world_run_until(s->w, 500 * US);
    CHECK_EQ(stage_count(s, 1, INPUT_MESSAGE), BURST);
    for (uint32_t i = 0; i < BURST; i++)
        CHECK_STR(stage_heard(s, 1, INPUT_MESSAGE, i)->text, texts[i]);
    CHECK(world_counts(s->w)->refused[REFUSAL_DUPLICATE] > 0);
    CHECK(world_counts(s->w)->refused[REFUSAL_DUPLICATE] < BURST);
    CHECK_EQ(stage_count(s, 1, INPUT_LINK_DOWN), 0);
    CHECK_EQ(world_links(s->w, 1), 1);
    stage_free(s);
}

/* ---- the gate ---- */

/* Throws bytes at node 1, whose child is node 0; returns whether just this refusal was counted and
 * the link is gone at both ends, or for REFUSAL_NONE neither. */
static bool refused(const uint8_t *bytes, size_t len, enum refusal expected) {
    static const struct act acts[] = {{.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1}};
    struct stage *s = STAGE(plain, acts);
    world_run_until(s->w, 100 * US);
    world_garbage(s->w, 1, 0, bytes, len);
    world_garbage(s->w, 2, 0, bytes, len); /* it has no link */
    world_run_until(s->w, 100 * US);
    bool told = stage_count(s, 1, INPUT_LINK_DOWN) == 1;
    world_run_until(s->w, 200 * US);
    bool both = told && stage_count(s, 0, INPUT_LINK_DOWN) == 1;
    bool gone = world_links(s->w, 0) == 0 && world_links(s->w, 1) == 0;
    uint64_t others = 0;
    for (uint32_t r = 0; r < REFUSALS; r++)
        if (r != expected)
            others += world_counts(s->w)->refused[r];
    uint64_t mine = world_counts(s->w)->refused[expected];
    uint64_t messages = world_counts(s->w)->messages;
    stage_free(s);
    if (expected == REFUSAL_NONE)
        return !told && !gone && others == 0 && messages > 0;
    return both && gone && mine == 1 && others == 0 && messages == 0;
}

static size_t good_frame(uint8_t out[64]) {
    struct header h = {.magic = HEADER_MAGIC,
                       .version = HEADER_VERSION,
                       .lane = LANE_CONTROL,
                       .type = UP_TYPE,
                       .length = 4,
                       .sequence = 1,
                       .node = 0,
                       .life = 1};
    header_encode(&h, out);
    memcpy(out + HEADER_BYTES, "body", 4);
    return HEADER_BYTES + 4;
}

static bool refused_header(size_t offset, uint8_t value, enum refusal expected) {
    uint8_t frame[64];
    size_t len = good_frame(frame);
    frame[offset] = value;
    return refused(frame, len, expected);
}

static void test_garbage(void) {
    uint8_t frame[128];
    size_t len = good_frame(frame);
    CHECK(refused(frame, len, REFUSAL_NONE));
    CHECK(refused(frame, 31, REFUSAL_TRUNCATED));
    CHECK(refused(frame, 1, REFUSAL_TRUNCATED));
    CHECK(refused(frame, len - 1, REFUSAL_TRUNCATED)); /* less than the header says */
    CHECK(refused_header(0, 0, REFUSAL_MAGIC));
    CHECK(refused_header(2, HEADER_VERSION + 1, REFUSAL_VERSION));
    CHECK(refused_header(3, LANE_BULK, REFUSAL_LANE));
    CHECK(refused_header(4, 200, REFUSAL_TYPE));
    CHECK(refused_header(4, DOWN_TYPE, REFUSAL_ROLE));
    CHECK(refused_header(4, MESSAGE_PUT, REFUSAL_ROLE));
    CHECK(refused_header(11, 0x7F, REFUSAL_SIZE));
    CHECK(refused_header(12, 3, REFUSAL_GAP));
    CHECK(refused_header(20, 2, REFUSAL_SENDER)); /* another node */
    CHECK(refused_header(24, 7, REFUSAL_SENDER)); /* another life */
    memset(frame, 0xA5, sizeof frame);
    CHECK(refused(frame, sizeof frame, REFUSAL_MAGIC));
}

/* Two frames in one throw, the second in pieces. */
static void test_garbage_stream(void) {
    static const struct act acts[] = {{.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1}};
    struct stage *s = STAGE(plain, acts);
    uint8_t frames[128];
    size_t len = good_frame(frames);
    good_frame(frames + len);
    frames[len + 12] = 2;
    world_run_until(s->w, 100 * US);
    world_pause(s->w, 1, 150 * US);
    world_garbage(s->w, 1, 0, frames, 2 * len - 2);
    world_run_until(s->w, 200 * US);
    CHECK_EQ(world_counts(s->w)->messages, 1);
    CHECK_STR(stage_heard(s, 1, INPUT_MESSAGE, 0)->text, "body");
    CHECK_EQ(stage_heard(s, 1, INPUT_MESSAGE, 0)->in.now, 150 * US);
    CHECK_EQ(world_counts(s->w)->refused[REFUSAL_TRUNCATED], 1);
    CHECK_EQ(stage_count(s, 1, INPUT_LINK_DOWN), 1);
    stage_free(s);
}

/* A machine that says what it may not say is found out by its peer. */
static void test_wrong_role(void) {
    static const struct act acts[] = {
        {.at = US, .node = 0, .kind = ACT_OPEN, .peer = 1},
        {100 * US, 0, ACT_SEND, 1, DOWN_TYPE, 0, "I am your parent"},
    };
    struct stage *s = STAGE(plain, acts);
    world_run_until(s->w, 200 * US);
    CHECK_EQ(world_counts(s->w)->refused[REFUSAL_ROLE], 1);
    CHECK_EQ(world_counts(s->w)->messages, 0);
    CHECK_EQ(stage_heard(s, 1, INPUT_LINK_DOWN, 0)->in.now, 110 * US);
    CHECK_EQ(stage_heard(s, 0, INPUT_LINK_DOWN, 0)->in.now, 120 * US);
    stage_free(s);
}

int main(void) {
    TEST(test_crash);
    TEST(test_crash_with_bulk_unsent);
    TEST(test_crash_while_opening);
    TEST(test_pause);
    TEST(test_resume);
    TEST(test_slow);
    TEST(test_reset);
    TEST(test_mute);
    TEST(test_mute_one_way);
    TEST(test_duplicate);
    TEST(test_garbage);
    TEST(test_garbage_stream);
    TEST(test_wrong_role);
    return tap_finish();
}
