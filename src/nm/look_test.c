/* SPDX-License-Identifier: MIT */
/* Tests of what checkers see of the node manager: what is spoiled is found. */
#include <stdlib.h>

#include "nm/inside.h"
#include "tap.h"

static const struct roster roster = {.prefix = "n", .capacity = 4, .count = 4};
static const struct nm_config config = {
    .limits = {.nodes = 4, .roots = 1, .body_bytes = 256}, .runs = 8, .roster = &roster};

struct bench {
    void *memory;
    struct nm *nm;
};

static void begin(struct bench *b) {
    struct arena a;
    size_t bytes = nm_bytes(&config);
    b->memory = calloc(1, bytes);
    arena_init(&a, b->memory, bytes);
    b->nm = nm_new(&config, &a);
    CHECK(run_add(b->nm, 11) != NULL && run_add(b->nm, 12) != NULL);
    CHECK(nm_wrong(b->nm) == NULL);
}

static void end(struct bench *b, const char *words) {
    CHECK_STR(nm_wrong(b->nm) != NULL ? nm_wrong(b->nm) : "nothing", words);
    free(b->memory);
}

static void test_a_run_twice(void) {
    struct bench b;
    begin(&b);
    run_add(b.nm, 11);
    end(&b, "a run has two places");
}

static void test_where_nobody_looks(void) {
    struct bench b;
    begin(&b);
    b.nm->run_end--;
    end(&b, "a run lies behind the end");
}

static void test_too_much(void) {
    struct bench b;
    begin(&b);
    b.nm->runs[1].setup_len = config.limits.body_bytes + 1;
    end(&b, "a set-up is larger than its room");
    begin(&b);
    b.nm->runs[0].ending_count = ENDINGS_MAX + 1;
    end(&b, "more endings wait than there is room for");
}

static void test_over_and_not_over(void) {
    struct bench b;
    begin(&b);
    b.nm->runs[1].over = true;
    b.nm->runs[1].ending.more = true;
    end(&b, "a run that is over goes on");
}

int main(void) {
    TEST(test_a_run_twice);
    TEST(test_too_much);
    TEST(test_where_nobody_looks);
    TEST(test_over_and_not_over);
    return tap_finish();
}
