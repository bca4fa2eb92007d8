/* SPDX-License-Identifier: MIT */
/* Every kind of word comes back as it was; a word that is cut or changed is none. */
#include "wodi/words.h"

#include "tap.h"

static const struct word full = {.flag = 1,
                                 .status = 2,
                                 .session = 3,
                                 .id = 4,
                                 .cycle = 5,
                                 .step = 6,
                                 .seq = 7,
                                 .ns = 8,
                                 .count = 9,
                                 .bytes = 10,
                                 .token = {11, 12}};

static void test_round(void) {
    for (uint8_t kind = 0; kind < WORD_KINDS; kind++) {
        uint8_t a[600], b[600];
        struct word w = full, back;
        w.kind = kind;
        w.name = bytes_from_str("a name");
        w.body = bytes_from_str("and a body");
        size_t len = word_frame(&w, room_of(a, sizeof a));
        CHECK(len > 0);
        CHECK_EQ(word_next(bytes_of(a, len), &back), len);
        CHECK_EQ(back.kind, kind);
        CHECK_EQ(word_frame(&back, room_of(b, sizeof b)), len);
        CHECK(memcmp(a, b, len) == 0);
        for (size_t cut = 0; cut < len; cut++)
            CHECK(word_next(bytes_of(a, cut), &back) <= 0);
    }
}

static void test_records(void) {
    uint8_t a[600];
    struct word w = {.kind = (uint8_t)WORD_LOG_WORK, .step = 6, .body = bytes_from_str("work")},
                back;
    size_t len = record_frame(&w, room_of(a, sizeof a));
    CHECK_EQ(record_next(bytes_of(a, len), &back), len);
    for (size_t i = 0; i < len; i++)
        for (int bit = 0; bit < 8; bit++) {
            a[i] ^= (uint8_t)(1 << bit);
            CHECK(record_next(bytes_of(a, len), &back) <= 0);
            a[i] ^= (uint8_t)(1 << bit);
        }
}

static void test_limits(void) {
    uint8_t a[8] = {0};
    struct word w;
    CHECK_EQ(word_next(bytes_of(a, 8), &w), -1);
    store_le32(a, WORD_BYTES_MAX + 1);
    CHECK_EQ(word_next(bytes_of(a, 8), &w), -1);
    store_le32(a, 4);
    a[4] = WORD_KINDS;
    CHECK_EQ(word_next(bytes_of(a, 8), &w), -1);
}

int main(void) {
    TEST(test_round);
    TEST(test_records);
    TEST(test_limits);
    return tap_finish();
}
