/* SPDX-License-Identifier: MIT */
/* What became of hosts, written and read. */
#include "cli/turnout.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

enum { CAPACITY = 5 };

static void set(struct turnout *t, uint32_t number, enum turnout_state state, const char *name,
                const char *words) {
    struct turnout_host *h = &t->at[number];
    h->state = state;
    snprintf(h->name, sizeof h->name, "%s", name);
    snprintf(h->words, sizeof h->words, "%s", words);
}

static void test_round(void) {
    char folder[] = "/tmp/storm-turnout-XXXXXX", path[64];
    struct turnout t, back;
    CHECK(mkdtemp(folder) != NULL);
    CHECK_EQ(turnout_init(&t, CAPACITY), 0);
    CHECK_EQ(turnout_init(&back, CAPACITY), 0);
    CHECK_EQ(turnout_read(&back, folder), 0); /* nothing is known yet */
    CHECK_EQ(back.at[0].state, TURNOUT_NONE);
    set(&t, 0, TURNOUT_UP, "a", "");
    set(&t, 2, TURNOUT_FAILED, "user@b", "Permission denied (publickey).");
    set(&t, 4, TURNOUT_ENDED, "c", "");
    t.seen = 1234567890123456789;
    CHECK_EQ(turnout_write(&t, folder), 0);
    CHECK_EQ(turnout_read(&back, folder), 0);
    CHECK_EQ(back.seen, t.seen);
    for (uint32_t i = 0; i < CAPACITY; i++) {
        CHECK_EQ(back.at[i].state, t.at[i].state);
        CHECK_STR(back.at[i].name, t.at[i].name);
        CHECK_STR(back.at[i].words, t.at[i].words);
    }
    set(&t, 2, TURNOUT_NONE, "", "");
    CHECK_EQ(turnout_write(&t, folder), 0);
    CHECK_EQ(turnout_read(&back, folder), 0); /* what was read before is forgotten */
    CHECK_EQ(back.at[2].state, TURNOUT_NONE);
    turnout_free(&t);
    turnout_free(&back);
    snprintf(path, sizeof path, "%s/muster", folder);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(rmdir(folder), 0);
}

static void test_nonsense(void) {
    char folder[] = "/tmp/storm-turnout-XXXXXX", path[64];
    struct turnout t;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/muster", folder);
    FILE *f = fopen(path, "we");
    CHECK(f != NULL);
    fputs("\nx up a\n9 up beyond\n1 dancing b\n2 up\n3 up d more words\n", f);
    fclose(f);
    CHECK_EQ(turnout_init(&t, CAPACITY), 0);
    CHECK_EQ(turnout_read(&t, folder), 0);
    CHECK_EQ(t.at[1].state, TURNOUT_NONE);
    CHECK_EQ(t.at[2].state, TURNOUT_NONE);
    CHECK_EQ(t.at[3].state, TURNOUT_UP);
    CHECK_STR(t.at[3].words, "more words");
    turnout_free(&t);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(rmdir(folder), 0);
}

int main(void) {
    TEST(test_round);
    TEST(test_nonsense);
    return tap_finish();
}
