/* SPDX-License-Identifier: MIT */
/* Lines of a workload file, and how it is told from a trace. */
#include "sim/jobfile.h"

#include <errno.h>

#include "base/units.h"
#include "tap.h"

static char why[JOBFILE_WHY_MAX];

static int line(struct jobfile *r, const char *text) {
    return jobfile_line(r, bytes_from_str(text), why);
}

static void test_jobs(void) {
    static const struct {
        const char *text;
        uint64_t arrival_ns;
        const char *first, *last;
        uint32_t words;
    } cases[] = {
        {"0 true", 0, "true", "true", 1},
        {"  1:30\t-n 4 --time 1m ./solver 'first file'\r", 90 * NS_PER_S, "-n", "first file", 6},
        {"+2.5s --name \"a b\" x", 92500 * NS_PER_MS, "--name", "x", 3},
        {"+0 y", 92500 * NS_PER_MS, "y", "y", 1},
        {"250ms z # no remark", 250 * NS_PER_MS, "z", "remark", 4},
    };
    struct jobfile r;
    char *words[JOBFILE_WORDS_MAX + 1];
    jobfile_init(&r);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_EQ(line(&r, cases[i].text), 0);
        CHECK_EQ(line(&r, " # a remark"), 0);
        CHECK_EQ(line(&r, " \t"), 0);
        if (!CHECK_EQ(r.count, i + 1))
            break;
        CHECK_EQ(r.jobs[i].arrival_ns, cases[i].arrival_ns);
        CHECK_EQ(r.jobs[i].words, cases[i].words);
        CHECK_EQ(r.jobs[i].line, 3 * i + 1);
        jobfile_words(&r, i, words);
        CHECK_STR(words[0], cases[i].first);
        CHECK_STR(words[cases[i].words - 1], cases[i].last);
        CHECK(words[cases[i].words] == NULL);
    }
    jobfile_sort(&r);
    CHECK(r.jobs[0].line == 1 && r.jobs[1].line == 13 && r.jobs[2].line == 4 &&
          r.jobs[3].line == 7 && r.jobs[4].line == 10);
    jobfile_fini(&r);
}

static void test_malformed(void) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"soon ./solver", "\"soon\" is no time; for example 90, 1:30, 2.5s or +10"},
        {"+ ./solver", "\"+\" is no time; for example 90, 1:30, 2.5s or +10"},
        {"-1 ./solver", "\"-1\" is no time; for example 90, 1:30, 2.5s or +10"},
        {"+99999d ./solver", "\"+99999d\" is no time; for example 90, 1:30, 2.5s or +10"},
        {"10", "submit what? behind the time 10 there is nothing"},
        {"10 'solver", "a quote is not closed"},
        {"'' x", "\"\" is no time; for example 90, 1:30, 2.5s or +10"},
        {"\x01\x80 x", "\"??\" is no time; for example 90, 1:30, 2.5s or +10"},
    };
    struct jobfile r;
    jobfile_init(&r);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_EQ(line(&r, cases[i].text), -EINVAL);
        CHECK_STR(why, cases[i].why);
    }
    CHECK_EQ(line(&r, "50000d x"), 0);
    CHECK_EQ(line(&r, "+50000d x"), -EINVAL);
    CHECK_STR(why, "+50000d: that is too late");
    CHECK_EQ(jobfile_line(&r, bytes_of("0 a\0b", 5), why), -EINVAL);
    CHECK_EQ(r.count, 1);
    jobfile_sort(&r);
    jobfile_fini(&r);
}

static void test_kinds(void) {
    static const struct {
        const char *text;
        int tells;
    } cases[] = {
        {"", -EAGAIN},    {"# remark", -EAGAIN}, {"; MaxProcs: 4", 1}, {"1 0 5 10 4", 1},
        {"  1\t-1 5", 1}, {"0 -n 4 ./x", 0},     {"+1 true", 0},       {"10", 0},
        {"garbage", 0},   {"0 - x", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_EQ(jobfile_tells_trace(bytes_from_str(cases[i].text)), cases[i].tells);
}

int main(void) {
    TEST(test_jobs);
    TEST(test_malformed);
    TEST(test_kinds);
    return tap_finish();
}
