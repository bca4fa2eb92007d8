/* SPDX-License-Identifier: MIT */
/* A file gives the same bytes by every send type, and what was cut off while it was mapped is an error, not the end. */
#include "os/original.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/random.h"
#include "tap.h"

enum { SIZE = 1000000, PART = 70001 };

static uint8_t contents[SIZE];
static char path[] = "/tmp/storm-original.XXXXXX";

static void write_all(void) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK_EQ(write(fd, contents, SIZE), SIZE);
    close(fd);
}

static struct original *begin(enum send_type type) {
    struct original *o = NULL;
    CHECK_EQ(original_open(open(path, O_RDONLY | O_CLOEXEC), SIZE, type, &o), 0);
    return o;
}

static int read_part(struct original *o, uint64_t from, size_t len) {
    static uint8_t got[SIZE];
    memset(got, 0, len);
    int r = original_read(o, from, room_of(got, len));
    return r < 0 ? r : memcmp(got, contents + from, len) == 0 ? 0 : 1;
}

static void test_names(void) {
    enum send_type t = SEND_TYPES;
    CHECK(send_type_parse("sendfile", &t) && t == SEND_FILE);
    CHECK(send_type_parse("mmap-all", &t) && t == SEND_MMAP_ALL);
    CHECK(send_type_parse("one-map", &t) && t == SEND_ONE_MAP);
    CHECK(send_type_parse("multi-map", &t) && t == SEND_MULTI_MAP);
    CHECK(send_type_parse("read", &t) && t == SEND_READ);
    CHECK(!send_type_parse("", &t) && !send_type_parse("usual", &t) && t == SEND_READ);
}

static void test_same_bytes(void) {
    write_all();
    for (enum send_type t = SEND_USUAL; t < SEND_TYPES; t++) {
        struct original *o = begin(t);
        for (uint64_t from = 0; from + PART <= SIZE; from += PART)
            CHECK_EQ(read_part(o, from, PART), 0);
        CHECK_EQ(read_part(o, SIZE - 1, 1), 0);
        CHECK_EQ(read_part(o, 5, 0), 0);
        struct bytes part = original_part(o, 4097, PART);
        int fd = original_lend_fd(o);
        CHECK_EQ(fd >= 0, t == SEND_FILE || t == SEND_USUAL);
        if (fd >= 0)
            close(fd);
        if (t == SEND_MMAP_ALL || t == SEND_FILE)
            CHECK(part.len == PART && memcmp(part.at, contents + 4097, PART) == 0);
        else if (t != SEND_USUAL)
            CHECK_EQ(part.len, 0);
        original_drop(o);
    }
}

/* What is held stays, whoever has let go of it. */
static void test_held(void) {
    struct original *o = begin(SEND_MMAP_ALL);
    struct bytes part = original_part(o, 0, PART);
    original_drop(original_hold(o));
    CHECK(memcmp(part.at, contents, PART) == 0);
    original_drop(o);
    original_drop(NULL);
}

static void test_shrinks(void) {
    for (enum send_type t = SEND_READ; t < SEND_TYPES; t++) {
        write_all();
        struct original *o = begin(t);
        CHECK_EQ(read_part(o, 600000, PART), 0); /* these pages are there, and taken away */
        CHECK_EQ(truncate(path, 300000), 0);
        CHECK_EQ(read_part(o, 600000, PART), -ESTALE);
        CHECK_EQ(read_part(o, 600000, PART), -ESTALE); /* not only once */
        CHECK_EQ(read_part(o, 100000, PART), 0);
        original_drop(o);
    }
}

/* The kernel takes mapped bytes for a socket itself. */
static void test_shrinks_when_sent(void) {
    int pair[2];
    write_all();
    struct original *o = begin(SEND_MMAP_ALL);
    struct bytes part = original_part(o, 600000, PART);
    CHECK_EQ(truncate(path, 300000), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    CHECK(send(pair[0], part.at, part.len, MSG_NOSIGNAL) < 0 && errno == EFAULT);
    close(pair[0]);
    close(pair[1]);
    original_drop(o);
}

static void test_empty(void) {
    CHECK_EQ(truncate(path, 0), 0);
    for (enum send_type t = SEND_USUAL; t < SEND_TYPES; t++) {
        struct original *o = NULL;
        CHECK_EQ(original_open(open(path, O_RDONLY | O_CLOEXEC), 0, t, &o), 0);
        CHECK_EQ(original_read(o, 0, room_of(NULL, 0)), 0);
        CHECK_EQ(original_part(o, 0, 0).len, 0);
        original_drop(o);
    }
}

static uint64_t file_pages(void) {
    unsigned long size = 0, resident = 0, of_files = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    CHECK(f != NULL && fscanf(f, "%lu %lu %lu", &size, &resident, &of_files) == 3);
    if (f != NULL)
        fclose(f);
    return of_files;
}

/* However large the file, little of it is in our memory: forwards, and again from the beginning. */
static void test_memory(void) {
    enum { LARGE = 100 << 20, STEP = 128 << 10, PAGES_MAX = (24 << 20) / 4096 };
    uint8_t *room = malloc(STEP);
    CHECK_EQ(truncate(path, LARGE), 0);
    for (enum send_type t = SEND_READ; t < SEND_TYPES; t++) {
        struct original *o = NULL;
        uint64_t before = file_pages(), most = 0, sum = 0;
        CHECK_EQ(original_open(open(path, O_RDONLY | O_CLOEXEC), LARGE, t, &o), 0);
        for (uint64_t from = 0; from < 2 * (uint64_t)LARGE; from += STEP) {
            struct bytes part = original_part(o, from % LARGE, STEP);
            if (part.len == 0)
                CHECK_EQ(original_read(o, from % LARGE, room_of(room, STEP)), 0);
            for (size_t i = 0; i < part.len; i += 4096)
                sum += part.at[i];
            uint64_t now = file_pages();
            most = now > most ? now : most;
        }
        CHECK_EQ(sum, 0);
        CHECK(most < before + PAGES_MAX);
        original_drop(o);
    }
    free(room);
}

int main(void) {
    struct random random;
    random_init(&random, 1);
    random_bytes(&random, contents, SIZE);
    int fd = mkstemp(path);
    close(fd);
    TEST(test_names);
    TEST(test_same_bytes);
    TEST(test_held);
    TEST(test_shrinks);
    TEST(test_shrinks_when_sent);
    TEST(test_empty);
    TEST(test_memory);
    unlink(path);
    return tap_finish();
}
