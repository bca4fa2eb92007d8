/* SPDX-License-Identifier: MIT */
/* What --input and --fetch say: names stay in the job's folder. */
#include "cli/inputs.h"

#include <string.h>

#include "tap.h"

static bool puts_at(const char *text, const char *path, const char *name) {
    struct job_input in;
    return input_read(text, &in) == 0 && strcmp(in.path, path) == 0 && strcmp(in.name, name) == 0;
}

static void test_inputs(void) {
    CHECK(puts_at("data", "data", "data"));
    CHECK(puts_at("/a/b/data", "/a/b/data", "data"));
    CHECK(puts_at("a/folder///", "a/folder", "folder"));
    CHECK(puts_at("data:", "data", "data"));
    CHECK(puts_at("data:other", "data", "other"));
    CHECK(puts_at("data:a//./b/c", "data", "a/b/c"));
    CHECK(puts_at("x/data:in/", "x/data", "in/data"));
    CHECK(puts_at("x/data:./", "x/data", "data"));
    CHECK(puts_at("a:b:c", "a:b", "c"));
    CHECK(puts_at("/:root", "/", "root"));
    CHECK(puts_at(".:here", ".", "here"));
}

static void test_inputs_that_lead_out(void) {
    static const char *const wrong[] = {
        "", ":name", "data:/abs", "data:../x", "data:a/../../x", "data:..", "..", ".", "/", "a/.."};
    struct job_input in;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(input_read(wrong[i], &in) != 0);
}

static bool fetches(const char *text, const char *pattern, const char *folder) {
    struct output_wish w;
    return output_wish_read(text, &w) == 0 && strcmp(w.pattern, pattern) == 0 &&
           strcmp(w.folder, folder) == 0;
}

static void test_wishes(void) {
    CHECK(fetches("*", "*", "."));
    CHECK(fetches("out/*.dat", "out/*.dat", "."));
    CHECK(fetches("./out//*.dat:/tmp/x", "out/*.dat", "/tmp/x"));
    CHECK(fetches("log:", "log", "."));
    CHECK(fetches("a:b:c", "a:b", "c"));
}

static void test_wishes_that_lead_out(void) {
    static const char *const wrong[] = {"", ":", "/etc/*", "../x", "a/../b", "*/x", "a[b/c", "./"};
    struct output_wish w;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(output_wish_read(wrong[i], &w) != 0);
}

int main(void) {
    TEST(test_inputs);
    TEST(test_inputs_that_lead_out);
    TEST(test_wishes);
    TEST(test_wishes_that_lead_out);
    return tap_finish();
}
