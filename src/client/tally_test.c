/* SPDX-License-Identifier: MIT */
/* Tests of tallies: what was committed is there in the next life, what was not whole is not. */
#include "client/tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static char path[] = "/tmp/storm-tally-XXXXXX";

static void fresh_path(void) {
    snprintf(path, sizeof path, "/tmp/storm-tally-XXXXXX");
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
}

struct sum {
    uint32_t count;
    uint64_t taken, size;
};

static void add_up(void *context, const struct tally_note *n) {
    struct sum *s = context;
    s->count++;
    s->taken = n->taken;
    s->size = n->size;
}

static struct sum sum_of(uint64_t run) {
    struct sum s = {0};
    struct tally *t = tally_open(path);
    CHECK(t != NULL);
    tally_each(t, run, add_up, &s);
    tally_close(t);
    return s;
}

static void write_notes(uint64_t run, int count) {
    struct tally *t = tally_open(path);
    for (int i = 1; i <= count; i++) {
        struct tally_note n = {.run = run, .stream = 3, .taken = 10 * (uint64_t)i, .size = 7};
        CHECK_EQ(tally_add(t, &n), 0);
    }
    CHECK_EQ(tally_commit(t), 0);
    tally_close(t);
}

static void test_next_life(void) {
    fresh_path();
    write_notes(5, 40);
    write_notes(6, 2);
    write_notes(5, 41);
    struct sum s = sum_of(5);
    CHECK_EQ(s.count, 81);
    CHECK_EQ(s.taken, 410);
    CHECK_EQ(s.size, 7);
    CHECK_EQ(sum_of(6).count, 2);
    CHECK_EQ(sum_of(7).count, 0);
    unlink(path);
}

static void test_not_committed(void) {
    fresh_path();
    struct tally *t = tally_open(path);
    struct tally_note n = {.run = 5, .taken = 1};
    CHECK_EQ(tally_add(t, &n), 0);
    tally_close(t);
    CHECK_EQ(sum_of(5).count, 0);
    unlink(path);
}

/* Cut anywhere, the whole notes before are there, and what is written next follows them. */
static void test_torn(void) {
    for (off_t cut = 1; cut < (off_t)sizeof(struct tally_note); cut += 5) {
        fresh_path();
        write_notes(5, 3);
        struct stat st;
        CHECK_EQ(stat(path, &st), 0);
        CHECK_EQ(truncate(path, st.st_size - cut), 0);
        CHECK_EQ(sum_of(5).count, 2);
        write_notes(5, 1);
        CHECK_EQ(sum_of(5).count, 3);
        CHECK_EQ(sum_of(5).taken, 10);
        unlink(path);
    }
}

/* A file system may leave zeros where a write was torn. */
static void test_zeros(void) {
    fresh_path();
    write_notes(5, 2);
    CHECK_EQ(truncate(path, 10 * (off_t)sizeof(struct tally_note)), 0);
    CHECK_EQ(sum_of(5).count, 2);
    CHECK_EQ(sum_of(0).count, 0);
    unlink(path);
}

int main(void) {
    TEST(test_next_life);
    TEST(test_not_committed);
    TEST(test_torn);
    TEST(test_zeros);
    return tap_finish();
}
