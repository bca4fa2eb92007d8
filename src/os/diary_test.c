/* SPDX-License-Identifier: MIT */
/* What was noted is read again; nothing is noted where nobody has laid a file. */
#include "os/diary.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

static char path[] = "/tmp/storm-diary.XXXXXX";

static void test_round_trip(void) {
    struct diary d;
    diary_open(&d, path);
    CHECK(diary_now(&d) > 0);
    for (uint64_t i = 0; i < DIARY_DEEDS; i++)
        diary_note(&d, (enum diary_deed)i, i, UINT64_MAX - i, i * i);
    diary_close(&d);
    FILE *in = fopen(path, "re");
    struct diary_note n;
    for (uint64_t i = 0; i < DIARY_DEEDS; i++) {
        CHECK(diary_read(in, &n));
        CHECK(n.deed == i && n.from_ns == i && n.to_ns == UINT64_MAX - i && n.what == i * i);
    }
    CHECK(!diary_read(in, &n));
    fclose(in);
}

static void test_none(void) {
    struct diary d;
    diary_open(&d, "/tmp/storm-diary-is-not-here");
    CHECK_EQ(diary_now(&d), 0);
    diary_note(&d, DIARY_OPEN, 1, 2, 3);
    diary_flush(&d);
    diary_close(&d);
    CHECK(access("/tmp/storm-diary-is-not-here", F_OK) != 0);
}

static void test_nonsense(void) {
    static const char *const texts[] = {"",           "store",       "store 1 2",
                                        "sing 1 2 3", "store x 2 3", "averyveryverylongname 1 2 3"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *f = fopen(path, "w+e");
        struct diary_note n;
        fputs(texts[i], f);
        rewind(f);
        CHECK(!diary_read(f, &n));
        fclose(f);
    }
}

int main(void) {
    close(mkstemp(path));
    TEST(test_round_trip);
    TEST(test_none);
    TEST(test_nonsense);
    unlink(path);
    return tap_finish();
}
