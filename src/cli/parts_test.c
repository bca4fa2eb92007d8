/* SPDX-License-Identifier: MIT */
/* Tests of taking a command apart into programs. Complaints go to stderr, which tests may fill. */
#include "cli/parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/complain.h"
#include "tap.h"

enum { WORDS = 32 };

/* The words, and what is behind them. */
static int split(struct parts *p, char **argv, const char *const *words) {
    int count = 0;
    *p = (struct parts){0};
    for (; words[count] != NULL; count++)
        argv[count] = (char *)words[count];
    argv[count] = NULL;
    return parts_split(p, "run", &(struct part){.procs = "7"}, count, argv);
}

#define SPLIT(p, argv, ...) split((p), (argv), (const char *[]){__VA_ARGS__, NULL})

/* Words with bars behind them. */
static const char *joined(char *const *argv) {
    static char out[256];
    out[0] = '\0';
    for (; *argv != NULL; argv++) {
        size_t len = strlen(out);
        snprintf(out + len, sizeof out - len, "%s|", *argv);
    }
    return out;
}

static void test_split(void) {
    struct parts p;
    char *argv[WORDS];
    CHECK_EQ(SPLIT(&p, argv, "a", "-n", "2"), 0);
    CHECK_EQ(p.count, 0); /* there is only one */
    CHECK_EQ(SPLIT(&p, argv, "a", "x", ":", "-n", "2", "--env", "A=1", "--env=B=2", "b", "-n", "3",
                   ":", "-D", "/usr", "c"),
             0);
    CHECK_EQ(p.count, 3);
    CHECK_STR(joined(p.at[0].argv), "a|x|");
    CHECK_STR(p.at[0].procs, "7");
    CHECK_STR(joined(p.at[1].argv), "b|-n|3|");
    CHECK_STR(p.at[1].procs, "2");
    CHECK(p.at[1].env.count == 2 && strcmp(p.at[1].env.at[1], "B=2") == 0);
    CHECK_STR(joined(p.at[2].argv), "c|");
    CHECK(p.at[2].procs == NULL && strcmp(p.at[2].chdir, "/usr") == 0);
    parts_fini(&p);
}

static void test_colons_that_are_arguments(void) {
    struct parts p;
    char *argv[WORDS];
    CHECK_EQ(SPLIT(&p, argv, "a", ":", "-n", "2", "--", "b", "x", ":", "y"), 0);
    CHECK_EQ(p.count, 2);
    CHECK_STR(joined(p.at[1].argv), "b|x|:|y|");
    parts_fini(&p);
    CHECK_EQ(SPLIT(&p, argv, "a", "--", ":", "b", "::", "x:", ":y"), 0); /* that was too late */
    CHECK_EQ(p.count, 2);
    CHECK_STR(joined(p.at[0].argv), "a|--|");
    CHECK_STR(joined(p.at[1].argv), "b|::|x:|:y|");
    parts_fini(&p);
}

static void test_wrong(void) {
    struct parts p;
    char *argv[WORDS];
    CHECK_EQ(SPLIT(&p, argv, ":", "b"), STATUS_USAGE);
    parts_fini(&p);
    CHECK_EQ(SPLIT(&p, argv, "a", ":"), STATUS_USAGE);
    parts_fini(&p);
    CHECK_EQ(SPLIT(&p, argv, "a", ":", ":", "b"), STATUS_USAGE);
    parts_fini(&p);
    CHECK_EQ(SPLIT(&p, argv, "a", ":", "-n", "2"), STATUS_USAGE);
    parts_fini(&p);
    CHECK_EQ(SPLIT(&p, argv, "a", ":", "--bind", "core", "b"), STATUS_USAGE);
    parts_fini(&p);
    CHECK_EQ(SPLIT(&p, argv, "a", ":", "--time", "2", "b"), STATUS_USAGE);
    parts_fini(&p);
    CHECK_EQ(SPLIT(&p, argv, "a", ":", "--bogus", "b"), STATUS_USAGE);
    parts_fini(&p);
    CHECK_EQ(SPLIT(&p, argv, "a", ":", "--help"), STATUS_USAGE);
    parts_fini(&p);
}

static int load(struct parts *p, const char *text) {
    static char path[] = "/tmp/storm-parts-XXXXXX";
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    *p = (struct parts){0};
    int r = parts_load(p, path);
    unlink(path);
    return r;
}

static void test_file(void) {
    struct parts p;
    char place[PART_PLACE_MAX];
    CHECK_EQ(load(&p, "# all\n\n-n 2 a 'x  y' : \"\" # rest\n \t -n3 --env A=1 -- b --x\r\nc"), 0);
    CHECK_EQ(p.count, 3);
    CHECK_STR(joined(p.at[0].argv), "a|x  y|:||");
    CHECK_STR(p.at[0].procs, "2");
    CHECK_STR(joined(p.at[1].argv), "b|--x|");
    CHECK_STR(p.at[1].procs, "3");
    CHECK_STR(joined(p.at[2].argv), "c|");
    CHECK(p.at[2].procs == NULL);
    part_place(&p.at[0], p.at[0].argv[2], "", place);
    CHECK(strstr(place, ":3:15") != NULL);
    part_place(&p.at[1], p.at[1].procs, "", place);
    CHECK(strstr(place, ":4:6") != NULL);
    part_place(&p.at[2], p.at[2].argv[0], "", place);
    CHECK(strstr(place, ":5:1") != NULL);
    parts_fini(&p);
}

static void test_wrong_files(void) {
    static const char *const texts[] = {"",          "# nothing\n",   "-n 2\n",        "a\n'b\n",
                                        "--bogus a", "a\n--mem 2G b", "a\n--name=x b", "--help"};
    struct parts p;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CHECK_EQ(load(&p, texts[i]), STATUS_USAGE);
        parts_fini(&p);
    }
    p = (struct parts){0};
    CHECK_EQ(parts_load(&p, "/nowhere/at/all"), STATUS_STORM);
    parts_fini(&p);
}

static void test_many(void) {
    struct parts p;
    char *text = malloc((size_t)3 * (PARTS_MAX + 1) + 1);
    CHECK(text != NULL);
    for (int i = 0; i <= PARTS_MAX; i++)
        memcpy(text + (size_t)3 * (size_t)i, "a\n\n", 4);
    CHECK_EQ(load(&p, text), STATUS_USAGE);
    parts_fini(&p);
    text[(size_t)3 * PARTS_MAX] = '\0';
    CHECK_EQ(load(&p, text), 0);
    CHECK_EQ(p.count, PARTS_MAX);
    parts_fini(&p);
    free(text);
}

int main(void) {
    TEST(test_split);
    TEST(test_colons_that_are_arguments);
    TEST(test_wrong);
    TEST(test_file);
    TEST(test_wrong_files);
    TEST(test_many);
    return tap_finish();
}
