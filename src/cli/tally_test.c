/* SPDX-License-Identifier: MIT */
/* Tests of tallies: what is written is read again, and stages do not go back. */
#include "cli/tally.h"

#include <errno.h>
#include <string.h>

#include "tap.h"

static const struct tally sample = {
    .nodes = 64,
    .pieces = 98,
    .bytes = 12000000,
    .read = 11999999,
    .given = 12000123,
    .shape = "k-ary:4",
    .began_ns = 1000,
    .at_ns = {1500, 1001000, 2001000, 0, 2001000, 91001001, 99000000}};

static void test_again(void) {
    char text[1024] = "";
    struct tally t;
    FILE *out = fmemopen(text, sizeof text, "w");
    CHECK(out != NULL);
    tally_json(&sample, out);
    fclose(out);
    CHECK_EQ(tally_read(&t, text), 0);
    CHECK_EQ(t.nodes, 64);
    CHECK_EQ(t.pieces, 98);
    CHECK_EQ(t.bytes, 12000000);
    CHECK_EQ(t.read, 11999999);
    CHECK_EQ(t.given, 12000123);
    CHECK_STR(t.shape, "k-ary:4");
    for (int i = 0; i < TALLY_STAGES; i++)
        CHECK_EQ(tally_since(&t, i), tally_since(&sample, i));
}

static void test_since(void) {
    CHECK_EQ(tally_since(&sample, TALLY_LOOKED), 500);
    CHECK_EQ(tally_since(&sample, TALLY_ACCEPTED), 2000000);
    CHECK_EQ(tally_since(&sample, TALLY_MET), 2000000);
    CHECK_EQ(tally_since(&sample, TALLY_DONE), 98999000);
    struct tally nothing = {.began_ns = 5};
    CHECK_EQ(tally_since(&nothing, TALLY_DONE), 0);
}

static void test_wrong(void) {
    struct tally t;
    CHECK_EQ(tally_read(&t, ""), -EBADMSG);
    CHECK_EQ(tally_read(&t, "{\"nodes\":4,\"pieces\":2,\"bytes\":x}"), -EBADMSG);
    CHECK_EQ(tally_read(&t, "{\"nodes\":4,\"pieces\":2,\"bytes\":1,\"read\":1,\"given\":1}"),
             -EBADMSG);
}

int main(void) {
    TEST(test_again);
    TEST(test_since);
    TEST(test_wrong);
    return tap_finish();
}
