/* SPDX-License-Identifier: MIT */
/* Tests of plots and of the small statistics beside them. */
#include "cli/plot.h"

#include <stdlib.h>
#include <string.h>

#include "cli/stats.h"
#include "tap.h"

static void check_label(void (*label)(uint64_t, char *, size_t), uint64_t value, const char *text) {
    char buf[32];
    label(value, buf, sizeof buf);
    CHECK_STR(buf, text);
}

static void test_labels(void) {
    check_label(plot_label_time, 500, "0.5 \u00b5s");
    check_label(plot_label_time, 20000, "20 \u00b5s");
    check_label(plot_label_time, 1500000, "1.5 ms");
    check_label(plot_label_time, 2000000000, "2 s");
    check_label(plot_label_rate, 1250000000, "1250 MB/s");
    check_label(plot_label_rate, 2500000, "2.5 MB/s");
    check_label(plot_label_rate, 20000, "20 KB/s");
}

/* Writes it and gives back the text. */
static char *draw(const struct plot *p) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    CHECK_EQ(plot_write(p, out), 0);
    fclose(out);
    return text;
}

static uint32_t count(const char *text, const char *part) {
    uint32_t n = 0;
    while ((text = strstr(text, part)) != NULL) {
        n++;
        text += strlen(part);
    }
    return n;
}

static struct plot *make(uint64_t growth) {
    struct plot *p = calloc(1, sizeof *p);
    *p = (struct plot){.title = "Title",
                       .subtitle = "a < b & c",
                       .x_words = "nodes",
                       .y_words = "time",
                       .label = plot_label_time};
    for (uint32_t i = 0; i < 3; i++) {
        struct plot_series *s = plot_add(p, i, i == 2);
        snprintf(s->name, sizeof s->name, "series %u", i);
        uint64_t y = 20000;
        for (uint64_t x = 4; x <= 64; x *= 2, y *= growth)
            plot_point(s, x, y + 1000 * i);
    }
    return p;
}

static void test_plot(void) {
    for (uint64_t growth = 1; growth <= 3; growth++) { /* linear, then logarithmic */
        struct plot *p = make(growth);
        char *text = draw(p);
        CHECK(strncmp(text, "<svg ", 5) == 0);
        CHECK(strcmp(text + strlen(text) - 7, "</svg>\n") == 0);
        CHECK_EQ(count(text, "<polyline"), 3);
        CHECK_EQ(count(text, "<circle"), 15);
        CHECK_EQ(count(text, "series 1<"), 1);
        CHECK_EQ(count(text, "<text"), count(text, "</text>"));
        CHECK(count(text, "a &lt; b &amp; c") == 1);
        CHECK(count(text, "prefers-color-scheme: dark") == 1);
        CHECK_EQ(count(text, "=\"-"), 0); /* nothing lies outside */
        char *again = draw(p);
        CHECK_STR(text, again);
        free(text);
        free(again);
        free(p);
    }
}

/* One point, and series without any. */
static void test_little(void) {
    struct plot *p = calloc(1, sizeof *p);
    *p = (struct plot){
        .title = "t", .subtitle = "s", .x_words = "x", .y_words = "y", .label = plot_label_rate};
    plot_add(p, 0, false);
    plot_point(plot_add(p, 1, false), 7, 0);
    char *text = draw(p);
    CHECK_EQ(count(text, "<circle"), 1);
    free(text);
    free(p);
}

static void test_stats(void) {
    CHECK_EQ(stats_root(0), 0);
    CHECK_EQ(stats_root(1), 1);
    CHECK_EQ(stats_root(99), 9);
    CHECK_EQ(stats_root(UINT64_MAX), UINT32_MAX);
    uint64_t one[] = {7};
    CHECK_EQ(stats_of(one, 1).median, 7);
    CHECK_EQ(stats_of(one, 1).ci95, 0);
    uint64_t same[] = {5, 5, 5, 5};
    CHECK_EQ(stats_of(same, 4).ci95, 0);
    uint64_t even[] = {10, 20, 40, 90};
    CHECK_EQ(stats_of(even, 4).median, 30);
    uint64_t spread[] = {100, 200, 300, 400, 500}; /* deviation 158.1, over the root of 5: 70.7 */
    CHECK_EQ(stats_of(spread, 5).median, 300);
    CHECK_EQ(stats_of(spread, 5).ci95, 137);
}

int main(void) {
    TEST(test_labels);
    TEST(test_plot);
    TEST(test_little);
    TEST(test_stats);
    return tap_finish();
}
