/* SPDX-License-Identifier: MIT */
/* Tests of a queue of bytes: order, growth, descriptors that take little or fail. */
#include "os/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

static size_t held(const struct spool *s) {
    return spool_bytes(s).len;
}

/* The byte at each place of a long stream. */
static uint8_t nth(size_t i) {
    return (uint8_t)(i * 7 + i / 251);
}

static void add(struct spool *s, size_t *at, size_t len) {
    uint8_t *piece = malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        piece[i] = nth(*at + i);
    CHECK_EQ(spool_add(s, bytes_of(piece, len)), 0);
    *at += len;
    free(piece);
}

static bool is_stream(struct bytes b, size_t from) {
    for (size_t i = 0; i < b.len; i++)
        if (b.at[i] != nth(from + i))
            return false;
    return true;
}

static void test_order(void) {
    struct spool s = {.at = NULL};
    size_t in = 0, out = 0;
    CHECK_EQ(held(&s), 0);
    /* More comes than goes: it moves together, and grows. */
    for (size_t i = 1; i < 400; i++) {
        add(&s, &in, 5 * i);
        spool_drop(&s, 4 * i);
        out += 4 * i;
        CHECK_EQ(held(&s), in - out);
        if (!CHECK(is_stream(spool_bytes(&s), out)))
            break;
    }
    spool_drop(&s, held(&s));
    CHECK_EQ(held(&s), 0);
    spool_fini(&s);
    spool_fini(&s);
}

static void test_nothing(void) {
    struct spool s = {.at = NULL};
    CHECK_EQ(spool_add(&s, bytes_of(NULL, 0)), 0);
    CHECK_EQ(held(&s), 0);
    CHECK_EQ(spool_write(&s, -1), 0);
    spool_drop(&s, 0);
    spool_fini(&s);
}

/* What is always taken off again needs no more room than it ever held. */
static void test_room(void) {
    struct spool s = {.at = NULL};
    size_t in = 0;
    add(&s, &in, 1);
    for (int i = 0; i < 5000; i++) {
        add(&s, &in, 1000);
        spool_drop(&s, 1000);
    }
    CHECK(is_stream(spool_bytes(&s), in - 1));
    CHECK(s.cap <= 8192);
    spool_fini(&s);
}

static void test_through_a_pipe(void) {
    enum { LEN = 1 << 20 };
    struct spool from = {.at = NULL}, to = {.at = NULL};
    int fd[2];
    size_t in = 0, most = 0;
    CHECK_EQ(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
    add(&from, &in, LEN);
    CHECK_EQ(spool_read(&to, fd[0], 100), -EAGAIN);
    while (held(&from) > 0) {
        size_t before = held(&to);
        CHECK_EQ(spool_write(&from, fd[1]), 0); /* it takes less than all of it */
        long n = spool_read(&to, fd[0], 50000);
        if (!CHECK(n > 0 && n <= 50000) || !CHECK_EQ(held(&to) - before, n))
            break;
        most = (size_t)n > most ? (size_t)n : most;
    }
    CHECK_EQ(most, 50000);
    close(fd[1]);
    while (spool_read(&to, fd[0], 4096) > 0)
        continue;
    CHECK_EQ(spool_read(&to, fd[0], 4096), 0);
    CHECK_EQ(held(&to), LEN);
    CHECK(is_stream(spool_bytes(&to), 0));
    close(fd[0]);
    spool_fini(&from);
    spool_fini(&to);
}

static void test_nobody_reads(void) {
    struct spool s = {.at = NULL};
    int fd[2];
    signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
    close(fd[0]);
    CHECK_EQ(spool_add(&s, bytes_from_str("words")), 0);
    CHECK_EQ(spool_write(&s, fd[1]), -EPIPE);
    CHECK_EQ(held(&s), 5);
    close(fd[1]);
    CHECK_EQ(spool_write(&s, fd[1]), -EBADF);
    CHECK_EQ(spool_read(&s, fd[1], 10), -EBADF);
    CHECK_EQ(held(&s), 5);
    spool_fini(&s);
}

int main(void) {
    TEST(test_order);
    TEST(test_nothing);
    TEST(test_room);
    TEST(test_through_a_pipe);
    TEST(test_nobody_reads);
    return tap_finish();
}
