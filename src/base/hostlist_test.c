/* SPDX-License-Identifier: MIT */
/*
 * Host lists: expanding, refusing with a place and a reason, folding, and both against each other.
 */
#include "base/hostlist.h"

#include <errno.h>

#include "base/hash.h"
#include "base/random.h"
#include "base/text.h"
#include "tap.h"

#define NAMES 1000

struct names {
    uint32_t n;
    char text[NAMES][HOSTLIST_NAME_MAX + 1];
    const char *at[NAMES];
};

static uint64_t scratch[40000];

/* All names with spaces between, or the reason why not. */
static const char *expand(const char *list) {
    static char all[4096];
    char name[HOSTLIST_NAME_MAX + 1];
    const char *reason = NULL;
    uint32_t count = 0, seen = 0;
    struct hostlist it;
    if (hostlist_check(list, &count, NULL, &reason) < 0)
        return reason;
    if (hostlist_init(&it, list) != 0)
        return "init failed";
    struct text t;
    text_init(&t, all, sizeof all);
    int r;
    while ((r = hostlist_next(&it, name, sizeof name)) > 0) {
        if (seen++ > 0)
            text_char(&t, ' ');
        text_str(&t, name);
    }
    return r < 0 ? "next failed" : seen != count ? "wrong count" : all;
}

static void test_expand(void) {
    CHECK_STR(expand(""), "");
    CHECK_STR(expand("x"), "x");
    CHECK_STR(expand("a,b,c"), "a b c");
    CHECK_STR(expand("db-primary,x,node7-ib,10.0.0.1"), "db-primary x node7-ib 10.0.0.1");
    CHECK_STR(expand("n[0-3]"), "n0 n1 n2 n3");
    CHECK_STR(expand("n[7],n[3-3]"), "n7 n3");
    CHECK_STR(expand("n[0-1,5,8-9]x,y"), "n0x n1x n5x n8x n9x y");
    CHECK_STR(expand("n[098-101,200]"), "n098 n099 n100 n101 n200");
    CHECK_STR(expand("n[8-11]"), "n8 n9 n10 n11");
    CHECK_STR(expand("n[08-11]"), "n08 n09 n10 n11");
    CHECK_STR(expand("n[00-1]"), "n00 n01");
    CHECK_STR(expand("rack[1-2]n[0-2]"), "rack1n0 rack1n1 rack1n2 rack2n0 rack2n1 rack2n2");
    CHECK_STR(expand("[1-2][3,5]"), "13 15 23 25");
    CHECK_STR(expand("a[1-2]b[1]c[3,4]d,e"), "a1b1c3d a1b1c4d a2b1c3d a2b1c4d e");
    CHECK_STR(expand("n2,n1,n2"), "n2 n1 n2");
    CHECK_STR(expand("fe80::1%eth0,me@host"), "fe80::1%eth0 me@host");
    CHECK_STR(expand("n[999999999999999998-999999999999999999]"),
              "n999999999999999998 n999999999999999999");
}

static bool refuses(const char *list, int error, size_t where, const char *reason) {
    size_t at = 999;
    const char *why = NULL;
    uint32_t count = 77;
    struct hostlist it;
    return CHECK_EQ(hostlist_check(list, &count, &at, &why), error) && CHECK_EQ(at, where) &&
           CHECK_STR(why, reason) && CHECK_EQ(count, 77) &&
           CHECK_EQ(hostlist_init(&it, list), error);
}

static void test_refusals(void) {
    CHECK(refuses("n[1-3", -EINVAL, 5, "unclosed bracket"));
    CHECK(refuses("n[", -EINVAL, 2, "unclosed bracket"));
    CHECK(refuses("n[1-", -EINVAL, 4, "unclosed bracket"));
    CHECK(refuses("n[1,", -EINVAL, 4, "unclosed bracket"));
    CHECK(refuses("n[3-1]", -EINVAL, 4, "range runs backwards"));
    CHECK(refuses("n[]", -EINVAL, 2, "number expected"));
    CHECK(refuses("n[a]", -EINVAL, 2, "number expected"));
    CHECK(refuses("n[1-]", -EINVAL, 4, "number expected"));
    CHECK(refuses("n[1,,2]", -EINVAL, 4, "number expected"));
    CHECK(refuses("n[1-2-3]", -EINVAL, 5, "comma or closing bracket expected"));
    CHECK(refuses("n[1[2]]", -EINVAL, 3, "comma or closing bracket expected"));
    CHECK(refuses("n1]", -EINVAL, 2, "bracket was not opened"));
    CHECK(refuses("n[1-003]", -EINVAL, 4, "both ends of a range need the same padding"));
    CHECK(refuses("a,,b", -EINVAL, 2, "empty host name"));
    CHECK(refuses(",a", -EINVAL, 0, "empty host name"));
    CHECK(refuses("a,", -EINVAL, 2, "empty host name"));
    CHECK(refuses("a b", -EINVAL, 1, "character not allowed in a host name"));
    CHECK(refuses("a,b;c", -EINVAL, 3, "character not allowed in a host name"));
    CHECK(refuses("a,-oX", -EINVAL, 2, "host name begins with a dash"));
    CHECK(refuses("n[1234567890123456789]", -ERANGE, 2, "number too large"));
    CHECK(refuses("[1][1][1][1][1][1][1][1][1]", -EINVAL, 24, "too many brackets in one name"));
}

static void test_limits(void) {
    uint32_t count = 0;
    CHECK_EQ(hostlist_check("n[1-1000000]", &count, NULL, NULL), 0);
    CHECK_EQ(count, 1000000);
    CHECK_EQ(hostlist_check("r[1-1000]n[1-1000]", &count, NULL, NULL), 0);
    CHECK(refuses("n[0-1000000]", -E2BIG, 2, "too many hosts"));
    CHECK(refuses("n[1-1000000],x", -E2BIG, 13, "too many hosts"));
    CHECK(refuses("r[1-1000]n[0-1000]", -E2BIG, 10, "too many hosts"));
    CHECK(refuses("[0-999999][0-999999][0-999999][0-999999]", -E2BIG, 10, "too many hosts"));
    CHECK(refuses("n[0-999999999999999999]", -E2BIG, 2, "too many hosts"));
    CHECK(refuses("n[1,5-1000004]", -E2BIG, 4, "too many hosts"));
    char name[HOSTLIST_NAME_MAX + 4];
    memset(name, 'x', sizeof name);
    name[HOSTLIST_NAME_MAX] = '\0';
    CHECK_EQ(hostlist_check(name, &count, NULL, NULL), 0);
    name[HOSTLIST_NAME_MAX] = 'x';
    name[HOSTLIST_NAME_MAX + 1] = '\0';
    CHECK(refuses(name, -ENAMETOOLONG, HOSTLIST_NAME_MAX, "host name too long"));
    memset(name, 'x', sizeof name);
    memcpy(name + HOSTLIST_NAME_MAX - 2, "[99]", 5); /* fits; but not with 100 */
    CHECK_EQ(hostlist_check(name, &count, NULL, NULL), 0);
}

static void test_small_buffer(void) {
    struct hostlist it;
    char name[8];
    CHECK_EQ(hostlist_init(&it, "n[9-10],x"), 0);
    CHECK_EQ(hostlist_next(&it, name, 3), 1);
    CHECK_STR(name, "n9");
    CHECK_EQ(hostlist_next(&it, name, 3), -ENOSPC);
    CHECK_EQ(hostlist_next(&it, name, 4), 1);
    CHECK_STR(name, "n10");
    CHECK_EQ(hostlist_next(&it, name, 2), 1);
    CHECK_STR(name, "x");
    CHECK_EQ(hostlist_next(&it, name, 2), 0);
    CHECK_EQ(hostlist_next(&it, name, 2), 0);
}

static void test_nth(void) {
    const char *list = "a,n[08-11,40],r[1-2]n[0-2],z";
    struct hostlist it;
    char name[32], nth[32];
    CHECK_EQ(hostlist_init(&it, list), 0);
    uint32_t n = 0;
    for (; hostlist_next(&it, name, sizeof name) > 0; n++) {
        CHECK_EQ(hostlist_nth(list, n, nth, sizeof nth), 0);
        CHECK_STR(nth, name);
    }
    CHECK_EQ(n, 13);
    CHECK_EQ(hostlist_nth(list, n, nth, sizeof nth), -ENOENT);
    CHECK_EQ(hostlist_nth("", 0, nth, sizeof nth), -ENOENT);
    CHECK_EQ(hostlist_nth("n[1-1000000]", 999999, nth, sizeof nth), 0);
    CHECK_STR(nth, "n1000000");
    CHECK_EQ(hostlist_nth("n[1-1000000]", 1000000, nth, sizeof nth), -ENOENT);
    CHECK_EQ(hostlist_nth("n[1", 0, nth, sizeof nth), -EINVAL);
    CHECK_EQ(hostlist_nth("n10", 0, nth, 3), -ENOSPC);
}

/* ---- folding ---- */

static void names_add(struct names *names, const char *name) {
    size_t len = strlen(name);
    memcpy(names->text[names->n], name, len + 1);
    names->at[names->n] = names->text[names->n];
    names->n++;
}

static void names_expand(struct names *names, const char *list) {
    struct hostlist it;
    char name[HOSTLIST_NAME_MAX + 1];
    names->n = 0;
    CHECK_EQ(hostlist_init(&it, list), 0);
    while (names->n < NAMES && hostlist_next(&it, name, sizeof name) > 0)
        names_add(names, name);
}

/* The folding of what the list expands to. */
static const char *refold(const char *list) {
    static char folded[8192];
    static struct names names;
    size_t len = 0;
    names_expand(&names, list);
    size_t need = hostlist_fold_bytes(names.at, names.n);
    if (!CHECK(need <= sizeof scratch))
        return NULL;
    memset(scratch, 0xA5, sizeof scratch); /* what is there must not matter */
    int e = hostlist_fold(names.at, names.n, scratch, need, folded, sizeof folded, &len, NULL);
    return e < 0 || len != strlen(folded) ? NULL : folded;
}

static void test_fold(void) {
    CHECK_STR(refold(""), "");
    CHECK_STR(refold("x"), "x");
    CHECK_STR(refold("n5"), "n5");
    CHECK_STR(refold("n3,n1,n2,n7"), "n[1-3,7]");
    CHECK_STR(refold("n10,n9,n8,n11"), "n[8-11]");
    CHECK_STR(refold("n[001-128,200]"), "n[001-128,200]");
    CHECK_STR(refold("n08,n09,n10,n7"), "n[7,08-10]");
    CHECK_STR(refold("n1,n01,n001"), "n[1,01,001]");
    CHECK_STR(refold("a,b,c"), "a,b,c");
    CHECK_STR(refold("db-primary,x,node7-ib,10.0.0.1"), "db-primary,x,node7-ib,10.0.0.1");
    CHECK_STR(refold("node9-ib,x,node7-ib,node8-ib"), "node[7-9]-ib,x");
    CHECK_STR(refold("10.0.0.[1-20]"), "10.0.0.[1-20]");
    CHECK_STR(refold("n[5-9]-ib0"), "n[5-9]-ib0");
    CHECK_STR(refold("rack[1-2]n[0-3]"), "rack1n[0-3],rack2n[0-3]");
    CHECK_STR(refold("rack[1-4]n[0-1]"), "rack[1-4]n0,rack[1-4]n1");
    CHECK_STR(refold("rack[1-2]n[1-2]"), "rack1n[1-2],rack2n[1-2]");
    CHECK_STR(refold("b1,a1,b2,a2,c"), "b[1-2],a[1-2],c");
    CHECK_STR(refold("n1,n1,n2"), "n[1,1-2]");
    CHECK_STR(refold("[1-3]"), "[1-3]");
    CHECK_STR(refold("n1,n12345678901234567890,n2"), "n[1-2],n12345678901234567890");
}

static int fold_error(const char *const *names, uint32_t n, uint32_t *ret_bad) {
    char buf[64];
    size_t len = 42;
    int e = hostlist_fold(names, n, scratch, sizeof scratch, buf, sizeof buf, &len, ret_bad);
    return len == 42 ? e : 1;
}

static void test_fold_refuses(void) {
    uint32_t bad = 99;
    CHECK_EQ(fold_error((const char *[]){"a", "b,c"}, 2, &bad), -EINVAL);
    CHECK_EQ(bad, 1);
    CHECK_EQ(fold_error((const char *[]){"n[1]", "b"}, 2, &bad), -EINVAL);
    CHECK_EQ(bad, 0);
    CHECK_EQ(fold_error((const char *[]){"a", "b", ""}, 3, &bad), -EINVAL);
    CHECK_EQ(bad, 2);
    CHECK_EQ(fold_error((const char *[]){"-x"}, 1, NULL), -EINVAL);
    char name[HOSTLIST_NAME_MAX + 2];
    memset(name, '1', sizeof name);
    name[sizeof name - 1] = '\0';
    CHECK_EQ(fold_error((const char *[]){name}, 1, &bad), -ENAMETOOLONG);
    CHECK_EQ(fold_error(NULL, HOSTLIST_HOSTS_MAX + 1, &bad), -E2BIG);
}

static void test_fold_cuts(void) {
    const char *names[] = {"n1", "n2", "x"};
    char buf[8];
    size_t len = 0;
    CHECK_EQ(hostlist_fold(names, 3, scratch, sizeof scratch, buf, sizeof buf, &len, NULL), 0);
    CHECK_EQ(len, strlen("n[1-2],x"));
    CHECK_STR(buf, "n[1-2],");
    CHECK_EQ(hostlist_fold(names, 3, scratch, sizeof scratch, NULL, 0, &len, NULL), 0);
    CHECK_EQ(len, strlen("n[1-2],x"));
}

/* ---- folding and expanding against each other ---- */

static void random_name(struct random *r, char *name) {
    static const char *const parts[] = {"n", "rack", "-ib", ".", "x-"};
    struct text t;
    text_init(&t, name, HOSTLIST_NAME_MAX + 1);
    text_str(&t, parts[random_below(r, 2)]);
    uint64_t numbers = random_below(r, 4);
    for (uint64_t i = 0; i < numbers; i++) {
        uint64_t value = random_below(r, 12);
        text_u64_pad(&t, value, (unsigned)random_between(r, 1, random_chance(r, 1, 4) ? 3 : 1));
        if (i + 1 < numbers || random_chance(r, 1, 3))
            text_str(&t, parts[random_below(r, 5)]);
    }
}

/* Adding up hashes: the same for the same names in any order. */
static uint64_t names_sum(const struct names *names) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < names->n; i++)
        sum += hash_once(names->at[i], strlen(names->at[i]));
    return sum;
}

static void test_random_round_trips(void) {
    static struct names before, after;
    static char folded[NAMES * 20];
    struct random r;
    random_init(&r, 11);
    for (int i = 0; i < 3000; i++) {
        uint64_t count = random_between(&r, 0, random_chance(&r, 1, 20) ? NAMES : 30);
        for (before.n = 0; before.n < count;) {
            char name[HOSTLIST_NAME_MAX + 1];
            random_name(&r, name);
            names_add(&before, name);
        }
        size_t len = 0, need = hostlist_fold_bytes(before.at, before.n);
        CHECK(need <= sizeof scratch);
        CHECK_EQ(
            hostlist_fold(before.at, before.n, scratch, need, folded, sizeof folded, &len, NULL),
            0);
        CHECK_EQ(len, strlen(folded));
        names_expand(&after, folded);
        if (!CHECK(after.n == before.n && names_sum(&after) == names_sum(&before))) {
            printf("# %s\n", folded);
            return;
        }
    }
}

/* Next to nothing in common, and it must not take quadratic time. */
static void test_many_irregular_names(void) {
    enum { MANY = 100000, ROOM = 24 };
    static char text[MANY][ROOM], folded[MANY * ROOM];
    static const char *names[MANY];
    static uint64_t memory[2000000];
    struct random r;
    random_init(&r, 12);
    size_t total = MANY - 1;
    for (uint32_t i = 0; i < MANY; i++) {
        struct text t;
        text_init(&t, text[i], ROOM);
        text_char(&t, 'h');
        text_hex64(&t, random_u64(&r));
        names[i] = text[i];
        total += t.len;
    }
    size_t len = 0, need = hostlist_fold_bytes(names, MANY);
    if (!CHECK(need <= sizeof memory))
        return;
    CHECK_EQ(hostlist_fold(names, MANY, memory, need, folded, sizeof folded, &len, NULL), 0);
    CHECK(len <= total && len > total - total / 1000); /* chance joins a few */
    uint32_t count = 0;
    CHECK_EQ(hostlist_check(folded, &count, NULL, NULL), 0);
    CHECK_EQ(count, MANY);
}

int main(void) {
    TEST(test_expand);
    TEST(test_refusals);
    TEST(test_limits);
    TEST(test_small_buffer);
    TEST(test_nth);
    TEST(test_fold);
    TEST(test_fold_refuses);
    TEST(test_fold_cuts);
    TEST(test_random_round_trips);
    TEST(test_many_irregular_names);
    return tap_finish();
}
