/* SPDX-License-Identifier: MIT */
/* Things that are alike, together. */
#include "cli/fold.h"

#include <stdlib.h>

#include "base/hash.h"
#include "tap.h"

/* Colours of things, and how often they were compared. */
struct beads {
    const uint32_t *colours;
    bool clumsy; /* all have one hash */
    uint64_t *compared;
};

static uint64_t hash_bead(const void *context, uint32_t thing) {
    const struct beads *b = context;
    return b->clumsy ? 7 : hash_once(&b->colours[thing], sizeof b->colours[thing]);
}

static bool same_colour(const void *context, uint32_t a, uint32_t b) {
    const struct beads *beads = context;
    ++*beads->compared;
    return beads->colours[a] == beads->colours[b];
}

static struct fold fold_beads(const struct beads *b, uint32_t count) {
    struct fold f;
    struct fold_rule rule = {.context = b, .hash = hash_bead, .alike = same_colour};
    CHECK_EQ(fold_make(&f, count, &rule), 0);
    return f;
}

/* "0,2 1,4 3": groups as things. */
static const char *words(const struct fold *f) {
    static char text[256];
    size_t len = 0;
    text[0] = '\0';
    for (uint32_t g = 0; g < f->count; g++) {
        const char *before = g > 0 ? " " : "";
        FOLD_EACH (i, f, &f->groups[g]) {
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%u", before, i);
            before = ",";
        }
    }
    return text;
}

static void check_some(bool clumsy) {
    static const uint32_t colours[] = {5, 6, 5, 9, 6, 5};
    uint64_t compared = 0;
    struct beads b = {.colours = colours, .clumsy = clumsy, .compared = &compared};
    struct fold f = fold_beads(&b, 6);
    CHECK_STR(words(&f), "0,2,5 1,4 3");
    CHECK_EQ(f.count, 3);
    CHECK_EQ(f.groups[0].count, 3);
    CHECK_EQ(f.groups[0].last, 5);
    CHECK_EQ(f.groups[2].count, 1);
    fold_fini(&f);
}

static void test_order(void) {
    check_some(false);
    check_some(true); /* what has the same hash need not be the same */
}

static void test_few(void) {
    static const uint32_t colours[] = {5};
    uint64_t compared = 0;
    struct beads b = {.colours = colours, .compared = &compared};
    struct fold f = fold_beads(&b, 0);
    CHECK_STR(words(&f), "");
    fold_fini(&f);
    f = fold_beads(&b, 1);
    CHECK_STR(words(&f), "0");
    fold_fini(&f);
}

/* All in one group, each its own, and some of each: nobody is compared with all others. */
static void test_many(void) {
    enum { MANY = 65536 };
    static uint32_t colours[MANY];
    static const uint32_t kinds[] = {1, 3, 1000, MANY};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint64_t compared = 0, count = 0;
        struct beads b = {.colours = colours, .compared = &compared};
        for (uint32_t i = 0; i < MANY; i++)
            colours[i] = i % kinds[k];
        struct fold f = fold_beads(&b, MANY);
        CHECK_EQ(f.count, kinds[k]);
        CHECK_EQ(compared, MANY - kinds[k]);
        for (uint32_t g = 0; g < f.count; g++)
            FOLD_EACH (i, &f, &f.groups[g])
                count += colours[i] == g;
        CHECK_EQ(count, MANY);
        fold_fini(&f);
    }
}

int main(void) {
    TEST(test_order);
    TEST(test_few);
    TEST(test_many);
    return tap_finish();
}
