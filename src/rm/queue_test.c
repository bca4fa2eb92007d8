/* SPDX-License-Identifier: MIT */
/* Both ends of a remote queue, fed by hand: what they ask for, and what they make of the answers.
 *
 * The master's requests are collected in order; a test answers them one by one. A reader has a heap
 * of its own, into which a test puts what a transfer would have put there. */
#include "rm/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "tap.h"

enum {
    UNIVERSE = 5,
    SLOTS = 8,
    SLOT_BYTES = 40,
    OFFSET = 16,
    EVENT = 2,
    VARIABLE = 1,
    TAG = 500,
    TIMER = 9,
    ORDER = 77,   /* of the first reset: the session */
    BASE = SLOTS, /* messages of before: once round the ring */
};

struct fixture {
    struct effect list[64];
    uint64_t store[2048];
    struct effects out;
    uint64_t memory[1024];
    uint64_t words[3][8];
    struct queue_config config;
    struct queue *q;
    struct queue_news news;
    uint64_t now;
    uint8_t heap[1024];
    struct queue_reader reader;
};

static struct nodeset set_of(struct fixture *f, uint32_t i, uint32_t first, uint32_t last) {
    struct nodeset s;
    nodeset_init(&s, UNIVERSE, f->words[i]);
    nodeset_add_range(&s, first, last);
    return s;
}

static struct queue_shape shape(void) {
    return (struct queue_shape){.heap_offset = OFFSET,
                                .slots = SLOTS,
                                .slot_bytes = SLOT_BYTES,
                                .event = EVENT,
                                .dequeued = VARIABLE};
}

static void clear(struct fixture *f) {
    effects_clear(&f->out);
}

/* The config may be changed before open(). */
static struct fixture *fixture_new(void) {
    struct fixture *f = calloc(1, sizeof *f);
    ASSERT(f != NULL);
    effects_init(&f->out, f->list, 64, (uint8_t *)f->store, sizeof f->store);
    f->now = 1000;
    f->config = (struct queue_config){.shape = shape(),
                                      .universe = UNIVERSE,
                                      .body_bytes = 1024,
                                      .backlog = 12,
                                      .flights = 2,
                                      .tag = TAG,
                                      .timer = TIMER,
                                      .wait = QUEUE_WAIT_BACKOFF,
                                      .timeout_ns = 1000000,
                                      .backoff_min_ns = 10,
                                      .backoff_max_ns = 40,
                                      .patience_ns = 500};
    struct queue_reader_config r = {.shape = shape(), .heap = f->heap, .timer = TIMER};
    queue_reader_init(&f->reader, &r);
    return f;
}

/* ---- the master's requests and their answers ---- */

/* The i-th request of the last steps, NULL if there is none. */
static const struct primitive *asked(const struct fixture *f, uint32_t i) {
    for (uint32_t k = 0; k < f->out.count; k++)
        if (f->list[k].kind == EFFECT_REQUEST && i-- == 0)
            return &f->list[k].request;
    return NULL;
}

static uint64_t timer_of(const struct fixture *f) {
    uint64_t at = UINT64_MAX;
    for (uint32_t k = 0; k < f->out.count; k++)
        if (f->list[k].kind == EFFECT_TIMER && f->list[k].timer.id == TIMER)
            at = f->list[k].timer.at;
    return at;
}

static bool feed(struct fixture *f, struct input in) {
    in.now = f->now;
    clear(f);
    return queue_step(f->q, &in, &f->out, &f->news);
}

static void answer(struct fixture *f, uint64_t tag, enum outcome outcome, uint32_t culprit) {
    CHECK(feed(f, (struct input){
                      .kind = INPUT_COMPLETION,
                      .completion = {
                          .tag = tag, .outcome = outcome, .culprit = culprit, .order = ORDER}}));
}

static void wake(struct fixture *f, uint64_t at) {
    f->now = at;
    CHECK(feed(f, (struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER}}));
}

static void nodes(struct fixture *f, uint32_t first, uint32_t last, bool up) {
    struct nodeset s = set_of(f, 2, first, last);
    CHECK(feed(f, (struct input){.kind = INPUT_NODES, .nodes = {.nodes = &s, .up = up}}));
}

static int push(struct fixture *f, const char *text) {
    uint64_t number;
    return queue_push(f->q, bytes_from_str(text), f->now, &f->out, &number);
}

static struct queue_status status(const struct fixture *f) {
    struct queue_status s;
    queue_status(f->q, &s);
    return s;
}

static void make(struct fixture *f) {
    struct arena a;
    ASSERT(queue_bytes(&f->config) <= sizeof f->memory);
    arena_init(&a, f->memory, sizeof f->memory);
    f->q = queue_new(&f->config, &a);
    CHECK_EQ(arena_used(&a), queue_bytes(&f->config));
}

static const struct primitive *expect(const struct fixture *f, enum primitive_kind kind,
                                      uint32_t count) {
    const struct primitive *r = asked(f, 0);
    bool right = CHECK(r != NULL) && CHECK_EQ(r->kind, kind) &&
                 CHECK_EQ(nodeset_count(r->set), count) && CHECK(asked(f, 1) == NULL);
    return right ? r : NULL;
}

static void answer_flow(struct fixture *f) {
    while (asked(f, 0) != NULL && asked(f, 0)->tag == TAG + QUEUE_FLIGHTS_MAX)
        answer(f, TAG + QUEUE_FLIGHTS_MAX, OUTCOME_DONE, NO_NODE);
}

/* Once round the ring and round the flights, all consumed: the first transfer is a special one. */
static void warm_up(struct fixture *f) {
    for (uint32_t i = 0; i < BASE; i++) {
        clear(f);
        CHECK_EQ(push(f, "old"), 0);
        answer(f, TAG + i, OUTCOME_DONE, NO_NODE);
        answer_flow(f);
    }
    clear(f);
    queue_drain(f->q, f->now, &f->out);
    answer_flow(f);
    CHECK_EQ(status(f).consumed, BASE);
}

/* Nodes 0 to 2 have entered. */
static struct fixture *open_queue(struct fixture *f) {
    make(f);
    struct nodeset s = set_of(f, 0, 0, 2);
    queue_add(f->q, &s, f->now, &f->out);
    const struct primitive *reset = expect(f, PRIMITIVE_XFER, 3);
    CHECK(reset != NULL && reset->body.len == 0 && reset->heap_offset == OFFSET &&
          reset->remote_event == EVENT);
    answer(f, reset->tag, OUTCOME_DONE, NO_NODE);
    struct primitive drain = *asked(f, 0);
    CHECK(drain.relation == RELATION_EQ && drain.value == QUEUE_IDLE && drain.variable == VARIABLE);
    answer(f, drain.tag, OUTCOME_DONE, NO_NODE);
    CHECK_EQ(f->news.entered, 3);
    CHECK_EQ(status(f).nodes, 3);
    warm_up(f);
    clear(f);
    return f;
}

static bool carries_all(const struct primitive *r, uint64_t first, uint64_t last, bool again) {
    if (!CHECK(r != NULL && r->kind == PRIMITIVE_XFER && r->remote_event == EVENT))
        return false;
    bool right = CHECK_EQ(r->heap_offset, OFFSET + first % SLOTS * SLOT_BYTES) &&
                 CHECK_EQ((r->body.len + SLOT_BYTES - 1) / SLOT_BYTES, last - first + 1);
    for (uint64_t n = first; right && n <= last; n++) {
        struct queue_header h = queue_header_load(r->body.at + (n - first) * SLOT_BYTES);
        right = CHECK_EQ(h.number, n) && CHECK_EQ(h.session, ORDER) &&
                CHECK_EQ(h.flags, again ? QUEUE_FLAG_AGAIN : 0);
    }
    return right;
}

/* Is this request the transfer of these messages, counted from the BASE? */
static bool carries(const struct primitive *r, uint64_t first, uint64_t last, bool again) {
    return carries_all(r, BASE + first, BASE + last, again);
}

static void push_many(struct fixture *f, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        CHECK_EQ(push(f, "m"), 0);
}

/* ---- sending ---- */

static void test_messages_wait_for_nodes(void) {
    struct fixture *f = fixture_new();
    make(f);
    push_many(f, 12);
    CHECK_EQ(f->out.count, 0);
    CHECK_EQ(push(f, "m"), -ENOSPC);
    CHECK_EQ(status(f).room, 0);
    struct nodeset s = set_of(f, 0, 1, 1);
    queue_add(f->q, &s, f->now, &f->out);
    expect(f, PRIMITIVE_XFER, 1);
    answer(f, TAG + QUEUE_FLIGHTS_MAX + 1, OUTCOME_DONE, NO_NODE);
    expect(f, PRIMITIVE_COMPARE, 1);
    answer(f, TAG + QUEUE_FLIGHTS_MAX + 1, OUTCOME_DONE, NO_NODE);
    CHECK(carries_all(asked(f, 0), 1, 7, false)); /* to the end of the ring */
    CHECK(asked(f, 1) == NULL);
    answer(f, TAG, OUTCOME_DONE, NO_NODE);
    CHECK(f->news.room && f->news.delivered && !f->news.consumed);
    CHECK_EQ(status(f).room, 7);
    free(f);
}

static void test_one_is_sent_at_once_and_others_gather(void) {
    struct fixture *f = open_queue(fixture_new());
    CHECK_EQ(push(f, "first"), 0);
    CHECK(carries(asked(f, 0), 1, 1, false));
    CHECK_EQ(asked(f, 0)->body.len, QUEUE_HEADER_BYTES + 5);
    clear(f);
    CHECK_EQ(push(f, ""), 0); /* alone it would not fill what is left of the half */
    CHECK_EQ(f->out.count, 0);
    CHECK_EQ(push(f, "third"), 0);
    CHECK(carries(asked(f, 0), 2, 3, false));
    const struct primitive *r = asked(f, 0);
    CHECK_EQ(r->body.len, SLOT_BYTES + QUEUE_HEADER_BYTES + 5);
    CHECK_EQ(queue_header_load(r->body.at).len, 0);
    for (uint32_t i = QUEUE_HEADER_BYTES; i < SLOT_BYTES; i++)
        CHECK_EQ(r->body.at[i], 0); /* nothing else leaves this node */
    CHECK_EQ(memcmp(r->body.at + SLOT_BYTES + QUEUE_HEADER_BYTES, "third", 5), 0);
    clear(f);
    push_many(f, 4); /* two transfers are under way: no more */
    CHECK_EQ(f->out.count, 0);
    answer(f, TAG, OUTCOME_DONE, NO_NODE);
    CHECK(carries(asked(f, 0), 4, 7, false));
    free(f);
}

static void test_sizes_are_limits(void) {
    struct fixture *f = fixture_new();
    f->config.body_bytes = 2 * SLOT_BYTES + 1; /* two slots */
    open_queue(f);
    CHECK_EQ(push(f, "0123456789abcdef"), 0); /* as long as may be */
    CHECK_EQ(asked(f, 0)->body.len, SLOT_BYTES);
    CHECK_EQ(push(f, "0123456789abcdefX"), -EMSGSIZE);
    clear(f);
    push_many(f, 6);
    CHECK(carries(asked(f, 0), 2, 3, false));
    answer(f, TAG, OUTCOME_DONE, NO_NODE);
    CHECK(carries(asked(f, 0), 4, 5, false));
    answer(f, TAG + 1, OUTCOME_DONE, NO_NODE);
    CHECK(carries(asked(f, 1), 6, 7, false));
    free(f);
}

/* Whoever enters begins with the message that comes next, also if its transfer fails at first. */
static void test_the_first_transfer_goes_alone(void) {
    struct fixture *f = fixture_new();
    make(f);
    struct nodeset s = set_of(f, 0, 0, 2);
    queue_add(f->q, &s, f->now, &f->out);
    answer(f, TAG + QUEUE_FLIGHTS_MAX + 1, OUTCOME_DONE, NO_NODE);
    answer(f, TAG + QUEUE_FLIGHTS_MAX + 1, OUTCOME_DONE, NO_NODE);
    push_many(f, 7);
    CHECK(carries_all(asked(f, 0), 1, 1, false));
    CHECK(asked(f, 1) == NULL); /* though there is a transfer's fill */
    answer(f, TAG, OUTCOME_FAILED, NO_NODE);
    wake(f, f->now + 10);
    const struct primitive *r = expect(f, PRIMITIVE_XFER, 3); /* 1 again; 2 and 3 are new */
    CHECK_EQ(r->body.len, 2 * SLOT_BYTES + QUEUE_HEADER_BYTES + 1);
    for (uint64_t i = 0; i < 3; i++) {
        struct queue_header h = queue_header_load(r->body.at + i * SLOT_BYTES);
        CHECK_EQ(h.number, i + 1);
        CHECK_EQ(h.flags, i == 0 ? QUEUE_FLAG_AGAIN : 0);
    }
    answer(f, TAG, OUTCOME_DONE, NO_NODE);
    CHECK_EQ(status(f).sent, 7);
    free(f);
}

/* ---- flow control ---- */

/* The ring is full; one compare is under way. */
static struct fixture *fill(struct fixture *f) {
    open_queue(f);
    push_many(f, 12);
    answer(f, TAG, OUTCOME_DONE, NO_NODE); /* 1 */
    CHECK(carries(asked(f, 0), 4, 7, false));
    answer(f, TAG + 1, OUTCOME_DONE, NO_NODE); /* 2 and 3 */
    CHECK(asked(f, 0) == NULL);
    answer(f, TAG + 2, OUTCOME_DONE, NO_NODE); /* 4 to 7: the end of the ring */
    const struct primitive *r = asked(f, 0);   /* before it is sent: a compare waits its turn */
    CHECK(r != NULL && r->kind == PRIMITIVE_COMPARE && r->variable == VARIABLE);
    CHECK(r->relation == RELATION_GE && r->value == BASE + 7);
    CHECK(carries(asked(f, 1), 8, 8, false)); /* in the slot that nobody has used */
    answer(f, TAG + 3, OUTCOME_DONE, NO_NODE);
    CHECK(asked(f, 0) == NULL);
    CHECK_EQ(status(f).sent, BASE + 8);
    CHECK_EQ(status(f).delivered, BASE + 8);
    clear(f);
    return f;
}

static void test_no_slot_is_used_before_it_is_free(void) {
    struct fixture *f = fill(fixture_new());
    CHECK_EQ(push(f, "m"), 0);
    CHECK_EQ(status(f).sent, BASE + 8);
    answer(f, TAG + QUEUE_FLIGHTS_MAX, OUTCOME_DONE, NO_NODE);
    CHECK(f->news.consumed);
    CHECK_EQ(status(f).consumed, BASE + 7);
    CHECK(carries(asked(f, 0), 9, 11, false)); /* little to send: a half of the ring */
    CHECK(asked(f, 1) == NULL);
    free(f);
}

/* Where somebody is slow, half of the ring at a time: the other half keeps it busy meanwhile. */
static void test_the_slow_are_asked_for_a_half(void) {
    struct fixture *f = fill(fixture_new());
    answer(f, TAG + QUEUE_FLIGHTS_MAX, OUTCOME_FALSE, NO_NODE);
    wake(f, f->now + 10);
    CHECK_EQ(asked(f, 0)->value, BASE + 3);
    answer(f, TAG + QUEUE_FLIGHTS_MAX, OUTCOME_DONE, NO_NODE);
    CHECK_EQ(asked(f, 0)->value, BASE + 7);
    CHECK(carries(asked(f, 1), 9, 11, false));
    free(f);
}

static void test_backoff_doubles_up_to_its_limit(void) {
    static const uint64_t pauses[] = {10, 20, 40, 40};
    struct fixture *f = fill(fixture_new());
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        answer(f, TAG + QUEUE_FLIGHTS_MAX, OUTCOME_FALSE, NO_NODE);
        CHECK(asked(f, 0) == NULL);
        CHECK_EQ(timer_of(f), f->now + pauses[i]);
        wake(f, f->now + pauses[i]);
        const struct primitive *r = expect(f, PRIMITIVE_COMPARE, 3);
        CHECK(r != NULL && r->value == BASE + 3);
    }
    answer(f, TAG + QUEUE_FLIGHTS_MAX, OUTCOME_DONE, NO_NODE);
    answer(f, TAG + QUEUE_FLIGHTS_MAX, OUTCOME_FALSE, NO_NODE);
    CHECK_EQ(timer_of(f), f->now + 10); /* from the beginning */
    free(f);
}

static void test_standing_asks_once(void) {
    struct fixture *f = fixture_new();
    f->config.wait = QUEUE_WAIT_STANDING;
    make(f);
    struct nodeset s = set_of(f, 0, 0, 2);
    queue_add(f->q, &s, f->now, &f->out);
    answer(f, TAG + QUEUE_FLIGHTS_MAX + 1, OUTCOME_DONE, NO_NODE);
    const struct primitive *r = expect(f, PRIMITIVE_STANDING, 3);
    CHECK(r != NULL && r->relation == RELATION_EQ);
    free(f);
}

static void test_mixed_turns_to_standing_for_a_while(void) {
    struct fixture *f = fixture_new();
    f->config.wait = QUEUE_WAIT_MIXED;
    fill(f);
    uint64_t compares = status(f).compares - 1; /* one is under way */
    answer(f, TAG + QUEUE_FLIGHTS_MAX, OUTCOME_FALSE, NO_NODE);
    expect(f, PRIMITIVE_STANDING, 3);
    CHECK_EQ(timer_of(f), UINT64_MAX); /* no timer: the answer comes when it is true */
    answer(f, TAG + QUEUE_FLIGHTS_MAX, OUTCOME_DONE, NO_NODE);
    CHECK_EQ(asked(f, 0)->kind, PRIMITIVE_STANDING);
    CHECK_EQ(status(f).compares, compares + 1);
    free(f);
}

/* A deadline of a compare means a slow node, not a lost one. */
static void test_slow_is_not_lost(void) {
    struct fixture *f = fill(fixture_new());
    for (uint32_t i = 0; i < 5; i++) {
        answer(f, TAG + QUEUE_FLIGHTS_MAX, OUTCOME_FAILED, 1);
        CHECK_EQ(f->news.lost, 0);
        wake(f, f->now + 1000);
        expect(f, PRIMITIVE_COMPARE, 3);
    }
    free(f);
}

static void test_drain_asks_for_the_rest(void) {
    struct fixture *f = open_queue(fixture_new());
    push_many(f, 1);
    answer(f, TAG, OUTCOME_DONE, NO_NODE);
    CHECK(asked(f, 0) == NULL); /* there is room enough */
    queue_drain(f->q, f->now, &f->out);
    const struct primitive *r = expect(f, PRIMITIVE_COMPARE, 3);
    CHECK(r != NULL && r->value == BASE + 1);
    answer(f, TAG + QUEUE_FLIGHTS_MAX, OUTCOME_DONE, NO_NODE);
    CHECK_EQ(status(f).consumed, BASE + 1);
    CHECK(asked(f, 0) == NULL);
    free(f);
}

/* ---- failures ---- */

static struct fixture *two_under_way(void) {
    struct fixture *f = open_queue(fixture_new());
    push_many(f, 3); /* 1, then 2 and 3 */
    CHECK(carries(asked(f, 1), 2, 3, false));
    return f;
}

static void test_what_has_failed_is_sent_again_with_all_after_it(void) {
    struct fixture *f = two_under_way();
    answer(f, TAG, OUTCOME_FAILED, NO_NODE);
    CHECK(asked(f, 0) == NULL); /* the other may succeed */
    answer(f, TAG + 1, OUTCOME_DONE, NO_NODE);
    CHECK(!f->news.delivered);
    CHECK(carries(asked(f, 0), 1, 3, true)); /* at once: transfers do get through */
    CHECK_EQ(status(f).repeated, 3);
    answer(f, TAG, OUTCOME_DONE, NO_NODE);
    CHECK_EQ(status(f).delivered, BASE + 3);
    push_many(f, 1);
    CHECK(carries(asked(f, 1), 4, 4, false));
    free(f);
}

static void test_a_later_failure_keeps_the_earlier_success(void) {
    struct fixture *f = two_under_way();
    answer(f, TAG + 1, OUTCOME_REFUSED, NO_NODE);
    CHECK(asked(f, 0) == NULL);
    answer(f, TAG, OUTCOME_DONE, NO_NODE);
    CHECK_EQ(status(f).delivered, BASE + 1);
    CHECK(carries(asked(f, 0), 2, 3, true));
    free(f);
}

static void test_what_fails_and_fails_is_tried_less_and_less_often(void) {
    static const uint64_t pauses[] = {10, 20, 40, 40};
    struct fixture *f = open_queue(fixture_new());
    push_many(f, 1);
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        answer(f, TAG, OUTCOME_FAILED, NO_NODE);
        CHECK(asked(f, 0) == NULL);
        CHECK_EQ(timer_of(f), f->now + pauses[i]);
        wake(f, f->now + pauses[i]);
        CHECK(carries(asked(f, 0), 1, 1, true));
    }
    free(f);
}

static void test_unknown_is_waited_for(void) {
    struct fixture *f = two_under_way();
    answer(f, TAG, OUTCOME_UNKNOWN, NO_NODE);
    CHECK_EQ(f->out.count, 0);
    wake(f, f->now + 1000);
    CHECK(asked(f, 0) == NULL);
    answer(f, TAG + 1, OUTCOME_DONE, NO_NODE);
    CHECK(asked(f, 0) == NULL);
    answer(f, TAG, OUTCOME_DONE, NO_NODE);
    CHECK_EQ(status(f).delivered, BASE + 3);
    CHECK_EQ(status(f).repeated, 0);
    free(f);
}

static void test_lost_is_sent_again_when_back(void) {
    struct fixture *f = two_under_way();
    answer(f, TAG, OUTCOME_LOST, NO_NODE);
    answer(f, TAG + 1, OUTCOME_LOST, NO_NODE);
    CHECK(asked(f, 0) == NULL);
    wake(f, f->now + 1000);
    CHECK(asked(f, 0) == NULL); /* not a member: nobody would hear it */
    CHECK_EQ(push(f, "m"), 0);
    CHECK(asked(f, 0) == NULL);
    CHECK(feed(f, (struct input){.kind = INPUT_JOINED}));
    CHECK(carries(asked(f, 0), 1, 3, true));
    free(f);
}

static void test_a_lost_node_is_left_out(void) {
    struct fixture *f = two_under_way();
    answer(f, TAG, OUTCOME_FAILED, 1);
    answer(f, TAG + 1, OUTCOME_FAILED, 1);
    nodes(f, 1, 1, false);
    CHECK_EQ(f->news.lost, 1);
    CHECK_EQ(f->news.lost_node, 1);
    CHECK(carries(asked(f, 0), 1, 3, true)); /* at once, to the others */
    CHECK_EQ(nodeset_count(asked(f, 0)->set), 2);
    nodes(f, 3, 4, true); /* they do not belong here */
    CHECK(asked(f, 0) == NULL);
    nodes(f, 1, 1, true);
    const struct primitive *r = expect(f, PRIMITIVE_XFER, 1); /* the reset */
    CHECK(r != NULL && nodeset_has(r->set, 1) && r->body.len == 0);
    answer(f, TAG + QUEUE_FLIGHTS_MAX + 1, OUTCOME_DONE, NO_NODE);
    answer(f, TAG + QUEUE_FLIGHTS_MAX + 1, OUTCOME_DONE, NO_NODE);
    CHECK_EQ(f->news.entered, 0); /* not while something is under way */
    clear(f);
    CHECK_EQ(push(f, "m"), 0);
    CHECK(asked(f, 0) == NULL);
    answer(f, TAG, OUTCOME_DONE, NO_NODE);
    CHECK_EQ(f->news.entered, 1);
    bool sent = false; /* 4, to all three, beside the compare for the first half */
    for (uint32_t i = 0; asked(f, i) != NULL; i++)
        if (asked(f, i)->kind == PRIMITIVE_XFER)
            sent = carries(asked(f, i), 4, 4, false) && nodeset_count(asked(f, i)->set) == 3;
    CHECK(sent);
    free(f);
}

static void test_patience_has_an_end(void) {
    struct fixture *f = open_queue(fixture_new());
    push_many(f, 1);
    uint32_t tries = 0;
    while (status(f).nodes == 3 && tries < 100) {
        answer(f, TAG, OUTCOME_REFUSED, 2);
        tries++;
        if (status(f).nodes == 3)
            wake(f, timer_of(f));
    }
    CHECK(tries > 10 && tries < 30);
    CHECK_EQ(f->news.lost_node, 2);
    CHECK(f->now >= 1500 && f->now < 1600);
    CHECK(carries(asked(f, 0), 1, 1, true));
    CHECK_EQ(nodeset_count(asked(f, 0)->set), 2);
    free(f);
}

static void test_a_queue_can_fail(void) {
    struct fixture *f = fixture_new();
    f->config.loss = QUEUE_LOSS_FAIL;
    open_queue(f);
    push_many(f, 1);
    nodes(f, 0, 4, false);
    CHECK(f->news.failed);
    CHECK_EQ(f->news.lost, 3);
    CHECK_EQ(push(f, "m"), -EPIPE);
    answer(f, TAG, OUTCOME_FAILED, 0);
    CHECK(!f->news.failed); /* that was told */
    CHECK_EQ(f->out.count, 0);
    free(f);
}

static void test_foreign_inputs_are_left_alone(void) {
    struct fixture *f = open_queue(fixture_new());
    CHECK(!feed(f, (struct input){.kind = INPUT_COMPLETION, .completion = {.tag = TAG - 1}}));
    CHECK(!feed(f,
                (struct input){.kind = INPUT_COMPLETION, .completion = {.tag = TAG + QUEUE_TAGS}}));
    CHECK(!feed(f, (struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER + 1}}));
    CHECK(!feed(f, (struct input){.kind = INPUT_SIGNAL}));
    CHECK_EQ(f->out.count, 0);
    free(f);
}

/* ---- a reader ---- */

static bool read_input(struct fixture *f, struct input in) {
    in.now = f->now;
    clear(f);
    return queue_reader_step(&f->reader, &in, &f->out);
}

static bool look(struct fixture *f) {
    return read_input(f, (struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER}});
}

/* The value that the variable was set to, if it was, by one request. */
static bool has_set(const struct fixture *f, uint64_t value) {
    const struct primitive *r = asked(f, 0);
    return CHECK(r != NULL) && CHECK_EQ(r->kind, PRIMITIVE_SET) &&
           CHECK_EQ(r->variable, VARIABLE) && CHECK_EQ(r->value, value) &&
           CHECK(asked(f, 1) == NULL);
}

static void signal_slots(struct fixture *f, uint64_t first, uint64_t len) {
    read_input(
        f, (struct input){.kind = INPUT_SIGNAL,
                          .signal = {.event = EVENT,
                                     .heap_offset = (uint32_t)(OFFSET + first % SLOTS * SLOT_BYTES),
                                     .len = len}});
}

/* A transfer of these messages; their text is the last digit of their number. */
static void arrive(struct fixture *f, uint64_t session, uint64_t first, uint64_t last,
                   uint32_t flags) {
    for (uint64_t n = first; n <= last; n++) {
        uint8_t *at = f->heap + OFFSET + n % SLOTS * SLOT_BYTES;
        struct queue_header h = {.session = session, .number = n, .len = 1, .flags = flags};
        queue_header_store(at, &h);
        at[QUEUE_HEADER_BYTES] = (uint8_t)('0' + n % 10);
    }
    signal_slots(f, first, (last - first) * SLOT_BYTES + QUEUE_HEADER_BYTES + 1);
}

static bool pops(struct fixture *f, uint64_t number, bool first) {
    struct queue_message m;
    clear(f);
    return CHECK(queue_pop(&f->reader, &m)) && CHECK_EQ(m.number, number) &&
           CHECK_EQ(m.bytes.len, 1) && CHECK_EQ(m.bytes.at[0], '0' + number % 10) &&
           CHECK_EQ(m.first, first);
}

static bool pops_none(struct fixture *f) {
    struct queue_message m;
    return CHECK(!queue_pop(&f->reader, &m));
}

static void test_a_reader_is_idle_at_first(void) {
    struct fixture *f = fixture_new();
    read_input(f, (struct input){.kind = INPUT_JOINED});
    has_set(f, QUEUE_IDLE);
    pops_none(f);
    free(f);
}

static void test_messages_are_read_after_the_step_of_their_signal(void) {
    struct fixture *f = fixture_new();
    arrive(f, 5, 21, 23, 0); /* it begins in the middle */
    has_set(f, 0);           /* not idle any more, nothing consumed */
    CHECK_EQ(timer_of(f), f->now);
    pops_none(f);
    CHECK(look(f));
    has_set(f, 20);
    CHECK(pops(f, 21, true) && pops(f, 22, false));
    clear(f);
    queue_done(&f->reader, 22, &f->out);
    has_set(f, 22); /* one for both */
    CHECK(pops(f, 23, false));
    pops_none(f);
    queue_done(&f->reader, 23, &f->out);
    has_set(f, 23);
    queue_done(&f->reader, 23, &f->out); /* nothing new */
    has_set(f, 23);
    free(f);
}

static void test_a_reader_goes_round_the_ring(void) {
    struct fixture *f = fixture_new();
    for (uint64_t n = 1; n <= 100; n++) {
        arrive(f, 5, n, n, 0);
        CHECK(look(f));
        if (!pops(f, n, n == 1))
            break;
        queue_done(&f->reader, n, &f->out);
    }
    CHECK_EQ(f->reader.fault, QUEUE_FAULT_NONE);
    free(f);
}

static void test_a_gap_is_waited_for(void) {
    struct fixture *f = fixture_new();
    arrive(f, 5, 1, 1, 0);
    look(f);
    CHECK(pops(f, 1, true));
    arrive(f, 5, 4, 5, 0); /* the transfer before it has failed */
    CHECK(!look(f));
    pops_none(f);
    arrive(f, 5, 2, 5, QUEUE_FLAG_AGAIN);
    CHECK(look(f));
    for (uint64_t n = 2; n <= 5; n++)
        CHECK(pops(f, n, false));
    arrive(f, 5, 4, 5, QUEUE_FLAG_AGAIN);
    look(f);
    pops_none(f);
    CHECK_EQ(f->reader.repeated, 4);
    CHECK_EQ(f->reader.fault, QUEUE_FAULT_NONE);
    free(f);
}

static void check_fault(uint64_t session, uint64_t first, uint64_t last, bool popped,
                        enum queue_fault fault) {
    struct fixture *f = fixture_new();
    arrive(f, 5, 1, 3, 0);
    look(f);
    if (popped)
        CHECK(pops(f, 1, true) && pops(f, 2, false) && pops(f, 3, false));
    arrive(f, session, first, last, 0);
    CHECK(look(f));
    CHECK_EQ(f->reader.fault, fault);
    if (fault != QUEUE_FAULT_NONE)
        pops_none(f);
    free(f);
}

static void test_faults_are_reported(void) {
    check_fault(5, 4, 8, false, QUEUE_FAULT_NONE); /* the ring is full */
    check_fault(5, 4, 7, true, QUEUE_FAULT_NONE);
    check_fault(5, 2, 2, false, QUEUE_FAULT_DOUBLED);
    check_fault(5, 3, 3, true, QUEUE_FAULT_DOUBLED);
    check_fault(5, 9, 9, false, QUEUE_FAULT_OVERRUN);
    check_fault(5, 9, 9, true, QUEUE_FAULT_OVERRUN); /* popped is not consumed */
    check_fault(6, 4, 4, true, QUEUE_FAULT_FOREIGN);
    CHECK_STR(queue_fault_name(QUEUE_FAULT_OVERRUN), "overrun");
}

static void test_rubbish_is_a_fault(void) {
    struct fixture *f = fixture_new();
    signal_slots(f, 3, SLOT_BYTES); /* all zero */
    CHECK(look(f));
    CHECK_EQ(f->reader.fault, QUEUE_FAULT_FOREIGN);
    free(f);
    f = fixture_new();
    arrive(f, 5, 3, 3, 0);
    store_le32(f->heap + OFFSET + 3 * SLOT_BYTES + 16, SLOT_BYTES); /* longer than a slot */
    CHECK(look(f));
    CHECK_EQ(f->reader.fault, QUEUE_FAULT_FOREIGN);
    free(f);
}

static void test_a_reset_waits_until_all_is_consumed(void) {
    struct fixture *f = fixture_new();
    arrive(f, 5, 1, 2, 0);
    signal_slots(f, 0, 0); /* before it has looked */
    CHECK(look(f));
    CHECK(pops(f, 1, true));
    queue_done(&f->reader, 1, &f->out);
    has_set(f, 1);
    arrive(f, 5, 4, 4, 0); /* behind a gap: never complete */
    look(f);
    CHECK(pops(f, 2, false));
    queue_done(&f->reader, 2, &f->out);
    has_set(f, QUEUE_IDLE);
    pops_none(f);
    arrive(f, 6, 1, 1, 0); /* the next master */
    has_set(f, 0);
    look(f);
    CHECK(pops(f, 1, true));
    CHECK_EQ(f->reader.fault, QUEUE_FAULT_NONE);
    free(f);
}

static void test_a_reset_of_who_has_nothing(void) {
    struct fixture *f = fixture_new();
    arrive(f, 5, 1, 1, 0);
    look(f);
    CHECK(pops(f, 1, true));
    queue_done(&f->reader, 1, &f->out);
    signal_slots(f, 0, 0);
    CHECK(asked(f, 0) == NULL);
    CHECK(!look(f));
    has_set(f, QUEUE_IDLE);
    free(f);
}

static void test_a_fenced_reader_forgets(void) {
    struct fixture *f = fixture_new();
    arrive(f, 5, 1, 2, 0);
    look(f);
    CHECK(pops(f, 1, true));
    read_input(f, (struct input){.kind = INPUT_FENCED});
    pops_none(f);
    queue_done(&f->reader, 1, &f->out); /* what was popped before does not matter any more */
    CHECK(asked(f, 0) == NULL);
    read_input(f, (struct input){.kind = INPUT_JOINED});
    arrive(f, 5, 7, 7, QUEUE_FLAG_AGAIN);
    look(f);
    CHECK(pops(f, 7, true));
    free(f);
}

static void test_other_signals_are_left_alone(void) {
    struct fixture *f = fixture_new();
    struct input in = {.kind = INPUT_SIGNAL, .signal = {.event = EVENT + 1, .heap_offset = OFFSET}};
    CHECK(!read_input(f, in));
    in.signal.event = EVENT;
    in.signal.heap_offset = OFFSET - 1;
    CHECK(!read_input(f, in));
    in.signal.heap_offset = OFFSET + SLOTS * SLOT_BYTES;
    CHECK(!read_input(f, in));
    CHECK_EQ(f->out.count, 0);
    CHECK(!read_input(f, (struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER + 1}}));
    free(f);
}

int main(void) {
    TEST(test_messages_wait_for_nodes);
    TEST(test_one_is_sent_at_once_and_others_gather);
    TEST(test_sizes_are_limits);
    TEST(test_the_first_transfer_goes_alone);
    TEST(test_no_slot_is_used_before_it_is_free);
    TEST(test_the_slow_are_asked_for_a_half);
    TEST(test_backoff_doubles_up_to_its_limit);
    TEST(test_standing_asks_once);
    TEST(test_mixed_turns_to_standing_for_a_while);
    TEST(test_slow_is_not_lost);
    TEST(test_drain_asks_for_the_rest);
    TEST(test_what_has_failed_is_sent_again_with_all_after_it);
    TEST(test_a_later_failure_keeps_the_earlier_success);
    TEST(test_what_fails_and_fails_is_tried_less_and_less_often);
    TEST(test_unknown_is_waited_for);
    TEST(test_lost_is_sent_again_when_back);
    TEST(test_a_lost_node_is_left_out);
    TEST(test_patience_has_an_end);
    TEST(test_a_queue_can_fail);
    TEST(test_foreign_inputs_are_left_alone);
    TEST(test_a_reader_is_idle_at_first);
    TEST(test_messages_are_read_after_the_step_of_their_signal);
    TEST(test_a_reader_goes_round_the_ring);
    TEST(test_a_gap_is_waited_for);
    TEST(test_faults_are_reported);
    TEST(test_rubbish_is_a_fault);
    TEST(test_a_reset_waits_until_all_is_consumed);
    TEST(test_a_reset_of_who_has_nothing);
    TEST(test_a_fenced_reader_forgets);
    TEST(test_other_signals_are_left_alone);
    return tap_finish();
}
