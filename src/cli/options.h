/* SPDX-License-Identifier: MIT */
/* Options of a subcommand: a table says which there are, where values go and what they mean.
 *
 * Options are long (--nodes 64, --nodes=64, --json), some have a letter too (-n 64, -n64, -lv), and
 * they may stand before or behind other arguments; after "--" nothing is an option. A command that
 * runs another takes options only before its name. Whatever is wrong is said in one line, with the
 * nearest name if a name is wrong. Every command understands --help. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum option_kind {
    OPTION_FLAG,     /* to: bool */
    OPTION_TEXT,     /* to: const char * */
    OPTION_NUMBER,   /* to: uint64_t; "64" */
    OPTION_LIST,     /* to: struct number_list; "4,16", "4..64" (doubling), "4,16..64" */
    OPTION_RANGE,    /* to: struct number_range; "20" (the first twenty: 1..20), "5..9" */
    OPTION_DURATION, /* to: uint64_t, nanoseconds; "20us", "1.5ms" */
    OPTION_RATE,     /* to: uint64_t, bytes a second; "300MB", "1.25GB" (powers of ten) */
    OPTION_SIGNED,   /* to: int64_t; "-5" */
    OPTION_TEXTS,    /* to: struct text_list; may be given more than once */
};

enum { NUMBERS_MAX = 64 };

struct number_list {
    uint32_t count;
    uint64_t at[NUMBERS_MAX];
};

struct number_range {
    uint64_t first, last;
};

struct text_list {
    uint32_t count;
    const char *at[NUMBERS_MAX];
};

struct option {
    const char *name; /* without dashes, "procs" or with a letter "procs,n"; NULL ends a table */
    enum option_kind kind;
    void *to;
    const char *value; /* what the value is called in the help text; NULL for a flag */
    const char *words; /* NULL: not shown, as it only serves to say why it cannot be */
};

/* Results of options_parse() other than a number of arguments. */
enum { OPTIONS_HELP = -1, OPTIONS_WRONG = -2 };

/* Reads the arguments behind the command's name, argv[0]. What is not an option is moved to argv[1]
 * and on, and counted. OPTIONS_HELP if help is wanted; OPTIONS_WRONG after complaining. */
int options_parse(const struct option *table, int argc, char **argv);

/* The same, but the first argument that is no option ends them: what follows is another's. */
int options_parse_leading(const struct option *table, int argc, char **argv);

/* Somebody who reads a command with its program. */
struct option_reader {
    void (*reads)(struct option_reader *r,
                  const char *argument); /* before each one; NULL: nobody */
    bool plain;                          /* afterwards: "--" stood before the program */
};

/* As options_parse_leading. */
int options_parse_program(const struct option *table, int argc, char **argv,
                          struct option_reader *r);

/* The table as text. */
void options_print(const struct option *table, FILE *out);

/* For texts that do not come as options. All give false if the text is not of that kind. */
bool options_number(const char *text, uint64_t *ret);
bool options_list(const char *text, struct number_list *ret);
bool options_range(const char *text, struct number_range *ret);
bool options_rate(const char *text, uint64_t *ret);
