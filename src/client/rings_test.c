/* SPDX-License-Identifier: MIT */
/* Tests of rings in shared memory: both ends in one process, and in two. */
#include "client/rings.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static void pair(struct rings *a, struct rings *b) {
    int fd = rings_make(a);
    CHECK(fd >= 0);
    CHECK_EQ(rings_take(b, fd), 0);
    close(fd);
}

static void test_there_and_back(void) {
    struct rings a, b;
    char got[8];
    pair(&a, &b);
    CHECK_EQ(rings_read(&b, got, sizeof got), 0);
    CHECK_EQ(rings_write(&a, "hello", 5), 5);
    CHECK_EQ(rings_read(&b, got, 2), 2);
    CHECK_EQ(rings_read(&b, got + 2, 6), 3);
    CHECK(memcmp(got, "hello", 5) == 0);
    CHECK_EQ(rings_write(&b, "you", 3), 3);
    CHECK_EQ(rings_read(&a, got, sizeof got), 3);
    CHECK(memcmp(got, "you", 3) == 0);
    rings_free(&a);
    rings_free(&b);
}

static void test_round_the_end(void) {
    static uint8_t one[RINGS_BYTES / 3 * 2], two[sizeof one];
    struct rings a, b;
    pair(&a, &b);
    for (int round = 0; round < 7; round++) {
        for (size_t i = 0; i < sizeof one; i++)
            one[i] = (uint8_t)(i * 7 + (size_t)round);
        CHECK_EQ(rings_write(&a, one, sizeof one), sizeof one);
        CHECK_EQ(rings_write(&a, one, sizeof one), RINGS_BYTES - sizeof one);
        CHECK_EQ(rings_write(&a, one, 1), 0);
        CHECK_EQ(rings_read(&b, two, sizeof two), sizeof two);
        CHECK(memcmp(one, two, sizeof one) == 0);
        CHECK_EQ(rings_read(&b, two, sizeof two), RINGS_BYTES - sizeof one);
        CHECK(memcmp(one, two, RINGS_BYTES - sizeof one) == 0);
    }
    rings_free(&a);
    rings_free(&b);
}

static void test_who_waits_is_woken_once(void) {
    static uint8_t full[RINGS_BYTES];
    struct rings a, b;
    pair(&a, &b);
    CHECK(!rings_wait_in(&b));
    CHECK(!rings_wake(&a));
    rings_write(&a, "x", 1);
    CHECK(rings_wake(&a));
    CHECK(!rings_wake(&a));
    CHECK(rings_wait_in(&b)); /* there is something */
    rings_go_on(&b);
    rings_write(&a, "x", 1);
    CHECK(!rings_wake(&a)); /* it does not wait */
    rings_write(&a, full, sizeof full);
    CHECK(!rings_wait_out(&a));
    rings_read(&b, full, 100);
    CHECK(!rings_wake(&b)); /* that is too little */
    rings_read(&b, full, RINGS_BYTES / 2);
    CHECK(rings_wake(&b));
    rings_free(&a);
    rings_free(&b);
}

static void test_counts_that_cannot_be(void) {
    struct rings a, b;
    char got[8];
    pair(&a, &b);
    atomic_store(&b.in->written, UINT64_MAX / 2);
    CHECK_EQ(rings_read(&b, got, sizeof got), -EBADMSG);
    atomic_store(&b.out->read, 1);
    CHECK_EQ(rings_write(&b, "x", 1), -EBADMSG);
    rings_free(&a);
    rings_free(&b);
}

static void test_other_memory_is_not_taken(void) {
    struct rings b;
    int fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK_EQ(ftruncate(fd, 4096 + 2 * RINGS_BYTES), 0);
    CHECK_EQ(rings_take(&b, fd), -EBADMSG); /* it is not sealed */
    close(fd);
    CHECK_EQ(rings_take(&b, STDIN_FILENO), -EBADMSG);
}

/* Numbers through a ring that is full, then empty, by turns; the socket's part is done by looking again. */
static void test_two_processes(void) {
    enum { NUMBERS = 2000000 };
    struct rings a, b;
    pair(&a, &b);
    pid_t child = fork();
    if (child == 0) {
        for (uint32_t i = 0; i < NUMBERS;)
            i += rings_write(&a, &i, sizeof i) == sizeof i;
        _exit(0);
    }
    bool good = true;
    uint32_t got = 0;
    for (uint32_t i = 0; good && i < NUMBERS; i++) {
        size_t have = 0;
        while (have < sizeof got && good) {
            long n = rings_read(&b, (uint8_t *)&got + have, sizeof got - have);
            good = n >= 0;
            have += n > 0 ? (size_t)n : 0;
        }
        good = good && got == i;
    }
    CHECK(good);
    int status = 1;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
    rings_free(&a);
    rings_free(&b);
}

int main(void) {
    TEST(test_there_and_back);
    TEST(test_round_the_end);
    TEST(test_who_waits_is_woken_once);
    TEST(test_counts_that_cannot_be);
    TEST(test_other_memory_is_not_taken);
    TEST(test_two_processes);
    return tap_finish();
}
