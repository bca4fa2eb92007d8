/* SPDX-License-Identifier: MIT */
/* Lines and values: streams, lists, combinations, what is refused. */
#include "cli/supply.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

enum { TEXT_MAX = 512, WORDS_MAX = 16 };

/* All that comes of these words and this text, a line each. */
static const char *all(const char *text, char separator, const char *const *given) {
    static char out[TEXT_MAX];
    char path[] = "/tmp/supply-XXXXXX", *words[WORDS_MAX] = {NULL};
    struct supply s;
    char *command;
    int r, fd = mkstemp(path);
    out[0] = '\0';
    if (!CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text)))
        return "";
    for (int i = 0; given[i] != NULL; i++)
        words[i] = strcmp(given[i], "FILE") == 0 ? path : (char *)given[i];
    bool lists = strchr(text, '@') != NULL;
    if (supply_open(&s, "test", words, lists ? NULL : path, separator) != 0)
        snprintf(out, sizeof out, "refused");
    else
        while ((r = supply_next(&s, &command)) >= 0) {
            if (r == 0 && CHECK(supply_read(&s) == 0))
                continue;
            size_t len = strlen(out);
            snprintf(out + len, sizeof out - len, "%s|", command);
            free(command);
        }
    supply_fini(&s);
    close(fd);
    unlink(path);
    return out;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
static const char *const nothing[] = {NULL};

static void test_stream(void) {
    CHECK_STR(all("echo a\n\nls; pwd\n", '\n', nothing), "echo a|ls; pwd|");
    CHECK_STR(all("last", '\n', nothing), "last|");
    CHECK_STR(all("", '\n', nothing), "");
    CHECK_STR(all("a b\n\nc\n", '\n', WORDS("echo", "{#}", "{}")),
              "echo 1 'a b'|echo 2 ''|echo 3 c|");
    CHECK_STR(all("x\n", '\n', WORDS("wc", "-l")), "wc -l x|");
}

static void test_zero(void) {
    char path[] = "/tmp/supply-XXXXXX", *words[] = {NULL}, *command = NULL;
    struct supply s;
    int fd = mkstemp(path);
    CHECK(write(fd, "a\nb\0c", 5) == 5);
    CHECK_EQ(supply_open(&s, "test", words, path, '\0'), 0);
    CHECK_EQ(supply_next(&s, &command), 0);
    CHECK_EQ(supply_read(&s), 0);
    CHECK_EQ(supply_next(&s, &command), 1);
    CHECK_STR(command, "a\nb");
    free(command);
    CHECK_EQ(supply_next(&s, &command), 0); /* its end has not been seen */
    CHECK_EQ(supply_read(&s), 0);
    CHECK_EQ(supply_next(&s, &command), 1);
    CHECK_STR(command, "c");
    free(command);
    CHECK_EQ(supply_next(&s, &command), -ENODATA);
    CHECK_EQ(supply_total(&s), 2);
    supply_fini(&s);
    close(fd);
    unlink(path);
}

/* A text with @ is for lists only. */
static void test_lists(void) {
    CHECK_STR(all("@", '\n', WORDS("e", ":::", "a", "b", ":::", "1", "2", "3")),
              "e a 1|e a 2|e a 3|e b 1|e b 2|e b 3|");
    CHECK_STR(all("@1\n@2\n", '\n', WORDS("e", "{2}{1}", ":::", "a", "::::", "FILE")),
              "e @1a|e @2a|");
    CHECK_STR(all("@", '\n', WORDS(":::", "ls -l", "pwd")), "ls -l|pwd|");
    CHECK_STR(all("@", '\n', WORDS("e", ":::")), "");
    CHECK_STR(all("@", '\n', WORDS("e", "{3}", ":::", "a", ":::", "b")), "refused");
    CHECK_STR(all("@", '\n', WORDS("e", ":::", "a", ":::+", "b")), "refused");
    CHECK_STR(all("x", '\n', WORDS("e", ":::", "a")), "refused");
    CHECK_STR(all("@", '\n', WORDS("e", "::::", "/nowhere/at/all")), "refused");
}

int main(void) {
    TEST(test_stream);
    TEST(test_zero);
    TEST(test_lists);
    return tap_finish();
}
