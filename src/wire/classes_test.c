/* SPDX-License-Identifier: MIT */
/* Tests of classes of hosts as SUBMIT has them. */
#include "wire/classes.h"

#include <errno.h>
#include <string.h>

#include "tap.h"

static void test_list(void) {
    const struct host_class two[] = {
        {.least = 1,
         .most = 4,
         .ppn = 2,
         .name = bytes_from_str("w"),
         .need = bytes_from_str("A=B")},
        {.least = 0, .most = 1, .ppn = 1, .name = bytes_from_str("x")}};
    uint8_t room[128];
    size_t len = 0, at = 0;
    struct host_class h;
    for (size_t i = 0; i < 2; i++)
        len += (size_t)class_store(&two[i], room_of(room + len, sizeof room - len));
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(class_next(bytes_of(room, len), &at, &h), 1);
        CHECK(h.least == two[i].least && h.most == two[i].most && h.ppn == two[i].ppn);
        CHECK(bytes_equal(h.name, two[i].name) && bytes_equal(h.need, two[i].need));
    }
    CHECK_EQ(class_next(bytes_of(room, len), &at, &h), 0);
    CHECK_EQ(class_store(&two[0], room_of(room, 9)), -ENOBUFS);
}

static void test_wrong_ones(void) {
    const struct host_class good = {.least = 1, .most = 4, .ppn = 1, .name = bytes_from_str("w")};
    struct host_class bad[4] = {good, good, good, good};
    uint8_t room[128];
    bad[0].least = 5;
    bad[1].most = bad[1].least = 0;
    bad[2].ppn = 0;
    bad[3].name = (struct bytes){0};
    CHECK(class_store(&good, room_of(room, sizeof room)) > 0);
    for (size_t i = 0; i < 4; i++)
        CHECK(class_store(&bad[i], room_of(room, sizeof room)) < 0);
}

int main(void) {
    TEST(test_list);
    TEST(test_wrong_ones);
    return tap_finish();
}
