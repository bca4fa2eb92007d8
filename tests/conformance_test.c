/* SPDX-License-Identifier: MIT */
/* The conformance scripts in the simulator, and tests of their language.
 *
 * A script is played with several seeds, each with other delays, and its history must be the one
 * kept beside it (NAME.history): so the script is determined, and the promise is written down where
 * it can be read. conformance_real_test.c plays the same scripts on real processes. */
#include "conformance/suite.h"
#include "conformance/theatre_sim.h"

enum { SEEDS = 10 };

/* ---- the language ---- */

/* Parses; a mistake is told on standard output as a comment, which a TAP reader passes over. */
static bool is_good(const char *text) {
    char *content = strdup(text);
    ASSERT(content != NULL);
    struct script *s = script_parse("language", content);
    if (s != NULL)
        script_free(s);
    return s != NULL;
}

static void test_mistakes_are_found(void) {
    static const char *const wrong[] = {
        "start all",
        "nodes 0 k-ary 2",
        "nodes 64 k-ary 2",
        "nodes 3 star",
        "nodes 3 flat\nstart n3",
        "nodes 3 flat\nstart n[0-2",
        "nodes 3 flat\nstart all all",
        "nodes 3 flat\njump n1",
        "nodes 3 flat\nask A n1 xfer on all at 1 \"x",
        "nodes 3 flat\nask A n1 xfer on all at x",
        "nodes 3 flat\nask A n[0-1] xfer on all",
        "nodes 3 flat\nask A n1 xfer on all write v1 2",
        "nodes 3 flat\nask A n1 compare on all v1 > 2",
        "nodes 3 flat\nask A n1 compare on all 1 >= 2",
        "nodes 3 flat\nask A n1 compare on all v1 >= 2 timeout 3",
        "nodes 3 flat\nask A n1 xfer on all\nask A n1 xfer on all",
        "nodes 3 flat\nexpect A done",
        "nodes 3 flat\nask A n1 xfer on all\nexpect A done|well",
        "nodes 3 flat\nask A n1 xfer on all\nexpect A failed culprit n9",
        "nodes 3 flat\nuntil rich all",
        "nodes 3 flat\nheap n1 \"x\"",
        "nodes 3 flat\nheap n1 at 5 x",
        "nodes 3 flat\npass 3",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (!CHECK(!is_good(wrong[i])))
            printf("#   script %zu\n", i);
    CHECK(is_good("# nothing\n\nnodes 3 k-ary 2 # why\n\tstart all\n"));
    CHECK(is_good("nodes 3 flat\nask A root xfer on n[0-1],root at 5 \"a b\" event 1\n"
                  "expect A failed|refused culprit n1"));
}

int main(int argc, char **argv) {
    static const struct theatre *const theatres[] = {&theatre_sim};
    TEST(test_mistakes_are_found);
    bool found = suite_each(argc, argv, theatres, 1, SEEDS, test_script);
    return tap_finish() || !found;
}
