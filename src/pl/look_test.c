/* SPDX-License-Identifier: MIT */
/* Tests of what checkers see of the launcher: what is spoiled is found. */
#include <stdlib.h>

#include "base/units.h"
#include "pl/inside.h"
#include "tap.h"

static const struct pl_config config = {.groups = 4,
                                        .processes = 8,
                                        .setup_bytes = 64,
                                        .resend_ns = NS_PER_S,
                                        .resend_max_ns = NS_PER_S};

struct bench {
    void *memory;
    struct pl *pl;
};

static void begin(struct bench *b) {
    struct arena a;
    size_t bytes = pl_bytes(&config);
    b->memory = calloc(1, bytes);
    arena_init(&a, b->memory, bytes);
    b->pl = pl_new(&config, &a);
    for (uint64_t run = 11; run <= 12; run++) {
        struct setup s = {.run = run, .count = 3, .size = 3};
        CHECK(runs_add(b->pl, &s, bytes_from_str("what it is")) != NULL);
    }
    CHECK(pl_wrong(b->pl) == NULL);
}

static void end(struct bench *b, const char *words) {
    CHECK_STR(pl_wrong(b->pl) != NULL ? pl_wrong(b->pl) : "nothing", words);
    free(b->memory);
}

static void test_a_run_twice(void) {
    struct bench b;
    begin(&b);
    b.pl->runs[1].run = 11;
    end(&b, "a run has two places");
}

static void test_two_share_a_process(void) {
    struct bench b;
    begin(&b);
    b.pl->runs[1].process--;
    end(&b, "two runs share a process");
}

static void test_more_left_than_there_were(void) {
    struct bench b;
    begin(&b);
    b.pl->runs[0].left = 4;
    end(&b, "more processes are left than there were");
}

static void test_counts(void) {
    struct bench b;
    begin(&b);
    b.pl->run_count++;
    end(&b, "runs are counted wrong");
    begin(&b);
    b.pl->process_count--;
    end(&b, "runs are counted wrong");
    begin(&b);
    b.pl->setup_count++;
    end(&b, "runs are counted wrong");
}

static void test_where_nobody_looks(void) {
    struct bench b;
    begin(&b);
    b.pl->run_end--;
    end(&b, "a run lies behind the end");
}

static void test_groups(void) {
    struct bench b;
    begin(&b);
    CHECK_EQ(pl_groups(b.pl), 2);
    b.pl->runs[0].closed = true;
    CHECK_EQ(pl_groups(b.pl), 1);
    free(b.memory);
}

static void test_beyond_the_limit(void) {
    struct bench b;
    begin(&b);
    b.pl->runs[1].count += 6;
    b.pl->process_count += 6;
    end(&b, "there is more than there is room for");
}

int main(void) {
    TEST(test_a_run_twice);
    TEST(test_two_share_a_process);
    TEST(test_more_left_than_there_were);
    TEST(test_counts);
    TEST(test_beyond_the_limit);
    TEST(test_where_nobody_looks);
    TEST(test_groups);
    return tap_finish();
}
