/* SPDX-License-Identifier: MIT */
/* Sizes of jobs: what is read, what is refused with which words, and every small triple against the
 * definition. */
#include "sched/size.h"

#include <errno.h>

#include "tap.h"

static char why[SIZE_WHY_MAX];

static bool is(const struct size *s, uint32_t nodes, uint32_t ppn, uint32_t procs) {
    bool same = s->nodes == nodes && s->ppn == ppn && s->procs == procs;
    if (!same)
        printf("# is %u:%u:%u\n", s->nodes, s->ppn, s->procs);
    return same;
}

static bool reads(const char *text, uint32_t nodes, uint32_t ppn, uint32_t procs) {
    struct size s;
    return size_parse(text, &s, why, sizeof why) == 0 && is(&s, nodes, ppn, procs);
}

static bool refuses(const char *text, int error, const char *reason) {
    struct size s = {7, 7, 7};
    return CHECK_EQ(size_parse(text, &s, why, sizeof why), error) && CHECK_STR(why, reason) &&
           CHECK(is(&s, 7, 7, 7));
}

static void test_parse(void) {
    CHECK(reads("32:4:128", 32, 4, 128));
    CHECK(reads("::32", 0, 0, 32));
    CHECK(reads("32:1", 32, 1, 0));
    CHECK(reads("32", 32, 0, 0));
    CHECK(reads("32::", 32, 0, 0));
    CHECK(reads(":4:", 0, 4, 0));
    CHECK(reads("8::9", 8, 0, 9));
    CHECK(reads("008:01", 8, 1, 0));
    CHECK(reads("1073741824", SIZE_PART_MAX, 0, 0));
}

static void test_parse_refuses(void) {
    refuses("", -EINVAL, "'' says no size (nodes:ppn:procs)");
    refuses("::", -EINVAL, "'::' says no size (nodes:ppn:procs)");
    refuses("1:2:2:4", -EINVAL, "'1:2:2:4' has more than three parts (nodes:ppn:procs)");
    refuses("0", -EINVAL, "nodes: '0' must be at least 1");
    refuses("4:0", -EINVAL, "processes per node: '0' must be at least 1");
    refuses("4:2:x", -EINVAL, "processes: 'x' is not a number");
    refuses("4:-2", -EINVAL, "processes per node: '-2' is not a number");
    refuses(" 4", -EINVAL, "nodes: ' 4' is not a number");
    refuses("4k:2", -EINVAL, "nodes: '4k' is not a number");
    refuses("\x1b[2J", -EINVAL, "nodes: '?[2J' is not a number");
    refuses("1073741825", -ERANGE, "nodes: '1073741825' is too large (at most 1073741824)");
    refuses("::99999999999999999999999", -ERANGE,
            "processes: '99999999999999999999999' is too large (at most 1073741824)");
}

/* The longest texts: the reason is whole, or cut at the room there is. */
static void test_long_reasons(void) {
    char text[400];
    struct size s;
    memset(text, 'y', sizeof text);
    text[sizeof text - 1] = '\0';
    CHECK_EQ(size_parse(text, &s, why, sizeof why), -EINVAL);
    CHECK_STR(why, "nodes: 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy...' is not a number");
    char small[8] = "zzzzzzz";
    CHECK_EQ(size_parse(text, &s, small, 6), -EINVAL);
    CHECK_STR(small, "nodes");
    CHECK_EQ(small[6], 'z');
    CHECK_EQ(size_parse(text, &s, NULL, 0), -EINVAL);
}

static void test_parts_and_merge(void) {
    struct size s = {0}, n, procs, triple;
    CHECK_EQ(size_parse_part("4", SIZE_NODES, &n, why, sizeof why), 0);
    CHECK_EQ(size_parse_part("9", SIZE_PROCS, &procs, why, sizeof why), 0);
    CHECK_EQ(size_merge(&s, &n, why, sizeof why), 0);
    CHECK_EQ(size_merge(&s, &procs, why, sizeof why), 0);
    CHECK(is(&s, 4, 0, 9));
    CHECK_EQ(size_merge(&s, &n, why, sizeof why), 0);
    CHECK_EQ(size_parse("4:3:10", &triple, why, sizeof why), 0);
    CHECK_EQ(size_merge(&s, &triple, why, sizeof why), -EINVAL);
    CHECK_STR(why, "processes given twice: 9 and 10");
    CHECK(is(&s, 4, 0, 9));
    CHECK_EQ(size_parse_part("4:2", SIZE_NODES, &n, why, sizeof why), -EINVAL);
    CHECK_STR(why, "nodes: '4:2' is not a number");
    CHECK_EQ(size_parse_part("", SIZE_PROCS, &n, why, sizeof why), -EINVAL);
    CHECK_STR(why, "processes: '' is not a number");
}

static bool becomes(const char *text, uint32_t nodes, uint32_t ppn, uint32_t procs) {
    struct size s;
    return CHECK_EQ(size_parse(text, &s, why, sizeof why), 0) &&
           CHECK_EQ(size_resolve(&s, 64, 4, 4, why, sizeof why), 0) && is(&s, nodes, ppn, procs);
}

static bool refused(const char *text, int error, const char *reason) {
    struct size s, before;
    CHECK_EQ(size_parse(text, &s, why, sizeof why), 0);
    before = s;
    return CHECK_EQ(size_resolve(&s, 64, 4, 4, why, sizeof why), error) && CHECK_STR(why, reason) &&
           CHECK(is(&s, before.nodes, before.ppn, before.procs));
}

static void test_resolve(void) {
    struct size none = {0};
    CHECK_EQ(size_resolve(&none, 64, 4, 4, why, sizeof why), 0);
    CHECK(is(&none, 1, 1, 1));
    CHECK(becomes("32:4:128", 32, 4, 128));
    CHECK(becomes("32", 32, 1, 32));
    CHECK(becomes("32:1", 32, 1, 32));
    CHECK(becomes("8:3", 8, 3, 24));
    CHECK(becomes(":3", 1, 3, 3));
    CHECK(becomes("::32", 8, 4, 32));
    CHECK(becomes("::3", 1, 3, 3));
    CHECK(becomes("::5", 2, 3, 5)); /* not 4 and 1: it holds no more processors than it uses */
    CHECK(becomes("4::5", 4, 2, 5));
    CHECK(becomes(":2:5", 3, 2, 5));
    CHECK(becomes("::256", 64, 4, 256));
}

static void test_resolve_refuses(void) {
    refused("4:2:9", -EINVAL, "4 nodes x 2 = 8 processes, not 9");
    refused("1:1:2", -EINVAL, "1 node x 1 = 1 process, not 2");
    refused("4::3", -EINVAL, "3 processes are too few for 4 nodes: each gets at least one");
    refused("2::1", -EINVAL, "1 process is too few for 2 nodes: each gets at least one");
    refused("::257", -E2BIG, "needs 257 processors; the cluster has 256");
    refused("65", -E2BIG, "needs 65 nodes; the cluster has 64");
    refused("2:5", -E2BIG, "needs 5 processors per node; the nodes have 4");
    refused(":1:65", -E2BIG, "needs 65 nodes; the cluster has 64");
    refused("1::300", -E2BIG, "needs 300 processors; the cluster has 256");
    refused("1073741824:1073741824", -E2BIG,
            "1073741824 nodes x 1073741824 = 1152921504606846976 processes: too large (at most "
            "1073741824)");
    refused("1073741824:1073741824:9", -EINVAL,
            "1073741824 nodes x 1073741824 = 1152921504606846976 processes, not 9");
    struct size s = {.procs = 128};
    CHECK_EQ(size_resolve(&s, 64, 1, 1, why, sizeof why), -E2BIG);
    CHECK_STR(why, "needs 128 processors; the cluster has 64");
    CHECK_EQ(size_resolve(&s, 0, 1, 1, why, sizeof why), -E2BIG);
    CHECK_STR(why, "needs 128 processors; the cluster has 0");
}

/* ---- every small triple ---- */

enum { TOP = 7, CLUSTER = 4, PES = 3 };

/* By search: the fewest nodes on which the processes fit with at most ppn on each. */
static uint32_t fewest(uint32_t procs, uint32_t ppn) {
    uint32_t n = 1;
    while (n * ppn < procs)
        n++;
    return n;
}

/* What the definition says: 0, or the error. */
static int expected(struct size *s) {
    if (s->nodes && s->ppn && s->procs && s->nodes * s->ppn != s->procs)
        return -EINVAL;
    if (!s->nodes && !s->procs)
        s->nodes = 1;
    if (!s->ppn && !s->procs)
        s->ppn = 1;
    if (!s->procs)
        s->procs = s->nodes * s->ppn;
    if (!s->nodes)
        s->nodes = fewest(s->procs, s->ppn ? s->ppn : PES);
    if (s->procs < s->nodes)
        return -EINVAL;
    s->ppn = 1;
    while (s->nodes * s->ppn < s->procs)
        s->ppn++;
    return s->nodes > CLUSTER || s->ppn > PES ? -E2BIG : 0;
}

static void test_every_small_triple(void) {
    unsigned whole = 0, wrong = 0, large = 0;
    for (uint32_t i = 0; i <= TOP * TOP * TOP * 4; i++) {
        struct size s = {i % TOP, i / TOP % TOP, i / TOP / TOP % (TOP * 4)};
        struct size model = s;
        int r = expected(&model);
        why[0] = '\0';
        if (!CHECK_EQ(size_resolve(&s, CLUSTER, PES, PES, why, sizeof why), r))
            printf("# for %u:%u:%u\n", i % TOP, i / TOP % TOP, i / TOP / TOP % (TOP * 4));
        if (r == 0)
            CHECK(is(&s, model.nodes, model.ppn, model.procs) && size_is_whole(&s));
        CHECK((r == 0) == (why[0] == '\0'));
        whole += r == 0, wrong += r == -EINVAL, large += r == -E2BIG;
    }
    CHECK(whole > 50 && wrong > 50 && large > 50);
}

static void test_is_whole(void) {
    CHECK(size_is_whole(&(struct size){2, 3, 5}));
    CHECK(!size_is_whole(&(struct size){0, 0, 0}));
    CHECK(!size_is_whole(&(struct size){2, 4, 5}));
    CHECK(!size_is_whole(&(struct size){2, 2, 5}));
    CHECK(!size_is_whole(&(struct size){3, 1, 2}));
    CHECK(!size_is_whole(&(struct size){1, UINT32_MAX, UINT32_MAX}));
}

/* Shares follow each other, none is empty, none differs by more than one, none passes ppn. */
static void test_shares(void) {
    for (uint32_t nodes = 1; nodes <= 9; nodes++)
        for (uint32_t procs = nodes; procs <= 40; procs++) {
            uint32_t next = 0;
            for (uint32_t k = 0; k < nodes; k++) {
                struct size_share at = size_share(nodes, procs, k);
                CHECK_EQ(at.first, next);
                CHECK(at.count == procs / nodes || at.count == procs / nodes + 1);
                CHECK(at.count <= (procs + nodes - 1) / nodes);
                for (uint32_t rank = at.first; rank < at.first + at.count; rank++)
                    CHECK_EQ(size_node_of(nodes, procs, rank), k);
                next += at.count;
            }
            CHECK_EQ(next, procs);
        }
    struct size_share last = size_share(SIZE_PART_MAX, SIZE_PART_MAX, SIZE_PART_MAX - 1);
    CHECK_EQ(last.first, SIZE_PART_MAX - 1);
    CHECK_EQ(size_node_of(3, SIZE_PART_MAX, SIZE_PART_MAX - 1), 2);
}

int main(void) {
    TEST(test_parse);
    TEST(test_parse_refuses);
    TEST(test_long_reasons);
    TEST(test_parts_and_merge);
    TEST(test_resolve);
    TEST(test_resolve_refuses);
    TEST(test_every_small_triple);
    TEST(test_is_whole);
    TEST(test_shares);
    return tap_finish();
}
