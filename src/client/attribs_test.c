/* SPDX-License-Identifier: MIT */
/* The attribute file: what it defines, and what is pointed at. */
#include "client/attribs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "tap.h"

static struct traits table;
static struct mistake mistake;

static int parse(const char *text) {
    traits_clear(&table);
    return attribs_parse(&table, text, &mistake);
}

static void wrong(const char *text, const char *words) {
    char out[400];
    CHECK_EQ(parse(text), -EBADMSG);
    mistake_format(&mistake, "attribs", out, sizeof out);
    CHECK_STR(out, words);
}

static void check_attribute(const char *name, const char *operators, const char *values) {
    char text[200];
    struct text t;
    int id = traits_find(&table, name);
    if (!CHECK(id >= TRAITS_BUILT_IN))
        return;
    text_init(&t, text, sizeof text);
    traits_write_operators(&t, table.at[id].operators);
    CHECK_STR(text, operators);
    text_init(&t, text, sizeof text);
    for (uint32_t i = 0; i < table.at[id].count; i++) {
        text_str(&t, i > 0 ? " " : "");
        text_str(&t, table.names[table.at[id].first + i]);
    }
    CHECK_STR(text, values);
}

static void test_paper(void) {
    CHECK_EQ(parse("CPU  =, >=, <=  500MHZ 1GHZ 2GHZ\n"
                   "MEM  =, >=, <=  256MB 512MB 2GB\n"
                   "NIC  =          FAST   SLOW\n"),
             0);
    check_attribute("CPU", "=, <=, >=", "500MHZ 1GHZ 2GHZ");
    check_attribute("MEM", "=, <=, >=", "256MB 512MB 2GB");
    check_attribute("NIC", "=", "FAST SLOW");
    CHECK_EQ(table.count, TRAITS_BUILT_IN + 3);
}

static void test_written_otherwise(void) {
    CHECK_EQ(parse("# attributes\n\n   \t\r\n"
                   "CPU =,>=,<= 500MHZ 1GHZ 2GHZ # the faster, the better\n"
                   "\tDisk\t==,!= , < ,>\tnone\tsmall large\r\n"
                   "Colour = >= red"),
             0);
    check_attribute("cpu", "=, <=, >=", "500MHZ 1GHZ 2GHZ");
    check_attribute("DISK", "=, !=, <, >", "none small large");
    check_attribute("colour", "=, >=", "red");
    CHECK_EQ(parse(""), 0);
    CHECK_EQ(table.count, TRAITS_BUILT_IN);
}

static void test_mistakes(void) {
    wrong("CPU =,=> 1 2\n",
          "attribs:1:7: \"=>\" is no operator (=, !=, <, <=, >, >=); did you mean =?");
    wrong("\nCPU 1GHZ\n", "attribs:2:5: an operator is missing here (=, !=, <, <=, >, >=)");
    wrong("CPU", "attribs:1:4: an operator is missing here (=, !=, <, <=, >, >=)");
    wrong("CPU =, 1GHZ", "attribs:1:8: an operator is missing here (=, !=, <, <=, >, >=)");
    wrong("CPU = # none", "attribs:1:7: values are missing here");
    wrong("CPU = 1 2 1", "attribs:1:11: \"1\" is a value already");
    wrong("CPU = a b\n  cpu = c\n", "attribs:2:3: \"cpu\" was defined before");
    wrong("Memory = a b",
          "attribs:1:1: \"Memory\" is an attribute that all nodes have; take another name");
    wrong("switch = a b",
          "attribs:1:1: \"switch\" means something else in the node file; take another name");
    wrong("2CPU = a", "attribs:1:1: \"2CPU\" cannot be a name: a letter, then up to 30 letters, "
                      "digits, _ - .");
    wrong("CPU = a,b",
          "attribs:1:7: \"a,b\" cannot be a value: up to 31 letters, digits, . _ - + / "
          ": @ %");
}

static void test_limits(void) {
    static char text[64 * 16];
    struct text t;
    text_init(&t, text, sizeof text);
    for (uint32_t i = 0; i < TRAITS_MAX - TRAITS_BUILT_IN + 1; i++) {
        text_char(&t, 'a');
        text_u64(&t, i);
        text_str(&t, " = x\n");
    }
    wrong(text,
          "attribs:52:1: \"a51\": there are too many attributes (at most 64, 13 are built in)");
}

/* Whatever stands there: it is taken or pointed at. */
static void test_noise(void) {
    static const char letters[] = "AB12 \t\n=<>!,#,, \xff";
    struct random r;
    random_init(&r, 1);
    for (int i = 0; i < 20000; i++) {
        char text[64];
        size_t len = random_below(&r, sizeof text);
        for (size_t k = 0; k < len; k++)
            text[k] = letters[random_below(&r, sizeof letters - 1)];
        text[len] = '\0';
        int status = parse(text);
        CHECK(status == 0 || (status == -EBADMSG && mistake.line > 0 && mistake.column <= len));
    }
}

int main(void) {
    traits_init(&table, 4, TRAITS_MAX, malloc(traits_bytes(4, TRAITS_MAX)));
    TEST(test_paper);
    TEST(test_written_otherwise);
    TEST(test_mistakes);
    TEST(test_limits);
    TEST(test_noise);
    free(table.values);
    return tap_finish();
}
