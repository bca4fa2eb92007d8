/* SPDX-License-Identifier: MIT */
/* Tests of the loader's table: both places of the present format, both byte orders, garbled ones. */
#include "base/ldcache.h"

#include <errno.h>

#include "base/random.h"
#include "tap.h"

enum { CACHE_BYTES = 4096, ENTRIES = 5, X86_64 = 0x0303, AARCH64 = 0x0a03 };

struct maker {
    uint8_t *out;
    bool big;
    size_t base; /* of the present format */
    size_t end;
};

static void put(struct maker *m, size_t at, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++)
        m->out[at + i] = (uint8_t)(value >> 8 * (m->big ? bytes - 1 - i : i));
}

/* Its place in the file. */
static size_t text(struct maker *m, const char *s) {
    size_t at = m->end;
    memcpy(m->out + at, s, strlen(s) + 1);
    m->end += strlen(s) + 1;
    return at;
}

static void entry(struct maker *m, unsigned i, uint32_t mark, const char *name, const char *path,
                  uint64_t hwcap) {
    size_t at = m->base + 48 + (size_t)i * 24;
    put(m, at, mark, 4);
    put(m, at + 4, text(m, name) - m->base, 4);
    put(m, at + 8, text(m, path) - m->base, 4);
    put(m, at + 16, hwcap, 8);
}

/* Two folders below glibc-hwcaps, numbers 0 and 1. */
static void extensions(struct maker *m) {
    size_t v2 = text(m, "x86-64-v2"), v3 = text(m, "x86-64-v3");
    m->end = (m->end + 3) & ~(size_t)3;
    size_t at = m->end;
    put(m, m->base + 32, at, 4);
    put(m, at, (uint32_t)-358342284, 4);
    put(m, at + 4, 1, 4);
    put(m, at + 8, 1, 4);
    put(m, at + 16, at + 24, 4);
    put(m, at + 20, 8, 4);
    put(m, at + 24, v2, 4);
    put(m, at + 28, v3, 4);
    m->end = at + 32;
}

static struct bytes make(uint8_t out[CACHE_BYTES], bool big, bool behind) {
    const uint64_t folder = UINT64_C(1) << 62, level = UINT64_C(1) << 34;
    struct maker m = {.out = out, .big = big};
    memset(out, 0, CACHE_BYTES);
    if (behind) {
        memcpy(out, "ld.so-1.7.0", 11);
        put(&m, 12, 3, 4);
        m.base = 56; /* 16 + 3 * 12, aligned */
    }
    memcpy(out + m.base, "glibc-ld.so.cache1.1", 20);
    put(&m, m.base + 20, ENTRIES, 4);
    out[m.base + 28] = big ? 3 : 2;
    m.end = m.base + 48 + (size_t)ENTRIES * 24;
    entry(&m, 0, X86_64, "liba.so.1", "/v2/liba.so.1", folder | 0);
    entry(&m, 1, X86_64, "liba.so.1", "/v3/liba.so.1", folder | level | 1);
    entry(&m, 2, X86_64, "liba.so.1", "/old/liba.so.1", 8);
    entry(&m, 3, X86_64, "liba.so.1", "/plain/liba.so.1", 0);
    entry(&m, 4, AARCH64, "liba.so.1", "/arm/liba.so.1", 0);
    extensions(&m);
    return bytes_of(out, m.end);
}

static void check_made(bool big, bool behind) {
    static uint8_t out[CACHE_BYTES];
    struct ldcache c;
    struct bytes file = make(out, big, behind);
    if (!CHECK_EQ(ldcache_read(&c, file, big), 0))
        return;
    CHECK_EQ(c.entries, ENTRIES);
    CHECK_STR(ldcache_find(&c, "liba.so.1", X86_64, ""), "/plain/liba.so.1");
    CHECK_STR(ldcache_find(&c, "liba.so.1", X86_64, "x86-64-v2"), "/v2/liba.so.1");
    CHECK_STR(ldcache_find(&c, "liba.so.1", X86_64, "x86-64-v3:x86-64-v2"), "/v3/liba.so.1");
    CHECK_STR(ldcache_find(&c, "liba.so.1", AARCH64, "x86-64-v2"), "/arm/liba.so.1");
    CHECK(ldcache_find(&c, "liba.so.1", 3, "") == NULL);
    CHECK(ldcache_find(&c, "liba.so", X86_64, "") == NULL);
    CHECK_EQ(ldcache_read(&c, file, !big), -EBADMSG);
}

static void test_find(void) {
    for (int kind = 0; kind < 4; kind++)
        check_made(kind & 1, kind & 2);
}

static void test_others(void) {
    static uint8_t out[CACHE_BYTES];
    struct ldcache c;
    struct bytes file = make(out, false, false);
    CHECK_EQ(ldcache_read(&c, bytes_of("", 0), false), -EBADMSG);
    CHECK_EQ(ldcache_read(&c, bytes_of(file.at, 40), false), -EBADMSG);
    CHECK_EQ(ldcache_read(&c, bytes_of(file.at, 48 + ENTRIES * 24 - 1), false), -EBADMSG);
    out[28] = 0; /* of an old ldconfig, which did not say */
    CHECK_EQ(ldcache_read(&c, file, false), 0);
    out[19] = '2';
    CHECK_EQ(ldcache_read(&c, file, false), -EBADMSG);
    file = make(out, false, true);
    CHECK_EQ(ldcache_read(&c, bytes_of(file.at, 60), false), -EBADMSG);
}

static void test_marks(void) {
    CHECK_EQ(ldcache_mark(183, true, 0), AARCH64);
    CHECK_EQ(ldcache_mark(62, true, 0), X86_64);
    CHECK_EQ(ldcache_mark(62, false, 0), 0x0803);
    CHECK_EQ(ldcache_mark(22, true, 0), 0x0403);
    CHECK_EQ(ldcache_mark(3, false, 0), 3);
    CHECK_EQ(ldcache_mark(40, false, 0x5000400), 0x0903);
    CHECK_EQ(ldcache_mark(40, false, 0x5000000), 3);
    CHECK_EQ(ldcache_mark(243, true, 5), 0x1003);
}

static void test_garbled(void) {
    static uint8_t out[CACHE_BYTES];
    struct random random;
    random_init(&random, 11);
    for (int i = 0; i < 4000; i++) {
        struct ldcache c;
        struct bytes file = make(out, i & 1, i & 2);
        for (int k = 0; k < 4; k++) {
            size_t at = random_below(&random, file.len);
            out[at] = (uint8_t)random_below(&random, 256);
        }
        if (i % 3 == 0)
            file.len = random_below(&random, file.len);
        if (ldcache_read(&c, file, i & 1) == 0) {
            const char *path = ldcache_find(&c, "liba.so.1", X86_64, "x86-64-v3");
            CHECK(path == NULL || strlen(path) < file.len);
        }
    }
}

int main(void) {
    TEST(test_find);
    TEST(test_others);
    TEST(test_marks);
    TEST(test_garbled);
    return tap_finish();
}
