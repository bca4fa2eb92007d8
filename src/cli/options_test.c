/* SPDX-License-Identifier: MIT */
/* Tests of options, and of the names suggested for mistyped ones. */
#include "cli/options.h"

#include "tap.h"

/* Complaints go to stderr, which tests may fill. */

static void test_number(void) {
    uint64_t v = 0;
    CHECK(options_number("0", &v) && v == 0);
    CHECK(options_number("18446744073709551615", &v) && v == UINT64_MAX);
    CHECK(!options_number("18446744073709551616", &v));
    CHECK(!options_number("", &v) && !options_number("-1", &v) && !options_number("12x", &v));
}

static void check_list(const char *text, uint32_t count, const uint64_t *numbers) {
    struct number_list list;
    if (!CHECK(options_list(text, &list)) || !CHECK_EQ(list.count, count))
        return;
    for (uint32_t i = 0; i < count; i++)
        CHECK_EQ(list.at[i], numbers[i]);
}

static void test_list(void) {
    struct number_list list;
    check_list("7", 1, (uint64_t[]){7});
    check_list("4,16,64", 3, (uint64_t[]){4, 16, 64});
    check_list("4..32", 4, (uint64_t[]){4, 8, 16, 32});
    check_list("3..20", 4, (uint64_t[]){3, 6, 12, 20});
    check_list("5..5", 1, (uint64_t[]){5});
    check_list("1,4..8,100", 4, (uint64_t[]){1, 4, 8, 100});
    CHECK(
        !options_list("1..18446744073709551615", &list)); /* more numbers than there is room for */
    const char *wrong[] = {"", ",", "4,", ",4", "4..", "..4", "8..4", "0..4", "4...8", "4-8", "a"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!options_list(wrong[i], &list));
}

static void test_range(void) {
    struct number_range range;
    CHECK(options_range("20", &range) && range.first == 1 && range.last == 20);
    CHECK(options_range("5..9", &range) && range.first == 5 && range.last == 9);
    CHECK(options_range("0..0", &range) && range.first == 0 && range.last == 0);
    CHECK(!options_range("0", &range) && !options_range("9..5", &range));
    CHECK(!options_range("5..", &range) && !options_range("x", &range));
}

static void test_rate(void) {
    uint64_t rate = 0;
    CHECK(options_rate("125000000", &rate) && rate == 125000000);
    CHECK(options_rate("300MB", &rate) && rate == 300000000);
    CHECK(options_rate("1.25GB/s", &rate) && rate == 1250000000);
    CHECK(options_rate("0.5KB", &rate) && rate == 500);
    CHECK(!options_rate("GB", &rate) && !options_rate("1.GB", &rate));
    CHECK(!options_rate("5XB", &rate) && !options_rate("99999999999GB", &rate));
}

/* ---- a command line ---- */

struct values {
    bool flag;
    const char *text;
    uint64_t number, time, rate;
    struct number_list list;
    struct number_range range;
};

static int parse(struct values *v, int argc, const char *const *args) {
    const struct option table[] = {{"json", OPTION_FLAG, &v->flag, NULL, "words"},
                                   {"shape", OPTION_TEXT, &v->text, "SHAPE", "words"},
                                   {"runs", OPTION_NUMBER, &v->number, "R", "words"},
                                   {"nodes", OPTION_LIST, &v->list, "LIST", "words"},
                                   {"seeds", OPTION_RANGE, &v->range, "A..B", "words"},
                                   {"latency", OPTION_DURATION, &v->time, "TIME", "words"},
                                   {"bandwidth", OPTION_RATE, &v->rate, "RATE", "words"},
                                   {0}};
    char *argv[16] = {0};
    for (int i = 0; i < argc; i++)
        argv[i] = (char *)args[i];
    return options_parse(table, argc, argv);
}

#define PARSE(v, ...)                                                  \
    parse((v), sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), \
          (const char *[]){__VA_ARGS__})

static void test_parse(void) {
    struct values v = {0};
    CHECK_EQ(PARSE(&v, "bench", "primitives", "--nodes", "4..16", "--json", "--runs=7", "more"), 2);
    CHECK(v.flag && v.number == 7 && v.list.count == 3);
    CHECK_EQ(PARSE(&v, "bench", "--shape", "flat", "--latency", "20us", "--bandwidth=1GB"), 0);
    CHECK_STR(v.text, "flat");
    CHECK(v.time == 20000 && v.rate == 1000000000);
    CHECK_EQ(PARSE(&v, "bench", "--", "--json"), 1);
    CHECK_EQ(PARSE(&v, "bench"), 0);
    CHECK_EQ(PARSE(&v, "bench", "x", "--help"), OPTIONS_HELP);
    CHECK_EQ(PARSE(&v, "bench", "-h"), OPTIONS_HELP);
}

static void test_wrong(void) {
    struct values v = {0};
    CHECK_EQ(PARSE(&v, "bench", "--node", "4"), OPTIONS_WRONG);
    CHECK_EQ(PARSE(&v, "bench", "--nodes"), OPTIONS_WRONG);
    CHECK_EQ(PARSE(&v, "bench", "--nodes", "many"), OPTIONS_WRONG);
    CHECK_EQ(PARSE(&v, "bench", "--json=yes"), OPTIONS_WRONG);
    CHECK_EQ(PARSE(&v, "bench", "--shape="), OPTIONS_WRONG);
    CHECK_EQ(PARSE(&v, "bench", "-x"), OPTIONS_WRONG);
    CHECK_EQ(PARSE(&v, "bench", "--seeds", "3..1"), OPTIONS_WRONG);
}

/* ---- letters, and commands that run another ---- */

struct letters {
    bool label, verbose;
    uint64_t procs;
    int64_t priority;
    struct text_list env;
};

static int parse_letters(struct letters *v, bool leading, int argc, const char *const *args,
                         char **argv) {
    const struct option table[] = {{"procs,n", OPTION_NUMBER, &v->procs, "N", "words"},
                                   {"label,l", OPTION_FLAG, &v->label, NULL, "words"},
                                   {"verbose,v", OPTION_FLAG, &v->verbose, NULL, "words"},
                                   {"priority", OPTION_SIGNED, &v->priority, "N", "words"},
                                   {"env", OPTION_TEXTS, &v->env, "NAME=VALUE", "words"},
                                   {0}};
    *v = (struct letters){0};
    for (int i = 0; i < argc; i++)
        argv[i] = (char *)args[i];
    return leading ? options_parse_leading(table, argc, argv) : options_parse(table, argc, argv);
}

#define LETTERS(v, leading, argv, ...)                                                    \
    parse_letters((v), (leading), sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), \
                  (const char *[]){__VA_ARGS__}, (argv))

static void test_letters(void) {
    struct letters v;
    char *argv[16] = {0};
    CHECK_EQ(LETTERS(&v, false, argv, "run", "-n", "4", "x", "-lv"), 1);
    CHECK(v.procs == 4 && v.label && v.verbose);
    CHECK_EQ(LETTERS(&v, false, argv, "run", "-n4", "-vln7"), 0);
    CHECK(v.procs == 7 && v.label && v.verbose);
    CHECK_EQ(LETTERS(&v, false, argv, "run", "--procs=3", "--priority", "-5"), 0);
    CHECK(v.procs == 3 && v.priority == -5);
    CHECK_EQ(LETTERS(&v, false, argv, "run", "--env", "A=1", "--env=B=2"), 0);
    CHECK_EQ(v.env.count, 2);
    CHECK_STR(v.env.at[1], "B=2");
    CHECK_EQ(LETTERS(&v, false, argv, "run", "-"), 1); /* a dash alone is a word */
    CHECK_EQ(LETTERS(&v, false, argv, "run", "-n"), OPTIONS_WRONG);
    CHECK_EQ(LETTERS(&v, false, argv, "run", "-lx"), OPTIONS_WRONG);
    CHECK_EQ(LETTERS(&v, false, argv, "run", "-nx"), OPTIONS_WRONG);
    CHECK_EQ(LETTERS(&v, false, argv, "run", "--priority", "--5"), OPTIONS_WRONG);
}

static int reads_seen;

static void count_reads(struct option_reader *r, const char *argument) {
    (void)r;
    if (strcmp(argument, "-x") == 0)
        reads_seen++;
}

static void test_program(void) {
    const struct option table[] = {{0}};
    struct option_reader r = {.reads = count_reads};
    char *plain[] = {"run", "--", "x", "-x", NULL}, *other[] = {"run", "x", "--", "-x", NULL};
    CHECK_EQ(options_parse_program(table, 4, plain, &r), 2);
    CHECK(r.plain);
    CHECK_EQ(options_parse_program(table, 4, other, &r), 3);
    CHECK(!r.plain);
    CHECK_EQ(reads_seen, 2);
}

static void test_leading(void) {
    struct letters v;
    char *argv[16] = {0};
    CHECK_EQ(LETTERS(&v, true, argv, "run", "-n", "2", "ls", "-l", "--", "--help"), 4);
    CHECK(v.procs == 2 && !v.label);
    CHECK_STR(argv[1], "ls");
    CHECK_STR(argv[3], "--");
    CHECK(argv[5] == NULL);
    CHECK_EQ(LETTERS(&v, true, argv, "run", "-l", "--", "-n", "2"), 2);
    CHECK(v.label && v.procs == 0);
    CHECK_STR(argv[1], "-n");
    CHECK_EQ(LETTERS(&v, true, argv, "run", "-h", "ls"), OPTIONS_HELP);
}

int main(void) {
    TEST(test_number);
    TEST(test_list);
    TEST(test_range);
    TEST(test_rate);
    TEST(test_parse);
    TEST(test_wrong);
    TEST(test_letters);
    TEST(test_program);
    TEST(test_leading);
    return tap_finish();
}
