/* SPDX-License-Identifier: MIT */
/* Expressions over attributes: what they select, what is refused with which words and where, and their texts.
 * tests/needs_test.c has many more, made at random. */
#include "sched/need.h"

#include <errno.h>
#include <stdlib.h>

#include "base/units.h"
#include "tap.h"

enum { NODES = 12 };

static struct traits table;
static struct mistake mistake;

static void define(const char *name, const char *operators, const char *const *values) {
    uint8_t mask = 0;
    for (const char *c = operators; *c != '\0'; c++)
        mask |= (uint8_t)(*c == '='   ? 1 << TRAITS_IS
                          : *c == '<' ? 1 << TRAITS_AT_MOST
                                      : 1 << TRAITS_AT_LEAST);
    CHECK(traits_define(&table, name, mask) > 0);
    for (; *values != NULL; values++)
        CHECK(traits_define_value(&table, *values) >= 0);
}

static void say(const char *nodes, const char *name, const char *value) {
    uint64_t storage[8];
    struct nodeset set;
    struct traits_value v;
    struct text why;
    uint32_t id = (uint32_t)traits_find(&table, name);
    nodeset_init(&set, NODES, storage);
    CHECK_EQ(nodeset_parse(&set, nodes, "", NULL), 0);
    text_init(&why, NULL, 0);
    if (id == TRAITS_LABELS)
        traits_label(&table, value);
    CHECK_EQ(traits_read(&table, id, value, &v, &why), 0);
    traits_say(&table, &set, id, v.first);
}

/* Figure 4 of the paper, with node 2's memory mended, and some nodes that have reported. */
static void make_table(void) {
    static const char *const cpu[] = {"500MHZ", "1GHZ", "2GHZ", NULL};
    static const char *const mem[] = {"256MB", "512MB", "2GB", NULL};
    static const char *const nic[] = {"FAST", "SLOW", NULL};
    traits_init(&table, NODES, 32, malloc(traits_bytes(NODES, 32)));
    define("CPU", "=<>", cpu);
    define("MEM", "=<>", mem);
    define("NIC", "=", nic);
    say("[1]", "CPU", "1GHZ");
    say("[2,10]", "CPU", "2GHZ");
    say("[0-1]", "MEM", "512MB");
    say("[2,10]", "MEM", "2GB");
    say("[0-1]", "NIC", "SLOW");
    say("[3-4]", "labels", "big");
    say("[4-5]", "labels", "new");
    say("7", "role", "service");
    say("8", "dedicated", "no");
    for (uint32_t n = 0; n < 6; n++) {
        struct traits_report r = traits_report_empty();
        r.values[TRAITS_MEMORY] = (16 + 8 * n) * MIB;
        r.values[TRAITS_KERNEL] = (uint64_t)6 << 48 | (uint64_t)(n / 2) << 32 | 10 << 16;
        r.values[TRAITS_NETWORK] = n < 3 ? 1000000000 : 10000000000;
        traits_report_text(&r, TRAITS_ARCH, n < 4 ? "HPPA" : "ALPHA");
        traits_report_text(&r, TRAITS_OPSYS, n < 4 ? "HPUX9" : "OSF1");
        traits_hear(&table, n, &r);
    }
}

static const char *selected(const char *text) {
    static char list[256];
    uint64_t storage[8];
    struct nodeset set;
    struct need need;
    nodeset_init(&set, NODES, storage);
    if (need_compile(&need, &table, text, &mistake) < 0) {
        mistake_format(&mistake, NULL, list, sizeof list);
        return list;
    }
    CHECK_STR(mistake.words, "");
    need_select(&need, &table, &set);
    for (uint32_t n = 0; n < NODES; n++)
        CHECK_EQ(need_match(&need, &table, n), nodeset_has(&set, n));
    nodeset_format(&set, "", list, sizeof list);
    return list;
}

static void test_paper(void) {
    CHECK_STR(selected("MEM=512MB, NIC=SLOW"), "[0-1]");
    CHECK_STR(selected("MEM>=512MB"), "[0-2,10]");
    CHECK_STR(selected("MEM=512MB, NI=SLOW"),
              "column 12: there is no attribute \"NI\"; did you mean NIC?");
    CHECK_STR(
        selected("(Arch == \"HPPA\" && OpSys == \"HPUX9\") && (Memory >= 32 && Dedicated == TRUE)"),
        "[2-3]");
    CHECK_STR(selected("(Arch == 'ALPHA' && OpSys == 'OSF1')"), "[4-5]");
}

static void test_operators(void) {
    CHECK_STR(selected(""), "[0-11]");
    CHECK_STR(selected("  "), "[0-11]");
    CHECK_STR(selected("CPU<=1GHZ"), "[0-1,3-9,11]");
    CHECK_STR(selected("1ghz <= cpu"), "[1-2,10]");
    CHECK_STR(selected("32 <= Memory"), "[2-5]");
    CHECK_STR(selected("32 < Memory"), "[3-5]");
    CHECK_STR(selected("32 = Memory"), "2");
    CHECK_STR(selected("32 != Memory"), "[0-1,3-5]");
    CHECK_STR(selected("!32 = Memory"), "[0-1,3-11]");
    CHECK_STR(selected("memory<0"), "");
    CHECK_STR(selected("memory>=0"), "[0-5]");
    CHECK_STR(selected("memory<=0.02GiB"), "0");
    CHECK_STR(selected("network>=10Gbit/s"), "[3-5]");
    CHECK_STR(selected("arch=hppa"), "[0-3]");
    CHECK_STR(selected("arch!=hppa"), "[4-5]");
    CHECK_STR(selected("arch=sparc"), "");
    CHECK_STR(selected("arch!=sparc"), "[0-5]");
    CHECK_STR(selected("not arch=sparc"), "[0-11]");
    CHECK_STR(selected("labels=big"), "[3-4]");
    CHECK_STR(selected("labels!=big"), "[0-2,5-11]");
    CHECK_STR(selected("labels=big, new=labels"), "4");
    CHECK_STR(selected("role=service"), "7");
    CHECK_STR(selected("dedicated"), "[0-7,9-11]");
    CHECK_STR(selected("!dedicated"), "8");
    CHECK_STR(selected("dedicated=no or role!=compute"), "[7-8]");
    CHECK_STR(selected("gpus=0"), "");
    CHECK_STR(selected("not not gpus=0"), "");
}

/* As many parts as are written. */
static void test_versions(void) {
    CHECK_STR(selected("kernel=6.1"), "[2-3]");
    CHECK_STR(selected("kernel<=6.1"), "[0-3]");
    CHECK_STR(selected("kernel>6.1"), "[4-5]");
    CHECK_STR(selected("kernel>=6.1"), "[2-5]");
    CHECK_STR(selected("kernel<6.1"), "[0-1]");
    CHECK_STR(selected("kernel!=6.1"), "[0-1,4-5]");
    CHECK_STR(selected("kernel=6"), "[0-5]");
    CHECK_STR(selected("kernel>6.1.9"), "[2-5]");
    CHECK_STR(selected("kernel<=6.1.9"), "[0-1]");
    CHECK_STR(selected("kernel>=6.1.10-5-amd64"), "[2-5]");
}

static void test_binding(void) {
    CHECK_STR(selected("cpu=2ghz || labels=big && labels=new"), "[2,4,10]");
    CHECK_STR(selected("(cpu=2ghz || labels=big) && labels=new"), "4");
    CHECK_STR(selected("cpu=2ghz or labels=big, labels=new"), "4");
    CHECK_STR(selected("cpu=2ghz OR labels=big AND labels=new"), "[2,4,10]");
    CHECK_STR(selected("!labels=big && labels=new"), "5");
    CHECK_STR(selected("!(labels=big && labels=new)"), "[0-3,5-11]");
    CHECK_STR(selected("!!(((labels=big)))"), "[3-4]");
}

#define EVERY                                                      \
    "; there are CPU, MEM, NIC, ARCH, OPSYS, HOST, PROCESSORS, ME" \
    "MORY, KERNEL, NUMA, GPUS, NETWORK, SPEED, LABELS, ROLE, DEDICATED"

static void test_refused(void) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"MEM=1GB",
         "column 5: MEM has no value \"1GB\"; it has 256MB, 512MB, 2GB; did you mean 2GB?"},
        {"MEM>512MB", "column 4: MEM cannot be compared by >, only by =, <=, >="},
        {"NIC >= FAST", "column 5: NIC cannot be compared by >=, only by ="},
        {"arch<hppa", "column 5: ARCH cannot be compared by <, only by =, !="},
        {"(MEM=2GB", "column 1: this parenthesis is not closed"},
        {"a=1 ((", "column 1: there is no attribute \"a\"" EVERY},
        {"MEM=2GB)", "column 8: no parenthesis is open here"},
        {"MEM=2GB ,", "column 10: a comparison is missing here, such as MEMORY>=512MB"},
        {"&& MEM=2GB", "column 1: a comparison is missing here, such as MEMORY>=512MB"},
        {"()", "column 2: a comparison is missing here, such as MEMORY>=512MB"},
        {"MEM=", "column 5: a value is missing here"},
        {"MEM=,", "column 5: a value is missing here"},
        {"MEM=2GB NIC=FAST", "column 9: write && or || or a comma in between"},
        {"memory >= 24 GiB", "column 14: write a number and its unit as one word"},
        {"memory >= 24 cpu=1ghz", "column 14: write && or || or a comma in between"},
        {"256MB<=MEM<=2GB", "column 11: one comparison at a time: write A < B && B < C"},
        {"MEM", "column 1: MEM is to be compared with something, by =, <=, >="},
        {"MEM & NIC", "column 5: write && for \"and\""},
        {"MEM=2GB | NIC=FAST", "column 9: write || for \"or\""},
        {"memory => 3", "column 8: there is no operator =>; did you mean >=?"},
        {"memory <> 3", "column 8: there is no operator <>; did you mean !=?"},
        {"memory >= 3Gbit",
         "column 11: MEMORY wants a size such as 24GiB, 512MB or 512 (MiB), not \"3Gbit\""},
        {"network >= 3GiB",
         "column 12: NETWORK wants a rate such as 1Gbit or 100Mbit/s, not \"3GiB\""},
        {"arch=\"hppa", "column 6: this quote is not closed"},
        {"MEM=2GB; NIC=FAST", "column 8: this character cannot stand here"},
        {"arch='a\tb'", "column 8: this character cannot stand here"},
        {"1GHZ <= CPUS", "column 9: there is no attribute \"CPUS\"; did you mean CPU?"},
        {"'a'='b'", "column 1: an attribute is to be compared, not only texts"},
        {"labels=bgi",
         "column 8: no node has the label \"bgi\"; there are big, new; did you mean big?"},
        {"TRUE", "column 1: there is no attribute \"TRUE\"" EVERY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_STR(selected(cases[i].text), cases[i].words);
}

static void test_shown(void) {
    struct need need;
    char out[512];
    const char *text = "MEM=512MB, NI=SLOW";
    CHECK_EQ(need_compile(&need, &table, text, &mistake), -EINVAL);
    CHECK(mistake.column == 11 && mistake.length == 2);
    mistake_show(&mistake, NULL, text, out, sizeof out);
    CHECK_STR(out, "column 12: there is no attribute \"NI\"; did you mean NIC?\n"
                   "  MEM=512MB, NI=SLOW\n"
                   "             ^~");
}

static void test_text(void) {
    static const struct {
        const char *text, *anew;
    } cases[] = {
        {"", ""},
        {"mem>=512mb,nic==FAST", "MEM>=512MB && NIC=FAST"},
        {"512MB <= MEM and dedicated", "MEM>=512MB && DEDICATED=TRUE"},
        {"((MEM=2GB && (NIC=FAST && CPU=1GHZ)))", "MEM=2GB && NIC=FAST && CPU=1GHZ"},
        {"(MEM=2GB || NIC=FAST), CPU=1GHZ", "(MEM=2GB || NIC=FAST) && CPU=1GHZ"},
        {"MEM=2GB || NIC=FAST && CPU=1GHZ", "MEM=2GB || NIC=FAST && CPU=1GHZ"},
        {"!!MEM=2GB, not (not (not NIC=FAST))", "MEM=2GB && !(NIC=FAST)"},
        {"!(MEM=2GB || NIC=FAST)", "!(MEM=2GB || NIC=FAST)"},
        {"arch=HPPA, opsys='Debian GNU/Linux', arch!='and'",
         "ARCH=hppa && OPSYS=\"debian gnu/linux\" && ARCH!=\"and\""},
        {"memory>1024, kernel<6.01, labels!=BIG", "MEMORY>1GiB && KERNEL<6.1 && LABELS!=big"},
        {"opsys='a\"b' || host=''", "OPSYS='a\"b' || HOST=\"\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct need need;
        char text[256], again[256];
        CHECK_EQ(need_compile(&need, &table, cases[i].text, &mistake), 0);
        size_t len = need_format(&need, &table, text, sizeof text);
        CHECK_EQ(len, strlen(text));
        CHECK_STR(text, cases[i].anew);
        CHECK_EQ(need_compile(&need, &table, text, &mistake), 0);
        need_format(&need, &table, again, sizeof again);
        CHECK_STR(again, text);
    }
}

/* As much as fits, and one more. */
static const char *repeated(const char *before, const char *part, unsigned times,
                            const char *last) {
    static char text[8192];
    struct text t;
    text_init(&t, text, sizeof text);
    text_str(&t, before);
    for (unsigned i = 0; i < times; i++)
        text_str(&t, part);
    text_str(&t, last);
    return selected(text);
}

static void test_limits(void) {
    CHECK_STR(repeated("", "gpus=0||", 63, "cpu=1ghz"), "1");
    CHECK_STR(repeated("", "gpus=0||", 64, "cpu=1ghz"),
              "column 513: these are too many comparisons (at most 64)");
    CHECK_STR(repeated("", "(", 63, "cpu=1ghz"), "column 63: this parenthesis is not closed");
    CHECK_STR(repeated("", "(", 65, "cpu=1ghz"), "column 65: this is nested too deeply");
    CHECK_STR(repeated("", "!", 65, "cpu=1ghz"), "column 65: this is nested too deeply");
    CHECK_STR(repeated("", "gpus=0||(", 31, "cpu=1ghz"),
              "column 279: this parenthesis is not closed");
    CHECK_STR(repeated("", "gpus=0||(", 32, "cpu=1ghz"), "column 289: this is nested too deeply");
    CHECK_STR(repeated("", "arch=123456789012345678901234567890123456789012345678901234567890||", 9,
                       "cpu=1ghz"),
              "1");
    CHECK_STR(repeated("", "arch=123456789012345678901234567890123456789012345678901234567890||",
                       10, "cpu=1ghz"),
              "column 609: these are too many texts");
    CHECK(strstr(repeated("gpus=", "1", 300, ""), "too long for a value") != NULL);
}

/* Names as long as they can be: nothing of the words is cut. */
static void test_long_words(void) {
    struct traits t;
    struct need need;
    char name[TRAITS_WORD_MAX], text[256];
    traits_init(&t, 1, 32, malloc(traits_bytes(1, 32)));
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    for (char c = 'a'; c < 'j'; c++) {
        name[30] = c;
        CHECK(traits_define(&t, name, 1 << TRAITS_IS) > 0);
        for (name[29] = 'a'; name[29] < 'j'; name[29]++)
            CHECK(traits_define_value(&t, name) >= 0);
        name[29] = 'a';
    }
    snprintf(text, sizeof text, "%s=%.28sxxxx", name, name);
    CHECK_EQ(need_compile(&need, &t, text, &mistake), -EINVAL);
    size_t len = strlen(mistake.words);
    CHECK(len < MISTAKE_WORDS_MAX - 1 && mistake.words[len - 1] == '?');
    CHECK(strstr(mistake.words, ", ...; did you mean aaa") != NULL);
    snprintf(text, sizeof text, "%080d=1", 0);
    CHECK_EQ(need_compile(&need, &t, text, &mistake), -EINVAL);
    CHECK(strstr(mistake.words, ", ...") != NULL && strlen(mistake.words) < MISTAKE_WORDS_MAX - 1);
    free(t.values);
}

int main(void) {
    make_table();
    TEST(test_paper);
    TEST(test_operators);
    TEST(test_versions);
    TEST(test_binding);
    TEST(test_refused);
    TEST(test_shown);
    TEST(test_text);
    TEST(test_limits);
    TEST(test_long_words);
    free(table.values);
    return tap_finish();
}
