/* SPDX-License-Identifier: MIT */
/*
 * Node sets against a plain array of bools.
 *
 * The random test draws the shape of each operation too (single nodes, short and long runs, combs),
 * so that sets wander between runs and bitmaps; it fails if a universe was not seen in both modes.
 */
#include "base/nodeset.h"

#include <errno.h>

#include "base/random.h"
#include "tap.h"

#define MAX  4096
#define SETS 4

struct model {
    bool in[MAX];
};

struct pair {
    struct nodeset set;
    struct model model;
    uint64_t storage[MAX / 64 + 2];
};

static void pair_init(struct pair *p, uint32_t universe) {
    memset(p, 0, sizeof *p);
    memset(p->storage, 0xA5, sizeof p->storage); /* init must not rely on what is there */
    nodeset_init(&p->set, universe, p->storage);
}

static bool storage_respected(const struct pair *p) {
    size_t words = nodeset_bytes(p->set.universe) / 8;
    return p->storage[words] == 0xA5A5A5A5A5A5A5A5;
}

static uint32_t model_count(const struct model *m, uint32_t universe) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < universe; i++)
        count += m->in[i];
    return count;
}

static uint32_t model_runs(const struct model *m, uint32_t universe) {
    uint32_t runs = 0;
    for (uint32_t i = 0; i < universe; i++)
        runs += m->in[i] && (i == 0 || !m->in[i - 1]);
    return runs;
}

static uint32_t model_next(const struct model *m, uint32_t universe, uint32_t from) {
    for (uint32_t i = from; i < universe; i++)
        if (m->in[i])
            return i;
    return NODESET_NONE;
}

static bool same_members(const struct pair *p) {
    uint32_t universe = p->set.universe;
    uint32_t expected = model_next(&p->model, universe, 0);
    uint32_t last = NODESET_NONE;
    NODESET_EACH (n, &p->set) {
        if (n != expected)
            return false;
        last = n;
        expected = model_next(&p->model, universe, n + 1);
    }
    return expected == NODESET_NONE && nodeset_last(&p->set) == last;
}

static bool same_ranges(const struct pair *p) {
    uint32_t universe = p->set.universe, runs = 0, from = 0;
    struct noderange range;
    while (nodeset_next_range(&p->set, from, &range)) {
        if (range.first != model_next(&p->model, universe, from))
            return false;
        for (uint32_t i = range.first; i <= range.last; i++)
            if (!p->model.in[i])
                return false;
        if (range.last + 1 < universe && p->model.in[range.last + 1])
            return false;
        from = range.last + 1;
        runs++;
    }
    return runs == model_runs(&p->model, universe) && runs == nodeset_range_count(&p->set) &&
           model_next(&p->model, universe, from) == NODESET_NONE;
}

/* The promises of the header about the representation itself. */
static bool canonical(const struct pair *p) {
    const struct nodeset *s = &p->set;
    if (s->bitmap)
        return s->universe % 64 == 0 || p->storage[s->universe / 64] >> s->universe % 64 == 0;
    uint32_t previous = 0;
    for (uint32_t i = 0; i < s->ranges; i++) {
        uint32_t first = (uint32_t)(p->storage[i] >> 32), last = (uint32_t)p->storage[i];
        if (first > last || last >= s->universe || (i > 0 && first <= previous + 1))
            return false;
        previous = last;
    }
    return s->ranges <= NODESET_RUNS_MAX;
}

static bool agrees(const struct pair *p) {
    return nodeset_count(&p->set) == model_count(&p->model, p->set.universe) && same_members(p) &&
           same_ranges(p) && canonical(p) && storage_respected(p);
}

/* ---- random operations, the same on set and model ---- */

static void fill(struct pair *p, uint32_t first, uint32_t last, bool value) {
    if (value)
        nodeset_add_range(&p->set, first, last);
    else
        nodeset_remove_range(&p->set, first, last);
    for (uint32_t i = first; i <= last; i++)
        p->model.in[i] = value;
}

static void fill_random(struct pair *p, struct random *r, uint32_t len_max, bool value) {
    uint32_t first = (uint32_t)random_below(r, p->set.universe);
    uint32_t len = (uint32_t)random_between(r, 1, len_max);
    uint32_t last = len > p->set.universe - first ? p->set.universe - 1 : first + len - 1;
    fill(p, first, last, value);
}

/* Every step-th node of a stretch: many runs at once. */
static void comb(struct pair *p, struct random *r, bool value) {
    uint32_t step = (uint32_t)random_between(r, 2, 5);
    uint32_t teeth = (uint32_t)random_between(r, 1, 100);
    uint32_t n = (uint32_t)random_below(r, p->set.universe);
    for (; teeth > 0 && n < p->set.universe; teeth--, n += step) {
        if (value)
            nodeset_add(&p->set, n);
        else
            nodeset_remove(&p->set, n);
        p->model.in[n] = value;
    }
}

static void combine(struct pair *dst, const struct pair *src, unsigned how) {
    switch (how) {
    case 0:
        nodeset_unite(&dst->set, &src->set);
        break;
    case 1:
        nodeset_intersect(&dst->set, &src->set);
        break;
    case 2:
        nodeset_subtract(&dst->set, &src->set);
        break;
    default:
        nodeset_copy(&dst->set, &src->set);
    }
    struct model before = src->model; /* dst and src may be one */
    for (uint32_t i = 0; i < dst->set.universe; i++) {
        bool d = dst->model.in[i], s = before.in[i];
        dst->model.in[i] = how == 0 ? d || s : how == 1 ? d && s : how == 2 ? d && !s : s;
    }
}

static void meet(struct pair *dst, const struct pair *a, const struct pair *b) {
    nodeset_and(&dst->set, &a->set, &b->set);
    for (uint32_t i = 0; i < dst->set.universe; i++)
        dst->model.in[i] = a->model.in[i] && b->model.in[i];
}

static void clear(struct pair *p) {
    nodeset_clear(&p->set);
    memset(&p->model, 0, sizeof p->model);
}

/* Changes one of the sets and returns it. */
static struct pair *step(struct pair *pairs, struct random *r) {
    uint32_t which = (uint32_t)random_below(r, SETS);
    struct pair *dst = &pairs[which];
    struct pair *src = &pairs[random_below(r, SETS)];
    uint32_t universe = dst->set.universe;
    bool value = random_chance(r, 1, 2);
    switch (random_below(r, 12)) {
    case 0:
    case 1:
        fill_random(dst, r, 1, value);
        break;
    case 2:
    case 3:
        fill_random(dst, r, 12, value);
        break;
    case 4:
        fill_random(dst, r, universe, value);
        break;
    case 5:
    case 6:
        comb(dst, r, value);
        break;
    case 7:
        if (random_chance(r, 1, 8))
            clear(dst);
        break;
    case 8:
        meet(dst, &pairs[(which + 1) % SETS], &pairs[(which + 2) % SETS]);
        break;
    default:
        combine(dst, src, (unsigned)random_below(r, 4));
    }
    return dst;
}

static bool questions_agree(const struct pair *a, const struct pair *b) {
    bool equal = true, intersects = false, covers = true;
    for (uint32_t i = 0; i < a->set.universe; i++) {
        equal = equal && a->model.in[i] == b->model.in[i];
        intersects = intersects || (a->model.in[i] && b->model.in[i]);
        covers = covers && (a->model.in[i] || !b->model.in[i]);
    }
    return nodeset_equal(&a->set, &b->set) == equal &&
           nodeset_intersects(&a->set, &b->set) == intersects &&
           nodeset_covers(&a->set, &b->set) == covers;
}

static bool points_agree(const struct pair *p, struct random *r) {
    uint32_t universe = p->set.universe;
    uint32_t n = (uint32_t)random_below(r, universe + 2);
    bool has = n < universe && p->model.in[n];
    uint32_t next = n < universe ? model_next(&p->model, universe, n + 1) : NODESET_NONE;
    return nodeset_has(&p->set, n) == has && (nodeset_word(&p->set, n / 64) >> n % 64 & 1) == has &&
           nodeset_next(&p->set, n) == next &&
           nodeset_empty(&p->set) == (model_next(&p->model, universe, 0) == NODESET_NONE);
}

/* Text and back, through a buffer that may be too small. */
static bool round_trips(const struct pair *p, struct random *r) {
    static char text[8 * MAX], part[8 * MAX];
    size_t len = nodeset_format(&p->set, "n", text, sizeof text);
    if (len != strlen(text))
        return false;
    size_t cap = (size_t)random_between(r, 1, len + 2);
    if (nodeset_format(&p->set, "n", part, cap) != len)
        return false;
    size_t kept = len < cap ? len : cap - 1;
    if (strlen(part) != kept || memcmp(part, text, kept) != 0)
        return false;
    static struct pair back;
    pair_init(&back, p->set.universe);
    return nodeset_parse(&back.set, text, "n", NULL) == 0 && nodeset_equal(&back.set, &p->set);
}

static bool walk(uint32_t universe, int steps) {
    static struct pair pairs[SETS];
    struct random r;
    random_init(&r, universe);
    for (int i = 0; i < SETS; i++)
        pair_init(&pairs[i], universe);
    int in_bitmap = 0, crossings = 0;
    for (int i = 0; i < steps; i++) {
        bool modes[SETS];
        for (int k = 0; k < SETS; k++)
            modes[k] = pairs[k].set.bitmap;
        struct pair *p = step(pairs, &r);
        struct pair *other = &pairs[random_below(&r, SETS)];
        in_bitmap += p->set.bitmap;
        crossings += p->set.bitmap != modes[p - pairs];
        if (!agrees(p) || !questions_agree(p, other) || !questions_agree(other, p) ||
            !points_agree(p, &r) || (i % 8 == 0 && !round_trips(p, &r))) {
            printf("# universe %u step %d\n", universe, i);
            return false;
        }
    }
    printf("# universe %u: %d of %d steps left a bitmap, %d crossings\n", universe, in_bitmap,
           steps, crossings);
    bool can_be_bitmap = universe >= 63; /* below, all runs fit */
    return !can_be_bitmap ||
           (in_bitmap > steps / 50 && in_bitmap < steps - steps / 50 && crossings > steps / 100);
}

static void test_random_against_model(void) {
    CHECK(walk(1, 5000));
    CHECK(walk(2, 5000));
    CHECK(walk(63, 30000));
    CHECK(walk(64, 30000));
    CHECK(walk(65, 30000));
    CHECK(walk(512, 30000));
    CHECK(walk(1000, 20000));
    CHECK(walk(4096, 10000));
}

/* ---- particular cases ---- */

static void test_storage_size(void) {
    CHECK_EQ(nodeset_bytes(0), 64);
    CHECK_EQ(nodeset_bytes(1), 64);
    CHECK_EQ(nodeset_bytes(512), 64);
    CHECK_EQ(nodeset_bytes(513), 72);
    CHECK_EQ(nodeset_bytes(100000), 12504);
}

static void test_empty_universe(void) {
    uint64_t storage[8];
    struct nodeset s;
    nodeset_init(&s, 0, storage);
    CHECK(nodeset_empty(&s));
    CHECK(!nodeset_has(&s, 0));
    CHECK_EQ(nodeset_first(&s), NODESET_NONE);
    CHECK_EQ(nodeset_next(&s, 0), NODESET_NONE);
    CHECK_EQ(nodeset_last(&s), NODESET_NONE);
    CHECK_EQ(nodeset_parse(&s, "", "n", NULL), 0);
    CHECK_EQ(nodeset_parse(&s, "n0", "n", NULL), -ERANGE);
}

static void test_init_leaves_storage_alone(void) {
    uint64_t storage[16], before[16];
    memset(storage, 0x5A, sizeof storage);
    memcpy(before, storage, sizeof before);
    struct nodeset s;
    nodeset_init(&s, 1000, storage);
    CHECK(nodeset_empty(&s));
    nodeset_clear(&s);
    CHECK_EQ(memcmp(storage, before, sizeof before), 0);
}

static void test_equality_across_modes(void) {
    static struct pair a, b;
    pair_init(&a, 512);
    pair_init(&b, 512);
    nodeset_add_range(&a.set, 100, 200);
    /* even numbers first: too many runs, then the odd ones join them to one */
    for (uint32_t n = 100; n <= 200; n += 2)
        nodeset_add(&b.set, n);
    CHECK(b.set.bitmap);
    for (uint32_t n = 101; n < 200; n += 2)
        nodeset_add(&b.set, n);
    CHECK(b.set.bitmap && !a.set.bitmap);
    CHECK(nodeset_equal(&a.set, &b.set));
    CHECK(nodeset_equal(&b.set, &a.set));
    CHECK_EQ(nodeset_range_count(&b.set), 1);
    nodeset_remove(&b.set, 150);
    CHECK(!nodeset_equal(&a.set, &b.set));
    nodeset_add(&b.set, 400);
    CHECK(!nodeset_equal(&a.set, &b.set));
    CHECK_EQ(nodeset_count(&a.set), nodeset_count(&b.set));
}

static void test_small_bitmaps_become_runs(void) {
    static struct pair a;
    pair_init(&a, 4096);
    for (uint32_t n = 0; n < 4096; n += 2)
        nodeset_add(&a.set, n);
    CHECK(a.set.bitmap);
    nodeset_remove_range(&a.set, 20, 4095);
    CHECK(!a.set.bitmap);
    CHECK_EQ(nodeset_count(&a.set), 10);
    for (uint32_t n = 0; n < 4096; n += 3)
        nodeset_add(&a.set, n);
    CHECK(a.set.bitmap);
    nodeset_add_range(&a.set, 0, 4095);
    CHECK(!a.set.bitmap);
    CHECK_EQ(nodeset_range_count(&a.set), 1);
}

static void comb_of(struct nodeset *s, uint32_t teeth, uint32_t step, uint32_t len) {
    for (uint32_t i = 0; i < teeth; i++)
        nodeset_add_range(s, i * step, i * step + len - 1);
}

/* As many runs as the header says stay runs, one more makes a bitmap. */
static void test_when_runs_become_a_bitmap(void) {
    static struct pair a;
    pair_init(&a, 64);
    comb_of(&a.set, 8, 8, 1);
    CHECK(!a.set.bitmap);
    nodeset_add(&a.set, 3);
    CHECK(a.set.bitmap);
    pair_init(&a, 4096);
    comb_of(&a.set, NODESET_RUNS_MAX, 64, 5);
    CHECK(!a.set.bitmap);
    nodeset_remove(&a.set, 2);
    CHECK(a.set.bitmap);
    CHECK_EQ(nodeset_range_count(&a.set), NODESET_RUNS_MAX + 1);
}

/* Between few runs no operation may cost time that grows with the universe. */
static void test_few_runs_touch_little(void) {
    enum { UNIVERSE = 100000, WORDS = 1563, FEW = 16 };
    static uint64_t storage[3][WORDS];
    struct nodeset s[3];
    memset(storage, 0xA5, sizeof storage);
    for (int i = 0; i < 3; i++)
        nodeset_init(&s[i], UNIVERSE, storage[i]);
    comb_of(&s[0], 4, 20000, 500);
    comb_of(&s[1], 5, 12000, 700);
    nodeset_and(&s[2], &s[0], &s[1]);
    nodeset_unite(&s[2], &s[1]);
    nodeset_subtract(&s[2], &s[0]);
    nodeset_intersect(&s[2], &s[1]);
    nodeset_remove_range(&s[2], 12100, 12110);
    nodeset_add(&s[2], 99999);
    nodeset_copy(&s[1], &s[2]);
    CHECK(nodeset_count(&s[1]) > 0 && nodeset_equal(&s[1], &s[2]));
    for (int i = 0; i < 3; i++)
        for (int w = FEW; w < WORDS; w++)
            if (!CHECK_EQ(storage[i][w], 0xA5A5A5A5A5A5A5A5))
                return;
}

/* A few nodes of a large bitmap are runs again, found without making a bitmap of the result. */
static void test_run_and_bitmap(void) {
    static struct pair bits, some, out;
    pair_init(&bits, 4096);
    pair_init(&some, 4096);
    pair_init(&out, 4096);
    comb_of(&bits.set, 1024, 4, 2);
    nodeset_add_range(&some.set, 1000, 1015);
    nodeset_and(&out.set, &bits.set, &some.set);
    CHECK(bits.set.bitmap && !out.set.bitmap);
    CHECK_EQ(nodeset_count(&out.set), 8);
    CHECK_EQ(out.storage[63], 0xA5A5A5A5A5A5A5A5);
    nodeset_subtract(&some.set, &bits.set);
    CHECK(!some.set.bitmap);
    CHECK_EQ(nodeset_count(&some.set), 8);
    CHECK_EQ(some.storage[63], 0xA5A5A5A5A5A5A5A5);
    CHECK(!nodeset_intersects(&some.set, &bits.set) && nodeset_covers(&bits.set, &out.set));
}

static void test_next_range_clips(void) {
    uint64_t storage[8];
    struct nodeset s;
    struct noderange r = {0};
    nodeset_init(&s, 100, storage);
    nodeset_add_range(&s, 10, 20);
    CHECK(nodeset_next_range(&s, 0, &r) && r.first == 10 && r.last == 20);
    CHECK(nodeset_next_range(&s, 15, &r) && r.first == 15 && r.last == 20);
    CHECK(nodeset_next_range(&s, 20, &r) && r.first == 20 && r.last == 20);
    CHECK(!nodeset_next_range(&s, 21, &r));
    CHECK_EQ(r.first, 20);
    CHECK(!nodeset_next_range(&s, UINT32_MAX, &r));
}

/* ---- text ---- */

static bool formats(const char *in, const char *out) {
    uint64_t storage[128];
    struct nodeset s;
    char text[200];
    nodeset_init(&s, 5000, storage);
    nodeset_add(&s, 4999); /* parsing replaces what was there */
    if (nodeset_parse(&s, in, "n", NULL) != 0)
        return false;
    nodeset_format(&s, "n", text, sizeof text);
    return CHECK_STR(text, out);
}

static void test_text(void) {
    CHECK(formats("", ""));
    CHECK(formats("n5", "n5"));
    CHECK(formats("n[5]", "n5"));
    CHECK(formats("n[5-5]", "n5"));
    CHECK(formats("n[0-3,7]", "n[0-3,7]"));
    CHECK(formats("n7,n[0-3]", "n[0-3,7]"));
    CHECK(formats("n[0003],n004,n2", "n[2-4]"));
    CHECK(formats("n[0-4999]", "n[0-4999]"));
    CHECK(formats("n1,n1,n1", "n1"));
    CHECK(formats("n[10-20],n[15-30],n[31]", "n[10-31]"));
}

static bool refuses(const char *text, int error, size_t where) {
    uint64_t storage[8];
    struct nodeset s;
    size_t at = 999;
    nodeset_init(&s, 100, storage);
    nodeset_add(&s, 42);
    bool refused = nodeset_parse(&s, text, "n", &at) == error && at == where;
    return refused && nodeset_count(&s) == 1 && nodeset_has(&s, 42);
}

static void test_text_errors(void) {
    CHECK(refuses("m5", -EINVAL, 0));
    CHECK(refuses("n", -EINVAL, 1));
    CHECK(refuses("n5,", -EINVAL, 3));
    CHECK(refuses(",n5", -EINVAL, 0));
    CHECK(refuses("n5 ", -EINVAL, 2));
    CHECK(refuses("n[", -EINVAL, 2));
    CHECK(refuses("n[]", -EINVAL, 2));
    CHECK(refuses("n[1", -EINVAL, 3));
    CHECK(refuses("n[1-", -EINVAL, 4));
    CHECK(refuses("n[1-]", -EINVAL, 4));
    CHECK(refuses("n[3-1]", -EINVAL, 4));
    CHECK(refuses("n[1,]", -EINVAL, 4));
    CHECK(refuses("n[1]x", -EINVAL, 4));
    CHECK(refuses("n-1", -EINVAL, 1));
    CHECK(refuses("n100", -ERANGE, 1));
    CHECK(refuses("n[1,100]", -ERANGE, 4));
    CHECK(refuses("n[0-100]", -ERANGE, 4));
    CHECK(refuses("n99999999999999999999999", -ERANGE, 1));
}

static void test_text_prefixes(void) {
    uint64_t storage[8];
    struct nodeset s;
    char text[32];
    nodeset_init(&s, 100, storage);
    CHECK_EQ(nodeset_parse(&s, "[1-2],7", "", NULL), 0);
    CHECK_EQ(nodeset_format(&s, "rack1n", text, sizeof text), strlen("rack1n[1-2,7]"));
    CHECK_STR(text, "rack1n[1-2,7]");
    CHECK_EQ(nodeset_parse(&s, "rack1n12", "rack1n", NULL), 0);
    CHECK(nodeset_has(&s, 12));
    CHECK_EQ(nodeset_format(&s, "n", NULL, 0), 3);
}

static void test_ranks(void) {
    uint64_t storage[8];
    struct nodeset s;
    nodeset_init(&s, 100, storage);
    CHECK_EQ(nodeset_rank(&s, 50), 0);
    CHECK_EQ(nodeset_at(&s, 0), NODESET_NONE);
    CHECK_EQ(nodeset_parse(&s, "[3-5],9,[20-29]", "", NULL), 0);
    uint32_t rank = 0;
    NODESET_EACH (n, &s) {
        CHECK_EQ(nodeset_rank(&s, n), rank);
        CHECK_EQ(nodeset_at(&s, rank), n);
        rank++;
    }
    CHECK_EQ(nodeset_at(&s, rank), NODESET_NONE);
    CHECK_EQ(nodeset_rank(&s, 6), 3); /* who is no member has a place too */
    CHECK_EQ(nodeset_rank(&s, 99), rank);
}

int main(void) {
    TEST(test_storage_size);
    TEST(test_empty_universe);
    TEST(test_init_leaves_storage_alone);
    TEST(test_equality_across_modes);
    TEST(test_small_bitmaps_become_runs);
    TEST(test_when_runs_become_a_bitmap);
    TEST(test_few_runs_touch_little);
    TEST(test_run_and_bitmap);
    TEST(test_next_range_clips);
    TEST(test_ranks);
    TEST(test_text);
    TEST(test_text_errors);
    TEST(test_text_prefixes);
    TEST(test_random_against_model);
    return tap_finish();
}
