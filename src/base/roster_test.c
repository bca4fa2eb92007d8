/* SPDX-License-Identifier: MIT */
/*
 * Rosters: names and numbers both ways, what cannot be one, folding; and folded names read again.
 */
#include "base/roster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/random.h"
#include "base/text.h"
#include "tap.h"

enum { NODES = 64, TEXT_MAX = 4096 };

struct bench {
    uint64_t sets[2][NODES];
    struct nodeset taken, set;
    void *storage;
    struct roster roster;
};

static void setup(struct bench *b) {
    nodeset_init(&b->taken, NODES, b->sets[0]);
    nodeset_init(&b->set, NODES, b->sets[1]);
    b->storage = malloc(roster_bytes(NODES));
    memset(b->storage, 0xA5, roster_bytes(NODES)); /* nothing is expected of it */
    roster_init(&b->roster, "n", NODES, b->storage);
}

/* Names with commas between them, for the numbers from `first` on. */
static int fill_from(struct bench *b, uint32_t first, const char *list) {
    char names[TEXT_MAX];
    struct text t;
    text_init(&t, names, sizeof names);
    nodeset_clear(&b->taken);
    nodeset_add(&b->taken, first);
    for (const char *at = list; *at != '\0'; at++) {
        text_char(&t, *at == ',' ? '\0' : *at);
        if (*at == ',')
            nodeset_add(&b->taken, ++first);
    }
    text_char(&t, '\0');
    return roster_fill(&b->roster, &b->taken, bytes_of(names, t.len), NULL);
}

static const char *format(const struct bench *b, const struct nodeset *set) {
    static char text[TEXT_MAX];
    size_t len = roster_format(&b->roster, set, text, sizeof text);
    CHECK_EQ(strlen(text), len);
    return text;
}

static const char *name(const struct roster *r, uint32_t node) {
    static char text[ROSTER_NAME_MAX];
    size_t len = roster_name(r, node, text, sizeof text);
    CHECK_EQ(len, strlen(text));
    return text;
}

static void test_plain(void) {
    struct roster r = roster_plain("n", 10);
    uint64_t storage[16];
    struct nodeset set;
    char text[32], small[3];
    uint32_t node = 77;
    CHECK(roster_count(&r) == 10 && roster_taken(&r, 9) && !roster_taken(&r, 10));
    CHECK_STR(name(&r, 7), "n7");
    CHECK_STR(name(&r, 12), "n12");
    CHECK_EQ(roster_name(&r, 5, small, sizeof small), 2);
    CHECK(roster_find(&r, "n9", &node) && node == 9);
    static const char *const none[] = {"n10", "n", "n03", "m3", "n1x", "", "n99999999999999999999"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK(!roster_find(&r, none[i], &node));
    nodeset_init(&set, 10, storage);
    roster_all(&r, &set);
    CHECK_EQ(nodeset_count(&set), 10);
    CHECK_EQ(roster_format(&r, &set, text, sizeof text), 6);
    CHECK_STR(text, "n[0-9]");
    struct roster longer = roster_plain("a prefix that is far too long", 1);
    CHECK_EQ(strlen(longer.prefix), ROSTER_PREFIX_MAX - 1);
}

static void test_filled(void) {
    struct bench b;
    uint32_t node = 0;
    setup(&b);
    CHECK_EQ(fill_from(&b, 3, "gate,h0,h1"), 0);
    CHECK_EQ(roster_count(&b.roster), 3);
    CHECK(!roster_taken(&b.roster, 2) && roster_taken(&b.roster, 3) && roster_taken(&b.roster, 5));
    CHECK(!roster_taken(&b.roster, 6) && !roster_taken(&b.roster, NODES));
    CHECK_STR(name(&b.roster, 4), "h0");
    CHECK_STR(name(&b.roster, 2), "n2"); /* vacant */
    CHECK(roster_find(&b.roster, "gate", &node) && node == 3);
    CHECK(roster_find(&b.roster, "h1", &node) && node == 5);
    CHECK(!roster_find(&b.roster, "n2", &node) && !roster_find(&b.roster, "h", &node));
    roster_all(&b.roster, &b.set);
    CHECK(nodeset_equal(&b.set, &b.taken));
    CHECK_EQ(fill_from(&b, 0, "x"), 0); /* and no others */
    CHECK(roster_count(&b.roster) == 1 && !roster_find(&b.roster, "gate", &node));
    CHECK_EQ(roster_fill(&b.roster, &b.taken, (struct bytes){0}, NULL), 0);
    CHECK_STR(name(&b.roster, 0), "n0");
    nodeset_clear(&b.taken);
    CHECK_EQ(roster_fill(&b.roster, &b.taken, (struct bytes){0}, NULL), 0);
    CHECK_EQ(roster_count(&b.roster), 0);
    CHECK_STR(format(&b, &b.taken), "");
    free(b.storage);
}

static void test_refused(void) {
    char many[2 * ROSTER_NAME_MAX];
    struct bench b;
    uint32_t bad = 0, node;
    setup(&b);
    static const struct {
        const char *list;
        int error;
    } wrong[] = {{"a,b,a", -EEXIST}, {"a,-b", -EINVAL}, {"a,b c", -EINVAL},
                 {"a,", -EINVAL},    {"a,[b", -EINVAL}, {"", -EINVAL}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_EQ(fill_from(&b, 0, "before"), 0);
        CHECK_EQ(fill_from(&b, 0, wrong[i].list), wrong[i].error);
        CHECK(roster_count(&b.roster) == 0 && !roster_find(&b.roster, "before", &node));
    }
    CHECK_EQ(fill_from(&b, 7, "a,b"), 0);
    CHECK_EQ(roster_fill(&b.roster, &b.taken, bytes_of("a\0b\0c", 6), NULL), -EINVAL); /* more */
    CHECK_EQ(roster_fill(&b.roster, &b.taken, bytes_of("a", 2), &bad), -EINVAL);       /* fewer */
    CHECK_EQ(bad, 8);
    CHECK_EQ(roster_fill(&b.roster, &b.taken, bytes_of("a\0b", 3), NULL), -EINVAL); /* no NUL */
    memset(many, 'a', sizeof many);
    many[ROSTER_NAME_MAX] = '\0';
    CHECK_EQ(fill_from(&b, 0, many), -EINVAL);
    many[ROSTER_NAME_MAX - 1] = '\0';
    CHECK_EQ(fill_from(&b, 0, many), 0);
    CHECK_STR(name(&b.roster, 0), many);
    struct roster few;
    roster_init(&few, "n", 4, b.storage);
    CHECK_EQ(roster_fill(&few, &b.taken, (struct bytes){0}, NULL), 0);
    nodeset_add(&b.taken, 4);
    CHECK_EQ(roster_fill(&few, &b.taken, (struct bytes){0}, &bad), -ERANGE);
    CHECK_EQ(bad, 4);
    free(b.storage);
}

/* All names may be as long as they like, but not all of them. */
static void test_room(void) {
    static char names[NODES * ROSTER_NAME_MAX];
    struct bench b;
    struct text t;
    setup(&b);
    text_init(&t, names, sizeof names);
    for (unsigned i = 0; i < NODES; i++) {
        for (unsigned k = 0; k < ROSTER_NAME_ROOM; k++)
            text_char(&t, 'x');
        text_u64_pad(&t, i, 2);
        text_char(&t, '\0');
    }
    nodeset_clear(&b.taken);
    nodeset_add_range(&b.taken, 0, NODES - 1);
    CHECK_EQ(roster_fill(&b.roster, &b.taken, bytes_of(names, t.len), NULL), -ENOBUFS);
    free(b.storage);
}

static void test_copy(void) {
    struct bench a, b;
    setup(&a);
    setup(&b);
    CHECK_EQ(fill_from(&a, 0, "x,y,z"), 0);
    roster_copy(&b.roster, &a.roster);
    CHECK(roster_count(&b.roster) == 3 && roster_same(&a.roster, &b.roster, 2));
    CHECK_STR(name(&b.roster, 1), "y");
    CHECK_EQ(fill_from(&a, 1, "y,other"), 0);
    CHECK(!roster_same(&a.roster, &b.roster, 0) && roster_same(&a.roster, &b.roster, 1));
    CHECK(!roster_same(&a.roster, &b.roster, 2) && !roster_same(&a.roster, &b.roster, 3));
    struct roster plain = roster_plain("m", NODES);
    roster_copy(&b.roster, &plain);
    CHECK_EQ(roster_count(&b.roster), NODES);
    CHECK_STR(name(&b.roster, 1), "m1");
    free(a.storage);
    free(b.storage);
}

static void test_fold(void) {
    static const struct {
        const char *list, *folded;
    } cases[] = {
        {"h0,h1,h2,gate", "h[0-2],gate"},
        {"gate,h0,h1", "gate,h[0-1]"},
        {"h0", "h0"},
        {"h3,h5,h6,h9", "h[3,5-6,9]"},
        {"h08,h09,h10,h11", "h[08-11]"},
        {"h8,h9,h10,h11", "h[8-11]"},
        {"h9,h010,h011", "h[9,010-011]"},
        {"h099,h100", "h[099-100]"},
        {"r1n1,r1n2,r2n1,r2n2", "r1n[1-2],r2n[1-2]"},
        {"r1n1,r2n1,r2n2", "r[1-2]n1,r2n2"},
        {"a1.x,a2.x,a3.y", "a[1-2].x,a3.y"},
        {"10.0.0.9,10.0.0.10", "10.0.0.[9-10]"},
        {"h2,h1,h0", "h[2,1,0]"},
        {"a,b,c", "a,b,c"},
        {"n1,n1x,n2", "n1,n1x,n2"},
        {"h1,h99999999999999999999", "h1,h99999999999999999999"},
    };
    struct bench b;
    setup(&b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_EQ(fill_from(&b, 5, cases[i].list), 0);
        CHECK_STR(format(&b, &b.taken), cases[i].folded);
    }
    char text[8];
    CHECK_EQ(fill_from(&b, 0, "h0,h1,h2,gate"), 0);
    CHECK_EQ(roster_format(&b.roster, &b.taken, text, sizeof text), strlen("h[0-2],gate"));
    CHECK_STR(text, "h[0-2],");
    nodeset_clear(&b.set);
    nodeset_add(&b.set, 1);
    nodeset_add(&b.set, 7); /* nobody has it */
    CHECK_STR(format(&b, &b.set), "h1,n7");
    free(b.storage);
}

/* Whatever is drawn: a folded list, expanded, names the members. */
static void check_round(struct bench *b, struct random *random) {
    struct hostlist it;
    char one[HOSTLIST_NAME_MAX + 1];
    uint32_t node;
    nodeset_clear(&b->set);
    NODESET_EACH (n, &b->taken)
        if (random_below(random, 3) > 0)
            nodeset_add(&b->set, n);
    CHECK_EQ(hostlist_init(&it, format(b, &b->set)), 0);
    while (hostlist_next(&it, one, sizeof one) > 0) {
        CHECK(roster_find(&b->roster, one, &node) && nodeset_has(&b->set, node));
        nodeset_remove(&b->set, node);
    }
    CHECK(nodeset_empty(&b->set));
}

static void test_random(void) {
    struct random random;
    struct bench b;
    char list[TEXT_MAX];
    setup(&b);
    random_init(&random, 42);
    for (int round = 0; round < 300; round++) {
        struct text t;
        uint32_t count = (uint32_t)random_between(&random, 1, 30);
        text_init(&t, list, sizeof list);
        for (uint32_t i = 0; i < count; i++) {
            text_str(&t, i > 0 ? "," : "");
            text_str(&t, random_below(&random, 5) == 0 ? "g" : "h");
            text_u64_pad(&t, random_below(&random, 120), (unsigned)random_between(&random, 1, 3));
            text_str(&t, random_below(&random, 4) == 0 ? "-1" : "");
        }
        if (fill_from(&b, 0, list) == 0) /* else a name is there twice */
            check_round(&b, &random);
    }
    free(b.storage);
}

int main(void) {
    TEST(test_plain);
    TEST(test_filled);
    TEST(test_refused);
    TEST(test_room);
    TEST(test_copy);
    TEST(test_fold);
    TEST(test_random);
    return tap_finish();
}
