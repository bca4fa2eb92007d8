/* SPDX-License-Identifier: MIT */
/* Words and quotes. */
#include "base/words.h"

#include <errno.h>
#include <string.h>

#include "tap.h"

enum { MOST = 4 };

static void test_split(void) {
    static const struct {
        const char *line, *joined; /* words with bars behind them */
        int count;
    } cases[] = {
        {"", "", 0},
        {"  \t\r\n", "", 0},
        {"one", "one|", 1},
        {" one\ttwo  three ", "one|two|three|", 3},
        {"'a b' \"c d\"", "a b|c d|", 2},
        {"--env='X=\"1\"' \"it's\"", "--env=X=\"1\"|it's|", 2},
        {"a''b \"\"", "ab||", 2},
        {"a\\ b", "a\\|b|", 2}, /* a backslash is a letter */
        {"a b c d", "a|b|c|d|", 4},
        {"a b c d ''", "", -E2BIG},
        {"a 'b", "", -EINVAL},
        {"\"", "", -EINVAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[64], joined[64] = "", *words[MOST + 1];
        snprintf(line, sizeof line, "%s", cases[i].line);
        int count = words_split(line, words, MOST);
        CHECK_EQ(count, cases[i].count);
        for (int k = 0; k < count; k++) {
            size_t len = strlen(joined);
            snprintf(joined + len, sizeof joined - len, "%s|", words[k]);
        }
        CHECK_STR(joined, cases[i].joined);
        CHECK(count < 0 || words[count] == NULL);
    }
}

static void test_where(void) {
    char line[] = "  one 'two  3'x\t\"4", *words[MOST + 1];
    uint32_t where[MOST];
    CHECK_EQ(words_split_where(line, words, where, MOST), -EINVAL);
    CHECK_EQ(where[0], 2);
    CHECK_EQ(where[1], 6);
    CHECK_EQ(where[2], 16); /* the one that does not end */
    CHECK_STR(words[1], "two  3x");
    CHECK(words[2] != NULL && words[3] == NULL);
}

static void test_comments(void) {
    static const char *const cases[][2] = {
        {"# all", ""},          {"a # b", "a "}, {"a#b", "a#b"},  {"'# a' # b", "'# a' "},
        {"\"a\"#b", "\"a\"#b"}, {"", ""},        {"a '#", "a '#"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[32];
        snprintf(line, sizeof line, "%s", cases[i][0]);
        words_cut_comment(line);
        CHECK_STR(line, cases[i][1]);
    }
}

int main(void) {
    TEST(test_split);
    TEST(test_where);
    TEST(test_comments);
    return tap_finish();
}
