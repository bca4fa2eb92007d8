/* SPDX-License-Identifier: MIT */
/* What a writer is given is in the files, and comes back in order with what became of it. */
#include "os/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/list.h"
#include "os/files.h"
#include "tap.h"

enum { PIECE = 10000, MANY = 5 * WRITER_MAX };

static struct loop loop;
static struct writer w;
static uint8_t contents[PIECE * MANY];
static uint64_t back; /* how many have come */
static int status;    /* the last that was not 0 */

static void take_all(void) {
    for (struct writing done; writer_take(&w, &done); back++) {
        CHECK_EQ(done.tag, back);
        status = done.status != 0 ? done.status : status;
    }
}

static void ready(struct source *s, uint32_t events) {
    (void)events;
    CHECK(CONTAINER_OF(s, struct writer, source) == &w);
    take_all();
}

static void begin(void) {
    CHECK_EQ(loop_init(&loop), 0);
    writer_init(&w, &loop, ready);
    back = 0;
    status = 0;
    for (size_t i = 0; i < sizeof contents; i++)
        contents[i] = (uint8_t)(i * 31 + i / PIECE);
}

static bool give(int fd, uint64_t number) {
    struct writing writing = {.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0),
                              .offset = number * PIECE,
                              .bytes = bytes_of(contents + number * PIECE, PIECE),
                              .tag = number};
    bool taken = writer_give(&w, &writing);
    if (!taken)
        close(writing.fd);
    return taken;
}

/* More than it takes at once: then it says so, until some were taken back. */
static void test_all_is_written(void) {
    begin();
    int fd = memfd_create("writer", MFD_CLOEXEC);
    uint64_t refused = 0;
    for (uint64_t i = 0; i < MANY;) {
        if (give(fd, i)) {
            i++;
            continue;
        }
        refused++;
        CHECK(i - back == WRITER_MAX);
        for (uint64_t before = back; back == before;)
            loop_turn(&loop, -1);
    }
    while (back < MANY)
        loop_turn(&loop, -1);
    CHECK(refused > 0);
    CHECK_EQ(status, 0);
    uint8_t *got = malloc(sizeof contents);
    CHECK(got != NULL && files_read_all(fd, room_of(got, sizeof contents), 0) == 0 &&
          memcmp(got, contents, sizeof contents) == 0);
    free(got);
    writer_fini(&w);
    loop_fini(&loop);
    close(fd);
}

static void test_a_file_that_cannot_be_written(void) {
    begin();
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && give(fd, 0));
    writer_wait(&w);
    take_all();
    CHECK_EQ(back, 1);
    CHECK_EQ(status, -ENOSPC);
    writer_fini(&w);
    loop_fini(&loop);
    close(fd);
}

/* What was given is written even if nobody asks any more; and one that was never used ends, too. */
static void test_it_ends(void) {
    begin();
    writer_wait(&w);
    take_all();
    writer_fini(&w);
    int fd = memfd_create("writer", MFD_CLOEXEC);
    for (uint64_t i = 0; i < 10; i++)
        CHECK(give(fd, i));
    writer_fini(&w);
    CHECK_EQ(lseek(fd, 0, SEEK_END), 10 * PIECE);
    loop_fini(&loop);
    close(fd);
}

int main(void) {
    TEST(test_all_is_written);
    TEST(test_a_file_that_cannot_be_written);
    TEST(test_it_ends);
    return tap_finish();
}
