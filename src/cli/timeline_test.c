/* SPDX-License-Identifier: MIT */
/* Bars are where their times are, and the stages of a node add up to its time. */
#include "cli/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "cli/diaries.h"
#include "tap.h"

static char *written(const struct timeline *t) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    CHECK_EQ(timeline_write(t, out), 0);
    fclose(out);
    return text;
}

static uint32_t times_in(const char *text, const char *what) {
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        count++;
    return count;
}

static void test_bars(void) {
    struct timeline t = {.title = "A & B", .subtitle = "<", .from_ns = 1000, .to_ns = 2001000};
    struct timeline_row *r = timeline_add(&t, 3, "half");
    timeline_span(r, 1000, 1001000);
    for (uint64_t i = 0; i < 100; i++)
        timeline_span(r, 1500000 + i, 1500000 + i);
    CHECK(timeline_add(&t, 1, "never") != NULL);
    char *text = written(&t);
    CHECK_EQ(times_in(text, "<rect class=\"d3\""), 101);
    CHECK_EQ(times_in(text, "<rect class=\"d1\""), 0);
    CHECK(strstr(text, "x=\"270.00\" y=\"75.00\" width=\"333.00\"") != NULL);
    CHECK(strstr(text, "width=\"0.60\"") != NULL); /* an instant can be seen */
    CHECK(strstr(text, "A &amp; B") != NULL && strstr(text, "2 ms") != NULL);
    free(text);
    timeline_fini(&t);
}

static void test_rows_are_limited(void) {
    struct timeline t = {0};
    for (int i = 0; i < TIMELINE_ROWS_MAX; i++)
        CHECK(timeline_add(&t, 0, "row") != NULL);
    CHECK(timeline_add(&t, 0, "row") == NULL);
    timeline_fini(&t);
}

static void test_stages(void) {
    struct diary_note list[] = {
        {DIARY_OPEN, 100, 110, 0}, {DIARY_LINK, 105, 120, 9},  {DIARY_LINK, 105, 500, 9},
        {DIARY_PAGE, 130, 135, 0}, {DIARY_CAME, 150, 150, 0},  {DIARY_STORE, 151, 160, 0},
        {DIARY_CAME, 170, 170, 1}, {DIARY_STORE, 171, 190, 1}, {DIARY_COMMIT, 200, 205, 0},
    };
    struct notes n = {.list = list, .count = sizeof list / sizeof *list};
    uint64_t took[NODE_STAGES];
    CHECK(notes_stages(&n, took));
    CHECK_EQ(took[NODE_CONNECT], 20);
    CHECK_EQ(took[NODE_READY], 10);
    CHECK_EQ(took[NODE_FIRST], 20);
    CHECK_EQ(took[NODE_DATA], 40);
    CHECK_EQ(took[NODE_OVERHEAD], 15);
    CHECK_EQ(notes_busy(&n, DIARY_STORE), 28);
    n.count--; /* it was not committed */
    CHECK(!notes_stages(&n, took));
    struct notes cached = {
        .list = (struct diary_note[]){{DIARY_OPEN, 100, 110, 0}, {DIARY_COMMIT, 120, 130, 0}},
        .count = 2}; /* nothing had to come */
    CHECK(notes_stages(&cached, took));
    CHECK(took[NODE_DATA] == 0 && took[NODE_OVERHEAD] == 30);
}

int main(void) {
    TEST(test_bars);
    TEST(test_rows_are_limited);
    TEST(test_stages);
    return tap_finish();
}
