/* SPDX-License-Identifier: MIT */
/* Tests of the command line that starts a program with libraries of its own. */
#include "wire/outfit.h"

#include <errno.h>

#include "tap.h"

#define STRINGS(text) bytes_of((text), sizeof(text))

static struct outfit sample(void) {
    return (struct outfit){
        .folder = bytes_from_str("/run/d"), .program = bytes_from_str("prog"), .argv0 = true};
}

/* The list with blanks for the ends of its strings. */
static const char *compose(const struct outfit *o, const char *library_path) {
    static char out[256];
    long n =
        outfit_arguments(o, STRINGS("./prog\0-x\0\0last"), library_path, room_of(out, sizeof out));
    if (!CHECK(n > 0))
        return "";
    CHECK_EQ(out[n - 1], 0);
    for (long i = 0; i < n - 1; i++)
        if (out[i] == '\0')
            out[i] = ' ';
    return out;
}

static void test_arguments(void) {
    struct outfit o = sample();
    CHECK_STR(compose(&o, ""), "./prog --library-path /run/d --argv0 ./prog /run/d/prog -x  last");
    o.argv0 = false;
    CHECK_STR(compose(&o, "/opt:lib"),
              "./prog --library-path /run/d:/opt:lib /run/d/prog -x  last");
}

static void test_stubborn(void) {
    struct outfit o = sample();
    o.argv0 = false;
    o.stubborn = STRINGS("");
    CHECK_STR(compose(&o, ""),
              "./prog --library-path /run/d --inhibit-rpath  /run/d/prog -x  last");
    o.stubborn = STRINGS("\0liba.so\0libb.so");
    CHECK_STR(compose(&o, ""), "./prog --library-path /run/d --inhibit-rpath "
                               ":/run/d/liba.so:/run/d/libb.so /run/d/prog -x  last");
    o.stubborn = STRINGS("liba.so");
    CHECK_STR(compose(&o, ""),
              "./prog --library-path /run/d --inhibit-rpath /run/d/liba.so /run/d/prog -x  last");
}

static void test_file(void) {
    struct outfit o = sample();
    char out[32];
    CHECK_EQ(outfit_file(&o, out, sizeof out), 0);
    CHECK_STR(out, "/run/d/start/prog");
    CHECK_EQ(outfit_file(&o, out, 17), -ENAMETOOLONG);
}

static void check_refused(const struct outfit *o) {
    uint8_t out[256];
    char file[64];
    CHECK_EQ(outfit_arguments(o, STRINGS("prog"), "", room_of(out, sizeof out)), -EINVAL);
    CHECK_EQ(outfit_file(o, file, sizeof file), -EINVAL);
}

static void test_refused(void) {
    static const char *const folders[] = {"", "/", "run/d", "/run/d/", "/a:b", "/a;b", "/$LIB"};
    uint8_t out[256];
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        struct outfit o = sample();
        o.folder = bytes_from_str(folders[i]);
        check_refused(&o);
    }
    struct outfit o = sample();
    o.program = bytes_from_str("a/b");
    check_refused(&o);
    o = sample();
    CHECK_EQ(outfit_arguments(&o, STRINGS("prog"), "", room_of(out, 40)), -ENOBUFS);
    CHECK_EQ(outfit_arguments(&o, bytes_of("prog", 4), "", room_of(out, 99)), -EINVAL);
    CHECK_EQ(outfit_arguments(&o, bytes_of("", 0), "", room_of(out, 99)), -EINVAL);
    static const struct bytes lists[] = {{(const uint8_t *)"a", 1},
                                         {(const uint8_t *)"a:b", 4},
                                         {(const uint8_t *)"a/b", 4},
                                         {(const uint8_t *)"a\0\0b", 5}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        o.stubborn = lists[i];
        CHECK_EQ(outfit_arguments(&o, STRINGS("prog"), "", room_of(out, sizeof out)), -EINVAL);
    }
}

int main(void) {
    TEST(test_arguments);
    TEST(test_stubborn);
    TEST(test_file);
    TEST(test_refused);
    return tap_finish();
}
