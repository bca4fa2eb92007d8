/* SPDX-License-Identifier: MIT */
/* Mistakes, as people see them. */
#include "base/mistake.h"

#include "tap.h"

static char out[1024];

static struct mistake make(uint32_t line, size_t column, size_t length) {
    struct mistake m;
    struct text t = mistake_at(&m, column, length);
    text_str(&t, "there is no attribute ");
    mistake_quote(&t, "NI", 2);
    mistake_suggest(&t, "NIC");
    mistake_suggest(&t, NULL);
    m.line = line;
    return m;
}

static void test_one_line(void) {
    struct mistake m = make(0, 11, 2);
    size_t len = mistake_format(&m, NULL, out, sizeof out);
    CHECK_EQ(len, strlen(out));
    CHECK_STR(out, "column 12: there is no attribute \"NI\"; did you mean NIC?");
    m.line = 3;
    mistake_format(&m, "nodespec", out, sizeof out);
    CHECK_STR(out, "nodespec:3:12: there is no attribute \"NI\"; did you mean NIC?");
    CHECK_EQ(mistake_format(&m, "nodespec", out, 9), 60);
    CHECK_STR(out, "nodespec");
}

static void test_three_lines(void) {
    struct mistake m = make(0, 11, 2);
    mistake_show(&m, "--need", "MEM=512MB, NI=SLOW", out, sizeof out);
    CHECK_STR(out, "--need:12: there is no attribute \"NI\"; did you mean NIC?\n"
                   "  MEM=512MB, NI=SLOW\n"
                   "             ^~");
    m = make(2, 1, 2);
    mistake_show(&m, "f", "one\n\tNI\nthree", out, sizeof out);
    CHECK_STR(out, "f:2:2: there is no attribute \"NI\"; did you mean NIC?\n"
                   "   NI\n"
                   "   ^~");
    m = make(2, 99, 1); /* nowhere: it is at the end */
    mistake_show(&m, "f", "one\ntwo", out, sizeof out);
    CHECK(strstr(out, "\n  two\n     ^") != NULL);
}

static void test_long_lines(void) {
    char text[301];
    memset(text, 'y', 300);
    text[200] = '\x1b';
    text[300] = '\0';
    struct mistake m = make(0, 200, 90);
    mistake_show(&m, NULL, text, out, sizeof out);
    const char *second = strchr(out, '\n') + 1, *third = strchr(second, '\n') + 1;
    CHECK_EQ(third - second, 2 + MISTAKE_WIDTH + 1);
    CHECK_EQ(strlen(third), 2 + MISTAKE_WIDTH);
    CHECK(strchr(third, '^') - third == 18 && second[18] == '?' && second[17] == 'y');
}

int main(void) {
    TEST(test_one_line);
    TEST(test_three_lines);
    TEST(test_long_lines);
    return tap_finish();
}
