/* SPDX-License-Identifier: MIT */
/* Attributes of nodes: what is said, reported, carried and written. */
#include "sched/traits.h"

#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/units.h"
#include "tap.h"

enum { NODES = 100, ORDER = 1 << TRAITS_IS | 1 << TRAITS_AT_MOST | 1 << TRAITS_AT_LEAST };

static struct traits made(uint32_t nodes) {
    struct traits t;
    traits_init(&t, nodes, 32, malloc(traits_bytes(nodes, 32)));
    return t;
}

static void done(struct traits *t) {
    free(t->values); /* the storage begins with them */
}

static void say(struct traits *t, const char *nodes, const char *name, uint64_t value) {
    uint64_t storage[16];
    struct nodeset set;
    nodeset_init(&set, t->nodes, storage);
    CHECK_EQ(nodeset_parse(&set, nodes, "", NULL), 0);
    traits_say(t, &set, (uint32_t)traits_find(t, name), value);
}

/* CPU and NIC of the paper's figure 4. */
static void define(struct traits *t) {
    CHECK_EQ(traits_define(t, "CPU", ORDER), TRAITS_BUILT_IN);
    CHECK_EQ(traits_define_value(t, "500MHZ"), 0);
    CHECK_EQ(traits_define_value(t, "1GHZ"), 1);
    CHECK_EQ(traits_define_value(t, "2GHZ"), 2);
    CHECK_EQ(traits_define(t, "NIC", 1 << TRAITS_IS), TRAITS_BUILT_IN + 1);
    CHECK_EQ(traits_define_value(t, "FAST"), 0);
    CHECK_EQ(traits_define_value(t, "SLOW"), 1);
}

static struct traits_report report(void) {
    struct traits_report r = traits_report_empty();
    traits_report_text(&r, TRAITS_ARCH, "x86_64");
    traits_report_text(&r, TRAITS_OPSYS, "Debian 12\x1b");
    r.values[TRAITS_MEMORY] = 24 * GIB + MIB;
    r.values[TRAITS_PROCESSORS] = 8;
    r.values[TRAITS_KERNEL] = (uint64_t)6 << 48 | (uint64_t)1 << 32 | 55 << 16;
    r.values[TRAITS_NETWORK] = 10000000000;
    return r;
}

static const char *shown(const struct traits *t, uint32_t node) {
    static char text[512];
    size_t len = traits_format(t, node, text, sizeof text);
    CHECK_EQ(len, strlen(text));
    return text;
}

static void test_definitions(void) {
    struct traits t = made(NODES);
    define(&t);
    CHECK_EQ(traits_find(&t, "nic"), TRAITS_BUILT_IN + 1);
    CHECK_EQ(traits_find(&t, "Memory"), TRAITS_MEMORY);
    CHECK_EQ(traits_find(&t, "NI"), -ENOENT);
    CHECK_STR(traits_nearest(&t, "NI"), "NIC");
    CHECK_STR(traits_nearest(&t, "memroy"), "MEMORY");
    CHECK(traits_nearest(&t, "colour") == NULL);
    CHECK_EQ(traits_define(&t, "cpu", ORDER), -EEXIST);
    CHECK_EQ(traits_define(&t, "Memory", ORDER), -EEXIST);
    CHECK_EQ(traits_define(&t, "1CPU", ORDER), -EINVAL);
    CHECK_EQ(traits_define(&t, "and", ORDER), -EINVAL);
    CHECK_EQ(traits_define(&t, "a name that has blanks", ORDER), -EINVAL);
    CHECK_EQ(traits_define(&t, "a123456789012345678901234567890", ORDER), TRAITS_BUILT_IN + 2);
    CHECK_EQ(traits_define(&t, "b1234567890123456789012345678901", ORDER), -EINVAL);
    CHECK_EQ(traits_define(&t, "X", 0), -EINVAL);
    CHECK_EQ(traits_define_value(&t, "a b"), -EINVAL);
    CHECK_EQ(traits_define_value(&t, ""), -EINVAL);
    CHECK_EQ(traits_define_value(&t, "v"), 0);
    CHECK_EQ(traits_define_value(&t, "V"), -EEXIST);
    uint64_t edition = t.edition;
    traits_clear(&t);
    CHECK(t.edition != edition);
    CHECK_EQ(traits_find(&t, "CPU"), -ENOENT);
    done(&t);
}

static void test_limits(void) {
    struct traits t = made(4);
    char name[32];
    int r = 0, names = 0;
    for (int i = 0; i < 100 && r >= 0; i++) {
        snprintf(name, sizeof name, "a%d", i);
        r = traits_define(&t, name, 1);
        names += r >= 0;
    }
    CHECK_EQ(r, -ENOBUFS);
    CHECK_EQ(names, 32 - TRAITS_BUILT_IN);
    for (names = 0, r = 0; names < 1000 && r >= 0; names++) {
        snprintf(name, sizeof name, "v%d", names);
        r = traits_define_value(&t, name);
    }
    CHECK_EQ(r, -ENOBUFS);
    for (int i = 0; i < TRAITS_LABELS_MAX; i++) {
        snprintf(name, sizeof name, "l%d", i);
        CHECK_EQ(traits_label(&t, name), i);
    }
    CHECK_EQ(traits_label(&t, "L7"), 7);
    CHECK_EQ(traits_label(&t, "more"), -ENOBUFS);
    CHECK_EQ(traits_label(&t, "a+b"), -EINVAL);
    say(&t, "1", "labels", UINT64_MAX);
    CHECK_EQ(traits_get(&t, 1, TRAITS_LABELS), UINT64_MAX);
    CHECK(strstr(shown(&t, 1), "l0+l1+l2") != NULL);
    done(&t);
}

static void test_bytes_a_node(void) {
    CHECK(traits_bytes(10000, 32) <= 10000 * 512);
    CHECK(traits_bytes(65536, 32) <= 65536 * 512);
    printf("# %zu bytes a node at 10000 nodes, 32 attributes\n", traits_bytes(10000, 32) / 10000);
}

static void test_nodes(void) {
    struct traits t = made(NODES);
    struct traits_report r = report();
    define(&t);
    CHECK_STR(shown(&t, 0), "CPU=500MHZ NIC=FAST ROLE=compute DEDICATED=TRUE");
    say(&t, "[0-3,9]", "cpu", 1);
    say(&t, "9", "role", 1);
    say(&t, "9", "dedicated", 0);
    CHECK_EQ(traits_label(&t, "big"), 0);
    CHECK_EQ(traits_label(&t, "old"), 1);
    say(&t, "9", "labels", 1);
    say(&t, "9", "labels", 2); /* too */
    traits_hear(&t, 9, &r);
    CHECK_STR(shown(&t, 9),
              "CPU=1GHZ NIC=FAST ARCH=x86_64 OPSYS=\"Debian 12?\" PROCESSORS=8 MEMORY=24GiB "
              "KERNEL=6.1.55 NETWORK=10Gbit LABELS=big+old ROLE=service DEDICATED=FALSE");
    traits_hear(&t, 3, &r);
    CHECK_EQ(traits_get(&t, 3, TRAITS_ARCH), traits_get(&t, 9, TRAITS_ARCH));
    traits_report_text(&r, TRAITS_ARCH, "aarch64");
    r.values[TRAITS_MEMORY] = TRAITS_UNKNOWN;
    traits_hear(&t, 9, &r);
    CHECK(traits_get(&t, 3, TRAITS_ARCH) != traits_get(&t, 9, TRAITS_ARCH));
    CHECK(strstr(shown(&t, 9), "MEMORY") == NULL);
    traits_clear(&t);
    CHECK_STR(shown(&t, 4), "ROLE=compute DEDICATED=TRUE");
    CHECK(strstr(shown(&t, 9), "ARCH=aarch64") != NULL);
    traits_forget(&t, 9);
    CHECK_STR(shown(&t, 9), "ROLE=compute DEDICATED=TRUE");
    done(&t);
}

/* However often nodes change their minds, there is room for their texts. */
static void test_texts_come_and_go(void) {
    struct traits t = made(NODES);
    struct random random;
    random_init(&random, 1);
    char text[32];
    for (int i = 0; i < 20000; i++) {
        struct traits_report r = traits_report_empty();
        for (uint32_t id = 0; id < TRAITS_TEXTS; id++) {
            snprintf(text, sizeof text, "t%u", (unsigned)random_below(&random, 100000));
            traits_report_text(&r, id, text);
        }
        uint32_t node = (uint32_t)random_below(&random, NODES);
        traits_hear(&t, node, &r);
        for (uint32_t id = 0; id < TRAITS_TEXTS; id++)
            if (!CHECK_STR(intern_text(&t.texts, (uint32_t)traits_get(&t, node, id)), r.texts[id]))
                return;
    }
    done(&t);
}

static bool reads(const struct traits *t, const char *name, const char *word, uint64_t value) {
    struct traits_value v;
    char words[240];
    struct text why;
    text_init(&why, words, sizeof words);
    bool ok = traits_read(t, (uint32_t)traits_find(t, name), word, &v, &why) == 0;
    if (!ok || v.first != value)
        printf("# %s %s: %s %llu\n", name, word, ok ? "" : words, (unsigned long long)v.first);
    return ok && v.first == value;
}

static void refuses(const struct traits *t, const char *name, const char *word, const char *words) {
    struct traits_value v;
    char said[240];
    struct text why;
    text_init(&why, said, sizeof said);
    CHECK_EQ(traits_read(t, (uint32_t)traits_find(t, name), word, &v, &why), -EINVAL);
    CHECK_STR(said, words);
}

static void test_reading(void) {
    struct traits t = made(NODES);
    define(&t);
    CHECK(reads(&t, "CPU", "1ghz", 1));
    CHECK(reads(&t, "MEMORY", "32", 32 * MIB));
    CHECK(reads(&t, "MEMORY", "1.5", 3 * MIB / 2));
    CHECK(reads(&t, "MEMORY", "24GiB", 24 * GIB));
    CHECK(reads(&t, "MEMORY", "24gib", 24 * GIB));
    CHECK(reads(&t, "MEMORY", "512mb", 512 * MIB));
    CHECK(reads(&t, "MEMORY", "1000b", 1000));
    CHECK(reads(&t, "NETWORK", "1Gbit", 1000000000));
    CHECK(reads(&t, "NETWORK", "10GBIT/s", 10000000000));
    CHECK(reads(&t, "NETWORK", "100Mbit", 100000000));
    CHECK(reads(&t, "NETWORK", "2.5G", 2500000000));
    CHECK(reads(&t, "KERNEL", "6.1", (uint64_t)6 << 48 | (uint64_t)1 << 32));
    CHECK(reads(&t, "KERNEL", "6.1.0-13-amd64", (uint64_t)6 << 48 | (uint64_t)1 << 32));
    CHECK(reads(&t, "DEDICATED", "Yes", 1));
    CHECK(reads(&t, "DEDICATED", "FALSE", 0));
    CHECK(reads(&t, "ROLE", "Administration", 2));
    CHECK(reads(&t, "GPUS", "4", 4));
    refuses(&t, "CPU", "3GHZ",
            "CPU has no value \"3GHZ\"; it has 500MHZ, 1GHZ, 2GHZ; did you mean 1GHZ?");
    refuses(&t, "MEMORY", "FAST",
            "MEMORY wants a size such as 24GiB, 512MB or 512 (MiB), not \"FAST\"");
    refuses(&t, "MEMORY", "16384P", "MEMORY wants a size below 16384 PiB, not \"16384P\"");
    refuses(&t, "NETWORK", "10", "NETWORK wants a rate such as 1Gbit or 100Mbit/s, not \"10\"");
    refuses(&t, "NETWORK", "10GB", "NETWORK wants a rate such as 1Gbit or 100Mbit/s, not \"10GB\"");
    refuses(&t, "KERNEL", "new", "KERNEL wants a version such as 6.1, not \"new\"");
    refuses(&t, "KERNEL", "6.99999", "KERNEL wants smaller numbers, not \"6.99999\"");
    refuses(&t, "GPUS", "4GB", "GPUS wants a number, not \"4GB\"");
    refuses(&t, "GPUS", "18446744073709551616",
            "GPUS wants a smaller number, not \"18446744073709551616\"");
    refuses(&t, "DEDICATED", "maybe", "DEDICATED wants TRUE or FALSE, not \"maybe\"");
    refuses(&t, "LABELS", "big", "no node has the label \"big\"");
    CHECK_EQ(traits_label(&t, "big"), 0);
    refuses(&t, "LABELS", "bgi", "no node has the label \"bgi\"; there are big; did you mean big?");
    done(&t);
}

/* What is written is read as the same. */
static void test_writing(void) {
    static const struct {
        const char *name, *word, *written;
    } cases[] = {
        {"CPU", "1ghz", "1GHZ"},
        {"MEMORY", "1024", "1GiB"},
        {"MEMORY", "1.5GB", "1536MiB"},
        {"MEMORY", "1000B", "1000B"},
        {"MEMORY", "0", "0B"},
        {"NETWORK", "10G", "10Gbit"},
        {"NETWORK", "2.5Gbit", "2500Mbit"},
        {"NETWORK", "0.5kbit", "0.496kbit"},
        {"KERNEL", "6", "6"},
        {"KERNEL", "6.1.0-13-amd64", "6.1.0"},
        {"KERNEL", "6.01", "6.1"},
        {"KERNEL", "1.2.3.4", "1.2.3.4"},
        {"DEDICATED", "yes", "TRUE"},
        {"LABELS", "BIG", "big"},
        {"GPUS", "007", "7"},
    };
    struct traits t = made(NODES);
    define(&t);
    traits_label(&t, "old");
    traits_label(&t, "big");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct traits_value v, again;
        char text[64];
        struct text out, why;
        uint32_t id = (uint32_t)traits_find(&t, cases[i].name);
        text_init(&out, text, sizeof text);
        text_init(&why, NULL, 0);
        CHECK_EQ(traits_read(&t, id, cases[i].word, &v, &why), 0);
        traits_write_value(&t, id, v, &out);
        CHECK_STR(text, cases[i].written);
        CHECK_EQ(traits_read(&t, id, text, &again, &why), 0);
        CHECK(again.first == v.first && again.last == v.last);
    }
    done(&t);
}

static void test_carried(void) {
    static uint8_t bytes[4096];
    struct traits t = made(NODES), other = made(NODES + 7), small;
    traits_init(&small, NODES, TRAITS_BUILT_IN + 1,
                malloc(traits_bytes(NODES, TRAITS_BUILT_IN + 1)));
    define(&t);
    traits_label(&t, "big");
    say(&t, "[0-3,9]", "cpu", 1);
    say(&t, "[50-99]", "nic", 1);
    say(&t, "9", "role", 2);
    say(&t, "7", "labels", 1);
    long len = traits_encode(&t, room_of(bytes, sizeof bytes));
    CHECK(len > 0);
    for (size_t cap = 0; cap < (size_t)len; cap++)
        CHECK_EQ(traits_encode(&t, room_of(bytes, cap)), -ENOBUFS);
    traits_encode(&t, room_of(bytes, sizeof bytes));
    CHECK_EQ(traits_take(&other, bytes_of(bytes, (size_t)len)), 0);
    CHECK_EQ(other.count, t.count);
    for (uint32_t n = 0; n < NODES; n++) {
        char here[256], there[256];
        traits_format(&t, n, here, sizeof here);
        traits_format(&other, n, there, sizeof there);
        CHECK_STR(there, here);
    }
    CHECK_EQ(traits_get(&other, NODES + 1, TRAITS_BUILT_IN), 0);
    CHECK_EQ(traits_take(&small, bytes_of(bytes, (size_t)len)), -ENOBUFS);
    CHECK_EQ(small.count, TRAITS_BUILT_IN);
    /* What is cut or spoiled is refused, or means something that is possible. */
    for (size_t cut = 0; cut < (size_t)len; cut++)
        CHECK_EQ(traits_take(&other, bytes_of(bytes, cut)), -EBADMSG);
    for (size_t i = 0; i < (size_t)len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[i] ^= (uint8_t)(1 << bit);
            int r = traits_take(&other, bytes_of(bytes, (size_t)len));
            CHECK(r == 0 || r == -EBADMSG || r == -ENOBUFS);
            CHECK(traits_format(&other, 9, NULL, 0) > 0);
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    }
    done(&small);
    done(&other);
    done(&t);
}

static void test_reports_carried(void) {
    uint8_t bytes[512];
    struct traits_report r = report(), again;
    long len = traits_report_encode(&r, room_of(bytes, sizeof bytes));
    CHECK(len > 0);
    CHECK_EQ(traits_report_decode(bytes_of(bytes, (size_t)len), &again), 0);
    CHECK(memcmp(r.values, again.values, sizeof r.values) == 0);
    CHECK(memcmp(r.texts, again.texts, sizeof r.texts) == 0);
    for (size_t cut = 0; cut < (size_t)len; cut++)
        CHECK_EQ(traits_report_decode(bytes_of(bytes, cut), &again), -EBADMSG);
    bytes[4] = 7; /* the first letter of ARCH */
    CHECK_EQ(traits_report_decode(bytes_of(bytes, (size_t)len), &again), -EBADMSG);
}

static const char *told_apart(const struct traits *t, const char *nodes, uint32_t node) {
    static char text[512];
    uint64_t storage[16];
    struct nodeset set;
    nodeset_init(&set, t->nodes, storage);
    CHECK_EQ(nodeset_parse(&set, nodes, "", NULL), 0);
    traits_format_some(t, node, traits_apart(t, &set), text, sizeof text);
    return text;
}

static void test_apart(void) {
    struct traits t = made(NODES);
    struct traits_report r = report();
    define(&t);
    for (uint32_t n = 0; n < 4; n++) {
        char host[8] = {'h', (char)('0' + n)};
        traits_report_text(&r, TRAITS_HOST, host);
        r.values[TRAITS_SPEED] = 700 + n;
        r.values[TRAITS_MEMORY] += GIB;
        traits_hear(&t, n, &r);
    }
    CHECK_STR(told_apart(&t, "[0-3]", 2), "");
    CHECK_STR(told_apart(&t, "[0-9]", 2), ""); /* some have not told: that is no difference */
    say(&t, "2", "CPU", 2);
    CHECK_STR(told_apart(&t, "[0-3]", 2), "CPU=2GHZ");
    CHECK_STR(told_apart(&t, "[0-3]", 3), "CPU=500MHZ");
    CHECK_STR(told_apart(&t, "[0-1,3]", 3), ""); /* among others it is the same */
    say(&t, "1", "LABELS", (uint64_t)1 << traits_label(&t, "big"));
    CHECK_STR(told_apart(&t, "[0-3]", 1), "CPU=500MHZ LABELS=big");
    CHECK_STR(told_apart(&t, "[0-3]", 2), "CPU=2GHZ"); /* it has no labels */
    CHECK_STR(told_apart(&t, "[0-3]", 50), "CPU=500MHZ");
    traits_report_text(&r, TRAITS_ARCH, "aarch64");
    traits_hear(&t, 3, &r);
    CHECK_STR(told_apart(&t, "[0,3]", 3), "ARCH=aarch64");
    CHECK_STR(told_apart(&t, "", 3), "");
    done(&t);
}

int main(void) {
    TEST(test_definitions);
    TEST(test_limits);
    TEST(test_bytes_a_node);
    TEST(test_nodes);
    TEST(test_texts_come_and_go);
    TEST(test_reading);
    TEST(test_writing);
    TEST(test_carried);
    TEST(test_reports_carried);
    TEST(test_apart);
    return tap_finish();
}
