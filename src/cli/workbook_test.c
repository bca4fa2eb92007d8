/* SPDX-License-Identifier: MIT */
/* What became of lines, over several lives, and when the last was cut off. */
#include "cli/workbook.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

static char path[] = "/tmp/book-XXXXXX";

static struct workbook *open_book(bool again) {
    static struct workbook b;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(workbook_open(&b, folder, again), 0);
    close(folder);
    return &b;
}

static void close_book(struct workbook *b) {
    CHECK_EQ(workbook_flush(b), 0);
    workbook_close(b);
}

static const char *held(struct workbook *b, uint64_t number) {
    static char text[64];
    size_t len;
    uint8_t *result = workbook_held(b, number, &len);
    snprintf(text, sizeof text, "%.*s", result != NULL ? (int)len : 0, (char *)result);
    free(result);
    return text;
}

static void test_lives(void) {
    struct workbook *b = open_book(false);
    CHECK_EQ(workbook_sent(b, 1, "a"), 0);
    CHECK_EQ(workbook_sent(b, 2, "b"), 0);
    CHECK_EQ(workbook_sent(b, 3, "c"), 0);
    CHECK_EQ(workbook_hold(b, 2, true, bytes_from_str("result of b")), 0);
    CHECK(!workbook_is_written(b, 2));
    CHECK_EQ(workbook_flush(b), 0);
    CHECK(workbook_is_written(b, 2));
    CHECK_STR(held(b, 2), "result of b");
    CHECK_EQ(workbook_shown(b, 1, false), 0);
    close_book(b);
    b = open_book(false);
    CHECK_EQ(workbook_line(b, 1)->state, WORKBOOK_SHOWN);
    CHECK_EQ(workbook_line(b, 2)->state, WORKBOOK_HELD);
    CHECK(workbook_line(b, 2)->failed);
    CHECK_EQ(workbook_line(b, 3)->state, WORKBOOK_SENT);
    CHECK_EQ(workbook_line(b, 4)->state, WORKBOOK_UNKNOWN);
    CHECK_STR(held(b, 2), "result of b");
    CHECK_EQ(workbook_sent(b, 3, "c"), 0);
    CHECK_EQ(workbook_sent(b, 1, "A"), -ESTALE);
    CHECK_EQ(workbook_sent(b, 3, "C"), -ESTALE);
    CHECK_EQ(workbook_shown(b, 2, true), 0);
    close_book(b);
    b = open_book(true);
    CHECK_EQ(workbook_line(b, 1)->state, WORKBOOK_SHOWN);
    CHECK_EQ(workbook_line(b, 2)->state, WORKBOOK_SENT); /* it has failed, and is run again */
    close_book(b);
}

/* Whatever is cut off, what was written before is there. */
static void test_torn(void) {
    char file[64];
    snprintf(file, sizeof file, "%s/book", path);
    struct workbook *b = open_book(false);
    CHECK_EQ(workbook_sent(b, 7, "g"), 0);
    CHECK_EQ(workbook_flush(b), 0);
    uint64_t before = b->end;
    CHECK_EQ(workbook_hold(b, 7, false, bytes_from_str("result of g")), 0);
    close_book(b);
    for (uint64_t len = before + 34; len >= before; len--) {
        CHECK_EQ(truncate(file, (off_t)len), 0);
        b = open_book(false);
        CHECK_EQ(b->end, before);
        CHECK_EQ(workbook_line(b, 7)->state, WORKBOOK_SENT);
        close_book(b);
    }
}

static void test_limit(void) {
    struct workbook *b = open_book(false);
    CHECK(workbook_line(b, UINT64_MAX) == NULL);
    CHECK_EQ(workbook_sent(b, UINT64_MAX, "x"), -ENOMEM);
    close_book(b);
}

int main(void) {
    if (mkdtemp(path) == NULL)
        return 1;
    TEST(test_lives);
    TEST(test_torn);
    TEST(test_limit);
    char file[64];
    snprintf(file, sizeof file, "%s/book", path);
    unlink(file);
    rmdir(path);
    return tap_finish();
}
