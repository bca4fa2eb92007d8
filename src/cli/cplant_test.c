/* SPDX-License-Identifier: MIT */
/* yod and pingd: which command of storm they are. */
#include "cli/cplant.h"

#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "tap.h"

static struct cplant made;
static char line[512], text[1024];

/* What a line becomes, in one line; "?" and the reason if it is refused. */
static const char *becomes(const char *typed) {
    char *words[64];
    size_t at = 0;
    snprintf(line, sizeof line, "%s", typed);
    int count = words_split(line, words, 63);
    bool good =
        words[0][0] == 'y' ? cplant_yod(&made, count, words) : cplant_pingd(&made, count, words);
    if (!good) {
        snprintf(text, sizeof text, "? %s", made.why);
        return text;
    }
    text[0] = '\0';
    for (int i = 0; made.words[i] != NULL; i++)
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "%s%s", i > 0 ? " " : "", made.words[i]);
    return text;
}

static void test_the_paper(void) {
    CHECK_STR(becomes("yod -sz 32 app"), "run --size 32 -- app");
    CHECK_STR(becomes("yod -sz 32:4:128 app"), "run --size 32:4:128 -- app");
    CHECK_STR(becomes("yod -sz ::32 app"), "run --size ::32 -- app");
    CHECK_STR(becomes("yod -sz 2:2 -na 'MEM=512MB, NI=SLOW' app"),
              "run --size 2:2 --need MEM=512MB, NI=SLOW -- app");
    CHECK_STR(made.words[4], "MEM=512MB, NI=SLOW");
    CHECK_STR(becomes("yod -sz 2:2 -na 'MEM>=512MB' app"),
              "run --size 2:2 --need MEM>=512MB -- app");
}

static void test_what_follows_the_program_is_its_own(void) {
    CHECK_STR(becomes("yod app -sz 3"), "run -- app -sz 3");
    CHECK_STR(becomes("yod -sz 2 -- -odd -sz"), "run --size 2 -- -odd -sz");
    CHECK_STR(becomes("yod"), "run");
    CHECK_STR(becomes("yod -help"), "run --help");
}

static void test_options_of_storm_stay(void) {
    CHECK_STR(becomes("yod --debug gdb -sz 2 app"), "run --debug gdb --size 2 -- app");
    CHECK_STR(becomes("yod --debug=gdb --label -sz 2 app"),
              "run --debug=gdb --label --size 2 -- app");
    CHECK_STR(becomes("yod --need 'A=B' -sz 2 app"), "run --need A=B --size 2 -- app");
    CHECK_STR(becomes("yod -timing -quiet app"), "run --verbose -- app");
}

static void test_nodes_have_numbers(void) {
    CHECK_STR(becomes("yod -list 0,3-5,9..12 app"), "run --on n0,n[3-5],n[9-12] -- app");
    CHECK_STR(becomes("yod -nl n7,rack[1-2] app"), "run --on n7,rack[1-2] -- app");
    CHECK_STR(becomes("yod -l 5- app"), "run --on 5- -- app"); /* storm says what is wrong */
}

static void test_what_makes_no_sense(void) {
    CHECK(strstr(becomes("yod -frob app"), "? -frob: there is no such option") != NULL);
    CHECK(strstr(becomes("yod -kill 3"), "storm kill JOB") != NULL);
    CHECK(strstr(becomes("yod -batch app"), "storm submit") != NULL);
    CHECK(strstr(becomes("yod -sz"), "its value is missing") != NULL);
    CHECK(strstr(becomes("yod --debug"), "its value is missing") != NULL);
    CHECK(strstr(becomes("pingd -frob"), "there is no such option") != NULL);
    CHECK(strstr(becomes("pingd -reset"), "storm drain") != NULL);
    CHECK(strstr(becomes("pingd -list"), "which nodes") != NULL);
}

static void test_pingd(void) {
    CHECK_STR(becomes("pingd"), "nodes");
    CHECK_STR(becomes("pingd -list 0-3"), "nodes n[0-3]");
    CHECK_STR(becomes("pingd 17 18"), "ps 17 18");
    CHECK_STR(becomes("pingd --json 17"), "ps --json 17");
    CHECK_STR(becomes("pingd --json"), "nodes --json");
}

int main(void) {
    TEST(test_the_paper);
    TEST(test_what_follows_the_program_is_its_own);
    TEST(test_options_of_storm_stay);
    TEST(test_nodes_have_numbers);
    TEST(test_what_makes_no_sense);
    TEST(test_pingd);
    return tap_finish();
}
