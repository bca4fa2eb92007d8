/* SPDX-License-Identifier: MIT */
/* Tests of looking at files where the system has them, and of what that feeds. */
#include "os/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/units.h"
#include "os/feed.h"
#include "os/files.h"
#include "os/thread.h"
#include "tap.h"

enum { BYTES = 5 << 20 };

struct file {
    int fd;
    uint8_t *contents;
};

static struct file make(void) {
    char path[] = "/tmp/mapped-XXXXXX";
    struct file f = {.fd = mkstemp(path), .contents = malloc(BYTES)};
    struct random r;
    random_init(&r, 5);
    CHECK(f.fd >= 0 && f.contents != NULL && unlink(path) == 0);
    for (size_t i = 0; i < BYTES; i += 8)
        store_le64(f.contents + i, random_u64(&r));
    CHECK_EQ(files_write(f.fd, bytes_of(f.contents, BYTES), 0), 0);
    return f;
}

static void away(struct file *f) {
    close(f->fd);
    free(f->contents);
}

/* Whatever part is asked for, in whatever order; and what is before it, too. */
static void test_parts(void) {
    struct file f = make();
    struct mapped m = {0};
    const uint64_t from[] = {0, 100, 3 << 20, 63, (3 << 20) + 1, 4096, BYTES - 1};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        size_t len = BYTES - from[i] < 200000 ? (size_t)(BYTES - from[i]) : 200000;
        struct bytes part = mapped_part(&m, f.fd, BYTES, from[i], len);
        uint64_t before = from[i] < MAPPED_BEFORE ? from[i] : MAPPED_BEFORE;
        CHECK_EQ(part.len, len);
        CHECK(memcmp(part.at - before, f.contents + from[i] - before, len + before) == 0);
        CHECK_EQ(((uintptr_t)part.at - from[i]) % (2 * MIB),
                 0); /* as large pages of the file lie */
    }
    CHECK_EQ(mapped_part(&m, f.fd, BYTES, BYTES, 1).len, 0);
    CHECK_EQ(mapped_part(&m, f.fd, BYTES, 1, BYTES).len, 0);
    CHECK_EQ(mapped_part(&m, f.fd, BYTES, 0, BYTES).len, BYTES);
    mapped_end(&m);
    int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(mapped_part(&m, none, BYTES, 0, 10).len, 0); /* it maps nothing */
    close(none);
    away(&f);
}

static void *copy_it(void *context) {
    static uint8_t room[BYTES];
    const struct mapped *m = context;
    return (void *)(intptr_t)mapped_copy(m->at, room_of(room, m->bytes));
}

/* An error, in any thread, and nothing else. */
static void test_cut_short(void) {
    struct file f = make();
    struct mapped m = {0};
    pthread_t thread;
    void *r;
    mapped_part(&m, f.fd, BYTES, 0, BYTES);
    CHECK_EQ((intptr_t)copy_it(&m), 0);
    CHECK_EQ(ftruncate(f.fd, 10000), 0);
    CHECK_EQ((intptr_t)copy_it(&m), -ESTALE);
    CHECK_EQ(thread_start(&thread, copy_it, &m), 0);
    CHECK_EQ(pthread_join(thread, &r), 0);
    CHECK_EQ((intptr_t)r, -ESTALE);
    CHECK_EQ(files_write(f.fd, bytes_of(f.contents, BYTES), 0), 0);
    CHECK_EQ((intptr_t)copy_it(&m), 0);
    mapped_end(&m);
    away(&f);
}

static long feed_all(int fd, uint64_t size, uint64_t to, struct pieces *p,
                     uint8_t out[DIGEST_BYTES_MAX]) {
    struct feed feed = {.fd = fd, .size = size};
    struct sum *sum = sum_new(DIGEST_XXH3);
    long n = 0;
    pieces_init(p, DIGEST_XXH3, 65536);
    for (uint64_t at = 0; at < to && n >= 0; at += n < 0 ? 0 : (uint64_t)n)
        n = feed_some(&feed, at, to, p, sum);
    if (n >= 0)
        n = pieces_end(p);
    p->had = n < 0 ? 0 : p->had;
    sum_end(sum, out);
    feed_end(&feed);
    return n;
}

/* Mapped or read: the same pieces, the same sum. */
static void test_feed(void) {
    struct file f = make();
    struct pieces mapped, read;
    uint8_t sums[2][DIGEST_BYTES_MAX];
    CHECK_EQ(feed_all(f.fd, BYTES, BYTES, &mapped, sums[0]), 0);
    CHECK_EQ(feed_all(f.fd, 0, BYTES, &read, sums[1]), 0);
    CHECK(mapped.count > 50);
    CHECK(bytes_equal(pieces_rows(&mapped, 0), pieces_rows(&read, 0)));
    CHECK(memcmp(sums[0], sums[1], sizeof sums[0]) == 0);
    pieces_fini(&mapped);
    pieces_fini(&read);
    away(&f);
}

/* By much, or by less than a page, of which the system shows zeros. */
static void test_feed_of_a_shorter_file(void) {
    const off_t sizes[] = {0, 200000, BYTES - 5000, BYTES - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint64_t size = 0; size <= BYTES; size += BYTES) {
            struct file f = make();
            struct pieces p;
            uint8_t sum[DIGEST_BYTES_MAX];
            CHECK_EQ(ftruncate(f.fd, sizes[i]), 0);
            CHECK_EQ(feed_all(f.fd, size, BYTES, &p, sum), -ESTALE);
            pieces_fini(&p);
            away(&f);
        }
}

int main(void) {
    TEST(test_parts);
    TEST(test_cut_short);
    TEST(test_feed);
    TEST(test_feed_of_a_shorter_file);
    return tap_finish();
}
