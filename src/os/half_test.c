/* SPDX-License-Identifier: MIT */
/* Two threads find the pieces and the sum that one would. */
#include "os/half.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/random.h"
#include "os/files.h"
#include "tap.h"

enum { SIZE = (9 << 20) + 12345, USUAL = 64 << 10 };

static uint32_t usual = USUAL;

static int file_of(const uint8_t *bytes) {
    int fd = memfd_create("half", MFD_CLOEXEC);
    ASSERT(fd >= 0 && files_write(fd, bytes_of(bytes, SIZE), 0) == 0);
    return fd;
}

static void add(struct pieces *p, struct sum *sum, struct bytes bytes) {
    sum_add(sum, bytes);
    while (bytes.len > 0) {
        struct room room = pieces_room(p);
        size_t n = room.len < bytes.len ? room.len : bytes.len;
        memcpy(room.at, bytes.at, n);
        CHECK_EQ(pieces_add(p, n), 0);
        bytes = bytes_of(bytes.at + n, bytes.len - n);
    }
}

/* All of them from `from` on, the way in which survey_new does it: with a second half or without. */
static void look(const uint8_t *bytes, uint64_t from, uint64_t middle, struct pieces *p,
                 uint8_t sum_out[32]) {
    struct half half;
    struct sum *sum = sum_new(DIGEST_XXH3);
    int fd = file_of(bytes);
    pieces_init(p, DIGEST_XXH3, usual);
    sum_add(sum, bytes_of(bytes, from)); /* a hole, say: in no piece of these */
    if (middle != 0)
        CHECK_EQ(half_start(&half, fd, middle, SIZE, p), 0);
    add(p, sum, bytes_of(bytes + from, (middle != 0 ? middle : SIZE) - from));
    if (middle != 0) {
        while (!half_await(&half))
            ;
        CHECK_EQ(half_done(&half), SIZE - middle);
        CHECK_EQ(half_end(&half, 0, p, sum), 0);
    }
    CHECK_EQ(pieces_end(p), 0);
    sum_end(sum, sum_out);
    close(fd);
}

static void check_same(const uint8_t *bytes, uint64_t from) {
    struct pieces one, two;
    uint8_t sums[2][32];
    uint64_t middle = half_middle(from, SIZE, DIGEST_XXH3);
    CHECK(middle > from && middle < SIZE && middle % SUM_BLOCK_BYTES == 0);
    look(bytes, from, 0, &one, sums[0]);
    look(bytes, from, middle, &two, sums[1]);
    CHECK_EQ(one.count, two.count);
    CHECK_EQ(one.longest, two.longest);
    CHECK(bytes_equal(pieces_rows(&one, 0), pieces_rows(&two, 0)));
    CHECK(memcmp(sums[0], sums[1], 32) == 0);
    pieces_fini(&one);
    pieces_fini(&two);
}

static void check_random(uint32_t length, int rounds) {
    uint8_t *bytes = malloc(SIZE);
    ASSERT(bytes != NULL);
    struct random r;
    random_init(&r, 7);
    usual = length;
    for (int round = 0; round < rounds; round++) {
        random_bytes(&r, bytes, SIZE);
        check_same(bytes, (uint64_t)round * 100000);
    }
    free(bytes);
}

/* Of pieces that many, one, or less than one of which are read at once. */
static void test_the_same_pieces(void) {
    check_random(4 << 10, 2);
    check_random(USUAL, 8);
    check_random(PIECES_USUAL, 4);
}

/* Where contents say nothing both never cut at the same place: one goes on to the end. Or they do at once, where a piece ends in the
 * middle. */
static void test_all_the_same(void) {
    uint8_t *bytes = calloc(1, SIZE);
    ASSERT(bytes != NULL);
    for (usual = 4 << 10; usual <= PIECES_USUAL; usual *= 8) {
        uint64_t middle = half_middle(0, SIZE, DIGEST_XXH3), most = usual + usual / 4 * 3;
        check_same(bytes, 0);
        check_same(bytes, 4097);
        check_same(bytes, middle % most);
    }
    usual = USUAL;
    free(bytes);
}

static void test_when_it_is_worth_it(void) {
    CHECK_EQ(half_middle(0, 100 << 20, DIGEST_SHA256), 0);
    CHECK_EQ(half_middle(0, 1 << 20, DIGEST_XXH3), 0);
    CHECK_EQ(half_middle(0, 100 << 20, DIGEST_XXH3), 50 << 20);
}

/* It becomes shorter, or the first half comes to no good: all is given back. */
static void test_it_fails(void) {
    uint8_t *bytes = calloc(1, SIZE);
    ASSERT(bytes != NULL);
    int fd = file_of(bytes);
    struct half half;
    struct pieces p;
    struct sum *sum = sum_new(DIGEST_XXH3);
    pieces_init(&p, DIGEST_XXH3, USUAL);
    CHECK_EQ(half_start(&half, fd, 4 << 20, SIZE, &p), 0);
    CHECK_EQ(half_end(&half, -EIO, &p, sum), -EIO);
    CHECK_EQ(ftruncate(fd, SIZE - 1), 0);
    CHECK_EQ(half_start(&half, fd, 4 << 20, SIZE, &p), 0);
    CHECK_EQ(half_end(&half, 0, &p, sum), -ESTALE);
    CHECK_EQ(p.count, 0);
    sum_end(sum, NULL);
    pieces_fini(&p);
    close(fd);
    free(bytes);
}

int main(void) {
    TEST(test_the_same_pieces);
    TEST(test_all_the_same);
    TEST(test_when_it_is_worth_it);
    TEST(test_it_fails);
    return tap_finish();
}
