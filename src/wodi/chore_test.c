/* SPDX-License-Identifier: MIT */
/* What storm work and its workers say, and which lines need a shell. */
#include "wodi/chore.h"

#include <string.h>

#include "tap.h"

static void test_setting(void) {
    uint8_t room[256];
    struct chore_setting s = {.limit_ns = 5,
                              .folder = bytes_of("/tmp", 5),
                              .environment = bytes_of("A=1\0B=2", 8)},
                         back;
    size_t len = chore_setting_write(&s, room_of(room, sizeof room));
    CHECK(len > 0);
    CHECK(chore_setting_read(&back, bytes_of(room, len)));
    CHECK_EQ(back.limit_ns, 5);
    CHECK(bytes_equal(back.folder, s.folder) && bytes_equal(back.environment, s.environment));
    CHECK(!chore_setting_read(&back, bytes_of(room, len - 1))); /* the last string has no end */
    CHECK(!chore_setting_read(&back, bytes_of(room, 9)));
    s.folder = bytes_of("/a\0b", 5);
    len = chore_setting_write(&s, room_of(room, sizeof room));
    CHECK(!chore_setting_read(&back, bytes_of(room, len)));
    CHECK_EQ(chore_setting_write(&s, room_of(room, 10)), 0);
}

static void test_result(void) {
    uint8_t room[256];
    struct chore_result r = {.end = CHORE_SIGNALLED,
                             .value = 9,
                             .began_ns = 7,
                             .ns = 8,
                             .cut = 3,
                             .node = bytes_from_str("n1"),
                             .out = bytes_from_str("out"),
                             .err = bytes_from_str("err")},
                        back;
    size_t len = chore_result_write(&r, room_of(room, sizeof room));
    CHECK(chore_result_read(&back, bytes_of(room, len)));
    CHECK(back.end == r.end && back.value == 9 && back.began_ns == 7 && back.ns == 8 &&
          back.cut == 3);
    CHECK(bytes_equal(back.node, r.node) && bytes_equal(back.out, r.out) &&
          bytes_equal(back.err, r.err));
    CHECK_EQ(chore_status(&back), 137);
    back.end = CHORE_LATE;
    CHECK_EQ(chore_status(&back), 124);
    back.end = CHORE_EXITED;
    CHECK_EQ(chore_status(&back), 9);
    room[0] = CHORE_ENDS;
    CHECK(!chore_result_read(&back, bytes_of(room, len)));
}

/* The words, joined by bars; "": a shell is needed. */
static const char *split(const char *line) {
    static char text[128], copy[128];
    char *words[9];
    snprintf(copy, sizeof copy, "%s", line);
    int count = chore_words(copy, words, 8);
    text[0] = 0;
    if (count == 0 && strcmp(copy, line) != 0)
        return "touched";
    for (int i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "|" : "", words[i]);
    return text;
}

static void test_words(void) {
    CHECK_STR(split("true"), "true");
    CHECK_STR(split("  ls -l\t/tmp "), "ls|-l|/tmp");
    CHECK_STR(split("grep 'a b' \"c d\""), "grep|a b|c d");
    CHECK_STR(split("a b=c"), "a|b=c");
    CHECK_STR(split("b=c a"), "");
    CHECK_STR(split("echo a"), "");
    CHECK_STR(split("cd /tmp"), "");
    CHECK_STR(split("ls *"), "");
    CHECK_STR(split("a; b"), "");
    CHECK_STR(split("a $b"), "");
    CHECK_STR(split("a 'b"), "");
    CHECK_STR(split("ls # all"), "");
    CHECK_STR(split(""), "");
    CHECK_STR(split("   "), "");
    CHECK_STR(split("''"), "");
    CHECK_STR(split("a 1 2 3 4 5 6 7"), "a|1|2|3|4|5|6|7");
    CHECK_STR(split("a 1 2 3 4 5 6 7 8"), "");
}

int main(void) {
    TEST(test_setting);
    TEST(test_result);
    TEST(test_words);
    return tap_finish();
}
