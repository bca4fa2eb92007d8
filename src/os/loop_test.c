/* SPDX-License-Identifier: MIT */
/* The event loop: who is called in a turn, and when a turn begins. */
#include "os/loop.h"

#include <sys/eventfd.h>

#include "base/list.h"
#include "turns.h"

enum { MANY = LOOP_BATCH + 10 };

struct probe {
    struct source source;
    struct loop *loop;
    struct probe *victim; /* taken out of the loop when we are called */
    int calls;
    uint32_t events;
};

static void probed(struct source *s, uint32_t events) {
    struct probe *p = CONTAINER_OF(s, struct probe, source);
    p->calls++;
    p->events = events;
    if (p->victim != NULL && p->victim->source.fd >= 0) {
        loop_remove(p->loop, &p->victim->source);
        close(p->victim->source.fd);
        p->victim->source.fd = -1;
    }
}

static void probe_add(struct probe *p, struct loop *l, unsigned int count) {
    *p = (struct probe){
        .loop = l, .source = {.fd = eventfd(count, EFD_CLOEXEC | EFD_NONBLOCK), .ready = probed}};
    CHECK_EQ(loop_add(l, &p->source, EPOLLIN), 0);
}

static void probe_end(struct probe *p) {
    if (p->source.fd >= 0) {
        loop_remove(p->loop, &p->source);
        close(p->source.fd);
    }
}

static void test_only_who_is_ready(void) {
    struct loop l;
    struct probe a, b;
    CHECK_EQ(loop_init(&l), 0);
    probe_add(&a, &l, 0);
    probe_add(&b, &l, 1);
    loop_turn(&l, 0);
    CHECK_EQ(a.calls, 0);
    CHECK_EQ(b.calls, 1);
    CHECK_EQ(b.events, EPOLLIN);
    loop_turn(&l, 0); /* level-triggered */
    CHECK_EQ(b.calls, 2);
    loop_change(&l, &a.source, EPOLLIN | EPOLLOUT);
    loop_change(&l, &b.source, 0);
    loop_turn(&l, 0);
    CHECK_EQ(a.calls, 1);
    CHECK_EQ(a.events, EPOLLOUT);
    CHECK_EQ(b.calls, 2);
    probe_end(&a);
    probe_end(&b);
    loop_fini(&l);
}

/* Both are ready; each would remove the other: exactly one is called, whichever comes first. */
static void test_removed_during_the_turn(void) {
    struct loop l;
    struct probe a, b;
    CHECK_EQ(loop_init(&l), 0);
    probe_add(&a, &l, 1);
    probe_add(&b, &l, 1);
    a.victim = &b;
    b.victim = &a;
    loop_turn(&l, 0);
    CHECK_EQ(a.calls + b.calls, 1);
    loop_turn(&l, 0);
    CHECK_EQ(a.calls + b.calls, 2);
    probe_end(&a);
    probe_end(&b);
    loop_fini(&l);
}

static void test_removes_itself(void) {
    struct loop l;
    struct probe a;
    CHECK_EQ(loop_init(&l), 0);
    probe_add(&a, &l, 1);
    a.victim = &a;
    loop_turn(&l, 0);
    loop_turn(&l, 0);
    CHECK_EQ(a.calls, 1);
    loop_fini(&l);
}

/* More than a turn takes: nobody is left out for ever. */
static void test_more_than_a_batch(void) {
    struct loop l;
    static struct probe p[MANY];
    int called = 0;
    CHECK_EQ(loop_init(&l), 0);
    for (int i = 0; i < MANY; i++)
        probe_add(&p[i], &l, 1);
    loop_turn(&l, 0);
    loop_turn(&l, 0);
    for (int i = 0; i < MANY; i++) {
        called += p[i].calls > 0;
        probe_end(&p[i]);
    }
    CHECK_EQ(called, MANY);
    loop_fini(&l);
}

/* ---- times ---- */

/* The turn that was asked for: it begins at that time, not before, and is over without a source. */
static uint64_t next_turn(struct loop *l) {
    loop_turn(l, 60000);
    return l->now;
}

static void test_wakes_at_a_time(void) {
    struct loop l;
    CHECK_EQ(loop_init(&l), 0);
    uint64_t at = clock_ns() + 5 * NS_PER_MS;
    loop_wake_at(&l, at);
    CHECK(next_turn(&l) >= at);
    CHECK(l.now < at + PATIENCE_NS / 2);
    at = clock_ns() + 5 * NS_PER_MS; /* and again: the timer is edge-triggered */
    loop_wake_at(&l, at);
    CHECK(next_turn(&l) >= at);
    CHECK(l.now < at + PATIENCE_NS / 2);
    loop_fini(&l);
}

static void test_the_earliest_counts(void) {
    struct loop l;
    CHECK_EQ(loop_init(&l), 0);
    uint64_t start = clock_ns();
    loop_wake_at(&l, start + 3600 * NS_PER_S);
    loop_wake_at(&l, start + 2 * NS_PER_MS);
    loop_wake_at(&l, start + 1800 * NS_PER_S);
    CHECK(next_turn(&l) < start + PATIENCE_NS / 2);
    CHECK(l.now >= start + 2 * NS_PER_MS);
    loop_wake_at(&l, start + 3600 * NS_PER_S); /* moved earlier once the kernel has it */
    loop_turn(&l, 0);
    loop_wake_at(&l, clock_ns() + NS_PER_MS);
    CHECK(next_turn(&l) < start + PATIENCE_NS / 2);
    loop_fini(&l);
}

static void test_moved_later(void) {
    struct loop l;
    CHECK_EQ(loop_init(&l), 0);
    loop_wake_at(&l, clock_ns() + 20 * NS_PER_MS);
    loop_turn(&l, 0);
    uint64_t at = clock_ns() + 60 * NS_PER_MS;
    do {
        loop_wake_at(&l, at); /* as everyone does each turn */
        loop_turn(&l, 60000);
    } while (l.now < at);
    CHECK(l.now < at + PATIENCE_NS / 2);
    loop_fini(&l);
}

/* What is past is due at once, the beginning of time included; a later wish does not undo it. */
static void test_past_and_zero(void) {
    static const uint64_t past[] = {0, 1, NS_PER_S};
    for (int i = 0; i < 3; i++) {
        struct loop l;
        CHECK_EQ(loop_init(&l), 0);
        uint64_t start = clock_ns();
        loop_wake_at(&l, past[i]);
        loop_wake_at(&l, start + 3600 * NS_PER_S);
        CHECK(next_turn(&l) < start + PATIENCE_NS / 2);
        loop_wake_at(&l, past[i]); /* the same once more */
        CHECK(next_turn(&l) < start + PATIENCE_NS / 2);
        loop_fini(&l);
    }
}

static void test_never(void) {
    struct loop l;
    CHECK_EQ(loop_init(&l), 0);
    loop_wake_at(&l, UINT64_MAX);
    loop_turn(&l, 10);
    CHECK_EQ(l.batch_count, 0);
    loop_fini(&l);
}

/* A wish that is made while the timer of an earlier one goes off is not lost with it. */
static void wish(struct source *s, uint32_t events) {
    struct probe *p = CONTAINER_OF(s, struct probe, source);
    (void)events;
    p->calls++;
    loop_wake_at(p->loop, p->loop->now + NS_PER_MS);
    loop_change(p->loop, s, 0);
}

static void test_wish_in_the_turn_of_the_timer(void) {
    struct loop l;
    struct probe a;
    CHECK_EQ(loop_init(&l), 0);
    uint64_t start = clock_ns();
    for (int i = 0; i < 20; i++) {
        probe_add(&a, &l, 1);
        a.source.ready = wish;
        uint64_t due = clock_ns() + NS_PER_MS / 10;
        loop_wake_at(&l, due);
        while (clock_ns() < due)
            ; /* both are ready when the turn begins */
        loop_turn(&l, 60000);
        CHECK_EQ(a.calls, 1);
        CHECK(next_turn(&l) < start + PATIENCE_NS / 2);
        probe_end(&a);
    }
    loop_fini(&l);
}

int main(void) {
    TEST(test_only_who_is_ready);
    TEST(test_removed_during_the_turn);
    TEST(test_removes_itself);
    TEST(test_more_than_a_batch);
    TEST(test_wakes_at_a_time);
    TEST(test_the_earliest_counts);
    TEST(test_moved_later);
    TEST(test_past_and_zero);
    TEST(test_never);
    TEST(test_wish_in_the_turn_of_the_timer);
    return tap_finish();
}
