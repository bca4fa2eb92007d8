/* SPDX-License-Identifier: MIT */
/* Places for values in a command, odd names, quotes. */
#include "cli/template.h"

#include <stdlib.h>

#include "tap.h"

enum { TEXT_MAX = 256 };

/* With up to two values. */
static const char *fill(const char *text, const char *a, const char *b) {
    static char out[TEXT_MAX];
    struct bytes values[2];
    uint32_t count = 0;
    if (a != NULL)
        values[count++] = bytes_from_str(a);
    if (b != NULL)
        values[count++] = bytes_from_str(b);
    char *command = template_fill(text, values, count, 7);
    snprintf(out, sizeof out, "%s", command);
    free(command);
    return out;
}

static void test_parts(void) {
    CHECK_STR(fill("x {} y", "dir/a.tar.gz", NULL), "x dir/a.tar.gz y");
    CHECK_STR(fill("{.}", "dir/a.tar.gz", NULL), "dir/a.tar");
    CHECK_STR(fill("{/}", "dir/a.tar.gz", NULL), "a.tar.gz");
    CHECK_STR(fill("{//}", "dir/a.tar.gz", NULL), "dir");
    CHECK_STR(fill("{/.}", "dir/a.tar.gz", NULL), "a.tar");
    CHECK_STR(fill("{#}", "dir/a.tar.gz", NULL), "7");
}

static void test_odd_names(void) {
    CHECK_STR(fill("{.}", ".profile", NULL), ".profile");
    CHECK_STR(fill("{.}", "d.x/plain", NULL), "d.x/plain");
    CHECK_STR(fill("{//}", "plain", NULL), ".");
    CHECK_STR(fill("{//}", "/plain", NULL), "/");
    CHECK_STR(fill("{/}", "d/", NULL), "''");
    CHECK_STR(fill("{}", "", NULL), "''");
}

static void test_several(void) {
    CHECK_STR(fill("{2} {1}", "a", "b"), "b a");
    CHECK_STR(fill("{}", "a", "b c"), "a 'b c'");
    CHECK_STR(fill("{1/.}-{2.}", "d/a.x", "d/b.y"), "a-d/b");
    CHECK_STR(fill("[{3}]", "a", "b"), "[]");
    CHECK_EQ(template_highest("{} {2.} {1}"), 2);
    CHECK_EQ(template_highest("{} {#}"), 0);
}

static void test_none(void) {
    CHECK_STR(fill("echo", "a", "b"), "echo a b");
    CHECK_STR(fill("echo {#}", "a", NULL), "echo 7");
    CHECK_STR(fill("awk {print}", "f", NULL), "awk {print} f");
    CHECK_STR(fill("a {", "f", NULL), "a { f");
    CHECK_STR(fill("a {99999999999}", "f", NULL), "a {99999999999} f");
    CHECK_STR(fill("a {1#}", "f", NULL), "a {1#} f");
    CHECK(!template_has_place("awk {print}"));
}

static void test_quotes(void) {
    CHECK_STR(fill("{}", "it's; rm -rf $HOME", NULL), "'it'\\''s; rm -rf $HOME'");
    CHECK_STR(fill("{}", "~", NULL), "'~'");
    CHECK_STR(fill("{}", "a\nb", NULL), "'a\nb'");
}

int main(void) {
    TEST(test_parts);
    TEST(test_odd_names);
    TEST(test_several);
    TEST(test_none);
    TEST(test_quotes);
    return tap_finish();
}
