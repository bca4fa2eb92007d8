/* SPDX-License-Identifier: MIT */
/* Tests of --class. Complaints go to stderr, which tests may fill. */
#include "cli/classes.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

static bool says(struct bytes b, const char *text) {
    return bytes_equal(b, bytes_from_str(text));
}

static void test_forms(void) {
    struct host_class h;
    CHECK_EQ(class_read("w:MEM>=2GB:1:8", &h), 0);
    CHECK(says(h.name, "w") && says(h.need, "MEM>=2GB"));
    CHECK(h.least == 1 && h.most == 8 && h.ppn == 1);
    CHECK_EQ(class_read("big-ones::0:3*4", &h), 0);
    CHECK(says(h.name, "big-ones") && h.need.len == 0);
    CHECK(h.least == 0 && h.most == 3 && h.ppn == 4);
    CHECK_EQ(class_read("a:X == \"p:q\" && Y*2 > 1:2:2", &h), 0);
    CHECK(says(h.need, "X == \"p:q\" && Y*2 > 1") && h.least == 2 && h.ppn == 1);
}

static void test_mistakes(void) {
    static const char *const wrong[] = {"",
                                        "w",
                                        "w:1",
                                        "w:1:2",
                                        ":x:1:2",
                                        "w::2:1",
                                        "w::0:0",
                                        "w::1:2*0",
                                        "w x::1:2",
                                        "w::a:2",
                                        "w::1:",
                                        "w:::",
                                        "w::-1:2",
                                        "w::1:2*",
                                        "w::1:99999999999",
                                        "this-name-is-longer-than-thirty-two::1:2"};
    struct host_class h;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(class_read(wrong[i], &h) != 0);
}

static void test_all_are_stored(void) {
    struct text_list list = {.count = 2, .at = {"a:CPU=FAST:1:2", "b::0:9*2"}};
    struct host_class h;
    uint8_t *out;
    size_t len, at = 0;
    CHECK_EQ(classes_read(&list, &out, &len), 0);
    CHECK(class_next(bytes_of(out, len), &at, &h) == 1 && says(h.need, "CPU=FAST"));
    CHECK(class_next(bytes_of(out, len), &at, &h) == 1 && says(h.name, "b") && h.ppn == 2);
    CHECK_EQ(class_next(bytes_of(out, len), &at, &h), 0);
    at = 0;
    CHECK(class_next(bytes_of(out, len - 1), &at, &h) == 1 &&
          class_next(bytes_of(out, len - 1), &at, &h) < 0);
    free(out);
    list.at[1] = "a::1:1";
    CHECK(classes_read(&list, &out, &len) != 0);
    free(out);
}

int main(void) {
    TEST(test_forms);
    TEST(test_mistakes);
    TEST(test_all_are_stored);
    return tap_finish();
}
