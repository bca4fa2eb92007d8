/* SPDX-License-Identifier: MIT */
/* What tells that the owner of a machine works there, read. */
#include "wire/owner.h"

#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "tap.h"

static struct owner_watch w;
static struct mistake m;

static int reads(const char *text) {
    return owner_read(bytes_from_str(text), &w, &m);
}

static void test_signs(void) {
    CHECK_EQ(reads("keyboard"), 0);
    CHECK(w.count == 1 && w.signs[0].kind == OWNER_KEYBOARD);
    CHECK_EQ(w.signs[0].quiet_ns, 60 * NS_PER_S);
    CHECK_EQ(reads("load"), 0);
    CHECK(w.signs[0].kind == OWNER_LOAD && w.signs[0].load_x100 == 50);
    CHECK_EQ(reads("load>1.2"), 0);
    CHECK_EQ(w.signs[0].load_x100, 120);
    CHECK_EQ(reads("load>12:2m"), 0);
    CHECK(w.signs[0].load_x100 == 1200 && w.signs[0].quiet_ns == 120 * NS_PER_S);
    CHECK_EQ(reads("keyboard:30s+load+/run/desk:5"), 0);
    CHECK(w.count == 3 && w.signs[0].quiet_ns == 30 * NS_PER_S);
    CHECK(w.signs[2].kind == OWNER_PATH && w.signs[2].quiet_ns == 5 * NS_PER_S);
    CHECK(bytes_equal(w.signs[2].path, bytes_from_str("/run/desk")));
}

static void check_wrong(const char *text, uint32_t column, uint32_t length, const char *words) {
    CHECK_EQ(reads(text), -EINVAL);
    CHECK_EQ(m.column, column);
    CHECK_EQ(m.length, length);
    CHECK(strstr(m.words, words) != NULL);
}

static void test_mistakes(void) {
    char text[2 * OWNER_TEXT_MAX] = "";
    check_wrong("", 0, 1, "does not tell of an owner");
    check_wrong("keybord", 0, 7, "did you mean keyboard?");
    check_wrong("load+", 5, 1, "does not tell of an owner");
    check_wrong("keyboard+desk", 9, 4, "does not tell of an owner");
    check_wrong("keyboard:soon", 9, 4, "no time");
    check_wrong("keyboard:0", 9, 1, "no time");
    check_wrong("load>", 0, 5, "processors");
    check_wrong("load>0", 0, 6, "processors");
    check_wrong("load>0.001", 0, 10, "processors");
    check_wrong("load>1.2.3", 0, 10, "processors");
    check_wrong("load+/a\tb", 5, 4, "plain characters");
    for (size_t i = 0; i < 9; i++)
        memcpy(text + 5 * i, i < 8 ? "load+" : "load", 6 - i / 8);
    check_wrong(text, 40, 4, "too many");
    memset(text, '/', OWNER_TEXT_MAX);
    check_wrong(text, 0, OWNER_TEXT_MAX, "too long");
}

static void test_marks(void) {
    CHECK_EQ(owner_mark((struct bytes){0}), 0);
    CHECK(owner_mark(bytes_from_str("load")) != 0);
    CHECK(owner_mark(bytes_from_str("load")) != owner_mark(bytes_from_str("keyboard")));
}

int main(void) {
    TEST(test_signs);
    TEST(test_mistakes);
    TEST(test_marks);
    return tap_finish();
}
